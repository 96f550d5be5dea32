"""The size of the terms that each operation sums: the `scale` of its tolerance.

The rule is the same everywhere: take the formula and turn every minus into a plus. Terms that cancel in the result do
not cancel in its rounding errors, so the error of 1 - t² is as large as that of 1 + t², even if t is almost 1.
docs/numerics.md explains why.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def activation_scale(name: str, z: np.ndarray, output: np.ndarray) -> np.ndarray:
    """The scale of an activation: the errors of element-wise functions are relative to their output.

    softmax first subtracts the row's largest z. The rounding of that difference, up to u |z - largest|, becomes a
    relative error of the exponential.
    """
    if name == "softmax":
        return output * (1.0 + np.abs(z - z.max(axis=1, keepdims=True)))
    return np.abs(output)


def slope_scale(name: str, grad: np.ndarray, output: np.ndarray) -> np.ndarray:
    """The terms that each derivative sums before they cancel: s (1 - s), 1 - t², s (g - sum of g s)."""
    if name == "sigmoid":
        return np.abs(grad) * output
    if name == "tanh":
        return np.abs(grad) * (1.0 + output**2)
    if name == "softmax":
        return output * (np.abs(grad) + np.sum(np.abs(grad) * output, axis=1, keepdims=True))
    return np.abs(grad)


def loss_scales(name: str, outputs: np.ndarray, y: np.ndarray, slope: np.ndarray) -> tuple[Any, Any]:
    """(of the loss, of its gradient): the formula with every minus made a plus, averaged as the loss is.

    The cross-entropies add 1 for their logarithm; softmax's gradient is (softmax - one-hot) / batch, whose
    softmax carries `activation_scale`'s 1 + |z - largest|.
    """
    batch, columns = outputs.shape
    size = np.abs(outputs)
    if name == "mean_squared_error":  # outputs - targets is one rounding of the exact difference: nothing cancels after
        return np.mean((outputs - y) ** 2), np.abs(slope)
    if name == "sigmoid_cross_entropy":
        return np.mean(size * (1.0 + np.abs(y)) + 1.0), (1.0 + np.abs(y)) / outputs.size
    if name == "softmax_cross_entropy":
        gap = outputs.max(axis=1, keepdims=True) - outputs
        picked = np.zeros(outputs.shape)
        picked[np.arange(batch), y] = 1.0
        return np.mean(gap.max(axis=1) + size.max(axis=1) + np.log(columns) + 1.0), (
            (np.exp(-gap) * (1.0 + gap) + picked) / batch
        )
    right = size[np.arange(batch), y][:, None]
    return np.mean(1.0 + size + right), np.full(outputs.shape, 1.0 / batch)
