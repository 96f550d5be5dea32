"""Finds functions in C source. It knows just enough C to tell code from comments and to match braces."""

from __future__ import annotations

import re

_NOT_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


def c_function(text: str, name: str) -> tuple[int, int, int]:
    """The lines of a definition, from 1: (start of the declaration, opening brace, closing brace).

    name: the function's plain name, or what stands in NAME(...)
    Raises ValueError if the text has no such definition, or its braces do not match.
    """
    code = code_of(text)
    named = rf"(?:NAME\(\s*{re.escape(name)}\s*\)|(?<![\w(]){re.escape(name)})\s*\("
    for match in re.finditer(named, code):
        after = _closing(code, match.end() - 1, "(", ")")
        if after is None:
            continue
        brace = re.compile(r"\s*\{").match(code, after + 1)
        if brace is None:
            continue  # a call, or a declaration
        end = _closing(code, brace.end() - 1, "{", "}")
        if end is None:
            raise ValueError(f"the braces of {name} do not match")
        start = _declaration_start(code, match.start())
        return _line(text, start), _line(text, brace.end() - 1), _line(text, end)
    raise ValueError(f"there is no function {name}")


UNUSED = '#pragma GCC diagnostic ignored "-Wunused-function"'
"""For GCC and Clang: static functions that only served those left out are unused, and here that is no error."""


def rest_of(original: str, copy: str) -> str:
    """What the other files of a program need besides an older copy of one of them: the original without the functions
    that the copy has, too. "" where the copy has all of them."""
    there = set(exported(copy))
    ours = exported(original)
    if there.issuperset(ours):
        return ""
    rows = original.split("\n")
    rows[0] = f"{UNUSED}\n#line 1\n{rows[0]}"
    for name in there.intersection(ours):
        first, _, last = c_function(original, name)
        rows[first - 1 : last] = [""] * (last - first + 1)
    return "\n".join(rows)


def exported(text: str) -> list[str]:
    """The plain names of the functions that a file defines for others: those that are not static."""
    code = code_of(text)
    kind = r"(?:NAME\(\w+\)[ \t*]+|[A-Za-z_][\w \t*]*?\b)"  # of what it returns; a type may have a NAME, too
    named = rf"^(?!static\b|typedef\b){kind}(?:NAME\(\s*(\w+)\s*\)|(\w+))\s*\("
    found = re.finditer(named, code, re.MULTILINE)
    return [match[1] or match[2] for match in found if _has_body(code, match.end() - 1)]


def _has_body(code: str, opening: int) -> bool:
    """Whether a brace follows the parentheses that begin here: a definition, and no declaration."""
    after = _closing(code, opening, "(", ")")
    return after is not None and re.compile(r"\s*\{").match(code, after + 1) is not None


def code_of(text: str) -> str:
    """The text with blanks in place of comments and of what stands in quotes, so that every place stays where it is."""
    return _NOT_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def _closing(code: str, opening: int, opens: str, closes: str) -> int | None:
    """The place of the bracket that closes the one at `opening`; None if there is none."""
    depth = 0
    for i in range(opening, len(code)):
        depth += (code[i] == opens) - (code[i] == closes)
        if depth == 0:
            return i
    return None


def _declaration_start(code: str, at: int) -> int:
    """The start of the declaration that holds a function's name: the end of the statement before it."""
    start = max(code.rfind(each, 0, at) for each in (";", "}", "\n#", "\n\n")) + 1
    if code[start - 1 : start + 1] == "\n#":  # a preprocessor line: the declaration begins on the next
        start = code.find("\n", start) + 1
    return start + len(code[start:at]) - len(code[start:at].lstrip())


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
