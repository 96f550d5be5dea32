"""shared.bench.running.session: passes in their order, results kept after every job, nothing lost to interrupts."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from shared.bench.measuring.rows import BenchRow, Curve
from shared.bench.measuring.timing import summarise
from shared.bench.records.document import Results, load
from shared.bench.running import session, worker
from shared.bench.running.plan import Job, Plan
from shared.bench.running.predict import Question
from shared.bench.running.session import Session, Watcher, start_process
from shared.machine.hardware import usable_cores
from shared.machine.software import THREAD_VARIABLES
from tests import interrupts
from tests.wide import wide, widely

ROOT = Path(__file__).resolve().parents[4]
PLAN = Plan(
    stages=("stage2_numpy",), parts=("inference", "memory", "phases"), passes=3
)  # memory: in the first pass alone


def row(name: str, ratio: float = 2.0) -> BenchRow:
    return BenchRow("inference", "stage2_numpy", name, "float32", (1,), 1, summarise([ratio]), "r", ratio)


def a_pass(ratio: float = 2.0) -> Callable[[Plan, int, Sequence[int]], Iterator[dict[str, Any]]]:
    """What a pass says that finds one row in every job, and one curve."""

    def start(plan: Plan, number: int, numbers: Sequence[int]) -> Iterator[dict[str, Any]]:
        yield {"environment": {"cpu": "a", "cores": 1, "pass": number}}
        yield {"unavailable": {"pytorch": "not installed"}}
        for i in numbers:
            yield {"row": row(f"job {i}", ratio * number).as_dict()}
            yield {"curve": Curve("stage2_numpy", "n", "d", [1], [0.5], [0.9], [1.0]).as_dict()}
            yield {"done": i}

    return start


class Log(Watcher):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def begin(self, job: Job, number: int) -> None:
        self.lines.append(f"{number} {job.title}")

    def finish(self, job: Job) -> None:
        self.lines.append(f"done {job.title}")


def test_every_pass_measures_everything_but_what_is_measured_once() -> None:
    log = Log()
    results = Session(PLAN, lambda _: None, log, start=a_pass()).run()
    begun = [line for line in log.lines if not line.startswith("done")]
    assert begun == [
        "1 inference", "1 memory", "1 copies and compilers",
        "2 inference", "2 copies and compilers",
        "3 inference", "3 copies and compilers",
    ]  # fmt: skip
    assert log.lines.count("done inference") == 3
    assert (results.complete, results.passes) == (True, 3)
    assert {each.name: (each.ratio, each.passes) for each in results.rows} == {
        "job 0": (4.0, 3),
        "job 1": (2.0, 1),
        "job 2": (4.0, 3),
    }


def test_curves_are_those_of_the_first_pass_and_so_is_the_environment() -> None:
    results = Session(PLAN, lambda _: None, start=a_pass()).run()
    assert len(results.curves) == 3  # one a job
    assert results.environment["pass"] == 1
    assert (results.environment["cores"], results.environment["threads"]) == (usable_cores(), 1)
    assert results.unavailable == {"pytorch": "not installed"}


def test_results_are_kept_after_every_job() -> None:
    kept: list[Results] = []
    Session(PLAN, kept.append, start=a_pass()).run()
    assert [len(results.rows) for results in kept] == [1, 2, 3, 3, 3, 3, 3, 3]
    assert [results.complete for results in kept] == [False] * 7 + [True]


def test_an_interrupt_keeps_what_was_measured_and_says_that_it_is_not_all() -> None:
    def start(plan: Plan, number: int, numbers: Sequence[int]) -> Iterator[dict[str, Any]]:
        yield from a_pass()(plan, number, numbers[:1])
        yield {"row": row("of a job that was not finished").as_dict()}
        raise KeyboardInterrupt

    kept: list[Results] = []
    results = Session(PLAN, kept.append, start=start).run()
    assert [each.name for each in results.rows] == ["job 0", "of a job that was not finished"]
    assert (results.complete, results.passes) == (False, 0)
    assert kept[-1] == results


def test_a_pass_that_breaks_down_is_an_error_and_what_it_found_is_kept() -> None:
    def start(plan: Plan, number: int, numbers: Sequence[int]) -> Iterator[dict[str, Any]]:
        yield {"row": row("before the end").as_dict()}
        raise ChildProcessError("pass 1: its process was killed by signal 9")

    kept: list[Results] = []
    with pytest.raises(ChildProcessError, match="killed by signal 9"):
        Session(PLAN, kept.append, start=start).run()
    assert [each.name for each in kept[-1].rows] == ["before the end"]


class Guesser(Watcher):
    """Guesses 10 before it sees anything."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def found(self, thing: BenchRow | Curve) -> None:
        self.told.append("measured")

    def guess(self, question: Question) -> float | None:
        self.told.append("asked")
        return 10.0

    def answer(self, question: Question, guess: float | None, measured: float | None) -> None:
        self.told.append(f"{guess} beside {measured}")


