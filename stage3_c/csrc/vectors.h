/* Arithmetic on whole SIMD registers, and the short copies that prepare it: what several rooms need inside their loops.

   The vector type is GCC's and Clang's extension: one source becomes SSE2, AVX2, AVX-512 or NEON. */

#ifndef VECTORS_H
#define VECTORS_H

#include "shares.h"

#include <string.h>

#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

enum {
    LANES = SIMD_BYTES / (int)sizeof(real),
    FOUR = 4,
    MOST_COPIED = (int)TILE_COLUMNS > 8 ? (int)TILE_COLUMNS : 8, /* a power of two */
};

typedef real vector __attribute__((vector_size(SIMD_BYTES)));
typedef real vector_anywhere __attribute__((vector_size(SIMD_BYTES), aligned(sizeof(real)), may_alias));
typedef real four __attribute__((vector_size(4 * sizeof(real)), aligned(sizeof(real)), may_alias));
#if GROUNDUP_BITS == 32
typedef int32_t mask __attribute__((vector_size(SIMD_BYTES)));
#else
typedef int64_t mask __attribute__((vector_size(SIMD_BYTES)));
#endif

#if defined(__clang__)
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#elif GROUNDUP_BITS == 32
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (four_mask){__VA_ARGS__})
typedef int32_t four_mask __attribute__((vector_size(4 * sizeof(real))));
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (four_mask){__VA_ARGS__})
typedef int64_t four_mask __attribute__((vector_size(4 * sizeof(real))));
#endif

/* memcpy for counts up to a tile's width or height that are not known beforehand: a move for each bit of the count. */
static inline __attribute__((always_inline)) void copy_few(real *restrict to, const real *restrict from, size_t count) {
    size_t at = 0;
    UNROLL for (size_t move = MOST_COPIED; move > 0; move /= 2) {
        if (count & move) {
            memcpy(to + at, from + at, move * sizeof(real));
            at += move;
        }
    }
}

static inline vector load(const real *from) { return *(const vector_anywhere *)from; }

static inline void store(real *to, vector values) { *(vector_anywhere *)to = values; }

static inline vector activate(vector z, enum activation which) {
    if (which == IDENTITY) return z;
    const mask stopped = z <= 0; /* all bits set where true; NaN is not, and passes */
    if (which == RELU) return (vector)((mask)z & ~stopped);
    return (vector)(((mask)(z * (real)LEAKY_SLOPE) & stopped) | ((mask)z & ~stopped));
}

/* Turn a square of FOUR by FOUR numbers, given by its rows: to[j * to_row + i] = row i [j]. */
static inline __attribute__((always_inline)) void transpose_rows(real *to, size_t to_row, const real *row0,
                                                                 const real *row1, const real *row2,
                                                                 const real *row3) {
    const four r0 = *(const four *)row0, r1 = *(const four *)row1;
    const four r2 = *(const four *)row2, r3 = *(const four *)row3;
    const four low01 = SHUFFLE(r0, r1, 0, 4, 1, 5), high01 = SHUFFLE(r0, r1, 2, 6, 3, 7);
    const four low23 = SHUFFLE(r2, r3, 0, 4, 1, 5), high23 = SHUFFLE(r2, r3, 2, 6, 3, 7);
    *(four *)to = SHUFFLE(low01, low23, 0, 1, 4, 5);
    *(four *)(to + to_row) = SHUFFLE(low01, low23, 2, 3, 6, 7);
    *(four *)(to + 2 * to_row) = SHUFFLE(high01, high23, 0, 1, 4, 5);
    *(four *)(to + 3 * to_row) = SHUFFLE(high01, high23, 2, 3, 6, 7);
}

/* The same of a square whose rows are from_row apart. */
static inline void transpose_square(real *to, size_t to_row, const real *from, size_t from_row) {
    transpose_rows(to, to_row, from, from + from_row, from + 2 * from_row, from + 3 * from_row);
}

#endif
