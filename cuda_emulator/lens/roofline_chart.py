"""The roofline as a chart: what a device can do at each intensity, and where the estimate puts a kernel.

Both axes are logarithmic. The slanted line is the memory's bandwidth, the level ones are the peaks of the arithmetic. A
mark is a kernel by its requests, without caches; the ring to its right is the same kernel if every element moved once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ..words.markup import escape
from ..words.numbers import quantity, three_digits
from .devices import device as find_device
from .profile import Profile
from .roofline import compulsory_bytes
from .svg import label, svg

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 720, 360, 86, 24, 700, 310
LOWEST, HIGHEST = -4.0, 10.0
"""Powers of two of the intensities, in operations for each byte."""

MARKS = ("disc", "square")


def drawable(profiles: Sequence[Profile]) -> list[Profile]:
    """The profiles with an estimate, operations and traffic, which a roofline needs."""
    return [each for each in profiles if each.roofline is not None and each.flops and each.traffic()]


def roofline_chart(profiles: Sequence[Profile]) -> str:
    """The chart of one kernel, or of several on one device; all of them are drawable."""
    assert profiles[0].roofline is not None
    device = find_device(profiles[0].roofline.device)
    single, double = device.peak("float32"), device.peak("float64")
    speeds = [_speed(profile) for profile in profiles]
    top = math.log10(single) + 0.3
    bottom = min(math.log10(min(speeds)), math.log10(device.bandwidth) + LOWEST * math.log10(2)) - 0.3

    def across(intensity: float) -> float:
        power = min(max(math.log2(intensity), LOWEST), HIGHEST)
        return LEFT + (power - LOWEST) / (HIGHEST - LOWEST) * (RIGHT - LEFT)

    def up(speed: float) -> float:
        return BOTTOM - (math.log10(speed) - bottom) / (top - bottom) * (BOTTOM - TOP)

    parts = []
    for power in range(int(LOWEST), int(HIGHEST) + 1, 2):
        x, text = across(2.0**power), f"1/{2**-power}" if power < 0 else f"{2**power}"
        parts.append(f'<path d="M{x:g} {TOP}V{BOTTOM}" class="lens-rule"/>')
        parts.append(label(x, BOTTOM + 14, text, "lens-quiet lens-small lens-middle"))
    for power in range(math.ceil(bottom), math.floor(top) + 1):
        y = up(10.0**power)
        parts.append(f'<path d="M{LEFT} {y:g}H{RIGHT}" class="lens-rule"/>')
        parts.append(label(LEFT - 6, y + 4, quantity(10.0**power, "flop/s"), "lens-quiet lens-small lens-end"))
    parts.append(label((LEFT + RIGHT) / 2, BOTTOM + 32, "operations for each byte of traffic", "lens-ink lens-middle"))
    ridge = single / device.bandwidth
    start = 2.0**LOWEST
    parts.append(
        f'<path d="M{LEFT} {up(start * device.bandwidth):g}L{across(ridge):g} {up(single):g}H{RIGHT}" '
        'class="lens-roof"/>'
    )
    parts.append(
        f'<path d="M{across(double / device.bandwidth):g} {up(double):g}H{RIGHT}" class="lens-roof" '
        'stroke-dasharray="6 4"/>'
    )
    for dtype, peak in (("float32", single), ("float64", double)):
        parts.append(label(RIGHT, up(peak) - 5, f"{dtype}: {quantity(peak, 'flop/s')}", "lens-ink lens-small lens-end"))
    x, y = across(4 * start), up(4 * start * device.bandwidth)
    parts.append(label(x + 8, y + 14, f"memory: {quantity(device.bandwidth, 'B/s')}", "lens-ink lens-small"))
    for number, (profile, speed) in enumerate(zip(profiles, speeds, strict=True)):
        parts.append(_kernel(profile, speed, across, up, MARKS[number % len(MARKS)]))
    caption = " ".join(f"{run.kernel}: {_said(run, speed)}." for run, speed in zip(profiles, speeds, strict=True))
    title = f"Roofline of {device.name}"
    return svg(WIDTH, HEIGHT, title, caption, parts)


def _speed(profile: Profile) -> float:
    """Operations a second by the estimate, which counts idle multiprocessors, bank conflicts and the launch, too."""
    assert profile.roofline is not None
    return profile.flops * profile.scale / profile.roofline.seconds


def _said(profile: Profile, speed: float) -> str:
    assert profile.roofline is not None
    return (
        f"{three_digits(profile.intensity)} operations for each byte, {quantity(speed, 'flop/s')}, bound by "
        f"{profile.roofline.bound}"
    )


def _kernel(
    profile: Profile, speed: float, across: Callable[[float], float], up: Callable[[float], float], mark: str
) -> str:
    """The mark of a kernel, its name, and the ring of the same kernel with perfect caches."""
    assert profile.roofline is not None
    x, y = across(profile.intensity), up(speed)
    roof = min(profile.intensity * profile.roofline.bandwidth, profile.roofline.peak)
    parts = [f'<path d="M{x:g} {y:g}V{up(roof):g}" class="lens-rule" stroke-dasharray="2 3"/>']
    least = compulsory_bytes(profile)
    operations = profile.flops * profile.scale
    if least and operations / least > 1.05 * profile.intensity:
        others = max(part.seconds for part in profile.roofline.times if part.name != "memory")
        right, high = across(operations / least), up(operations / max(others, least / profile.roofline.bandwidth))
        parts.append(f'<path d="M{x:g} {y:g}L{right:g} {high:g}" class="lens-edge" stroke-dasharray="3 3"/>')
        parts.append(f'<circle cx="{right:g}" cy="{high:g}" r="5" class="lens-ring"/>')
    if mark == "disc":
        parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="6" class="lens-used"/>')
    else:
        parts.append(f'<rect x="{x - 6:g}" y="{y - 6:g}" width="12" height="12" class="lens-hot"/>')
    side = "lens-end" if x > (LEFT + RIGHT) / 2 else ""
    parts.append(label(x + (-11 if side else 11), y + 16, profile.kernel, f"lens-ink lens-strong {side}".strip()))
    return f"<g><title>{escape(f'{profile.kernel}: {_said(profile, speed)}')}</title>{''.join(parts)}</g>"
