"""Code of other people's programs that numba-cuda takes, each in a kernel of its own."""

from __future__ import annotations

import importlib
import subprocess
import sys
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba import float32, int32, vectorize
from numba.core.errors import NumbaInvalidConfigWarning

from cuda_emulator import KernelError, KernelWarning, cuda, install, options, uninstall

BOTH_MODES = pytest.mark.parametrize("mode", [{}, {"check": True}, {"step": True}], ids=["plain", "check", "step"])


@pytest.fixture
def installed() -> Iterator[None]:
    install()
    yield
    uninstall()


def test_a_race_between_arrays_that_take_turns_is_found() -> None:
    @cuda.jit
    def no_barrier(a):  # type: ignore[no-untyped-def]
        one = cuda.shared.array(4, float32)
        other = cuda.shared.array(4, float32)
        t = cuda.threadIdx.x
        one[t] = a[t]
        one, other = other, one
        a[t] = other[(t + 1) % 4]

    with options(check=True), pytest.raises(KernelError, match="race on"):
        no_barrier[1, 4](np.zeros(4, np.float32))


@cuda.jit(device=True)
def summed(a, b):  # type: ignore[no-untyped-def]
    return a + b


def test_a_function_that_step_mode_cannot_pass_on_is_named() -> None:
    @cuda.jit(device=True)
    def changes(function, x):  # type: ignore[no-untyped-def]
        function = x
        return function

    @cuda.jit
    def kernel(out):  # type: ignore[no-untyped-def]
        out[0] = changes(summed, 1)

    with options(step=True), pytest.raises(KernelError, match="'summed' is a device function: call it; it cannot be"):
        kernel[1, 1](np.zeros(1))


def test_dynamic_arrays_of_two_types_that_overlap_get_a_word_under_check() -> None:
    @cuda.jit
    def overlapping(x):  # type: ignore[no-untyped-def]
        f = cuda.shared.array(0, float32)
        i = cuda.shared.array(0, int32)
        f[0] = 3.5
        x[0] = f[0]
        i[0] = 1
        x[1] = i[0]

    with options(check=True), pytest.warns(KernelWarning, match="'i' and 'f' are the same dynamic shared memory"):
        overlapping[1, 1, 0, 8](np.zeros(2))


