"""The operands of instructions as C: registers, numbers, addresses; and the places where a thread stops."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tests.stage4_numba_cuda.machine.ptx import Kernel, PtxError

C_TYPES = {
    **{f"b{n}": f"u{n}" for n in (8, 16, 32, 64)},
    **{f"{sign}{n}": f"{sign}{n}" for sign in "us" for n in (8, 16, 32, 64)},
    "f32": "float",
    "f64": "double",
    "f16": "u16",
    "pred": "u8",
}
"""The C type in which a value of a PTX type is computed. Of an f16 that is its bits."""

FLOATS = ("f32", "f64")

INTEGER = "[us](16|32|64)"
"""A pattern for the types of whole numbers in arithmetic; not those of 8 bits, which are for memory and cvt only."""

FILES = {1: "p", 16: "h", 32: "w", 64: "d"}
"""The array of a thread's registers of that size. A register of 8 bits is one of 16."""

SPECIAL = {
    **{f"%tid.{axis}": f"t->tid[{i}]" for i, axis in enumerate("xyz")},
    **{f"%ctaid.{axis}": f"b->id[{i}]" for i, axis in enumerate("xyz")},
    **{f"%ntid.{axis}": f"b->launch->block[{i}]" for i, axis in enumerate("xyz")},
    **{f"%nctaid.{axis}": f"b->launch->grid[{i}]" for i, axis in enumerate("xyz")},
    "%laneid": "(t->number & 31)",
    "%lanemask_eq": "(1u << (t->number & 31))",
    "%lanemask_lt": "((1u << (t->number & 31)) - 1)",
    "%lanemask_le": "((2u << (t->number & 31)) - 1)",
    "%lanemask_gt": "(-2u << (t->number & 31))",
    "%lanemask_ge": "(-1u << (t->number & 31))",
    "%dynamic_smem_size": "b->launch->dynamic",
    "WARP_SZ": "32",
}


@dataclass(frozen=True)
class Instruction:
    """`fma.rn.f32 d, a, b, c` is Instruction(("rn", "f32"), ("d", "a", "b", "c"), its line), and fma its name."""

    modifiers: tuple[str, ...]
    operands: tuple[str, ...]
    line: int

    @property
    def kind(self) -> str:
        """The PTX type at its end."""
        return self.modifiers[-1]


@dataclass(frozen=True)
class Known:
    """An instruction that the machine knows.

    write: writes its C
    forms: a regular expression for all that may follow its name, a dot for each dot: "rn.f(32|64)". An instruction of
    another form is refused, since `write` may overlook what it does not expect.
    """

    write: Callable[[Translation, Instruction], str]
    forms: str

    def has(self, modifiers: tuple[str, ...]) -> bool:
        """Whether it is known in this form."""
        return re.fullmatch(self.forms.replace(".", r"\."), ".".join(modifiers)) is not None


class Translation:
    """The C of one kernel while it is made.

    meetings: what a warp does together, a case each; sites: the number of places where a thread stops
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.number: dict[str, int] = {}
        self.counts = dict.fromkeys(FILES, 0)
        for name, bits in kernel.registers.items():
            self.number[name] = self.counts[_file(bits)]
            self.counts[_file(bits)] += 1
        self.meetings: list[str] = []  # the C of what a warp does together, a case each
        self.sites = 0

    def register(self, name: str) -> str:
        """The C of a register."""
        if name not in self.kernel.registers:
            raise PtxError(f"{name!r} is no register")
        return f"r->{FILES[_file(self.kernel.registers[name])]}[{self.number[name]}]"

    def value(self, operand: str, kind: str) -> str:
        """A C expression for what an operand of this PTX type is worth."""
        c_type = C_TYPES[kind]
        if operand in self.kernel.registers:
            if kind in ("f32", "f64"):
                return f"AS({c_type}, {self.register(operand)})"
            return f"({c_type}){self.register(operand)}"
        if operand in SPECIAL:
            return f"({c_type}){SPECIAL[operand]}"
        if match := re.fullmatch(r"0[fFdD]([0-9A-Fa-f]{8}|[0-9A-Fa-f]{16})", operand):  # a float by its bits
            bits = f"0x{match.group(1)}ull"
            return {"f32": f"float_of({bits})", "f64": f"double_of({bits})"}.get(kind, bits)
        if re.fullmatch(r"-?(0[xX][0-9A-Fa-f]+|\d+)U?", operand):
            number = int(operand.rstrip("U"), 0)
            if kind == "pred":
                return str(int(number != 0))
            return f"({c_type}){number & (2**64 - 1)}ull"
        if operand in self.kernel.shared:
            return f"({c_type}){self.kernel.shared[operand].offset}"
        if operand in self.kernel.local:
            return f"({c_type}){self.kernel.local[operand].offset}"
        raise PtxError(f"unknown operand {operand!r}")

    def set(self, target: str, expression: str, kind: str) -> str:
        """The C that writes a value of this PTX type into a register. Whole numbers are widened by their sign."""
        if target == "_":
            return f"(void)({expression});"
        if kind in ("f32", "f64"):
            return f"AS({C_TYPES[kind]}, {self.register(target)}) = {expression};"
        return f"{self.register(target)} = ({C_TYPES[kind]})({expression});"

    def give(self, instruction: Instruction, expression: str, kind: str = "") -> str:
        """The same for the first operand, and the instruction's own type unless another is named."""
        return self.set(instruction.operands[0], expression, kind or instruction.kind)

    def elements(self, operand: str) -> list[str]:
        """The names in braces, or the one name."""
        return operand[1:-1].split(",") if operand.startswith("{") else [operand]

    def address(self, operand: str) -> str:
        """[register+number] as a 64-bit number."""
        match = re.fullmatch(r"\[([^+\]]+?)(?:\+(-?\d+))?\]", operand)
        if match is None:
            raise PtxError(f"unknown address {operand!r}")
        base, offset = match.group(1), int(match.group(2) or 0)
        bits = self.kernel.registers.get(base, 64)
        return f"({self.value(base, f'b{bits}')} + {offset & (2**bits - 1)}ull)"

    def memory(self, space: str, operand: str, size: int, line: int) -> str:
        """A pointer to so many bytes, which is checked: they exist, and the address is a multiple of their number."""
        address = self.address(operand)
        if space == "local":
            return f"local(r->local, sizeof r->local, {address}, {size}, {line})"
        if space == "shared":
            return f"shared(b, {address}, {size}, {line})"
        return f"GLOBAL({address}, {size}, {line})"

    def stop(self, state: str, line: int, more: str = "") -> str:
        """The thread stops here, and goes on behind."""
        self.sites += 1
        return f"t->at = {self.sites}; t->line = {line}; t->state = {state}; {more}return; case {self.sites}:;"

    def meeting(self, body: str, line: int, members: str = "") -> str:
        """The thread waits for those of its warp; `body` is what they then do together.

        members: the C of a mask of lanes; without it, all 32 have to come
        """
        waits_for = f"t->members = {members or '0xFFFFFFFFu'}; t->aligned = {int(not members)}; "
        code = self.stop("MEETS_WARP", line, waits_for)
        registers = "#define r ((Registers_@ *)lanes[lane])"
        self.meetings += [f"    case {self.sites}: {{", registers, f"        {body}", "#undef r", "    } break;"]
        return code


def _file(bits: int) -> int:
    return bits if bits == 1 else max(bits, 16)
