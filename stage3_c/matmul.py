"""Matrix multiplication in C, slowest rung first.

    ijk        the definition: three loops, one sum at a time               strides down the columns of b
    ikj        the same products, j innermost                               every access is the next number in memory
    blocked    ikj on blocks that stay in the cache                         b is read from memory once, not M times
    restrict   the compiler is told that a, b and c do not overlap          it may compute several columns at a time
    packed     blocks copied into panels, a tile of c kept in registers     one load feeds many multiply-adds
    threads    packed, c cut into one rectangle for each core               as many times faster as there are cores

Each rung is a C function of the same name in csrc/matmul_*.c, whose comments give the reasons. This file checks the
shapes. `out=` is the array to write the result into.

Shapes: a is (M, K), b is (K, N), the result is (M, N).
"""

from collections.abc import Callable

from . import library
from .arrays import Array, as_matrix, output_like


def ijk(a: Array, b: Array, out: Array | None = None) -> Array:
    """The definition: for each output a sum over k, on one thread."""
    return _loops("matmul_ijk", a, b, out)


def ikj(a: Array, b: Array, out: Array | None = None) -> Array:
    """Row k of b times one number of a, added to a row of c: memory is read in order."""
    return _loops("matmul_ikj", a, b, out)


def blocked(a: Array, b: Array, out: Array | None = None) -> Array:
    """ikj on blocks small enough to be still in the cache when they are needed again."""
    return _loops("matmul_blocked", a, b, out)


def restrict(a: Array, b: Array, out: Array | None = None) -> Array:
    """blocked with `restrict` on every pointer, so that the compiler may vectorise the inner loop."""
    return _loops("matmul_restrict", a, b, out)


def packed(a: Array, b: Array, out: Array | None = None) -> Array:
    """Packed panels and a tile of c in SIMD registers, on one thread."""
    return _pooled("matmul_packed", *_prepare_nn(a, b, out))


def threads(a: Array, b: Array, out: Array | None = None) -> Array:
    """packed on every thread of the pool; see GROUNDUP_THREADS."""
    return _pooled("matmul_nn", *_prepare_nn(a, b, out))


LADDER: dict[str, Callable[..., Array]] = {
    "ijk": ijk,
    "ikj": ikj,
    "blocked": blocked,
    "restrict": restrict,
    "packed": packed,
    "threads": threads,
}


def matmul(a: Array, b: Array, out: Array | None = None) -> Array:
    """ab by the fastest rung: a (M, K), b (K, N) -> (M, N). Same as torch.matmul.

    out: where to write the result, (M, N) of the same dtype and not overlapping a or b; a new array if None
    Raises ValueError where a's columns are not b's rows or `out` does not fit, TypeError for a mix of dtypes.
    """
    return threads(a, b, out)


def matmul_tn(a: Array, b: Array, out: Array | None = None) -> Array:
    """aᵀb: a (K, M), b (K, N) -> (M, N). The transpose is only another way of walking a while it is packed."""
    a, b = _as_pair("matmul_tn", a, b)
    if a.shape[0] != b.shape[0]:
        raise ValueError(f"matmul_tn: a is {a.shape} but b is {b.shape}; a's rows must equal b's rows")
    (k, m), n = a.shape, b.shape[1]
    return _pooled("matmul_tn", a, b, output_like("matmul_tn", out, (m, n), a.dtype, a=a, b=b), (m, k, n))


def matmul_nt(a: Array, b: Array, out: Array | None = None) -> Array:
    """abᵀ: a (M, K), b (N, K) -> (M, N). As for matmul_tn, nothing is transposed in memory."""
    a, b = _as_pair("matmul_nt", a, b)
    if a.shape[1] != b.shape[1]:
        raise ValueError(f"matmul_nt: a is {a.shape} but b is {b.shape}; a's columns must equal b's columns")
    (m, k), n = a.shape, b.shape[0]
    return _pooled("matmul_nt", a, b, output_like("matmul_nt", out, (m, n), a.dtype, a=a, b=b), (m, k, n))


def _loops(name: str, a: Array, b: Array, out: Array | None) -> Array:
    a, b, out, sizes = _prepare_nn(a, b, out)
    library.function(name, a.dtype)(*sizes, a, b, out)
    return out


def _pooled(name: str, a: Array, b: Array, out: Array, sizes: tuple[int, int, int]) -> Array:
    library.function(name, a.dtype)(library.pool(), *sizes, a, b, out)
    return out


def _prepare_nn(a: Array, b: Array, out: Array | None) -> tuple[Array, Array, Array, tuple[int, int, int]]:
    """a and b as C reads them, where to write, and (M, K, N)."""
    a, b = _as_pair("matmul", a, b)
    (m, k), n = a.shape, b.shape[1]
    if k != b.shape[0]:
        raise ValueError(f"matmul: a is {a.shape} but b is {b.shape}; a's columns must equal b's rows")
    return a, b, output_like("matmul", out, (m, n), a.dtype, a=a, b=b), (m, k, n)


def _as_pair(function: str, a: Array, b: Array) -> tuple[Array, Array]:
    a, b = as_matrix(f"{function}: a", a), as_matrix(f"{function}: b", b)
    if a.dtype != b.dtype:
        raise TypeError(f"{function}: a is {a.dtype} but b is {b.dtype}; convert one of them")
    return a, b
