"""Functions in PTX: each call is replaced by the statements of the function, so that it may wait as a kernel may.

A function's registers and labels get a name of their own for each call, and its parameters are the variables that the
call passes. A function that calls itself has no such form, and is refused.

Source: NVIDIA, Parallel Thread Execution ISA, section 7 (abstracting the ABI) and 9.7.12 (call, ret).
"""

from __future__ import annotations

import re
from dataclasses import replace

from tests.stage4_numba_cuda.machine.ptx import Kernel, PtxError, Statement

OWN_NAME = re.compile(r"[%$_A-Za-z][\w$.]*")


def replace_calls(kernel: Kernel, inside: tuple[str, ...] = ()) -> None:
    """Put functions in the place of their calls, in a kernel or in a function that is called itself.

    inside: the functions whose calls led here. Raises PtxError for a call of a function that is not in the text.
    """
    made: list[Statement] = []
    for number, statement in enumerate(kernel.statements):
        if statement.operation.partition(".")[0] != "call":
            made.append(statement)
            continue
        results, name, arguments = _parts(statement)
        if name not in kernel.functions or name in inside:
            reason = "calls itself" if name in inside else "is not in this text"
            raise PtxError(f"line {statement.line}: the function {name} {reason}")
        known = kernel.functions[name]
        function = replace(known, registers=dict(known.registers), local=dict(known.local))
        replace_calls(function, (*inside, name))
        made += _body(function, kernel, statement, [*results, *arguments], f"call{number}")
    kernel.statements = made


def _parts(statement: Statement) -> tuple[list[str], str, list[str]]:
    """(results, name, arguments) of a call."""
    *results, name = statement.operands[: 2 if statement.operands[0].startswith("(") else 1]
    given = "".join(statement.operands[len(results) + 1 :])
    return _listed("".join(results)), name, _listed(given)


def _listed(names: str) -> list[str]:
    return [name for name in names.strip("()").split(",") if name]


def _body(function: Kernel, kernel: Kernel, call: Statement, passed: list[str], mark: str) -> list[Statement]:
    """The function's statements for one call, whose registers and variables become the kernel's."""
    named = dict(zip((*function.results, *function.parameters), passed, strict=True))
    for register, bits in function.registers.items():
        named[register] = f"{register}.{mark}"
        kernel.registers[named[register]] = bits
    end = max((place.offset + place.size for place in kernel.local.values()), default=0)
    for variable, place in function.local.items():
        named[variable] = f"{variable}.{mark}"
        kernel.local[named[variable]] = replace(place, offset=-(-end // 16) * 16 + place.offset)
    labels = (statement.operands[0] for statement in function.statements if statement.operation == "label")
    named |= {label: f"{label}.{mark}" for label in labels}

    def own(text: str) -> str:
        return OWN_NAME.sub(lambda match: named.get(match.group(), match.group()), text)

    behind = f"end.{mark}"
    skip = "!" if call.guard[1:2] != "!" else ""
    made = [replace(call, operation="bra", operands=(behind,), guard=f"@{skip}{call.guard.lstrip('@!')}")]
    for statement in function.statements:
        changed = replace(statement, operands=tuple(map(own, statement.operands)), guard=own(statement.guard))
        if statement.operation.partition(".")[0] == "ret":
            changed = replace(changed, operation="bra", operands=(behind,))
        made.append(changed)
    return [*made[not call.guard :], replace(call, operation="label", operands=(behind,), guard="")]
