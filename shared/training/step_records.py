"""What a run tells about its steps: the file steps.jsonl, one JSON object a line.

    StepRecord    one line: the loss, the rate, the speed, the size of every layer's weights and gradients, the process
    StepFile      writes the lines of a running training, and thins them when they become many
    read_line     one line, read with distrust: the file may be damaged, or come from a stranger

A training writes at most 20 lines a second. When the file has MOST_RECORDS lines or MOST_BYTES bytes, each two
neighbours become one, and from then on the lines come half as often. So the file of a run of any length stays small,
its lines are about equally far apart, and no step is missing: the loss of a line is the mean over all steps since the
line before.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from shared.machine import regular, strict_json
from shared.machine.atomic import why_not, write_atomically

LEAST_SECONDS = 1 / 20
"""The least time between two lines, before the file is thinned for the first time."""

MOST_RECORDS = 10_000
MOST_BYTES = 8_000_000

LONGEST_LINE = 1_000_000
"""Bytes of a line that is read in one piece; a longer one is none of a training's."""

DIGITS = 6
"""Significant digits of a number in the file."""

LARGEST = 1e300
"""A number beyond this one is kept as None: nothing could be drawn or added up with it."""


@dataclass(frozen=True)
class StepRecord:
    """One line of steps.jsonl. A number that was not finite, or is not known, is None.

    step: finished steps since the training began, those before a resume included
    epoch: the running epoch, from 1
    loss: mean over the last `steps` steps, those since the line before; rate: the learning rate of the last one
    seconds: time since the training began, evaluations included, pauses between two sessions left out
    images_per_second: training samples in these steps, divided by their time without evaluations
    weights: ‖W‖ of each layer, the first layer first. ‖·‖ is the square root of the sum of all squares; biases and
        batch normalisation are left out
    gradients: ‖dL/dW‖ of each layer in the last step. A network whose steps keep no gradients, stage 4's of dense
        layers, is asked for those of the first batch of the training data instead
    memory: bytes of main memory that the process holds; cores: processor time divided by time, 2.0 for two busy cores
    gpu: [busy, bytes] of each GPU of the machine, as NVML tells them, of all programs together; empty if not known
    communication: of several ranks, the share of the steps' time in which rank 0 sent or waited for others
    """

    step: int
    epoch: int
    loss: float | None
    steps: int
    rate: float | None
    seconds: float
    images_per_second: float | None = None
    weights: tuple[float | None, ...] = ()
    gradients: tuple[float | None, ...] = ()
    memory: int | None = None
    cores: float | None = None
    gpu: tuple[tuple[float, float], ...] = ()
    communication: float | None = None

    def line(self) -> str:
        """The record as a line of the file; what is not known is left out."""
        values = {each.name: _short(getattr(self, each.name)) for each in fields(self)}
        known = {name: value for name, value in values.items() if value is not None and value != []}
        return json.dumps(known, separators=(",", ":"), allow_nan=False) + "\n"


def read_line(line: str) -> StepRecord | None:
    """The record of a line; None for a line that is none: cut off, damaged, or with values of other kinds."""
    try:
        saved = strict_json.loads(line)
    except ValueError:
        return None
    if not isinstance(saved, dict):
        return None
    values = {each.name: READERS[str(each.type)](saved.get(each.name)) for each in fields(StepRecord)}
    if not values["steps"] or any(values[name] is None for name in ("step", "epoch", "seconds")):
        return None
    return StepRecord(**values)


def thinned(records: Iterable[StepRecord]) -> Iterator[StepRecord]:
    """Half as many records: each two neighbours as one, the last alone where the number is odd."""
    waiting: StepRecord | None = None
    for record in records:
        if waiting is None:
            waiting = record
        else:
            yield merged(waiting, record)
            waiting = None
    if waiting is not None:
        yield waiting


