"""A file that a docstring or comment names is there: a name that was true before a move sends its reader astray."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.contract import IMAGE_ROOMS, ROOMS
from tests.layout.source_tree import FOLDERS, PACKAGES, ROOT, STAGES, files

NAMED = re.compile(r"(?<![\w.-])(?:[\w-]+/)*([\w-]+\.(?:py|c|h|md|toml))\b")

NOT_OURS = {
    *("SCRIPT.py", "kernels.py", "script.py", "progress.toml"),  # a reader's own
    *("math.h", "cuda_occupancy.h", "xoroshiro128plus.c", "splitmix64.c"),  # other people's
}


def prose(text: str) -> Iterator[str]:
    """The docstrings and comments of a Python file."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (docstring := ast.get_docstring(node)):
            yield docstring
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def missing(text: str, there: set[str]) -> list[str]:
    """The names of files in a Python file's prose that are neither there nor somebody else's."""
    if not set(NAMED.findall(text)) - there - NOT_OURS:
        return []
    return sorted({name for part in prose(text) for name in NAMED.findall(part)} - there - NOT_OURS)


@pytest.fixture(scope="module")
def there() -> set[str]:
    own = {path.name for folder in (*FOLDERS, ".ci") for path in (ROOT / folder).rglob("*.*")}
    return own | {path.name for path in ROOT.glob("*.*")}


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_file_that_a_docstring_or_comment_names_is_there(folder: str, there: set[str]) -> None:
    found = {path: missing(path.read_text(encoding="utf-8"), there) for path in files(folder)}
    assert {str(path.relative_to(ROOT)): names for path, names in found.items() if names} == {}


def not_on_the_map(folder: Path) -> list[str]:
    """The files of a folder that the first lines of its __init__.py do not name; a stage's modules and train.py are
    known from the architecture page."""
    known = {"__init__", "__main__", *((*ROOMS, *IMAGE_ROOMS, "train") if folder.name in STAGES else ())}
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
    return [path.stem for path in sorted(folder.glob("*.py")) if path.stem not in known | set(re.findall(r"\w+", text))]


@pytest.mark.parametrize("package", PACKAGES)
def test_a_folders_map_names_every_file_in_it(package: str) -> None:
    maps = {path.parent: not_on_the_map(path.parent) for path in files(package) if path.name == "__init__.py"}
    gaps = {str(folder.relative_to(ROOT)): names for folder, names in maps.items() if names}
    assert gaps == {}, f"a line for each of these in the first lines of its folder's __init__.py, please: {gaps}"
