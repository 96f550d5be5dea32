"""A kernel's main figures, each with a name, a number and a text: for the table of totals and for comparisons."""

from __future__ import annotations

from dataclasses import dataclass

from ..words.numbers import count, counted_share, duration, listed, plural, quantity, size_of, three_digits, two_digits
from .error_advice import problems
from .profile import SECTOR, Profile, Roofline, Static


@dataclass(frozen=True)
class Figure:
    """One main figure. value: None if the kernel has no such figure; better: "lower", "higher" or "" """

    name: str
    value: float | None
    text: str
    better: str = ""


def _figure(name: str, value: float | None, text: str, better: str = "") -> Figure:
    return Figure(name, value, text if value is not None else "none", better)


def figures(profile: Profile) -> list[Figure]:
    """The main figures of the whole launch; counts of the traced blocks are scaled to all blocks.

    All profiles have the same names in the same order.
    """
    reached = [access for access in profile.accesses if access.space == "global"]
    banked = [access for access in profile.accesses if access.space == "shared"]
    sectors, requests = sum(access.sectors for access in reached), sum(access.requests for access in reached)
    used = sum(access.bytes_used for access in reached)
    wavefronts, ideal = sum(access.wavefronts for access in banked), sum(access.ideal_wavefronts for access in banked)
    evaluated = sum(branch.evaluated for branch in profile.branches)
    divergent = sum(branch.divergent for branch in profile.branches)
    scale = profile.scale
    per_request = sectors / requests if requests else None
    efficiency = used / (SECTOR * sectors) if sectors else None
    ways = wavefronts / ideal if ideal else None
    moved = profile.traffic() * scale if reached else None
    flops = profile.flops * scale if profile.flops else None
    shared = profile.traffic("shared") * scale if banked else None
    intensity = profile.intensity if sectors and profile.flops else None
    diverging = divergent / evaluated if evaluated else None
    double = profile.double_flops / profile.flops if profile.double_flops else None
    wrong = len(problems(profile))
    return [
        Figure("races, uninitialised reads, faults", wrong, count(wrong), "lower"),
        _figure("global memory traffic", moved, size_of(moved or 0), "lower"),
        _figure("sectors per global request", per_request, count(per_request or 0), "lower"),
        _figure("share of the fetched bytes used", efficiency, counted_share(efficiency or 0), "higher"),
        _figure("shared memory, bytes used", shared, size_of(shared or 0)),
        _figure("shared passes per pass needed", ways, count(ways or 0), "lower"),
        _figure("floating-point operations", flops, quantity(flops or 0, "flop")),
        _figure("share of the operations in float64", double, counted_share(double or 0)),
        _figure("operations per byte of global traffic", intensity, three_digits(intensity or 0), "higher"),
        _figure("branch evaluations that diverge", diverging, counted_share(diverging or 0), "lower"),
        Figure("phases between barriers", len(profile.phases), count(len(profile.phases))),
        Figure("shared memory of a block", profile.shared_bytes, size_of(profile.shared_bytes)),
        *_device_figures(profile),
    ]


def _device_figures(profile: Profile) -> list[Figure]:
    static, line = profile.static, profile.roofline
    made = [
        Figure("multiprocessors used", None, "unknown"),
        Figure("waves of blocks", None, "unknown"),
        Figure("occupancy", None, "unknown"),
        Figure("time without caches, estimated", None, "unknown"),
    ]
    if static is not None:
        if static.multiprocessors:
            used = f"{count(static.busy)} of {count(static.multiprocessors)}"
            made[0] = Figure("multiprocessors used", static.busy, used, "higher")
            made[1] = Figure("waves of blocks", static.waves, two_digits(static.waves))
        made[2] = Figure("occupancy", static.occupancy, counted_share(static.occupancy), "higher")
    if line is not None:
        text = f"{duration(line.seconds)} at least" if line.bound == "launch" else duration(line.seconds)
        made[3] = Figure("time without caches, estimated", line.seconds, text, "lower")
    return made


def ratio(first: Figure, second: Figure) -> str:
    """The second figure divided by the first, as "1/16" or "2.5 times"; "" or "-" if there is no ratio."""
    if not first.value or not second.value:
        return "" if first.value == second.value or first.value is None or second.value is None else "-"
    if first.value == second.value:
        return "same"
    times = second.value / first.value
    return f"1/{three_digits(1 / times)}" if times < 1 else f"{three_digits(times)} times"


