"""What random kernels are made of: choices, and expressions that stay small and never read what they must not."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

LENGTH, PRIME = 97, 1009
INTS, ANY = ("a", "b", "c"), ("a", "b", "c", "t", "p", "n", "lane")

Choice = TypeVar("Choice")


class Expressions:
    """Draws expressions.

    random: where choices come from
    dimensions: of a block
    states: what may be done with each shared array now: own or open (fuzz_kernels.py)
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.dimensions = 1
        self.states = {"s0": "own", "s1": "own", "s2": "own", "sa": "open"}

    # ---- small choices

    def pick(self, choices: Sequence[Choice]) -> Choice:
        return self.random.choice(choices)

    def number(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    # ---- expressions

    def small(self) -> str:
        """An integer that is not far from 0."""
        return self.pick((*ANY, "q", str(self.number(0, 40)), "xi[t % 97]", "pos[0]" if self.dimensions > 1 else "pos"))

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
