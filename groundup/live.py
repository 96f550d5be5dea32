"""A live view of training in the terminal: is it learning, how fast, and does every layer take part?

    sparkline         a series of numbers as one line of blocks
    gradient_ratios   how large each layer's gradient is beside its weights
    watching          the hooks that `training.train` takes, with the view behind them
    LiveView          what is drawn, and when

The loss comes from the steps themselves and costs next to nothing. The gradients and the dead units are measured on a
small part of the training data that never changes, so that they can be compared over time; that is done so seldom that
it takes a fiftieth of the time at most. The view is drawn four times a second. None of it changes what is learnt.
"""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.text import Text

from groundup.inside import dead_units, hidden_activations, host_parameters
from shared.contract import NetworkLike, Stage
from shared.data.batches import BatchFeeder
from shared.data.datasets import Split
from shared.training.metrics import EpochRecord

BLOCKS = "▁▂▃▄▅▆▇█"
GAP = " "
"""Where a sparkline has no number to show."""

WIDTH, RATIOS = 40, 16
"""The most characters of the sparklines: of loss and accuracy; of the gradients' ratios, one for each measurement."""
BESIDE = 52
"""Characters of what stands beside the sparkline of the loss."""
REFRESH = 0.25
"""Seconds between two drawings, and at least between two measurements."""
SHARE = 1 / 50
"""The most of the training's time that measuring may take."""
RATE_WINDOW = 20
"""Over so many drawings the steps per second are taken."""
SAMPLES, GRADIENT_SAMPLES = 256, 64
"""Of the training data, always the first ones: for the dead units, and for the gradients, which cost more."""


def sparkline(values: Sequence[float], width: int) -> str:
    """The values from left to right as block characters, the smallest as ▁ and the largest as █.

    width: the most characters. More values than that are averaged in `width` neighbouring groups, of which no two
    differ by more than one value; fewer give one character each. With low and high the least and the largest of what
    is shown, a value v is block number round(7 (v - low) / (high - low)).
    NaN and infinite values are left out of the averages; where that leaves nothing, there is a space. A series that is
    constant is a line of ▁. Raises ValueError for a width below 1.
    """
    if width < 1:
        raise ValueError(f"sparkline: width: expected at least 1, got {width}")
    if not len(values):
        return ""
    groups = np.array_split(np.asarray(values, np.float64), min(width, len(values)))
    finite = [group[np.isfinite(group)] for group in groups]
    means = [float(np.mean(group)) if len(group) else math.nan for group in finite]
    known = [mean for mean in means if math.isfinite(mean)]
    low, high = min(known, default=0.0), max(known, default=0.0)
    heights = [(mean - low) / (high - low) if high > low else 0.0 for mean in means]
    pairs = zip(means, heights, strict=True)
    return "".join(BLOCKS[round(7 * height)] if math.isfinite(mean) else GAP for mean, height in pairs)


def gradient_ratios(parameters: Sequence[np.ndarray], gradients: Sequence[np.ndarray]) -> list[float]:
    """How large each layer's gradient is beside its weights: ‖dL/dW‖ / ‖W‖, one number a layer, the first layer first.

    parameters, gradients: [W1, b1, W2, b2, …] and the gradients in the same order; the biases, which may well be 0,
    are left out. ‖·‖ is the square root of the sum of all squares. Times the learning rate it is the share by which a
    step of plain SGD changes the weights. inf where the weights are all 0 and the gradient is not, 0 where both are.
    Raises ValueError where the two lists differ in length or shapes.
    """
    if [np.shape(p) for p in parameters] != [np.shape(g) for g in gradients]:
        raise ValueError(
            f"gradient_ratios: expected a gradient shaped like each parameter, got {[np.shape(g) for g in gradients]} "
            f"for {[np.shape(p) for p in parameters]}"
        )
    ratios = []
    for weights, gradient in zip(parameters[::2], gradients[::2], strict=True):
        size, beside = float(np.linalg.norm(gradient)), float(np.linalg.norm(weights))
        ratios.append(size / beside if beside else math.inf if size else 0.0)
    return ratios


