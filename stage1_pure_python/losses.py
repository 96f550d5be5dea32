"""Losses: the error of the network as one number, and the gradient of that number.

Every loss stands beside its gradient with respect to its first argument, which is where
backpropagation starts. Losses that work on logits (the network's raw outputs) include the softmax or
the sigmoid, because together they can be written without a logarithm of a number that has rounded to 0.
"""

import math
from collections.abc import Sequence

from .activations import sigmoid_of, softmax
from .arrays import Matrix, check_labels, check_same_shape, matrix_shape


def mean_squared_error(outputs: Matrix, targets: Matrix) -> float:
    """The mean over all elements of (output - target)². Same as torch.nn.functional.mse_loss.

    outputs, targets: (batch, features)
    """
    rows, columns = check_same_shape("mean_squared_error", outputs=outputs, targets=targets)
    total = 0.0
    for o_row, t_row in zip(outputs, targets, strict=True):
        for o, t in zip(o_row, t_row, strict=True):
            total += (o - t) * (o - t)
    return total / (rows * columns)


def mean_squared_error_backward(outputs: Matrix, targets: Matrix) -> Matrix:
    """2 (output - target) / elements."""
    rows, columns = check_same_shape("mean_squared_error_backward", outputs=outputs, targets=targets)
    scale = 2.0 / (rows * columns)
    return [
        [scale * (o - t) for o, t in zip(o_row, t_row, strict=True)]
        for o_row, t_row in zip(outputs, targets, strict=True)
    ]


def softmax_cross_entropy(logits: Matrix, labels: Sequence[int]) -> float:
    """The mean over the batch of -log(softmax(logits)[label]). Same as torch.nn.functional.cross_entropy.

    logits: (batch, classes); labels: (batch,), whole numbers from 0 to classes - 1
    -log(exp(z_y) / sum exp(z)) = log(sum exp(z - m)) - (z_y - m) with m the largest z: finite for any finite z.
    """
    rows, classes = matrix_shape("softmax_cross_entropy: logits", logits)
    labels = check_labels("softmax_cross_entropy", labels, rows, classes)
    total = 0.0
    for row, label in zip(logits, labels, strict=True):
        largest = max(row)
        total += math.log(sum(math.exp(v - largest) for v in row)) - (row[label] - largest)
    return total / rows


def softmax_cross_entropy_backward(logits: Matrix, labels: Sequence[int]) -> Matrix:
    """(softmax(logits) - one_hot(labels)) / batch: what was predicted minus what should have been."""
    rows, classes = matrix_shape("softmax_cross_entropy_backward: logits", logits)
    labels = check_labels("softmax_cross_entropy_backward", labels, rows, classes)
    grad = softmax(logits)
    for row, label in zip(grad, labels, strict=True):
        row[label] -= 1.0
    return [[g / rows for g in row] for row in grad]


def sigmoid_cross_entropy(logits: Matrix, targets: Matrix) -> float:
    """The mean over all elements of -t log(s) - (1 - t) log(1 - s), s = sigmoid(z).

    logits, targets: (batch, outputs), targets between 0 and 1.
    Same as torch.nn.functional.binary_cross_entropy_with_logits. Written as
    max(z, 0) - z t + log(1 + exp(-|z|)), which is the same and finite for any finite z.
    """
    rows, columns = check_same_shape("sigmoid_cross_entropy", logits=logits, targets=targets)
    total = 0.0
    for z_row, t_row in zip(logits, targets, strict=True):
        for z, t in zip(z_row, t_row, strict=True):
            total += (0.0 if z <= 0.0 else z) - z * t + math.log1p(math.exp(-abs(z)))
    return total / (rows * columns)


def sigmoid_cross_entropy_backward(logits: Matrix, targets: Matrix) -> Matrix:
    """(sigmoid(z) - t) / elements."""
    rows, columns = check_same_shape("sigmoid_cross_entropy_backward", logits=logits, targets=targets)
    elements = rows * columns
    return [
        [(sigmoid_of(z) - t) / elements for z, t in zip(z_row, t_row, strict=True)]
        for z_row, t_row in zip(logits, targets, strict=True)
    ]


def hinge(scores: Matrix, labels: Sequence[int]) -> float:
    """The mean over the batch of (sum over wrong classes j of max(0, 1 - s_y + s_j)) / classes.

    scores: (batch, classes); labels: (batch,). A wrong class costs nothing once the right one leads by 1.
    Same as torch.nn.functional.multi_margin_loss with p=1 and margin=1, except that a NaN score gives a NaN loss.
    """
    rows, classes = matrix_shape("hinge: scores", scores)
    labels = check_labels("hinge", labels, rows, classes)
    total = 0.0
    for row, label in zip(scores, labels, strict=True):
        for j, score in enumerate(row):
            margin = 1.0 - row[label] + score
            if j != label and not margin <= 0.0:
                total += margin
    return total / (rows * classes)


def hinge_backward(scores: Matrix, labels: Sequence[int]) -> Matrix:
    """+1 for every wrong class within the margin, minus their number for the right one; over batch * classes.

    scores: (batch, classes); labels: (batch,); the result is shaped like scores
    """
    rows, classes = matrix_shape("hinge_backward: scores", scores)
    labels = check_labels("hinge_backward", labels, rows, classes)
    scale = 1.0 / (rows * classes)
    grad = []
    for row, label in zip(scores, labels, strict=True):
        active = [j != label and 1.0 - row[label] + score > 0.0 for j, score in enumerate(row)]
        grad_row = [scale if inside else 0.0 for inside in active]
        grad_row[label] = -scale * sum(active)
        grad.append(grad_row)
    return grad
