"""The same mistake with convolution, pooling or batch normalisation gets the same error on every stage."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from shared.contract import Stage, load_stage
from tests.floors.test_same_errors import NUMBERS, Mistakes, assert_refused
from tests.stages import STAGE_PARAMS


def ones(*shape: int) -> Callable[[Stage], Any]:
    return lambda stage: stage.arrays.asarray(np.ones(shape), "float64")


X, WEIGHTS, BIAS = ones(2, 3, 5, 4), ones(6, 3, 2, 2), ones(6)
GRAD = ones(2, 6, 4, 3)


def handed_over(stage: Stage, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments with the stage's own arrays for those that are made by `ones`."""
    return {name: value(stage) if callable(value) else value for name, value in arguments.items()}


FOUR = "expected 4 dimensions (batch, channels, rows, columns), got 2 with shape (2, 3)"
PAIR = "expected a whole number of at least {}, or a pair (rows, columns) of them, got {}"

CONV2D: Mistakes = {
    "x of text": ({"x": [["a", "b"]]}, TypeError, f"conv2d: x: {NUMBERS}"),
    "ragged weights": (
        {"weights": [[1.0, 2.0], [3.0]]},
        ValueError,
        "conv2d: weights: asarray: expected rows of equal length",
    ),
    "x of two dimensions": ({"x": ones(2, 3)}, ValueError, f"conv2d: x: {FOUR}"),
    "other channels": (
        {"weights": ones(6, 2, 2, 2)},
        ValueError,
        "conv2d: x is (2, 3, 5, 4) but weights are (6, 2, 2, 2); x's channels must equal weights' in_channels",
    ),
    "bias of another length": (
        {"bias": ones(3)},
        ValueError,
        "conv2d: bias is (3,) but weights are (6, 3, 2, 2); expected one bias for each output channel, (6,)",
    ),
    "stride 0": ({"stride": 0}, ValueError, "conv2d: stride: " + PAIR.format(1, 0)),
    "stride of text": ({"stride": "2"}, TypeError, "conv2d: stride: " + PAIR.format(1, "'2'")),
    "negative padding": ({"padding": (0, -1)}, ValueError, "conv2d: padding: " + PAIR.format(0, (0, -1))),
    **{
        f"padding 2 to the {bits}": (
            {"padding": (0, 2**bits)},
            ValueError,
            f"conv2d: the image (5, 4) padded to (5, {4 + 2 ** (bits + 1)}) is longer than 2,147,483,647 rows or "
            "columns",
        )
        for bits in (31, 100)
    },
    "window too large": (
        {"weights": ones(6, 3, 6, 2)},
        ValueError,
        "conv2d: the window (6, 2) is larger than the image (5, 4)",
    ),
}
CONV2D_BACKWARD: Mistakes = {
    "grad_output of another shape": (
        {"grad_output": ones(2, 6, 5, 4)},
        ValueError,
        "conv2d_backward: grad_output is (2, 6, 5, 4), expected (2, 6, 4, 3), the shape of conv2d's output",
    ),
    "other channels": (
        {"x": ones(2, 4, 5, 4)},
        ValueError,
        "conv2d_backward: x is (2, 4, 5, 4) but weights are (6, 3, 2, 2); x's channels must equal weights' in_channels",
    ),
}
LAYER: Mistakes = {
    "weights of two dimensions": (
        {"weights": ones(2, 3)},
        ValueError,
        "Conv2d: weights: expected 4 dimensions (out_channels, in_channels, rows, columns), got 2 with shape (2, 3)",
    ),
    "bias of another length": (
        {"bias": ones(3)},
        ValueError,
        "Conv2d: bias is (3,) but weights are (6, 3, 2, 2); expected one bias for each output channel, (6,)",
    ),
    "negative padding": ({"padding": -1}, ValueError, "Conv2d: padding: " + PAIR.format(0, -1)),
}
CONVOLUTION = {
    "conv2d": ({"x": X, "weights": WEIGHTS, "bias": BIAS}, CONV2D),
    "conv2d_backward": ({"grad_output": GRAD, "x": X, "weights": WEIGHTS}, CONV2D_BACKWARD),
    "Conv2d": ({"weights": WEIGHTS, "bias": BIAS}, LAYER),
}

