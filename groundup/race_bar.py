"""The progress bar of a race: a line for each stage, on stderr, if that is a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from shared.contract import Stage
from shared.countdown import left
from shared.terminal import TextConsole

KERNELS = 7
"""How many kernels the emulator compiles the first time, for a stack of dense layers."""

REDRAW_EVERY = 0.2
"""Seconds between two drawings of the bar."""


class RaceBar:
    """A bar over all steps of each stage. steps: of one stage, in all epochs.

    kernels: how many the emulator compiles, if it has to; 0 where that is not known
    """

    def __init__(self, epochs: int, steps_per_epoch: int, kernels: int = KERNELS) -> None:
        console = TextConsole(stderr=True)
        columns = (
            TextColumn("{task.description:<24}"),
            BarColumn(),
            TextColumn("{task.fields[numbers]}"),
            TimeRemainingColumn(),
        )
        # auto_refresh would redraw the bar from another thread while a step is being timed.
        self._progress = Progress(
            *columns, console=console, disable=not console.is_terminal, transient=True, auto_refresh=False
        )
        self._epochs, self._steps_per_epoch, self._kernels = epochs, steps_per_epoch, kernels
        self._drawn_at = 0.0
        self._compiling = TaskID(0), 0, 0.0
        self.steps = epochs * steps_per_epoch

    def __enter__(self) -> RaceBar:
        self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._progress.stop()

    def steps_of(self, stage: Stage) -> Callable[[int, int, float], None]:
        """A new line for the stage. Returns the function that is called after each of its steps."""
        task = self._progress.add_task(stage.title, total=self.steps, numbers="gets ready")
        self._compiling = task, 0, time.monotonic()

        def advance(epoch: int, step: int, loss: float) -> None:
            done = (epoch - 1) * self._steps_per_epoch + step
            numbers = f"epoch {epoch}/{self._epochs} loss {loss:.3f}"
            self._progress.update(task, completed=done, numbers=numbers)
            if time.monotonic() - self._drawn_at > REDRAW_EVERY or done == self.steps:
                self._drawn_at = time.monotonic()
                self._progress.refresh()

        return advance

    def compiling(self, activity: str, done: int = 0, total: int = 0) -> None:
        """Told by the emulator what it compiles, before the first step of a stage: its first time takes longest."""
        if not activity.startswith("compiling"):
            return
        task, count, begin = self._compiling
        self._compiling = task, count + 1, begin
        numbers = f"{activity}, kernel {count + 1}"
        if count < self._kernels:
            numbers += f": {left(count / self._kernels, time.monotonic() - begin)}"
        self._progress.update(task, numbers=numbers)
        self._progress.refresh()

    def say(self, activity: str, how_long: str) -> None:
        """A new line for work of which no steps are counted."""
        self._progress.add_task(activity, total=None, numbers=how_long)
        self._progress.refresh()
