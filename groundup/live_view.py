"""A live view of training in the terminal: the progress, the curves, and the gradients of every layer.

    watching    the hooks of a training, with the view behind them
    LiveView    what the view shows, and when it is drawn

The losses come from the steps themselves and cost next to nothing. The gradients and the dead units are measured on a
small part of the training data, always the same one, so that they can be compared over time. They are measured so
seldom that they take a fiftieth of the time at most. The view is drawn four times a second. It changes no number of the
training.
"""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.text import Text

from groundup.inside import dead_units, hidden_activations, host_parameters
from groundup.live import dead_shares, gradient_ratios, sparkline
from shared.communicator import ALONE, Communicator
from shared.contract import NetworkLike, Stage
from shared.data.batches import BatchFeeder
from shared.data.datasets import Split
from shared.layers import times
from shared.terminal import TextConsole
from shared.training.metrics import EpochRecord
from shared.training.settings import Hooks, TrainingSettings

WIDTH, RATIOS = 40, 16
"""The largest number of characters of a sparkline: of losses and accuracies; of gradient ratios, one a measurement."""
BESIDE = 52
"""Characters beside the sparkline of the loss."""
REFRESH = 0.25
"""Seconds between two drawings, and the least time between two measurements."""
SHARE = 1 / 50
"""The largest share of the training's time that measuring may take."""
RATE_WINDOW = 20
"""Number of drawings over which the steps per second are averaged."""
SAMPLES, GRADIENT_SAMPLES = 256, 64
"""Number of training samples, always the first ones: for the dead units; for the gradients, which cost more."""


def can_show(console: Console) -> bool:
    """Whether the console is a terminal that can draw over its lines and has the characters of a sparkline."""
    return console.file.isatty() and console.is_interactive and not console.options.ascii_only


@contextmanager
def watching(
    stage: Stage,
    network: NetworkLike,
    data: Split,
    settings: TrainingSettings,
    hooks: Hooks,
    console: Console | None = None,
    ranks: Communicator = ALONE,
) -> Iterator[Hooks]:
    """The hooks for a training to be watched live within this block.

    data: all of the training data
    hooks: what the training would call without a view. The lines that on_start and on_epoch print stand above the view.
    console: None for stdout. If it cannot show the view, the block gets `hooks` as they are.
    ranks: the processes that train together, of which this one is the first
    """
    console = console or TextConsole()
    if not can_show(console):
        yield hooks
        return
    view = LiveView(stage, network, data, settings, console, ranks=ranks)

    def start() -> None:
        if hooks.on_start is not None:
            hooks.on_start()
        view.start()

    def epoch(record: EpochRecord) -> None:
        if hooks.on_epoch is not None:
            hooks.on_epoch(record)
        view.epoch(record)

    try:
        yield replace(hooks, on_start=start, on_epoch=epoch, on_batch=view.step, progress_bar=False)
        view.finish()
    finally:
        view.stop()


