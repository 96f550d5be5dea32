"""`groundup profile`: where the time of a training step goes, operation by operation."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from groundup import profiling
from groundup.profiling import Settings
from shared.architectures import NAMED
from shared.machine.environment import describe
from shared.machine.results import as_json, results_folder
from shared.numbers import plural
from shared.profile.document import Results, as_document
from shared.profile.table import NARROW, sentences, table, title
from shared.terminal import TextConsole, Whole, say

WIDE = 180
"""Columns of a table that is written into a file or a pipe."""


def profile(
    stage: Annotated[
        str | None,
        typer.Argument(help="Which stage, like 3 or stage3_c, or several, like 2,3. Default: all that are here."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help=f"A known network in place of dense layers: {', '.join(NAMED)}.")
    ] = None,
    hidden: Annotated[
        str | None, typer.Option(help="Hidden layer sizes, like 128,64, or none.", show_default="128")
    ] = None,
    batch: Annotated[
        int | None, typer.Option(help="Images per training step.", show_default="64; of a model on stage 1 one")
    ] = None,
    dtype: Annotated[str, typer.Option(help="float32 or float64; stage 1 always computes in float64.")] = "float32",
    threads: Annotated[
        str, typer.Option(help="How many threads every library and stage may use: 1, 2, … or all.")
    ] = "all",
    repeat: Annotated[
        int | None,
        typer.Option(
            help="How many rounds; each has a plain step and a step whose operations are timed.",
            show_default="six seconds, at most 200",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the results, the trace and the charts.")] = Path("runs/profile"),
    as_json_: Annotated[bool, typer.Option("--json", help="Print the results as JSON instead of tables.")] = False,
) -> None:
    """Show where the time of a training step goes.

    Every operation is timed inside the real step, while it runs. A table for each stage: µs, share of the step,
    operations and bytes counted from the shapes, how near they come to what this machine can do, and what bounds them.
    In --out are profile.json, a chart for each stage and trace.json, which https://ui.perfetto.dev opens. Run no other
    program on the machine at the same time.

    \b
    Examples:
      groundup profile                             all stages, 784-128-10 in batches of 64
      groundup profile 3 --model lenet5            one stage, a convolutional network
      groundup profile 2,3 --model residual_cnn --threads 1
      groundup profile 3 --hidden 512,256 --batch 256 --dtype float64
    """
    settings = Settings(model, hidden, batch, dtype, threads, repeat)
    chosen, unavailable = profiling.choices(stage, settings)
    results_folder(out)
    try:
        results = profiling.run(chosen, unavailable, settings, shlex.join(["groundup", *sys.argv[1:]]))
    except KeyboardInterrupt:
        say("interrupted: nothing was written; start it again to profile", err=True)
        raise typer.Exit(2) from None
    paths = profiling.write(results, out)
    if as_json_:
        say(as_json(as_document(results)), nl=False)
    else:
        _show(results)
        charts = sum(path.suffix == ".svg" for path in paths)
        say(f"Written to {out}: profile.json, trace.json and {plural(charts, 'chart')} (PNG and SVG)")


def _show(results: Results) -> None:
    console = TextConsole() if sys.stdout.isatty() else TextConsole(width=WIDE)

    def tell(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    for each in results.profiles:
        console.print(title(each), style="bold", highlight=False, markup=False)
        console.print(Whole(table(each, console.width)), crop=False)
        for sentence in sentences(each):
            tell(sentence)
        tell("")
    if console.width < NARROW:
        tell(f"A terminal of {NARROW} columns shows shapes, operations and bytes, too; profile.json has everything.")
    for reason in results.unavailable.values():
        tell(f"not profiled: {reason}")
    facts = results.environment
    tell(f"{describe(facts)}; {plural(facts['threads'], 'thread')}")
