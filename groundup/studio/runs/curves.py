"""The steps and epochs of a run as columns for charts: few enough to draw, however long the run is.

    Steps         the records of steps.jsonl, read on as the file grows
    epoch_columns the records of metrics.jsonl

A chart is about a thousand pixels wide. So neighbouring records are merged until at most MOST_POINTS are left; of the
loss, the smallest and the largest of the merged records are kept beside the mean, so that a leap stays visible.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from shared.machine import regular, strict_json
from shared.training.step_records import StepRecord, merged, read_line

MOST_POINTS = 1000

MOST_BYTES, MOST_LINES = 32_000_000, 50_000
"""Of a longer file, which no training of ours writes, lines at equal distances are read: SAMPLES of them."""

SAMPLES, MOST_SAMPLED = 4000, 32_000_000
"""Lines, and their bytes with those of the lines before, of which only the end is read."""

MOST_LINE = 100_000
"""Bytes of one line; a longer one is none of ours."""

MOST_LAYERS = 500
"""Of one record; one with more is none of ours."""

TAIL = 64_000
"""Bytes at the end of a file that tell how a run is doing now."""

EPOCH_FIELDS = (
    "learning_rate", "train_loss", "train_accuracy", "validation_loss", "validation_accuracy", "test_loss",
    "test_accuracy", "seconds", "samples_per_second",
)  # fmt: skip


@dataclass(frozen=True)
class Point:
    """Merged records: the record that stands for them, and the smallest and largest of their losses."""

    record: StepRecord
    low: float | None
    high: float | None

    @classmethod
    def of(cls, record: StepRecord) -> Point:
        return cls(record, record.loss, record.loss)

    def and_(self, other: Point) -> Point:
        """Two neighbours as one point."""
        lows = [each for each in (self.low, other.low) if each is not None]
        highs = [each for each in (self.high, other.high) if each is not None]
        return Point(merged(self.record, other.record), min(lows, default=None), max(highs, default=None))


class Steps:
    """The steps of a run, read on as the file grows, in memory of a fixed size.

    skipped: lines that are no records; sampled: whether only some lines of a long file were read
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._begin()

    def _begin(self) -> None:
        self.points: list[Point] = []
        self.skipped, self.sampled = 0, False
        self._each = 1  # records that are merged into one point
        self._open: list[Point] = []  # of the point that is not full yet
        self._offset, self._identity = 0, (0, 0)
        self._size, self._lines = -1, 0

    def read(self) -> None:
        """Read what the file has more than the last time; all of it if it was replaced. Raises OSError."""
        stat = self.path.stat()
        identity = (stat.st_ino, stat.st_dev)
        if identity != self._identity or stat.st_size < self._offset or self._is_long(stat.st_size):
            if (identity, stat.st_size) == (self._identity, self._size):
                return
            self._begin()
            self._identity = identity
        self._size = stat.st_size
        if not self._is_long(stat.st_size):
            with regular.opened(self.path) as file:
                file.seek(self._offset)
                while self._lines <= MOST_LINES and (line := file.readline(MOST_LINE)):
                    if not line.endswith(b"\n") and len(line) < MOST_LINE:
                        break  # the training is about to write the rest
                    self._offset = file.tell()
                    self._lines += 1
                    self._take(line)
        if self._is_long(stat.st_size):
            lines = self._lines
            self._begin()
            self._identity, self._size, self._lines, self.sampled = identity, stat.st_size, lines, True
            for line in _sampled(self.path, stat.st_size):
                self._take(line)

    def _is_long(self, size: int) -> bool:
        return size > MOST_BYTES or self._lines > MOST_LINES

    def _take(self, line: bytes) -> None:
        record = read_line(line.decode(errors="replace"))
        if record is None or max(len(record.weights), len(record.gradients), len(record.gpu)) > MOST_LAYERS:
            self.skipped += 1
            return
        if self.points and record.step <= self.points[-1].record.step:
            self.skipped += not self.sampled  # the lines of a run go up; sampling may meet one twice
            return
        self._open.append(Point.of(record))
        if len(self._open) == self._each:
            self.points.append(_joined(self._open))
            self._open = []
        if len(self.points) > MOST_POINTS:
            pairs = (self.points[i : i + 2] for i in range(0, len(self.points), 2))
            self.points = [_joined(pair) for pair in pairs]
            self._each *= 2

    def columns(self) -> dict[str, Any]:
        """The points as columns: each name of StepRecord, low and high; weights and gradients a column a layer."""
        points = [*self.points, *([_joined(self._open)] if self._open else [])]
        records = [each.record for each in points]
        columns: dict[str, Any] = {
            name: [getattr(each, name) for each in records]
            for name in ("step", "epoch", "loss", "rate", "seconds", "images_per_second", "memory", "cores")
        }
        columns["low"] = [each.low for each in points]
        columns["high"] = [each.high for each in points]
        for name in ("weights", "gradients"):
            columns[name] = _per_layer([getattr(each, name) for each in records])
        columns["busy"] = _per_layer([tuple(busy for busy, _ in each.gpu) for each in records])
        columns["held"] = _per_layer([tuple(held for _, held in each.gpu) for each in records])
        return {name: _shortened(column) for name, column in columns.items()}


