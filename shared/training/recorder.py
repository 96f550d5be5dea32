"""Writes down how a training goes while it goes: steps.jsonl and run.json in the folder of the run.

    recording    a block in which a training is recorded, and what it wrote at its end
    Recorder     is told of each step, and now and then writes a line

A line costs some reads of the weights and gradients. The next one comes so late that writing takes at most SHARE of the
time, and never more than 20 come in a second; so recording is not to be seen in the speed of a training. It changes
none of its numbers.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from shared.architectures import Architecture
from shared.data.batches import BatchFeeder
from shared.layers import times
from shared.machine.nvml import GpuMeter
from shared.machine.own_process import cpu_seconds, memory
from shared.training.epochs import EpochRunner
from shared.training.run_facts import DONE, MOST_SESSIONS, RUNNING, STOPPED, RunFacts, Session, read_facts
from shared.training.runs import FACTS, STEPS, Position, Run
from shared.training.step_records import LEAST_SECONDS, StepFile, StepRecord

SHARE = 1 / 400
"""The largest share of the training's time that recording takes."""

FIRST_PAUSE = 1.0
"""The longest time between the first line and the second. The first one's reads also prepare what later ones find
prepared, so their time says little."""

GPU_SECONDS = 1.0
"""The least time between two questions to the GPU's driver, which takes milliseconds to answer."""


@contextmanager
def recording(run: Run | None, runner: EpochRunner, position: Position) -> Iterator[Recorder | None]:
    """Record the training within this block. run: None for a training that is not saved, which is not recorded.

    At the end run.json says whether the training is done, or why it stopped.
    Raises OSError if a file cannot be written.
    """
    if run is None:
        yield None
        return
    recorder = Recorder(run, runner, position)
    try:
        yield recorder
    except BaseException as error:
        # The training's own error says more than that of a disk that can no longer be written.
        with contextlib.suppress(OSError):
            recorder.end(STOPPED, _why(error))
        raise
    recorder.end(DONE, "")


