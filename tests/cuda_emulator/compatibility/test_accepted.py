"""What other programs use and numba-cuda compiles: default values, functions in kernels, its successor."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuda_emulator import KernelError, cuda, install, options, uninstall
from cuda_emulator.compiler.compile import Variant, generate

libdevice = cuda.libdevice


def run(kernel: Any, *arguments: Any) -> None:
    """A launch of one block of 8 threads."""
    with options(threads=1):
        kernel[1, 8](*arguments)


def test_a_default_value_that_no_kernel_can_use_is_named() -> None:
    @cuda.jit(device=True)
    def picks(value, where={}):  # noqa: B006
        return value

    @cuda.jit
    def calls(x):
        x[0] = picks(x[0])

    with pytest.raises(KernelError, match=r"picks\(\) is called without 'where', whose default value is a dict"):
        calls.emulated_source(np.zeros(8))


def test_an_index_inside_a_nested_function_is_checked_and_told_with_its_line() -> None:
    @cuda.jit
    def past_the_end(x):
        def read(j):
            return x[j]  # this line

        x[0] = read(8)

    with pytest.raises(KernelError, match=r"x\[8\] is out of bounds: x has shape \(8,\)") as raised:
        run(past_the_end, np.zeros(8))
    line = past_the_end.py_func.__code__.co_firstlineno
    assert raised.value.line == line + 3


def test_a_function_that_libdevice_has_not_is_named() -> None:
    @cuda.jit
    def rounds_up(x):
        x[0] = cuda.libdevice.fadd_ru(x[0], 1)

    with pytest.raises(KernelError, match=r"'cuda.libdevice' has no attribute 'fadd_ru'"):
        rounds_up.emulated_source(np.zeros(8))


# ---- the host's side


@pytest.fixture
def _installed() -> Iterator[None]:
    install()
    yield
    uninstall()


@pytest.mark.usefixtures("_installed")
def test_the_successor_of_numba_cuda_is_the_emulator_too() -> None:
    import numba_cuda_mlir.cuda as by_name
    from numba.cuda import libdevice as below_numba
    from numba_cuda_mlir import cuda as successor
    from numba_cuda_mlir.cuda.random import create_xoroshiro128p_states

    assert successor is by_name is cuda
    assert create_xoroshiro128p_states is cuda.random.create_xoroshiro128p_states
    assert below_numba.sinf is libdevice.sinf
    with pytest.raises(ModuleNotFoundError, match=r"numba_cuda_mlir\.codegen is not supported by the emulator"):
        import numba_cuda_mlir.codegen  # noqa: F401


def test_the_compute_capability_has_its_old_name_too() -> None:
    device = cuda.get_current_device()
    assert device.compute_capability == device.COMPUTE_CAPABILITY


# ---- what compiling costs


@cuda.jit
def three_shuffles(x):
    i = cuda.grid(1)
    value = x[i]
    value += cuda.shfl_down_sync(0xFFFFFFFF, value, 4)
    value += cuda.shfl_down_sync(0xFFFFFFFF, value, 2)
    value += cuda.shfl_down_sync(0xFFFFFFFF, value, 1)
    x[i] = value


COMPILED = f"""
import numpy as np
from cuda_emulator.helpers import warps
from {__name__} import run, three_shuffles

x = np.arange(8, dtype=np.float32)
run(three_shuffles, x)
assert x[0] == 28
for signature in warps.shuffle_down.signatures:
    print(signature)
"""


def test_a_helper_is_compiled_once_however_many_lines_call_it(tmp_path: Path) -> None:
    """In a new process, with no kernel in the cache: with one, or behind another test, there is nothing to compile."""
    environment = {**os.environ, "GROUNDUP_CACHE": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run(
        [sys.executable, "-c", COMPILED], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (signature,) = done.stdout.splitlines()
    assert "float32" in signature
    assert "Literal" not in signature


def test_rows_of_a_block_are_one_loop_where_their_place_is_not_asked_for() -> None:
    import numba

    text, _, _ = generate(three_shuffles.source, (numba.float32[::1],), Variant())
    block = text[text.index("def run_block") : text.index("def run(")]
    assert "for _row in range(_bdz * _bdy):" in block
    assert "for _tz" not in block
