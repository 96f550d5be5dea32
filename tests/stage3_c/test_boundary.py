"""Between Python and C: which arrays are converted on the way in, and which are refused, with what words.

An array of another form is no mistake: transposing, slicing and reading a file give such arrays.
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from shared.contract import ACTIVATIONS
from stage3_c import activations, arrays, dense, losses, matmul, optimizers
from tests.stages import REASONS, USABLE_STAGES

pytestmark = pytest.mark.skipif("stage3_c" not in USABLE_STAGES, reason=REASONS["stage3_c"] or "")

A = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
LABELS = [0, 1, 2, 3]


def misaligned(values: np.ndarray) -> np.ndarray:
    """The same values, starting one byte after a multiple of their size."""
    memory = np.zeros(values.nbytes + 1, np.uint8)
    array = memory[1:].view(values.dtype).reshape(values.shape)
    array[...] = values
    assert not array.flags.aligned
    return array


def read_only(values: np.ndarray) -> np.ndarray:
    copy = values.copy()
    copy.flags.writeable = False
    return copy


def blocks(count: int, dtype: str = "float32") -> list[np.ndarray]:
    """(4, 4) arrays in one memory, each beginning in the middle of the one before, and so overlapping it."""
    memory = np.random.default_rng(1).normal(size=16 + 8 * (count - 1)).astype(dtype)
    return [memory[8 * i : 8 * i + 16].reshape(4, 4) for i in range(count)]


def other_forms(values: np.ndarray) -> dict[str, Any]:
    """The same float32 matrix in forms that are converted on the way in."""
    return {
        "lists": values.tolist(),
        "tuple of rows": tuple(values),
        "Fortran order": np.asfortranarray(values),
        "negative strides": values[::-1, ::-1].copy()[::-1, ::-1],
        "every other column": np.repeat(values, 2, axis=1)[:, ::2],
        "byte-swapped": values.astype(values.dtype.newbyteorder()),
        "misaligned": misaligned(values),
        "read-only": read_only(values),
        "np.matrix": values.view(np.matrix),
        "longdouble": values.astype(np.longdouble),
    }


WITH_OUT: dict[str, Callable[..., Any]] = {
    **{f"matmul.{name}": lambda out, f=f: f(A, A, out=out) for name, f in matmul.LADDER.items()},
    "matmul": lambda out: matmul.matmul(A, A, out=out),
    "matmul_tn": lambda out: matmul.matmul_tn(A, A, out=out),
    "matmul_nt": lambda out: matmul.matmul_nt(A, A, out=out),
    **{name: lambda out, name=name: getattr(activations, name)(A, out=out) for name in ACTIVATIONS},
    **{
        f"{name}_backward": lambda out, name=name: getattr(activations, f"{name}_backward")(A, A, A, out=out)
        for name in ACTIVATIONS
    },
    "mean_squared_error_backward": lambda out: losses.mean_squared_error_backward(A, A, out=out),
    "sigmoid_cross_entropy_backward": lambda out: losses.sigmoid_cross_entropy_backward(A, A, out=out),
    "softmax_cross_entropy_backward": lambda out: losses.softmax_cross_entropy_backward(A, LABELS, out=out),
    "softmax_cross_entropy_fused": lambda out: losses.softmax_cross_entropy_fused(A, LABELS, out=out)[1],
    "hinge_backward": lambda out: losses.hinge_backward(A, LABELS, out=out),
    "Dense.forward": lambda out: make_layer().forward(A, out=out),
    "Dense.backward": lambda out: forwarded_layer().backward(A, out=out),
}
"""Every function that takes `out`, on 4 by 4 float32 arrays."""


def make_layer() -> dense.Dense:
    return dense.Dense(A, A[0])


def forwarded_layer() -> dense.Dense:
    layer = make_layer()
    layer.forward(A)
    return layer


# ---- what comes in -----------------------------------------------------------------------------------------------

CONVERTED = other_forms(A)


@pytest.mark.parametrize("kind", CONVERTED)
def test_a_matrix_in_another_form_is_converted_and_left_alone(kind: str) -> None:
    given, kept = CONVERTED[kind], np.array(CONVERTED[kind])
    for got, expected in [
        (matmul.matmul(given, A), matmul.matmul(A, A)),
        (matmul.matmul_tn(A, given), matmul.matmul_tn(A, A)),
        (activations.tanh(given), activations.tanh(A)),
        (losses.hinge_backward(given, LABELS), losses.hinge_backward(A, LABELS)),
        (make_layer().forward(given), make_layer().forward(A)),
    ]:
        assert type(got) is np.ndarray
        assert np.array_equal(got, expected)
    assert np.array_equal(given, kept)


@pytest.mark.parametrize("dtype", ["float16", "int8", "uint64", "bool"])
def test_numbers_that_are_neither_float32_nor_float64_become_float32(dtype: str) -> None:
    given = np.arange(6).reshape(2, 3).astype(dtype)
    got = activations.identity(given)
    assert got.dtype == np.float32
    assert np.array_equal(got, given)


def test_an_array_in_the_right_form_is_not_copied() -> None:
    for dtype in ("float32", "float64"):
        array = A.astype(dtype)
        assert arrays.asarray(array, dtype) is array
        assert arrays.as_matrix("z", array) is array


@pytest.mark.parametrize("kind", ["Fortran order", "byte-swapped", "misaligned", "every other column"])
def test_what_asarray_copies_starts_on_64_bytes_and_has_no_gaps(kind: str) -> None:
    for dtype in ("float32", "float64"):
        array = arrays.asarray(CONVERTED[kind], dtype)
        assert array.ctypes.data % 64 == 0
        assert array.flags.carray
        assert array.dtype.isnative


def test_new_arrays_start_on_64_bytes() -> None:
    for shape in ((1, 1), (3,), (7, 5)):
        array = arrays.aligned_empty(shape, "float64")
        assert (array.shape, array.dtype, array.ctypes.data % 64) == (shape, "float64", 0)
        array.fill(1)
        assert not arrays.aligned_zeros(shape, "float64").any()


def test_a_result_larger_than_memory_is_a_memory_error_that_names_the_function() -> None:
    column = np.ones((2**23, 1), np.float32)
    with pytest.raises(MemoryError, match=r"matmul_nt: out: .*no memory for an array of \(8388608, 8388608\) float32"):
        matmul.matmul_nt(column, column)


def test_float64_beside_float32_is_a_type_error_naming_both() -> None:
    double, layer = A.astype(np.float64), forwarded_layer()
    for call, names in [
        (lambda: matmul.matmul(A, double), r"matmul: a is float32 but b is float64; convert one"),
        (lambda: matmul.matmul_nt(double, A), r"matmul_nt: a is float64 but b is float32; convert one"),
        (lambda: activations.relu_backward(double, A, A), "z is float32 but grad_output is float64"),
        (lambda: losses.mean_squared_error(A, double), "targets is float64 but outputs is float32"),
        (lambda: layer.forward(double), "Dense.forward: x is float64 but weights is float32; convert one"),
        (lambda: layer.backward(double), "Dense.backward: grad_output is float64 but x is float32"),
        (lambda: optimizers.SGD(0.1).step([A.copy()], [double]), "parameter 0 is float32 but number 0 of gradients is"),
    ]:
        with pytest.raises(TypeError, match=names):
            call()


def test_a_layer_copies_its_parameters_into_aligned_memory() -> None:
    layer = dense.Dense(misaligned(A), A[:, 0])
    for array in (layer.weights, layer.bias, layer.grad_weights, layer.grad_bias):
        assert array.ctypes.data % 64 == 0
        assert array.flags.carray
    assert np.array_equal(layer.weights, A)


# ---- what is written to -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WITH_OUT)
def test_out_is_filled_completely_and_returned(name: str) -> None:
    out = arrays.aligned_empty((4, 4), np.float32)
    out.fill(np.nan)
    got = WITH_OUT[name](out)
    assert got is out
    assert np.array_equal(out, WITH_OUT[name](None))


UNFIT: dict[str, tuple[Callable[[], Any], str]] = {
    "dtype": (lambda: np.zeros((4, 4)), "out is float64 (4, 4), expected float32 (4, 4)"),
    "byte order": (lambda: np.zeros((4, 4), A.dtype.newbyteorder()), "(4, 4), expected float32 (4, 4)"),
    "shape": (lambda: np.zeros((4, 5), np.float32), "out is float32 (4, 5), expected float32 (4, 4)"),
    "one dimension": (lambda: np.zeros(16, np.float32), "out is float32 (16,), expected float32 (4, 4)"),
    "a list": (lambda: [[0.0] * 4] * 4, "out is list, expected float32 (4, 4)"),
    "Fortran order": (lambda: np.zeros((4, 4), np.float32, "F"), "out is not C-contiguous (strides (4, 16)); pass an"),
    "gaps": (lambda: np.zeros((4, 8), np.float32)[:, ::2], "out is not C-contiguous (strides (32, 8)); pass an"),
    "alignment": (lambda: misaligned(A), "out does not start on a multiple of 4 bytes; pass an aligned array"),
    "read-only": (lambda: read_only(A), "out is read-only; pass an array that may be written to"),
}


@pytest.mark.parametrize("kind", UNFIT)
@pytest.mark.parametrize("name", WITH_OUT)
def test_an_out_that_c_cannot_write_to_is_refused_and_untouched(name: str, kind: str) -> None:
    make, message = UNFIT[kind]
    out = make()
    before = np.array(out)
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        WITH_OUT[name](out)
    assert name.split(".")[-1] in str(caught.value) or "matmul: out" in str(caught.value)
    assert np.array_equal(out, before)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_may_overwrite_its_input_and_a_backward_its_gradient_but_not_in_part(name: str) -> None:
    forward, backward = getattr(activations, name), getattr(activations, f"{name}_backward")
    for dtype in ("float32", "float64"):
        z, shifted = blocks(2, dtype)
        output = forward(z)
        grad_z = backward(z, z.copy(), output)
        assert np.array_equal(backward(grad := z.copy(), z, output, out=grad), grad_z)
        with pytest.raises(ValueError, match=f"{name}_backward: out overlaps grad_output"):
            backward(z, z.copy(), output, out=shifted)
        with pytest.raises(ValueError, match=f"{name}: out overlaps z"):
            forward(z, out=shifted)
        assert np.array_equal(forward(z, out=z.reshape(2, 8).reshape(4, 4)), output)


# ---- what an optimizer changes ----------------------------------------------------------------------------------

OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "SGD": lambda: optimizers.SGD(0.1),
    "momentum": lambda: optimizers.SGD(0.1, momentum=0.9),
    "RMSProp": optimizers.RMSProp,
    "Adam": optimizers.Adam,
}

UNMOVABLE: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "read-only": (lambda: read_only(A), ValueError, "parameter 1 is read-only; pass an array that may be written to"),
    "Fortran order": (lambda: np.asfortranarray(A), ValueError, "parameter 1 is not C-contiguous (strides (4, 16))"),
    "gaps": (lambda: np.ones((4, 8), np.float32)[:, ::2], ValueError, "parameter 1 is not C-contiguous"),
    "alignment": (lambda: misaligned(A), ValueError, "parameter 1 does not start on a multiple of 4 bytes"),
    "whole numbers": (lambda: np.ones((4, 4), np.int64), TypeError, "parameter 1 is int64, expected float32 or float"),
    "byte order": (lambda: A.astype(A.dtype.newbyteorder()), TypeError, "expected float32 or float64; see asarray"),
    "a list": (A.tolist, TypeError, "parameter 1 is a list, expected an array; see asarray"),
    "empty": (lambda: np.ones((0, 4), np.float32), ValueError, "parameter 1 is (0, 4), expected at least one value"),
}


@pytest.mark.parametrize("kind", UNMOVABLE)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_parameter_that_c_cannot_change_is_refused_before_any_moves(name: str, kind: str) -> None:
    make, error, message = UNMOVABLE[kind]
    first, second, optimizer = A.copy(), make(), OPTIMIZERS[name]()
    with pytest.raises(error, match="^step: .*" + re.escape(message)):
        optimizer.step([first, second], [A, np.ones_like(second, np.float32)])
    assert np.array_equal(first, A)
    assert optimizer.state() == {"steps": 0, "buffers": {}}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_parameter_that_overlaps_its_gradient_is_refused(name: str) -> None:
    p, shifted = blocks(2)
    for gradient in (p, shifted):
        with pytest.raises(ValueError, match="step: parameter 0 overlaps number 0 of gradients; give each memory of"):
            OPTIMIZERS[name]().step([p], [gradient])


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("kind", ["Fortran order", "byte-swapped", "misaligned", "read-only", "negative strides"])
def test_a_gradient_in_another_form_is_converted(name: str, kind: str) -> None:
    p, expected = np.ones((4, 4), np.float32), np.ones((4, 4), np.float32)
    OPTIMIZERS[name]().step([p], [other_forms(A)[kind]])
    OPTIMIZERS[name]().step([expected], [A])
    assert np.array_equal(p, expected)
