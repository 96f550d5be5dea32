"""What the intrinsics of kernels/ptx.py mean where they are Python: rounding to the bit, four numbers at a time."""

from typing import Any

import numpy as np
import pytest

from stage4_numba_cuda.arrays import asarray, empty, to_host
from stage4_numba_cuda.backend import BACKEND, cuda
from stage4_numba_cuda.kernels import ptx
from tests.stage4_numba_cuda.test_tensor_cores import interesting

pytestmark = pytest.mark.skipif(
    BACKEND.name == "simulator", reason="hundreds of threads take Numba's simulator minutes"
)


@cuda.jit
def to_tf32(x, y):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    if i < x.size:
        y[i] = ptx.to_tf32(x[i])


@cuda.jit
def to_bf16(x, y):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    if i < x.size:
        y[i] = ptx.to_bf16(x[i])


@cuda.jit
def added_by_fours(a, b, c):  # type: ignore[no-untyped-def]
    """c = a + b, a thread to four neighbours of a row."""
    column = cuda.threadIdx.x * 4
    row = cuda.blockIdx.x
    a0, a1, a2, a3 = ptx.load4(a, row, column)
    b0, b1, b2, b3 = ptx.fetch4(b, row * b.shape[1] + column)
    ptx.store4(c, row, column, a0 + b0, a1 + b1, a2 + b2, a3 + b3)


def rounded(x: np.ndarray, bits: int, ties_to_even: bool) -> np.ndarray:
    """x with so many significant bits, from the definition: scaled by a power of two in float64, rounded, and back."""
    values = x.astype(np.float64)
    _, exponent = np.frexp(values)
    exponent = np.maximum(exponent, -125)  # below the smallest normal number the step stays what it is
    scaled = np.ldexp(values, bits - exponent)
    whole = np.rint(scaled) if ties_to_even else np.copysign(np.floor(np.abs(scaled) + 0.5), scaled)
    with np.errstate(over="ignore"):
        return np.ldexp(whole, exponent - bits).astype(np.float32)


@pytest.mark.parametrize(("kernel", "bits", "ties_to_even"), [(to_tf32, 11, False), (to_bf16, 8, True)])
def test_rounding_is_exact_to_the_bit_for_every_size_of_number(kernel: Any, bits: int, ties_to_even: bool) -> None:
    x = interesting()
    got = empty(x.shape, "float32")
    kernel[-(-x.size // 256), 256](asarray(x), got)
    finite = np.isfinite(x)
    expected = np.where(finite, rounded(np.where(finite, x, 0), bits, ties_to_even), x)
    assert np.array_equal(to_host(got).view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize(("kernel", "dropped"), [(to_tf32, 13), (to_bf16, 16)])
def test_rounding_keeps_nan_in_the_bits_that_a_tensor_core_reads(kernel: Any, dropped: int) -> None:
    x = np.array([0x7FC00000, 0x7FFFFFFF, 0xFFFFFFFF, 0x7F800001, 0xFF801000], np.uint32).view(np.float32)
    got = empty(x.shape, "float32")
    kernel[1, 32](asarray(x), got)
    kept = (to_host(got).view(np.uint32) >> np.uint32(dropped)) << np.uint32(dropped)
    assert np.isnan(kept.view(np.float32)).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_four_numbers_at_a_time_go_where_they_belong(dtype: str) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(3, 12)).astype(dtype), rng.normal(size=(3, 12)).astype(dtype)
    out = empty(a.shape, dtype)
    added_by_fours[3, 3](asarray(a, dtype), asarray(b, dtype), out)
    assert np.array_equal(to_host(out), a + b)


@pytest.mark.skipif(BACKEND.name != "emulator", reason="on a GPU the instruction reads f16 itself")
def test_every_f16_is_read_as_numpy_reads_it() -> None:
    from stage4_numba_cuda.kernels import fragments

    @cuda.jit
    def read(out):  # type: ignore[no-untyped-def]
        i = cuda.grid(1)
        out[i] = fragments._from_f16(np.uint32(i))

    out = empty((65536,), "float32")
    read[256, 256](out)
    np.testing.assert_array_equal(to_host(out), np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32))
