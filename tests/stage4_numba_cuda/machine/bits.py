"""Bits of a word counted, found, reversed, inserted and extracted: instruction set 9.7.1 of the manual."""

from __future__ import annotations

from functools import partial

from tests.stage4_numba_cuda.machine.operands import Instruction, Known, Translation
from tests.stage4_numba_cuda.machine.ptx import BITS


def _counted(function: str, t: Translation, i: Instruction) -> str:
    """popc and clz: a 32-bit number, whatever the type of the operand."""
    return t.give(i, f"{function}({t.value(i.operands[1], i.kind)}, {BITS[i.kind]})", "u32")


def _brev(t: Translation, i: Instruction) -> str:
    return t.give(i, f"reversed({t.value(i.operands[1], i.kind)}, {BITS[i.kind]})")


def _bfind(t: Translation, i: Instruction) -> str:
    """The place of the highest bit that differs from the sign; 0xFFFFFFFF if there is none."""
    kind, bits = i.kind, BITS[i.kind]
    x = t.value(i.operands[1], kind)
    unsigned = t.value(i.operands[1], kind.replace("s", "u"))
    word = f"({x} < 0 ? ~{unsigned} : {unsigned})" if kind[0] == "s" else unsigned
    zeros = f"zeros_above({word}, {bits})"
    place = zeros if "shiftamt" in i.modifiers else f"{bits - 1} - {zeros}"
    return t.give(i, f"{zeros} == {bits} ? 0xFFFFFFFFu : {place}", "u32")


def _bfi(t: Translation, i: Instruction) -> str:
    kind = i.kind
    field, into = (t.value(operand, kind) for operand in i.operands[1:3])
    at, length = (t.value(operand, "u32") for operand in i.operands[3:])
    return t.give(i, f"inserted({field}, {into}, {at}, {length}, {BITS[kind]})")


def _bfe(t: Translation, i: Instruction) -> str:
    x = t.value(i.operands[1], i.kind)
    at, length = (t.value(operand, "u32") for operand in i.operands[2:])
    return t.give(i, f"extracted({x}, {at}, {length}, {BITS[i.kind]})")


BIT_OPERATIONS = {
    "popc": Known(partial(_counted, "bits_in"), "b(32|64)"),
    "clz": Known(partial(_counted, "zeros_above"), "b(32|64)"),
    "brev": Known(_brev, "b(32|64)"),
    "bfind": Known(_bfind, "(shiftamt.)?[us](32|64)"),
    "bfi": Known(_bfi, "b(32|64)"),
    "bfe": Known(_bfe, "u(32|64)"),
}
