"""Open what the page asks for: a kernel of the project, of a script, or the learner's own. It runs in a child process.

{"kind": "project", "name": "tiled_16", "size": [64, 64, 64], "dtype": "float32"}
{"kind": "script", "path": SCRIPT, "kernel": "scale", "number": 1}
{"kind": "script", "path": SCRIPT, "kernel": "scale", "args": "x=float32[64]", "grid": [2], "block": [32]}
{"kind": "task", "folder": "groundup-course", "id": "11.1"}
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from groundup.studio.kernel.document import in_project
from groundup.studio.kernel.opened import Opened

LARGEST = 512
"""Rows, columns or terms of a project's kernel: a walk shows one block, so more would only take longer to make."""


def open_target(target: Mapping[str, Any]) -> Opened:
    """The kernel of a target. Stage 4 must run on the emulator (GROUNDUP_CUDA=emulator).

    Raises ValueError, TypeError or OSError for what cannot be opened, KernelError for a wrong kernel, ScriptFailed for
    a script that raises an exception.
    """
    kind = target.get("kind")
    if kind == "project":
        return _project(target)
    if kind == "script":
        return _script(target)
    if kind == "task":
        return _task(target)
    raise ValueError(f"kind: expected project, script or task, got {kind!r}")


def _project(target: Mapping[str, Any]) -> Opened:
    from groundup.kernels.launching import project_launch

    m, n, k = _numbers("size", target.get("size"), 3, LARGEST)
    name, dtype = str(target.get("name", "")), str(target.get("dtype", "float32"))
    return Opened(project_launch(name, (m, n, k), dtype), in_project)


def _script(target: Mapping[str, Any]) -> Opened:
    from cuda_emulator.inspection import Wanted, launch_of

    wanted = Wanted(number=_numbers("number", [target.get("number", 1)], 1, 10**6)[0])
    if target.get("args"):
        grid, block = (_extent(name, target.get(name)) for name in ("grid", "block"))
        wanted = Wanted(args=str(target["args"]), grid=grid, block=block)
    return Opened(launch_of(f"{Path(str(target['path']))}:{target.get('kernel', '')}", wanted))


def _task(target: Mapping[str, Any]) -> Opened:
    from groundup.course.learner import learners_folder
    from groundup.course.learners_lens import launch_of, shown_place
    from groundup.course.manifest import course

    known = course()
    task = next((each for each in (*known.tasks, *known.cases) if each.id == target.get("id")), None)
    if task is None:
        raise ValueError(f"id: the course has no task {target.get('id')!r}")
    launch, assembled = launch_of(learners_folder.opened(Path(str(target["folder"])), known), task)
    return Opened(launch, lambda file, line: shown_place(assembled, task, file, line))


def _extent(name: str, given: object) -> tuple[int, ...]:
    values = given if isinstance(given, list) else [given]
    return (
        tuple(_numbers(name, values, len(values), 10**9)) if 1 <= len(values) <= 3 else tuple(_numbers(name, [], 1, 1))
    )


def _numbers(name: str, given: Any, count: int, most: int) -> list[int]:
    """Whole numbers from 1. Raises ValueError, naming them, for anything else."""
    fits = isinstance(given, list) and len(given) == count
    if not fits or not all(type(each) is int and 1 <= each <= most for each in given):
        raise ValueError(f"{name}: expected {count} whole number{'s' * (count > 1)} from 1 to {most}, got {given!r}")
    return list(given)
