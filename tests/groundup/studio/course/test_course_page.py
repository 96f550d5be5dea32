"""The page Course through a running studio: graded at every save, by the course's own grader."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from groundup.course.faults import places
from groundup.course.judging.judge import judge
from groundup.course.judging.verdict import Verdict
from groundup.course.judging.warden import descendants
from groundup.course.learner.learners_folder import DEFAULT, opened
from groundup.course.learner.project_files import program
from groundup.course.learner.record import NAME
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import course
from groundup.studio.course import grading
from groundup.studio.course.watching import Watch
from shared.machine import processes
from tests.groundup.course.course_helpers import new_folder, write
from tests.groundup.course.course_mutants.week11 import AXES, EXCHANGED
from tests.wide import wide

FIRST = course().task("1.1")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return new_folder(tmp_path_factory.mktemp("course") / DEFAULT).folder


@pytest.fixture
def learner(tmp_path: Path, template: Path) -> Workspace:
    shutil.copytree(template, tmp_path / DEFAULT)
    return opened(tmp_path / DEFAULT, course())


def fresh(learner: Workspace) -> Workspace:
    return opened(learner.folder, course())


class Seen:
    """The values of a watch as they come, without a page."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch

    def until(self, wanted: Callable[[dict[str, Any]], bool], seconds: float = 600) -> dict[str, Any]:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = self.watch.latest._value
            if value is not None and wanted(value):
                found: dict[str, Any] = value
                return found
            time.sleep(0.05)
        raise AssertionError(f"not within {seconds} s; the last value: {self.watch.latest._value}")


def test_without_a_course_folder_the_page_makes_one(studio_server: Any, tmp_path: Path) -> None:
    said = studio_server.get("/api/course/begin")
    assert said["folder"] is None
    assert "no course folder here" in said["said"]
    assert studio_server.post("/api/course/start")["folder"] == str(tmp_path / DEFAULT)
    found = studio_server.get("/api/course/begin")
    assert found["progress"]["current"] == "1.1"
    assert found["progress"]["tasks"] == len(course().tasks)
    assert (tmp_path / DEFAULT / NAME).is_file()


def test_a_task_has_its_weeks_page_its_place_and_its_function(studio_server: Any, learner: Workspace) -> None:
    found = studio_server.get("/api/course/task?task=1.1")
    assert found["week"]["title"] == "Matrices as lists of lists"
    assert found["place"] == f"{learner.folder / FIRST.file}:{learner.place(FIRST).first}"
    assert found["about"].startswith("Matrix multiplication in pure Python, slowest rung first.")
    assert studio_server.get("/api/course/task?task=6.1")["about"]
    assert found["text"].startswith("<h3>Week 1: Matrices as lists of lists</h3>")
    shown = "\n".join("".join(text for _, text in line) for line in found["source"]["lines"])
    assert shown == learner.function(FIRST).rstrip("\n")
    assert "there is no task '99.1'" in studio_server.refused("/api/course/task?task=99.1")


def test_hints_are_counted_as_the_command_counts_them(studio_server: Any, learner: Workspace) -> None:
    for level in (1, 2, 3, 3):
        found = studio_server.post("/api/course/hint", {"task": "1.1"})
        assert found["level"] == level
        assert found["text"] == " ".join(FIRST.hints[level - 1].split())
    assert fresh(learner).record.of("1.1").hints == 3
    assert len(studio_server.get("/api/course/task?task=1.1")["hints"]) == 3


def test_the_solution_opens_after_a_pass_or_when_it_is_asked_for(studio_server: Any, learner: Workspace) -> None:
    assert studio_server.post("/api/course/solution", {"task": "1.1"}) == {"open": False, "lines": []}
    assert not fresh(learner).record.of("1.1").revealed
    found = studio_server.post("/api/course/solution", {"task": "1.1", "reveal": True})
    assert found["open"]
    assert any(line.startswith("-    raise NotImplementedError") for line in found["lines"])
    assert fresh(learner).record.of("1.1").revealed


def test_a_task_can_be_skipped(studio_server: Any, learner: Workspace) -> None:
    assert studio_server.post("/api/course/skip", {"task": "1.1"})["following"] == "1.2"
    assert fresh(learner).record.of("1.1").state == "skipped"


def test_the_fault_of_a_detective_exercise_is_named(studio_server: Any, learner: Workspace) -> None:
    case = course().task("9.d")
    assert case.fault is not None
    line = min(places(program(case), case.fault))
    body = {"task": case.id, "line": str(line), "kind": case.fault.kind}
    wrong = studio_server.post("/api/course/answer", {**body, "line": "1"})
    assert (wrong["line"], wrong["kind"], wrong["because"]) == (False, True, "")
    assert not fresh(learner).record.of(case.id).found
    right = studio_server.post("/api/course/answer", body)
    assert (right["line"], right["kind"]) == (True, True)
    assert right["because"]
    assert fresh(learner).record.of(case.id).found
    assert "no detective exercise" in studio_server.refused("/api/course/answer", {**body, "task": "1.1"})
    assert "expected a line's number" in studio_server.refused("/api/course/answer", {**body, "line": "x"})


