"""Write the transforms of Winograd's convolution as C: stage3_c/csrc/winograd.h.

    python scripts/derive_winograd.py            # writes the header

The matrices come from shared/checks/winograd.py, in fractions. Here each becomes a function without loops that
multiplies a vector by it, in as few operations as its symmetry allows.
"""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path

from shared.checks.winograd import KERNEL, POINTS, Matrix, is_exact, matrices, transposed

HEADER = Path(__file__).resolve().parent.parent / "stage3_c" / "csrc" / "winograd.h"

Terms = dict[str, Fraction]


def function(name: str, comment: str, matrix: Matrix) -> str:
    """C for to = matrix * from. What two inputs or two outputs share is computed once: a point and its negative have
    the same even powers and opposite odd ones."""
    lines: list[str] = []
    rows = _share_columns(matrix, lines)
    _share_rows(rows, lines)
    body = "\n".join(f"    {line}" for line in lines)
    head = f"static inline __attribute__((always_inline)) void {name}("
    return f"/* {comment} */\n{head}const vector *from, vector *to) {{\n{body}\n}}\n"


def _share_columns(matrix: Matrix, lines: list[str]) -> list[Terms]:
    """The rows as sums of named inputs; a sum and a difference stand for two columns that differ by signs only."""
    columns = transposed(matrix)
    names: list[tuple[str, list[Fraction]]] = []
    left = list(range(len(columns)))
    while left:
        j = left.pop(0)
        twin = next((k for k in left if _twins(columns[j], columns[k])), None)
        if twin is None:
            names.append((f"from[{j}]", columns[j]))
            continue
        left.remove(twin)
        for word, sign in (("sum", 1), ("difference", -1)):
            values = [a if a == sign * b else Fraction(0) for a, b in zip(columns[j], columns[twin], strict=True)]
            lines.append(f"const vector {word}{j}{twin} = from[{j}] {'+' if sign > 0 else '-'} from[{twin}];")
            names.append((f"{word}{j}{twin}", values))
    return [{name: values[i] for name, values in names if values[i]} for i in range(len(matrix))]


def _share_rows(rows: list[Terms], lines: list[str]) -> None:
    """Write each row; for two rows that differ by signs only, what they have in common plus and minus the rest."""
    left = list(range(len(rows)))
    while left:
        i = left.pop(0)
        twin = next((k for k in left if rows[i].keys() == rows[k].keys() and _twins(rows[i], rows[k])), None)
        if twin is None:
            lines.append(f"to[{i}] = {_expression(rows[i])};")
            continue
        left.remove(twin)
        same = {name: c for name, c in rows[i].items() if rows[twin][name] == c}
        other = {name: c for name, c in rows[i].items() if name not in same}
        lines.append(f"const vector same{i}{twin} = {_expression(same)};")
        lines.append(f"const vector other{i}{twin} = {_expression(other)};")
        lines.append(f"to[{i}] = same{i}{twin} + other{i}{twin};")
        lines.append(f"to[{twin}] = same{i}{twin} - other{i}{twin};")


def _twins(a: list[Fraction] | Terms, b: list[Fraction] | Terms) -> bool:
    """Whether all numbers agree but for signs, some with the same sign and some with opposite ones."""
    keys = a if isinstance(a, dict) else range(len(a))
    pairs = [(a[key], b[key]) for key in keys]  # type: ignore[index]
    alike = all(abs(x) == abs(y) for x, y in pairs)
    return alike and any(x == y != 0 for x, y in pairs) and any(x == -y != 0 for x, y in pairs)


def _expression(terms: Terms) -> str:
    """A sum; what is multiplied by 1 comes first, so that each of the others is one multiply-add."""
    text = ""
    for name, coefficient in sorted(terms.items(), key=lambda item: (abs(item[1]) != 1, item[1] < 0)):
        size = abs(coefficient)
        factor = name if size == 1 else f"{_number(size)} * {name}"
        sign = "-" if coefficient < 0 else "+"
        text += f" {sign} {factor}" if text else (f"-{factor}" if sign == "-" else factor)
    return text


def _number(value: Fraction) -> str:
    if value.denominator == 1:
        return f"(real){value.numerator}"
    return f"(real)({value.numerator}.0 / {value.denominator})"


def header() -> str:
    """The whole of winograd.h."""
    parts = [
        "/* The transforms of Winograd's convolution, written by scripts/derive_winograd.py: change that, not this.\n\n"
        "   y = AT [(G g) * (BT d)], * element by element: F(m, 3), m outputs y of m + 2 inputs d and 3 weights g.\n"
        "   Each function is the product of one of the matrices with a vector, for LANES vectors side by side. */\n",
        "#ifndef WINOGRAD_H\n#define WINOGRAD_H\n",
        '#include "vectors.h"\n',
    ]
    for outputs in POINTS:
        at, g, bt = matrices(outputs)
        size = outputs + KERNEL - 1
        parts += [
            function(f"winograd{outputs}_input", f"BT d: {size} inputs", bt),
            function(f"winograd{outputs}_kernel", f"G g: 3 weights to {size}", g),
            function(f"winograd{outputs}_output", f"AT m: {size} products to {outputs} outputs", at),
        ]
    return "\n".join([*parts, "#endif\n"])


if __name__ == "__main__":
    for each in POINTS:
        assert is_exact(each), f"F({each}, 3) is not a correlation"
    Path(sys.argv[1] if len(sys.argv) > 1 else HEADER).write_text(header(), encoding="utf-8")
