"""Pictures of one request, as SVG.

access_map(request, title)   a row for each lane, a column for each address: the 32-byte sectors that a warp fetches,
                             and the bytes that it uses
bank_map(request, title)     a column for each of 32 banks, a row for each 32 words: the lanes that ask for a word, and
                             the number of words of each bank
timeline(profile)            a column for each phase between barriers, a row for each line of the source (timelines.py)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from ..words.markup import escape
from ..words.numbers import count, counted_share, plural, size_of
from .profile import BANKS, SECTOR, Request
from .svg import box, label, svg
from .timelines import timeline
from .wording import element, lanes

MOST_SECTORS = 32
"""The most sectors that are drawn for one request; a sentence gives the number of the others."""

_GAP = 7
"""Pixels between two sectors if others between them are left out."""

MOST_ROWS = 64
"""The most rows of words in a bank map: 32 lanes with 8-byte elements can access this many."""


def access_map(request: Request, title: str, array: str = "") -> str:
    """A row for each lane, a column for each 4 bytes of a fetched sector; other sectors are left out.

    title: the picture's title; its description is made here. array: the array's name, for the tooltips of cells.
    """
    touched = _bytes_by_sector(request)
    shown = sorted(touched)[:MOST_SECTORS]
    cell = next(width for most, width in ((8, 11), (16, 5), (24, 3), (MOST_SECTORS, 2)) if len(shown) <= most)
    row, left, top = 9, 66, 52
    position = _positions(shown, left, 8 * cell)
    right, bottom = position[shown[-1]] + 8 * cell, top + row * BANKS
    used, fetched = sum(len(offsets) for offsets in touched.values()), SECTOR * len(touched)
    sums = f"{size_of(used)} used of {size_of(fetched)}, {counted_share(used / fetched)}"
    parts = [label(left, 13, f"{plural(len(touched), 'sector')}: {sums}", "lens-ink lens-strong")]
    parts.append(_legend(left, 20))
    parts += _columns(shown, position, touched, cell, top, row * BANKS)
    for line in range(0, BANKS, 8):
        parts.append(f'<path d="M{left - 5} {top + row * line}H{left - 1}" class="lens-rule"/>')
        parts.append(label(left - 8, top + row * line + 8, f"lane {line}", "lens-quiet lens-small lens-end"))
    for number, (lane, address) in enumerate(zip(request.lanes, request.addresses, strict=True)):
        index = request.indices[number] if number < len(request.indices) else ()
        says = f"lane {lane}: {element(array, index) + ', ' if array else ''}byte {count(address)}"
        cells = []
        for word in range(address // 4, (address + request.size - 1) // 4 + 1):
            first, last = max(address, 4 * word), min(address + request.size, 4 * word + 4)
            if first // SECTOR in position:
                at = position[first // SECTOR] + cell * (first % SECTOR) / 4
                wide = max(cell * (last - first) / 4 - (cell > 4), 1)
                cells.append(box(at, top + row * lane + 1, wide, row - 2, "lens-used"))
        parts.append(f"<g><title>{escape(says)}</title>{''.join(cells)}</g>")
    height = bottom + 10
    if len(touched) > len(shown):
        more = f"and {plural(len(touched) - len(shown), 'sector')} more, not drawn"
        parts.append(label(left, height + 8, more, "lens-ink"))
        height += 16
    between = f"byte {count(SECTOR * min(touched))} and {count(SECTOR * max(touched) + SECTOR - 1)}"
    caption = (
        f"{plural(len(request.lanes), 'lane')}, {size_of(request.size)} each, in {plural(len(touched), 'sector')} "
        f"of {SECTOR} bytes between {between}: {sums}."
    )
    return svg(max(right + 10, left + 400), height, title, caption, parts)


def _positions(sectors: list[int], left: float, width: float) -> dict[int, float]:
    """{sector: its left edge}; the gap between two sectors is wider if others are left out between them."""
    position: dict[int, float] = {}
    x = left
    for number, sector in enumerate(sectors):
        if number:
            x += width + (2 if sector == sectors[number - 1] + 1 else _GAP)
        position[sector] = x
    return position


def _columns(
    sectors: list[int], position: dict[int, float], touched: dict[int, set[int]], cell: int, top: int, tall: int
) -> list[str]:
    """The fetched sectors; the tint shows bytes that a lane asks for, dots show sectors that are left out."""
    parts = []
    free = 0.0
    for number, sector in enumerate(sectors):
        at = position[sector]
        if at >= free:
            text = ("byte " if not number else "") + count(SECTOR * sector)
            parts.append(label(at, top - 5, text, "lens-quiet lens-small"))
            free = at + 6.5 * len(text) + 10
        parts.append(box(at, top, 8 * cell, tall, "lens-fetched"))
        parts += [
            box(at + cell * a / 4, top, cell * (b - a) / 4, tall, "lens-needed") for a, b in _runs(touched[sector])
        ]
        if number and sector != sectors[number - 1] + 1:
            x, middle = at - _GAP / 2, top + tall / 2
            parts += [f'<circle cx="{x:g}" cy="{middle + d:g}" r="1.2" class="lens-quiet"/>' for d in (-8, 0, 8)]
    return parts


def _legend(x: float, y: float) -> str:
    entries = (("lens-used", "a lane's bytes"), ("lens-needed", "their columns"), ("lens-fetched", "fetched, not used"))
    drawn = []
    for number, (kind, words) in enumerate(entries):
        at = x + 110 * number
        drawn.append(box(at, y, 10, 10, kind) + label(at + 15, y + 9, words, "lens-quiet lens-small"))
    return "".join(drawn)


BANK_CELL, BANK_HIGH, BANK_LEFT = 20, 14, 76
"""Of a bank map: the width and the height of a cell, and where its first column begins."""


def bank_map(request: Request, title: str, array: str = "") -> str:
    """A column for each bank, a row for each 32 words; a cell shows the lanes that ask for the word.

    The bars below show the number of words of each bank; the tallest is the number of passes.
    """
    asked, half = _worst_pass(request)
    words: defaultdict[int, list[int]] = defaultdict(list)
    for lane, address in asked:
        for word in range(address // 4, (address + request.size - 1) // 4 + 1):
            words[word].append(lane)
    load: defaultdict[int, int] = defaultdict(int)
    for word in words:
        load[word % BANKS] += 1
    ways = max(load.values())
    rows = sorted({word // BANKS for word in words})
    drawn = rows[:MOST_ROWS]
    cell, high, left, top = BANK_CELL, BANK_HIGH, BANK_LEFT, 50
    right = left + cell * BANKS
    verdict = (
        "no conflict: no bank gives more than one word"
        if ways == 1
        else f"{ways}-way conflict: one bank must give {ways} words"
    )
    parts = [label(left, 13, verdict, "lens-ink lens-strong")]
    parts.append(label(left - 8, 44, "bank", "lens-quiet lens-small lens-end"))
    parts += [label(left + cell * (b + 0.5), 44, f"{b}", "lens-quiet lens-small lens-middle") for b in range(BANKS)]
    if half:
        parts.append(label(left, 28, half, "lens-quiet"))
    y, previous = top, None
    for number in drawn:
        if previous is not None and number != previous + 1:
            parts.append(f'<path d="M{left} {y + 3}H{right}" class="lens-rule" stroke-dasharray="2 4"/>')
            y += 6
        parts += _bank_row(number, words, load, y)
        y += high
        previous = number
    if len(rows) > len(drawn):
        parts.append(label(left, y + 14, f"and {plural(len(rows) - len(drawn), 'row')} more, not drawn", "lens-ink"))
        y += 20
    tall = 14 if ways == 1 else 44
    floor = y + 14 + tall
    parts.append(label(left - 8, floor, "words", "lens-ink lens-small lens-end"))
    for bank in range(BANKS):
        if load[bank]:
            bar = max(2.0, tall * load[bank] / ways)
            parts.append(
                box(left + cell * bank + 4, floor - bar, cell - 8, bar, "lens-hot" if load[bank] > 1 else "lens-used")
            )
            parts.append(
                label(left + cell * (bank + 0.5), floor + 12, f"{load[bank]}", "lens-ink lens-small lens-middle")
            )
    parts.append(f'<path d="M{left} {floor}H{right}" class="lens-rule"/>')
    busiest = min(bank for bank in load if load[bank] == ways)
    caption = (
        f"{plural(len(asked), 'lane')} ask for {plural(len(words), 'word')} in "
        f"{plural(sum(map(bool, load.values())), 'bank')}. "
        f"Bank {busiest} gives {plural(ways, 'word')}"
        + (f", so the request takes {ways} passes." if ways > 1 else ", so one pass is enough.")
    )
    return svg(right + 10, floor + 20, title, caption, parts)


def _bank_row(number: int, words: Mapping[int, list[int]], load: Mapping[int, int], y: float) -> list[str]:
    """Row `number` of a bank map, from y on: its 32 words, each with the lanes that ask for it.

    words: word -> its lanes; load: bank -> how many words it gives
    """
    cell, high, left = BANK_CELL, BANK_HIGH, BANK_LEFT
    parts = [label(left - 8, y + 11, f"word {count(BANKS * number)}", "lens-quiet lens-small lens-end")]
    parts.append(f'<rect x="{left}" y="{y}" width="{cell * BANKS}" height="{high}" class="lens-outline"/>')
    for bank in range(BANKS):
        lanes = words.get(BANKS * number + bank)
        if lanes:
            kind = "hot" if load[bank] > 1 else "used"
            says = f"{_lane_words(lanes)}: word {count(BANKS * number + bank)} in bank {bank}"
            shown = f"{lanes[0]}" if len(lanes) == 1 else f"{len(lanes)}x"
            parts.append(
                f"<g><title>{escape(says)}</title>"
                + box(left + cell * bank + 1, y + 1, cell - 2, high - 2, f"lens-{kind}")
            )
            parts.append(
                label(left + cell * (bank + 0.5), y + 11, shown, f"lens-on-{kind} lens-small lens-middle") + "</g>"
            )
    return parts


def _worst_pass(request: Request) -> tuple[list[tuple[int, int]], str]:
    """(lanes of the pass with the most conflicts, a sentence about them if they are not the whole warp)."""
    pairs = list(zip(request.lanes, request.addresses, strict=True))
    size = {8: 16, 16: 8}.get(request.size, BANKS)
    groups = [[(lane, at) for lane, at in pairs if start <= lane < start + size] for start in range(0, BANKS, size)]
    worst = max((group for group in groups if group), key=lambda group: _ways(group, request.size))
    if size == BANKS:
        return worst, ""
    first = worst[0][0] // size * size
    part = "half" if size == 16 else "quarter"
    return worst, f"{request.size}-byte elements go {part} warp by {part} warp; here lanes {first}-{first + size - 1}"


def _ways(group: list[tuple[int, int]], size: int) -> int:
    banks: defaultdict[int, set[int]] = defaultdict(set)
    for _, address in group:
        for word in range(address // 4, (address + size - 1) // 4 + 1):
            banks[word % BANKS].add(word)
    return max(len(words) for words in banks.values())


def _bytes_by_sector(request: Request) -> dict[int, set[int]]:
    """{sector: its bytes, 0 to 31, that a lane asks for}."""
    touched: defaultdict[int, set[int]] = defaultdict(set)
    for address in request.addresses:
        for byte in range(address, address + request.size):
            touched[byte // SECTOR].add(byte % SECTOR)
    return dict(touched)


def _runs(numbers: set[int]) -> list[tuple[int, int]]:
    """The runs of neighbouring numbers as (first, last + 1)."""
    runs: list[tuple[int, int]] = []
    for each in sorted(numbers):
        if runs and runs[-1][1] == each:
            runs[-1] = (runs[-1][0], each + 1)
        else:
            runs.append((each, each + 1))
    return runs


def _lane_words(who: list[int]) -> str:
    return f"{'lane' if len(who) == 1 else 'lanes'} {lanes(tuple(who))}"


__all__ = ["access_map", "bank_map", "timeline"]
