"""stage4_numba_cuda.arrays: what gets onto the device, in which form, and what is refused with which words.

tests/floors/test_arrays.py holds what every stage promises; here is what only a device has.
"""

import warnings
from typing import Any

import numpy as np
import pytest

from shared.names import DTYPES
from stage4_numba_cuda import arrays
from stage4_numba_cuda.backend import cuda


def device(shape: tuple[int, ...], dtype: str = "float32") -> Any:
    """A device array holding 0, 1, 2, …"""
    return cuda.to_device(np.arange(np.prod(shape), dtype=dtype).reshape(shape))


def test_a_device_array_of_the_dtype_is_taken_as_it_is() -> None:
    for dtype in DTYPES:
        for shape in ((3,), (2, 3)):
            array = device(shape, dtype)
            assert arrays.asarray(array, dtype) is array


def test_a_device_array_of_another_dtype_is_converted_on_a_copy() -> None:
    whole = device((2, 3), "int32")
    converted = arrays.asarray(whole, "float64")
    assert converted.dtype == np.float64
    assert not arrays.overlap(converted, whole)
    assert arrays.to_host(converted).tolist() == [[0, 1, 2], [3, 4, 5]]


VIEWS = {
    "columns": (slice(None), slice(1, 3)),
    "every second row": (slice(None, None, 2), slice(None)),
    "one column": (slice(None), 2),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_a_device_array_with_gaps_is_packed(view: Any) -> None:
    array = device((5, 4))
    with_gaps = array[view]
    assert not arrays.is_packed(with_gaps)
    packed = arrays.asarray(with_gaps)
    assert arrays.is_packed(packed)
    assert np.array_equal(arrays.to_host(packed), np.arange(20).reshape(5, 4)[view])


def test_a_number_too_large_for_float32_becomes_inf_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert arrays.to_host(arrays.asarray([1e300, -1e300])).tolist() == [np.inf, -np.inf]


def test_only_arrays_of_the_device_are_on_it() -> None:
    assert arrays.on_device(device((1,)))
    assert arrays.on_device(device((4, 4))[1:, ::2])
    for other in (np.ones(3), [1.0], 1.0, None, "text", np.float32(1)):
        assert not arrays.on_device(other)


def test_float64_in_another_order_of_bytes_stays_float64() -> None:
    got = arrays.as_matrix("f: x", np.array([[1 / 3, 2.0]], np.dtype(np.float64).newbyteorder()))
    assert got.dtype == np.float64
    assert arrays.to_host(got).tolist() == [[1 / 3, 2.0]]


def test_output_like_makes_an_array_or_takes_one_that_fits() -> None:
    fresh = arrays.output_like("f", None, (2, 3), np.float64)
    assert (fresh.shape, fresh.dtype) == ((2, 3), np.float64)
    out = device((2, 3))
    assert arrays.output_like("f", out, (2, 3), np.float32, a=device((2, 3))) is out
    assert arrays.output_like("f", out, (2, 3), np.float32, in_place=out, a=out) is out


def test_output_like_takes_the_same_memory_under_another_name_for_the_input_itself() -> None:
    a = device((2, 3))
    assert arrays.output_like("f", a[:], (2, 3), np.float32, in_place=a, a=a) is not None
    with pytest.raises(ValueError, match=r"^f: out overlaps b, which is still being read; give it memory of its own$"):
        arrays.output_like("f", a[:], (2, 3), np.float32, in_place=device((2, 3)), b=a)


UNFIT = {
    "on the host": (np.ones((2, 3), np.float32), r"out is a ndarray on the host; expected a device array \(2, 3\)"),
    "other shape": (device((3, 2)), r"out is float32 \(3, 2\), expected float32 \(2, 3\)"),
    "other dtype": (device((2, 3), "float64"), r"out is float64 \(2, 3\), expected float32 \(2, 3\)"),
    "with gaps": (device((2, 4))[:, :3], r"out is not C-contiguous \(strides \(16, 4\)\); pass an array that is"),
}


@pytest.mark.parametrize(("out", "message"), UNFIT.values(), ids=UNFIT)
def test_an_output_that_does_not_fit_is_refused(out: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^f: {message}"):
        arrays.output_like("f", out, (2, 3), np.float32)


def test_an_output_may_be_its_input_whole_or_not_at_all() -> None:
    memory = device((4, 3))
    with pytest.raises(ValueError, match=r"^f: out overlaps z, which is still being read"):
        arrays.output_like("f", memory[1:3], (2, 3), np.float32, in_place=memory[:2], z=memory[:2])
    z = memory[:2]
    assert arrays.output_like("f", memory[2:], (2, 3), np.float32, in_place=z, z=z) is not None


def test_overlap_is_a_byte_in_common() -> None:
    memory = device((6,))
    assert arrays.overlap(memory, memory[5:])
    assert arrays.overlap(memory[:4], memory[3:])
    assert not arrays.overlap(memory[:3], memory[3:])
    assert not arrays.overlap(memory, device((6,)))
    assert not arrays.overlap(memory, np.ones(6))
