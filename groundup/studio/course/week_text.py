"""The page of a week as blocks that the page Course draws: Markdown as far as docs/weeks uses it.

blocks(week)     [{"kind": "heading", …}, …]; [] where groundup was installed without its documents
figure(name)     the file of a figure, None where there is none

A text's spans are ["", text], ["code", text], ["strong", text], ["em", text], ["math", tree] and
["link", text, address]. Addresses other than of the web are left out: the page is not in the folder of the documents.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from groundup.studio.course.mathematics import tree
from shared.machine.processes import ROOT

WEEKS = ROOT / "docs" / "weeks"
FIGURES = ROOT / "docs" / "figures"

Block = dict[str, Any]

_SPAN = re.compile(
    r"(?P<code>`+)(?P<in_code>.+?)(?P=code)"
    r"|\$(?P<math>[^$]+)\$"
    r"|\*\*(?P<strong>.+?)\*\*"
    r"|\*(?P<em>[^*\s][^*]*)\*"
    r"|\[(?P<text>[^\]]+)\]\((?P<address>[^)\s]+)\)",
    re.DOTALL,
)
_ITEM = re.compile(r"(?P<mark>[-*]|\d+\.) +(?P<text>.*)")


def figure(name: str) -> Path | None:
    """The file of a figure that the weeks' pages show."""
    return {path.name: path for path in FIGURES.glob("*.svg")}.get(name)


@cache
def blocks(week: int) -> list[Block]:
    """The page of a week."""
    path = WEEKS / f"week{week:02}.md"
    return list(_blocks(path.read_text(encoding="utf-8"))) if path.is_file() else []


def _blocks(text: str) -> Iterator[Block]:
    lines = re.sub(r"<!--.*?-->\n?", "", text, flags=re.DOTALL).split("\n")
    at = 0
    while at < len(lines):
        line = lines[at]
        end = at + 1
        if line.startswith(("```", "$$")):
            mark = line[:3] if line.startswith("`") else "$$"
            while end < len(lines) and not lines[end].startswith(mark):
                end += 1
            inside = "\n".join(lines[at + 1 : end])
            yield {"kind": "code", "text": inside} if mark == "```" else {"kind": "math", "tree": tree(inside)}
            end += 1
        elif line.startswith("#"):
            level = len(line) - len(line.lstrip("#"))
            yield {"kind": "heading", "level": level, "spans": spans(line[level:].strip())}
        elif line.startswith("|"):
            while end < len(lines) and lines[end].startswith("|"):
                end += 1
            rows = [_cells(each) for each in lines[at:end] if not re.fullmatch(r"[|\s:-]+", each)]
            yield {"kind": "table", "head": rows[0], "rows": rows[1:]}
        elif found := re.match(r"!\[(.*?)\]\(.*/([^/]+)\)", line):
            yield {"kind": "figure", "name": found[2], "text": found[1]}
        elif _ITEM.match(line):
            while end < len(lines) and (lines[end].strip() == "" or _ITEM.match(lines[end]) or lines[end][0] == " "):
                end += 1
            yield {"kind": "list", "ordered": line[0].isdigit(), "items": list(_items(lines[at:end]))}
        elif line.strip():
            while end < len(lines) and lines[end].strip() and not lines[end].startswith(("```", "$$", "#", "|", "![")):
                end += 1
            yield {"kind": "paragraph", "spans": spans(" ".join(lines[at:end]))}
        at = end


def _items(lines: list[str]) -> Iterator[list[Any]]:
    text = ""
    for line in lines:
        found = _ITEM.match(line)
        if found and text:
            yield spans(text)
            text = ""
        text = f"{text} {found['text'] if found else line.strip()}".strip()
    if text:
        yield spans(text)


def _cells(line: str) -> list[Any]:
    return [spans(cell.strip().replace("\\|", "|")) for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def spans(text: str) -> list[Any]:
    """A line of running text in parts."""
    parts: list[Any] = []
    end = 0
    for found in _SPAN.finditer(text):
        parts.append(["", text[end : found.start()]])
        end = found.end()
        if found["code"]:
            parts.append(["code", found["in_code"].strip()])
        elif found["math"]:
            parts.append(["math", tree(found["math"])])
        elif found["text"]:
            web = found["address"].startswith(("https://", "http://"))
            words = found["text"].replace("`", "")
            parts.append(["link", words, found["address"]] if web else ["em", words])
        else:
            parts.append(["strong", found["strong"]] if found["strong"] else ["em", found["em"]])
    parts.append(["", text[end:]])
    return [each for each in parts if each[1]]
