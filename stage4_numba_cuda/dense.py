"""A dense layer: every output is a weighted sum of every input, plus a bias. y = xW + b."""

from typing import Any

from shared.names import ACTIVATIONS
from shared.plain_arrays import float_dtype
from shared.shapes import check_dense, check_dtypes, check_grad_output

from . import dense_passes as passes
from . import launch
from .arrays import Array, as_matrix, asarray, check_layer, copy, output_like, zeros
from .kernels import dense as kernels
from .matmul import matmul, matmul_nt, matmul_tn
from .precision import checked
from .reductions import column_sums


class Dense:
    """y = xW + b and its derivatives. Same as torch.nn.Linear, whose weight is this W transposed.

    weights: (in_features, out_features); bias: (out_features,). Both are copied to the device; a float64 array stays
        float64, everything else becomes float32.
    grad_weights, grad_bias: dL/dW and dL/db as of the last `backward`, zeros before the first, device arrays. They are
        written in place: copy them to keep them.
    Raises ValueError where the shapes do not fit together.
    """

    def __init__(self, weights: Any, bias: Any) -> None:
        dtype = float_dtype(weights)
        weights, bias = asarray(weights, dtype), asarray(bias, dtype)
        check_dense(weights.shape, bias.shape)
        self.in_features, self.out_features = weights.shape
        self.weights: Array = copy(weights)
        self.bias: Array = copy(bias)
        self.grad_weights: Array = zeros(weights.shape, dtype)
        self.grad_bias: Array = zeros(bias.shape, dtype)
        self._x: Array | None = None

    def forward(self, x: Array, out: Array | None = None) -> Array:
        """x (batch, in_features) -> xW + b, (batch, out_features). Remembers x for `backward`.

        Two kernels: the product, and then the bias, which reads and writes the whole result once more.
        """
        x, out = self._prepare("Dense.forward", x, out)
        matmul(x, self.weights, out)
        kernels.add_bias[launch.elementwise(out.size)](out, self.bias)
        self._x = x
        return out

    def forward_fused(
        self, x: Array, activation: str = "identity", out: Array | None = None, precision: str | None = None
    ) -> Array:
        """activation(xW + b) in one kernel. Remembers x for `backward`.

        The bias is added and the activation applied while each sum is still in a register; softmax, which needs a
        whole row, is not among those that can be.
        precision: "tf32" or "bf16", on tensor cores where these pay; None: the factors are not rounded
        Raises ValueError for an unknown activation, and for softmax.
        """
        if activation not in ACTIVATIONS[:-1]:
            raise ValueError(
                f"Dense.forward_fused: unknown activation {activation!r}; choose one of {', '.join(ACTIVATIONS[:-1])}"
            )
        x, out = self._prepare("Dense.forward_fused", x, out)
        precision = checked("Dense.forward_fused: precision", precision, x.dtype)
        passes.forward_into(x, self.weights, self.bias, ACTIVATIONS.index(activation), out, precision)
        self._x = x
        return out

    def backward(
        self,
        grad_output: Array,
        needs_grad_input: bool = True,
        out: Array | None = None,
        precision: str | None = None,
    ) -> Array | None:
        """From dL/dy to dL/dW = xᵀ dL/dy, dL/db = column sums of dL/dy, and dL/dx = dL/dy Wᵀ, a kernel for each.

        grad_output: (batch, out_features) for the x of the last `forward`
        precision: as of `forward_fused`
        Returns dL/dx (batch, in_features), in `out` if given, or None with needs_grad_input=False: the
        first layer of a network has nobody to hand it to, and it would cost as much as the forward pass.
        """
        if self._x is None:
            raise ValueError("Dense.backward: there was no forward pass yet, so there is nothing to differentiate")
        x, grad_output = self._x, as_matrix("Dense.backward: grad_output", grad_output)
        check_grad_output("Dense.backward", grad_output.shape, (len(x), self.out_features), "forward's output")
        check_dtypes("Dense.backward", grad_output=grad_output, x=x)
        self.check_memory("Dense.backward", x.dtype)
        precision = checked("Dense.backward: precision", precision, x.dtype)
        if needs_grad_input:
            apart = {"grad_output": grad_output, "x": x, "weights": self.weights}
            written = {"grad_weights": self.grad_weights, "grad_bias": self.grad_bias}
            out = output_like("Dense.backward", out, x.shape, x.dtype, **apart, **written)
        if precision is not None:
            grad_input = out if needs_grad_input else None
            slopes = grad_input, self.grad_weights, self.grad_bias
            passes.backward_into(grad_output, x, self.weights, *slopes, precision=precision)
            return grad_input
        matmul_tn(x, grad_output, self.grad_weights)
        column_sums(grad_output, self.grad_bias)
        return matmul_nt(grad_output, self.weights, out) if needs_grad_input else None

    def _prepare(self, function: str, x: Array, out: Array | None) -> tuple[Array, Array]:
        """x on the device, and where to write."""
        x = as_matrix(f"{function}: x", x)
        if x.shape[1] != self.in_features:
            raise ValueError(
                f"{function}: x is {x.shape} but weights are {self.weights.shape}; "
                "x's columns must equal the layer's in_features"
            )
        self.check_memory(function, x.dtype)
        shape = (len(x), self.out_features)
        return x, output_like(function, out, shape, x.dtype, x=x, weights=self.weights, bias=self.bias)

    def check_memory(self, function: str, dtype: Any) -> None:
        """Raise ValueError or TypeError if an array of the layer was replaced by what no kernel can use."""
        shapes = {"weights": (self.in_features, self.out_features), "bias": (self.out_features,)}
        check_layer(function, self, shapes | {f"grad_{name}": shape for name, shape in shapes.items()}, dtype)
