"""Losses: the error of the network as one number, and the gradient of that number.

Every loss stands beside its gradient with respect to its first argument, which is where
backpropagation starts. Losses that work on logits (the network's raw outputs) include the softmax or
the sigmoid, because together they can be written without a logarithm of a number that has rounded to 0.

The values are added up in double whatever the dtype, so that a float32 loss does not depend on the batch size.
`out=` is the array to write a gradient into, not one of the inputs. The loops are in csrc/losses.c.
"""

from typing import Any

from . import library
from .arrays import Array, as_labels, as_matrix, as_same_shape, output_like


def mean_squared_error(outputs: Array, targets: Array) -> float:
    """The mean over all elements of (output - target)². Same as torch.nn.functional.mse_loss.

    outputs, targets: (batch, features)
    """
    outputs, targets = as_same_shape("mean_squared_error", outputs=outputs, targets=targets)
    return library.function("mean_squared_error", outputs.dtype)(*outputs.shape, outputs, targets)


def mean_squared_error_backward(outputs: Array, targets: Array, out: Array | None = None) -> Array:
    """2 (output - target) / elements."""
    outputs, targets = as_same_shape("mean_squared_error_backward", outputs=outputs, targets=targets)
    out = output_like(
        "mean_squared_error_backward", out, outputs.shape, outputs.dtype, outputs=outputs, targets=targets
    )
    library.function("mean_squared_error_backward", outputs.dtype)(*outputs.shape, outputs, targets, out)
    return out


def softmax_cross_entropy(logits: Array, labels: Any) -> float:
    """The mean over the batch of -log(softmax(logits)[label]). Same as torch.nn.functional.cross_entropy.

    logits: (batch, classes); labels: (batch,), whole numbers from 0 to classes - 1
    -log(exp(z_y) / sum exp(z)) = log(sum exp(z - m)) - (z_y - m) with m the largest z: finite for any finite z.
    """
    logits, labels = _with_labels("softmax_cross_entropy", "logits", logits, labels)
    return library.function("softmax_cross_entropy", logits.dtype)(*logits.shape, logits, labels)


def softmax_cross_entropy_backward(logits: Array, labels: Any, out: Array | None = None) -> Array:
    """(softmax(logits) - one_hot(labels)) / batch: what was predicted minus what should have been."""
    logits, labels = _with_labels("softmax_cross_entropy_backward", "logits", logits, labels)
    out = output_like("softmax_cross_entropy_backward", out, logits.shape, logits.dtype, logits=logits)
    library.function("softmax_cross_entropy_backward", logits.dtype)(*logits.shape, logits, labels, out)
    return out


def softmax_cross_entropy_fused(logits: Array, labels: Any, out: Array | None = None) -> tuple[float, Array]:
    """The loss and its gradient in one pass: both need exp(z - m), which is most of the work, and share it here."""
    logits, labels = _with_labels("softmax_cross_entropy_fused", "logits", logits, labels)
    out = output_like("softmax_cross_entropy_fused", out, logits.shape, logits.dtype, logits=logits)
    loss = library.function("softmax_cross_entropy_fused", logits.dtype)(*logits.shape, logits, labels, out)
    return loss, out


def sigmoid_cross_entropy(logits: Array, targets: Array) -> float:
    """The mean over all elements of -t log(s) - (1 - t) log(1 - s), s = sigmoid(z).

    logits, targets: (batch, outputs), targets between 0 and 1.
    Same as torch.nn.functional.binary_cross_entropy_with_logits. Written as
    max(z, 0) - z t + log(1 + exp(-|z|)), which is the same and finite for any finite z.
    """
    logits, targets = as_same_shape("sigmoid_cross_entropy", logits=logits, targets=targets)
    return library.function("sigmoid_cross_entropy", logits.dtype)(*logits.shape, logits, targets)


def sigmoid_cross_entropy_backward(logits: Array, targets: Array, out: Array | None = None) -> Array:
    """(sigmoid(z) - t) / elements."""
    logits, targets = as_same_shape("sigmoid_cross_entropy_backward", logits=logits, targets=targets)
    out = output_like("sigmoid_cross_entropy_backward", out, logits.shape, logits.dtype, logits=logits, targets=targets)
    library.function("sigmoid_cross_entropy_backward", logits.dtype)(*logits.shape, logits, targets, out)
    return out


def hinge(scores: Array, labels: Any) -> float:
    """The mean over the batch of (sum over wrong classes j of max(0, 1 - s_y + s_j)) / classes.

    scores: (batch, classes); labels: (batch,). A wrong class costs nothing once the right one leads by 1.
    Same as torch.nn.functional.multi_margin_loss with p=1 and margin=1, except that a NaN score gives a NaN loss.
    """
    scores, labels = _with_labels("hinge", "scores", scores, labels)
    return library.function("hinge", scores.dtype)(*scores.shape, scores, labels)


def hinge_backward(scores: Array, labels: Any, out: Array | None = None) -> Array:
    """+1 for every wrong class within the margin, minus their number for the right one; over batch * classes.

    scores: (batch, classes); labels: (batch,); the result is shaped like scores
    """
    scores, labels = _with_labels("hinge_backward", "scores", scores, labels)
    out = output_like("hinge_backward", out, scores.shape, scores.dtype, scores=scores)
    library.function("hinge_backward", scores.dtype)(*scores.shape, scores, labels, out)
    return out


def _with_labels(function: str, name: str, values: Array, labels: Any) -> tuple[Array, Array]:
    """The matrix and its labels, every one of which C can use as a column number."""
    values = as_matrix(f"{function}: {name}", values)
    return values, as_labels(function, labels, *values.shape)
