"""shared.machine.processes: however a child ends, there is an answer in time, and no process is left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest

from shared.machine import processes
from shared.machine.processes import Finished, end, finding_our_packages, output_of, run, start
from tests import interrupts

posix = pytest.mark.skipif(os.name != "posix", reason="signals and process groups are POSIX's")


def python(code: str, seconds: float = 30.0, **options: object) -> Finished:
    return run([sys.executable, "-c", code], seconds, **options)  # type: ignore[arg-type]


def parent_of_a_sleeper(file: Path, then: str, more: str = "") -> str:
    """Code of a process that starts one which sleeps for ten minutes, writes its number to a file, and goes on."""
    return f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"] {more})
open({str(file)!r}, "w").write(str(child.pid))
child.returncode = 0  # it is not waited for, and says nothing of that at the end
{then}
"""


def runs(file: Path) -> bool:
    """Whether the process whose number is in the file still runs; one that nobody has waited for does not."""
    state = Path(f"/proc/{file.read_text()}/stat")
    if state.parent.parent.is_dir() and Path("/proc/self/stat").is_file():
        return state.is_file() and state.read_text().rpartition(")")[2].split()[0] != "Z"
    try:
        os.kill(int(file.read_text()), 0)
    except ProcessLookupError:
        return False
    return True


def soon(condition: Callable[[], bool]) -> bool:
    """Whether this becomes true within fifty seconds: a killed process takes a moment to go."""
    last = time.monotonic() + 50
    while not condition() and time.monotonic() < last:
        time.sleep(0.02)
    return condition()


def test_exit_code_output_and_errors_are_returned() -> None:
    done = python(
        "import sys; print('found'); print('but', file=sys.stderr); print('why', file=sys.stderr); sys.exit(3)"
    )
    assert done == Finished(3, "found\n", "but\nwhy\n")
    assert done.last_error == "why"
    assert python("pass").last_error == ""


def test_errors_can_stand_in_the_output_in_the_order_of_writing() -> None:
    code = "import os; os.write(1, b'a'); os.write(2, b'b'); os.write(1, b'c')"
    assert python(code, together=True) == Finished(0, "abc")


def test_output_can_be_shown_instead_of_returned(capfd: pytest.CaptureFixture[str]) -> None:
    assert python("import os; os.write(1, b'seen'); os.write(2, b'too')", shown=True) == Finished(0)
    assert capfd.readouterr() == ("seen", "too")


def test_the_text_is_read_to_its_end_or_not_at_all() -> None:
    long = "ä line\n" * 100_000
    code = "import sys; text = sys.stdin.buffer.read().decode(); print(len(text), text[:1] == 'ä')"
    assert python(code, text=long).output == f"{len(long)} True\n"
    assert python("pass", text=long) == Finished(0)
    assert python("import sys; print(repr(sys.stdin.read()))").output == "''\n"


def test_folder_and_variables_are_the_childs(tmp_path: Path) -> None:
    code = "import os; print(os.getcwd(), os.environ['OURS'], 'HOME' in os.environ, sep='\\n')"
    variables = {"OURS": "1", **({"SYSTEMROOT": os.environ["SYSTEMROOT"]} if "SYSTEMROOT" in os.environ else {})}
    assert python(code, folder=tmp_path, variables=variables).output.splitlines() == [str(tmp_path), "1", "False"]


def test_a_child_finds_our_packages_first(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "__init__.py").write_text("")
    variables = finding_our_packages({**os.environ, "PYTHONPATH": str(tmp_path)})
    code = "import shared, sys; print(shared.__file__); print(sys.path)"
    ours, path = python(code, folder=tmp_path.parent, variables=variables).output.splitlines()
    assert Path(ours).parents[1] == processes.ROOT
    assert str(tmp_path) in path
    assert finding_our_packages({})["PYTHONPATH"] == str(processes.ROOT)


