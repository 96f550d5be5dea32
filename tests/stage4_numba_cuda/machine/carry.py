"""Sums of whole numbers that are longer than a register: instruction set 9.7.2 of the manual.

An instruction with .cc keeps the carry of its sum, or the borrow of its difference, in a flag of the thread; addc, subc
and madc take it in.
"""

from __future__ import annotations

from functools import partial

from tests.stage4_numba_cuda.machine.arithmetic import product
from tests.stage4_numba_cuda.machine.operands import C_TYPES, Instruction, Known, Translation
from tests.stage4_numba_cuda.machine.ptx import BITS

WIDE = "(unsigned __int128)"


def _summed(sign: str, carried: bool, t: Translation, i: Instruction) -> str:
    kind = i.kind.replace("s", "u")
    a, b = (f"{WIDE}{t.value(operand, kind)}" for operand in i.operands[1:3])
    return _kept(t, i, f"{a} {sign} {b}{f' {sign} t->carry' * carried}")


def _mad(carried: bool, t: Translation, i: Instruction) -> str:
    found, kind = product(t, i)
    unsigned = kind.replace("s", "u")
    part = f"{WIDE}({C_TYPES[unsigned]})({found})"
    return _kept(t, i, f"{part} + {t.value(i.operands[3], unsigned)}{' + t->carry' * carried}")


def _kept(t: Translation, i: Instruction, expression: str) -> str:
    """The C that writes the sum, and the bit above it into the flag if the instruction says so."""
    flag = f"t->carry = sum >> {BITS[i.kind]} & 1;" * ("cc" in i.modifiers)
    return f"{{ unsigned __int128 sum = {expression}; {t.give(i, 'sum')} {flag} }}"


CARRY = {
    "add.cc": Known(partial(_summed, "+", False), "cc.[us](32|64)"),
    "addc": Known(partial(_summed, "+", True), "(cc.)?[us](32|64)"),
    "sub.cc": Known(partial(_summed, "-", False), "cc.[us](32|64)"),
    "subc": Known(partial(_summed, "-", True), "(cc.)?[us](32|64)"),
    "mad.cc": Known(partial(_mad, False), "(lo|hi).cc.[us](32|64)"),
    "madc": Known(partial(_mad, True), "(lo|hi).(cc.)?[us](32|64)"),
}