class Recorder:
    """Records the training that moves `position` along.

    Raises OSError if the folder of the run cannot be written.
    """

    def __init__(self, run: Run, runner: EpochRunner, position: Position) -> None:
        self._runner, self._position = runner, position
        self._arrays, self._network = run.stage.arrays, run.network
        parameters = run.network.architecture.parameters()
        # The parameters come in pairs, weights and bias or gamma and beta; those of batch normalisation have no fan-in.
        self._shown = [i for i in range(0, len(parameters), 2) if parameters[i].fan_in]
        self._batch: Any = None  # for a network that keeps no gradients
        if not (hasattr(run.network, "layer_gradients") and getattr(run.network, "steps_keep_gradients", True)):
            some = min(runner.settings.batch_size, len(runner.data))
            self._batch = BatchFeeder(run.stage, run.network, runner.data, some).batch(np.arange(some))
        self._gpus = GpuMeter()
        self._path = run.folder / FACTS
        before: tuple[Session, ...] = ()
        done = runner.steps_done(position)
        if done and self._path.is_file():
            with contextlib.suppress(ValueError):  # a damaged file is replaced; the numbers are in the checkpoint
                before = read_facts(self._path).sessions
        self._facts = RunFacts(
            stage=run.stage.name,
            layers=layer_names(run.network.architecture),
            epochs=runner.settings.epochs,
            steps_per_epoch=runner.steps_per_epoch,
            batch_size=runner.settings.batch_size,
            samples=len(runner.data),
            state=RUNNING,
            gpus=tuple(self._gpus.names),
            no_gpus=self._gpus.reason,
            sessions=(*before, Session.begin(done, runner.ranks.size))[-MOST_SESSIONS:],
        )
        self._facts.write(self._path)
        self._file = StepFile(run.folder / STEPS, done)
        self._loss_sum, self._losses = 0.0, 0
        self._epochs_seconds, self._epochs_counted = 0.0, 0
        now = time.perf_counter()
        self._zero = now - (self._file.last.seconds if self._file.last else 0.0)
        self._before = (now, cpu_seconds(), self._training_seconds(), self._images(), 0.0)
        self._next = self._next_gpu = -math.inf
        self._cost = 0.0
        self._gpu: tuple[tuple[float, float], ...] = ()

    def step(self, loss: float) -> None:
        """Note the loss of a step, and write a line if it is time to."""
        self._loss_sum += loss
        self._losses += 1
        if time.perf_counter() >= self._next and self._runner.settled:
            self._write()

    def end(self, state: str, reason: str) -> None:
        """Write the steps since the last line, and how the training ended."""
        try:
            if self._losses:
                self._write()
        finally:
            self._file.close()
            self._facts.ended(state, reason).write(self._path)

    def _write(self) -> None:
        now = time.perf_counter()
        since, cpu, trained, images, waited = self._before
        if now >= self._next_gpu and (use := self._gpus.use()) is not None:
            self._gpu = tuple((busy, held) for busy, held in use)
            self._next_gpu = now + GPU_SECONDS
        waited_now = self._runner.communication
        self._before = (now, cpu_seconds(), self._training_seconds(), self._images(), waited_now)
        spent = self._before[2] - trained
        done = self._runner.steps_done(self._position)
        self._file.add(
            StepRecord(
                step=done,
                epoch=(done - 1) // self._runner.steps_per_epoch + 1,
                loss=self._loss_sum / self._losses,
                steps=self._losses,
                rate=self._runner.learning_rate(done - 1),
                seconds=now - self._zero,
                images_per_second=(self._before[3] - images) / spent if spent > 0 else None,
                weights=self._norms(self._network.parameters),
                gradients=self._norms(self._gradients()),
                memory=memory(),
                cores=(self._before[1] - cpu) / (now - since) if now > since else None,
                communication=(waited_now - waited) / spent if spent > 0 and self._runner.ranks.size > 1 else None,
                gpu=self._gpu,
            )
        )
        self._loss_sum, self._losses = 0.0, 0
        first, cost = self._cost == 0.0, time.perf_counter() - now
        # A line during which the system let another program run took long, but the next one will not.
        self._cost = cost if first else min(cost, 2 * self._cost)
        longest = FIRST_PAUSE if first else math.inf
        self._next = now + min(max(LEAST_SECONDS * 2**self._file.stretch, self._cost / SHARE), longest)

    def _gradients(self) -> Sequence[Any]:
        """The gradients of the last step, or, if the network keeps none, those for the first samples of the data."""
        if self._batch is None:
            return self._network.layer_gradients
        return self._network.gradients(*self._batch)

    def _norms(self, arrays: Sequence[Any]) -> tuple[float, ...]:
        """The size ‖·‖ of each layer's own array."""
        return tuple(size(np.asarray(self._arrays.to_host(arrays[i]))) for i in self._shown)

    def _training_seconds(self) -> float:
        """Time of all steps of this session and those before, without evaluations."""
        for record in self._position.records[self._epochs_counted :]:
            self._epochs_seconds += record.seconds
            self._epochs_counted += 1
        return self._epochs_seconds + self._position.seconds

    def _images(self) -> int:
        """Training samples of all steps since the training began."""
        size, samples = self._runner.settings.batch_size, len(self._runner.data)
        return self._position.epoch * samples + min(self._position.step * size, samples)


def size(array: np.ndarray) -> float:
    """‖array‖, the square root of the sum of all squares; in float32 for float32, which is exact enough to look at."""
    flat = array.reshape(-1)
    return math.sqrt(float(np.dot(flat, flat)))


def layer_names(architecture: Architecture) -> tuple[str, ...]:
    """A name for each layer with weights, in order: '1: 784 × 128'."""
    shown = [each for each in architecture.parameters()[::2] if each.fan_in]
    if architecture.as_mlp() is not None:
        return tuple(f"{i}: {times(each.shape)}" for i, each in enumerate(shown, start=1))
    return tuple(f"{each.name.split(',')[0].removeprefix('layer ')}: {times(each.shape)}" for each in shown)


def _why(error: BaseException) -> str:
    """The end of a training as a sentence."""
    if isinstance(error, KeyboardInterrupt):
        return str(error) or "interrupted from the keyboard"
    return str(error) or type(error).__name__
