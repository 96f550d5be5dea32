"""Every stage's answer to a drawing.

A stage has to be prepared before it can answer at once: stage 3 may have to compile its C, stage 4 its kernels, which
on the emulator takes seconds. So the page asks for that when it is opened, and a thread prepares one stage after
another by letting each answer once. A stage's network is used by one thread at a time: it works in buffers of its own.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from groundup.studio.digits import networks
from groundup.studio.digits.networks import Trained
from groundup.studio.digits.pixels import as_input
from shared.contract import STAGES, NetworkLike, Stage, StageUnavailable, display_title, load_stage
from shared.training.checkpoints import build_network

ORDER = ("stage2_numpy", "stage3_c", "stage4_numba_cuda", "stage1_pure_python")
"""The stages in the order in which they are prepared: those that answer at once come first."""

MOST = 6
"""Networks that are kept prepared; another one replaces the one that was not asked for longest."""

LARGEST_FOR_PYTHON = 12_000_000
"""Multiply-adds of one image, from which on stage 1 does not answer: Python's loops would take some seconds, and slow
everything else in the studio meanwhile."""

WARMING, READY, ABSENT = "warming", "ready", "absent"


@dataclass
class Floor:
    """One floor with one network. state: WARMING, READY or ABSENT; why: the reason, where it is absent."""

    name: str
    state: str = WARMING
    why: str = ""
    stage: Stage | None = None
    network: NetworkLike | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass
class Prepared:
    """A trained network with its floors."""

    trained: Trained
    floors: dict[str, Floor]


class Answers:
    """The stages of all networks that were asked for. Every method may be called by any thread."""

    def __init__(self, runs: Path) -> None:
        self.runs = runs
        self._prepared: OrderedDict[tuple[str, int], Prepared] = OrderedDict()
        self._lock = threading.Lock()
        self._building = threading.Lock()  # one stage at a time is compiled for

    def trained(self, name: str) -> Trained:
        """The network of this name. Raises as `networks.load` does."""
        return self._prepare(name).trained

    def floors(self, name: str) -> list[dict[str, Any]]:
        """How far the preparation has come: {"number", "title", "state", "why"} of each stage, the first one first."""
        floors = self._prepare(name).floors
        return [
            {"number": number, "title": display_title(each), "state": floors[each].state, "why": floors[each].why}
            for number, each in enumerate(STAGES, start=1)
        ]

    def answer(self, name: str, number: int, pixels: np.ndarray) -> dict[str, Any]:
        """One floor's answer to a drawing, uint8 (height * width,); it waits until the stage is prepared.

        Returns {"number", "version": the network's, "scores": the last layer's output, "probabilities": their softmax
        by the same floor, "seconds": from the pixels on the host to the probabilities there}.
        Raises ValueError for a number that is no stage's, StageUnavailable for a stage that this machine lacks.
        """
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= len(STAGES):
            raise ValueError(f"floor: expected a number from 1 to {len(STAGES)}, got {str(number)[:20]}")
        prepared = self._prepare(name)
        floor = prepared.floors[STAGES[number - 1]]
        with floor.lock:
            self._ready(floor, prepared.trained)
            return {"number": number, "version": prepared.trained.version, **_answer(floor, prepared.trained, pixels)}

    def _prepare(self, name: str) -> Prepared:
        """The network with its floors; a thread begins to prepare them if this is the first time."""
        key = networks.version(self.runs, name)
        with self._lock:
            found = self._prepared.get(key)
            if found is None:
                floors = {each: Floor(each) for each in STAGES}
                found = self._prepared[key] = Prepared(networks.load(self.runs, name), floors)
                threading.Thread(target=self._warm, args=(found,), daemon=True, name=f"digits {name}").start()
            self._prepared.move_to_end(key)
            while len(self._prepared) > MOST:
                self._prepared.popitem(last=False)
        return found

    def _warm(self, prepared: Prepared) -> None:
        for each in ORDER:
            floor = prepared.floors[each]
            with floor.lock, suppress(StageUnavailable):  # the page shows floor.why
                self._ready(floor, prepared.trained)

    def _ready(self, floor: Floor, trained: Trained) -> None:
        """Build the stage's network and let it answer once. Raises StageUnavailable if this machine lacks the floor."""
        if floor.state == ABSENT:
            raise StageUnavailable(floor.why)
        if floor.state == READY:
            return
        try:
            _check_size(floor.name, trained)
            with self._building:
                floor.stage = load_stage(floor.name)
                floor.network = build_network(floor.stage, trained.checkpoint)
                _answer(floor, trained, np.full(math.prod(trained.form.shape[1:]), 128, np.uint8))
        except (StageUnavailable, ValueError, OSError) as reason:  # also C that does not compile
            floor.state, floor.why = ABSENT, str(reason)
            raise StageUnavailable(floor.why) from reason
        floor.state = READY


def _check_size(name: str, trained: Trained) -> None:
    """Raises StageUnavailable for a network that is too large for Python's loops."""
    count = trained.checkpoint.architecture.multiply_adds
    if name == STAGES[0] and count > LARGEST_FOR_PYTHON:
        raise StageUnavailable(f"one image takes {count:,} multiply-adds, too many for Python's loops")


def _answer(floor: Floor, trained: Trained, pixels: np.ndarray) -> dict[str, Any]:
    stage, network = floor.stage, floor.network
    assert stage is not None
    assert network is not None
    x = trained.learned(as_input(pixels, trained.form.shape[0]))
    started = time.perf_counter()
    scores = network.forward(stage.arrays.asarray(x, trained.checkpoint.dtype))
    probabilities = stage.arrays.to_host(stage.activations.softmax(scores))
    seconds = time.perf_counter() - started
    return {
        "scores": np.asarray(stage.arrays.to_host(scores), np.float64)[0].tolist(),
        "probabilities": np.asarray(probabilities, np.float64)[0].tolist(),
        "seconds": seconds,
    }
