"""The atomics of the emulator: each against plain Python, their NaN rules, their wrap-around, many threads at once."""

import math
import threading

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

from cuda_emulator import helpers
from cuda_emulator.intrinsics import ATOMICS

DTYPES = ["int32", "uint32", "int64", "uint64", "float32", "float64"]
INTEGERS = DTYPES[:4]
UNSIGNED = ["uint32", "uint64"]

# What one atomic leaves behind: (old, value) -> new, in exact Python numbers.
REFERENCE = {
    "add": lambda old, value: old + value,
    "sub": lambda old, value: old - value,
    "max": lambda old, value: old if math.isnan(old) or math.isnan(value) else max(old, value),
    "min": lambda old, value: old if math.isnan(old) or math.isnan(value) else min(old, value),
    "nanmax": lambda old, value: old if math.isnan(value) else value if math.isnan(old) else max(old, value),
    "nanmin": lambda old, value: old if math.isnan(value) else value if math.isnan(old) else min(old, value),
    "inc": lambda old, value: 0 if old >= value else old + 1,
    "dec": lambda old, value: value if old == 0 or old > value else old - 1,
    "and_": lambda old, value: old & value,
    "or_": lambda old, value: old | value,
    "xor": lambda old, value: old ^ value,
    "exch": lambda old, value: value,
}
NAMES = {
    **dict.fromkeys(("add", "sub", "max", "min", "nanmax", "nanmin"), DTYPES),
    **dict.fromkeys(("and_", "or_", "xor", "exch"), INTEGERS),
    **dict.fromkeys(("inc", "dec"), UNSIGNED),
}


def compiled(name):
    """atomic_NAME over a list of indices and values; what each call returned goes into `olds`."""
    helper = getattr(helpers, f"atomic_{name}")

    @njit(nogil=True)
    def run(array, indices, values, olds):
        for i in range(len(indices)):
            olds[i] = helper(array, indices[i], values[i])

    return run


RUN = {name: compiled(name) for name in REFERENCE}


def wrapped(value, dtype):
    """`value` as the dtype holds it: integers wrap around."""
    if dtype.kind == "f":
        return dtype.type(value)
    bits = 8 * dtype.itemsize
    value %= 2**bits
    return dtype.type(value - 2**bits if dtype.kind == "i" and value >= 2 ** (bits - 1) else value)


def awkward_values(dtype, count, rng):
    if dtype.kind == "f":
        values = rng.normal(size=count).astype(dtype)
        values[::5] = rng.choice(np.array([np.nan, np.inf, -np.inf, 0.0, 1.0], dtype), len(values[::5]))
        return values
    limits = np.iinfo(dtype)
    values = rng.integers(limits.min, limits.max, count, dtype, endpoint=True)
    values[::3] = rng.choice(np.array([limits.min, limits.max, 0, 1, 2], dtype), len(values[::3]))
    return values


@pytest.mark.parametrize(("name", "dtype"), [(name, dtype) for name in NAMES for dtype in NAMES[name]])
def test_each_atomic_does_what_python_does_and_returns_the_old_value(name, dtype):
    dtype, rng = np.dtype(dtype), np.random.default_rng(7)
    array, values = awkward_values(dtype, 9, rng), awkward_values(dtype, 200, rng)
    indices = rng.integers(-9, 9, 200)  # negative ones count from the end
    expected, expected_olds = list(array), []
    for index, value in zip(indices, values, strict=True):
        old = expected[index]
        expected_olds.append(old)
        exact = (float(old), float(value)) if dtype.kind == "f" else (int(old), int(value))
        with np.errstate(invalid="ignore", over="ignore"):  # inf - inf, and float32 sums beyond its range
            if dtype.kind == "f" and name in ("add", "sub"):
                new = old + value if name == "add" else old - value  # rounded as the dtype rounds
            else:
                new = wrapped(REFERENCE[name](*exact), dtype)
        expected[index] = new
    olds = np.zeros(200, dtype)
    RUN[name](array, indices, values, olds)
    np.testing.assert_array_equal(array, np.array(expected, dtype))
    np.testing.assert_array_equal(olds, np.array(expected_olds, dtype))


def test_every_atomic_of_the_cuda_namespace_has_its_helper():
    assert {f"atomic_{name}" for name in ATOMICS} <= set(helpers.__all__)


@njit(fastmath=True)
def fast_extremes(cells):
    helpers.atomic_max(cells, 0, 5.0)
    helpers.atomic_nanmax(cells, 1, 5.0)
    helpers.atomic_min(cells, 2, 5.0)
    helpers.atomic_nanmin(cells, 3, 5.0)


def test_nan_counts_where_a_kernel_asks_for_fastmath_too():
    cells = np.full(4, np.nan)
    fast_extremes(cells)
    np.testing.assert_array_equal(cells, [np.nan, 5.0, np.nan, 5.0])


@njit
def cas_all(array, indices, olds, values, seen):
    for i in range(len(indices)):
        seen[i] = helpers.atomic_cas(array, indices[i], olds[i], values[i])


