"""What the instructions of tensor cores do, in Python: this is what the emulator runs, and what defines ptx.py's.

A warp multiplies matrices that no thread has: each lane holds a few numbers of both, its fragment. Lane 4g + t has, of
a (16 rows), words t and t + 4 of rows g and g + 8, and of b (8 columns), words t and t + 4 of column g. A word is 32
bits: one number in tf32, two neighbours along k in bf16 and f16. Here the lanes tell each other their fragments by
shuffles, so that a word in the wrong register or lane gives a wrong product, as on a device.

A copy that is on its way (cp.async) may arrive at any time until it was waited for. So here its place holds IN_FLIGHT,
which is no number in any format, from the moment that the copy is ordered, and the copied words from the wait on. A
kernel that reads before it waits, or orders a copy to where others still read, shows.

    word_tf32, word_bf16, word_f16          rounding: one or two float32 -> a word
    matrices                                ldmatrix: four times 8 rows of four words, a word of each to every lane
    mma_tf32, mma_bf16, mma_f16             c + ab of a warp's fragments
    nothing_on_its_way, copy4, send, wait_for_all_but_one
                                            cp.async, its commit_group and wait_group 1
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backend import cuda

IN_FLIGHT = np.int32(-1)
"""All bits set: a NaN in tf32, two of them in bf16 and in f16."""

NOTES = 6
"""A thread's int32 notes about its copies are a local array of (copies + 1, NOTES), for as many copies as are on their
way at the same time. Row 0: how many were ordered, and the number of the open group. Each other row: the place in the
tile, the four words, and the copy's group, or 0 once it has arrived."""

ALL_LANES = np.uint32(0xFFFFFFFF)
HIGH = np.uint32(0xFFFF0000)
INFINITY, F16_INFINITY, F16_NAN = np.uint32(0x7F800000), np.uint32(0x7C00), np.uint32(0x7FFF)
F16_TOO_LARGE = np.uint32(0x477FF000)
"""The bits of 65,520: from there on the nearest f16 is infinity."""

F16_NORMAL, HALF = np.uint32(0x38800000), np.uint32(0x3F000000)
"""The bits of 2⁻¹⁴, the least f16 with all its digits, and of 0.5, whose neighbours are 2⁻²⁴ apart, as f16's below."""

SMALLER = np.uint32(112 << 23)
"""By how much the exponent of an f16 counts from a smaller number."""

LARGER = np.float32(2.0**112)


@cuda.jit(device=True)
def _bits(x):
    number = cuda.local.array(1, np.float32)
    number[0] = x
    return number.view(np.uint32)[0]


@cuda.jit(device=True)
def _number(bits):
    number = cuda.local.array(1, np.uint32)
    number[0] = bits
    return number.view(np.float32)[0]


@cuda.jit(device=True)
def _joined(low, high):
    """Two numbers of 16 bits as one word."""
    return np.int32(low | (high << np.uint32(16)))


@cuda.jit(device=True)
def word_tf32(x):
    """As to_tf32."""
    bits = _bits(x)
    added = bits + np.uint32(0x1000) if x == x else bits | np.uint32(0x00400000)
    return np.int32(added & np.uint32(0xFFFFE000))


@cuda.jit(device=True)
def _bf16(x):
    bits = _bits(x)
    odd = (bits >> np.uint32(16)) & np.uint32(1)
    added = bits + np.uint32(0x7FFF) + odd if x == x else bits | np.uint32(0x00400000)
    return added >> np.uint32(16)


@cuda.jit(device=True)
def word_bf16(low, high):
    """Two numbers to 8 significant bits, a tie to the even one; the first in the lower half."""
    return _joined(_bf16(low), _bf16(high))


@cuda.jit(device=True)
def _f16(x):
    bits = _bits(x)
    size = bits & np.uint32(0x7FFFFFFF)
    if x != x:
        half = F16_NAN
    elif size >= F16_TOO_LARGE:
        half = F16_INFINITY
    elif size < F16_NORMAL:
        half = _bits(_number(size) + np.float32(0.5)) - HALF
    else:
        odd = (size >> np.uint32(13)) & np.uint32(1)
        half = (size - SMALLER + np.uint32(0xFFF) + odd) >> np.uint32(13)
    return half | ((bits >> np.uint32(16)) & np.uint32(0x8000))


@cuda.jit(device=True)
def word_f16(low, high):
    """Two numbers to 11 significant bits, to multiples of 2⁻²⁴ below 2⁻¹⁴, and to infinity from 65,520 on."""
    return _joined(_f16(low), _f16(high))


@cuda.jit(device=True)
def _from_f16(half):
    size = half & np.uint32(0x7FFF)
    sign = (half & np.uint32(0x8000)) << np.uint32(16)
    finite = _bits(_number(size << np.uint32(13)) * LARGER)
    endless = INFINITY | (size & np.uint32(0x3FF)) << np.uint32(13)
    return _number((endless if size >= F16_INFINITY else finite) | sign)


