"""The rows that emulator_speed measures, and their tables for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numba
from rich.box import SIMPLE_HEAD
from rich.table import Table

from shared.bench.measuring.timing import Measurement
from shared.machine.environment import busy, describe
from shared.numbers import duration, quantity, three_digits
from shared.terminal import TextConsole, Whole

LABEL = "CPU times of an emulator; they say nothing about a GPU"


@dataclass(frozen=True)
class Sizes:
    """How much is measured.

    simulated: side of the square matrices that the simulator multiplies, in 16 x 16 tiles; small, because it is slow
    product, tile: side of the large product and of its tiles
    repeats: samples of each product; processes: how many new processes tell how long a kernel takes to be ready
    """

    simulated: int = 32
    product: int = 512
    tile: int = 32
    repeats: int = 15
    processes: int = 5


QUICK = Sizes(simulated=16, product=64, repeats=3, processes=1)


@dataclass(frozen=True)
class Row:
    """One thing that was timed.

    kind: simulator, product, launch or ready; name: who and how, for people
    measurement: seconds; None where `skipped` says why not
    multiply_adds: of one call; 0 where none are counted
    threads: how many it may use; bounds: whether indices are checked
    ratio: how many times as fast as the row called `reference`
    target: what was promised: a ratio, multiply-adds per second, or a time
    """

    kind: str
    name: str
    measurement: Measurement | None
    multiply_adds: int = 0
    threads: int = 1
    bounds: bool = True
    reference: str = ""
    ratio: float | None = None
    target: str = ""
    skipped: str = ""

    @property
    def rate(self) -> float | None:
        """Multiply-adds per second."""
        return self.multiply_adds / self.measurement.median if self.measurement and self.multiply_adds else None

    def as_dict(self) -> dict[str, Any]:
        """The row as values for the results document; times in seconds."""
        return {**asdict(self), "multiply_adds_per_second": self.rate}


def tables(rows: Sequence[Row], sizes: Sizes) -> Iterator[tuple[str, Table]]:
    """(title, table) for each kind of row."""
    side, tile = sizes.product, sizes.tile
    titles = {
        "simulator": f"Tiled product, {sizes.simulated}³ multiply-adds, 16 x 16 threads in a block",
        "product": f"Tiled product, {side}³ multiply-adds, {tile} x {tile} threads in a block",
        "launch": "A launch: one block of 32 threads, three arrays",
        "ready": "A new process, after the imports: until a tiled product has run",
    }
    for kind, title in titles.items():
        table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=True)
        table.add_column("what", no_wrap=True)
        for heading in ("median", "spread", "a second", "ratio", "target"):
            table.add_column(heading, justify="right", no_wrap=True)
        for row in (row for row in rows if row.kind == kind):
            timed = row.measurement
            table.add_row(
                row.name,
                duration(timed.median) if timed else "skipped",
                f"{timed.spread:.0%}" if timed else "",
                rate_text(row.rate),
                f"{three_digits(row.ratio)} x" if row.ratio else "",
                row.target,
            )
        yield title, table


def rate_text(rate: float | None) -> str:
    """Multiply-adds per second with three digits: 25,400, 1.23 M, 5.91 G."""
    if rate is None:
        return ""
    return quantity(rate, "") if rate >= 999_500 else three_digits(rate)


def show(rows: Sequence[Row], sizes: Sizes, facts: dict[str, Any]) -> None:
    """The tables, and what to know when reading them."""
    console = TextConsole()
    for title, table in tables(rows, sizes):
        console.print(title, style="bold", highlight=False)
        console.print(Whole(table), crop=False)
        console.print()
    notes = [
        f"{LABEL}.",
        "spread: from the first quartile to the third, as a share of the median; a second: multiply-adds",
        "ratio: how many times as fast as Numba's simulator, or as one thread",
    ]
    notes += [f"skipped: {row.name}: {row.skipped}" for row in rows if row.skipped]
    notes += [f"warning: {warning}"] if (warning := busy(facts)) else []
    notes += [f"{describe(facts)} · Numba {numba.__version__}"]
    for note in notes:
        console.print(note, markup=False, highlight=False, soft_wrap=True)
