"""A function's columns, and a call of it on all four stages with one small input.

The stages are prepared for a function as soon as somebody looks at it, so that a call answers at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from groundup.studio.floors import columns
from groundup.studio.prepared_stages import PreparedStages
from shared.checks.one_function import called, example
from shared.contract import STAGES, Stage, is_emulated


class Runs:
    """The stages for the page Floors. Any thread may call a method."""

    def __init__(self) -> None:
        self._stages = PreparedStages("floors", lambda stage, key: _call(stage, key, 0))

    def function(self, room: str, name: str, rungs: tuple[str, ...], prepare: bool) -> dict[str, Any]:
        """What `columns.function` says. prepare: whether the stages begin to be prepared for a call."""
        shown = columns.function(room, name, rungs)
        if prepare:
            self._stages.prepare((room, name, tuple(each["rung"] for each in shown["stages"])))
        return shown

    def run(self, room: str, name: str, rungs: tuple[str, ...], seed: Any) -> dict[str, Any]:
        """Call a function on every stage that is ready.

        {"inputs": [{"name", "shape", "values"}], "stages": what `PreparedStages.answer` says, with "emulated", and of a
        ready one "seconds" and "results": [{"name", "shape", "values", "apart", "allowed"}]}
        """
        if type(seed) is not int or seed < 0:
            raise ValueError(f"seed: expected a whole number from 0, got {str(seed)[:20]}")
        shown = self.function(room, name, rungs, prepare=True)
        key = room, name, tuple(each["rung"] for each in shown["stages"])
        answers = [self._stages.answer(stage, key, lambda own: _call(own, key, seed)) for stage in STAGES]
        return {
            "inputs": [{"name": each, **_array(values)} for each, values in example(room, name, seed).inputs.items()],
            "stages": [{**answer, "emulated": is_emulated(own)} for own, answer in zip(STAGES, answers, strict=True)],
        }


def _call(stage: Stage, key: Any, seed: int) -> dict[str, Any]:
    room, name, rungs = key  # of each stage, "" where it has one way only
    made = called(stage, example(room, name, seed), rungs[STAGES.index(stage.name)])
    return {"seconds": made.seconds, "results": [{**vars(each), **_array(each.values)} for each in made.results]}


def _array(values: Any) -> dict[str, Any]:
    array = np.asarray(values, np.float64)
    return {"shape": list(array.shape), "values": array.ravel().tolist()}
