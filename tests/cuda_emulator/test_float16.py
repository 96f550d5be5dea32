"""float16: each operation is rounded to half precision, in all modes; and Numba's other types stay as they are."""

from __future__ import annotations

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

from cuda_emulator import KernelError, cuda
from cuda_emulator.helpers.half import has_half
from tests.cuda_emulator.emulator_kernels.halves import arithmetic, results

ALL = np.arange(65536).astype(np.uint16).view(np.float16)


def test_every_number_gives_numpys_results() -> None:
    other = np.random.default_rng(0).permutation(ALL)
    out = np.zeros((65536, 9), np.float16)
    arithmetic[256, 256](ALL, other, out)
    np.testing.assert_array_equal(out, results(ALL, other))


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
