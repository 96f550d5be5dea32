"""Formulas of the weeks' pages, TeX as far as these pages use it, as a tree that the page draws as MathML.

tree(text)    [kind, …]: ["row", part, …], ["frac", above, below], ["sqrt", part], ["sub", part, below],
              ["sup", part, above], ["both", part, below, above], and the words of MathML: ["mi", text], ["mn", text],
              ["mo", text], ["mtext", text]
"""

from __future__ import annotations

import re
from typing import Any

Tree = list[Any]

_TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|[0-9]+(?:[.,][0-9]+)*|[a-zA-Z]|[{}_^]|\S")

_SIGNS = {
    "partial": "∂",
    "top": "\N{DOWN TACK}",
    "beta": "β",
    "leftarrow": "←",
    "varepsilon": "ε",
    "cdot": "·",
    "eta": "η",
    "mu": "μ",
    "lambda": "λ",
    "lVert": "‖",
    "rVert": "‖",
    "approx": "≈",
    "odot": "⊙",
    "sum": "∑",
}
_LETTERS = set("βεημλ")
_WORDS = {"log", "max", "min", "exp", "tanh"}
_SPACES = {"qquad": "\u2003\u2003", "quad": "\u2003", ",": "\u2009", " ": " ", ";": "\u2005"}
_NOTHING = {"textstyle", "Bigl", "Bigr", "left", "right", "displaystyle"}


def tree(text: str) -> Tree:
    """A formula as a tree. What is not known stays as it is written."""
    reader = _Reader(text)
    return ["row", *reader.row("")]


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def next(self) -> str:
        """The next token, "" at the end."""
        found = _TOKEN.search(self.text, self.at)
        if found is None:
            self.at = len(self.text)
            return ""
        self.at = found.end()
        return found[0]

    def row(self, end: str) -> list[Tree]:
        """Parts up to a closing bracket, or to the end of the text."""
        parts: list[Tree] = []
        while (token := self.next()) and token != end:
            if token in ("_", "^"):
                parts.append(_attached(parts.pop() if parts else ["mi", ""], token, self.group()))
            elif (part := self.part(token)) is not None:
                parts.append(part)
        return parts

    def group(self) -> Tree:
        """What stands in braces, or the next token."""
        token = self.next()
        return ["row", *self.row("}")] if token == "{" else self.part(token) or ["row"]

    def part(self, token: str) -> Tree | None:
        """The tree of a token, and of what it takes with it; None for what is not seen."""
        name = token[1:] if token.startswith("\\") else ""
        if token == "{":
            return ["row", *self.row("}")]
        if name == "frac":
            return ["frac", self.group(), self.group()]
        if name == "sqrt":
            return ["sqrt", self.group()]
        if name == "text":
            return ["mtext", self.raw()]
        if name in _SPACES:
            return ["mtext", _SPACES[name]]
        if name in _NOTHING:
            return None
        if name in _WORDS:
            return ["mi", name]
        sign = _SIGNS.get(name, name or token)
        if token[0].isdigit():
            return ["mn", token]
        return [
            "mi" if sign in _LETTERS or sign.isalpha() else "mo",
            "\N{MINUS SIGN}" if sign == "-" else sign,
        ]

    def raw(self) -> str:
        """The text in braces as it is written."""
        found = re.compile(r"\s*\{([^{}]*)\}").match(self.text, self.at)
        if found is None:
            return ""
        self.at = found.end()
        return found[1]


def _attached(part: Tree, sign: str, what: Tree) -> Tree:
    """A part with something below or above it; both, where it has the other already."""
    if sign == "^" and part[0] == "sub":
        return ["both", part[1], part[2], what]
    if sign == "_" and part[0] == "sup":
        return ["both", part[1], what, part[2]]
    return ["sub" if sign == "_" else "sup", part, what]
