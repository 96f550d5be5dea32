"""The places of a kernel where a thread of a walk stops, numbered in the order in which a thread comes to them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["line", "enter", "round", "read", "write", "atomic", "call", "return"]


@dataclass(frozen=True)
class Mark:
    """One place.

    kind: "line" before a statement; "enter" before a loop and "round" before each of its iterations; "read", "write"
        and "atomic" at an access; "call" and "return" around a call of a device function
    statement: the number of the mark at its statement's beginning; file, line: of the statement
    function: the function that it is in
    loops: the "enter" marks of the loops around it, the outermost first
    text: the source of an access, like "tile_a[ty, k]"; "for" or "while" at "enter"
    assigns: the variables that its statement assigns
    """

    kind: Kind
    statement: int
    file: str
    line: int
    function: str
    loops: tuple[int, ...]
    text: str = ""
    assigns: tuple[str, ...] = ()


@dataclass
class Plan:
    """What rewriting the functions of a kernel finds out.

    removed: (file, line) of the barriers that are left out; marks: of all functions
    declared: {(file, line, column) of a call like cuda.shared.array: the name of the variable that holds the array}
    """

    removed: frozenset[tuple[str, int]] = frozenset()
    marks: list[Mark] = field(default_factory=list)
    declared: dict[tuple[str, int, int], str] = field(default_factory=dict)
