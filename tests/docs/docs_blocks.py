"""The code blocks of the docs, and the rule for them.

Every block is fenced and names its language. What the language says decides what is done with it:

    console     commands, run: lines that begin with `$ ` where there are any, else every line
    python      run, page by page, in one namespace; or a verbatim excerpt of the project's source, whose first line is
                a comment with the file's name, so that a reader sees that it is no part of the page's program
    c           a verbatim excerpt of the project's source
    text, ...   (INERT) nothing to run

Everything else needs a mark, an HTML comment on a line of its own before the block:

    <!-- illustration -->               not run; a reason may follow: <!-- illustration: needs a GPU -->
    <!-- listing: NAME -->              another test makes it anew and compares (docs/emulator.md, docs/lens.md)
    <!-- output -->                     before a text block: exactly what the Python block above it prints

An excerpt has two lines or more. A line of it that is only `...`, `# ...` or `/* ... */` stands for what was left out.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(page for page in ROOT.glob("docs/**/*.md") if "_build" not in page.parts)])

INERT = {"text", "toml", "json", "diff", "ini", "yaml"}
"""Languages of blocks in which there is nothing to run."""

DIRECTIVES = {
    "api",
    "turnable",
    "studio",
    "toctree",
    "note",
    "tip",
    "warning",
    "important",
    "admonition",
    "dropdown",
    "figure",
    "math",
}
"""What a block in braces may be: the book's own, with no code in it."""

WITH_LISTINGS = {"docs/emulator.md", "docs/lens.md"}
"""Pages whose listings are compared by tests of their own."""

MARK = re.compile(r"<!-- (illustration|listing|output)(?:: (.+?))? -->")
FENCE = re.compile(r"( {0,3})(`{3,}|~{3,})\s*(\S*)")
LEFT_OUT = re.compile(r"^\s*(?:(?:#|//) ?)?(?:/\* ?)?(?:\.\.\.|…)(?: ?\*/)?\s*$")

NAMED = re.compile(r"# (\S+\.py)(?:\n|$)")
"""The first line of an excerpt of Python: the file that it is from."""

SOURCES = [
    "stage1_pure_python",
    "stage2_numpy",
    "stage3_c",
    "stage4_numba_cuda",
    "shared",
    "cuda_emulator",
    "groundup",
    "examples",
    "scripts",
]
"""The folders that excerpts come from."""


@dataclass(frozen=True)
class Block:
    """A fenced block. page: its path from the root; line: of the fence, from 1; mark: illustration, listing, output or
    nothing."""

    page: str
    line: int
    language: str
    text: str
    mark: str = ""

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(text: str, page: str) -> Iterator[Block]:
    """The fenced blocks of a page, in order. Raises ValueError for code that no rule can see: an indented block, a
    fence that never ends, a mark without a block."""
    lines = text.splitlines()
    mark, marked = "", 0
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        if opened := FENCE.match(line):
            indent, fence, language = opened.groups()
            inside, start = [], number
            while number < len(lines) and not re.fullmatch(rf" {{0,3}}{fence[0]}{{{len(fence)},}}\s*", lines[number]):
                inside.append(lines[number].removeprefix(indent))
                number += 1
            if number == len(lines):
                raise ValueError(f"{page}:{start}: this block has no end")
            number += 1
            yield Block(page, start, language, "\n".join(inside), mark)
            mark = ""
        elif found := MARK.fullmatch(line.strip()):
            mark, marked = found[1], number
        elif line.strip():
            if mark and mark != "listing":  # a listing may be a table
                raise ValueError(f"{page}:{marked}: <!-- {mark} --> stands before no block")
            mark = ""
            after_blank = number == 1 or not lines[number - 2].strip()
            if line.startswith("    ") and after_blank and not in_a_list(lines, number - 1):
                raise ValueError(f"{page}:{number}: an indented block: use ``` and a language")
    if mark:
        raise ValueError(f"{page}:{marked}: <!-- {mark} --> stands before no block")


