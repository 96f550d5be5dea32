"""Which shapes and whole numbers fit together in the rooms of every stage, and what is said when they do not.

A stage asks with the shapes of its own arrays, so a mistake gets the same sentence on all of them. Each function raises
ValueError, and says the shape that came and the shape that was expected.
This module uses only the standard library, so that every stage can import it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

Shape = tuple[int, ...]

DIMENSIONS = (1, 2, 4)
"""A vector; a matrix; images (batch, channels, rows, columns) or the weights of a convolution."""


def fits_in_64_bits(number: int) -> bool:
    """Whether a whole number fits in 64 bits: more are refused everywhere, although Python has them."""
    return -(2**63) <= number < 2**64


def whole(number: int) -> str:
    """The number as text; of one with more than 64 bits only how many, because it may have a million digits."""
    return str(number) if fits_in_64_bits(number) else f"a whole number of {int(number).bit_length()} bits"


def label_beyond(function: str, i: int, label: int, classes: int) -> str:
    """The sentence about a label that names none of the classes."""
    return f"{function}: labels[{i}] is {whole(label)}, expected 0 to {classes - 1} ({classes} classes)"


def check_vector(name: str, shape: Shape) -> None:
    """One dimension."""
    if len(shape) != 1:
        raise ValueError(f"{name}: expected 1 dimension, got {len(shape)} with shape {shape}")


def check_matrix(name: str, shape: Shape) -> None:
    """Rows and columns, and at least one of each."""
    if len(shape) != 2:
        raise ValueError(f"{name}: expected 2 dimensions (rows, columns), got {len(shape)} with shape {shape}")
    if 0 in shape:
        raise ValueError(f"{name}: expected at least one row and one column, got shape {shape}")


def check_images(name: str, shape: Shape, axes: str) -> None:
    """Four dimensions, which the error names, and at least one number."""
    if len(shape) != 4:
        raise ValueError(f"{name}: expected 4 dimensions ({axes}), got {len(shape)} with shape {shape}")
    if 0 in shape:
        raise ValueError(f"{name}: expected at least one value, got shape {shape}")


def check_same(function: str, **shapes: Shape) -> None:
    """All shapes are that of the first one."""
    (first, expected), *others = shapes.items()
    for name, shape in others:
        if shape != expected:
            raise ValueError(f"{function}: {name} is {shape} but {first} is {expected}; they must have the same shape")


def check_alike(function: str, **arrays: Any) -> None:
    """All arrays have the shape and the dtype of the first one, or TypeError for the dtype."""
    (first, expected), *others = arrays.items()
    for name, array in others:
        if array.shape != expected.shape:
            check_same(function, **{first: expected.shape, name: array.shape})
        if array.dtype != expected.dtype:
            raise TypeError(f"{function}: {name} is {array.dtype} but {first} is {expected.dtype}; convert one of them")


def check_dtypes(function: str, **arrays: Any) -> None:
    """Both arrays have one dtype, or TypeError."""
    (one, a), (other, b) = arrays.items()
    if a.dtype != b.dtype:
        raise TypeError(f"{function}: {one} is {a.dtype} but {other} is {b.dtype}; convert one of them")


def check_dense(weights: Shape, bias: Shape) -> None:
    """weights are (in_features, out_features), bias is (out_features,)."""
    if len(weights) != 2:
        raise ValueError(f"Dense: weights must be 2-D (in_features, out_features), got shape {weights}")
    if bias != weights[1:]:
        raise ValueError(
            f"Dense: bias is {bias} but weights are {weights}; expected one bias for each output, ({weights[1]},)"
        )


def check_dense_input(x: Shape, weights: Shape) -> None:
    """x is (batch, in_features)."""
    if x[1] != weights[0]:
        raise ValueError(
            f"Dense.forward: x is {x} but weights are {weights}; x's columns must equal the layer's in_features"
        )


def check_grad_output(function: str, grad_output: Shape, expected: Shape, whose: str) -> None:
    """grad_output has the shape of what it is the gradient of. whose: "forward's output"."""
    if grad_output != expected:
        raise ValueError(f"{function}: grad_output is {grad_output}, expected {expected}, the shape of {whose}")


def check_kernels(function: str, weights: Shape, bias: Shape) -> None:
    """weights are (out_channels, in_channels, kh, kw), bias is (out_channels,)."""
    if bias != weights[:1]:
        raise ValueError(
            f"{function}: bias is {bias} but weights are {weights}; "
            f"expected one bias for each output channel, ({weights[0]},)"
        )


KERNEL_AXES = "out_channels, in_channels, rows, columns"


def checked_kernels(as_images: Any, as_vector: Any, function: str, weights: Any, bias: Any) -> tuple[Any, Any]:
    """weights and bias of a convolution as the stage's arrays, which fit together."""
    weights = as_images(f"{function}: weights", weights, KERNEL_AXES)
    bias = as_vector(f"{function}: bias", bias)
    check_kernels(function, weights.shape, bias.shape)
    return weights, bias


def check_channels(function: str, x: Shape, weights: Shape) -> None:
    """x is (batch, in_channels, rows, columns)."""
    if x[1] != weights[1]:
        raise ValueError(
            f"{function}: x is {x} but weights are {weights}; x's channels must equal weights' in_channels"
        )


def check_indices(function: str, indices: Shape, grad_output: Shape, input_shape: Shape) -> None:
    """There is an index for each number of grad_output, whose batch and channels are those of the input."""
    check_same(function, grad_output=grad_output, indices=indices)
    if grad_output[:2] != input_shape[:2]:
        raise ValueError(
            f"{function}: grad_output is {grad_output} but input_shape is {input_shape}; "
            "batch and channels must be the same"
        )


def check_normalised(x: Shape) -> None:
    """x is (batch, channels) or (batch, channels, rows, columns)."""
    if len(x) not in (2, 4):
        raise ValueError(
            "batch_norm: x: expected 2 or 4 dimensions, (batch, channels) or (batch, channels, rows, columns), "
            f"got {len(x)} with shape {x}"
        )


def check_several(x: Shape) -> None:
    """There is more than one value a channel: the variance of a single one would be 0."""
    if math.prod(x) == x[1]:
        raise ValueError(f"batch_norm: expected more than 1 value per channel when training, got x of shape {x}")


def checked_channels(as_vector: Callable[[str, Any], Any], x: Any, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays of one number for each channel of x as the stage's vectors, after a check of their shape and dtype."""
    vectors = {name: as_vector(f"batch_norm: {name}", values) for name, values in arrays.items()}
    for name, vector in vectors.items():
        check_one_a_channel(name, vector.shape, x.shape)
        check_dtypes("batch_norm", x=x, **{name: vector})
    return vectors


def check_apart(arrays: Mapping[str, Any], changed: Iterable[str], overlap: Callable[[Any, Any], bool]) -> None:
    """What training changes lies apart from all that it reads."""
    for name in changed:
        for other, array in arrays.items():
            if other != name and overlap(arrays[name], array):
                raise ValueError(f"batch_norm: {name} overlaps {other}; give each memory of its own")


def check_one_a_channel(name: str, vector: Shape, x: Shape) -> None:
    """There is one number for each channel of x."""
    if vector != x[1:2]:
        raise ValueError(
            f"batch_norm: {name} is {vector} but x is {x}; expected one number for each channel, ({x[1]},)"
        )