class LiveView:
    """The state of the view: all losses and records until now, and the last measurement.

    now: the clock, in seconds; tests have their own
    """

    def __init__(
        self,
        stage: Stage,
        network: NetworkLike,
        data: Split,
        settings: TrainingSettings,
        console: Console,
        now: Callable[[], float] = time.perf_counter,
        ranks: Communicator = ALONE,
    ) -> None:
        self._ranks, self._began = ranks, now()
        self._stage, self._network, self._data, self._settings = stage, network, data, settings
        self._now = now
        self._is_stack = network.architecture.as_mlp() is not None
        # The parameters come in pairs, weights and bias or gamma and beta; those of batch normalisation are not shown.
        first_of_pairs = network.architecture.parameters()[::2]
        self._shown = {i: parameter for i, parameter in enumerate(first_of_pairs) if parameter.fan_in}
        # The view is drawn between two steps: a thread that draws it would take time from the training.
        self._live = Live(console=console, auto_refresh=False, redirect_stderr=sys.stderr.isatty())
        self._losses: deque[float] = deque()
        self._records: list[EpochRecord] = []
        self._drawn: deque[tuple[float, int]] = deque(maxlen=RATE_WINDOW)  # (time, steps done) of each drawing
        self._ratios: list[list[float]] = []  # of each measurement
        self._dead: dict[str, float] = {}  # by the number of the layer
        self._next_draw = self._next_measurement = -math.inf
        self._done = self._steps_per_epoch = 0

    def start(self) -> None:
        """Prepare the view before the first step, which draws it for the first time."""
        samples = len(self._data) - round(len(self._data) * self._settings.validation)
        self._steps_per_epoch = math.ceil(samples / self._settings.batch_size)
        self._losses = deque(maxlen=max(self._steps_per_epoch, WIDTH))
        some = min(GRADIENT_SAMPLES, len(self._data))
        feeder = BatchFeeder(self._stage, self._network, self._data, some)
        self._x, self._y = feeder.batch(np.arange(some))

    def finish(self) -> None:
        """Measure once more after the last step of a training that ended without an error."""
        if self._live.is_started:
            self.measure()
            self._drawn.append((self._now(), self._done))

    def stop(self) -> None:
        """Draw a last time and give the terminal back. Does nothing if no step was taken."""
        if self._live.is_started:
            self._draw()
            self._live.stop()

    def step(self, epoch: int, step: int, loss: float) -> None:
        """Record the loss of a step, and measure and draw if it is time to. epoch, step: counted from 1."""
        self._losses.append(loss)
        self._done = (epoch - 1) * self._steps_per_epoch + step
        now = self._now()
        if now < self._next_draw:
            return
        if now >= self._next_measurement:
            self.measure()
            spent = self._now() - now
            self._next_measurement = now + max(REFRESH, spent / SHARE)
        self._drawn.append((now, self._done))
        self._draw()
        self._next_draw = self._now() + REFRESH

    def epoch(self, record: EpochRecord) -> None:
        """Record the measurements of a finished epoch."""
        self._records.append(record)

    def measure(self) -> None:
        """Measure the gradient ratio of each layer and the share of dead units of each hidden layer."""
        parameters = host_parameters(self._stage, self._network)
        gradients = [self._stage.arrays.to_host(each) for each in self._network.gradients(self._x, self._y)]
        ratios = gradient_ratios(parameters, [np.asarray(each) for each in gradients])
        self._ratios.append([ratios[i] for i in self._shown])
        if not self._is_stack:
            layers = self._network.outputs(self._x)
            outputs = [np.asarray(self._stage.arrays.to_host(each)) for each in layers]
            self._dead = dead_shares(self._network.architecture, outputs)
        elif self._network.activation == "relu":  # no other activation gives exactly 0 for other inputs than 0
            hidden = hidden_activations(parameters, "relu", self._data.x[:SAMPLES])
            self._dead = {str(i): dead_units(each) for i, each in enumerate(hidden, start=1)}

    def steps_per_second(self) -> float | None:
        """Steps per second between the last RATE_WINDOW drawings, evaluations included; None before the second one."""
        if len(self._drawn) < 2:
            return None
        (first, done_first), (last, done_last) = self._drawn[0], self._drawn[-1]
        return (done_last - done_first) / (last - first) if last > first else None

    def view(self) -> Text:
        """The text of the view. It is not a rich table, because laying one out takes too long."""
        lines = [self._progress(), *self._curves(), *self._layers()]
        return Text("\n", no_wrap=True, overflow="crop").join(lines)

    def _draw(self) -> None:
        if not self._live.is_started:
            self._live.start()
        self._live.update(self.view(), refresh=True)

    def _width(self) -> int:
        """Number of characters of the sparklines at the current width of the terminal."""
        return max(1, min(WIDTH, self._live.console.width - BESIDE))

    def _progress(self) -> Text:
        total, width = self._settings.epochs * self._steps_per_epoch, max(4, self._width() - 16)
        running = min(self._settings.epochs, self._done // self._steps_per_epoch + 1)
        filled = width * self._done // total
        text = f"  step {self._done:,} of {total:,}"
        rate = self.steps_per_second()
        if rate:
            text += f"  {rate:,.0f} steps/s" if rate >= 10 else f"  {rate:.1f} steps/s"
            text += f"  {clock((total - self._done) / rate)} left" if self._done < total else ""
        bar = ("━" * filled, "cyan"), ("─" * (width - filled), "dim")
        return Text.assemble(f"epoch {running}/{self._settings.epochs}  ", *bar, text)

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

        if self._ranks.size > 1 and self._drawn:
            share = self._ranks.seconds / max(self._drawn[-1][0] - self._began, 1e-9)
            yield Text.assemble(
                f"{'communication':21}{100 * share:.1f} %", (f"  of the time, {self._ranks.size} ranks", "dim")
            )

    def _layers(self) -> Iterator[Text]:
        # Of a stack, the dense layers are counted; of any other architecture, all layers, as its drawing does.
        numbers = [str(i) for i in range(1, len(self._shown) + 1)]
        if not self._is_stack:
            numbers = [each.name.split(",")[0].removeprefix("layer ") for each in self._shown.values()]
        sizes = [times(each.shape) for each in self._shown.values()]
        wide = max(len("weights"), *map(len, sizes)) + 2
        yield Text(f"{'layer':7}{'weights':{wide}}{'gradient / weights':{RATIOS + 11}}dead units", "dim")
        for i, ratios in enumerate(zip(*self._ratios, strict=True)):
            number = numbers[i]
            curve = (f"{sparkline(ratios[-RATIOS:], RATIOS):{RATIOS + 2}}", "cyan")
            dead = f"{100 * self._dead[number]:.1f} %" if number in self._dead else "-"
            yield Text.assemble(f"{number:<7}{sizes[i]:{wide}}{ratios[-1]:<9.1e}", curve, dead)


def clock(seconds: float) -> str:
    """A time as minutes and seconds, 3:07, or hours as well, 1:00:42."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
