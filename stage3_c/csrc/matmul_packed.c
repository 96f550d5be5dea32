/* The matmul rung that keeps the processor's multiply-add units busy: register tiles, cache blocks, packed panels.

   Register tiles. A tile of c, TILE_ROWS by TILE_VECTORS SIMD registers, stays in registers while k runs by. Each round
   loads TILE_VECTORS registers of b and TILE_ROWS single numbers of a and does TILE_ROWS * TILE_VECTORS multiply-adds,
   all independent of one another: far more arithmetic than loads, and no waiting for the last result.

   Cache blocks. k is cut into DEPTH, so that the panel of b that a column of tiles reads again and again stays in the
   second-level cache, and the rows of a into ROWS, so that they stay in the third.

   Packed panels. A panel of b, TILE_COLUMNS wide, is copied into the order in which the tiles read it: every cache line
   is used whole, and the copy turns a transpose round and fills up the last panel with zeros. What lies right already
   and meets only a few rows is read where it is, because the copy would cost more than it saves. The same goes for a,
   whose numbers are read one at a time and need packing only where they lie column by column.

   After Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008), and BLIS. The vector type is
   GCC's and Clang's extension: one source becomes SSE2, AVX2, AVX-512 or NEON. */

#include "vectors.h"

enum {
    DEPTH = 4096 / (int)sizeof(real),
    ROWS = 1024 / TILE_ROWS * TILE_ROWS,
    CACHE_LINE = 64,
    /* Found by trying: with fewer rows of a than this packing b costs more than it saves, with fewer columns of b
       packing a. */
    WORTH_PACKING_B = 32 * TILE_ROWS,
    WORTH_PACKING_A = 512,
};

/* The workspace holds one panel of b and a block of a. */
_Static_assert((DEPTH * TILE_COLUMNS + ROWS * DEPTH) * sizeof(real) <= WORKSPACE_BYTES, "the workspace is too small");

_Static_assert(TILE_ROWS < 2 * MOST_COPIED && (int)TILE_COLUMNS < 2 * MOST_COPIED, "copy_few cannot copy a panel's row");

/* The end of a tile that lies over the right edge, or is to get a bias or an activation. It works in memory of full
   width and is a function of its own: kept in registers, it would crowd out the sums of the loop that matters. */
static __attribute__((noinline)) void finish(size_t rows, size_t vectors, real (*sums)[TILE_COLUMNS], real *c, size_t n,
                                             size_t columns, int added, const real *bias, enum activation activation) {
    real shift[2 * MOST_COPIED] = {0}, before[2 * MOST_COPIED] = {0};
    if (bias != NULL) copy_few(shift, bias, columns);
    for (size_t i = 0; i < rows; i++) {
        if (added) copy_few(before, c + i * n, columns);
        for (size_t at = 0; at < vectors * LANES; at += LANES) {
            const vector z = load(sums[i] + at) + load(before + at) + load(shift + at);
            store(sums[i] + at, activate(z, activation));
        }
        copy_few(c + i * n, sums[i], columns);
    }
}

/* The rows of c lie far apart: asked for before a tile is computed, they have come from the outer caches when it is. */
static inline __attribute__((always_inline)) void fetch_ahead(const size_t rows, const size_t vectors, const real *c,
                                                              size_t n, size_t columns) {
    UNROLL for (size_t i = 0; i < rows; i++) {
        __builtin_prefetch(c + i * n, 1);
        if (vectors * sizeof(vector) > CACHE_LINE) __builtin_prefetch(c + i * n + columns - 1, 1);
    }
}

/* The end of a tile: the sums go from the registers to c, added to what is there or in its place. The arguments are
   those of `tile`. */
static inline __attribute__((always_inline)) void put_away(const size_t rows, const size_t vectors,
                                                           vector (*sum)[TILE_VECTORS], real *c, size_t n,
                                                           size_t columns, int added, const real *bias,
                                                           enum activation activation) {
    if (columns == vectors * LANES && bias == NULL && activation == IDENTITY) {
        UNROLL for (size_t i = 0; i < rows; i++) {
            UNROLL for (size_t v = 0; v < vectors; v++) {
                real *to = c + i * n + v * LANES;
                store(to, added ? load(to) + sum[i][v] : sum[i][v]);
            }
        }
        return;
    }
    real sums[TILE_ROWS][TILE_COLUMNS];
    UNROLL for (size_t i = 0; i < rows; i++) {
        UNROLL for (size_t v = 0; v < vectors; v++) store(sums[i] + v * LANES, sum[i][v]);
    }
    finish(rows, vectors, sums, c, n, columns, added, bias, activation);
}

