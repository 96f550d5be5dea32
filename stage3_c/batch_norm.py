"""Batch normalisation in C: each channel is brought to mean 0 and deviation 1 over the batch, then scaled and shifted.

    y = (x - mean) / sqrt(variance + epsilon) * gamma + beta

While training, mean and variance are those of the batch, over all images and places of a channel; they are also mixed
into running statistics, which take their place in evaluation. csrc/batch_norm.c reads x once for both and keeps the
mean in double.

Shapes: x is (N, C, H, W) or (N, C); gamma, beta and the running statistics are (C,).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from shared.layers import normalisation_numbers
from shared.plain_arrays import check_changeable, float_dtype
from shared.shapes import (
    check_apart,
    check_dtypes,
    check_grad_output,
    check_normalised,
    check_several,
    checked_channels,
)

from . import library
from .arrays import (
    Array,
    aligned_copy,
    aligned_empty,
    aligned_zeros,
    as_floats,
    as_images,
    as_matrix,
    as_vector,
    asarray,
    output_like,
    packed,
)


@dataclass(frozen=True)
class Saved:
    """What the backward pass needs of a forward pass.

    mean, inverse: (C,) in float64, what was subtracted, and 1 / sqrt(variance + epsilon)
    """

    x: Array
    gamma: Array
    mean: Array
    inverse: Array
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
    """Normalise each channel. Same as torch.nn.functional.batch_norm. Returns (output, saved).

    training: by the batch's mean and (biased) variance, which are also mixed into running_mean and, unbiased, into
        running_var, in place: running = (1 - momentum) * running + momentum * batch's. Otherwise by the running ones.
    saved: for `batch_norm_backward`
    whole_batch: where other processes have rows of the batch, too, the statistics are those of all rows
    Raises ValueError where shapes do not fit together, or a channel has a single value while training, whose variance
    would be 0; TypeError for a mix of dtypes.
    Squares too large for the dtype make the variance inf and the output beta; see docs/numerics.md for larger numbers.
    """
    function = "batch_norm"
    x = _checked_x(f"{function}: x", x)
    channels = x.shape[1]
    state = {"running_mean": running_mean, "running_var": running_var}
    if training:
        check_changeable(state)
    vectors = checked_channels(as_vector, x, {"gamma": gamma, "beta": beta, **state})
    momentum, epsilon = normalisation_numbers(momentum, epsilon)
    size = x.size // (len(x) * channels)
    if training:
        if whole_batch is None:
            check_several(x.shape)
        check_apart({"x": x, "gamma": vectors["gamma"], "beta": vectors["beta"], **state}, state, np.may_share_memory)
    out = output_like(function, out, x.shape, x.dtype, x=x, **vectors)
    mean, inverse = aligned_empty((channels,), np.float64), aligned_empty((channels,), np.float64)
    statistics = {name: vectors[name] if vectors[name].flags.writeable else vectors[name].copy() for name in state}
    whole = None
    if training and whole_batch is not None:
        moments = np.empty((2, channels))
        library.function("batch_norm_moments", x.dtype)(library.pool(), len(x), channels, size, x, moments)
        whole = np.hstack(whole_batch.moments(len(x) * size, *moments))
    library.function("batch_norm", x.dtype)(
        library.pool(), len(x), channels, size, x, vectors["gamma"], vectors["beta"], *statistics.values(),
        bool(training), momentum, epsilon, whole, out, mean, inverse,
    )  # fmt: skip
    for name, array in state.items():
        if training and statistics[name] is not array:  # C worked on a copy of an array that it cannot write to
            np.copyto(array, statistics[name], casting="unsafe")
    return out, Saved(x.view(), vectors["gamma"].copy(), mean, inverse, bool(training), whole_batch)


def batch_norm_backward(grad_output: Array, saved: Saved, out: Array | None = None) -> tuple[Array, Array, Array]:
    """From dL/doutput to (dL/dx, dL/dgamma, dL/dbeta): what autograd gives for torch's batch_norm.

    grad_output: as `batch_norm`'s output
    With n the normalised x, and means over the batch of one channel while training:
    dx = gamma / sqrt(variance + epsilon) * (grad - mean(grad) - n * mean(grad * n)). In evaluation the statistics are
    constants, and only the first term is left. dgamma = sum of grad * n; dbeta = sum of grad.
    """
    grad_output, channels, size = _prepare_backward(grad_output, saved)
    function = "batch_norm_backward"
    out = output_like(function, out, saved.x.shape, saved.x.dtype, grad_output=grad_output, x=saved.x)
    grad_gamma = output_like(function, None, (channels,), saved.x.dtype)
    grad_beta = output_like(function, None, (channels,), saved.x.dtype)
    _backward(grad_output, saved, out, grad_gamma, grad_beta, size)
    return out, grad_gamma, grad_beta


class BatchNorm:
    """A layer that normalises each channel. Same as torch.nn.BatchNorm2d and BatchNorm1d.

    gamma, beta: (C,), and running_mean, running_var, zeros and ones if None. All are copied; a float64 array stays
        float64, everything else becomes float32.
    grad_gamma, grad_beta: as of the last `backward`, zeros before the first, written in place
    whole_batch: as `batch_norm` takes it
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
        gamma = as_vector("BatchNorm: gamma", asarray(gamma, dtype))
        vectors = {
            "beta": beta,
            "running_mean": np.zeros(gamma.shape) if running_mean is None else running_mean,
            "running_var": np.ones(gamma.shape) if running_var is None else running_var,
        }
        arrays = {}
        for name, values in vectors.items():
            arrays[name] = array = as_vector(f"BatchNorm: {name}", asarray(values, dtype))
            if array.shape != gamma.shape:
                raise ValueError(
                    f"BatchNorm: {name} is {array.shape} but gamma is {gamma.shape}; they must have the same shape"
                )
        self.momentum, self.epsilon = normalisation_numbers(momentum, epsilon, "BatchNorm")
        self.gamma: Array = aligned_copy(gamma, dtype)
        self.beta: Array = aligned_copy(arrays["beta"], dtype)
        self.running_mean: Array = aligned_copy(arrays["running_mean"], dtype)
        self.running_var: Array = aligned_copy(arrays["running_var"], dtype)
        self.grad_gamma: Array = aligned_zeros(gamma.shape, dtype)
        self.grad_beta: Array = aligned_zeros(gamma.shape, dtype)
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
        saved = self._saved
        grad_output, channels, size = _prepare_backward(grad_output, saved)
        read = {"grad_output": grad_output, "x": saved.x}
        for name in ("grad_gamma", "grad_beta"):
            output_like(f"BatchNorm.backward: {name}", getattr(self, name), (channels,), saved.x.dtype, **read)
        apart = read | {"grad_gamma": self.grad_gamma, "grad_beta": self.grad_beta}
        out = output_like("batch_norm_backward", out, saved.x.shape, saved.x.dtype, **apart)
        _backward(grad_output, saved, out, self.grad_gamma, self.grad_beta, size)
        return out


