"""What was measured, as tables for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table

from shared.benchmark import BenchRow
from shared.charts_style import three_digits

Column = tuple[str, Callable[[BenchRow], str]]


def tables(rows: Sequence[BenchRow]) -> Iterator[tuple[str, Table]]:
    """(title, table) for each kind of row; steps have one for each network, which differ in everything."""
    kinds: tuple[tuple[str, str, list[Column]], ...] = (
        ("peak", "The peak of one core: multiply-adds in registers only", [_WHO, _DTYPE, *_TIME, _SPEED, _PEAK]),
        (
            "ladder",
            "Matmul ladders: time as a multiple of NumPy's a @ b in the same dtype",
            [_WHO, _NAME, _DTYPE, _SIZE, *_TIME, _SPEED, _PEAK, _RATIO],
        ),
        (
            "product",
            "Products: how many times as fast as NumPy's a @ b, and as PyTorch",
            [_NAME, _WHO, *_TIME, _SPEED, _PEAK, _faster("numpy", "NumPy"), _faster("pytorch", "PyTorch")],
        ),
    )
    for kind, title, columns in kinds:
        if mine := [row for row in rows if row.kind == kind]:
            dtypes = {row.dtype for row in mine}
            named = title if _DTYPE in columns or len(dtypes) > 1 else f"{title}; {dtypes.pop()}"
            yield named, _table(mine, columns)
    versus = [_faster("stage2_numpy", "stage 2"), _faster("pytorch", "PyTorch")]
    for case in dict.fromkeys((row.name, row.dtype) for row in rows if row.kind == "step"):
        title = f"Training step, {case[0]}, {case[1]}: time as a multiple of its bare\n"
        title += "NumPy products (ratio), and how many times as fast as stage 2 and PyTorch"
        mine = [row for row in rows if row.kind == "step" and (row.name, row.dtype) == case]
        yield title, _table(mine, [_WHO, *_TIME, _SPEED, _PEAK, _RATIO, *versus])
    if mine := [row for row in rows if row.kind == "epoch"]:
        title = f"One epoch, {mine[0].name}, {mine[0].dtype}:\nhow many times as fast as stage 2 and PyTorch"
        yield title, _table(mine, [_WHO, *_TIME, _ACCURACY, *versus])


def time_text(seconds: float) -> str:
    """Seconds with three digits and the unit that suits: 1.2 s, 34.5 ms, 6.78 µs."""
    for unit, scale in (("s", 1.0), ("ms", 1e3)):
        if seconds * scale >= 1:
            return f"{three_digits(seconds * scale)} {unit}"
    return f"{three_digits(seconds * 1e6)} µs"


def _table(rows: Sequence[BenchRow], columns: Sequence[Column]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=True)
    for heading, _ in columns:
        table.add_column(heading, justify="left" if heading in _LEFT else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(text(row) for _, text in columns))
    return table


def _faster(opponent: str, heading: str) -> Column:
    return heading, lambda row: three_digits(row.against[opponent]) if opponent in row.against else "-"


def _median(row: BenchRow) -> str:
    return time_text(row.measurement.median) if row.measurement else "skipped"


def _spread(row: BenchRow) -> str:
    return f"{row.measurement.spread:.0%}" if row.measurement else ""


def _number(value: float | None) -> str:
    return "" if value is None else three_digits(value)


def _percent(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0%}" if value >= 0.1 else f"{value:.1%}" if value >= 0.01 else f"{value:.2%}"


_WHO: Column = ("who", lambda row: row.contender)
_NAME: Column = ("what", lambda row: row.name)
_DTYPE: Column = ("dtype", lambda row: row.dtype)
_SIZE: Column = ("size", lambda row: str(row.shape[0]))
_TIME: list[Column] = [("median", _median), ("spread", _spread)]
_SPEED: Column = ("GFLOP/s", lambda row: _number(row.gflops))
_PEAK: Column = ("peak", lambda row: _percent(row.share_of_peak))
_RATIO: Column = ("ratio", lambda row: _number(row.ratio))
_ACCURACY: Column = ("accuracy", lambda row: "" if row.accuracy is None else f"{row.accuracy:.2%}")
_LEFT = {"who", "what", "dtype"}
