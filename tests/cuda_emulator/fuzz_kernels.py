"""Random CUDA kernels that are right by construction: free of races, and the same in every order of their threads.

`kernel_text(seed)` is the source of a module with one kernel `k`, its device functions, and GRID and BLOCK.
`arguments(module)` makes what it is launched with. test_fuzz.py runs them in every way the emulator knows.

How the rules are kept: each statement is written in a context, u, w or t. In u all live threads of the block are
there, so barriers may stand; in w all live lanes of a warp, so shuffles and votes may; in t anybody. A condition or a
loop bound made of uniform parts (p, q, n, constants, block votes) keeps u, one that is the same in a warp leads to w,
any other to t. Each shared array is at every moment either `own` (a thread touches its own cell only) or `open` (all
may read any cell, nobody writes), and only a barrier changes that; branches and loops end in the state they began in.
activemask is not asked for: a device may answer what it likes. A vote at the beginning says which lanes the warp has.
Atomics are used so that their order does not matter and their result is not looked at. Integers are kept small with %.
"""

from __future__ import annotations

import re
from types import ModuleType

import numpy as np

from tests.cuda_emulator.fuzz_expressions import LENGTH
from tests.cuda_emulator.fuzz_statements import Statements

BLOCKS = ((32,), (33,), (48,), (64,), (80,), (5,), (8, 5), (7, 3), (16, 4), (11, 6), (4, 3, 2))
GRIDS = ((1,), (2,), (3,), (2, 2))
HEADER = '''"""Kernel of seed {seed}."""

import math

import numpy as np
from numba import float32, float64, int32, int64, uint32

from cuda_emulator import cuda

GRID, BLOCK = {grid}, {block}
T, W, H = {threads}, {width}, {height}
HALF, ZERO = np.float32(0.5), np.float32(0)


@cuda.jit(device=True)
def several(x, y):
    if x > y:
        return x - y
    if x % 3 == 0:
        return y * 2 + x
    return (x * 3 + y) % 100


@cuda.jit(device=True)
def mixed(x, y):
    z = x * 0.5
    for i in range(int(y) % 4):
        if z > 200.0:
            break
        z += i
    return z


@cuda.jit(device=True)
def rotated(buffer, t, value, distance):
    buffer[t] = value
    cuda.syncthreads()
    found = buffer[(t + distance) % T]
    cuda.syncthreads()
    return found


@cuda.jit(device=True)
def warp_sum(value):
    distance = 16
    while distance > 0:
        lanes = cuda.ballot_sync(0xFFFFFFFF, True)
        moved = cuda.shfl_down_sync(0xFFFFFFFF, value, distance)
        if lanes >> ((cuda.laneid + distance) & 31) & 1:  # a lane that takes no part has no defined value
            value += moved
        distance //= 2
    lanes = cuda.ballot_sync(0xFFFFFFFF, True)
    total = cuda.shfl_sync(0xFFFFFFFF, value, 0)
    if lanes & 1:
        value = total
    return value


@cuda.jit(device=True)
def neighbours(t, value):
    private = cuda.shared.array(T, int64)
    for i in range(T):  # a neighbour that has returned writes nothing, and what is unwritten differs between modes
        private[i] = 3
    cuda.syncthreads()
    private[t] = value
    cuda.syncthreads()
    total = private[t] + private[(t + 1) % T] * 2
    cuda.syncthreads()
    return total


@cuda.jit
def k(xi, xw, xu, xh, xf, x2, out, outf, acc, acc32, accu, accf, n, scale):
    s0 = cuda.shared.array(T, int64)
    s1 = cuda.shared.array(shape=T, dtype={float_kind})
    s2 = cuda.shared.array((H, W), {int_kind})
    sa = cuda.shared.array(8, int32)
    loc = cuda.local.array(4, int64)
    pos = cuda.grid({dimensions})
    rows, cols = x2.shape
    t = {linear}
    g = t + T * (cuda.blockIdx.x + cuda.blockIdx.y * cuda.gridDim.x)
    lane = t % 32
    m = cuda.ballot_sync(0xFFFFFFFF, True)
    a = t * 7 % 50
    b = xi[g % xi.shape[0]] % 60
    c = {position} + 1
    f = xf[t % xf.shape[0]]
    h = xh[g % xh.size]
    u = xu[t % xu.shape[0]]
    w = a
    flag = a > 20
    p = 2
    q = n + cuda.blockIdx.x
    for i in range(4):
        loc[i] = i * t % 13
    s0[t] = t * 3
    s1[t] = f
    s2[t // W, t % W] = b
    if t < 8:
        sa[t] = t
    elif t == 0:
        a = 1
    for z in range(t + T, 8, T):
        sa[z] = z
'''
FOOTER = """
    out[g] = (a * 31 + b * 17 + c + p * 5 + q + flag + (u % 1000) + loc[a % 4]) % 1000003
    outf[g] = f + h + w
"""


