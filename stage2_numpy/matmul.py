"""Matrix multiplication in NumPy, slowest rung first.

    dot_per_output    one np.dot of a row and a column for each output         the inner loop leaves Python
    outer_products    for each k, add column k of a times row k of b           M*N numbers a call instead of K
    einsum            one call in all, a compiled triple loop                  no Python loop, no temporaries
    at_operator       @ hands the whole product to BLAS (OpenBLAS, Accelerate) cache blocks, SIMD and threads

float32 moves half the bytes of float64 and fits twice as many numbers in a SIMD register: the same
rung, about twice as fast. `out=` writes the result into memory you already have.

Shapes: a is (M, K), b is (K, N), the result is (M, N).
"""

from collections.abc import Callable

import numpy as np

from .arrays import Array, as_matrix, ieee, output_like


@ieee
def dot_per_output(a: Array, b: Array, out: Array | None = None) -> Array:
    """The definition with the sum over k handed to NumPy: M * N calls."""
    a, b, out = _prepare_nn(a, b, out)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            out[i, j] = np.dot(a[i], b[:, j])
    return out


@ieee
def outer_products(a: Array, b: Array, out: Array | None = None) -> Array:
    """The same products in another order: k outside, so that K calls do M * N products each."""
    a, b, out = _prepare_nn(a, b, out)
    product = np.empty_like(out)
    out[...] = 0
    for k in range(a.shape[1]):
        np.multiply(a[:, k, np.newaxis], b[k], out=product)
        out += product
    return out


@ieee
def einsum(a: Array, b: Array, out: Array | None = None) -> Array:
    """The definition as a string; NumPy runs the three loops in C."""
    a, b, out = _prepare_nn(a, b, out)
    return np.einsum("ik,kj->ij", a, b, out=out)


@ieee
def at_operator(a: Array, b: Array, out: Array | None = None) -> Array:
    """What you would write: a @ b."""
    a, b, out = _prepare_nn(a, b, out)
    return np.matmul(a, b, out=out)


LADDER: dict[str, Callable[..., Array]] = {
    "dot_per_output": dot_per_output,
    "outer_products": outer_products,
    "einsum": einsum,
    "at_operator": at_operator,
}


def matmul(a: Array, b: Array, out: Array | None = None) -> Array:
    """ab by the fastest rung: a (M, K), b (K, N) -> (M, N). Same as torch.matmul.

    out: where to write the result, (M, N) of the same dtype and not overlapping a or b; a new array if None
    Raises ValueError where a's columns are not b's rows, TypeError for a mix of dtypes.
    """
    return at_operator(a, b, out)


@ieee
def matmul_tn(a: Array, b: Array, out: Array | None = None) -> Array:
    """aᵀb: a (K, M), b (K, N) -> (M, N). a.T is a view: BLAS reads a in the other direction, nothing is copied."""
    a, b = _as_pair("matmul_tn", a, b)
    if a.shape[0] != b.shape[0]:
        raise ValueError(f"matmul_tn: a is {a.shape} but b is {b.shape}; a's rows must equal b's rows")
    return np.matmul(a.T, b, out=output_like("matmul_tn", out, (a.shape[1], b.shape[1]), a.dtype, a=a, b=b))


@ieee
def matmul_nt(a: Array, b: Array, out: Array | None = None) -> Array:
    """abᵀ: a (M, K), b (N, K) -> (M, N). As for matmul_tn, the transpose is a view."""
    a, b = _as_pair("matmul_nt", a, b)
    if a.shape[1] != b.shape[1]:
        raise ValueError(f"matmul_nt: a is {a.shape} but b is {b.shape}; a's columns must equal b's columns")
    return np.matmul(a, b.T, out=output_like("matmul_nt", out, (a.shape[0], b.shape[0]), a.dtype, a=a, b=b))


def _prepare_nn(a: Array, b: Array, out: Array | None) -> tuple[Array, Array, Array]:
    a, b = _as_pair("matmul", a, b)
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"matmul: a is {a.shape} but b is {b.shape}; a's columns must equal b's rows")
    return a, b, output_like("matmul", out, (a.shape[0], b.shape[1]), a.dtype, a=a, b=b)


def _as_pair(function: str, a: Array, b: Array) -> tuple[Array, Array]:
    a, b = as_matrix(f"{function}: a", a), as_matrix(f"{function}: b", b)
    if a.dtype != b.dtype:
        raise TypeError(f"{function}: a is {a.dtype} but b is {b.dtype}; convert one of them")
    return a, b
