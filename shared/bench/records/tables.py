"""What was measured, as tables for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from rich.box import SIMPLE_HEAD
from rich.table import Table

from shared.bench.measuring.rows import BenchRow
from shared.numbers import duration, noise_text, share, size_of, three_digits

Column = tuple[str, Callable[[BenchRow], str]]


def tables(rows: Sequence[BenchRow]) -> Iterator[tuple[str, Table]]:
    """(title, table) for each kind of row; steps have one for each network, which differ in everything."""
    yield from _roofs(rows)
    kinds: tuple[tuple[str, str, list[Column]], ...] = (
        (
            "ladder",
            "Matmul ladders: time as a multiple of NumPy's a @ b in the same dtype",
            [_WHO, _NAME, _DTYPE, _SIZE, _TIME, _SPEED, _PEAK, _RATIO, _NOISE],
        ),
        (
            "product",
            "Products: how many times as fast as NumPy's a @ b, and as PyTorch",
            [_NAME, _WHO, _TIME, _SPEED, _PEAK, *_faster("numpy", "NumPy"), *_faster("pytorch", "PyTorch")],
        ),
    )
    for kind, title, columns in kinds:
        if mine := [row for row in rows if row.kind == kind]:
            dtypes = {row.dtype for row in mine}
            named = title if _DTYPE in columns or len(dtypes) > 1 else f"{title}; {dtypes.pop()}"
            yield named, _table(mine, columns)
    if mine := [row for row in rows if row.kind == "integer"]:
        title = "Whole numbers of eight bits: how many times as fast as stage 3's float32 product"
        yield title, _table(mine, [_NAME, _WHO, _TIME, _OPERATIONS, _PEAK, _INVERSE, _NOISE])
    for name, part, dtype in dict.fromkeys((r.name, r.part, r.dtype) for r in rows if r.kind == "convolution"):
        title = f"Convolution {part}, {name}, {dtype}:\nhow many times as fast as stage 2's last rung and PyTorch"
        mine = [r for r in rows if r.kind == "convolution" and (r.name, r.part, r.dtype) == (name, part, dtype)]
        versus = [*_faster("stage2_numpy", "stage 2"), *_faster("pytorch", "PyTorch")]
        yield title, _table(mine, [_WHO, _TIME, _SPEED, _PEAK, *versus])
    yield from _grids(rows, "op", "Operations: time of one call", _operation, _time)
    versus = [*_faster("stage2_numpy", "stage 2"), *_faster("pytorch", "PyTorch")]
    for name, dtype in dict.fromkeys((row.name, row.dtype) for row in rows if row.kind == "step"):
        mine = [row for row in rows if row.kind == "step" and (row.name, row.dtype) == (name, dtype)]
        bare = "its bare\nNumPy products" if any("products" in row.reference for row in mine) else "stage 2's\nstep"
        title = f"Training step, {name}, {dtype}: time as a multiple of {bare} (ratio), "
        title += "and how many times as fast as stage 2 and PyTorch"
        yield title, _table(mine, [_WHO, _TIME, _PEAK, _RATIO, _NOISE, *versus])
    yield from _grids(rows, "part", "Where the time of a training step goes", lambda row: row.part, _time)
    yield from _grids(rows, "inference", "Inference: images a second", _batch, _throughput, by_name=False)
    for name, dtype in dict.fromkeys((row.name, row.dtype) for row in rows if row.kind == "epoch"):
        title = f"One epoch, {name}, {dtype}:\nhow many times as fast as stage 2 and PyTorch"
        mine = [row for row in rows if row.kind == "epoch" and (row.name, row.dtype) == (name, dtype)]
        yield title, _table(mine, [_WHO, _TIME, _ACCURACY, *versus])
    for name in dict.fromkeys(row.name for row in rows if row.kind == "target"):
        mine = [row for row in rows if row.kind == "target" and row.name == name]
        yield f"Seconds of training until {name}", _table(mine, [_WHO, _TIME, *versus])
    yield from _grids(rows, "memory", "Memory held at most, beyond what was held before", _case, _held, by_name=False)
    yield from _grids(rows, "phase", "Compiling, copying, computing", lambda row: row.part, _time)


def _roofs(rows: Sequence[BenchRow]) -> Iterator[tuple[str, Table]]:
    if mine := [row for row in rows if row.kind == "peak"]:
        yield "The peak of one core: multiply-adds in registers only", _table(mine, [_WHO, _DTYPE, _TIME, _SPEED])
    if mine := [row for row in rows if row.kind == "bandwidth"]:
        title = "Bandwidth: a = b + s c, by the bytes of its three arrays"
        yield title, _table(mine, [_WHO, _DTYPE, _THREADS, _BYTES, _TIME, _BANDWIDTH])


def _grids(
    rows: Sequence[BenchRow],
    kind: str,
    title: str,
    line: Callable[[BenchRow], str],
    value: Callable[[BenchRow], str],
    *,
    by_name: bool = True,
) -> Iterator[tuple[str, Table]]:
    """A line for each thing, a column for each contender, so that they stand beside each other; one table for each
    dtype and shape, or for each dtype alone."""
    mine = [row for row in rows if row.kind == kind]

    def group(row: BenchRow) -> str:
        suffix = "" if not by_name else f", {' by '.join(map(str, row.shape))}" if kind == "op" else f", {row.name}"
        return f"{title}{suffix}, {row.dtype}"

    for heading in dict.fromkeys(map(group, mine)):
        here = [row for row in mine if group(row) == heading]
        contenders = list(dict.fromkeys(row.contender for row in here))
        cells = {(line(row), row.contender): value(row) for row in here}
        table = empty_table([("", "left"), *((name, "right") for name in contenders)])
        for name in dict.fromkeys(map(line, here)):
            table.add_row(name, *(cells.get((name, contender), "-") for contender in contenders))
        yield heading, table


def _table(rows: Sequence[BenchRow], columns: Sequence[Column]) -> Table:
    table = empty_table([(heading, "left" if heading in _LEFT else "right") for heading, _ in columns])
    for row in rows:
        table.add_row(*(text(row) for _, text in columns))
    return table


def empty_table(columns: Sequence[tuple[str, Literal["left", "right"]]]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=True)
    for heading, justify in columns:
        table.add_column(heading, justify=justify, no_wrap=True)
    return table


def _faster(opponent: str, heading: str) -> list[Column]:
    def times(row: BenchRow) -> str:
        return three_digits(row.against[opponent]) if opponent in row.against else "-"

    return [(heading, times), ("±", lambda row: _noise(row.against_noise.get(opponent)))]


def _noise(noise: float | None) -> str:
    return "" if noise is None else noise_text(noise, gap="")


def _time(row: BenchRow) -> str:
    return duration(row.measurement.median) if row.measurement else "skipped"


def _operation(row: BenchRow) -> str:
    return f"{row.name} {row.part}"


def _batch(row: BenchRow) -> str:
    return f"batch {row.samples}"


def _case(row: BenchRow) -> str:
    return f"{row.name}, {row.part}" if row.part else row.name


def _throughput(row: BenchRow) -> str:
    return three_digits(row.samples_per_second) if row.samples_per_second else "skipped"


def _held(row: BenchRow) -> str:
    return "skipped" if row.memory is None else size_of(row.memory)


def _number(value: float | None) -> str:
    return "" if value is None else three_digits(value)


def _share(value: float | None) -> str:
    return "-" if value is None else share(value, gap="")


_WHO: Column = ("who", lambda row: row.contender)
_NAME: Column = ("what", lambda row: row.name)
_DTYPE: Column = ("dtype", lambda row: row.dtype)
_SIZE: Column = ("size", lambda row: str(row.shape[0]))
_THREADS: Column = ("threads", lambda row: str(row.threads))
_BYTES: Column = ("arrays", lambda row: size_of(row.shape[0]))
_TIME: Column = ("median", _time)
_SPEED: Column = ("GFLOP/s", lambda row: _number(row.gflops))
_OPERATIONS: Column = ("GOP/s", lambda row: _number(row.gflops))
_BANDWIDTH: Column = ("GB/s", lambda row: _number(row.gigabytes))
_PEAK: Column = ("peak", lambda row: _share(row.share_of_peak))
_RATIO: Column = ("ratio", lambda row: _number(row.ratio))
_INVERSE: Column = ("float32", lambda row: _number(1 / row.ratio) if row.ratio else "")
_NOISE: Column = ("±", lambda row: _noise(row.ratio_noise))
_ACCURACY: Column = ("accuracy", lambda row: "" if row.accuracy is None else f"{row.accuracy:.2%}")
_LEFT = {"who", "what", "dtype"}
