"""How the parameters move once their gradients are known.

    SGD        p -= learning_rate * gradient, optionally with momentum: a running sum of gradients
    RMSProp    each parameter's step is divided by the running size of its own gradient
    Adam       momentum and RMSProp together, both corrected for having started at zero

Weight decay adds weight_decay * p to the gradient first (the L2 form, as in torch.optim). All three
follow torch.optim's definitions. An optimizer belongs to one network: it keeps a buffer for each
parameter. `learning_rate` may be set between steps; schedules use this.

Everything is updated in place, one array operation at a time, through scratch memory that is kept.
The ranges of the hyperparameters and what is saved stand in shared/optimizer_base.py.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shared.optimizer_base import OptimizerBase

from .arrays import Array, ieee
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

    @ieee
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

    @ieee
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

    @ieee
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
