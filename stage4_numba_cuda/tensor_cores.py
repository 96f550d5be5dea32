"""Products on tensor cores: their ladder, their precisions, and the launches. matmul.py checks the arguments.

    mma         tiles are rounded on their way into shared memory                   matmul_5_tensor.py
    packed      operands rounded once, in memory; in bf16 half the bytes            matmul_6_operands.py, and
    ldmatrix    a warp loads four matrices at once                                  matmul_7_fragments.py
    swizzled    no padding: chunks of a row change places
    staged      three tiles, filled by cp.async
    square_warps
                half as many warps, of 64 x 64 numbers each
    pipelined   the next fragments are read before these are multiplied             matmul_8_pipelined.py
    wide_tile   256 x 128 numbers a block: three quarters of the bytes from memory

tf32 and bf16 have all of them, from compute capability 8.0 on; f16, which runs on 7.5, has packed to swizzled.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from numba import types

from . import launch, shared_memory
from .arrays import Array, element_count, empty
from .backend import BACKEND, BackendError, cuda
from .kernels import matmul_6_operands as operands
from .kernels import matmul_7_fragments as fragments
from .kernels import matmul_8_pipelined as pipelined
from .kernels.fragment_tiles import COLUMNS
from .kernels.ptx import MOST_NUMBERS

ROUNDING_ON_THE_WAY = "mma"

LADDER: dict[str, tuple[str, ...]] = {
    "tf32": (ROUNDING_ON_THE_WAY, *fragments.RUNGS, *pipelined.RUNGS),
    "bf16": (ROUNDING_ON_THE_WAY, *fragments.RUNGS, *pipelined.RUNGS),
    "f16": tuple(rung for rung in fragments.RUNGS if rung not in fragments.STAGED),
}
"""The rungs of each precision."""

BLOCKS = fragments.BLOCKS | pipelined.BLOCKS
"""What a block of each rung computes, but for mma."""

_WORDS = types.Array(types.int32, 2, "C")
ARGUMENTS = (_WORDS, _WORDS, types.Array(types.float32, 2, "C"))
"""The types of what those rungs are given."""

NEEDS = {"tf32": (8, 0), "bf16": (8, 0), "f16": (7, 5)}
"""The oldest compute capability that multiplies in it."""


class Rounded(NamedTuple):
    """An operand that was rounded: a's rows, or b's columns, along k.

    words: int32 in whole tiles; rows: how many of its rows are the operand's; inner: how many numbers of a row are
    """

    words: Array
    rows: int
    inner: int
    precision: str


IN_USE = "pipelined"
"""The rung that tf32 and bf16 take on a GPU. On an NVIDIA H200 (2026-11-26) wide_tile had 0.54, 0.95 and 1.04 of its
speed in tf32 at 1,024, 2,048 and 4,096, and 0.52, 0.88 and 0.99 in bf16."""


def in_use(precision: str) -> str:
    """The rung that a precision takes. On the emulator, where a rung with shuffles takes long to compile, the first; in
    f16 the last."""
    if precision == "f16":
        return LADDER[precision][-1]
    return IN_USE if BACKEND.name == "gpu" else LADDER[precision][0]


def is_known(precision: str) -> bool:
    """Whether the device's tensor cores multiply in it; the emulator's do."""
    return BACKEND.name != "gpu" or cuda.get_current_device().compute_capability >= NEEDS[precision]


def check_device(precision: str) -> None:
    """Raises BackendError where the device's tensor cores do not know the precision."""
    if not is_known(precision):
        major, minor = NEEDS[precision]
        raise BackendError(f"{precision}: needs compute capability {major}.{minor}; {BACKEND.reason} is older")


def round_operand(matrix: Array, precision: str, transposed: bool, whole: int = operands.ROWS) -> Rounded:
    """The operand of a float32 matrix on the device.

    transposed: for a matrix (K, rows), as b is in ab; else (rows, K)
    whole: of how many rows the words are a multiple; as a, a rung wants those of its block
    Raises ValueError where it would have more words than 32 bits count.
    """
    rows, inner = (matrix.shape[1], matrix.shape[0]) if transposed else matrix.shape
    numbers = operands.NUMBERS[precision]
    in_a_row = launch.divided(inner, numbers * operands.WORDS) * operands.WORDS
    shape = launch.divided(rows, whole) * whole, in_a_row
    if element_count(shape) > MOST_NUMBERS:
        raise ValueError(
            f"{precision}: an operand of {rows:,} x {inner:,} has {element_count(shape):,} words in whole tiles, and "
            f"{MOST_NUMBERS:,} are the most; work on it in pieces"
        )
    words = empty(shape, "int32")
    grid = launch.tiles(shape[0], in_a_row * numbers, operands.SIDE, operands.SIDE)
    operands.operand(precision, transposed)[grid, operands.THREADS](matrix, words)
    return Rounded(words, rows, inner, precision)


def multiply(rung: str, a: Rounded, b: Rounded, out: Array) -> Array:
    """The product of two rounded operands into float32 `out` (a's rows, b's rows), unchecked; any rung but mma.

    a's words: whole blocks of that rung
    """
    block = BLOCKS[rung]
    grid = launch.tiles(a.rows, b.rows, block.rows, COLUMNS)
    kernel_of(rung, a.precision)[grid, block.threads, 0, pipelined.BYTES.get(rung, 0)](a.words, b.words, out)
    return out


@cache
def kernel_of(rung: str, precision: str) -> Any:
    """The kernel of a rung but mma, which may have the shared memory that it needs."""
    if rung in fragments.RUNGS:
        return fragments.multiply(rung, precision)
    kernel = pipelined.multiply(rung, precision)
    if size := pipelined.BYTES[rung]:
        shared_memory.allow(kernel, ARGUMENTS, size)
    return kernel