/* The micro-kernel, one tile. a: (rows, depth) by its strides; b: depth rows of vectors * LANES numbers, b_row from one
   to the next; c: rows with n numbers from one to the next, of which `columns` count. added: whether c holds the sum of
   earlier blocks; bias, from the tile's first column, and activation: after the last. rows and vectors are constants
   wherever this is called, so the loops over them disappear and `sum` lives in registers. */
static inline __attribute__((always_inline)) void tile(const size_t rows, const size_t vectors, size_t depth,
                                                       NAME(strided) a, const real *b, size_t b_row, real *c,
                                                       size_t n, size_t columns, int added, const real *bias,
                                                       enum activation activation) {
    fetch_ahead(rows, vectors, c, n, columns);
    vector sum[TILE_ROWS][TILE_VECTORS];
    UNROLL for (size_t i = 0; i < rows; i++) {
        UNROLL for (size_t v = 0; v < vectors; v++) sum[i][v] = (vector){0};
    }
    for (size_t p = 0; p < depth; p++) {
        vector row[TILE_VECTORS];
        UNROLL for (size_t v = 0; v < vectors; v++) row[v] = load(b + p * b_row + v * LANES);
        UNROLL for (size_t i = 0; i < rows; i++) {
            const real factor = a.values[i * a.row + p * a.column];
            UNROLL for (size_t v = 0; v < vectors; v++) sum[i][v] += factor * row[v];
        }
    }
    put_away(rows, vectors, sum, c, n, columns, added, bias, activation);
}

/* How many of the rows that are left the next tile takes: there is code for these numbers only. */
static size_t tile_rows(size_t left) {
    if (left >= TILE_ROWS) return TILE_ROWS;
    return left >= 4 ? 4 : left >= 2 ? 2 : 1;
}

/* The tile with its numbers of rows and vectors as constants, and where neighbouring rows of a are neighbours in memory
   (packed, or transposed) that as a constant too. */
static void any_tile(size_t rows, size_t columns, size_t depth, NAME(strided) a, const real *b, size_t b_row,
                     real *c, size_t n, int added, const real *bias, enum activation activation) {
    const NAME(strided) neighbours = {a.values, 1, a.column};
#define TILE(taken, vectors)                                                                                           \
    if (a.row == 1)                                                                                                    \
        tile(taken, vectors, depth, neighbours, b, b_row, c, n, columns, added, bias, activation);                    \
    else                                                                                                               \
        tile(taken, vectors, depth, a, b, b_row, c, n, columns, added, bias, activation)
#define TILE_OF(taken)                                                                                                 \
    if (columns > LANES) {                                                                                             \
        TILE(taken, 2);                                                                                                \
    } else {                                                                                                           \
        TILE(taken, 1);                                                                                                \
    }
    if (rows == TILE_ROWS) {
        TILE_OF(TILE_ROWS);
    } else if (rows >= 4) {
        TILE_OF(4);
    } else if (rows >= 2) {
        TILE_OF(2);
    } else {
        TILE_OF(1);
    }
#undef TILE_OF
#undef TILE
}

/* Copy `length` steps of `lines` neighbouring lines into panel[step * width + line], zeros where lines < width. For b
   a step is a row and a line a column; for a the other way round. One of the strides `step` and `line` is 1. */
static void pack(real *restrict panel, size_t width, const real *restrict values, size_t step, size_t line,
                 size_t lines, size_t length) {
    size_t q = 0; /* lines done */
    if (line == 1) {
        for (size_t p = 0; p < length; p++) copy_few(panel + p * width, values + p * step, lines);
        q = lines;
    } else {
        for (size_t p = 0; p + FOUR <= length; p += FOUR) {
            for (q = 0; q + FOUR <= lines; q += FOUR)
                transpose_square(panel + p * width + q, width, values + p + q * line, line);
        }
        for (size_t p = length / FOUR * FOUR; p < length; p++) {
            for (size_t r = 0; r < lines / FOUR * FOUR; r++) panel[p * width + r] = values[p + r * line];
        }
        for (q = lines / FOUR * FOUR; q < lines; q++) {
            for (size_t p = 0; p < length; p++) panel[p * width + q] = values[p + q * line];
        }
    }
    for (; q < width; q++) {
        for (size_t p = 0; p < length; p++) panel[p * width + q] = 0;
    }
}

