"""The user's matplotlibrc, the folder's, and MPLBACKEND change no figure, and stop none."""

from __future__ import annotations

import os
from pathlib import Path

import matplotlib
import pytest

from shared.charts.drawing.save import save
from shared.charts.drawing.style import house_style, new_figure
from shared.machine.processes import finding_our_packages, python, run
from tests.wide import wide

DRAWN = """
import sys
from pathlib import Path
from shared.charts.figures.architecture import drawing
from shared.charts.drawing.save import save
from shared.architectures import named
import matplotlib
save(drawing(named("lenet5"), "a title").figure, Path("figure"))
print(matplotlib.rcParams._get("backend"))
"""


def drawn(folder: Path, **variables: str) -> tuple[bytes, str]:
    """The PNG and the backend of a process that stands in this folder."""
    home = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / ".config")}
    given = {name: value for name, value in os.environ.items() if not name.startswith(("MPL", "MATPLOTLIB"))}
    done = run(python("-c", DRAWN), 120, folder=folder, variables=finding_our_packages(given | home | variables))
    assert done.code == 0, done.errors
    return (folder / "figure.png").read_bytes(), done.output.strip()


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return drawn(tmp_path_factory.mktemp("plain"))[0]


NONSENSE = [
    b"text.usetex: True\n",
    b"savefig.dpi: 30\nsavefig.bbox: tight\nfont.size: 40\nimage.cmap: none such\n",
    b"\xff\xfe",
]


@wide
@pytest.mark.parametrize("content", NONSENSE)
@pytest.mark.parametrize("place", ["matplotlibrc", ".config/matplotlib/matplotlibrc"])
def test_a_matplotlibrc_changes_nothing(place: str, content: bytes, plain: bytes, tmp_path: Path) -> None:
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / place).write_bytes(content)
    assert drawn(tmp_path)[0] == plain


@wide
@pytest.mark.parametrize("backend", ["module://matplotlib_inline.backend_inline", "nonsense", "svg"])
def test_a_backend_in_the_environment_changes_nothing_and_is_kept(backend: str, plain: bytes, tmp_path: Path) -> None:
    figure, used = drawn(tmp_path, MPLBACKEND=backend)
    assert figure == plain
    assert backend == "nonsense" or used == backend or "inline" in backend


def test_what_the_program_has_set_changes_no_figure_and_is_there_afterwards(tmp_path: Path) -> None:
    def picture(name: str) -> bytes:
        with house_style():
            figure = new_figure("a title", "a footer")
            figure.add_subplot().plot([1, 2], [3, 4])
        return save(figure, tmp_path / name)[0].read_bytes()

    before = picture("before")
    with matplotlib.rc_context(
        {"lines.linewidth": 9, "text.usetex": True, "savefig.bbox": "tight", "font.style": "italic"}
    ):
        assert picture("after") == before
        assert matplotlib.rcParams["lines.linewidth"] == 9
