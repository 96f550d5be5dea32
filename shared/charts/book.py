"""All figures of one run, in reading order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from shared.bench.records.document import Results
from shared.charts.drawing.save import saved
from shared.charts.drawing.style import Chart
from shared.charts.figures.accuracy import accuracy_in_time
from shared.charts.figures.convolution_ladder import convolution_ladder_1, convolution_ladder_2, convolution_ladder_3
from shared.charts.figures.curves import training_curves
from shared.charts.figures.inference import inference
from shared.charts.figures.ladder_share import ladder_share
from shared.charts.figures.ladder_sizes import ladder_sizes
from shared.charts.figures.memory import memory
from shared.charts.figures.operations import operations
from shared.charts.figures.phases import phases
from shared.charts.figures.products_and_steps import products, steps
from shared.charts.figures.roofline import roofline
from shared.charts.figures.sizes import speed_against_size
from shared.charts.figures.staircase import staircase
from shared.charts.figures.step_parts import step_parts
from shared.terminal import attempt

FIGURES: tuple[Callable[..., Chart | None], ...] = (
    staircase,
    ladder_share,
    speed_against_size,
    ladder_sizes,
    roofline,
    products,
    convolution_ladder_1,
    convolution_ladder_2,
    convolution_ladder_3,
    operations,
    step_parts,
    steps,
    training_curves,
    accuracy_in_time,
    inference,
    memory,
    phases,
)


def draw(results: Results, *, emulated: bool = False) -> list[Chart]:
    """Every figure for which enough was measured.

    emulated: whether figures show the emulator's times, each marked as such. The training curves against epochs always
    show the emulator, because it learns exactly what a GPU would learn.
    """
    charts = []
    for figure in FIGURES:
        options = {} if figure is training_curves else {"emulated": emulated}
        chart = attempt(f"the figure {figure.__name__} was not drawn", partial(figure, results, **options))
        if chart is not None:
            charts.append(chart)
    return charts


def save_all(charts: Sequence[Chart], folder: Path) -> list[Chart]:
    """Write every figure into the folder as NAME.png, NAME.svg, NAME-dark.png and NAME-dark.svg; returns those that
    were written."""
    return [chart for chart in charts if saved(chart, folder / chart.name, dark=True)]
