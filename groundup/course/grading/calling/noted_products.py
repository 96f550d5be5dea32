"""Arrays that note the products they go into: one of two matrices, or one of a stack of them?"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np


class Noting(np.ndarray):
    """An array that notes how many axes the operands of its products have: matmul takes a stack of matrices, too."""

    axes: ClassVar[list[int]] = []

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: tuple[Any, ...] = (), **more: Any) -> Any:
        """The same on plain arrays."""
        if ufunc is np.matmul:
            self.axes.append(max(map(np.ndim, inputs)))
        if out:
            more["out"] = tuple(np.asarray(each) for each in out)
        return getattr(ufunc, method)(*(np.asarray(each) for each in inputs), **more)


def axes_of_products(convolution: Any, arguments: tuple[Any, ...]) -> int:
    """The most axes that an operand of a product with the weights has in the module's im2col; 2 without a product."""
    prepare = convolution._prepare

    def noting(*given: Any) -> Any:
        x, weights, *more = prepare(*given)
        return x, weights.view(Noting), *more

    Noting.axes.clear()
    convolution._prepare = noting
    try:
        convolution.im2col(*arguments)
    finally:
        convolution._prepare = prepare
    return max(Noting.axes, default=2)
