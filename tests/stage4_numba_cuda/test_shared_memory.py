"""A block with more than 48 KB of shared memory, which a launch may give it once that was allowed for the kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import types

from cuda_emulator import KernelError, options
from cuda_emulator.inspection import trace_launch
from stage4_numba_cuda import shared_memory
from stage4_numba_cuda.arrays import to_host
from stage4_numba_cuda.backend import BACKEND, cuda
from tests.wide import wide

COUNT = 18 * 1024
"""Words of 32 bits: 72 KB."""

THREADS = 256
VECTOR = types.Array(types.int32, 1, "C")


def turn() -> Any:
    """A kernel (source, out) of one block that writes the numbers from the last to the first."""

    @cuda.jit
    def kernel(source, out):  # type: ignore[no-untyped-def]
        tile = cuda.shared.array(0, np.int32)
        i = cuda.threadIdx.x
        while i < out.size:
            tile[i] = source[i]
            i += THREADS
        cuda.syncthreads()
        i = cuda.threadIdx.x
        while i < out.size:
            out[i] = tile[out.size - 1 - i]
            i += THREADS

    return kernel


def test_a_block_has_as_much_shared_memory_as_was_allowed() -> None:
    kernel, source = turn(), np.arange(COUNT, dtype=np.int32)
    out = cuda.to_device(np.zeros_like(source))
    shared_memory.allow(kernel, (VECTOR, VECTOR), 4 * COUNT)
    kernel[1, THREADS, 0, 4 * COUNT](cuda.to_device(source), out)
    assert np.array_equal(to_host(out), source[::-1])


@pytest.mark.skipif(BACKEND.name != "emulator", reason="check mode, step mode and traces are the emulator's")
@pytest.mark.parametrize("way", [{"step": True}, {}, pytest.param({"check": True}, marks=wide)])
def test_the_emulators_other_ways_allow_it_too(way: dict[str, Any]) -> None:
    kernel, source = turn(), np.arange(COUNT, dtype=np.int32)
    out = np.zeros_like(source)
    shared_memory.allow(kernel, (VECTOR, VECTOR), 4 * COUNT)
    if way:
        with options(**way):
            kernel[1, THREADS, 0, 4 * COUNT](source, out)
    else:
        found = trace_launch(kernel, 1, THREADS, (source, out), 4 * COUNT)
        assert (found.dynamic_bytes, found.fault) == (4 * COUNT, "")
    assert np.array_equal(out, source[::-1]) or not way  # a trace works on copies


@pytest.mark.skipif(BACKEND.name != "emulator", reason="an error of a GPU's driver would end the other tests' context")
def test_what_was_not_allowed_is_refused() -> None:
    kernel = turn()
    with pytest.raises(KernelError, match="a block may use 49152 bytes of shared memory, this launch needs 73728"):
        kernel[1, THREADS, 0, 4 * COUNT]
    shared_memory.allow(kernel, (VECTOR, VECTOR), 4 * COUNT)
    with pytest.raises(KernelError, match="a block may use 73728 bytes of shared memory, this launch needs 73732"):
        kernel[1, THREADS, 0, 4 * COUNT + 4]
    with pytest.raises(KernelError, match="cannot be allowed 102400 bytes of shared memory for a block; 101376"):
        shared_memory.allow(kernel, (VECTOR, VECTOR), 100 * 1024)
