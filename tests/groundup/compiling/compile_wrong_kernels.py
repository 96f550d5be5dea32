"""Kernels that `groundup check --compile` has to refuse, each for another reason, and one that it accepts."""

import os

from stage4_numba_cuda.backend import cuda


@cuda.jit
def right(a, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + a.dtype.type(1)


@cuda.jit
def tenth_in_float64(a, out):
    """0.1 is a float64, so the product is one. (Of 0.5 the compiler knows that float32 gives the same.)"""
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] * 0.1


@cuda.jit(max_registers=24)
def spilling(a, out):
    """64 numbers alive at once, and 24 registers to hold them."""
    own = cuda.local.array(64, a.dtype)
    i = cuda.grid(1)
    for k in range(64):
        own[k] = a[i + k * out.size]
    cuda.syncthreads()
    total = a.dtype.type(0)
    for k in range(64):
        total = total * own[k] + own[63 - k]
    out[i] = total


@cuda.jit
def framed(a, out):
    """Registers have no numbers at run time: an array indexed by a[i] has to lie in memory."""
    own = cuda.local.array(200, a.dtype)
    i = cuda.grid(1)
    for k in range(200):
        own[k] = a[k] * a[i]
    out[i] = own[int(a[i])]


@cuda.jit
def mistyped(a, out):
    out[0] = a.no_such_attribute


@cuda.jit
def dense(a, b, out):
    """A product whose inner loop is mostly loads."""
    i = cuda.grid(1)
    total = a.dtype.type(0)
    k = 0
    while k < a.size:
        total += a[k] * b[k]
        k += 1
    out[i] = total


def ends_the_process():
    """A compiler that does not survive a kernel; numba-cuda's does not always."""
    os._exit(70)
