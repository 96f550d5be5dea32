"""An `out` that is memory of an input is answered in the same words on every stage whose arrays have memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from shared.contract import Stage, load_stage
from tests.floors.test_same_errors import assert_refused
from tests.stages import STAGE_PARAMS

WITH_MEMORY = [param for param in STAGE_PARAMS if param.values[0] != "stage1_pure_python"]
"""Lists of numbers have no memory of their own."""

SQUARE, IMAGES, LABELS = np.arange(16.0).reshape(4, 4), np.arange(36.0).reshape(1, 4, 3, 3), [0, 1, 2, 3]
Make = Callable[[Stage, np.ndarray], Any]


def array(stage: Stage, values: np.ndarray) -> Any:
    return stage.arrays.asarray(values.copy(), "float64")


def square(stage: Stage) -> Any:
    return array(stage, SQUARE)


def kernels(stage: Stage) -> Any:
    return array(stage, np.ones((4, 4, 1, 1)))


def in_use(stage: Stage, x: Any, **given: Any) -> Any:
    """Batch normalisation that changes nothing but `out`."""
    four = {name: array(stage, np.ones(4)) for name in ("gamma", "beta", "running_mean", "running_var")}
    return stage.batch_norm.batch_norm(x, **four, training=False, **given)


def conv2d_backward(stage: Stage, grad_output: Any, x: Any, **given: Any) -> Any:
    return stage.convolution.conv2d_backward(grad_output, x, kernels(stage), **given)


Calls = dict[str, tuple[Callable[[Stage, Any], Any], np.ndarray]]

CALLS: Calls = {
    "matmul: out overlaps a": (lambda s, x: s.matmul.matmul(x, square(s), out=x), SQUARE),
    "matmul: out overlaps b": (lambda s, x: s.matmul.matmul(square(s), x, out=x), SQUARE),
    "matmul_tn: out overlaps a": (lambda s, x: s.matmul.matmul_tn(x, square(s), out=x), SQUARE),
    "matmul_nt: out overlaps b": (lambda s, x: s.matmul.matmul_nt(square(s), x, out=x), SQUARE),
    "tanh_backward: out overlaps z": (lambda s, x: s.activations.tanh_backward(square(s), x, square(s), out=x), SQUARE),
    "softmax_backward: out overlaps output": (
        lambda s, x: s.activations.softmax_backward(square(s), square(s), x, out=x),
        SQUARE,
    ),
    "mean_squared_error_backward: out overlaps targets": (
        lambda s, x: s.losses.mean_squared_error_backward(square(s), x, out=x),
        SQUARE,
    ),
    "softmax_cross_entropy_backward: out overlaps logits": (
        lambda s, x: s.losses.softmax_cross_entropy_backward(x, LABELS, out=x),
        SQUARE,
    ),
    "sigmoid_cross_entropy_backward: out overlaps targets": (
        lambda s, x: s.losses.sigmoid_cross_entropy_backward(square(s), x, out=x),
        SQUARE,
    ),
    "hinge_backward: out overlaps scores": (lambda s, x: s.losses.hinge_backward(x, LABELS, out=x), SQUARE),
}

IMAGE_CALLS: Calls = {
    "conv2d: out overlaps x": (
        lambda s, x: s.convolution.conv2d(x, kernels(s), array(s, np.ones(4)), out=x),
        IMAGES,
    ),
    "conv2d_backward: out overlaps x": (lambda s, x: conv2d_backward(s, array(s, IMAGES), x, out=x), IMAGES),
    "conv2d_backward: out overlaps grad_output": (lambda s, x: conv2d_backward(s, x, array(s, IMAGES), out=x), IMAGES),
    "max_pool2d: out overlaps x": (lambda s, x: s.pooling.max_pool2d(x, 1, out=x), IMAGES),
    "max_pool2d_backward: out overlaps grad_output": (
        lambda s, x: s.pooling.max_pool2d_backward(x, s.pooling.max_pool2d(array(s, IMAGES), 1)[1], x.shape, out=x),
        IMAGES,
    ),
    "average_pool2d: out overlaps x": (lambda s, x: s.pooling.average_pool2d(x, 1, out=x), IMAGES),
    "average_pool2d_backward: out overlaps grad_output": (
        lambda s, x: s.pooling.average_pool2d_backward(x, x.shape, 1, out=x),
        IMAGES,
    ),
    "batch_norm: out overlaps x": (lambda s, x: in_use(s, x, out=x), IMAGES),
    "batch_norm_backward: out overlaps grad_output": (
        lambda s, x: s.batch_norm.batch_norm_backward(x, in_use(s, array(s, IMAGES))[1], out=x),
        IMAGES,
    ),
}


@pytest.mark.parametrize("name", WITH_MEMORY)
@pytest.mark.parametrize("sentence", [*CALLS, *IMAGE_CALLS])
def test_an_out_that_is_memory_of_an_input_is_refused_and_nothing_is_written(name: str, sentence: str) -> None:
    stage = load_stage(name)
    call, values = (CALLS | IMAGE_CALLS)[sentence]
    x = array(stage, values)
    said = f"{sentence}, which is still being read; give it memory of its own"
    assert_refused(stage, lambda stage: call(stage, x), ValueError, said)
    assert np.array_equal(np.array(stage.arrays.to_host(x)), values)


def test_columns_of_one_matrix_that_lie_beside_each_other_do_not_overlap() -> None:
    stage = load_stage("stage2_numpy")
    memory = np.ones((4, 8))
    left, right = memory[:, :4], memory[:, 4:]
    assert np.array_equal(stage.matmul.matmul(left, left, out=right), np.full((4, 4), 4.0))
    with pytest.raises(ValueError, match="matmul: out overlaps a, which is still being read"):
        stage.matmul.matmul(memory[:, 1:5], left.copy(), out=right)


@pytest.mark.parametrize("name", STAGE_PARAMS)
def test_what_batch_norm_did_not_return_is_named(name: str) -> None:
    stage = load_stage(name)
    sentence = "batch_norm_backward: saved is NoneType, expected what batch_norm returned beside its output"
    assert_refused(
        stage, lambda stage: stage.batch_norm.batch_norm_backward(array(stage, SQUARE), None), TypeError, sentence
    )
