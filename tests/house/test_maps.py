"""A folder's `__init__.py` is its map: a newcomer finds every file there with a word on what it is for."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from shared import contract
from tests.house.source_tree import FLOORS, PACKAGES, ROOT, files

ROOMS = {"train", *contract.ROOMS, *contract.IMAGE_ROOMS}
"""What every floor has, told once, in docs/architecture.md."""

MAPS = [path for package in PACKAGES for path in files(package) if path.name == "__init__.py"]


def unnamed(init: Path) -> list[str]:
    """The files and folders beside an __init__.py that its docstring does not name."""
    docstring = ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))) or ""
    known = ROOMS if init.parent.name in FLOORS else set()
    beside = {path.stem for path in init.parent.glob("[!_]*.py")} - known
    beside |= {path.parent.name for path in init.parent.glob("*/__init__.py")}
    return sorted(name for name in beside if not re.search(rf"(?<![\w.]){name}\b", docstring))


@pytest.mark.parametrize("init", MAPS, ids=lambda path: str(path.relative_to(ROOT).parent))
def test_a_folders_docstring_names_every_file_in_it(init: Path) -> None:
    assert unnamed(init) == []


def test_a_file_that_the_map_does_not_name_is_found(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").write_text('"""A map.\n\n    here    a file\n"""\n')
    (tmp_path / "here.py").touch()
    (tmp_path / "there.py").touch()
    assert unnamed(tmp_path / "__init__.py") == ["there"]
