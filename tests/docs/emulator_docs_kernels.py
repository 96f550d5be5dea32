"""The small kernels of docs/emulator.md: those it takes apart, and those that are wrong in one way each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import float32

from cuda_emulator import cuda

WIDTH = 32


# ---- taken apart


@cuda.jit
def two_uses(x, y):
    i = cuda.grid(1)
    n = x[i]
    x[i] = n * n
    n = cuda.gridsize(1)
    y[i] = n


@cuda.jit
def first_warp(x, out):
    i = cuda.threadIdx.x
    value = x[i]
    if i < 32:
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, 16)
    out[i] = value


@cuda.jit(device=True)
def squared(value):
    return value * value


@cuda.jit(device=True)
def pair_sum(value):
    return value + cuda.shfl_xor_sync(0xFFFFFFFF, value, 1)


@cuda.jit
def pairs(x, out):
    i = cuda.grid(1)
    out[i] = pair_sum(squared(x[i]))


@cuda.jit
def reversed_by_luck(x, out):
    near = cuda.shared.array(32, float32)
    i = cuda.threadIdx.x
    for k in range(2):
        cuda.syncthreads()
        near[i] = x[i] * k
    out[i] = near[31 - i]  # another thread's number, and no barrier before it


# ---- wrong


@cuda.jit
def reads_past_the_end(x, out):
    i = cuda.grid(1)
    out[i] = x[i + 1]


@cuda.jit
def counts_from_the_end(x, out):
    i = cuda.grid(1)
    out[i] = x[i - 1]


@cuda.jit
def barrier_in_a_branch(x, out):
    i = cuda.grid(1)
    if i < 20:
        cuda.syncthreads()
    out[i] = x[i]


@cuda.jit
def whole_warp_in_a_branch(x, out):
    i = cuda.grid(1)
    value = x[i]
    if i < 20:
        value = cuda.shfl_sync(0xFFFFFFFF, value, 0)
    out[i] = value


@cuda.jit
def caller_not_in_the_mask(x, out):
    i = cuda.grid(1)
    out[i] = cuda.shfl_sync(0x0000FFFF, x[i], 0)


@cuda.jit
def two_masks(x, out):
    i = cuda.grid(1)
    mask = 0x0000FFFF if i < 16 else 0xFFFFFFFF
    out[i] = cuda.shfl_sync(mask, x[i], 1)


@cuda.jit
def asks_an_absent_lane(x, out):
    i = cuda.grid(1)
    out[i] = cuda.shfl_xor_sync(0xFFFFFFFF, x[i], 16)


@cuda.jit
def asserts(x, out):
    i = cuda.grid(1)
    assert x[i] >= 0, "x is never negative"
    out[i] = x[i]


@cuda.jit
def lacks_a_barrier(x, out):
    near = cuda.shared.array(WIDTH, float32)
    i = cuda.threadIdx.x
    near[i] = x[i]
    out[i] = near[(i + 1) % WIDTH]


@cuda.jit
def sums_what_nobody_wrote(x, out):
    near = cuda.shared.array(WIDTH, float32)
    i = cuda.threadIdx.x
    near[i] += x[i]
    out[i] = near[i]


@cuda.jit
def shape_at_run_time(x, out):
    near = cuda.shared.array(x.size, float32)
    near[0] = x[0]
    out[0] = near[0]


@cuda.jit
def too_much_shared(x, out):
    near = cuda.shared.array((128, 128), float32)
    near[0, 0] = x[0]
    out[0] = near[0, 0]


@cuda.jit
def view_over_a_barrier(x, out):
    i = cuda.threadIdx.x
    row = x[i:]
    if i > 0:
        row = x[1:]
    cuda.syncthreads()
    out[i] = row[0]


@cuda.jit
def shuffle_that_may_be_skipped(x, out):
    i = cuda.threadIdx.x
    out[i] = cuda.shfl_xor_sync(0xFFFFFFFF, x[i], 1) if i > 0 else 0


@cuda.jit(device=True)
def early(value):
    if value > 0:
        return value
    return cuda.shfl_xor_sync(0xFFFFFFFF, value, 1)


@cuda.jit
def returns_early(x, out):
    i = cuda.threadIdx.x
    out[i] = early(x[i])


@cuda.jit
def waits(x, out):
    i = cuda.grid(1)
    while cuda.atomic.add(x, 0, 0) == 0:
        pass
    out[i] = 1


@cuda.jit
def tries(x, out):
    try:
        out[0] = x[0]
    except ZeroDivisionError:
        out[0] = 0


@cuda.jit
def lists(x, out):
    values = [x[0], x[1]]
    out[0] = values[0]


def plain_function(value):
    return value + 1


@cuda.jit
def calls_python(x, out):
    out[0] = plain_function(x[0])


@cuda.jit
def returns_a_value(x, out):
    return x[0]


@cuda.jit
def some_blocks_meet(x, out):
    if cuda.blockIdx.x < 3:
        cuda.cg.this_grid().sync()
    out[cuda.blockIdx.x] = x[0]


@cuda.jit
def asks_the_grid(x, out):
    out[0] = cuda.cg.this_grid().thread_rank()


@cuda.jit
def shuffles_a_byte(x, out):
    i = cuda.grid(1)
    out[i] = cuda.shfl_sync(0xFFFFFFFF, np.int8(x[i]), 0)


@cuda.jit
def no_types(x, out):
    out[0] = x.nothing


@cuda.jit
def rotated(x, y, steps):
    grid = cuda.cg.this_grid()
    i = cuda.grid(1)
    for _ in range(steps):
        y[i] = x[i - 1] if i > 0 else x[x.size - 1]  # the neighbour may belong to another block
        grid.sync()
        x[i] = y[i]
        grid.sync()


@cuda.jit
def half_assigns(x, out):
    i = cuda.grid(1)
    if i < x.size // 2:
        v = x[i]
    cuda.syncthreads()
    out[i] = v


@cuda.jit
def adds_to_nothing(x, out):
    for i in range(x.size):
        total += x[i]  # noqa: F821
    out[0] = total


@dataclass(frozen=True)
class Fault:
    """One mistake.

    kind: the title it stands under in the page; what: the mistake, in the page's words; launch: makes it
    check: whether it takes check mode to find it
    """

    kind: str
    what: str
    launch: Callable[..., Any]
    check: bool = False


def launched(kernel: Any, block: Any = WIDTH, size: int = WIDTH) -> Callable[[], None]:
    """A launch of one block on two arrays of `size` ones."""

    def launch() -> None:
        kernel[1, block](np.ones(size, np.float32), np.zeros(size, np.float32))

    return launch


def given(kernel: Any, *arguments: Any) -> Callable[[], None]:
    """A launch of one block with these arguments."""
    return lambda: kernel[1, WIDTH](*arguments)


def race() -> None:
    """32 different numbers, moved by one place through shared memory."""
    lacks_a_barrier[1, WIDTH](np.arange(WIDTH, dtype=np.float32), np.zeros(WIDTH, np.float32))


RUNNING, COMPILING, LAUNCHING = "While it runs", "When it is compiled", "At the launch"

FAULTS = [
    Fault(RUNNING, "an index past the end", launched(reads_past_the_end)),
    Fault(
        RUNNING, "a computed negative index, in check mode and in the lens", launched(counts_from_the_end), check=True
    ),
    Fault(RUNNING, "a barrier that a part of the block reaches", launched(barrier_in_a_branch)),
    Fault(RUNNING, "a shuffle that waits for lanes that do not come", launched(whole_warp_in_a_branch)),
    Fault(RUNNING, "a shuffle whose mask leaves the caller out", launched(caller_not_in_the_mask)),
    Fault(RUNNING, "a shuffle whose lanes have different masks", launched(two_masks)),
    Fault(
        RUNNING,
        "a shuffle from a lane that takes no part, in check mode",
        launched(asks_an_absent_lane, block=24),
        check=True,
    ),
    Fault(
        RUNNING,
        "an `assert` that fails, a `raise`",
        lambda: asserts[1, WIDTH](-np.ones(WIDTH, np.float32), np.zeros(WIDTH, np.float32)),
    ),
    Fault(RUNNING, "two accesses that nothing orders, in check mode", race, check=True),
    Fault(RUNNING, "memory that nobody has written, in check mode", launched(sums_what_nobody_wrote), check=True),
    Fault(RUNNING, "a variable that not every thread has assigned, in check mode", launched(half_assigns), check=True),
    Fault(
        RUNNING,
        "a barrier across the grid that a part of the blocks reaches",
        lambda: some_blocks_meet[4, WIDTH](np.ones(WIDTH, np.float32), np.zeros(WIDTH, np.float32)),
    ),
    Fault(COMPILING, "a shared array whose shape is not constant", launched(shape_at_run_time)),
    Fault(COMPILING, "more than 48 KB of shared memory", launched(too_much_shared)),
    Fault(COMPILING, "a view of an array, kept over a barrier", launched(view_over_a_barrier)),
    Fault(COMPILING, "a barrier or shuffle in an operand that may be skipped", launched(shuffle_that_may_be_skipped)),
    Fault(COMPILING, "a synchronising device function with an early return", launched(returns_early)),
    Fault(COMPILING, "a shuffle of a type that shuffles do not move", launched(shuffles_a_byte)),
    Fault(COMPILING, "a loop that waits for another thread (a warning)", launched(waits)),
    Fault(COMPILING, "types that do not fit", launched(no_types)),
    Fault(COMPILING, "a variable that no line has assigned yet", launched(adds_to_nothing)),
    Fault(COMPILING, "a call of a plain Python function", launched(calls_python)),
    Fault(COMPILING, "a value returned", launched(returns_a_value)),
    Fault(COMPILING, "a list", launched(lists)),
    Fault(COMPILING, "`try`, `with`, `import` and their like", launched(tries)),
    Fault(COMPILING, "of cooperative groups, all but the grid's barrier", launched(asks_the_grid)),
    Fault(LAUNCHING, "no blocks and threads given", lambda: two_uses(np.ones(1), np.ones(1))),
    Fault(LAUNCHING, "too many threads", launched(two_uses, block=(64, 32))),
    Fault(
        LAUNCHING,
        "more blocks than can meet at a barrier across the grid",
        lambda: rotated[641, WIDTH](np.ones(1, np.float32), np.ones(1, np.float32), 1),
    ),
    Fault(LAUNCHING, "too few arguments", given(two_uses, np.ones(1))),
    Fault(LAUNCHING, "an argument that is no array or number", given(two_uses, [1.0], np.ones(1))),
    Fault(LAUNCHING, "every second column", given(two_uses, np.ones((4, 4))[:, ::2], np.ones(1))),
]
