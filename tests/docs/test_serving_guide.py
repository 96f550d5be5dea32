"""docs/guides/serving.md: its questions are asked, of a service that has trained for an epoch."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from shared.data.datasets import load_dataset
from tests.docs.docs_blocks import ROOT, commands, page_blocks
from tests.program import run as exit_code
from tests.wide import wide

pytest.importorskip("uvicorn", reason="the extra web is not installed")

GUIDE = ROOT / "docs" / "guides" / "serving.md"
ASKING = [block for block in page_blocks(GUIDE) if block.mark and block.language in ("console", "python")]
CURL = [line for block in ASKING for line in commands(block) if line.startswith("curl") and "127.0.0.1" in line]
TRITON, REQUEST = [block for block in ASKING if block.language == "python"]
ADDRESS = "127.0.0.1:8000"
"""In the guide, and no other place that a test may find taken."""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """The folder with the guide's files, and where the service answers."""
    folder = tmp_path_factory.mktemp("guide")
    run = str(folder / "runs" / "lenet5")
    assert exit_code("train", "numpy", "--model", "lenet5", "--epochs", 1, "--quiet", "--run-dir", run) == 0
    image = load_dataset("mnist-subset").test.x[0].reshape(28, 28)
    Image.fromarray(255 - (255 * image).astype(np.uint8)).resize((280, 280)).save(folder / "seven.png")
    subprocess.run(
        [sys.executable, "-c", REQUEST.text], cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True
    )
    program = [sys.executable, "-m", "groundup", "serve", run, "--port", "0"]
    process = subprocess.Popen(program, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    found = next(line for line in process.stdout if line.startswith("http"))
    yield folder, found.split("/")[2]
    process.terminate()
    process.communicate(timeout=300)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@wide
@pytest.mark.parametrize("line", CURL)
def test_a_question_by_curl_is_answered(line: str, address: tuple[Path, str]) -> None:
    folder, there = address
    words = shlex.split(line.replace(ADDRESS, there))
    done = subprocess.run([*words, "--fail-with-body", "-sS"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout, done.stderr)
    if "why.png" in line:
        assert Image.open(folder / "why.png").format == "PNG"
    elif "/metrics" not in line:
        assert "error" not in json.loads(done.stdout)


@wide
def test_the_program_with_tritonclient_runs(address: tuple[Path, str]) -> None:
    pytest.importorskip("tritonclient.http", reason="tritonclient[http] is not installed")
    program = TRITON.text.replace(ADDRESS, address[1])
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) == 5


def test_the_guide_asks_all_kinds_of_questions() -> None:
    text = " ".join(CURL)
    assert all(each in text for each in ("-F", "--data-binary", "/explain", "/infer", "/metrics", "/v2/health/ready"))
