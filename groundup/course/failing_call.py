"""The call of a learner's function that fails: found, written as a script, and run by that script in a debugger.

    use, stop       the learner's function among the project's in this process; into pdb, or gdb
    rerun           the checks of the task once more, with a stop at one call
    Calls           notes the learner's calls while the checks run: of a Python function those by its name, of one in C
                    the calls of C, of a kernel the launches
    script          a call as a Python script

`python -m groundup.course.failing_call FOLDER TASK SCRIPT` runs the checks, and writes the call that fails as a SCRIPT.
"""

from __future__ import annotations

import ast
import os
import pdb
import re
import signal
import sys
import threading
from bdb import BdbQuit
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import numpy as np

from groundup.course import assembly, grading
from groundup.course.checks.check import Tally, Wrong
from groundup.course.judging.memory_limit import limit_memory
from groundup.course.learner.functions import is_c
from groundup.course.learner.learners_folder import locate
from groundup.course.learner.project_files import solution
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import Task, course
from shared.contract import STAGES, load_part

GDB = "GROUNDUP_GDB"
"""Set by the command that starts gdb: then `stop` ends in gdb."""

MOST_IN_LINE = 24
"""Numbers of an argument that stand in the script; more lie in a file beside it."""

COMPARING = {("check", "equal"): ("got", "expected"), ("exercise_checks", "shape"): ("returned", "value")}
"""(file, function) that compares two results -> its variables for the learner's, and for the right one."""

_stops: list[tuple[str, int]] = []
"""Where pdb stops: (file, line)."""


def use(folder: str, name: str, step: bool = False) -> tuple[Workspace, Task]:
    """Have this process import the learner's function of a task, with its own file and lines.

    step: run kernels line by line, in Python
    """
    workspace, task = locate(Path(folder), course()), course().task(name)
    # BdbQuit is the learner's `q` in pdb: its end needs no traceback.
    sys.excepthook = lambda kind, *error: None if kind is BdbQuit else sys.__excepthook__(kind, *error)
    os.environ["GROUNDUP_CUDA"] = "emulator"
    os.environ |= {"GROUNDUP_EMULATOR": "step"} if step else {}
    os.environ |= {"GROUNDUP_SANITIZE": "undefined"} if is_c(task.file) else {}  # which makes -Og -g of -O3, too
    built = workspace.built / "debug" / task.id
    program = assembly.assemble_program(workspace, task, built) if task.fault else None
    assembly.use(program or assembly.assemble(workspace, [task], built), own_places=True)
    if is_c(task.file):
        return workspace, task
    if task.fault:
        import cuda_emulator

        cuda_emulator.install()
    place, tree = workspace.place(task), ast.parse(workspace.text(task.file))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    # No code belongs to a docstring: a stop at its line would never come.
    bodies = [function.body[ast.get_docstring(function) is not None :] for function in functions]
    lines = [body[0].lineno for body in bodies if body and place.first <= body[0].lineno <= place.last]
    _stops[:] = [(str(workspace.folder / task.file), line) for line in lines]
    return workspace, task


def stop(frame: FrameType | None = None) -> None:
    """Stop in gdb, if it has started this process; else in pdb, where the learner's function is called next.

    frame: stop in this call of it. PYTHONBREAKPOINT=0 leaves pdb out, as it does with breakpoint().
    """
    if os.environ.get(GDB):
        signal.raise_signal(signal.SIGTRAP)
    elif _stops and os.environ.get("PYTHONBREAKPOINT") != "0":
        debugger = pdb.Pdb()
        for place in _stops:
            debugger.set_break(*place)
        debugger.rcLines += ["c"] * (frame is None)
        debugger.set_trace(frame or sys._getframe(1))


def rerun(folder: str, name: str, call: int) -> None:
    """Run the checks of a task, with a stop in one call, up to the first that fails. Raises what that raises."""

    def at(frame: FrameType, now: Call) -> None:
        if now.number == call and now.is_launch and _stops:
            # Python traces nothing in this thread while it is in a profile function.
            thread = threading.Thread(target=_step, args=(now,))
            thread.start()
            thread.join()
        elif now.number == call:
            stop(frame)

    Calls(*use(folder, name), at).run()


def _step(launch: Call) -> None:
    """Make a launch once more, line by line in Python, before the check makes it."""
    from cuda_emulator.inspection import step

    source, grid, block = launch.of
    try:
        stop()
        # A copy: the check makes the same launch afterwards, on arguments that nobody has touched.
        step.run_kernel(source, [*deepcopy(launch.arguments).values()], grid, block, 0)
    # This thread is not the main one: sys.exit() would end it alone, and the check would go on.
    except BdbQuit:
        os._exit(0)
    except Exception:  # the check meets the same error
        return


@dataclass
class Call:
    """number: of the call, from 1; of: in C (function, dtype), of a launch (the kernel's source, grid, block), else ()

    arguments: by name, copied before the call; a name that begins with * is an array that C may write
    """

    number: int
    of: tuple[Any, ...]
    is_launch: bool
    arguments: dict[str, Any]
    result: Any = None


