"""2,000 damaged and crafted files of each kind: no traceback, no hang, little memory, and nothing is overwritten."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.program import run
from tests.promises.earlier_files import MADE
from tests.strangers.fuzz import LONGEST
from tests.strangers.kinds import KINDS
from tests.wide import wide

ROOT = MADE.parents[2]
SEED = 22
MOST_MEMORY = 300e6
FEW = 8
IN_A_PROCESS = 200
"""Commands that follow each other in one process leave holes in its memory, which no user's process has."""


def fuzzed(kinds: str, count: int, folder: Path, first: int = 0) -> None:
    """Fails, with the files that did, unless `count` files of each kind end well, from the number `first` on.

    kinds: with commas between
    """
    command = [sys.executable, "-m", "tests.strangers.fuzz", kinds, str(count), str(SEED), str(folder), str(first)]
    folders = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    variables = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": folders}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    reports = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"files"')]
    assert len(reports) == len(kinds.split(","))
    for report in reports:
        assert report["files"] == count
        assert report["faults"] == []
        assert report["slowest"][0] < LONGEST, report["slowest"]
        assert report["peak"] < MOST_MEMORY, (report["peak"], report["grown"])
        assert sum(number for end, number in report["ends"].items() if end.endswith("refused")) > count // 4


@wide
@pytest.mark.skipif(sys.platform == "win32", reason="the limits of the process are those of Unix")
def test_a_few_files_of_strangers_end_well(tmp_path: Path) -> None:
    fuzzed(",".join(KINDS), FEW, tmp_path)


@wide
@pytest.mark.skipif(sys.platform == "win32", reason="the limits of the process are those of Unix")
@pytest.mark.parametrize("kind", KINDS)
def test_two_thousand_files_of_strangers_end_well(kind: str, tmp_path: Path) -> None:
    for first in range(0, 2000, IN_A_PROCESS):
        folder = tmp_path / str(first)
        folder.mkdir()
        fuzzed(kind, IN_A_PROCESS, folder, first)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no FIFOs")
@pytest.mark.parametrize(
    "argv",
    [
        ["bench", "compare", "FIFO", "FIFO"],
        ["charts", "FIFO"],
        ["look", "FIFO"],
        ["learn", "--folder", "FOLDER"],
        ["train", "2", "--resume", "FOLDER"],
    ],
    ids=lambda argv: argv[0],
)
def test_a_fifo_in_a_file_s_place_is_told_of_and_not_waited_for(
    argv: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("results.json", "progress.toml", "last.safetensors"):
        os.mkfifo(tmp_path / name)
    named = {"FIFO": str(tmp_path / "results.json"), "FOLDER": str(tmp_path)}
    assert run(*(named.get(each, each) for each in argv)) == 2
    assert "is a FIFO (a named pipe), expected a regular file" in capsys.readouterr().err
