/* Convolution of images side by side (see lanes.c): direct, with a tile of outputs in registers.

   Forward. A tile is TILE_ROWS filters by two neighbouring outputs, each a register with one number of LANES images. A
   weight is multiplied with LANES images at once, so no width of image is too narrow and no kernel too small: LeNet's
   first layer, with one channel and six filters, fills the multiply-add units like any other.

   Backward to x is the same sum with the roles exchanged: dx[c][i][j] = sum over o, u, v of dy[o][(i + padding - u) /
   stride][…] w[o][c][u][v], over the u and v for which the division leaves no rest. So it is the same function, told by
   `taps` which weights meet which numbers.

   Backward to w: dw[o][c][u][v] = sum over images and outputs of dy[o][i][j] x[c][i stride - padding + u][…]. Here the
   tile is several filters by several (u, v), and the lanes of each register are added up at the end. A plane of x is
   first copied into a frame of zeros, so that no window ends outside. */

#include "vectors.h"

/* ---- forward, and backward to x ---------------------------------------------------------------------------------- */

/* Which of a kernel's numbers meet the image for one output, along one axis: `count` of them from `first`, `step` apart;
   the first meets the image at `in`, and each further one in_step later. */
typedef struct {
    ptrdiff_t first, step, count, in, in_step;
} taps;

typedef struct {
    size_t rows, depth;                         /* planes of y, planes of x */
    ptrdiff_t height, width;                    /* of a plane of x */
    size_t out_height, out_width;               /* of a plane of y */
    ptrdiff_t kernel_height, kernel_width, stride_rows, stride_columns, padding_rows, padding_columns;
    int backward;                               /* x is dL/dy of the layer, y is dL/dx */
    const real *w, *b;
    size_t w_row, w_depth;                      /* from one plane of y, of x, to the next */
    enum activation activation;
    const real *x;
    real *y;
    size_t blocks;
} correlation;

static taps find_taps(int backward, ptrdiff_t out, ptrdiff_t size, ptrdiff_t kernel, ptrdiff_t stride,
                      ptrdiff_t padding) {
    if (!backward) {
        const ptrdiff_t corner = out * stride - padding;
        const ptrdiff_t first = corner < 0 ? -corner : 0;
        const ptrdiff_t end = size - corner < kernel ? size - corner : kernel;
        return (taps){first, 1, end > first ? end - first : 0, corner + first, 1};
    }
    const ptrdiff_t place = out + padding;
    const ptrdiff_t in = place / stride < size ? place / stride : size - 1;
    const ptrdiff_t first = place - stride * in;
    const ptrdiff_t most = first < kernel ? (kernel - first + stride - 1) / stride : 0;
    return (taps){first, stride, most < in + 1 ? most : in + 1, in, -1};
}

/* One tile: `rows` planes of y by `positions` outputs that meet the same taps, `apart` of y from one to the next and
   in_apart of x. x: the block; w: the first of these planes'; y: the first output. rows and positions are constants
   wherever this is called. */
static inline __attribute__((always_inline)) void tile(const size_t rows, const size_t positions,
                                                       const correlation *job, taps down, taps across,
                                                       ptrdiff_t in_apart, size_t apart, const real *x, const real *w,
                                                       const real *b, real *y) {
    vector sum[TILE_ROWS][TILE_VECTORS];
    UNROLL for (size_t r = 0; r < rows; r++) {
        UNROLL for (size_t p = 0; p < positions; p++) sum[r][p] = (vector){0} + (b != NULL ? b[r] : 0);
    }
    x += (down.in * job->width + across.in) * LANES;
    w += down.first * job->kernel_width + across.first;
    const ptrdiff_t x_down = down.in_step * job->width * LANES, w_down = down.step * job->kernel_width;
    const ptrdiff_t x_across = across.in_step * LANES, x_depth = job->height * job->width * LANES;
    for (size_t q = 0; q < job->depth; q++, x += x_depth, w += job->w_depth) {
        const real *x_row = x, *w_row = w;
        for (ptrdiff_t i = 0; i < down.count; i++, x_row += x_down, w_row += w_down) {
            const real *from = x_row, *weight = w_row;
            for (ptrdiff_t j = 0; j < across.count; j++, from += x_across, weight += across.step) {
                vector number[TILE_VECTORS];
                UNROLL for (size_t p = 0; p < positions; p++) number[p] = load(from + (ptrdiff_t)p * in_apart);
                UNROLL for (size_t r = 0; r < rows; r++) {
                    const real factor = weight[r * job->w_row];
                    UNROLL for (size_t p = 0; p < positions; p++) sum[r][p] += factor * number[p];
                }
            }
        }
    }
    const size_t plane = job->out_height * job->out_width * LANES;
    UNROLL for (size_t r = 0; r < rows; r++) {
        UNROLL for (size_t p = 0; p < positions; p++)
            store(y + r * plane + p * apart, activate(sum[r][p], job->activation));
    }
}

