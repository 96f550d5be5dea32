/* The other ceiling: how fast numbers come from memory and go back to it, when next to nothing is done with them.

   The triad of McCalpin's STREAM benchmark, a = b + scale * c. Small arrays stay in a cache and measure that cache;
   only arrays far larger than the last one measure memory. */

#include "groundup.h"

enum { LINE = 64 / (int)sizeof(real) }; /* numbers in a cache line: no two threads write to the same one */

typedef struct {
    size_t rounds, size;
    real scale;
    const real *b, *c;
    real *a;
} sweep;

static size_t begin(size_t size, size_t parts, size_t part) {
    const size_t lines = (size + LINE - 1) / LINE, first = lines * part / parts * LINE;
    return first < size ? first : size;
}

static void go_over(size_t size, real scale, const real *restrict b, const real *restrict c, real *restrict a) {
    for (size_t i = 0; i < size; i++) a[i] = b[i] + scale * c[i];
}

/* A thread goes over its own share again and again, so that the share stays in its own core's cache if it fits. */
static void share(void *argument, size_t part, size_t parts, void *workspace) {
    (void)workspace;
    const sweep *job = argument;
    const size_t first = begin(job->size, parts, part), size = begin(job->size, parts, part + 1) - first;
    for (size_t round = 0; round < job->rounds; round++) {
        go_over(size, job->scale, job->b + first, job->c + first, job->a + first);
        __asm__ volatile("" ::: "memory"); /* without it the compiler may see that one round would do */
    }
}

int NAME(triad)(pool *threads, size_t parts, size_t rounds, size_t size, double scale, const real *b, const real *c,
                real *a) {
    sweep job = {rounds, size, (real)scale, b, c, a};
    return pool_run(threads, share, &job, parts);
}
