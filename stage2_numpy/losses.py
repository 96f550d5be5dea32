"""Losses: the error of the network as one number, and the gradient of that number.

Every loss stands beside its gradient with respect to its first argument, which is where
backpropagation starts. Losses that work on logits (the network's raw outputs) include the softmax or
the sigmoid, because together they can be written without a logarithm of a number that has rounded to 0.

The values are added up in float64 whatever the dtype, so that a float32 loss does not depend on the batch size.
`out=` and `scratch=` are as in activations.py.
"""

from typing import Any

import numpy as np

from shared.plain_arrays import as_labels

from .activations import sigmoid, softmax
from .arrays import Array, Scratch, as_matrix, as_same_shape, borrow, ieee, output_like


@ieee
def mean_squared_error(outputs: Array, targets: Array, scratch: Scratch | None = None) -> float:
    """The mean over all elements of (output - target)². Same as torch.nn.functional.mse_loss.

    outputs, targets: (batch, features)
    """
    outputs, targets = as_same_shape("mean_squared_error", outputs=outputs, targets=targets)
    difference = np.subtract(outputs, targets, out=borrow(scratch, "loss", outputs.shape, outputs.dtype))
    return _mean(np.multiply(difference, difference, out=difference))


@ieee
def mean_squared_error_backward(
    outputs: Array, targets: Array, out: Array | None = None, scratch: Scratch | None = None
) -> Array:
    """2 (output - target) / elements."""
    outputs, targets = as_same_shape("mean_squared_error_backward", outputs=outputs, targets=targets)
    out = output_like(
        "mean_squared_error_backward", out, outputs.shape, outputs.dtype, outputs=outputs, targets=targets
    )
    np.subtract(outputs, targets, out=out)
    out *= 2.0 / outputs.size
    return out


@ieee
def softmax_cross_entropy(logits: Array, labels: Any, scratch: Scratch | None = None) -> float:
    """The mean over the batch of -log(softmax(logits)[label]). Same as torch.nn.functional.cross_entropy.

    logits: (batch, classes); labels: (batch,), whole numbers from 0 to classes - 1
    -log(exp(z_y) / sum exp(z)) = log(sum exp(z - m)) - (z_y - m) with m the largest z: finite for any finite z.
    """
    logits = as_matrix("softmax_cross_entropy: logits", logits)
    rows, classes = logits.shape
    labels = as_labels("softmax_cross_entropy", labels, rows, classes)
    per_row = borrow(scratch, "loss per row", (rows, 1), logits.dtype)
    shifted = borrow(scratch, "loss", logits.shape, logits.dtype)
    np.subtract(logits, logits.max(axis=1, keepdims=True, out=per_row), out=shifted)
    of_label = _select_label(shifted, labels, scratch)
    np.exp(shifted, out=shifted).sum(axis=1, keepdims=True, out=per_row)
    np.log(per_row, out=per_row)
    per_row -= of_label
    return _mean(per_row)


@ieee
def softmax_cross_entropy_backward(
    logits: Array, labels: Any, out: Array | None = None, scratch: Scratch | None = None
) -> Array:
    """(softmax(logits) - one_hot(labels)) / batch: what was predicted minus what should have been.

    logits: (batch, classes); labels: (batch,). The result is written into out, and out is returned; without out, a new
    array is.
    """
    logits = as_matrix("softmax_cross_entropy_backward: logits", logits)
    rows, classes = logits.shape
    labels = as_labels("softmax_cross_entropy_backward", labels, rows, classes)
    out = output_like("softmax_cross_entropy_backward", out, logits.shape, logits.dtype, logits=logits)
    softmax(logits, out, scratch)
    np.subtract(out, 1, out=out, where=_is_label(labels, classes, scratch))
    out /= rows
    return out


