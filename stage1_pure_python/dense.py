"""A dense layer: every output is a weighted sum of every input, plus a bias. y = xW + b.

x has a row for each sample. docs/guides/backpropagation.md derives the three gradients, with numbers.
"""

from typing import Any

from shared.shapes import check_dense, check_dense_input, check_grad_output

from .arrays import Matrix, Vector, asarray, matrix_shape, shape_of, zeros
from .matmul import matmul, matmul_nt, matmul_tn


class Dense:
    """y = xW + b and its derivatives. Same as torch.nn.Linear, whose weight is this W transposed.

    weights: (in_features, out_features); bias: (out_features,). Both are copied.
    grad_weights, grad_bias: dL/dW and dL/db as of the last `backward`, zeros before the first.
    Raises ValueError where the shapes do not fit together.
    """

    def __init__(self, weights: Any, bias: Any) -> None:
        weights, bias = asarray(weights), asarray(bias)
        check_dense(shape_of(weights), shape_of(bias))
        self.in_features, self.out_features = shape_of(weights)
        self.weights: Matrix = weights
        self.bias: Vector = bias
        self.grad_weights: Matrix = zeros((self.in_features, self.out_features))
        self.grad_bias: Vector = zeros((self.out_features,))
        self._x: Matrix | None = None

    def forward(self, x: Matrix) -> Matrix:
        """x (batch, in_features) -> xW + b, (batch, out_features). Remembers x itself, no copy, for `backward`."""
        check_dense_input(matrix_shape("Dense.forward: x", x), (self.in_features, self.out_features))
        self._x = x
        return [[y + b for y, b in zip(row, self.bias, strict=True)] for row in matmul(x, self.weights)]

    def backward(self, grad_output: Matrix, needs_grad_input: bool = True) -> Matrix | None:
        """From dL/dy to dL/dW = xᵀ dL/dy, dL/db = column sums of dL/dy, and dL/dx = dL/dy Wᵀ.

        grad_output: (batch, out_features) for the x of the last `forward`
        Returns dL/dx (batch, in_features), or None with needs_grad_input=False: no layer comes before the
        first one of a network, which saves as much time as the forward pass takes.
        """
        if self._x is None:
            raise ValueError("Dense.backward: there was no forward pass yet, so there is nothing to differentiate")
        shape = matrix_shape("Dense.backward: grad_output", grad_output)
        check_grad_output("Dense.backward", shape, (len(self._x), self.out_features), "forward's output")
        self.grad_weights = matmul_tn(self._x, grad_output)
        self.grad_bias = [sum(column) for column in zip(*grad_output, strict=True)]
        return matmul_nt(grad_output, self.weights) if needs_grad_input else None