def _backward(grad_output: Array, saved: Saved, out: Array, grad_gamma: Array, grad_beta: Array, size: int) -> None:
    x, whole = saved.x, None
    if saved.training and saved.whole_batch is not None:
        sums = np.empty((2, x.shape[1]))
        library.function("batch_norm_sums", x.dtype)(
            library.pool(), len(x), x.shape[1], size, grad_output, x, saved.mean, sums
        )
        whole = saved.whole_batch.sums(*sums)
    library.function("batch_norm_backward", x.dtype)(
        library.pool(), len(x), x.shape[1], size, grad_output, x, saved.gamma, saved.training,
        saved.mean, saved.inverse, whole, out, grad_gamma, grad_beta,
    )  # fmt: skip


def _prepare_backward(grad_output: Any, saved: Saved) -> tuple[Array, int, int]:
    """grad_output as C reads it, the channels, and how many numbers of one image a channel has."""
    if not isinstance(saved, Saved):
        given = type(saved).__name__
        raise TypeError(f"batch_norm_backward: saved is {given}, expected what batch_norm returned beside its output")
    function = "batch_norm_backward"
    grad_output = as_floats(f"{function}: grad_output", grad_output)
    shape, dtype = saved.x.shape, saved.x.dtype
    check_grad_output(function, grad_output.shape, shape, "x")
    check_dtypes(function, grad_output=grad_output, x=saved.x)
    try:
        grad_output = packed(grad_output, dtype)
    except MemoryError as error:
        raise MemoryError(f"{function}: grad_output: {error}") from error
    return grad_output, shape[1], grad_output.size // (shape[0] * shape[1])


def _checked_x(name: str, x: Any) -> Array:
    """x as C reads it, (N, C, H, W) or (N, C)."""
    x = as_floats(name, x)
    check_normalised(x.shape)
    if x.size == 0:
        raise ValueError(f"{name}: expected at least one value, got shape {x.shape}")
    return as_matrix(name, x) if x.ndim == 2 else as_images(name, x)
