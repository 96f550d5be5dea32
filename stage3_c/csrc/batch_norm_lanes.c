/* Batch normalisation of images side by side (see lanes.c), with the activation that follows it.

   A channel at a time: its planes in all blocks fit into the second-level cache, from where the second pass reads them.
   How the mean and the variance are found is told in batch_norm.c. In the last block, lanes without an image are left
   out of the sums, and their slopes are kept at zero. */

#include <math.h>

#include "vectors.h"

typedef struct {
    double count, mean, squares;
} moments;

typedef struct {
    size_t batch, channels, size;
    const real *x, *gamma, *beta;
    real *running_mean, *running_var;
    int training, tracking;
    double momentum, epsilon;
    enum activation activation;
    real *y;
    double *mean, *inverse;
    const real *grad_y;
    real *grad_x, *grad_gamma, *grad_beta;
} job;

static moments merge(moments a, moments b) {
    const double count = a.count + b.count, apart = b.mean - a.mean;
    return (moments){count, a.mean + apart * (b.count / count),
                     a.squares + b.squares + apart * (a.count * (b.count / count)) * apart};
}

static double sum_of(vector values) {
    double sum = 0;
    for (int i = 0; i < LANES; i++) sum += (double)values[i];
    return sum;
}

/* All bits set in the first `images` lanes. */
static mask lanes_of(size_t images) {
    mask lanes = {0};
    for (size_t l = 0; l < LANES; l++) lanes[l] = l < images ? -1 : 0;
    return lanes;
}

static vector only(vector values, mask lanes) { return (vector)((mask)values & lanes); }

/* Of a plane of a block with so many images. */
static moments moments_of(size_t size, size_t images, const real *x) {
    const mask lanes = lanes_of(images);
    const double count = (double)(size * images);
    vector sum[4] = {{0}};
    size_t i = 0;
    for (; i + 4 <= size; i += 4) {
        UNROLL for (size_t k = 0; k < 4; k++) sum[k] += load(x + (i + k) * LANES);
    }
    for (; i < size; i++) sum[0] += load(x + i * LANES);
    const real near = (real)(sum_of(only(sum[0] + sum[1] + (sum[2] + sum[3]), lanes)) / count);
    vector rest[2] = {{0}}, squares[2] = {{0}};
    for (i = 0; i + 2 <= size; i += 2) {
        UNROLL for (size_t k = 0; k < 2; k++) {
            const vector apart = load(x + (i + k) * LANES) - near;
            rest[k] += apart;
            squares[k] += apart * apart;
        }
    }
    if (i < size) {
        const vector apart = load(x + i * LANES) - near;
        rest[0] += apart;
        squares[0] += apart * apart;
    }
    const double left = sum_of(only(rest[0] + rest[1], lanes));
    const double all = sum_of(only(squares[0] + squares[1], lanes));
    return (moments){count, (double)near + left / count, isinf(all) ? all : all - left * left / count};
}

static size_t images_of(const job *all, size_t block) { return smaller(LANES, all->batch - block * LANES); }

static void forward_channels(void *argument, size_t part, size_t parts, void *workspace) {
    (void)workspace;
    const job *all = argument;
    const size_t blocks = (all->batch + LANES - 1) / LANES, plane = all->size * LANES;
    for (size_t c = all->channels * part / parts; c < all->channels * (part + 1) / parts; c++) {
        double mean = (double)all->running_mean[c], variance = (double)all->running_var[c];
        if (all->training) {
            moments found = {0, 0, 0};
            for (size_t b = 0; b < blocks; b++)
                found = merge(found, moments_of(all->size, images_of(all, b), all->x + (b * all->channels + c) * plane));
            mean = found.mean;
            variance = found.squares / found.count;
            if (all->tracking) {
                const double keep = 1 - all->momentum, unbiased = found.squares / (found.count - 1);
                all->running_mean[c] = (real)(keep * (double)all->running_mean[c] + all->momentum * mean);
                all->running_var[c] = (real)(keep * (double)all->running_var[c] + all->momentum * unbiased);
            }
        }
        all->mean[c] = mean;
        all->inverse[c] = 1 / sqrt(variance + all->epsilon);
        const double scale = (double)all->gamma[c] * all->inverse[c];
        const real near = (real)mean, factor = (real)scale;
        const real shift = (real)((double)all->beta[c] - (mean - (double)near) * scale);
        for (size_t b = 0; b < blocks; b++) {
            const real *x = all->x + (b * all->channels + c) * plane;
            real *y = all->y + (b * all->channels + c) * plane;
            for (size_t i = 0; i < plane; i += LANES)
                store(y + i, activate((load(x + i) - near) * factor + shift, all->activation));
        }
    }
}

