"""Batch normalisation: each channel of a batch is brought to mean 0 and deviation 1, then scaled and shifted.

    y = gamma * normalised + beta,  normalised = (x - mean) / sqrt(variance + epsilon)

with one gamma and one beta for each channel. While training, mean and variance are those of the batch, over N, H and W
(over N for rows of features), and running averages of them are kept. After training, these averages are used, so
that the answer for an image does not depend on the other images of its batch. The variance that normalises divides by
the count n of the values; the running variance divides by n - 1, as in PyTorch.

Inside, a batch is one list of numbers for each channel, image after image.
"""

import math
from dataclasses import dataclass
from typing import Any

from shared.layers import normalisation_numbers
from shared.shapes import check_grad_output, check_normalised, check_one_a_channel, check_same

from .arrays import Matrix, Vector, as_list, as_vector, shape_of


@dataclass(frozen=True)
class Saved:
    """What `batch_norm` keeps for `batch_norm_backward`.

    normalised: one list for each channel; slope: gamma / sqrt(variance + epsilon), (C,)
    shape: of x; training: whether mean and variance came from the batch, and so depend on x
    """

    normalised: Matrix
    slope: Vector
    shape: tuple[int, ...]
    training: bool
    whole_batch: Any = None


def batch_norm(
    x: Any,
    gamma: Vector,
    beta: Vector,
    running_mean: Vector,
    running_var: Vector,
    training: bool,
    momentum: float = 0.1,
    epsilon: float = 1e-5,
    whole_batch: Any = None,
) -> tuple[Any, Saved]:
    """x (N, C, H, W) or (N, C), all others (C,) -> output shaped like x, and what the backward pass needs.

    Same as torch.nn.functional.batch_norm. While training, the running lists are changed in place:
    running = (1 - momentum) * running + momentum * the batch's.
    whole_batch: where other processes have rows of the batch, too, the statistics are those of all rows
    Raises ValueError where shapes do not fit, or while training with one value a channel.

    The mean is subtracted before anything is squared: numbers far from zero lose no digits that way.
    Squares too large for the dtype make the variance inf and the output beta; see docs/numerics.md for larger numbers.
    """
    x, shape = _checked_x(x)
    if training:
        _check_changeable(running_mean=running_mean, running_var=running_var)
    gammas, betas, means, variances = _checked_channels(
        shape, gamma=gamma, beta=beta, running_mean=running_mean, running_var=running_var
    )
    momentum, epsilon = normalisation_numbers(momentum, epsilon)
    channels = _by_channel(x, shape)
    count = len(channels[0])
    if training and count == 1 and whole_batch is None:
        raise ValueError(f"batch_norm: expected more than 1 value per channel when training, got x of shape {shape}")
    if training:
        means = [_sum(values) / count for values in channels]
        squares = [
            sum([(value - mean) * (value - mean) for value in values])
            for values, mean in zip(channels, means, strict=True)
        ]
        if whole_batch is not None:
            count, *statistics = whole_batch.moments(count, means, squares)
            means, squares = (values.tolist() for values in statistics)
        variances = [each / count for each in squares]
        for c, (mean, variance) in enumerate(zip(means, variances, strict=True)):
            running_mean[c] = (1 - momentum) * running_mean[c] + momentum * mean
            running_var[c] = (1 - momentum) * running_var[c] + momentum * variance * count / (count - 1)
    inverse = [_inverse_root(variance + epsilon) for variance in variances]
    normalised = [
        [(value - mean) * scale for value in values]
        for values, mean, scale in zip(channels, means, inverse, strict=True)
    ]
    outputs = [[g * value + b for value in values] for values, g, b in zip(normalised, gammas, betas, strict=True)]
    slope = [g * scale for g, scale in zip(gammas, inverse, strict=True)]
    return _shaped_like(outputs, shape), Saved(normalised, slope, shape, bool(training), whole_batch)


def batch_norm_backward(grad_output: Any, saved: Saved) -> tuple[Any, Vector, Vector]:
    """From dL/doutput, shaped like x, to (dL/dx, dL/dgamma, dL/dbeta).

    With g = grad_output and n values a channel: dL/dbeta = sum of g, dL/dgamma = sum of g * normalised, and while
    training dL/dx = slope * (g - dL/dbeta / n - normalised * dL/dgamma / n). The last two terms are there because mean
    and variance depend on x; in use they do not, and dL/dx = slope * g.
    """
    if not isinstance(saved, Saved):
        kind = type(saved).__name__
        raise TypeError(f"batch_norm_backward: saved is {kind}, expected what batch_norm returned beside its output")
    try:
        grad_output = as_list(grad_output)
    except (TypeError, ValueError) as error:
        raise type(error)(f"batch_norm_backward: grad_output: {error}") from error
    check_grad_output("batch_norm_backward", shape_of(grad_output), saved.shape, "x")
    grads = _by_channel(grad_output, saved.shape)
    count = len(grads[0])
    grad_beta = [sum(values) for values in grads]
    grad_gamma = [
        sum([g * value for g, value in zip(values, normalised, strict=True)])
        for values, normalised in zip(grads, saved.normalised, strict=True)
    ]
    if saved.training and saved.whole_batch is not None:
        grad_beta, grad_gamma = saved.whole_batch.sums(grad_beta, grad_gamma).tolist()
    grad_input = []
    for c, values in enumerate(grads):
        slope, shift, bend = saved.slope[c], grad_beta[c] / count, grad_gamma[c] / count
        if saved.training:
            pairs = zip(values, saved.normalised[c], strict=True)
            grad_input.append([slope * (g - shift - bend * value) for g, value in pairs])
        else:
            grad_input.append([slope * g for g in values])
    return _shaped_like(grad_input, saved.shape), grad_gamma, grad_beta


