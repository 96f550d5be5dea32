"""stage4_numba_cuda.arrays: what gets onto the device, in which form, and what is refused with which words.

tests/floors/test_arrays.py holds what every stage promises; here is what only a device has.
"""

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.names import DTYPES
from stage4_numba_cuda import arrays
from stage4_numba_cuda.backend import BACKEND, cuda


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


def test_rows_of_a_device_array_are_taken_without_a_copy() -> None:
    array = device((5, 4))
    rows = arrays.asarray(array[1:3])
    assert arrays.address(rows) == arrays.address(array) + 4 * array.dtype.itemsize
    assert arrays.to_host(rows).tolist() == [[4, 5, 6, 7], [8, 9, 10, 11]]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=2),
    st.sampled_from([np.float32, np.float64, np.int8, np.uint16, np.int64, np.bool_]),
    st.sampled_from(DTYPES),
    st.sampled_from([1, 2, -1]),
    st.booleans(),
)
def test_any_host_array_arrives_row_after_row(shape: list[int], kind: Any, dtype: str, step: int, turned: bool) -> None:
    values = np.arange(2 * np.prod(shape)).reshape(*shape[:-1], -1)[..., ::step].astype(kind)
    values = values.T if turned else values
    array = arrays.asarray(values, dtype)
    assert arrays.on_device(array)
    assert arrays.is_packed(array)
    assert array.dtype == dtype
    assert np.array_equal(arrays.to_host(array), values.astype(dtype))


def test_what_is_on_the_device_is_a_copy_of_what_was_on_the_host() -> None:
    host = np.ones((2, 2), np.float32)
    array = arrays.asarray(host)
    host[0, 0] = 7
    assert arrays.to_host(array)[0, 0] == 1
    back = arrays.to_host(array)
    back[0, 0] = 9
    assert arrays.to_host(array)[0, 0] == 1


def test_a_number_too_large_for_float32_becomes_inf_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert arrays.to_host(arrays.asarray([1e300, -1e300])).tolist() == [np.inf, -np.inf]


REFUSED = {
    "empty": ([], ValueError, "asarray: expected at least one value, got shape (0,)"),
    "an empty row": ([[]], ValueError, "asarray: expected at least one value, got shape (1, 0)"),
    "a number": (1.0, ValueError, "asarray: expected 1, 2 or 4 dimensions, got 0"),
    "three dimensions": (np.ones((2, 2, 2)), ValueError, "asarray: expected 1, 2 or 4 dimensions, got 3"),
    "ragged": ([[1.0], [1.0, 2.0]], ValueError, "asarray: expected rows of equal length, got ragged ones"),
    "text": (["1.5"], TypeError, "asarray: expected real numbers, got list of <U3"),
    "complex": ([1j], TypeError, "asarray: expected real numbers, got list of complex128"),
    "None": (None, TypeError, "asarray: expected real numbers, got NoneType of object"),
    "masked": (
        np.ma.masked_equal([1.0, 2.0], 2.0),
        TypeError,
        "asarray: a masked array would lose its mask; fill it first, with .filled(value)",
    ),
}


