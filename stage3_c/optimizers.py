"""How the parameters move once their gradients are known.

    SGD        p -= learning_rate * gradient, optionally with momentum: a running sum of gradients
    RMSProp    each parameter's step is divided by the running size of its own gradient
    Adam       momentum and RMSProp together, both corrected for having started at zero

Weight decay adds weight_decay * p to the gradient first (the L2 form, as in torch.optim). All three
follow torch.optim's definitions. An optimizer belongs to one network: it keeps a buffer for each
parameter. `learning_rate` may be set between steps; schedules use this.

One call into C for each parameter: csrc/optimizers.c reads each number once, where stage 2 goes over the whole
array for every operation. All parameters are checked before the first one moves.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from numbers import Real
from operator import index
from typing import Any

import numpy as np

from . import library
from .arrays import DIMENSIONS, Array, aligned_copy, aligned_zeros, asarray, check_writable, overlap, packed

DTYPES = (np.dtype("float32"), np.dtype("float64"))


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

    def step(self, parameters: Sequence[Array], gradients: Sequence[Array]) -> None:
        """Change the parameters in place. Both lists have the same order and shapes, and for each pair one dtype.

        Raises TypeError for a mix of dtypes, ValueError for a parameter that is read-only, not contiguous, or
        overlaps its gradient; nothing has moved then.
        """
        numbers = self.numbers()
        slopes = self._state.begin_step(parameters, gradients)
        velocities = self._state.buffers.get("velocity", [None] * len(parameters))
        for p, slope, v in zip(parameters, slopes, velocities, strict=True):
            library.function("sgd", p.dtype)(p.size, p, slope, v, *numbers.values())

    def numbers(self) -> dict[str, float]:
        """What the next step multiplies with, in the order that C takes them."""
        return {
            "learning_rate": self.learning_rate,
            "momentum": self.momentum,
            "nesterov": bool(self.nesterov),
            "weight_decay": self.weight_decay,
        }

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

    def step(self, parameters: Sequence[Array], gradients: Sequence[Array]) -> None:
        """Change the parameters in place. What it takes and refuses is as for SGD."""
        numbers = self.numbers()
        slopes = self._state.begin_step(parameters, gradients)
        for p, slope, s in zip(parameters, slopes, self._state.buffers["square_average"], strict=True):
            library.function("rmsprop", p.dtype)(p.size, p, slope, s, *numbers.values())

    def numbers(self) -> dict[str, float]:
        """What the next step multiplies with, in the order that C takes them."""
        return {
            "learning_rate": self.learning_rate,
            "alpha": self.alpha,
            "epsilon": self.epsilon,
            "weight_decay": self.weight_decay,
        }

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

    def step(self, parameters: Sequence[Array], gradients: Sequence[Array]) -> None:
        """Change the parameters in place. What it takes and refuses is as for SGD."""
        numbers = self.numbers()
        slopes = self._state.begin_step(parameters, gradients)
        moments = self._state.buffers["first_moment"], self._state.buffers["second_moment"]
        for p, slope, m, v in zip(parameters, slopes, *moments, strict=True):
            library.function("adam", p.dtype)(p.size, p, slope, m, v, *numbers.values())

    def numbers(self) -> dict[str, float]:
        """What the next step multiplies with, in the order that C takes them."""
        t = self._state.steps + 1
        return {
            "step_size": self.learning_rate / (1.0 - self.beta1**t),
            "beta1": self.beta1,
            "beta2": self.beta2,
            "root_correction": math.sqrt(1.0 - self.beta2**t),
            "epsilon": self.epsilon,
            "weight_decay": self.weight_decay,
        }

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
        self.buffers: dict[str, list[Array]] = {}

    def begin_step(self, parameters: Sequence[Array], gradients: Sequence[Array]) -> list[Array]:
        """Check everything, make the buffers on the first step, count the step. Returns the gradients as C reads them.

        Afterwards each buffer is C-contiguous, of its parameter's shape and dtype, and nobody else's memory.
        """
        _check_same_shapes("gradients", gradients, parameters)
        for name, buffers in self.buffers.items():
            _check_same_shapes(f"the optimizer's {name}", buffers, parameters)
        slopes = [_as_pair(i, p, gradient) for i, (p, gradient) in enumerate(zip(parameters, gradients, strict=True))]
        for name, buffers in self.memory(parameters).items():
            for i, (array, p, slope) in enumerate(zip(buffers, parameters, slopes, strict=True)):
                check_writable(f"step: number {i} of the optimizer's {name}", array)
                if overlap(array, p) or overlap(array, slope):
                    raise ValueError(
                        f"step: number {i} of the optimizer's {name} overlaps its parameter or gradient; "
                        "give each memory of its own"
                    )
        self.steps += 1
        return slopes

    def memory(self, parameters: Sequence[Array]) -> dict[str, list[Array]]:
        """By name the buffers as C reads them, one array per parameter, made on the first step."""
        for name in self.names:
            if name not in self.buffers:
                self.buffers[name] = [aligned_zeros(p.shape, p.dtype) for p in parameters]
            buffers = self.buffers[name]
            _check_same_shapes(f"the optimizer's {name}", buffers, parameters)
            for i, p in enumerate(parameters):  # a state loaded from another stage comes in that stage's dtype
                buffers[i] = packed(buffers[i], p.dtype)
        return {name: self.buffers[name] for name in self.names}

    def save(self) -> dict[str, Any]:
        """{"steps": int, "buffers": {name: [one array per parameter]}}, in copies."""
        buffers = {name: [array.copy() for array in arrays] for name, arrays in self.buffers.items()}
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


def _loaded(name: str, arrays: Any) -> list[Array]:
    """Copies of one name's buffers, whatever stage wrote them."""
    if not isinstance(arrays, Iterable) or isinstance(arrays, (str, Mapping)):
        raise TypeError(f"load_state: {name}: expected a list of arrays, got {type(arrays).__name__}")
    copies = []
    for i, values in enumerate(arrays):
        dtype = "float32" if getattr(values, "dtype", None) == "float32" else "float64"
        try:
            copies.append(aligned_copy(asarray(values, dtype), dtype))
        except (TypeError, ValueError) as error:
            raise type(error)(f"load_state: number {i} of {name}: {error}") from error
    return copies


