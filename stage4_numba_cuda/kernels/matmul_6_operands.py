"""Operands for tensor cores, rounded once and laid down in memory as they are read: along k, in whole tiles.

    tf32    a number in a word of 32 bits     11 significant bits
    bf16    two in a word                     8 bits, and float32's range
    f16     two in a word                     11 bits, and from 6.1e-5 to 65,504: below with fewer bits, above infinity

Words are int32 here: what is in them is for tensor cores only. A row holds one row of a, or one column of b, so that
both are read alike whichever way they lay in memory. Rows, and the words in each, are filled up with zeros to whole
tiles. So the product's kernels guard no load, and know one form instead of three.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from numba import float32, int32

from ..backend import cuda
from .ptx import word_bf16, word_f16, word_tf32

WORDS = 16
"""Of a row of a tile: 64 bytes."""

ROWS = 128
"""Of an operand in a tile."""

NUMBERS = {"tf32": 1, "bf16": 2, "f16": 2}
"""In a word."""

SIDE = 32
"""A block turns SIDE x SIDE numbers into words."""

THREADS = (SIDE, 8)
PITCH = SIDE + 1
"""Of the block's numbers in shared memory: a column of them lies in 32 banks."""


@cache
def operand(precision: str, transposed: bool) -> Any:
    """The kernel (source, words): a float32 matrix rounded into int32 (rows, words) of whole tiles.

    transposed: whether a row of words is a column of the source
    Blocks of THREADS threads, one for SIDE rows of words by SIDE numbers, x along the numbers.
    """
    a_word = {"tf32": _tf32_of_two, "bf16": word_bf16, "f16": word_f16}[precision]
    numbers = NUMBERS[precision]
    across = SIDE // numbers  # words in a row of a block

    @cuda.jit
    def kernel(source, words):
        tile = cuda.shared.array((SIDE, PITCH), float32)
        row = int32(cuda.blockIdx.y * SIDE)
        k = int32(cuda.blockIdx.x * SIDE)
        rows, count = (source.shape[1], source.shape[0]) if transposed else (source.shape[0], source.shape[1])
        x = cuda.threadIdx.x
        for part in range(4):
            y = cuda.threadIdx.y + part * 8
            i, j = (x, y) if transposed else (y, x)
            number = float32(0)
            if row + i < rows and k + j < count:
                number = source[k + j, row + i] if transposed else source[row + i, k + j]
            tile[i, j] = number
        cuda.syncthreads()
        if x < across:
            first = k // numbers
            for part in range(4):
                y = cuda.threadIdx.y + part * 8
                if row + y < words.shape[0] and first + x < words.shape[1]:
                    low = tile[y, x * numbers]
                    words[row + y, first + x] = a_word(low, tile[y, x * numbers + numbers - 1])

    return kernel


@cuda.jit(device=True)
def _tf32_of_two(number, same):
    return word_tf32(number)