/* The tile with its numbers of planes and outputs as constants. Returns how many planes it took. */
static size_t any_tile(size_t rows, int two, const correlation *job, taps down, taps across, ptrdiff_t in_apart,
                       size_t apart, const real *x, const real *w, const real *b, real *y) {
#define TILE(taken)                                                                                                    \
    do {                                                                                                               \
        if (two)                                                                                                       \
            tile(taken, 2, job, down, across, in_apart, apart, x, w, b, y);                                            \
        else                                                                                                           \
            tile(taken, 1, job, down, across, in_apart, apart, x, w, b, y);                                            \
        return taken;                                                                                                  \
    } while (0)
#if TILE_ROWS > 6
    if (rows >= TILE_ROWS) TILE(TILE_ROWS);
#endif
    if (rows >= 6) TILE(6);
    if (rows >= 4) TILE(4);
    if (rows >= 3) TILE(3);
    if (rows >= 2) TILE(2);
    TILE(1);
#undef TILE
}

/* A share of all rows of all blocks' outputs. */
static void correlate(void *argument, size_t part, size_t parts, void *workspace) {
    (void)workspace;
    const correlation *job = argument;
    const size_t total = job->blocks * job->out_height, plane = job->out_height * job->out_width * LANES;
    const size_t x_block = job->depth * (size_t)(job->height * job->width) * LANES;
    /* Backward, outputs a stride apart meet the same weights; forward, neighbours do. */
    const size_t phases = job->backward ? (size_t)job->stride_columns : 1;
    const ptrdiff_t in_apart = (job->backward ? 1 : job->stride_columns) * LANES;
    for (size_t at = total * part / parts; at < total * (part + 1) / parts; at++) {
        const size_t block = at / job->out_height, i = at % job->out_height;
        const real *x = job->x + block * x_block;
        real *y = job->y + block * job->rows * plane + i * job->out_width * LANES;
        const taps down = find_taps(job->backward, (ptrdiff_t)i, job->height, job->kernel_height, job->stride_rows,
                                    job->padding_rows);
        for (size_t r = 0, taken = 0; r < job->rows; r += taken) {
            const real *b = job->b != NULL ? job->b + r : NULL;
            for (size_t phase = 0; phase < phases; phase++) {
                taps here = {0, 0, 0, 0, 0};
                int known = 0;
                for (size_t j = phase; j < job->out_width;) {
                    if (!known)
                        here = find_taps(job->backward, (ptrdiff_t)j, job->width, job->kernel_width,
                                         job->stride_columns, job->padding_columns);
                    const size_t next = j + phases;
                    taps there = here;
                    int two = 0;
                    if (next < job->out_width) {
                        there = find_taps(job->backward, (ptrdiff_t)next, job->width, job->kernel_width,
                                          job->stride_columns, job->padding_columns);
                        two = there.first == here.first && there.count == here.count;
                    }
                    taken = any_tile(job->rows - r, two, job, down, here, in_apart, phases * LANES, x,
                                     job->w + r * job->w_row, b, y + r * plane + j * LANES);
                    known = !two;
                    here = there;
                    j = two ? next + phases : next;
                }
            }
        }
    }
}

static int run_correlation(pool *threads, correlation *job) {
    return pool_run(threads, correlate, job, smaller(pool_threads(threads), job->blocks * job->out_height));
}

int NAME(lanes_forward)(pool *threads, const convolution *s, size_t blocks, const real *x, const real *w,
                        const real *b, enum activation activation, real *y) {
    const size_t kernel = s->kernel_height * s->kernel_width;
    correlation job = {
        s->filters, s->channels, (ptrdiff_t)s->height, (ptrdiff_t)s->width, s->out_height, s->out_width,
        (ptrdiff_t)s->kernel_height, (ptrdiff_t)s->kernel_width, (ptrdiff_t)s->stride_rows,
        (ptrdiff_t)s->stride_columns, (ptrdiff_t)s->padding_rows, (ptrdiff_t)s->padding_columns, 0,
        w, b, s->channels * kernel, kernel, activation, x, y, blocks,
    };
    return run_correlation(threads, &job);
}