@pytest.mark.parametrize(("values", "kind", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_array_of_numbers_is_refused(values: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as caught:
        arrays.asarray(values)
    assert str(caught.value) == message


def test_three_dimensions_on_the_device_are_refused_too() -> None:
    with pytest.raises(ValueError, match=r"^asarray: expected 1, 2 or 4 dimensions, got 3$"):
        arrays.asarray(device((2, 2, 2)))


def test_an_unknown_dtype_is_refused_with_the_choices() -> None:
    with pytest.raises(ValueError, match=r"^asarray: unknown dtype 'float16'; choose one of float32, float64$"):
        arrays.asarray([1.0], "float16")


def test_only_arrays_of_the_device_are_on_it() -> None:
    assert arrays.on_device(device((1,)))
    assert arrays.on_device(device((4, 4))[1:, ::2])
    for other in (np.ones(3), [1.0], 1.0, None, "text", np.float32(1)):
        assert not arrays.on_device(other)


def test_a_host_array_is_handed_back_as_it_is() -> None:
    host = np.ones(3)
    assert arrays.to_host(host) is host


@pytest.mark.skipif(not hasattr(BACKEND.cuda, "__groundup_emulator__"), reason="only the emulator fills fresh memory")
def test_fresh_memory_holds_nan_on_the_emulator() -> None:
    assert np.isnan(arrays.to_host(arrays.empty((2, 3), "float64"))).all()


def test_zeros_and_copies_are_memory_of_their_own() -> None:
    assert arrays.to_host(arrays.zeros((2, 3), "float64")).tolist() == [[0.0] * 3] * 2
    array = device((2, 3))
    copied = arrays.copy(array)
    assert np.array_equal(arrays.to_host(copied), arrays.to_host(array))
    assert not arrays.overlap(copied, array)


def test_as_matrix_keeps_float64_and_makes_float32_of_the_rest() -> None:
    for given_dtype, kept in (
        ("float64", "float64"),
        ("float32", "float32"),
        ("int64", "float32"),
        ("bool", "float32"),
    ):
        assert arrays.as_matrix("f: a", np.ones((2, 2), given_dtype)).dtype == kept
    array = device((2, 2), "float64")
    assert arrays.as_matrix("f: a", array) is array


def test_float64_in_another_order_of_bytes_stays_float64() -> None:
    got = arrays.as_matrix("f: x", np.array([[1 / 3, 2.0]], np.dtype(np.float64).newbyteorder()))
    assert got.dtype == np.float64
    assert arrays.to_host(got).tolist() == [[1 / 3, 2.0]]


def test_as_matrix_names_the_argument_it_refuses() -> None:
    with pytest.raises(ValueError, match=r"^f: a: expected 2 dimensions \(rows, columns\), got 1 with shape \(2,\)$"):
        arrays.as_matrix("f: a", [1.0, 2.0])
    with pytest.raises(TypeError, match=r"^f: a: asarray: expected real numbers, got list of <U1$"):
        arrays.as_matrix("f: a", ["x"])


def test_as_same_shape_wants_one_shape_and_one_dtype() -> None:
    a, b = device((2, 3)), device((2, 3))
    assert arrays.as_same_shape("f", a=a, b=b) == (a, b)
    with pytest.raises(ValueError, match=r"^f: b is \(3, 2\) but a is \(2, 3\); they must have the same shape$"):
        arrays.as_same_shape("f", a=a, b=np.ones((3, 2), np.float32))
    with pytest.raises(TypeError, match=r"^f: b is float64 but a is float32; convert one of them$"):
        arrays.as_same_shape("f", a=a, b=np.ones((2, 3)))


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


def test_labels_come_as_int32_wherever_they_were() -> None:
    for labels in ([0, 2, 1], np.array([0, 2, 1], np.uint8), cuda.to_device(np.array([0, 2, 1], np.int64))):
        got = arrays.as_labels("f", labels, 3, 3)
        assert arrays.on_device(got)
        assert got.dtype == np.int32
        assert arrays.to_host(got).tolist() == [0, 2, 1]


WRONG_LABELS = {
    "too large": ([0, 3, 1], ValueError, "f: labels[1] is 3, expected 0 to 2 (3 classes)"),
    "negative": ([0, 1, -1], ValueError, "f: labels[2] is -1, expected 0 to 2 (3 classes)"),
    "too few": ([0, 1], ValueError, "f: expected 3 labels, one a row, got shape (2,)"),
    "a matrix": ([[0, 1, 2]], ValueError, "f: expected 3 labels, one a row, got shape (1, 3)"),
    "floats": ([0.0, 1.0, 2.0], TypeError, "f: labels must be whole numbers, got list of float64"),
    "truth": ([True, False, True], TypeError, "f: labels must be whole numbers, got list of bool"),
    "ragged": ([[0], [1, 2]], ValueError, "f: expected 3 labels, one a row, got ragged rows of them"),
    "masked": (
        np.ma.masked_equal([0, 1, 2], 1),
        TypeError,
        "f: labels: a masked array would lose its mask; fill it first, with .filled(value)",
    ),
}


@pytest.mark.parametrize(("labels", "kind", "message"), WRONG_LABELS.values(), ids=WRONG_LABELS)
def test_wrong_labels_are_refused(labels: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as caught:
        arrays.as_labels("f", labels, 3, 3)
    assert str(caught.value) == message


def test_element_count_is_the_product_of_the_lengths() -> None:
    assert [arrays.element_count(shape) for shape in ((), (3,), (3, 4))] == [1, 3, 12]
