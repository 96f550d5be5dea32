"""Code of other people's programs that numba-cuda takes, each in a kernel of its own."""

from __future__ import annotations

import importlib
import math
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

FLAG = False
BOTH_MODES = pytest.mark.parametrize("mode", [{}, {"check": True}, {"step": True}], ids=["plain", "check", "step"])


@pytest.fixture
def installed() -> Iterator[None]:
    install()
    yield
    uninstall()


@cuda.jit
def declared_in_both_branches(a):  # type: ignore[no-untyped-def]
    if FLAG:
        s = cuda.local.array((3, 3), float32)
        s[2, 2] = 0
    else:
        s = cuda.local.array((1, 1), float32)
    s[0, 0] = 1
    a[cuda.grid(1)] = s[0, 0]


@cuda.jit
def declared_alike_in_both_branches(a):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    if i > 1:
        s = cuda.local.array(3, float32)
        s[0] = 1
    else:
        s = cuda.local.array(3, float32)
        s[0] = 1
    a[i] = s[0]


@cuda.jit
def takes_turns(a):  # type: ignore[no-untyped-def]
    one = cuda.shared.array(4, float32)
    other = cuda.shared.array(4, float32)
    t = cuda.threadIdx.x
    one[t] = a[t]
    cuda.syncthreads()
    for _ in range(3):
        other[t] = one[(t + 1) % 4]
        cuda.syncthreads()
        one, other = other, one
    a[t] = one[t] * 0 + 1


@BOTH_MODES
@pytest.mark.parametrize(
    "kernel", [declared_in_both_branches, declared_alike_in_both_branches, takes_turns], ids=lambda each: each.__name__
)
def test_an_array_may_be_declared_in_each_branch_and_take_turns(kernel: Any, mode: dict[str, bool]) -> None:
    a = np.zeros(4, np.float32)
    with options(**mode):
        kernel[1, 4](a)
    assert a.tolist() == [1, 1, 1, 1]


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
def place_of(value, a):  # type: ignore[no-untyped-def]
    for i in range(a.size):
        if a[i] == value:
            break
    else:
        return -1
    return i


@cuda.jit
def loops_with_else(a, out):  # type: ignore[no-untyped-def]
    shared = cuda.shared.array(4, float32)
    t = cuda.threadIdx.x
    shared[t] = t
    for _ in range(2):
        if a[0] > 100:
            break
    else:
        cuda.syncthreads()
    out[t] = shared[3 - t]
    for _ in range(3):
        n = 0
        while n < t:
            if n == 2:
                break
            n += 1
        else:
            out[t] += 10
            if t == 1:
                break  # of the loop around
    else:
        out[t] += 1000
    out[t] += 100 * place_of(t, a)


@BOTH_MODES
def test_a_loop_may_have_an_else(mode: dict[str, bool]) -> None:
    out = np.zeros(4)
    with options(**mode):
        loops_with_else[1, 4](np.arange(3.0), out)
    assert out.tolist() == [3 + 30 + 1000, 2 + 10 + 100, 1 + 30 + 1000 + 200, 0 + 1000 - 100]


@cuda.jit(device=True)
def summed(a, b):  # type: ignore[no-untyped-def]
    return a + b


@cuda.jit(device=True)
def over_the_block(a, b):  # type: ignore[no-untyped-def]
    shared = cuda.shared.array(4, float32)
    shared[cuda.threadIdx.x] = a
    cuda.syncthreads()
    return shared[3 - cuda.threadIdx.x] + b


@cuda.jit(device=True)
def value_of(function, x, dtype, more=1):  # type: ignore[no-untyped-def]
    one = cuda.local.array(1, dtype)
    one[0] = function(x, more)
    return dtype(one[0] + 0.5)


@cuda.jit
def passes_functions(out):  # type: ignore[no-untyped-def]
    out[cuda.threadIdx.x] = value_of(summed, cuda.threadIdx.x, dtype=int32)
    out[cuda.threadIdx.x] += value_of(over_the_block, cuda.threadIdx.x, float32, more=2)


@BOTH_MODES
def test_a_device_function_may_be_given_functions_and_types(mode: dict[str, bool]) -> None:
    out = np.zeros(4)
    with options(**mode):
        passes_functions[1, 4](out)
    assert out.tolist() == [(t + 1) + (3 - t + 2 + 0.5) for t in range(4)]


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


