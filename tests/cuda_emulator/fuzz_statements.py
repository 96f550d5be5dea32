"""The statements of random kernels, each in a context: all threads of the block, all lanes of a warp, or anybody."""

from __future__ import annotations

from collections.abc import Callable

from tests.cuda_emulator.fuzz_expressions import INTS, PRIME, Expressions


class Statements(Expressions):
    """Writes statements.

    lines: the text so far; names: how many new names it holds
    can_leave: whether threads may return early
    loop_states, loop_context: of the innermost loop: the states that a jump out of its body has to find, and the
        context it runs in; None outside loops
    """

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.lines: list[str] = []
        self.names = 0
        self.threads = 1
        self.can_leave = False
        self.loop_states: dict[str, str] | None = None
        self.loop_context: str | None = None

    def new_name(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def write(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

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
        mask = self.pick(("0xFFFFFFFF", "0xFFFFFFFF", "-1", "m"))
        call = f"cuda.{function}({mask}, {name}, {lane})"
        half = f"h * HALF + {call} * HALF"
        value = {"f": f"f * 0.5 + {call} * 0.25", "h": half}.get(name, f"({self.small()} + {call}) % {PRIME}")
        source = {"index": lane, "xor": f"(lane ^ {lane})", "up": f"(lane - {lane})", "down": f"(lane + {lane})"}[kind]
        self.moved(depth, name, value, mask, source)

    def moved(self, depth: int, name: str, value: str, mask: str, source: str) -> None:
        """Give `name` the value with a shuffle in it, where the lane it reads from takes part: else it is undefined."""
        lanes, new = self.new_name("m"), self.new_name("v")
        self.write(depth, f"{lanes} = cuda.ballot_sync({mask}, True)")
        self.write(depth, f"{new} = {value}")
        self.write(depth, f"if {lanes} >> ({source} & 31) & 1:")
        self.write(depth + 1, f"{name} = {new}")

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
        distance = self.number(1, 15)
        value = f"({name} + cuda.shfl_xor_sync(0xFFFF, {name}, {distance})) % {PRIME}"
        self.moved(depth + 1, name, value, "0xFFFF", f"(lane ^ {distance})")
        if self.chance(0.5):
            self.write(depth, "else:")
            other, distance = self.pick(INTS), self.number(1, 15)
            value = f"(cuda.shfl_down_sync(0xFFFF0000, {other}, {distance})) % {PRIME}"
            self.moved(depth + 1, name, value, "0xFFFF0000", f"(lane + {distance})")

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
