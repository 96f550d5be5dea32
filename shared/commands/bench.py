"""`groundup bench`: the ladders and the training step, measured properly, with what was measured kept come what may."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from shared import benchmark, charts
from shared.benchmark import BenchRow
from shared.charts_style import STAGE_LABELS, save
from shared.contract import Stage
from shared.environment import describe, environment
from shared.race import stages_for
from shared.results import as_json, results_folder, write_json

QUICK_SIZES = (32, 128)
"""Matrix sizes of --quick: one small, and the one that all stages are compared at."""


def bench(
    stages: Annotated[str | None, typer.Option(help="Which stages, like 1,2. Default: all that are here.")] = None,
    quick: Annotated[bool, typer.Option(help="Fewer sizes and rounds: under 40 seconds.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for the results and charts.")] = Path("runs/bench"),
    as_json_: Annotated[bool, typer.Option("--json", help="Print the results as JSON instead of tables.")] = False,
) -> None:
    """Time every rung of every matmul ladder and the training step, against NumPy's a @ b in the same run.

    Ctrl-C is safe: what was measured until then is kept in results.json, marked "complete": false, and the exit
    code is 2. The machine should have nothing else to do meanwhile.

    \b
    Examples:
      groundup bench --quick
      groundup bench --stages 2 --out runs/bench-numpy
      groundup bench --json > bench.json
    """
    chosen, unavailable = stages_for(stages)
    results_folder(out)
    facts = environment()
    rows: list[BenchRow] = []
    complete = False
    console = Console(stderr=True)
    try:
        with console.status("measuring", spinner="line") as status:
            for row in _plan(chosen, quick):
                rows.append(row)
                status.update(f"{len(rows)} measured; last: {STAGE_LABELS[row.stage]}, {row.name}, {row.dtype}")
        complete = True
    except KeyboardInterrupt:
        console.print(f"interrupted: the {len(rows)} rows measured until now are kept", highlight=False)
    finally:
        document = benchmark.document(rows, complete=complete, facts=facts) | {"unavailable": unavailable}
        write_json(out / "results.json", document)
    drawn = _draw(rows, facts, out)
    if as_json_:
        typer.echo(as_json(document), nl=False)
    else:
        _show(rows, unavailable, facts, [out / "results.json", *drawn])
    if not complete:
        raise typer.Exit(2)


def _plan(stages: Sequence[Stage], quick: bool) -> Iterator[BenchRow]:
    if quick:
        yield from benchmark.ladder_rows(stages, sizes=QUICK_SIZES, repeats=5, group_limit=3.0)
        yield from benchmark.step_rows(stages, repeats=7, group_limit=3.0)
    else:
        yield from benchmark.ladder_rows(stages)
        yield from benchmark.step_rows(stages)


def _draw(rows: Sequence[BenchRow], facts: Mapping[str, Any], out: Path) -> list[Path]:
    """The charts for which enough was measured before an interrupt."""
    footer = describe(dict(facts))
    measured = [row for row in rows if row.kind == "ladder" and row.measurement]
    drawn = []
    if charts.common_size(measured) is not None:
        drawn += save(charts.ladders(rows, footer), out / "ladders")
    if any(row.dtype == "float64" for row in measured):
        drawn += save(charts.ladder_sizes(rows, footer), out / "ladder_sizes")
    return drawn


def _show(
    rows: Sequence[BenchRow], unavailable: Mapping[str, str], facts: Mapping[str, Any], files: Sequence[Path]
) -> None:
    console = Console()
    for kind, title in (
        ("ladder", "Matmul ladders: time as a multiple of NumPy's a @ b in the same dtype"),
        ("step", "Training step: time as a multiple of its matrix products alone, by NumPy's a @ b"),
    ):
        if mine := [row for row in rows if row.kind == kind]:
            console.print(_table(title, mine))
    for name, reason in unavailable.items():
        console.print(f"not measured: {name}: {reason}", markup=False, highlight=False, soft_wrap=True)
    console.print(describe(dict(facts)), highlight=False, soft_wrap=True)
    console.print("Written: " + ", ".join(str(path) for path in files), highlight=False, soft_wrap=True)


def _table(title: str, rows: Sequence[BenchRow]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("stage", "what", "dtype"):
        table.add_column(heading)
    for heading in ("size", "median", "quartiles", "GFLOP/s", "ratio"):
        table.add_column(heading, justify="right")
    for row in rows:
        size = str(row.shape[0]) if row.kind == "ladder" else ""
        if row.measurement is None or row.gflops is None or row.ratio is None:
            table.add_row(STAGE_LABELS[row.stage], row.name, row.dtype, size, f"skipped: {row.skipped}")
            continue
        m = row.measurement
        quartiles = f"{_time(m.lower)} to {_time(m.upper)}"
        speed, ratio = f"{row.gflops:.3g}", f"{row.ratio:,.3g}" if row.ratio < 1000 else f"{row.ratio:,.0f}"
        table.add_row(STAGE_LABELS[row.stage], row.name, row.dtype, size, _time(m.median), quartiles, speed, ratio)
    return table


def _time(seconds: float) -> str:
    """Seconds with three digits and the unit that suits: 1.2 s, 34.5 ms, 6.78 µs."""
    for unit, scale in (("s", 1.0), ("ms", 1e3)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}" if seconds * scale < 1000 else f"{seconds * scale:.0f} {unit}"
    return f"{seconds * 1e6:.3g} µs"