void NAME(matmul_tile)(size_t k, size_t n, NAME(strided) a, NAME(strided) b, real *c, size_t row_begin, size_t row_end,
                       size_t column_begin, size_t column_end, NAME(epilogue) last, void *workspace) {
    real *const panel_of_b = workspace;
    real *const block_of_a = panel_of_b + DEPTH * TILE_COLUMNS;
    const int pack_b = b.column != 1 || row_end - row_begin >= WORTH_PACKING_B;
    const int pack_a = a.column != 1 && column_end - column_begin >= WORTH_PACKING_A;
    for (size_t i0 = row_begin; i0 < row_end; i0 += ROWS) {
        const size_t i1 = smaller(i0 + ROWS, row_end);
        for (size_t p0 = 0; p0 < k; p0 += DEPTH) {
            const size_t depth = smaller(DEPTH, k - p0);
            /* The first block of k writes over c, so that nobody has to clear it; the epilogue waits for the last. */
            const int begun = p0 > 0, done = p0 + depth == k;
            if (pack_a) {
                for (size_t i = i0; i < i1; i += TILE_ROWS)
                    pack(block_of_a + (i - i0) * depth, TILE_ROWS, a.values + i * a.row + p0 * a.column, a.column,
                         a.row, smaller(TILE_ROWS, i1 - i), depth);
            }
            /* A panel of b is packed again for each ROWS rows of a; many rows share the cost of one copy. */
            for (size_t j = column_begin; j < column_end; j += TILE_COLUMNS) {
                const size_t columns = smaller(TILE_COLUMNS, column_end - j);
                const real *panel = b.values + p0 * b.row + j * b.column;
                size_t panel_row = b.row;
                /* a ragged panel always: read in place, its last register would reach past the row's end */
                if (pack_b || columns % LANES != 0) {
                    /* two widths only: any_tile has code for one register and for two */
                    panel_row = columns > LANES ? TILE_COLUMNS : LANES;
                    pack(panel_of_b, panel_row, panel, b.row, b.column, columns, depth);
                    panel = panel_of_b;
                }
                const real *bias = done && last.bias != NULL ? last.bias + j : NULL;
                for (size_t i = i0, rows; i < i1; i += rows) {
                    rows = tile_rows(i1 - i);
                    const size_t band = (i - i0) / TILE_ROWS * TILE_ROWS; /* a is packed in bands of whole tiles */
                    const NAME(strided) factor =
                        pack_a ? (NAME(strided)){block_of_a + band * depth + (i - i0 - band), 1, TILE_ROWS}
                               : (NAME(strided)){a.values + i * a.row + p0 * a.column, a.row, a.column};
                    any_tile(rows, columns, depth, factor, panel, panel_row, c + i * n + j, n, begun, bias,
                             done ? last.activation : IDENTITY);
                }
            }
        }
    }
}

/* Registers of c that one row times a matrix keeps: they leave some for a row of b. */
enum { ROW_VECTORS = TILE_ROWS == 8 ? 16 : 8 };

/* One row of a, so each number of b is used once: b is read in the order in which it lies, wide pieces of its rows one
   after the other, which is what memory is fastest at. vectors is a constant wherever this is called. */
static inline __attribute__((always_inline)) void wide_row(const size_t vectors, size_t k, NAME(strided) a,
                                                           const real *b, size_t b_row, real *c, const real *bias) {
    vector sum[ROW_VECTORS];
    UNROLL for (size_t v = 0; v < vectors; v++) sum[v] = (vector){0};
    for (size_t p = 0; p < k; p++, b += b_row) {
        const real factor = a.values[p * a.column];
        UNROLL for (size_t v = 0; v < vectors; v++) sum[v] += factor * load(b + v * LANES);
    }
    UNROLL for (size_t v = 0; v < vectors; v++)
        store(c + v * LANES, bias != NULL ? sum[v] + load(bias + v * LANES) : sum[v]);
}

size_t NAME(matmul_row)(size_t k, NAME(strided) a, NAME(strided) b, real *c, size_t column_begin, size_t column_end,
                        NAME(epilogue) last) {
    size_t j = column_begin;
#define WIDE_ROWS(vectors)                                                                                             \
    for (; j + (vectors) * LANES <= column_end; j += (vectors) * LANES)                                                \
    wide_row(vectors, k, a, b.values + j, b.row, c + j, last.bias != NULL ? last.bias + j : NULL)
    WIDE_ROWS((size_t)ROW_VECTORS);
    WIDE_ROWS((size_t)ROW_VECTORS / 2);
    WIDE_ROWS((size_t)ROW_VECTORS / 4);
#undef WIDE_ROWS
    for (size_t at = column_begin; at < j && last.activation != IDENTITY; at += LANES)
        store(c + at, activate(load(c + at), last.activation));
    return j;
}

void NAME(matmul_panel)(size_t rows, size_t depth, NAME(strided) a, const real *panel, real *c, size_t n,
                        size_t columns, int added) {
    const size_t panel_row = columns > LANES ? TILE_COLUMNS : LANES;
    for (size_t i = 0, taken; i < rows; i += taken) {
        taken = tile_rows(rows - i);
        const NAME(strided) factor = {a.values + i * a.row, a.row, a.column};
        any_tile(taken, columns, depth, factor, panel, panel_row, c + i * n, n, added, NULL, IDENTITY);
    }
}
