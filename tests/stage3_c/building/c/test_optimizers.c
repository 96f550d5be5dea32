/* Optimizers against their definitions, one parameter at a time in double, over several steps. */

#include "check.h"

enum { STEPS = 5 };

typedef struct {
    double learning_rate, momentum, alpha, beta1, beta2, epsilon, weight_decay;
    int nesterov;
} settings;

static const settings DEFAULTS = {0.05, 0, 0.9, 0.9, 0.999, 1e-8, 0, 0};

/* One parameter and what is remembered for it: velocity or square average, first and second moment. */
typedef struct {
    double p, first, second;
} parameter;

static void define_sgd(parameter *it, double gradient, const settings *s, int t) {
    (void)t;
    const double g = gradient + s->weight_decay * it->p;
    it->first = s->momentum * it->first + g;
    it->p -= s->learning_rate * (s->nesterov ? g + s->momentum * it->first : it->first);
}

static void define_rmsprop(parameter *it, double gradient, const settings *s, int t) {
    (void)t;
    const double g = gradient + s->weight_decay * it->p;
    it->first = s->alpha * it->first + (1 - s->alpha) * g * g;
    it->p -= s->learning_rate * g / (sqrt(it->first) + s->epsilon);
}

static void define_adam(parameter *it, double gradient, const settings *s, int t) {
    const double g = gradient + s->weight_decay * it->p;
    it->first = s->beta1 * it->first + (1 - s->beta1) * g;
    it->second = s->beta2 * it->second + (1 - s->beta2) * g * g;
    const double m = it->first / (1 - pow(s->beta1, t)), v = it->second / (1 - pow(s->beta2, t));
    it->p -= s->learning_rate * m / (sqrt(v) + s->epsilon);
}

/* SGD without momentum gets no velocity: NULL, which must not be read. */
static void step_sgd(size_t size, real *p, const real *g, real *first, real *second, const settings *s, int t) {
    (void)second;
    (void)t;
    NAME(sgd)(size, p, g, s->momentum == 0 ? NULL : first, s->learning_rate, s->momentum, s->nesterov,
              s->weight_decay);
}

static void step_rmsprop(size_t size, real *p, const real *g, real *first, real *second, const settings *s, int t) {
    (void)second;
    (void)t;
    NAME(rmsprop)(size, p, g, first, s->learning_rate, s->alpha, s->epsilon, s->weight_decay);
}

static void step_adam(size_t size, real *p, const real *g, real *first, real *second, const settings *s, int t) {
    NAME(adam)(size, p, g, first, second, s->learning_rate / (1 - pow(s->beta1, t)), s->beta1, s->beta2,
               sqrt(1 - pow(s->beta2, t)), s->epsilon, s->weight_decay);
}

static const struct {
    const char *name;
    void (*define)(parameter *it, double gradient, const settings *s, int t);
    void (*step)(size_t size, real *p, const real *g, real *first, real *second, const settings *s, int t);
} TABLE[OPTIMIZERS] = {
    [SGD] = {"sgd", define_sgd, step_sgd},
    [RMSPROP] = {"rmsprop", define_rmsprop, step_rmsprop},
    [ADAM] = {"adam", define_adam, step_adam},
};

static real *zeros(size_t size) {
    real *values = buffer(size);
    for (size_t i = 0; i < size; i++) values[i] = 0;
    return values;
}

static void check_steps(enum optimizer which, size_t size, settings s) {
    uint64_t state = size;
    real *p = random_buffer(&state, size, -1, 1), *first = zeros(size), *second = zeros(size);
    parameter *expected = memory(size * sizeof *expected);
    for (size_t i = 0; i < size; i++) expected[i] = (parameter){(double)p[i], 0, 0};
    for (int t = 1; t <= STEPS; t++) {
        real *g = random_buffer(&state, size, -1, 1);
        TABLE[which].step(size, p, g, first, second, &s, t);
        for (size_t i = 0; i < size; i++) TABLE[which].define(&expected[i], (double)g[i], &s, t);
        release(g, size);
    }
    for (size_t i = 0; i < size; i++) {
        const int close = close_to((double)p[i], expected[i].p, 1, 64);
        if (!close) fprintf(stderr, "%s of %zu, element %zu\n", TABLE[which].name, size, i);
        CHECK(close, p[i], expected[i].p);
        if (which != SGD || s.momentum != 0)
            CHECK(close_to((double)first[i], expected[i].first, 1, 32), first[i], expected[i].first);
        if (which == ADAM)
            CHECK(close_to((double)second[i], expected[i].second, 1, 32), second[i], expected[i].second);
    }
    release(p, size);
    release(first, size);
    release(second, size);
    free(expected);
}

static void check_settings(size_t size) {
    for (int which = 0; which < OPTIMIZERS; which++) {
        for (int decay = 0; decay < 2; decay++) {
            settings s = DEFAULTS;
            s.weight_decay = decay ? 0.1 : 0;
            check_steps((enum optimizer)which, size, s);
            if (which == SGD) {
                s.momentum = 0.9;
                check_steps(SGD, size, s);
                s.nesterov = 1;
                check_steps(SGD, size, s);
            }
        }
    }
}

/* Without decay p takes no part in the gradient: 0 times inf would be NaN. A NaN gradient changes its own p only. */
static void test_not_a_number_and_infinity(void) {
    for (int which = 0; which < OPTIMIZERS; which++) {
        real *p = zeros(19), *g = zeros(19), *first = zeros(19), *second = zeros(19);
        p[3] = (real)INFINITY;
        g[7] = (real)NAN;
        TABLE[which].step(19, p, g, first, second, &DEFAULTS, 1);
        for (size_t i = 0; i < 19; i++) {
            const double expected = i == 3 ? INFINITY : i == 7 ? (double)NAN : 0;
            CHECK(close_to((double)p[i], expected, 1, 0), p[i], expected);
        }
        release(p, 19);
        release(g, 19);
        release(first, 19);
        release(second, 19);
    }
}

int main(int argc, char **argv) {
    for (size_t size = 1; size <= 67; size += is_small(argc, argv) ? 11 : 1) check_settings(size);
    test_not_a_number_and_infinity();
    return 0;
}
