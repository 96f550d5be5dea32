"""`groundup race`: the main job, from the data to the summary on the screen."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from groundup import race as racing
from groundup import race_ladders, race_results
from groundup.commands.race_summary import disagreements, show
from groundup.commands.train_options import OF_COLOUR, OF_DATASET, OF_RESIZE
from groundup.race_bar import KERNELS, RaceBar
from groundup.stages import stages_for
from shared.architectures import NAMED
from shared.bench.measuring.rows import BenchRow
from shared.contract import Stage, is_emulated
from shared.data.datasets import Dataset, check_apart, limited, load_dataset
from shared.machine.environment import busy, environment
from shared.machine.results import as_json, results_folder, write_json
from shared.terminal import attempt, say

LADDER_SIZE = 128
"""Rows and columns of the product that the ladder chart compares: large enough for BLAS, bearable for three loops."""

DEFAULTS = racing.Settings()


class Unfinished(Exception):
    """Ctrl-C after the results were written."""


def _default(name: str) -> str:
    """A default as the help says it: that of a stack of dense layers, and that of a model."""
    return f"{getattr(DEFAULTS, name)}; {racing.OF_MODEL[name]} with --model"


def race(
    stages: Annotated[str | None, typer.Option(help="Which stages, like 1,2. Default: all that run here.")] = None,
    dataset: Annotated[str, typer.Option(help=OF_DATASET)] = DEFAULTS.dataset,
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the IDX files of a full data set.")] = None,
    download: Annotated[bool, typer.Option("--download", help="Download a full data set if it is missing.")] = False,
    colour: Annotated[bool, typer.Option("--colour", help=OF_COLOUR)] = False,
    resize: Annotated[str | None, typer.Option(help=OF_RESIZE, show_default="as they are")] = None,
    model: Annotated[
        str | None, typer.Option(help=f"A known network in place of a hidden layer: {', '.join(NAMED)}.")
    ] = None,
    hidden: Annotated[
        int | None, typer.Option(help="Neurons in the hidden layer.", show_default=str(DEFAULTS.hidden))
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(help="Passes over the training images.", show_default=_default("epochs"))
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(help="Images per training step.", show_default=_default("batch_size"))
    ] = None,
    learning_rate: Annotated[
        float | None,
        typer.Option(
            help="Learning rate at the start; the schedule lowers it.", show_default=_default("learning_rate")
        ),
    ] = None,
    momentum: Annotated[float, typer.Option(help="Momentum of stochastic gradient descent.")] = DEFAULTS.momentum,
    schedule: Annotated[str, typer.Option(help="constant, step, exponential or cosine.")] = DEFAULTS.schedule,
    seed: Annotated[
        int, typer.Option(help="Decides the first weights and the order of batches, the same on all stages.")
    ] = DEFAULTS.seed,
    dtype: Annotated[
        str,
        typer.Option(
            help="float64 or float32. Stage 1 always computes in float64, so only with float64 do all "
            "stages agree to many digits and not just to float32's seven."
        ),
    ] = DEFAULTS.dtype,
    limit: Annotated[
        int | None,
        typer.Option(
            help="Use at most this many training and test images, for a quick run.",
            show_default=f"all; {racing.OF_MODEL['limit']} with --model",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for charts and results.")] = Path("runs/race"),
    as_json_: Annotated[bool, typer.Option("--json", help="Print the results as JSON instead of the table.")] = False,
) -> None:
    """Train all stages on the same images, and compare them.

    It checks that the stages agree, times them, and draws the charts.

    Exit code: 0 when the stages agree, 1 when they do not, 2 for a mistake or Ctrl-C.

    \b
    Examples:
      groundup race                          the main job, under two minutes on two cores
      groundup race --limit 200 --epochs 1   a quick run, in seconds
      groundup race --model lenet5           a convolutional network, under four minutes on two cores
      groundup race --stages 2 --dataset mnist --data-dir data --hidden 128 --dtype float32
    """
    options: dict[str, Any] = {
        "model": model,
        "hidden": hidden,
        "epochs": epochs,
        "batch_size": batch_size,
        "limit": limit,
    }
    options |= {"learning_rate": learning_rate}
    settings = racing.settings_of(
        {name: value for name, value in options.items() if value is not None}
        | {"dataset": dataset, "momentum": momentum, "schedule": schedule, "seed": seed, "dtype": dtype}
    )
    chosen, unavailable = stages_for(stages)
    check_apart(dataset, data_dir, out)
    data = limited(load_dataset(dataset, data_dir, download, colour, resize), settings.limit)
    settings = replace(settings, dataset=data.name)
    settings.layers(data)  # which says what does not fit before the first stage
    results_folder(out)
    begin = time.perf_counter()
    try:
        document = _run(chosen, unavailable, data, settings, out)
    except KeyboardInterrupt:
        say("interrupted: the race was not finished and nothing was written; start it again to race", err=True)
        raise typer.Exit(2) from None
    except Unfinished:
        say(f"interrupted: {out / 'results.json'} has what the stages did, without all charts", err=True)
        raise typer.Exit(2) from None
    if as_json_:
        say(as_json(document), nl=False)
    else:
        show(document, time.perf_counter() - begin, out)
    if not document["agree"]:
        say(disagreements(document), err=True)
        raise typer.Exit(1)


def _run(
    stages: Sequence[Stage],
    unavailable: Mapping[str, str],
    data: Dataset,
    settings: racing.Settings,
    out: Path,
) -> dict[str, Any]:
    """Race and compare, write the results, then measure the ladders and draw. Returns the results document.

    What comes after the first writing costs only itself where it fails; an interruption raises Unfinished then.
    """
    import cuda_emulator as emulator  # here, as groundup/cli.py says

    facts = environment()
    if warning := busy(facts):
        say(f"warning: {warning}", err=True)
    kernels = 0 if settings.model else KERNELS
    with RaceBar(settings.epochs, -(-len(data.train) // settings.batch_size), kernels) as bar:
        before = emulator.register_progress(bar.compiling)
        try:
            laps = [racing.run_lap(stage, data, settings, bar.steps_of(stage)) for stage in stages]
        finally:
            emulator.register_progress(before)
        agreements = racing.agreements(laps, settings, bar.steps)
        document = race_results.results(settings, laps, agreements, unavailable, [], facts) | {"charts": []}
        write_json(out / "results.json", document)
        try:
            bar.say("charts" if settings.model else "matmul ladders, charts", "a few seconds")
            # Times of emulated kernels are not comparable, so their ladders are not measured. A model's time goes into
            # convolutions.
            compared = [stage for stage in stages if not is_emulated(stage.name) and not settings.model]
            rows = attempt("the matmul ladders were not measured", lambda: _ladders(compared, facts)) or []
            document |= {"ladders": [row.as_dict() for row in rows], "environment": dict(facts)}
            write_json(out / "results.json", document)
            drawn = attempt(
                "the charts were not drawn",
                lambda: race_results.draw(out, settings, laps, document["agree"], rows, facts),
            )
            document["charts"] = [path.name for path in drawn or []]
            write_json(out / "results.json", document)
        except KeyboardInterrupt:
            raise Unfinished from None
    return document


def _ladders(stages: Sequence[Stage], facts: dict[str, Any]) -> list[BenchRow]:
    """The rows of the ladders; facts: of the machine, which say so where another program computes beside this one."""
    if stages and busy(facts):
        facts["ladder_threads"] = 1
        return race_ladders.on_one_thread(stages, LADDER_SIZE)
    return race_ladders.measured(stages, LADDER_SIZE)
