"""The race: lanes that take turns in one thread, the one with the smallest clock first.

A lane is a stage that trains the network of `groundup race`, on the same batches. Its clock counts the seconds in which
it computes. So all stages get the same time of the same machine, and none of them computes while another does. The
learning rate does not fall: a lane goes on until the slowest has its first lap, and nobody knows how many laps that is.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from groundup import inside
from groundup.race import Settings, run_lap
from groundup.studio.digits.pixels import as_input, drawing
from shared.contract import STAGE_TITLES, STAGES, StageUnavailable, is_emulated, load_stage
from shared.data.datasets import CLASSES, Dataset, load_dataset
from shared.training.epochs import EpochRunner
from shared.training.runs import Position
from shared.training.settings import TrainingSettings

SETTINGS = Settings(schedule="constant")
EVERY = 20
"""Steps between two marks of the first lap, at which the lanes are compared."""
TURN, LOOK, REST, LONGEST = 0.02, 0.25, 0.02, 10.0
"""Seconds of a turn, between two measurements of the test accuracy, between two looks whether a resting race goes on,
and for which its end waits for a turn. A step of stage 1 takes longer than a turn should."""


class Lane:
    """One stage. lock: held by whoever uses its network, which works in buffers of its own.

    ready, why: whether it can run, and the reason where the machine lacks the stage
    seen: images so far, each lap anew; clock: seconds of its steps; loss: mean of the newest turn's steps
    marks: images seen -> (loss of the step, parameters), until `compared` takes them
    """

    def __init__(self, name: str, data: Dataset) -> None:
        self.name, self.data, self.lock, self.ready, self.why = name, data, threading.Lock(), False, ""
        self._forget()

    def _forget(self) -> None:
        self.seen, self.clock, self.loss, self.accuracy, self._looked = 0, 0.0, math.nan, math.nan, 0.0
        self.marks: dict[int, tuple[float, list[np.ndarray]]] = {}
        self.answered: list[float] | None = None

    def prepare(self) -> None:
        """Load the stage and train another network on a whole batch and on one of the last one's size, so that no turn
        contains the compiling of kernels."""
        try:
            self.stage = load_stage(self.name)
            few = self.data.train.first(SETTINGS.batch_size + len(self.data.train) % SETTINGS.batch_size)
            run_lap(self.stage, replace(self.data, train=few, test=few.first(1)), replace(SETTINGS, epochs=1))
            self.begin()
            self.ready = True
        except (StageUnavailable, ValueError, OSError) as reason:  # also C that does not compile
            self.why = str(reason)
        except Exception as error:  # the others race without it, and the page would wait for it for ever
            self.why = f"{type(error).__name__}: {error}"

    def begin(self) -> None:
        """Go to the start, with the weights that the race's seed gives."""
        self.network = self.stage.network.Network(SETTINGS.layers(self.data), seed=SETTINGS.seed, dtype=SETTINGS.dtype)
        optimizer = self.stage.optimizers.SGD(SETTINGS.learning_rate, momentum=SETTINGS.momentum)
        training = TrainingSettings(SETTINGS.epochs, SETTINGS.batch_size, SETTINGS.seed)
        self._runner = EpochRunner(self.stage, self.network, optimizer, self.data.train, training, EVERY)
        self._position, self._lap, self._steps = Position(), len(self.data.train), self._endless_steps()
        self._forget()

    def _endless_steps(self) -> Iterator[float]:
        """The loss of every step, lap after lap."""
        place = self._position
        while True:
            for _, loss in self._runner.rest_of_epoch(place):
                self.seen = place.epoch * self._lap + min(place.step * SETTINGS.batch_size, self._lap)
                yield loss
            place.epoch, place.step, place.loss_sum = place.epoch + 1, 0, 0.0

    def turn(self, seconds: float = TURN) -> None:
        """Train for this time at least, and for a step at least."""
        losses: list[float] = []
        until = self._runner.seconds + seconds
        with np.errstate(all="ignore"):
            while not losses or self._runner.seconds < until or not self._runner.settled:
                losses.append(next(self._steps))
                at_mark = self._position.step % EVERY == 0 or self.seen == self._lap
                if at_mark and self.seen <= self._lap and self._runner.settled:
                    self.marks[self.seen] = losses[-1], self.parameters()
        self.clock, self.loss = self._runner.seconds, float(np.mean(losses))

    def look(self, pause: float = LOOK) -> None:
        """Measure the test accuracy, off the clock and with NumPy, because stage 1 would take two seconds."""
        if time.monotonic() - self._looked > pause:
            scores = inside.scores(self.parameters(), self.network.activation, self.data.test.x)
            self.accuracy, self._looked = float(np.mean(scores.argmax(axis=1) == self.data.test.y)), time.monotonic()

    def answer(self, x: np.ndarray | None) -> None:
        """Read a drawing, (1, 784) or None, by the stage's own code, with the weights of this moment."""
        arrays, softmax = self.stage.arrays, self.stage.activations.softmax
        shares = None if x is None else softmax(self.network.forward(arrays.asarray(x, SETTINGS.dtype)))
        self.answered = None if shares is None else np.asarray(arrays.to_host(shares))[0].tolist()

    def parameters(self) -> list[np.ndarray]:
        """The weights of this moment, copied."""
        return [np.array(self.stage.arrays.to_host(each), np.float64) for each in self.network.parameters]

    def shown(self) -> dict[str, Any]:
        """What the page draws of it."""
        names = ("ready", "why", "seen", "clock", "loss", "accuracy", "answered")
        return {
            **titled(self.name),
            "emulated": is_emulated(self.name),
            **{name: getattr(self, name) for name in names},
        }


