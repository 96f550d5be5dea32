"""A cache of its own for each test of the build, the machine's compiler, and sources that it compiles at once."""

from pathlib import Path

import pytest

from stage3_c import compiler
from tests.stage3_c.tiny_c import compiler_or_skip, write_sources


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache for each test, and a plain build whatever the suite itself runs with."""
    monkeypatch.setenv("GROUNDUP_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("GROUNDUP_SANITIZE", raising=False)
    return tmp_path / "cache" / "stage3"


@pytest.fixture(scope="module")
def real_compiler() -> compiler.Compiler:
    return compiler_or_skip()


@pytest.fixture
def csrc(tmp_path: Path, real_compiler: compiler.Compiler) -> Path:
    """A small csrc, where there is a compiler for it."""
    return write_sources(tmp_path / "csrc")
