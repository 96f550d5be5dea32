"""The ways to the emulator: its command, child processes, the variable, pytest, and a wheel of its own."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import cuda_emulator
from cuda_emulator import commands, scripts
from cuda_emulator.scripts import Program, program_from, separated
from cuda_emulator.settings import Settings, from_environment, to_environment
from tests.wide import wide

ROOT = Path(__file__).parents[2]
ASKS = "from numba import cuda; print(cuda.is_available(), getattr(cuda, 'implementation', 'numba'))"


def command(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, str, str]:
    """(exit code, stdout, stderr) of `cuda-emulator WORDS`."""
    with pytest.raises(SystemExit) as end:
        commands.main(words)
    captured = capsys.readouterr()
    return end.value.code, captured.out, captured.err


def test_a_program_is_named_as_for_python() -> None:
    assert program_from(["a.py", "-m", "x"]) == Program("script", "a.py", ("-m", "x"))
    assert program_from(["-m", "pytest", "-q"]) == Program("module", "pytest", ("-q",))
    assert program_from(["-c", "pass", "-c"]) == Program("code", "pass", ("-c",))
    assert separated(["--check", "--threads", "2", "a.py", "--check"]) == [
        "--check",
        "--threads",
        "2",
        "--",
        "a.py",
        "--check",
    ]
    assert separated(["-m", "pytest", "--step"]) == ["--", "-m", "pytest", "--step"]
    assert separated(["--help"]) == ["--help"]
    with pytest.raises(ValueError, match=r"expected a program: SCRIPT\.py, -m MODULE, -c CODE, or -"):
        program_from([])


def test_code_modules_and_what_is_missing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = "import sys\nfrom numba import cuda\n@cuda.jit\ndef k(a):\n    a[0] += 3\n"
    assert command(capsys, "run", "-c", f"{kernel}print(sys.argv, __name__)", "x") == (0, "['-c', 'x'] __main__\n", "")
    assert command(capsys, "run", "-m", "no_such_module") == (
        2,
        "",
        "error: -m no_such_module: No module named no_such_module\n",
    )
    code, _, err = command(capsys, "run", "-c", "1 / 0")
    assert (code, err.splitlines()[1]) == (1, '  File "<string>", line 1, in <module>')
    code, _, err = command(capsys, "check", "-c", "import numpy as np\n" + kernel + "k[1, 2](np.zeros(1))")
    assert (code, err.splitlines()[0][:32]) == (2, "error: <string>:6: race on a[0] ")
    monkeypatch.setattr(commands, "LENS_NEEDS", "no_such_package")
    code, _, err = command(capsys, "lens", "a.py:k")
    assert (code, err) == (
        2,
        "error: the lens's report needs no_such_package: pip install 'cuda-emulator[lens]'; --json does not\n",
    )


@pytest.mark.parametrize("terminal", [True, False])
def test_a_run_without_check_says_on_a_terminal_what_was_not_looked_for(
    terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = "import numpy as np\nfrom numba import cuda\n@cuda.jit\ndef k(a):\n    a[0] = 3\n"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    launches, said = (
        f"{kernel}k[1, 1](np.zeros(1))",
        "races and reads of unwritten memory were not looked for: run --check",
    )
    assert command(capsys, "run", "-c", launches)[2] == (f"{said} finds them\n" if terminal else "")
    assert command(capsys, "run", "-c", f"{launches}\nraise SystemExit(3)")[0] == 3
    assert said not in command(capsys, "check", "-c", launches)[2]
    assert command(capsys, "run", "-c", kernel) == (0, "", "")


def test_children_of_a_program_run_on_the_emulator(capfd: pytest.CaptureFixture[str]) -> None:
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {ASKS!r}])"
    with pytest.raises(SystemExit):
        commands.main(["run", "-c", child])
    assert capfd.readouterr().out == "True groundup\n"
    assert scripts.CHILD.as_posix() not in os.environ.get("PYTHONPATH", "")


def test_enable_writes_one_line_that_waits_for_the_variable(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands.sysconfig, "get_path", lambda name: str(tmp_path))
    assert command(capsys, "disable")[1].startswith("there is no ")
    assert command(capsys, "enable")[0] == 0
    (line,) = (tmp_path / commands.PTH).read_text().splitlines()
    program = f"{line}\nimport sys; print([m for m in sys.modules if 'emul' in m]); {ASKS}"
    environment = {**os.environ, "CUDA_EMULATOR": "check"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\nTrue groundup\n"
    assert command(capsys, "disable") == (0, f"removed {tmp_path / commands.PTH}\n", "")


WATCHED = """
import os, sys
loaded, happened = set(sys.modules), []
sys.addaudithook(lambda event, arguments: happened.append((event, str(arguments)[:80])))
exec(sys.argv[1])
print(sorted(set(sys.modules) - loaded), [each for each in happened if each[0] in ("import", "open", "os.listdir")])
"""


def test_the_line_of_enable_opens_and_imports_nothing_without_the_variable(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands.sysconfig, "get_path", lambda name: str(tmp_path))
    assert command(capsys, "enable")[0] == 0
    line = (tmp_path / commands.PTH).read_text()
    for value, quiet in ((None, True), ("", True), ("1", False)):
        environment = {name: text for name, text in os.environ.items() if name != "CUDA_EMULATOR"}
        environment |= {} if value is None else {"CUDA_EMULATOR": value}
        program = [sys.executable, "-c", WATCHED, line]
        done = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
        assert (done.stdout == "[] []\n") == quiet, (value, done.stdout)


def test_the_variable_has_words_for_all_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for settings in (Settings(), Settings(check=True, wrap=True, threads=2), Settings(bounds=False, divergence="warn")):
        for name, value in to_environment(settings).items():
            monkeypatch.setenv(name, value)
        assert from_environment() == settings
        monkeypatch.delenv("CUDA_EMULATOR_THREADS", raising=False)
    monkeypatch.setenv("CUDA_EMULATOR", "chek")
    with pytest.raises(ValueError, match=r"CUDA_EMULATOR: expected some of 1, nobounds, check, .* got 'chek'"):
        from_environment()


TESTS = """
import subprocess, sys
import numpy as np
import pytest
from numba import cuda

