"""cuda.random: a random number generator for each thread (xoroshiro128+), bit for bit that of numba-cuda.

    states = create_xoroshiro128p_states(threads, seed=1)     on the host: one state per thread
    x = xoroshiro128p_uniform_float32(states, i)              in a kernel: a number from 0 to 1, and states[i] moves on

A state is two 64-bit words. Thread i starts 2^64 steps after thread i - 1 in one long sequence, so that the numbers of
two threads never overlap. Generators: Blackman and Vigna, https://prng.di.unimi.it/ (xoroshiro128+ with
the constants of 2016, 55-14-36, and splitmix64 to spread the seed).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba.np.numpy_support import from_dtype

from ..compiler.functions import DeviceFunction

xoroshiro128p_dtype = np.dtype([("s0", np.uint64), ("s1", np.uint64)], align=True)
xoroshiro128p_type = from_dtype(xoroshiro128p_dtype)

#: The polynomial that advances a state by 2^64 steps (xoroshiro128plus.c).
JUMP_LOW, JUMP_HIGH = np.uint64(0xBEAC0467EBA5FACB), np.uint64(0xD86B048B86AA9922)
#: 2^-53: a float64 holds 53 bits between 0 and 1.
UNIT = np.float64(2.0**-53)
TWO_PI_FLOAT32 = np.float32(2 * math.pi)
TWO_PI_FLOAT64 = np.float64(2 * math.pi)


# ---- in a kernel. All integers are np.uint64: Numba converts a uint64 mixed with an int to float64.


@DeviceFunction
def init_xoroshiro128p_state(states, index, seed):  # type: ignore[no-untyped-def]
    """Set states[index] from a 64-bit seed. splitmix64 makes the states of neighbouring seeds unrelated."""
    z = np.uint64(seed) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    states[index]["s0"] = z
    states[index]["s1"] = z


@DeviceFunction
def rotl(x, k):  # type: ignore[no-untyped-def]
    """The bits of a uint64, rotated left by k places, 0 < k < 64."""
    return (np.uint64(x) << np.uint64(k)) | (np.uint64(x) >> (np.uint64(64) - np.uint64(k)))


@DeviceFunction
def xoroshiro128p_next(states, index):  # type: ignore[no-untyped-def]
    """A random uint64; advances states[index] by one step."""
    s0 = states[index]["s0"]
    s1 = states[index]["s1"]
    result = s0 + s1
    mixed = s0 ^ s1
    states[index]["s0"] = rotl(s0, 55) ^ mixed ^ (mixed << np.uint64(14))
    states[index]["s1"] = rotl(mixed, 36)
    return result


@DeviceFunction
def xoroshiro128p_jump(states, index):  # type: ignore[no-untyped-def]
    """Advance states[index] by 2^64 steps, in the time of 128."""
    s0 = np.uint64(0)
    s1 = np.uint64(0)
    for bit in range(128):
        word = JUMP_LOW if bit < 64 else JUMP_HIGH
        if (word >> np.uint64(bit & 63)) & np.uint64(1):
            s0 ^= states[index]["s0"]
            s1 ^= states[index]["s1"]
        xoroshiro128p_next(states, index)
    states[index]["s0"] = s0
    states[index]["s1"] = s1


@DeviceFunction
def uint64_to_unit_float64(x):  # type: ignore[no-untyped-def]
    """The upper 53 bits of x as a float64 in [0, 1)."""
    return np.float64(np.uint64(x) >> np.uint64(11)) * UNIT


@DeviceFunction
def uint64_to_unit_float32(x):  # type: ignore[no-untyped-def]
    """The same, rounded to float32. Numbers within 2^-25 of 1 become 1, as in numba-cuda."""
    return np.float32(uint64_to_unit_float64(x))


@DeviceFunction
def xoroshiro128p_uniform_float32(states, index):  # type: ignore[no-untyped-def]
    """A float32, uniform from 0 to 1; advances states[index] by one step.

    It can be 1.0 itself, as in numba-cuda: one number in 2^25 is so near to 1 that it is rounded to it.
    """
    return uint64_to_unit_float32(xoroshiro128p_next(states, index))


@DeviceFunction
def xoroshiro128p_uniform_float64(states, index):  # type: ignore[no-untyped-def]
    """A float64, uniform in [0, 1); advances states[index] by one step."""
    return uint64_to_unit_float64(xoroshiro128p_next(states, index))


@DeviceFunction
def xoroshiro128p_normal_float32(states, index):  # type: ignore[no-untyped-def]
    """A float32 from a normal distribution, mean 0 and deviation 1; advances states[index] by two steps.

    Box-Muller gives two numbers, and one is used.
    """
    u1 = xoroshiro128p_uniform_float32(states, index)
    u2 = xoroshiro128p_uniform_float32(states, index)
    return np.float32(math.sqrt(np.float32(-2.0) * math.log(u1)) * math.cos(TWO_PI_FLOAT32 * u2))


@DeviceFunction
def xoroshiro128p_normal_float64(states, index):  # type: ignore[no-untyped-def]
    """A float64 from a normal distribution, mean 0 and deviation 1; advances states[index] by two steps.

    It is computed from two float32, as in numba-cuda.
    """
    u1 = xoroshiro128p_uniform_float32(states, index)
    u2 = xoroshiro128p_uniform_float32(states, index)
    return math.sqrt(np.float64(-2.0) * math.log(u1)) * math.cos(TWO_PI_FLOAT64 * u2)


# ---- on the host. A jump is linear over the 128 bits of a state, with xor as addition. So it is a matrix product; the
# square of the matrix is two jumps, and n states need log2(n) products.


def _splitmix64(seed: int) -> int:
    """The value that init_xoroshiro128p_state assigns to both words."""
    mask = 2**64 - 1
    z = (seed + 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def _jump_matrix() -> np.ndarray:
    """(128, 2) uint64: row i is the state after a jump of 2^64 steps, if before it bit i is the only 1."""
    bits = np.arange(128)
    s0 = np.where(bits < 64, np.uint64(1) << (bits % 64).astype(np.uint64), np.uint64(0))
    s1 = np.where(bits >= 64, np.uint64(1) << (bits % 64).astype(np.uint64), np.uint64(0))
    polynomial = int(JUMP_HIGH) << 64 | int(JUMP_LOW)
    sum0, sum1 = np.zeros_like(s0), np.zeros_like(s1)
    for bit in range(128):
        if polynomial >> bit & 1:
            sum0 ^= s0
            sum1 ^= s1
        s0, s1 = (s0 << 55 | s0 >> 9) ^ s0 ^ s1 ^ ((s0 ^ s1) << 14), (s0 ^ s1) << 36 | (s0 ^ s1) >> 28
    return np.stack([sum0, sum1], axis=1)


def _apply(matrix: np.ndarray, states: np.ndarray) -> np.ndarray:
    """The product of the matrix with each of the states, (n, 2): the xor of the rows whose bits are 1, byte by byte."""
    state_bytes = states.astype("<u8").view(np.uint8)
    sent = np.zeros_like(states)
    for byte in range(16):
        table = np.zeros((1, 2), np.uint64)  # the product for each of the byte's 256 values
        for row in matrix[8 * byte : 8 * byte + 8]:
            table = np.concatenate([table, table ^ row])
        sent ^= table[state_bytes[:, byte]]
    return sent


def _host_states(n: int, seed: int, subsequence_start: int) -> np.ndarray:
    """n states, each a jump of 2^64 steps after the last; the first is `subsequence_start` jumps after the seed's."""
    if n < 0 or subsequence_start < 0:
        raise ValueError(f"n and subsequence_start cannot be negative; they are {n} and {subsequence_start}")
    if not -(2**63) <= seed < 2**64:
        raise ValueError(f"the seed must fit into 64 bits; it is {seed}")
    states = np.full((1, 2), _splitmix64(seed), np.uint64)
    jump = matrix = _jump_matrix()
    while subsequence_start:
        if subsequence_start & 1:
            states = _apply(matrix, states)
        matrix = _apply(matrix, matrix)
        subsequence_start >>= 1
    while len(states) < n:
        states = np.concatenate([states, _apply(jump, states[: n - len(states)])])
        jump = _apply(jump, jump)
    return states[:n].copy().view(xoroshiro128p_dtype)[:, 0]


