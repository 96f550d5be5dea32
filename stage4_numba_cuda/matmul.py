"""Matrix multiplication on the GPU: the checks and the launches. The kernels are in kernels/matmul_*.py.

    naive            one thread an output; neighbouring threads read far apart     32 sectors for every 32 numbers
    coalesced        the same, with threadIdx.x along the columns                  each warp reads whole sectors
    tiled_16         a block shares 16 x 16 tiles through shared memory            16 times fewer global reads
    tiled_32         the same with 32 x 32                                         half of those, half the barriers
    register_1d      a thread computes 8 rows of a column                          a number of b serves 8 products
    register_2d      a thread computes 8 x 8                                       16 numbers serve 64 products
    vectorised       128 bits to a load                                            a quarter of the loads
    conflict_free    numbers arranged for the 32 banks                             every wide load at full speed
    warp_tiled       compact warps, two tiles of each operand                      loads hide behind multiplications

and beside the ladder, because they round the factors first: tf32 and bf16, on tensor cores.

What `matmul`, `multiply` and the fused ones take: on a GPU the warp tile where WARP_BLOCKS of its blocks would be full,
an estimate of where it overtakes that no device has confirmed yet; else tiles of 32 x 32, and of 16 x 16 where the
result is narrower than NARROW. On the emulator and in the simulator always the tiles, which a CPU runs fastest.

Shapes: a is (M, K), b is (K, N), the result is (M, N). float32 or float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import launch
from .arrays import Array, address, as_matrix, element_count, output_like
from .backend import BACKEND, BackendError, cuda
from .kernels import matmul_1_basic as basic
from .kernels import matmul_2_register as register
from .kernels import matmul_3_warp as warp
from .kernels import matmul_4_tensor as tensor
from .kernels.matmul_tiles import SIDE, THREADS, WIDE
from .kernels.ptx import BYTES, MOST_NUMBERS

FORMS = ("nn", "tn", "nt")
"""ab, aᵀb and abᵀ."""

NARROW = 17
"""A result with fewer columns or rows than this leaves more than half of a 32 x 32 tile idle: it gets 16 x 16 ones."""

WARP_BLOCKS = 16
"""So many blocks of the warp tile do as much as tiles on all multiprocessors of a large GPU (an estimate)."""

TILED = {(size, form): basic.tiled(size, form) for size in (16, 32) for form in FORMS}

RUNGS: dict[str, tuple[int, Any, Callable[[str, bool, str], Any]]] = {
    "tiled_16": (16, (16, 16), lambda form, vector, dtype: TILED[16, form].multiply),
    "tiled_32": (32, (32, 32), lambda form, vector, dtype: TILED[32, form].multiply),
    "register_1d": (64, 512, lambda form, vector, dtype: register.register_1d(form)),
    "register_2d": (SIDE, THREADS, lambda form, vector, dtype: register.register_2d(form)),
    "vectorised": (SIDE, THREADS, register.vectorised),
    "conflict_free": (SIDE, THREADS, register.conflict_free),
    "warp_tiled": (SIDE, THREADS, warp.multiply),
    "tf32": (SIDE, THREADS, lambda form, vector, dtype: tensor.multiply(form, vector, "tf32")),
    "bf16": (SIDE, THREADS, lambda form, vector, dtype: tensor.multiply(form, vector, "bf16")),
}
"""Of each kernel that knows all three forms: the side of its square of the result, the threads of a block, and where to
get it for a form, 128-bit loads or not, and a dtype."""


def run_rung(name: str, form: str, a: Array, b: Array, out: Array, vector: bool | None = None) -> Array:
    """One of RUNGS, unchecked. vector: whether it loads 128 bits at a time; None for "where it can"."""
    side, block, choose = RUNGS[name]
    kernel = choose(form, may_load_wide(a, b, out) if vector is None else vector, a.dtype.name)
    kernel[launch.tiles(out.shape[0], out.shape[1], side, side), block](a, b, out)
    return out


def may_load_wide(*matrices: Array) -> bool:
    """Whether a GPU may read four neighbours of a row at once: rows of a multiple of four, at a multiple of 16 bytes.

    Elsewhere never: four numbers are four loads then, and one kernel instead of two need be compiled.
    """
    return BACKEND.name == "gpu" and all(
        matrix.shape[1] % WIDE == 0 and element_count(matrix.shape) <= MOST_NUMBERS and address(matrix) % BYTES == 0
        for matrix in matrices
    )


def naive(a: Array, b: Array, out: Array | None = None) -> Array:
    """The definition, one thread an output, threadIdx.x down the rows: a warp's 32 reads of a lie K numbers apart."""
    a, b, out = _prepare("matmul", "nn", a, b, out)
    basic.naive[launch.tiles(out.shape[1], out.shape[0], 16, 16), (16, 16)](a, b, out)
    return out


def coalesced(a: Array, b: Array, out: Array | None = None) -> Array:
    """naive with threadIdx.x along the columns: a warp reads neighbours in b, and one number of a for all."""
    a, b, out = _prepare("matmul", "nn", a, b, out)
    basic.coalesced[launch.tiles(out.shape[0], out.shape[1], 16, 16), (16, 16)](a, b, out)
    return out


def tiled_16(a: Array, b: Array, out: Array | None = None) -> Array:
    """Tiles of 16 x 16 in shared memory: every number that is fetched serves 16 threads."""
    return run_rung("tiled_16", "nn", *_prepare("matmul", "nn", a, b, out))


