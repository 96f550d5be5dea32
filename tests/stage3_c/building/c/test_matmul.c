/* Every rung of the matmul ladder and every form, against a triple loop in double.

   The factors are whole numbers from -4 to 4: all sums are whole numbers far below 2^24, which float holds exactly in
   whatever order they are added, so the answers must be equal, not close. The output holds NaN before the call: an
   element that is left out, or added to instead of set, is seen. */

#include <pthread.h>

#include "check.h"

/* One and its neighbours, the register blocks of the SIMD widths and theirs, none of them multiples of each other. */
static const size_t NEAR[] = {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 48, 65};
static const size_t NEAR_SMALL[] = {1, 2, 5, 13, 16, 33};

/* (m, k, n): more than one cache block in each of the three, and just beside the blocks' edges. */
static const size_t FAR[][3] = {{300, 700, 300}, {700, 300, 37},  {37, 300, 700},  {1, 700, 300}, {300, 1, 700},
                                {300, 700, 1},   {255, 257, 256}, {129, 513, 385}, {64, 784, 128}, {3, 5, 4500},
                                {1500, 3, 5},    {5, 2100, 3}};
static const size_t FAR_SMALL[][3] = {{37, 70, 300}, {150, 300, 97}, {1, 300, 37}, {70, 1, 65}, {65, 300, 1}};

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum form { NN, TN, NT };

typedef struct {
    size_t m, k, n;
    real *a, *b;         /* (m, k), (k, n) */
    real *a_t, *b_t;     /* their transposes, (k, m), (n, k) */
    double *expected;    /* (m, n) */
} product;

/* A buffer (columns, rows) with the transpose of values (rows, columns). */
static real *transposed(size_t rows, size_t columns, const real *values) {
    real *result = buffer(rows * columns);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++) result[j * rows + i] = values[i * columns + j];
    return result;
}

static real *whole_numbers(uint64_t *state, size_t size) {
    real *values = buffer(size);
    for (size_t i = 0; i < size; i++) values[i] = (real)((int)(next_random(state) % 9) - 4);
    return values;
}

static product product_create(size_t m, size_t k, size_t n) {
    uint64_t state = (m * 1000 + k) * 1000 + n;
    product p = {.m = m, .k = k, .n = n, .a = whole_numbers(&state, m * k), .b = whole_numbers(&state, k * n)};
    p.a_t = transposed(m, k, p.a);
    p.b_t = transposed(k, n, p.b);
    p.expected = memory(m * n * sizeof *p.expected);
    for (size_t i = 0; i < m * n; i++) p.expected[i] = 0;
    for (size_t i = 0; i < m; i++)
        for (size_t l = 0; l < k; l++)
            for (size_t j = 0; j < n; j++)
                p.expected[i * n + j] += (double)p.a[i * k + l] * (double)p.b[l * n + j];
    return p;
}

static void product_release(product *p) {
    release(p->a, p->m * p->k);
    release(p->a_t, p->m * p->k);
    release(p->b, p->k * p->n);
    release(p->b_t, p->k * p->n);
    free(p->expected);
}

/* c must be the product, plus bias[j] and through the activation where there are such. Frees c. */
static void check_result(const char *name, const product *p, real *c, const real *bias, enum activation activation) {
    for (size_t i = 0; i < p->m * p->n; i++) {
        double expected = p->expected[i] + (bias != NULL ? (double)bias[i % p->n] : 0);
        if (activation == RELU && expected < 0) expected = 0;
        if (activation == LEAKY_RELU && expected < 0) expected = (double)((real)0.01 * (real)expected);
        if ((double)c[i] != expected) fprintf(stderr, "%s m=%zu k=%zu n=%zu i=%zu\n", name, p->m, p->k, p->n, i);
        CHECK((double)c[i] == expected, c[i], expected);
    }
    release(c, p->m * p->n);
}

typedef void (*loop_rung)(size_t m, size_t k, size_t n, const real *a, const real *b, real *c);
typedef int (*pool_rung)(pool *threads, size_t m, size_t k, size_t n, const real *a, const real *b, real *c);

static const struct {
    const char *name;
    loop_rung call;
} LOOP_RUNGS[] = {
    {"ijk", NAME(matmul_ijk)},
    {"ikj", NAME(matmul_ikj)},
    {"blocked", NAME(matmul_blocked)},
    {"restrict", NAME(matmul_restrict)},
};

static const struct {
    const char *name;
    pool_rung call;
    enum form form;
} POOL_RUNGS[] = {
    {"packed", NAME(matmul_packed), NN},
    {"nn", NAME(matmul_nn), NN},
    {"tn", NAME(matmul_tn), TN},
    {"nt", NAME(matmul_nt), NT},
};

static void check_loops(const product *p) {
    for (size_t r = 0; r < COUNT(LOOP_RUNGS); r++) {
        real *c = buffer(p->m * p->n);
        LOOP_RUNGS[r].call(p->m, p->k, p->n, p->a, p->b, c);
        check_result(LOOP_RUNGS[r].name, p, c, NULL, IDENTITY);
    }
}

