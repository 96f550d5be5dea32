/* Channels side by side (see channels.h): how a batch comes there and back, and batch normalisation by itself, where no
   convolution stands before it. Channels of one image take here the place that images have in lanes.c. */

#include "channels.h"

typedef struct {
    size_t batch, channels, size; /* numbers of a plane */
    const real *from;
    real *to;
    const NAME(ending) * how;
} job;

static void turn_to(void *argument, size_t part, size_t parts, void *workspace) {
    (void)workspace;
    const job *all = argument;
    const size_t groups = groups_of(all->channels), total = all->batch * groups;
    for (size_t at = total * part / parts; at < total * (part + 1) / parts; at++) {
        const size_t first = at % groups * LANES;
        NAME(to_lanes)(smaller(LANES, all->channels - first), all->size,
                       all->from + (at / groups * all->channels + first) * all->size, all->to + at * all->size * LANES);
    }
}

static void turn_from(void *argument, size_t part, size_t parts, void *workspace) {
    (void)workspace;
    const job *all = argument;
    const size_t groups = groups_of(all->channels), total = all->batch * groups;
    for (size_t at = total * part / parts; at < total * (part + 1) / parts; at++) {
        const size_t first = at % groups * LANES;
        NAME(from_lanes)(smaller(LANES, all->channels - first), all->size, all->from + at * all->size * LANES,
                         all->to + (at / groups * all->channels + first) * all->size);
    }
}

static void normalise(void *argument, size_t part, size_t parts, void *workspace) {
    (void)workspace;
    const job *all = argument;
    const size_t groups = groups_of(all->channels), total = all->batch * groups;
    for (size_t at = total * part / parts; at < total * (part + 1) / parts; at++) {
        const size_t first = at % groups * LANES;
        constants by = {{0}, {0}, {0}, {0}};
        find_factors(all->how, first, smaller(LANES, all->channels - first), &by);
        for (size_t i = at * all->size * LANES; i < (at + 1) * all->size * LANES; i += LANES)
            store(all->to + i, end_sum(load(all->from + i), &by, 1, NULL, all->how->activation));
    }
}

static int share_out(pool *threads, pool_task task, job *all) {
    enum { COST = 8 }; /* of a register, in multiply-adds, about */
    const size_t units = all->batch * groups_of(all->channels);
    return pool_run(threads, task, all, smaller(threads_worth(threads, COST * units * all->size), units));
}

int NAME(batch_to_channels)(pool *threads, size_t batch, size_t channels, size_t size, const real *x, real *lanes) {
    job all = {batch, channels, size, x, lanes, NULL};
    return share_out(threads, turn_to, &all);
}

int NAME(batch_from_channels)(pool *threads, size_t batch, size_t channels, size_t size, const real *lanes, real *x) {
    job all = {batch, channels, size, lanes, x, NULL};
    return share_out(threads, turn_from, &all);
}

int NAME(batch_norm_channels)(pool *threads, size_t batch, size_t channels, size_t size, const real *x,
                              const NAME(ending) * how, real *y) {
    job all = {batch, channels, size, x, y, how};
    return share_out(threads, normalise, &all);
}
