"""Between Python and C: which arrays are converted on the way in, and which are refused, with what words."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shared.contract import ACTIVATIONS
from stage3_c import activations, arrays, dense, losses, matmul, optimizers
from tests.stage3_c.stage3_memory_forms import blocks, misaligned, other_forms, read_only
from tests.stages import REASONS, USABLE_STAGES

pytestmark = pytest.mark.skipif("stage3_c" not in USABLE_STAGES, reason=REASONS["stage3_c"] or "")

A = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
LABELS = [0, 1, 2, 3]

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


@pytest.mark.parametrize("kind", ["Fortran order", "byte-swapped", "np.matrix", "misaligned"])
def test_float64_stays_float64_when_it_is_converted(kind: str) -> None:
    double = A.astype(np.float64) / 3
    given = {
        "Fortran order": np.asfortranarray(double),
        "byte-swapped": double.astype(">f8"),
        "np.matrix": double.view(np.matrix),
        "misaligned": misaligned(double),
    }[kind]
    got = activations.identity(given)
    assert got.dtype == np.float64
    assert np.array_equal(got, double)


def test_a_memory_map_is_read_and_written_in_place(tmp_path: Path) -> None:
    file = np.memmap(tmp_path / "z", np.float32, "w+", shape=(4, 4))
    file[...] = A
    assert np.array_equal(activations.relu(file), activations.relu(A))
    assert matmul.matmul(A, A, out=file) is file
    assert np.array_equal(file, matmul.matmul(A, A))


def test_an_array_in_the_right_form_is_not_copied() -> None:
    for dtype in ("float32", "float64"):
        array = A.astype(dtype)
        assert arrays.asarray(array, dtype) is array
        assert arrays.as_matrix("z", array) is array


def test_asarray_converts_to_the_dtype_that_is_asked_for() -> None:
    assert arrays.asarray(A.astype(np.float64), "float32").dtype == np.float32
    assert arrays.asarray(A, "float64").dtype == np.float64
    assert arrays.asarray([1e300]).tolist() == [np.inf]


@pytest.mark.parametrize("kind", ["Fortran order", "byte-swapped", "misaligned", "every other column"])
def test_what_asarray_copies_starts_on_64_bytes_and_has_no_gaps(kind: str) -> None:
    for dtype in ("float32", "float64"):
        array = arrays.asarray(CONVERTED[kind], dtype)
        assert array.ctypes.data % 64 == 0
        assert array.flags.carray
        assert array.dtype.isnative


@pytest.mark.parametrize("shape", [(1, 1), (3,), (7, 5), (1, 1000)])
def test_new_arrays_start_on_64_bytes(shape: tuple[int, ...]) -> None:
    for dtype in ("float32", "float64"):
        array = arrays.aligned_empty(shape, dtype)
        assert (array.shape, array.dtype, array.ctypes.data % 64) == (shape, dtype, 0)
        array.fill(1)
        assert not arrays.aligned_zeros(shape, dtype).any()


@pytest.mark.parametrize("shape", [(2**40, 2**20), (2**61, 4), (2**70, 1)])
def test_an_array_larger_than_memory_is_a_memory_error_that_says_how_large(shape: tuple[int, ...]) -> None:
    with pytest.raises(MemoryError, match=re.escape(f"no memory for an array of {shape} float64, ")):
        arrays.aligned_empty(shape, "float64")


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


def test_a_masked_array_is_refused_because_its_mask_would_be_lost() -> None:
    masked = np.ma.masked_array(A.copy(), mask=A > 0)
    for call, name in [
        (lambda: matmul.matmul(A, masked), "matmul: b: "),
        (lambda: arrays.asarray(masked), "asarray: "),
        (lambda: losses.hinge(A, np.ma.masked_array(LABELS, mask=[1, 0, 0, 0])), "hinge: labels: "),
    ]:
        with pytest.raises(TypeError, match=name + r".*mask.*\.filled"):
            call()
    with pytest.raises(ValueError, match="relu: out is a masked array; C would write under the mask"):
        activations.relu(A, out=masked)
    with pytest.raises(TypeError, match="parameter 0 is a MaskedArray, expected an array"):
        optimizers.SGD(0.1).step([masked], [A])


def test_the_checked_labels_are_nobody_elses_memory() -> None:
    mine = np.array(LABELS)
    assert not np.shares_memory(arrays.as_labels("f", mine, 4, 4), mine)


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
