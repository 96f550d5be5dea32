"""Threads, lanes, races and launches in words, for the terminal and the page, so that both use the same text."""

from __future__ import annotations

from pathlib import PurePath

from ..words.numbers import count, plural
from .profile import Party, Profile, Uninitialised

WARP = 32


def extent(shape: tuple[int, ...]) -> str:
    """A grid or block without trailing ones: "4 x 4" for (4, 4, 1)."""
    lengths = list(shape)
    while len(lengths) > 1 and lengths[-1] == 1:
        lengths.pop()
    return " x ".join(f"{each:,}" for each in lengths)


def element(array: str, index: tuple[int, ...]) -> str:
    """An element with its index, like "tile[0, 31]"."""
    return f"{array}[{', '.join(str(each) for each in index)}]" if index else array


def file_name(file: str) -> str:
    """A file's name without its folder, which is private when a page is shown to others."""
    return PurePath(file).name


def thread(number: int, block: tuple[int, int, int]) -> str:
    """ "thread 5", or "thread (5, 0)" in a block of several dimensions: x, y and z, if there is one."""
    return "thread " + _coordinates(number, block)


def block_name(number: int, profile: Profile) -> str:
    """ "block 3", or "block (3, 0)" in a grid of several dimensions."""
    return "block " + _coordinates(number, profile.grid)


def _coordinates(number: int, shape: tuple[int, int, int]) -> str:
    x, y, z = number % shape[0], number // shape[0] % shape[1], number // (shape[0] * shape[1])
    if shape[2] > 1:
        return f"({x}, {y}, {z})"
    return f"({x}, {y})" if shape[1] > 1 else f"{x}"


def lanes(numbers: tuple[int, ...]) -> str:
    """Lanes as ranges: "0-15", "0, 2, 4", "0-3 and 8-11"; a long list ends with the number of the others."""
    runs: list[list[int]] = []
    for each in numbers:
        if runs and each == runs[-1][1] + 1:
            runs[-1][1] = each
        else:
            runs.append([each, each])
    texts = [f"{first}" if first == last else f"{first}-{last}" for first, last in runs]
    if len(texts) > 6:
        shown = sum(last - first + 1 for first, last in runs[:5])
        return ", ".join(texts[:5]) + f" and {len(numbers) - shown} more"
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 2 else texts)


_DOES = {"load": "reads it", "store": "writes it", "atomic": "updates it atomically"}


def party(one: Party, profile: Profile) -> str:
    """A sentence for one side of a race: "thread 5 of block 0 reads it in line 12: tile[y, x]"."""
    who = f"{thread(one.thread, profile.block)} of {block_name(one.block, profile)}"
    return f"{who} {_DOES.get(one.site.kind, 'accesses it')} in line {one.site.line}: {one.site.text}"


def uninitialised_text(read: Uninitialised, profile: Profile) -> tuple[str, str]:
    """(title, sentence) for a read of shared or global memory before it is written."""
    who = f"{thread(read.thread, profile.block)} of {block_name(read.block, profile)}"
    title = f"Uninitialised read of {read.space} {element(read.array, read.index)}"
    writer = "any thread of the block wrote it" if read.space == "shared" else "a copy or a kernel wrote it"
    detail = (
        f"{who} reads it in line {read.site.line}, before {writer}: {read.site.text}. "
        f"Found: {plural(read.times, 'such read')}."
    )
    return title, detail


def traced_text(profile: Profile) -> str:
    """The traced blocks, and the number of all blocks."""
    if not profile.blocks:
        return f"none of {plural(profile.grid_blocks, 'block')}"
    if len(profile.blocks) == profile.grid_blocks:
        return "the only block" if profile.grid_blocks == 1 else f"all {count(profile.grid_blocks)} blocks"
    shown = [block_name(each, profile).removeprefix("block ") for each in profile.blocks[:8]]
    more = f" and {len(profile.blocks) - 8} more" if len(profile.blocks) > 8 else ""
    return f"{count(len(profile.blocks))} of {plural(profile.grid_blocks, 'block')}: {', '.join(shown)}{more}"


def caveats(profile: Profile) -> list[str]:
    """Sentences about the limits of the numbers."""
    said = []
    if profile.fault:
        said.append("The run ended early: the counts are those up to the error.")
    if profile.blocks and len(profile.blocks) < profile.grid_blocks:
        said.append(
            f"{count(len(profile.blocks))} of {count(profile.grid_blocks)} blocks were traced. The main figures are "
            f"the counts of these blocks times {count(profile.scale)}, which is exact if all blocks do the same. All "
            "other counts are those of the traced blocks."
        )
    said.append(
        "Requests are counted as they are in the source. A GPU's compiler merges some and moves others out of loops: "
        "compare patterns rather than counts. No cache is modelled."
    )
    return said


def launch(profile: Profile) -> str:
    """Grid and block: "grid 4 x 4 blocks (16), each of 32 x 8 threads (256)"."""
    size = profile.block[0] * profile.block[1] * profile.block[2]
    blocks = f"{extent(profile.grid)} {'block' if profile.grid_blocks == 1 else 'blocks'}"
    if profile.grid[1:] != (1, 1):
        blocks += f" ({count(profile.grid_blocks)})"
    threads = f"{extent(profile.block)} {'thread' if size == 1 else 'threads'}"
    return f"grid {blocks}, each of {threads}" + (f" ({count(size)})" if profile.block[1:] != (1, 1) else "")
