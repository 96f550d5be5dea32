/* What every C test uses: CHECK, numbers, and memory that shows when it is read or written out of bounds.

   A test is a program: exit code 0 where all is right, 1 at the first CHECK that fails, with its file, line and both
   values. `small` as the first argument runs fewer sizes, for valgrind.

   A buffer lies between two guard zones of GUARD elements of NaN, so that a read beyond it poisons the result, and a
   write beyond it (of anything but NaN) is found when it is freed. With -DGUARD=0 there are none and the block is exactly
   as long as the data: for AddressSanitizer and valgrind, which see the first byte beyond it themselves. */

#ifndef CHECK_H
#define CHECK_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "groundup.h"

#if !defined(GUARD)
#define GUARD 67 /* odd, so that the data is not aligned to a register either */
#endif

/* CHECK(sum == 3, sum, 3): the condition, and the two values to print where it fails. */
#define CHECK(condition, got, expected)                                                                              \
    do {                                                                                                             \
        if (!(condition)) {                                                                                          \
            fprintf(stderr, "%s:%d: %s: got %.17g, expected %.17g\n", __FILE__, __LINE__, #condition, (double)(got), \
                    (double)(expected));                                                                             \
            exit(1);                                                                                                 \
        }                                                                                                            \
    } while (0)

static inline int is_small(int argc, char **argv) { return argc > 1 && strcmp(argv[1], "small") == 0; }

static inline void *memory(size_t bytes) {
    void *block = malloc(bytes);
    CHECK(block != NULL, 0, bytes);
    return block;
}

/* The next of a fixed sequence of numbers, spread over 64 bits (splitmix64, Steele et al. 2014). */
static inline uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Between low and high. */
static inline double random_between(uint64_t *state, double low, double high) {
    return low + (high - low) * ((double)(next_random(state) >> 11) / 9007199254740992.0);
}

#if defined(GROUNDUP_BITS)

/* `size` elements, all NaN, between guard zones of NaN. */
static inline real *buffer(size_t size) {
    real *block = memory((size + 2 * GUARD) * sizeof *block);
    for (size_t i = 0; i < size + 2 * GUARD; i++) block[i] = (real)NAN;
    return block + GUARD;
}

/* Free a buffer of `size` elements, after a look at its guard zones. */
static inline void release(real *values, size_t size) {
    const size_t guard = GUARD; /* a variable, or GCC warns that nothing is below 0 */
    for (size_t i = 0; i < guard; i++) {
        const real before = *(values - 1 - i), after = *(values + size + i);
        CHECK(before != before, before, NAN);
        CHECK(after != after, after, NAN);
    }
    free(values - GUARD);
}

/* A buffer of `size` random numbers between low and high. */
static inline real *random_buffer(uint64_t *state, size_t size, double low, double high) {
    real *values = buffer(size);
    for (size_t i = 0; i < size; i++) values[i] = (real)random_between(state, low, high);
    return values;
}

/* Whether got is expected within `units` times the precision of real at the size `scale`, or 1 where that is more.
   NaN is close to NaN, and inf to inf of the same sign. */
static inline int close_to(double got, double expected, double scale, double units) {
    const double precision = sizeof(real) == 4 ? 0x1p-24 : 0x1p-53;
    if (isnan(expected)) return isnan(got);
    if (isinf(expected)) return got == expected;
    return fabs(got - expected) <= units * precision * (scale > 1 ? scale : 1);
}

#endif
#endif
