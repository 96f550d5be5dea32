"""Two loops in C that measure the highest speeds of this machine; benchmarks compare the network's speeds with them.

    peak     multiply-adds on numbers that stay in registers    no product on one core is faster (csrc/peak.c)
    triad    out = b + scale * c                                nothing moves numbers faster (csrc/triad.c)

The network itself uses neither.
"""

from . import eight_bits, library
from .arrays import Array, aligned_empty, check_dtype, output_like


def peak(dtype: str = "float32", rounds: int = 100_000) -> float:
    """Multiply and add in registers alone, on one thread. Returns how many operations were done.

    dtype: "float32", "float64", or "int8" for the products of whole numbers by the instruction that does most at once
    rounds: turns of the loop. Time the call: operations / seconds is the speed that no product can exceed on one core.
    Raises ValueError for another dtype.
    """
    if dtype == "int8":
        return eight_bits.peak(rounds)
    check_dtype("peak", dtype)
    sink = aligned_empty((1,), dtype)
    sink[...] = 0.5  # what every round multiplies by: the numbers stay where they are
    return float(library.function("peak", sink.dtype)(rounds, sink))


def triad(b: Array, c: Array, scale: float, out: Array, rounds: int = 1, threads: int = 1) -> Array:
    """Compute out = b + scale * c `rounds` times. Each of `threads` threads of the pool computes its own share.

    b, c, out: (n,) of one dtype, as `asarray` makes them, out not overlapping b or c. Each round moves 3 n numbers
    between the cores and the cache or the memory that holds the arrays. Time the call: numbers / seconds is the speed
    that no loop over arrays of this size can exceed.
    Raises ValueError for other shapes or dtypes, rounds < 1, and threads that the pool does not have.
    """
    if b.ndim != 1 or b.shape != c.shape or b.dtype != c.dtype:
        raise ValueError(
            f"triad: b is {b.dtype} {b.shape} but c is {c.dtype} {c.shape}; they must be one vector's size and dtype"
        )
    pool = library.pool()
    most = library.plain_function("pool_threads")(pool)
    if rounds < 1 or not 1 <= threads <= most:
        raise ValueError(
            f"triad: expected at least 1 round and 1 to {most} threads, which the pool has; got {rounds} and {threads}"
        )
    output_like("triad", out, b.shape, b.dtype, b=b, c=c)
    library.function("triad", b.dtype)(pool, threads, rounds, b.size, scale, b, c, out)
    return out