static void check_pooled(pool *threads, const product *p) {
    for (size_t r = 0; r < COUNT(POOL_RUNGS); r++) {
        real *c = buffer(p->m * p->n);
        const real *a = POOL_RUNGS[r].form == TN ? p->a_t : p->a, *b = POOL_RUNGS[r].form == NT ? p->b_t : p->b;
        const int status = POOL_RUNGS[r].call(threads, p->m, p->k, p->n, a, b, c);
        CHECK(status == 0, status, 0);
        check_result(POOL_RUNGS[r].name, p, c, NULL, IDENTITY);
    }
}

/* What the epilogue adds to a tile: every activation it knows, with a bias and without. */
static void check_epilogues(pool *threads, const product *p) {
    uint64_t state = p->m + p->k + p->n;
    real *bias = whole_numbers(&state, p->n);
    const NAME(strided) a = {p->a, p->k, 1}, b = {p->b, p->n, 1};
    for (int activation = IDENTITY; activation <= LEAKY_RELU; activation++) {
        for (int with_bias = 0; with_bias < 2; with_bias++) {
            const NAME(epilogue) last = {with_bias ? bias : NULL, (enum activation)activation};
            real *c = buffer(p->m * p->n);
            const int status = NAME(matmul_any)(threads, p->m, p->k, p->n, a, b, c, last);
            CHECK(status == 0, status, 0);
            check_result("epilogue", p, c, last.bias, last.activation);
        }
    }
    release(bias, p->n);
}

static void check_all(pool *one, pool *several, size_t m, size_t k, size_t n) {
    product p = product_create(m, k, n);
    check_loops(&p);
    check_pooled(one, &p);
    check_pooled(several, &p);
    check_epilogues(one, &p);
    check_epilogues(several, &p);
    product_release(&p);
}

/* A NaN of one factor reaches every sum it is a term of, and no other: also not through the zeros that fill up a
   tile. An inf times 0 is NaN. */
static void test_not_a_number(pool *threads) {
    product p = product_create(19, 23, 29);
    p.a[4 * p.k + 22] = (real)NAN;
    p.a[18 * p.k] = (real)INFINITY;
    p.b[3] = 0;
    real *c = buffer(p.m * p.n);
    const int status = NAME(matmul_nn)(threads, p.m, p.k, p.n, p.a, p.b, c);
    CHECK(status == 0, status, 0);
    for (size_t i = 0; i < p.m; i++)
        for (size_t j = 0; j < p.n; j++) {
            const double got = (double)c[i * p.n + j], factor = (double)p.b[j];
            const int is_nan = i == 4 || (i == 18 && factor == 0);
            CHECK(isnan(got) == is_nan, got, is_nan);
            CHECK(i != 18 || is_nan || (isinf(got) && (got > 0) == (factor > 0)), got, factor);
        }
    release(c, p.m * p.n);
    product_release(&p);
}

typedef struct {
    pool *threads;
    product p;
} caller;

static void *call(void *argument) {
    const caller *self = argument;
    for (size_t round = 0; round < 3; round++) check_pooled(self->threads, &self->p);
    return NULL;
}

/* Several threads multiply at once on one pool. */
static void test_several_callers(pool *threads) {
    enum { CALLERS = 8 };
    caller callers[CALLERS];
    pthread_t ids[CALLERS];
    for (size_t i = 0; i < CALLERS; i++) {
        callers[i] = (caller){threads, product_create(40 + i, 50 + i, 60 + i)};
        const int status = pthread_create(&ids[i], NULL, call, &callers[i]);
        CHECK(status == 0, status, 0);
    }
    for (size_t i = 0; i < CALLERS; i++) {
        pthread_join(ids[i], NULL);
        product_release(&callers[i].p);
    }
}

int main(int argc, char **argv) {
    const int small = is_small(argc, argv);
    const size_t *near = small ? NEAR_SMALL : NEAR, nears = small ? COUNT(NEAR_SMALL) : COUNT(NEAR);
    const size_t(*far)[3] = small ? FAR_SMALL : FAR;
    const size_t fars = small ? COUNT(FAR_SMALL) : COUNT(FAR);
    pool *one = pool_create(1), *several = pool_create(3);
    CHECK(one != NULL && several != NULL, 0, 1);
    for (size_t i = 0; i < nears; i++)
        for (size_t j = 0; j < nears; j++)
            for (size_t l = 0; l < nears; l++) check_all(one, several, near[i], near[j], near[l]);
    for (size_t i = 0; i < fars; i++) check_all(one, several, far[i][0], far[i][1], far[i][2]);
    test_not_a_number(one);
    test_not_a_number(several);
    test_several_callers(several);
    pool_destroy(several);
    pool_destroy(one);
    return 0;
}
