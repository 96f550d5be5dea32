"""`kernel.profile(...)` calls a profiler that another package registers or offers as an entry point."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cuda_emulator import KernelError, cuda, hooks, options, register_progress
from cuda_emulator.lens import profile
from cuda_emulator.lens.detecting import detect

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


@cuda.jit
def double(a):  # type: ignore[no-untyped-def]
    a[cuda.grid(1)] *= 2


def echo(kernel: Any, grid: Any, block: Any, *arguments: Any, **options: Any) -> Any:
    """A profiler that returns what it was called with."""
    return kernel, grid, block, arguments, options


@pytest.fixture(autouse=True)
def _no_profiler_is_registered() -> Iterator[None]:
    before = hooks.find_profiler()
    hooks.register_profiler(None)
    yield
    hooks.register_profiler(before)


def test_profile_calls_the_registered_profiler_with_the_launch() -> None:
    hooks.register_profiler(echo)
    called_with = double.profile(2, 32, "a", sharedmem=64, blocks=1)
    assert called_with == (double, 2, 32, ("a",), {"sharedmem": 64, "blocks": 1})


def test_profile_finds_the_profiler_that_an_installed_package_offers(monkeypatch: pytest.MonkeyPatch) -> None:
    offered = [EntryPoint("lens", f"{__name__}:echo", hooks.ENTRY_POINTS)]
    monkeypatch.setattr(hooks, "entry_points", lambda group: offered if group == hooks.ENTRY_POINTS else [])
    assert double.profile(1, 32)[0] is double


def test_the_package_that_offers_a_profiler_may_register_a_detector(monkeypatch: pytest.MonkeyPatch) -> None:
    def load() -> Any:
        hooks.register_detector(detect)
        return echo

    monkeypatch.setattr(hooks, "_detector", None)
    monkeypatch.setattr(hooks, "entry_points", lambda group: [])
    assert hooks.find_detector() is None
    monkeypatch.setattr(hooks, "entry_points", lambda group: [SimpleNamespace(load=load)])
    assert hooks.find_detector() is detect
    assert hooks.find_profiler() is echo


def test_profile_without_a_profiler_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "entry_points", lambda group: [])
    with pytest.raises(KernelError, match=r"double\.profile\(\): no profiler is installed\. groundup has one: install"):
        double.profile(1, 32)


def test_groundup_offers_its_lens_as_the_profiler() -> None:
    declared = tomllib.loads(PYPROJECT.read_text())["project"]["entry-points"][hooks.ENTRY_POINTS]
    assert [EntryPoint(name, value, hooks.ENTRY_POINTS).load() for name, value in declared.items()] == [profile]


def test_importing_the_lens_registers_it_and_importing_the_emulator_does_not() -> None:
    emulator, lens = hooks.__package__, profile.__module__.rpartition(".")[0]
    program = f"""
import sys
import {hooks.__name__} as hooks
assert hooks._profiler is None and {lens!r} not in sys.modules
import {lens} as lens
assert hooks.find_profiler() is lens.profile
import {emulator}.runtime.dispatcher
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_whoever_is_registered_is_told_of_a_compilation_and_of_each_part_of_a_check() -> None:
    told: list[tuple[str, int, int]] = []
    before = register_progress(lambda *what: told.append(what))
    try:

        @cuda.jit
        def never_compiled_before(x):
            x[cuda.threadIdx.x] = 7.25

        values = np.zeros(32)
        with options(check=True):
            never_compiled_before[1, 32](values)
    finally:
        assert register_progress(before) is not None
    name = "never_compiled_before"
    parts = [f"checking {name}, launch 1"] * 5
    checked = [each for each in told if each[0].startswith("checking")]
    assert [each[0] for each in checked] == parts
    assert [each[1:] for each in checked] == [(i, 5) for i in range(5)]
    assert told[-1] == ("", 0, 0)
    assert {each[0] for each in told} <= {*parts, f"compiling {name}", ""}
