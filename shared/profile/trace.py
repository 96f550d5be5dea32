"""A step as a file for Perfetto (ui.perfetto.dev) and chrome://tracing: Google's "Trace Event Format", as JSON.

Each stage is a process with one track, on which the step lies as a long slice with its operations below. The step is
the noted one whose time was nearest to the median. Times are µs from the step's beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from shared.contract import STAGE_TITLES, STAGES
from shared.profile.step_profile import Profile

MICRO = 1e6
TRACK = 1


def trace(profiles: Sequence[Profile]) -> dict[str, Any]:
    """The profile as a document for trace viewers; `write_json` writes it."""
    return {
        "traceEvents": [event for each in profiles for event in _events(each)],
        "displayTimeUnit": "ns",
        "otherData": {"made by": "groundup profile"},
    }


def _events(profile: Profile) -> Iterator[dict[str, Any]]:
    process = STAGES.index(profile.stage) + 1
    where = {"pid": process, "tid": TRACK}
    title = STAGE_TITLES[profile.stage] + (", emulated on the CPU: not a GPU's times" if profile.emulated else "")
    for name, text in (("process_name", title), ("thread_name", "one training step")):
        yield {"ph": "M", "name": name, **where, "args": {"name": text}}
    yield {"ph": "M", "name": "process_sort_index", **where, "args": {"sort_index": process}}
    whole = f"step of {profile.network}, batch {profile.batch}, {profile.dtype}"
    yield {"ph": "X", "name": whole, "cat": "step", "ts": 0.0, "dur": profile.timeline.total * MICRO, **where}
    for timed, (began, seconds) in zip(profile.operations, profile.timeline.spans, strict=True):
        operation = timed.operation
        about = {
            "layer": operation.layer,
            "direction": operation.direction,
            "input": list(operation.input_shape),
            "output": list(operation.output_shape),
            "flops": operation.flops,
            "bytes": operation.bytes,
            "median µs of all rounds": round(timed.seconds * MICRO, 3),
            "bound": f"{timed.bound.kind} ({timed.bound.roof})",
        }
        slice_ = {"ph": "X", "name": operation.name, "cat": operation.direction, "args": about}
        yield {**slice_, "ts": began * MICRO, "dur": seconds * MICRO, **where}
