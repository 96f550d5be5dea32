/* Losses: the error of the network as one number, and the gradient of that number.

   Every loss stands beside its gradient with respect to its first argument, which is where backpropagation starts.
   Losses that work on logits (the network's raw outputs) include the softmax or the sigmoid, because together they
   can be written without a logarithm of something that has rounded to 0.

   The terms are `real`, like everything else; they are added up in double, so that a float loss does not depend on
   the batch size. All matrices are (rows, columns); labels are (rows,), each from 0 to columns - 1. */

#include <math.h>

#include "groundup.h"

/* The mean over all elements of (output - target)². Same as torch.nn.functional.mse_loss. */
double NAME(mean_squared_error)(size_t rows, size_t columns, const real *outputs, const real *targets) {
    double total = 0;
    for (size_t i = 0; i < rows * columns; i++) {
        const real difference = outputs[i] - targets[i];
        total += (double)(difference * difference);
    }
    return total / (double)(rows * columns);
}

/* 2 (output - target) / elements. */
void NAME(mean_squared_error_backward)(size_t rows, size_t columns, const real *outputs, const real *targets,
                                       real *restrict grad) {
    const real scale = (real)(2.0 / (double)(rows * columns));
    for (size_t i = 0; i < rows * columns; i++) grad[i] = (outputs[i] - targets[i]) * scale;
}

/* The largest of a row (columns,): what softmax subtracts so that exp cannot overflow. It may pass over a NaN, but
   the sum of exponentials that follows cannot. */
static real largest_of(size_t columns, const real *row) {
    real largest = row[0];
    for (size_t j = 1; j < columns; j++) largest = row[j] > largest ? row[j] : largest;
    return largest;
}

/* The mean over the batch of -log(softmax(logits)[label]). Same as torch.nn.functional.cross_entropy.
   -log(exp(z_y) / sum exp(z)) = log(sum exp(z - m)) - (z_y - m) with m the largest z: finite for any finite z. */
double NAME(softmax_cross_entropy)(size_t rows, size_t columns, const real *logits, const int64_t *labels) {
    double total = 0;
    for (size_t i = 0; i < rows; i++, logits += columns) {
        const real largest = largest_of(columns, logits);
        real sum = 0;
        for (size_t j = 0; j < columns; j++) sum += REAL_FUNCTION(exp)(logits[j] - largest);
        total += (double)(REAL_FUNCTION(log)(sum) - (logits[labels[i]] - largest));
    }
    return total / (double)rows;
}

/* (softmax(logits) - one_hot(labels)) / batch: what was predicted minus what should have been. */
void NAME(softmax_cross_entropy_backward)(size_t rows, size_t columns, const real *logits, const int64_t *labels,
                                          real *grad) {
    NAME(softmax)(rows, columns, logits, grad);
    for (size_t i = 0; i < rows; i++, grad += columns) {
        grad[labels[i]] -= 1;
        for (size_t j = 0; j < columns; j++) grad[j] /= (real)rows;
    }
}

/* The two above in one: the exponentials, which are most of the work, are computed once, and grad holds them until
   the row's sum is known. Returns the loss. */
double NAME(softmax_cross_entropy_fused)(size_t rows, size_t columns, const real *logits, const int64_t *labels,
                                         real *restrict grad) {
    double total = 0;
    for (size_t i = 0; i < rows; i++, logits += columns, grad += columns) {
        const real largest = largest_of(columns, logits);
        real sum = 0;
        for (size_t j = 0; j < columns; j++) {
            grad[j] = REAL_FUNCTION(exp)(logits[j] - largest);
            sum += grad[j];
        }
        total += (double)(REAL_FUNCTION(log)(sum) - (logits[labels[i]] - largest));
        grad[labels[i]] -= sum; /* e / sum - 1 = (e - sum) / sum */
        for (size_t j = 0; j < columns; j++) grad[j] = grad[j] / sum / (real)rows;
    }
    return total / (double)rows;
}

/* The mean over all elements of -t log(s) - (1 - t) log(1 - s), s = sigmoid(z), targets t between 0 and 1.
   Same as torch.nn.functional.binary_cross_entropy_with_logits. Written as max(z, 0) - z t + log(1 + exp(-|z|)),
   which is the same and finite for any finite z. */