def _c_call(function: Any, name: str, dtype: Any, *arguments: Any) -> Any:
    return function(*arguments)


class Calls:
    """Notes the learner's calls while the checks run, as a profile function of Python's, which is told of every call.

    at: called with the frame and the Call when one begins; last: the last calls
    failing: the one that the error was about; expected: the right result, None if it is not known
    """

    def __init__(self, workspace: Workspace, task: Task, at: Callable[[FrameType, Call], None]) -> None:
        self.task, self.at, self.last = task, at, deque[Call](maxlen=16)
        self.failing: Call | None = None
        self.expected: Any = None
        self._own = str(workspace.folder / task.file), workspace.place(task).first
        self._codes: dict[CodeType, str] = {Wrong.__init__.__code__: "wrong", Tally.trying.__code__: "case"}
        self._case = 1
        self._wrongs: list[tuple[Any, Call | None, Any]] = []
        self._running: dict[FrameType, Call] = {}
        if "/kernels/" in task.file or (task.fault and not is_c(task.file)):
            from cuda_emulator.inspection import step, trace_launch
            from groundup.course.grading.calling.kernel_launches import _emulated

            self._codes |= {function.__code__: "launch" for function in (trace_launch, step.run_kernel, _emulated)}
        elif is_c(task.file):
            from groundup.course.grading.calling.c_programs import c_program

            library: Any = load_part(STAGES[2], "library")
            declare = library._declare
            # A profile function is told of a call of C, but not of its arguments: so a Python function stands before
            # each.
            library._declare = lambda name, dtype: partial(_c_call, declare(name, dtype), name, dtype)
            within = [code for code in c_program.__code__.co_consts if isinstance(code, CodeType)]
            self._codes |= {code: "call" for code in (_c_call.__code__, *within) if code.co_name != "found"}

    def run(self) -> None:
        """Run the checks of the task. Raises what the first that fails raises."""
        try:
            for check in grading.task_checks(self.task.id):
                sys.setprofile(self._profile)
                check.run(Tally())
                sys.setprofile(None)
        except BaseException as error:
            sys.setprofile(None)
            # A check may wrap the Wrong that said which call failed into an error of its own.
            raised = (error, error.__cause__, error.__context__)
            known = [each[1:] for each in self._wrongs if each[0] in raised]
            self.failing, self.expected = [*known, (self.last[-1] if self.last else None, None)][0]
            raise

    def _profile(self, frame: FrameType, event: str, result: Any) -> None:
        if event == "return" and frame in self._running:
            self._running.pop(frame).result = result
        if event != "call":
            return
        if (kind := self._codes.get(frame.f_code)) is None:
            own = (frame.f_code.co_filename, frame.f_code.co_firstlineno) == self._own
            # Kept by code, since this runs at every call of every Python function.
            kind = self._codes[frame.f_code] = "call" if own else ""
        if kind == "case":
            self._case = self.last[-1].number + 1 if self.last else 1
        elif kind == "wrong":
            self._wrongs.append((frame.f_locals["self"], *self._compared(frame)))
        elif kind:
            number = self.last[-1].number + 1 if self.last else 1
            self._running[frame] = self._called(frame, number, kind == "launch")
            self.last.append(self._running[frame])
            self.at(frame, self.last[-1])

    def _compared(self, frame: FrameType) -> tuple[Call | None, Any]:
        """(the call that an error is about, the right result, which a check has among its variables, else None)."""
        last = self.last[-1] if self.last else None
        # What compares may have raised its Wrong through helpers: it stands up to three frames above.
        for _ in range(3):
            assert frame.f_back is not None
            frame = frame.f_back
            names = COMPARING.get((Path(frame.f_code.co_filename).stem, frame.f_code.co_name))
            if names:
                got, expected = (frame.f_locals.get(each) for each in names)
                case = [call for call in self.last if call.number >= self._case]
                return [*(call for call in case if _is_same(call.result, got)), last][0], expected
        return last, None

    def _called(self, frame: FrameType, number: int, is_launch: bool) -> Call:
        known, code = frame.f_locals, frame.f_code
        names: Sequence[str]
        of: tuple[Any, ...] = ()
        if code is _c_call.__code__:
            of = known["name"], np.dtype(known["dtype"]).name
            names, given = _parameters_of_c(self.task), known["arguments"]
        elif is_launch:
            source = known["source"] if "source" in known else known["kernel"].source
            launch = known.get("launch")
            sizes = (launch.grid, launch.block) if launch else (known["grid"], known["block"])
            of = (source, *(tuple([*np.atleast_1d(size).tolist(), 1, 1][:3]) for size in sizes))
            names, given = source.parameters, known["given" if launch else "arguments"]
        else:
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            given = [known[name] for name in names]
        arguments = dict(zip(names, given, strict=False))
        with suppress(TypeError, ValueError):  # what cannot be copied cannot be written either
            arguments = deepcopy(arguments)
        return Call(number, of, is_launch, arguments)


