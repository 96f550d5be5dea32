/* Batch normalisation: each channel is brought to mean 0 and deviation 1 over the batch, then scaled and shifted.

       y = (x - mean) / sqrt(variance + epsilon) * gamma + beta

   The mean and the variance come from one pass over memory that loses nothing where the mean is large: a piece of the
   channel that fits into the first-level cache is read twice, first for its mean and then for the squares around it, and
   the pieces are merged by the formula of Chan, Golub and LeVeque in double. The mean is kept in double, too: of a
   channel around 10,000 a float has lost what the deviation is measured in.

   x is (batch, channels, size), size = height * width, or 1 for rows of features. */

#include <math.h>

#include "vectors.h"

enum { PIECE = 2048 };

/* Count, mean and sum of squares around the mean of what was seen so far. */
typedef struct {
    double count, mean, squares;
} moments;

static moments merge(moments a, moments b) {
    const double count = a.count + b.count, apart = b.mean - a.mean;
    return (moments){count, a.mean + apart * (b.count / count), a.squares + b.squares + apart * (a.count * (b.count / count)) * apart};
}

static double sum_of(vector values) {
    double sum = 0;
    for (int i = 0; i < LANES; i++) sum += (double)values[i];
    return sum;
}

/* Of up to PIECE numbers in a row. */
static moments moments_of(const real *x, size_t count) {
    vector sum0 = {0}, sum1 = {0};
    size_t i = 0;
    double tail = 0;
    for (; i + 2 * LANES <= count; i += 2 * LANES) {
        sum0 += load(x + i);
        sum1 += load(x + i + LANES);
    }
    for (size_t j = i; j < count; j++) tail += (double)x[j];
    const real near = (real)((sum_of(sum0 + sum1) + tail) / (double)count); /* the mean, but for rounding */
    vector rest = {0}, squares = {0};
    double rest_tail = 0, squares_tail = 0;
    for (i = 0; i + LANES <= count; i += LANES) {
        const vector apart = load(x + i) - near;
        rest += apart;
        squares += apart * apart;
    }
    for (; i < count; i++) {
        const double apart = (double)x[i] - (double)near;
        rest_tail += apart;
        squares_tail += apart * apart;
    }
    const double left = sum_of(rest) + rest_tail; /* what rounding has left over of the sum */
    const double total = (double)count;
    const double all = sum_of(squares) + squares_tail;
    return (moments){total, (double)near + left / total, isinf(all) ? all : all - left * left / total};
}

typedef struct {
    size_t batch, channels, size;
    const real *x, *gamma, *beta;
    real *running_mean, *running_var;
    int training;
    double momentum, epsilon;
    real *y;
    double *mean, *inverse; /* (channels,): mean, and 1 / sqrt(variance + epsilon) */
    const real *grad_y;
    real *grad_x, *grad_gamma, *grad_beta;
    double *whole; /* forward: what other processes know of the batch, too: count, then mean and squares, (channels,) each;
                      backward: sums and products, (channels,) each. NULL: the batch is all there is */
} job;

static int share_out(pool *threads, pool_task task, job *all) {
    const size_t worth = threads_worth(threads, all->batch * all->channels * all->size);
    return pool_run(threads, task, all, smaller(worth, all->channels));
}

/* All numbers of channel c. Small planes are first put beside each other. */
static moments channel_moments(const job *all, size_t c) {
    const size_t stride = all->channels * all->size;
    real row[PIECE];
    moments found = {0, 0, 0};
    size_t held = 0;
    for (size_t n = 0; n < all->batch; n++) {
        const real *plane = all->x + n * stride + c * all->size;
        if (all->size >= LANES * 4) {
            for (size_t i = 0; i < all->size; i += PIECE)
                found = merge(found, moments_of(plane + i, smaller(PIECE, all->size - i)));
            continue;
        }
        for (size_t i = 0; i < all->size; i++) row[held++] = plane[i];
        if (held + all->size > PIECE || n + 1 == all->batch) {
            found = merge(found, moments_of(row, held));
            held = 0;
        }
    }
    return found;
}

/* y = (x - mean) * scale + shift of one plane; x - mean in two parts, for the mean may need more digits than x has. */
static void normalise(size_t size, const real *restrict x, double mean, double scale, double beta, real *restrict y) {
    const real near = (real)mean, factor = (real)scale;
    const real shift = (real)(beta - (mean - (double)near) * scale);
    for (size_t i = 0; i < size; i++) y[i] = (x[i] - near) * factor + shift;
}

static void forward_channels(void *argument, size_t part, size_t parts, void *workspace) {
    (void)workspace;
    const job *all = argument;
    for (size_t c = all->channels * part / parts; c < all->channels * (part + 1) / parts; c++) {
        double mean, variance;
        if (all->training) {
            const double *whole = all->whole;
            const moments found = whole == NULL ? channel_moments(all, c)
                                                : (moments){whole[0], whole[1 + c], whole[1 + all->channels + c]};
            mean = found.mean;
            variance = found.squares / found.count;
            const double keep = 1 - all->momentum, unbiased = found.squares / (found.count - 1);
            all->running_mean[c] = (real)(keep * (double)all->running_mean[c] + all->momentum * mean);
            all->running_var[c] = (real)(keep * (double)all->running_var[c] + all->momentum * unbiased);
        } else {
            mean = (double)all->running_mean[c];
            variance = (double)all->running_var[c];
        }
        all->mean[c] = mean;
        all->inverse[c] = 1 / sqrt(variance + all->epsilon);
        const double scale = (double)all->gamma[c] * all->inverse[c];
        for (size_t n = 0; n < all->batch; n++) {
            const size_t at = (n * all->channels + c) * all->size;
            normalise(all->size, all->x + at, mean, scale, (double)all->beta[c], all->y + at);
        }
    }
}

