"""A text in coloured parts, line by line: [[(what, text), …], …]. The page makes a span of each.

what: "keyword", "string", "comment", "number", "name" (of a definition), "rule" (a decorator, or C's preprocessor),
or "" for everything else.
"""

from __future__ import annotations

import io
import keyword
import re
import tokenize

Part = tuple[str, str]

_C = re.compile(
    r"""(?P<comment>/\*.*?\*/|//[^\n]*)
    |(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    |(?P<rule>^[ \t]*\#(?:\\\n|[^\n])*)
    |(?P<number>\b(?:0[xX][0-9a-fA-F]+|\d+\.?\d*(?:[eE][+-]?\d+)?)[uUlLfF]*\b)
    |(?P<word>[A-Za-z_]\w*)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)

_C_WORDS = (
    *(
        "break",
        "case",
        "char",
        "const",
        "continue",
        "default",
        "do",
        "double",
        "else",
        "enum",
        "extern",
        "float",
        "for",
    ),
    *("goto", "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed", "sizeof", "static"),
    *("struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while"),
    *("size_t", "int64_t", "int32_t", "uint64_t", "uint32_t", "uint8_t", "real"),
)


def coloured(text: str, language: str) -> list[list[Part]]:
    """A text's lines in parts. language: "c"; any other is Python. A text that is no Python has no colours."""
    if language == "c":
        return _lines(_c(text))
    try:
        return _lines(_python(text))
    except (tokenize.TokenError, SyntaxError):
        return _lines([("", text)])


def _python(text: str) -> list[Part]:
    """The text of whole Python statements in parts, gaps between two tokens included."""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    parts: list[Part] = []
    end, before, decorating = 0, "", False
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        first, last = (starts[row - 1] + column for row, column in (token.start, token.end))
        if token.type in (tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER) or first < end:
            continue
        if token.type in (tokenize.NEWLINE, tokenize.NL):
            decorating = False
            continue
        decorating = decorating or (token.string == "@" and not text[starts[token.start[0] - 1] : first].strip())
        parts.append(("", text[end:first]))
        parts.append((_python_kind(token, before, decorating), text[first:last]))
        end, before = last, token.string
    return [*parts, ("", text[end:])]


def _python_kind(token: tokenize.TokenInfo, before: str, decorating: bool) -> str:
    if token.type == tokenize.COMMENT:
        return "comment"
    if decorating:
        return "rule"
    if token.type == tokenize.STRING or tokenize.tok_name[token.type].startswith("FSTRING"):
        return "string"
    if token.type == tokenize.NUMBER:
        return "number"
    if token.type == tokenize.NAME:
        return "name" if before in ("def", "class") else "keyword" if keyword.iskeyword(token.string) else ""
    return ""


def _c(text: str) -> list[Part]:
    parts: list[Part] = []
    end, defined = 0, False
    for found in _C.finditer(text):
        what = found.lastgroup or ""
        if what == "word":
            what = "keyword" if found[0] in _C_WORDS else ""
            after = text[found.end() :].lstrip()[:1]
            named = text[: found.start()].rstrip().endswith("NAME(")
            if not what and not defined and (named or (after == "(" and found[0] != "NAME")):
                what, defined = "name", True  # the first thing that is called so is the definition
        parts += [("", text[end : found.start()]), (what, found[0])]
        end = found.end()
    return [*parts, ("", text[end:])]


def _lines(parts: list[Part]) -> list[list[Part]]:
    lines: list[list[Part]] = [[]]
    for what, text in parts:
        for at, piece in enumerate(text.split("\n")):
            if at:
                lines.append([])
            if piece:
                lines[-1].append((what, piece))
    while lines and not lines[-1]:
        lines.pop()
    return lines