@cuda.jit
def add(a):
    a[0] += 1

def test_right():
    add[1, 1](np.zeros(1))

@pytest.mark.cuda_emulator(check=True)
def test_race():
    add[1, 32](np.zeros(1))

def test_child():
    asks = "from numba import cuda; print(cuda.implementation)"
    assert subprocess.check_output([sys.executable, "-c", asks], text=True) == "groundup\\n"
"""


@wide
def test_the_plugin_holds_in_workers_and_children_and_counts_refusals(tmp_path: Path) -> None:
    (tmp_path / "test_kernels.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\ncuda_emulator = off\n")
    program = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "1",
        "--strict-markers",
        "--cuda-emulator",
        "test_kernels.py",
    ]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 failed, 2 passed" in done.stdout, done.stdout
    assert "the emulator refused kernels in 1 test: race (1)" in done.stdout
    assert re.search(r"test_kernels.py:\d+: KernelError", done.stdout)
    assert "launch.py" not in done.stdout


def test_pytest_on_the_emulator_does_not_warn_of_the_plugin(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text("def test_one():\n    pass\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    program = [sys.executable, "-m", "cuda_emulator.commands", "run", "-m", "pytest", "-q", "test_one.py"]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 passed" in done.stdout, done.stderr


def test_the_wheel_of_the_emulator_says_what_groundups_says() -> None:
    own = tomllib.loads((ROOT / "cuda_emulator/pyproject.toml").read_text())["project"]
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert own["version"] == cuda_emulator.__version__
    assert own["requires-python"] == whole["requires-python"]
    assert set(own["dependencies"]) <= set(whole["dependencies"])
    assert own["scripts"].items() <= whole["scripts"].items()
    assert own["entry-points"].items() <= whole["entry-points"].items()
    assert (ROOT / "LICENSE").read_text() == (ROOT / "cuda_emulator/LICENSE").read_text()


def test_the_emulator_needs_no_package_besides_numba_numpy_and_where_it_says_so_rich_and_pytest() -> None:
    needed = set()
    for path in (ROOT / "cuda_emulator").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                needed.add(str(node.module).split(".")[0])
            elif isinstance(node, ast.Import):
                needed |= {each.name.split(".")[0] for each in node.names}
    assert needed - set(sys.stdlib_module_names) == {"cuda_emulator", "llvmlite", "numba", "numpy", "pytest", "rich"}
