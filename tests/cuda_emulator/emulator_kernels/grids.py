"""Barriers across the grid: each block reads what another has written before the barrier."""

from __future__ import annotations

import numpy as np
from numba import float32, int64

from cuda_emulator import cuda
from tests.cuda_emulator.emulator_kernels.example import fixed, poisoned

BLOCKS, THREADS, STEPS = 5, 8, 6
COUNT = BLOCKS * THREADS


@cuda.jit
def rotate(x, y, steps):
    """x one place to the right, `steps` times: a loop in which two barriers are needed."""
    group = cuda.cg.this_grid()
    i = cuda.grid(1)
    step = 0
    while step < steps:
        y[i] = x[i - 1] if i > 0 else x[x.size - 1]
        group.sync()
        x[i] = y[i]
        group.sync()
        step += 1


@cuda.jit
def rotate_in_turns(x, y, steps):
    """The same by `for`, with x and y in turn, a uniform `if` around the barriers, and a tuple that outlives them."""
    i = cuda.grid(1)
    shape = x.shape
    for step in range(steps):
        if step % 2 == 0:
            y[(i + 1) % shape[0]] = x[i]
            cuda.cg.this_grid().sync()
        else:
            x[(i + 1) % shape[0]] = y[i]
            cuda.syncthreads()
            cuda.cg.this_grid().sync()


@cuda.jit(device=True)
def meet(group):
    group.sync()


@cuda.jit
def rotate_from_shared(x, y, steps):
    """The same, with what a block keeps over its barriers in shared, local and per-thread memory."""
    near = cuda.shared.array(THREADS, float32)
    own = cuda.local.array(2, float32)
    group = cuda.cg.this_grid()
    t, i = cuda.threadIdx.x, cuda.grid(1)
    near[t] = x[i]
    own[1] = x[i]
    kept = x[i]
    step = int64(0)
    while step < steps:
        x[i] = near[t]
        meet(group)
        near[t] = x[i - 1] if i > 0 else x[x.size - 1]
        meet(cuda.cg.this_grid())
        step += 1
    x[i] = near[t] + (own[1] - kept)


@cuda.jit
def rotate_with_continue(x, y, steps):
    """The same by 0 and by 2 places in turn; `places` is needed behind the barriers only where the loop goes on."""
    group = cuda.cg.this_grid()
    i = cuda.grid(1)
    left, places = steps, 0
    while True:
        y[i] = x[(i + x.size - places) % x.size]
        places = 2 - places
        group.sync()
        x[i] = y[i]
        group.sync()
        left -= 1
        if left > 0:
            continue
        break


@cuda.jit
def rotate_by_some(x, y, steps):
    """The same where every thread comes to the barriers by a branch and a loop of its own, and may have left before."""
    i = cuda.grid(1)
    if i >= x.size:
        return
    left = steps + x[i] * 0
    while left > 0:
        if x[i] == x[i]:
            y[i] = x[i - 1] if i > 0 else x[x.size - 1]
            cuda.cg.this_grid().sync()
            x[i] = y[i]
        cuda.cg.this_grid().sync()
        left -= 1


@cuda.jit
def rotate_blocks(x, y, steps):
    """Two roles: the first block counts the steps, and waits at barriers of its own."""
    group = cuda.cg.this_grid()
    i = cuda.grid(1)
    if cuda.blockIdx.x == 0:
        for _ in range(steps):
            y[i] = x[i - 1] if i > 0 else x[x.size - 1]
            group.sync()
            x[i] = y[i]
            group.sync()
    else:
        for _ in range(steps):
            y[i] = x[i - 1]
            group.sync()
            x[i] = y[i]
            group.sync()


START = np.arange(COUNT, dtype=np.float32)
KERNELS = (
    *(rotate, rotate_in_turns, rotate_from_shared),
    *(rotate_with_continue, rotate_by_some, rotate_blocks),
)
EXAMPLES = {
    kernel.py_func.__name__: fixed(
        kernel, THREADS, (START, poisoned(COUNT), STEPS), {0: np.roll(START, STEPS), 1: None}, grid=BLOCKS
    )
    for kernel in KERNELS
}
