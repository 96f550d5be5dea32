"""The page Kernel's addresses: kernels of the project, of scripts and of a learner, each in a process with limits."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from groundup.course.learner import learners_folder
from groundup.course.learner.project_files import solution_file
from groundup.course.manifest import course
from groundup.studio.kernel import workers
from groundup.studio.kernel.choices import PROJECT, kernels_in, scripts
from tests.studio_server import RunningStudio, running
from tests.wide import WIDE, wide

MARKUP = "<img src=x onerror=alert(1)>"
SCRIPT = f'''
import numpy as np
from numba import cuda

print("{MARKUP} is printed")


@cuda.jit
def scale(x, out):
    """{MARKUP}"""
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i] * 3  # {MARKUP}


@cuda.jit(device=True)
def helper(x):
    return x


@cuda.jit
def never_launched(x):
    x[0] = 1


def program():
    out = cuda.device_array(40, np.float32)
    scale[2, 32](cuda.to_device(np.arange(40, dtype=np.float32)), out)


if __name__ == "__main__":
    program()
'''


@pytest.fixture(autouse=True)
def unwarmed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that import nothing before they are asked: most of these tests need no kernel of the project."""
    monkeypatch.setattr(workers.Worker, "warm", lambda worker: None)


@pytest.fixture
def session(studio_server: RunningStudio) -> Any:
    return studio_server.post("/api/kernel/begin")["session"]


@wide
def test_a_kernel_of_the_project_opens_with_its_walk_races_and_verdicts(
    studio_server: RunningStudio, session: str
) -> None:
    target = {"kind": "project", "name": "tiled_16", "size": [16, 16, 32]}
    answer = studio_server.post("/api/kernel/open", {"session": session, "target": target})
    assert answer["about"]["block"] == [16, 16, 1]
    assert answer["walk"]["warp"] == 0
    other = studio_server.post("/api/kernel/walk", {"session": session, "block": 0, "warp": 7})
    assert other["walk"]["warp"] == 7
    assert len(other["walk"]["steps"]) == len(answer["walk"]["steps"])
    race = studio_server.post("/api/kernel/race", {"session": session, "block": 0, "warp": 0, "barriers": [0]})["race"]
    assert race["found"]
    assert race["wrong"] != race["right"]
    verdicts = studio_server.post("/api/kernel/verdicts", {"session": session})["verdicts"]
    assert any("bank conflict" in text for _, _, _, text in verdicts["lines"])


def test_a_script_runs_in_a_process_of_its_own_and_its_texts_stay_texts(
    studio_server: RunningStudio, session: str, tmp_path: Path
) -> None:
    name = "<img onerror>.py"
    (tmp_path / name).write_text(SCRIPT)
    choices = studio_server.get("/api/kernel/choices")
    assert choices["scripts"] == [{"path": name, "kernels": ["scale", "never_launched"]}]
    assert [each["name"] for each in choices["project"]] == [each.name for each in PROJECT]
    assert choices["tasks"] == []
    assert not choices["named"]
    target = {"kind": "script", "path": name, "kernel": "scale"}
    answer = studio_server.post("/api/kernel/open", {"session": session, "target": target})
    assert answer["printed"].strip() == f"{MARKUP} is printed"
    assert any(MARKUP in line for line in answer["walk"]["sources"][0]["lines"])
    assert answer["about"]["grid"] == [2, 1, 1]
    second = studio_server.post("/api/kernel/walk", {"session": session, "block": 1, "warp": 0})["walk"]
    assert second["active"][-1] == [[0, 7]]  # 40 numbers: eight threads of the second block
    by_hand = {"kind": "script", "path": name, "kernel": "never_launched", "args": "x=float32[3]"}
    sentence = studio_server.refused("/api/kernel/open", {"session": session, "target": by_hand})
    assert "grid" in sentence
    by_hand |= {"grid": [1], "block": [1]}
    answer = studio_server.post("/api/kernel/open", {"session": session, "target": by_hand})
    assert answer["walk"]["block"] == [1, 1, 1]


