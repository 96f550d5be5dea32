/* The packed product of whole numbers, written for one instruction: eight_bits.c includes this file once for each.

   PART(name)             the names of what is made here
   TARGET                 the attribute that lets the compiler use the instruction, whatever it compiles for otherwise
   BYTES                  of a register
   LEFT, RIGHT            the types of the packed numbers, of which a lane of 32 bits holds a group
   OFFSET                 what the packed numbers of left are too large by
   DOT(sum, left, right)  the instruction: each lane's group of left times that of right, added to the lane of sum

   Blocks, panels and tiles are those of matmul_packed.c. A lane is a column, and a step along k is a word of 32 bits. */

enum {
    PART(GROUP) = 4 / sizeof(RIGHT),
    PART(LANES) = BYTES / 4,
    PART(WIDE) = 2 * BYTES / 4,
    PART(TILE_ROWS) = BYTES == 64 ? 8 : 6,
    PART(CHAINS) = BYTES == 64 ? 16 : 12,
};

typedef int32_t PART(vector) __attribute__((vector_size(BYTES)));
typedef int32_t PART(anywhere) __attribute__((vector_size(BYTES), aligned(4), may_alias));

/* One tile: TILE_ROWS rows of left, of which `rows` are to be stored, times a panel of 1 or 2 vectors, which is a
   constant wherever this is called, so that the sums live in registers. begin: what they begin with. to: (rows, n), of
   which `columns` count; added: whether it holds the sums of earlier words. */
TARGET static inline __attribute__((always_inline)) void PART(tile)(const size_t vectors, size_t rows, size_t words,
                                                                    const word *left, const word *panel,
                                                                    const int32_t *begin, int32_t *to, size_t n,
                                                                    size_t columns, int added) {
    enum { LANES = PART(LANES), TILE_ROWS = PART(TILE_ROWS) };
    PART(vector) sum[TILE_ROWS][2];
    UNROLL for (size_t i = 0; i < TILE_ROWS; i++) {
        UNROLL for (size_t v = 0; v < vectors; v++) sum[i][v] = *(const PART(anywhere) *)(begin + v * LANES);
    }
    for (size_t p = 0; p < words; p++) {
        PART(vector) row[2];
        UNROLL for (size_t v = 0; v < vectors; v++) row[v] = *(const PART(anywhere) *)(panel + (p * vectors + v) * LANES);
        UNROLL for (size_t i = 0; i < TILE_ROWS; i++) {
            const PART(vector) group = (PART(vector)){0} + left[i * words + p];
            UNROLL for (size_t v = 0; v < vectors; v++) sum[i][v] = DOT(sum[i][v], group, row[v]);
        }
    }
    if (columns == vectors * LANES) {
        UNROLL for (size_t i = 0; i < TILE_ROWS; i++) {
            if (i == rows) return;
            UNROLL for (size_t v = 0; v < vectors; v++) {
                PART(anywhere) *place = (PART(anywhere) *)(to + i * n + v * LANES);
                if (added) sum[i][v] += *place;
                *place = sum[i][v];
            }
        }
        return;
    }
    int32_t whole[TILE_ROWS * 2 * LANES];
    UNROLL for (size_t i = 0; i < TILE_ROWS; i++) {
        UNROLL for (size_t v = 0; v < vectors; v++)
            *(PART(anywhere) *)(whole + (i * vectors + v) * LANES) = sum[i][v];
    }
    finish(rows, whole, vectors * LANES, to, n, columns, added);
}

/* All tiles of a panel. What OFFSET adds to every sum is OFFSET times the sum of the column, which the same instruction
   finds with ones on the left. */
TARGET static void PART(tiles)(size_t rows, size_t words, const word *left, const word *panel, int32_t *to, size_t n,
                               size_t columns, int added) {
    enum { LANES = PART(LANES), TILE_ROWS = PART(TILE_ROWS), AT_ONCE = 4 };
    const size_t vectors = columns > LANES ? 2 : 1;
    const PART(vector) ones = (PART(vector)){0} + 0x01010101;
    int32_t begin[2 * LANES] = {0};
    for (size_t v = 0; OFFSET != 0 && v < vectors; v++) {
        PART(vector) sum[AT_ONCE] = {0};
        for (size_t p = 0; p < words; p += AT_ONCE) {
            UNROLL for (size_t at = 0; at < AT_ONCE; at++) {
                if (p + at == words) break;
                const word *row = panel + ((p + at) * vectors + v) * LANES;
                sum[at] = DOT(sum[at], ones, *(const PART(anywhere) *)row);
            }
        }
        *(PART(anywhere) *)(begin + v * LANES) = (sum[0] + sum[1] + sum[2] + sum[3]) * -OFFSET;
    }
    for (size_t i = 0; i < rows; i += TILE_ROWS) {
        const size_t count = smaller(TILE_ROWS, rows - i);
        if (vectors == 2)
            PART(tile)(2, count, words, left + i * words, panel, begin, to + i * n, n, columns, added);
        else
            PART(tile)(1, count, words, left + i * words, panel, begin, to + i * n, n, columns, added);
    }
}

/* left (rows, depth; k apart) as rows of words. They are copied in pieces of PIECE numbers: what a piece has too many
   belongs to the next row, which is written after it, or to the end of the last word, where right has zeros. after: the
   end of left. */
