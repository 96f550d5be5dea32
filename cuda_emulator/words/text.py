"""Text that came from a file, a name or a learner's program, made safe to show: it stays text wherever it is put.

A terminal obeys control characters: an escape sequence in a run's name could clear the screen, set the window's title
or hide a line. Some others reverse the order of what is read, or are forbidden in XML. `printable` shows each of them
as what it is, such as \\u001b. That is also how JSON writes them, so a JSON document stays the same document.

Rich's markup and matplotlib's `$…$` are switched off where consoles and figures are made: console.py and
shared/charts/drawing/style.py.
"""

from __future__ import annotations

import re

_UNSAFE = re.compile(
    "["
    "\\x00-\\x08\\x0b-\\x1f"  # control characters, but for tab and newline
    "\\x7f-\\x9f"  # delete, and the control characters of eight bits
    "\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069"  # marks that change the direction of the text
    "\\u2028\\u2029"  # line and paragraph separators
    "\\ud800-\\udfff\\ufffe\\uffff"  # halves of pairs, and no characters: neither UTF-8 nor XML has them
    "]"
)


def printable(text: str) -> str:
    """The text with every character that could do something shown as \\uXXXX. Tabs and newlines stay."""
    return _UNSAFE.sub(_escaped, text)


def one_line(text: str, most: int = 300) -> str:
    """The text in one line, safe to print, cut off after `most` characters."""
    line = " ".join(printable(text).split())
    return line if len(line) <= most else line[: most - 1] + "…"


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
