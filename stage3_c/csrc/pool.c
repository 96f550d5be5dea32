/* Threads that wait for work.

   Starting a thread and ending it takes tens of microseconds, and so does a small product. So a pool starts its threads
   once and hands them jobs. A job is a number of parts, and which of them nobody has begun yet is one atomic word, a
   bit for each part. Whoever clears a bit by compare-and-swap owns that part. The swap can only succeed while the bit is
   set, which is while the job is there, so it does not matter how long ago a thread has looked.

   Every thread has a part that it takes first, always the same, because what it has read and written for the job before
   is still in its own core's cache. The caller works too, and takes what is left: a thread that wakes late only leaves
   it more to do. A waiting thread spins for a while before it sleeps, because within a training step the next job comes
   after a few microseconds, and waking a sleeping thread takes many. */

#if defined(__linux__)
#define _GNU_SOURCE /* sched_getcpu, sched_setaffinity */
#endif

#include "groundup.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum {
    ALIGNMENT = 64,
    SPIN_NANOSECONDS = 100000, /* how long a thread looks for the next job before it goes to sleep */
    LOOKS_A_PAUSE = 64,        /* looks between two glances at the clock, or two offers of the core to others */
    MOST_KEPT = 4,             /* blocks that wait to be borrowed again */
    BITS = 64 /* of the word: at most so many threads share a job; of more parts a bit stands for every 64th */
};

typedef struct workspace {
    struct workspace *next;
    void *memory;
} workspace;

typedef struct {
    pool *threads;
    workspace *memory;
    size_t seat; /* from 1; the caller has 0 */
    pthread_t id;
} worker;

struct pool {
    size_t count;
    worker *workers; /* threads - 1 of them; the caller is the last */
    size_t started;
    pthread_mutex_t lock;
    pthread_cond_t work;
    workspace *spare; /* under lock */
    borrowed *kept;   /* under lock: what nobody borrows now */
    atomic_flag taken; /* by the call that has the workers now */
    _Atomic uint64_t open; /* bit b: nobody has begun part b, b + 64, … */
    atomic_size_t done;    /* bits, not parts */
    atomic_int sleepers;
    atomic_int caller_core;
    atomic_int stopping;
    int64_t *next_note, *end_of_notes; /* equal where nobody wants to know the time */
    /* The job; stable as long as a part of it is not done. */
    pool_task task;
    void *job;
    size_t parts;
};

static void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static workspace *workspace_create(void) {
    char *block = malloc(sizeof(workspace) + ALIGNMENT + WORKSPACE_BYTES);
    if (block == NULL) return NULL;
    workspace *created = (workspace *)(void *)block;
    const uintptr_t after = (uintptr_t)(block + sizeof(workspace));
    created->memory = block + sizeof(workspace) + (ALIGNMENT - after % ALIGNMENT) % ALIGNMENT;
    created->next = NULL;
    return created;
}

static workspace *workspace_take(pool *threads) {
    pthread_mutex_lock(&threads->lock);
    workspace *taken = threads->spare;
    if (taken != NULL) threads->spare = taken->next;
    pthread_mutex_unlock(&threads->lock);
    return taken != NULL ? taken : workspace_create();
}

static void workspace_give(pool *threads, workspace *taken) {
    pthread_mutex_lock(&threads->lock);
    taken->next = threads->spare;
    threads->spare = taken;
    pthread_mutex_unlock(&threads->lock);
}

struct borrowed {
    borrowed *next;
    size_t bytes;
    void *memory;
};

/* Larger blocks than this are not kept, so that one large image does not hold on to its memory. */
#define KEPT_BYTES ((size_t)64 << 20)

borrowed *pool_borrow(pool *threads, size_t bytes) {
    pthread_mutex_lock(&threads->lock);
    borrowed **place = &threads->kept;
    /* kept is sorted by size: the first that is large enough is the smallest such block */
    while (*place != NULL && (*place)->bytes < bytes) place = &(*place)->next;
    borrowed *found = *place;
    if (found != NULL) *place = found->next;
    pthread_mutex_unlock(&threads->lock);
    if (found != NULL) return found;
    char *block = bytes < SIZE_MAX / 2 ? malloc(sizeof(borrowed) + ALIGNMENT + bytes) : NULL;
    if (block == NULL) return NULL;
    borrowed *created = (borrowed *)(void *)block;
    const uintptr_t after = (uintptr_t)(block + sizeof(borrowed));
    created->memory = block + sizeof(borrowed) + (ALIGNMENT - after % ALIGNMENT) % ALIGNMENT;
    created->bytes = bytes;
    return created;
}