int NAME(batch_norm_lanes)(pool *threads, size_t batch, size_t channels, size_t size, const real *x, const real *gamma,
                           const real *beta, real *running_mean, real *running_var, int training, int tracking,
                           double momentum, double epsilon, enum activation activation, real *y, double *mean,
                           double *inverse) {
    job all = {.batch = batch, .channels = channels, .size = size, .x = x, .gamma = gamma, .beta = beta,
               .running_mean = running_mean, .running_var = running_var, .training = training, .tracking = tracking,
               .momentum = momentum, .epsilon = epsilon, .activation = activation, .y = y, .mean = mean,
               .inverse = inverse};
    return pool_run(threads, forward_channels, &all, smaller(pool_threads(threads), channels));
}

/* The slope before the activation, from the slope after it and the output. */
static inline vector before(vector slope, vector output, enum activation which) {
    if (which == IDENTITY) return slope;
    const mask stopped = output <= 0;
    if (which == RELU) return (vector)((mask)slope & ~stopped);
    return (vector)(((mask)(slope * (real)LEAKY_SLOPE) & stopped) | ((mask)slope & ~stopped));
}

static void backward_channels(void *argument, size_t part, size_t parts, void *workspace) {
    (void)workspace;
    const job *all = argument;
    const size_t blocks = (all->batch + LANES - 1) / LANES, plane = all->size * LANES;
    const double count = (double)(all->batch * all->size);
    for (size_t c = all->channels * part / parts; c < all->channels * (part + 1) / parts; c++) {
        const double mean = all->mean[c], inverse = all->inverse[c], scale = (double)all->gamma[c] * inverse;
        const real near = (real)mean;
        const double far = mean - (double)near;
        double sum = 0, product = 0;
        for (size_t b = 0; b < blocks; b++) {
            const size_t at = (b * all->channels + c) * plane;
            const real *dy = all->grad_y + at, *x = all->x + at, *y = all->y + at;
            vector sums[2] = {{0}}, products[2] = {{0}};
            for (size_t i = 0, k = 0; i < plane; i += LANES, k ^= 1) {
                const vector slope = before(load(dy + i), load(y + i), all->activation);
                sums[k] += slope;
                products[k] += slope * (load(x + i) - near);
            }
            const mask lanes = lanes_of(images_of(all, b));
            sum += sum_of(only(sums[0] + sums[1], lanes));
            product += sum_of(only(products[0] + products[1], lanes));
        }
        product = (product - far * sum) * inverse; /* sum of dy times the normalised x */
        all->grad_gamma[c] = (real)product;
        all->grad_beta[c] = (real)sum;
        if (all->grad_x == NULL) continue;
        const double along = all->training ? -scale * product / count * inverse : 0;
        const double constant = all->training ? -scale * sum / count - along * far : 0;
        const real of_slope = (real)scale, of_x = (real)along, shift = (real)constant;
        for (size_t b = 0; b < blocks; b++) {
            const size_t at = (b * all->channels + c) * plane;
            const real *dy = all->grad_y + at, *x = all->x + at, *y = all->y + at;
            const mask lanes = lanes_of(images_of(all, b));
            for (size_t i = 0; i < plane; i += LANES) {
                const vector slope = before(load(dy + i), load(y + i), all->activation);
                const vector result = of_slope * slope + (of_x * (load(x + i) - near) + shift);
                store(all->grad_x + at + i, only(result, lanes));
            }
        }
    }
}

int NAME(batch_norm_lanes_backward)(pool *threads, size_t batch, size_t channels, size_t size, const real *grad_y,
                                    const real *x, const real *y, const real *gamma, int training,
                                    enum activation activation, double *mean, double *inverse, real *grad_x,
                                    real *grad_gamma, real *grad_beta) {
    job all = {.batch = batch, .channels = channels, .size = size, .x = x, .gamma = gamma, .training = training,
               .activation = activation, .y = (real *)(uintptr_t)y, .mean = mean, .inverse = inverse, .grad_y = grad_y,
               .grad_x = grad_x, .grad_gamma = grad_gamma, .grad_beta = grad_beta};
    return pool_run(threads, backward_channels, &all, smaller(pool_threads(threads), channels));
}