def test_the_lens_does_not_name_the_fault_of_a_detective_exercise() -> None:
    failed = Verdict(False, "memory")
    assert grading.concerns_memory(course().task("11.1"), failed)
    assert not grading.concerns_memory(course().task("9.d"), failed)
    assert not grading.concerns_memory(FIRST, failed)


def test_a_session_that_is_not_there_is_refused(studio_server: Any, learner: Workspace) -> None:
    assert "session has ended" in studio_server.refused("/api/course/events?session=x")
    assert "session has ended" in studio_server.refused("/api/course/again", {"session": "x"})
    assert "named by a text" in studio_server.refused("/api/course/hint", {"task": 3})


def test_a_figure_is_one_of_the_weeks_and_no_other_file(studio_server: Any) -> None:
    assert (
        studio_server.ask("GET", "/api/course/figure?name=week01-product.svg").headers["content-type"]
        == "image/svg+xml"
    )
    assert "no such figure" in studio_server.refused("/api/course/figure?name=../../pyproject.toml")


@wide
def test_every_save_is_graded_and_a_wrong_matrix_is_drawn(learner: Workspace) -> None:
    watch = Watch(learner, FIRST)
    seen = Seen(watch)
    try:
        stub = seen.until(lambda value: value["state"] == "done")
        assert stub["verdict"]["stub"]
        write(fresh(learner), FIRST, "for k in range(k_size)", "for k in range(k_size - 1)")
        wrong = seen.until(lambda value: value["state"] == "done" and value["number"] > stub["number"])
        expected = judge(fresh(learner), FIRST)
        assert wrong["verdict"]["what"] == expected.what
        assert wrong["verdict"]["likely"] == expected.cause
        assert wrong["verdict"]["picture"] == expected.picture
        assert expected.picture is not None
        assert expected.picture["count"] == 4
        write(fresh(learner), FIRST)
        right = seen.until(lambda value: value["state"] == "done" and value["number"] > wrong["number"])
        assert right["verdict"]["passed"]
        assert right["following"] == "1.2"
        assert right["progress"]["passed"] == 1
        assert fresh(learner).record.of("1.1").state == "passed"
    finally:
        watch.close()


def test_a_save_cancels_the_grading_before_it_and_closing_ends_it(learner: Workspace) -> None:
    write(learner, FIRST, "    return c", "    while True: pass")
    watch = Watch(fresh(learner), FIRST)
    seen = Seen(watch)
    try:
        first = seen.until(lambda value: value["state"] == "checking")
        assert watch._child is not None
        child = watch._child[0]
        write(fresh(learner), FIRST, "    return c", "    while 1: pass")
        seen.until(lambda value: value["state"] == "checking" and value["number"] > first["number"])
        assert child.poll() is not None
        last = watch._child[0]
    finally:
        watch.close()
    assert last.poll() is not None
    assert not watch._thread.is_alive()


def test_the_checks_are_told_while_they_run(learner: Workspace) -> None:
    write(learner, FIRST, "    return c", "    import time\n    time.sleep(0.04)\n    return c")
    watch = Watch(fresh(learner), FIRST)
    seen = Seen(watch)
    try:
        running = seen.until(lambda value: len(value.get("checks", ())) >= 3)
        assert watch._report is not None
        folder = Path(watch._report.name)
        assert running["checks"][-1][1] is None
        done = seen.until(lambda value: value["state"] == "done")
        passed = [tuple(each) for each in done["verdict"]["rungs"]]
        assert [name for name, _ in passed][:2] == ["shape", "values"]
        assert running["checks"][:-1] == passed[: len(running["checks"]) - 1]
        assert "checks" not in done
    finally:
        watch.close()
    assert not folder.exists()


def test_a_file_that_is_gone_is_a_sentence_and_its_return_is_graded(learner: Workspace) -> None:
    path = learner.folder / FIRST.file
    text = path.read_bytes()
    watch = Watch(learner, FIRST)
    seen = Seen(watch)
    try:
        done = seen.until(lambda value: value["state"] == "done")
        path.unlink()
        gone = seen.until(lambda value: value["state"] == "unreadable")
        assert "is not there any more" in gone["said"]
        path.write_bytes(text)
        assert seen.until(lambda value: value["state"] == "done" and value["number"] > gone["number"])
        assert gone["number"] > done["number"]
    finally:
        watch.close()


