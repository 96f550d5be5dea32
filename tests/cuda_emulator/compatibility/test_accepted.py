"""What other programs use and numba-cuda compiles: default values, functions in kernels, libdevice, its successor."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import float32, njit

from cuda_emulator import KernelError, cuda, install, options, uninstall
from cuda_emulator.compiler.compile import Variant, generate

libdevice = cuda.libdevice
HALF = np.float32(0.5)

both_modes = pytest.mark.parametrize("step", [False, True], ids=["compiled", "step"])


def run(kernel: Any, *arguments: Any, step: bool = False) -> None:
    """A launch of one block of 8 threads."""
    with options(step=step, threads=1):
        kernel[1, 8](*arguments)


# ---- default values


@cuda.jit(device=True)
def scaled(value, factor=2, offset=HALF):
    return value * factor + offset


@cuda.jit
def with_defaults(x, out, power=3, shift=0.25):
    i = cuda.grid(1)
    out[i] = scaled(x[i]) * power + scaled(x[i], offset=1) + shift


@both_modes
def test_arguments_that_a_launch_or_a_call_leaves_out_have_their_default_values(step: bool) -> None:
    x, out = np.arange(8.0), np.zeros(8)
    run(with_defaults, x, out, step=step)
    np.testing.assert_array_equal(out, (2 * x + 0.5) * 3 + 2 * x + 1 + 0.25)
    if step:
        return
    run(with_defaults, x, out, 5)
    np.testing.assert_array_equal(out, (2 * x + 0.5) * 5 + 2 * x + 1 + 0.25)


def test_too_few_arguments_name_how_many_there_may_be() -> None:
    with pytest.raises(ValueError, match=r"with_defaults takes 2 to 4 arguments \(x, out, power, shift\), got 1"):
        run(with_defaults, np.zeros(8))


def test_a_default_value_that_no_kernel_can_use_is_named() -> None:
    @cuda.jit(device=True)
    def picks(value, where={}):  # noqa: B006
        return value

    @cuda.jit
    def calls(x):
        x[0] = picks(x[0])

    with pytest.raises(KernelError, match=r"picks\(\) is called without 'where', whose default value is a dict"):
        calls.emulated_source(np.zeros(8))


# ---- def and lambda inside a kernel


@cuda.jit
def functions_inside(x, out):
    near = cuda.shared.array(8, float32)
    i = cuda.grid(1)
    n = x.size

    def around(j):
        if j >= n:
            return x[j - n]
        return x[j]

    square = lambda v: v * v  # noqa: E731

    def squared_around(j):
        value = around(j)
        return square(value)

    near[i] = squared_around(i + 2)
    cuda.syncthreads()

    def from_a_neighbour(j):
        value = near[j]
        cuda.syncthreads()
        return value

    out[i] = from_a_neighbour(7 - i)
    n = 4  # the functions read n when they are called
    out[i] += 100 * around(i % 4 + 3)


@both_modes
def test_functions_inside_a_kernel_use_its_variables_as_they_are_at_the_call(step: bool) -> None:
    x, out = np.arange(8.0), np.zeros(8)
    run(functions_inside, x, out, step=step)
    late = [j - 4 if j >= 4 else j for j in (i % 4 + 3 for i in range(8))]
    np.testing.assert_array_equal(out, (np.roll(x, -2) ** 2)[::-1] + 100 * x[late])


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


# ---- functions that become device functions in other ways


def plus_one(value):
    return value + 1


@njit
def tripled(value):
    return 3 * value


def device(function: Callable[..., Any]) -> Any:
    return cuda.jit(device=True)(function)


marked, jitted = device(plus_one), device(tripled)
minus, twice = device(lambda value: value - 1), device(lambda value: value * 2)


@cuda.jit
def calls_all(x, out):
    i = cuda.grid(1)
    out[i] = marked(x[i]) + 10 * jitted(x[i]) + 100 * minus(x[i]) + 1000 * twice(x[i])


def test_the_decorator_called_on_a_function_a_lambda_or_a_function_of_numba() -> None:
    x, out = np.arange(8.0), np.zeros(8)
    run(calls_all, x, out)
    np.testing.assert_array_equal(out, x + 1 + 30 * x + 100 * (x - 1) + 2000 * x)


# ---- libdevice


@cuda.jit
def library(x, out):
    i = cuda.grid(1)
    out[i, 0] = cuda.libdevice.sinf(x[i])
    out[i, 1] = libdevice.rsqrt(x[i])
    out[i, 2] = libdevice.fast_powf(x[i], 2.5)
    out[i, 3] = libdevice.round(x[i])
    out[i, 4] = libdevice.fmaf(x[i], 2, 1)
    out[i, 5] = libdevice.popc(int(x[i]))
    out[i, 6] = libdevice.float2int_rn(x[i])
    out[i, 7] = libdevice.saturatef(x[i])


@both_modes
def test_libdevice_has_the_functions_of_both_precisions_by_their_names(step: bool) -> None:
    x, out = np.array([0.5, 1, 1.5, 2.5, 3.49, 4, 5, 6.5]), np.zeros((8, 8))
    run(library, x, out, step=step)
    small = x.astype(np.float32)
    np.testing.assert_allclose(out[:, 0], np.sin(small), rtol=3e-7)
    np.testing.assert_allclose(out[:, 1], 1 / np.sqrt(x), rtol=1e-15)
    np.testing.assert_allclose(out[:, 2], small ** np.float32(2.5), rtol=3e-7)
    np.testing.assert_array_equal(out[:, 3], [1, 1, 2, 3, 3, 4, 5, 7])  # halves away from zero, as C's round
    np.testing.assert_array_equal(out[:, 4], small * 2 + 1)
    np.testing.assert_array_equal(out[:, 5], [0, 1, 1, 1, 2, 1, 2, 2])
    np.testing.assert_array_equal(out[:, 6], [0, 1, 2, 2, 3, 4, 5, 6])  # halves to even
    np.testing.assert_array_equal(out[:, 7], np.clip(x, 0, 1))


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
