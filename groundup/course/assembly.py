"""The learner's functions inside the real stage.

A file of the learner's is taken as it is, with its imports and everything else in it. If it is a copy of an earlier
version, what other files need of it and it does not have comes from the project's file; of a copy that does not fit
into today's project only the learner's functions are taken. Only exercises that are not
needed now are replaced by the project's own functions. To grade a task, these are all other exercises: so no task
depends on another, and a mistake shows in its own task only. To train, all functions that have passed stay.

The assembled files are written to a folder. `use` makes Python import these modules in place of the installed ones, and
stage 3 compile this C. All other files are the project's. Messages name lines as they are in the learner's own file.
"""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import linecache
import os
import re
import sys
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from groundup.course.learner.c_source import rest_of
from groundup.course.learner.functions import find, function_text, is_c, lines_of
from groundup.course.learner.migration import is_outgrown
from groundup.course.learner.project_files import files, solution_file
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import ROOT, Task
from shared.machine.atomic import write_atomically

C_FOLDER = "stage3_c/csrc"
C_VARIABLE = "GROUNDUP_CSRC"
RECORD = "assembly.json"


@dataclass(frozen=True)
class Assembly:
    """Assembled files.

    modules: the file of each Python module, by the module's name; csrc: the folder of C, "" for the project's
    lines: by assembled file, the line in the learner's file for each of its lines; -n for line n of the project's file,
        and 0 for a line that is in neither
    learner: by assembled file, the learner's file
    """

    modules: dict[str, str]
    csrc: str
    lines: dict[str, list[int]] = field(default_factory=dict)
    learner: dict[str, str] = field(default_factory=dict)

    def save(self, folder: Path) -> Path:
        """Write the assembly to a file of the folder, for another process. Returns the file."""
        path = folder / RECORD
        write_atomically(path, json.dumps(asdict(self)).encode())
        return path

    def place(self, file: str, line: int) -> tuple[str, int] | None:
        """(the learner's file, the line there) for a line of an assembled file; None for a line of the project's."""
        known = self.lines.get(file)
        if known is None or not 0 < line <= len(known) or known[line - 1] <= 0:
            return None
        return self.learner[file], known[line - 1]

    def projects_line(self, file: str, line: int) -> int:
        """The line of the project's file for a line of an assembled file; 0 if it was not taken from there."""
        known = self.lines.get(file, [])
        return max(0, -known[line - 1]) if 0 < line <= len(known) else 0

    def moved(self, code: CodeType) -> CodeType:
        """The code with the learner's file and lines in every function of the learner's, as a debugger shows them."""
        place = self.place(code.co_filename, code.co_firstlineno) if code.co_name != "<module>" else None
        inner = tuple(self.moved(each) if isinstance(each, CodeType) else each for each in code.co_consts)
        file, line = place or (code.co_filename, code.co_firstlineno)
        return code.replace(co_consts=inner, co_filename=file, co_firstlineno=line)

    def places_of(self, error: BaseException) -> list[tuple[tuple[str, int], str]]:
        """The learner's lines that an error went through, the innermost last: [((file, line), text of the line)].

        An error that names its own place, such as a SyntaxError or a wrong kernel, came from there alone.
        """
        file, line = getattr(error, "filename", None), getattr(error, "lineno", None) or getattr(error, "line", None)
        if file in self.learner and isinstance(line, int):
            own = self.place(file, line)
            return [(own, linecache.getline(file, line).strip())] if own else []
        frames = traceback.extract_tb(error.__traceback__)
        found = [(self.place(frame.filename, frame.lineno or 0), frame.line or "") for frame in frames]
        return [(place, text) for place, text in found if place]

    def told(self, text: str) -> str:
        """The text, with the learner's file and line in place of every place in an assembled file."""
        for file in self.lines:

            def known(match: re.Match[str], file: str = file) -> str:
                place = self.place(file, int(match[2]))
                if place is None:
                    return f"the project's own part of {Path(self.learner[file]).name}"
                return f"{place[0]}{match[1]}{place[1]}"

            text = re.sub(re.escape(file) + r'("?, line |:)(\d+)', known, text)
        return text