def _as_pair(i: int, p: Array, gradient: Array) -> Array:
    """The gradient as C reads it, after checking that C may change this parameter by it."""
    if p.dtype not in DTYPES:
        raise TypeError(f"step: parameter {i} is {p.dtype}, expected float32 or float64; see asarray")
    if p.size == 0:
        raise ValueError(f"step: parameter {i} is {p.shape}, expected at least one value")
    check_writable(f"step: parameter {i}", p)
    if gradient.dtype.newbyteorder("=") != p.dtype:
        raise TypeError(
            f"step: parameter {i} is {p.dtype} but number {i} of gradients is {gradient.dtype}; convert one of them"
        )
    slope = packed(gradient, p.dtype)
    if overlap(p, slope):
        raise ValueError(f"step: parameter {i} overlaps number {i} of gradients; give each memory of its own")
    return slope


def _check_same_shapes(what: str, arrays: Sequence[Array], parameters: Sequence[Array]) -> None:
    for name, given in (("parameters", parameters), (what, arrays)):
        if not isinstance(given, Sized):
            raise TypeError(f"step: {name} is a {type(given).__name__}, expected a list of arrays")
    if len(arrays) != len(parameters):
        raise ValueError(f"step: there are {len(parameters)} parameters but {len(arrays)} arrays in {what}")
    for i, (array, p) in enumerate(zip(arrays, parameters, strict=True)):
        for name, one in ((f"number {i} of {what}", array), (f"parameter {i}", p)):
            if not isinstance(one, np.ndarray) or isinstance(one, np.ma.MaskedArray):
                raise TypeError(f"step: {name} is a {type(one).__name__}, expected an array; see asarray")
        if array.shape != p.shape:
            raise ValueError(f"step: parameter {i} is {p.shape} but number {i} of {what} is {array.shape}")
        if p.ndim not in DIMENSIONS:
            raise ValueError(f"step: parameter {i} has {p.ndim} dimensions, expected 1, 2 or 4")


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