def test_debug_with_opt_or_lineinfo_gets_numba_cudas_warning() -> None:
    with pytest.warns(NumbaInvalidConfigWarning, match="debug=True with opt=True is not supported by CUDA") as caught:
        cuda.jit(debug=True)
    assert caught[0].filename == __file__
    with pytest.warns(NumbaInvalidConfigWarning, match="debug and lineinfo are mutually exclusive"):
        cuda.jit(debug=True, opt=False, lineinfo=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cuda.jit(debug=True, opt=False)
        cuda.jit(lineinfo=True)


def test_arguments_of_a_signatures_types_are_judged_once_and_others_each_time() -> None:
    @cuda.jit(["void(int32, float32[:])", "void(int64, float32[::1])"])
    def kernel(n, out):  # type: ignore[no-untyped-def]
        out[0] = n

    out = np.zeros(3, np.float32)
    for number in (1, 2**40, 3):  # an int is an int64: the second signature, whose types it has
        kernel[1, 1](number, out)
        assert out[0] == number
    for wrong in (out.astype(np.float64), np.zeros((1, 1), np.float32)):
        with pytest.raises(TypeError, match="fits none of its signatures"):
            kernel[1, 1](1, wrong)
    kernel[1, 1](np.int32(5), cuda.to_device(np.zeros(6, np.float32))[::2])
    with pytest.raises(TypeError, match="fits none of its signatures"):
        kernel[1, 1](np.uint64(2**40), cuda.to_device(np.zeros(6, np.float32))[::2])


def test_modules_that_programs_ask_for_are_there(installed: None) -> None:
    driver = importlib.import_module("numba.cuda.cudadrv.driver")
    assert numba.cuda.cudadrv.driver.CudaAPIError is driver.CudaAPIError
    testing = importlib.import_module("numba.cuda.testing")
    assert testing.skip_on_cudasim("only on a GPU")(added) is added  # NUMBA_ENABLE_CUDASIM is not set
    assert testing.cc_X_or_above(*cuda.get_current_device().compute_capability)
    assert not testing.cc_X_or_above(99, 0)
    assert find_spec("numba_cuda_mlir") is not None
    assert find_spec("numba.cuda") is not None
    with pytest.raises(AttributeError, match=r"the emulator's numba.cuda.cudadrv has no 'nothing'"):
        _ = numba.cuda.cudadrv.nothing


def test_an_array_goes_through_the_array_interface_and_other_memory_is_refused() -> None:
    device = cuda.to_device(np.arange(4.0))

    class Foreign:
        __cuda_array_interface__ = device[1:].__cuda_array_interface__

    @cuda.jit
    def add_one(a):  # type: ignore[no-untyped-def]
        a[cuda.grid(1)] += 1

    add_one[1, 3](Foreign())
    assert device.copy_to_host().tolist() == [0, 2, 3, 4]
    assert cuda.as_cuda_array(Foreign()).copy_to_host().tolist() == [2, 3, 4]
    assert cuda.device_array(0).__cuda_array_interface__["data"] == (0, False)
    host = np.zeros(3)
    Foreign.__cuda_array_interface__ = {**Foreign.__cuda_array_interface__, "data": (host.ctypes.data, False)}
    with pytest.raises(TypeError, match="as_cuda_array: expected an array of the emulated device, got the address 0x"):
        cuda.as_cuda_array(Foreign())


@BOTH_MODES
def test_a_pointer_is_the_memory_from_an_address_to_the_end_of_its_array(mode: dict[str, bool]) -> None:
    @cuda.jit(numba.types.void(numba.types.CPointer(float32), numba.types.uint32))
    def add_one(x, n):  # type: ignore[no-untyped-def]
        i = cuda.grid(1)
        if i < n:
            x[i] += 1

    device = cuda.to_device(np.arange(4, dtype=np.float32))
    address = device.__cuda_array_interface__["data"][0]
    with options(**mode):
        add_one[1, 8](address + 4, 3)
        assert device.copy_to_host().tolist() == [0, 2, 3, 4]
        with pytest.raises(KernelError, match=r"x\[3\] is out of bounds"):
            add_one[1, 8](address + 4, 4)
        with pytest.raises(
            TypeError, match=r"add_one: the argument 'x': expected the address of a device array, .* 0x10"
        ):
            add_one[1, 8](16, 1)
    assert "def run(" in add_one.emulated_source()


@cuda.jit(device=True)
def doubled(x):  # type: ignore[no-untyped-def]
    return 2 * x


@cuda.jit(device=True)
def endless(function, x):  # type: ignore[no-untyped-def]
    return endless(function, function(x))


def test_kernels_that_differ_in_a_captured_tuple_of_large_arrays_are_two() -> None:
    def of(values: tuple[np.ndarray[Any, Any], ...]) -> Any:
        @cuda.jit
        def kernel(out):  # type: ignore[no-untyped-def]
            for each in numba.literal_unroll(values):
                out[0] += each.sum()

        return kernel

    for number in (1, 2):
        large, out = np.ones(5000), np.zeros(1)
        large[2500] = number  # NumPy's text of the array has dots there
        of((large,))[1, 1](out)
        assert out[0] == 4999 + number


def added(x: Any, y: Any) -> Any:
    return x + y


class Handed:
    """An array of another library: only its interface is seen."""

    def __init__(self, array: Any) -> None:
        self.__cuda_array_interface__ = array.__cuda_array_interface__


def test_an_array_of_another_library_is_read_by_name_and_by_ufuncs(installed: None) -> None:
    device, managed = cuda.to_device(np.arange(3.0)), cuda.managed_array(3)
    captured, managed[:] = Handed(device), 1

    @cuda.jit
    def copy(out):  # type: ignore[no-untyped-def]
        i = cuda.grid(1)
        out[i] = captured[i]
        captured[i] += 1

    copy[1, 3](Handed(managed))
    assert managed.tolist() == [0, 1, 2]
    assert device.copy_to_host().tolist() == [1, 2, 3]
    total = vectorize(["float64(float64, float64)"], target="cuda")(added)
    assert total(Handed(device), 1.0).tolist() == [2, 3, 4]


def test_the_text_of_python_c_is_its_argument(tmp_path: Path) -> None:
    code = (
        "from cuda_emulator import cuda\n@cuda.jit\ndef hello():\n    print('hello', cuda.threadIdx.x)\nhello[1, 2]()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "hello 0\nhello 1\n"
