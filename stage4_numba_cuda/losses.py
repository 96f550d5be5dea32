"""Losses: the error of the network as one number, and the gradient of that number.

Every loss stands beside its gradient with respect to its first argument, which is where
backpropagation starts. Losses that work on logits (the network's raw outputs) include the softmax or
the sigmoid, because together they can be written without a logarithm of a number that has rounded to 0.

A kernel gives one number a row (kernels/losses.py); they are added up on the device, and the sum is read back, which
waits for everything that was launched before. Training does not read it at every step: it takes `row_losses` or
`row_losses_and_gradient` and leaves the numbers where they are. `out=` is the array to write a gradient into, not one
of the inputs.
"""

from __future__ import annotations

from typing import Any

from . import launch, reductions
from .arrays import Array, as_labels, as_matrix, as_same_shape, empty, output_like
from .backend import BACKEND
from .kernels import losses as kernels

LANES = 32 if BACKEND.name == "gpu" else 1
"""Threads that share a row: a warp on a GPU; elsewhere one, because the threads take turns on a CPU anyway."""


def mean_squared_error(outputs: Array, targets: Array) -> float:
    """The mean over all elements of (output - target)². Same as torch.nn.functional.mse_loss.

    outputs, targets: (batch, features)
    """
    outputs, targets = as_same_shape("mean_squared_error", outputs=outputs, targets=targets)
    return loss_of("mean_squared_error", outputs, targets)


def mean_squared_error_backward(outputs: Array, targets: Array, out: Array | None = None) -> Array:
    """2 (output - target) / elements."""
    outputs, targets = as_same_shape("mean_squared_error_backward", outputs=outputs, targets=targets)
    out = output_like(
        "mean_squared_error_backward", out, outputs.shape, outputs.dtype, outputs=outputs, targets=targets
    )
    return gradient_of("mean_squared_error", outputs, targets, out)


def softmax_cross_entropy(logits: Array, labels: Any) -> float:
    """The mean over the batch of -log(softmax(logits)[label]). Same as torch.nn.functional.cross_entropy.

    logits: (batch, classes); labels: (batch,), whole numbers from 0 to classes - 1
    -log(exp(z_y) / sum exp(z)) = log(sum exp(z - m)) - (z_y - m) with m the largest z: finite for any finite z.
    """
    logits, labels = _with_labels("softmax_cross_entropy", "logits", logits, labels)
    return loss_of("softmax_cross_entropy", logits, labels)


def softmax_cross_entropy_backward(logits: Array, labels: Any, out: Array | None = None) -> Array:
    """(softmax(logits) - one_hot(labels)) / batch: what was predicted minus what should have been."""
    logits, labels = _with_labels("softmax_cross_entropy_backward", "logits", logits, labels)
    out = output_like("softmax_cross_entropy_backward", out, logits.shape, logits.dtype, logits=logits)
    return gradient_of("softmax_cross_entropy", logits, labels, out)


def softmax_cross_entropy_fused(logits: Array, labels: Any, out: Array | None = None) -> tuple[float, Array]:
    """The loss and its gradient in one kernel: both need exp(z - m), which is most of the work, and share it here."""
    logits, labels = _with_labels("softmax_cross_entropy_fused", "logits", logits, labels)
    out = output_like("softmax_cross_entropy_fused", out, logits.shape, logits.dtype, logits=logits)
    rows = empty(logits.shape[:1], logits.dtype)
    row_losses_and_gradient("softmax_cross_entropy", logits, labels, rows, out)
    return reductions.total(rows), out


def sigmoid_cross_entropy(logits: Array, targets: Array) -> float:
    """The mean over all elements of -t log(s) - (1 - t) log(1 - s), s = sigmoid(z).

    logits, targets: (batch, outputs), targets between 0 and 1.
    Same as torch.nn.functional.binary_cross_entropy_with_logits. Written as
    max(z, 0) - z t + log(1 + exp(-|z|)), which is the same and finite for any finite z.
    """
    logits, targets = as_same_shape("sigmoid_cross_entropy", logits=logits, targets=targets)
    return loss_of("sigmoid_cross_entropy", logits, targets)


def sigmoid_cross_entropy_backward(logits: Array, targets: Array, out: Array | None = None) -> Array:
    """(sigmoid(z) - t) / elements."""
    logits, targets = as_same_shape("sigmoid_cross_entropy_backward", logits=logits, targets=targets)
    out = output_like("sigmoid_cross_entropy_backward", out, logits.shape, logits.dtype, logits=logits, targets=targets)
    return gradient_of("sigmoid_cross_entropy", logits, targets, out)


def hinge(scores: Array, labels: Any) -> float:
    """The mean over the batch of (sum over wrong classes j of max(0, 1 - s_y + s_j)) / classes.

    scores: (batch, classes); labels: (batch,). A wrong class costs nothing once the right one leads by 1.
    Same as torch.nn.functional.multi_margin_loss with p=1 and margin=1, except that a NaN score gives a NaN loss.
    """
    scores, labels = _with_labels("hinge", "scores", scores, labels)
    return loss_of("hinge", scores, labels)


def hinge_backward(scores: Array, labels: Any, out: Array | None = None) -> Array:
    """+1 for every wrong class within the margin, minus their number for the right one; over batch * classes.

    scores: (batch, classes); labels: (batch,); the result is shaped like scores
    """
    scores, labels = _with_labels("hinge_backward", "scores", scores, labels)
    out = output_like("hinge_backward", out, scores.shape, scores.dtype, scores=scores)
    return gradient_of("hinge", scores, labels, out)


def row_losses(name: str, outputs: Array, targets: Array, rows_out: Array, lanes: int = LANES) -> None:
    """rows_out[i] = what row i adds to the loss of that name: their sum is the loss. Launches, and checks nothing.

    outputs: (batch, features); targets: the same, or int32 labels (batch,), as the loss takes them; rows_out: (batch,),
    of the dtype of outputs; lanes: 32 or 1 threads a row
    """
    kernels.LOSS[lanes][name][_grid(len(outputs), lanes)](outputs, targets, rows_out)


def row_losses_and_gradient(
    name: str, outputs: Array, targets: Array, rows_out: Array, grad: Array, lanes: int = LANES, stream: Any = 0
) -> None:
    """The same, and dL/doutputs into grad (batch, features), in one kernel."""
    kernels.FUSED[lanes][name][(*_grid(len(outputs), lanes), stream)](outputs, targets, rows_out, grad)


def loss_of(name: str, outputs: Array, targets: Array) -> float:
    """The loss of that name, unchecked: arguments as `row_losses` takes them."""
    rows = empty(outputs.shape[:1], outputs.dtype)
    row_losses(name, outputs, targets, rows)
    return reductions.total(rows)


def gradient_of(name: str, outputs: Array, targets: Array, grad: Array) -> Array:
    """Its gradient alone into grad, unchecked."""
    kernels.BACKWARD[LANES][name][_grid(len(outputs), LANES)](outputs, targets, grad)
    return grad


def _grid(rows: int, lanes: int) -> tuple[int, tuple[int, int]]:
    """128 threads a block: 4 warps with a row each, or 128 threads with a row each."""
    warps = 128 // lanes
    return launch.divided(rows, warps), (lanes, warps)


def _with_labels(function: str, name: str, values: Array, labels: Any) -> tuple[Array, Array]:
    """The matrix and its labels, every one of which a kernel can use as a column number."""
    values = as_matrix(f"{function}: {name}", values)
    return values, as_labels(function, labels, *values.shape)