def can_show(console: Console) -> bool:
    """Whether the console is a terminal in which lines can be drawn over, and which knows the blocks."""
    return console.file.isatty() and console.is_interactive and not console.options.ascii_only


@contextmanager
def watching(
    stage: Stage,
    network: NetworkLike,
    data: Split,
    *,
    epochs: int,
    batch_size: int,
    validation: float,
    on_start: Callable[[], None],
    on_epoch: Callable[[EpochRecord], None],
    console: Console | None = None,
) -> Iterator[dict[str, Any]]:
    """Within this block `training.train(…, **hooks)` is watched live; hooks is what the block is given.

    data: all of the training data; epochs, batch_size, validation: as training.train takes them
    on_start, on_epoch: the ordinary lines. They stand above the view, and are all there is where stdout is no terminal.
    console: None for stdout
    """
    console = console or Console()
    if not can_show(console):
        yield {"on_start": on_start, "on_epoch": on_epoch}
        return
    view = LiveView(stage, network, data, epochs, batch_size, validation, console)

    def start() -> None:
        on_start()
        view.start()

    def epoch(record: EpochRecord) -> None:
        on_epoch(record)
        view.epoch(record)

    try:
        yield {"on_start": start, "on_epoch": epoch, "on_batch": view.step, "progress_bar": False}
        view.finish()
    finally:
        view.stop()