class BatchNorm:
    """A layer that normalises each channel. Same as torch.nn.BatchNorm2d and BatchNorm1d.

    gamma, beta: (channels,), copied
    running_mean, running_var: (channels,), copied; zeros and ones if None. Training changes them in place.
    grad_gamma, grad_beta: as of the last `backward`, zeros before the first
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
        self.gamma = as_vector("BatchNorm: gamma", gamma)
        channels = len(self.gamma)
        self.beta = _vector_like("beta", beta, self.gamma)
        mean = [0.0] * channels if running_mean is None else running_mean
        variance = [1.0] * channels if running_var is None else running_var
        self.running_mean = _vector_like("running_mean", mean, self.gamma)
        self.running_var = _vector_like("running_var", variance, self.gamma)
        self.momentum, self.epsilon = normalisation_numbers(momentum, epsilon, "BatchNorm")
        self.grad_gamma: Vector = [0.0] * channels
        self.grad_beta: Vector = [0.0] * channels
        self.whole_batch: Any = None
        self._saved: Saved | None = None

    def forward(self, x: Any, training: bool = False) -> Any:
        """x (N, C, H, W) or (N, C) -> the same shape. Remembers what `backward` needs."""
        output, self._saved = batch_norm(
            x, self.gamma, self.beta, self.running_mean, self.running_var, training, self.momentum, self.epsilon,
            self.whole_batch,
        )  # fmt: skip
        return output

    def backward(self, grad_output: Any) -> Any:
        """From dL/doutput to grad_gamma, grad_beta and dL/dx, which is returned."""
        if self._saved is None:
            raise ValueError("BatchNorm.backward: there was no forward pass yet, so there is nothing to differentiate")
        grad_input, self.grad_gamma, self.grad_beta = batch_norm_backward(grad_output, self._saved)
        return grad_input


def _by_channel(x: Any, shape: tuple[int, ...]) -> Matrix:
    """(N, C, H, W) or (N, C) as one list of N H W or N numbers for each channel."""
    if len(shape) == 2:
        return [list(column) for column in zip(*x, strict=True)]
    return [[value for image in x for row in image[c] for value in row] for c in range(shape[1])]


def _shaped_like(channels: Matrix, shape: tuple[int, ...]) -> Any:
    """The lists of `_by_channel` in the shape (N, C, H, W) or (N, C) again."""
    if len(shape) == 2:
        return [list(row) for row in zip(*channels, strict=True)]
    numbers = [iter(values) for values in channels]
    _, _, rows, columns = shape
    return [
        [[[next(values) for _ in range(columns)] for _ in range(rows)] for values in numbers] for _ in range(shape[0])
    ]


def _inverse_root(value: float) -> float:
    """1 / sqrt(value), for 0 and negative numbers as IEEE arithmetic has it: Python raises errors there."""
    if value > 0:
        return 1 / math.sqrt(value)
    return math.inf if value == 0 else math.nan


def _sum(values: Vector) -> float:
    """Added up without any rounding, unless it is too large for that, or inf - inf."""
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):
        return sum(values)


def _checked_x(x: Any) -> tuple[Any, tuple[int, ...]]:
    try:
        x = as_list(x)
    except (TypeError, ValueError) as error:
        raise type(error)(f"batch_norm: x: {error}") from error
    shape = shape_of(x)
    check_normalised(shape)
    return x, shape


def _checked_channels(shape: tuple[int, ...], **lists: Any) -> list[Vector]:
    """Copies of the lists of one number for each channel, after a check of their length."""
    checked = []
    for name, values in lists.items():
        vector = as_vector(f"batch_norm: {name}", values)
        check_one_a_channel(name, shape_of(vector), shape)
        checked.append(vector)
    return checked


def _check_changeable(**running: Any) -> None:
    for name, values in running.items():
        if not isinstance(values, list):
            raise TypeError(f"batch_norm: {name}: expected an array to change in place, got {type(values).__name__}")


def _vector_like(name: str, values: Any, gamma: Vector) -> Vector:
    vector = as_vector(f"BatchNorm: {name}", values)
    check_same("BatchNorm", gamma=shape_of(gamma), **{name: shape_of(vector)})
    return vector