static void moments_of_channels(void *argument, size_t part, size_t parts, void *workspace) {
    (void)workspace;
    const job *all = argument;
    for (size_t c = all->channels * part / parts; c < all->channels * (part + 1) / parts; c++) {
        const moments found = channel_moments(all, c);
        all->whole[c] = found.mean;
        all->whole[all->channels + c] = found.squares;
    }
}

int NAME(batch_norm_moments)(pool *threads, size_t batch, size_t channels, size_t size, const real *x, double *moments) {
    job all = {.batch = batch, .channels = channels, .size = size, .x = x, .whole = moments};
    return share_out(threads, moments_of_channels, &all);
}

int NAME(batch_norm)(pool *threads, size_t batch, size_t channels, size_t size, const real *x, const real *gamma,
                     const real *beta, real *running_mean, real *running_var, int training, double momentum,
                     double epsilon, double *whole, real *y, double *mean, double *inverse) {
    job all = {.batch = batch, .channels = channels, .size = size, .x = x, .gamma = gamma, .beta = beta,
               .running_mean = running_mean, .running_var = running_var, .training = training, .momentum = momentum,
               .epsilon = epsilon, .whole = whole, .y = y, .mean = mean, .inverse = inverse};
    return share_out(threads, forward_channels, &all);
}

/* The sums of dy and of dy (x - near) over a plane, in pieces that a float can add up. */
static void add_slopes(size_t size, const real *dy, const real *x, real near, double *sum, double *product) {
    for (size_t begin = 0; begin < size; begin += PIECE) {
        const size_t end = smaller(begin + PIECE, size);
        vector sums = {0}, products = {0};
        size_t i = begin;
        for (; i + LANES <= end; i += LANES) {
            const vector slope = load(dy + i);
            sums += slope;
            products += slope * (load(x + i) - near);
        }
        for (; i < end; i++) {
            *sum += (double)dy[i];
            *product += (double)dy[i] * (double)(x[i] - near);
        }
        *sum += sum_of(sums);
        *product += sum_of(products);
    }
}

/* The sums of dy and of dy (x - near) over a channel. */
static void channel_sums(const job *all, size_t c, double *sum, double *product) {
    *sum = *product = 0;
    for (size_t n = 0; n < all->batch; n++) {
        const size_t at = (n * all->channels + c) * all->size;
        add_slopes(all->size, all->grad_y + at, all->x + at, (real)all->mean[c], sum, product);
    }
}

static void sums_of_channels(void *argument, size_t part, size_t parts, void *workspace) {
    (void)workspace;
    const job *all = argument;
    for (size_t c = all->channels * part / parts; c < all->channels * (part + 1) / parts; c++)
        channel_sums(all, c, all->whole + c, all->whole + all->channels + c);
}

int NAME(batch_norm_sums)(pool *threads, size_t batch, size_t channels, size_t size, const real *grad_y, const real *x,
                          double *mean, double *sums) {
    job all = {.batch = batch, .channels = channels, .size = size, .grad_y = grad_y, .x = x, .mean = mean, .whole = sums};
    return share_out(threads, sums_of_channels, &all);
}

static void backward_channels(void *argument, size_t part, size_t parts, void *workspace) {
    (void)workspace;
    const job *all = argument;
    const double count = (double)(all->batch * all->size);
    for (size_t c = all->channels * part / parts; c < all->channels * (part + 1) / parts; c++) {
        const double mean = all->mean[c], inverse = all->inverse[c], scale = (double)all->gamma[c] * inverse;
        const real near = (real)mean;
        const double far = mean - (double)near;
        double sum, product;
        if (all->whole == NULL) channel_sums(all, c, &sum, &product);
        else sum = all->whole[c], product = all->whole[all->channels + c];
        product = (product - far * sum) * inverse; /* sum of dy times the normalised x */
        all->grad_gamma[c] = (real)product;
        all->grad_beta[c] = (real)sum;
        if (all->grad_x == NULL) continue;
        /* dx = scale (dy - mean of dy - normalised x times mean of dy normalised x) */
        const double along = all->training ? -scale * product / count * inverse : 0;
        const double constant = all->training ? -scale * sum / count - along * far : 0;
        const real of_slope = (real)scale, of_x = (real)along, shift = (real)constant;
        for (size_t n = 0; n < all->batch; n++) {
            const size_t at = (n * all->channels + c) * all->size;
            const real *restrict dy = all->grad_y + at, *restrict x = all->x + at;
            real *restrict dx = all->grad_x + at;
            for (size_t i = 0; i < all->size; i++) dx[i] = of_slope * dy[i] + (of_x * (x[i] - near) + shift);
        }
    }
}

int NAME(batch_norm_backward)(pool *threads, size_t batch, size_t channels, size_t size, const real *grad_y,
                              const real *x, const real *gamma, int training, double *mean, double *inverse,
                              double *whole, real *grad_x, real *grad_gamma, real *grad_beta) {
    job all = {.batch = batch, .channels = channels, .size = size, .x = x, .gamma = gamma, .training = training,
               .mean = mean, .inverse = inverse, .whole = whole, .grad_y = grad_y, .grad_x = grad_x,
               .grad_gamma = grad_gamma, .grad_beta = grad_beta};
    return share_out(threads, backward_channels, &all);
}