@ieee
def sigmoid_cross_entropy(logits: Array, targets: Array, scratch: Scratch | None = None) -> float:
    """The mean over all elements of -t log(s) - (1 - t) log(1 - s), s = sigmoid(z).

    logits, targets: (batch, outputs), targets between 0 and 1.
    Same as torch.nn.functional.binary_cross_entropy_with_logits. Written as
    max(z, 0) - z t + log(1 + exp(-|z|)), which is the same and finite for any finite z.
    """
    logits, targets = as_same_shape("sigmoid_cross_entropy", logits=logits, targets=targets)
    loss = borrow(scratch, "loss", logits.shape, logits.dtype)
    term = borrow(scratch, "loss term", logits.shape, logits.dtype)
    np.maximum(logits, 0, out=loss)
    loss -= np.multiply(logits, targets, out=term)
    np.abs(logits, out=term)
    np.exp(np.negative(term, out=term), out=term)
    loss += np.log1p(term, out=term)
    return _mean(loss)


@ieee
def sigmoid_cross_entropy_backward(
    logits: Array, targets: Array, out: Array | None = None, scratch: Scratch | None = None
) -> Array:
    """(sigmoid(z) - t) / elements."""
    logits, targets = as_same_shape("sigmoid_cross_entropy_backward", logits=logits, targets=targets)
    function = "sigmoid_cross_entropy_backward"
    out = output_like(function, out, logits.shape, logits.dtype, logits=logits, targets=targets)
    sigmoid(logits, out, scratch)
    out -= targets
    out /= logits.size
    return out


@ieee
def hinge(scores: Array, labels: Any, scratch: Scratch | None = None) -> float:
    """The mean over the batch of (sum over wrong classes j of max(0, 1 - s_y + s_j)) / classes.

    scores: (batch, classes); labels: (batch,). A wrong class costs nothing once the right one leads by 1.
    Same as torch.nn.functional.multi_margin_loss with p=1 and margin=1, except that a NaN score gives a NaN loss.
    """
    scores = as_matrix("hinge: scores", scores)
    labels = as_labels("hinge", labels, *scores.shape)
    margins, _ = _margins(scores, labels, scratch)
    return _mean(np.maximum(margins, 0, out=margins))


@ieee
def hinge_backward(scores: Array, labels: Any, out: Array | None = None, scratch: Scratch | None = None) -> Array:
    """+1 for every wrong class within the margin, minus their number for the right one; over batch * classes.

    scores: (batch, classes); labels: (batch,); the result is shaped like scores
    """
    scores = as_matrix("hinge_backward: scores", scores)
    labels = as_labels("hinge_backward", labels, *scores.shape)
    out = output_like("hinge_backward", out, scores.shape, scores.dtype, scores=scores)
    margins, is_label = _margins(scores, labels, scratch)
    np.greater(margins, 0, out=out)
    active = out.sum(axis=1, keepdims=True, out=borrow(scratch, "loss per row", (len(out), 1), out.dtype))
    np.copyto(out, np.negative(active, out=active), where=is_label)
    out /= scores.size
    return out


def _margins(scores: Array, labels: Array, scratch: Scratch | None) -> tuple[Array, Array]:
    """1 - s_y + s_j for every class j, 0 for the right one; and where the right one is."""
    of_label = _select_label(scores, labels, scratch)
    is_label = _is_label(labels, scores.shape[1], scratch)
    margins = borrow(scratch, "loss", scores.shape, scores.dtype)
    np.add(np.subtract(1, of_label, out=of_label), scores, out=margins)
    np.copyto(margins, 0, where=is_label)
    return margins, is_label


def _is_label(labels: Array, classes: int, scratch: Scratch | None) -> Array:
    """True at [i, labels[i]], (batch, classes): the one-hot matrix as a mask."""
    out = borrow(scratch, "is label", (len(labels), classes), bool)
    return np.equal(labels[:, np.newaxis], np.arange(classes), out=out)


def _select_label(values: Array, labels: Array, scratch: Scratch | None) -> Array:
    """values[i, labels[i]] as a column (batch, 1). A masked sum, because fancy indexing always makes a new array."""
    is_label = _is_label(labels, values.shape[1], scratch)
    out = borrow(scratch, "of label", (len(values), 1), values.dtype)
    return values.sum(axis=1, keepdims=True, where=is_label, out=out)


def _mean(values: Array) -> float:
    return float(values.sum(dtype=np.float64)) / values.size
