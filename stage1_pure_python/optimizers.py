"""How the parameters move once their gradients are known.

    SGD        p -= learning_rate * gradient, optionally with momentum: a sum of gradients in which older ones fade
    RMSProp    each parameter's step is divided by the running size of its own gradient
    Adam       momentum and RMSProp together, both corrected for having started at zero

Weight decay adds weight_decay * p to the gradient first (the L2 form, as in torch.optim). All three
follow torch.optim's definitions. An optimizer belongs to one network: it keeps a buffer for each
parameter. `learning_rate` may be set between steps; schedules use this.

The ranges of the hyperparameters and what is saved stand in shared/optimizer_base.py.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from shared.optimizer_base import OptimizerBase

from .arrays import Array, Vector
from .optimizer_state import OptimizerState


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
        """Change the parameters in place. Both lists have the same order and shapes."""
        self._state.begin_step(parameters, gradients)

        def update(p: Vector, g: Vector, buffers: list[Vector]) -> None:
            for i in range(len(p)):
                slope = g[i] + self.weight_decay * p[i] if self.weight_decay else g[i]
                if self.momentum:
                    (v,) = buffers
                    v[i] = self.momentum * v[i] + slope
                    slope = slope + self.momentum * v[i] if self.nesterov else v[i]
                p[i] -= self.learning_rate * slope

        self._state.for_each_row(update, parameters, gradients)


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
        """Change the parameters in place. Both lists have the same order and shapes."""
        self._state.begin_step(parameters, gradients)

        def update(p: Vector, g: Vector, buffers: list[Vector]) -> None:
            (s,) = buffers
            for i in range(len(p)):
                slope = g[i] + self.weight_decay * p[i] if self.weight_decay else g[i]
                s[i] = self.alpha * s[i] + (1.0 - self.alpha) * slope * slope
                p[i] -= self.learning_rate * _divide(slope, _root(s[i]) + self.epsilon)

        self._state.for_each_row(update, parameters, gradients)


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
        """Change the parameters in place. Both lists have the same order and shapes."""
        t = self._state.begin_step(parameters, gradients)
        step_size = self.learning_rate / (1.0 - self.beta1**t)
        root_correction = math.sqrt(1.0 - self.beta2**t)

        def update(p: Vector, g: Vector, buffers: list[Vector]) -> None:
            m, v = buffers
            for i in range(len(p)):
                slope = g[i] + self.weight_decay * p[i] if self.weight_decay else g[i]
                m[i] = self.beta1 * m[i] + (1.0 - self.beta1) * slope
                v[i] = self.beta2 * v[i] + (1.0 - self.beta2) * slope * slope
                p[i] -= step_size * _divide(m[i], _root(v[i]) / root_correction + self.epsilon)

        self._state.for_each_row(update, parameters, gradients)


def _root(a: float) -> float:
    """The square root as IEEE takes it, where Python would raise for a number below 0."""
    return math.sqrt(a) if a >= 0.0 else math.nan


def _divide(a: float, b: float) -> float:
    """a / b as IEEE does it, where Python would raise for b = 0 (which epsilon = 0 makes possible)."""
    if b != 0.0:
        return a / b
    return math.nan if a == 0.0 or math.isnan(a) else math.copysign(math.inf, a)