def tiled_32(a: Array, b: Array, out: Array | None = None) -> Array:
    """Tiles of 32 x 32: every number that is fetched serves 32 threads, one of them a whole warp."""
    return run_rung("tiled_32", "nn", *_prepare("matmul", "nn", a, b, out))


def register_1d(a: Array, b: Array, out: Array | None = None) -> Array:
    """Each thread computes 8 rows of one column: a number of b's tile is read once for 8 multiply-adds."""
    return run_rung("register_1d", "nn", *_prepare("matmul", "nn", a, b, out))


def register_2d(a: Array, b: Array, out: Array | None = None) -> Array:
    """Each thread computes 8 x 8 numbers, in registers: 16 reads of shared memory for 64 multiply-adds."""
    return run_rung("register_2d", "nn", *_prepare("matmul", "nn", a, b, out))


def vectorised(a: Array, b: Array, out: Array | None = None) -> Array:
    """register_2d with 128 bits to a load or store, where a, b and the result allow it."""
    return run_rung("vectorised", "nn", *_prepare("matmul", "nn", a, b, out))


def conflict_free(a: Array, b: Array, out: Array | None = None) -> Array:
    """vectorised, with a layout in which a warp's wide loads meet every bank of shared memory once."""
    return run_rung("conflict_free", "nn", *_prepare("matmul", "nn", a, b, out))


def warp_tiled(a: Array, b: Array, out: Array | None = None) -> Array:
    """Compact warps and double-buffered tiles: what `matmul` takes for large results on a GPU."""
    return run_rung("warp_tiled", "nn", *_prepare("matmul", "nn", a, b, out))


LADDER: dict[str, Callable[..., Array]] = {
    "naive": naive,
    "coalesced": coalesced,
    "tiled_16": tiled_16,
    "tiled_32": tiled_32,
    "register_1d": register_1d,
    "register_2d": register_2d,
    "vectorised": vectorised,
    "conflict_free": conflict_free,
    "warp_tiled": warp_tiled,
}


def tf32(a: Array, b: Array, out: Array | None = None) -> Array:
    """ab on tensor cores, the factors rounded to 11 bits: float32 (M, K), (K, N) -> (M, N).

    Raises TypeError for float64, BackendError on a GPU older than compute capability 8.0, and what matmul raises.
    """
    return _on_tensor_cores("tf32", a, b, out)


def bf16(a: Array, b: Array, out: Array | None = None) -> Array:
    """ab on tensor cores, the factors rounded to 8 bits; otherwise as tf32."""
    return _on_tensor_cores("bf16", a, b, out)


TENSOR_CORES: dict[str, Callable[..., Array]] = {"tf32": tf32, "bf16": bf16}
"""Not in LADDER: rounding the factors is more than the rounding that the other rungs are held to."""


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
    if _large(out):
        return run_rung("warp_tiled", form, a, b, out)
    return run_rung("tiled_16" if min(out.shape) < NARROW else "tiled_32", form, a, b, out)


def forward_fused(x: Array, weights: Array, bias: Array, activation: int, out: Array) -> Array:
    """activate(xW + b) in one kernel, unchecked: x (batch, in), weights (in, out), bias (out,) -> (batch, out).

    activation: its number in kernels/activations.py, not softmax's
    """
    if _large(out):
        kernel = warp.forward(may_load_wide(x, weights, out), out.dtype.name, activation)
        kernel[launch.tiles(out.shape[0], out.shape[1], SIDE, SIDE), THREADS](x, weights, bias, out)
        return out
    kernels, grid, block = _tiles("nn", out)
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
    masked = mask is not None
    # A kernel takes an array in every place; without a mask it is one that is never read.
    read = output if mask is None else mask
    if _large(out):
        wide = may_load_wide(grad, weights, output, read, out)
        kernel = warp.backward(wide, out.dtype.name, activation, masked)
        grid = launch.tiles(out.shape[0], out.shape[1], SIDE, SIDE)
        kernel[grid, THREADS, stream](grad, weights, output, read, out)
        return out
    kernels, grid, block = _tiles("nt", out)
    kernels.backward[grid, block, stream](grad, weights, output, activation, read, int(masked), out)
    return out


def _large(out: Array) -> bool:
    """Whether enough blocks of the warp tile are full."""
    return BACKEND.name == "gpu" and (out.shape[0] // SIDE) * (out.shape[1] // SIDE) >= WARP_BLOCKS


def _tiles(form: str, out: Array) -> tuple[Any, tuple[int, int], tuple[int, int]]:
    size = 16 if min(out.shape) < NARROW else 32
    return TILED[size, form], launch.tiles(out.shape[0], out.shape[1], size, size), (size, size)


def _on_tensor_cores(name: str, a: Array, b: Array, out: Array | None) -> Array:
    a, b, out = _prepare(name, "nn", a, b, out)
    if a.dtype != "float32":
        raise TypeError(f"{name}: a and b are {a.dtype}; tensor cores round float32, so convert them first")
    if BACKEND.name == "gpu" and cuda.get_current_device().compute_capability < (8, 0):
        raise BackendError(f"{name}: needs compute capability 8.0; {BACKEND.reason} is older")
    return run_rung(name, "nn", a, b, out)


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