@wide
def test_the_process_of_a_tab_starts_when_the_page_is_asked_for(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        server.studio.prepare("digits")
        assert not server.studio.sessions._open
        server.studio.prepare("kernel")
        (ahead,) = server.studio.sessions._open
        for _ in range(2):
            assert server.ask("GET", "/kernel").status == 200
        assert list(server.studio.sessions._open) == [ahead]
        assert server.post("/api/kernel/begin")["session"] == ahead
        assert server.post("/api/kernel/begin")["session"] != ahead
        assert server.ask("GET", "/kernel").status == 200
        _, _, third = server.studio.sessions._open
        server.studio.sessions.close(third)
        session = server.post("/api/kernel/begin")["session"]
        assert session != third
        target = {"kind": "project", "name": "tiled_16", "size": [16, 16, 16]}
        assert server.post("/api/kernel/open", {"session": session, "target": target})["walk"]["steps"]


def test_a_script_that_is_named_on_the_command_line_comes_first_wherever_it_lies(tmp_path: Path) -> None:
    folder, script = tmp_path / "here", tmp_path / "there" / "mine.py"
    for each in (folder, script.parent):
        each.mkdir()
    script.write_text(SCRIPT)
    (script.parent / "other.py").write_text(SCRIPT)
    with running(folder, [script]) as server:
        begun = server.post("/api/kernel/begin")
        assert begun["first"] is None
        choices = server.get("/api/kernel/choices")
        assert choices["named"]
        assert choices["scripts"] == [{"path": str(script), "kernels": ["scale", "never_launched"]}]
        target = {"kind": "script", "path": str(script), "kernel": "scale"}
        assert server.post("/api/kernel/open", {"session": begun["session"], "target": target})["walk"]["steps"]
        target["path"] = str(script.parent / "other.py")
        sentence = server.refused("/api/kernel/open", {"session": begun["session"], "target": target})
        assert "outside the folders" in sentence


def opening(folder: Path, text: str) -> dict[str, Any]:
    (folder / "mine.py").write_text(text)
    return {"kind": "script", "path": "mine.py", "kernel": "scale"}


@wide
def test_a_script_that_goes_wrong_is_told_in_a_sentence(
    studio_server: RunningStudio, session: str, tmp_path: Path
) -> None:
    for text, sentence in (
        ("raise RuntimeError('no')", "mine.py raised an exception: RuntimeError: no"),
        ("import os\nos._exit(3)", "the process of this kernel has ended"),
        *((("def broken(:", "SyntaxError"), ("x = 1", "it launches no kernel")) if WIDE else ()),
    ):
        target = opening(tmp_path, text)
        assert sentence in studio_server.refused("/api/kernel/open", {"session": session, "target": target})
    # An index out of bounds shows in the walk, whose last step is its line.
    target = opening(tmp_path, SCRIPT.replace("x.size", "x.size + 1"))
    studio_server.post("/api/kernel/open", {"session": session, "target": target})
    walk = studio_server.post("/api/kernel/walk", {"session": session, "block": 1, "warp": 0})["walk"]
    assert "x[40] is out of bounds" in walk["fault"]
    assert walk["faultLine"] == walk["steps"][-1]["l"][:2]
    target = {"kind": "project", "name": "dense.multiply", "size": [4, 5, 1]}
    assert studio_server.post("/api/kernel/open", {"session": session, "target": target})["walk"]["steps"]


@wide
def test_a_script_that_never_ends_is_stopped(
    studio_server: RunningStudio, session: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(workers.SECONDS, "open", 3.0)
    target = opening(tmp_path, "while True:\n    pass")
    sentence = studio_server.refused("/api/kernel/open", {"session": session, "target": target})
    assert sentence.startswith("the kernel did not end within 3 seconds, and was stopped")


def test_what_cannot_be_opened_is_refused(studio_server: RunningStudio, session: str) -> None:
    for target, sentence in (
        ({"kind": "script", "path": "../elsewhere.py", "kernel": "k"}, "outside the folders"),
        ({"kind": "script", "path": "notes.txt", "kernel": "k"}, "is no Python file"),
        ({"kind": "script", "path": "missing.py", "kernel": MARKUP}, "there is no script"),
        ({"kind": "task", "id": "11.1"}, "there is no course folder here"),
        ({"kind": "project", "name": MARKUP, "size": [8, 8, 8]}, "no kernel of this project is called"),
        ({"kind": "project", "name": "naive", "size": [8, 8]}, "size: expected 3 whole numbers from 1 to 512"),
        ({"kind": "project", "name": "naive", "size": [8, 8, 0]}, "size: expected 3 whole numbers from 1 to 512"),
        ("naive", "target: expected an object"),
    ):
        assert sentence in studio_server.refused("/api/kernel/open", {"session": session, "target": target})


def test_a_strangers_session_is_refused_and_an_early_question_too(studio_server: RunningStudio, session: str) -> None:
    assert "session has ended" in studio_server.refused("/api/kernel/walk", {"session": "x"})
    assert "no kernel is open" in studio_server.refused("/api/kernel/walk", {"session": session})


def wait_until(there: Callable[[], bool], seconds: float = 100.0) -> None:
    last = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < last
        time.sleep(0.02)


def gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


def test_the_process_ends_with_its_session(studio_server: RunningStudio, session: str) -> None:
    process = studio_server.studio.sessions.get("kernel", session)._worker._child.pid
    studio_server.studio.sessions.close(session)
    wait_until(lambda: gone(process))


@wide
def test_the_process_ends_with_the_studio_in_the_middle_of_a_script(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        session = server.post("/api/kernel/begin")["session"]
        tab = server.studio.sessions.get("kernel", session)
        first = tab._worker
        target = opening(tmp_path, "while True:\n    pass")
        body = json.dumps({"session": session, "target": target}).encode()

        def ask() -> None:
            with contextlib.suppress(http.client.HTTPException, OSError):  # the studio ends before it answers
                server.ask("POST", "/api/kernel/open", body)

        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        wait_until(lambda: tab._worker is not first)
        process = tab._worker._child.pid
        time.sleep(0.5)  # it is in its loop, or on the way there
        assert not gone(process)
    wait_until(lambda: gone(process))
    asking.join(100)


@wide
def test_the_process_ends_when_the_studio_is_killed_in_the_middle_of_a_script(tmp_path: Path) -> None:
    worker = workers.Worker()
    (tmp_path / "mine.py").write_text("while True:\n    pass")
    target = {"kind": "script", "path": str(tmp_path / "mine.py"), "kernel": "k"}
    child = worker._child
    child.stdin.write(f'{{"do": "open", "block": 0, "warp": 0, "target": {str(target).replace(chr(39), chr(34))}}}\n')
    child.stdin.flush()
    time.sleep(0.5)
    child.stdin.close()  # what the system does when a process is killed
    assert child.wait(300) == -signal.SIGKILL  # with its group: what the script has started ends, too
    worker.close()


def test_scripts_are_found_without_being_run(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("from numba import cuda\n@cuda.jit\ndef k(x): pass\nraise SystemExit")
    (tmp_path / "b.py").write_text("cuda = 1; def broken(")
    (tmp_path / "c.py").write_text("print('no kernel; cuda')")
    (tmp_path / "d.py").write_bytes(b"cuda \xff")
    (tmp_path / "f.py").write_text("cuda = " + "-" * 200_000 + "1")
    (tmp_path / "g.py").write_text("from numba import cuda\n@cuda.jit\ndef k(x): pass\n" + "#" * 400_000)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "h.py")
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "e.py").write_text("from numba.cuda import jit\n@jit('void()')\ndef one(): pass")
    assert scripts(tmp_path, []) == [
        {"path": "a.py", "kernels": ["k"]},
        {"path": "examples/e.py", "kernels": ["one"]},
    ]
    assert kernels_in("@cuda.jit(device=True)\ndef d(): pass\n@other\ndef e(): pass") == []


@wide
def test_a_learners_kernel_is_shown_as_it_stands_in_the_learners_file(
    studio_server: RunningStudio, session: str, tmp_path: Path
) -> None:
    known = course()
    workspace, _ = learners_folder.start(tmp_path / learners_folder.DEFAULT, known)
    task = next(task for task in known.tasks if task.function == "columns_by_block")
    offered = [each["id"] for each in studio_server.get("/api/kernel/choices")["tasks"]]
    assert offered == [case.id for case in known.cases if case.week >= 9]  # stubs have nothing to show
    file = workspace.folder / task.file
    file.write_text("# a line of mine\n\n" + solution_file(task.file))
    assert task.id in [each["id"] for each in studio_server.get("/api/kernel/choices")["tasks"]]
    target = {"kind": "task", "id": task.id}
    walk = studio_server.post("/api/kernel/open", {"session": session, "target": target})["walk"]
    (source,) = walk["sources"]
    assert source["file"] == str(file)
    lines = file.read_text().splitlines()
    assert source["lines"] == lines[source["first"] - 1 : source["first"] - 1 + len(source["lines"])]
    assert "syncthreads" in lines[walk["barriers"][0][1] - 1]
    target = {"kind": "task", "id": "14.d"}  # its mistake ends the walk
    walk = studio_server.post("/api/kernel/open", {"session": session, "target": target})["walk"]
    assert "live threads" in walk["fault"]
    studio_server.post("/api/kernel/open", {"session": session, "target": {"kind": "task", "id": task.id}})
    verdicts = studio_server.post("/api/kernel/verdicts", {"session": session})["verdicts"]
    assert {each[0] for each in verdicts["lines"]} == {str(file)}
