"""`groundup race`: the main job, from the data to the summary on the screen."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from groundup import race as racing
from shared.bench.ladders import ladder_rows
from shared.bench.results import as_json, results_folder, write_json
from shared.contract import Stage, is_emulated, short_title
from shared.data.datasets import Dataset, load_dataset
from shared.machine.environment import busy, describe, emulation, environment
from shared.numbers import digits, plural, three_digits

LADDER_SIZE = 128
"""Rows and columns of the product that the ladder chart compares: large enough for BLAS, bearable for three loops."""

REDRAW_EVERY = 0.2
"""Seconds between two drawings of the progress bar."""

DEFAULTS = racing.Settings()


def race(
    stages: Annotated[str | None, typer.Option(help="Which stages, like 1,2. Default: all that are here.")] = None,
    dataset: Annotated[str, typer.Option(help="mnist-subset, mnist or fashion-mnist.")] = DEFAULTS.dataset,
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the IDX files of a full data set.")] = None,
    download: Annotated[bool, typer.Option("--download", help="Fetch a full data set that is not there.")] = False,
    hidden: Annotated[int, typer.Option(help="Neurons in the hidden layer.")] = DEFAULTS.hidden,
    epochs: Annotated[int, typer.Option(help="Passes over the training images.")] = DEFAULTS.epochs,
    batch_size: Annotated[int, typer.Option(help="Images per training step.")] = DEFAULTS.batch_size,
    learning_rate: Annotated[
        float, typer.Option(help="At the start; the schedule lowers it.")
    ] = DEFAULTS.learning_rate,
    momentum: Annotated[float, typer.Option(help="Of stochastic gradient descent.")] = DEFAULTS.momentum,
    schedule: Annotated[str, typer.Option(help="constant, step, exponential or cosine.")] = DEFAULTS.schedule,
    seed: Annotated[
        int, typer.Option(help="Decides first weights and batch order, alike on all stages.")
    ] = DEFAULTS.seed,
    dtype: Annotated[
        str,
        typer.Option(
            help="float64 or float32. float64 because stage 1 computes in it whatever it is told: only then do all "
            "stages agree to many digits and not just to float32's seven."
        ),
    ] = DEFAULTS.dtype,
    limit: Annotated[int | None, typer.Option(help="Use only so many training and test images: a quick look.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for charts and results.")] = Path("runs/race"),
    as_json_: Annotated[bool, typer.Option("--json", help="Print the results as JSON instead of the table.")] = False,
) -> None:
    """Train all stages on the same MNIST batches, check that they agree, time them, draw the charts.

    Exit code: 0 when the stages agree, 1 when they do not, 2 for a mistake or Ctrl-C.

    \b
    Examples:
      groundup race                          the main job, under two minutes on two cores
      groundup race --limit 200 --epochs 1   a look in seconds
      groundup race --stages 2 --dataset mnist --data-dir data --hidden 128 --dtype float32
    """
    settings = racing.Settings(
        dataset, hidden, epochs, batch_size, learning_rate, momentum, schedule, seed, dtype, limit
    )
    settings.check()
    chosen, unavailable = racing.stages_for(stages)
    data = racing.limited(load_dataset(dataset, data_dir, download), limit)
    results_folder(out)
    begin = time.perf_counter()
    try:
        document = _run(chosen, unavailable, data, settings, out)
    except KeyboardInterrupt:
        typer.echo("interrupted: the race was not finished and nothing was written; start it again to race", err=True)
        raise typer.Exit(2) from None
    if as_json_:
        typer.echo(as_json(document), nl=False)
    else:
        _show(document, time.perf_counter() - begin, out)
    if not document["agree"]:
        typer.echo(_report(document), err=True)
        raise typer.Exit(1)


def _run(
    stages: Sequence[Stage],
    unavailable: Mapping[str, str],
    data: Dataset,
    settings: racing.Settings,
    out: Path,
) -> dict[str, Any]:
    facts = environment()
    steps_per_epoch = -(-len(data.train) // settings.batch_size)
    steps = steps_per_epoch * settings.epochs
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description:<24}"),
        BarColumn(),
        TextColumn("{task.fields[numbers]}"),
        TimeRemainingColumn(),
    )
    # auto_refresh would redraw from a thread of its own, in the middle of what is being timed.
    with Progress(
        *columns, console=console, disable=not console.is_terminal, transient=True, auto_refresh=False
    ) as progress:
        laps = []
        drawn_at = 0.0
        for stage in stages:
            task = progress.add_task(stage.title, total=steps, numbers="")

            def advance(epoch: int, step: int, loss: float, task: Any = task) -> None:
                done = (epoch - 1) * steps_per_epoch + step
                progress.update(task, completed=done, numbers=f"epoch {epoch}/{settings.epochs} loss {loss:.3f}")
                nonlocal drawn_at
                if time.monotonic() - drawn_at > REDRAW_EVERY or done == steps:
                    drawn_at = time.monotonic()
                    progress.refresh()

            laps.append(racing.run_lap(stage, data, settings, advance))
        found = racing.agreements(laps, settings, steps)
        progress.add_task("matmul ladders, charts", total=None, numbers="a few seconds")
        progress.refresh()
        # One product, few rounds: enough for a chart. `groundup bench` measures the ladders properly. Speeds beside
        # which no GPU's may stand are not even taken.
        compared = [stage for stage in stages if not is_emulated(stage.name)]
        rows = list(ladder_rows(compared, sizes=[LADDER_SIZE], repeats=5, group_limit=2.0))
        document = racing.results(settings, laps, found, unavailable, rows, facts)
        drawn = racing.draw(out, settings, laps, document["agree"], rows, facts)
    document["charts"] = [path.name for path in drawn]
    write_json(out / "results.json", document)
    return document


def _show(document: Mapping[str, Any], seconds: float, out: Path) -> None:
    settings = document["settings"]
    table = Table(title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    epochs = plural(settings["epochs"], "epoch")
    table.title = (
        f"{'-'.join(map(str, document['network']))} on {settings['dataset']}, {epochs}, "
        f"batches of {settings['batch_size']}, {settings['dtype']}, seed {settings['seed']}"
    )
    table.add_column("stage", no_wrap=True)
    for heading in ("accuracy", "s/epoch", "samples/s", "speed", "differ", "worst"):
        table.add_column(heading, justify="right", no_wrap=True)
    for stage in document["stages"]:
        compared = stage["stage"] != document["reference"]
        table.add_row(
            short_title(stage["stage"], True) if stage["emulated"] else stage["title"],
            f"{stage['test_accuracy']:.2%}",
            three_digits(stage["seconds_per_epoch"]),
            f"{stage['samples_per_second']:,.0f}",
            f"{three_digits(stage['speed'])}x",
            str(stage["other_predictions"]) if compared else "-",
            digits(stage["worst"]["tolerances"], 1) if compared else "-",
        )
    console = Console()
    console.print(table)
    console.print(
        f"Compared with {document['stages'][0]['title']}. speed: of training, 1x is that stage's.\n"
        "differ: test images that get another class. worst: the parameter furthest off,\n"
        "in units of what rounding may do; 1 is the limit.",
        highlight=False,
    )
    if note := emulation(document["environment"]):
        console.print(f"emulated: {note}", highlight=False, soft_wrap=True)
    for reason in document["unavailable"].values():
        console.print(f"not raced: {reason}", markup=False, highlight=False, soft_wrap=True)
    if document["agree"] and len(document["stages"]) > 1:
        console.print(
            "The stages agree: the same prediction for every test image."
            if _same(document)
            else "The stages agree within the tolerance; predictions differ only by rounding.",
            highlight=False,
        )
    if warning := busy(document["environment"]):
        console.print(f"warning: {warning}", highlight=False, soft_wrap=True)
    charts = ", ".join(name for name in document["charts"] if name.endswith(".png"))
    console.print(
        f"Charts: {charts} (and .svg) in {out}; all numbers: {out / 'results.json'}", highlight=False, soft_wrap=True
    )
    console.print(f"{describe(document['environment'])}; {seconds:.0f} s in all", highlight=False, soft_wrap=True)


def _same(document: Mapping[str, Any]) -> bool:
    return all(stage["other_predictions"] == 0 for stage in document["stages"])


def _report(document: Mapping[str, Any]) -> str:
    """What disagrees: for each stage that is not the reference, the entry furthest off and the predictions."""
    lines = [f"The stages disagree (reference: {document['reference']}):"]
    for stage in document["stages"]:
        if stage["stage"] != document["reference"]:
            others = stage["other_predictions"]
            images = f"{plural(others, 'test image')} predicted otherwise"
            lines.append(f"  {stage['title']}: {images}; {stage['worst']['text']}")
    lines.append("  Run `groundup check` to find the first operation that differs.")
    return "\n".join(lines)
