"""`groundup bench`: everything that is measured, measured properly, with what was measured kept come what may."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress, TextColumn

from shared import (
    bench_epochs,
    bench_ladders,
    bench_peak,
    bench_products,
    bench_steps,
    bench_threads,
    bench_torch,
    benchmark,
    charts,
    charts_bars,
)
from shared.bench_tables import tables
from shared.benchmark import BenchRow
from shared.charts_style import save
from shared.contract import Stage, is_emulated
from shared.datasets import DataError, Dataset, load_dataset
from shared.environment import busy, describe, emulation, environment
from shared.race import stages_for
from shared.results import as_json, results_folder, write_json

PARTS = ("ladders", "products", "steps", "epochs")
QUICK_SIZES = (32, 128)
"""Matrix sizes of --quick: one small, and the one that all stages are compared at."""

QUICK_PRODUCTS = bench_products.PRODUCTS[:4]
QUICK_CASES = (bench_steps.CASES[0], *bench_steps.CASES[2:])

LARGEST_SIZE = 8192
ASKED_FOR = 4.0
"""Seconds that one call may be expected to take at a size that was asked for."""

UNSTEADY = 0.25
"""A spread above this share of the median is worth a warning."""


@dataclass(frozen=True)
class Plan:
    """What to measure, found good before anything is. data and torch: None where they are not here or not wanted;
    sizes: of the ladders, None for each stage's own."""

    stages: Sequence[Stage]
    parts: Sequence[str]
    quick: bool
    sizes: Sequence[int] | None
    threads: int
    data: Dataset | None
    torch: Any | None


def bench(
    stages: Annotated[
        str | None, typer.Option(help="Which stages, like 1,2. Default: all that are here and not emulated.")
    ] = None,
    only: Annotated[
        str | None, typer.Option(help="Some parts of ladders,products,steps,epochs. Default: all of them.")
    ] = None,
    threads: Annotated[str, typer.Option(help="How many threads every library and stage may use: 1, 2, … or all.")] = (
        "all"
    ),
    sizes: Annotated[
        str | None, typer.Option(help="Matrix sizes of the ladders, like 128,2048. Default: each stage's own.")
    ] = None,
    quick: Annotated[bool, typer.Option(help="Fewer sizes and rounds: under 40 seconds.")] = False,
    data_dir: Annotated[Path | None, typer.Option(help="Folder with MNIST's IDX files, for the epochs.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the results and charts.")] = Path("runs/bench"),
    as_json_: Annotated[bool, typer.Option("--json", help="Print the results as JSON instead of tables.")] = False,
) -> None:
    """Time the matmul ladders, the network's products, training steps and epochs, against NumPy and PyTorch.

    PyTorch takes part where it is installed, epochs where the full MNIST is (--data-dir or GROUNDUP_DATA). All that
    is compared was measured in turns in the same run. Ctrl-C is safe: what was measured until then is kept in
    results.json, marked "complete": false, and the exit code is 2. The machine should have nothing else to do
    meanwhile.

    \b
    Examples:
      groundup bench --quick
      groundup bench --threads 1 --out runs/bench-1-thread
      groundup bench --stages 2,3 --only products,steps
      groundup bench --stages 3 --only ladders --sizes 128,2048
      groundup bench --json > bench.json
    """
    parts = _parts(only)
    wanted = _sizes(sizes)
    count = bench_threads.thread_count(threads)
    chosen, unavailable = stages_for(stages)
    if stages is None:  # what an emulator takes is measured for whoever asks for it, and never by the way
        reason = "its CUDA kernels are emulated here, which says nothing about a GPU; --stages 4 measures it anyway"
        unavailable |= {s.name: f"{s.name}: {reason}" for s in chosen if is_emulated(s.name)}
        chosen = [s for s in chosen if not is_emulated(s.name)]
    results_folder(out)
    if not bench_threads.are_set(count):
        flags = [*(["--quick"] if quick else []), *(["--json"] if as_json_ else [])]
        given = {
            "--stages": stages,
            "--only": only,
            "--sizes": sizes,
            "--data-dir": data_dir,
            "--out": out,
            "--threads": count,
        }
        options = [text for name, value in given.items() if value is not None for text in (name, str(value))]
        raise typer.Exit(bench_threads.run_again(["bench", *options, *flags], count))
    facts = environment() | {"threads": count}
    data, torch = None, None
    if "epochs" in parts:
        try:
            data = load_dataset("mnist", data_dir)
        except DataError as reason:
            if data_dir is not None or only is not None:
                raise
            what_is_missing = str(reason).partition(". ")[0]
            unavailable |= {"epochs": f"epochs (name MNIST's folder with --data-dir): {what_is_missing}"}
    if set(parts) & {"products", "steps", "epochs"}:
        torch, version_or_reason = bench_torch.load_torch(count)
        facts |= {"pytorch": version_or_reason if torch else None}
        if torch is None:
            unavailable |= {"pytorch": version_or_reason}
    rows, complete = _measure(Plan(chosen, parts, quick, wanted, count, data, torch), facts, unavailable, out)
    drawn = _draw(rows, facts, out)
    if as_json_:
        typer.echo(as_json(_document(rows, complete, facts, unavailable)), nl=False)
    else:
        _show(rows, unavailable, facts, [out / "results.json", *drawn])
    if not complete:
        raise typer.Exit(2)


def _parts(only: str | None) -> list[str]:
    if only is None:
        return list(PARTS)
    chosen = [name.strip() for name in only.split(",") if name.strip()]
    unknown = [name for name in chosen if name not in PARTS]
    if unknown or not chosen:
        raise ValueError(f"only: expected some of {', '.join(PARTS)} with commas between, got {only!r}")
    return [name for name in PARTS if name in chosen]