class LiveView:
    """The state of the view: the losses and records so far, and the last measurement.

    now: the clock, in seconds; tests have their own
    """

    def __init__(
        self,
        stage: Stage,
        network: NetworkLike,
        data: Split,
        epochs: int,
        batch_size: int,
        validation: float,
        console: Console,
        now: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._stage, self._network, self._data = stage, network, data
        self._epochs, self._batch_size, self._validation = epochs, batch_size, validation
        self._now = now
        # Drawn by hand, between two steps: a thread that draws would take turns with the training.
        self._live = Live(console=console, auto_refresh=False, redirect_stderr=sys.stderr.isatty())
        self._losses: deque[float] = deque()
        self._records: list[EpochRecord] = []
        self._at: deque[tuple[float, int]] = deque(maxlen=RATE_WINDOW)
        self._ratios: list[list[float]] = []  # of each measurement
        self._dead: list[float] = []
        self._next_draw = self._next_measurement = -math.inf
        self._done = self._steps_per_epoch = 0

    def start(self) -> None:
        """Make ready; drawing begins with the first step. The arguments of the training are known to be good by now."""
        samples = len(self._data) - round(len(self._data) * self._validation)
        self._steps_per_epoch = math.ceil(samples / self._batch_size)
        self._losses = deque(maxlen=max(self._steps_per_epoch, WIDTH))
        some = min(GRADIENT_SAMPLES, len(self._data))
        feeder = BatchFeeder(self._stage, self._network, self._data, some)
        self._x, self._y = feeder.batch(np.arange(some))

    def finish(self) -> None:
        """All went well: let the last view show how it ended."""
        if self._live.is_started:
            self.measure()
            self._at.append((self._now(), self._done))

    def stop(self) -> None:
        """Draw a last time and give the terminal back. Does nothing where the view never began."""
        if self._live.is_started:
            self._draw()
            self._live.stop()

    def step(self, epoch: int, step: int, loss: float) -> None:
        """A step is over; epoch and step count from 1. Most calls only note the loss."""
        self._losses.append(loss)
        self._done = (epoch - 1) * self._steps_per_epoch + step
        now = self._now()
        if now < self._next_draw:
            return
        if now >= self._next_measurement:
            self.measure()
            spent = self._now() - now
            self._next_measurement = now + max(REFRESH, spent / SHARE)
        self._at.append((now, self._done))
        self._draw()
        self._next_draw = self._now() + REFRESH

    def epoch(self, record: EpochRecord) -> None:
        """An epoch is over and measured."""
        self._records.append(record)

    def measure(self) -> None:
        """Take each layer's gradient ratio and share of dead units as they are now."""
        parameters = host_parameters(self._stage, self._network)
        gradients = [self._stage.arrays.to_host(each) for each in self._network.gradients(self._x, self._y)]
        self._ratios.append(gradient_ratios(parameters, [np.asarray(each) for each in gradients]))
        if self._network.activation == "relu":  # no other activation makes an exact 0 of anything
            outputs = hidden_activations(parameters, "relu", self._data.x[:SAMPLES])
            self._dead = [dead_units(each) for each in outputs]

    def steps_per_second(self) -> float | None:
        """Over the last drawings, evaluations and all; None before there were two."""
        (first, done_first), (last, done_last) = (self._at[0], self._at[-1]) if self._at else ((0.0, 0), (0.0, 0))
        return (done_last - done_first) / (last - first) if last > first else None

    def view(self) -> Text:
        """What is drawn: lines of text, because laying out a table would cost more than what it shows."""
        lines = [self._progress(), *self._curves(), *self._layers()]
        return Text("\n", no_wrap=True, overflow="crop").join(lines)

    def _draw(self) -> None:
        if not self._live.is_started:
            self._live.start()
        self._live.update(self.view(), refresh=True)

    def _width(self) -> int:
        """Characters of the sparklines on a terminal as wide as this one is now."""
        return max(1, min(WIDTH, self._live.console.width - BESIDE))

    def _progress(self) -> Text:
        total, width = self._epochs * self._steps_per_epoch, max(4, self._width() - 16)
        running = min(self._epochs, self._done // self._steps_per_epoch + 1)
        filled = width * self._done // total
        text = f"  step {self._done:,} of {total:,}"
        rate = self.steps_per_second()
        if rate:
            text += f"  {rate:,.0f} steps/s" if rate >= 10 else f"  {rate:.1f} steps/s"
            text += f"  {clock((total - self._done) / rate)} left" if self._done < total else ""
        bar = ("━" * filled, "cyan"), ("─" * (width - filled), "dim")
        return Text.assemble(f"epoch {running}/{self._epochs}  ", *bar, text)

    def _curves(self) -> Iterator[Text]:
        width = self._width()

        def line(name: str, number: str, values: Sequence[float], colour: str, note: str) -> Text:
            curve = (f"{sparkline(values, width):{width}}", colour)
            return Text.assemble(f"{name:21}{number:11}", curve, (f"  {note}", "dim"))

        losses = list(self._losses)
        yield line("loss", f"{np.mean(losses[-WIDTH:]):.4f}", losses, "cyan", f"the last {len(losses):,} steps")
        for part in ("train", "validation", "test"):
            known = [getattr(record, f"{part}_accuracy") for record in self._records]
            if known and known[-1] is not None:
                yield line(f"{part} accuracy", f"{100 * known[-1]:.2f} %", known, "green", "after each epoch")

    def _layers(self) -> Iterator[Text]:
        sizes = [f"{inputs} x {outputs}" for inputs, outputs in pairwise(self._network.layer_sizes)]
        wide = max(len("weights"), *map(len, sizes)) + 2
        yield Text(f"{'layer':7}{'weights':{wide}}{'gradient / weights':{RATIOS + 11}}dead units", "dim")
        for i, ratios in enumerate(zip(*self._ratios, strict=True)):
            curve = (f"{sparkline(ratios[-RATIOS:], RATIOS):{RATIOS + 2}}", "cyan")
            dead = f"{100 * self._dead[i]:.1f} %" if i < len(self._dead) else "-"
            yield Text.assemble(f"{i + 1:<7}{sizes[i]:{wide}}{ratios[-1]:<9.1e}", curve, dead)


def clock(seconds: float) -> str:
    """A time as minutes and seconds, 3:07, or hours as well, 1:00:42."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