def _is_same(result: Any, got: Any) -> bool:
    with suppress(TypeError, ValueError):  # rows of several lengths, or no numbers
        return got is not None and (result is got or bool(np.array_equal(result, got, equal_nan=True)))
    return False


def _parameters_of_c(task: Task) -> list[str]:
    """The names of a C function's parameters, with * before those of arrays that it may write."""
    text = solution(task)
    parameters = text[text.index("(", text.index(task.function)) :].partition("{")[0].split(",")
    return ["*" * ("*" in each and "const" not in each) + re.findall(r"\w+", each)[-1] for each in parameters]


def script(task: Task, folder: str, call: Call, expected: Any, path: Path) -> str:
    """A call as a Python script. path: where it will lie. Raises ValueError if its arguments cannot be written."""
    name, arrays, imports = task.function, dict[str, np.ndarray](), list[str]()
    if "." in name or (call.of and name not in (call.of[0], getattr(call.of[0], "name", ""))):
        raise ValueError(f"the check calls {name} through an object or a function of its own")
    arguments = {name.lstrip("*"): value for name, value in call.arguments.items()}
    written = [name[1:] for name in call.arguments if name[0] == "*"]
    if is_c(task.file):
        imports, function = ["from stage3_c import library"], f"library.function{call.of}"
    else:
        module = Path(task.file).stem if task.fault else task.file.removesuffix(".py").replace("/", ".")
        imports, function = [f"from {module} import {name}"], name
    if call.is_launch:
        function = f"{name}[{call.of[1]}, {call.of[2]}]"
        stores = (node for node in ast.walk(call.of[0].tree) if isinstance(node, ast.Subscript))
        stored = [store.value for store in stores if isinstance(store.ctx, ast.Store)]
        written = [target.id for target in stored if isinstance(target, ast.Name) and target.id in arguments]
    result = [name for name in written if np.shape(arguments[name]) == np.shape(expected)]
    lines = [f"{name} = {_expression(value, name, arrays, imports)}" for name, value in arguments.items()]
    lines += ["", "failing_call.stop()", f"got = function({', '.join(arguments)})"]
    lines += [*(f"got = {name}" for name in result[-1:]), 'print("got", got)']
    if expected is not None:
        lines += [f"expected = {_expression(expected, 'expected', arrays, imports)}"]
        lines += ["np.testing.assert_allclose(got, expected, 1e-4, 1e-6)"]
    if arrays:
        np.savez(path.with_suffix(".npz"), allow_pickle=False, **arrays)
        lines.insert(0, 'saved = np.load(__file__.replace(".py", ".npz"))')
    step = ", step=True" * call.is_launch
    head = ["import numpy as np", "", "from groundup.course import failing_call", ""]
    use = [f"failing_call.use({folder!r}, {task.id!r}{step})", *imports, f"function = {function}"]
    return "\n".join([*head, *use, *lines]) + "\n"


def _expression(value: Any, name: str, arrays: dict[str, np.ndarray], imports: list[str]) -> str:
    """A value as Python writes it. Raises ValueError.

    What is too long for a line is added to the arrays, and what a name has to be imported for to the imports.
    """
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and np.isfinite(value)):
        return repr(value)
    if isinstance(value, float):
        return f"float('{value}')"
    if isinstance(value, FunctionType) and "." not in value.__qualname__:
        imports.append(f"from {value.__module__} import {value.__name__}")
        return value.__name__
    if isinstance(value, list) and any(isinstance(item, np.ndarray) for item in value):
        parts = [_expression(item, f"{name}_{place}", arrays, imports) for place, item in enumerate(value)]
        return f"[{', '.join(parts)}]"
    array = np.asarray(value if isinstance(value, list | np.ndarray) else "")  # ValueError for rows of several lengths
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} consists of other things than numbers")
    if array.size and array.dtype.kind == "f" and np.isnan(array).all():
        return f"np.full({array.shape}, np.nan, {array.dtype.name!r})"
    if array.size > MOST_IN_LINE or not array.size or not np.isfinite(array).all():
        arrays[name] = array
        return f"saved[{name!r}]" + ".tolist()" * isinstance(value, list)
    return repr(value) if isinstance(value, list) else f"np.array({array.tolist()}, {array.dtype.name!r})"


def main(folder: str, name: str, path: str) -> None:
    """What the module does as a program. The script begins with the number of the call, and why it is none."""

    def write(call: Call, expected: Any = None) -> None:
        try:
            text = f"# call {call.number}\n" + script(calls.task, folder, call, expected, Path(path))
        except ValueError as error:
            text = f"# call {call.number}: {error}\n"
        Path(path).write_text(text, encoding="utf-8")

    # Written at once: the call may crash the process, or never end.
    calls = Calls(*use(folder, name), lambda frame, call: write(call))
    limit_memory(course().phase_of(calls.task).megabytes, lambda: None)
    with suppress(BaseException):  # what the checks say is known
        calls.run()
    if calls.failing is not None:
        write(calls.failing, calls.expected)
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
