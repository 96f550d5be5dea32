/* The last matmul rung: c cut into one rectangle for each thread.

   Every thread packs for itself what its rectangle needs, so the threads share nothing but what they read, and none
   waits for another before the end. Among the ways to cut c into that many rectangles the one is taken whose largest
   rectangle has the least to do. */

#include "vectors.h"

/* Multiply-adds below which another thread costs more than it brings: it takes a microsecond or two to reach it. */
#define WORTH_A_THREAD ((size_t)1 << 18)

typedef struct {
    size_t m, k, n;
    NAME(strided) a, b;
    real *c;
    NAME(epilogue) last;
    size_t bands, stacks; /* rectangles across the rows and across the columns */
} product;

static void rectangle(void *argument, size_t part, size_t parts, void *workspace) {
    (void)parts;
    const product *job = argument;
    const size_t band = part / job->stacks, stack = part % job->stacks;
    const size_t row_begin = share_begin(job->m, TILE_ROWS, job->bands, band);
    const size_t row_end = share_begin(job->m, TILE_ROWS, job->bands, band + 1);
    const size_t column_begin = share_begin(job->n, TILE_COLUMNS, job->stacks, stack);
    const size_t column_end = share_begin(job->n, TILE_COLUMNS, job->stacks, stack + 1);
    if (row_begin == row_end || column_begin == column_end) return;
    const int one_row = job->m == 1 && job->b.column == 1;
    const size_t done = one_row ? NAME(matmul_row)(job->k, job->a, job->b, job->c, column_begin, column_end, job->last)
                                : column_begin;
    if (done == column_end) return;
    NAME(matmul_tile)(job->k, job->n, job->a, job->b, job->c, row_begin, row_end, done, column_end, job->last,
                      workspace);
}

int NAME(matmul_any)(pool *threads, size_t m, size_t k, size_t n, NAME(strided) a, NAME(strided) b, real *c,
                     NAME(epilogue) last) {
    product job = {m, k, n, a, b, c, last, 1, 1};
    const size_t tiles = ((m + TILE_ROWS - 1) / TILE_ROWS) * ((n + TILE_COLUMNS - 1) / TILE_COLUMNS);
    const size_t parts = smaller(smaller(pool_threads(threads), tiles), m * k * n / WORTH_A_THREAD + 1);
    cut_rectangles(m, n, TILE_ROWS, TILE_COLUMNS, parts, &job.bands, &job.stacks);
    return pool_run(threads, rectangle, &job, parts);
}

static const NAME(epilogue) nothing = {NULL, IDENTITY};

int NAME(matmul_packed)(pool *threads, size_t m, size_t k, size_t n, const real *a, const real *b, real *c) {
    product job = {m, k, n, {a, k, 1}, {b, n, 1}, c, nothing, 1, 1};
    return pool_run(threads, rectangle, &job, 1);
}

int NAME(matmul_nn)(pool *threads, size_t m, size_t k, size_t n, const real *a, const real *b, real *c) {
    return NAME(matmul_any)(threads, m, k, n, (NAME(strided)){a, k, 1}, (NAME(strided)){b, n, 1}, c, nothing);
}

int NAME(matmul_tn)(pool *threads, size_t m, size_t k, size_t n, const real *a, const real *b, real *c) {
    return NAME(matmul_any)(threads, m, k, n, (NAME(strided)){a, 1, m}, (NAME(strided)){b, n, 1}, c, nothing);
}

int NAME(matmul_nt)(pool *threads, size_t m, size_t k, size_t n, const real *a, const real *b, real *c) {
    return NAME(matmul_any)(threads, m, k, n, (NAME(strided)){a, k, 1}, (NAME(strided)){b, 1, k}, c, nothing);
}