def without_unused(header: str, body: str) -> str:
    """The header without the shared arrays and the mask that the body does not use: statements cost compile time."""
    unused = [name for name in ("m", "s1", "s2", "sa") if not re.search(rf"\b{name}\b", body)]
    if "sa" in unused:
        first, last = header.index("    if t < 8:"), header.index("        sa[z] = z\n") + len("        sa[z] = z\n")
        header = header[:first] + header[last:]
    lines = header.splitlines(keepends=True)
    return "".join(line for line in lines if not any(re.match(rf"    {name}\b", line) for name in unused))


class Generator(Statements):
    """The text of one kernel, drawn from a seed."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.seed = seed
        self.block, self.grid = self.pick(BLOCKS), self.pick(GRIDS)
        self.dimensions, self.threads = len(self.block), int(np.prod(self.block))
        self.can_leave = self.random.random() < 0.35

    def text(self) -> str:
        width = self.pick((4, 8, 5))
        x = "cuda.threadIdx.x"
        linear = (
            x,
            f"{x} + cuda.threadIdx.y * cuda.blockDim.x",
            f"{x} + {self.block[0]} * (cuda.threadIdx.y + cuda.threadIdx.z * cuda.blockDim.y)",
        )
        dimensions = self.dimensions
        header = HEADER.format(
            seed=self.seed,
            grid=self.grid,
            block=self.block,
            threads=self.threads,
            width=width,
            height=-(-self.threads // width),
            float_kind=self.pick(("float32", "float64")),
            int_kind=self.pick(("int32", "int64", "np.int16")),
            dimensions=dimensions,
            linear=linear[dimensions - 1],
            position="pos % 9" if dimensions == 1 else "(pos[0] + pos[1]) % 9",
        )
        if self.can_leave and self.chance(0.5):
            self.leave(1, "u")
        self.write(1, "cuda.syncthreads()")
        if self.chance(0.06):  # long ones take Numba ten seconds and more; most faults show in short ones
            self.statements(1, 3, "u", None, self.number(5, 12))
        else:
            self.statements(1, 2, "u", None, self.number(2, 4))
        body = "\n".join(self.lines)
        return without_unused(header, body) + body + FOOTER


def kernel_text(seed: int) -> str:
    """The module of a random kernel."""
    return Generator(seed).text()


def arguments(module: ModuleType, seed: int) -> list[object]:
    """What the kernel is launched with: fresh arrays, the same for the same seed."""
    random_numbers = np.random.default_rng(seed)
    total = int(np.prod(module.GRID) * np.prod(module.BLOCK))
    return [
        random_numbers.integers(0, 100, LENGTH, dtype=np.int32),
        random_numbers.integers(0, 1000, LENGTH, dtype=np.int64),
        random_numbers.integers(0, 5000, LENGTH, dtype=np.uint32),
        (random_numbers.integers(0, 256, LENGTH) / 4).astype(np.float32),
        random_numbers.integers(0, 4096, LENGTH) / 64,
        random_numbers.integers(0, 50, (7, 11), dtype=np.int32),
        np.full(total, -1, np.int64),
        np.full(total, -1.0),
        np.full(32, 500, np.int64),
        np.full(32, 85, np.int32),
        np.zeros(8, np.uint32),
        np.zeros(8, np.float32),
        5,
        0.5,
    ]
