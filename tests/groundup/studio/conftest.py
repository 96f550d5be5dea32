"""A running studio for the tests of its pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.studio_server import RunningStudio, running

pytest.importorskip("starlette", reason="the studio's extra web is not installed")
pytest.importorskip("uvicorn", reason="the studio's extra web is not installed")


@pytest.fixture
def studio_server(tmp_path: Path) -> Iterator[RunningStudio]:
    """A studio that was started in an empty folder, tmp_path."""
    with running(tmp_path) as server:
        yield server