@njit
def compare_and_swap(array, old, value):
    return helpers.atomic_compare_and_swap(array, old, value)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_cas_writes_only_where_the_cell_holds_the_old_value(dtype):
    array, seen = np.array([5, 6, 7], dtype), np.zeros(3, dtype)
    cas_all(array, np.array([0, -1, 1]), np.array([5, 8, 6], dtype), np.array([1, 2, 3], dtype), seen)
    assert array.tolist() == [1, 3, 7]
    assert seen.tolist() == [5, 7, 6]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_compare_and_swap_looks_at_the_first_element(dtype):
    array = np.array([5, 5], dtype)
    assert compare_and_swap(array, 4, 9) == 5
    assert compare_and_swap(array, 5, 9) == 5
    assert array.tolist() == [9, 5]


@njit
def add_at(array, index, value):
    return helpers.atomic_add(array, index, value)


@pytest.mark.parametrize("layout", ["C", "F", "strided"])
def test_a_tuple_of_mixed_integer_types_names_an_element_in_any_layout(layout):
    array = np.zeros((4, 3, 5), np.int64, order="F" if layout == "F" else "C")
    view = array[::2, ::-1, 1::2] if layout == "strided" else array
    assert add_at(view, (np.int32(1), np.uint8(2), -1), 7) == 0
    assert view[1, 2, -1] == 7
    assert array.sum() == 7


def test_the_value_is_cast_to_the_dtype_of_the_array():
    integers, floats = np.array([10], np.int32), np.array([0.5], np.float32)
    assert add_at(integers, 0, 2.9) == 10
    assert integers[0] == 12
    assert add_at(floats, 0, True) == 0.5
    assert floats[0] == 1.5


@pytest.mark.parametrize(
    ("dtype", "name"), [("int64", "add"), ("float32", "add"), ("float64", "sub"), ("uint32", "inc")]
)
def test_no_update_is_lost_when_four_threads_change_one_cell(dtype, name):
    # 4 x 100,000 ones stay below 2^24, so that float32 sums are exact too.
    each, workers = 100_000, 4
    array = np.zeros(1, dtype)
    limit = each * workers if name == "inc" else 1
    indices, values = np.zeros(each, np.int64), np.full(each, limit, dtype)
    olds = [np.zeros(each, dtype) for _ in range(workers)]
    start = threading.Barrier(workers)

    def work(mine):
        start.wait()
        RUN[name](array, indices, values, mine)

    threads = [threading.Thread(target=work, args=(mine,)) for mine in olds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    total = each * workers
    assert array[0] == (-total if name == "sub" else total)
    seen = np.sort(np.abs(np.concatenate(olds)))
    np.testing.assert_array_equal(seen, np.arange(total))  # each old value was returned exactly once


def message(name, *arguments):
    """What compiling atomic_NAME for these types is refused with."""
    helper = getattr(helpers, f"atomic_{name}")

    @njit
    def call(*arguments):
        return helper(*arguments)

    with pytest.raises(TypingError) as refused:
        call(*arguments)
    return str(refused.value)


ALL = "int32, int64, uint32, uint64, float32 and float64"


@pytest.mark.parametrize(
    ("name", "dtype", "sentence"),
    [
        ("add", "int8", f"cuda.atomic.add works on arrays of {ALL}; this one holds int8"),
        ("max", "complex64", f"cuda.atomic.max works on arrays of {ALL}; this one holds complex64"),
        ("inc", "int32", "cuda.atomic.inc works on arrays of uint32 and uint64; this one holds int32"),
        (
            "exch",
            "float32",
            "cuda.atomic.exch works on arrays of int32, int64, uint32 and uint64; this one holds float32",
        ),
    ],
)
def test_a_dtype_that_a_device_refuses_is_named_with_those_that_work(name, dtype, sentence):
    assert sentence in message(name, np.zeros(3, dtype), 0, 1)


def test_cas_refuses_floats():
    for name, index in (("cas", (0,)), ("compare_and_swap", ())):
        sentence = f"cuda.atomic.{name} works on arrays of int32, int64, uint32 and uint64; this one holds float64"
        assert sentence in message(name, np.zeros(3), *index, 0.0, 1.0)


def test_an_index_that_names_no_single_element_is_refused():
    assert "on a 2-D array needs a tuple of 2 integers as its index, not int64" in message(
        "add", np.zeros((2, 2)), 0, 1.0
    )
    assert "on a 1-D array needs an integer as its index, not float64" in message("add", np.zeros(2), 0.0, 1.0)
    assert "compare_and_swap takes a 1-D array; this one is 2-D" in message(
        "compare_and_swap", np.zeros((2, 2), int), 0, 1
    )


def test_what_cannot_be_changed_is_refused():
    frozen = np.zeros(2)
    frozen.flags.writeable = False
    assert "cuda.atomic.add has to write, and this array is read-only" in message("add", frozen, 0, 1.0)
    assert "its first argument is int64" in message("add", 3, 0, 1.0)
    assert "takes a number as its value, not complex128" in message("add", np.zeros(2), 0, 1j)