int NAME(lanes_backward_data)(pool *threads, const convolution *s, size_t blocks, const real *grad_y, const real *w,
                              real *grad_x) {
    const size_t kernel = s->kernel_height * s->kernel_width;
    correlation job = {
        s->channels, s->filters, (ptrdiff_t)s->out_height, (ptrdiff_t)s->out_width, s->height, s->width,
        (ptrdiff_t)s->kernel_height, (ptrdiff_t)s->kernel_width, (ptrdiff_t)s->stride_rows,
        (ptrdiff_t)s->stride_columns, (ptrdiff_t)s->padding_rows, (ptrdiff_t)s->padding_columns, 1,
        w, NULL, kernel, s->channels * kernel, IDENTITY, grad_y, grad_x, blocks,
    };
    return run_correlation(threads, &job);
}

/* ---- backward to w ------------------------------------------------------------------------------------------------ */

/* The tile of sums: FILTERS by a row of up to five weights, or FEW by the nine of a 3 x 3 kernel. */
enum { WIDE = 5, NINE = 9 };
#if TILE_ROWS == 8
enum { FILTERS = 4, FEW = 2 };
#else
enum { FILTERS = 2, FEW = 1 };
#endif

typedef struct {
    const convolution *s;
    size_t blocks;
    const real *grad_y, *x;
    int added;
    real *grad_w, *grad_b;
    size_t frame_height, frame_width; /* of a plane of x with the zeros around it that windows reach */
    size_t groups;                    /* of filters, shared out apart */
    real *frames;                     /* one for each part; NULL where the workspace is large enough */
} slope;

static real sum_of(vector values) {
    real lanes[LANES], sum = 0;
    store(lanes, values);
    for (size_t width = LANES / 2; width > 0; width /= 2) {
        for (size_t i = 0; i < width; i++) lanes[i] += lanes[i + width];
    }
    sum = lanes[0];
    return sum;
}

/* grad_w of `filters` filters and a patch of the kernel, `down` by `across`, summed over all outputs of a block. x: the
   frame from the patch's first number on; dy: the first filter's plane. All three sizes are constants where called. */
static inline __attribute__((always_inline)) void patch(const size_t filters, const size_t down, const size_t across,
                                                        const slope *job, const real *x, const real *dy,
                                                        real *grad_w) {
    const convolution *s = job->s;
    const size_t plane = s->out_height * s->out_width * LANES, filter = s->channels * s->kernel_height * s->kernel_width;
    const size_t x_row = job->frame_width * LANES, x_step = s->stride_columns * LANES;
    vector sum[FILTERS][NINE];
    UNROLL for (size_t f = 0; f < filters; f++) {
        UNROLL for (size_t t = 0; t < down * across; t++) sum[f][t] = (vector){0};
    }
    for (size_t i = 0; i < s->out_height; i++) {
        const real *from = x + i * s->stride_rows * x_row;
        for (size_t j = 0; j < s->out_width; j++, from += x_step, dy += LANES) {
            vector slopes[FILTERS];
            UNROLL for (size_t f = 0; f < filters; f++) slopes[f] = load(dy + f * plane);
            UNROLL for (size_t u = 0; u < down; u++) {
                UNROLL for (size_t v = 0; v < across; v++) {
                    const vector number = load(from + u * x_row + v * LANES);
                    UNROLL for (size_t f = 0; f < filters; f++) sum[f][u * across + v] += slopes[f] * number;
                }
            }
        }
    }
    UNROLL for (size_t f = 0; f < filters; f++) {
        UNROLL for (size_t u = 0; u < down; u++) {
            UNROLL for (size_t v = 0; v < across; v++)
                grad_w[f * filter + u * s->kernel_width + v] += sum_of(sum[f][u * across + v]);
        }
    }
}

/* One row of the kernel, v from `v` on, for one to FILTERS filters. Returns how many weights of the row it took. */
static size_t row_patch(size_t filters, size_t left, const slope *job, const real *x, const real *dy, real *grad_w) {
#define ROW(across)                                                                                                    \
    do {                                                                                                               \
        if (filters == FILTERS)                                                                                        \
            patch(FILTERS, 1, across, job, x, dy, grad_w);                                                             \
        else                                                                                                           \
            patch(1, 1, across, job, x, dy, grad_w);                                                                   \
        return across;                                                                                                 \
    } while (0)
    if (left >= WIDE) ROW(WIDE);
    if (left >= 3) ROW(3);
    ROW(1);
#undef ROW
}

/* Channel c's weights of filters o to o_end, for one block whose plane of channel c is framed in x. */
static void channel(const slope *job, const real *x, const real *dy, size_t c, size_t o, size_t o_end) {
    const convolution *s = job->s;
    const size_t plane = s->out_height * s->out_width * LANES, kernel = s->kernel_height * s->kernel_width;
    const int nine = s->kernel_height == 3 && s->kernel_width == 3;
    for (size_t taken; o < o_end; o += taken) {
        real *grad_w = job->grad_w + (o * s->channels + c) * kernel;
        if (nine) {
            taken = o_end - o >= FEW ? FEW : 1;
            if (taken == FEW)
                patch(FEW, 3, 3, job, x, dy + o * plane, grad_w);
            else
                patch(1, 3, 3, job, x, dy + o * plane, grad_w);
            continue;
        }
        taken = o_end - o >= FILTERS ? FILTERS : 1;
        for (size_t u = 0; u < s->kernel_height; u++) {
            for (size_t v = 0, done; v < s->kernel_width; v += done)
                done = row_patch(taken, s->kernel_width - v, job, x + (u * job->frame_width + v) * LANES,
                                 dy + o * plane, grad_w + u * s->kernel_width + v);
        }
    }
}

