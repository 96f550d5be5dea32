"""Batch normalisation: each channel of a batch is brought to mean 0 and deviation 1, then scaled and shifted.

    y = gamma * normalised + beta,  normalised = (x - mean) / sqrt(variance + epsilon)

with one gamma and one beta for each channel. While training, mean and variance are those of the batch, over N, H and W
(over N for rows of features), and running averages of them are kept. After training, these averages are used, so
that the answer for an image does not depend on the other images of its batch. The variance that normalises divides by
the count n of the values; the running variance divides by n - 1, as in PyTorch.

To the kernels (kernels/batch_norm.py) an array of any of the two shapes is (N, C, L): L = H W numbers, or 1.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from shared.layers import normalisation_numbers
from shared.plain_arrays import float_dtype
from shared.shapes import (
    check_apart,
    check_dtypes,
    check_grad_output,
    check_normalised,
    check_same,
    check_several,
    checked_channels,
)

from . import launch
from .arrays import (
    Array,
    as_floats,
    as_vector,
    asarray,
    check_layer,
    copy,
    empty,
    is_packed,
    on_device,
    output_like,
    overlap,
    zeros,
)
from .backend import BACKEND
from .kernels import batch_norm as kernels
from .tile_choice import multiprocessors

MOST_PARTS = 64
"""Into how many parts a channel is cut at most: every thread that normalises adds the parts up."""


@dataclass(frozen=True)
class Saved:
    """What `batch_norm` keeps for `batch_norm_backward`, on the device.

    x, gamma: as they were given; gamma is a copy
    statistics: (3, C), the shift, the rest and the inverse of kernels/batch_norm.py
    training: whether mean and variance came from the batch, and so depend on x
    """

    x: Array
    gamma: Array
    statistics: Array
    training: bool
    whole_batch: Any = None


def batch_norm(
    x: Array,
    gamma: Array,
    beta: Array,
    running_mean: Array,
    running_var: Array,
    training: bool,
    momentum: float = 0.1,
    epsilon: float = 1e-5,
    out: Array | None = None,
    whole_batch: Any = None,
) -> tuple[Array, Saved]:
    """x (N, C, H, W) or (N, C), all others (C,) -> output shaped like x, and what the backward pass needs.

    Same as torch.nn.functional.batch_norm. While training, the running arrays, which then must be device arrays, are
    changed in place: running = (1 - momentum) * running + momentum * the batch's.
    out: the device array to write to
    whole_batch: where other processes have rows of the batch, too, the statistics are those of all rows
    Raises ValueError where shapes do not fit, or while training with one value a channel; TypeError for a mix of
    dtypes.
    Squares too large for the dtype make the variance inf and the output beta; see docs/numerics.md for larger numbers.
    """
    x = _checked_x(x)
    running = {"running_mean": running_mean, "running_var": running_var}
    if training:
        _check_changeable(running)
    vectors = checked_channels(as_vector, x, {"gamma": gamma, "beta": beta, **running})
    momentum, epsilon = normalisation_numbers(momentum, epsilon)
    if training:
        if whole_batch is None:
            check_several(x.shape)
        check_apart({"x": x, **vectors}, running, overlap)
    out = output_like("batch_norm", out, x.shape, x.dtype, x=x, **vectors)
    statistics = empty((3, x.shape[1]), x.dtype)
    forward = Forward(lines(x), tuple(vectors.values()), momentum, epsilon, statistics, whole_batch)
    launch_forward(forward, lines(out), bool(training), tracking=True)
    return out, Saved(x, copy(vectors["gamma"]), statistics, bool(training), whole_batch)


def batch_norm_backward(grad_output: Array, saved: Saved, out: Array | None = None) -> tuple[Array, Array, Array]:
    """From dL/doutput, shaped like x, to (dL/dx, dL/dgamma, dL/dbeta).

    With g = grad_output and n values a channel: dL/dbeta = sum of g, dL/dgamma = sum of g * normalised, and while
    training dL/dx = gamma * inverse * (g - dL/dbeta / n - normalised * dL/dgamma / n). The last two terms are there
    because mean and variance depend on x; in use they do not, and dL/dx = gamma * inverse * g.
    """
    if not isinstance(saved, Saved):
        given = type(saved).__name__
        raise TypeError(f"batch_norm_backward: saved is {given}, expected what batch_norm returned beside its output")
    channels = saved.x.shape[1]
    grad_gamma, grad_beta = empty((channels,), saved.x.dtype), empty((channels,), saved.x.dtype)
    return _backward(grad_output, saved, out, grad_gamma, grad_beta), grad_gamma, grad_beta


class BatchNorm:
    """A layer that normalises each channel. Same as torch.nn.BatchNorm2d and BatchNorm1d.

    gamma, beta: (channels,), copied to the device; a float64 array stays float64, everything else becomes float32
    running_mean, running_var: (channels,), copied; zeros and ones if None. Training changes them in place.
    grad_gamma, grad_beta: as of the last `backward`, zeros before the first, written in place
    whole_batch: as `batch_norm` takes it
    Raises ValueError where the shapes do not fit together or a number is out of its range.
    """

    def __init__(
        self,
        gamma: Any,
        beta: Any,
        running_mean: Any = None,
        running_var: Any = None,
        momentum: float = 0.1,
        epsilon: float = 1e-5,
    ) -> None:
        dtype = float_dtype(gamma)
        self.gamma: Array = copy(as_vector("BatchNorm: gamma", asarray(gamma, dtype)))
        self._shape = channels = self.gamma.shape
        self.beta: Array = _vector_like("beta", beta, self.gamma)
        self.running_mean: Array = _vector_like(
            "running_mean", np.zeros(channels) if running_mean is None else running_mean, self.gamma
        )
        self.running_var: Array = _vector_like(
            "running_var", np.ones(channels) if running_var is None else running_var, self.gamma
        )
        self.momentum, self.epsilon = normalisation_numbers(momentum, epsilon, "BatchNorm")
        self.grad_gamma: Array = zeros(channels, dtype)
        self.grad_beta: Array = zeros(channels, dtype)
        self.whole_batch: Any = None
        self._saved: Saved | None = None

    def forward(self, x: Array, training: bool = False, out: Array | None = None) -> Array:
        """x (N, C, H, W) or (N, C) -> the same shape. Remembers what `backward` needs."""
        out, self._saved = batch_norm(
            x, self.gamma, self.beta, self.running_mean, self.running_var, training, self.momentum, self.epsilon, out,
            self.whole_batch,
        )  # fmt: skip
        return out

    def backward(self, grad_output: Array, out: Array | None = None) -> Array:
        """From dL/doutput to grad_gamma, grad_beta and dL/dx, which is returned, in `out` if given."""
        if self._saved is None:
            raise ValueError("BatchNorm.backward: there was no forward pass yet, so there is nothing to differentiate")
        self.check_memory("BatchNorm.backward", self._saved.x.dtype)
        return _backward(grad_output, self._saved, out, self.grad_gamma, self.grad_beta)

    def check_memory(self, function: str, dtype: Any) -> None:
        """Raise ValueError or TypeError if an array of the layer was replaced by what no kernel can use."""
        names = ("gamma", "beta", "running_mean", "running_var", "grad_gamma", "grad_beta")
        check_layer(function, self, dict.fromkeys(names, self._shape), dtype)


# ---- launches, unchecked: images are (N, C, L)


@dataclass(frozen=True)
class Forward:
    """What the way forward reads, and the way back again.

    vectors: gamma, beta, running_mean, running_var, (C,) each
    statistics: (3, C), written by the way forward and read by the way back
    whole_batch: as `batch_norm` takes it
    """

    x: Array
    vectors: tuple[Array, ...]
    momentum: float
    epsilon: float
    statistics: Array
    whole_batch: Any = None


def launch_forward(
    forward: Forward,
    output: Array,
    training: bool,
    tracking: bool,
    added: Array | None = None,
    activation: int = 0,
    parts: Array | None = None,
    stream: Any = 0,
) -> None:
    """output = activate(normalised * gamma + beta + added), by the activation's number.

    tracking: whether the running arrays change; parts: memory of `part_shape(…, 3)`, or None for new memory
    """
    x, number = forward.x, forward.x.dtype.type
    if parts is None:
        parts = empty(part_shape(x.shape, 3), x.dtype)
    if training:
        grid, block = _over_channels(parts)
        kernels.statistics[grid, block, stream](x, parts)
        if forward.whole_batch is not None:
            _whole_statistics(x, parts, forward.whole_batch)
    kernels.normalise[(*_over_planes(x), stream)](
        x, parts, *forward.vectors, number(forward.momentum), number(forward.epsilon), int(training), int(tracking),
        x if added is None else added, int(added is not None), activation, forward.statistics, output,
    )  # fmt: skip


def launch_backward(
    forward: Forward,
    grad_output: Array,
    grads: tuple[Array, Array],
    grad_input: Array,
    training: bool = True,
    output: Array | None = None,
    activation: int = 0,
    grad_added: Array | None = None,
    parts: Array | None = None,
    stream: Any = 0,
) -> None:
    """grad_input and grads, of gamma and beta, from dL/d(the output that `launch_forward` wrote).

    output: that output, where there was an activation; grad_added: where to write the gradient of `added`, or None;
    grad_output itself may be it
    """
    x = forward.x
    output = x if output is None else output
    if parts is None:
        parts = empty(part_shape(x.shape, 2), x.dtype)
    grid, block = _over_channels(parts)
    kernels.sums[grid, block, stream](grad_output, output, activation, x, forward.statistics, parts)
    if training and forward.whole_batch is not None:
        own = parts.copy_to_host().sum(axis=0, dtype=np.float64)
        _send_as_first(parts, forward.whole_batch.sums(*own))
    kernels.backward[(*_over_planes(x), stream)](
        grad_output, output, activation, x, forward.statistics, forward.vectors[0], parts, int(training), *grads,
        grad_input if grad_added is None else grad_added, int(grad_added is not None), grad_input,
    )  # fmt: skip


def _whole_statistics(x: Array, parts: Array, whole_batch: Any) -> None:
    """Put the statistics of all ranks' rows in the place of this rank's: the kernels then know only of those."""
    shift = x[0, :, 0].copy_to_host().astype(np.float64)  # the kernels' means are those of x - shift
    count = np.zeros(1)
    mean, squares = np.zeros((2, len(shift)))
    for more, other_mean, other_squares in parts.copy_to_host().astype(np.float64):
        if more[0]:
            apart, share = other_mean - mean, more / (count + more)
            mean, squares = mean + apart * share, squares + other_squares + apart * apart * count * share
            count = count + more
    total, mean, squares = whole_batch.moments(count[0], mean + shift, squares)
    _send_as_first(parts, np.array([np.full(len(shift), total), mean - shift, squares]))


def _send_as_first(parts: Array, numbers: np.ndarray) -> None:
    """Make these numbers the first part, and the others 0."""
    host = np.zeros(parts.shape, parts.dtype)
    host[0] = numbers
    parts.copy_to_device(host)


def lines(array: Array) -> Array:
    """(N, C, H, W) or (N, C) as (N, C, L), without a copy."""
    return array.reshape(*array.shape[:2], array.size // (array.shape[0] * array.shape[1]))


def part_shape(shape: tuple[int, ...], numbers: int) -> tuple[int, int, int]:
    """The shape of the memory for the parts of x (N, C, …): so many that the blocks can fill the device."""
    rows, channels = shape[:2]
    wanted = launch.divided(2 * multiprocessors(), channels)
    return max(1, min(wanted, rows, MOST_PARTS)), numbers, channels


def _over_channels(parts: Array) -> tuple[tuple[int, int], int]:
    """A block for each channel and part: 256 threads, and on a CPU one, which walks along the numbers."""
    return (parts.shape[2], parts.shape[0]), kernels.THREADS if BACKEND.name == "gpu" else 1


def _over_planes(x: Array) -> tuple[int, tuple[int, int]]:
    return launch.over_lines(x.shape[0] * x.shape[1], x.shape[2], BACKEND.name != "gpu")


def _backward(grad_output: Any, saved: Saved, out: Array | None, grad_gamma: Array, grad_beta: Array) -> Array:
    function, x = "batch_norm_backward", saved.x
    grad_output = as_floats(f"{function}: grad_output", grad_output)
    check_grad_output(function, grad_output.shape, x.shape, "x")
    check_dtypes(function, grad_output=grad_output, x=x)
    apart = {"x": x, "grad_gamma": grad_gamma, "grad_beta": grad_beta}
    out = output_like(function, out, x.shape, x.dtype, grad_output=grad_output, **apart)
    forward = Forward(lines(x), (saved.gamma,), 0.0, 0.0, saved.statistics, saved.whole_batch)
    launch_backward(forward, lines(grad_output), (grad_gamma, grad_beta), lines(out), saved.training)
    return out


# ---- checks


def _checked_x(x: Any) -> Array:
    x = as_floats("batch_norm: x", x)
    check_normalised(x.shape)
    return x


def _check_changeable(running: dict[str, Any]) -> None:
    for name, array in running.items():
        if not on_device(array):
            raise TypeError(
                f"batch_norm: {name}: expected a device array to change in place, got {type(array).__name__}"
            )
        if array.dtype.char not in "fd":
            raise TypeError(f"batch_norm: {name}: expected float32 or float64 to change in place, got {array.dtype}")
        if not is_packed(array):
            raise ValueError(f"batch_norm: {name} is not C-contiguous (strides {array.strides}); pass an array that is")


def _vector_like(name: str, values: Any, gamma: Array) -> Array:
    vector = as_vector(f"BatchNorm: {name}", asarray(values, gamma.dtype.name))
    check_same("BatchNorm", gamma=gamma.shape, **{name: vector.shape})
    return copy(vector)
