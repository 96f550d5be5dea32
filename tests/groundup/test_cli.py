"""The program as a shell sees it: exit codes, and one clear line for every mistake."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from groundup import __version__, cli
from groundup.doctor import DEPENDENCIES
from tests.program import ran
from tests.wide import wide, widely


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["frob"], "No such command 'frob'"),
        (["train", "numpy", "--epochs", "many"], "'--epochs'"),
        (["train", "numpy", "--dataset", "mnist", "--data-dir", "nowhere"], "nowhere"),
        (["race", "--epochs", "0"], "epochs must be at least 1, got 0"),
        (["check", "stage9"], "unknown stage 'stage9'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_is_one_line_on_stderr_and_exit_code_2(
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = ran(capsys, *arguments)
    assert code == 2
    assert message in err
    assert err.startswith("error: ")
    assert len(err.splitlines()) == 1
    assert "Traceback" not in out + err
    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_output_folder_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("not a folder")
    for command in (["train", "numpy", "--run-dir", "file/run"], ["race", "--limit", "20", "--out", "file/race"]):
        code, _, err = ran(capsys, *command)
        assert code == 2
        assert "file is a file, and no folder" in err
        assert len(err.splitlines()) == 1
    code, _, err = ran(capsys, "learn", "start", "file/course")
    assert (code, err.startswith(f"error: {tmp_path / 'file' / 'course'}: ")) == (2, True)  # then the system's words
    assert Path("file").read_text() == "not a folder"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(13, "Permission denied", "a/b"), "a/b: Permission denied"),
        (OSError(18, "Invalid cross-device link", "a/b", None, "c/d"), "a/b -> c/d: Invalid cross-device link"),
        (OSError(28, "No space left on device"), "[Errno 28] No space left on device"),
    ],
)
def test_an_error_of_the_system_begins_with_its_paths(
    error: OSError, told: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object, **kwargs: object) -> None:
        raise error

    monkeypatch.setattr(cli, "program", lambda arguments: broken)
    assert ran(capsys, "check") == (2, "", f"error: {told}\n")


def test_the_notes_of_an_error_follow_below_it_line_by_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object, **kwargs: object) -> None:
        error = ValueError("csrc/relu.c does not\ncompile")
        error.add_note("csrc/relu.c:3: error: expected ';'\n  return x\n          ^")
        raise error

    monkeypatch.setattr(cli, "program", lambda arguments: broken)
    code, _, err = ran(capsys, "check")
    assert code == 2
    assert err.splitlines() == [
        "error: csrc/relu.c does not compile",
        "csrc/relu.c:3: error: expected ';'",
        "  return x",
        "          ^",
    ]


def test_interrupting_is_exit_code_2(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "program", lambda arguments: interrupted)
    assert ran(capsys, "check") == (2, "", "error: interrupted\n")


def test_version_and_help_exit_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert ran(capsys, "--version")[:2] == (0, "groundup 0.2.0\n")
    for arguments in ([], ["--help"], *([name, "--help"] for name in cli.COMMANDS)):
        code, out, _ = ran(capsys, *arguments)
        assert code == 0
        assert out.startswith("Usage: groundup")


@pytest.mark.parametrize("name", [name for name in cli.COMMANDS if name != "learn"])  # whose help lists commands
def test_help_has_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = ran(capsys, name, "--help")
    assert f"  groundup {name}" in out


def test_the_package_runs_as_a_module(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "groundup", "--version"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (result.returncode, result.stdout, result.stderr) == (0, f"groundup {__version__}\n", "")


@pytest.mark.parametrize("how", widely([{"LC_ALL": "POSIX", "PYTHONUTF8": "0"}, {"PYTHONIOENCODING": "ascii"}]))
def test_an_output_that_lacks_a_character_gets_a_question_mark(how: dict[str, str], tmp_path: Path) -> None:
    code = "from groundup import cli; cli.program = lambda asked: lambda **_: print('5', chr(181) + 's'); cli.main([])"
    given = {**os.environ, **how}
    result = subprocess.run([sys.executable, "-c", code], env=given, capture_output=True)
    assert (result.returncode, result.stdout, result.stderr) == (0, b"5 ?s\n", b"")


@wide
def test_a_stage_trains_as_a_module(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "stage2_numpy.train", "--help"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "Usage: groundup train" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["learn", "reset"], "error: Missing argument 'task'. See: groundup learn reset --help"),
        (["bench", "compare"], "error: Missing argument 'old'. See: groundup bench compare --help"),
        (["lern"], "See: groundup --help"),
    ],
)
def test_a_mistake_in_a_command_names_the_help_of_that_command(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = ran(capsys, *arguments)
    assert code == 2
    assert said.lower() in err.lower()  # an older Typer writes the argument as TASK


LIGHT = ["look", "doctor", "run", "lens", "studio", "learn"]
"""The commands that show a help or begin their work without NumPy."""


@pytest.mark.parametrize(
    ("asked", "absent"),
    [
        (["--version"], {"numpy", "rich"}),
        (LIGHT, {"numpy", "numba", "matplotlib", "starlette", "groundup.commands.bench"}),
        (list(cli.COMMANDS), {"numba", "matplotlib", "starlette", "onnx", "onnxruntime", "shared.export"}),
    ],
    ids=["version", "light", "all"],
)
def test_what_a_command_does_not_need_is_not_imported(asked: list[str], absent: set[str]) -> None:
    code = "import sys; from groundup.cli import program\n"
    code += "for name in sys.argv[1:]: program([name])\nprint(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", code, *asked], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert {name for name in result.stdout.split() if name in absent} == set()


def test_the_packages_that_are_asked_for_at_the_start_are_the_dependencies() -> None:
    assert {"typer", *cli.NEEDED} == set(DEPENDENCIES)


@pytest.mark.parametrize("name", widely(cli.NEEDED))
def test_a_missing_package_is_told_before_the_work_begins_also_by_a_command_that_works_without_it(
    name: str, tmp_path: Path
) -> None:
    code = f"import sys; sys.modules[{name!r}] = None; from groundup.cli import main; main()"  # as if not installed
    result = subprocess.run([sys.executable, "-c", code, "learn"], cwd=tmp_path, capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == f"error: {name} is not installed, and groundup needs it. See: groundup doctor\n"
