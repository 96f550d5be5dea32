/* Pooling: a window walks over each plane and leaves one number of what it sees, the largest or the mean.

   A plane is one channel of one image; planes have nothing to do with one another, so each thread takes some of them.
   Forward and backward stand side by side: the gradient of a maximum goes where the maximum was, that of a mean to all
   numbers of the window in equal shares. Windows that do not fit are dropped. */

#include "vectors.h"

typedef struct {
    const pooling *s;
    size_t planes;
    const real *from;
    real *to;
    int64_t *indices;
    const int64_t *chosen;
} job;

static int share_out(pool *threads, pool_task task, job *all) {
    const size_t worth = threads_worth(threads, all->planes * all->s->height * all->s->width);
    return pool_run(threads, task, all, smaller(worth, all->planes));
}

/* ---- maximum ------------------------------------------------------------------------------------------------------ */

/* Whether a number takes the place of the largest so far. Of equals the first stays; a NaN counts as larger than
   anything, and of several the last one is taken, as PyTorch does. */
static inline int beats(real number, real largest) { return number > largest || number != number; }

/* The usual window, 2 x 2 with stride 2: no inner loops, and no jumps that depend on the numbers. */
static void max_of_fours(const pooling *s, const real *restrict x, real *restrict y, int64_t *restrict indices) {
    for (size_t i = 0; i < s->out_height; i++, y += s->out_width, indices += s->out_width) {
        const real *upper = x + 2 * i * s->width, *lower = upper + s->width;
        const int64_t first = (int64_t)(2 * i * s->width), second = first + (int64_t)s->width;
        for (size_t j = 0; j < s->out_width; j++) {
            const real a = upper[2 * j], b = upper[2 * j + 1], c = lower[2 * j], d = lower[2 * j + 1];
            const int64_t at = (int64_t)(2 * j);
            const int right = beats(b, a), lower_right = beats(d, c);
            const real above = right ? b : a, below = lower_right ? d : c;
            const int down = beats(below, above);
            y[j] = down ? below : above;
            indices[j] = down ? second + at + lower_right : first + at + right;
        }
    }
}

static void max_of_windows(const pooling *s, const real *x, real *y, int64_t *indices) {
    for (size_t i = 0; i < s->out_height; i++) {
        for (size_t j = 0; j < s->out_width; j++, y++, indices++) {
            const size_t corner = i * s->stride_rows * s->width + j * s->stride_columns;
            size_t best = corner;
            for (size_t u = 0; u < s->rows; u++) {
                for (size_t v = 0; v < s->columns; v++) {
                    const size_t here = corner + u * s->width + v;
                    if (beats(x[here], x[best])) best = here;
                }
            }
            *y = x[best];
            *indices = (int64_t)best;
        }
    }
}

static void max_planes(void *argument, size_t part, size_t parts, void *workspace) {
    (void)workspace;
    const job *all = argument;
    const pooling *s = all->s;
    const size_t plane = s->height * s->width, outputs = s->out_height * s->out_width;
    const int fours = s->rows == 2 && s->columns == 2 && s->stride_rows == 2 && s->stride_columns == 2;
    for (size_t p = all->planes * part / parts; p < all->planes * (part + 1) / parts; p++)
        (fours ? max_of_fours : max_of_windows)(s, all->from + p * plane, all->to + p * outputs,
                                                all->indices + p * outputs);
}

int NAME(max_pool2d)(pool *threads, const pooling *s, size_t planes, const real *x, real *y, int64_t *indices) {
    job all = {s, planes, x, y, indices, NULL};
    return share_out(threads, max_planes, &all);
}

static void max_planes_backward(void *argument, size_t part, size_t parts, void *workspace) {
    (void)workspace;
    const job *all = argument;
    const size_t plane = all->s->height * all->s->width, outputs = all->s->out_height * all->s->out_width;
    for (size_t p = all->planes * part / parts; p < all->planes * (part + 1) / parts; p++) {
        real *to = all->to + p * plane;
        memset(to, 0, plane * sizeof(real));
        for (size_t i = p * outputs; i < (p + 1) * outputs; i++) to[all->chosen[i]] += all->from[i];
    }
}

int NAME(max_pool2d_backward)(pool *threads, const pooling *s, size_t planes, const real *grad_y,
                              const int64_t *indices, real *grad_x) {
    job all = {s, planes, grad_y, grad_x, NULL, indices};
    return share_out(threads, max_planes_backward, &all);
}

/* ---- mean --------------------------------------------------------------------------------------------------------- */

static void average_planes(void *argument, size_t part, size_t parts, void *workspace) {
    (void)workspace;
    const job *all = argument;
    const pooling *s = all->s;
    const size_t plane = s->height * s->width, outputs = s->out_height * s->out_width;
    const real window = (real)(s->rows * s->columns);
    for (size_t p = all->planes * part / parts; p < all->planes * (part + 1) / parts; p++) {
        real *y = all->to + p * outputs;
        for (size_t i = 0; i < s->out_height; i++) {
            for (size_t j = 0; j < s->out_width; j++) {
                const real *x = all->from + p * plane + i * s->stride_rows * s->width + j * s->stride_columns;
                real sum = 0;
                for (size_t u = 0; u < s->rows; u++) {
                    for (size_t v = 0; v < s->columns; v++) sum += x[u * s->width + v];
                }
                *y++ = sum / window;
            }
        }
    }
}

int NAME(average_pool2d)(pool *threads, const pooling *s, size_t planes, const real *x, real *y) {
    job all = {s, planes, x, y, NULL, NULL};
    return share_out(threads, average_planes, &all);
}

static void average_planes_backward(void *argument, size_t part, size_t parts, void *workspace) {
    (void)workspace;
    const job *all = argument;
    const pooling *s = all->s;
    const size_t plane = s->height * s->width, outputs = s->out_height * s->out_width;
    const real window = (real)(s->rows * s->columns);
    for (size_t p = all->planes * part / parts; p < all->planes * (part + 1) / parts; p++) {
        const real *grad_y = all->from + p * outputs;
        memset(all->to + p * plane, 0, plane * sizeof(real));
        for (size_t i = 0; i < s->out_height; i++) {
            for (size_t j = 0; j < s->out_width; j++) {
                real *to = all->to + p * plane + i * s->stride_rows * s->width + j * s->stride_columns;
                const real share = *grad_y++ / window;
                for (size_t u = 0; u < s->rows; u++) {
                    for (size_t v = 0; v < s->columns; v++) to[u * s->width + v] += share;
                }
            }
        }
    }
}

int NAME(average_pool2d_backward)(pool *threads, const pooling *s, size_t planes, const real *grad_y, real *grad_x) {
    job all = {s, planes, grad_y, grad_x, NULL, NULL};
    return share_out(threads, average_planes_backward, &all);
}

/* The first of `count` indices that is not in 0 … size - 1, or count where all are. */
size_t NAME(first_bad_index)(size_t count, size_t size, const int64_t *indices) {
    size_t i = 0;
    while (i < count && (uint64_t)indices[i] < size) i++;
    return i;
}
