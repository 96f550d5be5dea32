"""What can be walked through: kernels of this project, of scripts in the studio's folder, and the learner's own.

Nothing here runs a kernel or imports one: scripts are read as text.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.machine import regular

FIRST_WEEK = 9
"""Of the course, with a kernel in it."""

MOST_SCRIPTS = 60
MOST_BYTES = 400_000


@dataclass(frozen=True)
class Choice:
    """A kernel of the project that the page offers.

    name: as `groundup lens` knows it; title: what it is; size: of a launch that is small enough to be walked through
    """

    name: str
    title: str
    size: tuple[int, int, int]


PROJECT = (
    Choice("dense.multiply", "element by element, a thread for each number", (10, 30, 1)),
    Choice("dense.add_bias", "a bias added to every row", (10, 12, 1)),
    Choice("gather_labels", "the labels of a mini-batch, picked by index", (48, 10, 1)),
    Choice("naive", "matrix product, threads down the rows", (32, 32, 16)),
    Choice("coalesced", "matrix product, threads along the columns", (32, 32, 16)),
    Choice("tiled_16", "matrix product with tiles in shared memory", (64, 64, 64)),
    Choice("tiled_16:tn", "the same with the first factor transposed", (32, 32, 32)),
    Choice("tiled_32", "the same with tiles of 32 by 32", (32, 32, 32)),
    Choice("register_1d", "matrix product, eight numbers to a thread", (64, 64, 8)),
    Choice("activations.relu", "ReLU", (10, 30, 1)),
    Choice("softmax_thread", "softmax, a thread for each row", (40, 10, 1)),
    Choice("softmax_warp", "softmax, a warp for each row, with shuffles", (8, 40, 1)),
    Choice("softmax_block", "softmax, a block for each row, with trees", (4, 300, 1)),
    Choice("softmax_warp_backward", "the derivative of softmax", (8, 40, 1)),
    Choice("softmax_cross_entropy", "the loss of each row", (8, 10, 1)),
    Choice("sums.columns_by_thread", "sums of columns, a thread for each", (20, 40, 1)),
    Choice("sums.columns_by_atomics", "sums of columns by atomic additions", (64, 40, 1)),
    Choice("sums.columns_by_block", "sums of columns by a tree", (40, 10, 1)),
    Choice("sums.total_by_tree", "sum of a vector by a tree", (40, 30, 1)),
    Choice("sums.total_by_warps", "sum of a vector by shuffles", (40, 30, 1)),
    Choice("optimizers.adam", "a step of Adam", (10, 30, 1)),
    Choice("convolution_1_basic.naive", "convolution, a thread for each output", (8, 8, 1)),
    Choice("convolution_1_basic.halo_tile", "convolution with a tile and its halo", (16, 16, 1)),
    Choice("max_pool", "a pool of 2 by 2", (8, 8, 1)),
)


def scripts(folder: Path, named: Sequence[Path]) -> list[dict[str, Any]]:
    """The scripts with kernels in the folder and its folder examples, and those named on the command line.

    [{"path": below the folder, or whole, "kernels": names}]; a file that is no Python, or has no kernel, is left out.
    """
    found: list[dict[str, Any]] = []
    for path in _python_files(folder, named):
        try:
            text = regular.read(path, MOST_BYTES).decode()
            kernels = kernels_in(text) if "cuda" in text else []
        except (OSError, ValueError):  # it cannot be read, is too long, or is no UTF-8
            continue
        if kernels:
            inside = path.is_relative_to(folder)
            found.append({"path": str(path.relative_to(folder) if inside else path), "kernels": kernels})
        if len(found) == MOST_SCRIPTS:
            break
    return found


def kernels_in(text: str) -> list[str]:
    """The names of the functions under @cuda.jit that are no device functions. [] for a text that is no Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two: nested too deeply for Python
        return []
    return [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and any(map(_makes_kernel, node.decorator_list))
    ]


def _makes_kernel(decorator: ast.expr) -> bool:
    call = decorator if isinstance(decorator, ast.Call) else None
    function = call.func if call else decorator
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    device = any(word.arg == "device" for word in call.keywords) if call else False
    return name == "jit" and not device


def _python_files(folder: Path, named: Sequence[Path]) -> Iterator[Path]:
    for place in named:
        if place.suffix == ".py":
            yield regular.real(place)
        elif place.is_dir():
            yield from sorted(regular.real(place).glob("*.py"))
    yield from sorted(folder.glob("*.py"))
    yield from sorted((folder / "examples").glob("*.py"))


def tasks(folder: Path) -> list[dict[str, Any]]:
    """The learner's kernels that are written, and the programs of detective exercises: [{"id", "title", "function",
    "file"}]. [] where no course was begun."""
    from groundup.course.manifest import course

    known = course()
    workspace = learners(folder)
    if workspace is None:
        return []
    return [
        {"id": task.id, "title": task.title, "function": task.function, "file": task.file}
        for task in (*known.tasks, *known.cases)
        if task.week >= FIRST_WEEK and task.file.endswith(".py") and (task.fault or _is_written(workspace, task))
    ]


def learners(folder: Path) -> Any:
    """The learner's workspace in the folder or around it; None where no course was begun."""
    from groundup.course.learner import learners_folder
    from groundup.course.manifest import course

    known = course()
    for each in (folder, *folder.parents, folder / learners_folder.DEFAULT):
        if learners_folder.has_learners_files(each, known) and not learners_folder.is_checkout(each):
            try:
                return learners_folder.opened(each, known)
            except (ValueError, OSError):
                return None
    return None


def _is_written(workspace: Any, task: Any) -> bool:
    try:
        return not workspace.is_stub(task)
    except (ValueError, OSError):
        return False
