/* Losses against their definitions in double, and each gradient against the slope of the definition. */

#include "check.h"

/* The plainest form of each: y is labels (rows,) as numbers, or targets (rows, columns). */
typedef double (*definition)(size_t rows, size_t columns, const double *z, const double *y);

static double define_mean_squared_error(size_t rows, size_t columns, const double *z, const double *y) {
    double total = 0;
    for (size_t i = 0; i < rows * columns; i++) total += pow(z[i] - y[i], 2);
    return total / (double)(rows * columns);
}

static double define_softmax_cross_entropy(size_t rows, size_t columns, const double *z, const double *y) {
    double total = 0;
    for (size_t i = 0; i < rows; i++, z += columns) {
        double sum = 0;
        for (size_t j = 0; j < columns; j++) sum += exp(z[j]);
        total -= log(exp(z[(size_t)y[i]]) / sum);
    }
    return total / (double)rows;
}

static double define_sigmoid_cross_entropy(size_t rows, size_t columns, const double *z, const double *y) {
    double total = 0;
    for (size_t i = 0; i < rows * columns; i++) {
        const double s = 1 / (1 + exp(-z[i]));
        total -= y[i] * log(s) + (1 - y[i]) * log(1 - s);
    }
    return total / (double)(rows * columns);
}

static double define_hinge(size_t rows, size_t columns, const double *z, const double *y) {
    double total = 0;
    for (size_t i = 0; i < rows; i++, z += columns)
        for (size_t j = 0; j < columns; j++)
            if (j != (size_t)y[i]) total += fmax(0, 1 - z[(size_t)y[i]] + z[j]);
    return total / (double)(rows * columns);
}

typedef double (*of_targets)(size_t rows, size_t columns, const real *z, const real *targets);
typedef double (*of_labels)(size_t rows, size_t columns, const real *z, const int64_t *labels);
typedef void (*backward_of_targets)(size_t rows, size_t columns, const real *z, const real *targets, real *grad);
typedef void (*backward_of_labels)(size_t rows, size_t columns, const real *z, const int64_t *labels, real *grad);

static const struct {
    const char *name;
    definition define;
    of_targets of_targets;
    backward_of_targets backward_of_targets;
    of_labels of_labels;
    backward_of_labels backward_of_labels;
} TABLE[LOSSES] = {
    [MEAN_SQUARED_ERROR] = {"mean_squared_error", define_mean_squared_error, NAME(mean_squared_error),
                            NAME(mean_squared_error_backward), NULL, NULL},
    [SOFTMAX_CROSS_ENTROPY] = {"softmax_cross_entropy", define_softmax_cross_entropy, NULL, NULL,
                               NAME(softmax_cross_entropy), NAME(softmax_cross_entropy_backward)},
    [SIGMOID_CROSS_ENTROPY] = {"sigmoid_cross_entropy", define_sigmoid_cross_entropy, NAME(sigmoid_cross_entropy),
                               NAME(sigmoid_cross_entropy_backward), NULL, NULL},
    [HINGE] = {"hinge", define_hinge, NULL, NULL, NAME(hinge), NAME(hinge_backward)},
};

typedef struct {
    size_t rows, columns;
    real *z, *targets; /* (rows, columns) */
    int64_t *labels;   /* (rows,) */
} batch;

/* Targets between 0 and 1, labels of every class in turn. */
static batch batch_create(size_t rows, size_t columns) {
    uint64_t state = rows * 100 + columns;
    batch b = {.rows = rows, .columns = columns};
    b.z = random_buffer(&state, rows * columns, -3, 3);
    b.targets = random_buffer(&state, rows * columns, 0, 1);
    b.labels = memory(rows * sizeof *b.labels);
    for (size_t i = 0; i < rows; i++) b.labels[i] = (int64_t)((i * 5 + columns - 1) % columns);
    return b;
}

static void batch_release(batch *b) {
    release(b->z, b->rows * b->columns);
    release(b->targets, b->rows * b->columns);
    free(b->labels);
}

static double loss_of(enum loss which, const batch *b) {
    if (TABLE[which].of_labels != NULL) return TABLE[which].of_labels(b->rows, b->columns, b->z, b->labels);
    return TABLE[which].of_targets(b->rows, b->columns, b->z, b->targets);
}

static void gradient_of(enum loss which, const batch *b, real *grad) {
    if (TABLE[which].of_labels != NULL) {
        TABLE[which].backward_of_labels(b->rows, b->columns, b->z, b->labels, grad);
    } else {
        TABLE[which].backward_of_targets(b->rows, b->columns, b->z, b->targets, grad);
    }
}

/* Gradients are of the order of 1 / (rows * columns), so they are compared times that. */
static void check_gradient(enum loss which, const batch *b, const real *grad, const double *expected, double units) {
    const double elements = (double)(b->rows * b->columns);
    for (size_t i = 0; i < b->rows * b->columns; i++) {
        const double scaled = expected[i] * elements;
        const int close = close_to((double)grad[i] * elements, scaled, fabs(scaled), units);
        if (!close) fprintf(stderr, "%s (%zu, %zu), element %zu\n", TABLE[which].name, b->rows, b->columns, i);
        CHECK(close, grad[i], expected[i]);
    }
}

