"""The notebooks run from the first cell to the last, and are kept without what they printed."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from groundup.course.manifest import ROOT, course
from tests.stages import REASONS
from tests.wide import wide

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
SECONDS = 120
NEEDS = {"phase3": "stage3_c", "phase4": "stage4_numba_cuda", "phase5": "stage4_numba_cuda"}


def read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def test_every_phase_has_a_notebook() -> None:
    assert [path.stem for path in NOTEBOOKS] == [f"phase{phase.number}" for phase in course().phases]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs_and_opens_everywhere(path: Path) -> None:
    document = read(path)
    assert (document["nbformat"], document["metadata"]["kernelspec"]["name"]) == (4, "python3")
    code = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert "REPOSITORY" in "".join(code[0]["source"]), "the first cell installs groundup in Colab"
    assert code[0]["metadata"] == {"tags": ["hide-input"]}, "and the book folds it"
    assert len({cell["id"] for cell in document["cells"]}) == len(document["cells"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_formulas_of_a_notebook_have_single_backslashes(path: Path) -> None:
    """In the file a backslash is doubled by JSON. Doubled once more, a formula shows a line break and the word frac."""
    texts = ["".join(cell["source"]) for cell in read(path)["cells"] if cell["cell_type"] == "markdown"]
    formulas = [found[0] for text in texts for found in re.finditer(r"\$\$.+?\$\$|\$.+?\$", text, re.DOTALL)]
    assert [formula for formula in formulas if re.search(r"\\\\[a-zA-Z]", formula)] == []


@wide
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_draws(path: Path, tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat", reason="needs nbclient: pip install -e '.[dev]'")
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient: pip install -e '.[dev]'")
    pytest.importorskip("ipykernel", reason="needs ipykernel: pip install -e '.[dev]'")
    if reason := REASONS.get(NEEDS.get(path.stem, "")):
        pytest.skip(reason)
    notebook = nbformat.read(path, 4)
    client = nbclient.NotebookClient(
        notebook, timeout=SECONDS, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    # The kernel of this interpreter, whatever others the machine knows by that name.
    client.create_kernel_manager().kernel_spec.argv[0] = sys.executable
    client.execute()
    figures = [
        output for cell in notebook.cells for output in cell.get("outputs", []) if "image/png" in output.get("data", {})
    ]
    assert len(figures) >= 2