POOL: Mistakes = {
    "x of two dimensions": ({"x": ones(2, 3)}, ValueError, f"max_pool2d: x: {FOUR}"),
    "size 0": ({"size": 0}, ValueError, "max_pool2d: size: " + PAIR.format(1, 0)),
    "stride 0": ({"stride": (2, 0)}, ValueError, "max_pool2d: stride: " + PAIR.format(1, (2, 0))),
    "window too large": (
        {"size": (2, 5)},
        ValueError,
        "max_pool2d: the window (2, 5) is larger than the image (5, 4)",
    ),
}
SHAPE = "input_shape: expected 4 whole numbers (batch, channels, rows, columns) of at least 1, got {}"
INDICES = [[[[0, 2], [8, 10]]]]
WHOLE = "max_pool2d_backward: indices must be whole numbers, as max_pool2d returned them"
MAX_BACKWARD: Mistakes = {
    "shape of three": ({"input_shape": (1, 4, 4)}, ValueError, "max_pool2d_backward: " + SHAPE.format((1, 4, 4))),
    "indices that are floats": ({"indices": [[[[0.0, 2.0], [8.0, 10.0]]]]}, TypeError, WHOLE),
    "indices of another shape": (
        {"indices": np.array([[[[0, 2]]]])},
        ValueError,
        "max_pool2d_backward: indices is (1, 1, 1, 2) but grad_output is (1, 1, 2, 2); they must have the same shape",
    ),
    "an index beyond the channel": (
        {"indices": np.array([[[[0, 2], [8, 16]]]])},
        ValueError,
        "max_pool2d_backward: indices[0, 0, 1, 1] is 16, expected 0 to 15",
    ),
    "a negative index": (
        {"indices": np.array([[[[0, -1], [8, 10]]]])},
        ValueError,
        "max_pool2d_backward: indices[0, 0, 0, 1] is -1, expected 0 to 15",
    ),
}
AVERAGE: Mistakes = {
    "x of two dimensions": ({"x": ones(2, 3)}, ValueError, f"average_pool2d: x: {FOUR}"),
    "size 0": ({"size": 0}, ValueError, "average_pool2d: size: " + PAIR.format(1, 0)),
}
AVERAGE_BACKWARD: Mistakes = {
    "a side of 0": (
        {"input_shape": (1, 1, 0, 4)},
        ValueError,
        "average_pool2d_backward: " + SHAPE.format((1, 1, 0, 4)),
    ),
    "grad_output of another shape": (
        {"size": 3, "stride": 1, "input_shape": (1, 1, 5, 5)},
        ValueError,
        "average_pool2d_backward: grad_output is (1, 1, 2, 2), expected (1, 1, 3, 3), "
        "the shape of average_pool2d's output",
    ),
}
SMALL = {"grad_output": ones(1, 1, 2, 2), "input_shape": (1, 1, 4, 4)}
POOLING = {
    "max_pool2d": ({"x": X, "size": 2}, POOL),
    "max_pool2d_backward": ({**SMALL, "indices": np.array(INDICES)}, MAX_BACKWARD),
    "average_pool2d": ({"x": X, "size": 2}, AVERAGE),
    "average_pool2d_backward": ({**SMALL, "size": 2}, AVERAGE_BACKWARD),
}

THREE = ones(3)
NORM: Mistakes = {
    "x of one dimension": (
        {"x": ones(3)},
        ValueError,
        "batch_norm: x: expected 2 or 4 dimensions, (batch, channels) or (batch, channels, rows, columns), "
        "got 1 with shape (3,)",
    ),
    "running_var of another length": (
        {"running_var": ones(2)},
        ValueError,
        "batch_norm: running_var is (2,) but x is (2, 3, 5, 4); expected one number for each channel, (3,)",
    ),
    "one value a channel": (
        {"x": ones(1, 3)},
        ValueError,
        "batch_norm: expected more than 1 value per channel when training, got x of shape (1, 3)",
    ),
    "momentum 2": ({"momentum": 2}, ValueError, "batch_norm: momentum: expected a number from 0 to 1, got 2"),
    "epsilon 0": ({"epsilon": 0.0}, ValueError, "batch_norm: epsilon: expected a finite number above 0, got 0.0"),
    "a running mean that cannot be changed": (
        {"running_mean": (0.0, 0.0, 0.0)},
        TypeError,
        "batch_norm: running_mean: expected an array to change in place, got tuple",
    ),
}
NORM_LAYER: Mistakes = {
    "gamma of two dimensions": (
        {"gamma": ones(1, 3)},
        ValueError,
        "BatchNorm: gamma: expected 1 dimension, got 2 with shape (1, 3)",
    ),
    "beta of another length": (
        {"beta": ones(2)},
        ValueError,
        "BatchNorm: beta is (2,) but gamma is (3,); they must have the same shape",
    ),
    "momentum -1": ({"momentum": -1}, ValueError, "BatchNorm: momentum: expected a number from 0 to 1, got -1"),
}
CHANNELS = {"gamma": THREE, "beta": THREE, "running_mean": THREE, "running_var": THREE}
BATCH_NORM = {
    "batch_norm": ({"x": X, **CHANNELS, "training": True}, NORM),
    "BatchNorm": (CHANNELS, NORM_LAYER),
}


