"""How the parameters move once their gradients are known.

    SGD        p -= learning_rate * gradient, optionally with momentum: a running sum of gradients
    RMSProp    each parameter's step is divided by the running size of its own gradient
    Adam       momentum and RMSProp together, both corrected for having started at zero

Weight decay adds weight_decay * p to the gradient first (the L2 form, as in torch.optim). All three
follow torch.optim's definitions. An optimizer belongs to one network: it remembers a buffer for each
parameter. `learning_rate` may be set between steps; that is how schedules work.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any

from .arrays import asarray, matrix_shape


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
        self._state = _State("velocity") if momentum else _State()

    def step(self, parameters: Sequence[Any], gradients: Sequence[Any]) -> None:
        """Change the parameters in place. Both lists have the same order and shapes."""
        self._state.begin_step(parameters, gradients)

        def update(p: list[float], g: list[float], buffers: list[list[float]]) -> None:
            for i in range(len(p)):
                slope = g[i] + self.weight_decay * p[i] if self.weight_decay else g[i]
                if self.momentum:
                    (v,) = buffers
                    v[i] = self.momentum * v[i] + slope
                    slope = slope + self.momentum * v[i] if self.nesterov else v[i]
                p[i] -= self.learning_rate * slope

        self._state.for_each_row(update, parameters, gradients)

    def state(self) -> dict[str, Any]:
        """{"steps": int, "buffers": {"velocity": [one array per parameter]}}."""
        return self._state.save()

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue from a `state()`, of this stage or another."""
        self._state.load(state)


class RMSProp:
    """Divide each step by the running root mean square of the gradient. Same as torch.optim.RMSprop(lr, alpha, eps).

    g = gradient + weight_decay * p;  s = alpha * s + (1 - alpha) * g²;  p -= learning_rate * g / (sqrt(s) + epsilon)
    """

    def __init__(
        self, learning_rate: float = 0.01, alpha: float = 0.99, epsilon: float = 1e-8, weight_decay: float = 0.0
    ) -> None:
        self.learning_rate = _at_least_zero("learning_rate", learning_rate)
        self.alpha = _fraction("alpha", alpha)
        self.epsilon = _at_least_zero("epsilon", epsilon)
        self.weight_decay = _at_least_zero("weight_decay", weight_decay)
        self._state = _State("square_average")

    def step(self, parameters: Sequence[Any], gradients: Sequence[Any]) -> None:
        """Change the parameters in place. Both lists have the same order and shapes."""
        self._state.begin_step(parameters, gradients)

        def update(p: list[float], g: list[float], buffers: list[list[float]]) -> None:
            (s,) = buffers
            for i in range(len(p)):
                slope = g[i] + self.weight_decay * p[i] if self.weight_decay else g[i]
                s[i] = self.alpha * s[i] + (1.0 - self.alpha) * slope * slope
                p[i] -= self.learning_rate * _divide(slope, math.sqrt(s[i]) + self.epsilon)

        self._state.for_each_row(update, parameters, gradients)

    def state(self) -> dict[str, Any]:
        """{"steps": int, "buffers": {"square_average": [one array per parameter]}}."""
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
        self._state = _State("first_moment", "second_moment")

    def step(self, parameters: Sequence[Any], gradients: Sequence[Any]) -> None:
        """Change the parameters in place. Both lists have the same order and shapes."""
        t = self._state.begin_step(parameters, gradients)
        step_size = self.learning_rate / (1.0 - self.beta1**t)
        root_correction = math.sqrt(1.0 - self.beta2**t)

        def update(p: list[float], g: list[float], buffers: list[list[float]]) -> None:
            m, v = buffers
            for i in range(len(p)):
                slope = g[i] + self.weight_decay * p[i] if self.weight_decay else g[i]
                m[i] = self.beta1 * m[i] + (1.0 - self.beta1) * slope
                v[i] = self.beta2 * v[i] + (1.0 - self.beta2) * slope * slope
                p[i] -= step_size * _divide(m[i], math.sqrt(v[i]) / root_correction + self.epsilon)

        self._state.for_each_row(update, parameters, gradients)

    def state(self) -> dict[str, Any]:
        """{"steps": int, "buffers": {"first_moment": […], "second_moment": […]}}, one array per parameter."""
        return self._state.save()

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue from a `state()`, of this stage or another."""
        self._state.load(state)


class _State:
    """What an optimizer remembers between steps: how many there were, and named buffers shaped like the parameters."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.steps = 0
        self.buffers: dict[str, list[Any]] = {}

    def begin_step(self, parameters: Sequence[Any], gradients: Sequence[Any]) -> int:
        """Check the shapes, make the buffers on the first step, count the step. Returns its number, from 1."""
        _check_same_shapes("gradients", gradients, parameters)
        for name in self.names:
            if name not in self.buffers:
                self.buffers[name] = [_zeros_like(p) for p in parameters]
            _check_same_shapes(f"the optimizer's {name}", self.buffers[name], parameters)
        self.steps += 1
        return self.steps

    def for_each_row(self, update: Callable[..., None], parameters: Sequence[Any], gradients: Sequence[Any]) -> None:
        """update(p, g, buffers) on every row of every weight matrix and on every bias: each is a list of floats."""
        for i, (p, g) in enumerate(zip(parameters, gradients, strict=True)):
            buffers = [self.buffers[name][i] for name in self.names]
            if isinstance(p[0], list):
                for r in range(len(p)):
                    update(p[r], g[r], [buffer[r] for buffer in buffers])
            else:
                update(p, g, buffers)

    def save(self) -> dict[str, Any]:
        buffers = {name: [asarray(array) for array in arrays] for name, arrays in self.buffers.items()}
        return {"steps": self.steps, "buffers": buffers}

    def load(self, state: Mapping[str, Any]) -> None:
        if not {"steps", "buffers"} <= set(state) or int(state["steps"]) < 0:
            raise ValueError(f'load_state: expected {{"steps": at least 0, "buffers": …}}, got {dict(state)}')
        if state["buffers"] and set(state["buffers"]) != set(self.names):
            raise ValueError(
                f"load_state: expected buffers {sorted(self.names)}, got {sorted(state['buffers'])}: "
                "this state is another optimizer's"
            )
        self.steps = int(state["steps"])
        self.buffers = {name: [asarray(array) for array in arrays] for name, arrays in state["buffers"].items()}


def _divide(a: float, b: float) -> float:
    """a / b as IEEE does it, where Python would raise for b = 0 (which epsilon = 0 makes possible)."""
    if b != 0.0:
        return a / b
    return math.nan if a == 0.0 or math.isnan(a) else math.copysign(math.inf, a)


def _zeros_like(array: Any) -> Any:
    return [[0.0] * len(row) for row in array] if isinstance(array[0], list) else [0.0] * len(array)


def _shape(array: Any) -> tuple[int, ...]:
    return matrix_shape("step", array) if isinstance(array[0], list) else (len(array),)


def _check_same_shapes(what: str, arrays: Sequence[Any], parameters: Sequence[Any]) -> None:
    if len(arrays) != len(parameters):
        raise ValueError(f"step: there are {len(parameters)} parameters but {len(arrays)} arrays in {what}")
    for i, (array, p) in enumerate(zip(arrays, parameters, strict=True)):
        if _shape(array) != _shape(p):
            raise ValueError(f"step: parameter {i} is {_shape(p)} but number {i} of {what} is {_shape(array)}")


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
