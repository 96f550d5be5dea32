"""Random CUDA kernels that are right by construction: free of races, and the same in every order of their threads.

`kernel_text(seed)` is the source of a module with one kernel `k`, its device functions, and GRID and BLOCK.
`arguments(module)` makes what it is launched with. fuzz_emulator.py runs them in every way the emulator knows.

How the rules are kept: each statement is written in a context, u, w or t. In u all live threads of the block are there,
so barriers may stand; in w all live lanes of a warp, so shuffles and votes may; in t anybody. A condition or a loop
bound that is made of uniform parts (p, q, n, constants, block votes) keeps u, one that is the same in a warp leads to w, any
other to t. Each shared array is at every moment either `own` (a thread touches its own cell only) or `open` (all may read
any cell, nobody writes), and only a barrier changes that; branches and loops end in the state they began in. Atomics
are used so that their order does not matter and their result is not looked at. Integers are kept small with `%`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from types import ModuleType

import numpy as np

BLOCKS = ((32,), (33,), (48,), (64,), (80,), (5,), (8, 5), (7, 3), (16, 4), (11, 6), (4, 3, 2))
GRIDS = ((1,), (2,), (3,), (2, 2))
LENGTH, PRIME = 97, 1009
INTS, ANY = ("a", "b", "c"), ("a", "b", "c", "t", "p", "n", "lane")
HEADER = '''"""Kernel of seed {seed}."""

import math

import numpy as np
from numba import float32, float64, int32, int64, uint32

from stage4_numba_cuda.emulator import cuda

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
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, distance)
        distance //= 2
    return cuda.shfl_sync(0xFFFFFFFF, value, 0)


@cuda.jit(device=True)
def neighbours(t, value):
    private = cuda.shared.array(T, int64)
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


class Generator:
    """The text of one kernel, drawn from a seed."""

    def __init__(self, seed: int) -> None:
        self.seed, self.random = seed, random.Random(seed)
        self.block, self.grid = self.pick(BLOCKS), self.pick(GRIDS)
        self.threads = int(np.prod(self.block))
        self.lines: list[str] = []
        self.names = 0
        self.states = {"s0": "own", "s1": "own", "s2": "own", "sa": "open"}
        self.can_leave = self.random.random() < 0.35
        # Of the innermost loop: the states that a jump out of its body has to find, and the context it runs in.
        self.loop_states: dict[str, str] | None = None
        self.loop_context: str | None = None

    # ---- small choices

    def pick(self, choices):  # type: ignore[no-untyped-def]
        return self.random.choice(choices)

    def number(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def new_name(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def write(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    # ---- expressions

    def small(self) -> str:
        """An integer that is not far from 0."""
        return self.pick((*ANY, "q", str(self.number(0, 40)), "xi[t % 97]", "pos[0]" if len(self.block) > 1 else "pos"))

    def integer(self, depth: int = 2) -> str:
        """An integer expression, of a few thousands at most."""
        if depth == 0:
            return self.small()
        x, y = self.integer(depth - 1), self.small()
        k = self.number(2, 9)
        return self.pick(
            (
                f"{x} + {y}",
                f"({x}) % 97 * {y}",
                f"{x} - {y} * 2",
                f"(({x}) ^ {self.number(1, 63)})",
                f"({x}) % 64 << {self.number(0, 3)}",
                f"(({x}) >> {self.number(0, 3)})",
                f"({x}) // ({y} % {k} + 1)",
                f"({x}) % ({y} % {k} + 2)",
                f"(-({x}))",
                f"(~{y} & 255)",
                f"abs({x})",
                f"min({x}, {y})",
                f"max({x}, {y}, {k})",
                f"({x} if {self.condition(0)} else {y})",
                f"several(({x}) % 100, {y})",
                f"int(f) % {PRIME}",
                f"({x} + flag)",
                "u % 1000",
                f"int(u >> {self.number(0, 9)}) % {PRIME}",
                f"np.int32(({x}) % {PRIME})",
                f"loc[({x}) % 4]",
                f"x2[({x}) % rows, {y} % cols]",
                f"xw[({x}) % {LENGTH}]",
                f"cuda.popc(({x}) & 1023)",
                f"(({x}) % 10) ** 2",
                f"cuda.ffs(({x}) % 100)",
                f"int(math.floor({self.real()} * 0.125))",
                *self.reads(x),
            )
        )

    def reads(self, x: str) -> list[str]:
        """Reads of shared memory that are allowed now."""
        found = []
        for name in ("s0", "s2"):
            cell = "t" if self.states[name] == "own" else f"({x}) % T"
            found += [f"s0[{cell}]" if name == "s0" else f"s2[({cell}) // W, ({cell}) % W]"] * 3
        if self.states["sa"] == "open":
            found.append(f"sa[({x}) % 8] % {PRIME}")
        return found

    def real(self) -> str:
        """A float expression of a few thousands at most."""
        cell = "t" if self.states["s1"] == "own" else f"({self.small()} + {self.number(0, 99)}) % T"
        return self.pick(
            (
                *(
                    "f",
                    "h",
                    "f * 0.5",
                    "h * 2.0",
                    "scale",
                    "w * 0.5",
                    "float(a)",
                    "h * HALF",
                    f"s1[{cell}]",
                    f"s1[{cell}]",
                ),
                f"{self.small()} / ({self.small()} % 7 + 1)",
                f"min(f, {self.number(1, 99)}.0)",
                "max(h, ZERO)",
                "math.sqrt(abs(f))",
                f"mixed({self.small()}, {self.small()})",
                f"xf[{self.small()} % {LENGTH}]",
                f"(f if {self.condition(0)} else a * 0.5)",
                "(f // 3.0)",
                "(f % 7.5)",
            )
        )

    def uniform(self) -> str:
        """An integer that is the same in all threads of a block."""
        return self.pick(
            ("p", "q", "n", "cuda.blockIdx.x", str(self.number(0, 9)), "(p + q) % 5", "xi[p % 97] % 6", "rows")
        )

    def condition(self, depth: int = 1) -> str:
        """A condition that differs from thread to thread."""
        simple = self.pick(
            (
                f"{self.small()} {self.pick(('<', '<=', '>', '==', '!='))} {self.small()}",
                f"{self.small()} % {self.number(2, 5)} == {self.number(0, 2)}",
                f"{self.number(0, 9)} < {self.pick(INTS)} <= {self.number(20, 900)}",
                "flag",
                "not flag",
                f"f > {self.number(0, 50)}.5",
                f"h < {self.small()}",
                f"u & {self.pick((1, 2, 4, 6))}",
            )
        )
        if depth == 0 or self.chance(0.6):
            return simple
        return f"({simple} {self.pick(('and', 'or'))} {self.condition(depth - 1)})"

    def uniform_condition(self) -> str:
        return self.pick(
            (
                f"({self.uniform()} + {self.uniform()}) % 2 == {self.number(0, 1)}",
                f"{self.uniform()} > {self.uniform()}",
                f"p < 3 or {self.uniform()} == 2",
            )
        )

    def warp_condition(self) -> str:
        return self.pick(
            (
                f"t // 32 == {self.number(0, 1)}",
                f"(t // 32 + p) % 2 == {self.number(0, 1)}",
                f"cuda.any_sync(0xFFFFFFFF, {self.condition(0)})",
                f"cuda.all_sync(0xFFFFFFFF, {self.condition(0)})",
            )
        )

    # ---- statements

    def statements(self, depth: int, nesting: int, context: str, loop: str | None, count: int) -> None:
        """`count` statements. loop: the context of the innermost loop; None outside loops."""
        start = len(self.lines)
        for _ in range(count):
            self.statement(depth, nesting, context, loop)
        if len(self.lines) == start:
            self.write(depth, "pass")

    def statement(self, depth: int, nesting: int, context: str, loop: str | None) -> None:
        leaves: list[tuple[int, Callable[[int, str], None]]] = [
            (9, self.assign),
            (3, self.assign_real),
            (2, self.memory),
        ]
        leaves += [(2, self.other_types), (2, self.atomic), (1, self.local)]
        blocks: list[tuple[int, Callable[[int, int, str], None]]] = [
            (4, self.branch),
            (3, self.for_loop),
            (2, self.while_loop),
        ]
        if context == "u":
            leaves += [(5, self.barrier), (2, self.uniform_assign), (2, self.call_synchronising)]
            blocks += [(2, self.vote_loop)]
        if context in "uw":
            leaves += [(4, self.shuffle), (3, self.vote)]
            leaves += [(1, self.half_warp)]
        if context == "u" and self.can_leave:
            leaves += [(1, self.leave)]
        if nesting > 0 and self.chance(0.4):
            weights = [weight for weight, _ in blocks]
            self.random.choices([make for _, make in blocks], weights)[0](depth, nesting, context)
        else:
            self.random.choices([make for _, make in leaves], [weight for weight, _ in leaves])[0](depth, context)
        if loop is not None and self.chance(0.08) and self.states == self.loop_states:
            condition = {"u": self.uniform_condition, "w": self.warp_uniform_jump, "t": self.condition}[loop]()
            # From a context inside the loop's own a jump would leave some threads of the loop behind.
            if context == loop:
                self.write(depth, f"if {condition}:")
                self.write(depth + 1, self.pick(("break", "continue")))

    def warp_uniform_jump(self) -> str:
        return f"(t // 32 + {self.uniform()}) % 3 == {self.number(0, 2)}"

    def assign(self, depth: int, context: str) -> None:
        name = self.pick(INTS)
        if self.chance(0.15):
            self.write(depth, f"{name} {self.pick(('+=', '-=', '^='))} ({self.integer(1)}) % 50")
            self.write(depth, f"{name} %= {PRIME}")
        elif self.chance(0.08):
            self.write(depth, f"a, b = b, ({self.integer(1)}) % {PRIME}")
        elif self.chance(0.08):
            pair = self.new_name("pair")
            self.write(depth, f"{pair} = ({self.small()}, {self.integer(1)})")
            self.write(depth, f"{name} = ({pair}[0] + {pair}[1]) % {PRIME}")
        elif self.chance(0.05):
            row = self.new_name("row")
            self.write(depth, f"{row} = x2[{self.small()} % rows]")
            self.write(depth, f"{name} = ({name} + {row}[{self.small()} % cols]) % {PRIME}")
        else:
            self.write(depth, f"{name} = ({self.integer()}) % {PRIME}")

    def assign_real(self, depth: int, context: str) -> None:
        self.write(
            depth,
            self.pick(
                (
                    f"f = f * 0.5 + {self.real()} * 0.25",
                    f"f = {self.real()}",
                    f"h = h * HALF + np.float32(({self.integer(1)}) % 64)",
                    f"h = np.float32({self.real()})",
                    "f += h",
                    "f *= 0.25",
                )
            ),
        )

    def other_types(self, depth: int, context: str) -> None:
        self.write(
            depth,
            self.pick(
                (
                    f"u = np.uint32(({self.integer(1)}) % 5000)",
                    f"u = np.uint32((u ^ (u >> 3)) + {self.number(1, 99)})",
                    f"flag = {self.condition()}",
                    "flag = not flag",
                    f"w = ({self.integer(1)}) % {PRIME}",
                    f"w = {self.real()}",
                    "w = h",
                )
            ),
        )

    def memory(self, depth: int, context: str) -> None:
        if self.states["s0"] == "own" and self.chance(0.5):
            self.write(
                depth,
                self.pick((f"s0[t] = ({self.integer(1)}) % {PRIME}", f"s0[t] = (s0[t] + {self.small()}) % {PRIME}")),
            )
        elif self.states["s2"] == "own" and self.chance(0.5):
            self.write(depth, f"s2[t // W, t % W] = ({self.integer(1)}) % {PRIME}")
        elif self.states["s1"] == "own":
            self.write(depth, f"s1[t] = {self.real()}")
        else:
            self.assign(depth, context)

    def local(self, depth: int, context: str) -> None:
        index = f"({self.small()}) % 4"
        self.write(
            depth, self.pick((f"loc[{index}] = ({self.integer(1)}) % {PRIME}", f"loc[{index}] ^= {self.small()} % 512"))
        )

    def atomic(self, depth: int, context: str) -> None:
        cell = f"({self.small()}) % 8"
        value = f"({self.integer(1)}) % {PRIME}"
        choices = [
            f"cuda.atomic.{name}(acc, {8 * i} + {cell}, {value})" for i, name in enumerate(("add", "sub", "max", "min"))
        ]
        choices += [
            f"cuda.atomic.{name}(acc32, {8 * i} + {cell}, {value})"
            for i, name in enumerate(("and_", "or_", "xor", "add"))
        ]
        choices += [
            f"cuda.atomic.inc(accu, {cell}, 5)",
            f"cuda.atomic.add(accf, {cell}, np.float32({self.small()} % 16))",
        ]
        if self.states["sa"] == "own":
            choices += [f"cuda.atomic.add(sa, {cell}, {value})"] * 6
        self.write(depth, self.pick(choices))

    def barrier(self, depth: int, context: str) -> None:
        """A barrier of some kind, and after it other shared arrays are open."""
        self.write(
            depth,
            self.pick(
                (
                    *["cuda.syncthreads()"] * 5,
                    f"p = cuda.syncthreads_count({self.condition(0)}) % 7",
                    f"a += cuda.syncthreads_or({self.condition(0)})",
                    f"b = (b + cuda.syncthreads_and({self.condition(0)})) % {PRIME}",
                )
            ),
        )
        for name, state in self.states.items():
            if self.chance(0.6):
                self.states[name] = "open" if state == "own" else "own"

    def restore(self, depth: int, states: dict[str, str]) -> None:
        """Back to these states, by a barrier where that takes one."""
        if self.states != states:
            self.write(depth, "cuda.syncthreads()")
            self.states = dict(states)

    def uniform_assign(self, depth: int, context: str) -> None:
        self.write(depth, f"{self.pick('pq')} = ({self.uniform()} + {self.uniform()}) % {self.number(3, 7)}")

    def call_synchronising(self, depth: int, context: str) -> None:
        name = self.pick(INTS)
        if self.states["s0"] == "own" and self.chance(0.4):
            self.write(depth, f"{name} = (rotated(s0, t, {name}, {self.uniform()}) + {self.small()}) % {PRIME}")
        elif self.chance(0.5):
            self.write(depth, f"{name} = neighbours(t, {self.small()}) % {PRIME}")
        else:
            self.write(depth, f"{name} = warp_sum({name}) % {PRIME}")

    def shuffle(self, depth: int, context: str) -> None:
        name, kind = self.pick(INTS), self.pick(("down", "up", "xor", "index"))
        if self.chance(0.15):
            name = self.pick("fh")
        lane = {
            "xor": self.pick(("1", "2", "16", "5")),
            "index": self.pick(("0", "7", "(lane + 3) % 32", "a % 32")),
        }.get(kind, str(self.number(1, 31)))
        function = {"index": "shfl_sync"}.get(kind, f"shfl_{kind}_sync")
        mask = self.pick(("0xFFFFFFFF", "0xFFFFFFFF", "-1", "cuda.activemask()"))
        if mask == "cuda.activemask()":
            mask = self.new_name("m")
            self.write(depth, f"{mask} = cuda.activemask()")
        call = f"cuda.{function}({mask}, {name}, {lane})"
        half = f"h = h * HALF + {call} * HALF"
        self.write(
            depth,
            {"f": f"f = f * 0.5 + {call} * 0.25", "h": half}.get(name, f"{name} = ({self.small()} + {call}) % {PRIME}"),
        )

    def vote(self, depth: int, context: str) -> None:
        name, condition = self.pick(INTS), self.condition()
        self.write(
            depth,
            self.pick(
                (
                    f"{name} = (cuda.ballot_sync(0xFFFFFFFF, {condition}) ^ {name}) % {PRIME}",
                    f"{name} += cuda.popc(cuda.ballot_sync(0xFFFFFFFF, {condition}))",
                    f"flag = cuda.any_sync(0xFFFFFFFF, {condition})",
                    f"flag = cuda.all_sync(0xFFFFFFFF, {condition})",
                    f"flag = cuda.eq_sync(0xFFFFFFFF, {condition})",
                    f"{name} = cuda.match_any_sync(0xFFFFFFFF, np.int32({name} % 4)) % {PRIME}",
                    "cuda.syncwarp()",
                )
            ),
        )
        if self.chance(0.15):
            lanes = self.new_name("m")
            self.write(depth, f"{lanes}, flag = cuda.match_all_sync(0xFFFFFFFF, np.int32({self.small()} % 2))")
            self.write(depth, f"{name} = ({name} + {lanes}) % {PRIME}")

    def half_warp(self, depth: int, context: str) -> None:
        name = self.pick(INTS)
        self.write(depth, "if lane < 16:")
        self.write(depth + 1, f"{name} = ({name} + cuda.shfl_xor_sync(0xFFFF, {name}, {self.number(1, 15)})) % {PRIME}")
        if self.chance(0.5):
            self.write(depth, "else:")
            self.write(
                depth + 1,
                f"{name} = (cuda.shfl_down_sync(0xFFFF0000, {self.pick(INTS)}, {self.number(1, 15)})) % {PRIME}",
            )

    def leave(self, depth: int, context: str) -> None:
        bound = self.number(max(1, self.threads // 2), self.threads)
        self.write(
            depth, self.pick((f"if t >= {bound}:", f"if t == {bound - 1}:", f"if {self.condition(0)} and t > {bound}:"))
        )
        self.write(depth + 1, "return")

    # ---- statements that hold others

    def branch(self, depth: int, nesting: int, context: str) -> None:
        inner = self.pick({"u": "uuwt", "w": "wwt", "t": "t"}[context])
        make = {"u": self.uniform_condition, "w": self.warp_condition, "t": self.condition}[inner]
        states, loop = dict(self.states), self.loop_context
        self.write(depth, f"if {make()}:")
        self.statements(depth + 1, nesting - 1, inner, loop, self.number(1, 3))
        self.restore(depth + 1, states)
        if self.chance(0.15) and inner != "w":
            self.write(depth, f"elif {make()}:")
            self.statements(depth + 1, nesting - 1, inner, loop, self.number(1, 2))
            self.restore(depth + 1, states)
        if self.chance(0.4):
            self.write(depth, "else:")
            self.statements(depth + 1, nesting - 1, inner, loop, self.number(1, 2))
            self.restore(depth + 1, states)

    def body(self, depth: int, nesting: int, context: str, count: int) -> None:
        """A loop's body: ends in the states it began in."""
        outside = self.loop_states, self.loop_context
        states = dict(self.states)
        self.loop_states, self.loop_context = states, context
        self.statements(depth, nesting - 1, context, context, count)
        self.restore(depth, states)
        self.loop_states, self.loop_context = outside

    def for_loop(self, depth: int, nesting: int, context: str) -> None:
        inner = self.pick({"u": "uuwt", "w": "wwt", "t": "t"}[context])
        i = self.new_name("i")
        bounds = {
            "u": (str(self.number(1, 3)), f"{self.uniform()} % 4", "0, p + 1, 2", "2, -1, -1", "1, 4"),
            "w": ("2", "t // 32 + 1", f"{self.uniform()} % 3", "(t // 32 + p) % 3"),
            "t": ("t % 3", f"{self.pick(INTS)} % 4", f"a % 2, b % 5, {self.number(1, 2)}"),
        }[inner]
        if self.chance(0.1):
            self.write(depth, f"for {i} in range({self.number(1, 3)}):")
            self.body(depth + 1, nesting, inner, self.number(1, 2))
            self.write(depth, f"b = (b + {i}) % {PRIME}")
            return
        self.write(depth, f"for {i} in range({self.pick(bounds)}):")
        if self.chance(0.4):
            self.write(depth + 1, f"{self.pick(INTS)} = ({self.small()} + {i} * {self.small()}) % {PRIME}")
        self.body(depth + 1, nesting, inner, self.number(1, 3))

    def while_loop(self, depth: int, nesting: int, context: str) -> None:
        inner = self.pick({"u": "uuwt", "w": "wwt", "t": "t"}[context])
        k = self.new_name("k")
        start = {"u": f"{self.uniform()} % 4", "w": "t // 32 + 1", "t": f"{self.pick(INTS)} % 4"}[inner]
        self.write(depth, f"{k} = {start}")
        if self.chance(0.3):
            self.write(depth, "while True:")
            self.write(depth + 1, f"{k} -= 1")
            self.write(depth + 1, f"if {k} < 0:")
            self.write(depth + 2, "break")
        else:
            extra = self.pick(("", "", f" and {self.condition(0)}" if inner == "t" else " and n > 0"))
            self.write(depth, f"while {k} > 0{extra}:")
            self.write(depth + 1, f"{k} -= 1")
        self.body(depth + 1, nesting, inner, self.number(1, 3))

    def vote_loop(self, depth: int, nesting: int, context: str) -> None:
        """Every thread has its own number of rounds; the block goes on while any of them has one left."""
        k = self.new_name("k")
        self.write(depth, f"{k} = {self.pick(INTS)} % {self.number(2, 4)}")
        states = dict(self.states)
        self.write(depth, f"while cuda.syncthreads_or({k} > 0):")
        self.write(depth + 1, f"{k} -= 1")
        self.body(depth + 1, nesting, "u", self.number(1, 2))
        assert self.states == states

    # ---- the whole

    def text(self) -> str:
        width = self.pick((4, 8, 5))
        x = "cuda.threadIdx.x"
        linear = (
            x,
            f"{x} + cuda.threadIdx.y * cuda.blockDim.x",
            f"{x} + {self.block[0]} * (cuda.threadIdx.y + cuda.threadIdx.z * cuda.blockDim.y)",
        )
        dimensions = len(self.block)
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
        self.statements(1, 3, "u", None, self.number(5, 12))
        return header + "\n".join(self.lines) + FOOTER


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