def test_a_guess_is_asked_for_before_its_measurement_and_shown_beside_the_result() -> None:
    def start(plan: Plan, number: int, numbers: Sequence[int]) -> Iterator[dict[str, Any]]:
        for batch, seconds in ((1, 1.0), (1024, 64.0)):
            found = BenchRow(
                "inference", "stage2_numpy", str(batch), "float32", (1,), 1, summarise([seconds]), samples=batch
            )
            yield {"row": found.as_dict()}
        yield {"done": numbers[0]}

    watcher = Guesser()
    plan = Plan(stages=("stage2_numpy",), parts=("inference",), passes=2)
    results = Session(plan, lambda _: None, watcher, start=start).run(predict=True)
    assert watcher.told == ["asked", *["measured"] * 4, "10.0 beside 16.0"]
    (prediction,) = results.predictions
    assert (prediction["guess"], prediction["measured"], prediction["unit"]) == (10.0, 16.0, "times as many")
    assert (results.complete, results.passes) == (True, 2)


def test_a_pass_in_a_process_of_its_own_finds_what_one_in_this_process_finds() -> None:
    plan = Plan(stages=("stage2_numpy",), parts=("ladders",), sizes=(3,), quick=True, passes=1)
    (job,) = [i for i, each in enumerate(session.jobs(plan)) if each.part == "ladders"]
    there = list(start_process(plan, 1, [job]))
    here = list(worker.messages(plan, 1, [job]))
    assert [sorted(message) for message in there] == [sorted(message) for message in here]
    assert [worker.read(m).key for m in there if "row" in m] == [worker.read(m).key for m in here if "row" in m]  # type: ignore[union-attr]
    assert there[0]["environment"]["thread_variables"] == dict.fromkeys(THREAD_VARIABLES, "1")


def test_a_process_that_dies_is_told_with_how_it_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import os; os._exit(3)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(ChildProcessError, match=r"pass 2: its process ended with exit code 3 before its work was done"):
        list(start_process(PLAN, 2, [0]))


@pytest.mark.skipif(os.name != "posix", reason="signals to a process are POSIX's")
def test_a_process_that_is_killed_is_told_with_its_signal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import os; os.kill(os.getpid(), 9)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(ChildProcessError, match="was killed by signal 9"):
        list(start_process(PLAN, 1, [0]))


MEASURING = """
import os, sys
if os.environ.get("GROUNDUP_THREADS") == "1" and "READY" in os.environ:
    import atexit, time
    from pathlib import Path
    from shared.bench.kinds import ladders
    from shared.bench.measuring.compared_candidates import Effort

    real = ladders.ladder_rows

    def one_row_and_a_long_wait(stages, **_):
        yield next(iter(real(stages, sizes=[2], effort=Effort(repeats=1, threads=1))))
        Path(os.environ["READY"]).write_text(str(os.getpid()))
        time.sleep(60)

    ladders.ladder_rows = one_row_and_a_long_wait
"""


@wide
@pytest.mark.skipif(os.name != "posix", reason="signals to a process are POSIX's")
@pytest.mark.parametrize("number", widely([signal.SIGINT, signal.SIGTERM]))
def test_an_interrupted_program_keeps_its_results_and_leaves_no_process_behind(tmp_path: Path, number: int) -> None:
    (tmp_path / "sitecustomize.py").write_text(MEASURING)
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    environment = {name: value for name, value in os.environ.items() if name not in THREAD_VARIABLES}
    environment |= {"PYTHONPATH": path, "READY": str(tmp_path / "ready")}
    options = ["--threads", "1", "--stages", "2", "--only", "ladders", "--out", str(tmp_path / "out")]
    command = [sys.executable, "-c", "from groundup.cli import main; main()", "bench", *options]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(
        command, env=environment, **pipes, text=True, start_new_session=True, preexec_fn=interrupts.hear
    )
    try:
        for _ in range(1200):
            if (tmp_path / "ready").exists() or process.poll() is not None:
                break
            time.sleep(0.05)
        os.kill(process.pid, number)
        _, error = process.communicate(timeout=600)
    finally:
        process.kill()
    assert process.returncode == 2, error
    assert "rows that were measured so far are kept" in error
    results = load(tmp_path / "out" / "results.json")
    assert (results.complete, results.passes) == (False, 0)
    assert [each.kind for each in results.rows if each.kind == "ladder"] == ["ladder"]
    assert (tmp_path / "out" / "report.html").is_file()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "ready").read_text()), 0)


def test_a_plan_survives_its_way_to_another_process() -> None:
    plan = Plan(stages=("stage2_numpy",), sizes=(3, 4), mnist="", quick=True, emulated=True)
    assert Plan.from_dict(json.loads(json.dumps(plan.as_dict()))) == plan
