"""The costs of a kernel as advice: what a GPU would do more than the data need, and the change that saves it.

The order is that of the time which each remedy would save on the device of the roofline, by its counts of traffic,
passes and operations. A cost without such a count (divergence, lanes without a thread) comes last.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from ..words.numbers import count, counted_share, listed, plural, size_of
from .access_advice import Pattern, bank_remedy, coalescing_remedy, of_one_element, pattern
from .advice import Advice
from .devices import DEFAULT, LAUNCH, PASSES, Device
from .devices import device as find_device
from .doubles import double_lines, reason
from .profile import SECTOR, Access, Branch, Profile
from .verdicts import global_verdict, shared_verdict
from .wording import WARP

WORTH = 0.25
"""Loads that repeat are mentioned if they make this share of the traffic."""

DIVERGENT = 0.5
"""A branch is mentioned if this share of its evaluations diverge."""


def costs(profile: Profile) -> list[Advice]:
    """The costs, the costliest first."""
    device = find_device(profile.roofline.device if profile.roofline else DEFAULT)
    found = [
        *_uncoalesced(profile, device),
        *_conflicts(profile, device),
        *_repeated(profile, device),
        *_double(profile, device),
        *_idle(profile, device),
        *_partial_warps(profile),
        *_divergent(profile),
    ]
    return sorted(found, key=lambda each: -each.seconds)


def _uncoalesced(profile: Profile, device: Device) -> list[Advice]:
    groups: defaultdict[tuple[Pattern, str], list[Access]] = defaultdict(list)
    for access in profile.accesses:
        if access.space == "global" and global_verdict(access)[1] == "costly" and not of_one_element(access):
            kind = pattern(access)
            groups[kind, "" if kind == "rows" else access.array].append(access)
    advice = []
    for (kind, _), accesses in groups.items():
        more = sum(access.sectors - access.ideal_sectors for access in accesses) * SECTOR * profile.scale
        said = [
            f"{access.kind} `{access.site.text}` (line {access.site.line}): "
            f"{count(access.sectors_per_request)} sectors for a warp, "
            f"{count(access.ideal_sectors / access.requests)} would do"
            for access in accesses
        ]
        traffic = profile.traffic() * profile.scale
        text = f"{size_of(more)} of the {size_of(traffic)} of traffic ({counted_share(more / traffic)}) are in vain."
        names = listed(list(dict.fromkeys(access.array for access in accesses)))
        advice.append(
            Advice(
                "uncoalesced access",
                "costly",
                f"Uncoalesced access to {names}",
                coalescing_remedy(kind, accesses, profile),
                (*dict.fromkeys(said), text),
                _places(accesses),
                more / device.bandwidth,
            )
        )
    return advice


def _conflicts(profile: Profile, device: Device) -> list[Advice]:
    groups: defaultdict[str, list[Access]] = defaultdict(list)
    for access in profile.accesses:
        if access.space == "shared" and shared_verdict(access)[1] == "costly":
            groups[access.array].append(access)
    advice = []
    for array, accesses in groups.items():
        worst = max(accesses, key=lambda access: access.wavefronts - access.ideal_wavefronts)
        more = sum(access.wavefronts - access.ideal_wavefronts for access in accesses)
        said = [
            f"{access.kind} `{access.site.text}` (line {access.site.line}): "
            f"{count(access.ways)} passes of the banks for one"
            for access in accesses
        ]
        rounds = -(-profile.grid_blocks // device.multiprocessors)
        advice.append(
            Advice(
                "bank conflict",
                "costly",
                f"{worst.most_ways}-way bank conflict on {array}",
                bank_remedy(worst, profile),
                tuple(dict.fromkeys(said)),
                _places(accesses),
                more / len(profile.blocks) * rounds / (PASSES * device.clock),
            )
        )
    return advice


def _repeated(profile: Profile, device: Device) -> list[Advice]:
    """Arrays of which a block loads the same elements again and again, all together."""
    traffic = profile.traffic()
    saved, most, arrays, accesses = 0.0, 0, [], []
    for reuse in profile.reuse:
        loads = [
            access
            for access in profile.accesses
            if access.space == "global" and access.array == reuse.array and access.kind == "load"
        ]
        sectors = sum(access.ideal_sectors for access in loads)
        if reuse.space != "global" or reuse.most_requests_in_block < 2 or not traffic:
            continue
        here = sectors * SECTOR * (1 - 1 / reuse.most_requests_in_block)
        if here < WORTH * traffic and here < WORTH * sum(access.ideal_sectors for access in profile.accesses) * SECTOR:
            continue
        saved += here
        most = max(most, reuse.most_requests_in_block)
        arrays.append(reuse.array)
        accesses += loads
    if not arrays:
        return []
    names = listed(arrays)
    texts = Counter((access.array, access.site.text) for access in accesses)
    if max(texts.values()) >= most:  # each thread loads its own elements again
        cure = f"Load the element of {names} once, keep it in a variable, and use that."
    else:
        cure = (
            f"Stage {names} through a shared tile: each block copies the part that it needs to shared memory once, "
            "calls cuda.syncthreads(), and reads it there."
        )
    return [
        Advice(
            "repeated loads",
            "costly",
            f"The warps of a block ask for elements of {names} up to {most} times",
            cure,
            (f"About {counted_share(saved / traffic)} of the traffic, if no cache serves it.",),
            _places(accesses),
            saved * profile.scale / device.bandwidth,
        )
    ]


def _double(profile: Profile, device: Device) -> list[Advice]:
    lines = double_lines(profile)
    if not lines:
        return []
    number = sum(lines.values())
    reasons = list(dict.fromkeys(filter(None, (reason(profile, place) for place in lines))))
    cure = "; ".join(reasons)
    slower = device.peak("float32") / device.peak("float64")
    seconds = number * profile.scale * (1 / device.peak("float64") - 1 / device.peak("float32"))
    numbers = [str(line) for _, line in lines]
    where = f"line {numbers[0]}" if len(numbers) == 1 else f"lines {listed(numbers)}"
    return [
        Advice(
            "float64 arithmetic",
            "costly",
            f"Arithmetic in float64, though no array is float64: {where}",
            f"{cure[:1].upper()}{cure[1:]}." if cure else "Use np.float32 for all numbers.",
            (
                f"{plural(number, 'operation')} of {count(profile.flops)} by Numba's types; {device.name} does "
                f"{count(slower)} times fewer of them in a second. A compiler may narrow some of them again.",
            ),
            tuple(lines),
            seconds,
        )
    ]


def _idle(profile: Profile, device: Device) -> list[Advice]:
    """Multiprocessors without a block, if the work is longer than a launch."""
    busy = min(profile.grid_blocks, device.multiprocessors)
    work = [each.seconds for each in (profile.roofline.times if profile.roofline else ()) if each.name in _SPREAD]
    longest = max(work, default=0.0)
    if busy == device.multiprocessors or longest <= LAUNCH:
        return []
    return [
        Advice(
            "idle multiprocessors",
            "costly",
            f"{plural(busy, 'multiprocessor')} of {device.multiprocessors} has work"
            if busy == 1
            else f"{busy} of {device.multiprocessors} multiprocessors have work",
            f"Launch at least {device.multiprocessors} blocks: split the work into more and smaller ones.",
            (f"A multiprocessor runs whole blocks, and the launch has {plural(profile.grid_blocks, 'block')}.",),
            (),
            longest * (1 - busy / device.multiprocessors),
        )
    ]


_SPREAD = ("compute", "shared memory")
"""The times that become shorter with more multiprocessors."""


def _partial_warps(profile: Profile) -> list[Advice]:
    threads = profile.block[0] * profile.block[1] * profile.block[2]
    lanes = -(-threads // WARP) * WARP
    if threads > 0.75 * lanes:
        return []
    return [
        Advice(
            "part of a warp",
            "costly",
            f"A block of {plural(threads, 'thread')} leaves {lanes - threads} of {lanes} lanes empty",
            f"Choose a number of threads that is a multiple of {WARP}.",
            (),
            (),
        )
    ]


def _divergent(profile: Profile) -> list[Advice]:
    found = [
        each
        for each in profile.branches
        if each.evaluated and each.divergent / each.evaluated >= DIVERGENT and _several(each)
    ]
    return [
        Advice(
            "divergence",
            "costly",
            f"The lanes of a warp disagree on `{each.site.text}`",
            "Let whole warps take the same way: choose threads by a limit (t < k) instead of a remainder (t % k == 0), "
            "or give each warp one case.",
            (f"{counted_share(each.divergent / each.evaluated)} of the evaluations in line {each.site.line} diverge.",),
            ((each.site.file, each.site.line),),
        )
        for each in found
    ]


def _several(branch: Branch) -> bool:
    """Whether several lanes go either way; one lane that does something alone, like the last sum, is no mistake."""
    return branch.example is not None and min(map(len, branch.example)) > 1


def _places(accesses: list[Access]) -> tuple[tuple[str, int], ...]:
    return tuple(dict.fromkeys((each.site.file, each.site.line) for each in accesses))
