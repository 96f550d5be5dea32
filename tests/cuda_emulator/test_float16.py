"""float16: each operation is rounded to half precision, in all modes; and Numba's other types stay as they are."""

from __future__ import annotations

import math
import operator
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from numba import types
from numba.core.registry import cpu_target

from cuda_emulator import KernelError, cuda, options
from cuda_emulator.helpers.half import has_half

ALL = np.arange(65536).astype(np.uint16).view(np.float16)
BOTH_MODES = pytest.mark.parametrize("mode", [{}, {"check": True}, {"step": True}], ids=["plain", "check", "step"])


@cuda.jit
def arithmetic(a, b, out):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    if i < a.size:
        out[i, 0] = a[i] + b[i]
        out[i, 1] = a[i] - b[i]
        out[i, 2] = a[i] * b[i]
        out[i, 3] = a[i] / b[i]
        out[i, 4] = -a[i]
        out[i, 5] = abs(b[i])
        out[i, 6] = math.sqrt(a[i])
        out[i, 7] = math.floor(a[i])
        out[i, 8] = (a[i] + b[i]) * a[i]


def results(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    with np.errstate(all="ignore"):
        columns = (a + b, a - b, a * b, a / b, -a, abs(b), np.sqrt(a), np.floor(a), (a + b) * a)
    return np.stack(columns, axis=1)


def test_every_number_gives_numpys_results() -> None:
    other = np.random.default_rng(0).permutation(ALL)
    out = np.zeros((65536, 9), np.float16)
    arithmetic[256, 256](ALL, other, out)
    np.testing.assert_array_equal(out, results(ALL, other))


@BOTH_MODES
def test_the_modes_agree(mode: dict[str, Any]) -> None:
    a, b = (np.random.default_rng(seed).normal(size=64).astype(np.float16) for seed in (1, 2))
    out = np.zeros((64, 9), np.float16)
    with options(**mode):
        arithmetic[2, 32](a, b, out)
    np.testing.assert_array_equal(out, results(a, b))


@cuda.jit
def converted(source, out):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    if i < source.size:
        out[i] = source[i]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int32, np.uint8])
