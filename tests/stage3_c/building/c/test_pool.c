/* The pool: every part of every job is run exactly once, by whatever threads there are, and nothing is left over. */

#include <pthread.h>
#include <stdatomic.h>

#include "check.h"

enum { MOST_PARTS = 40, CALLERS = 8 };

typedef struct {
    size_t parts;
    size_t plain[MOST_PARTS]; /* not atomic: the pool's own ordering must make the workers' writes visible */
    atomic_size_t runs;
    pool *inner; /* for a job that gives jobs itself */
    atomic_size_t inner_runs;
} counts;

/* Count the part, and use all of the workspace's ends as one's own. */
static void count_part(void *job, size_t part, size_t parts, void *workspace) {
    counts *seen = job;
    unsigned char *first = workspace, *last = first + WORKSPACE_BYTES - 1;
    *first = *last = (unsigned char)part;
    CHECK(parts == seen->parts, parts, seen->parts);
    CHECK(part < parts, part, parts);
    CHECK((uintptr_t)workspace % 64 == 0, (uintptr_t)workspace % 64, 0);
    seen->plain[part]++;
    atomic_fetch_add(&seen->runs, 1);
    CHECK(*first == (unsigned char)part, *first, part);
    CHECK(*last == (unsigned char)part, *last, part);
}

static void run_and_check(pool *threads, size_t parts) {
    counts seen = {.parts = parts};
    const int status = pool_run(threads, count_part, &seen, parts);
    CHECK(status == 0, status, 0);
    for (size_t part = 0; part < parts; part++) CHECK(seen.plain[part] == 1, seen.plain[part], 1);
    CHECK(atomic_load(&seen.runs) == parts, atomic_load(&seen.runs), parts);
}

/* Fewer parts than threads, as many, more; one job straight after another. */
static void test_many_jobs(size_t size, size_t jobs) {
    pool *threads = pool_create(size);
    CHECK(threads != NULL, 0, 1);
    CHECK(pool_threads(threads) == size, pool_threads(threads), size);
    for (size_t job = 0; job < jobs; job++) run_and_check(threads, 1 + job % MOST_PARTS);
    pool_destroy(threads);
}

typedef struct {
    pool *threads;
    size_t jobs;
} caller;

static void *call(void *argument) {
    const caller *self = argument;
    for (size_t job = 0; job < self->jobs; job++) run_and_check(self->threads, 1 + job % 7);
    return NULL;
}

/* Several threads give jobs to one pool at once. */
static void test_several_callers(size_t size, size_t jobs) {
    pool *threads = pool_create(size);
    CHECK(threads != NULL, 0, 1);
    caller self = {threads, jobs};
    pthread_t ids[CALLERS];
    for (size_t i = 0; i < CALLERS; i++) {
        const int status = pthread_create(&ids[i], NULL, call, &self);
        CHECK(status == 0, status, 0);
    }
    for (size_t i = 0; i < CALLERS; i++) pthread_join(ids[i], NULL);
    pool_destroy(threads);
}

static void count_inner(void *job, size_t part, size_t parts, void *workspace) {
    counts *outer = job;
    (void)part;
    (void)parts;
    (void)workspace;
    atomic_fetch_add(&outer->inner_runs, 1);
}

static void give_inner_job(void *job, size_t part, size_t parts, void *workspace) {
    counts *outer = job;
    count_part(job, part, parts, workspace);
    const int status = pool_run(outer->inner, count_inner, outer, 3);
    CHECK(status == 0, status, 0);
}

/* A job may give jobs: to its own pool, where they are run by the thread that gives them, and to another. */
static void test_jobs_within_jobs(void) {
    pool *outer = pool_create(3), *inner = pool_create(2);
    CHECK(outer != NULL && inner != NULL, 0, 1);
    for (size_t round = 0; round < 20; round++) {
        counts seen = {.parts = 5, .inner = round % 2 == 0 ? inner : outer};
        const int status = pool_run(outer, give_inner_job, &seen, 5);
        CHECK(status == 0, status, 0);
        CHECK(atomic_load(&seen.runs) == 5, atomic_load(&seen.runs), 5);
        CHECK(atomic_load(&seen.inner_runs) == 15, atomic_load(&seen.inner_runs), 15);
    }
    pool_destroy(inner);
    run_and_check(outer, 4);
    pool_destroy(outer);
}

/* Made and destroyed without a job, with one, and one within the life of another. */
static void test_create_and_destroy(size_t rounds) {
    pool_destroy(NULL);
    for (size_t round = 0; round < rounds; round++) {
        pool *first = pool_create(1 + round % 4);
        CHECK(first != NULL, 0, 1);
        if (round % 2 == 0) {
            pool *second = pool_create(3);
            CHECK(second != NULL, 0, 1);
            run_and_check(first, 5);
            run_and_check(second, 5);
            pool_destroy(second);
            run_and_check(first, 5);
        }
        pool_destroy(first);
    }
}

int main(int argc, char **argv) {
    const int small = is_small(argc, argv);
    const size_t jobs = small ? 80 : 4000;
    test_many_jobs(1, jobs);
    test_many_jobs(2, jobs);
    test_many_jobs(5, jobs); /* more threads than most small machines have cores */
    test_several_callers(1, jobs / 20);
    test_several_callers(3, jobs / 20);
    test_jobs_within_jobs();
    test_create_and_destroy(small ? 6 : 40);
    return 0;
}
