"""The picture of which thread takes which element: the array as a grid, with the lane in each element that it takes."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

from ..words.markup import escape
from ..words.numbers import count, plural
from .profile import Request
from .svg import box, label, svg
from .wording import element, lanes, thread

GROUP = 8
"""Columns are drawn in groups of this many; groups without a lane are left out."""

MOST_GROUPS = 32

_GAP = 7
"""Pixels between two groups if others between them are left out."""


def element_map(
    request: Request, title: str, array: str, shape: tuple[int, ...], block: tuple[int, int, int], does: str = "takes"
) -> str:
    """A row for each row of the array that lanes take elements of, a column for each element of the row.

    shape: of the array, () if it is unknown; block: of the launch, for the names of threads; does: "reads" or "writes"
    """
    takers: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
    for lane, index in zip(request.lanes, request.indices, strict=True):
        takers[index].append(lane)
    rows = sorted({index[:-1] for index in takers})
    groups = sorted({index[-1] // GROUP for index in takers})
    drawn = groups[:MOST_GROUPS]
    last = shape[-1] if shape else max(index[-1] for index in takers) + 1
    cell = next(width for most, width in ((3, 22), (4, 16), (8, 9), (16, 5), (MOST_GROUPS, 4)) if len(drawn) <= most)
    high = 20 if len(rows) == 1 else 13 if len(rows) > 8 else max(cell, 13)
    names = [element(array, row).removesuffix("]") + (", ...]" if row else "[...]") for row in rows]
    left, top = 14 + 6.3 * max(map(len, names)), 40
    parts = [label(left, 13, _verdict(takers), "lens-ink lens-strong")]
    x, position = left, {}
    for number, group in enumerate(drawn):
        if number:
            x += 2 if group == drawn[number - 1] + 1 else _GAP
        position[group] = x
        wide = cell * (min(GROUP * (group + 1), last) - GROUP * group)
        text = count(GROUP * group)
        if number == 0 or cell * GROUP > 6.5 * len(text) + 8:
            parts.append(label(x, top - 5, text, "lens-quiet lens-small"))
        for place in range(len(rows)):
            parts.append(box(x, top + high * place, wide, high, "lens-outline"))
        x += wide
    for place, (row, name) in enumerate(zip(rows, names, strict=True)):
        parts.append(label(left - 6, top + high * place + high / 2 + 3.5, name, "lens-quiet lens-small lens-end"))
        for index, who in sorted(takers.items()):
            group, within = divmod(index[-1], GROUP)
            if index[:-1] != row or group not in position:
                continue
            at = position[group] + cell * within
            parts.append(_cell(at, top + high * place, cell, high, who, request, element(array, index), block, does))
    height = top + high * len(rows) + 10
    if len(groups) > len(drawn):
        text = f"and {plural(GROUP * (len(groups) - len(drawn)), 'column')} more, not drawn"
        parts.append(label(left, height + 6, text, "lens-ink"))
        height += 16
    caption = (
        f"{plural(len(request.lanes), 'lane')} of warp {request.warp} {does.removesuffix('s')} "
        f"{plural(len(takers), 'element')} in {plural(len(rows), 'row')}: {_verdict(takers)}."
    )
    return svg(max(x + 10, left + 390), height, title, caption, parts)


def _verdict(takers: dict[tuple[int, ...], list[int]]) -> str:
    """The relation of neighbouring lanes in a few words."""
    by_lane = sorted((lane, index) for index, who in takers.items() for lane in who)
    if len(takers) == 1:
        return "all lanes take the same element"
    pairs = list(pairwise(by_lane))
    beside = sum(b[:-1] == a[:-1] and b[-1] - a[-1] == 1 for (_, a), (_, b) in pairs)
    below = sum(b[:-1] != a[:-1] for (_, a), (_, b) in pairs)
    if 2 * beside > len(pairs):
        return "neighbouring lanes take neighbouring elements"
    if 2 * below > len(pairs):
        return "neighbouring lanes take elements of different rows"
    return "neighbouring lanes share elements, or take distant ones"


def _cell(
    x: float, y: float, wide: int, high: int, who: list[int], request: Request, name: str,
    block: tuple[int, int, int], does: str,
) -> str:  # fmt: skip
    first = thread(32 * request.warp + who[0], block)
    others = f" and lanes {lanes(tuple(who[1:]))}" if len(who) > 1 else ""
    drawn = box(x + 0.5, y + 0.5, wide - 1, high - 1, "lens-used")
    text = f"{who[0]}" if len(who) == 1 else f"{len(who)}x"
    if wide >= 16:
        drawn += label(x + wide / 2, y + high / 2 + 3.5, text, "lens-on-used lens-small lens-middle")
    return f"<g><title>{escape(f'lane {who[0]}, {first}{others}: {does} {name}')}</title>{drawn}</g>"
