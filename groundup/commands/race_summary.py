"""The summary of a race on the terminal, from its results document."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from shutil import which
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from groundup.commands.studio import INSTALL, missing
from shared.contract import short_title
from shared.machine.environment import busy, describe, emulation, slowed
from shared.numbers import digits, plural, three_digits
from shared.terminal import TextConsole, Whole

WORTH_SAYING = 1.0
"""Seconds of warm-up above which the summary tells them."""


def show(document: Mapping[str, Any], seconds: float, out: Path) -> None:
    """Print the table of the stages and what follows it. seconds: of the whole race; out: the folder of its files."""
    settings = document["settings"]
    table = Table(title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    epochs = plural(settings["epochs"], "epoch")
    table.title = (
        f"{settings['model'] or '-'.join(map(str, document['network']))} on {_images(settings)}, {epochs}, "
        f"batches of {settings['batch_size']}, {settings['dtype']}, seed {settings['seed']}"
    )
    table.add_column("stage")
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
    console = TextConsole()
    console.print(Whole(table), crop=False)
    console.print(
        f"Compared with {document['stages'][0]['title']}. speed: of training, 1x is that stage's. "
        "differ: test images that get another class. worst: the parameter furthest off, "
        "in units of what rounding may do; 1 is the limit.",
        highlight=False,
    )
    for stage in document["stages"]:
        if stage["warm_up_seconds"] > WORTH_SAYING:
            before = f"{stage['title']} got ready for {stage['warm_up_seconds']:.0f} s before it trained"
            console.print(f"{before} (compiling, above all): not in these times", highlight=False, soft_wrap=True)
    raced = any(stage["emulated"] for stage in document["stages"])
    if raced and (note := emulation(document["environment"])):
        console.print(f"emulated: {note}", highlight=False, soft_wrap=True)
    for reason in document["unavailable"].values():
        console.print(f"not raced: {reason}", markup=False, highlight=False, soft_wrap=True)
    if document["agree"] and len(document["stages"]) > 1:
        console.print(
            "The stages agree: the same prediction for every test image."
            if _same_predictions(document)
            else "The stages agree within the tolerance; predictions differ only by rounding.",
            highlight=False,
        )
    for warning in (busy(document["environment"]), slowed(document["environment"])):
        if warning:
            console.print(f"warning: {warning}", highlight=False, soft_wrap=True)
    if document["ladders"] and document["environment"].get("ladder_threads"):
        remark = "Because the machine was not idle, the products of ladder_share were measured on one thread."
        console.print(remark, highlight=False, soft_wrap=True)
    charts = ", ".join(name for name in document["charts"] if name.endswith(".png"))
    console.print(
        f"Charts: {charts} (and .svg) in {out}; all numbers: {out / 'results.json'}", highlight=False, soft_wrap=True
    )
    console.print(f"{describe(document['environment'])}; {seconds:.0f} s in all", highlight=False, soft_wrap=True)
    console.print(invitation(), markup=False, highlight=False, soft_wrap=True)


def invitation() -> str:
    """The sentence that leads to the studio, with the command as it can be typed here."""
    program = "groundup" if which("groundup") else sys.argv[0]
    if missing():
        return f"To see all this in a browser: {INSTALL}; then {program} studio"
    return f"To see all this in a browser: {program} studio"


def _images(settings: Mapping[str, Any]) -> str:
    """The data set, and how many of its images were used where that is not all."""
    if settings["limit"] is None:
        return str(settings["dataset"])
    return f"the first {settings['limit']:,} images of {settings['dataset']}"


def _same_predictions(document: Mapping[str, Any]) -> bool:
    return all(stage["other_predictions"] == 0 for stage in document["stages"])


def disagreements(document: Mapping[str, Any]) -> str:
    """For each stage but the reference: the number of other predictions and the parameter entry that differs most."""
    lines = [f"The stages disagree (reference: {document['reference']}):"]
    for stage in document["stages"]:
        if stage["stage"] != document["reference"]:
            others = stage["other_predictions"]
            images = f"{plural(others, 'test image')} predicted otherwise"
            lines.append(f"  {stage['title']}: {images}; {stage['worst']['text']}")
    lines.append("  Run `groundup check` to find the first operation that differs.")
    return "\n".join(lines)