def test_the_events_of_a_watch_reach_the_page(studio_server: Any, learner: Workspace) -> None:
    session = studio_server.post("/api/course/watch", {})["session"]
    values = studio_server.events(f"/api/course/events?session={session}", 2)
    assert [value["task"] for value in values] == ["1.1", "1.1"]
    assert values[-1]["state"] in ("checking", "done")
    studio_server.post("/api/course/choose", {"session": session, "task": "1.2"})
    assert studio_server.events(f"/api/course/events?session={session}", 1)[0]["task"] in ("1.1", "1.2")


@wide
def test_a_failed_check_of_memory_has_the_lenss_pictures(learner: Workspace) -> None:
    task = course().task("11.1")
    write(learner, task, AXES, EXCHANGED)
    command = [sys.executable, "-P", "-m", "groundup.studio.course.grading", str(learner.folder), task.id]
    environment = processes.finding_our_packages(os.environ)
    # Its input stays open, as the studio's end of it does: where that closes, the grading ends.
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as grading:
        assert grading.stdout is not None
        found = json.loads(grading.stdout.read())
    assert found["verdict"]["rung"] == "memory"
    assert any("Uncoalesced" in each["title"] for each in found["lens"]["findings"])
    first = found["lens"]["pictures"][0]
    assert f"line {found['verdict']['line']}" in first["name"]
    assert first["svg"].startswith("<svg xmlns")


@wide
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no FIFOs")
def test_whatever_takes_the_place_of_the_file_is_a_sentence_and_its_return_is_graded(learner: Workspace) -> None:
    path = learner.folder / FIRST.file
    text = path.read_bytes()
    watch = Watch(learner, FIRST)
    seen = Seen(watch)

    def is_loop() -> None:
        path.symlink_to(path.name)

    try:
        done = seen.until(lambda value: value["state"] == "done")
        number = done["number"]
        for put in (path.mkdir, lambda: os.mkfifo(path), is_loop, lambda: path.symlink_to("/dev/zero")):
            path.rmdir() if path.is_dir() else path.unlink()
            put()
            told = seen.until(lambda value, after=number: value["state"] == "unreadable" and value["number"] > after)
            assert path.name in told["said"]
            assert told["progress"]["tasks"] == done["progress"]["tasks"]
            number = told["number"]
        path.unlink()
        path.write_bytes(text)
        seen.until(lambda value: value["state"] == "done" and value["number"] > number)
    finally:
        watch.close()


@wide
def test_what_goes_wrong_in_a_watch_is_told_once_and_it_goes_on(learner: Workspace, monkeypatch: Any) -> None:
    calls = []

    def fail(*given: Any, **more: Any) -> Any:
        calls.append(given)
        raise OSError(24, "Too many open files")

    watch = Watch(learner, FIRST)
    seen = Seen(watch)
    try:
        done = seen.until(lambda value: value["state"] == "done")
        monkeypatch.setattr(processes, "start", fail)
        watch.again()
        failed = seen.until(lambda value: value["state"] == "failed")
        assert "cannot be watched now: [Errno 24] Too many open files" in failed["said"]
        assert failed["progress"]["tasks"] == done["progress"]["tasks"]
        for _ in range(1000):
            if len(calls) > 2:
                break
            time.sleep(0.1)
        assert watch.latest._value["number"] == failed["number"]
        monkeypatch.undo()
        seen.until(lambda value: value["state"] == "done" and value["number"] > failed["number"])
    finally:
        watch.close()


def test_a_fifo_in_place_of_the_progress_is_a_sentence(studio_server: Any, learner: Workspace) -> None:
    (learner.folder / NAME).unlink(missing_ok=True)
    os.mkfifo(learner.folder / NAME)
    assert f"{NAME} is a FIFO" in studio_server.get("/api/course/begin")["said"]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody adopts what a killed process leaves")
def test_a_grading_ends_with_a_studio_that_is_killed(learner: Workspace) -> None:
    write(learner, FIRST, "    return c", "    while True: pass")
    script = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from groundup.course.learner.learners_folder import opened\n"
        "from groundup.course.manifest import course\n"
        "from groundup.studio.course.watching import Watch\n"
        "watch = Watch(opened(Path(sys.argv[1]), course()), course().task('1.1'))\n"
        "while watch._child is None: time.sleep(0.01)\n"
        "print(watch._child[0].pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    variables = processes.finding_our_packages(os.environ)
    with subprocess.Popen(
        [sys.executable, "-c", script, str(learner.folder)], stdout=subprocess.PIPE, text=True, env=variables
    ) as studio:
        assert studio.stdout is not None
        grading = int(studio.stdout.readline())
        time.sleep(1.0)  # the learner's process begins
        below = [grading, *descendants(grading)]
        studio.kill()
    until = time.monotonic() + 100
    while any(map(runs, below)) and time.monotonic() < until:
        time.sleep(0.05)
    assert [each for each in below if runs(each)] == []


def runs(process: int) -> bool:
    """Whether the process is there and is no zombie that nobody has asked for."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
