"""A dense layer: every output is a weighted sum of every input, plus a bias. y = xW + b."""

from typing import Any

import numpy as np

from shared.plain_arrays import float_dtype
from shared.shapes import check_dense, check_dense_input, check_grad_output

from .arrays import Array, as_matrix, asarray, ieee
from .matmul import matmul, matmul_nt, matmul_tn


class Dense:
    """y = xW + b and its derivatives. Same as torch.nn.Linear, whose weight is this W transposed.

    weights: (in_features, out_features); bias: (out_features,). Both are copied; a float64 array stays
        float64, everything else becomes float32.
    grad_weights, grad_bias: dL/dW and dL/db as of the last `backward`, zeros before the first. They are
        written in place: copy them to keep them.
    Raises ValueError where the shapes do not fit together.
    """

    def __init__(self, weights: Any, bias: Any) -> None:
        dtype = float_dtype(weights)
        weights, bias = asarray(weights, dtype), asarray(bias, dtype)
        check_dense(weights.shape, bias.shape)
        self.in_features, self.out_features = weights.shape
        self.weights: Array = weights.copy()
        self.bias: Array = bias.copy()
        self.grad_weights: Array = np.zeros_like(self.weights)
        self.grad_bias: Array = np.zeros_like(self.bias)
        self._x: Array | None = None

    @ieee
    def forward(self, x: Array, out: Array | None = None) -> Array:
        """x (batch, in_features) -> xW + b, (batch, out_features). Remembers x for `backward`."""
        x = as_matrix("Dense.forward: x", x)
        check_dense_input(x.shape, self.weights.shape)
        self._x = x
        out = matmul(x, self.weights, out)
        out += self.bias  # one bias row, broadcast over the batch
        return out

    @ieee
    def backward(self, grad_output: Array, needs_grad_input: bool = True, out: Array | None = None) -> Array | None:
        """From dL/dy to dL/dW = xᵀ dL/dy, dL/db = column sums of dL/dy, and dL/dx = dL/dy Wᵀ.

        grad_output: (batch, out_features) for the x of the last `forward`
        Returns dL/dx (batch, in_features), in `out` if given, or None with needs_grad_input=False: the
        first layer of a network has nobody to hand it to, and it would cost as much as the forward pass.
        """
        if self._x is None:
            raise ValueError("Dense.backward: there was no forward pass yet, so there is nothing to differentiate")
        grad_output = as_matrix("Dense.backward: grad_output", grad_output)
        check_grad_output("Dense.backward", grad_output.shape, (len(self._x), self.out_features), "forward's output")
        matmul_tn(self._x, grad_output, out=self.grad_weights)
        grad_output.sum(axis=0, out=self.grad_bias)
        return matmul_nt(grad_output, self.weights, out) if needs_grad_input else None
