/* Every rung of the convolution ladder and both gradients, against the definition in double.

   The numbers are whole, from -4 to 4, so that whatever order a sum is taken in, it is exact, and answers must be equal.
   Only Winograd's transforms have fractions: their answers must be close. Outputs hold NaN before the call. */

#include "check.h"

typedef struct {
    size_t batch, channels, height, width, filters, kernel_height, kernel_width, stride_rows, stride_columns, padding_rows,
        padding_columns;
} sizes;

static const sizes SMALL[] = {
    {1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0}, {3, 2, 7, 5, 3, 3, 3, 1, 1, 0, 0}, {2, 3, 8, 9, 9, 3, 3, 1, 1, 1, 1},
    {17, 2, 6, 7, 7, 5, 5, 1, 1, 2, 2}, {5, 3, 9, 9, 5, 3, 2, 2, 2, 1, 0}, {18, 2, 10, 11, 3, 5, 4, 3, 1, 2, 1},
    {2, 17, 6, 5, 18, 3, 3, 1, 1, 1, 0}, {3, 1, 9, 9, 1, 1, 1, 3, 3, 2, 1}, {2, 2, 5, 5, 3, 7, 7, 1, 1, 3, 3},
};
static const sizes LARGE[] = {
    {33, 20, 9, 11, 19, 3, 3, 1, 1, 1, 1}, {16, 6, 14, 14, 16, 5, 5, 1, 1, 0, 0}, {9, 1, 28, 28, 6, 5, 5, 1, 1, 2, 2},
    {2, 64, 13, 13, 40, 3, 3, 1, 1, 0, 0}, {1, 130, 12, 13, 9, 3, 4, 1, 1, 2, 4},  {1, 16, 7, 7, 300, 3, 3, 1, 1, 3, 2},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

typedef struct {
    convolution s;
    size_t batch, x_size, w_size, y_size;
    real *x, *w, *b, *grad_y;
    double *y, *grad_x, *grad_w, *grad_b;
} problem;

static real *whole_numbers(uint64_t *state, size_t size) {
    real *values = buffer(size);
    for (size_t i = 0; i < size; i++) values[i] = (real)((int)(next_random(state) % 9) - 4);
    return values;
}

static double *zeros(size_t size) {
    double *values = memory(size * sizeof *values);
    for (size_t i = 0; i < size; i++) values[i] = 0;
    return values;
}

static void define(problem *p) {
    const convolution *s = &p->s;
    for (size_t at = 0; at < p->y_size; at++) {
        const size_t j = at % s->out_width, i = at / s->out_width % s->out_height;
        const size_t o = at / (s->out_width * s->out_height) % s->filters;
        const size_t n = at / (s->out_width * s->out_height * s->filters);
        const double slope = (double)p->grad_y[at];
        p->y[at] = (double)p->b[o];
        p->grad_b[o] += slope;
        for (size_t c = 0; c < s->channels; c++) {
            for (size_t u = 0; u < s->kernel_height; u++) {
                for (size_t v = 0; v < s->kernel_width; v++) {
                    const size_t row = i * s->stride_rows + u, column = j * s->stride_columns + v;
                    if (row < s->padding_rows || row - s->padding_rows >= s->height) continue;
                    if (column < s->padding_columns || column - s->padding_columns >= s->width) continue;
                    const size_t of_x = ((n * s->channels + c) * s->height + row - s->padding_rows) * s->width + column -
                                        s->padding_columns;
                    const size_t of_w = ((o * s->channels + c) * s->kernel_height + u) * s->kernel_width + v;
                    p->y[at] += (double)p->x[of_x] * (double)p->w[of_w];
                    p->grad_x[of_x] += slope * (double)p->w[of_w];
                    p->grad_w[of_w] += slope * (double)p->x[of_x];
                }
            }
        }
    }
}

static problem problem_create(const sizes *of) {
    problem p = {.batch = of->batch};
    p.s = (convolution){of->channels, of->height, of->width, of->filters, of->kernel_height, of->kernel_width,
                        of->stride_rows, of->stride_columns, of->padding_rows, of->padding_columns,
                        (of->height + 2 * of->padding_rows - of->kernel_height) / of->stride_rows + 1,
                        (of->width + 2 * of->padding_columns - of->kernel_width) / of->stride_columns + 1};
    uint64_t state = of->batch * 1000 + of->channels * 100 + of->height;
    p.x_size = of->batch * of->channels * of->height * of->width;
    p.w_size = of->filters * of->channels * of->kernel_height * of->kernel_width;
    p.y_size = of->batch * of->filters * p.s.out_height * p.s.out_width;
    p.x = whole_numbers(&state, p.x_size);
    p.w = whole_numbers(&state, p.w_size);
    p.b = whole_numbers(&state, of->filters);
    p.grad_y = whole_numbers(&state, p.y_size);
    p.y = zeros(p.y_size);
    p.grad_x = zeros(p.x_size);
    p.grad_w = zeros(p.w_size);
    p.grad_b = zeros(of->filters);
    define(&p);
    return p;
}

static void problem_release(problem *p) {
    release(p->x, p->x_size);
    release(p->w, p->w_size);
    release(p->b, p->s.filters);
    release(p->grad_y, p->y_size);
    free(p->y);
    free(p->grad_x);
    free(p->grad_w);
    free(p->grad_b);
}

/* Frees `got`. units: how far it may be off, 0 for not at all; the sums are of `terms` products of up to 16. */
static void check_values(const char *name, const problem *p, real *got, const double *expected, size_t size, double units,
                         size_t terms) {
    for (size_t i = 0; i < size; i++) {
        const int right = units == 0 ? (double)got[i] == expected[i]
                                     : close_to((double)got[i], expected[i], 16 * (double)terms, units);
        if (!right)
            fprintf(stderr, "%s batch=%zu channels=%zu filters=%zu kernel=%zux%zu at %zu\n", name, p->batch, p->s.channels,
                    p->s.filters, p->s.kernel_height, p->s.kernel_width, i);
        CHECK(right, got[i], expected[i]);
    }
    release(got, size);
}

typedef int (*rung)(pool *threads, const convolution *s, size_t batch, const real *x, const real *w, const real *b,
                    real *y);

/* Channels side by side, alone and with all that an ending can do: z -> relu((z - mean) * 4 + beta + skip), which is
   exact. The lanes beyond the last channel hold NaN. */
static void check_channels(pool *threads, const problem *p) {
    const convolution *s = &p->s;
    const size_t lanes = SIMD_BYTES / sizeof(real), plane = s->height * s->width, out_plane = s->out_height * s->out_width;
    const size_t x_size = p->batch * ((s->channels + lanes - 1) / lanes) * lanes * plane;
    const size_t y_size = p->batch * ((s->filters + lanes - 1) / lanes) * lanes * out_plane;
    uint64_t state = s->filters;
    real *gamma = buffer(s->filters), *variance = buffer(s->filters);
    real *beta = whole_numbers(&state, s->filters), *mean = whole_numbers(&state, s->filters);
    real *skip = whole_numbers(&state, p->y_size), *x = buffer(x_size), *skip_lanes = buffer(y_size);
    for (size_t o = 0; o < s->filters; o++) {
        gamma[o] = 2;
        variance[o] = (real)0.25;
    }
    CHECK(NAME(batch_to_channels)(threads, p->batch, s->channels, plane, p->x, x) == 0, -1, 0);
    CHECK(NAME(batch_to_channels)(threads, p->batch, s->filters, out_plane, skip, skip_lanes) == 0, -1, 0);
    for (size_t at = 0; at < x_size; at++) {
        const size_t group = at / (plane * lanes) % ((s->channels + lanes - 1) / lanes);
        if (group * lanes + at % lanes >= s->channels) x[at] = (real)NAN;
    }
    const NAME(ending) endings[] = {
        {.b = p->b, .activation = IDENTITY},
        {.b = p->b, .gamma = gamma, .beta = beta, .mean = mean, .variance = variance, .skip = skip_lanes, .activation = RELU},
    };
    const int winograd = NAME(winograd_channels_worth)(s, p->batch);
    for (int form = 0; form < 4; form++) {
        const int plain = form % 2, all = form / 2;
        double *expected = zeros(p->y_size);
        for (size_t at = 0; at < p->y_size; at++) {
            const size_t o = at / out_plane % s->filters;
            const double z = (p->y[at] - (double)mean[o]) * 4 + (double)beta[o] + (double)skip[at];
            expected[at] = !all ? p->y[at] : z > 0 ? z : 0;
        }
        real *y = buffer(y_size), *rows = buffer(p->y_size);
        CHECK(NAME(conv2d_channels)(threads, s, p->batch, plain, plain ? p->x : x, p->w, &endings[all], y) == 0, -1, 0);
        CHECK(NAME(batch_from_channels)(threads, p->batch, s->filters, out_plane, y, rows) == 0, -1, 0);
        check_values(plain ? "channels, x plain" : "channels", p, rows, expected, p->y_size,
                     winograd && !plain ? 30 * (all ? 4 : 1) : 0, s->channels * s->kernel_height * s->kernel_width);
        release(y, y_size);
        free(expected);
    }
    release(gamma, s->filters);
    release(variance, s->filters);
    release(beta, s->filters);
    release(mean, s->filters);
    release(skip, p->y_size);
    release(x, x_size);
    release(skip_lanes, y_size);
}

static void check_problem(pool *threads, const sizes *of) {
    static const struct {
        const char *name;
        rung call;
        double units;
    } RUNGS[] = {
        {"implicit", NAME(conv2d_implicit), 0},
        {"winograd2", NAME(conv2d_winograd2), 30},
        {"winograd4", NAME(conv2d_winograd4), 30},
        {"threads", NAME(conv2d_threads), 30},
    };
    problem p = problem_create(of);
    const size_t depth = p.s.channels * p.s.kernel_height * p.s.kernel_width;
    const size_t depth_back = p.s.filters * p.s.kernel_height * p.s.kernel_width;

    real *y = buffer(p.y_size);
    NAME(conv2d_direct)(&p.s, p.batch, p.x, p.w, p.b, y);
    check_values("direct", &p, y, p.y, p.y_size, 0, depth);

    y = buffer(p.y_size);
    const size_t columns_size = depth * p.s.out_height * p.s.out_width;
    real *columns = buffer(columns_size);
    CHECK(NAME(conv2d_im2col)(threads, &p.s, p.batch, p.x, p.w, p.b, columns, y) == 0, -1, 0);
    check_values("im2col", &p, y, p.y, p.y_size, 0, depth);
    release(columns, columns_size);

    for (size_t r = 0; r < COUNT(RUNGS); r++) {
        y = buffer(p.y_size);
        CHECK(RUNGS[r].call(threads, &p.s, p.batch, p.x, p.w, p.b, y) == 0, -1, 0);
        check_values(RUNGS[r].name, &p, y, p.y, p.y_size, RUNGS[r].units, depth);
    }
    for (int all = 0; all < 2; all++) {
        real *grad_w = buffer(p.w_size), *grad_b = buffer(p.s.filters), *grad_x = all ? buffer(p.x_size) : NULL;
        CHECK(NAME(conv2d_backward)(threads, &p.s, p.batch, p.grad_y, p.x, p.w, grad_w, grad_b, grad_x) == 0, -1, 0);
        check_values("grad_w", &p, grad_w, p.grad_w, p.w_size, 0, 1);
        check_values("grad_b", &p, grad_b, p.grad_b, p.s.filters, 0, 1);
        if (all) check_values("grad_x", &p, grad_x, p.grad_x, p.x_size, 30, depth_back);
    }
    check_channels(threads, &p);
    problem_release(&p);
}

int main(int argc, char **argv) {
    const int small = is_small(argc, argv);
    for (size_t count = 1; count <= 3; count++) {
        pool *threads = pool_create(count);
        CHECK(threads != NULL, 0, 1);
        for (size_t i = 0; i < COUNT(SMALL); i++) check_problem(threads, &SMALL[i]);
        for (size_t i = 0; i < COUNT(LARGE) && !small; i++) check_problem(threads, &LARGE[i]);
        pool_destroy(threads);
    }
    return 0;
}
