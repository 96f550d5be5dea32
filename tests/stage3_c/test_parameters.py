"""Stage 3 writes into arrays that others can reach, a layer's and those an optimizer moves: what fits and what not."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stage3_c import dense, matmul, optimizers
from tests.stage3_c.stage3_memory_forms import blocks, misaligned, other_forms, read_only
from tests.stages import REASONS, USABLE_STAGES

pytestmark = pytest.mark.skipif("stage3_c" not in USABLE_STAGES, reason=REASONS["stage3_c"] or "")

A = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)


def make_layer() -> dense.Dense:
    return dense.Dense(A, A[0])


def forwarded_layer() -> dense.Dense:
    layer = make_layer()
    layer.forward(A)
    return layer


def test_a_layer_copies_its_parameters_into_aligned_memory() -> None:
    layer = dense.Dense(misaligned(A), A[:, 0])
    for array in (layer.weights, layer.bias, layer.grad_weights, layer.grad_bias):
        assert array.ctypes.data % 64 == 0
        assert array.flags.carray
    assert np.array_equal(layer.weights, A)


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("weights", A[:3].copy()),
        ("weights", np.asfortranarray(A)),
        ("weights", None),
        ("bias", A.copy()),
        ("bias", np.ones(8, np.float32)[::2]),
        ("bias", [0.0] * 4),
    ],
)
def test_a_parameter_replaced_by_what_does_not_fit_is_refused(attribute: str, value: Any) -> None:
    layer = forwarded_layer()
    setattr(layer, attribute, value)
    for call in (lambda: layer.forward(A), lambda: layer.backward(A)):
        with pytest.raises(ValueError, match=rf"Dense\.\w+: the layer's {attribute} was replaced by .*, expected a C-"):
            call()


def test_a_gradient_buffer_replaced_by_what_does_not_fit_is_refused() -> None:
    for name in ("grad_weights", "grad_bias"):
        layer = forwarded_layer()
        setattr(layer, name, np.zeros((2, 2), np.float32))
        with pytest.raises(
            ValueError,
            match=rf"Dense.backward: the layer's {name} was replaced by \(2, 2\), expected a C-contiguous array",
        ):
            layer.backward(A)


def test_a_layers_own_gradients_are_no_input_to_its_backward() -> None:
    layer = make_layer()
    layer.forward(layer.grad_weights)
    with pytest.raises(ValueError, match="grad_weights: out overlaps x"):
        layer.backward(A)


def test_backward_uses_the_x_of_forward_whatever_became_of_its_shape() -> None:
    layer, x = make_layer(), A[:2].copy()
    layer.forward(x)
    x = x.reshape(4, 2)
    with pytest.raises(ValueError, match=re.escape("grad_output is (4, 4), expected (2, 4)")):
        layer.backward(A)
    assert np.array_equal(layer.backward(A[:2]), matmul.matmul_nt(A[:2], A))


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


def test_a_saved_state_shares_no_memory_with_the_optimizer_or_the_parameters() -> None:
    p, optimizer = A.copy(), optimizers.Adam()
    optimizer.step([p], [A])
    state = optimizer.state()
    other = optimizers.Adam()
    other.load_state(state)
    other.step([p.copy()], [A])
    for name, (buffer,) in state["buffers"].items():
        for owner in (optimizer, other):
            assert not np.shares_memory(buffer, owner._state.buffers[name][0])
    assert other.state()["steps"] == 2
