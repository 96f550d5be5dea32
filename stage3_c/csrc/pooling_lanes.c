/* Pooling of images side by side (see lanes.c): every window of LANES images at once, without a jump. */

#include "vectors.h"

typedef struct {
    const pooling *s;
    size_t planes; /* of all blocks */
    const real *from;
    const real *output;
    enum activation activation;
    real *to;
    real *indices;
} job;

/* The place of each maximum in its window, u * columns + v, kept as an integer in the lanes of a register. */
static void max_planes(void *argument, size_t part, size_t parts, void *workspace) {
    (void)workspace;
    const job *all = argument;
    const pooling *s = all->s;
    const size_t plane = s->height * s->width * LANES, outputs = s->out_height * s->out_width * LANES;
    for (size_t p = all->planes * part / parts; p < all->planes * (part + 1) / parts; p++) {
        real *y = all->to + p * outputs, *where = all->indices + p * outputs;
        for (size_t i = 0; i < s->out_height; i++) {
            for (size_t j = 0; j < s->out_width; j++, y += LANES, where += LANES) {
                const real *corner = all->from + p * plane + (i * s->stride_rows * s->width + j * s->stride_columns) * LANES;
                vector best = load(corner);
                mask chosen = {0};
                for (size_t u = 0; u < s->rows; u++) {
                    for (size_t v = u == 0 ? 1 : 0; v < s->columns; v++) {
                        const vector number = load(corner + (u * s->width + v) * LANES);
                        const mask wins = (number > best) | (number != number); /* a NaN counts as the largest */
                        const mask here = (mask){0} + (__typeof__(chosen[0]))(u * s->columns + v);
                        best = (vector)(((mask)number & wins) | ((mask)best & ~wins));
                        chosen = (here & wins) | (chosen & ~wins);
                    }
                }
                store(y, activate(best, all->activation));
                store(where, (vector)chosen);
            }
        }
    }
}

/* The slope of each window goes to the number that was its maximum; where windows overlap, slopes add up. */
static void max_planes_backward(void *argument, size_t part, size_t parts, void *workspace) {
    (void)workspace;
    const job *all = argument;
    const pooling *s = all->s;
    const size_t plane = s->height * s->width * LANES, outputs = s->out_height * s->out_width * LANES;
    const int apart = s->stride_rows >= s->rows && s->stride_columns >= s->columns;
    const int covered = apart && s->stride_rows * s->out_height == s->height && s->rows == s->stride_rows &&
                        s->stride_columns * s->out_width == s->width && s->columns == s->stride_columns;
    for (size_t p = all->planes * part / parts; p < all->planes * (part + 1) / parts; p++) {
        const real *dy = all->from + p * outputs, *where = all->indices + p * outputs, *y = all->output + p * outputs;
        if (!covered) memset(all->to + p * plane, 0, plane * sizeof(real));
        for (size_t i = 0; i < s->out_height; i++) {
            for (size_t j = 0; j < s->out_width; j++, dy += LANES, where += LANES, y += LANES) {
                real *corner = all->to + p * plane + (i * s->stride_rows * s->width + j * s->stride_columns) * LANES;
                const mask chosen = (mask)load(where);
                vector slope = load(dy);
                if (all->activation == RELU) slope = (vector)((mask)slope & ~(load(y) <= 0));
                for (size_t u = 0; u < s->rows; u++) {
                    for (size_t v = 0; v < s->columns; v++) {
                        real *to = corner + (u * s->width + v) * LANES;
                        const mask here = (mask){0} + (__typeof__(chosen[0]))(u * s->columns + v);
                        const vector share = (vector)((mask)slope & (chosen == here));
                        store(to, apart ? share : load(to) + share);
                    }
                }
            }
        }
    }
}

static int share_out(pool *threads, pool_task task, job *all) {
    return pool_run(threads, task, all, smaller(pool_threads(threads), all->planes));
}

int NAME(max_pool_lanes)(pool *threads, const pooling *s, size_t planes, const real *x, enum activation activation,
                         real *y, real *indices) {
    job all = {s, planes, x, NULL, activation, y, indices};
    return share_out(threads, max_planes, &all);
}

int NAME(max_pool_lanes_backward)(pool *threads, const pooling *s, size_t planes, const real *grad_y, const real *y,
                                  enum activation activation, real *indices, real *grad_x) {
    job all = {s, planes, grad_y, y, activation, grad_x, indices};
    return share_out(threads, max_planes_backward, &all);
}

static void average_planes(void *argument, size_t part, size_t parts, void *workspace) {
    (void)workspace;
    const job *all = argument;
    const pooling *s = all->s;
    const size_t plane = s->height * s->width * LANES, outputs = s->out_height * s->out_width * LANES;
    const real window = (real)(s->rows * s->columns);
    for (size_t p = all->planes * part / parts; p < all->planes * (part + 1) / parts; p++) {
        real *y = all->to + p * outputs;
        for (size_t i = 0; i < s->out_height; i++) {
            for (size_t j = 0; j < s->out_width; j++, y += LANES) {
                const real *corner = all->from + p * plane + (i * s->stride_rows * s->width + j * s->stride_columns) * LANES;
                vector sum = {0};
                for (size_t u = 0; u < s->rows; u++) {
                    for (size_t v = 0; v < s->columns; v++) sum += load(corner + (u * s->width + v) * LANES);
                }
                store(y, activate(sum / window, all->activation));
            }
        }
    }
}

static void average_planes_backward(void *argument, size_t part, size_t parts, void *workspace) {
    (void)workspace;
    const job *all = argument;
    const pooling *s = all->s;
    const size_t plane = s->height * s->width * LANES, outputs = s->out_height * s->out_width * LANES;
    const real window = (real)(s->rows * s->columns);
    for (size_t p = all->planes * part / parts; p < all->planes * (part + 1) / parts; p++) {
        const real *dy = all->from + p * outputs;
        memset(all->to + p * plane, 0, plane * sizeof(real));
        for (size_t i = 0; i < s->out_height; i++) {
            for (size_t j = 0; j < s->out_width; j++, dy += LANES) {
                real *corner = all->to + p * plane + (i * s->stride_rows * s->width + j * s->stride_columns) * LANES;
                const vector share = load(dy) / window;
                for (size_t u = 0; u < s->rows; u++) {
                    for (size_t v = 0; v < s->columns; v++) {
                        real *to = corner + (u * s->width + v) * LANES;
                        store(to, load(to) + share);
                    }
                }
            }
        }
    }
}

int NAME(average_pool_lanes)(pool *threads, const pooling *s, size_t planes, const real *x, real *y) {
    job all = {s, planes, x, NULL, IDENTITY, y, NULL};
    return share_out(threads, average_planes, &all);
}

int NAME(average_pool_lanes_backward)(pool *threads, const pooling *s, size_t planes, const real *grad_y,
                                      real *grad_x) {
    job all = {s, planes, grad_y, NULL, IDENTITY, grad_x, NULL};
    return share_out(threads, average_planes_backward, &all);
}
