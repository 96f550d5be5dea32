"""Batch normalisation: each channel of a batch is brought to mean 0 and deviation 1, then scaled and shifted.

    y = gamma * normalised + beta,  normalised = (x - mean) / sqrt(variance + epsilon)

with one gamma and one beta for each channel. While training, mean and variance are those of the batch, over N, H and W
(over N for rows of features), and running averages of them are kept. After training, these averages are used, so
that the answer for an image does not depend on the other images of its batch. The variance that normalises divides by
the count n of the values; the running variance divides by n - 1, as in PyTorch.

Inside, an array of any of the two shapes is (N, C, L): L = H W numbers, or 1.
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
    check_same,
    check_several,
    checked_channels,
)

from .arrays import Array, Scratch, as_floats, as_vector, asarray, borrow, ieee, output_like


@dataclass(frozen=True)
class Saved:
    """What `batch_norm` keeps for `batch_norm_backward`: normalised = inverse * (centred - rest).

    centred: x - mean, (N, C, L), valid until the scratch memory that it lies in is used again
    rest: what rounding left of centred's mean; inverse: 1 / sqrt(variance + epsilon); both (C,) and float64
    gamma: (C,), as it was in the forward pass
    training: whether mean and variance came from the batch, and so depend on x
    """

    centred: Array
    rest: Array
    inverse: Array
    gamma: Array
    shape: tuple[int, ...]
    training: bool
    whole_batch: Any = None


@ieee
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
    scratch: Scratch | None = None,
    whole_batch: Any = None,
) -> tuple[Array, Saved]:
    """x (N, C, H, W) or (N, C), all others (C,) -> output shaped like x, and what the backward pass needs.

    Same as torch.nn.functional.batch_norm. While training, the running arrays are changed in place:
    running = (1 - momentum) * running + momentum * the batch's.
    out: where to write the output; scratch: memory for what is saved, of this layer alone
    whole_batch: where other processes have rows of the batch, too, the statistics are those of all rows
    Raises ValueError where shapes do not fit, or while training with one value a channel; TypeError for two dtypes.

    The mean is subtracted before anything is squared: numbers far from zero lose no digits that way. What rounding
    left of the mean is measured and subtracted, too.
    Squares too large for the dtype make the variance inf and the output beta; see docs/numerics.md for larger numbers.
    """
    x = _checked_x(x)
    running = {"running_mean": running_mean, "running_var": running_var}
    if training:
        check_changeable(running)
    vectors = checked_channels(as_vector, x, {"gamma": gamma, "beta": beta, **running})
    gamma, beta, mean, var = vectors.values()
    momentum, epsilon = normalisation_numbers(momentum, epsilon)
    count = x.size // x.shape[1]
    if training:
        if whole_batch is None:
            check_several(x.shape)
        check_apart({"x": x, **vectors}, running, np.may_share_memory)
    out = output_like("batch_norm", out, x.shape, x.dtype, x=x, **vectors)

    lines = x.reshape(*x.shape[:2], -1)
    centred = borrow(scratch, "batch_norm centred", lines.shape, x.dtype)
    if training:
        mean = (_sums(lines, scratch) / count).astype(x.dtype)
    np.subtract(lines, mean[:, np.newaxis], out=centred)
    rest = _sums(centred, scratch) / count if training else np.zeros(len(mean))
    if training:
        var = _products(centred, centred, scratch) / count
        var -= np.where(np.isinf(var), 0, rest * rest)
        if whole_batch is not None:
            count, whole_mean, squares = whole_batch.moments(count, mean + rest, var * count)
            rest, var = whole_mean - mean, squares / count
        running_mean[...] = (1 - momentum) * running_mean + momentum * (mean + rest)
        running_var[...] = (1 - momentum) * running_var + momentum * (var * (count / (count - 1)))
    inverse = 1 / np.sqrt(var.astype(np.float64) + epsilon)

    slope = gamma * inverse
    np.multiply(centred.reshape(x.shape), _spread(slope, x), out=out)
    out += _spread(beta - rest * slope, x)
    return out, Saved(centred, rest, inverse, gamma.copy(), x.shape, training, whole_batch)


@ieee
def batch_norm_backward(
    grad_output: Array, saved: Saved, out: Array | None = None, scratch: Scratch | None = None
) -> tuple[Array, Array, Array]:
    """From dL/doutput, shaped like x, to (dL/dx, dL/dgamma, dL/dbeta).

    With g = grad_output and n values a channel: dL/dbeta = sum of g, dL/dgamma = sum of g * normalised, and while
    training dL/dx = gamma * inverse * (g - dL/dbeta / n - normalised * dL/dgamma / n). The last two terms are there
    because mean and variance depend on x; in use they do not, and dL/dx = gamma * inverse * g.
    """
    if not isinstance(saved, Saved):
        kind = type(saved).__name__
        raise TypeError(f"batch_norm_backward: saved is {kind}, expected what batch_norm returned beside its output")
    grad_output = as_floats("batch_norm_backward: grad_output", grad_output)
    check_grad_output("batch_norm_backward", grad_output.shape, saved.shape, "x")
    centred, inverse, dtype = saved.centred, saved.inverse, saved.centred.dtype
    check_dtypes("batch_norm_backward", grad_output=grad_output, x=centred)
    out = output_like("batch_norm_backward", out, saved.shape, dtype, grad_output=grad_output, x=centred)
    lines = grad_output.reshape(centred.shape)
    count = centred.size // centred.shape[1]

    grad_beta = _sums(lines, scratch)
    grad_gamma = inverse * (_products(lines, centred, scratch) - saved.rest * grad_beta)
    if saved.training and saved.whole_batch is not None:
        grad_beta, grad_gamma = saved.whole_batch.sums(grad_beta, grad_gamma)
    slope = saved.gamma * inverse
    if saved.training:
        bend = inverse * grad_gamma / count  # normalised * grad_gamma / n is bend * (centred - rest)
        np.multiply(centred.reshape(saved.shape), _spread(-bend, out), out=out)
        out += grad_output
        out += _spread(bend * saved.rest - grad_beta / count, out)
        out *= _spread(slope, out)
    else:
        np.multiply(grad_output, _spread(slope, out), out=out)
    return out, grad_gamma.astype(dtype), grad_beta.astype(dtype)


class BatchNorm:
    """A layer that normalises each channel. Same as torch.nn.BatchNorm2d and BatchNorm1d.

    gamma, beta: (channels,), copied; a float64 array stays float64, everything else becomes float32
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
        self.gamma: Array = as_vector("BatchNorm: gamma", asarray(gamma, dtype)).copy()
        channels = len(self.gamma)
        self.beta = _vector_like("beta", beta, self.gamma)
        mean = np.zeros(channels) if running_mean is None else running_mean
        variance = np.ones(channels) if running_var is None else running_var
        self.running_mean = _vector_like("running_mean", mean, self.gamma)
        self.running_var = _vector_like("running_var", variance, self.gamma)
        self.momentum, self.epsilon = normalisation_numbers(momentum, epsilon, "BatchNorm")
        self.grad_gamma: Array = np.zeros_like(self.gamma)
        self.grad_beta: Array = np.zeros_like(self.beta)
        self.whole_batch: Any = None
        self._saved: Saved | None = None
        self._scratch = Scratch()  # of its own, because what one layer saves must outlast the next layer's forward pass

    def forward(self, x: Array, training: bool = False, out: Array | None = None) -> Array:
        """x (N, C, H, W) or (N, C) -> the same shape. Remembers what `backward` needs."""
        out, self._saved = batch_norm(
            x, self.gamma, self.beta, self.running_mean, self.running_var, training, self.momentum, self.epsilon,
            out, self._scratch, self.whole_batch,
        )  # fmt: skip
        return out

    def backward(self, grad_output: Array, out: Array | None = None) -> Array:
        """From dL/doutput to grad_gamma, grad_beta and dL/dx, which is returned, in `out` if given."""
        if self._saved is None:
            raise ValueError("BatchNorm.backward: there was no forward pass yet, so there is nothing to differentiate")
        grad_input, grad_gamma, grad_beta = batch_norm_backward(grad_output, self._saved, out, self._scratch)
        np.copyto(self.grad_gamma, grad_gamma)
        np.copyto(self.grad_beta, grad_beta)
        return grad_input