def test_numbers_are_rounded_once(dtype: type) -> None:
    whole = np.sort(ALL[np.isfinite(ALL)].astype(np.float64))
    middle = (whole[1:] + whole[:-1]) / 2
    numbers = np.concatenate([middle, middle * (1 + 1e-15), middle * (1 - 1e-15), [65519.999999999, 65520, 1e30]])
    source = numbers.astype(dtype) if dtype in (np.float64, np.float32) else np.arange(-70000, 70000).astype(dtype)
    out = np.zeros(source.size, np.float16)
    converted[-(-source.size // 256), 256](source, out)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(out, source.astype(np.float16))


def test_float16_becomes_float32_and_float64_exactly() -> None:
    for dtype in (np.float32, np.float64):
        out = np.zeros(65536, dtype)
        converted[256, 256](ALL, out)
        np.testing.assert_array_equal(out, ALL.astype(dtype))


@cuda.jit
def reduced(x, factor, out):  # type: ignore[no-untyped-def]
    shared = cuda.shared.array(32, types.float16)
    own = cuda.local.array(1, np.float16)
    t = cuda.threadIdx.x
    own[0] = x[t]
    kept = x[t] * factor
    shared[t] = own[0]
    cuda.syncthreads()
    step = 16
    while step > 0:
        if t < step:
            shared[t] += shared[t + step]
        cuda.syncthreads()
        step //= 2
    out[t] = shared[0] + kept


@BOTH_MODES
def test_shared_and_local_arrays_numbers_and_variables_across_barriers(mode: dict[str, Any]) -> None:
    x = (np.arange(32) / 7).astype(np.float16)
    total = x.copy()
    for step in (16, 8, 4, 2, 1):
        total[:step] += total[step : 2 * step]
    out = np.zeros(32, np.float16)
    with options(**mode):
        reduced[1, 32](x, np.float16(1.3), out)
    np.testing.assert_array_equal(out, total[0] + x * np.float16(1.3))


@cuda.jit("void(float16[:], float16, float16, float16, boolean[:])")
def functions(out, a, b, c, compared):  # type: ignore[no-untyped-def]
    out[0] = cuda.fp16.hadd(a, b)
    out[1] = cuda.fp16.hfma(a, b, c)
    out[2] = cuda.fp16.hmul(a, 2.5)
    out[3] = cuda.fp16.hmax(a, b)
    out[4] = cuda.fp16.hmin(a, b)
    out[5] = cuda.fp16.hsin(a)
    out[6] = cuda.fp16.hrsqrt(a)
    out[7] = cuda.fp16.hexp10(a)
    out[8] = math.cos(a)
    compared[0] = cuda.fp16.hlt(a, b)
    compared[1] = cuda.fp16.hne(a, b)
    compared[2] = cuda.fp16.heq(a, b)
    compared[3] = a < b and b != c


@BOTH_MODES
def test_functions_of_fp16(mode: dict[str, Any]) -> None:
    a, b, c = np.float16(1.3), np.float16(2.7), np.float16(0.01)
    out, compared = np.zeros(9, np.float16), np.zeros(4, bool)
    with options(**mode):
        functions[1, 1](out, a, b, c, compared)
    fused = np.float16(float(a) * float(b) + float(c))
    wide = np.float32(a)
    expected = [a + b, fused, a * np.float16(2.5), b, a, np.sin(wide), 1 / np.sqrt(wide), 10**wide, np.cos(wide)]
    np.testing.assert_allclose(out.astype(np.float32), np.array(expected, np.float16).astype(np.float32), rtol=1e-3)
    assert out[1] == fused
    assert compared.tolist() == [True, True, False, True]
    with options(**mode):
        functions[1, 1](out, a, np.float16(math.nan), c, compared)
    assert (out[3], out[4]) == (a, a)
    assert compared.tolist() == [False, False, False, False]


@pytest.mark.parametrize(
    ("other", "expected"),
    [("float16", "float16"), ("int8", "float16"), ("int16", "float32"), ("float32", "float32"), ("int64", "float64")],
)
def test_an_operation_with_another_type_is_of_the_type_that_holds_both(other: str, expected: str) -> None:
    arithmetic.specialize(*(np.zeros(1, np.float16),) * 2, np.zeros((1, 9), np.float16))  # Numba knows float16 now
    found = cpu_target.typing_context.resolve_function_type(operator.add, (types.float16, getattr(types, other)), {})
    assert str(found.return_type) == expected


def test_other_types_are_added_as_before() -> None:
    @numba.njit
    def add(a: Any, b: Any) -> Any:
        return a + b

    add(np.int8(1), np.int8(2))
    add(True, np.float32(2))
    assert [str(each.return_type) for each in add.nopython_signatures] == ["int64", "float32"]


@cuda.jit
def without_half(x, out):  # type: ignore[no-untyped-def]
    out[0] = math.tan(x[0])
    out[1] = math.erf(x[0])


@BOTH_MODES
def test_a_function_that_has_no_float16_computes_in_float32_as_on_a_device(mode: dict[str, Any]) -> None:
    x, out = np.full(1, 0.3, np.float16), np.zeros(2, np.float32)
    with options(**mode):
        without_half[1, 1](x, out)
    np.testing.assert_allclose(out, [math.tan(x[0]), math.erf(x[0])], rtol=1e-6)


@cuda.jit
def of_numpy(x, out):  # type: ignore[no-untyped-def]
    out[0] = np.sin(x[0])


@cuda.jit
def largest(x, out):  # type: ignore[no-untyped-def]
    out[0] = x.max()


@pytest.mark.parametrize("kernel", [of_numpy, largest])
def test_a_function_of_numpy_that_takes_no_float16_is_named_with_the_remedy(kernel: Any) -> None:
    with pytest.raises(KernelError, match=r"unsupported type .* float16: convert it with np.float32\(\) first"):
        kernel[1, 1](np.ones(3, np.float16), np.zeros(1))


def test_a_record_with_a_float16_is_seen() -> None:
    assert has_half(np.dtype([("a", np.int32), ("b", [("c", np.float16, 3)])]))
    assert not has_half(np.dtype([("a", np.int32), ("b", np.float32, 3)]))


def test_without_f16c_a_sentence_says_so() -> None:
    code = "from cuda_emulator.helpers.half import learn_float16\nlearn_float16()"
    environment = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "PATH": "", "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    if "x86_64" in numba.core.codegen.ll.get_process_triple():
        assert "KernelError: float16 needs a processor with F16C" in done.stderr
    else:
        assert done.returncode == 0


@cuda.jit
def shuffled(x):  # type: ignore[no-untyped-def]
    x[0] = cuda.shfl_sync(0xFFFFFFFF, x[0], 0)


def added_atomically() -> Callable[..., None]:
    @cuda.jit
    def kernel(x):  # type: ignore[no-untyped-def]
        cuda.atomic.add(x, 0, 1)

    return kernel


def test_shuffles_and_atomics_of_float16_are_refused() -> None:
    x = np.zeros(1, np.float16)
    with pytest.raises(KernelError, match="moves int32, int64, float32 and float64; this value is float16"):
        shuffled[1, 32](x)
    with pytest.raises(KernelError, match="float16"):
        added_atomically()[1, 1](x)
