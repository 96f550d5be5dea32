/* Activations against their definitions in double, and each derivative against the slope of the definition.

   The outputs hold NaN before the call and lie between guard zones; every function is also called in place. */

#include "check.h"

typedef void (*definition)(size_t columns, const double *z, double *output);

static void define_identity(size_t columns, const double *z, double *output) {
    for (size_t j = 0; j < columns; j++) output[j] = z[j];
}

static void define_relu(size_t columns, const double *z, double *output) {
    for (size_t j = 0; j < columns; j++) output[j] = fmax(z[j], 0);
}

static void define_leaky_relu(size_t columns, const double *z, double *output) {
    for (size_t j = 0; j < columns; j++) output[j] = fmax(z[j], 0) + 0.01 * fmin(z[j], 0);
}

static void define_sigmoid(size_t columns, const double *z, double *output) {
    for (size_t j = 0; j < columns; j++) output[j] = 1 / (1 + exp(-z[j]));
}

static void define_tanh(size_t columns, const double *z, double *output) {
    for (size_t j = 0; j < columns; j++) output[j] = tanh(z[j]);
}

static void define_softmax(size_t columns, const double *z, double *output) {
    double sum = 0;
    for (size_t j = 0; j < columns; j++) sum += exp(z[j]);
    for (size_t j = 0; j < columns; j++) output[j] = exp(z[j]) / sum;
}

static const struct {
    const char *name;
    definition define;
    NAME(activation_function) forward;
    NAME(activation_backward_function) backward;
} TABLE[ACTIVATIONS] = {
    [IDENTITY] = {"identity", define_identity, NAME(identity), NAME(identity_backward)},
    [RELU] = {"relu", define_relu, NAME(relu), NAME(relu_backward)},
    [LEAKY_RELU] = {"leaky_relu", define_leaky_relu, NAME(leaky_relu), NAME(leaky_relu_backward)},
    [SIGMOID] = {"sigmoid", define_sigmoid, NAME(sigmoid), NAME(sigmoid_backward)},
    [TANH] = {"tanh", define_tanh, NAME(tanh_activation), NAME(tanh_activation_backward)},
    [SOFTMAX] = {"softmax", define_softmax, NAME(softmax), NAME(softmax_backward)},
};

static void check_row(const char *name, size_t columns, const real *got, const double *expected, double units) {
    for (size_t j = 0; j < columns; j++) {
        const int close = close_to((double)got[j], expected[j], fabs(expected[j]), units);
        if (!close) fprintf(stderr, "%s of %zu, element %zu\n", name, columns, j);
        CHECK(close, got[j], expected[j]);
    }
}

/* d(sum of g * f(z)) / dz by central differences of the definition, for one row. */
static void slope_of(definition define, size_t columns, const double *z, const real *g, double *slope) {
    const double step = 1e-5;
    double *moved = memory(3 * columns * sizeof *moved), *above = moved + columns, *below = above + columns;
    memcpy(moved, z, columns * sizeof *moved);
    for (size_t j = 0; j < columns; j++) {
        moved[j] = z[j] + step;
        define(columns, moved, above);
        moved[j] = z[j] - step;
        define(columns, moved, below);
        moved[j] = z[j];
        slope[j] = 0;
        for (size_t i = 0; i < columns; i++) slope[j] += (double)g[i] * (above[i] - below[i]) / (2 * step);
    }
    free(moved);
}

