"""A text in coloured parts, line by line: [[(kind, text), …], …]. The page makes a span of each.

kind: "keyword", "string", "comment", "number", "name" (of a definition), "rule" (a decorator, or C's preprocessor),
or "" for everything else. Pygments finds the parts.
"""

from __future__ import annotations

from pygments.lexers import CLexer, PythonLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String, _TokenType

Part = tuple[str, str]

KINDS = (
    *((Comment.Preproc, "rule"), (Comment.PreprocFile, "rule"), (Name.Decorator, "rule"), (Comment, "comment")),
    *((Keyword, "keyword"), (Operator.Word, "keyword"), (Name.Function, "name"), (Name.Class, "name")),
    *((Number, "number"), (String, "string")),
)
"""The kind of a token is that of the first of these types which its own is, or is a part of."""

OURS = {"NAME": "", "real": "keyword"}
"""Names that stage 3's C has from its preprocessor: NAME(relu) is the definition of relu."""


def coloured(text: str, language: str) -> list[list[Part]]:
    """A text's lines in parts. language: "C"; any other is Python."""
    lexer = (CLexer if language == "C" else PythonLexer)(stripnl=False, ensurenl=False)
    lines: list[list[Part]] = [[]]
    is_next_defined = False
    for token, piece in lexer.get_tokens(text.rstrip("\n")):
        kind = OURS.get(piece, _kind(token)) if language == "C" else _kind(token)
        if is_next_defined and token in Name:
            kind = "name"
        is_next_defined = (piece == "NAME" and token in Name.Function) or (is_next_defined and piece == "(")
        for number, line in enumerate(piece.split("\n")):
            if number:
                lines.append([])
            if line and lines[-1] and lines[-1][-1][0] == kind:
                lines[-1][-1] = (kind, lines[-1][-1][1] + line)
            elif line:
                lines[-1].append((kind, line))
    return lines if lines[-1] else lines[:-1]


def _kind(token: _TokenType) -> str:
    return next((kind for group, kind in KINDS if token in group), "")
