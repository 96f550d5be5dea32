/* Activations: functions of y = xW + b that are no straight lines. Without them a stack of layers equals one layer.

   Every function stands beside its derivative; all take (rows, columns) matrices. z is what came in, output what the
   forward pass returned, grad_output is dL/doutput; each backward writes dL/dz. Comparisons are written so that NaN
   fails them and passes on, as it does in PyTorch.

   Except for softmax a matrix is only rows * columns numbers in a line, and the loops are plain enough for the
   compiler to work on a register full of them at a time. The exponentials it cannot: expf is a call for every
   element. */

#include <math.h>

#include "groundup.h"

/* z itself. Same as torch.nn.Identity. */
void NAME(identity)(size_t rows, size_t columns, const real *z, real *output) {
    for (size_t i = 0; i < rows * columns; i++) output[i] = z[i];
}

/* The slope is 1 everywhere: the gradient passes. */
void NAME(identity_backward)(size_t rows, size_t columns, const real *grad_output, const real *z, const real *output,
                             real *grad_z) {
    (void)z;
    (void)output;
    for (size_t i = 0; i < rows * columns; i++) grad_z[i] = grad_output[i];
}

/* max(0, z). Same as torch.nn.functional.relu. */
void NAME(relu)(size_t rows, size_t columns, const real *z, real *output) {
    for (size_t i = 0; i < rows * columns; i++) output[i] = z[i] <= 0 ? 0 : z[i];
}

/* The gradient passes where z was positive and stops where it was not (0 at z = 0). Not a product with 0 and 1: an
   infinite gradient times 0 would be NaN. */
void NAME(relu_backward)(size_t rows, size_t columns, const real *grad_output, const real *z, const real *output,
                         real *grad_z) {
    (void)output;
    for (size_t i = 0; i < rows * columns; i++) grad_z[i] = z[i] <= 0 ? 0 : grad_output[i];
}

/* z where it is positive, 0.01 z where it is not. Same as torch.nn.functional.leaky_relu. */
void NAME(leaky_relu)(size_t rows, size_t columns, const real *z, real *output) {
    for (size_t i = 0; i < rows * columns; i++) output[i] = z[i] > 0 ? z[i] : (real)LEAKY_SLOPE * z[i];
}

/* Slope 1 where z was positive, 0.01 elsewhere (also at z = 0). */
void NAME(leaky_relu_backward)(size_t rows, size_t columns, const real *grad_output, const real *z,
                               const real *output, real *grad_z) {
    (void)output;
    for (size_t i = 0; i < rows * columns; i++)
        grad_z[i] = z[i] > 0 ? grad_output[i] : (real)LEAKY_SLOPE * grad_output[i];
}

/* 1 / (1 + exp(-z)), between 0 and 1. Same as torch.sigmoid. Far below 0, exp(-z) is inf and 1 / (1 + inf) is 0,
   which is right. */
void NAME(sigmoid)(size_t rows, size_t columns, const real *z, real *output) {
    for (size_t i = 0; i < rows * columns; i++) output[i] = 1 / (1 + REAL_FUNCTION(exp)(-z[i]));
}

/* The slope is s (1 - s), s being the output: largest at z = 0, nothing far out. */
void NAME(sigmoid_backward)(size_t rows, size_t columns, const real *grad_output, const real *z, const real *output,
                            real *grad_z) {
    (void)z;
    for (size_t i = 0; i < rows * columns; i++) grad_z[i] = grad_output[i] * ((1 - output[i]) * output[i]);
}

/* The hyperbolic tangent, between -1 and 1. Same as torch.tanh. */
void NAME(tanh_activation)(size_t rows, size_t columns, const real *z, real *output) {
    for (size_t i = 0; i < rows * columns; i++) output[i] = REAL_FUNCTION(tanh)(z[i]);
}

/* The slope is 1 - t², t being the output. */
void NAME(tanh_activation_backward)(size_t rows, size_t columns, const real *grad_output, const real *z,
                                    const real *output, real *grad_z) {
    (void)z;
    for (size_t i = 0; i < rows * columns; i++) grad_z[i] = grad_output[i] * (1 - output[i] * output[i]);
}

/* exp(z) / sum of exp(z) over each row: positive, adding up to 1. Same as torch.softmax(z, dim=1).
   Subtracting the row's maximum changes nothing (it cancels) and keeps exp from overflowing. The maximum may pass
   over a NaN, but the sum cannot: one NaN makes its whole row NaN. */
void NAME(softmax)(size_t rows, size_t columns, const real *z, real *output) {
    for (size_t i = 0; i < rows; i++, z += columns, output += columns) {
        real largest = z[0];
        for (size_t j = 1; j < columns; j++) largest = z[j] > largest ? z[j] : largest;
        real sum = 0;
        for (size_t j = 0; j < columns; j++) {
            output[j] = REAL_FUNCTION(exp)(z[j] - largest);
            sum += output[j];
        }
        for (size_t j = 0; j < columns; j++) output[j] /= sum;
    }
}

/* dL/dz_i = s_i (g_i - sum over j of g_j s_j): each output of a row depends on every z of the row. */
void NAME(softmax_backward)(size_t rows, size_t columns, const real *grad_output, const real *z, const real *output,
                            real *grad_z) {
    (void)z;
    for (size_t i = 0; i < rows; i++, grad_output += columns, output += columns, grad_z += columns) {
        real weighted = 0;
        for (size_t j = 0; j < columns; j++) weighted += grad_output[j] * output[j];
        for (size_t j = 0; j < columns; j++) grad_z[j] = (grad_output[j] - weighted) * output[j];
    }
}

/* The function that stands for a number of `enum activation`. */
NAME(activation_function) NAME(activation_by_number)(enum activation which) {
    static const NAME(activation_function) functions[ACTIVATIONS] = {
        [IDENTITY] = NAME(identity), [RELU] = NAME(relu),            [LEAKY_RELU] = NAME(leaky_relu),
        [SIGMOID] = NAME(sigmoid),   [TANH] = NAME(tanh_activation), [SOFTMAX] = NAME(softmax),
    };
    return functions[which];
}

/* The derivative that stands for a number of `enum activation`. */
NAME(activation_backward_function) NAME(activation_backward_by_number)(enum activation which) {
    static const NAME(activation_backward_function) functions[ACTIVATIONS] = {
        [IDENTITY] = NAME(identity_backward),     [RELU] = NAME(relu_backward),
        [LEAKY_RELU] = NAME(leaky_relu_backward), [SIGMOID] = NAME(sigmoid_backward),
        [TANH] = NAME(tanh_activation_backward),  [SOFTMAX] = NAME(softmax_backward),
    };
    return functions[which];
}