def load(path: Path) -> Assembly:
    """The Assembly that `save` has written to a file."""
    return Assembly(**json.loads(path.read_text(encoding="utf-8")))


def assemble(workspace: Workspace, own: Collection[Task], folder: Path, training: bool = False) -> Assembly:
    """Assemble the files of these tasks, and write them to the folder.

    own: the tasks whose functions are the learner's
    training: also append the line `use` of each of these tasks, in the order of the course, so that training calls them
    Raises FunctionMissing if a function is not in the learner's file, or a file cannot be parsed.
    """
    modules: dict[str, str] = {}
    lines: dict[str, list[int]] = {}
    learner: dict[str, str] = {}
    written: list[Path] = []
    uses = [task.use for task in workspace.course.tasks if training and task in own and task.use]
    needed = dict.fromkeys([*(task.file for task in own), *(file for file, _ in uses)])
    exercises = files(workspace.course)
    for file in needed:
        own_here = [task for task in own if task.file == file]
        others = [task for task in workspace.course.tasks if task.file == file and task not in own_here]
        if file in exercises and is_outgrown(file, text := workspace.text(file)):
            pieces = [(part, -first) for part, first in _filled(solution_file(file), text, file, own_here)]
        elif file in exercises:
            pieces = _filled(workspace.text(file), solution_file(file), file, others)
        else:
            pieces = [(solution_file(file), -1)]
        pieces += [(f"\n{line}\n", 0) for used_in, line in uses if used_in == file]
        path = folder / file
        shown = str(workspace.folder / file)
        lines[str(path)] = [number for text, first in pieces for number in _numbers(text, first)]
        learner[str(path)] = shown
        whole = "".join(text for text, _ in pieces)
        _write(path, _with_line_directives(pieces, shown) if is_c(file) else whole)
        written.append(path)
        if is_c(file):
            rest = rest_of(solution_file(file), whole)
            if rest:  # the copy is of an earlier version, and other files call what has come since
                written.append(path.with_name(f"{path.stem}_rest.c"))
                _write(written[-1], rest)
        else:
            modules[file.removesuffix(".py").replace("/", ".")] = str(path)
    csrc = ""
    if any(map(is_c, needed)):
        csrc = str(folder / C_FOLDER)
        theirs = [source for source in (ROOT / C_FOLDER).glob("*.[ch]") if f"{C_FOLDER}/{source.name}" not in needed]
        for source in theirs:
            _write(folder / C_FOLDER / source.name, source.read_text(encoding="utf-8"))
        of_today = {source.name for source in theirs} | {path.name for path in written}
        for path in (folder / C_FOLDER).glob("*.[ch]"):  # an earlier version, or an earlier copy, may have had others
            if path.name not in of_today:
                path.unlink()
    return Assembly(modules, csrc, lines, learner)


def assemble_program(workspace: Workspace, case: Task, folder: Path) -> Assembly:
    """The program of a detective exercise, as it stands in the learner's folder, written to the folder.

    A program in C gets the project's header beside it.
    """
    text = workspace.text(case.file)
    shown = str(workspace.folder / case.file)
    if is_c(case.file):
        path = folder / C_FOLDER / Path(case.file).name
        header = ROOT / C_FOLDER / "groundup.h"
        _write(path.parent / header.name, header.read_text(encoding="utf-8"))
        _write(path, _with_line_directives([(text, 1)], shown))
        return Assembly({}, str(path.parent), {str(path): _numbers(text, 1)}, {str(path): shown})
    path = folder / case.file
    _write(path, text)
    return Assembly({path.stem: str(path)}, "", {str(path): _numbers(text, 1)}, {str(path): shown})


