"""A learner's folder from an earlier version is brought to where the project's files are now.

The folder holds copies of the project's files. If the project has moved such a file, `migrate` moves the learner's copy
to the same place. It also changes the import lines of all copies to the modules' new names, and attributes to theirs.
This happens once, when the folder is opened, and a copy is made of every file before it is changed. PLACES is the only
list of old places, and ATTRIBUTES is the only list of old attributes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from groundup.course.learner import record as record_file
from groundup.course.learner.functions import find, function_text, is_c, stub_line
from groundup.course.learner.record import LearnersRecord
from groundup.course.learner.workspace import MOST_BYTES
from groundup.course.manifest import ROOT, Course, Task
from shared.machine import regular
from shared.machine.atomic import write_atomically

PLACES = {
    "shared/cli.py": "groundup/cli.py",
    "shared/commands": "groundup/commands",
    "shared/course": "groundup/course",
    "shared/doctor": "groundup/doctor",
    "shared/inside.py": "groundup/inside.py",
    "shared/live.py": "groundup/live.py",
    "shared/race.py": "groundup/race.py",
    "shared/results.py": "shared/bench/records/results.py",
    "shared/check_ops.py": "shared/checks/ops.py",
    "shared/check_pair.py": "shared/checks/pair.py",
    "shared/check_problems.py": "shared/checks/problems.py",
    "shared/check_scales.py": "shared/checks/scales.py",
    "shared/check_steps.py": "shared/checks/steps.py",
    "shared/check_trajectory.py": "shared/checks/trajectory.py",
    "shared/equivalence.py": "shared/checks/equivalence.py",
    "shared/gradient_check.py": "shared/checks/gradients.py",
    "shared/tolerance.py": "shared/checks/tolerance.py",
    "shared/batches.py": "shared/data/batches.py",
    "shared/datasets.py": "shared/data/datasets.py",
    "shared/download.py": "shared/data/download.py",
    "shared/idx.py": "shared/data/idx.py",
    "shared/synthetic.py": "shared/data/synthetic.py",
    "shared/atomic.py": "shared/machine/atomic.py",
    "shared/environment.py": "shared/machine/environment.py",
    "shared/hardware.py": "shared/machine/hardware.py",
    "shared/checkpoints.py": "shared/training/checkpoints.py",
    "shared/interrupts.py": "shared/training/interrupts.py",
    "shared/metrics.py": "shared/training/metrics.py",
    "shared/progress.py": "shared/training/progress.py",
    "shared/runs.py": "shared/training/runs.py",
    "shared/schedules.py": "shared/training/schedules.py",
    "shared/training.py": "shared/training/loop.py",
    "stage4_numba_cuda/compiling": "groundup/compiling",
    "stage4_numba_cuda/emulator": "cuda_emulator",
    "stage4_numba_cuda/kernels/matmul_basic.py": "stage4_numba_cuda/kernels/matmul_1_basic.py",
    "stage4_numba_cuda/kernels/matmul_register.py": "stage4_numba_cuda/kernels/matmul_2_register.py",
    "stage4_numba_cuda/kernels/matmul_warp.py": "stage4_numba_cuda/kernels/matmul_3_warp.py",
    "stage4_numba_cuda/kernels/matmul_tensor.py": "stage4_numba_cuda/kernels/matmul_5_tensor.py",
    "stage4_numba_cuda/kernels/matmul_4_tensor.py": "stage4_numba_cuda/kernels/matmul_5_tensor.py",
    "stage4_numba_cuda/lens": "groundup/lens",
}
"""Old place -> new place of files and of whole folders, from the folder that holds the stages."""

ATTRIBUTES = {
    "stage4_numba_cuda/steps.py": {
        "optimizer.kept.": "optimizer._state.",
        "from .kernels.head import HEAD_LANES, HEAD_ROWS, head": (
            "from .kernels.head import HEAD, HEAD_LANES\nfrom .kernels.head import HEAD_CPU as HEAD_ROWS"
        ),
        "    head[launch.divided(batch, HEAD_ROWS), ": "    HEAD[HEAD_ROWS][launch.divided(batch, HEAD_ROWS), ",
    }
}
"""By file, what stands in an old copy -> what the rest of the project calls it now."""

MODULES = {
    old.removesuffix(".py").replace("/", "."): new.removesuffix(".py").replace("/", ".") for old, new in PLACES.items()
}

NAMES = r"\((?:[^()#]|#[^\n]*)*\)[^\r\n]*|(?:\\\r?\n|[^\r\n\\])*"
"""What stands behind `import`: names in parentheses, which may take several lines, or names up to the line's end."""