def _sums(a: Array, scratch: Scratch | None) -> Array:
    """For each channel, the sum of a over N and L: in the array's dtype over L, in float64 over N."""
    of_images = borrow(scratch, "batch_norm sums of images", a.shape[:2], a.dtype)
    return a.sum(axis=2, out=of_images).sum(axis=0, dtype=np.float64)


def _products(a: Array, b: Array, scratch: Scratch | None) -> Array:
    """For each channel, the sum of a * b, added up as in `_sums`."""
    of_images = borrow(scratch, "batch_norm sums of images", a.shape[:2], a.dtype)
    return np.einsum("ncl,ncl->nc", a, b, out=of_images).sum(axis=0, dtype=np.float64)


def _spread(values: Array, like: Array) -> Array:
    """(C,) as an array that NumPy repeats along the other axes of (N, C) or (N, C, H, W)."""
    return values.astype(like.dtype).reshape(-1, *(1,) * (like.ndim - 2))


def _checked_x(x: Any) -> Array:
    x = as_floats("batch_norm: x", x)
    check_normalised(x.shape)
    if x.size == 0:
        raise ValueError(f"batch_norm: x: expected at least one value, got shape {x.shape}")
    return x


def _vector_like(name: str, values: Any, gamma: Array) -> Array:
    vector = as_vector(f"BatchNorm: {name}", asarray(values, gamma.dtype.name))
    check_same("BatchNorm", gamma=gamma.shape, **{name: vector.shape})
    return vector.copy()
