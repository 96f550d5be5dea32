"""What the page Floors shows as running really is called: traced while every example runs."""

from __future__ import annotations

import importlib
import sys
import threading
from typing import Any

import pytest

from groundup.studio.floors import source
from groundup.studio.floors.columns import function
from groundup.studio.floors.rooms import FUNCTIONS, LADDERS
from shared.checks.one_function import called, example
from shared.contract import STAGES, load_stage
from shared.machine.processes import ROOT
from tests.stages import REASONS, USABLE_STAGES
from tests.wide import wide

NAMES = [(room, name) for room, names in FUNCTIONS.items() for name in names]
BY_C = {
    "dense_forward": "network_forward",
    "dense_backward": "network_backward",
    "column_sums": "network_backward",
    "batch_norm_moments": "batch_norm",
}
"""C function -> the one that calls it, or, where rows lie on several processes, takes its place."""

SOMETIMES = {"_converted", "forward", "backward", "launch_max_backward"}
"""Python that is called for other arguments: those of another dtype, or with a window."""


def choices(stage: int, name: str) -> list[str]:
    return [*source.ladder(STAGES[stage], LADDERS[name][0])] or [""] if name in LADDERS else [""]


def shown(stage: int, room: str, name: str, rung: str) -> dict[str, Any]:
    rungs = tuple(rung if k == stage else "" for k in range(4))
    return function(room, name, rungs)["stages"][stage]


@pytest.mark.parametrize("stage", [k for k in range(3) if STAGES[k] in USABLE_STAGES])
@pytest.mark.parametrize(("room", "name"), NAMES)
def test_the_python_that_is_shown_is_called(room: str, name: str, stage: int) -> None:
    own = load_stage(STAGES[stage])
    for rung in choices(stage, name):
        seen = set()

        def note(frame: Any, event: str, argument: Any, seen: set[tuple[str, str]] = seen) -> None:
            if event == "call":
                seen.add((frame.f_code.co_filename, frame.f_code.co_name))

        threading.setprofile(note)
        sys.setprofile(note)
        try:
            called(own, example(room, name, 1), rung)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        for part in shown(stage, room, name, rung)["parts"]:
            file, last = str(ROOT / part["place"].rpartition(":")[0]), part["name"].rpartition(".")[2]
            assert part["language"] != "Python" or last in SOMETIMES or (file, last) in seen, (rung, part["name"])


@pytest.mark.skipif(bool(REASONS["stage3_c"]), reason=str(REASONS["stage3_c"]))
@pytest.mark.parametrize(("room", "name"), NAMES)
def test_the_c_that_is_shown_is_called(room: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    library = importlib.import_module("stage3_c.library")
    for rung in choices(2, name):
        seen: list[str] = []

        def noted(name: str, dtype: Any, seen: list[str] = seen, right: Any = library.function) -> Any:
            seen.append(name)
            return right(name, dtype)

        with monkeypatch.context() as patched:
            patched.setattr(library, "function", noted)
            called(load_stage("stage3_c"), example(room, name, 1), rung)
        parts = {part["name"] for part in shown(2, room, name, rung)["parts"] if part["language"] == "C"}
        for part in parts & library.FUNCTIONS.keys():
            assert part in seen or BY_C.get(part) in seen, (rung, part)


@wide
@pytest.mark.skipif(bool(REASONS["stage4_numba_cuda"]), reason=str(REASONS["stage4_numba_cuda"]))
@pytest.mark.parametrize(("room", "name"), NAMES)
def test_the_kernel_that_does_the_work_is_launched(room: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    emulator = importlib.import_module("cuda_emulator.inspection")
    right = emulator.Configured.__call__
    for rung in choices(3, name):
        seen: set[tuple[str, str]] = set()

        def launch(self: Any, *arguments: Any, seen: set[tuple[str, str]] = seen) -> None:
            code = self.dispatcher.py_func.__code__
            seen.add((code.co_filename, code.co_name))
            right(self, *arguments)

        with monkeypatch.context() as patched:
            patched.setattr(emulator.Configured, "__call__", launch)
            called(load_stage("stage4_numba_cuda"), example(room, name, 1), rung)
        stage = shown(3, room, name, rung)
        work = stage["parts"][stage["work"]]
        if work["language"] == "kernel":
            file = work["place"].rpartition(":")[0]
            assert str(ROOT / file) in {each for each, _ in seen}, (rung, work["name"])
            kernel = getattr(importlib.import_module(file.removesuffix(".py").replace("/", ".")), work["name"], None)
            assert not isinstance(kernel, emulator.Kernel) or (str(ROOT / file), work["name"]) in seen