def in_a_list(lines: list[str], number: int) -> bool:
    """Whether an indented line goes on with an item of a list: the nearest line above that is not indented begins
    one."""
    above = next((each for each in reversed(lines[:number]) if each.strip() and not each.startswith("  ")), "")
    return re.match(r"([-*+]|\d+[.)]) ", above) is not None


@functools.cache
def page_blocks(page: Path) -> list[Block]:
    """The blocks of a page of the project."""
    return list(blocks(page.read_text(encoding="utf-8"), page.relative_to(ROOT).as_posix()))


def complaint(block: Block) -> str:
    """What is wrong with a block under the rule; nothing where all is well."""
    if block.mark == "listing" and block.page not in WITH_LISTINGS:
        return f"{block.place}: listings belong to {' and '.join(sorted(WITH_LISTINGS))}, whose tests make them"
    if block.mark in ("illustration", "listing") or block.language == "console":
        return ""
    if block.language == "python":
        named = NAMED.match(block.text)
        if named and not (is_excerpt(block.text) and is_in(block.text, [ROOT / named[1]])):
            return f"{block.place}: this Python does not stand word for word in {named[1]}, which its first line names"
        if not named and is_excerpt(block.text):
            return f"{block.place}: an excerpt of Python begins with a comment that names its file: # folder/file.py"
        return ""
    if block.language in INERT:
        return ""
    if block.language.strip("{}") in DIRECTIVES and block.language.startswith("{"):
        return ""
    if not block.language:
        return f"{block.place}: this block names no language: ```text where there is nothing to run"
    if block.language == "c":
        return "" if is_excerpt(block.text) else f"{block.place}: this C stands in no file of the project word for word"
    return (
        f"{block.place}: a test cannot run {block.language!r}: use console or python, or put <!-- illustration --> "
        "before the block"
    )


# ---- excerpts


def squeezed(text: str) -> str:
    """Text with every run of white space made one space."""
    return " ".join(text.split())


@functools.cache
def sources() -> list[Path]:
    """The project's Python and C."""
    paths = [path for folder in SOURCES for path in sorted((ROOT / folder).rglob("*.*"))]
    return [path for path in paths if path.suffix in (".py", ".c", ".h")]


@functools.cache
def squeezed_text(path: Path) -> str:
    """A file's text, squeezed; "" if there is no such file."""
    return squeezed(path.read_text(encoding="utf-8")) if path.is_file() else ""


def is_excerpt(text: str) -> bool:
    """Whether a block stands word for word in one file of the project: two lines or more, in this order."""
    return is_in(text, sources())


def is_in(text: str, paths: Sequence[Path]) -> bool:
    """The same for one of these files. The comment that names a file is no part of it."""
    parts: list[list[str]] = [[]]
    for line in NAMED.sub("", text, count=1).splitlines():
        if LEFT_OUT.match(line):
            parts.append([])
        elif line.strip():
            parts[-1].append(line)
    wanted = [squeezed("\n".join(part)) for part in parts if part]
    return sum(map(len, parts)) >= 2 and any(holds(squeezed_text(path), wanted) for path in paths)


def holds(source: str, wanted: list[str]) -> bool:
    """Whether all parts are in a source, one behind the other."""
    at = 0
    for part in wanted:
        found = source.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return True


# ---- what is run


def commands(block: Block) -> list[str]:
    """The commands of a console block, without their comments; a line that ends in a backslash goes on."""
    lines = re.sub(r"\\\n\s*", "", block.text).splitlines()
    if any(line.startswith("$ ") for line in lines):
        lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return [bare for line in lines if (bare := re.sub(r"(^|\s)#( .*|$)", "", line).strip())]


def programs(page: Path) -> list[tuple[Block, Block | None]]:
    """The Python blocks of a page that are run, each with the block that says what it prints, if one does."""
    found: list[tuple[Block, Block | None]] = []
    for block in page_blocks(page):
        if block.language == "python" and not block.mark and not is_excerpt(block.text):
            found.append((block, None))
        elif block.mark == "output":
            if not found or found[-1][1] is not None or block.language != "text":
                raise ValueError(f"{block.place}: <!-- output --> belongs to a text block behind a Python block")
            found[-1] = (found[-1][0], block)
    return found