def verdict(first: Figure, second: Figure) -> str:
    """Whether the second figure is "better" or "worse" than the first; "" if neither."""
    if not first.better or first.value is None or second.value is None or first.value == second.value:
        return ""
    return "better" if (second.value < first.value) == (first.better == "lower") else "worse"


def unlike(first: Profile, second: Profile) -> list[str]:
    """Sentences about differences that limit a comparison: different arguments mean different work."""
    shapes = [[what for _, what in each.arguments] for each in (first, second)]
    if shapes[0] == shapes[1]:
        return []
    return ["The two were launched with different arguments: compare figures per request and per byte, not totals."]


def static_text(profile: Profile) -> list[str]:
    """The occupancy in sentences; empty if it is unknown."""
    static = profile.static
    if static is None:
        return []
    registers = "unknown" if static.registers is None else count(static.registers)
    spilled = f", {size_of(static.spilled_bytes)} spilled" if static.spilled_bytes else ""
    held = (
        f"A multiprocessor of compute capability {static.capability} can hold {plural(static.blocks, 'block')} of "
        f"{count(static.threads)} threads"
    )
    if not static.multiprocessors:
        return [f"{held}, occupancy {counted_share(static.occupancy)}.", *_resources(static, registers, spilled)]
    launched = (
        f"The launch has {plural(profile.grid_blocks, 'block')} for {count(static.multiprocessors)} multiprocessors: "
        f"{count(static.busy)} of them have work, in {two_digits(static.waves)} waves. "
        f"Occupancy of the whole device {counted_share(static.occupancy)}, limited by {_LIMITS[static.limit]}."
    )
    return [f"{held}: {counted_share(static.allowed)} of its warps.", launched, *_resources(static, registers, spilled)]


_LIMITS = {
    "grid": "the number of blocks in the grid",
    "registers": "registers",
    "shared memory": "shared memory",
    "threads": "threads",
    "blocks": "blocks",
}


def _resources(static: Static, registers: str, spilled: str) -> list[str]:
    return [
        f"Registers per thread: {registers}{spilled}. Shared memory per block: {size_of(static.shared_bytes)}.",
        f"Source: {static.source}",
    ]


def roofline_text(profile: Profile) -> list[str]:
    """The roofline estimate in sentences; empty if there is none, and the reason if none is possible."""
    line = profile.roofline
    if line is None:
        return ["The run ended early, so the counts say nothing about the time of the launch."] if profile.fault else []
    lines = [f"An estimate, not a measurement, for {line.device}.", _operations_text(profile, line)]
    if profile.flops and profile.traffic():
        side = "below" if line.intensity < line.ridge else "at or above"
        lines.append(
            f"{three_digits(line.intensity)} flop/B is {side} the ridge of {three_digits(line.ridge)} flop/B. Without "
            f"caches {quantity(line.attainable, 'flop/s')} of the device's {quantity(line.peak, 'flop/s')}, at "
            f"{quantity(line.bandwidth, 'B/s')}."
        )
    lines += [f"{part.name}: {duration(part.seconds)} ({part.reason})" for part in line.times]
    if line.bound == "launch":
        lines.append(
            f"Bound by the launch: its work takes less than {duration(line.seconds)}, so a time would say nothing "
            "about the kernel. Compare its counts, or profile more data."
        )
    else:
        lines.append(f"Bound by {line.bound}: the launch would take {duration(line.seconds)} or more without caches.")
    return [*lines, f"Source: {line.source}"]


def _operations_text(profile: Profile, line: Roofline) -> str:
    scale, double = profile.scale, profile.double_flops
    single = profile.flops - double
    if not profile.flops:
        return "The kernel does no floating-point operations, so only memory, blocks and the launch count."
    parts = [
        f"{quantity(number * scale, 'flop')} in {dtype}"
        for number, dtype in ((single, "float32"), (double, "float64"))
        if number
    ]
    limit = f"; the part in {line.dtype} takes longer" if len(parts) > 1 else ""
    return f"Operations, by their types: {listed(parts)}{limit}."
