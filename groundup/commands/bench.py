"""`groundup bench`: measure everything in several passes; an interrupted run keeps the results until then."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from groundup.bench_plan import plan_for
from groundup.commands.bench_compare import bench_compare_command
from groundup.commands.bench_ranks import bench_ranks
from groundup.compiling import precompile
from shared.bench.on_gpu import gpu_record
from shared.bench.on_gpu.gpu_record import recorded
from shared.bench.records.document import Results, as_document
from shared.bench.records.tables import tables
from shared.bench.records.trust import doubts
from shared.bench.running.plan import PARTS, PASSES, QUICK_PASSES_ON_GPU
from shared.bench.running.progress import Bar, Guessing
from shared.bench.running.session import Session
from shared.machine.environment import busy, describe, emulation
from shared.machine.results import as_json, results_folder, write_json
from shared.numbers import plural
from shared.terminal import TextConsole, Whole, attempt, say

app = typer.Typer(invoke_without_command=True, rich_markup_mode=None, no_args_is_help=False)


@app.callback(invoke_without_command=True)
def bench(
    context: typer.Context,
    stages: Annotated[
        str | None,
        typer.Option(
            help="Which stages, like 1,2. Default: all that run here; an emulated stage takes part only in the "
            "training curves, unless it is named here."
        ),
    ] = None,
    only: Annotated[
        str | None, typer.Option(help=f"Some of {', '.join(PARTS)}, with commas between. Default: all of them.")
    ] = None,
    threads: Annotated[
        str | None,
        typer.Option(
            help="How many threads every library and stage may use: 1, 2, … or all. Default: all, or 1 with --quick."
        ),
    ] = None,
    sizes: Annotated[
        str | None, typer.Option(help="Matrix sizes of the ladders, like 128,2048. Default: each stage's own.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="Measure a known network in place of dense layers: lenet5, fashion_cnn or residual_cnn."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer sizes and rounds: under two minutes.")] = False,
    passes: Annotated[
        int | None,
        typer.Option(
            help="How many processes measure everything, one after the other; a ratio's noise is found from their "
            f"differences. Default: {PASSES}, or {QUICK_PASSES_ON_GPU} with --quick on a GPU."
        ),
    ] = None,
    predict: Annotated[
        bool, typer.Option("--predict", help="Ask for a guess before each measurement; show it beside the result.")
    ] = False,
    emulated: Annotated[
        bool, typer.Option("--emulated", help="Also draw the emulator's times, marked as emulated.")
    ] = False,
    ranks: Annotated[
        bool,
        typer.Option("--ranks", help="Measure only how stage 3's training scales over ranks; needs the extra mpi."),
    ] = False,
    data_dir: Annotated[Path | None, typer.Option(help="Folder with MNIST's IDX files, for training on it.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the results and charts.")] = Path("runs/bench"),
    as_json_: Annotated[bool, typer.Option("--json", help="Print the results as JSON instead of tables.")] = False,
) -> None:
    """Time every part beside NumPy, PyTorch and cuBLAS.

    The parts are ladders, operations, training steps, inference and training.

    PyTorch is measured if it is installed, and the full MNIST is used if it is found (--data-dir or GROUNDUP_DATA).
    Numbers that are compared were measured in turns, in several passes, each in a process of its own. After Ctrl-C the
    results so far are kept in results.json, marked "complete": false, and the exit code is 2. Run no other program
    on the machine at the same time.

    \b
    Examples:
      groundup bench --quick                       under two minutes; the whole takes under fifteen
      groundup bench --threads 1 --out runs/bench-1-thread
      groundup bench --stages 2,3 --only ladders,steps
      groundup bench --stages 3 --only ladders --sizes 128,2048
      groundup bench --model lenet5 --threads 1    its convolutions, steps, inference, training, memory
      groundup bench --quick --predict             guess first
      groundup bench --ranks                       several processes, and a model of up to 1,024
      groundup bench compare OLD.json NEW.json     two results beside each other
    """
    if context.invoked_subcommand is not None:
        return
    if ranks:
        others: dict[str, object] = {"--stages": stages, "--only": only, "--threads": threads, "--sizes": sizes}
        others |= {
            "--model": model,
            "--passes": passes,
            "--predict": predict,
            "--emulated": emulated,
            "--data-dir": data_dir,
        }
        if given := [name for name, value in others.items() if value]:
            raise ValueError(f"bench --ranks takes --quick, --out and --json alone; leave out {', '.join(given)}")
        bench_ranks(out, quick, as_json_)
        return
    plan, unavailable = plan_for(stages, only, threads, sizes, quick, passes, data_dir, model)
    results_folder(out)
    path = out / "results.json"

    if kernels := precompile.kernels_of(plan):
        say(precompile.prepare(kernels).line(), err=True)

    def keep(results: Results) -> None:
        write_json(path, as_document(results))

    with Guessing(plan) if predict else Bar(plan) as bar:
        session = Session(plan, keep, bar, _command(), unavailable=unavailable)
        if warning := busy(session.environment):
            bar.console.print(f"warning: {warning}", soft_wrap=True)
        results = session.run(predict=predict)
    if not results.complete:
        say(f"interrupted: the {len(results.rows)} rows that were measured so far are kept", err=True)
    from shared.charts import book  # here, as groundup/cli.py says
    from shared.charts.report import page  # here, as groundup/cli.py says

    charts = book.save_all(book.draw(results, emulated=emulated), out)
    report = attempt("report.html was not written", lambda: page.write(results, charts, out / "report.html", saved=out))
    if as_json_:
        say(as_json(as_document(results)), nl=False)
    else:
        _show(results)
        files = ", ".join([path.name, *([report.name] if report else [])])
        say(f"Written to {out}: {files} and {plural(len(charts), 'chart')} (PNG and SVG)")
    if not results.complete:
        raise typer.Exit(2)


@app.command()
def compare(
    old: Annotated[Path, typer.Argument(help="The results.json of the earlier run.")],
    new: Annotated[Path, typer.Argument(help="The results.json of the later one.")],
    all_: Annotated[bool, typer.Option("--all", help="Show what has not changed, too.")] = False,
    as_json_: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Compare two results files.

    It shows which rows became faster or slower, and which differences are only noise.

    \b
    Example:
      groundup bench compare docs/benchmarks/bench-2-threads/results.json runs/bench/results.json
    """
    bench_compare_command(old, new, all_, as_json_)


def _command() -> str:
    """The command line of this run, with quotes where a shell needs them."""
    return shlex.join(["groundup", *sys.argv[1:]])


def _show(results: Results) -> None:
    console = TextConsole()

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    for title, table in tables(results.rows):
        console.print(title, style="bold", highlight=False)
        console.print(Whole(table), crop=False)
        console.print()
    facts = results.environment
    reference = gpu_record.reference()
    if reference is not None and emulation(facts):
        console.print(Whole(recorded(results.rows, reference)), crop=False)
        say(f"there: {reference.title}; {reference.page} has the rest\n")
    say("±: how far another run on this machine may find the ratio; none after a single pass")
    for doubt in doubts(results):
        say(f"warning: {doubt}")
    if any(row.emulated for row in results.rows):
        say(f"emulated: {emulation(facts)}; they are compared with nothing, and the charts leave them out")
    for row in results.rows:
        if row.skipped:
            size = f", size {row.shape[0]}" if row.kind == "ladder" else ""
            say(f"skipped: {row.contender}, {row.name}, {row.dtype}{size}: {row.skipped}")
    for reason in results.unavailable.values():
        say(f"not measured: {reason}")
    if facts:
        say(f"{describe(facts)}; {plural(facts['threads'], 'thread')}")
