"""threads: how many threads and on which cores, and that a second Ctrl-C does not undo the first."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from shared.bench.measuring import threads
from shared.machine.hardware import usable_cores
from shared.machine.software import THREAD_VARIABLES
from tests import interrupts

LINUX = pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system does not let a process choose")


def test_a_number_of_threads_or_all_of_them() -> None:
    assert threads.thread_count("all") == usable_cores()
    assert threads.thread_count("3") == 3


@pytest.mark.parametrize("choice", ["0", "-1", "two", "1.5", ""])
def test_what_is_no_number_of_threads_is_refused(choice: str) -> None:
    with pytest.raises(ValueError, match="threads: expected a number of at least 1, or all; got"):
        threads.thread_count(choice)


def test_the_variables_are_set_for_another_process_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GROUNDUP_THREADS", raising=False)
    assert {threads.variables(3)[name] for name in THREAD_VARIABLES} == {"3"}
    assert "GROUNDUP_THREADS" not in os.environ


@LINUX
def test_whole_cores_come_before_their_second_threads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for core, siblings in {0: "0,4", 4: "0,4", 1: "1,5", 5: "1,5"}.items():
        folder = tmp_path / f"cpu{core}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(siblings + "\n")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 4, 5})
    assert threads.cores_to_hold(1, tmp_path) == [0]
    assert threads.cores_to_hold(2, tmp_path) == [0, 1]
    assert threads.cores_to_hold(3, tmp_path) == [0, 1, 4]
    assert threads.cores_to_hold(5, tmp_path) is None  # more threads than cores: held to none


@LINUX
def test_a_process_that_is_held_to_a_core_sees_no_other() -> None:
    (core,) = threads.cores_to_hold(1) or []
    code = threads.holding([core]) + "import os; print(sorted(os.sched_getaffinity(0)))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == f"[{core}]"


@interrupts.heard()
@pytest.mark.skipif(os.name != "posix", reason="signals to a process are POSIX's")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_interrupt_does_not_stop_what_is_done_about_the_first(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    written = False
    with threads.one_interrupt():
        try:
            signal.raise_signal(number)
        except KeyboardInterrupt:
            signal.raise_signal(number)
            written = True
    assert written
    assert signal.getsignal(number) == before  # afterwards it acts as usual again