def _sizes(text: str | None) -> list[int] | None:
    if text is None:
        return None
    sizes = [int(part) if part.strip().isdecimal() else 0 for part in text.split(",")]
    if not all(1 <= size <= LARGEST_SIZE for size in sizes):
        raise ValueError(f"sizes: expected whole numbers from 1 to {LARGEST_SIZE} with commas between, got {text!r}")
    return sorted(set(sizes))


def _measure(
    plan: Plan, facts: Mapping[str, Any], unavailable: Mapping[str, str], out: Path
) -> tuple[list[BenchRow], bool]:
    """The rows and whether they are all; results.json is written either way."""
    rows: list[BenchRow] = []
    complete = False
    console = Console(stderr=True)
    with bench_threads.one_interrupt():
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
                for row in _rows(plan):
                    rows.append(row)
                    last = f"{row.kind}, {row.name}, {row.contender}, {row.dtype}"
                    progress.update(task, description=f"measuring: {len(rows)} done, last {last}", refresh=True)
            complete = True
        except KeyboardInterrupt:
            console.print(f"interrupted: the {len(rows)} rows measured until now are kept", highlight=False)
        finally:
            write_json(out / "results.json", _document(rows, complete, facts, unavailable))
    return rows, complete


def _document(
    rows: Sequence[BenchRow], complete: bool, facts: Mapping[str, Any], unavailable: Mapping[str, str]
) -> dict[str, Any]:
    return benchmark.document(rows, complete=complete, facts=facts) | {"unavailable": dict(unavailable)}


def _rows(plan: Plan) -> Iterator[BenchRow]:
    stages, quick = plan.stages, plan.quick
    both: dict[str, Any] = {"threads": plan.threads}
    rounds: dict[str, Any] = {"repeats": 3} if quick else {}
    if set(plan.parts) & {"ladders", "products", "steps"}:
        yield from bench_peak.peak_rows(stages)
    if "ladders" in plan.parts:
        own = (
            {"sizes": plan.sizes, "call_limit": ASKED_FOR} if plan.sizes else {"sizes": QUICK_SIZES if quick else None}
        )
        yield from bench_ladders.ladder_rows(stages, **both, **rounds, **own)
    both |= {"torch": plan.torch}
    if "products" in plan.parts:
        products = QUICK_PRODUCTS if quick else bench_products.PRODUCTS
        yield from bench_products.product_rows(stages, **both, **rounds, products=products)
    if "steps" in plan.parts:
        cases = QUICK_CASES if quick else bench_steps.CASES
        yield from bench_steps.step_rows(stages, **both, **rounds, cases=cases)
    if "epochs" in plan.parts and plan.data is not None:
        yield from bench_epochs.epoch_rows(stages, plan.data, **both, **({"rounds": 1} if quick else {}))


def _draw(rows: Sequence[BenchRow], facts: Mapping[str, Any], out: Path) -> list[Path]:
    """The charts for which enough was measured before an interrupt."""
    threads = facts["threads"]
    footer = f"{describe(facts)} · {threads} thread{'' if threads == 1 else 's'}"
    if facts.get("pytorch"):
        footer += f" · PyTorch {facts['pytorch']}"
    measured = benchmark.drawable(rows)
    ladders = [row for row in measured if row.kind == "ladder"]
    drawn = []
    if charts.common_size(ladders) is not None:
        drawn += save(charts.ladders(rows, footer), out / "ladders")
    if any(row.dtype == "float64" for row in ladders):
        drawn += save(charts.ladder_sizes(rows, footer), out / "ladder_sizes")
    if charts_bars.peak_ladder_size(rows) is not None:
        drawn += save(charts_bars.stage3_ladder(rows, footer), out / "stage3_ladder")
    if any(row.kind == "product" for row in measured):
        drawn += save(charts_bars.products(rows, footer), out / "products")
    if charts_bars.step_cases(rows):
        drawn += save(charts_bars.steps(rows, footer), out / "steps")
    return drawn


def _show(
    rows: Sequence[BenchRow], unavailable: Mapping[str, str], facts: Mapping[str, Any], files: Sequence[Path]
) -> None:
    console = Console()

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    for title, table in tables(rows):
        console.print(title, style="bold", highlight=False)
        console.print(table)
        console.print()
    say("spread: from the first quartile to the third, as a share of the median")
    if any(row.share_of_peak for row in rows):
        say("peak: the share of what the cores could do at most, one core's peak times the threads used")
    unsteady = sum(row.measurement is not None and row.measurement.spread > UNSTEADY for row in rows)
    if unsteady:
        say(f"warning: {unsteady} of {len(rows)} spread by more than {UNSTEADY:.0%}; do not trust those")
    if warning := busy(facts):
        say(f"warning: {warning}")
    if any(row.emulated for row in rows):
        say(f"emulated: {emulation(facts)}; they are compared with nothing, and the charts leave them out")
    for row in rows:
        if row.skipped:
            size = f", size {row.shape[0]}" if row.kind == "ladder" else ""
            say(f"skipped: {row.contender}, {row.name}, {row.dtype}{size}: {row.skipped}")
    for reason in unavailable.values():
        say(f"not measured: {reason}")
    threads = facts["threads"]
    say(f"{describe(facts)}; {threads} thread{'' if threads == 1 else 's'}")
    say("Written: " + ", ".join(str(path) for path in files))