double NAME(sigmoid_cross_entropy)(size_t rows, size_t columns, const real *logits, const real *targets) {
    double total = 0;
    for (size_t i = 0; i < rows * columns; i++) {
        const real z = logits[i];
        const real positive_part = z <= 0 ? 0 : z;
        const real rest = REAL_FUNCTION(log1p)(REAL_FUNCTION(exp)(-REAL_FUNCTION(fabs)(z)));
        total += (double)(positive_part - z * targets[i] + rest);
    }
    return total / (double)(rows * columns);
}

/* (sigmoid(z) - t) / elements. */
void NAME(sigmoid_cross_entropy_backward)(size_t rows, size_t columns, const real *logits, const real *targets,
                                          real *restrict grad) {
    const real elements = (real)(rows * columns);
    NAME(sigmoid)(rows, columns, logits, grad);
    for (size_t i = 0; i < rows * columns; i++) grad[i] = (grad[i] - targets[i]) / elements;
}

/* The mean over the batch of (sum over wrong classes j of max(0, 1 - s_y + s_j)) / classes. A wrong class costs
   nothing once the right one leads by 1. Same as torch.nn.functional.multi_margin_loss with p=1 and margin=1, except
   that a NaN score gives a NaN loss. */
double NAME(hinge)(size_t rows, size_t columns, const real *scores, const int64_t *labels) {
    double total = 0;
    for (size_t i = 0; i < rows; i++, scores += columns) {
        const size_t label = (size_t)labels[i];
        const real base = 1 - scores[label];
        for (size_t j = 0; j < columns; j++) {
            const real margin = base + scores[j];
            if (j != label && !(margin <= 0)) /* not "margin > 0", which would drop a NaN */
                total += (double)margin;
        }
    }
    return total / (double)(rows * columns);
}

/* +1 for every wrong class within the margin, minus their number for the right one; over batch * classes. */
void NAME(hinge_backward)(size_t rows, size_t columns, const real *scores, const int64_t *labels,
                          real *restrict grad) {
    const real elements = (real)(rows * columns);
    for (size_t i = 0; i < rows; i++, scores += columns, grad += columns) {
        const size_t label = (size_t)labels[i];
        const real base = 1 - scores[label];
        size_t active = 0;
        for (size_t j = 0; j < columns; j++) {
            const int costs = j != label && base + scores[j] > 0;
            active += (size_t)costs;
            grad[j] = (real)costs / elements;
        }
        grad[label] = -(real)active / elements;
    }
}

/* Any loss and its gradient (rows, columns), by its number. y is labels (rows,) or targets (rows, columns), as the
   loss takes them. Returns the loss, NaN for a number that stands for none. */
double NAME(loss_by_number)(enum loss which, size_t rows, size_t columns, const real *outputs, const void *y,
                            real *grad) {
    switch (which) {
    case MEAN_SQUARED_ERROR:
        NAME(mean_squared_error_backward)(rows, columns, outputs, y, grad);
        return NAME(mean_squared_error)(rows, columns, outputs, y);
    case SOFTMAX_CROSS_ENTROPY:
        return NAME(softmax_cross_entropy_fused)(rows, columns, outputs, y, grad);
    case SIGMOID_CROSS_ENTROPY:
        NAME(sigmoid_cross_entropy_backward)(rows, columns, outputs, y, grad);
        return NAME(sigmoid_cross_entropy)(rows, columns, outputs, y);
    case HINGE:
        NAME(hinge_backward)(rows, columns, outputs, y, grad);
        return NAME(hinge)(rows, columns, outputs, y);
    case LOSSES:
        break;
    }
    return (double)NAN;
}

/* The first row whose label is not in 0 … columns - 1, or rows where all are. Without its sign a negative label is a
   huge number, so one comparison finds both. */
size_t NAME(first_bad_label)(size_t rows, size_t columns, const int64_t *labels) {
    size_t row = 0;
    while (row < rows && (uint64_t)labels[row] < columns) row++;
    return row;
}
