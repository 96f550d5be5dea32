"""Matrix multiplication on the GPU: the checks and launches; the kernels are in kernels/matmul_*.py, slowest rung first.

    naive        one thread per output; neighbouring threads read far apart       32 sectors for every 32 numbers
    coalesced    the same, with threadIdx.x along the columns                     each warp reads whole sectors
    tiled_16     a block shares 16 x 16 tiles through shared memory               16 times fewer global reads
    tiled_32     the same with 32 x 32                                            half of those, half the barriers

Shapes: a is (M, K), b is (K, N), the result is (M, N). float32 or float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import launch
from .arrays import Array, as_matrix, output_like
from .kernels import matmul_basic as basic

FORMS = ("nn", "tn", "nt")
"""ab, aᵀb and abᵀ."""

NARROW = 17
"""A result with fewer columns or rows than this leaves more than half of a 32 x 32 tile idle: it gets 16 x 16 ones."""

TILED = {(size, form): basic.tiled(size, form) for size in (16, 32) for form in FORMS}


def naive(a: Array, b: Array, out: Array | None = None) -> Array:
    """The definition, one thread an output, threadIdx.x down the rows: a warp's 32 reads of a lie K numbers apart."""
    a, b, out = _prepare("matmul", "nn", a, b, out)
    basic.naive[launch.tiles(out.shape[1], out.shape[0], 16, 16), (16, 16)](a, b, out)
    return out


def coalesced(a: Array, b: Array, out: Array | None = None) -> Array:
    """naive with threadIdx.x along the columns: a warp reads neighbours in b, and one number of a for all."""
    a, b, out = _prepare("matmul", "nn", a, b, out)
    basic.coalesced[launch.tiles(*out.shape, 16, 16), (16, 16)](a, b, out)
    return out


def tiled_16(a: Array, b: Array, out: Array | None = None) -> Array:
    """Tiles of 16 x 16 in shared memory: every number that is fetched serves 16 threads."""
    return _tiled(16, *_prepare("matmul", "nn", a, b, out))


def tiled_32(a: Array, b: Array, out: Array | None = None) -> Array:
    """Tiles of 32 x 32: every number that is fetched serves 32 threads, one of them a whole warp."""
    return _tiled(32, *_prepare("matmul", "nn", a, b, out))


LADDER: dict[str, Callable[..., Array]] = {
    "naive": naive,
    "coalesced": coalesced,
    "tiled_16": tiled_16,
    "tiled_32": tiled_32,
}


def matmul(a: Array, b: Array, out: Array | None = None) -> Array:
    """ab by the rung that suits the size and the backend: a (M, K), b (K, N) -> (M, N). Same as torch.matmul.

    out: where to write the result, (M, N) of the same dtype and not overlapping a or b; a new array if None
    Raises ValueError where a's columns are not b's rows or `out` does not fit, TypeError for a mix of dtypes.
    """
    a, b, out = _prepare("matmul", "nn", a, b, out)
    return multiply("nn", a, b, out)


def matmul_tn(a: Array, b: Array, out: Array | None = None) -> Array:
    """aᵀb: a (K, M), b (K, N) -> (M, N). The transpose is only another way of filling a's tiles."""
    a, b, out = _prepare("matmul_tn", "tn", a, b, out)
    return multiply("tn", a, b, out)


def matmul_nt(a: Array, b: Array, out: Array | None = None) -> Array:
    """abᵀ: a (M, K), b (N, K) -> (M, N). As for matmul_tn, nothing is transposed in global memory."""
    a, b, out = _prepare("matmul_nt", "nt", a, b, out)
    return multiply("nt", a, b, out)


def multiply(form: str, a: Array, b: Array, out: Array) -> Array:
    """The product of that form into `out`, unchecked: for callers that made the arrays themselves."""
    kernels, grid, block = _choose(form, out)
    kernels.multiply[grid, block](a, b, out)
    return out


def forward_fused(x: Array, weights: Array, bias: Array, activation: int, out: Array) -> Array:
    """activate(xW + b) in one kernel, unchecked: x (batch, in), weights (in, out), bias (out,) -> (batch, out).

    activation: its number in kernels/activations.py, not softmax's
    """
    kernels, grid, block = _choose("nn", out)
    kernels.forward[grid, block](x, weights, bias, activation, out)
    return out


def backward_fused(
    grad: Array, weights: Array, output: Array, activation: int, mask: Array | None, out: Array, stream: Any = 0
) -> Array:
    """(grad Wᵀ) · mask · the activation's slope in one kernel, unchecked: the gradient at the layer below, before its
    activation.

    grad (batch, out), weights (in, out); output, what the layer below gave, mask and the result: (batch, in)
    mask: of dropout after the layer below, or None
    """
    kernels, grid, block = _choose("nt", out)
    masked = 0 if mask is None else 1
    # A kernel takes an array in every place; without a mask it is one that is never read.
    kernels.backward[grid, block, stream](
        grad, weights, output, activation, output if mask is None else mask, masked, out
    )
    return out


def _choose(form: str, out: Array) -> tuple[Any, tuple[int, int], tuple[int, int]]:
    size = 16 if min(out.shape) < NARROW else 32
    return TILED[size, form], launch.tiles(*out.shape, size, size), (size, size)


def _tiled(size: int, a: Array, b: Array, out: Array) -> Array:
    TILED[size, "nn"].multiply[launch.tiles(*out.shape, size, size), (size, size)](a, b, out)
    return out


RULES = {
    "nn": "a's columns must equal b's rows",
    "tn": "a's rows must equal b's rows",
    "nt": "a's columns must equal b's columns",
}


def _prepare(function: str, form: str, a: Array, b: Array, out: Array | None) -> tuple[Array, Array, Array]:
    """a and b on the device and where to write, after checking that they fit together."""
    a, b = as_matrix(f"{function}: a", a), as_matrix(f"{function}: b", b)
    if a.dtype != b.dtype:
        raise TypeError(f"{function}: a is {a.dtype} but b is {b.dtype}; convert one of them")
    rows, inner = reversed(a.shape) if form == "tn" else a.shape
    columns, other = (b.shape[0], b.shape[1]) if form == "nt" else (b.shape[1], b.shape[0])
    if inner != other:
        raise ValueError(f"{function}: a is {a.shape} but b is {b.shape}; {RULES[form]}")
    return a, b, output_like(function, out, (rows, columns), a.dtype, a=a, b=b)
