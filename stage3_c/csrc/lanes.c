/* Images one after the other, and images side by side.

   One after the other is how a batch arrives: image n's number e at x[n * size + e]. Side by side, number e of a block's
   LANES images is one SIMD register, at lanes[e * LANES]. The one is the transpose of the other. */

#include "vectors.h"

void NAME(to_lanes)(size_t images, size_t size, const real *x, real *lanes) {
    for (size_t n = 0; n < LANES; n += FOUR) {
        size_t e = 0;
        if (n + FOUR <= images) {
            for (; e + FOUR <= size; e += FOUR) transpose_square(lanes + e * LANES + n, LANES, x + n * size + e, size);
        }
        for (; e < size; e++) {
            for (size_t i = n; i < smaller(n + FOUR, LANES); i++) lanes[e * LANES + i] = i < images ? x[i * size + e] : 0;
        }
    }
}

void NAME(from_lanes)(size_t images, size_t size, const real *lanes, real *x) {
    for (size_t n = 0; n < images; n += FOUR) {
        size_t e = 0;
        if (n + FOUR <= images) {
            for (; e + FOUR <= size; e += FOUR) transpose_square(x + n * size + e, size, lanes + e * LANES + n, LANES);
        }
        for (; e < size; e++) {
            for (size_t i = n; i < smaller(n + FOUR, images); i++) x[i * size + e] = lanes[e * LANES + i];
        }
    }
}

typedef struct {
    size_t batch, size;
    const real *from;
    real *to;
} turn;

static void turn_to(void *argument, size_t part, size_t parts, void *workspace) {
    (void)workspace;
    const turn *job = argument;
    const size_t blocks = (job->batch + LANES - 1) / LANES;
    for (size_t b = blocks * part / parts; b < blocks * (part + 1) / parts; b++)
        NAME(to_lanes)(smaller(LANES, job->batch - b * LANES), job->size, job->from + b * LANES * job->size,
                       job->to + b * LANES * job->size);
}

static void turn_from(void *argument, size_t part, size_t parts, void *workspace) {
    (void)workspace;
    const turn *job = argument;
    const size_t blocks = (job->batch + LANES - 1) / LANES;
    for (size_t b = blocks * part / parts; b < blocks * (part + 1) / parts; b++)
        NAME(from_lanes)(smaller(LANES, job->batch - b * LANES), job->size, job->from + b * LANES * job->size,
                         job->to + b * LANES * job->size);
}

int NAME(batch_to_lanes)(pool *threads, size_t batch, size_t size, const real *x, real *lanes) {
    turn job = {batch, size, x, lanes};
    return pool_run(threads, turn_to, &job, smaller(pool_threads(threads), (batch + LANES - 1) / LANES));
}

int NAME(batch_from_lanes)(pool *threads, size_t batch, size_t size, const real *lanes, real *x) {
    turn job = {batch, size, lanes, x};
    return pool_run(threads, turn_from, &job, smaller(pool_threads(threads), (batch + LANES - 1) / LANES));
}
