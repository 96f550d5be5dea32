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
    pipelined        the next k's numbers are read before this k's are used        nothing waits for shared memory
    wide_tile        a thread computes 8 x 16                                      24 numbers serve 128 products
    fitted_tile      smaller tiles where there would be few blocks                 every multiprocessor has work

and beside the ladder, because they round the factors first: tf32, bf16 and f16 on tensor cores, with a ladder of their
own in tensor_cores.py.

Which kernel `matmul`, `multiply` and the fused products take: on a GPU the one whose busiest multiprocessor is done
first, by tile_choice.py. Fused products with little to compute, and all products on the emulator and in the simulator,
take tiles of 32 x 32, or of 16 x 16 if the result is narrower than NARROW: a CPU runs these fastest.

Shapes: a is (M, K), b is (K, N), the result is (M, N). float32 or float64.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from . import launch, tensor_cores, tile_choice
from .arrays import Array, address, as_matrix, element_count, output_like
from .backend import BACKEND
from .kernels import blocked
from .kernels import matmul_1_basic as basic
from .kernels import matmul_2_register as register
from .kernels import matmul_3_warp as warp
from .kernels import matmul_4_fitted as fitted
from .kernels import matmul_5_tensor as tensor
from .kernels.matmul_tiles import SIDE, THREADS, WIDE
from .kernels.ptx import BYTES, MOST_NUMBERS

FORMS = ("nn", "tn", "nt")
"""ab, aᵀb and abᵀ."""

NARROW = 17
"""A result with fewer columns or rows than this leaves more than half of a 32 x 32 tile idle: it gets 16 x 16 ones."""

TILED = {(size, form): basic.tiled(size, form) for size in (16, 32) for form in FORMS}


class Rung(NamedTuple):
    """A kernel that knows all three forms: the rows and columns of the result that a block computes, its threads, and
    the function (form, 128-bit loads or not, dtype) that gives the kernel."""

    rows: int
    columns: int
    threads: Any
    kernel: Callable[[str, bool, str], Any]


def _of_square(side: int, threads: Any, kernel: Callable[[str, bool, str], Any]) -> Rung:
    return Rung(side, side, threads, kernel)


def _of_tile(name: str) -> Rung:
    tile = fitted.TILES[name]
    return Rung(tile.rows, tile.columns, tile.threads, lambda *flavour: fitted.multiply(name, *flavour))


RUNGS: dict[str, Rung] = {
    "tiled_16": _of_square(16, (16, 16), lambda form, vector, dtype: TILED[16, form].multiply),
    "tiled_32": _of_square(32, (32, 32), lambda form, vector, dtype: TILED[32, form].multiply),
    "register_1d": _of_square(64, 512, lambda form, vector, dtype: register.register_1d(form)),
    "register_2d": _of_square(SIDE, THREADS, lambda form, vector, dtype: register.register_2d(form)),
    "vectorised": _of_square(SIDE, THREADS, register.vectorised),
    "conflict_free": _of_square(SIDE, THREADS, register.conflict_free),
    "warp_tiled": _of_square(SIDE, THREADS, warp.multiply),
    **{name: _of_tile(name) for name in fitted.TILES},
    "tf32": _of_square(SIDE, THREADS, lambda form, vector, dtype: tensor.multiply(form, vector, "tf32")),
    "bf16": _of_square(SIDE, THREADS, lambda form, vector, dtype: tensor.multiply(form, vector, "bf16")),
}


def rung_for(name: str, rows: int, columns: int, dtype: str) -> Rung:
    """What a rung launches for a result of (rows, columns): fitted_tile the tile that suits it; float64 has no
    wide_tile, and takes the rung below."""
    if name == "fitted_tile":
        name = tile_choice.fastest(rows, columns, dtype, among=tile_choice.FITTED)
    if name == "wide_tile" and dtype == "float64":
        name = "pipelined"
    return RUNGS[name]