FROM = re.compile(rf"^([ \t]*from[ \t]+)(\.*)([\w.]*)([ \t]+import\b[ \t]*)({NAMES})", re.MULTILINE)

IMPORT = re.compile(r"^([ \t]*import[ \t]+)([\w., \t]+)", re.MULTILINE)


def migrate(folder: Path, course: Course, record: LearnersRecord, keep: Callable[[Path], Path | None]) -> str:
    """Move the learner's files to their new places and mend their imports. Returns a message, "" if nothing was done.

    record: a task that has passed stays passed, although an import line in its function may have changed
    keep: copies a file before it is changed, and returns the copy
    Raises ValueError if a file cannot be moved or written. The old file is still there then.
    """
    old_places = {new: old for old, new in PLACES.items()}
    done, mended_files = [], []
    for file in dict.fromkeys(task.file for task in course.tasks):
        tasks = [task for task in course.tasks if task.file == file]
        old = old_places.get(file, "")
        source, target = folder / (old or file), folder / file
        try:
            if not old or not source.is_file():
                if _write(target, file, target, tasks, record, keep):
                    mended_files.append(file)
            elif target.is_file() and _is_written(target, tasks):
                _refuse_long(source)
                done.append(f"{old} went to {keep(source)}, because there is a {file}, too")
                source.unlink()
            else:
                _refuse_long(source)
                keep(source)
                _write(source, old, target, tasks, record, keep)
                source.unlink()
                done.append(f"{old} is {file} now")
        except OSError as error:
            raise ValueError(
                f"{folder} was made by an earlier version of groundup, and its {old or file} could not be made today's "
                f"{file}: {error}; nothing is lost: mend that and try again"
            ) from None
    if mended_files:
        done.append(f"names of what has moved were mended in {', '.join(mended_files)}")
    if not done:
        return ""
    earlier = "the files as they were are in .groundup/old"
    return f"{folder} was made by an earlier version of groundup: {'; '.join(done)}; {earlier}"


def mended(text: str, file: str, now: str) -> str:
    """The text of a Python file with the new names of modules in its import lines, and of attributes anywhere.

    file, now: where the text stood and where it will stand, from the folder that holds the stages
    """
    package, same = PurePosixPath(file).parent.parts, PurePosixPath(file).parent == PurePosixPath(now).parent
    uses: list[tuple[str, str]] = []

    def from_line(match: re.Match[str]) -> str:
        lead, dots, module, middle, names = match.groups()
        base = ".".join(package[: len(package) - len(dots) + 1]) if dots else ""
        absolute = ".".join(part for part in (base, module) if part)

        def written(new: str) -> str:
            return dots + new[len(base) :].lstrip(".") if dots and same and f"{new}.".startswith(f"{base}.") else new

        if absolute == "shared.training" and _are_submodules(names):
            return match[0]
        new = _new_name(absolute)
        if new is not None:
            return f"{lead}{written(new)}{middle}{names}"
        return _moved_out(lead, written, absolute, middle, names) or f"{lead}{written(absolute)}{middle}{names}"

    def import_line(match: re.Match[str]) -> str:
        parts = []
        for part in match[2].split(","):
            old, *as_name = part.split() or [""]
            new = _new_name(old)
            if new is not None and not as_name:
                uses.append((old, new))
            parts.append(part.replace(old, new, 1) if new else part)
        return match[1] + ",".join(parts)

    text = IMPORT.sub(import_line, FROM.sub(from_line, text))
    for old, new in uses:
        already = re.escape(new.removeprefix(old))  # shared.training.loop begins with the old name, shared.training
        text = re.sub(rf"(?<![\w.]){re.escape(old)}(?=\.)(?!{already}\b)", new, text)
    for old, new in ATTRIBUTES.get(now, {}).items():
        text = text.replace(old, new)
    return text


