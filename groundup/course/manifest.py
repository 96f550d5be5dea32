"""Reads course.toml: phases, weeks and tasks, in their order; and cases.toml, the detective exercises beside them.

A task names a function of a stage. Its solution is that function, and its stub is the function without its body. So the
only code in the manifest is `use`, a line that `groundup train --mine` appends to a file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from groundup.course.faults import KINDS, Fault

MANIFEST = Path(__file__).resolve().parent / "course.toml"
CASES = Path(__file__).resolve().parent / "cases.toml"
ROOT = Path(__file__).resolve().parents[2]
"""The folder that holds `shared` and the stages."""


@dataclass(frozen=True)
class Task:
    """One exercise.

    id: WEEK.NUMBER, such as "10.2"; "10.d" for a detective exercise, and "23.e" for the second one of a week
    title: one line that says what the function does
    file: the stage's file, from the folder that holds the stages; function: its name there, as functions.py takes it
    hints: three, each telling more than the one before: an idea, a plan, nearly the code
    keep: how many statements (in C: lines) at the start of the body the stub keeps
    use: (file, line to append) so that training calls the function:
        ("stage1_pure_python/matmul.py", "matmul = index_loops") makes it the stage's product
    step: for a stage with several training steps, the step that training takes once this task has passed
    fault: of a detective exercise, what is wrong with its program; None for a task of the week
    """

    id: str
    title: str
    file: str
    function: str
    hints: tuple[str, str, str]
    keep: int = 0
    use: tuple[str, str] | None = None
    step: str = ""
    fault: Fault | None = None

    @property
    def week(self) -> int:
        """The number of its week."""
        return int(self.id.partition(".")[0])

    @property
    def number(self) -> int:
        """Its number in the week."""
        return int(self.id.partition(".")[2])

    @property
    def stage(self) -> str:
        """The package of its file, such as "stage3_c"."""
        return self.file.partition("/")[0]

    @property
    def message(self) -> str:
        """The message of the task's stub."""
        return f"week {self.week}, task {self.number}: {self.title}"


@dataclass(frozen=True)
class Week:
    """hours: (from, to), what a learner needs without hurry, reading included."""

    number: int
    title: str
    hours: tuple[int, int]
    tasks: tuple[Task, ...]


@dataclass(frozen=True)
class Phase:
    """seconds, megabytes: the limits of grading one task; a checkpoint may take ten times as long
    checkpoint: one line that says what the learner's functions must show together at the end of the phase
    """

    number: int
    title: str
    seconds: float
    megabytes: int
    checkpoint: str
    weeks: tuple[Week, ...]


@dataclass(frozen=True)
class Course:
    """All phases of the course.

    cases: the detective exercises. They stand beside the weeks' tasks: no phase and no checkpoint counts them
    """

    phases: tuple[Phase, ...]
    cases: tuple[Task, ...] = ()

    @property
    def weeks(self) -> list[Week]:
        """All weeks, in order."""
        return [week for phase in self.phases for week in phase.weeks]

    @property
    def tasks(self) -> list[Task]:
        """All tasks, in order."""
        return [task for week in self.weeks for task in week.tasks]

    def task(self, name: str) -> Task:
        """The task with this id, such as "10.2", or with this function's name if only one task has it.

        Raises ValueError with the tasks that there are.
        """
        everything = [*self.tasks, *self.cases]
        for task in everything:
            if task.id == name.lower():
                return task
        named = [task for task in everything if name in (task.function, task.function.rpartition(".")[2])]
        if len(named) == 1:
            return named[0]
        if named:
            raise ValueError(f"several tasks are called {name}: choose one of {', '.join(task.id for task in named)}")
        week = name.partition(".")[0]
        there = [task.id for task in everything if task.id.partition(".")[0] == week]
        choices = f"week {week} has {', '.join(there)}" if there else "`groundup learn status --all` lists them"
        functions = [task.function.rpartition(".")[2] for task in everything]
        if close := get_close_matches(name, functions, n=1):
            choices = f"did you mean {everything[functions.index(close[0])].id}, {close[0]}?"
        raise ValueError(f"there is no task {name!r}; {choices}")

    def phase(self, number: int) -> Phase:
        """The phase of a number. Raises ValueError for a number that has none."""
        for phase in self.phases:
            if phase.number == number:
                return phase
        raise ValueError(f"there is no phase {number}; expected 1 to {len(self.phases)}")

    def phase_of(self, task: Task) -> Phase:
        """The phase that a task is in."""
        return next(phase for phase in self.phases for week in phase.weeks if task.week == week.number)

    def case(self, name: str) -> Task:
        """The detective exercise of that name. Raises ValueError, with those that there are, for any other task."""
        task = self.task(name)
        if task.fault is None:
            there = ", ".join(each.id for each in self.cases)
            raise ValueError(f"{task.id} is no detective exercise: it has no fault to find; those are {there}")
        return task


