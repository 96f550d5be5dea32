"""Grading whatever is saved: which tasks a saved file has changed, and which task is watched after a verdict.

Saves       looks at the files; the terminal's watch (commands/learn_watch.py) uses it, too
followed    the task that is watched after some were graded
watch       the loop of a watch without a terminal
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import NoReturn

from groundup.course.judging.verdict import Verdict
from groundup.course.learner.functions import find, function_text, replaced, stub_line
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import Task
from groundup.course.rules.order import chosen_task, next_task
from groundup.course.rules.states import begun

LOOK_EVERY = 0.1
"""Seconds between two looks at the files."""


class Saves:
    """Looks at the learner's files, and finds the tasks that a save has changed.

    stay: whether the watched task is the only one, and every change of its file is one of it
    """

    def __init__(self, workspace: Workspace, stay: bool = False) -> None:
        self.workspace, self.stay = workspace, stay
        self._tasks: dict[str, list[Task]] = {}
        for task in [*workspace.course.tasks, *workspace.course.cases]:
            self._tasks.setdefault(task.file, []).append(task)
        self._stamps = {file: self._stamp(file) for file in self._tasks}
        self._texts = {file: self._text(file) for file in self._tasks}
        self._parts = {file: self._parts_of(file, text) for file, text in self._texts.items()}

    def look(self, task: Task) -> list[Task]:
        """The tasks that were changed since the last look, in the order of the course. task: the one that is watched

        Those are the tasks whose functions have another text. Where the lines around them have changed, it is every
        task of the file that is begun; where the file cannot be parsed, one of them. A file that is saved as it was has
        changed nothing. Raises ValueError while the file of the watched task cannot be read: an editor moves it away
        for a moment while it saves.
        """
        changed: list[Task] = []
        for file in self._tasks:
            stamp = self._stamp(file)
            if file == task.file and stamp is None:
                self.workspace.text(file)  # says what is wrong with it
            if stamp is None or stamp == self._stamps[file]:
                continue
            text = self.workspace.text(file) if file == task.file else self._text(file)
            self._stamps[file] = stamp
            if text != self._texts[file]:
                self._texts[file] = text
                changed += self._changed(file, text, task)
        return changed

    def _changed(self, file: str, text: str, task: Task) -> list[Task]:
        if self.stay:
            return [task] if file == task.file else []
        tasks, before, after = self._tasks[file], self._parts[file], self._parts_of(file, text)
        if not after:  # compared with what it was before, as soon as it can be parsed again
            written = [each for each in tasks if not stub_line(before.get(each.id, ""), each.week, each.number)]
            return [task] if task in tasks else (written or tasks)[:1]
        self._parts[file] = after
        around = before.get("") != after[""]
        return [
            each
            for each in tasks
            if before.get(each.id) != after[each.id] or (around and (each == task or begun(self.workspace, each)))
        ]

    def _stamp(self, file: str) -> tuple[int, int, int] | None:
        try:
            status = os.stat(self.workspace.folder / file)
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _text(self, file: str) -> str:
        try:
            return self.workspace.text(file)
        except ValueError:
            return ""

    def _parts_of(self, file: str, text: str) -> dict[str, str]:
        """The text of each task's function, and as "" what stands around them; {} if one cannot be found."""
        tasks = self._tasks[file]
        if tasks[0].fault:
            return {tasks[0].id: text, "": ""}
        try:
            places = {task.id: find(text, task.function, file) for task in tasks}
        except ValueError:
            return {}
        parts = {name: function_text(text, place) for name, place in places.items()}
        for place in sorted(places.values(), key=lambda each: -each.first):
            text = replaced(text, place, "")
        return {**parts, "": text}


def followed(
    workspace: Workspace, task: Task, graded: Sequence[Task], had_passed: Sequence[Task], stay: bool = False
) -> tuple[Task, str]:
    """(the task that is watched after these were graded, which is the current one from then on; a line about others).

    task: the one that was watched until then; had_passed: those that had passed before, though with another text
    A task that fails and had not passed before is the one that the learner works on. One that had passed leads nobody
    away from his task: the line names it. When all pass, the next task is watched.
    """
    failing = [each for each in graded if not workspace.passed(each)]
    new = [each for each in failing if not each.fault and each not in had_passed]
    if not stay:
        on = chosen_task(workspace, None) if task not in graded or task.fault else next_task(workspace, task) or task
        task = new[0] if new else task if failing else on
    if not task.fault:
        workspace.record.current = task.id
        workspace.save()
    names = [each.id for each in failing if each in had_passed and each != task]
    return task, f"{' and '.join(names)} had passed before this change" if names else ""


def passed_before(workspace: Workspace, tasks: Sequence[Task]) -> list[Task]:
    """The tasks that have passed, though perhaps with another text than now."""
    return [each for each in tasks if workspace.record.of(each.id).state == "passed"]


def watch(
    workspace: Workspace,
    task: Task,
    grade: Callable[[Task], Verdict],
    unreadable: Callable[[str], None],
    waiting: Callable[[Task, str], None],
    stay: bool = False,
) -> NoReturn:
    """Grade the task, and then whatever is saved. After a pass the next task is watched. A KeyboardInterrupt ends it.

    grade: grades a task and shows the verdict
    unreadable: shows why the file cannot be read; it is called once for each reason
    waiting: shows which task is watched now, and the line of `followed`; it is called after each grading
    stay: watch this task alone
    """
    saves, due, shown = Saves(workspace, stay), [task], ""
    while True:
        try:
            workspace.text(task.file)
            due = due or saves.look(task)
        except ValueError as error:
            if str(error) != shown:
                shown = str(error)
                unreadable(shown)
            pause()
            continue
        if not due:
            pause()
            continue
        before = passed_before(workspace, due)
        for due_task in due:
            grade(due_task)
        task, line = followed(workspace, task, due, before, stay)
        waiting(task, line)
        due = []


def pause() -> None:
    """The time between two looks at the files."""
    time.sleep(LOOK_EVERY)
