"""`groundup run`: scripts that know nothing of the emulator, run as python would run them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cuda_emulator import Settings, current
from groundup import cli
from tests.wide import wide

SCRIPT = """\
import sys
import numpy as np
from numba import cuda
import beside

@cuda.jit
def add_one(a):
    i = cuda.grid(1)
    if i < a.size:
        a[i] += beside.ONE

a = np.zeros(3)
add_one[1, 32](a)
print(__name__, sys.argv[1:], a.tolist())
"""


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GROUNDUP_EMULATOR", raising=False)
    monkeypatch.delenv("GROUNDUP_THREADS", raising=False)
    monkeypatch.delitem(sys.modules, "beside", raising=False)
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "beside.py").write_text("ONE = 1\n")


def run(capsys: pytest.CaptureFixture[str], script: str, *arguments: str, before: tuple[str, ...] = ()) -> tuple:
    """(exit code, stdout, stderr) of `groundup run BEFORE scripts/script.py ARGUMENTS`."""
    Path("scripts/script.py").write_text(script)
    with pytest.raises(SystemExit) as end:
        cli.main(["run", *before, str(Path("scripts/script.py")), *arguments])
    captured = capsys.readouterr()
    return end.value.code, captured.out, captured.err


def test_a_script_runs_as_main_with_its_arguments_untouched(capsys: pytest.CaptureFixture[str]) -> None:
    argv, path = sys.argv, list(sys.path)
    code, out, err = run(capsys, SCRIPT, "--epochs", "3", "--help", "--", "--check", before=("--step",))
    assert (code, err) == (0, "")
    assert out == "__main__ ['--epochs', '3', '--help', '--', '--check'] [1.0, 1.0, 1.0]\n"
    assert sys.argv is argv
    assert sys.path == path


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), Settings()),
        (("--check", "--threads", "3"), Settings(check=True, threads=3)),
        (("--step",), Settings(step=True)),
        (("--unchecked", "--source"), Settings(bounds=False, show_source=True)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_the_options_hold_in_the_script_and_its_threads(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], expected: Settings
) -> None:
    script = """\
import threading
from cuda_emulator import current
print(current())
thread = threading.Thread(target=lambda: print(current()))
thread.start()
thread.join()
"""
    code, out, _ = run(capsys, script, before=options)
    assert code == 0
    assert out == f"{expected}\n" * 2
    assert current() == Settings()


def test_the_exit_code_is_the_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "import sys; sys.exit(7)")[0] == 7
    assert run(capsys, "raise SystemExit('enough')")[0] == "enough"
    assert run(capsys, "pass")[0] == 0


def test_the_scripts_own_exception_shows_its_traceback_from_the_script_on(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "def fails():\n    raise ValueError('mine')\n\nfails()\n")
    script = os.path.join("scripts", "script.py")
    lines = err.splitlines()
    assert code == 1
    assert lines[:2] == ["Traceback (most recent call last):", f'  File "{script}", line 4, in <module>']
    assert lines[-1] == "ValueError: mine"
    assert "runpy" not in err


@wide
@pytest.mark.skipif(os.name == "nt", reason="Windows has no broken pipes")
def test_a_reader_that_has_gone_ends_a_script_quietly(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("for i in range(100_000):\n    print('a line of text')\n", encoding="utf-8")
    command = [sys.executable, "-m", "groundup", "run", str(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "a line of text\n"
        process.stdout.close()
        said = process.stderr.read()
    assert (process.returncode, said) == (1, "")


def test_ctrl_c_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "raise KeyboardInterrupt") == (2, "", "error: interrupted\n")


def test_source_prints_each_kernel_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDUP_CACHE", str(tmp_path / "cache"))
    script = SCRIPT + "add_one[1, 32](a)\nprint(a.tolist())\n"
    code, out, err = run(capsys, script, before=("--source",))
    assert (code, err) == (0, "")
    assert out.startswith("# add_one(array(float64, 1d, C))\n")
    assert out.count("def run(") == 1
    assert out.endswith("__main__ [] [1.0, 1.0, 1.0]\n[2.0, 2.0, 2.0]\n")


def test_a_wrong_launch_is_one_line_with_its_place_and_the_scripts_line_below(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, _, err = run(capsys, SCRIPT.replace("[1, 32]", "[1, 2048]"), before=("--step",))
    assert code == 2
    assert err.splitlines()[1:] == ["    add_one[1, 2048](a)"]
    script = os.path.join("scripts", "script.py")
    assert err.startswith(f"error: {script}:13: add_one: a block of 2048 threads along x is more than the 1024")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.py"], "there is no script nowhere.py"),
        (["scripts"], "scripts is a folder: name the Python file in it that is to run"),
        (["--check", "--step", "nowhere.py"], "choose one of them"),
        (["--threads", "0", "nowhere.py"], "threads: expected a number of cores of at least 1"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_on_the_command_line_is_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(["run", *arguments])
    err = capsys.readouterr().err
    assert end.value.code == 2
    assert err.startswith("error: ")
    assert message in err
    assert len(err.splitlines()) == 1


def test_check_says_at_the_end_what_was_looked_at_and_an_error_names_the_line_and_the_lens(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, _, err = run(capsys, SCRIPT, before=("--check",))
    assert (code, err.splitlines()) == (
        0,
        [
            "check: no mistake found in 1 launch, each run in 4 orders",
            "  add_one: 1 launch; looked at every access of 1",
        ],
    )
    code, _, err = run(capsys, SCRIPT.replace("a[i] +=", "a[0] +="), before=("--check",))
    script = os.path.join("scripts", "script.py")
    assert code == 2
    assert err.startswith(f"error: {script}:10: race on a[0] (global memory, write after read)")
    assert "one of the updates is lost: use cuda.atomic on a" in err
    assert err.splitlines()[1:] == ["    a[0] += beside.ONE", f"groundup lens {script}:add_one shows more"]
