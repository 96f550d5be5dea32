"""The frame of every measurement: candidates take turns, and their rows are compared with each other.

A candidate is a call and a key. The key is a tuple that begins with the name of who computes, a stage or a library.
`take_turns` measures all candidates of a group in the same rounds and knows what each of them needs: a pause before a
library's threads start, the end of a GPU's queue, the GPU's own clock. `Turns.columns` then fills in the columns of a
row that follow from the group: the time, the ratio to the reference, the opponents, the share of the peak.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from shared.bench.measuring import gpu
from shared.bench.measuring.peak import flops_per_second, peak_call
from shared.bench.measuring.timing import (
    MINIMUM_SAMPLE,
    REST,
    Measurement,
    Rest,
    Rounds,
    Sampler,
    measure,
    times_as_fast,
)
from shared.contract import Stage, is_emulated
from shared.machine.hardware import usable_cores

Key = TypeVar("Key", bound=tuple[Any, ...])
PEAK = ("", "peak")
"""The key of stage 3's loop that only multiplies and adds: one core's peak, measured in the same rounds."""


@dataclass(frozen=True)
class Effort:
    """How much time a measurement may take.

    repeats: rounds at most, each with one sample of every candidate
    group_limit: seconds for the candidates that take turns with each other, as `limit` of `measure`
    minimum_sample: seconds that one sample lasts at least
    threads: how many threads every stage and library may use; None for every usable core
    """

    repeats: int = 15
    group_limit: float = 15.0
    minimum_sample: float = MINIMUM_SAMPLE
    threads: int | None = None

    @property
    def most_threads(self) -> int:
        """The number of threads that a stage or library may use."""
        return self.threads or usable_cores()


@dataclass(frozen=True)
class Turns(Generic[Key]):
    """The measurements of one group of candidates.

    measured: the candidates that were measured
    threads: how many threads each of them may use
    emulated: the stages whose kernels are emulated on the CPU; their rows are compared with nothing
    on_device: the candidates that run on a GPU, for which a core's peak means nothing
    own_clock: the candidates that the GPU timed by its own clock
    core_peak: FLOP/s of one core, None where no stage of the group can measure it
    """

    measured: Mapping[Key, Measurement]
    threads: Mapping[Key, int]
    emulated: Collection[str]
    on_device: Collection[Key]
    own_clock: Collection[Key]
    core_peak: float | None = None

    def columns(
        self, key: Key, *, reference: Key | None, label: str, opponents: Mapping[str, Key] | None = None
    ) -> dict[str, Any]:
        """The columns of the row of `key` that follow from the group, as keyword arguments of BenchRow.

        reference: the candidate that `ratio` compares with; label: what it is called in the row
        opponents: name in `against` -> candidate
        """
        emulated = key[0] in self.emulated
        result, threads = self.measured.get(key), self.threads.get(key, 1)
        other = None if reference is None else self.measured.get(reference)
        compared = None if emulated else result
        no_core = emulated or key in self.on_device
        return {
            "measurement": result,
            "reference": gpu.NO_REFERENCE if emulated else label if other else "",
            "ratio": compared.median / other.median if compared and other else None,
            "against": times_as_fast(self.measured, key, opponents or {}) if compared else {},
            "threads": threads,
            "peak": None if self.core_peak is None or no_core else self.core_peak * threads,
            "emulated": emulated,
            "clock": gpu.CLOCK if key in self.own_clock else "wall",
        }


def take_turns(
    calls: Mapping[Key, Callable[[], object]],
    stages: Sequence[Stage],
    effort: Effort,
    *,
    threads: Mapping[Key, int],
    peak_in: str | None = None,
    wake_once: bool = False,
    own_clock: Mapping[Key, Sampler] | None = None,
    also_on_device: Collection[Key] = (),
) -> Turns[Key]:
    """Measure the candidates in turns. Without candidates nothing is measured.

    threads: how many threads each candidate may use, also those that are only to have a row
    peak_in: the dtype in which the peak of a core is measured, too; None for no peak
    wake_once: wake the threads of a library once in a round, before its first call, and not before every call
    own_clock: for candidates that a GPU times by its own clock: the function that takes a sample
    also_on_device: the candidates on a GPU that are no stage's
    """
    emulated = {stage.name for stage in stages if is_emulated(stage.name)}
    waits = {stage.name: wait for stage in stages if (wait := gpu.waiter(stage)) is not None}
    threaded = {key for key in calls if threads.get(key, 1) > 1}
    rest = REST
    if wake_once:
        threaded = first_of_each(calls, {key[0] for key in threaded} - emulated)
        rest = REST if len(threaded) > 1 else 0.0  # one library alone waits for nobody else's threads
    candidates: dict[Any, Callable[[], object]] = dict(calls)
    peak = peak_call(stages, peak_in) if peak_in and calls else None
    if peak is not None:
        candidates[PEAK] = peak
    measured: dict[Any, Measurement] = {}
    if candidates:
        measured = measure(
            candidates,
            repeats=effort.repeats,
            rounds=Rounds(minimum_sample=effort.minimum_sample, limit=effort.group_limit),
            threaded=threaded,
            finish={key: waits[key[0]] for key in calls if key[0] in waits},
            samplers=own_clock,
            rest=Rest(rest),
        )
    core_peak = flops_per_second(peak, measured.pop(PEAK)) if peak is not None else None
    on_device = {key for key in threads if key[0] in waits} | set(also_on_device)
    return Turns(measured, threads, emulated, on_device, set(own_clock or {}), core_peak)


def first_of_each(keys: Iterable[Key], names: Collection[str]) -> set[Key]:
    """The first key of each of those names, with which the keys begin."""
    first: dict[str, Key] = {}
    for key in keys:
        if key[0] in names:
            first.setdefault(key[0], key)
    return set(first.values())


class CallLimit:
    """Leaves out calls that are expected to take too long, from the calls with less work before them.

    seconds: the longest that one call may be expected to take
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._per_work: dict[object, float] = {}

    def reason(self, key: object, work: float) -> str | None:
        """Why a call with so much work is left out; None where it is not."""
        expected = self._per_work.get(key, 0.0) * work
        if expected <= self.seconds:
            return None
        return f"one call would take about {expected:.1f} s; the limit is {self.seconds:g} s"

    def note(self, key: object, work: float, seconds: float) -> None:
        """Remember that a call with so much work took so long."""
        self._per_work[key] = seconds / work
