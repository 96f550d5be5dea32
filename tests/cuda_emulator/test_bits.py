"""popc, clz, ffs, brev, fma, selp, cbrt, rsqrt, lanemask_lt: against plain Python, with numba-cuda's result types."""

import math
from fractions import Fraction

import numpy as np
import pytest
from numba import njit, types
from numba.core.errors import TypingError

from cuda_emulator import helpers
from cuda_emulator.intrinsics import BITS

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def over(name):
    """name(x) for every x of an array; also what type one result has."""
    helper = getattr(helpers, name)

    @njit
    def run(values, results):
        for i in range(len(values)):
            results[i] = helper(values[i])

    return run


def result_type(name, *arguments):
    """The type that a call is compiled to: a Python int would hide it."""
    helper = getattr(helpers, name)

    @njit
    def call(*arguments):
        return helper(*arguments)

    call(*arguments)
    return call.nopython_signatures[0].return_type


RUN = {name: over(name) for name in ("popc", "clz", "ffs", "brev", "cbrt", "rsqrt", "lanemask_lt")}


def bit_string(value, width):
    return format(int(value) % 2**width, f"0{width}b")


REFERENCE = {
    "popc": lambda bits: bits.count("1"),
    "clz": lambda bits: len(bits) - len(bits.lstrip("0")),
    "ffs": lambda bits: len(bits) - bits.rindex("1") if "1" in bits else 0,
}


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("popc", kind) for kind in INTEGERS]
    + [("clz", kind) for kind in INTEGERS]
    + [("ffs", kind) for kind in ("int32", "int64", "uint32", "uint64")],
)
def test_bits_are_counted_over_the_width_of_the_type(name, dtype):
    limits = np.iinfo(dtype)
    values = np.random.default_rng(5).integers(limits.min, limits.max, 200, dtype, endpoint=True)
    values >>= np.arange(200).astype(dtype) % np.array(limits.bits, dtype)  # leading zeros of every length
    values[:4] = 0, 1, limits.min, limits.max
    results = np.zeros(200, np.int64)
    RUN[name](values, results)
    assert results.tolist() == [REFERENCE[name](bit_string(value, limits.bits)) for value in values]


@pytest.mark.parametrize(
    ("dtype", "width"), [("uint64", 64), ("int64", 32), ("int32", 32), ("uint32", 32), ("int8", 32)]
)
def test_brev_turns_64_bits_of_a_uint64_and_32_of_everything_else(dtype, width):
    limits = np.iinfo(dtype)
    values = np.random.default_rng(6).integers(limits.min, limits.max, 100, dtype, endpoint=True)
    values[:2] = 0, 1
    results = np.zeros(100, np.uint64)
    RUN["brev"](values, results)
    assert results.tolist() == [int(bit_string(value, width)[::-1], 2) for value in values]


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("popc", (np.int8(1),), types.int8),
        ("popc", (7,), types.int64),
        ("popc", (np.uint64(7),), types.uint64),
        ("popc", (True,), types.int8),
        ("clz", (np.uint32(1),), types.uint32),
        ("ffs", (7,), types.uint32),
        ("brev", (7,), types.uint32),
        ("brev", (np.uint64(7),), types.uint64),
        ("fma", (np.float32(1),) * 3, types.float32),
        ("fma", (np.float32(1), np.float32(1), 1.0), types.float64),
        ("fma", (1, 2, 3), types.float64),
        ("fma", (np.float32(1), np.float32(1), 2), types.float64),
        ("cbrt", (np.float32(1),), types.float32),
        ("cbrt", (np.int16(1),), types.float32),
        ("cbrt", (8,), types.float64),
        ("rsqrt", (np.float32(1),), types.float32),
        ("rsqrt", (4,), types.float64),
        ("selp", (True, np.float32(1), np.float32(2)), types.float32),
        ("selp", (True, 1, 2), types.int64),
        ("lanemask_lt", (5,), types.uint32),
    ],
)
def test_results_have_the_types_that_numba_cuda_gives(name, arguments, expected):
    assert result_type(name, *arguments) == expected


@njit
def fma_all(a, b, c, results):
    for i in range(len(a)):
        results[i] = helpers.fma(a[i], b[i], c[i])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fma_rounds_once(dtype):
    rng = np.random.default_rng(8)
    a, b = rng.normal(size=(2, 300)).astype(dtype)
    c = -(a * b)  # what is left is the rounding error of the product, which a * b + c loses
    c[::2] = rng.normal(size=150).astype(dtype)
    results = np.zeros(300, dtype)
    fma_all(a, b, c, results)
    exact = [Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)) for x, y, z in zip(a, b, c, strict=True)]
    # Rounded to the nearest: no neighbour of the result is nearer to the exact value.
    for result, truth in zip(results, exact, strict=True):
        error = abs(Fraction(float(result)) - truth)
        for direction in (-np.inf, np.inf):
            neighbour = np.nextafter(result, np.dtype(dtype).type(direction))
            assert error <= abs(Fraction(float(neighbour)) - truth)
    assert np.any(results[1::2] != 0)


@njit
def select(predicate, a, b):
    return helpers.selp(predicate, a, b)


def test_selp_selects():
    assert select(True, 3, 4) == 3
    assert select(False, np.float32(0.5), np.float32(1.5)) == 1.5


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cbrt_and_rsqrt_are_within_two_ulps(dtype):
    values = np.random.default_rng(9).uniform(1e-3, 1e3, 200).astype(dtype)
    results = np.zeros_like(values)
    RUN["rsqrt"](values, results)
    np.testing.assert_array_max_ulp(results, (1 / np.sqrt(values.astype(np.longdouble))).astype(dtype), maxulp=2)
    values[::2] *= -1
    RUN["cbrt"](values, results)
    np.testing.assert_array_max_ulp(results, np.cbrt(values.astype(np.longdouble)).astype(dtype), maxulp=2)


def test_rsqrt_of_zero_is_infinite_and_of_a_negative_number_is_nan():
    results = np.zeros(2)
    RUN["rsqrt"](np.array([0.0, -1.0]), results)
    assert math.isinf(results[0])
    assert math.isnan(results[1])


def test_lanemask_lt_names_the_lanes_below():
    results = np.zeros(32, np.int64)
    RUN["lanemask_lt"](np.arange(32), results)
    assert results.tolist() == [2**lane - 1 for lane in range(32)]


@pytest.mark.parametrize(
    ("name", "arguments", "sentence"),
    [
        ("popc", (1.5,), "cuda.popc takes an integer of 8 to 64 bits, not float64"),
        ("ffs", (np.int8(1),), "cuda.ffs takes an integer of 32 or 64 bits, not int8"),
        ("brev", (1.5,), "cuda.brev takes an integer"),
        ("fma", (1j, 1.0, 1.0), "cuda.fma takes float32 and float64, not complex128"),
        ("cbrt", (1j,), "cuda.cbrt takes float32 and float64, not complex128"),
        ("selp", (True, np.float32(1), 0.0), "these are float32 and float64: convert one of them"),
        ("selp", (1, 2, 3), "takes a bool as its first argument, not int64: compare it with 0"),
    ],
)
def test_what_a_device_refuses_is_refused_with_a_sentence(name, arguments, sentence):
    with pytest.raises(TypingError) as refused:
        result_type(name, *arguments)
    assert sentence in str(refused.value)


def test_every_bit_function_of_the_cuda_namespace_has_its_helper():
    assert set(BITS) <= set(helpers.__all__)
