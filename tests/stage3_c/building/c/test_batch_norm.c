/* Batch normalisation of small planes, which are copied beside each other into a row on the stack before they are summed:
   the row is as full as it can be, and not fuller. The compiler's stack protector ends a program that writes beyond it. */

#include "check.h"

enum { CHANNELS = 2 };

/* Mean and squares around it of each channel, x (batch, CHANNELS, size), against the definition in double. */
static void check_moments(size_t batch, size_t size) {
    uint64_t state = batch + size;
    const size_t numbers = batch * CHANNELS * size;
    real *x = random_buffer(&state, numbers, -1, 3);
    double found[2 * CHANNELS];
    pool *threads = pool_create(1);
    CHECK(NAME(batch_norm_moments)(threads, batch, CHANNELS, size, x, found) == 0, 1, 0);
    for (size_t c = 0; c < CHANNELS; c++) {
        double mean = 0, squares = 0;
        for (size_t i = 0; i < numbers; i++) mean += i / size % CHANNELS == c ? (double)x[i] : 0;
        mean /= (double)(batch * size);
        for (size_t i = 0; i < numbers; i++)
            squares += i / size % CHANNELS == c ? ((double)x[i] - mean) * ((double)x[i] - mean) : 0;
        CHECK(close_to(found[c], mean, 1, 64), found[c], mean);
        CHECK(close_to(found[CHANNELS + c], squares, squares, 64), found[CHANNELS + c], squares);
    }
    pool_destroy(threads);
    release(x, numbers);
}

int main(int argc, char **argv) {
    const size_t most = is_small(argc, argv) ? 2200 : 5000; /* the row has 2048 numbers */
    for (size_t size = 1; size <= 7; size += 2) {
        for (size_t batch = 1; batch <= most; batch = batch * 2 + 9) check_moments(batch, size);
    }
    check_moments(2049, 1);
    return 0;
}
