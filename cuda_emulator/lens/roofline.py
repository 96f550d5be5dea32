"""The roofline estimate: the speed of a kernel on a device, from its operations, its memory traffic and its blocks.

A device computes at most `peak` operations a second, and moves at most `bandwidth` bytes. A kernel that does
`intensity` operations for each byte can therefore reach no more than the smaller of peak and intensity x bandwidth
(Williams, Waterman and Patterson, "Roofline: an insightful visual performance model", Communications of the ACM 52(4),
2009). Operations whose result is float64 have a peak of their own.

The traffic is 32 bytes for each sector that warps asked for, as without a cache. A GPU's caches serve a part of it,
often most of it, so the estimate is the worst case for memory. In the best case every element moves once: that number
is `compulsory_bytes`, and the estimate's `source` mentions it.

The peak is that of all multiprocessors. A launch of few blocks uses few of them, and the last blocks of a launch may
leave most of them idle; so arithmetic and shared memory are counted for the multiprocessor with the most blocks. And no
launch is shorter than an empty one, or than the latency of its loads.
"""

from __future__ import annotations

from ..words.numbers import count, duration, plural, quantity
from .devices import LATENCY, LATENCY_SOURCE, LAUNCH, LAUNCH_SOURCE, PASSES, PASSES_SOURCE, Device
from .profile import LeastTime, Profile, Roofline


def estimate(profile: Profile, device: Device) -> Roofline | None:
    """The estimate for the whole launch on that device: the traced counts, multiplied by the profile's scale.

    None after a fault: the counts end there, and say nothing about the launch.
    Raises ValueError for a profile without a traced block.
    """
    if not profile.blocks:
        raise ValueError("estimate: expected a profile with at least one traced block, got one with none")
    if profile.fault:
        return None
    operations = profile.flops * profile.scale
    traffic = profile.traffic() * profile.scale
    dtype, computing = _arithmetic(profile, device)
    peak, bandwidth = (operations / computing if computing else device.peak(dtype)), device.bandwidth
    intensity = profile.intensity
    times = _times(profile, device)
    longest = max(times, key=lambda part: part.seconds)
    return Roofline(
        device=device.name,
        dtype=dtype,
        intensity=intensity,
        ridge=peak / bandwidth,
        bound=longest.name,
        seconds=longest.seconds,
        attainable=min(peak, intensity * bandwidth),
        peak=peak,
        bandwidth=bandwidth,
        source=_source(profile, device, traffic),
        times=times,
    )


def _arithmetic(profile: Profile, device: Device) -> tuple[str, float]:
    """(the type of the operations that need longer, their time on all multiprocessors together)."""
    double = profile.double_flops * profile.scale
    single = profile.flops * profile.scale - double
    times = {"float32": single / device.peak("float32"), "float64": double / device.peak("float64")}
    longer = max(times, key=lambda dtype: times[dtype])
    return longer, times[longer]


def _times(profile: Profile, device: Device) -> tuple[LeastTime, ...]:
    """The time that each part of the device needs, if the others do not slow it down."""
    blocks, multiprocessors = profile.grid_blocks, device.multiprocessors
    rounds = -(-blocks // multiprocessors)  # blocks of the multiprocessor that has the most
    crowded = rounds * multiprocessors / blocks  # its share of the work, times the number of multiprocessors
    dtype, computing = _arithmetic(profile, device)
    busiest = f"{count(rounds)} of {plural(blocks, 'block')} on the busiest of {multiprocessors} multiprocessors"
    traffic = profile.traffic() * profile.scale
    passes = sum(access.wavefronts for access in profile.accesses if access.space == "shared") * profile.scale / blocks
    resident = profile.static.blocks if profile.static and profile.static.blocks else 1
    waves = -(-blocks // (multiprocessors * resident))
    loads = any(access.space == "global" and access.kind == "load" and access.requests for access in profile.accesses)
    times = [
        LeastTime("memory", traffic / device.bandwidth, f"{quantity(traffic, 'B')} of sectors, as if no cache helped"),
        LeastTime(
            "compute",
            computing * crowded,
            f"{quantity(profile.flops * profile.scale, 'flop')}, limited by {dtype}; {busiest}",
        ),
        LeastTime(
            "shared memory",
            rounds * passes / (PASSES * device.clock),
            f"{count(passes)} passes of the banks for a block, {PASSES} in a cycle; {busiest}",
        ),
        LeastTime(
            "latency",
            waves * LATENCY / device.clock if loads else 0.0,
            f"{plural(waves, 'wave')} of blocks, each with at least one load of {LATENCY} cycles",
        ),
        LeastTime("launch", LAUNCH, f"no launch takes less than about {duration(LAUNCH)}"),
    ]
    return tuple(part for part in times if part.seconds)


def compulsory_bytes(profile: Profile) -> float:
    """Bytes of global memory that move if every element moves once: the minimum with a perfect cache.

    If not all blocks were traced, it is an estimate: the accessed elements multiplied by the profile's scale, and at
    most the size of the array. An element that is read and written moves twice.
    """
    sizes = {
        each.array: each.example.size
        for each in profile.accesses
        if each.space == "global" and each.example is not None
    }
    total = 0.0
    for each in profile.reuse:
        if each.space == "global" and each.array in sizes:
            ways = bool(each.loads or each.atomics) + bool(each.stores or each.atomics)
            total += min(each.touched * profile.scale, each.elements) * sizes[each.array] * ways
    return total


def _source(profile: Profile, device: Device, traffic: float) -> str:
    traced, least = len(profile.blocks), compulsory_bytes(profile)
    counted = (
        "all blocks traced" if traced == profile.grid_blocks else f"{traced:,} of {profile.grid_blocks:,} blocks traced"
    )
    return (
        f"An estimate, {counted}. Traffic: {quantity(traffic, 'B')}, 32 bytes for each sector requested, as if no "
        f"cache helped; with perfect caches about {quantity(least, 'B')} would be left. "
        f"{device.full_name}: {device.source}. Launch: {LAUNCH_SOURCE}. Latency: {LATENCY_SOURCE}. Shared memory: "
        f"{PASSES_SOURCE}"
    )