void *borrowed_memory(borrowed *it) { return it->memory; }

/* Of what comes back the MOST_KEPT largest blocks are kept. */
void pool_return(pool *threads, borrowed *it) {
    if (it == NULL) return;
    borrowed *excess = it;
    if (it->bytes <= KEPT_BYTES) {
        pthread_mutex_lock(&threads->lock);
        borrowed **place = &threads->kept;
        size_t count = 1;
        while (*place != NULL && (*place)->bytes < it->bytes) place = &(*place)->next; /* sorted by size */
        it->next = *place;
        *place = it;
        for (const borrowed *each = threads->kept; each != NULL; each = each->next) count++;
        excess = NULL;
        if (count > MOST_KEPT + 1) {
            /* the smallest goes: it costs least to ask for again */
            excess = threads->kept;
            threads->kept = excess->next;
        }
        pthread_mutex_unlock(&threads->lock);
    }
    free(excess);
}

/* Take parts of the job until none is left, that of the own seat first. Returns for how many bits they stood. */
static size_t work_on(pool *threads, size_t seat, void *memory) {
    const uint64_t own = (uint64_t)1 << seat % BITS;
    size_t taken = 0;
    /* acquire: who sees a bit also sees the job that pool_run has written before it set the bit */
    uint64_t open = atomic_load_explicit(&threads->open, memory_order_acquire);
    while (open != 0) {
        const uint64_t bit = open & own ? own : open & (0 - open); /* or else the lowest */
        if (!atomic_compare_exchange_weak_explicit(&threads->open, &open, open & ~bit, memory_order_acq_rel,
                                                   memory_order_acquire))
            continue; /* open was refreshed */
        for (size_t part = (size_t)__builtin_ctzll(bit); part < threads->parts; part += BITS)
            threads->task(threads->job, part, threads->parts, memory);
        /* release: the caller reads what the part has written as soon as it sees the count */
        atomic_fetch_add_explicit(&threads->done, 1, memory_order_release);
        taken++;
        open = atomic_load_explicit(&threads->open, memory_order_acquire);
    }
    return taken;
}

#if defined(__linux__)

static int core(void) { return sched_getcpu(); }

/* Leave the caller's core. Linux likes to put a woken thread on the core of whoever woke it, above all in a virtual
   machine, where a core at rest looks taken; the two then share that core until the scheduler looks again, some
   milliseconds, which are twenty training steps. Forbidding the core moves a thread at once, and it is allowed again
   straight after. Where this fails, it is only slower. */
static void step_aside(pool *threads) {
    const int here = core();
    cpu_set_t allowed;
    if (here < 0 || here != atomic_load(&threads->caller_core)) return;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2) return;
    cpu_set_t others = allowed;
    CPU_CLR((size_t)here, &others);
    if (sched_setaffinity(0, sizeof others, &others) == 0) sched_setaffinity(0, sizeof allowed, &allowed);
}

#else

static int core(void) { return -1; }

static void step_aside(pool *threads) { (void)threads; }

#endif

static int has_work(pool *threads) {
    return atomic_load(&threads->open) != 0 || atomic_load(&threads->stopping);
}

