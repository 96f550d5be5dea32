"""Random numbers on the device: one xoroshiro128+ state a thread, made on the host."""

from __future__ import annotations

import numpy as np
from numba import float32, uint32

from cuda_emulator import cuda
from cuda_emulator.runtime.random import (
    xoroshiro128p_dtype,
    xoroshiro128p_uniform_float32,
)
from tests.cuda_emulator.emulator_kernels.example import Example, Launch, poisoned

DRAWS = 40


@cuda.jit
def estimate_pi(states, inside):
    """How many of DRAWS points of the unit square lie in the circle."""
    thread = cuda.grid(1)
    if thread < inside.size:
        count = 0
        for _ in range(DRAWS):
            x = xoroshiro128p_uniform_float32(states, thread)
            y = xoroshiro128p_uniform_float32(states, thread)
            if x * x + y * y <= float32(1):
                count += 1
        inside[thread] = count


@cuda.jit
def scramble(seed, out):
    """A 32-bit integer hash: unsigned arithmetic that wraps."""
    i = cuda.grid(1)
    if i < out.size:
        h = uint32(seed + i)
        h = uint32(h ^ (h >> uint32(16)))
        h = uint32(h * uint32(0x7FEB352D))
        h = uint32(h ^ (h >> uint32(15)))
        h = uint32(h * uint32(0x846CA68B))
        out[i] = uint32(h ^ (h >> uint32(16)))


class _Generator:
    """xoroshiro128+ in Python's own integers: https://prng.di.unimi.it/xoroshiro128plus.c with the 2016 constants."""

    MASK = 2**64 - 1

    def __init__(self, s0: int, s1: int) -> None:
        self.s0, self.s1 = s0, s1

    def next(self) -> int:
        s0, s1 = self.s0, self.s1
        result = (s0 + s1) & self.MASK
        s1 ^= s0
        self.s0 = self._rotate(s0, 55) ^ s1 ^ ((s1 << 14) & self.MASK)
        self.s1 = self._rotate(s1, 36)
        return result

    def _rotate(self, x: int, k: int) -> int:
        return ((x << k) | (x >> (64 - k))) & self.MASK

    def uniform(self) -> np.float32:
        """The upper 53 bits as a fraction, rounded to float32."""
        return np.float32((self.next() >> 11) / 2**53)


def _states(size: int, generator: np.random.Generator) -> np.ndarray:
    states = np.zeros(size, xoroshiro128p_dtype)
    for name in ("s0", "s1"):
        states[name] = generator.integers(1, 2**64, size, dtype=np.uint64)
    return states


def _after(generators: list[_Generator]) -> np.ndarray:
    """The states that the generators have reached."""
    states = np.zeros(len(generators), xoroshiro128p_dtype)
    states["s0"] = np.array([each.s0 for each in generators], np.uint64)
    states["s1"] = np.array([each.s1 for each in generators], np.uint64)
    return states


def _estimate_pi(size: int, generator: np.random.Generator) -> Launch:
    states = _states(size, generator)
    generators = [_Generator(int(state["s0"]), int(state["s1"])) for state in states]
    inside = np.zeros(size, np.int64)
    for thread, own in enumerate(generators):
        for _ in range(DRAWS):
            x, y = own.uniform(), own.uniform()
            inside[thread] += x * x + y * y <= 1
    arguments = (states, poisoned(size, np.int32))
    return Launch(-(-size // 64), 64, arguments, {0: _after(generators), 1: inside})


def _scramble(size: int, generator: np.random.Generator) -> Launch:
    seed = int(generator.integers(2**31))
    h = (seed + np.arange(size, dtype=np.uint64)) % 2**32
    h = (h ^ (h >> np.uint64(16))) * np.uint64(0x7FEB352D) % 2**32
    h = (h ^ (h >> np.uint64(15))) * np.uint64(0x846CA68B) % 2**32
    h = h ^ (h >> np.uint64(16))
    return Launch(-(-size // 64), 64, (seed, poisoned(size, np.uint32)), {1: h.astype(np.uint32)})


SIZES = (1, 67)

EXAMPLES = {
    "estimate_pi": Example(estimate_pi, _estimate_pi, SIZES, SIZES[:1]),
    "scramble": Example(scramble, _scramble, (1, 67, 1009), (1, 67)),
}
