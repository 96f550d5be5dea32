"""`groundup bench`: the ladders and the training step, measured properly, with what was measured kept come what may."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress, TextColumn
from rich.table import Table

from shared import benchmark, charts
from shared.benchmark import BenchRow
from shared.charts_style import save, three_digits
from shared.contract import STAGE_TITLES, Stage
from shared.environment import busy, describe, environment
from shared.race import stages_for
from shared.results import as_json, results_folder, write_json

QUICK_SIZES = (32, 128)
"""Matrix sizes of --quick: one small, and the one that all stages are compared at."""

UNSTEADY = 0.25
"""A spread above this share of the median is worth a warning."""


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
        # auto_refresh would redraw from a thread of its own, in the middle of what is being timed.
        with Progress(
            TextColumn("{task.description}"),
            console=console,
            disable=not console.is_terminal,
            transient=True,
            auto_refresh=False,
        ) as progress:
            task = progress.add_task("measuring")
            progress.refresh()
            for row in _plan(chosen, quick):
                rows.append(row)
                last = f"{STAGE_TITLES[row.stage]}, {row.name}, {row.dtype}"
                progress.update(task, description=f"measuring: {len(rows)} done, last {last}", refresh=True)
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
    footer = describe(facts)
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
        ("step", "Training step: time as a multiple of its bare NumPy products"),
    ):
        if mine := [row for row in rows if row.kind == kind]:
            console.print(_table(title, mine))
            console.print()
    console.print("spread: from the first quartile to the third, as a share of the median", highlight=False)
    unsteady = sum(row.measurement is not None and row.measurement.spread > UNSTEADY for row in rows)
    if unsteady:
        text = f"warning: {unsteady} of {len(rows)} spread by more than {UNSTEADY:.0%}; do not trust those"
        console.print(text, highlight=False, soft_wrap=True)
    if warning := busy(facts):
        console.print(f"warning: {warning}", highlight=False, soft_wrap=True)
    for row in rows:
        if row.skipped:
            what = f"{STAGE_TITLES[row.stage]}, {row.name}, {row.dtype}, size {row.shape[0]}"
            console.print(f"skipped: {what}: {row.skipped}", markup=False, highlight=False, soft_wrap=True)
    for reason in unavailable.values():
        console.print(f"not measured: {reason}", markup=False, highlight=False, soft_wrap=True)
    console.print(describe(facts), highlight=False, soft_wrap=True)
    console.print("Written: " + ", ".join(str(path) for path in files), highlight=False, soft_wrap=True)


def _table(title: str, rows: Sequence[BenchRow]) -> Table:
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        collapse_padding=True,
    )
    for heading in ("stage", "what", "dtype"):
        table.add_column(heading, no_wrap=True)
    is_ladder = rows[0].kind == "ladder"
    for heading in (
        ("size", "median", "spread", "GFLOP/s", "ratio") if is_ladder else ("median", "spread", "GFLOP/s", "ratio")
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        size = [str(row.shape[0])] if is_ladder else []
        label = [STAGE_TITLES[row.stage].split(":")[0], row.name, row.dtype, *size]
        if row.measurement is None or row.gflops is None or row.ratio is None:
            table.add_row(*label, "skipped")
            continue
        m = row.measurement
        table.add_row(*label, _time(m.median), f"{m.spread:.0%}", three_digits(row.gflops), three_digits(row.ratio))
    return table


def _time(seconds: float) -> str:
    """Seconds with three digits and the unit that suits: 1.2 s, 34.5 ms, 6.78 µs."""
    for unit, scale in (("s", 1.0), ("ms", 1e3)):
        if seconds * scale >= 1:
            return f"{three_digits(seconds * scale)} {unit}"
    return f"{three_digits(seconds * 1e6)} µs"