@cache
def course() -> Course:
    """The course, read from course.toml and cases.toml once."""
    return read(MANIFEST, CASES)


def read(path: Path, cases: Path | None = None) -> Course:
    """Read and check a manifest. Raises ValueError with the file, the place and what is wrong.

    cases: the file of the detective exercises, None for a course without them
    """
    phases = _read(path, lambda document: tuple(_phase(each) for each in document["phases"]))
    detective = _read(cases, lambda document: tuple(_case(each) for each in document["cases"])) if cases else ()
    found = Course(phases, detective)
    for problem in _problems(found):
        raise ValueError(f"{path}: {problem}")
    for problem in _problems_of_cases(found):
        raise ValueError(f"{cases}: {problem}")
    return found


def _read(path: Path, make: Callable[[dict[str, Any]], Any]) -> Any:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path}: {error}") from error
    try:
        return make(document)
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path}: {type(error).__name__}: {error}") from error


def _phase(table: dict[str, Any]) -> Phase:
    weeks = tuple(
        Week(each["number"], each["title"], tuple(each["hours"]), tuple(map(_task, each.get("tasks", ()))))
        for each in table["weeks"]
    )
    rest = {name: value for name, value in table.items() if name != "weeks"}
    return Phase(weeks=weeks, **rest)


def _task(table: dict[str, Any]) -> Task:
    known = {field.name for field in fields(Task)}
    if unknown := table.keys() - known:
        raise KeyError(f"task {table.get('id')}: {', '.join(sorted(unknown))} is not one of {', '.join(sorted(known))}")
    use = tuple(table["use"]) if "use" in table else None
    return Task(**{**table, "hints": tuple(table["hints"]), "use": use})


def _case(table: dict[str, Any]) -> Task:
    names = {field.name for field in fields(Fault)}
    told = {name: value for name, value in table.items() if name in names}
    pairs = tuple((old, new) for old, new in told.pop("mend"))
    lists: dict[str, Any] = {name: tuple(told.pop(name, ())) for name in ("also", "seen_at")}
    rest = {name: value for name, value in table.items() if name not in names}
    return replace(_task(rest), fault=Fault(mend=pairs, **lists, **told))


def _problems_of_cases(found: Course) -> Iterator[str]:
    weeks = {week.number for week in found.weeks}
    for case in found.cases:
        if case.id not in {f"{week}.{letter}" for week in weeks for letter in "de"}:
            yield f"case {case.id}: expected the number of a week and .d, or .e for its second one"
        if len(case.hints) != 3:
            yield f"case {case.id}: expected three hints, got {len(case.hints)}"
        if case.fault and case.fault.kind not in KINDS:
            yield f"case {case.id}: {case.fault.kind} is no kind; the kinds are {', '.join(KINDS)}"


def _problems(found: Course) -> Iterator[str]:
    seen: set[str] = set()
    numbers = [week.number for week in found.weeks]
    if numbers != list(range(1, len(numbers) + 1)):
        yield f"expected weeks numbered from 1, got {numbers}"
    for week in found.weeks:
        for number, task in enumerate(week.tasks, start=1):
            if task.id != f"{week.number}.{number}":
                yield f"task {task.id} stands where {week.number}.{number} is expected"
            if len(task.hints) != 3 or not all(task.hints):
                yield f"task {task.id}: expected three hints, got {len(task.hints)}"
            place = f"{task.file}: {task.function}"
            if place in seen:
                yield f"task {task.id}: another task has {place}, too"
            seen.add(place)
            if task.use and len(task.use) != 2:
                yield f"task {task.id}: use is {list(task.use)}, expected [file, line]"
            if '"' in task.message or "\\" in task.message:
                yield f"task {task.id}: its title may hold no quotation mark or backslash, for it stands in a stub"
