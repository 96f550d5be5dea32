"""NumPy functions in the place of stage 4's kernels, to grade the training step that calls them.

The step's own lines then take milliseconds: no kernel has to be compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from groundup.course.grading.calling.kernel_launches import module
from groundup.course.grading.problems.activations import softmax_of
from groundup.course.grading.problems.cross_entropy import cross_entropy_slopes
from groundup.course.grading.problems.kernel_losses import cross_entropy
from groundup.course.grading.problems.networks import SLOPES


class OnHost:
    """NumPy in place of a kernel. function: computes the new numbers of the argument at `place` from the others."""

    def __init__(self, place: int, function: Callable[..., np.ndarray]) -> None:
        self.place, self.function = place, function

    def __getitem__(self, launch: Any) -> Callable[..., None]:
        return self

    def __call__(self, *arrays: Any) -> None:
        out = arrays[self.place]
        result = self.function(*(array.copy_to_host() for array in arrays))
        out.copy_to_device(np.ascontiguousarray(result, out.dtype))


def through(grad: np.ndarray, output: np.ndarray) -> np.ndarray:
    """What softmax hands back of a gradient."""
    return (grad - (grad * output).sum(axis=1, keepdims=True)) * output


def numpy_instead_of_kernels() -> list[str]:
    """From now on NumPy computes every kernel of a step with ReLU, tanh or softmax, and of two of the losses.

    The step is graded, not its kernels, and compiling them would take ten seconds. Returns a list of the forms of the
    products, such as "nt", which grows with each.
    """
    products: list[str] = []
    kernels, losses, name = module("kernels.activations"), module("kernels.losses"), "softmax_cross_entropy"

    def multiply(form: str, a: Any, b: Any, out: Any) -> Any:
        products.append(form)
        left, right = a.copy_to_host(), b.copy_to_host()
        out.copy_to_device(
            np.ascontiguousarray((left.T if form[0] == "t" else left) @ (right.T if form[1] == "t" else right))
        )
        return out

    module("matmul").multiply = multiply
    module("kernels.dense").add_bias = OnHost(0, np.add)
    module("kernels.dense").multiply = OnHost(2, lambda a, mask, out: a * mask)
    for activation in ("relu", "tanh"):
        function, slope = SLOPES[activation]
        kernels.FORWARD[activation] = OnHost(1, lambda z, output, function=function: function(z))
        kernels.BACKWARD[activation] = OnHost(2, lambda grad, out, to, slope=slope: grad * slope(out, out))

    on_host = OnHost(1, lambda z, output: softmax_of(z)), OnHost(2, lambda grad, output, grad_z: through(grad, output))
    module("activations")._SOFTMAX_KERNELS.update(dict.fromkeys(("thread", "warp", "block"), on_host))

    def squares(outputs: np.ndarray, targets: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return ((outputs - targets) ** 2).sum(axis=1) / outputs.size

    for lanes in losses.LOSS:
        losses.LOSS[lanes]["mean_squared_error"] = OnHost(2, squares)
        losses.BACKWARD[lanes]["mean_squared_error"] = OnHost(2, lambda z, y, grad: 2 * (z - y) / z.size)
        losses.LOSS[lanes][name] = OnHost(2, lambda logits, labels, rows: cross_entropy(logits, labels))
        losses.BACKWARD[lanes][name] = OnHost(2, lambda logits, labels, grad: cross_entropy_slopes(logits, labels))
    module("reductions").launch_column_sums = OnHost(1, lambda matrix, out: matrix.sum(axis=0))
    module("reductions").launch_total = OnHost(1, lambda vector, out: vector.sum(keepdims=True))
    return products
