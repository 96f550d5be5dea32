"""How the parameters move once their gradients are known.

    SGD        p -= learning_rate * gradient, optionally with momentum: a running sum of gradients
    RMSProp    each parameter's step is divided by the running size of its own gradient
    Adam       momentum and RMSProp together, both corrected for having started at zero

Weight decay adds weight_decay * p to the gradient first (the L2 form, as in torch.optim). All three
follow torch.optim's definitions. An optimizer belongs to one network: it keeps a buffer for each
parameter. `learning_rate` may be set between steps; schedules use this.

One call into C for each parameter: csrc/optimizers.c reads each number once, where stage 2 goes over the whole
array for every operation. All parameters are checked before the first one moves (optimizer_state.py).
"""

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from shared.optimizer_base import OptimizerBase

from . import library
from .arrays import Array
from .optimizer_state import OptimizerState


class COptimizerStep(ctypes.Structure):
    """`optimizer_step` in groundup.h."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("kind", "nesterov")),
        *((name, ctypes.c_double) for name in ("learning_rate", "weight_decay", "momentum", "alpha", "epsilon")),
        *((name, ctypes.c_double) for name in ("beta1", "beta2", "step_size", "root_correction")),
    )


@dataclass(eq=False)
class SGD(OptimizerBase):
    """Stochastic gradient descent. Same as torch.optim.SGD(lr, momentum, nesterov=…, weight_decay=…).

    g = gradient + weight_decay * p;  v = momentum * v + g;  p -= learning_rate * v
    nesterov: p -= learning_rate * (g + momentum * v), a look ahead along the momentum
    Raises ValueError for a number out of its range, or Nesterov without momentum.
    """

    learning_rate: float
    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0
    buffer_names: ClassVar = ("velocity",)
    state_class: ClassVar = OptimizerState

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


@dataclass(eq=False)
class RMSProp(OptimizerBase):
    """Divide each step by the running root mean square of the gradient. Same as torch.optim.RMSprop(lr, alpha, eps).

    g = gradient + weight_decay * p;  s = alpha * s + (1 - alpha) * g²;  p -= learning_rate * g / (sqrt(s) + epsilon)
    """

    learning_rate: float = 0.01
    alpha: float = 0.99
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    buffer_names: ClassVar = ("square_average",)
    state_class: ClassVar = OptimizerState

    def step(self, parameters: Sequence[Array], gradients: Sequence[Array]) -> None:
        """Change the parameters in place. What it takes and refuses is as for SGD."""
        numbers = self.numbers()
        slopes = self._state.begin_step(parameters, gradients)
        for p, slope, s in zip(parameters, slopes, self._state.buffers["square_average"], strict=True):
            library.function("rmsprop", p.dtype)(p.size, p, slope, s, *numbers.values())


@dataclass(eq=False)
class Adam(OptimizerBase):
    """Adaptive moments (Kingma & Ba 2015). Same as torch.optim.Adam(lr, betas, eps).

    g = gradient + weight_decay * p
    m = beta1 * m + (1 - beta1) * g;   v = beta2 * v + (1 - beta2) * g²
    p -= learning_rate * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon) at step t = 1, 2, …
    """

    learning_rate: float = 0.001
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    buffer_names: ClassVar = ("first_moment", "second_moment")
    state_class: ClassVar = OptimizerState

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


OPTIMIZERS = (SGD, RMSProp, Adam)
"""In the order of `enum optimizer` in groundup.h."""
