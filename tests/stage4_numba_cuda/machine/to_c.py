"""PTX to C: each kernel becomes a function that takes one thread as far as it can go by itself.

A thread goes on until it has to wait: for its block (bar), for its warp (shfl, ldmatrix, mma) or for another block (it
reads what others write by atomic operations). Then the function returns, and warps.h chooses who goes on. What a warp
does together is a second function.

Every instruction is written as the PTX manual defines it, and shares nothing with the kernels' source or the emulator.
An instruction that is not here raises PtxError, and so does one with a modifier that is not among its forms. The
instructions are in arithmetic.py, carry.py, bits.py, memory.py and waiting.py.

Source: NVIDIA, Parallel Thread Execution ISA, section 9 (the instruction set).
"""

from __future__ import annotations

import re

from tests.stage4_numba_cuda.machine.arithmetic import ARITHMETIC
from tests.stage4_numba_cuda.machine.bits import BIT_OPERATIONS
from tests.stage4_numba_cuda.machine.calls import replace_calls
from tests.stage4_numba_cuda.machine.carry import CARRY
from tests.stage4_numba_cuda.machine.memory import MEMORY
from tests.stage4_numba_cuda.machine.operands import FILES, Instruction, Translation
from tests.stage4_numba_cuda.machine.ptx import Kernel, Place, PtxError, Statement, parse
from tests.stage4_numba_cuda.machine.waiting import WAITING

INSTRUCTIONS = ARITHMETIC | BIT_OPERATIONS | CARRY | MEMORY | WAITING

END = "t->state = DONE; return;"


def translate(text: str) -> str:
    """The C program of all kernels in a PTX text, to be compiled beside warps.h. Raises PtxError."""
    kernels = parse(text)
    if not kernels:
        raise PtxError("no kernel in this text")
    for kernel in kernels:
        replace_calls(kernel)
    functions = [_functions(kernel, number) for number, kernel in enumerate(kernels)]
    rows = "\n".join(f"    {_row(kernel, number)}," for number, kernel in enumerate(kernels))
    return "\n".join(['#include "warps.h"', *functions, f"const Kernel kernels[] = {{\n{rows}\n    {{0}},\n}};", ""])


def _row(kernel: Kernel, number: int) -> str:
    """What a launch has to know of a kernel: Kernel in kernel.h."""
    functions = f"go_{number}, together_{number}, sizeof(Registers_{number})"
    sizes = f"{_size(kernel.shared)}, {_size(kernel.parameters)}, {len(kernel.parameters)}"
    return f'{{"{kernel.name}", {functions}, {sizes}, parameters_{number}}}'


def _size(places: dict[str, Place]) -> int:
    """The size of a space; a variable whose size a launch says begins at a multiple of 16 behind the others."""
    end = max((place.offset + place.size for place in places.values()), default=0)
    return -(-end // 16) * 16


def _functions(kernel: Kernel, number: int) -> str:
    """A kernel's registers, parameters and two functions."""
    translation = Translation(kernel)
    lines = [_line(statement, translation) for statement in kernel.statements]
    types = {1: "u8", 16: "u16", 32: "u32", 64: "u64"}
    members = "".join(f" {types[bits]} {FILES[bits]}[{count + 1}];" for bits, count in translation.counts.items())
    local = f" u8 local[{_size(kernel.local)}] __attribute__((aligned(16)));" if kernel.local else ""
    parameters = ", ".join(f"{{{place.offset}, {place.size}}}" for place in kernel.parameters.values()) or "{0, 0}"
    code = [
        f"// {kernel.name}",
        f"typedef struct {{ Thread thread;{members}{local} }} Registers_@;",
        f"static const Parameter parameters_@[] = {{{parameters}}};",
        "static void go_@(Thread *t, Block *b) {",
        "    Registers_@ *r = (Registers_@ *)t;",
        "    switch (t->at) {",
        "    case 0:;",
        *(f"    {line}" for line in lines),
        "    }",
        "    t->state = DONE;",
        "}",
        "static void together_@(Thread **lanes, Block *b, u32 members, u32 site) {",
        "    switch (site) {",
        *translation.meetings,
        "    default:;",
        "    }",
        "}",
    ]
    return "\n".join(code).replace("_@", f"_{number}")


def _line(statement: Statement, translation: Translation) -> str:
    """The C of one statement."""
    if statement.operation == "label":
        return f"{_label(statement.operands[0])}:;"
    try:
        code = _instruction(statement, translation)
        if not statement.guard:
            return code
        sign = "!" if statement.guard[1] == "!" else ""
        return f"if ({sign}{translation.register(statement.guard.lstrip('@!'))}) {{ {code} }}"
    except (PtxError, IndexError, ValueError) as error:
        said = error if isinstance(error, PtxError) else "operands of another number or kind"
        text = f"{statement.operation} {', '.join(statement.operands)}"
        raise PtxError(f"line {statement.line}: {text}: {said}") from error


def _instruction(statement: Statement, translation: Translation) -> str:
    """The C of an instruction, its guard left out. The one place where what is not known is refused."""
    if statement.operation in ("ret", "ret.uni", "exit"):
        return END
    if statement.operation in ("bra", "bra.uni"):
        return f"goto {_label(statement.operands[0])};"
    name, *modifiers = statement.operation.split(".")
    instruction = Instruction(tuple(modifiers), statement.operands, statement.line)
    if "cc" in modifiers and f"{name}.cc" in INSTRUCTIONS:
        name += ".cc"
    if name not in INSTRUCTIONS:
        raise PtxError("unknown instruction")
    if not INSTRUCTIONS[name].has(instruction.modifiers):
        raise PtxError("unknown form")
    return INSTRUCTIONS[name].write(translation, instruction)


def _label(name: str) -> str:
    return "L_" + re.sub(r"[$.]", "_", name)
