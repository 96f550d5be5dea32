"""What the profile of one stage holds. Times are in seconds, as everywhere in our files; tables show µs.

Profile     the step of one stage: its operations, and the whole beside their sum
Timed       one operation with its times and what bounds it
Listener    what each stage's way of listening to its step offers to measure.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple, Protocol

from shared.bench.measuring.timing import Measurement
from shared.profile.operations import Operation


class Noted(NamedTuple):
    """One step that was listened to.

    total: seconds of the whole step; spans: for each operation (began, seconds), began since the step's beginning
    """

    total: float
    spans: Sequence[tuple[float, float]]


class Listener(Protocol):
    """A training step that can be taken with or without listening to it."""

    notes: int
    """How often the clock is read within a step."""
    clock: str
    """Whose clock it is: 'wall', or 'events' for a GPU's own."""

    @property
    def operations(self) -> Sequence[Operation]:
        """The operations of the step in their order."""

    def step(self) -> object:
        """Take a step without listening to it."""

    def noted_step(self) -> Noted:
        """Take a step and note when each operation began and ended."""

    def cost_of_a_note(self) -> float:
        """Seconds that a note takes."""


@dataclass(frozen=True)
class Bound:
    """What keeps an operation from being faster.

    kind: 'compute', 'memory', or 'neither'
    share: of the roof that is nearest: how far the operation comes; None where no roof was measured
    roof: which one: 'peak', 'the 256 KiB roof', 'the memory roof'; or for 'neither' what it spends its time on instead
    """

    kind: str
    share: float | None
    roof: str


@dataclass(frozen=True)
class Timed:
    """An operation and its times in the noted steps; share: of the plain step's median."""

    operation: Operation
    measurement: Measurement
    share: float
    share_of_peak: float | None
    bound: Bound

    @property
    def seconds(self) -> float:
        """The median time of the operation, in seconds."""
        return self.measurement.median

    @property
    def gflops(self) -> float:
        """Billion floating-point operations a second."""
        return self.operation.flops / self.seconds / 1e9 if self.seconds else 0.0

    @property
    def gigabytes(self) -> float:
        """Billion bytes a second."""
        return self.operation.bytes / self.seconds / 1e9 if self.seconds else 0.0


@dataclass(frozen=True)
class Profile:
    """The step of one stage.

    stage: its full name; network: '784-128-10' or 'lenet5'; threads: how many it may use
    emulated: whether a CPU ran a GPU's kernels; clock: as Listener has it
    step: the plain step, noted_step: the one that was listened to, in turns with it
    between: what of a noted step belongs to no operation: calls, checks, what Python does between two of them
    notes, note_seconds: readings of the clock in a step, and what one of them costs
    timeline: the noted step whose time was nearest to the median: (began, seconds) of each operation
    """

    stage: str
    network: str
    batch: int
    dtype: str
    threads: int
    emulated: bool
    clock: str
    step: Measurement
    noted_step: Measurement
    between: Measurement
    notes: int
    note_seconds: float
    operations: Sequence[Timed]
    timeline: Noted

    @property
    def sum_of_operations(self) -> float:
        """The medians of all operations together, seconds."""
        return sum(each.seconds for each in self.operations)

    @property
    def share_of_operations(self) -> float:
        """The medians of all operations together, as a share of the plain step's median."""
        return self.sum_of_operations / self.step.median

    @property
    def cost_of_listening(self) -> float:
        """How much longer the noted step took than the plain one, as a share of that; may be negative by noise."""
        return self.noted_step.median / self.step.median - 1

    def as_dict(self) -> dict[str, Any]:
        """The profile as values for JSON, as its file holds it."""
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        own |= {name: asdict(own[name]) for name in ("step", "noted_step", "between")}
        own["operations"] = [_timed_as_dict(each) for each in self.operations]
        own["timeline"] = {"total": self.timeline.total, "spans": [list(span) for span in self.timeline.spans]}
        own["sum_of_operations"], own["share_of_operations"] = self.sum_of_operations, self.share_of_operations
        return own

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Profile:
        """The profile from the values that `as_dict` made."""
        own = {each.name: saved[each.name] for each in fields(cls)}
        own |= {name: Measurement(**own[name]) for name in ("step", "noted_step", "between")}
        own["operations"] = [_timed(each) for each in saved["operations"]]
        own["timeline"] = Noted(saved["timeline"]["total"], [(b, s) for b, s in saved["timeline"]["spans"]])
        return cls(**own)


def _timed_as_dict(each: Timed) -> dict[str, Any]:
    more = {"flops_per_second": 1e9 * each.gflops, "bytes_per_second": 1e9 * each.gigabytes}
    shares = {"share": each.share, "share_of_peak": each.share_of_peak, "bound": asdict(each.bound)}
    return asdict(each.operation) | {"seconds": asdict(each.measurement)} | more | shares


def _timed(saved: Mapping[str, Any]) -> Timed:
    own = {each.name: saved[each.name] for each in fields(Operation)}
    own |= {name: tuple(own[name]) for name in ("input_shape", "output_shape")}
    measured, bound = Measurement(**saved["seconds"]), Bound(**saved["bound"])
    return Timed(Operation(**own), measured, saved["share"], saved["share_of_peak"], bound)