static void check_values_and_slopes(enum activation which, size_t rows, size_t columns) {
    const size_t size = rows * columns;
    uint64_t state = rows * 100 + columns;
    real *z = random_buffer(&state, size, -3, 3), *g = random_buffer(&state, size, -2, 2);
    real *output = buffer(size), *grad = buffer(size);
    double *z_row = memory(3 * columns * sizeof *z_row), *values = z_row + columns, *slopes = values + columns;
    TABLE[which].forward(rows, columns, z, output);
    TABLE[which].backward(rows, columns, g, z, output, grad);
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < columns; j++) z_row[j] = (double)z[i * columns + j];
        TABLE[which].define(columns, z_row, values);
        slope_of(TABLE[which].define, columns, z_row, g + i * columns, slopes);
        check_row(TABLE[which].name, columns, output + i * columns, values, 16);
        /* Central differences are good to about 1e-9; so is this, with room, in double. */
        check_row(TABLE[which].name, columns, grad + i * columns, slopes, sizeof(real) == 4 ? 64 : 0x1p-26 / 0x1p-53);
    }

    real *in_place = buffer(size);
    memcpy(in_place, z, size * sizeof *z);
    TABLE[which].forward(rows, columns, in_place, in_place);
    CHECK(memcmp(in_place, output, size * sizeof *z) == 0, in_place[0], output[0]);
    memcpy(in_place, g, size * sizeof *g);
    TABLE[which].backward(rows, columns, in_place, z, output, in_place);
    CHECK(memcmp(in_place, grad, size * sizeof *g) == 0, in_place[0], grad[0]);

    release(in_place, size);
    release(grad, size);
    release(output, size);
    release(g, size);
    release(z, size);
    free(z_row);
}

/* Element 5 of 37 is `odd`: what forward makes of it, and of an ordinary neighbour. */
static double forward_of(enum activation which, double odd, double *neighbour) {
    real *z = buffer(37);
    for (size_t i = 0; i < 37; i++) z[i] = (real)0.5;
    z[5] = (real)odd;
    TABLE[which].forward(1, 37, z, z);
    const double result = (double)z[5];
    *neighbour = (double)z[6];
    release(z, 37);
    return result;
}

static void test_not_a_number_and_infinity(void) {
    double beside;
    for (int which = 0; which < ACTIVATIONS; which++) {
        const double passed = forward_of((enum activation)which, (double)NAN, &beside);
        CHECK(isnan(passed), passed, NAN);
        CHECK(isnan(beside) == (which == SOFTMAX), beside, which);
    }
    static const struct {
        enum activation which;
        double z, expected;
    } limits[] = {
        {RELU, INFINITY, INFINITY},  {RELU, -INFINITY, 0},    {LEAKY_RELU, -INFINITY, -INFINITY},
        {SIGMOID, INFINITY, 1},      {SIGMOID, -INFINITY, 0}, {SIGMOID, -1e4, 0},
        {TANH, INFINITY, 1},         {TANH, -INFINITY, -1},   {SOFTMAX, 1e4, 1},
        {SOFTMAX, INFINITY, NAN},    {SOFTMAX, -INFINITY, 0}, {SOFTMAX, -1e4, 0},
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        const double got = forward_of(limits[i].which, limits[i].z, &beside);
        CHECK(close_to(got, limits[i].expected, 1, 0), got, limits[i].expected);
    }
}

/* relu stops an infinite gradient where z is not positive, rather than multiplying it by 0; a NaN z lets it pass. */
static void test_relu_stops_infinite_gradients(void) {
    real z[] = {-1, 0, 1, (real)NAN}, g[] = {(real)INFINITY, (real)NAN, (real)INFINITY, 2}, grad[4];
    NAME(relu_backward)(2, 2, g, z, z, grad);
    CHECK(grad[0] == 0, grad[0], 0);
    CHECK(grad[1] == 0, grad[1], 0);
    CHECK(isinf(grad[2]), grad[2], INFINITY);
    CHECK(grad[3] == 2, grad[3], 2);
}

static void test_tables(void) {
    for (int which = 0; which < ACTIVATIONS; which++) {
        CHECK(NAME(activation_by_number)((enum activation)which) == TABLE[which].forward, which, which);
        CHECK(NAME(activation_backward_by_number)((enum activation)which) == TABLE[which].backward, which, which);
    }
}

int main(int argc, char **argv) {
    const size_t stride = is_small(argc, argv) ? 11 : 1;
    for (int which = 0; which < ACTIVATIONS; which++) {
        if (TABLE[which].name == NULL) fprintf(stderr, "TABLE has no row for number %d of enum activation\n", which);
        CHECK(TABLE[which].name != NULL, which, ACTIVATIONS);
        for (size_t rows = 1; rows <= 3; rows += 2)
            for (size_t columns = 1; columns <= 67; columns += stride)
                check_values_and_slopes((enum activation)which, rows, columns);
    }
    test_not_a_number_and_infinity();
    test_relu_stops_infinite_gradients();
    test_tables();
    return 0;
}