def run_rung(
    name: str, form: str, a: Array, b: Array, out: Array, vector: bool | None = None, stream: Any = 0
) -> Array:
    """One of RUNGS or fitted_tile, unchecked. vector: whether it loads 128 bits at a time; None for "where it can"."""
    rows, columns = out.shape
    rung = rung_for(name, rows, columns, out.dtype.name)
    kernel = rung.kernel(form, may_load_wide(a, b, out) if vector is None else vector, a.dtype.name)
    kernel[launch.tiles(rows, columns, rung.rows, rung.columns), rung.threads, stream](a, b, out)
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
    """Compact warps and double-buffered tiles: the next tile's numbers travel while this one's are multiplied."""
    return run_rung("warp_tiled", "nn", *_prepare("matmul", "nn", a, b, out))


def pipelined(a: Array, b: Array, out: Array | None = None) -> Array:
    """warp_tiled with two sets of registers for what comes from shared memory: one is filled while one is used."""
    return run_rung("pipelined", "nn", *_prepare("matmul", "nn", a, b, out))


def wide_tile(a: Array, b: Array, out: Array | None = None) -> Array:
    """pipelined with 128 x 256 numbers to a block and 8 x 16 to a thread; in float64, which has no registers for them,
    the same as pipelined."""
    return run_rung("wide_tile", "nn", *_prepare("matmul", "nn", a, b, out))


def fitted_tile(a: Array, b: Array, out: Array | None = None) -> Array:
    """The tile whose blocks keep all multiprocessors busy: 128 x 256 for large results, 64 x 128 or 64 x 64 else."""
    return run_rung("fitted_tile", "nn", *_prepare("matmul", "nn", a, b, out))


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
    "pipelined": pipelined,
    "wide_tile": wide_tile,
    "fitted_tile": fitted_tile,
}


class TensorRung:
    """A rung on tensor cores: a function of float32 a (M, K) and b (K, N), the product of the rounded factors.

    Called, it rounds and multiplies. It raises TypeError for float64, BackendError on a GPU that is too old for its
    precision, and what matmul raises.
    """

    def __init__(self, precision: str, rung: str) -> None:
        self.precision, self.rung = precision, rung

    def __call__(self, a: Array, b: Array, out: Array | None = None) -> Array:
        """ab, (M, N), in `out` if that is given."""
        return self.ready(a, b, out)()

    def ready(self, a: Array, b: Array, out: Array | None = None) -> Callable[[], Array]:
        """The call that multiplies. Operands are checked here, and rounded, where that is not part of the kernel."""
        a, b, out = _prepare(self.precision, "nn", a, b, out)
        if a.dtype != "float32":
            raise TypeError(
                f"{self.precision}: a and b are {a.dtype}; tensor cores round float32, so convert them first"
            )
        tensor_cores.check_device(self.precision)
        if self.rung == tensor_cores.ROUNDING_ON_THE_WAY:
            return partial(run_rung, self.precision, "nn", a, b, out)
        whole = tensor_cores.BLOCKS[self.rung].rows
        left = tensor_cores.round_operand(a, self.precision, transposed=False, whole=whole)
        right = tensor_cores.round_operand(b, self.precision, transposed=True)
        return partial(tensor_cores.multiply, self.rung, left, right, out)


TENSOR_LADDER: dict[str, dict[str, TensorRung]] = {
    precision: {rung: TensorRung(precision, rung) for rung in rungs} for precision, rungs in tensor_cores.LADDER.items()
}
"""Not in LADDER: rounding the factors is more than the rounding that the other rungs are held to."""


def tf32(a: Array, b: Array, out: Array | None = None) -> Array:
    """ab on tensor cores, the factors rounded to 11 bits: float32 (M, K), (K, N) -> (M, N).

    Raises TypeError for float64, BackendError on a GPU older than compute capability 8.0, and what matmul raises.
    """
    return _rounded("tf32", a, b, out)


def bf16(a: Array, b: Array, out: Array | None = None) -> Array:
    """ab on tensor cores, the factors rounded to 8 bits; otherwise as tf32."""
    return _rounded("bf16", a, b, out)


