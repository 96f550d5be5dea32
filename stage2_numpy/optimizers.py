"""How the parameters move once their gradients are known.

    SGD        p -= learning_rate * gradient, optionally with momentum: a running sum of gradients
    RMSProp    each parameter's step is divided by the running size of its own gradient
    Adam       momentum and RMSProp together, both corrected for having started at zero

Weight decay adds weight_decay * p to the gradient first (the L2 form, as in torch.optim). All three
follow torch.optim's definitions. An optimizer belongs to one network: it remembers a buffer for each
parameter. `learning_rate` may be set between steps; that is how schedules work.

Everything is updated in place, one array operation at a time, through scratch memory that is kept.
"""

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from .arrays import Array, Scratch


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

    def step(self, parameters: Sequence[Array], gradients: Sequence[Array]) -> None:
        """Change the parameters in place. Both lists have the same order and shapes."""
        self._state.begin_step(parameters, gradients)
        for i, p in enumerate(parameters):
            slope = self._state.slope(p, gradients[i], self.weight_decay)
            update = self._state.scratch("update", p.shape, p.dtype)
            if self.momentum:
                v = self._state.buffers["velocity"][i]
                v *= self.momentum
                v += slope
                if self.nesterov:
                    np.multiply(v, self.momentum, out=update)
                    update += slope
                    slope = update
                else:
                    slope = v
            p -= np.multiply(slope, self.learning_rate, out=update)

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

    def step(self, parameters: Sequence[Array], gradients: Sequence[Array]) -> None:
        """Change the parameters in place. Both lists have the same order and shapes."""
        self._state.begin_step(parameters, gradients)
        for i, p in enumerate(parameters):
            slope = self._state.slope(p, gradients[i], self.weight_decay)
            update = self._state.scratch("update", p.shape, p.dtype)
            denominator = self._state.scratch("denominator", p.shape, p.dtype)
            s = self._state.buffers["square_average"][i]
            s *= self.alpha
            np.multiply(slope, 1.0 - self.alpha, out=update)
            update *= slope
            s += update
            np.sqrt(s, out=denominator)
            denominator += self.epsilon
            np.divide(slope, denominator, out=update)
            update *= self.learning_rate
            p -= update

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

    def step(self, parameters: Sequence[Array], gradients: Sequence[Array]) -> None:
        """Change the parameters in place. Both lists have the same order and shapes."""
        t = self._state.begin_step(parameters, gradients)
        step_size = self.learning_rate / (1.0 - self.beta1**t)
        root_correction = math.sqrt(1.0 - self.beta2**t)
        for i, p in enumerate(parameters):
            slope = self._state.slope(p, gradients[i], self.weight_decay)
            update = self._state.scratch("update", p.shape, p.dtype)
            denominator = self._state.scratch("denominator", p.shape, p.dtype)
            m, v = self._state.buffers["first_moment"][i], self._state.buffers["second_moment"][i]
            m *= self.beta1
            m += np.multiply(slope, 1.0 - self.beta1, out=update)
            v *= self.beta2
            np.multiply(slope, 1.0 - self.beta2, out=update)
            update *= slope
            v += update
            np.sqrt(v, out=denominator)
            denominator /= root_correction
            denominator += self.epsilon
            np.divide(m, denominator, out=update)
            update *= step_size
            p -= update

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
        self.buffers: dict[str, list[Array]] = {}
        self.scratch = Scratch()

    def begin_step(self, parameters: Sequence[Array], gradients: Sequence[Array]) -> int:
        """Check the shapes, make the buffers on the first step, count the step. Returns its number, from 1."""
        _check_same_shapes("gradients", gradients, parameters)
        for name in self.names:
            if name not in self.buffers:
                self.buffers[name] = [np.zeros_like(p) for p in parameters]
            _check_same_shapes(f"the optimizer's {name}", self.buffers[name], parameters)
            for i, p in enumerate(parameters):  # a state loaded from another stage comes in that stage's dtype
                self.buffers[name][i] = self.buffers[name][i].astype(p.dtype, copy=False)
        self.steps += 1
        return self.steps

    def slope(self, p: Array, gradient: Array, weight_decay: float) -> Array:
        """gradient + weight_decay * p; the gradient itself where there is no decay."""
        if not weight_decay:
            return gradient
        slope = np.multiply(p, weight_decay, out=self.scratch("slope", p.shape, p.dtype))
        slope += gradient
        return slope

    def save(self) -> dict[str, Any]:
        buffers = {name: [array.copy() for array in arrays] for name, arrays in self.buffers.items()}
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
        self.buffers = {name: [np.array(array) for array in arrays] for name, arrays in state["buffers"].items()}


def _check_same_shapes(what: str, arrays: Sequence[Array], parameters: Sequence[Array]) -> None:
    if len(arrays) != len(parameters):
        raise ValueError(f"step: there are {len(parameters)} parameters but {len(arrays)} arrays in {what}")
    for i, (array, p) in enumerate(zip(arrays, parameters, strict=True)):
        if not isinstance(array, np.ndarray):
            raise TypeError(f"step: number {i} of {what} is a {type(array).__name__}, expected an array; see asarray")
        if array.shape != p.shape:
            raise ValueError(f"step: parameter {i} is {p.shape} but number {i} of {what} is {array.shape}")


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