/* Copy a plane of x into the frame: zeros where the padding is. What lies beyond the last window is left out. */
static void put_into_frame(const slope *job, const real *plane, real *frame) {
    const convolution *s = job->s;
    for (size_t i = 0; i < job->frame_height; i++) {
        real *to = frame + i * job->frame_width * LANES;
        const int inside = i >= s->padding_rows && i - s->padding_rows < s->height;
        const real *from = inside ? plane + (i - s->padding_rows) * s->width * LANES : NULL;
        for (size_t j = 0; j < job->frame_width; j++, to += LANES) {
            const int here = inside && j >= s->padding_columns && j - s->padding_columns < s->width;
            store(to, here ? load(from + (j - s->padding_columns) * LANES) : (vector){0});
        }
    }
}

/* A share of all (channel, group of filters). */
static void slopes_of_weights(void *argument, size_t part, size_t parts, void *workspace) {
    const slope *job = argument;
    const convolution *s = job->s;
    const size_t outputs = s->out_height * s->out_width * LANES, plane = s->height * s->width * LANES;
    const size_t kernel = s->kernel_height * s->kernel_width, total = s->channels * job->groups;
    real *const frame =
        job->frames != NULL ? job->frames + part * job->frame_height * job->frame_width * LANES : (real *)workspace;
    for (size_t at = total * part / parts; at < total * (part + 1) / parts; at++) {
        const size_t c = at / job->groups, group = at % job->groups;
        const size_t o = s->filters * group / job->groups, o_end = s->filters * (group + 1) / job->groups;
        for (size_t f = o; f < o_end && !job->added; f++)
            memset(job->grad_w + (f * s->channels + c) * kernel, 0, kernel * sizeof(real));
        for (size_t block = 0; block < job->blocks; block++) {
            put_into_frame(job, job->x + (block * s->channels + c) * plane, frame);
            channel(job, frame, job->grad_y + block * s->filters * outputs, c, o, o_end);
        }
    }
}

static void slopes_of_bias(void *argument, size_t part, size_t parts, void *workspace) {
    (void)workspace;
    const slope *job = argument;
    const size_t filters = job->s->filters, outputs = job->s->out_height * job->s->out_width;
    for (size_t o = filters * part / parts; o < filters * (part + 1) / parts; o++) {
        real total = job->added ? job->grad_b[o] : 0;
        for (size_t block = 0; block < job->blocks; block++) {
            const real *from = job->grad_y + (block * filters + o) * outputs * LANES;
            vector even = {0}, odd = {0};
            size_t i = 0;
            for (; i + 2 <= outputs; i += 2, from += 2 * LANES) {
                even += load(from);
                odd += load(from + LANES);
            }
            if (i < outputs) even += load(from);
            total += sum_of(even + odd);
        }
        job->grad_b[o] = total;
    }
}

int NAME(lanes_backward_weights)(pool *threads, const convolution *s, size_t blocks, const real *grad_y,
                                 const real *x, int added, real *grad_w, real *grad_b) {
    const size_t count = pool_threads(threads);
    slope job = {s, blocks, grad_y, x, added, grad_w, grad_b, (s->out_height - 1) * s->stride_rows + s->kernel_height,
                 (s->out_width - 1) * s->stride_columns + s->kernel_width, 1, NULL};
    if (s->channels < 4 * count) job.groups = smaller(2 * count, (s->filters + FILTERS - 1) / FILTERS);
    const size_t parts = smaller(count, s->channels * job.groups);
    const size_t frame = job.frame_height * job.frame_width * LANES * sizeof(real);
    borrowed *memory = NULL;
    if (frame > WORKSPACE_BYTES) { /* an image of some hundred numbers in each direction */
        memory = frame < SIZE_MAX / parts ? pool_borrow(threads, parts * frame) : NULL;
        if (memory == NULL) return -1;
        job.frames = borrowed_memory(memory);
    }
    int status = pool_run(threads, slopes_of_weights, &job, parts);
    pool_return(threads, memory);
    if (status == 0) status = pool_run(threads, slopes_of_bias, &job, smaller(count, s->filters));
    return status;
}
