"""How the parameters move once their gradients are known.

    SGD        p -= learning_rate * gradient, optionally with momentum: a running sum of gradients
    RMSProp    each parameter's step is divided by the running size of its own gradient
    Adam       momentum and RMSProp together, both corrected for having started at zero

Weight decay adds weight_decay * p to the gradient first (the L2 form, as in torch.optim). All three
follow torch.optim's definitions. An optimizer belongs to one network: it keeps a buffer for each
parameter. `learning_rate` may be set between steps; schedules use this.

One launch for each parameter. Parameters, gradients and buffers are device arrays and never leave the device; the
factors of a step are eight numbers, which are copied there when one of them has changed. The formulas are in
kernels/optimizers.py. The ranges of the hyperparameters and what is saved stand in shared/optimizer_base.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from shared.optimizer_base import OptimizerBase

from . import launch
from .arrays import Array
from .kernels import optimizers as kernels
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

    def scheduled(self, rates: np.ndarray) -> dict[str, np.ndarray]:
        """Which of its numbers differ in the coming steps, which have these learning rates: one for each step."""
        return {"learning_rate": rates}


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
    kind: ClassVar = kernels.RMSPROP

    def step(self, parameters: Sequence[Array], gradients: Sequence[Array]) -> None:
        """Change the parameters in place. What it takes and refuses is as for SGD."""
        take_step(self, parameters, gradients)

    def scheduled(self, rates: np.ndarray) -> dict[str, np.ndarray]:
        """Which of its numbers differ in the coming steps, which have these learning rates: one for each step."""
        return {"learning_rate": rates}


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
    kind: ClassVar = kernels.ADAM

    def step(self, parameters: Sequence[Array], gradients: Sequence[Array]) -> None:
        """Change the parameters in place. What it takes and refuses is as for SGD."""
        take_step(self, parameters, gradients)

    def numbers(self) -> dict[str, float]:
        """What the next step multiplies with: the corrections depend on t."""
        numbers, t = super().numbers(), self._state.steps + 1
        step_size = numbers.pop("learning_rate") / (1.0 - self.beta1**t)
        return numbers | {"step_size": step_size, "root_correction": math.sqrt(1.0 - self.beta2**t)}

    def scheduled(self, rates: np.ndarray) -> dict[str, np.ndarray]:
        """Which of its numbers differ in the coming steps, which have these learning rates: one for each step."""
        coming = range(self._state.steps + 1, self._state.steps + 1 + len(rates))
        # Powers by Python, not NumPy: the last bit is then that of `numbers`, and a run that of single steps.
        first, second = (np.array([1.0 - beta**t for t in coming]) for beta in (self.beta1, self.beta2))
        return {"step_size": rates / first, "root_correction": np.sqrt(second)}


def take_step(optimizer: Any, parameters: Sequence[Array], gradients: Sequence[Array]) -> None:
    """One launch for each parameter, after all of them were checked."""
    kind, state, numbers = optimizer.kind, optimizer._state, optimizer.numbers()
    slopes = state.begin_step(parameters, gradients)
    buffers = state.make_buffers(parameters).values() if kind != kernels.SGD else ()
    for p, slope, *mine in zip(parameters, slopes, *buffers, strict=True):
        kernel = kernels.KERNELS[kind][launch.elementwise(p.size)]
        kernel(*(array.reshape(p.size) for array in (p, slope, *mine)), state.device_numbers(numbers, p.dtype))
