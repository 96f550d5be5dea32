/* Convolution as a matrix product: the weights (filters, channels * kernel) times the windows as columns.

   im2col     writes the windows of an image side by side into a matrix, and multiplies. The matrix is kernel_height *
              kernel_width times as large as the image, and most of it is the same numbers over and over.
   implicit   packs each panel of that matrix straight from the image, just before the product reads it. The panel fits
              into the cache, and the matrix as a whole never exists. */

#include "vectors.h"

enum { DEPTH = 4096 / (int)sizeof(real) }; /* rows of a panel: it stays in the second-level cache */

_Static_assert(DEPTH * TILE_COLUMNS * sizeof(real) <= WORKSPACE_BYTES, "a panel does not fit into the workspace");

/* Neighbouring outputs in one row of y: the upper left corner of the first one's window, and how many they are. */
typedef struct {
    ptrdiff_t top, left;
    size_t count;
} run;

/* The numbers that windows of a run have in common place (u, v): `count` of them from one row of x, a stride apart, with
   zeros where the row does not reach. row: the row of x; left: the column of the first, maybe outside. */
static inline void copy_row(const convolution *s, const real *row, ptrdiff_t left, size_t count, real *to) {
    const ptrdiff_t width = (ptrdiff_t)s->width, stride = (ptrdiff_t)s->stride_columns;
    if (stride == 1 && left >= 0 && left + (ptrdiff_t)count <= width && count <= TILE_COLUMNS) {
        copy_few(to, row + left, count);
        return;
    }
    for (size_t i = 0; i < count; i++, left += stride) to[i] = left >= 0 && left < width ? row[left] : 0;
}

/* The runs that outputs begin … begin + columns - 1 of an image fall into. Returns their number. */
static size_t find_runs(const convolution *s, size_t begin, size_t columns, run *runs) {
    size_t found = 0;
    for (size_t at = begin; at < begin + columns; found++) {
        const size_t i = at / s->out_width, j = at % s->out_width;
        const size_t count = smaller(s->out_width - j, begin + columns - at);
        runs[found] = (run){(ptrdiff_t)(i * s->stride_rows) - (ptrdiff_t)s->padding_rows,
                            (ptrdiff_t)(j * s->stride_columns) - (ptrdiff_t)s->padding_columns, count};
        at += count;
    }
    return found;
}

/* Rows k_begin to k_end of the matrix of windows, for the outputs of these runs: panel[(k - k_begin) * width + output].
   Row k stands for channel c and place (u, v) in the window, k = (c * kernel_height + u) * kernel_width + v. */
static void pack_windows(const convolution *s, const real *x, const run *runs, size_t found, size_t k_begin,
                         size_t k_end, size_t width, real *panel) {
    size_t v = k_begin % s->kernel_width, u = k_begin / s->kernel_width % s->kernel_height;
    size_t c = k_begin / (s->kernel_width * s->kernel_height);
    for (size_t k = k_begin; k < k_end; k++, panel += width) {
        size_t at = 0;
        for (size_t r = 0; r < found; at += runs[r++].count) {
            const ptrdiff_t row = runs[r].top + (ptrdiff_t)u;
            if (row >= 0 && row < (ptrdiff_t)s->height) {
                copy_row(s, x + (c * s->height + (size_t)row) * s->width, runs[r].left + (ptrdiff_t)v, runs[r].count,
                         panel + at);
            } else {
                for (size_t i = 0; i < runs[r].count; i++) panel[at + i] = 0;
            }
        }
        for (; at < width; at++) panel[at] = 0;
        if (++v == s->kernel_width) {
            v = 0;
            if (++u == s->kernel_height) {
                u = 0;
                c++;
            }
        }
    }
}

/* y (filters, outputs) = b in every column, for `columns` outputs: the product is then added to it. */
static void put_bias(const convolution *s, size_t columns, const real *b, real *y) {
    const size_t outputs = s->out_height * s->out_width;
    for (size_t o = 0; o < s->filters; o++) {
        for (size_t j = 0; j < columns; j++) y[o * outputs + j] = b[o];
    }
}

typedef struct {
    const convolution *s;
    size_t batch;
    const real *x, *w, *b;
    real *columns, *y;
} product;

static void im2col(void *argument, size_t part, size_t parts, void *workspace) {
    (void)part;
    (void)parts;
    const product *job = argument;
    const convolution *s = job->s;
    const size_t outputs = s->out_height * s->out_width;
    const size_t depth = s->channels * s->kernel_height * s->kernel_width;
    for (size_t n = 0; n < job->batch; n++) {
        const real *x = job->x + n * s->channels * s->height * s->width;
        real *y = job->y + n * s->filters * outputs;
        for (size_t i = 0; i < s->out_height; i++) {
            /* the outputs of one row are one run */
            run row;
            find_runs(s, i * s->out_width, s->out_width, &row);
            for (size_t k = 0; k < depth; k++)
                pack_windows(s, x, &row, 1, k, k + 1, s->out_width, job->columns + k * outputs + i * s->out_width);
        }
        NAME(matmul_tile)(depth, outputs, (NAME(strided)){job->w, depth, 1}, (NAME(strided)){job->columns, outputs, 1},
                          y, 0, s->filters, 0, outputs, (NAME(epilogue)){NULL, IDENTITY}, workspace);
        for (size_t o = 0; o < s->filters; o++) {
            for (size_t j = 0; j < outputs; j++) y[o * outputs + j] += job->b[o];
        }
    }
}

int NAME(conv2d_im2col)(pool *threads, const convolution *s, size_t batch, const real *x, const real *w,
                        const real *b, real *columns, real *y) {
    product job = {s, batch, x, w, b, columns, y};
    /* one part: the pool only lends its workspace */
    return pool_run(threads, im2col, &job, 1);
}

/* A share of all panels of all images. */
static void implicit(void *argument, size_t part, size_t parts, void *workspace) {
    const product *job = argument;
    const convolution *s = job->s;
    real *const panel = workspace;
    const size_t outputs = s->out_height * s->out_width, panels = (outputs + TILE_COLUMNS - 1) / TILE_COLUMNS;
    const size_t depth = s->channels * s->kernel_height * s->kernel_width;
    const size_t begin = job->batch * panels * part / parts, end = job->batch * panels * (part + 1) / parts;
    for (size_t at = begin; at < end; at++) {
        const size_t n = at / panels, first = at % panels * TILE_COLUMNS;
        const size_t columns = smaller(TILE_COLUMNS, outputs - first);
        /* the width that matmul_panel expects for so many columns */
        const size_t width = columns > LANES ? TILE_COLUMNS : LANES;
        const real *const x = job->x + n * s->channels * s->height * s->width;
        real *const y = job->y + n * s->filters * outputs + first;
        /* in the worst case, an image of one column, every output is a run of its own */
        run runs[TILE_COLUMNS];
        const size_t found = find_runs(s, first, columns, runs);
        put_bias(s, columns, job->b, y);
        for (size_t k = 0; k < depth; k += DEPTH) {
            const size_t k_end = smaller(k + DEPTH, depth);
            pack_windows(s, x, runs, found, k, k_end, width, panel);
            NAME(matmul_panel)(s->filters, k_end - k, (NAME(strided)){job->w + k, depth, 1}, panel, y, outputs, columns,
                               1);
        }
    }
}

int NAME(conv2d_implicit)(pool *threads, const convolution *s, size_t batch, const real *x, const real *w,
                          const real *b, real *y) {
    product job = {s, batch, x, w, b, NULL, y};
    return pool_run(threads, implicit, &job, 1);
}
