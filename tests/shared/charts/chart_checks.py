"""What must hold of every figure, whatever it shows: nothing cut off, no text over another, every text readable."""

from __future__ import annotations

from collections.abc import Iterator

from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from shared.charts.drawing.colours import PAPER, READABLE, contrast, on_dark
from shared.charts.drawing.style import SMALLEST, Chart
from shared.charts.drawing.words import NO_BREAK

TOUCHING = 1.0
"""Points by which two boxes may overlap: a box is higher than its letters."""


def shown(chart: Chart | None) -> Chart:
    """The chart, which was drawn."""
    assert chart is not None
    return chart


def said(text: str) -> str:
    """The text with ordinary blanks."""
    return text.replace(NO_BREAK, " ")


def texts_in(axes: Axes) -> list[str]:
    return [said(text.get_text()) for text in axes.texts]


def texts(figure: Figure) -> Iterator[Text]:
    """Every text that is drawn: titles, labels, ticks in view, annotations, legends."""
    found: list[Text | None] = [figure._suptitle, figure._supxlabel, figure._supylabel]  # type: ignore[attr-defined]
    for axes in figure.axes:
        if not axes.get_visible():
            continue
        found += [axes.title, axes._left_title, axes.xaxis.label, axes.yaxis.label, *axes.texts]  # type: ignore[attr-defined]
        for axis in (axes.xaxis, axes.yaxis):
            found += [tick.label1 for tick in axis._update_ticks()]  # type: ignore[attr-defined]
        legend = axes.get_legend()
        found += legend.get_texts() if legend else []
    yield from (text for text in found if text is not None and text.get_visible() and text.get_text().strip())


def settle(figure: Figure) -> None:
    """Lay the figure out, once."""
    if isinstance(figure.get_layout_engine(), ConstrainedLayoutEngine):
        figure.draw_without_rendering()
        figure.set_layout_engine("none")


def overlapping(figure: Figure) -> list[tuple[str, str]]:
    """Pairs of texts of which one lies over the other. Slanted ones are left out: their boxes are mostly empty."""
    settle(figure)
    margin = TOUCHING * figure.dpi / 72
    boxes = [(text.get_text(), Bbox(_box(text))) for text in texts(figure) if text.get_rotation() % 90 == 0]
    return [
        (one, other)
        for i, (one, a) in enumerate(boxes)
        for other, b in boxes[i + 1 :]
        if min(a.x1, b.x1) - max(a.x0, b.x0) > margin and min(a.y1, b.y1) - max(a.y0, b.y0) > margin
    ]


def cut_off(figure: Figure) -> list[str]:
    """Texts that reach over the figure's edge."""
    settle(figure)
    whole = figure.bbox
    return [
        text.get_text()
        for text in texts(figure)
        if (box := Bbox(_box(text))).x0 < whole.x0 or box.y0 < whole.y0 or box.x1 > whole.x1 or box.y1 > whole.y1
    ]


def unreadable(figure: Figure) -> list[tuple[str, str]]:
    """(text, colour) of those with too little contrast to the paper on a light or a dark screen, texts inside of bars
    aside."""
    found = [(text.get_text(), to_hex(text.get_color())) for text in texts(figure) if text.get_gid() != "inside"]
    return [
        (text, colour)
        for text, colour in found
        if min(contrast(colour, PAPER), contrast(on_dark(colour), on_dark(PAPER))) < READABLE
    ]


def too_small(figure: Figure) -> list[str]:
    """Texts that could not be read on a phone, whose screen shows a figure two thirds as large."""
    return [text.get_text() for text in texts(figure) if float(text.get_fontsize()) < SMALLEST]


def assert_sound(figure: Figure) -> None:
    """Nothing is cut off, lies over another, is too small or too pale."""
    assert (unreadable(figure), too_small(figure), cut_off(figure), overlapping(figure)) == ([], [], [], [])


def _box(text: Text) -> Bbox:
    """Of the letters alone, without an annotation's arrow or patch."""
    return Text.get_window_extent(text)
