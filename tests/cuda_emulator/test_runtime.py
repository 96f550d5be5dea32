"""What a host program meets: jit, launches, arguments. In step mode, where nothing has to be compiled."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import float32, int32, njit, void

from cuda_emulator import KernelError, cuda, options
from cuda_emulator.runtime.dispatcher import Kernel


@pytest.fixture(autouse=True)
def _step_mode() -> Iterator[None]:
    with options(step=True):
        yield


@cuda.jit
def scale(a, factor, out):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    if i < a.size:
        out[i] = a[i] * factor


@cuda.jit
def add_one_to_each(a, b):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    if i < a.size:
        a[i] += 1
        b[i] += 10


@cuda.jit
def nothing(a):  # type: ignore[no-untyped-def]
    pass


def test_a_host_array_is_changed_and_a_device_array_until_copied_is_not() -> None:
    a, out = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
    scale[1, 32](a, np.float32(2), out)
    assert out.tolist() == [0, 2, 4, 6, 8]
    source = np.zeros(5, np.float32)
    device = cuda.to_device(source)
    scale[1, 32](a, 3.0, device)
    assert source.tolist() == [0] * 5
    assert device.copy_to_host().tolist() == [0, 3, 6, 9, 12]


def test_host_arguments_that_overlap_are_copies_copied_back_in_order() -> None:
    a = np.zeros(4)
    add_one_to_each[1, 32](a, a)  # on a device: two copies of a; the second is copied back last
    assert a.tolist() == [10] * 4
    whole = np.zeros(6)
    add_one_to_each[1, 32](whole[:4], whole[2:])
    assert whole.tolist() == [1, 1, 10, 10, 10, 10]
    device = cuda.to_device(np.zeros(4))
    add_one_to_each[1, 32](device, device)
    assert device.copy_to_host().tolist() == [11] * 4


def test_in_out_and_inout_say_which_way_an_array_is_copied() -> None:
    a, b = np.zeros(3), np.zeros(3)
    add_one_to_each[1, 32](cuda.In(a), cuda.InOut(b))
    assert (a.tolist(), b.tolist()) == ([0] * 3, [10] * 3)
    out = np.zeros(3)
    add_one_to_each[1, 32](cuda.Out(out), np.zeros(3))
    assert np.isnan(out).all()
    with pytest.raises(TypeError, match=r"cuda\.In: expected a NumPy array, got a list"):
        cuda.In([1])


class Pair(NamedTuple):
    first: Any
    second: Any


@pytest.mark.parametrize("pair", [lambda a: (a, 5), lambda a: Pair(a, 5), lambda a: (cuda.to_device(a), 5)])
def test_tuples_of_arrays_and_numbers_are_arguments(pair: Any) -> None:
    nothing[1, 1](pair(np.zeros(3)))


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ([1, 2], TypeError, r"nothing: the argument 'a' is a list: .* numpy\.array\(\), or a tuple"),
        ("text", TypeError, "the argument 'a' is a str: .* no text"),
        (None, TypeError, "the argument 'a' is a NoneType: .* returns None"),
        (object(), TypeError, "the argument 'a' is a object: .* one by one"),
        ((1, [2]), TypeError, r"the argument 'a\[1\]' is a list"),
        (2**64, TypeError, "the argument 'a' is 18446744073709551616: a kernel's integers have 64 bits"),
        (np.array([None]), TypeError, "the argument 'a' holds Python objects"),
        (np.zeros(3, ">f4"), TypeError, "the argument 'a' is an array of dtype >f4, which no kernel can take"),
        (np.arange(10)[::2], ValueError, r"nothing: the argument 'a': .* gaps .*ascontiguousarray"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_argument_that_no_kernel_takes_is_named(value: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        nothing[1, 1](value)


def test_a_wrong_number_of_arguments_is_told_at_the_launch() -> None:
    with pytest.raises(KernelError, match=r"scale takes 3 arguments \(a, factor, out\), got 2") as raised:
        scale[1, 1](np.zeros(3), 2)
    assert raised.value.filename == __file__
    assert "scale[1, 1](np.zeros(3), 2)" in str(raised.value)
    with pytest.raises(KernelError, match="given by position, not by name: factor"):
        scale[1, 1](np.zeros(3), np.zeros(3), factor=2)


def test_a_kernel_without_a_launch_configuration_says_how_to_write_it() -> None:
    with pytest.raises(KernelError, match=r"scale\[blocks, threads\]\(\.\.\.\)") as raised:
        scale(np.zeros(3), 2, np.zeros(3))
    assert raised.value.filename == __file__


def test_forall_covers_its_tasks() -> None:
    out = np.zeros(600)
    scale.forall(600)(np.ones(600), 2, out)
    assert out.tolist() == [2] * 600
    scale.forall(0)(np.ones(3), 2, out)
    scale.forall(3, tpb=2, stream=cuda.stream())(np.ones(3), 7, out)
    assert out[:4].tolist() == [7, 7, 7, 2]
    with pytest.raises(ValueError, match="forall: expected at least 0 tasks, got -1"):
        scale.forall(-1)


@pytest.mark.parametrize(
    "signature",
    [
        "void(float32[:], float32, float32[:])",
        void(float32[:], float32, float32[::1]),
        (float32[:], float32, float32[:]),
        ["void(int32[:], int32, int32[:])", "void(float32[:], float32, float32[:])"],
    ],
    ids=["string", "Signature", "tuple", "list"],
)
def test_a_signature_converts_numbers_and_holds_arrays_to_their_types(signature: object) -> None:
    kernel = cuda.jit(signature)(scale.py_func)
    out = np.zeros(3, np.float32)
    kernel[1, 32](np.ones(3, np.float32), 3, out)
    assert out.tolist() == [3, 3, 3]
    with pytest.raises(TypeError, match=r"scale: .*array\(float64"):
        kernel[1, 32](np.ones(3), 3, out)


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (2.5, "the argument 'factor' must be int32 as the signature says, got 2.5, a float"),
        (2**31, "the argument 'factor' is 2147483648, which does not fit into the signature's int32"),
    ],
)
def test_a_number_that_does_not_fit_the_signature_is_refused(number: object, message: str) -> None:
    kernel = cuda.jit((int32[:], int32, int32[:]))(scale.py_func)
    with pytest.raises(TypeError, match=message):
        kernel[1, 1](np.zeros(3, np.int32), number, np.zeros(3, np.int32))


def test_a_layout_in_the_signature_is_held_to() -> None:
    kernel = cuda.jit("void(float32[:, ::1])")(nothing.py_func)
    kernel[1, 1](np.zeros((2, 3), np.float32))
    with pytest.raises(TypeError, match=r"must be array\(float32, 2d, C\) .* got array\(float32, 2d, F\)"):
        kernel[1, 1](np.zeros((2, 3), np.float32, order="F"))


def test_options_of_numba_cuda_are_taken() -> None:
    kernel = cuda.jit(
        fastmath=True, cache=True, debug=False, opt=True, lineinfo=True, max_registers=32, launch_bounds=64, link=[]
    )(nothing.py_func)
    kernel[1, 64](np.zeros(1))
    function = cuda.jit("float32(float32)", device=True, inline="always", forceinline=True)(lambda x: x)
    assert function.options["inline"] == "always"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"fast": True}, TypeError, "cuda.jit: unknown option 'fast'; it takes device, inline"),
        ({"link": ["code.cu"]}, KernelError, r"link= names code for a GPU .* @cuda.jit\(device=True\)"),
        ({"extensions": [1]}, KernelError, "extensions= is not supported"),
        ({"boundscheck": True}, KernelError, "boundscheck=True is refused by numba-cuda"),
        ({"launch_bounds": "all"}, KernelError, "launch_bounds: expected the largest number of threads"),
        ({"inline": "sometimes"}, KernelError, "inline: expected 'never' or 'always', got 'sometimes'"),
        ({"argtypes": ()}, TypeError, "the option 'argtypes' was removed from numba-cuda"),
        ({"func_or_sig": "void(float33[:])"}, KernelError, r"the signature 'void\(float33\[:\]\)' cannot be read"),
        ({"func_or_sig": "float32(float32[:])"}, TypeError, r"a kernel returns nothing, its signature says float32"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_an_option_that_means_nothing_here_is_named(options: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        cuda.jit(**options)(nothing.py_func)


async def waits(a: Any) -> None: ...


def yields(a: Any) -> Iterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (waits, KernelError, "a kernel cannot be async"),
        (yields, KernelError, "a kernel cannot yield: write results into an array"),
        (lambda a: None, KernelError, "a kernel cannot be a lambda: write it with def"),
        (Pair, TypeError, "must be a function that starts with def, got the class Pair"),
        (scale, KernelError, "scale is already made by @cuda.jit: apply the decorator once"),
        (njit(nothing.py_func), TypeError, "must be a function that starts with def, or a signature must come first"),
        (3, TypeError, "got 3, a int"),
    ],
    ids=["async", "generator", "lambda", "class", "kernel", "njit", "number"],
)
def test_what_cannot_be_a_kernel_is_told(function: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        cuda.jit()(function)


def test_a_kernel_tells_what_it_is_compiled_from() -> None:
    kernel = cuda.jit(scale.py_func)
    with pytest.raises(KernelError, match=r"scale has not been launched: give emulated_source\(\) the arguments"):
        kernel.emulated_source()
    arguments = (np.ones(3, np.float32), 2, cuda.to_device(np.zeros(3, np.float32)))
    with options(step=False):
        kernel[1, 32](*arguments)
        source = kernel.emulated_source()
        assert "def run(" in source
        assert kernel.emulated_source(*arguments) == source
    assert arguments[2].copy_to_host().tolist() == [2, 2, 2]
    assert len(kernel.overloads) == 1
    assert list(kernel.get_shared_mem_per_block().values()) == [0]


def test_a_specialized_kernel_takes_its_types_only() -> None:
    special = nothing.specialize(np.zeros(3))
    assert special.specialized
    special[1, 1](np.zeros(5))
    with pytest.raises(TypeError, match=r"the argument 'a' must be array\(float64, 1d, C\)"):
        special[1, 1](np.zeros(5, np.float32))
    with pytest.raises(RuntimeError, match="accepts one combination of types already"):
        special.specialize(np.zeros(3))


def test_a_kernel_says_what_a_device_would_have_told_of_it() -> None:
    kernel = cuda.jit(void(float32[:], float32, float32[:]), launch_bounds=128)(scale.py_func)
    assert kernel.nopython_signatures == []
    kernel.compile(void(float32[:], float32, float32[:]))
    assert kernel.nopython_signatures == [void(float32[:], float32, float32[:])]
    assert kernel.get_max_threads_per_block() == 128
    assert kernel.get_const_mem_size() == 0
    assert kernel.get_shared_mem_per_block(kernel.nopython_signatures[0]) == 0
    assert kernel.extensions == []
    for name, reason in (
        ("inspect_asm", r"emulated_source\(\) shows"),
        ("inspect_types", r"emulated_source\(\) shows"),
        ("get_regs_per_thread", "the compiler for a GPU decides it"),
    ):
        with pytest.raises(AttributeError, match=f"a kernel has no '{name}' in the emulator: .*{reason}"):
            getattr(kernel, name)
    with pytest.raises(AttributeError, match=r"a kernel has no 'colour'$"):
        _ = kernel.colour


def test_a_signature_names_each_argument() -> None:
    with pytest.raises(KernelError, match="scale takes 3 arguments, its signature names 1"):
        cuda.jit("void(float32[:])")(scale.py_func)


def test_a_kernel_can_be_a_method() -> None:
    class Holder:
        kernel = cuda.jit(nothing.py_func)

    assert isinstance(Holder.kernel, Kernel)
    Holder.kernel[1, 1](np.zeros(1))
    assert repr(Holder.kernel) == "<kernel nothing(a)>"