def merged(one: StepRecord, other: StepRecord) -> StepRecord:
    """Two neighbours as one record: means over all their steps, the larger memory, the rest as the later one has it."""
    steps = one.steps + other.steps

    def mean(name: str) -> float | None:
        a, b = getattr(one, name), getattr(other, name)
        return b if a is None else a if b is None else a + (b - a) * (other.steps / steps)

    memory = max((m for m in (one.memory, other.memory) if m is not None), default=None)
    means: dict[str, Any] = {name: mean(name) for name in ("loss", "images_per_second", "cores", "communication")}
    return replace(other, steps=steps, memory=memory, **means)


class StepFile:
    """The file of a running training: lines are added, and thinned when they become many.

    path: the file; up_to: of a file that is there, the lines up to this step are kept (a run that is resumed goes back
        to its last checkpoint), and those of a damaged line are not
    stretch: how often the lines have been thinned: the caller doubles the time between two lines as often

    Raises OSError if the file cannot be written.
    """

    def __init__(self, path: Path, up_to: int) -> None:
        self.path = path
        self.last: StepRecord | None = None
        kept = [each for each in self._read() if each.step <= up_to] if up_to else []
        apart = (kept[-1].seconds - kept[0].seconds) / (len(kept) - 1) if len(kept) > 1 else 0.0
        self.stretch = int(math.log2(max(apart / LEAST_SECONDS, 1.0)))  # of a file that was thinned before
        self._write(kept)

    def add(self, record: StepRecord) -> None:
        """Write a line at once, so that a reader sees it and a killed training does not lose it."""
        line = record.line()
        self._file.write(line)
        self._file.flush()
        self.last = record
        self._records += 1
        self._bytes += len(line)
        if self._records >= MOST_RECORDS or self._bytes >= MOST_BYTES:
            self._file.close()
            self.stretch += 1
            self._write(thinned(self._read()))

    def close(self) -> None:
        self._file.close()

    def _read(self) -> Iterator[StepRecord]:
        if not self.path.is_file():
            return
        with regular.opened(self.path) as file:
            while line := file.readline(LONGEST_LINE):
                if record := read_line(line.decode(errors="replace")):
                    yield record

    def _write(self, records: Iterable[StepRecord]) -> None:
        """Put these records into the file, as a whole, and open it for more."""
        lines = []
        for record in records:
            lines.append(record.line())
            self.last = record
        write_atomically(self.path, "".join(lines).encode(), to_disk=False)
        self._records, self._bytes = len(lines), sum(map(len, lines))
        try:
            self._file = open(self.path, "a", encoding="utf-8", newline="\n")  # noqa: SIM115 - closed by `close`
        except OSError as error:
            raise OSError(f"cannot write {self.path}: {why_not(self.path, error)}") from error


def _short(value: object) -> Any:
    """A value for the file: fewer digits, None for what is not finite, a list for a tuple."""
    if isinstance(value, tuple):
        return [_short(each) for each in value]
    if not isinstance(value, float):
        return value
    return float(f"{value:.{DIGITS}g}") if abs(value) <= LARGEST else None


def _number(value: Any) -> float | None:
    """A finite number, or None for anything else."""
    return float(value) if strict_json.is_number(value) and abs(value) <= LARGEST else None


def _count(value: Any) -> int | None:
    """A whole number of at least 0, or None for anything else."""
    return value if strict_json.is_count(value) else None


def _numbers(values: object) -> tuple[float | None, ...]:
    return tuple(_number(each) for each in values) if isinstance(values, list) else ()


def _pairs(values: object) -> tuple[tuple[float, float], ...]:
    """Pairs of numbers; nothing where one of them is something else."""
    pairs = []
    for one, other in ((*each, None, None)[:2] for each in map(_numbers, values if isinstance(values, list) else ())):
        if one is None or other is None:
            return ()
        pairs.append((one, other))
    return tuple(pairs)


READERS: dict[str, Callable[[Any], Any]] = {
    "int": _count,
    "int | None": _count,
    "float": _number,
    "float | None": _number,
    "tuple[float | None, ...]": _numbers,
    "tuple[tuple[float, float], ...]": _pairs,
}
"""Of each type of a field: what reads it, and gives None for what it cannot be."""
