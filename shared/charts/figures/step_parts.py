"""Where the time of one training step goes: each stage's operations, one after the other, as shares of its whole step.

The stages are orders of magnitude apart, so the bars show shares, and the time itself stands beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, PercentFormatter

from shared.bench.measuring.rows import BenchRow
from shared.bench.records.document import Results
from shared.charts.drawing import contenders as who
from shared.charts.drawing.axes import column
from shared.charts.drawing.colours import DEEP_BLUE, GREEN, INK, ORANGE, PAPER, RULE, SKY, WHITE, YELLOW, mixed
from shared.charts.drawing.style import SMALL, Chart, house_style, new_figure, text_width
from shared.charts.drawing.words import NO_BREAK, capital, duration, share
from shared.contract import ACTIVATIONS, LOSSES

WHOLE = "whole step"
REST = "calls, allocation, the rest"
KINDS: dict[str, tuple[str, str | None]] = {
    "dense forward": (SKY, None),
    "dense backward": (DEEP_BLUE, None),
    "activation": (YELLOW, ".."),
    "loss": (ORANGE, "//"),
    "update": (GREEN, "xx"),
}
"""Kind of operation -> colour, and hatch for print in greys."""


def step_parts(results: Results, *, emulated: bool = False) -> Chart | None:
    """A bar for each stage, its pieces the operations of one step in their order, as shares of the measured whole.

    The whole is outlined. If the pieces together are shorter, the rest is the time between them: calls, allocations. If
    they are longer, an operation alone finds less in the caches than it does within a step.
    emulated: show the emulator's bar, too, named as such. Returns None if no whole step was measured with its parts.
    """
    bars = _bars(who.of_kind(results, "part", emulated=emulated))
    if not bars:
        return None
    shares = {stage: _shares(rows) for stage, rows in bars.items()}
    dense = {stage: _dense(pieces) for stage, pieces in shares.items()}
    shown = [row for rows in bars.values() for row in rows]
    own = [stage for stage, rows in bars.items() if not rows[0].emulated]
    if not own:
        return None
    title = f"{capital(who.name(own[-1]))} spends {share(dense[own[-1]])} of a step in its dense layers"
    if len(own) > 1:
        title += f", {who.name(own[0])} {share(dense[own[0]])}"
    longest = max(1.0, *(sum(part for _, _, part in pieces) for pieces in shares.values()))
    with house_style():
        height = 1.95 + 0.55 * len(bars)
        figure = new_figure(title, who.footer(results, shown=shown, kind="part"), height=height)
        axes = figure.subplots()
        for place, (stage, rows) in enumerate(bars.items()):
            start = 0.0
            for kind, part, width in shares[stage]:
                _piece(axes, place, start, width, kind, _short(part), longest)
                start += width
            whole = next(row for row in rows if row.part == WHOLE)
            axes.barh(place, 1.0, height=0.62, facecolor="none", edgecolor=INK, linewidth=1.3, zorder=4)
            column(axes, place, 54, duration(whole.seconds or 0.0), fontweight="bold")
        column(axes, -0.7, 54, "whole step")
        axes.set_yticks(range(len(bars)), [_name(rows[0]) for rows in bars.values()])
        axes.set_ylim(len(bars) - 0.5, -0.95)
        axes.set_xlim(0, longest * 1.005)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="y", visible=False)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2.5, 5, 10]))
        axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=f"{NO_BREAK}%"))
        some = shown[0]
        axes.set_xlabel(f"share of the whole step ({some.name})")
        _legend(axes, {kind for pieces in shares.values() for kind, _, _ in pieces})
    texts = []
    for stage, rows in bars.items():
        whole = next(row for row in rows if row.part == WHOLE)
        parts = ", ".join(f"{part} {share(width)}" for _, part, width in shares[stage])
        texts.append(f"{who.title(stage, emulated=rows[0].emulated)}, {duration(whole.seconds or 0.0)}: {parts}")
    return Chart(
        "step_parts",
        figure,
        title,
        f"Shares of one training step of {some.name}. {'. '.join(texts)}.",
        "Each bar is one training step from left to right, forward pass first; its pieces were measured alone, the "
        "outlined whole in one go. What is left empty inside the outline is what lies between the operations: calls, "
        "allocation and the rest. Pieces beyond the outline took longer alone than within the step.",
    )


def kind_of(part: str) -> str:
    """The key of KINDS for a part: 'dense 1 forward' -> 'dense forward', 'relu backward' -> 'activation'."""
    first = part.split(" ")[0]
    if first == "dense":
        return "dense backward" if "backward" in part else "dense forward"
    if first in LOSSES or "entropy" in part or "loss" in part:
        return "loss"
    return "activation" if first in ACTIVATIONS else "update"


def _bars(rows: Sequence[BenchRow]) -> dict[str, list[BenchRow]]:
    """Stage -> the parts of its step with the whole, of the case that most stages have; of two dtypes float32."""
    cases: dict[str, dict[str, dict[str, list[BenchRow]]]] = {}
    for row in rows:
        cases.setdefault(row.name, {}).setdefault(row.stage, {}).setdefault(row.dtype, []).append(row)
    found = []
    for stages in cases.values():
        bars: dict[str, list[BenchRow]] = {}
        for stage in who.ordered(stages):
            whole = {d: parts for d, parts in stages[stage].items() if any(row.part == WHOLE for row in parts)}
            whole = {dtype: parts for dtype, parts in whole.items() if len(parts) > 1}
            if whole:
                bars[stage] = whole[min(whole)]  # "float32" comes before "float64"
        found.append(bars)
    return max(found, key=len, default={})


def _shares(rows: Sequence[BenchRow]) -> list[tuple[str, str, float]]:
    """(kind, part, share of the whole) in the order of the step, what remains last."""
    whole = next(row.seconds or 0.0 for row in rows if row.part == WHOLE)
    pieces = [(kind_of(row.part), row.part, (row.seconds or 0.0) / whole) for row in rows if row.part != WHOLE]
    rest = 1 - sum(part for _, _, part in pieces)
    return [*pieces, (REST, REST, rest)] if rest > 0.002 else pieces


def _dense(pieces: Sequence[tuple[str, str, float]]) -> float:
    """The dense layers' share of the whole, or of all pieces where those took longer alone."""
    total = sum(part for _, _, part in pieces)
    return sum(part for kind, _, part in pieces if kind.startswith("dense")) / max(1.0, total)


