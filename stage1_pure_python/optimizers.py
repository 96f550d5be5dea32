"""How the parameters move once their gradients are known.

    SGD        p -= learning_rate * gradient, optionally with momentum: a running sum of gradients
    RMSProp    each parameter's step is divided by the running size of its own gradient
    Adam       momentum and RMSProp together, both corrected for having started at zero

Weight decay adds weight_decay * p to the gradient first (the L2 form, as in torch.optim). All three
follow torch.optim's definitions. An optimizer belongs to one network: it keeps a buffer for each
parameter. `learning_rate` may be set between steps; schedules use this.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from numbers import Real
from operator import index
from typing import Any

from .arrays import as_images, asarray, matrix_shape


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
        self.learning_rate = learning_rate
        self.alpha = alpha
        self.epsilon = epsilon
        self.weight_decay = weight_decay
        self._state = OptimizerState("square_average")

    def __setattr__(self, name: str, value: Any) -> None:
        """Check a hyperparameter whenever it is set: when the optimizer is made, and between two steps."""
        super().__setattr__(name, _checked(name, value))

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
        self.learning_rate = learning_rate
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.weight_decay = weight_decay
        self._state = OptimizerState("first_moment", "second_moment")

    def __setattr__(self, name: str, value: Any) -> None:
        """Check a hyperparameter whenever it is set: when the optimizer is made, and between two steps."""
        super().__setattr__(name, _checked(name, value))

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


class OptimizerState:
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
        """update(p, g, buffers) on every row of every weight matrix or kernel and on every bias: lists of floats."""
        for i, (p, g) in enumerate(zip(parameters, gradients, strict=True)):
            _each_row(update, p, g, [self.buffers[name][i] for name in self.names])

    def save(self) -> dict[str, Any]:
        """{"steps": int, "buffers": {name: [one array per parameter]}}, in copies."""
        buffers = {name: [asarray(array) for array in arrays] for name, arrays in self.buffers.items()}
        return {"steps": self.steps, "buffers": buffers}

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from a copy of what `save` returned, here or on another floor.

        Raises TypeError or ValueError if it is no such state, or another optimizer's.
        """
        if not isinstance(state, Mapping):
            raise TypeError(f"load_state: expected what state() returns, got {type(state).__name__}")
        if not {"steps", "buffers"} <= set(state):
            raise ValueError(f"load_state: expected the keys steps and buffers, got {sorted(map(str, state))}")
        steps, buffers = state["steps"], state["buffers"]
        if not _is_count(steps):
            raise ValueError(f"load_state: steps: expected a whole number of at least 0, got {steps!r}")
        if not isinstance(buffers, Mapping):
            raise ValueError(f"load_state: buffers: expected lists of arrays by name, got {type(buffers).__name__}")
        if buffers and set(buffers) != set(self.names):
            raise ValueError(
                f"load_state: expected buffers {sorted(self.names)}, got {sorted(map(str, buffers))}: "
                "this state is another optimizer's"
            )
        self.buffers = {name: _loaded(name, arrays) for name, arrays in buffers.items()}
        self.steps = int(steps)


def _is_count(value: Any) -> bool:
    """Whether it is a whole number of at least 0: Python's, NumPy's, or a NumPy array of one."""
    try:
        return index(value) >= 0
    except TypeError:
        return False


def _loaded(name: str, arrays: Any) -> list[Any]:
    """Copies of one name's buffers, whatever stage wrote them."""
    if not isinstance(arrays, Iterable) or isinstance(arrays, (str, Mapping)):
        raise TypeError(f"load_state: {name}: expected a list of arrays, got {type(arrays).__name__}")
    copies = []
    for i, values in enumerate(arrays):
        try:
            copies.append(asarray(values))
        except (TypeError, ValueError) as error:
            raise type(error)(f"load_state: number {i} of {name}: {error}") from error
    return copies


def _divide(a: float, b: float) -> float:
    """a / b as IEEE does it, where Python would raise for b = 0 (which epsilon = 0 makes possible)."""
    if b != 0.0:
        return a / b
    return math.nan if a == 0.0 or math.isnan(a) else math.copysign(math.inf, a)


def _each_row(update: Callable[..., None], p: Any, g: Any, buffers: list[Any]) -> None:
    if not isinstance(p[0], list):
        update(p, g, buffers)
        return
    for r in range(len(p)):
        _each_row(update, p[r], g[r], [buffer[r] for buffer in buffers])


def _zeros_like(array: Any) -> Any:
    return [_zeros_like(row) for row in array] if isinstance(array[0], list) else [0.0] * len(array)


def _shape(name: str, array: Any) -> tuple[int, ...]:
    if not isinstance(array, list):
        raise TypeError(f"step: {name} is a {type(array).__name__}, expected an array; see asarray")
    if not array:
        raise ValueError(f"step: {name} is (0,), expected at least one value")
    if not isinstance(array[0], list):
        return (len(array),)
    is_kernel = bool(array[0]) and isinstance(array[0][0], list)
    return as_images(f"step: {name}", array)[1] if is_kernel else matrix_shape(f"step: {name}", array)


def _check_same_shapes(what: str, arrays: Sequence[Any], parameters: Sequence[Any]) -> None:
    for name, given in (("parameters", parameters), (what, arrays)):
        if not isinstance(given, Sized):
            raise TypeError(f"step: {name} is a {type(given).__name__}, expected a list of arrays")
    if len(arrays) != len(parameters):
        raise ValueError(f"step: there are {len(parameters)} parameters but {len(arrays)} arrays in {what}")
    for i, (array, p) in enumerate(zip(arrays, parameters, strict=True)):
        shape, expected = _shape(f"number {i} of {what}", array), _shape(f"parameter {i}", p)
        if shape != expected:
            raise ValueError(f"step: parameter {i} is {expected} but number {i} of {what} is {shape}")


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
