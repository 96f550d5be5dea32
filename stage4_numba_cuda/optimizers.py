"""How the parameters move once their gradients are known.

    SGD        p -= learning_rate * gradient, optionally with momentum: a running sum of gradients
    RMSProp    each parameter's step is divided by the running size of its own gradient
    Adam       momentum and RMSProp together, both corrected for having started at zero

Weight decay adds weight_decay * p to the gradient first (the L2 form, as in torch.optim). All three
follow torch.optim's definitions. An optimizer belongs to one network: it remembers a buffer for each
parameter. `learning_rate` may be set between steps; that is how schedules work.

One launch for each parameter. Parameters, gradients and buffers are device arrays and never leave the device; what a
step multiplies with is eight numbers, copied there when one of them has changed. The formulas are in
kernels/optimizers.py. All parameters are checked before the first one moves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

from . import launch
from .arrays import Array
from .kept import Kept
from .kernels import optimizers as kernels


class SGD:
    """Stochastic gradient descent. Same as torch.optim.SGD(lr, momentum, nesterov=…, weight_decay=…).

    g = gradient + weight_decay * p;  v = momentum * v + g;  p -= learning_rate * v
    nesterov: p -= learning_rate * (g + momentum * v), a look ahead along the momentum
    Raises ValueError for a number out of its range, or Nesterov without momentum.
    """

    def __init__(
        self, learning_rate: float, momentum: float = 0.0, nesterov: bool = False, weight_decay: float = 0.0
    ) -> None:
        self.learning_rate = _at_least_zero("learning_rate", learning_rate)
        self.momentum = _fraction("momentum", momentum)
        if nesterov and momentum == 0.0:
            raise ValueError("nesterov: needs a momentum above 0, got momentum 0")
        self.nesterov = nesterov
        self.weight_decay = _at_least_zero("weight_decay", weight_decay)
        self.kept = Kept("velocity") if momentum else Kept()

    @property
    def kind(self) -> int:
        """The number of its kernel in kernels/optimizers.py."""
        if not self.momentum:
            return kernels.SGD
        return kernels.NESTEROV if self.nesterov else kernels.MOMENTUM

    def step(self, parameters: Sequence[Array], gradients: Sequence[Array]) -> None:
        """Change the parameters in place. Both lists have the same order and shapes, and for each pair one dtype.

        Raises TypeError for what is not on the device and for a mix of dtypes, ValueError for a parameter that is not
        contiguous or overlaps its gradient; nothing has moved then.
        """
        take_step(self, parameters, gradients)

    def numbers(self, ahead: int = 0) -> dict[str, float]:
        """What the next step multiplies with, and the one `ahead` steps after it."""
        if self.momentum and not self.kept.names:
            raise ValueError(f"momentum: was 0 when this SGD was made and is {self.momentum} now; make a new SGD")
        return {
            "learning_rate": _number("learning_rate", self.learning_rate),
            "momentum": self.momentum,
            "nesterov": bool(self.nesterov),
            "weight_decay": self.weight_decay,
        }

    def device_numbers(self, dtype: Any) -> Array:
        """The same on the device in this dtype, (8,), in the order of kernels/optimizers.py."""
        return self.kept.device_numbers(self.numbers(), dtype)

    def state(self) -> dict[str, Any]:
        """{"steps": int, "buffers": {"velocity": [one NumPy array per parameter]}}."""
        return self.kept.save()

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue from a `state()`, of this stage or another."""
        self.kept.load(state)


