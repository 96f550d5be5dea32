"""Code that reports its own pass does not pass: only a function that computes its result does."""

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from groundup.course import grading
from groundup.course.judging import examination, examiner, judge, questions
from groundup.course.judging.reports import MOST_BYTES, events_in
from groundup.course.learner.functions import replaced
from groundup.course.learner.project_files import solution
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import ROOT, Task, course
from tests.groundup.course.course_helpers import mark_passed, new_folder, write
from tests.stages import REASONS
from tests.wide import wide, widely, widened

FIRST = course().task("1.1")

DONE = r"'\n{\"event\": \"done\"}\n'"

ZEROS = "return [[0.0] * len(b[0]) for _ in a]"

BY_FRAMES = """
import os, sys
frame = sys._getframe()
while 'tell' not in frame.f_locals:
    frame = frame.f_back
frame.f_locals['tell']('done')
os._exit(0)
"""

BY_GC = f"""
import gc, io, os
for each in gc.get_objects():
    if type(each) is io.TextIOWrapper and str(each.name).endswith('report.jsonl'):
        each.write({DONE})
        each.flush()
        os._exit(0)
"""

BY_DESCRIPTORS = f"""
import os
for number in range(3, 64):
    try:
        os.write(number, {DONE}.encode())
    except OSError:
        pass
os._exit(0)
"""

BY_PATH = f"""
import json, os, sys
asked = json.loads(open(sys.argv[1]).read())
open(asked['report'], 'a').write({DONE})
zeros = {{'': {{'shape': [1, 1], 'data': 'AAAAAAAAAAA='}}}}
open(asked['answered'], 'w').write(json.dumps([zeros]))
os._exit(0)
"""

BY_A_THREAD = f"""
import json, sys, threading
report = json.loads(open(sys.argv[1]).read())['report']
def write():
    while True:
        open(report, 'a').write({DONE})
threading.Thread(target=write, daemon=True).start()
{ZEROS}
"""

AT_EXIT = f"""
import atexit, json, sys
report = json.loads(open(sys.argv[1]).read())['report']
atexit.register(lambda: open(report, 'a').write({DONE}))
{ZEROS}
"""

WITHOUT_COMPARING = f"""
import sys
check = sys.modules['groundup.course.checks.check']
def count(tally, *more, **named):
    tally.count += 1
check.Tally.equal = check.Tally.holds = count
{ZEROS}
"""

ALWAYS_ALIKE = f"""
import sys, types
check = sys.modules['groundup.course.checks.check']
sys.modules['numpy'].allclose = lambda *given, **named: True
check.compare = lambda *given, **named: types.SimpleNamespace(ok=True)
{ZEROS}
"""

WITHOUT_CHECKS = f"""
import sys
frame = sys._getframe()
while frame and not {{'made', 'tally', 'tell'}} <= frame.f_locals.keys():
    frame = frame.f_back
if frame:
    del frame.f_locals['made'][1:]
{WITHOUT_COMPARING}
"""

NO_ANSWER = f"""
import sys
sys.modules['groundup.course.judging.questions'].answer = lambda *given: {{}}
{WITHOUT_COMPARING}
"""

FORGED: list[tuple[str, str]] = [
    ("frames", BY_FRAMES),
    ("gc", BY_GC),
    ("descriptors", BY_DESCRIPTORS),
    ("the path of the report", BY_PATH),
    ("a thread", BY_A_THREAD),
    ("atexit", AT_EXIT),
    ("a tally that only counts", WITHOUT_COMPARING),
    ("comparisons that always hold", ALWAYS_ALIKE),
    ("checks taken away", WITHOUT_CHECKS),
    ("no answer", NO_ANSWER),
]

TOLD = "all checks were told as passed, but the function does not give the right result for other numbers"


