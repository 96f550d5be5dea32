"""A dense layer: every output is a weighted sum of every input, plus a bias. y = xW + b."""

from typing import Any

import numpy as np

from shared.plain_arrays import float_dtype
from shared.shapes import check_dtypes, check_grad_output

from . import library
from .arrays import Array, aligned_copy, aligned_zeros, as_matrix, asarray, check_writable, output_like
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
        if weights.ndim != 2:
            raise ValueError(f"Dense: weights must be 2-D (in_features, out_features), got shape {weights.shape}")
        self.in_features, self.out_features = weights.shape
        if bias.shape != (self.out_features,):
            raise ValueError(
                f"Dense: bias is {bias.shape} but weights are {weights.shape}; "
                f"expected one bias for each output, ({self.out_features},)"
            )
        self.weights: Array = aligned_copy(weights, dtype)
        self.bias: Array = aligned_copy(bias, dtype)
        self.grad_weights: Array = aligned_zeros(weights.shape, dtype)
        self.grad_bias: Array = aligned_zeros(bias.shape, dtype)
        self._x: Array | None = None

    def forward(self, x: Array, out: Array | None = None) -> Array:
        """x (batch, in_features) -> xW + b, (batch, out_features). Remembers x for `backward`.

        Two calls into C: the product, and then the bias, which reads and writes the whole result once more.
        """
        x, out = self._prepare("Dense.forward", x, out)
        matmul(x, self.weights, out)
        library.function("add_bias", out.dtype)(*out.shape, self.bias, out)
        self._x = x.view()  # its own header on the same memory: whatever becomes of x's shape, this one stays
        return out

    def backward(self, grad_output: Array, needs_grad_input: bool = True, out: Array | None = None) -> Array | None:
        """From dL/dy to dL/dW = xᵀ dL/dy, dL/db = column sums of dL/dy, and dL/dx = dL/dy Wᵀ, a call into C for each.

        grad_output: (batch, out_features) for the x of the last `forward`
        Returns dL/dx (batch, in_features), in `out` if given, or None with needs_grad_input=False: the
        first layer of a network has nobody to hand it to, and it would cost as much as the forward pass.
        """
        x, grad_output, out = self._prepare_backward("Dense.backward", grad_output, needs_grad_input, out)
        matmul_tn(x, grad_output, self.grad_weights)
        library.function("column_sums", x.dtype)(*grad_output.shape, grad_output, self.grad_bias)
        return matmul_nt(grad_output, self.weights, out) if needs_grad_input else None

    def _prepare_backward(
        self, function: str, grad_output: Array, needs_grad_input: bool, out: Array | None
    ) -> tuple[Array, Array, Array | None]:
        """x and grad_output as C reads them, and where to write dL/dx."""
        if self._x is None:
            raise ValueError(f"{function}: there was no forward pass yet, so there is nothing to differentiate")
        x, grad_output = self._x, as_matrix(f"{function}: grad_output", grad_output)
        check_grad_output(function, grad_output.shape, (len(x), self.out_features), "forward's output")
        check_dtypes(function, grad_output=grad_output, x=x)
        self._check_memory(function, x.dtype)
        read = {"grad_output": grad_output, "x": x, "weights": self.weights}
        output_like(f"{function}: grad_weights", self.grad_weights, self.weights.shape, x.dtype, **read)
        output_like(f"{function}: grad_bias", self.grad_bias, self.bias.shape, x.dtype, **read)
        written = {"grad_weights": self.grad_weights, "grad_bias": self.grad_bias}
        if needs_grad_input:
            out = output_like(function, out, x.shape, x.dtype, **read, **written)
        return x, grad_output, out if needs_grad_input else None

    def _prepare(self, function: str, x: Array, out: Array | None) -> tuple[Array, Array]:
        """x as C reads it, and where to write."""
        x = as_matrix(f"{function}: x", x)
        if x.shape[1] != self.in_features:
            raise ValueError(
                f"{function}: x is {x.shape} but weights are {self.weights.shape}; "
                "x's columns must equal the layer's in_features"
            )
        self._check_memory(function, x.dtype, reading=True)
        shape = (len(x), self.out_features)
        return x, output_like(function, out, shape, x.dtype, x=x, weights=self.weights, bias=self.bias)

    def _check_memory(self, function: str, dtype: Any, reading: bool = False) -> None:
        """The layer's arrays are attributes, so anything may have been put in their place since __init__.

        reading: look at weights and bias only, which may then be read-only
        Raises ValueError for what C cannot use as the memory it expects, TypeError for another dtype.
        """
        weights, bias = (self.in_features, self.out_features), (self.out_features,)
        shapes = {"weights": weights, "bias": bias}
        if not reading:
            shapes |= {"grad_weights": weights, "grad_bias": bias}
        for name, shape in shapes.items():
            array = getattr(self, name)
            if not isinstance(array, np.ndarray) or array.shape != shape or not array.flags.c_contiguous:
                instead = array.shape if isinstance(array, np.ndarray) else type(array).__name__
                raise ValueError(
                    f"{function}: the layer's {name} was replaced by {instead}, expected a C-contiguous array {shape}; "
                    "change it in place, or make a new Dense"
                )
            if array.dtype != dtype:
                raise TypeError(f"{function}: x is {dtype} but {name} is {array.dtype}; convert one of them")
            if not reading:
                check_writable(f"{function}: {name}", array)
            elif not array.flags.aligned:
                raise ValueError(f"{function}: {name} is not aligned; change it in place, or make a new Dense")
