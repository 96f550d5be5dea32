"""The operations of a step as a table for a terminal, and the sentences below it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

from rich.box import SIMPLE_HEAD
from rich.table import Table

from shared.contract import STAGE_TITLES
from shared.numbers import duration, plural, share, three_digits
from shared.profile.gain import first_to_mend
from shared.profile.step_profile import Profile, Timed

NARROW = 118
"""Columns of a terminal below which a table leaves out shapes, calls and bytes."""

RESTLESS = 0.15
"""From the first quartile of the plain step to the third, as a share of the median: more is no steady machine."""

Column = tuple[str, Literal["left", "right"], bool, Callable[[Timed], str]]


def title(profile: Profile) -> str:
    """The heading of a profile's table."""
    who = STAGE_TITLES[profile.stage]
    if profile.emulated:
        who += ", emulated on the CPU: not the times of a GPU"
    what = f"{profile.network}, batch {profile.batch}, {profile.dtype}, {plural(profile.threads, 'thread')}"
    return f"{who}. A training step of {what}: {duration(profile.step.median)}"


def table(profile: Profile, width: int) -> Table:
    """The table, one line for each operation in the order of the step; the last line is what lies between them.

    width: columns of the terminal
    """
    chosen = [column for column in COLUMNS if width >= NARROW or not column[2]]
    made = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=True, show_footer=False)
    for heading, justify, _, _ in chosen:
        made.add_column(heading, justify=justify, no_wrap=True)
    for each in profile.operations:
        made.add_row(*(text(each) for _, _, _, text in chosen))
    between = {"operation": "between the operations", "µs": _micro(profile.between.median)}
    between["share"] = share(profile.between.median / profile.step.median, gap="")
    made.add_row(*(between.get(heading, "") for heading, *_ in chosen), style="dim")
    return made


def sentences(profile: Profile) -> Iterator[str]:
    """What must be read with the table: does it add up, and what did listening cost?"""
    step = profile.step.median
    between = profile.between.median
    together = share((profile.sum_of_operations + between) / step)
    yield (
        f"The operations add up to {duration(profile.sum_of_operations)}, {share(profile.share_of_operations)} of the "
        f"step as it is when nobody listens ({duration(step)}, median of {profile.step.samples}, in turns with the "
        f"noted steps); with {duration(between)} between them it is {together}."
    )
    cost = profile.notes * profile.note_seconds
    yield (
        f"Listening: {profile.notes} readings of the clock of {duration(profile.note_seconds)}, {share(cost / step)} "
        f"of the step; a noted step took {_compared(profile.cost_of_listening)} than a plain one."
    )
    yield from _mend_first(profile)
    if profile.step.spread > RESTLESS:
        yield (
            f"warning: the middle half of the plain steps lie {share(profile.step.spread)} apart: something else was "
            "computing. Measure again on a machine that is idle."
        )


def _mend_first(profile: Profile) -> Iterator[str]:
    """The operation that would shorten the step most if it came to its roof."""
    step = profile.step.median
    shares = [each.bound.share for each in profile.operations]
    least = [
        None if part is None else min(1.0, part) * each.seconds
        for part, each in zip(shares, profile.operations, strict=True)
    ]
    found = first_to_mend([each.seconds for each in profile.operations], least, step)
    if found is None:
        return
    number, after = found
    operation = profile.operations[number].operation
    layer = f" of layer {operation.layer}" if operation.layer else ""
    yield (
        f"To mend first: {operation.name}{layer}, {operation.direction}. At its roof a step would take "
        f"{duration(after)} in place of {duration(step)}."
    )


def _compared(value: float) -> str:
    return f"{100 * abs(value):.1f} % {'longer' if value >= 0 else 'less time'}"


def _micro(seconds: float) -> str:
    return three_digits(1e6 * seconds)


def _shapes(each: Timed) -> str:
    operation = each.operation
    shapes = [f"{' x '.join(map(str, shape))}" for shape in (operation.input_shape, operation.output_shape) if shape]
    return " → ".join(dict.fromkeys(shapes))


def _bound(each: Timed) -> str:
    bound = each.bound
    if bound.share is None:
        return ""
    if bound.kind == "neither":
        return f"neither: {bound.roof}"
    return f"{bound.kind}, {share(bound.share, gap='')} of {bound.roof}" if bound.kind == "memory" else bound.kind


COLUMNS: list[Column] = [
    ("layer", "left", False, lambda each: each.operation.layer),
    ("operation", "left", False, lambda each: each.operation.name),
    ("way", "left", True, lambda each: each.operation.direction),
    ("shapes", "left", True, _shapes),
    ("calls", "right", True, lambda each: str(each.operation.calls)),
    ("µs", "right", False, lambda each: _micro(each.seconds)),
    ("share", "right", False, lambda each: share(each.share, gap="")),
    ("MFLOP", "right", True, lambda each: three_digits(each.operation.flops / 1e6)),
    ("kB", "right", True, lambda each: three_digits(each.operation.bytes / 1e3)),
    ("GFLOP/s", "right", False, lambda each: three_digits(each.gflops)),
    ("peak", "right", False, lambda each: "-" if each.share_of_peak is None else share(each.share_of_peak, gap="")),
    ("bound by", "left", False, _bound),
]
"""Heading, alignment, whether only a wide terminal has room for it, and the text."""
