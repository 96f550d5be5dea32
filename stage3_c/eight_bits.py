"""Products of whole numbers of eight bits in C, slowest rung first.

    plain      the definition: three loops                                one product at a time
    ordered    the two inner loops swapped                                every access is the next number in memory
    vectors    packed panels and a tile of sums in SIMD registers         a product in each lane of 32 bits
    pairs      numbers of 16 bits, an instruction that adds two products  two in each lane
    vnni       numbers of 8 bits, one that adds four                      four in each lane
    threads    the sums cut into one rectangle for each core              as many times faster as there are cores

Which instructions there are is asked at run time; without VNNI, the last two rungs use that of pairs. The C, with the
reasons, is csrc/eight_bits.c and eight_bits_packed.h. `out=` is the array to write the sums into.

Shapes: left is (rows, k), right is (k, columns), both int8; the sums are (rows, columns), int32 and exact.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from . import library
from .arrays import Array, aligned_empty, output_like, packed

LONGEST_SUM = (2**31 - 1) // 128**2
"""Terms of a sum of products that fits in 32 bits, whatever the numbers, -128 among them: 131,071."""

INSTRUCTIONS = ("vectors", "pairs", "vnni256", "vnni512")
"""In the order of csrc/eight_bits.c, slowest first; VNNI works on registers of 256 or 512 bits."""

_INT8, _INT32 = np.dtype(np.int8), np.dtype(np.int32)


@cache
def instructions() -> tuple[str, ...]:
    """Those of INSTRUCTIONS that this processor has."""
    has = library.plain_function("eight_bits_has")
    return tuple(name for number, name in enumerate(INSTRUCTIONS) if has(number))


def plain(left: Array, right: Array, out: Array | None = None) -> Array:
    """The definition: for each sum a loop over k, on one thread."""
    return _whole("eight_bits_plain", (), left, right, out)


def ordered(left: Array, right: Array, out: Array | None = None) -> Array:
    """Row k of right times one number of left, added to a row of sums: memory is read in order."""
    return _whole("eight_bits_ordered", (), left, right, out)


def vectors(left: Array, right: Array, out: Array | None = None) -> Array:
    """Packed panels and tiles, as in the float product, with a number in each lane; on one thread."""
    return by_instruction("vectors", left, right, out)


def pairs(left: Array, right: Array, out: Array | None = None) -> Array:
    """The same with two numbers in each lane."""
    return by_instruction("pairs", left, right, out)


def vnni(left: Array, right: Array, out: Array | None = None) -> Array:
    """The same with four, where the processor has VNNI; else `pairs`."""
    return by_instruction(instructions()[-1], left, right, out)


def threads(left: Array, right: Array, out: Array | None = None) -> Array:
    """`vnni` on every thread of the pool; see GROUNDUP_THREADS."""
    return by_instruction(instructions()[-1], left, right, out, library.MOST_THREADS)


LADDER: dict[str, Callable[..., Array]] = {
    "plain": plain,
    "ordered": ordered,
    "vectors": vectors,
    "pairs": pairs,
    "vnni": vnni,
    "threads": threads,
}


def product(left: Array, right: Array, out: Array | None = None) -> Array:
    """left (rows, k) times right (k, columns), both int8 -> int32 (rows, columns), exact, by the fastest rung.

    out: where to write the sums, (rows, columns) of int32 and not overlapping left or right; a new array if None
    Raises ValueError where left's columns are not right's rows, for more than LONGEST_SUM terms, and where `out` does
    not fit; TypeError for what is no array of int8.
    """
    return threads(left, right, out)


def by_instruction(name: str, left: Array, right: Array, out: Array | None = None, most_threads: int = 1) -> Array:
    """The packed product by one of `instructions`, on at most so many threads."""
    if name not in instructions():
        raise ValueError(f"by_instruction: expected one of {', '.join(instructions())}, got {name!r}")
    return _whole("eight_bits_packed", (most_threads, INSTRUCTIONS.index(name)), left, right, out)


def peak(rounds: int) -> float:
    """As ceilings.peak, of the fastest of `instructions`: how many multiplications and additions were done."""
    sink = aligned_empty((2,), _INT32)
    sink[...] = 1  # what is multiplied: so no sum gets too large
    return float(library.plain_function("eight_bits_peak")(INSTRUCTIONS.index(instructions()[-1]), rounds, sink))


def _whole(function: str, first: tuple[int, ...], left: Array, right: Array, out: Array | None) -> Array:
    left, right = _as_eight_bits("left", left), _as_eight_bits("right", right)
    (rows, k), columns = left.shape, right.shape[1]
    if k != right.shape[0]:
        raise ValueError(
            f"product: left is {left.shape} but right is {right.shape}; left's columns must equal right's rows"
        )
    if k > LONGEST_SUM:
        raise ValueError(f"product: {k:,} terms; a sum of 32 bits has room for {LONGEST_SUM:,}")
    out = output_like("product", out, (rows, columns), _INT32, left=left, right=right)
    if rows and k and columns:
        pool = (library.pool(),) if first else ()
        library.plain_function(function)(*pool, *first, rows, k, columns, left, right, out)
    else:
        out.fill(0)
    return out


def _as_eight_bits(name: str, values: Any) -> Array:
    if not isinstance(values, np.ndarray) or isinstance(values, np.ma.MaskedArray) or values.dtype != _INT8:
        got = f"{type(values).__name__} of {values.dtype}" if isinstance(values, np.ndarray) else type(values).__name__
        raise TypeError(f"product: {name}: expected an array of int8, got {got}")
    if values.ndim != 2:
        raise ValueError(
            f"product: {name}: expected 2 dimensions (rows, columns), got {values.ndim} with shape {values.shape}"
        )
    return packed(np.asarray(values), _INT8)