def cases(module: str, functions: dict[str, tuple[dict[str, Any], Mistakes]]) -> list[Any]:
    return [
        pytest.param(param.values[0], module, function, {**right, **wrong}, kind, sentence, marks=param.marks, id=label)
        for param in STAGE_PARAMS
        for function, (right, mistakes) in functions.items()
        for what, (wrong, kind, sentence) in mistakes.items()
        for label in [f"{param.values[0]}-{function}-{what}"]
    ]


@pytest.mark.parametrize(
    ("name", "module", "function", "arguments", "kind", "sentence"),
    [*cases("convolution", CONVOLUTION), *cases("pooling", POOLING), *cases("batch_norm", BATCH_NORM)],
)
def test_a_mistake_is_answered_in_the_same_words(
    name: str, module: str, function: str, arguments: dict[str, Any], kind: type[Exception], sentence: str
) -> None:
    stage = load_stage(name)
    given = handed_over(stage, arguments)
    assert_refused(stage, lambda stage: getattr(getattr(stage, module), function)(**given), kind, sentence)


@pytest.mark.parametrize("name", STAGE_PARAMS)
def test_a_refused_batch_changes_no_running_statistics(name: str) -> None:
    stage = load_stage(name)
    layer = stage.batch_norm.BatchNorm([1.0, 1.0], [0.0, 0.0])
    for x in (np.ones((1, 2)), np.ones((4, 3))):
        with pytest.raises(ValueError, match=r"^batch_norm: "):
            layer.forward(stage.arrays.asarray(x), training=True)
    assert np.array(stage.arrays.to_host(layer.running_mean)).tolist() == [0.0, 0.0]
    assert np.array(stage.arrays.to_host(layer.running_var)).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("name", STAGE_PARAMS)
def test_backward_names_a_gradient_that_is_not_shaped_like_x(name: str) -> None:
    stage = load_stage(name)
    _, saved = stage.batch_norm.batch_norm(*(make(stage) for make in (X, THREE, THREE, THREE, THREE)), True)
    sentence = "batch_norm_backward: grad_output is (2, 3, 4, 5), expected (2, 3, 5, 4), the shape of x"
    grad_output = ones(2, 3, 4, 5)(stage)
    assert_refused(stage, lambda stage: stage.batch_norm.batch_norm_backward(grad_output, saved), ValueError, sentence)


@pytest.mark.parametrize("name", [param for param in STAGE_PARAMS if param.values[0] != "stage1_pure_python"])
def test_a_mix_of_dtypes_is_named(name: str) -> None:
    stage = load_stage(name)
    x, weights, bias = (make(stage) for make in (X, WEIGHTS, BIAS))
    single = stage.arrays.asarray(np.ones((6, 3, 2, 2)), "float32")
    conv2d, backward = stage.convolution.conv2d, stage.convolution.conv2d_backward
    for call, sentence in [
        (lambda stage: conv2d(x, single, bias), "conv2d: x is float64 but weights are float32; convert one of them"),
        (
            lambda stage: conv2d(x, weights, np.ones(6, "float32")),
            "conv2d: x is float64 but bias is float32; convert one of them",
        ),
        (
            lambda stage: backward(np.ones((2, 6, 4, 3), "float32"), x, weights),
            "conv2d_backward: grad_output is float32 but x is float64; convert one of them",
        ),
    ]:
        assert_refused(stage, call, TypeError, sentence)