def _filled(text: str, original: str, file: str, others: Sequence[Task]) -> list[tuple[str, int]]:
    """The learner's file with the project's functions for the other tasks, in pieces: (text, first line there).

    For a piece of the project's it is the first line in the project's file, negative.
    """
    places = sorted(((find(text, task.function, file), task) for task in others), key=lambda each: each[0].first)
    rows = lines_of(text)
    pieces: list[tuple[str, int]] = []
    done = 0
    for place, task in places:
        pieces.append(("".join(rows[done : place.first - 1]), done + 1))
        theirs = find(original, task.function, file)
        pieces.append((function_text(original, theirs), -theirs.first))
        done = place.last
    pieces.append(("".join(rows[done:]), done + 1))
    return [piece for piece in pieces if piece[0]]


def _numbers(text: str, first: int) -> list[int]:
    count = text.count("\n")
    step = (first > 0) - (first < 0)
    return [first + step * i for i in range(count)]


def _with_line_directives(pieces: Sequence[tuple[str, int]], shown: str) -> str:
    """The pieces joined, each with a #line directive, so that the compiler names the learner's file and line."""
    escaped = shown.replace("\\", "\\\\")
    parts = []
    for text, first in pieces:
        parts.append(f'#line {first} "{escaped}"\n' if first > 0 else '#line 1 "the project\'s own function"\n')
        parts.append(text)
    return "".join(parts)


def _write(path: Path, text: str) -> None:
    """Write the file if its text differs: a build compares the time of a file."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text.encode())


class _FromText(importlib.machinery.SourceFileLoader):
    """Compiles the text each time. Python's own cache of bytecode takes two texts for one if they have the same length
    and were written within the same second: a learner's mend of one sign would be graded as what it was before.

    A copy of an earlier version lacks what the project's file has got since then, and what other files import from it:
    such names are taken from the project's file. What the copy gives a name to, and deletes, stays deleted.
    """

    moved: Callable[[CodeType], CodeType] = staticmethod(lambda code: code)

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return self.moved(code)

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        original = ROOT.joinpath(*module.__name__.split(".")).with_suffix(".py")
        if not original.is_file():
            return  # a program of an exercise, and no file of the project's
        own = _defined(self.get_data(self.get_filename(module.__name__)))
        names = _defined(original.read_text(encoding="utf-8"))
        missing = [name for name in names if name not in own and not hasattr(module, name)]
        if missing:
            spec = importlib.util.spec_from_file_location(f"{module.__name__}_now", original)
            assert spec is not None
            assert spec.loader is not None
            projects = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(projects)
            for name in missing:
                setattr(module, name, getattr(projects, name))


def _defined(text: str | bytes) -> list[str]:
    """The names that a module gives to its functions, classes and values."""
    names: list[str] = []
    for part in ast.parse(text).body:
        if isinstance(part, ast.FunctionDef | ast.ClassDef):
            names.append(part.name)
        elif isinstance(part, ast.Assign | ast.AnnAssign) and part.value is not None:
            targets = part.targets if isinstance(part, ast.Assign) else [part.target]
            names += [each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]
    return names


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the assembled modules before any other finder is asked."""

    def __init__(self, modules: Mapping[str, str], moved: Callable[[CodeType], CodeType] | None = None) -> None:
        self.modules, self.moved = modules, moved

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        file = self.modules.get(fullname)
        if not file:
            return None
        loader = _FromText(fullname, file)
        loader.moved = self.moved or loader.moved
        return importlib.util.spec_from_file_location(fullname, file, loader=loader)


def use(assembly: Assembly, own_places: bool = False, again: Collection[str] = ()) -> None:
    """From now on this process imports the assembled modules and builds stage 3 from the assembled C.

    own_places: whether Python's functions of the learner's name the learner's file and lines, for a debugger
    again: modules that may have been imported already, and whose functions other modules look up in them at each call:
        they are loaded again
    Raises RuntimeError if another one of the modules has been imported already: then it is the project's.
    """
    for name in assembly.modules:
        if name in sys.modules and name not in again:
            raise RuntimeError(f"{name} was imported before the learner's could take its place")
    finder: Any = _Finder(assembly.modules, assembly.moved if own_places else None)
    sys.meta_path.insert(0, finder)
    for name in assembly.modules:
        if name in sys.modules:
            importlib.reload(sys.modules[name])
    if assembly.csrc:
        os.environ[C_VARIABLE] = assembly.csrc