def _new_name(module: str) -> str | None:
    """The new full name of a module; None if it has not moved."""
    if module in MODULES:
        return MODULES[module]
    for old, new in PLACES.items():
        package = old.replace("/", ".")
        if not old.endswith(".py") and module.startswith(f"{package}."):
            return new.replace("/", ".") + module.removeprefix(package)
    return None


def _moved_out(lead: str, written: Callable[[str], str], package: str, middle: str, names: str) -> str:
    """`from package import a, b`, with a line of its own for each of them that is a module that has moved; "" for none.

    written: a module's name as it stands behind `from`
    """
    indent = lead[: len(lead) - len(lead.lstrip())]
    stay, lines = [], []
    listed, comment = _names_and_comment(names)
    for name in listed:
        original, *as_name = name.split() or [""]
        new = _new_name(f"{package}.{original}")
        if new is None:
            stay.append(name.strip())
            continue
        parent, _, own = new.rpartition(".")
        known_as = as_name[-1] if as_name else original
        renamed = own if own == known_as else f"{own} as {known_as}"
        lines.append(f"{indent}from {written(parent)} import {renamed}" if parent else f"{indent}import {renamed}")
    if lines and stay:
        lines.insert(0, f"{lead}{written(package)}{middle.rstrip()} {', '.join(stay)}")
    if lines and comment:
        lines[0] += f"  # {comment}"
    return "\n".join(lines)


def _names_and_comment(names: str) -> tuple[list[str], str]:
    """The names that are imported, each with its `as`; and the comments beside them, as one."""
    parts = [line.partition("#") for line in names.splitlines()]
    code = " ".join(part[0].strip().rstrip("\\") for part in parts)
    listed = [name.strip() for name in code.strip().strip("()").split(",")]
    return [name for name in listed if name], "; ".join(part[2].strip() for part in parts if part[2].strip())


def _are_submodules(names: str) -> bool:
    """Whether something of `from shared.training import …` is a file of that folder, so that the folder is meant."""
    found = [name.split()[0] for name in _names_and_comment(names)[0]]
    return any((ROOT / "shared" / "training" / f"{name}.py").is_file() for name in found)


def _write(
    source: Path,
    stood: str,
    target: Path,
    tasks: list[Task],
    record: LearnersRecord,
    keep: Callable[[Path], Path | None],
) -> bool:
    """Write a file to its new place, with its imports mended. Returns whether there was something to write.

    stood: the place of `source` in the folder; target: the new place, which may be the same
    tasks: those of the file. A function that is the text that passed stays so.
    """
    if source == target and (is_c(stood) or not source.is_file()):
        return False
    content = regular.read(source, MOST_BYTES)
    try:
        before = content.decode()
    except UnicodeDecodeError:  # moved as it is; grading says what is wrong with it
        before = after = ""
    else:
        after = before if is_c(stood) else mended(before, stood, tasks[0].file)
    if source == target and after == before:
        return False
    passed = [task for task in tasks if record.of(task.id).digest == _digest(before, task)]
    keep(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, after.encode() if after else content)
    for task in passed:
        record.of(task.id).digest = _digest(after, task)
    return True


def _refuse_long(path: Path) -> None:
    """ValueError for a file that is longer than one with exercises can be; no copy is made of it, either."""
    length = path.stat().st_size
    if length > regular.largest(MOST_BYTES):
        raise ValueError(regular.too_long(path, length, regular.largest(MOST_BYTES)))


def _digest(text: str, task: Task) -> str:
    """The digest of the task's function; "" if it is missing, or the text is no program."""
    try:
        return record_file.digest(function_text(text, find(text, task.function, task.file)))
    except ValueError:
        return ""


def _is_written(path: Path, tasks: list[Task]) -> bool:
    """Whether an exercise of the file is no longer a stub, or the file cannot be parsed."""
    try:
        text = regular.read(path, MOST_BYTES).decode("utf-8-sig")
        functions = [function_text(text, find(text, task.function, task.file)) for task in tasks]
    except ValueError:
        return True
    return not all(stub_line(function, task.week, task.number) for function, task in zip(functions, tasks, strict=True))
