"""When a kernel's text and its globals are read, and how its calls of cuda's own functions may be written."""

from __future__ import annotations

import importlib.util
import inspect
import linecache
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numba import njit

from cuda_emulator import KernelError, cuda, options
from cuda_emulator.compiler.reading.signatures import PARAMETERS
from cuda_emulator.intrinsics import ATOMICS, COLLECTIVES, LOADS, STORES
from tests.cuda_emulator.emulator_kernels.programs import hints_for_caches


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUNDUP_CACHE", str(tmp_path / "cache"))


@pytest.fixture(params=["compiled", "step"])
def mode(request: pytest.FixtureRequest) -> Iterator[str]:
    with options(step=request.param == "step"):
        yield request.param


def run_cell(number: int, text: str, names: dict[str, Any]) -> None:
    """What a notebook does with a cell: the same one may run again with another text."""
    filename = f"<cell {number}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    exec(compile(text, filename, "exec"), names)


def test_the_end_of_a_function_is_looked_for_when_it_is_compiled_and_not_when_it_is_defined(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Python reads word by word to find it: for every kernel of stage 4 that took half of the time of its import."""
    looked = 0

    def getblock(lines: list[str], real: Any = inspect.getblock) -> list[str]:
        nonlocal looked
        looked += 1
        return list(real(lines))

    monkeypatch.setattr(inspect, "getblock", getblock)
    names: dict[str, Any] = {"cuda": cuda}
    run_cell(
        1, "@cuda.jit(device=True)\ndef value():\n    return 5\n\n@cuda.jit\ndef k(out):\n    out[0] = value()\n", names
    )
    assert looked == 0
    out = np.zeros(1)
    with options(step=True):
        names["k"][1, 1](out)
    assert (out[0], looked) == (5, 2)


@pytest.mark.usefixtures("mode")
def test_a_kernel_keeps_the_text_of_its_cell_when_the_cell_runs_again() -> None:
    names: dict[str, Any] = {"cuda": cuda}
    run_cell(1, "@cuda.jit(device=True)\ndef value():\n    return 111\n", names)
    run_cell(2, "@cuda.jit\ndef k(out):\n    out[0] = value()\n", names)
    old = names["k"]
    text = "# another\n@cuda.jit\ndef k(out):\n    out[0] = -1\n"
    run_cell(2, text, names)
    linecache.cache["<cell 1>"] = linecache.cache["<cell 2>"]  # the device function's cell, too
    out = np.zeros(1)
    old[1, 1](out)
    assert out[0] == 111


def imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_file_that_changes_after_its_import_does_not_change_its_kernels(tmp_path: Path) -> None:
    path = tmp_path / "kernels_in_a_file.py"
    start = "from cuda_emulator import cuda\n"
    path.write_text(start + "@cuda.jit\ndef k(out):\n    out[0] = 111\n")
    module = imported(path)
    path.write_text(start + "LIMIT = 1\nANOTHER = 2\n@cuda.jit\ndef k(out):\n    out[0] = 222\n")
    os.utime(path, (1, 1))  # another time than before, whatever the clock's resolution
    out = np.zeros(1)
    with options(step=True):
        module.k[1, 1](out)
        assert out[0] == 111
        module.k.specialize(out)[1, 1](out)
    assert out[0] == 111


FACTOR = 1
OFFSET = 10


@cuda.jit(device=True)
def offset() -> int:
    return OFFSET


@njit
def twice_offset() -> int:
    return 2 * OFFSET


@cuda.jit
def reads_globals(out: Any) -> None:
    out[0] = FACTOR
    out[1] = offset()
    out[2] = twice_offset()


@pytest.mark.usefixtures("mode")
def test_globals_are_frozen_for_each_combination_of_argument_types(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = cuda.jit(reads_globals.py_func)
    wide, narrow = np.zeros(3), np.zeros(3, np.float32)
    kernel[1, 1](wide)
    assert wide.tolist() == [1, 10, 20]
    monkeypatch.setitem(globals(), "FACTOR", 5)
    monkeypatch.setitem(globals(), "OFFSET", 7)
    kernel[1, 1](wide)
    kernel[1, 1](narrow)
    assert wide.tolist() == [1, 10, 20]
    assert narrow.tolist() == [5, 7, 14]


def test_recompile_reads_globals_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = cuda.jit(reads_globals.py_func)
    out = np.zeros(3)
    kernel[1, 1](out)
    monkeypatch.setitem(globals(), "FACTOR", 6)
    kernel.recompile()
    kernel[1, 1](out)
    assert out[0] == 6


@pytest.mark.usefixtures("mode")
def test_a_name_that_a_function_of_cuda_lacks_is_refused() -> None:
    @cuda.jit
    def unknown(out: Any) -> None:
        out[0] = cuda.grid(dimensions=1)

    @cuda.jit
    def twice(out: Any) -> None:
        cuda.atomic.add(out, 0, 1, idx=2)

    @cuda.jit
    def too_few(out: Any) -> None:
        out[0] = cuda.shfl_sync(0xFFFFFFFF, value=1)

    for kernel, message in (
        (unknown, r"cuda\.grid\(ndim\) has no argument 'dimensions', or it is given twice"),
        (twice, r"cuda\.atomic\.add\(ary, idx, val\) has no argument 'idx', or it is given twice"),
        (too_few, r"cuda\.shfl_sync\(mask, value, src_lane\) is called without 'src_lane'"),
    ):
        with pytest.raises(KernelError, match=message):
            kernel[1, 1](np.zeros(4))


def test_every_collective_atomic_load_and_store_has_its_arguments_names() -> None:
    assert {*COLLECTIVES, *LOADS, *STORES, *(f"atomic.{name}" for name in ATOMICS)} <= set(PARAMETERS)


def test_a_store_with_a_hint_inside_an_expression_is_refused(mode: str) -> None:
    @cuda.jit
    def inside(out: Any) -> None:
        out[0] = 1 if out[0] else cuda.stcg(out, 0, 1)

    with pytest.raises(KernelError, match=r"cuda\.stcg\(.*in a statement of its own"):
        inside[1, 1](np.zeros(4))


@pytest.mark.usefixtures("mode")
def test_a_load_with_a_hint_for_caches_is_checked() -> None:
    out = np.zeros((4, 32), np.int64)
    with pytest.raises(KernelError, match=r"a\[16\] is out of bounds") as caught:
        hints_for_caches[1, 32](np.arange(16), np.zeros((32, 2), np.int64), out)
    assert "cuda.ldca(a, i)" in str(caught.value)
