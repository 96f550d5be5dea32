"""The roofline estimate: the speed of a kernel on a device, from its operations and its memory traffic alone.

A device computes at most `peak` operations a second, and moves at most `bandwidth` bytes. A kernel that does
`intensity` operations for each byte can therefore reach no more than the smaller of peak and intensity x bandwidth
(Williams, Waterman and Patterson, "Roofline: an insightful visual performance model", Communications of the ACM 52(4),
2009).

The traffic is 32 bytes for each sector that warps asked for, as without a cache. A GPU's caches serve a part of it,
often most of it, so the estimate is the worst case for memory. In the best case every element moves once: that number
is `compulsory_bytes`, and the estimate's `source` mentions it.
"""

from __future__ import annotations

from groundup.lens.devices import Device
from groundup.lens.profile import Profile, Roofline
from shared.numbers import quantity


def estimate(profile: Profile, device: Device) -> Roofline:
    """The estimate for the whole launch on that device: the traced counts, multiplied by the profile's scale.

    The peak is that of float64 if an array argument is float64, else that of float32, without tensor cores.
    Raises ValueError for a profile without a traced block.
    """
    if not profile.blocks:
        raise ValueError("estimate: expected a profile with at least one traced block, got one with none")
    operations = profile.flops * profile.scale
    traffic = profile.traffic() * profile.scale
    dtype = "float64" if any("array(float64" in each for each in profile.argument_types) else "float32"
    peak, bandwidth = device.peak(dtype), device.bandwidth
    computing, moving = operations / peak, traffic / bandwidth
    intensity = profile.intensity
    return Roofline(
        device=device.name,
        dtype=dtype,
        intensity=intensity,
        ridge=peak / bandwidth,
        bound="compute" if computing > moving else "memory",
        seconds=max(computing, moving),
        attainable=min(peak, intensity * bandwidth),
        peak=peak,
        bandwidth=bandwidth,
        source=_source(profile, device, traffic),
    )


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
        f"{device.full_name}: {device.source}"
    )