class Race:
    """One race of one tab. publish: called with each new state. Every method may be called by any thread."""

    def __init__(self, publish: Callable[[dict[str, Any]], None], data: Dataset | None = None) -> None:
        self.data, self._publish, self._watchers = data or load_dataset(), publish, 0
        self.lanes = [Lane(name, self.data) for name in STAGES]
        self.running = self.finished = self._closed = False
        self._x: np.ndarray | None = None
        self._agreed: list[dict[str, Any]] = []
        self._thread = threading.Thread(target=self._drive, name="race", daemon=True)
        self._thread.start()

    def state(self) -> dict[str, Any]:
        """What the page draws. agreed: what `compared` found at each mark"""
        now = {"running": self.running, "finished": self.finished, "agreed": list(self._agreed)}
        return {**now, "lanes": [lane.shown() for lane in self.lanes]}

    def run(self, running: bool) -> dict[str, Any]:
        """Go on as soon as all lanes are ready, or pause after the running turn. A finished race stays so."""
        self.running = running and not self.finished
        return self.state()

    def begin(self) -> dict[str, Any]:
        """Put all lanes back to the start; the drawing stays."""
        self.running = False
        for lane in self._starters():
            with lane.lock:
                lane.begin()
        self.finished, self._agreed = False, []
        return self._answered()

    def draw(self, pixels: object) -> dict[str, Any]:
        """Have every lane answer a drawing at once; the lane that has its turn answers last, after its step.

        pixels: as `pixels.drawing` takes them; None for an empty pad
        """
        self._x = None if pixels is None else as_input(drawing(pixels))
        return self._answered()

    def watched(self, change: int) -> None:
        """Somebody begins (1) or ceases (-1) to look: the race rests while its tab is hidden."""
        self._watchers += change

    def close(self) -> None:
        """End the race, after the turn that it is in."""
        self._closed = True
        self._thread.join(LONGEST)

    def _starters(self) -> list[Lane]:
        return [lane for lane in self.lanes if lane.ready]

    def _answered(self) -> dict[str, Any]:
        for lane in sorted(self._starters(), key=lambda lane: lane.lock.locked()):
            with lane.lock:
                lane.answer(self._x)
        return self.state()

    def _drive(self) -> None:
        waiting = sorted(self.lanes, key=lambda lane: lane.name == STAGES[3])  # whose kernels compile for seconds
        while not self._closed:
            try:
                if waiting:
                    waiting.pop(0).prepare()
                    self._publish(self._answered())
                elif self.running and self._watchers > 0:
                    self._turn(min(self._starters(), key=lambda lane: lane.clock))
                time.sleep(0.0005 if self.running and self._watchers > 0 else REST)  # whoever waits for a lock gets it
            except Exception as error:  # whatever a stage says is for the page, which would wait for ever otherwise
                self.running = False
                self._publish({"error": f"{type(error).__name__}: {error}"})

    def _turn(self, lane: Lane) -> None:
        with lane.lock:
            if not self.running:  # put back to the start while this thread waited
                return
            lane.turn()
            lane.look()
            lane.answer(self._x)
            self._agreed += compared(self._starters())
        if all(each.seen >= len(self.data.train) for each in self._starters()):
            self.running, self.finished = False, True
        self._publish(self.state())


def compared(lanes: Sequence[Lane]) -> list[dict[str, Any]]:
    """The marks that all lanes have passed, which they forget: {"seen", "losses": each lane's, "apart": the largest
    difference of any weight between two lanes}."""
    found = []
    for seen in sorted(set.intersection(*(set(lane.marks) for lane in lanes))):
        losses, parameters = zip(*(lane.marks.pop(seen) for lane in lanes), strict=True)
        apart = max(float(np.ptp(arrays, axis=0).max()) for arrays in zip(*parameters, strict=True))
        found.append({"seen": seen, "losses": losses, "apart": apart})
    return found


def titled(name: str) -> dict[str, Any]:
    """The number and the title of a stage."""
    return {"number": STAGES.index(name) + 1, "title": STAGE_TITLES[name].partition(": ")[2]}


def samples(data: Dataset) -> list[list[int]]:
    """A test image of each digit, the fifth: 784 whole numbers from 0 to 255. The 0 is read as a 5 at first."""
    images = [data.test.x[np.flatnonzero(data.test.y == digit)[4]] for digit in range(CLASSES)]
    return [np.rint(image * 255).astype(int).tolist() for image in images]
