"""An optimizer's step as the kernels of a plan take it.

The optimizers of this stage move the parameters in kernels of the step, which read the factors on the device, so that
a CUDA graph, which repeats its arguments, sees them change. Any other optimizer gets the gradients, and takes its step
itself when `done` is called.
"""

from __future__ import annotations

import weakref
from typing import Any

from .. import launch
from ..arrays import Array
from ..kernels import optimizers as kernels
from ..kernels.update import ONLY_GRADIENTS
from ..optimizers import SGD, Adam, RMSProp
from .mlp_memory import MlpMemory

OPTIMIZERS = (SGD, RMSProp, Adam)


class Update:
    """The step of one optimizer on the parameters of one network.

    optimizer: None leaves the gradients in the layers
    numbers: what the kernels multiply with, (8,) on the device; None: the optimizer's own, which `refresh` keeps
    in_kernels: False lets an optimizer of this stage take its step itself, too
    ours: whether kernels take the step; kind: its formula, by the numbers of kernels/optimizers.py
    """

    def __init__(self, network: Any, optimizer: Any, numbers: Array | None = None, in_kernels: bool = True) -> None:
        self.network, self.optimizer = weakref.proxy(network), optimizer  # a network may keep its update
        self.ours = in_kernels and type(optimizer) in OPTIMIZERS
        self.kind: int = optimizer.kind if self.ours else ONLY_GRADIENTS
        self._numbers = numbers
        self._vectors: list[tuple[Array, ...]] | None = None
        if self.ours:
            self._memory = list(optimizer._state.make_buffers(network.parameters).values())

    @property
    def is_foreign(self) -> bool:
        """Whether the optimizer is none of this stage's."""
        return self.optimizer is not None and type(self.optimizer) not in OPTIMIZERS

    @property
    def numbers(self) -> Array:
        """What kernels multiply with, on the device."""
        if self._numbers is None:
            self._numbers = self._sent_numbers(0)
        return self._numbers

    def refresh(self, stream: Any) -> None:
        """Send the optimizer's numbers if one has changed, on this stream."""
        if self.ours:
            self._sent_numbers(stream)

    def _sent_numbers(self, stream: Any) -> Array:
        return self.optimizer._state.device_numbers(self.optimizer.numbers(), self.network.dtype, stream)

    def done(self, steps: int = 1) -> None:
        """The kernels of so many steps were launched."""
        if self.ours:
            self.optimizer._state.steps += steps
        elif self.optimizer is not None:
            self.optimizer.step(self.network.parameters, self.network.layer_gradients)

    # ---- what the optimizer keeps for the parameters

    def flat_buffers(self, memory: MlpMemory) -> list[list[Array]]:
        """Of an mlp: the first and the second buffer of each parameter, as vectors; a stand-in where there is none."""
        nothing = [memory.no_buffer] * len(self.network.parameters)
        flat = [[memory.flat(array) for array in arrays] for arrays in self._memory] if self.ours else []
        return [*flat, nothing, nothing][:2]

    @property
    def vectors(self) -> list[tuple[Array, ...]]:
        """(parameters, gradients, buffers …) for each launch of `launch`: one, if they lie side by side, else one for
        each parameter."""
        if self._vectors is None:
            state, parameters = self.optimizer._state, self.network.parameters
            remembers, packed = self.kind != kernels.SGD, self.network.packed
            if packed is not None:
                self._vectors = [(*packed, *(state.packed(parameters) if remembers else ()))]
            else:
                memory = self._memory if remembers else []
                rows = zip(parameters, self.network.layer_gradients, *memory, strict=True)
                self._vectors = [tuple(array.reshape(array.size) for array in arrays) for arrays in rows]
        return self._vectors

    def launch(self, stream: Any) -> None:
        """The step by kernels that do nothing else."""
        if self.ours:
            kernel = kernels.KERNELS[self.kind]
            for arrays in self.vectors:
                kernel[(*launch.elementwise(arrays[0].size), stream)](*arrays, self.numbers)
