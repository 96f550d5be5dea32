/* Channels side by side: how images lie that a network is to judge, unless they fill the lanes themselves.

   A register holds one place of LANES neighbouring channels of one image. Group g of an image is its channels g * LANES
   and following, and number (c, i, j) of image n is at [(((n * groups + c / LANES) * height + i) * width + j) * LANES +
   c % LANES]. The lanes beyond the last channel hold numbers that nobody reads. So a single image fills every register,
   and neither pooling nor Winograd's transforms have to collect what they need. */

#ifndef CHANNELS_H
#define CHANNELS_H

#include "vectors.h"

#include <math.h>

static inline size_t groups_of(size_t channels) { return (channels + LANES - 1) / LANES; }

/* How a convolution's filters, in registers, and its `tiles` are cut into one rectangle for each of `parts`. */
typedef struct {
    size_t bands, stacks; /* across the filters and across the tiles; bands * stacks = parts */
} rectangles;

/* The rectangle of one part: registers of filters and tiles, begin to end. */
typedef struct {
    size_t band_begin, band_end, begin, end;
} rectangle;

/* The cut whose largest rectangle costs the least: each(1) for each register and tile, by_tile and by_register for what
   every part has to prepare for itself. */
static inline rectangles cut(size_t parts, size_t registers, size_t tiles, size_t each, size_t by_tile,
                             size_t by_register) {
    rectangles best = {1, parts};
    size_t least = SIZE_MAX;
    for (size_t bands = 1; bands <= parts; bands++) {
        if (parts % bands != 0) continue;
        const size_t wide = (registers + bands - 1) / bands, high = (tiles + parts / bands - 1) / (parts / bands);
        const size_t cost = wide * high * each + high * by_tile + wide * by_register;
        if (cost < least) {
            least = cost;
            best = (rectangles){bands, parts / bands};
        }
    }
    return best;
}

static inline rectangle find_rectangle(rectangles all, size_t part, size_t registers, size_t tiles) {
    const size_t band = part / all.stacks, stack = part % all.stacks;
    return (rectangle){registers * band / all.bands, registers * (band + 1) / all.bands, tiles * stack / all.stacks,
                       tiles * (stack + 1) / all.stacks};
}

/* What an `ending` needs of one register of filters. */
typedef struct {
    vector bias, near, factor, shift;
} constants;

static inline vector few_lanes(const real *from, size_t count) {
    real lanes[LANES] = {0};
    for (size_t l = 0; l < count; l++) lanes[l] = from[l];
    return load(lanes);
}

/* (z - mean) / sqrt(variance + epsilon) * gamma + beta as (z - near) * factor + shift, as in batch_norm.c. */
static inline void find_factors(const NAME(ending) * how, size_t channel, size_t count, constants *found) {
    real near[LANES] = {0}, factor[LANES] = {0}, shift[LANES] = {0};
    for (size_t l = 0; l < count; l++) {
        const double scale = (double)how->gamma[channel + l] / sqrt((double)how->variance[channel + l] + how->epsilon);
        near[l] = how->mean[channel + l];
        factor[l] = (real)scale;
        shift[l] = how->beta[channel + l];
    }
    found->near = load(near);
    found->factor = load(factor);
    found->shift = load(shift);
}

static inline void find_constants(const NAME(ending) * how, size_t group, size_t filters, constants *found) {
    const size_t first = group * LANES, count = smaller(LANES, filters - first);
    *found = (constants){few_lanes(how->b + first, count), {0}, {0}, {0}};
    if (how->gamma != NULL) find_factors(how, first, count, found);
}

/* A register of sums to what is stored. skip: of the same place, or NULL. */
static inline __attribute__((always_inline)) vector end_sum(vector z, const constants *by, int normalised,
                                                            const real *skip, enum activation activation) {
    z += by->bias;
    if (normalised) z = (z - by->near) * by->factor + by->shift;
    if (skip != NULL) z += load(skip);
    return activate(z, activation);
}

#endif