@pytest.fixture(scope="module")
def learner(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return new_folder(tmp_path_factory.mktemp("forged") / "course")


def with_body(learner: Workspace, task: Task, body: str, old: str) -> None:
    """Write the solution with these lines in the place of `old`, a line of it."""
    write(learner, task, old, "\n".join(f"    {line}" for line in body.strip().splitlines()) + "\n")


@pytest.mark.parametrize(("how", "body"), widely(FORGED, 4), ids=lambda each: "" if "\n" in each else each)
def test_a_forged_pass_does_not_count(learner: Workspace, how: str, body: str) -> None:
    with_body(learner, FIRST, body, "    return c")
    verdict = judge.judge(learner, FIRST)
    assert not verdict.passed
    if how != "atexit":  # no exit handler of the learner's runs, so there the check itself says what is wrong
        assert verdict.what == TOLD
        assert verdict.expected
        assert verdict.expected != verdict.got


def test_a_function_that_the_learners_file_deletes_is_not_taken_from_the_project(learner: Workspace) -> None:
    task = course().task("5.1")
    write(learner, task, "return", "return None  #")
    path = learner.folder / task.file
    before = path.read_text(encoding="utf-8")
    path.write_text(f"{before}\n\ndel {task.function}\n", encoding="utf-8")
    verdict = judge.judge(learner, task)
    path.write_text(before, encoding="utf-8")
    assert not verdict.passed
    assert f"has no attribute '{task.function}'" in verdict.what


@wide
def test_a_forged_pass_of_another_floor_does_not_count(learner: Workspace) -> None:
    numpy_task = course().task("4.3")
    with_body(learner, numpy_task, BY_FRAMES, solution(numpy_task).splitlines()[-1])
    assert judge.judge(learner, numpy_task).what == TOLD
    if not REASONS.get("stage4_numba_cuda"):
        kernel = course().task("9.2")
        write(learner, kernel)
        path = learner.folder / kernel.file
        path.write_text(path.read_text(encoding="utf-8") + BY_FRAMES, encoding="utf-8")
        assert judge.judge(learner, kernel).what == TOLD


@wide
@pytest.mark.skipif(bool(REASONS.get("stage3_c")), reason=str(REASONS.get("stage3_c")))
def test_a_pass_forged_in_c_does_not_count(learner: Workspace) -> None:
    task = course().task("6.2")
    write(learner, task)
    text, place = learner.text(task.file), learner.place(task)
    head = text.splitlines(keepends=True)[place.first - 1]
    body = head + (
        '    static const char done[] = "\\n{\\"event\\": \\"done\\"}\\n";\n'
        "    extern long write(int, const void *, size_t);\n    extern void _exit(int);\n"
        "    (void)rows, (void)columns, (void)bias, (void)values;\n"
        "    for (int i = 3; i < 64; i++)\n        (void)!write(i, done, sizeof done - 1);\n    _exit(0);\n}\n"
    )
    (learner.folder / task.file).write_text(replaced(text, place, body), encoding="utf-8")
    assert judge.judge(learner, task).what == TOLD


@wide
def test_a_forged_checkpoint_does_not_count(tmp_path: Path) -> None:
    learner = new_folder(tmp_path / "course")
    phase = course().phases[0]
    with_body(learner, FIRST, BY_FRAMES, "    return c")
    mark_passed(learner, FIRST)
    verdict = judge.judge_checkpoint(learner, phase)
    assert not verdict.passed
    assert verdict.what == TOLD
    write(learner, FIRST)
    mark_passed(learner, FIRST)
    assert judge.judge_checkpoint(learner, phase).passed


# --- the report ---


def test_of_a_report_only_events_count(tmp_path: Path) -> None:
    report = tmp_path / "report.jsonl"
    whole = {"event": "passed", "name": "shape", "comparisons": 3}
    lines: list[Any] = [
        whole,
        {**whole, "comparisons": "3"},
        {**whole, "more": 1},
        {"event": "wrong", "what": "x"},
        {"event": ["done"]},
        ["done"],
        7,
    ]
    text = "\n".join([*map(json.dumps, lines), "{bad}", '{"event": "done", "x": NaN}', "[" * 10_000, '{"event": "do'])
    report.write_bytes(text.encode() + b"\xff\xfe")
    assert events_in(report) == [whole]
    report.unlink()
    assert events_in(report) == []
    if sys.platform != "win32":
        os.mkfifo(report)
        assert events_in(report) == []


# --- the examiner ---


def asked_often(task: Task) -> Any:
    reason = REASONS.get(task.stage)
    case = pytest.param(task, id=task.id, marks=[pytest.mark.skip(reason=reason)] if reason else [])
    return widened(case) if task.stage in ("stage3_c", "stage4_numba_cuda") else case


@pytest.mark.parametrize("task", [asked_often(task) for task in course().tasks])
def test_the_projects_function_answers_every_question_and_zeros_do_not(task: Task) -> None:
    if task.stage != "stage4_numba_cuda":
        ask_often(task.id, 20)
        return
    # As a grading does it: its checks may put NumPy in place of kernels for the rest of the process.
    code = f"from {__name__} import ask_often; ask_often({task.id!r}, 3)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def ask_often(task_id: str, rounds: int) -> None:
    """Draw as many questions of a task, and have right, zero and missing answers compared."""
    question = questions.question_of(grading.task_checks(task_id))
    seen = set()
    for seed in range(rounds):
        drawn = questions.draw(question, np.random.default_rng(seed))
        right = questions.right(question, drawn)
        text = json.dumps([questions.answer(question, pickle.loads(pickle.dumps(drawn)))])
        (got,) = questions.answers_in(text.encode())
        assert questions.wrong_in(right, got) is None
        assert questions.wrong_in(right, {name: np.zeros_like(each) for name, each in got.items()}) is not None
        assert questions.wrong_in(right, {}) is not None
        seen.add(tuple(each.tobytes() for each in right.values()))
    assert len(seen) > rounds / 2  # what was right once is not right again


@pytest.mark.parametrize(
    "text", [b"", b"[", b"7", b"[7]", b"[[]]", b'[{"": 7}]', b'[{"": {"shape": [1e999], "data": ""}}]',
             b'[{"": {"shape": [2], "data": "AAAA"}}]', b'[{"": {"shape": [], "data": "\xff"}}]']
)  # fmt: skip
def test_what_is_no_result_is_wrong_and_no_error(tmp_path: Path, text: bytes) -> None:
    answered = tmp_path / "answered"
    answered.write_bytes(text)
    found = examiner.compared(["1.1"], [{"": np.ones((2, 2))}], answered)
    assert (found["ok"], found["task"], found["got"]) == (False, "1.1", "nothing")
    answered.unlink()
    assert not examiner.compared(["1.1"], [{"": np.ones((2, 2))}], answered)["ok"]


@pytest.mark.parametrize("shape", [(), (2,), (1, 2), (2, 2, 1)])
def test_a_result_of_another_shape_is_wrong(shape: tuple[int, ...]) -> None:
    assert questions.wrong_in({"": np.ones((2, 2))}, {"": np.ones(shape)}) is not None


def test_an_examiner_stays_for_the_next_verdict_and_is_replaced_when_it_has_ended(learner: Workspace) -> None:
    write(learner, FIRST)
    examination.end_all()
    assert judge.judge(learner, FIRST).passed
    (first,) = examination._idle
    assert judge.judge(learner, FIRST).passed
    assert examination._idle == [first]
    first._process.kill()
    first._process.wait()
    assert judge.judge(learner, FIRST).passed
    assert examination._idle != [first]


@pytest.mark.parametrize("right", [0, 1, 2])
def test_each_of_several_tasks_is_examined(tmp_path: Path, right: int) -> None:
    """A checkpoint has many: the answers of the first `right` tasks are right, and those of the others are missing."""
    tasks = ["1.1", "1.3"]
    with examination.Examination(tasks, tmp_path) as asking:
        while not asking.asked.exists():
            time.sleep(0.01)
        asked = [questions.question_of(grading.task_checks(task)) for task in tasks]
        drawn = pickle.loads(asking.asked.read_bytes())
        answers = [questions.answer(*each) for each in zip(asked, drawn, strict=True)]
        asking.answered.write_text(json.dumps(answers[:right]))
        verdict = asking.confirmed(judge.Verdict(True))
    assert verdict.passed == (right == 2)
    assert verdict.passed or f"the function of {tasks[right]} does not give the right result" in verdict.what


def test_an_examiner_that_fails_lets_nothing_pass(tmp_path: Path) -> None:
    verdict = judge.Verdict(True)
    no_answer = pytest.raises(RuntimeError, match="the examiner gave no answer")
    with no_answer, examination.Examination(["99.9"], tmp_path) as asking:
        asking.confirmed(verdict)
    assert (tmp_path / "asked").read_bytes() == b""  # so the learner's process does not wait for it


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_an_examiner_ends_with_the_process_that_started_it() -> None:
    code = "from groundup.course.judging.examination import Examiner; import time; "
    code += "print(Examiner()._process.pid, flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as asking:
        assert asking.stdout is not None
        pid = int(asking.stdout.readline())
        asking.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline and _runs(pid):
        time.sleep(0.02)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize("line", ["\n", "[\n", '{"event": "passed", "name": "x", "comparisons": 3}\n'])
def test_a_report_of_millions_of_lines_has_no_events_and_is_read_at_once(line: str, tmp_path: Path) -> None:
    report = tmp_path / "report.jsonl"
    report.write_text(line * (MOST_BYTES // len(line)))
    began = time.process_time()
    assert events_in(report) == []
    assert time.process_time() - began < 5
