"""A function called on all four stages with one small input, beside each other.

The stages are prepared for a function as soon as somebody looks at it, so that a call answers at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from groundup.studio.floors import columns
from groundup.studio.prepared_stages import PreparedStages
from shared.checks.one_function import called, example
from shared.contract import STAGES, Stage, is_emulated

Key = tuple[str, str, tuple[str, ...]]
"""Room, function, and the rung of each stage, "" where it has one way only."""


class Runs:
    """The stages for the page Floors. Any thread may call a method."""

    def __init__(self) -> None:
        self._stages = PreparedStages("floors", lambda stage, key: _call(stage, key, 0))

    def prepare(self, room: str, name: str, rungs: tuple[str, ...] = ()) -> Key:
        """Begin to prepare the stages for a function. Raises ValueError for an unknown one."""
        shown = columns.function(room, name, rungs)
        key = (room, name, tuple(each["rung"] for each in shown["stages"]))
        self._stages.prepare(key)
        return key

    def run(self, room: str, name: str, rungs: tuple[str, ...], seed: Any) -> dict[str, Any]:
        """Call a function on every stage that is ready.

        {"inputs": [{"name", "shape", "values"}], "stages": what `PreparedStages.answer` says, with "emulated", and if it
        is ready "seconds" and "results": [{"name", "shape", "values", "apart", "allowed"}]}
        """
        if type(seed) is not int or seed < 0:
            raise ValueError(f"seed: expected a whole number from 0, got {str(seed)[:20]}")
        key = self.prepare(room, name, rungs)
        stages = [
            {**self._stages.answer(stage, key, lambda own: _call(own, key, seed)), "emulated": is_emulated(stage)}
            for stage in STAGES
        ]
        inputs = [{"name": each, **_array(values)} for each, values in example(room, name, seed).inputs.items()]
        return {"inputs": inputs, "stages": stages}


def _call(stage: Stage, key: Key, seed: int) -> dict[str, Any]:
    room, name, rungs = key
    made = called(stage, example(room, name, seed), rungs[STAGES.index(stage.name)])
    results = [
        {"name": each.name, **_array(each.values), "apart": each.apart, "allowed": each.allowed}
        for each in made.results
    ]
    return {"seconds": made.seconds, "results": results}


def _array(values: Any) -> dict[str, Any]:
    array = np.asarray(values, np.float64)
    return {"shape": list(array.shape), "values": array.ravel().tolist()}