def _piece(axes: Axes, place: int, start: float, width: float, kind: str, text: str, longest: float) -> None:
    colour, hatch = KINDS.get(kind, (PAPER, None))
    axes.barh(
        place, width, left=start, height=0.62, color=colour, hatch=hatch, edgecolor=_edge(colour), linewidth=0.0,
        zorder=2,
    )  # fmt: skip
    axes.plot([start + width] * 2, [place - 0.31, place + 0.31], color=PAPER, linewidth=1.0, zorder=3)
    inches = width / longest * 3.1
    across = start < 1 < start + width  # the whole's outline lies over the middle
    if kind != REST and hatch is None and not across and text_width(text, SMALL) + 0.08 < inches:
        dark = "#000000" if kind == "dense forward" else WHITE
        # Its contrast is with the bar and not with the paper, which the gid tells the tests.
        at = start + width / 2, place
        axes.text(*at, text, ha="center", va="center", fontsize=SMALL, color=dark, zorder=5, gid="inside")


def _edge(colour: str) -> str:
    """Colour of the hatch: a darker shade of the piece's own colour."""
    return mixed(colour, "#000000", 0.45) if colour != PAPER else RULE


def _legend(axes: Axes, kinds: set[str]) -> None:
    entries: list[Any] = []
    for kind, (colour, hatch) in KINDS.items():
        if kind in kinds:
            entries.append(Patch(facecolor=colour, hatch=hatch, edgecolor=_edge(colour), linewidth=0, label=kind))
    if REST in kinds:
        entries.append(Patch(facecolor=PAPER, edgecolor=INK, linewidth=1.0, label=REST))
    axes.legend(
        handles=entries, loc="lower left", bbox_to_anchor=(-0.2, 1.0),
        ncols=3, handlelength=1.3, handletextpad=0.5, columnspacing=1.2,
    )  # fmt: skip


def _short(part: str) -> str:
    """'dense 1 forward' -> 'dense 1': the colour says the rest."""
    return " ".join(part.split(" ")[:2]) if part.startswith("dense") else part


def _name(row: BenchRow) -> str:
    name = who.title(row.stage).replace(": ", ":\n")
    return f"{name},\nemulated" if row.emulated else name
