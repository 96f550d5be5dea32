"""The net under the program: one sentence, a file, exit code 70; and quiet ends."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from textwrap import indent

import pytest

from groundup import cli, crash
from shared.contract import STAGES
from tests.interrupts import hear
from tests.program import ran
from tests.wide import widely

PROGRAM = "import sys; sys.argv[0] = 'groundup'; from groundup.entry import main; main()"

with_signals = pytest.mark.skipif(os.name != "posix", reason="Windows has no SIGINT for one process")


@pytest.fixture
def broken(monkeypatch, tmp_path):
    """`groundup doctor` fails with this error, and files for reports are made in tmp_path."""
    monkeypatch.delenv("GROUNDUP_TRACEBACK", raising=False)
    monkeypatch.setattr(crash.tempfile, "tempdir", str(tmp_path))

    def breaking(error):
        def app(**_):
            raise error

        monkeypatch.setattr(cli, "program", lambda arguments: app)

    return breaking


def test_a_mistake_of_ours_is_one_sentence_and_a_file(broken, capsys, tmp_path):
    broken(ZeroDivisionError("division\nby zero"))
    code, _, err = ran(capsys, "doctor")
    assert code == 70
    (kept,) = tmp_path.iterdir()
    assert err == (
        "error: groundup made a mistake of its own (ZeroDivisionError: division by zero). "
        f"Please report it, with the file {kept}.\n"
    )
    assert re.match(r"groundup \S+, Python 3\.\d+", kept.read_text())
    assert "Traceback (most recent call last)" in kept.read_text()
    assert os.name != "posix" or stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_the_traceback_is_shown_where_it_is_wanted(broken, capsys, monkeypatch):
    broken(KeyError("CONSTANTS"))
    monkeypatch.setenv("GROUNDUP_TRACEBACK", "1")
    code, _, err = ran(capsys, "doctor")
    assert code == 70
    assert "Traceback (most recent call last)" in err


def test_too_little_memory_is_told_as_that(broken, capsys):
    broken(MemoryError("Unable to allocate 3.00 TiB"))
    assert ran(capsys, "doctor") == (
        2,
        "",
        "error: the memory of this machine does not suffice: Unable to allocate 3.00 TiB\n",
    )


def test_a_reader_who_goes_away_is_no_error(tmp_path):
    loud = "from groundup import cli\ndef app(**_):\n    for _ in range(100_000):\n        print('line')\n"
    loud += "cli.program = lambda arguments: app\ncli.main()"
    with subprocess.Popen([sys.executable, "-c", loud], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


@with_signals
@pytest.mark.parametrize("tenth", widely([3, 7, 1, 5, 9], first=2))
def test_ctrl_c_while_the_program_is_loaded_is_quiet(tenth, tmp_path):
    begun = [sys.executable, "-c", f"print('begun', flush=True)\nimport groundup.entry as entry\n{PROGRAM}", "doctor"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(begun, cwd=tmp_path, preexec_fn=hear, **pipes) as process:
        assert process.stdout.readline() == "begun\n"
        time.sleep(0.1 * tenth)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=600)
    assert "Traceback" not in err
    assert (process.returncode, err) in [(2, "error: interrupted\n"), (0, ""), (1, "")]


def ended(command, folder, loaded="pass", prepared=hear):
    """Exit code, output and errors of the program with these lines of Python as its command.

    loaded: lines that run while the program is loaded; prepared: called in the new process, before Python
    """
    lines = f"""
import atexit, os, signal, sys, threading, time
from groundup import cli, entry

def ctrl_c():
    signal.raise_signal(signal.SIGINT)

def program(arguments):
{indent(loaded, "    ")}
    return command

def command(**_):
{indent(command, "    ")}

cli.program = program
entry.main([])
"""
    done = subprocess.run(
        [sys.executable, "-c", lines], cwd=folder, capture_output=True, text=True, timeout=600, preexec_fn=prepared
    )
    return done.returncode, done.stdout, done.stderr


GOES_ON = """
time.sleep(10)
print("went on as if nothing had been")
"""
"""What must not happen after a Ctrl-C."""

INTERRUPTED = (2, "", "error: interrupted\n")


@with_signals
def test_ctrl_c_in_a_destructor_is_quiet_and_not_lost(tmp_path):
    command = """
class Thing:
    def __del__(self):
        ctrl_c()
Thing()
"""
    assert ended(command + GOES_ON, tmp_path) == INTERRUPTED


@with_signals
def test_ctrl_c_waits_until_a_constructor_of_llvmlite_has_ended(tmp_path):
    command = """
from llvmlite import binding
made = binding.ffi.OutputString.__init__.__code__
def interrupt(frame, event, argument):
    if event == "call" and frame.f_code is made:
        sys.setprofile(None)
        ctrl_c()
sys.setprofile(interrupt)
binding.get_default_triple()
"""
    assert ended(command + GOES_ON, tmp_path) == INTERRUPTED


@with_signals
def test_ctrl_c_after_the_command_is_ignored(tmp_path):
    command = """
class Thing:
    def __del__(self, raised=signal.raise_signal, number=signal.SIGINT):
        raised(number)
sys.kept_until_the_end = Thing()
atexit.register(ctrl_c)
print("done")
"""
    assert ended(command, tmp_path) == (0, "done\n", "")


@with_signals
def test_a_program_in_the_background_ignores_ctrl_c_also_while_it_is_loaded(tmp_path):
    def ignore():
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    assert ended("print('done')", tmp_path, loaded="ctrl_c()", prepared=ignore) == (0, "done\n", "")


def test_the_installed_program_begins_there():
    text = (Path(cli.__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    assert 'groundup = "groundup.entry:main"' in text


@pytest.mark.parametrize("stage", STAGES)
def test_the_training_of_a_stage_as_a_module_begins_there(stage):
    text = (Path(cli.__file__).parents[1] / stage / "train.py").read_text(encoding="utf-8")
    assert "from groundup.entry import main\n" in text
