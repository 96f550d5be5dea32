"""The same mistake in using a room of convolution is answered by the same error in the same words on every floor."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from shared.contract import Stage, load_stage
from tests.floors.refusals import assert_refused
from tests.stages import STAGE_PARAMS

NUMBERS = "asarray: expected real numbers"


def ones(*shape: int) -> Callable[[Stage], Any]:
    return lambda stage: stage.arrays.asarray(np.ones(shape), "float64")


X, WEIGHTS, BIAS = ones(2, 3, 5, 4), ones(6, 3, 2, 2), ones(6)
GRAD = ones(2, 6, 4, 3)


def handed_over(stage: Stage, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments with the stage's own arrays for those that are made by `ones`."""
    return {name: value(stage) if callable(value) else value for name, value in arguments.items()}


Mistakes = dict[str, tuple[dict[str, Any], type[Exception], str]]

OF_ARRAYS: dict[str, tuple[Any, type[Exception], str]] = {
    "None": (None, TypeError, NUMBERS),
    "text": ([["a", "b"]], TypeError, NUMBERS),
    "a number": (5, ValueError, "asarray: expected 1, 2 or 4 dimensions, got 0"),
    "three dimensions": ([[[1.0]]], ValueError, "asarray: expected 1, 2 or 4 dimensions, got 3"),
    "ragged": ([[1.0, 2.0], [3.0]], ValueError, "asarray: expected rows of equal length"),
    "nothing": ([], ValueError, "asarray: expected at least one value"),
}

FOUR = "expected 4 dimensions (batch, channels, rows, columns), got 2 with shape (2, 3)"
PAIR = "expected a whole number of at least {}, or a pair (rows, columns) of them, got {}"

CONV2D: Mistakes = {
    **{f"x: {what}": ({"x": x}, kind, f"conv2d: x: {said}") for what, (x, kind, said) in OF_ARRAYS.items()},
    **{
        f"weights: {what}": ({"weights": weights}, kind, f"conv2d: weights: {said}")
        for what, (weights, kind, said) in OF_ARRAYS.items()
    },
    "x of two dimensions": ({"x": ones(2, 3)}, ValueError, f"conv2d: x: {FOUR}"),
    "weights of two dimensions": (
        {"weights": ones(2, 3)},
        ValueError,
        "conv2d: weights: expected 4 dimensions (out_channels, in_channels, rows, columns), got 2 with shape (2, 3)",
    ),
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
    "bias of two dimensions": (
        {"bias": ones(1, 6)},
        ValueError,
        "conv2d: bias: expected 1 dimension, got 2 with shape (1, 6)",
    ),
    "stride 0": ({"stride": 0}, ValueError, "conv2d: stride: " + PAIR.format(1, 0)),
    "stride of text": ({"stride": "2"}, TypeError, "conv2d: stride: " + PAIR.format(1, "'2'")),
    "stride of three": ({"stride": (1, 1, 1)}, ValueError, "conv2d: stride: " + PAIR.format(1, (1, 1, 1))),
    "stride not whole": ({"stride": (1, 1.5)}, TypeError, "conv2d: stride: " + PAIR.format(1, (1, 1.5))),
    "negative padding": ({"padding": (0, -1)}, ValueError, "conv2d: padding: " + PAIR.format(0, (0, -1))),
    **{
        f"padding 2 to the {bits}": (
            {"padding": (0, 2**bits)},
            ValueError,
            f"conv2d: the image (5, 4) padded to (5, {4 + 2 ** (bits + 1)}) is longer than 2,147,483,647 rows or "
            "columns",
        )
        for bits in (30, 31, 63, 64, 100)
    },
    "padding same": ({"padding": "same"}, TypeError, "conv2d: padding: " + PAIR.format(0, "'same'")),
    "window too large": (
        {"weights": ones(6, 3, 6, 2)},
        ValueError,
        "conv2d: the window (6, 2) is larger than the image (5, 4)",
    ),
    "window too large, padded": (
        {"weights": ones(6, 3, 2, 7), "padding": (0, 1)},
        ValueError,
        "conv2d: the window (2, 7) is larger than the image (5, 4) padded to (5, 6)",
    ),
}
CONV2D_BACKWARD: Mistakes = {
    "grad_output of another shape": (
        {"grad_output": ones(2, 6, 5, 4)},
        ValueError,
        "conv2d_backward: grad_output is (2, 6, 5, 4), expected (2, 6, 4, 3), the shape of conv2d's output",
    ),
    "grad_output of another batch": (
        {"grad_output": ones(1, 6, 4, 3)},
        ValueError,
        "conv2d_backward: grad_output is (1, 6, 4, 3), expected (2, 6, 4, 3), the shape of conv2d's output",
    ),
    "grad_output of two dimensions": ({"grad_output": ones(2, 3)}, ValueError, f"conv2d_backward: grad_output: {FOUR}"),
    "other channels": (
        {"x": ones(2, 4, 5, 4)},
        ValueError,
        "conv2d_backward: x is (2, 4, 5, 4) but weights are (6, 3, 2, 2); x's channels must equal weights' in_channels",
    ),
    "stride 0": ({"stride": 0}, ValueError, "conv2d_backward: stride: " + PAIR.format(1, 0)),
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
    "stride 0": ({"stride": 0}, ValueError, "Conv2d: stride: " + PAIR.format(1, 0)),
    "negative padding": ({"padding": -1}, ValueError, "Conv2d: padding: " + PAIR.format(0, -1)),
}
CONVOLUTION = {
    "conv2d": ({"x": X, "weights": WEIGHTS, "bias": BIAS}, CONV2D),
    "conv2d_backward": ({"grad_output": GRAD, "x": X, "weights": WEIGHTS}, CONV2D_BACKWARD),
    "Conv2d": ({"weights": WEIGHTS, "bias": BIAS}, LAYER),
}

