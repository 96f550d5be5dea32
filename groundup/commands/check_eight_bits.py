"""What `groundup check --int8` shows: a network in eight bits beside itself in floats, and what each step loses."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from groundup import eight_bits
from groundup.progress_lines import as_it_goes
from shared.machine.results import as_json
from shared.numbers import as_fast, duration, percent, share, size_of, three_digits
from shared.terminal import TextConsole, Whole, say


def check_eight_bits(run: Path, stage: str, calibrate: int | None, data_dir: Path | None, json: bool) -> None:
    """Check the network of a run and show what was found."""
    with as_it_goes("calibrating", json=json) as tell:
        document = eight_bits.check(run, stage, calibrate, data_dir, tell)
    if json:
        say(as_json(document), nl=False)
    else:
        show(document)


def show(document: Mapping[str, Any]) -> None:
    console = TextConsole()
    images = document["images"]
    console.print(f"{document['network']}\n", markup=False, highlight=False, soft_wrap=True)
    table = _table("numbers", ("right", "size", "1,000 images"))
    for name, own in document["numbers"].items():
        right = f"{own['right']:,} of {images:,} ({percent(own['right'] / images)})"
        table.add_row(name, right, size_of(own["bytes"]), duration(1000 * own["seconds"]))
    console.print(Whole(table), crop=False)
    floats, whole = document["numbers"].values()
    console.print(
        f"The same answer for {document['same_answers']:,} images ({share_of(document['same_answers'], images)}). "
        f"int8 has {share(whole['bytes'] / floats['bytes'])} of the size, and is "
        f"{as_fast(floats['seconds'] / whole['seconds'])} on {document['stage']}.\n",
        highlight=False,
        soft_wrap=True,
    )
    table = _table("step", ("from", "to", "reach of 127", "error"))
    for step in document["steps"]:
        reach = "" if step["reach"] is None else three_digits(step["reach"])
        numbers = three_digits(step["smallest"]), three_digits(step["largest"]), reach, share(step["error"])
        table.add_row(step["step"], *numbers)
    console.print(Whole(table), crop=False)
    console.print(
        f"Scales from {document['calibrated_on']:,} training images. "
        "error: of what the step gives, by all roundings so far.",
        highlight=False,
        soft_wrap=True,
    )


def share_of(part: int, whole: int) -> str:
    """'99.98 %'."""
    return f"{100 * part / whole:.2f} %"


def _table(name: str, numbers: tuple[str, ...]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column(name, no_wrap=True)
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    return table
