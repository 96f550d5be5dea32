"""A folder may hold anything: names that stand for no file, links that lead nowhere, texts that no parser reads.

Each page says what it can use, soon, and the studio goes on. A FIFO would be waited for, for ever.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from groundup.studio.app import Studio
from groundup.studio.benchmarks.desk import NAME
from groundup.studio.runs.folders import FILES
from tests.studio_server import running

QUESTIONS = ("runs/list", "digits/networks", "benchmarks/files", "kernel/choices", "course/begin")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no FIFOs, and asks before it makes a link")


def fifos(folder: Path) -> None:
    for name in (*FILES, NAME):
        run = folder / "runs" / f"with {name}"
        run.mkdir(parents=True)
        os.mkfifo(run / name)
    os.mkfifo(folder / "script.py")


def devices(folder: Path) -> None:
    (folder / "runs" / "run").mkdir(parents=True)
    for name in (*FILES, NAME):
        (folder / "runs" / "run" / name).symlink_to("/dev/zero")
    (folder / "script.py").symlink_to("/dev/zero")


def links_to_nothing(folder: Path) -> None:
    (folder / "runs" / "run").mkdir(parents=True)
    for name in (*FILES, NAME):
        (folder / "runs" / "run" / name).symlink_to("gone")
    (folder / "script.py").symlink_to("gone")


def links_to_themselves(folder: Path) -> None:
    (folder / "runs" / "run").mkdir(parents=True)
    for name in (*FILES, NAME):
        (folder / "runs" / "run" / name).symlink_to(name)
    (folder / "script.py").symlink_to("script.py")


def runs_that_lead_to_themselves(folder: Path) -> None:
    (folder / "runs").symlink_to("runs")


def folders_in_place_of_files(folder: Path) -> None:
    for name in (*FILES, NAME):
        (folder / "runs" / "run" / name).mkdir(parents=True)
    (folder / "script.py").mkdir()


def a_file_in_place_of_runs(folder: Path) -> None:
    (folder / "runs").write_text("no folder")


def scripts_that_no_parser_reads(folder: Path) -> None:
    texts = [
        "-" * 200_000 + "1",
        "(" * 5000,
        "1" + "+1" * 90_000,
        "a" + ".a" * 90_000,
        "\0",
        "[x" + " for x in y" * 20_000,
    ]
    for number, text in enumerate(texts):
        (folder / f"{number}.py").write_text("cuda = " + text)
    (folder / "binary.py").write_bytes(b"cuda \xff\xfe")
    with open(folder / "endless.py", "wb") as file:
        file.truncate(1 << 40)


@pytest.mark.parametrize(
    "make",
    [
        fifos,
        devices,
        links_to_nothing,
        links_to_themselves,
        runs_that_lead_to_themselves,
        folders_in_place_of_files,
        a_file_in_place_of_runs,
        scripts_that_no_parser_reads,
    ],
)
def test_every_page_says_what_it_can_use(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path)
    with running(tmp_path) as studio:
        for question in QUESTIONS:
            assert isinstance(studio.get(f"/api/{question}"), dict)
        for run in studio.get("/api/runs/list")["runs"]:
            assert isinstance(studio.get(f"/api/runs/curves?run={run['code']}"), dict)
        for name in ("run", *(f"with%20{each}" for each in FILES)):
            studio.refused(f"/api/digits/network?name={name}")
        for script in ("script.py", "0.py"):
            session = studio.post("/api/kernel/begin")["session"] if make is links_to_themselves else ""
            studio.refused("/api/kernel/open", {"session": session, "target": {"kind": "script", "path": script}})


def test_a_link_that_leads_to_itself_is_no_way_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert Studio(tmp_path).allowed("loop") == tmp_path / "loop"
    assert Studio(tmp_path, [tmp_path / "loop"]).allowed("a.py") == tmp_path / "a.py"


def test_names_that_are_no_text_are_shown(tmp_path: Path) -> None:
    run = tmp_path / "runs" / "a\udcffb<img src=x onerror=alert(1)>"
    try:
        run.mkdir(parents=True)
    except (OSError, ValueError):
        pytest.skip("this file system takes no such name")
    (run / "metrics.jsonl").write_text(json.dumps({"epoch": 1}) + "\n")
    (run / "results.json").write_text('{"kind": "groundup-bench"}')
    with running(tmp_path, [run]) as studio:
        (shown,) = studio.get("/api/runs/list")["runs"]
        assert shown["epochs_done"] == 1
        for entry in studio.get("/api/benchmarks/files")["files"]:
            if entry["group"] != "recorded":
                assert "results.json" in studio.refused(f"/api/benchmarks/shown?mine={entry['code']}")