def create_xoroshiro128p_states(n: int, seed: int, subsequence_start: int = 0, stream: Any = 0) -> Any:
    """A device array of n generators, (n,) of xoroshiro128p_dtype.

    seed: any 64-bit integer; the same seed gives the same numbers everywhere
    subsequence_start: the number of generators of the sequence to skip (2^64 steps each)

    Raises ValueError for negative sizes and for seeds of more than 64 bits.
    """
    from .transfers import to_device  # here: kernels that only draw numbers need no device arrays

    return to_device(_host_states(int(n), int(seed), int(subsequence_start)), stream=stream)


def init_xoroshiro128p_states(states: Any, seed: int, subsequence_start: int = 0, stream: Any = 0) -> None:
    """Fill a device array of xoroshiro128p_dtype, (n,), as create_xoroshiro128p_states does."""
    host = _host_states(states.shape[0], int(seed), int(subsequence_start))
    states.copy_to_device(host, stream=stream)


__all__ = [
    *("create_xoroshiro128p_states", "init_xoroshiro128p_state", "init_xoroshiro128p_states"),
    *("rotl", "uint64_to_unit_float32", "uint64_to_unit_float64"),
    *("xoroshiro128p_dtype", "xoroshiro128p_jump", "xoroshiro128p_next", "xoroshiro128p_type"),
    *("xoroshiro128p_normal_float32", "xoroshiro128p_normal_float64"),
    *("xoroshiro128p_uniform_float32", "xoroshiro128p_uniform_float64"),
]
