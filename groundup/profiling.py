"""What `groundup profile` is to measure, on which stages and with which batch, and the run itself.

Settings    the options
choices     the stages that take part, each with its case, and the reasons for the others
run         measures them, each in a process of its own
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from groundup.stages import stages_for
from groundup.train import hidden_sizes
from shared.architectures import named
from shared.bench.kinds.steps import Case
from shared.bench.measuring import threads as thread_settings
from shared.bench.measuring.gpu import on_gpu
from shared.contract import Stage, is_emulated
from shared.data.datasets import SIDE
from shared.machine.hardware import usable_cores
from shared.machine.results import write_json
from shared.names import DTYPES
from shared.profile import worker
from shared.profile.document import Results, as_document
from shared.profile.measure import Effort
from shared.profile.roofs import Roofs
from shared.profile.step_profile import Profile
from shared.profile.trace import trace
from shared.terminal import TextConsole, attempt

CLASSES = 10
C_FLOOR = "stage3_c"
BATCH, MOST_BATCH = 64, 65_536
FIRST_FLOOR_BATCH = 1
"""Images of a step of a known network on stage 1, which may need seconds for each of them."""

FIRST_FLOOR_SPEED = 4e7
"""Operations a second of pure Python, about."""

PATIENCE = 10.0
"""Seconds of a step of stage 1 from which on it takes part only where it is named."""

A_DAY = 86_400.0
"""Seconds: no limit."""

REDRAW_EVERY = 0.2


@dataclass(frozen=True)
class Settings:
    """The options. model: a known network, or None for a stack of dense layers with these `hidden` sizes.

    batch: None for the usual one; repeat: rounds at most, None for as many as fit into a few seconds
    Raises ValueError for an impossible value.
    """

    model: str | None = None
    hidden: str | None = None
    batch: int | None = None
    dtype: str = "float32"
    threads: str = "all"
    repeat: int | None = None

    def __post_init__(self) -> None:
        if self.model is not None:
            named(self.model)  # refuses any other name
            if self.hidden is not None:
                raise ValueError(
                    f"--hidden is for a stack of dense layers; --model {self.model} has its own: choose one of them"
                )
        if self.batch is not None and not 1 <= self.batch <= MOST_BATCH:
            raise ValueError(f"batch: expected a whole number from 1 to {MOST_BATCH}, got {self.batch}")
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype: expected float32 or float64, got {self.dtype!r}")
        if self.repeat is not None and self.repeat < 1:
            raise ValueError(f"repeat: expected at least 1, got {self.repeat}")
        count = thread_settings.thread_count(self.threads)
        if count > usable_cores():
            raise ValueError(
                f"threads: {usable_cores()} cores can be used here, got {count}; more threads than cores wait for each "
                "other, and a share of their peak would say nothing"
            )
        self.layer_sizes()

    def layer_sizes(self) -> tuple[int, ...]:
        """The numbers of one image, the hidden layers of a stack, and the classes."""
        hidden = [] if self.model else hidden_sizes(self.hidden or "128")
        return (SIDE * SIDE, *hidden, CLASSES)

    def case(self, stage: Stage) -> Case:
        """The network and the batch on which a stage is measured."""
        first = stage.number == 1
        batch = self.batch or (FIRST_FLOOR_BATCH if first and self.model else BATCH)
        return Case(self.layer_sizes(), batch, "float64" if first else self.dtype, self.model or "")

    def effort(self) -> Effort:
        """The number of rounds."""
        return Effort() if self.repeat is None else Effort(self.repeat, A_DAY)


def choices(stages: str | None, settings: Settings) -> tuple[list[tuple[Stage, Case]], dict[str, str]]:
    """The stages that take part with their cases, and the reason for each of the others.

    stages: names or numbers with commas between; None for all that run here, but for emulated ones
    Raises ValueError for an unknown name or a chosen stage that cannot do it, StageUnavailable for one that cannot run.
    """
    found, unavailable = stages_for(stages)
    if stages is None:
        for stage in found:
            if stage.name in unavailable:
                continue
            seconds = settings.case(stage).flops / FIRST_FLOOR_SPEED if stage.number == 1 else 0.0
            if is_emulated(stage.name):
                reason = "its CUDA kernels are emulated here, which says nothing about a GPU"
            elif seconds > PATIENCE:
                reason = f"a step of this batch would take about {seconds:.0f} s there"
            else:
                continue
            unavailable[stage.name] = f"{stage.title}: {reason}; `groundup profile {stage.number}` profiles it anyway"
    return [(stage, settings.case(stage)) for stage in found if stage.name not in unavailable], unavailable


def run(
    chosen: Sequence[tuple[Stage, Case]], unavailable: Mapping[str, str], settings: Settings, command: str
) -> Results:
    """Measure the roofs, then every stage. Raises ChildProcessError where a process breaks down."""
    threads = thread_settings.thread_count(settings.threads)
    facts: dict[str, Any] = {}
    roofs: dict[str, Roofs] = {}
    profiles = []
    # Stage 3 has the loops that find a CPU's roofs, whichever stage is profiled; a GPU's are found by stage 4.
    measuring = {stage.name: stage.name if on_gpu(stage) else C_FLOOR for stage, _ in chosen}
    wanted = list(dict.fromkeys(measuring.values()))
    with _Bar(len(wanted) + len(chosen)) as bar:
        for name in wanted:
            bar.begin("the roofs of this machine")
            for message in worker.messages(worker.order_of_roofs(name, threads), threads):
                facts = _joined(facts, message.get("environment", {}))
                if "roofs" in message:
                    roofs[name] = Roofs.from_dict(message["roofs"])
        for stage, case in chosen:
            bar.begin(stage.title)
            order = worker.order_of_profile(stage.name, case, threads, roofs[measuring[stage.name]], settings.effort())
            for message in worker.messages(order, threads):
                facts = _joined(facts, message.get("environment", {}))
                bar.done(message.get("done", 1.0))
                if "profile" in message:
                    profiles.append(Profile.from_dict(message["profile"]))
    return Results(profiles, list(roofs.values()), _of_machine(facts, threads), command, unavailable)


def write(results: Results, folder: Path) -> list[Path]:
    """Write profile.json, trace.json and a chart for each stage; returns the paths. OSError where that cannot be; a
    chart that cannot be drawn costs a sentence."""
    paths = [write_json(folder / "profile.json", as_document(results))]
    paths.append(write_json(folder / "trace.json", trace(results.profiles)))
    from shared.charts.drawing.save import saved
    from shared.charts.figures.profile import profile_chart  # here, as groundup/cli.py says

    for each in results.profiles:
        what = f"the chart of {each.stage} was not drawn"
        if chart := attempt(what, partial(profile_chart, each, results.environment)):
            paths += saved(chart, folder / chart.name)
    return paths


def _of_machine(facts: Mapping[str, Any], threads: int) -> dict[str, Any]:
    """The facts with what only this process knows: the others are held to some of the cores, and see no others."""
    return {**facts, "cores": usable_cores(), "threads": threads, "pinned": thread_settings.cores_to_hold(threads)}


def _joined(facts: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of a process beside those of the ones before: what each knows of its own stage."""
    return {**more, **{name: value for name, value in facts.items() if value or name not in more}}


class _Bar:
    """A bar on standard error where that is a terminal. No thread draws it, which would disturb what is timed."""

    def __init__(self, parts: int) -> None:
        console = TextConsole(stderr=True)
        columns = TextColumn("{task.description}"), BarColumn(bar_width=24), TaskProgressColumn()
        self._progress = Progress(
            *columns, console=console, disable=not console.is_terminal, transient=True, auto_refresh=False
        )
        self._task = self._progress.add_task("starting", total=float(parts))
        self._begun, self._drawn_at = 0, 0.0

    def __enter__(self) -> _Bar:
        self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._progress.stop()

    def begin(self, activity: str) -> None:
        """Begin the next part of the bar."""
        self._progress.update(self._task, description=activity, completed=float(self._begun), refresh=True)
        self._begun += 1

    def done(self, share: float) -> None:
        """Move the bar. share: of the part that is done, from 0 to 1"""
        if time.monotonic() - self._drawn_at > REDRAW_EVERY:
            self._drawn_at = time.monotonic()
            self._progress.update(self._task, completed=self._begun - 1 + share, refresh=True)
