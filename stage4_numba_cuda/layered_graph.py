"""A step of any architecture from a CUDA graph: the launches of a plan and the optimizer's, captured and replayed.

Every replay of a graph has the same addresses and numbers. So x, y and the masks are copied to the addresses of the
plan, and the factors of an optimizer lie on the device, where ready.py keeps them up to date. graphs.py has the calls
of the driver.
"""

from __future__ import annotations

from typing import Any

from . import launch
from .arrays import Array, address
from .kernels import optimizers as kernels
from .layered_launches import Order, launch_steps
from .layered_plan import Plan
from .optimizers import SGD, Adam, RMSProp
from .ready import ReadyStep

OPTIMIZERS = (SGD, RMSProp, Adam)


class Move:
    """An optimizer's step as launches. One that is not of this floor takes its step itself, when `done` is called.

    optimizer: None leaves the gradients in the layers
    numbers: what the kernels multiply with, (8,) on the device; None: the optimizer's own, which `refresh` keeps
    """

    def __init__(self, network: Any, optimizer: Any, numbers: Array | None = None) -> None:
        self.optimizer, self.dtype = optimizer, network.dtype
        self.ours = type(optimizer) in OPTIMIZERS
        self.vectors: list[tuple[Array, ...]] = []
        self._arrays = network.parameters, network.layer_gradients
        if self.ours:
            self.numbers = optimizer.device_numbers(self.dtype) if numbers is None else numbers
            state, remembers = optimizer._state, optimizer.kind != kernels.SGD
            if network.flat is not None:
                self.vectors.append((*network.flat, *(state.together(network.parameters) if remembers else ())))
                return
            memory = state.memory(network.parameters).values() if remembers else ()
            for arrays in zip(*self._arrays, *memory, strict=True):
                self.vectors.append(tuple(array.reshape(array.size) for array in arrays))

    def key(self) -> tuple[Any, ...]:
        """Changes when a captured graph no longer fits."""
        if not self.ours:
            return (self.optimizer is None,)
        places = [address(array) for arrays in self.vectors for array in arrays]
        return (self.optimizer.kind, address(self.numbers), *places)

    def launch(self, stream: Any) -> None:
        """One launch for all parameters, if they lie side by side; else one for each."""
        if self.ours:
            kernel = kernels.KERNELS[self.optimizer.kind]
            for arrays in self.vectors:
                kernel[(*launch.elementwise(arrays[0].size), stream)](*arrays, self.numbers)

    def refresh(self, stream: Any) -> None:
        """Send the optimizer's numbers if one has changed, on this stream."""
        if self.ours:
            self.optimizer._state.device_numbers(self.optimizer.numbers(), self.dtype, stream)

    def done(self) -> None:
        """The kernels of a step were launched."""
        if self.ours:
            self.optimizer._state.steps += 1
        elif self.optimizer is not None:
            self.optimizer.step(*self._arrays)


def made_ready(network: Any, plan: Plan, optimizer: Any, masks: int) -> ReadyStep:
    """A step of this plan, to be replayed. masks: how many dropout masks it takes"""
    move = Move(network, optimizer)
    names = ["x", "y", *(f"mask {i}" for i in range(masks))]
    arrays = (*network.parameters, *network.layer_gradients, *network.running_statistics)
    key = ("layered", plan.serial, move.key(), *map(address, arrays))
    loss, tracking = network.loss_name, optimizer is not None

    def launches(network: Any, stream: Any) -> None:
        order = Order(True, tracking, loss, stream)
        launch_steps(plan.made.forward, order)
        launch_steps(plan.made.backward, order)
        move.launch(stream)

    return ReadyStep(network, plan, plan, [plan.given[name] for name in names], move, key, launches)
