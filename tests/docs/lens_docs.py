"""The tables and figures of docs/lens.md, made from the kernels that they are about.

    python -m tests.docs.lens_docs          writes them into the page and into docs/figures anew

In the page a line `<!-- listing: NAME -->` stands before each table. test_lens_page.py compares.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    os.environ["GROUNDUP_CUDA"] = "emulator"

from cuda_emulator.inspection import (
    DEVICES,
    Profile,
    Wanted,
    access_map,
    annotate,
    bank_map,
    launch_of,
    profile,
    standalone,
)
from shared.numbers import plural
from tests.docs.emulator_docs import refresh

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "lens.md"
FIGURES = ROOT / "docs" / "figures"

SIZE = (256, 256, 256)
"""Of the ladder's product. One block of the upper rungs is a quarter of the result."""

RUNGS = {
    "naive": "neighbouring threads should read neighbouring numbers",
    "coalesced": "a block could fetch each number once and share it",
    "tiled_16": "a larger tile is fetched half as often",
    "tiled_32": "two reads of shared memory for each multiply-add: keep some in registers",
    "register_1d": "a thread with 8 x 8 numbers reads 16 for 64 multiply-adds",
    "register_2d": "four neighbours could be one load of 128 bits",
    "vectorised": "wide loads meet in the same banks: lay the tile out for them",
    "conflict_free": "the block waits for its loads before it multiplies",
    "warp_tiled": "nothing that a lens counts: it differs from pipelined in time only",
    "pipelined": "a thread with 8 x 16 numbers reads 24 for 128 multiply-adds",
    "wide_tile": "two blocks for the whole result, and a GPU has many more multiprocessors",
    "fitted_tile": "small tiles give every multiprocessor work, and read each number more often",
}
"""And where the next one improves: what the numbers of a rung say."""


@functools.cache
def transposed(kernel: str) -> Profile:
    """A kernel of examples/transpose.py, all blocks."""
    launch = launch_of(f"{ROOT / 'examples' / 'transpose.py'}:{kernel}", Wanted())
    blocks = launch.grid[0] * launch.grid[1] * launch.grid[2]
    return profile(launch.kernel, launch.grid, launch.block, *launch.arguments, blocks=blocks)


@functools.cache
def rung(name: str) -> Profile:
    """The first block of a rung of the matmul ladder."""
    launch = launch_of(name, Wanted(size=SIZE))
    return profile(launch.kernel, launch.grid, launch.block, *launch.arguments, blocks=[0])


def ladder_row(name: str) -> str:
    """A rung's line of the table. Its numbers are for 1,000 multiply-adds."""
    found = rung(name)
    thousands = SIZE[0] * SIZE[1] * SIZE[2] / found.scale / 1000
    sectors = sum(each.sectors for each in found.accesses if each.space == "global")
    shared = [each for each in found.accesses if each.space == "shared"]
    passes = sum(each.wavefronts for each in shared)
    ideal = sum(each.ideal_wavefronts for each in shared)
    conflicts = "none" if passes == ideal else f"{passes / ideal - 1:.0%} more passes"
    cells = (
        name,
        f"{sectors / thousands:,.1f}",
        f"{passes / thousands:,.1f}" if shared else "-",
        conflicts if shared else "-",
        f"{found.intensity:.2f}",
        RUNGS[name],
    )
    return f"| {' | '.join(cells)} |"


def ladder_table() -> str:
    """The ladder's story."""
    head = "| rung | sectors | shared passes | bank conflicts | flops per byte | what these numbers say |"
    return "\n".join([head, "|---|---:|---:|---|---:|---|", *map(ladder_row, RUNGS)])


def transpose_table() -> str:
    """The three transposes, access by access."""
    rows = []
    for kernel in ("naive", "tiled", "padded"):
        for each in sorted(transposed(kernel).accesses, key=lambda each: (each.site.line, each.kind != "load")):
            cost = (
                f"{each.sectors_per_request:.3g} sectors, {each.efficiency:.0%} used"
                if each.space == "global"
                else plural(each.wavefronts / each.requests, "pass", "passes")
            )
            rows.append(f"| {kernel} | {each.kind} `{each.site.text}` | {each.space} | {cost} |")
    return "\n".join(["| kernel | access | memory | a request costs |", "|---|---|---|---|", *rows])


def annotated(kernel: str) -> str:
    """Each line of the kernel on which there is something to say, and what."""
    found = transposed(kernel)
    file, first, lines = found.source[0]
    notes = annotate(found)
    out = []
    for number, line in enumerate(lines, first):
        out.append(line)
        said = notes.get((file, number))
        indent = line[: len(line) - len(line.lstrip())]
        out.extend(f"{indent}# {note.text}" for note in (said.notes if said is not None else ()))
    return "```python\n" + "\n".join(out) + "\n```"


def devices_table() -> str:
    """What the roofline is drawn from."""
    rows = [
        f"| {each.full_name} | {'.'.join(map(str, each.capability))} | {each.multiprocessors} | "
        f"{each.peak('float32') / 1e12:.1f} | {each.peak('float64') / 1e12:.2f} | {each.bandwidth / 1e9:,.0f} |"
        for each in DEVICES
    ]
    head = "| device | compute capability | multiprocessors | float32, TFLOP/s | float64, TFLOP/s | memory, GB/s |"
    return "\n".join([head, "|---|---|---:|---:|---:|---:|", *rows])


def listings() -> dict[str, Callable[[], str]]:
    """Name -> what makes the text that stands in the page."""
    return {
        "transpose": transpose_table,
        "annotated": lambda: annotated("naive"),
        "ladder": ladder_table,
        "devices": devices_table,
    }


def example(found: Profile, kind: Any, array: str) -> Any:
    """The request that an access keeps as its example."""
    request = found.access(kind, array).example
    assert request is not None
    return request


def figures() -> dict[str, Callable[[], str]]:
    """File name -> the picture."""
    return {
        "lens-rows.svg": lambda: access_map(
            example(transposed("naive"), "load", "source"), "naive: a warp reads 32 neighbours", "source"
        ),
        "lens-columns.svg": lambda: access_map(
            example(transposed("naive"), "store", "result"), "naive: a warp writes down a column", "result"
        ),
        "lens-banks-tiled.svg": lambda: bank_map(
            example(transposed("tiled"), "load", "tile"), "tiled: a column of a 32 x 32 tile", "tile"
        ),
        "lens-banks-padded.svg": lambda: bank_map(
            example(transposed("padded"), "load", "tile"), "padded: a column of a 32 x 33 tile", "tile"
        ),
    }


def drawn(file: str) -> str:
    """The text of the file: the picture on a ground of its own, for pages that are dark where the reader's system is
    light, or the other way round."""
    picture = standalone(figures()[file]())
    return picture.replace("<style>", "<style>svg.lens{background:var(--ground)}", 1) + "\n"


if __name__ == "__main__":
    refresh(PAGE, listings())
    for file in figures():
        (FIGURES / file).write_text(drawn(file), encoding="utf-8")
