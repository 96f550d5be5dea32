"""Which arrays the order of atomics may change: followed through the source of a compiled kernel."""

import textwrap

import numpy as np
import pytest

from cuda_emulator.runtime.chance import left_to_chance

INT, REAL = np.dtype(np.int32), np.dtype(np.float32)


def names(text: str, dtype: np.dtype = INT) -> set[str]:
    return left_to_chance(textwrap.dedent(text), dtype) - {"place", "v", "_all_v", "_mask1", "_result1"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("_atomic_add(c, 0, 1)\no[i] = a[i]", set()),
        ("place = _atomic_add(c, 0, 1)\no[place] = i\na[i] = 1", {"o"}),
        ("o[i] = _atomic_add(c, 0, 1)\na[i] = 1", {"o"}),
        ("place = _atomic_add(c, 0, 1)\n_atomic_max(m, place, 1)", {"m"}),
        ("_atomic_exch(a, 0, i)", {"a"}),
        ("place = _atomic_exch(a, 0, i)", {"a"}),
        ("if _atomic_add(c, 0, 1) == 3:\n    o[i] = 1\nelse:\n    b[i] = 1\na[i] = 1", {"o", "b"}),
        ("for k in range(_atomic_add(c, 0, 1)):\n    o[k] = 1\na[i] = 1", {"o", "k"}),
        ("while _atomic_add(c, 0, 1) < 5:\n    o[i] += 1\na[i] = 1", {"o"}),
        ("o[i] = _atomic_add(c, 0, 1)\nfor k in range(3):\n    b[k] = o[k]", {"o", "b"}),
        ("b[i] = o[i]\no[i] = _atomic_add(c, 0, 1)", {"o", "b"}),
        ("row = o[i:]\nrow[0] = _atomic_add(c, 0, 1)\na[i] = 1", {"o", "row"}),  # a view
    ],
    ids=lambda text: text.split("\n")[0] if isinstance(text, str) else "",
)
def test_what_comes_from_an_atomics_result_is_left_to_chance(text: str, expected: set[str]) -> None:
    assert names(text) == expected


def test_a_sum_of_floats_is_rounded_in_the_order_of_its_terms() -> None:
    text = "_atomic_add(a, 0, x[i])\n_atomic_max(b, 0, x[i])"
    assert names(text, REAL) == {"a"}
    assert names(text, INT) == set()


def test_it_goes_through_arrays_of_all_threads_masks_and_shuffles() -> None:
    text = """
    def run_block(c, o, p, a, _status):
        place = _atomic_add(c, 0, 1)
        _all_v[_thread] = place
        _shuffle_xor(_all__result1, _all_v, 1, 1, None, None, _threads, _status, 2, _block)
        _result1 = _all__result1[_thread]
        o[i] = _result1
        _mask1[_thread] = place < 3
        if _mask1[_thread]:
            p[i] = 1
        a[_at(a.shape, i, _status)] = 1
    """
    assert names(text) == {"o", "p", "_all__result1"}


def test_it_goes_into_device_functions_and_out_of_them() -> None:
    text = """
    def _device_take(counter, where, _status):
        old = _atomic_add(counter, 0, 1)
        where[old] = 1
        return old
    def _device_plain(value, into):
        into[0] = value
    def run_thread(c, w, o, a, b):
        o[i] = _device_take(c, w, _status)
        _device_plain(o[i], b)
        a[i] = 1
    """
    assert names(text) - {"old", "_device_take"} == {"w", "where", "o", "b", "value", "into"}


@pytest.mark.parametrize("leaves", ["return", "break", "continue"])
def test_after_a_way_out_that_is_taken_by_chance_all_is_left_to_it(leaves: str) -> None:
    text = f"""
    def run_thread(c, o, a):
        for k in range(3):
            if _atomic_add(c, 0, 1) > 5:
                {leaves}
            o[k] = 1
    def other(a):
        for j in range(3):
            if j > 1:
                {leaves}
            a[j] = 1
    """
    assert names(text) - {"k", "run_thread"} == {"o", "c"}