class RMSProp:
    """Divide each step by the running root mean square of the gradient. Same as torch.optim.RMSprop(lr, alpha, eps).

    g = gradient + weight_decay * p;  s = alpha * s + (1 - alpha) * g²;  p -= learning_rate * g / (sqrt(s) + epsilon)
    """

    kind = kernels.RMSPROP

    def __init__(
        self, learning_rate: float = 0.01, alpha: float = 0.99, epsilon: float = 1e-8, weight_decay: float = 0.0
    ) -> None:
        self.learning_rate = _at_least_zero("learning_rate", learning_rate)
        self.alpha = _fraction("alpha", alpha)
        self.epsilon = _at_least_zero("epsilon", epsilon)
        self.weight_decay = _at_least_zero("weight_decay", weight_decay)
        self.kept = Kept("square_average")

    def step(self, parameters: Sequence[Array], gradients: Sequence[Array]) -> None:
        """Change the parameters in place. What it takes and refuses is as for SGD."""
        take_step(self, parameters, gradients)

    def numbers(self, ahead: int = 0) -> dict[str, float]:
        """What the next step multiplies with, and the one `ahead` steps after it."""
        return {
            "learning_rate": _number("learning_rate", self.learning_rate),
            "alpha": self.alpha,
            "epsilon": self.epsilon,
            "weight_decay": self.weight_decay,
        }

    def device_numbers(self, dtype: Any) -> Array:
        """The same on the device in this dtype, (8,), in the order of kernels/optimizers.py."""
        return self.kept.device_numbers(self.numbers(), dtype)

    def state(self) -> dict[str, Any]:
        """{"steps": int, "buffers": {"square_average": [one NumPy array per parameter]}}."""
        return self.kept.save()

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue from a `state()`, of this stage or another."""
        self.kept.load(state)


class Adam:
    """Adaptive moments (Kingma & Ba 2015). Same as torch.optim.Adam(lr, betas, eps).

    g = gradient + weight_decay * p
    m = beta1 * m + (1 - beta1) * g;   v = beta2 * v + (1 - beta2) * g²
    p -= learning_rate * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon) at step t = 1, 2, …
    """

    kind = kernels.ADAM

    def __init__(
        self,
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        self.learning_rate = _at_least_zero("learning_rate", learning_rate)
        self.beta1 = _fraction("beta1", beta1)
        self.beta2 = _fraction("beta2", beta2)
        self.epsilon = _at_least_zero("epsilon", epsilon)
        self.weight_decay = _at_least_zero("weight_decay", weight_decay)
        self.kept = Kept("first_moment", "second_moment")

    def step(self, parameters: Sequence[Array], gradients: Sequence[Array]) -> None:
        """Change the parameters in place. What it takes and refuses is as for SGD."""
        take_step(self, parameters, gradients)

    def numbers(self, ahead: int = 0) -> dict[str, float]:
        """What the next step multiplies with, or the one `ahead` steps after it: the corrections depend on t."""
        t = self.kept.steps + 1 + ahead
        return {
            "step_size": _number("learning_rate", self.learning_rate) / (1.0 - self.beta1**t),
            "beta1": self.beta1,
            "beta2": self.beta2,
            "root_correction": math.sqrt(1.0 - self.beta2**t),
            "epsilon": self.epsilon,
            "weight_decay": self.weight_decay,
        }

    def device_numbers(self, dtype: Any) -> Array:
        """The same on the device in this dtype, (8,), in the order of kernels/optimizers.py."""
        return self.kept.device_numbers(self.numbers(), dtype)

    def state(self) -> dict[str, Any]:
        """{"steps": int, "buffers": {"first_moment": […], "second_moment": […]}}, one NumPy array per parameter."""
        return self.kept.save()

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue from a `state()`, of this stage or another."""
        self.kept.load(state)


def take_step(optimizer: SGD | RMSProp | Adam, parameters: Sequence[Array], gradients: Sequence[Array]) -> None:
    """One launch for each parameter, after all of them were checked."""
    kind, kept, numbers = optimizer.kind, optimizer.kept, optimizer.numbers()
    slopes = kept.begin_step(parameters, gradients)
    buffers = kept.memory(parameters).values() if kind != kernels.SGD else ()
    for p, slope, *mine in zip(parameters, slopes, *buffers, strict=True):
        kernel = kernels.KERNELS[kind][launch.elementwise(p.size)]
        kernel(*(array.reshape(p.size) for array in (p, slope, *mine)), kept.device_numbers(numbers, p.dtype))


def _at_least_zero(name: str, value: float) -> float:
    if not (math.isfinite(_number(name, value)) and value >= 0.0):
        raise ValueError(f"{name}: expected a finite number of at least 0, got {value}")
    return value


def _fraction(name: str, value: float) -> float:
    if not 0.0 <= _number(name, value) < 1.0:
        raise ValueError(f"{name}: expected a number of at least 0 and below 1, got {value}")
    return value


def _number(name: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name}: expected a number, got {value!r}")
    return float(value)
