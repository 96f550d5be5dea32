"""How the parameters move once their gradients are known.

    SGD        p -= learning_rate * gradient, optionally with momentum: a running sum of gradients
    RMSProp    each parameter's step is divided by the running size of its own gradient
    Adam       momentum and RMSProp together, both corrected for having started at zero

Weight decay adds weight_decay * p to the gradient first (the L2 form, as in torch.optim). All three
follow torch.optim's definitions. An optimizer belongs to one network: it keeps a buffer for each
parameter. `learning_rate` may be set between steps; schedules use this.

One launch for each parameter. Parameters, gradients and buffers are device arrays and never leave the device; the
factors of a step are eight numbers, which are copied there when one of them has changed. The formulas are in
kernels/optimizers.py. All parameters are checked before the first one moves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from . import launch
from .arrays import Array
from .kernels import optimizers as kernels
from .optimizer_state import OptimizerState


class SGD:
    """Stochastic gradient descent. Same as torch.optim.SGD(lr, momentum, nesterov=…, weight_decay=…).

    g = gradient + weight_decay * p;  v = momentum * v + g;  p -= learning_rate * v
    nesterov: p -= learning_rate * (g + momentum * v), a look ahead along the momentum
    Raises ValueError for a number out of its range, or Nesterov without momentum.
    """

    def __init__(
        self, learning_rate: float, momentum: float = 0.0, nesterov: bool = False, weight_decay: float = 0.0
    ) -> None:
        self._state = OptimizerState("velocity") if _fraction("momentum", momentum) else OptimizerState()
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.nesterov = nesterov
        self.weight_decay = weight_decay

    def __setattr__(self, name: str, value: Any) -> None:
        """Check a hyperparameter whenever it is set: when the optimizer is made, and between two steps."""
        value = _checked(name, value)
        if name == "momentum" and value and not self._state.names:
            raise ValueError(f"momentum: was 0 when this SGD was made and is {value} now; make a new SGD")
        if name == "nesterov" and value and not self.momentum:
            raise ValueError("nesterov: needs a momentum above 0, got momentum 0")
        super().__setattr__(name, value)

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

    def numbers(self) -> dict[str, float]:
        """What the next step multiplies with."""
        return {
            "learning_rate": self.learning_rate,
            "momentum": self.momentum,
            "nesterov": bool(self.nesterov),
            "weight_decay": self.weight_decay,
        }

    def scheduled(self, rates: np.ndarray) -> dict[str, np.ndarray]:
        """Which of these numbers differ in the coming steps, which have these learning rates: one for each step."""
        return {"learning_rate": rates}

    def device_numbers(self, dtype: Any) -> Array:
        """The same on the device in this dtype, (8,), in the order of kernels/optimizers.py."""
        return self._state.device_numbers(self.numbers(), dtype)

    def state(self) -> dict[str, Any]:
        """{"steps": int, "buffers": {"velocity": [one NumPy array per parameter]}}."""
        return self._state.save()

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue from a `state()`, of this stage or another."""
        self._state.load(state)