def made(operation: Any, flag: bool) -> Any:
    if flag:
        number = 3

    @cuda.jit
    def kernel(a):  # type: ignore[no-untyped-def]
        if flag:
            a[0] = number
        if operation is not None:
            operation(a)
        a[2] = 5 if operation != None else 4  # noqa: E711 - as the program has it

    return kernel


@BOTH_MODES
def test_a_branch_on_a_captured_constant_is_pruned(mode: dict[str, bool]) -> None:
    @cuda.jit(device=True)
    def one(a):  # type: ignore[no-untyped-def]
        a[1] = 1

    results = []
    for operation in (None, cuda.jit(device=True)(one)):
        a = np.zeros(3)
        with options(**mode):
            made(operation, False)[1, 1, None](a)
        results.append(a.tolist())
    assert results == [[0, 0, 4], [0, 1, 5]]


def test_dynamic_shared_memory_is_divided_by_slices() -> None:
    @cuda.jit
    def divided(x):  # type: ignore[no-untyped-def]
        f = cuda.shared.array(0, float32)
        i = cuda.shared.array(0, int32)[1:]
        f[0] = 3.5
        i[0] = 1
        x[0] = f[0]
        x[1] = i[0]

    x = np.zeros(2)
    with options(check=True):
        divided[1, 1, 0, 8](x)
    assert x.tolist() == [3.5, 1]


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
    assert testing.skip_on_cudasim("only on a GPU")(made) is made  # NUMBA_ENABLE_CUDASIM is not set
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
def counted(a, size, dtype, operation, key):  # type: ignore[no-untyped-def]
    t = cuda.threadIdx.x
    s = cuda.shared.array(size, dtype)
    s[t] = 0
    cuda.syncthreads()
    operation(s, key(a[t]) % size, 1)
    cuda.syncthreads()
    a[t] = s[t]


@cuda.jit(device=True)
def applied(function, x):  # type: ignore[no-untyped-def]
    return function(x)


@cuda.jit(device=True)
def endless(function, x):  # type: ignore[no-untyped-def]
    return endless(function, function(x))


@pytest.mark.parametrize("mode", [{}, {"check": True}], ids=["plain", "check"])
def test_a_device_function_takes_functions_types_and_sizes(mode: dict[str, bool]) -> None:
    @cuda.jit
    def histogram(a):  # type: ignore[no-untyped-def]
        counted(a, 8, int32, cuda.atomic.add, doubled)

    @cuda.jit
    def twice_and_back(a):  # type: ignore[no-untyped-def]
        i = cuda.grid(1)
        a[i] = applied(doubled, a[i]) + applied(abs, -a[i])

    with options(**mode):
        a = np.array([0, 1, 1, 3, 3, 3, 4, 7], np.int32)
        histogram[1, 8](a)
        assert a.tolist() == [2, 0, 2, 0, 0, 0, 4, 0]
        twice_and_back[1, 8](a)
        assert a.tolist() == [6, 0, 6, 0, 0, 0, 12, 0]

    @cuda.jit
    def for_ever(a):  # type: ignore[no-untyped-def]
        a[0] = endless(doubled, a[0])

    with pytest.raises(KernelError, match="'endless' calls itself; recursion is not supported by the emulator"):
        for_ever[1, 1](a)


@BOTH_MODES
def test_bits_and_neighbours_of_numbers(mode: dict[str, bool]) -> None:
    @cuda.jit
    def kernel(bits, near):  # type: ignore[no-untyped-def]
        bits[0] = bits[0].bit_count()
        near[0] = math.nextafter(near[0], 2.0)

    bits, near = np.array([0b1011], np.uint32), np.ones(1)
    with options(**mode):
        kernel[1, 1](bits, near)
    assert (bits[0], near[0]) == (3, math.nextafter(1.0, 2.0))


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


def test_a_function_that_exec_has_made_may_become_a_kernel_later() -> None:
    text, names = "def two(a):\n    a[cuda.grid(1)] = 2\n", {"cuda": cuda}
    exec(text, names)
    kernel, a = cuda.jit(names["two"]), np.zeros(3)
    kernel[1, 3](a)
    assert a.tolist() == [2, 2, 2]


def test_a_string_that_runs_the_program_is_not_taken_for_the_kernels() -> None:
    exec("run()", {"run": test_a_function_that_exec_has_made_may_become_a_kernel_later})


def test_the_text_of_python_c_is_its_argument(tmp_path: Path) -> None:
    code = (
        "from cuda_emulator import cuda\n@cuda.jit\ndef hello():\n    print('hello', cuda.threadIdx.x)\nhello[1, 2]()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "hello 0\nhello 1\n"