static int64_t nanoseconds(void) {
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Whether work came while spinning. */
static int spin_for_work(pool *threads) {
    const int64_t begin = nanoseconds();
    int64_t spent;
    do {
        for (int look = 0; look < LOOKS_A_PAUSE; look++) {
            if (has_work(threads)) return 1;
            relax();
        }
        step_aside(threads);
        spent = nanoseconds() - begin;
    } while (spent >= 0 && spent < SPIN_NANOSECONDS); /* below 0: somebody has set the clock back */
    return 0;
}

static void sleep_until_work(pool *threads) {
    pthread_mutex_lock(&threads->lock);
    atomic_fetch_add(&threads->sleepers, 1);
    while (!has_work(threads)) pthread_cond_wait(&threads->work, &threads->lock);
    atomic_fetch_sub(&threads->sleepers, 1);
    pthread_mutex_unlock(&threads->lock);
    step_aside(threads);
}

static void *worker_main(void *argument) {
    const worker *self = argument;
    while (!atomic_load(&self->threads->stopping)) {
        work_on(self->threads, self->seat, self->memory->memory);
        if (!spin_for_work(self->threads)) sleep_until_work(self->threads);
    }
    return NULL;
}

/* Sleepers count themselves before they look for work for the last time, and the caller has opened the job before it
   counts the sleepers: one of the two sees the other. */
static void wake(pool *threads, size_t wanted) {
    if (atomic_load(&threads->sleepers) == 0) return;
    pthread_mutex_lock(&threads->lock);
    /* no broadcast: a thread that wakes without a part to take only disturbs the others */
    for (size_t i = 0; i < wanted; i++) pthread_cond_signal(&threads->work);
    pthread_mutex_unlock(&threads->lock);
    sched_yield(); /* one that was put on this core can then step aside, rather than wait for our time slice to end */
}

pool *pool_create(size_t count) {
    pool *threads = calloc(1, sizeof *threads);
    if (threads == NULL) return NULL;
    if (pthread_mutex_init(&threads->lock, NULL) != 0) {
        free(threads);
        return NULL;
    }
    if (pthread_cond_init(&threads->work, NULL) != 0) {
        pthread_mutex_destroy(&threads->lock);
        free(threads);
        return NULL;
    }
    atomic_flag_clear(&threads->taken);
    threads->count = count;
    threads->spare = workspace_create();
    threads->workers = calloc(count, sizeof *threads->workers);
    int failed = threads->spare == NULL || threads->workers == NULL;
    while (!failed && threads->started + 1 < count) {
        worker *next = &threads->workers[threads->started];
        next->threads = threads;
        next->seat = threads->started + 1;
        next->memory = workspace_create();
        failed = next->memory == NULL || pthread_create(&next->id, NULL, worker_main, next) != 0;
        if (failed) {
            free(next->memory);
        } else {
            threads->started++;
        }
    }
    if (failed) {
        pool_destroy(threads);
        return NULL;
    }
    return threads;
}

/* Nobody may be inside a call that uses the pool. */
void pool_destroy(pool *threads) {
    if (threads == NULL) return;
    atomic_store(&threads->stopping, 1);
    wake(threads, threads->started);
    for (size_t i = 0; i < threads->started; i++) {
        pthread_join(threads->workers[i].id, NULL);
        free(threads->workers[i].memory);
    }
    while (threads->spare != NULL) {
        workspace *next = threads->spare->next;
        free(threads->spare);
        threads->spare = next;
    }
    while (threads->kept != NULL) {
        borrowed *next = threads->kept->next;
        free(threads->kept);
        threads->kept = next;
    }
    pthread_cond_destroy(&threads->work);
    pthread_mutex_destroy(&threads->lock);
    free(threads->workers);
    free(threads);
}

size_t pool_threads(const pool *threads) { return threads->count; }

size_t threads_worth(const pool *threads, size_t numbers) {
    const size_t wanted = numbers / ((size_t)1 << 14) + 1;
    return wanted < threads->count ? wanted : threads->count;
}

void pool_listen(pool *threads, int64_t *notes, size_t room) {
    threads->next_note = notes;
    threads->end_of_notes = notes != NULL ? notes + room : NULL;
}

void pool_note(pool *threads) {
    if (threads->next_note != threads->end_of_notes) *threads->next_note++ = nanoseconds();
}

void pool_notes(pool *threads, size_t count) {
    for (size_t i = 0; i < count; i++) pool_note(threads);
}

int pool_run(pool *threads, pool_task task, void *job, size_t parts) {
    workspace *mine = workspace_take(threads);
    if (mine == NULL) return -1;
    /* The workers are taken by the last condition alone, so this branch has nothing to give back. A call that finds
       them taken does not wait: it may come from inside a task, whose end would then wait for it. */
    if (parts <= 1 || threads->count == 1 || atomic_flag_test_and_set(&threads->taken)) {
        for (size_t part = 0; part < parts; part++) task(job, part, parts, mine->memory);
        workspace_give(threads, mine);
        return 0;
    }
    atomic_store(&threads->caller_core, core());
    threads->task = task;
    threads->job = job;
    threads->parts = parts;
    atomic_store(&threads->done, 0);
    const size_t bits = parts < BITS ? parts : BITS;
    atomic_store(&threads->open, ~(uint64_t)0 >> (BITS - bits));
    wake(threads, bits - 1);
    if (work_on(threads, 0, mine->memory) == bits) sched_yield(); /* no worker came: see wake */
    for (int look = 1; atomic_load_explicit(&threads->done, memory_order_acquire) != bits; look++) {
        relax();
        if (look == LOOKS_A_PAUSE) { /* the last part may be with a thread that has lost its core */
            sched_yield();
            look = 0;
        }
    }
    atomic_flag_clear(&threads->taken);
    workspace_give(threads, mine);
    return 0;
}
