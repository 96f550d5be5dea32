"""What the page is told about: files that change, and a process that ends without a word."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from groundup.studio.runs import watching
from groundup.studio.runs.folders import Folders
from groundup.studio.runs.watching import Known, changes, look
from shared.machine.own_process import mark_of
from shared.training.run_facts import RUNNING


def pretend(run: Path, process: int) -> None:
    """Have run.json say that this process trains the run."""
    facts = json.loads((run / "run.json").read_text())
    facts["state"] = RUNNING
    facts["sessions"][-1] |= {"pid": process, "mark": mark_of(process), "ended": None}
    (run / "run.json").write_text(json.dumps(facts))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows gives no mark to a process")
def test_a_run_whose_process_is_gone_has_changed_though_no_file_has(small: Path, tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        pretend(small, child.pid)
        known: Known = {}
        runs = Folders(tmp_path, []).all()
        before = look(runs, known)
        assert look(runs, known) == before
        child.kill()
        child.wait()
        assert look(runs, known) != before
    finally:
        child.kill()
        child.communicate()


def test_run_json_is_read_again_only_when_it_has_changed(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    facts = watching._facts
    monkeypatch.setattr(watching, "_facts", lambda run: (read.append(run.name), facts(run))[1])
    known: Known = {}
    runs = Folders(tmp_path, []).all()
    for _ in range(3):
        look(runs, known)
    assert read == ["small"]
    (small / "run.json").write_text("{")
    assert look(runs, known)
    assert read == ["small", "small"]


def test_nothing_is_told_while_nothing_changes(small: Path, tmp_path: Path) -> None:
    async def listen() -> list[dict]:
        told = []
        values = changes(Folders(tmp_path, []), every=0.01)
        told.append(await anext(values))
        waiting = asyncio.ensure_future(anext(values))
        done, _ = await asyncio.wait({waiting}, timeout=0.2)
        assert not done
        (small / "steps.jsonl").write_text("")
        told.append(await waiting)
        await values.aclose()
        return told

    first, second = asyncio.run(listen())
    assert first == {"changed": [], "all": False}
    assert len(second["changed"]) == 1
