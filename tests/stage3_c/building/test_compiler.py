"""Which compiler builds stage 3: the one that $CC names, the first that works, or a sentence that says what to do."""

import ctypes
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import stage3_c
from groundup.stages import all_stages
from shared import contract
from stage3_c import build, compiler, library
from tests.stage3_c.tiny_c import POSIX, fake_compiler
from tests.wide import wide, widely


@pytest.fixture
def no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "ziglang" else real(name))


@POSIX
def test_cc_decides_and_may_carry_options(
    csrc: Path, tmp_path: Path, real_compiler: compiler.Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a folder").mkdir()
    mine = fake_compiler(tmp_path / "a folder" / "cc", "", real_compiler)
    for chosen, words in ((mine, (mine,)), (f"'{mine}' -DMINE", (mine, "-DMINE"))):
        monkeypatch.setenv("CC", chosen)
        built = build.build(csrc)
        assert built.compiled
        assert built.compiler.command == words


@POSIX
@pytest.mark.parametrize(
    ("body", "said"),
    [
        (None, "not found"),
        ("exit 3", "--version fails: exit code 3"),
        ('case "$*" in *--version) echo mine 1.0;; *) echo "fatal error: math.h: absent" >&2; exit 1;; esac', "math.h"),
        ('case "$*" in *--version) echo mine 1.0;; esac', "exit code 0 and no message"),
    ],
    ids=["missing", "no version", "no headers", "makes nothing"],
)
def test_a_cc_that_does_not_work_is_an_error_and_no_other_is_taken(
    csrc: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str | None, said: str
) -> None:
    chosen = str(tmp_path / "my-cc")
    if body:
        fake_compiler(Path(chosen), body)
    monkeypatch.setenv("CC", chosen)
    with pytest.raises(contract.StageUnavailable, match="or let one be found: unset CC") as error:
        build.build(csrc)
    assert f"CC is set to {chosen!r}, which does not work (" in str(error.value)
    assert said in str(error.value)
    assert error.value.fix == "unset CC"


@POSIX
def test_a_cc_of_the_system_that_lacks_its_headers_is_passed_over(
    csrc: Path, tmp_path: Path, real_compiler: compiler.Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    fake_compiler(programs / "cc", 'case "$*" in *--version) echo mine 1.0;; *) exit 1;; esac')
    fake_compiler(programs / "gcc", "", real_compiler)
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    assert build.build(csrc).compiler.command == ("gcc",)


@POSIX
@pytest.mark.parametrize(
    ("refused", "taken"),
    [
        ("--param", ("-march=native",)),
        ("-march", ("-mcpu=native", compiler.FUSE_EVERY_SUM)),
        ("-m", ()),
    ],
)
def test_options_that_a_compiler_does_not_know_are_left_out(
    csrc: Path,
    tmp_path: Path,
    real_compiler: compiler.Compiler,
    monkeypatch: pytest.MonkeyPatch,
    refused: str,
    taken: tuple[str, ...],
) -> None:
    # It says that it is gcc, and takes -mcpu=native without a word, as Arm's compilers do; the real one here may not be
    # gcc, and may know neither.
    version = 'case "$*" in *--version) echo "gcc (mine) 8.3"; exit;; esac'
    refuse = f'for word in "$@"; do case "$word" in {refused}*) echo "error: unknown option" >&2; exit 1;; esac; done'
    drop = 'for word; do shift; case "$word" in -mcpu=native|--param=*);; *) set -- "$@" "$word";; esac; done'
    monkeypatch.setenv("CC", fake_compiler(tmp_path / "arm-cc", f"{version}\n{refuse}\n{drop}", real_compiler))
    built = build.build(csrc)
    assert built.compiler.options == taken
    assert [flag for flag in built.flags if "native" in flag or "--param" in flag] == list(taken)


@POSIX
def test_a_library_that_was_made_with_other_options_is_not_taken_from_the_cache(
    csrc: Path, real_compiler: compiler.Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CC", raising=False)
    assert build.build(csrc).compiled
    for module in (build, compiler):
        monkeypatch.setattr(module, "processor_options", lambda compiler: [()])
    rebuilt = build.build(csrc)
    assert rebuilt.compiled
    assert rebuilt.compiler.options == ()


@pytest.mark.usefixtures("no_compiler")
@pytest.mark.parametrize(
    ("system", "advice"),
    [("linux", "sudo apt install gcc"), ("darwin", "xcode-select --install"), ("win32", 'Install one: "')],
)
def test_without_a_compiler_the_message_names_the_fix_for_the_platform(
    monkeypatch: pytest.MonkeyPatch, system: str, advice: str
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(shutil, "which", lambda command: None)  # its own, told it is on Windows, would ask Windows
    with pytest.raises(contract.StageUnavailable, match="stage 3 needs a C compiler, and none works here") as error:
        build.build()
    assert advice in str(error.value)
    assert error.value.fix == f'"{sys.executable}" -m pip install ziglang'
    assert error.value.fix in str(error.value)
    assert "the extra compiler of this project" in str(error.value)


@pytest.mark.usefixtures("no_compiler")
def test_without_a_compiler_the_other_stages_load_and_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage3_c, "_facts", {})
    monkeypatch.setattr(library, "_library", None)
    stages, unavailable = all_stages()
    assert [stage.number for stage in stages][:2] == [1, 2]
    assert unavailable["stage3_c"].startswith("stage 3 needs a C compiler")
    assert contract.stage_facts("stage3_c") == {}


def test_an_unknown_sanitizer_is_refused_with_the_choices(csrc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUNDUP_SANITIZE", "address,memroy")
    with pytest.raises(ValueError, match=r"expected address, undefined, thread, leak .* got 'memroy'"):
        build.build(csrc)


def test_a_sanitized_build_is_another_build(csrc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = build.build(csrc)
    monkeypatch.setenv("GROUNDUP_SANITIZE", "undefined")
    try:
        sanitized = build.build(csrc)
    except contract.StageUnavailable as reason:
        pytest.skip(f"this compiler has no sanitizers: {reason}")
    assert sanitized.library != plain.library
    assert {"-fsanitize=undefined", "-fno-sanitize-recover=all", "-Og"} <= set(sanitized.flags)


@pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="the ziglang package is not installed")
@wide
def test_ziglang_compiles_where_there_is_no_other_compiler(
    csrc: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    built = build.build(csrc)
    assert built.compiler.command == (sys.executable, "-m", "ziglang", "cc")
    loaded: Any = ctypes.CDLL(str(built.library))
    assert loaded.answer() == 42
    assert build.build(csrc) == replace(built, compiled=False)


SUBNORMALS = """
import sys
import numpy as np
from pathlib import Path
from stage3_c import build
import ctypes
ctypes.CDLL(str(build.build(Path(sys.argv[1])).library))
print(np.float32(1e-38) * np.float32(1e-3) != 0)
"""


@POSIX
@pytest.mark.parametrize("option", widely(["-ffast-math", "-Ofast"]))
def test_fast_mathematics_in_cc_is_undone_and_told(
    csrc: Path,
    option: str,
    real_compiler: compiler.Compiler,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asks_nan = (
        '#include "groundup.h"\nEXPORT int NAME(nan)(real x);\nEXPORT int NAME(nan)(real x)\n{\n    return x != x;\n}\n'
    )
    (csrc / "nan.c").write_text(asks_nan)
    monkeypatch.setenv("CC", f"{shlex.join([real_compiler.path, *real_compiler.command[1:]])} {option}")
    built = build.build(csrc)
    assert f"{option} asks for fast mathematics" in capsys.readouterr().err
    assert built.fast_math
    assert build.build(csrc).fast_math  # also of the library in the cache
    function = ctypes.CDLL(str(built.library)).nan_f64
    function.argtypes = [ctypes.c_double]
    assert function(float("nan")) == 1
    ran = subprocess.run([sys.executable, "-c", SUBNORMALS, str(csrc)], capture_output=True, text=True, check=True)
    assert ran.stdout == "True\n"


@POSIX
def test_fast_mathematics_that_comes_last_is_refused(
    csrc: Path, tmp_path: Path, real_compiler: compiler.Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "cc"
    mine.write_text(
        f'#!/bin/sh\nexec {shlex.join([real_compiler.path, *real_compiler.command[1:]])} "$@" -ffast-math\n'
    )
    mine.chmod(0o755)
    monkeypatch.setenv("CC", str(mine))
    with pytest.raises(contract.StageUnavailable, match="fast mathematics, which the options cannot undo"):
        build.build(csrc)


def test_an_exact_compiler_is_not_told_about(
    csrc: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("CC", raising=False)
    assert not build.build(csrc).fast_math
    assert "mathematics" not in capsys.readouterr().err