def tail(path: Path) -> list[StepRecord]:
    """The last records of a steps.jsonl. Raises OSError."""
    return [record for line in _last_lines(path) if (record := read_line(line)) is not None]


def seconds_left(records: Sequence[StepRecord], total: int) -> float | None:
    """How long a run of `total` steps still takes at the speed of these records, evaluations included."""
    if len(records) < 2:
        return None
    # Over at least the last minute, or all that there is: an epoch's evaluation must not look like a standstill.
    first = next((each for each in records if records[-1].seconds - each.seconds <= 60.0), records[0])
    first = records[0] if first is records[-1] else first
    steps, seconds = records[-1].step - first.step, records[-1].seconds - first.seconds
    return max(0, total - records[-1].step) * seconds / steps if steps > 0 and seconds > 0 else None


def epoch_columns(path: Path, steps: dict[str, Any], steps_per_epoch: int | None) -> dict[str, Any]:
    """The epochs of a metrics.jsonl as columns, with the step at the end of each, and its time since the beginning.

    steps: the columns of the run's steps, which know the time; without any, the epochs' own times are added up
    Raises OSError.
    """
    epochs, skipped = read_epochs(path)
    each_th = -(-len(epochs) // MOST_POINTS)
    total, before = 0.0, 0
    for epoch in epochs:
        total += (epoch["seconds"] or 0.0) * max(1, epoch["epoch"] - before)  # those in between were left out
        before = epoch["epoch"]
        epoch["time"] = total
        epoch["step"] = epoch["epoch"] * steps_per_epoch if steps_per_epoch else None
        if steps.get("step") and epoch["step"] is not None:
            epoch["time"] = _time_at(steps, epoch["step"])
    shown = epochs[::-1][:: max(1, each_th)][::-1]  # the last one always
    names = ("epoch", "step", "time", *EPOCH_FIELDS)
    return {"skipped": skipped, **{name: _shortened([epoch[name] for epoch in shown]) for name in names}}


def read_epochs(path: Path) -> tuple[list[dict[str, Any]], int]:
    """(the epochs of a metrics.jsonl, the number of lines that are none). A value that is no finite number is None."""
    found: list[dict[str, Any]] = []
    skipped = 0
    for line in _lines(path):
        try:
            saved = strict_json.loads(line)
        except ValueError:
            saved = None
        epoch = saved.get("epoch") if isinstance(saved, dict) else None
        if isinstance(epoch, bool) or not isinstance(epoch, int) or not 0 < epoch < 2**40:
            skipped += 1
            continue
        found.append({"epoch": epoch, **{name: finite(saved.get(name)) for name in EPOCH_FIELDS}})
    return found, skipped


def _lines(path: Path) -> Iterator[str]:
    """The lines of a file, or, of a long one, some at equal distances."""
    with regular.opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        lines = [] if size > MOST_BYTES else list(islice(iter(lambda: file.readline(MOST_LINE), b""), MOST_LINES + 1))
    whole = size <= MOST_BYTES and len(lines) <= MOST_LINES
    for line in lines if whole else _sampled(path, size):
        yield line.decode(errors="replace")


def _sampled(path: Path, size: int) -> Iterator[bytes]:
    """SAMPLES whole lines at equal distances, and the last one; fewer where the lines are very long."""
    read = 0
    with regular.opened(path) as file:
        for i in range(SAMPLES):
            file.seek(i * size // SAMPLES)
            if i:
                read += len(file.readline(MOST_LINE))  # the rest of the line that the place lies in
            if line := file.readline(MOST_LINE):
                yield line
            read += len(line)
            if read > MOST_SAMPLED:
                break
    yield from (line.encode() for line in _last_lines(path)[-1:])


def _last_lines(path: Path) -> list[str]:
    """The whole lines in the last TAIL bytes of a file."""
    with regular.opened(path) as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - TAIL))
        text = file.read(TAIL)
    lines = text[: text.rfind(b"\n") + 1].split(b"\n")[1 if size > TAIL else 0 : -1]
    return [line.decode(errors="replace") for line in lines]


def _joined(points: Sequence[Point]) -> Point:
    first, *others = points
    for each in others:
        first = first.and_(each)
    return first


def _per_layer(rows: Sequence[tuple[float | None, ...]]) -> list[list[float | None]]:
    """A column for each layer from a row for each point; None where a row is too short."""
    layers = max(map(len, rows), default=0)
    return [[row[i] if i < len(row) else None for row in rows] for i in range(layers)]


def _time_at(steps: dict[str, Any], step: int) -> float | None:
    """The time at the end of this step, by the first point that is not before it."""
    at = bisect_left(steps["step"], step)
    seconds: list[float] = steps["seconds"]
    return seconds[min(at, len(seconds) - 1)]


def finite(value: object) -> float | None:
    """A finite number, or None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
        return None
    return float(value)


def _shortened(column: list[Any]) -> list[Any]:
    """Six significant digits are more than a screen shows."""
    if column and isinstance(column[0], list):
        return [_shortened(each) for each in column]
    return [float(f"{each:.6g}") if isinstance(each, float) else each for each in column]