class RMSProp:
    """Divide each step by the running root mean square of the gradient. Same as torch.optim.RMSprop(lr, alpha, eps).

    g = gradient + weight_decay * p;  s = alpha * s + (1 - alpha) * g²;  p -= learning_rate * g / (sqrt(s) + epsilon)
    """

    kind = kernels.RMSPROP

    def __init__(
        self, learning_rate: float = 0.01, alpha: float = 0.99, epsilon: float = 1e-8, weight_decay: float = 0.0
    ) -> None:
        self.learning_rate = learning_rate
        self.alpha = alpha
        self.epsilon = epsilon
        self.weight_decay = weight_decay
        self._state = OptimizerState("square_average")

    def __setattr__(self, name: str, value: Any) -> None:
        """Check a hyperparameter whenever it is set: when the optimizer is made, and between two steps."""
        super().__setattr__(name, _checked(name, value))

    def step(self, parameters: Sequence[Array], gradients: Sequence[Array]) -> None:
        """Change the parameters in place. What it takes and refuses is as for SGD."""
        take_step(self, parameters, gradients)

    def numbers(self) -> dict[str, float]:
        """What the next step multiplies with."""
        return {
            "learning_rate": self.learning_rate,
            "alpha": self.alpha,
            "epsilon": self.epsilon,
            "weight_decay": self.weight_decay,
        }

    def scheduled(self, rates: np.ndarray) -> dict[str, np.ndarray]:
        """Which of these numbers differ in the coming steps, which have these learning rates: one for each step."""
        return {"learning_rate": rates}

    def device_numbers(self, dtype: Any) -> Array:
        """The same on the device in this dtype, (8,), in the order of kernels/optimizers.py."""
        return self._state.device_numbers(self.numbers(), dtype)

    def state(self) -> dict[str, Any]:
        """{"steps": int, "buffers": {"square_average": [one NumPy array per parameter]}}."""
        return self._state.save()

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue from a `state()`, of this stage or another."""
        self._state.load(state)


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
        self.learning_rate = learning_rate
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.weight_decay = weight_decay
        self._state = OptimizerState("first_moment", "second_moment")

    def __setattr__(self, name: str, value: Any) -> None:
        """Check a hyperparameter whenever it is set: when the optimizer is made, and between two steps."""
        super().__setattr__(name, _checked(name, value))

    def step(self, parameters: Sequence[Array], gradients: Sequence[Array]) -> None:
        """Change the parameters in place. What it takes and refuses is as for SGD."""
        take_step(self, parameters, gradients)

    def numbers(self) -> dict[str, float]:
        """What the next step multiplies with: the corrections depend on t."""
        t = self._state.steps + 1
        return {
            "step_size": self.learning_rate / (1.0 - self.beta1**t),
            "beta1": self.beta1,
            "beta2": self.beta2,
            "root_correction": math.sqrt(1.0 - self.beta2**t),
            "epsilon": self.epsilon,
            "weight_decay": self.weight_decay,
        }

    def scheduled(self, rates: np.ndarray) -> dict[str, np.ndarray]:
        """Which of these numbers differ in the coming steps, which have these learning rates: one for each step."""
        coming = range(self._state.steps + 1, self._state.steps + 1 + len(rates))
        # Powers by Python, not NumPy: the last bit is then that of `numbers`, and a run that of single steps.
        first, second = (np.array([1.0 - beta**t for t in coming]) for beta in (self.beta1, self.beta2))
        return {"step_size": rates / first, "root_correction": np.sqrt(second)}

    def device_numbers(self, dtype: Any) -> Array:
        """The same on the device in this dtype, (8,), in the order of kernels/optimizers.py."""
        return self._state.device_numbers(self.numbers(), dtype)

    def state(self) -> dict[str, Any]:
        """{"steps": int, "buffers": {"first_moment": […], "second_moment": […]}}, one NumPy array per parameter."""
        return self._state.save()

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue from a `state()`, of this stage or another."""
        self._state.load(state)


def take_step(optimizer: SGD | RMSProp | Adam, parameters: Sequence[Array], gradients: Sequence[Array]) -> None:
    """One launch for each parameter, after all of them were checked."""
    kind, state, numbers = optimizer.kind, optimizer._state, optimizer.numbers()
    slopes = state.begin_step(parameters, gradients)
    buffers = state.memory(parameters).values() if kind != kernels.SGD else ()
    for p, slope, *mine in zip(parameters, slopes, *buffers, strict=True):
        kernel = kernels.KERNELS[kind][launch.elementwise(p.size)]
        kernel(*(array.reshape(p.size) for array in (p, slope, *mine)), state.device_numbers(numbers, p.dtype))


def _checked(name: str, value: Any) -> Any:
    """The value of an optimizer's attribute; if it is a hyperparameter, its type and range were checked."""
    check = CHECKS.get(name)
    return value if check is None else check(name, value)


def _at_least_zero(name: str, value: Any) -> float:
    number = _number(name, value)
    if not (math.isfinite(number) and number >= 0.0):
        raise ValueError(f"{name}: expected a finite number of at least 0, got {value}")
    return number


def _fraction(name: str, value: Any) -> float:
    number = _number(name, value)
    if not 0.0 <= number < 1.0:
        raise ValueError(f"{name}: expected a number of at least 0 and below 1, got {value}")
    return number


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name}: expected a number, got {value!r}")
    return float(value)


CHECKS: dict[str, Callable[[str, Any], float]] = {
    "learning_rate": _at_least_zero,
    "momentum": _fraction,
    "alpha": _fraction,
    "beta1": _fraction,
    "beta2": _fraction,
    "epsilon": _at_least_zero,
    "weight_decay": _at_least_zero,
}
"""By its name, the check of each hyperparameter."""
