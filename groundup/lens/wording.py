"""How the views put numbers into words: the terminal and the page say the same thing in the same way.

The wording names what was counted, of what, and how far it can be trusted.
"""

from __future__ import annotations

from pathlib import PurePath

from groundup.lens.profile import Party, Profile, Race, Uninitialised

WARP = 32


def count(value: float) -> str:
    """A count with separators: 65,536; an average with what it takes to tell it from its neighbour: 4.5, 0.25."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def percent(share: float) -> str:
    """A share of 0 to 1 as "12.5 %", "100 %"; a share that is not quite all or nothing never reads as if it were."""
    if 0 < share < 0.001:
        return "below 0.1 %"
    if 0.999 < share < 1:
        return "above 99.9 %"
    return f"{100 * share:.3g} %"


def plural(value: float, one: str, many: str = "") -> str:
    """ "1 request", "2 requests"."""
    return f"{count(value)} {one if value == 1 else many or one + 's'}"


def bytes_text(value: float) -> str:
    """Bytes as people read them: "128 B", "64 KiB", "1.5 MiB" (1 KiB is 1,024 B)."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            break
        value /= 1024
    return f"{count(float(f'{value:.4g}'))} {unit}"


def metric(value: float, unit: str) -> str:
    """A quantity with a power of a thousand: "19.5 Tflop/s", "3.2 GB/s"."""
    prefixes = ("", "k", "M", "G", "T", "P")
    step = 0
    while value >= 999.5 and step < len(prefixes) - 1:
        value /= 1000
        step += 1
    return f"{value:.3g} {prefixes[step]}{unit}"


def duration(seconds: float) -> str:
    """ "12.5 us", "3.1 ms", "2 s"."""
    for limit, unit, factor in ((1e-6, "ns", 1e9), (1e-3, "us", 1e6), (1, "ms", 1e3)):
        if seconds < limit:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.3g} s"


def extent(shape: tuple[int, ...]) -> str:
    """A grid or a block without its trailing ones: (4, 4, 1) as "4 x 4"."""
    kept = list(shape)
    while len(kept) > 1 and kept[-1] == 1:
        kept.pop()
    return " x ".join(f"{each:,}" for each in kept)


def element(array: str, index: tuple[int, ...]) -> str:
    """ "tile[0, 31]"."""
    return f"{array}[{', '.join(str(each) for each in index)}]" if index else array


def file_name(file: str) -> str:
    """A file's name without its folder: a page may be shown to others, whom the folders do not concern."""
    return PurePath(file).name


def thread(number: int, block: tuple[int, int, int]) -> str:
    """ "thread 5", or in a block of several dimensions "thread (5, 0)": x, y and, where there is one, z."""
    return "thread " + _coordinates(number, block)


def block_name(number: int, profile: Profile) -> str:
    """ "block 3", or in a grid of several dimensions "block (3, 0)"."""
    return "block " + _coordinates(number, profile.grid)


def _coordinates(number: int, shape: tuple[int, int, int]) -> str:
    x, y, z = number % shape[0], number // shape[0] % shape[1], number // (shape[0] * shape[1])
    if shape[2] > 1:
        return f"({x}, {y}, {z})"
    return f"({x}, {y})" if shape[1] > 1 else f"{x}"


def lanes(numbers: tuple[int, ...]) -> str:
    """Lanes as ranges: "0-15", "0, 2, 4", "0-3 and 8-11"; a long list is cut with what it leaves out."""
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
    """Who did what where: "thread 5 of block 0 reads it in line 12: tile[y, x]"."""
    who = f"{thread(one.thread, profile.block)} of {block_name(one.block, profile)}"
    return f"{who} {_DOES.get(one.site.kind, 'touches it')} in line {one.site.line}: {one.site.text}"


def race_title(race: Race) -> str:
    """ "Race on shared tile[0, 5]: read after write"."""
    return f"Race on {race.space} {element(race.array, race.index)}: {race.kind}"


def race_advice(race: Race, block: tuple[int, int, int]) -> str:
    """What would order the two, and how many pairs like them were found."""
    found = f"{plural(race.times, 'pair')} of threads like this."
    if race.between_blocks:
        advice = (
            "The two are in different blocks, where no barrier reaches: use an atomic, give each block elements of its "
            "own, or launch twice."
        )
    elif race.first.thread // WARP == race.second.thread // WARP:
        advice = (
            "Nothing orders the two: a barrier (cuda.syncthreads(), or within this warp cuda.syncwarp()) belongs "
            "between them."
        )
    else:
        advice = "Nothing orders the two: a barrier (cuda.syncthreads()) belongs between them, or an atomic."
    return f"{advice} Found: {found}"


def uninitialised_text(found: Uninitialised, profile: Profile) -> tuple[str, str]:
    """Title and detail of a read of shared memory that holds nothing yet."""
    who = f"{thread(found.thread, profile.block)} of {block_name(found.block, profile)}"
    title = f"Uninitialised read of shared {element(found.array, found.index)}"
    detail = (
        f"{who} reads it in line {found.site.line}, before any thread of the block wrote it: {found.site.text}. "
        f"Found: {plural(found.times, 'such read')}."
    )
    return title, detail


def traced_text(profile: Profile) -> str:
    """Which blocks were traced of how many."""
    if not profile.blocks:
        return f"none of {plural(profile.grid_blocks, 'block')}"
    if len(profile.blocks) == profile.grid_blocks:
        return "the only block" if profile.grid_blocks == 1 else f"all {count(profile.grid_blocks)} blocks"
    shown = [block_name(each, profile).removeprefix("block ") for each in profile.blocks[:8]]
    more = f" and {len(profile.blocks) - 8} more" if len(profile.blocks) > 8 else ""
    return f"{count(len(profile.blocks))} of {plural(profile.grid_blocks, 'block')}: {', '.join(shown)}{more}"


def caveats(profile: Profile) -> list[str]:
    """What these numbers do not say."""
    said = []
    if profile.fault:
        said.append("The run ended early: everything is counted up to there.")
    if profile.blocks and len(profile.blocks) < profile.grid_blocks:
        said.append(
            f"{count(len(profile.blocks))} of {count(profile.grid_blocks)} blocks were traced. Counts are of these; "
            f"those of the whole launch are {count(profile.scale)} times as much, which is exact if all blocks do the "
            "same."
        )
    said.append(
        "Requests are counted as the source makes them. A GPU's compiler merges some and moves others out of loops: "
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
