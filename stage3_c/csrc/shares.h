/* A product cut into one rectangle for each thread, in steps of a tile, so that only the last ones have an edge. */

#ifndef SHARES_H
#define SHARES_H

#include "groundup.h"

static inline size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* Where the i-th of `count` shares of `size` begins. */
static inline size_t share_begin(size_t size, size_t step, size_t count, size_t i) {
    const size_t tiles = (size + step - 1) / step;
    return smaller(tiles * i / count * step, size);
}

/* The size of the largest of `count` shares. */
static inline size_t largest_share(size_t size, size_t step, size_t count) {
    const size_t tiles = (size + step - 1) / step;
    return smaller((tiles + count - 1) / count * step, size);
}

/* Choose bands * stacks = parts: rectangles across the m rows and across the n columns. A rectangle costs its area in
   multiply-adds, and its edges in reading and packing; the largest is to cost the least. */
static inline void cut_rectangles(size_t m, size_t n, size_t row_step, size_t column_step, size_t parts, size_t *bands,
                                  size_t *stacks) {
    enum { READING = 16 };
    size_t least = SIZE_MAX;
    for (size_t tried = 1; tried <= parts; tried++) {
        if (parts % tried != 0) continue;
        const size_t rows = largest_share(m, row_step, tried), columns = largest_share(n, column_step, parts / tried);
        const size_t cost = rows * columns + READING * (rows + columns);
        if (cost < least) {
            least = cost;
            *bands = tried;
            *stacks = parts / tried;
        }
    }
}

#endif
