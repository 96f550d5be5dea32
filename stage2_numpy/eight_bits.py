"""Eight bits: numbers as whole ones from -127 to 127, and their products as whole numbers.

    q = round(v / scale), scale = largest |v| / 127        v is about scale · q, off by half a scale at most

Symmetric: 0 stays exactly 0, and v and -v get q and -q. So a product needs no offsets:

    x W  is about  (scale_x · q_x)(scale_W · q_W) = scale_x · scale_W · (q_x q_W)

The sum q_x q_W has whole numbers only. It is exact, in 32 bits, whatever the order of its terms; only before it, in q,
and after it, in one multiplication, something is rounded.

    per tensor     one scale for all weights of a layer: the largest weight decides for all
    per channel    a scale for each output, which is a column of a dense layer or a filter of a convolution: a sum has
                   one output, so that its scale can still be multiplied after the sum, and costs no time
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shared.architectures import Architecture
from shared.shapes import check_dense, check_dense_input

from .arrays import Array, as_matrix

SMALLEST, LARGEST = -128, 127
"""A scale makes ±127 of the largest number: the opposite of -128 is no number of eight bits. Only what is larger than
the scale expects may become -128, as in ONNX."""

LONGEST_SUM = (2**31 - 1) // SMALLEST**2
"""Terms of a sum of products that fits in 32 bits, whatever the numbers: 131,071."""

EXACT_TERMS = 2**24 // SMALLEST**2
"""Terms of such a sum that even float32 holds exactly: 1,024. It has every whole number up to 2^24."""


def symmetric_scale(values: Any, axis: int | None = None) -> Array:
    """largest |value| / 127, as an array that broadcasts against values, in their dtype.

    axis: None, one scale for all (per tensor); or that of the outputs, a scale for each (per channel): 1 for the
        weights of a dense layer, (in, out), and 0 for those of a convolution, (out, in, rows, columns)
    Where all values are 0 any scale is right, and it is 1. Raises ValueError for no values and for NaN or infinity.
    """
    values = np.asarray(values)
    if values.size == 0 or not np.isfinite(values).all():
        raise ValueError(f"symmetric_scale: values: expected finite numbers, at least one, got shape {values.shape}")
    others = None if axis is None else tuple(each for each in range(values.ndim) if each != axis % values.ndim)
    largest = np.max(np.abs(values), axis=others, keepdims=axis is not None)
    scale = largest / values.dtype.type(LARGEST)
    return np.where(scale > 0, scale, values.dtype.type(1))


def quantise(values: Any, scale: Any) -> Array:
    """round(values / scale) as int8, halves to the even number. What is beyond -128 and 127 becomes these.

    Raises ValueError for NaN, which is no whole number.
    """
    numbers = np.asarray(values / scale)
    if np.isnan(numbers).any():
        raise ValueError("quantise: values: expected numbers, got NaN")
    np.rint(numbers, out=numbers)
    return np.clip(numbers, SMALLEST, LARGEST, out=numbers).astype(np.int8)


def dequantise(numbers: Array, scale: Any) -> Array:
    """scale · numbers, in the scale's dtype: what the whole numbers stand for."""
    return np.multiply(numbers, scale, dtype=np.asarray(scale).dtype)


def integer_matmul(left: Array, right: Array) -> Array:
    """left (M, K) times right (K, N), both int8 -> int32 (M, N), exact. Same as torch._int_mm.

    NumPy multiplies matrices of whole numbers one number at a time. Those of floats go to BLAS: far faster, and
    exact here: a sum of at most EXACT_TERMS terms is a whole number that float32 has, and so is every part of it, in
    any order. Longer sums are cut into such pieces, which are added up in 32 bits.
    Raises TypeError for other numbers than int8, ValueError for shapes that do not fit together and for more terms than
    32 bits hold.
    """
    if left.dtype != np.int8 or right.dtype != np.int8:
        raise TypeError(f"integer_matmul: expected two arrays of int8, got {left.dtype} and {right.dtype}")
    if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[0]:
        raise ValueError(f"integer_matmul: expected (M, K) and (K, N), got {left.shape} and {right.shape}")
    terms = left.shape[1]
    if terms > LONGEST_SUM:
        raise ValueError(f"integer_matmul: {terms:,} terms; a sum of 32 bits has room for {LONGEST_SUM:,}")
    sums = np.zeros((left.shape[0], right.shape[1]), np.int32)
    for first in range(0, terms, EXACT_TERMS):
        piece = slice(first, first + EXACT_TERMS)
        sums += np.matmul(left[:, piece].astype(np.float32), right[piece].astype(np.float32)).astype(np.int32)
    return sums


def dense_in_eight_bits(x: Any, weights: Any, bias: Any, per_channel: bool = True) -> Array:
    """xW + b by whole numbers: (batch, out_features) in the dtype of x.

    x (batch, in_features) gets one scale, for the batch as it is; weights (in_features, out_features) one, or one for
    each output. The bias stays as it is: it is added once, and would save nothing.
    """
    x, weights, bias = as_matrix("dense_in_eight_bits: x", x), np.asarray(weights), np.asarray(bias)
    check_dense(weights.shape, bias.shape)
    check_dense_input(x.shape, weights.shape)
    scale_x, scale_w = symmetric_scale(x), symmetric_scale(weights, axis=1 if per_channel else None)
    sums = integer_matmul(quantise(x, scale_x), quantise(weights, scale_w))
    return dequantise(sums, scale_x * scale_w) + bias


def rounded_parameters(
    architecture: Architecture, parameters: Sequence[Array], per_channel: bool = True
) -> list[Array]:
    """The parameters with every weight replaced by what its eight bits stand for; biases, gammas and betas as they are.

    A network of these is the answer to how much the rounding of the weights alone costs.
    """
    rounded = []
    for described, values in zip(architecture.parameters(), parameters, strict=True):
        if not described.fan_in:
            rounded.append(values)
            continue
        outputs = 1 if values.ndim == 2 else 0
        scale = symmetric_scale(values, outputs if per_channel else None)
        rounded.append(dequantise(quantise(values, scale), scale))
    return rounded
