/* What a register full of Winograd tiles goes through, for both ways of filling a register: the matrices of winograd.h
   applied from both sides, and the kernels and inputs brought beside each other for that. `outputs` is the side of a
   tile of y, 2 or 4, and a constant wherever these functions are called. */

#ifndef WINOGRAD_TILES_H
#define WINOGRAD_TILES_H

#include "winograd.h"

enum { MOST = 6 }; /* the side of the larger tile of inputs */

/* Up to LANES 3 x 3 kernels, `apart` numbers from one to the next, beside each other; zeros in the lanes that are left.
   flipped: each is read from its end. */
static inline void kernels_beside(size_t count, const real *from, size_t apart, int flipped, vector *kernel) {
    real numbers[9][LANES];
    size_t l = 0;
    if (count < LANES) memset(numbers, 0, sizeof numbers);
    for (; LANES >= FOUR && l + FOUR <= count; l += FOUR, from += FOUR * apart) {
        transpose_square(&numbers[0][l], LANES, from, apart);
        transpose_square(&numbers[4][l], LANES, from + 4, apart);
        for (size_t k = 0; k < FOUR; k++) numbers[8][l + k] = from[k * apart + 8];
    }
    for (; l < count; l++, from += apart) {
        for (size_t t = 0; t < 9; t++) numbers[t][l] = from[t];
    }
    for (size_t t = 0; t < 9; t++) kernel[flipped ? 8 - t : t] = load(numbers[t]);
}

/* G g, BT d and AT m of one row or column, by the side of a tile of y. */
static inline __attribute__((always_inline)) void transform_kernel(const size_t outputs, const vector *from,
                                                                   vector *to) {
    if (outputs == 4)
        winograd4_kernel(from, to);
    else
        winograd2_kernel(from, to);
}

static inline __attribute__((always_inline)) void transform_input(const size_t outputs, const vector *from,
                                                                  vector *to) {
    if (outputs == 4)
        winograd4_input(from, to);
    else
        winograd2_input(from, to);
}

static inline __attribute__((always_inline)) void transform_output(const size_t outputs, const vector *from,
                                                                   vector *to) {
    if (outputs == 4)
        winograd4_output(from, to);
    else
        winograd2_output(from, to);
}

/* U = G g GT of one register of kernels: along the columns, then along the rows. */
static inline __attribute__((always_inline)) void kernel_to_places(const size_t outputs, const vector *kernel,
                                                                   vector *places) {
    const size_t a = outputs + 2;
    vector columns[3][MOST];
    UNROLL for (size_t v = 0; v < 3; v++) {
        const vector from[3] = {kernel[v], kernel[3 + v], kernel[6 + v]};
        transform_kernel(outputs, from, columns[v]);
    }
    UNROLL for (size_t i = 0; i < a; i++) {
        const vector from[3] = {columns[0][i], columns[1][i], columns[2][i]};
        transform_kernel(outputs, from, places + i * a);
    }
}

/* The part of a plane, (height, width, LANES), that a tile of a x a inputs from (top, left) on sees, with zeros outside
   the plane. */
static inline void frame_tile(const real *plane, ptrdiff_t height, ptrdiff_t width, ptrdiff_t top, ptrdiff_t left,
                              ptrdiff_t a, vector *framed) {
    const ptrdiff_t begin = left < 0 ? -left : 0, end = left + a <= width ? a : width - left;
    for (ptrdiff_t i = 0; i < a; i++, framed += a) {
        const int inside = top + i >= 0 && top + i < height;
        const real *from = plane + ((top + i) * width + left) * LANES;
        for (ptrdiff_t j = 0; j < a; j++) framed[j] = inside && j >= begin && j < end ? load(from + j * LANES) : (vector){0};
    }
}

/* V = BT d B of one register of tiles, each place `place` numbers after the one before. row: from one row of the tile to
   the next; in a row one register follows the other. */
static inline __attribute__((always_inline)) void inputs_to_places(const size_t outputs, const real *tile, size_t row,
                                                                   real *v, size_t place) {
    const size_t a = outputs + 2;
    vector columns[MOST][MOST];
    UNROLL for (size_t j = 0; j < a; j++) {
        vector from[MOST];
        UNROLL for (size_t i = 0; i < a; i++) from[i] = load(tile + i * row + j * LANES);
        transform_input(outputs, from, columns[j]);
    }
    UNROLL for (size_t i = 0; i < a; i++) {
        vector from[MOST], to[MOST];
        UNROLL for (size_t j = 0; j < a; j++) from[j] = columns[j][i];
        transform_input(outputs, from, to);
        UNROLL for (size_t j = 0; j < a; j++) store(v + (i * a + j) * place, to[j]);
    }
}

/* y = AT M A of one register of tiles: (outputs, outputs) registers, from the products M, (a, a), a = outputs + 2, each
   `place` numbers after the one before. */
static inline __attribute__((always_inline)) void places_to_outputs(const size_t outputs, const real *m, size_t place,
                                                                    vector *y) {
    const size_t a = outputs + 2;
    vector columns[MOST][4];
    UNROLL for (size_t j = 0; j < a; j++) {
        vector from[MOST];
        UNROLL for (size_t i = 0; i < a; i++) from[i] = load(m + (i * a + j) * place);
        transform_output(outputs, from, columns[j]);
    }
    UNROLL for (size_t i = 0; i < outputs; i++) {
        vector from[MOST];
        UNROLL for (size_t j = 0; j < a; j++) from[j] = columns[j][i];
        transform_output(outputs, from, y + i * outputs);
    }
}

#endif
