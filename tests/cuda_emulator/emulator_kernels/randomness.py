"""Random numbers on the device: one xoroshiro128+ state a thread, made on the host."""

from __future__ import annotations

import numpy as np
from numba import uint32

from cuda_emulator import cuda
from cuda_emulator.runtime.random import xoroshiro128p_dtype, xoroshiro128p_uniform_float32
from tests.cuda_emulator.emulator_kernels.example import Example, Launch, fixed, poisoned


@cuda.jit
def draws(states, out):
    thread = cuda.grid(1)
    if thread < out.shape[0]:
        for j in range(out.shape[1]):
            out[thread, j] = xoroshiro128p_uniform_float32(states, thread)


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


def _scramble(size: int, generator: np.random.Generator) -> Launch:
    seed = int(generator.integers(2**31))
    h = (seed + np.arange(size, dtype=np.uint64)) % 2**32
    h = (h ^ (h >> np.uint64(16))) * np.uint64(0x7FEB352D) % 2**32
    h = (h ^ (h >> np.uint64(15))) * np.uint64(0x846CA68B) % 2**32
    h = h ^ (h >> np.uint64(16))
    return Launch(-(-size // 64), 64, (seed, poisoned(size, np.uint32)), {1: h.astype(np.uint32)})


# numba-cuda's states and numbers, as in test_random.py
STATES = np.array(
    [(1720621703753190264, 9457973938255393670), (17579686245363550164, 9466423873265256138)], xoroshiro128p_dtype
)
NUMBERS = [["0x1.3644b4p-1", "0x1.a0e316p-2", "0x1.437880p-1"], ["0x1.dd5c58p-2", "0x1.20285ep-1", "0x1.803358p-1"]]

EXAMPLES = {
    "draws": fixed(
        draws, 32, (STATES, poisoned((2, 3))), {0: None, 1: [[float.fromhex(text) for text in row] for row in NUMBERS]}
    ),
    "scramble": Example(scramble, _scramble, (1, 67, 1009), (1, 67)),
}