POOL: Mistakes = {
    "x of two dimensions": ({"x": ones(2, 3)}, ValueError, f"max_pool2d: x: {FOUR}"),
    "x of text": ({"x": "abc"}, TypeError, f"max_pool2d: x: {NUMBERS}"),
    "size 0": ({"size": 0}, ValueError, "max_pool2d: size: " + PAIR.format(1, 0)),
    "size None": ({"size": None}, TypeError, "max_pool2d: size: " + PAIR.format(1, None)),
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
    "shape None": ({"input_shape": None}, TypeError, "max_pool2d_backward: " + SHAPE.format(None)),
    "indices that are floats": ({"indices": [[[[0.0, 2.0], [8.0, 10.0]]]]}, TypeError, WHOLE),
    "indices None": ({"indices": None}, TypeError, WHOLE),
    "indices of text": ({"indices": "abc"}, TypeError, WHOLE),
    "indices of another shape": (
        {"indices": np.array([[[[0, 2]]]])},
        ValueError,
        "max_pool2d_backward: indices is (1, 1, 1, 2) but grad_output is (1, 1, 2, 2); they must have the same shape",
    ),
    "other channels": (
        {"input_shape": (1, 2, 4, 4)},
        ValueError,
        "max_pool2d_backward: grad_output is (1, 1, 2, 2) but input_shape is (1, 2, 4, 4); "
        "batch and channels must be the same",
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
    "shape of text": ({"input_shape": "abc"}, TypeError, "average_pool2d_backward: " + SHAPE.format("'abc'")),
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
    "window too large": (
        {"size": 5},
        ValueError,
        "average_pool2d_backward: the window (5, 5) is larger than the image (4, 4)",
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
    "x None": ({"x": None}, TypeError, f"batch_norm: x: {NUMBERS}"),
    **{
        f"{name} of another length": (
            {name: ones(2)},
            ValueError,
            f"batch_norm: {name} is (2,) but x is (2, 3, 5, 4); expected one number for each channel, (3,)",
        )
        for name in ("gamma", "beta", "running_mean", "running_var")
    },
    "gamma of two dimensions": (
        {"gamma": ones(1, 3)},
        ValueError,
        "batch_norm: gamma: expected 1 dimension, got 2 with shape (1, 3)",
    ),
    "one value a channel": (
        {"x": ones(1, 3)},
        ValueError,
        "batch_norm: expected more than 1 value per channel when training, got x of shape (1, 3)",
    ),
    "one value a channel of an image": (
        {"x": ones(1, 3, 1, 1)},
        ValueError,
        "batch_norm: expected more than 1 value per channel when training, got x of shape (1, 3, 1, 1)",
    ),
    "momentum 2": ({"momentum": 2}, ValueError, "batch_norm: momentum: expected a number from 0 to 1, got 2"),
    "momentum None": ({"momentum": None}, TypeError, "batch_norm: momentum: expected a number, got None"),
    "epsilon 0": ({"epsilon": 0.0}, ValueError, "batch_norm: epsilon: expected a finite number above 0, got 0.0"),
    "epsilon nan": (
        {"epsilon": float("nan")},
        ValueError,
        "batch_norm: epsilon: expected a finite number above 0, got nan",
    ),
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
    **{
        f"{name} of another length": (
            {name: ones(2)},
            ValueError,
            f"BatchNorm: {name} is (2,) but gamma is (3,); they must have the same shape",
        )
        for name in ("beta", "running_mean", "running_var")
    },
    "momentum -1": ({"momentum": -1}, ValueError, "BatchNorm: momentum: expected a number from 0 to 1, got -1"),
}
CHANNELS = {"gamma": THREE, "beta": THREE, "running_mean": THREE, "running_var": THREE}
BATCH_NORM = {
    "batch_norm": ({"x": X, **CHANNELS, "training": True}, NORM),
    "BatchNorm": (CHANNELS, NORM_LAYER),
}


def cases(room: str, functions: dict[str, tuple[dict[str, Any], Mistakes]]) -> list[Any]:
    return [
        pytest.param(param.values[0], room, function, {**right, **wrong}, kind, sentence, marks=param.marks, id=label)
        for param in STAGE_PARAMS
        for function, (right, mistakes) in functions.items()
        for what, (wrong, kind, sentence) in mistakes.items()
        for label in [f"{param.values[0]}-{function}-{what}"]
    ]


@pytest.mark.parametrize(
    ("name", "room", "function", "arguments", "kind", "sentence"),
    [*cases("convolution", CONVOLUTION), *cases("pooling", POOLING), *cases("batch_norm", BATCH_NORM)],
)
def test_a_mistake_is_answered_in_the_same_words(
    name: str, room: str, function: str, arguments: dict[str, Any], kind: type[Exception], sentence: str
) -> None:
    stage = load_stage(name)
    given = handed_over(stage, arguments)
    assert_refused(stage, lambda stage: getattr(getattr(stage, room), function)(**given), kind, sentence)


ON_THE_HOST = ("stage2_numpy", "stage3_c")
"""The stages with NumPy's arrays: lists and device arrays cannot be made read-only."""


@pytest.mark.parametrize("name", [param for param in STAGE_PARAMS if param.values[0] in ON_THE_HOST])
def test_a_running_mean_that_is_read_only_is_named(name: str) -> None:
    stage = load_stage(name)
    x, gamma, beta, mean, var = (np.ones(shape) for shape in ((4, 2), 2, 2, 2, 2))
    mean.flags.writeable = False
    sentence = "batch_norm: running_mean is read-only; pass an array that may be written to"
    assert_refused(
        stage, lambda stage: stage.batch_norm.batch_norm(x, gamma, beta, mean, var, True), ValueError, sentence
    )
    stage.batch_norm.batch_norm(x, gamma, beta, mean, var, False)


IN_MEMORY = [param for param in STAGE_PARAMS if param.values[0] != "stage1_pure_python"]
"""Lists of numbers have no memory of their own."""


@pytest.mark.parametrize("name", IN_MEMORY)
@pytest.mark.parametrize("other", ["running_var", "gamma", "beta"])
def test_a_running_mean_that_training_reads_as_something_else_is_named(name: str, other: str) -> None:
    stage = load_stage(name)
    given = {each: stage.arrays.asarray(np.ones(2), "float64") for each in ("gamma", "beta", "running_var")}
    given["running_mean"] = given[other]
    sentence = f"batch_norm: running_mean overlaps {other}; give each memory of its own"
    x = stage.arrays.asarray(np.arange(8.0).reshape(4, 2), "float64")
    assert_refused(stage, lambda stage: stage.batch_norm.batch_norm(x, training=True, **given), ValueError, sentence)
    assert np.array(stage.arrays.to_host(given["running_mean"])).tolist() == [1.0, 1.0]
    stage.batch_norm.batch_norm(x, training=False, **given)


@pytest.mark.parametrize("name", IN_MEMORY)
def test_a_mask_is_not_forgotten(name: str) -> None:
    stage = load_stage(name)
    x = np.ma.masked_array(np.ones((1, 1, 3, 3)), mask=True)
    sentence = "max_pool2d: x: asarray: a masked array would lose its mask; fill it first, with .filled(value)"
    assert_refused(stage, lambda stage: stage.pooling.max_pool2d(x, 2), TypeError, sentence)


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
