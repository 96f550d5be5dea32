"""Moves between registers and memory: instruction set 9.7.10 of the manual, atomic operations, and cp.async.

A thread that reads by ld.acquire, ld.volatile or an atomic operation stops behind it, so that others can go on
meanwhile: otherwise a loop that waits for another thread would never end.
"""

from __future__ import annotations

import re

from tests.stage4_numba_cuda.machine.operands import C_TYPES, Instruction, Known, Translation
from tests.stage4_numba_cuda.machine.ptx import BITS, PtxError

SPACES = ("global", "shared", "local", "param")


def _space(i: Instruction) -> str:
    """The space of an address. A generic one is of global memory: none of another space is ever made (cvta)."""
    return next((m for m in i.modifiers if m in SPACES), "global")


def _mov(t: Translation, i: Instruction) -> str:
    kind = i.kind
    target, source = i.operands
    if source.startswith("{"):  # the first element is the lowest
        elements = t.elements(source)
        bits = BITS[kind] // len(elements)
        words = (f"(u64)({t.value(name, f'b{bits}')}) << {bits * n}" for n, name in enumerate(elements))
        return t.set(target, " | ".join(words), kind)
    if target.startswith("{"):
        elements = t.elements(target)
        bits = BITS[kind] // len(elements)
        sets = (t.set(name, f"x >> {bits * n}", f"b{bits}") for n, name in enumerate(elements))
        return f"{{ u64 x = {t.value(source, kind)}; {' '.join(sets)} }}"
    if source == "%globaltimer":
        return f"{t.set(target, 'nanoseconds()', kind)} {t.stop('YIELDS', i.line)}"
    return t.set(target, t.value(source, kind), kind)


def _cvta(t: Translation, i: Instruction) -> str:
    return t.give(i, t.value(i.operands[1], "u64"))  # generic addresses are those of global memory here


def _elements(t: Translation, i: Instruction, operand: str) -> list[str]:
    """The registers that a load or a store names, as many as its vector has."""
    found = t.elements(operand)
    if len(found) != next((int(m[1]) for m in i.modifiers if m in ("v2", "v4")), 1):
        raise PtxError("a vector of another length")
    return found


def _ld(t: Translation, i: Instruction) -> str:
    kind, space = i.kind, _space(i)
    targets = _elements(t, i, i.operands[0])
    if space == "param":
        match = re.fullmatch(r"\[([%\w$.]+)(?:\+(\d+))?\]", i.operands[1])
        if match is not None and match.group(1) in t.kernel.local:  # what a call passes
            space = "local"
    if space == "param":
        if match is None or match.group(1) not in t.kernel.parameters:
            raise PtxError("unknown parameter")
        offset = t.kernel.parameters[match.group(1)].offset + int(match.group(2) or 0)
        pointer = f"(b->launch->parameters + {offset})"
    else:
        pointer = t.memory(space, i.operands[1], BITS[kind] // 8 * len(targets), i.line)
    sets = (t.set(name, f"READ({C_TYPES[kind]}, m, {n})", kind) for n, name in enumerate(targets))
    code = f"{{ const u8 *m = {pointer}; {' '.join(sets)} }}"
    waits = any(m in ("acquire", "volatile", "relaxed") for m in i.modifiers)
    return f"{code} {t.stop('YIELDS', i.line)}" if waits else code


def _st(t: Translation, i: Instruction) -> str:
    kind = i.kind
    space = _space(i)
    if space == "param":  # what a call passes; a kernel's own parameters are only read
        space = "local"
    sources = _elements(t, i, i.operands[1])
    pointer = t.memory(space, i.operands[0], BITS[kind] // 8 * len(sources), i.line)
    c_type = C_TYPES[kind]
    sets = (f"WRITE({c_type}, m, {n}, {t.value(name, kind)});" for n, name in enumerate(sources))
    return f"{{ u8 *m = {pointer}; {' '.join(sets)} }}"


def _red(t: Translation, i: Instruction) -> str:
    return _changed(t, i, None, *i.operands)


def _atom(t: Translation, i: Instruction) -> str:
    return _changed(t, i, *i.operands)


def _changed(t: Translation, i: Instruction, target: str | None, place: str, *given: str) -> str:
    kind, c_type = i.kind, C_TYPES[i.kind]
    pointer = t.memory(_space(i), place, BITS[kind] // 8, i.line)
    values = [t.value(operand, kind) for operand in given]
    named = {
        "add": f"was + {values[0]}",
        "min": f"was < {values[0]} ? was : {values[0]}",
        "max": f"was > {values[0]} ? was : {values[0]}",
        "and": f"was & {values[0]}",
        "or": f"was | {values[0]}",
        "xor": f"was ^ {values[0]}",
        "exch": values[0],
        "inc": f"was >= {values[0]} ? 0 : was + 1",
        "dec": f"!was || was > {values[0]} ? {values[0]} : was - 1",
        "cas": f"was == {values[0]} ? {values[-1]} : was",
    }
    expression = next(named[m] for m in i.modifiers if m in named)
    keep = t.set(target, "was", kind) if target else ""
    change = f"{c_type} was = READ({c_type}, m, 0); WRITE({c_type}, m, 0, {expression}); {keep}"
    return f"{{ u8 *m = {pointer}; {change} }} {t.stop('YIELDS', i.line)}"


def _cp(t: Translation, i: Instruction) -> str:
    if "cg" in i.modifiers:
        if i.operands[2:] != ("16",):
            raise PtxError("unknown copy")
        to = t.memory("shared", i.operands[0], 16, i.line)
        return f"copy_later(b, t, {to}, {t.memory('global', i.operands[1], 16, i.line)});"
    if "commit_group" in i.modifiers:
        return "commit(t);"
    return f"wait_for_copies(t, {-1 if 'wait_all' in i.modifiers else int(i.operands[0])});"


SCOPE = "(cta|cluster|gpu|sys)"
TYPE = "([bus](8|16|32|64)|f(32|64))"
PLACE = f"({'|'.join(SPACES)})"
REDUCED = "add.([us]32|u64|f(32|64))|(min|max).[us](32|64)|(and|or|xor).b(32|64)|(inc|dec).u32"
CHANGE = f"((relaxed|acquire|release|acq_rel).{SCOPE}.)?((global|shared).)?"

MEMORY = {
    "mov": Known(_mov, "pred|[bus](16|32|64)|f(32|64)"),
    "cvta": Known(_cvta, "to.global.u64"),
    "ld": Known(_ld, f"((volatile|(relaxed|acquire).{SCOPE}).)?({PLACE}.)?(nc.)?(v[24].)?{TYPE}"),
    "st": Known(_st, f"((volatile|(relaxed|release).{SCOPE}).)?({PLACE}.)?(v[24].)?{TYPE}"),
    "red": Known(_red, f"{CHANGE}({REDUCED})"),
    "atom": Known(_atom, f"{CHANGE}({REDUCED}|(exch|cas).b(32|64))"),
    "cp": Known(_cp, "async.(cg.shared.global|commit_group|wait_group|wait_all)"),
}
