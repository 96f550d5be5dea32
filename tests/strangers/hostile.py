"""Texts that could do something wherever they are put, and what must never come out raw."""

from __future__ import annotations

import json
import os
import re
import unicodedata
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

HOSTILE = {
    "escape": "\x1b[2J\x1b]0;owned\x07\x1b[31mred",
    "clipboard": "\x1b]52;c;ZXZpbA==\x07",
    "link": "\x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "c1": "\x9b31m\x9downed\x9c",
    "bidi": "\u202eexe.cod\u2066\u2069\u200f",
    "rich": "[/x][red]red[/red][link=http://evil.example]y[/link]\\[",
    "html": '"><script>alert(7)</script><img src=x onerror=alert(7)>&lt;]]>',
    "mathematics": "$\\frac{1}{$ \\input $x_{$ %",
    "lines": "one\rtwo\u2028three\u2029four\x0b\x0c",
    "no XML": "\x01\ufffe\uffff",
    "half a pair": "\udcff",
    "formula": "=cmd|' /C calc'!A0",
    "long": "a" * 180,
}

BIDIRECTIONAL = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
NO_CHARACTERS = set("\ufffe\uffff")


def as_file_name(text: str) -> str:
    """The text as far as a file may be called so."""
    return os.fsdecode(os.fsencode(text.replace("/", "|"))[:200])


def raw_in(text: str) -> list[str]:
    """The characters in what is shown that a terminal, a reader's eye or a parser would obey."""
    return sorted(
        {
            repr(each)
            for each in text
            if (unicodedata.category(each) == "Cc" and each not in "\n\t")
            or unicodedata.category(each) in ("Cs", "Zl", "Zp")
            or each in BIDIRECTIONAL | NO_CHARACTERS
        }
    )


class _Elements(HTMLParser):
    """Notes the elements that only a hostile text can have made."""

    def __init__(self) -> None:
        super().__init__()
        self.foreign: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if any(name.startswith("on") for name, _ in attrs) or any("evil" in (value or "") for _, value in attrs):
            self.foreign.append(self.get_starttag_text() or tag)

    def handle_data(self, data: str) -> None:
        if self.lasttag == "script" and data.startswith("alert(7)"):
            self.foreign.append(data)


def assert_clean(folder: Path) -> None:
    """Of every page, figure and JSON document in the folder: it is read as what it is, and holds nothing raw."""
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".svg":
            names = {element.tag.rpartition("}")[2] for element in ElementTree.parse(path).iter()}
            assert not names & {"script", "img"}, path
        if path.suffix == ".html":
            elements = _Elements()
            text = path.read_text(encoding="utf-8")
            elements.feed(text)
            assert elements.foreign == [], path
            assert raw_in(text) == [], path
        if path.suffix == ".json":
            json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_number)


def _no_number(name: str) -> Any:
    raise AssertionError(f"{name} is no JSON")


def in_one_line(text: str) -> str:
    """The text without spaces and line ends, which a table or a width may change."""
    return re.sub(r"\s+", "", text)
