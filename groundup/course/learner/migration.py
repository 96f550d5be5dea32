"""A learner's folder from the version in which a network was a class of its own on every stage.

Such a folder stays as it is. Some of its tasks ask for other functions today, so their answers cannot be graded any
more: a message names them, and the command that fetches their stubs. Of two more files only the functions of the tasks
fit into today's project, and assembly.py takes no more from them than these.
"""

from __future__ import annotations

from pathlib import Path

from groundup.course.learner.project_files import MOST_BYTES
from groundup.course.manifest import Course, Task
from shared.machine import regular
from shared.numbers import listed

MOVED = {
    "stage1_pure_python/network.py": ("stage1_pure_python/network.py", "def _forward_backward("),
    "stage2_numpy/network.py": ("stage2_numpy/network.py", "def _forward_backward("),
    "stage3_c/csrc/network.c": ("stage3_c/csrc/network.c", " *input_of("),
    "stage4_numba_cuda/network.py": ("stage4_numba_cuda/steps.py", "def op_by_op("),
}
"""File of today -> (the file that was in its place, a text that only that one has). All their tasks ask anew."""

OUTGROWN = {
    "stage2_numpy/optimizers.py": "class OptimizerState",
    "shared/checks/gradients.py": "layer_sizes: tuple[int, ...]",
}
"""File -> a text that only its earlier version has. The functions of its tasks are today's."""

ADDED = (
    "shared/initialize.py",
    "shared/dropout.py",
    "shared/training/early_stopping.py",
    "shared/training/schedules.py",
)
"""Files with exercises that came later. A folder that was made before does not have them, and works without them."""


def is_outgrown(file: str, text: str) -> bool:
    """Whether the text of a file is of the earlier version, from which only the functions of the tasks are taken."""
    return file in OUTGROWN and OUTGROWN[file] in text


def is_moved(folder: Path, task: Task) -> bool:
    """Whether the folder has the file in which this task asked for another function, and not the one of today."""
    earlier, text = MOVED.get(task.file, ("", ""))
    if not earlier or (earlier != task.file and (folder / task.file).exists()):
        return False
    try:
        return text.encode() in regular.read(folder / earlier, MOST_BYTES)
    except (OSError, ValueError):  # there is none, or none that can be read
        return False


def migration_notice(folder: Path, course: Course) -> str:
    """A message about the tasks that ask for other functions today; "" if there are none."""
    moved = [task for task in course.tasks if is_moved(folder, task)]
    if not moved:
        return ""
    first_of_file: dict[str, str] = {}
    for task in moved:
        first_of_file.setdefault(task.file, task.id)
    firsts = list(first_of_file.values())
    others = f", and the same with {listed(firsts[1:])}" if firsts[1:] else ""
    ask = "ask for other functions" if moved[1:] else "asks for another function"
    return (
        f"{folder} was made by an earlier version of groundup, and nothing in it was changed, but "
        f"{listed([task.id for task in moved])} {ask} now: groundup learn reset {firsts[0]} --file fetches the new "
        f"stubs of its file and keeps a copy of yours{others}"
    )