TARGET static void PART(pack_rows)(LEFT *restrict block, const int8_t *restrict left, const int8_t *after, size_t k,
                                   size_t rows, size_t depth) {
    const size_t length = (depth + PART(GROUP) - 1) / PART(GROUP) * PART(GROUP);
    for (size_t i = 0; i < rows; i++, block += length) {
        const int8_t *from = left + i * k;
        size_t p = 0;
        for (; p < depth && (size_t)(after - from) >= p + PIECE; p += PIECE) {
            for (size_t q = 0; q < PIECE; q++) block[p + q] = (LEFT)(from[p + q] + OFFSET);
        }
        for (; p < depth; p++) block[p] = (LEFT)(from[p] + OFFSET);
        for (; p < length; p++) block[p] = 0;
    }
    memset(block, 0, (PART(TILE_ROWS) - 1) * length * sizeof(*block)); /* the rows that the last tile may lack */
}

/* GROUP rows of right as a row of words: a group of each of `width` columns, which is a constant wherever this is called,
   so that the compiler interleaves whole registers. */
TARGET static inline __attribute__((always_inline)) void PART(interleave)(const size_t width, RIGHT *restrict words,
                                                                          const int8_t *restrict right, size_t n) {
    for (size_t j = 0; j < width; j++) {
        UNROLL for (size_t g = 0; g < PART(GROUP); g++) words[PART(GROUP) * j + g] = right[g * n + j];
    }
}

/* right (depth, n apart) as a panel: rows of words. Columns that it has too many are anything, for they are not stored;
   rows that the last group lacks are zeros. after: the end of right. */
TARGET static void PART(pack_panel)(RIGHT *panel, size_t columns, const int8_t *right, const int8_t *after, size_t n,
                                    size_t depth) {
    enum { GROUP = PART(GROUP), WIDE = PART(WIDE) };
    const size_t width = columns > WIDE / 2 ? WIDE : WIDE / 2;
    for (size_t p = 0; p < depth; p += GROUP, panel += GROUP * width) {
        const int8_t *from = right + p * n;
        const int whole = depth - p >= GROUP && (size_t)(after - from) >= (GROUP - 1) * n + width;
        if (whole && width == WIDE) {
            PART(interleave)(WIDE, panel, from, n);
        } else if (whole) {
            PART(interleave)(WIDE / 2, panel, from, n);
        } else {
            for (size_t j = 0; j < width; j++) {
                for (size_t g = 0; g < GROUP; g++)
                    panel[GROUP * j + g] = j < columns && p + g < depth ? from[g * n + j] : (RIGHT)0;
            }
        }
    }
}

TARGET static void PART(rectangle)(void *argument, size_t part, size_t parts, void *workspace) {
    (void)parts;
    enum { GROUP = PART(GROUP), WIDE = PART(WIDE), TILE_ROWS = PART(TILE_ROWS) };
    const whole_product *job = argument;
    const size_t k = job->k, n = job->n;
    const size_t band = part / job->stacks, stack = part % job->stacks;
    const size_t row_begin = share_begin(job->m, TILE_ROWS, job->bands, band);
    const size_t row_end = share_begin(job->m, TILE_ROWS, job->bands, band + 1);
    const size_t column_begin = share_begin(n, WIDE, job->stacks, stack);
    const size_t column_end = share_begin(n, WIDE, job->stacks, stack + 1);
    word *const panel = workspace, *const block = panel + DEPTH * WIDEST;
    for (size_t i = row_begin; i < row_end; i += ROWS) {
        const size_t rows = smaller(ROWS, row_end - i);
        for (size_t p = 0; p < k; p += DEPTH * GROUP) {
            const size_t depth = smaller(DEPTH * GROUP, k - p), words = (depth + GROUP - 1) / GROUP;
            PART(pack_rows)((LEFT *)block, job->left + i * k + p, job->left + job->m * k, k, rows, depth);
            for (size_t j = column_begin; j < column_end; j += WIDE) {
                const size_t columns = smaller(WIDE, column_end - j);
                PART(pack_panel)((RIGHT *)panel, columns, job->right + p * n + j, job->right + k * n, n, depth);
                PART(tiles)(rows, words, block, panel, job->sums + i * n + j, n, columns, p > 0);
            }
        }
    }
}

/* The ceiling, as in peak.c: the instruction alone, in so many chains that one can begin whenever one may. */
TARGET static double PART(peak)(size_t rounds, int32_t *sink) {
    enum { CHAINS = PART(CHAINS) };
    const PART(vector) left = (PART(vector)){0} + sink[0], right = (PART(vector)){0} + sink[1];
    PART(vector) sum[CHAINS];
    UNROLL for (int i = 0; i < CHAINS; i++) sum[i] = (PART(vector)){0} + i;
    for (size_t round = 0; round < rounds; round++) {
        UNROLL for (int i = 0; i < CHAINS; i++) sum[i] = DOT(sum[i], left, right);
    }
    PART(vector) all = {0};
    UNROLL for (int i = 0; i < CHAINS; i++) all ^= sum[i];
    sink[0] = all[0];
    return 2.0 * (double)((int)CHAINS * (int)PART(LANES) * (int)PART(GROUP)) * (double)rounds;
}

#undef PART
#undef TARGET
#undef BYTES
#undef LEFT
#undef RIGHT
#undef OFFSET
#undef DOT