@cuda.jit(device=True)
def _product_tf32(a, b):
    return _number(np.uint32(a)) * _number(np.uint32(b))


@cuda.jit(device=True)
def _product_bf16(a, b):
    """The sum of the products of the lower and of the upper halves."""
    a, b = np.uint32(a), np.uint32(b)
    low = _number(a << np.uint32(16)) * _number(b << np.uint32(16))
    return low + _number(a & HIGH) * _number(b & HIGH)


@cuda.jit(device=True)
def _product_f16(a, b):
    a, b = np.uint32(a), np.uint32(b)
    low = _from_f16(a & np.uint32(0xFFFF)) * _from_f16(b & np.uint32(0xFFFF))
    return low + _from_f16(a >> np.uint32(16)) * _from_f16(b >> np.uint32(16))


def _mma(product: Any) -> Any:
    """c + ab for a warp, whose lane 4g + t gets numbers 2t and 2t + 1 of rows g and g + 8. product: of two words."""

    @cuda.jit(device=True)
    def mma(a0, a1, a2, a3, b0, b1, c0, c1, c2, c3):
        lane = cuda.threadIdx.x & 31
        for word in range(8):
            t = word & 3
            row = (lane & 28) + t  # the lane with this word of this lane's row
            column = (
                lane & 3
            ) * 8 + t  # the lane with the word of column 2 (lane & 3), and four further on, of the next
            upper = word < 4
            top, bottom = (
                cuda.shfl_sync(ALL_LANES, a0 if upper else a2, row),
                cuda.shfl_sync(ALL_LANES, a1 if upper else a3, row),
            )
            mine = b0 if upper else b1
            left, right = cuda.shfl_sync(ALL_LANES, mine, column), cuda.shfl_sync(ALL_LANES, mine, column + 4)
            c0 += product(top, left)
            c1 += product(top, right)
            c2 += product(bottom, left)
            c3 += product(bottom, right)
        return c0, c1, c2, c3

    return mma


mma_tf32, mma_bf16, mma_f16 = _mma(_product_tf32), _mma(_product_bf16), _mma(_product_f16)


@cuda.jit(device=True)
def matrices(tile, at):
    """Four matrices of 8 rows of four words; lanes 0 to 7 say where in the tile the rows of the first begin, and so on.
    Each lane gets of each matrix the word that the lane has in a fragment: number lane % 4 of row lane // 4."""
    lane = cuda.threadIdx.x & 31
    words = cuda.local.array(4, np.int32)
    for matrix in range(4):
        begins = cuda.shfl_sync(ALL_LANES, np.int32(at), matrix * 8 + (lane >> 2))
        words[matrix] = tile[begins + (lane & 3)]
    return words[0], words[1], words[2], words[3]


@cuda.jit(device=True)
def four_of(source, offset):
    """Four neighbours of a matrix, from this number of it on: one access on a device."""
    y = offset // source.shape[1]
    x = offset - y * source.shape[1]
    return source[y, x], source[y, x + 1], source[y, x + 2], source[y, x + 3]


@cuda.jit(device=True)
def store4(tile, row, column, w0, w1, w2, w3):
    """Four neighbours of a row, in one access on a device."""
    tile[row, column] = w0
    tile[row, column + 1] = w1
    tile[row, column + 2] = w2
    tile[row, column + 3] = w3


@cuda.jit(device=True)
def put4(words, at, w0, w1, w2, w3):
    """Four neighbours of an array of one dimension, in one access on a device."""
    words[at] = w0
    words[at + 1] = w1
    words[at + 2] = w2
    words[at + 3] = w3


@cuda.jit(device=True)
def nothing_on_its_way(flight):
    """Before the first copy: flight are the notes (copies + 1, NOTES), which a GPU does without."""
    for copy in range(flight.shape[0]):
        flight[copy, 5] = 0
    flight[0, 0] = 0
    flight[0, 1] = 1


@cuda.jit(device=True)
def copy4(tile, at, source, offset, flight):
    """Order a copy of four words of the matrix `source`, from number `offset` of it on, to tile[at] and behind."""
    note = 1 + flight[0, 0] % (flight.shape[0] - 1)
    flight[0, 0] += 1
    flight[note, 0] = at
    flight[note, 1], flight[note, 2], flight[note, 3], flight[note, 4] = four_of(source, offset)
    flight[note, 5] = flight[0, 1]
    put4(tile, at, IN_FLIGHT, IN_FLIGHT, IN_FLIGHT, IN_FLIGHT)


@cuda.jit(device=True)
def send(flight):
    """What was ordered since the last call is a group, which is waited for as one."""
    flight[0, 1] += 1


@cuda.jit(device=True)
def wait_for_all_but_one(tile, flight):
    """Until all of this thread's groups but the last have arrived in `tile`. Others see them after a barrier."""
    for note in range(1, flight.shape[0]):
        group = flight[note, 5]
        if group > 0 and group < flight[0, 1] - 1:
            put4(tile, flight[note, 0], flight[note, 1], flight[note, 2], flight[note, 3], flight[note, 4])
            flight[note, 5] = 0
