"""The progress of a run in the terminal: a bar over all jobs of all passes, and the guessing game.

The waiting process draws the bar whenever the measuring process has written a line. No thread draws it: a redraw in the
middle of a sample would be timed as part of the sample.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from shared.bench.measuring.rows import BenchRow, Curve
from shared.bench.running import predict
from shared.bench.running.plan import Job, Plan, jobs
from shared.bench.running.session import Watcher
from shared.terminal import TextConsole

REDRAW_EVERY = 0.2
"""Seconds between two drawings of the bar."""


def expected_seconds(plan: Plan) -> float:
    """About how long a run of this plan takes on two cores."""
    return sum(job.seconds * (1 if job.once else plan.passes) for job in jobs(plan))


class Bar(Watcher):
    """A bar on standard error where that is a terminal. Use it as a context."""

    def __init__(self, plan: Plan, console: Console | None = None) -> None:
        self.plan = plan
        self.console = console or TextConsole(stderr=True)
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[last]}", style="dim"),
            console=self.console,
            disable=not self.console.is_terminal,
            transient=True,
            auto_refresh=False,
        )
        self.task = self.progress.add_task("starting", total=expected_seconds(plan), last="")
        self.drawn_at = 0.0

    def __enter__(self) -> Bar:
        self.progress.start()
        self.progress.refresh()
        return self

    def __exit__(self, *exception: object) -> None:
        self.progress.stop()

    def begin(self, job: Job, number: int) -> None:
        self.progress.update(
            self.task, description=f"pass {number} of {self.plan.passes}: {job.title}", last="", refresh=True
        )

    def found(self, thing: BenchRow | Curve) -> None:
        if time.monotonic() - self.drawn_at > REDRAW_EVERY:
            self.drawn_at = time.monotonic()
            last = f"{thing.contender}, {thing.name}" if isinstance(thing, BenchRow) else ""
            self.progress.update(self.task, last=last, refresh=True)

    def finish(self, job: Job) -> None:
        self.progress.update(self.task, advance=job.seconds, refresh=True)


class Guessing(Bar):
    """A bar with questions; the bar is hidden while the learner thinks. ask: returns a line that was typed.

    Everything is said on standard error: standard output may be waiting for JSON.
    """

    def __init__(self, plan: Plan, ask: Callable[[], str] = input, console: Console | None = None) -> None:
        super().__init__(plan, console)
        self.ask: Callable[[], str] | None = ask

    def guess(self, question: predict.Question) -> float | None:
        self.progress.stop()
        self._say(question.text)
        while self.ask is not None:
            try:
                self._say("  your guess (a factor; Enter for none): ", end="")
                found = predict.parse(self.ask())
            except EOFError:  # nobody is there who could type
                self.ask = None
                self._say("  no more guesses: the input has ended")
                break
            except ValueError as error:
                self._say(f"  {error}")
                continue
            self.progress.start()
            return found
        self.progress.start()
        return None

    def answer(self, question: predict.Question, guess: float | None, measured: float | None) -> None:
        self.progress.stop()
        self._say(f"{question.text}\n  {predict.verdict(guess, measured)}\n")
        self.progress.start()

    def _say(self, text: str, **style: Any) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True, **style)
