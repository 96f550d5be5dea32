"""The learner's folder: copies of the stages' own files, with a stub in place of every exercise.

    groundup-course/
        README.md           what this is, and the three commands that matter
        progress.toml       what is done
        stage1_pure_python/matmul.py, …     the files with exercises; the learner writes in them
        detective/          the programs of the detective exercises, each with a fault
        .groundup/          what groundup builds from them; may be deleted at any time

The files are whole, so that a learner writes a function where it belongs: among its neighbours, below the docstring
that says what it has to do. No file is overwritten without a copy in .groundup/old.
"""

from __future__ import annotations

import itertools
import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from groundup.course.learner import record as record_file
from groundup.course.learner.functions import FunctionMissing, Place, find, function_text, replaced, stub, stub_line
from groundup.course.learner.migration import ADDED, is_moved
from groundup.course.learner.project_files import MOST_BYTES, program, solution_file, stubbed
from groundup.course.learner.record import LearnersRecord
from groundup.course.manifest import Course, Task
from shared.machine import regular
from shared.machine.atomic import write_atomically

BUILT = ".groundup"


@dataclass
class Workspace:
    """A learner's folder, opened. Call `save` after a change of `record`."""

    folder: Path
    course: Course
    record: LearnersRecord

    def save(self) -> None:
        """Write progress.toml."""
        record_file.save(self.record, self.folder / record_file.NAME)

    @property
    def built(self) -> Path:
        """The folder for everything that is built from the learner's files."""
        return self.folder / BUILT

    def text(self, file: str) -> str:
        """The learner's text of a file. Raises ValueError if the file is missing, no regular file, or not UTF-8."""
        path = self.folder / file
        try:
            return _decoded(regular.read(path, MOST_BYTES))
        except FileNotFoundError:
            if file in ADDED:
                fix = "groundup learn start writes it, and touches no file that is there"
                raise ValueError(
                    f"{path} is not there: a folder of an earlier version does not have it; {fix}"
                ) from None
            fix = "groundup learn start brings back files that are missing, and touches no other"
            raise ValueError(f"{path} is not there any more; {fix}") from None
        except OSError as error:  # a folder or a FIFO of this name, or a file that may not be read
            raise ValueError(str(error)) from None
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is not UTF-8 text: {error}; save it as UTF-8") from None

    def place(self, task: Task) -> Place:
        """The lines of the task's function in the learner's file. Raises FunctionMissing if it is not there."""
        if is_moved(self.folder, task):
            raise FunctionMissing(f"in an earlier version {task.id} asked for another function than {task.function}")
        return find(self.text(task.file), task.function, task.file, 0)

    def function(self, task: Task) -> str:
        """The learner's text of the task's function; of a detective exercise, of the whole program."""
        if task.fault:
            return self.text(task.file)
        return function_text(self.text(task.file), self.place(task))

    def is_stub(self, task: Task) -> bool:
        """Whether the task's function still holds the stub's error; a detective exercise, whether it is as it came."""
        if task.fault:
            return record_file.digest(self.function(task)) == record_file.digest(program(task))
        return bool(stub_line(self.function(task), task.week, task.number))

    def passed(self, task: Task) -> bool:
        """Whether the task has passed and its function has not changed since."""
        entry = self.record.of(task.id)
        if entry.state != "passed":
            return False
        try:
            return entry.digest == record_file.digest(self.function(task)) and not self.is_stub(task)
        except ValueError:  # the function or its file is missing or unreadable, so it is not what passed
            return False

    def reset(self, task: Task, whole_file: bool = False) -> Path | None:
        """Put the task's stub back; with whole_file, every stub of its file. Of a detective exercise, the program.

        Returns the copy of the old file, None if there was no file.
        Raises FunctionMissing if the file lacks the function or cannot be parsed; whole_file works then, too.
        """
        path = self.folder / task.file
        if task.fault:
            text = program(task)
        elif whole_file:
            text = stubbed(task.file, self.course)
        else:
            original = solution_file(task.file)
            text = replaced(
                self.text(task.file),
                self.place(task),
                stub(original, task.function, task.file, task.message, task.keep),
            )
        kept = self.keep(path, f"-{task.id}{'-file' * whole_file}")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text.encode())
        for other in [*self.course.tasks, *self.course.cases]:
            if other.id == task.id or (whole_file and other.file == task.file):
                self.record.entries.pop(other.id, None)
        return kept

    def undo_reset(self, task: Task, whole_file: bool = False) -> Path | None:
        """Bring back the copy that the last reset of the task made, or the last undo, which is undone by another one.

        The function comes back, and with whole_file, or if the reset was one of the whole file, all of it.
        Returns and raises what `reset` does, and ValueError if there is no copy.
        """
        path = self.folder / task.file
        named = re.compile(rf"(\d+-\d+)-?(\d*)-{re.escape(task.id)}(-file)?")
        known = [(match, copy) for copy in (self.built / "old").glob("*") if (match := named.fullmatch(copy.name))]
        if not known:
            raise ValueError(f"{task.id} was not reset here; copies of files that were lie in {self.built / 'old'}")
        match, folder = max(known, key=lambda entry: (entry[0][1], int(entry[0][2] or 1)))
        content = regular.read(folder / task.file, MOST_BYTES)
        if not (task.fault or whole_file or match[3]):
            place, text = self.place(task), _decoded(content)
            mine = function_text(text, find(text, task.function, task.file))
            content = replaced(self.text(task.file), place, mine).encode()
        kept = self.keep(path, f"-{task.id}{match[3] or '-file' * whole_file}")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
        return kept

    def keep(self, path: Path, note: str = "") -> Path | None:
        """Copy a file to .groundup/old. Returns the copy, None if there is none. note: ends the folder's name"""
        if not path.is_file():
            return None
        stamp = time.strftime("%Y%m%d-%H%M%S")
        for again in itertools.count(1):
            folder = self.built / "old" / f"{stamp}{f'-{again}' * (again > 1)}{note}"
            if not list(folder.parent.glob(f"{folder.name.removesuffix(note)}*")):
                break
        target = folder / path.relative_to(self.folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)
        return target


def _decoded(content: bytes) -> str:
    """The text of a file. Some editors on Windows begin it with a byte-order mark."""
    return "\n".join(content.decode("utf-8-sig").split("\r\n")).replace("\r", "\n")
