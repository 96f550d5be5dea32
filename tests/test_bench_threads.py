"""shared.bench_threads: the number of threads is settled before NumPy is loaded, and Ctrl-C still loses nothing."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shared import bench_threads
from shared.environment import THREAD_VARIABLES, usable_cores

ROOT = Path(__file__).resolve().parents[1]


def test_all_means_every_usable_core() -> None:
    assert bench_threads.thread_count("all") == usable_cores()
    assert bench_threads.thread_count("3") == 3


@pytest.mark.parametrize("choice", ["0", "-1", "two", "1.5", ""])
def test_another_number_of_threads_is_refused(choice: str) -> None:
    with pytest.raises(ValueError, match="threads: expected a number of at least 1, or all; got"):
        bench_threads.thread_count(choice)


def test_they_are_set_when_every_variable_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in THREAD_VARIABLES:
        monkeypatch.setenv(name, "2")
    assert bench_threads.are_set(2)
    assert not bench_threads.are_set(1)
    monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    assert not bench_threads.are_set(2)


def test_run_again_runs_this_program_and_returns_its_exit_code(capfd: pytest.CaptureFixture[str]) -> None:
    assert bench_threads.run_again(["--version"], 1) == 0
    assert capfd.readouterr().out.startswith("groundup ")
    assert bench_threads.run_again(["bench", "--threads", "none"], 1) == 2
    assert "threads: expected" in capfd.readouterr().err


def test_run_again_sets_the_variables_in_the_child_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import json, os; open(os.environ['SEEN'], 'w').write(json.dumps(dict(os.environ)))"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("SEEN", str(tmp_path / "seen.json"))
    monkeypatch.delenv("GROUNDUP_THREADS", raising=False)
    assert bench_threads.run_again(["--version"], 3) == 0
    seen = json.loads((tmp_path / "seen.json").read_text())
    assert {seen[name] for name in THREAD_VARIABLES} == {"3"}
    assert "GROUNDUP_THREADS" not in os.environ


MEASURING = """
import os
if os.environ.get("GROUNDUP_THREADS") == "1":
    import time
    from pathlib import Path
    from shared import bench_ladders

    real = bench_ladders.ladder_rows

    def one_row_and_a_long_wait(stages, **_):
        yield next(iter(real(stages, sizes=[2], repeats=1, threads=1)))
        Path(os.environ["READY"]).touch()
        time.sleep(60)

    bench_ladders.ladder_rows = one_row_and_a_long_wait
"""


@pytest.mark.skipif(os.name != "posix", reason="signals to a process are POSIX's")
@pytest.mark.parametrize("to_all", [True, False], ids=["from a terminal", "to the first process alone"])
def test_an_interrupt_of_the_second_process_keeps_what_was_measured(tmp_path: Path, to_all: bool) -> None:
    (tmp_path / "sitecustomize.py").write_text(MEASURING)
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    environment = {name: value for name, value in os.environ.items() if name not in THREAD_VARIABLES}
    environment |= {"PYTHONPATH": path, "READY": str(tmp_path / "ready")}
    options = ["--threads", "1", "--stages", "2", "--only", "ladders", "--out", str(tmp_path / "out")]
    command = [sys.executable, "-c", "from shared.cli import main; main()", "bench", *options]
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        for _ in range(600):
            if (tmp_path / "ready").exists() or process.poll() is not None:
                break
            time.sleep(0.05)
        (os.killpg if to_all else os.kill)(process.pid, signal.SIGINT)
        _, error = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 2, error
    assert "interrupted: the 1 rows measured until now are kept" in error
    document = json.loads((tmp_path / "out" / "results.json").read_text())
    assert (document["complete"], len(document["ladders"]), document["environment"]["threads"]) == (False, 1, 1)


@pytest.mark.skipif(os.name != "posix", reason="signals to a process are POSIX's")
def test_a_process_that_dies_of_a_signal_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import os; os.kill(os.getpid(), 9)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(ChildProcessError, match="was killed by signal 9"):
        bench_threads.run_again(["--version"], 1)


def test_a_second_interrupt_does_not_stop_what_is_done_about_the_first() -> None:
    written = False
    with bench_threads.one_interrupt():
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            signal.raise_signal(signal.SIGINT)
            written = True
    assert written
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)  # afterwards it acts as usual again
