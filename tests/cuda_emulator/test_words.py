"""What the emulator has in common with the rest of the project, which it does not import."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["numbers", "text", "markup", "console"])
def test_the_emulator_has_the_same_words_as_the_rest_of_the_project(name: str) -> None:
    theirs = (ROOT / "shared" / f"{name}.py").read_text(encoding="utf-8")
    assert (ROOT / "cuda_emulator/words" / f"{name}.py").read_text(encoding="utf-8") == theirs