static void check_values_and_slopes(enum loss which, size_t rows, size_t columns) {
    const size_t size = rows * columns;
    const double step = 1e-6;
    batch b = batch_create(rows, columns);
    double *z = memory(3 * size * sizeof *z), *y = z + size, *slopes = y + size;
    for (size_t i = 0; i < size; i++) {
        z[i] = (double)b.z[i];
        y[i] = (double)b.targets[i];
    }
    if (TABLE[which].of_labels != NULL)
        for (size_t i = 0; i < rows; i++) y[i] = (double)b.labels[i];
    const double expected = TABLE[which].define(rows, columns, z, y);
    const double got = loss_of(which, &b);
    CHECK(close_to(got, expected, expected, 32), got, expected);

    for (size_t i = 0; i < size; i++) {
        const double here = z[i];
        z[i] = here + step;
        const double above = TABLE[which].define(rows, columns, z, y);
        z[i] = here - step;
        slopes[i] = (above - TABLE[which].define(rows, columns, z, y)) / (2 * step);
        z[i] = here;
    }
    real *grad = buffer(size);
    gradient_of(which, &b, grad);
    /* Central differences are good to about 1e-9, times the elements 1e-7: in double that limits the check. */
    check_gradient(which, &b, grad, slopes, sizeof(real) == 4 ? 64 : 1e-6 / 0x1p-53);

    real *together = buffer(size);
    const void *y_of = TABLE[which].of_labels != NULL ? (const void *)b.labels : (const void *)b.targets;
    const double loss = NAME(loss_by_number)(which, rows, columns, b.z, y_of, together);
    CHECK(close_to(loss, got, got, 4), loss, got);
    for (size_t i = 0; i < size; i++) slopes[i] = (double)grad[i];
    check_gradient(which, &b, together, slopes, (double)columns + 8);

    release(together, size);
    release(grad, size);
    batch_release(&b);
    free(z);
}

/* One odd number among the logits or scores of (3, 7), at the label of row 1 or beside it. */
static double loss_with(enum loss which, double odd, int at_label, int *finite_gradient) {
    batch b = batch_create(3, 7);
    b.z[7 + ((size_t)b.labels[1] + (at_label ? 0 : 1)) % 7] = (real)odd;
    real *grad = buffer(21);
    const double loss = loss_of(which, &b);
    gradient_of(which, &b, grad);
    *finite_gradient = 1;
    for (size_t i = 0; i < 21; i++) *finite_gradient &= isfinite((double)grad[i]) != 0;
    const double fused = NAME(loss_by_number)(
        which, 3, 7, b.z, TABLE[which].of_labels != NULL ? (const void *)b.labels : (const void *)b.targets, grad);
    CHECK(isnan(fused) == isnan(loss), fused, loss);
    release(grad, 21);
    batch_release(&b);
    return loss;
}

static void test_odd_numbers(void) {
    int finite_gradient;
    for (int which = 0; which < LOSSES; which++) {
        for (int at_label = 0; at_label < 2; at_label++) {
            for (double sign = -1; sign <= 1; sign += 2) {
                const double large = loss_with((enum loss)which, sign * 1e4, at_label, &finite_gradient);
                CHECK(isfinite(large) && large >= 0, large, 0);
                CHECK(finite_gradient, which, which);
            }
            const double passed = loss_with((enum loss)which, (double)NAN, at_label, &finite_gradient);
            CHECK(isnan(passed), passed, NAN);
        }
    }
    const double infinite = loss_with(SOFTMAX_CROSS_ENTROPY, INFINITY, 0, &finite_gradient);
    CHECK(isnan(infinite), infinite, NAN); /* inf - inf */
    const double never = loss_with(SOFTMAX_CROSS_ENTROPY, -INFINITY, 0, &finite_gradient);
    CHECK(isfinite(never), never, 0);
    const double certain = loss_with(SOFTMAX_CROSS_ENTROPY, -INFINITY, 1, &finite_gradient);
    CHECK(isinf(certain) && certain > 0, certain, INFINITY);
}

/* A float loss of 2^25 equal terms cannot be added up in float: it would stop at 2^24. */
static void test_terms_are_added_in_double(size_t rows) {
    real *z = buffer(rows), *y = buffer(rows);
    for (size_t i = 0; i < rows; i++) {
        z[i] = 1;
        y[i] = 0;
    }
    const double loss = NAME(mean_squared_error)(rows, 1, z, y);
    CHECK(loss == 1, loss, 1);
    release(z, rows);
    release(y, rows);
}

static void test_first_bad_label(size_t rows) {
    static const int64_t bad[] = {-1, 7, 8, INT64_MIN, INT64_MAX, (int64_t)1 << 32, -((int64_t)1 << 32)};
    int64_t *labels = memory(rows * sizeof *labels);
    for (size_t i = 0; i < rows; i++) labels[i] = (int64_t)(i % 7);
    const size_t none = NAME(first_bad_label)(rows, 7, labels);
    CHECK(none == rows, none, rows);
    for (size_t i = 0; i < rows; i++) {
        labels[i] = bad[i % (sizeof bad / sizeof *bad)];
        const size_t found = NAME(first_bad_label)(rows, 7, labels);
        CHECK(found == i, found, i);
        if (i > 0) {
            const int64_t kept = labels[0];
            labels[0] = -1; /* the first of two */
            const size_t first = NAME(first_bad_label)(rows, 7, labels);
            CHECK(first == 0, first, 0);
            labels[0] = kept;
        }
        labels[i] = 6;
    }
    free(labels);
}

int main(int argc, char **argv) {
    const int small = is_small(argc, argv);
    for (int which = 0; which < LOSSES; which++)
        for (size_t rows = 1; rows <= 3; rows++)
            for (size_t columns = 1; columns <= 67; columns += small ? 11 : 1)
                check_values_and_slopes((enum loss)which, rows, columns);
    test_odd_numbers();
    test_terms_are_added_in_double(small ? 1000 : (size_t)1 << 25);
    for (size_t rows = 1; rows <= 67; rows += small ? 22 : 1) test_first_bad_label(rows);
    return 0;
}
