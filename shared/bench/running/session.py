"""All passes, one process after the other, and their merged results, which are shown and saved as they arrive.

After every job the results so far are handed to `keep`, which writes them down. So an interrupt, a crash or a power
cut costs no more than the job that was running, and a pass that was cut short still counts as far as it got.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from shared.bench.measuring import children, threads
from shared.bench.measuring.rows import BenchRow, Curve
from shared.bench.records.document import Results
from shared.bench.running import worker
from shared.bench.running.passes import merge
from shared.bench.running.plan import Job, Plan, jobs
from shared.bench.running.predict import Question, questions
from shared.machine.environment import environment
from shared.machine.hardware import usable_cores

Messages = Iterator[dict[str, Any]]
Start = Callable[[Plan, int, Sequence[int]], Messages]
"""Takes a plan, the number of a pass and the jobs to do in it; gives what `worker.messages` gives."""

CODE = "from shared.bench.running.worker import main; main()"


class Watcher:
    """Observer of a run; the base class ignores every event. `groundup bench` draws a bar and asks for guesses."""

    def begin(self, job: Job, number: int) -> None:
        """A job of pass `number` is about to start."""

    def found(self, thing: BenchRow | Curve) -> None:
        """A row or a curve was measured."""

    def finish(self, job: Job) -> None:
        """The job is done."""

    def guess(self, question: Question) -> float | None:
        """The learner's guess, before the measurement; None for none."""
        return None

    def answer(self, question: Question, guess: float | None, measured: float | None) -> None:
        """The guess beside what was measured; None where this machine could not measure it."""


@dataclass
class Session:
    """A run: its results so far, and the passes still to do. keep: called with the results after every job."""

    plan: Plan
    keep: Callable[[Results], object]
    watcher: Watcher = field(default_factory=Watcher)
    command: str = ""
    start: Start = field(default_factory=lambda: start_process)
    environment: dict[str, Any] = field(init=False)
    unavailable: dict[str, str] = field(default_factory=dict)
    rows: list[BenchRow] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)
    predictions: list[dict[str, Any]] = field(default_factory=list)
    passes_done: int = 0
    complete: bool = False

    def __post_init__(self) -> None:
        self.environment = self._facts(environment() | {"pytorch": None})

    def run(self, *, predict: bool = False) -> Results:
        """Measure everything; the results, also after a KeyboardInterrupt, then marked as not complete.

        predict: job after job, with the learner's guess before each, instead of pass after pass.
        Raises ChildProcessError where a pass broke down; what was found until then has been kept.
        """
        with threads.one_interrupt():
            try:
                self._job_by_job() if predict else self._pass_by_pass()
                self.complete = True
            except KeyboardInterrupt:
                pass
            finally:
                self.keep(self.results())
        return self.results()

    def results(self) -> Results:
        """The results so far."""
        return Results(
            rows=merge(self.rows),
            curves=list(self.curves),
            environment=dict(self.environment),
            complete=self.complete,
            quick=self.plan.quick,
            passes=self.passes_done,
            unavailable=dict(self.unavailable),
            predictions=tuple(self.predictions),
            command=self.command,
        )

    def _pass_by_pass(self) -> None:
        every = jobs(self.plan)
        for number in range(1, self.plan.passes + 1):
            self._pass(number, [i for i, job in enumerate(every) if number == 1 or not job.once])
            self.passes_done = number

    def _job_by_job(self) -> None:
        every = jobs(self.plan)
        for i, job in enumerate(every):
            asked = [(question, self.watcher.guess(question)) for question in questions(job.title)]
            for number in range(1, (1 if job.once else self.plan.passes) + 1):
                self._pass(number, [i])
            merged = merge(self.rows)
            for question, guess in asked:
                measured = question.measured(merged)
                self.watcher.answer(question, guess, measured)
                self.predictions.append(
                    {"question": question.text, "unit": question.unit, "guess": guess, "measured": measured}
                )
        self.passes_done = self.plan.passes

    def _pass(self, number: int, numbers: Sequence[int]) -> None:
        every = jobs(self.plan)
        waiting = list(numbers)
        if waiting:
            self.watcher.begin(every[waiting[0]], number)
        for message in self.start(self.plan, number, numbers):
            if "environment" in message and not self.rows:
                # What its libraries say of themselves is known where they are loaded; this process has measured
                # nothing, and knows best how busy the machine was before.
                load = self.environment["load_average"]
                self.environment = self._facts(message["environment"]) | {"load_average": load}
            self.unavailable |= message.get("unavailable", {})
            thing = worker.read(message)
            if isinstance(thing, BenchRow):
                self.rows.append(thing)
            elif isinstance(thing, Curve) and number == 1:
                self.curves.append(thing)
            if thing is not None:
                self.watcher.found(thing)
            if "done" in message:
                self.watcher.finish(every[waiting.pop(0)])
                self.keep(self.results())
                if waiting:
                    self.watcher.begin(every[waiting[0]], number)

    def _facts(self, of_the_pass: dict[str, Any]) -> dict[str, Any]:
        # A pass is held to some of the cores and sees no others; the machine has them all the same.
        pinned = threads.cores_to_hold(self.plan.threads)
        return of_the_pass | {"cores": usable_cores(), "threads": self.plan.threads, "pinned": pinned}


def start_process(plan: Plan, number: int, numbers: Sequence[int]) -> Messages:
    """Carry out a pass in a process of its own, with its threads settled and held to their cores.

    Raises ChildProcessError where it ends before its work is done. It is ended where the caller stops listening.
    """
    order = {"plan": plan.as_dict(), "pass": number, "jobs": list(numbers)}
    done, how = 0, "its process ended with exit code 0"
    try:
        for message in children.messages(CODE, order, threads=plan.threads):
            done += "done" in message
            yield message
        if done == len(numbers):
            return
    except ChildProcessError as error:
        how = str(error)
    raise ChildProcessError(f"pass {number}: {how} before its work was done; what it found is kept")