def test_a_missing_program_is_an_answer_that_names_it(tmp_path: Path) -> None:
    done = run([str(tmp_path / "absent")], 5)
    assert done.code is None
    assert str(tmp_path / "absent") in done.failure
    assert (done.output, done.errors) == ("", "")


def test_a_quick_question_is_answered_or_not() -> None:
    assert output_of([sys.executable, "-c", "print(' said ')"]) == "said"
    assert output_of([sys.executable, "-c", "print('said'); raise SystemExit(3)"]) is None
    assert output_of(["/no/such/program"]) is None


def test_of_a_flood_of_output_the_end_is_kept() -> None:
    code = "import os\nfor i in range(400): os.write(1, b'x' * 50_000); os.write(2, b'y' * 50_000)\nos.write(1, b'end')"
    done = python(code, most=1000)
    assert (done.code, len(done.output), len(done.errors)) == (0, 1000, 1000)
    assert done.output.endswith("xend")


def test_a_child_is_killed_at_its_limit_and_what_it_printed_is_kept() -> None:
    begin = time.monotonic()
    done = python("import time; print('so far', flush=True); time.sleep(600)", 3)
    assert done == Finished(None, "so far\n", failure="no answer within 3 seconds")
    assert time.monotonic() - begin < 150


@posix
def test_at_the_limit_the_childs_own_children_are_killed_too(tmp_path: Path) -> None:
    done = python(parent_of_a_sleeper(tmp_path / "number", "time.sleep(600)"), 3)
    assert done.code is None
    assert soon(lambda: not runs(tmp_path / "number"))


@posix
def test_a_grandchild_that_holds_the_pipe_is_killed_when_the_child_has_ended(tmp_path: Path) -> None:
    begin = time.monotonic()
    assert python(parent_of_a_sleeper(tmp_path / "number", "print('done')")) == Finished(0, "done\n")
    assert time.monotonic() - begin < 150
    assert soon(lambda: not runs(tmp_path / "number"))


@interrupts.heard()
@posix
def test_an_interrupt_kills_the_child_and_its_children(tmp_path: Path) -> None:
    file = tmp_path / "number"

    def interrupt() -> None:
        if soon(lambda: file.is_file() and bool(file.read_text())):
            os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        python(parent_of_a_sleeper(file, "time.sleep(600)"))
    assert soon(lambda: not runs(file))


@posix
def test_threads_that_wait_for_a_program_go_on_when_everything_that_was_started_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_started", weakref.WeakSet())  # without those of other tests
    files = [tmp_path / "a", tmp_path / "b"]
    done: list[Finished] = []

    def wait(file: Path) -> None:
        done.append(python(parent_of_a_sleeper(file, "time.sleep(600)"), 600.0))

    waits = [threading.Thread(target=wait, args=(file,)) for file in files]
    for each in waits:
        each.start()
    assert soon(lambda: all(file.is_file() and bool(file.read_text()) for file in files))
    for _ in range(2):  # the second time they have ended
        processes.kill_started()
        for each in waits:
            each.join(300)
    assert [each.code for each in done] == [-signal.SIGKILL] * 2
    assert soon(lambda: not any(map(runs, files)))


@posix
def test_the_child_leads_a_group_of_its_own_which_a_ctrl_c_in_the_terminal_does_not_reach() -> None:
    assert python("import os; print(os.getpgid(0) == os.getpid())").output == "True\n"


@posix
@pytest.mark.parametrize(("patient", "code"), [("sys.exit(5)", 5), ("time.sleep(600)", -signal.SIGKILL)])
def test_a_child_may_end_by_itself_when_it_is_asked_to(patient: str, code: int) -> None:
    ready = f"signal.signal(signal.SIGTERM, lambda *_: {patient}); print('ready', flush=True); time.sleep(600)"
    child = start([sys.executable, "-c", f"import signal, sys, time; {ready}"], stdout=subprocess.PIPE)
    with contextlib.closing(child.stdout):
        assert child.stdout.readline() == b"ready\n"
        end(child, patience=1.0)
    assert child.returncode == code
