"""A training that can be watched: one step at a time, on any stage, and moved to another stage in its middle.

    playground = Playground(Settings(data="spirals", stage="1"))
    playground.step(100)
    playground.change(replace(playground.settings, stage="3"))    goes on where stage 1 stopped

The batch and the dropout masks of a step follow from the seed and the step's number alone, as in
shared.training.epochs; so what moves to another stage is the parameters, the optimizer's state and the position.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from groundup.studio.playground.mistakes import Meddler, gradient_factor, rate_factor
from groundup.studio.playground.sets import make
from groundup.studio.playground.settings import Settings
from shared.architectures import Architecture, mlp
from shared.contract import NetworkLike, Optimizer, Stage, load_stage
from shared.data.batches import BatchFeeder, batch_order
from shared.data.datasets import Dataset
from shared.dropout import step_masks

MOMENTUM = 0.9


@dataclass
class Position:
    """How far a training is: steps taken, the epoch (from 0), and the samples of that epoch that were used."""

    steps: int = 0
    epoch: int = 0
    used: int = 0


@dataclass
class State:
    """What goes from floor to floor: NumPy's copies of everything that the next step depends on."""

    parameters: list[np.ndarray]
    optimizer: dict[str, Any]
    position: Position = field(default_factory=Position)


class Playground:
    """A training of a dense network on a small set. Not safe for several threads at once: see player.py.

    batch_loss: the loss of the last step before it, with dropout if there is any; NaN before the first step
    step_seconds: how long the last step took
    Raises StageUnavailable if the stage cannot be used on this machine, ValueError for a set that is too small.
    """

    stage: Stage
    network: NetworkLike
    optimizer: Optimizer
    _order: np.ndarray | None
    _last_gradients: list[np.ndarray] | None  # of the stage before, until this one has taken a step

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.data: Dataset = make(self.settings)
        self.begin()

    def begin(self) -> None:
        """Back to the start: the first weights of the seed, and no step taken."""
        settings = self.settings
        stage = load_stage(settings.stage)
        network = stage.network.Network(
            self._architecture(),
            loss=settings.loss,
            initializer=settings.initializer,
            seed=settings.seed,
            dtype=settings.dtype,
        )
        parameters = self._on_host(stage, network.parameters)
        if settings.mistake == "zero_initialisation":
            parameters = [np.zeros_like(each) for each in parameters]
        self.batch_loss, self.step_seconds = math.nan, 0.0
        self._install(stage, State(parameters, {"steps": 0, "buffers": {}}))

    def _architecture(self) -> Architecture:
        sizes = [self.data.train.x.shape[1], *self.settings.layers, self.data.classes]
        return mlp(sizes, self.settings.activation, self.settings.dropout)

    def change(self, settings: Settings) -> bool:
        """Take other settings. Returns whether the training goes on; if not, it is back at the start.

        If it raises an error, the training is as it was.
        """
        if settings.goes_on_from(self.settings):
            stage, state, gradients = load_stage(settings.stage), self.state(), self.gradients()
            self.settings = settings
            self._install(stage, state)
            self._last_gradients = gradients
            return True
        other = Playground(settings)
        self.__dict__.update(other.__dict__)
        return False

    def state(self) -> State:
        """Copies of the parameters, the optimizer's state and the position."""
        optimizer = self.optimizer.state()
        buffers = {name: self._on_host(self.stage, arrays) for name, arrays in optimizer["buffers"].items()}
        position = Position(self.position.steps, self.position.epoch, self.position.used)
        return State(self.parameters(), {"steps": optimizer["steps"], "buffers": buffers}, position)

    def parameters(self) -> list[np.ndarray]:
        """NumPy's copies of the parameters [W1, b1, W2, b2, …]."""
        return self._on_host(self.stage, self.network.parameters)

    def step(self, count: int = 1) -> None:
        """Take this many steps. Numbers that overflow become inf or NaN, and the training goes on with them."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for _ in range(count):
                started = time.perf_counter()
                self._one_step()
                self.step_seconds = time.perf_counter() - started

    def gradients(self) -> list[np.ndarray]:
        """The gradients [dL/dW1, dL/db1, …] of the last step, before a planted mistake changed them.

        After a change of floor they are those of the stage that took it.
        """
        if self._last_gradients is not None:
            return self._last_gradients
        return self._on_host(self.stage, self.network.layer_gradients)

    def _one_step(self) -> None:
        settings, position, train = self.settings, self.position, self.data.train
        order = self._order
        if position.used == 0 or order is None:
            order = self._order = batch_order(len(train), settings.seed, position.epoch)
        chosen = order[position.used : position.used + settings.batch_size]
        x, y = self._feeder.batch(chosen)
        drawn = step_masks(
            len(chosen), self.network.architecture.dropouts(), settings.seed, position.steps, settings.dtype
        )
        masks = None if drawn is None else [self.stage.arrays.asarray(each, settings.dtype) for each in drawn]
        factor = gradient_factor(settings.mistake, len(chosen))
        self._meddler.factor = factor
        receiver: Any = self.optimizer if factor == 1.0 else self._meddler
        self.batch_loss = float(self.network.train_step(x, y, receiver, masks))
        self._last_gradients = None
        position.steps += 1
        position.used += len(chosen)
        if position.used >= len(train):
            position.epoch, position.used = position.epoch + 1, 0

    def _install(self, stage: Stage, state: State) -> None:
        """Make the network and the optimizer of this stage in this state."""
        settings = self.settings

        def own(arrays: list[np.ndarray]) -> list[Any]:
            return [stage.arrays.asarray(each, settings.dtype) for each in arrays]

        self.stage, self.position = stage, state.position
        self.network = stage.network.Network.from_parameters(
            own(state.parameters), loss=settings.loss, dtype=settings.dtype, architecture=self._architecture()
        )
        self.optimizer = self._new_optimizer(stage)
        buffers = {name: own(arrays) for name, arrays in state.optimizer["buffers"].items()}
        self.optimizer.load_state({"steps": state.optimizer["steps"], "buffers": buffers})
        self._meddler = Meddler(stage, self.optimizer, settings.dtype)
        self._feeder = BatchFeeder(stage, self.network, self.data.train, settings.batch_size)
        self._last_gradients = None
        self._order = None

    def _new_optimizer(self, stage: Stage) -> Optimizer:
        rate = self.settings.learning_rate * rate_factor(self.settings.mistake)
        room, name = stage.optimizers, self.settings.optimizer
        optimizer: Optimizer
        if name == "momentum":
            optimizer = room.SGD(rate, momentum=MOMENTUM)
        else:
            optimizer = getattr(room, name)(rate)
        return optimizer

    @staticmethod
    def _on_host(stage: Stage, arrays: Any) -> list[np.ndarray]:
        return [np.array(stage.arrays.to_host(each)) for each in arrays]