def f16(a: Array, b: Array, out: Array | None = None) -> Array:
    """ab on tensor cores, the factors rounded to 11 bits, to multiples of 2⁻²⁴ below 2⁻¹⁴, and to infinity from 65,520
    on; from compute capability 7.5 on, and otherwise as tf32."""
    return _rounded("f16", a, b, out)


def _rounded(precision: str, a: Array, b: Array, out: Array | None) -> Array:
    a, b, out = _prepare(precision, "nn", a, b, out)
    return TENSOR_LADDER[precision][tensor_cores.in_use(precision)](a, b, out)


TENSOR_CORES: dict[str, Callable[..., Array]] = {"tf32": tf32, "bf16": bf16, "f16": f16}
"""Each precision by the rung that is in use."""


def tensor_precisions() -> list[str]:
    """The precisions of TENSOR_CORES that this device's tensor cores know."""
    return [precision for precision in TENSOR_CORES if tensor_cores.is_known(precision)]


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


def multiply(form: str, a: Array, b: Array, out: Array, stream: Any = 0) -> Array:
    """The product of that form into `out`, unchecked: for callers that made the arrays themselves."""
    if BACKEND.name == "gpu":
        name = tile_choice.fastest(out.shape[0], out.shape[1], out.dtype.name)
        return run_rung(name, form, a, b, out, stream=stream)
    return run_rung("tiled_16" if min(out.shape) < NARROW else "tiled_32", form, a, b, out, stream=stream)


def forward_fused(x: Array, weights: Array, bias: Array, activation: int, out: Array, stream: Any = 0) -> Array:
    """activate(xW + b) in one kernel, unchecked: x (batch, in), weights (in, out), bias (out,) -> (batch, out).

    activation: its number in kernels/activations.py, not softmax's
    """
    name = fused_kernel(out, x.shape[1])
    if name == "warp_tiled":
        kernel = warp.forward(may_load_wide(x, weights, out), out.dtype.name, activation)
        kernel[launch.tiles(out.shape[0], out.shape[1], SIDE, SIDE), THREADS, stream](x, weights, bias, out)
        return out
    if side := tile_choice.BLOCKED.get(name):
        grid = launch.tiles(out.shape[0], out.shape[1], side, side)
        blocked.FORWARD[side][grid, blocked.THREADS, stream](x, weights, bias, activation, out)
        return out
    kernels, grid, block = _tiles("nn", name, out)
    kernels.forward[grid, block, stream](x, weights, bias, activation, out)
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
    name = fused_kernel(out, grad.shape[1])
    if name == "warp_tiled":
        wide = may_load_wide(grad, weights, output, read, out)
        kernel = warp.backward(wide, out.dtype.name, activation, masked)
        grid = launch.tiles(out.shape[0], out.shape[1], SIDE, SIDE)
        kernel[grid, THREADS, stream](grad, weights, output, read, out)
        return out
    if side := tile_choice.BLOCKED.get(name):
        grid = launch.tiles(out.shape[0], out.shape[1], side, side)
        blocked.BACKWARD[side][grid, blocked.THREADS, stream](grad, weights, output, activation, read, int(masked), out)
        return out
    kernels, grid, block = _tiles("nt", name, out)
    kernels.backward[grid, block, stream](grad, weights, output, activation, read, int(masked), out)
    return out


def fused_kernel(out: Array, inner: int) -> str:
    """The name of the kernel that a fused product takes, which sums over `inner`."""
    rows, columns = out.shape
    if tile_choice.is_little(rows, columns, inner):
        return "tiled_16" if min(rows, columns) < NARROW else "tiled_32"
    return tile_choice.fastest(rows, columns, out.dtype.name, among=tile_choice.FUSED)


def _tiles(form: str, name: str, out: Array) -> tuple[Any, tuple[int, int], tuple[int, int]]:
    size = RUNGS[name].rows
    return TILED[size, form], launch.tiles(out.shape[0], out.shape[1], size, size), (size, size)


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
