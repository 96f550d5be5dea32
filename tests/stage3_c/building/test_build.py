"""Stage 3's library is compiled once, found again, compiled anew when anything changes, and never half there."""

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import stage3_c
from groundup import cli
from shared.contract import StageUnavailable
from shared.machine import caches, private_folder
from stage3_c import build, compiler, library
from tests.stage3_c.tiny_c import POSIX, TINY, compiler_or_skip, fake_compiler, write_sources

ROOT = Path(build.__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache for each test, and a plain build whatever the suite itself runs with."""
    monkeypatch.setenv("GROUNDUP_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("GROUNDUP_SANITIZE", raising=False)
    return tmp_path / "cache" / "stage3"


@pytest.fixture(scope="module")
def real_compiler() -> compiler.Compiler:
    return compiler_or_skip()


@pytest.fixture
def csrc(tmp_path: Path, real_compiler: compiler.Compiler) -> Path:
    """A small csrc, where there is a compiler for it."""
    return write_sources(tmp_path / "csrc")


def start(csrc: Path, **environment: str) -> "subprocess.Popen[str]":
    """Another process that builds, loads and says whether it compiled, and what twice(21) is."""
    code = (
        "import ctypes, sys; from pathlib import Path; from stage3_c import build\n"
        "built = build.build(Path(sys.argv[1])); twice = ctypes.CDLL(str(built.library)).twice_f64\n"
        "twice.restype, twice.argtypes = ctypes.c_double, [ctypes.c_double]; print(built.compiled, twice(21.0))"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code, str(csrc)],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end, "waited for 30 seconds"
        time.sleep(0.01)


@pytest.fixture
def held(tmp_path: Path, real_compiler: compiler.Compiler) -> dict[str, str]:
    """An environment whose $CC notes every call in tmp_path/calls, and holds a source until tmp_path/go is there."""
    hold = f'case "$*" in *csrc/*) while [ ! -e "{tmp_path}/go" ]; do sleep 0.02; done;; esac'
    note = f'echo "$*" >> "{tmp_path}/calls"'
    return {"CC": fake_compiler(tmp_path / "held-cc", f"{note}\n{hold}", real_compiler)}


@pytest.fixture
def noted(tmp_path: Path, real_compiler: compiler.Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    """$CC notes every call in tmp_path/calls."""
    body = f'echo "$*" >> "{tmp_path}/calls"'
    monkeypatch.setenv("CC", fake_compiler(tmp_path / "noting-cc", body, real_compiler))


def calls(tmp_path: Path, word: str) -> int:
    file = tmp_path / "calls"
    return sum(word in line for line in file.read_text().splitlines()) if file.exists() else 0


def objects(own_cache: Path) -> list[Path]:
    return list((own_cache / build.OBJECTS).iterdir())


# Build once, find again, build anew


def test_both_precisions_come_from_one_source_and_the_rest_is_compiled_once(csrc: Path) -> None:
    built = build.build(csrc)
    loaded = ctypes.CDLL(str(built.library))
    for name, kind in (("twice_f32", ctypes.c_float), ("twice_f64", ctypes.c_double)):
        function = loaded[name]
        function.restype, function.argtypes = kind, [kind]
        assert function(1.5) == 3.0
    assert loaded.answer() == 42
    assert built.compiled
    assert {"-std=c11", "-O3", "-Werror", "-Wconversion", "-Wpedantic"} <= set(built.flags)
    assert "-fno-fast-math" in built.flags


def test_what_has_not_changed_is_found_with_its_compiler_and_flags(csrc: Path) -> None:
    first = build.build(csrc)
    assert build.build(csrc) == replace(first, compiled=False)


@pytest.mark.parametrize("name", ["twice.c", "groundup.h"])
def test_an_edit_is_compiled_and_taking_it_back_is_not(csrc: Path, name: str) -> None:
    first = build.build(csrc)
    (csrc / name).write_text(TINY[name] + "/* edited */\n")
    second = build.build(csrc)
    assert second.compiled
    assert second.library != first.library
    (csrc / name).write_text(TINY[name])
    assert build.build(csrc) == replace(first, compiled=False)


def test_the_key_changes_with_everything_that_decides_what_is_built(
    csrc: Path, real_compiler: compiler.Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = build.read_sources(csrc)
    keys = [build.key(sources, real_compiler)]
    keys.append(build.key({**sources, "twice.c": b""}, real_compiler))
    keys.append(
        build.key({("two.c" if name == "twice.c" else name): text for name, text in sources.items()}, real_compiler)
    )
    keys.append(build.key(sources, replace(real_compiler, version_text="another version")))
    keys.append(build.key(sources, replace(real_compiler, path="/elsewhere/cc")))
    keys.append(build.key(sources, replace(real_compiler, command=(*real_compiler.command, "-m64"))))
    with monkeypatch.context() as patch:
        patch.setattr(build, "processor", lambda: "another processor")
        keys.append(build.key(sources, real_compiler))
    with monkeypatch.context() as patch:
        patch.setattr(build.platform, "machine", lambda: "another architecture")
        keys.append(build.key(sources, real_compiler))
    with monkeypatch.context() as patch:
        patch.setattr(compiler, "WARNINGS", ("-Wall",))
        keys.append(build.key(sources, real_compiler))
    for sanitizers in ("address", "address,undefined"):
        monkeypatch.setenv("GROUNDUP_SANITIZE", sanitizers)
        keys.append(build.key(sources, real_compiler))
    assert len(set(keys)) == len(keys)


def test_the_oldest_of_many_builds_are_removed_and_the_last_used_kept(
    csrc: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "KEEP", 3)
    first = build.build(csrc)
    made = [first]
    for i in range(3):
        (csrc / "twice.c").write_text(TINY["twice.c"] + f"/* {i} */\n")
        made.append(build.build(csrc))
        for age, built in enumerate([first, *reversed(made[1:])]):  # the first is used again after each edit
            if built.library.exists():
                os.utime(built.library.parent, (1e9 - age, 1e9 - age))
    assert [built.library.exists() for built in made] == [True, False, True, True]


def test_the_sources_are_those_of_the_folder_that_groundup_csrc_names(
    csrc: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDUP_CSRC", str(csrc))
    assert ctypes.CDLL(str(build.build().library)).answer() == 42
    assert build.build().library == build.build(csrc).library


# Object files, kept from one build to the next


@POSIX
def test_after_an_edit_of_one_source_only_that_one_is_compiled(csrc: Path, tmp_path: Path, noted: None) -> None:
    build.build(csrc)
    assert (calls(tmp_path, "csrc/twice.c"), calls(tmp_path, "csrc/machine.c")) == (2, 1)
    (csrc / "machine.c").write_text(TINY["machine.c"].replace("42", "43"))
    built = build.build(csrc)
    assert ctypes.CDLL(str(built.library)).answer() == 43
    assert (calls(tmp_path, "csrc/twice.c"), calls(tmp_path, "csrc/machine.c")) == (2, 2)


@POSIX
def test_after_an_edit_of_the_header_every_source_is_compiled(csrc: Path, tmp_path: Path, noted: None) -> None:
    build.build(csrc)
    (csrc / "groundup.h").write_text(TINY["groundup.h"] + "/* edited */\n")
    build.build(csrc)
    assert (calls(tmp_path, "csrc/twice.c"), calls(tmp_path, "csrc/machine.c")) == (4, 2)


@POSIX
def test_a_compiler_that_has_built_a_library_is_not_probed_again(csrc: Path, tmp_path: Path, noted: None) -> None:
    first = build.build(csrc)
    (csrc / "machine.c").write_text(TINY["machine.c"] + "/* edited */\n")
    second = build.build(csrc)
    assert calls(tmp_path, f"probe{compiler.SUFFIX}") == 1
    assert (second.compiler, second.flags) == (first.compiler, first.flags)


@POSIX
def test_a_compiler_that_has_stopped_working_since_is_told_as_such(
    csrc: Path, tmp_path: Path, real_compiler: compiler.Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = f'if [ -e "{tmp_path}/gone" ] && [ "$1" != --version ]; then echo "error: no stdlib.h" >&2; exit 1; fi'
    monkeypatch.setenv("CC", fake_compiler(tmp_path / "failing-cc", body, real_compiler))
    build.build(csrc)
    (tmp_path / "gone").touch()
    (csrc / "machine.c").write_text(TINY["machine.c"] + "/* edited */\n")
    with pytest.raises(StageUnavailable, match=r"failing-cc.*which does not work \(error: no stdlib\.h\)"):
        build.build(csrc)


@POSIX
def test_a_library_that_was_removed_is_linked_from_what_was_compiled(csrc: Path, tmp_path: Path, noted: None) -> None:
    first = build.build(csrc)
    first.library.unlink()
    assert build.build(csrc) == first
    assert calls(tmp_path, "csrc/") == 3


@POSIX
@pytest.mark.parametrize("damage", [lambda content: content[:-1], lambda content: b""])
def test_a_damaged_object_is_compiled_anew(
    csrc: Path, own_cache: Path, tmp_path: Path, noted: None, damage: Callable[[bytes], bytes]
) -> None:
    first = build.build(csrc)
    first.library.unlink()
    for file in objects(own_cache):
        file.write_bytes(damage(file.read_bytes()))
    again = build.build(csrc)
    assert ctypes.CDLL(str(again.library)).answer() == 42
    assert calls(tmp_path, "csrc/") == 6


def test_an_objects_key_changes_with_all_that_decides_it_and_not_with_other_sources(
    csrc: Path, real_compiler: compiler.Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = build.read_sources(csrc)
    keys = [build.object_key(sources, real_compiler, "twice.c", bits) for bits in (None, 32, 64)]
    keys.append(build.object_key({**sources, "two.c": sources["twice.c"]}, real_compiler, "two.c", 32))
    keys.append(build.object_key({**sources, "twice.c": b""}, real_compiler, "twice.c", 32))
    keys.append(build.object_key({**sources, "groundup.h": b""}, real_compiler, "twice.c", 32))
    keys.append(build.object_key({**sources, "new.h": b""}, real_compiler, "twice.c", 32))
    keys.append(build.object_key(sources, replace(real_compiler, version_text="another version"), "twice.c", 32))
    with monkeypatch.context() as patch:
        patch.setattr(build, "processor", lambda: "another processor")
        keys.append(build.object_key(sources, real_compiler, "twice.c", 32))
    monkeypatch.setenv("GROUNDUP_SANITIZE", "address")
    keys.append(build.object_key(sources, real_compiler, "twice.c", 32))
    assert len(set(keys)) == len(keys)
    monkeypatch.delenv("GROUNDUP_SANITIZE")
    assert build.object_key({**sources, "machine.c": b""}, real_compiler, "twice.c", 32) == keys[1]


def test_the_oldest_of_many_objects_are_removed_and_the_last_used_kept(
    csrc: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "KEEP_OBJECTS", 3)
    build.build(csrc)
    before = objects(own_cache)
    assert len(before) == 3
    for path in before:
        os.utime(path, (1e9, 1e9))
    (csrc / "twice.c").write_text(TINY["twice.c"] + "/* edited */\n")
    build.build(csrc)
    (used,) = (path for path in before if path.stat().st_mtime > 1e9)  # machine.o, taken again
    (csrc / "twice.c").write_text(TINY["twice.c"] + "/* edited again */\n")
    build.build(csrc)
    left = objects(own_cache)
    assert used in left
    assert len(left) == 5  # the three used last, and two made since
    assert len(set(before) & set(left)) == 1


# Several processes, kills and damage


@POSIX
def test_of_two_processes_that_start_at_once_one_compiles_and_both_work(
    csrc: Path, tmp_path: Path, held: dict[str, str]
) -> None:
    processes = [start(csrc, **held) for _ in range(2)]
    wait_until(lambda: calls(tmp_path, "csrc/") > 0 and calls(tmp_path, f"probe{compiler.SUFFIX}") == 2)
    (tmp_path / "go").touch()
    said = [process.communicate(timeout=30) for process in processes]
    assert sorted(out.strip() for out, _ in said) == ["False 42.0", "True 42.0"], said
    assert calls(tmp_path, "csrc/twice.c") == 2  # once for each precision


@POSIX
def test_a_build_that_is_killed_leaves_no_library_and_the_next_one_succeeds(
    csrc: Path, tmp_path: Path, own_cache: Path, held: dict[str, str]
) -> None:
    killed = start(csrc, **held)
    wait_until(lambda: calls(tmp_path, "csrc/") > 0)
    killed.kill()
    killed.communicate()  # nothing can end the compilers with it; they wait for the file
    assert list(own_cache.rglob(build.LIBRARY)) == []
    assert len(list(own_cache.glob(f"{build.BUILDING}*"))) == 1
    (tmp_path / "go").touch()
    out, err = start(csrc, **held).communicate(timeout=30)
    assert out == "True 42.0\n", err
    assert list(own_cache.glob(f"{build.BUILDING}*")) == []


@pytest.mark.parametrize("damage", [lambda content: content[: len(content) // 2], lambda content: b""])
def test_a_damaged_library_is_built_anew(csrc: Path, damage: Callable[[bytes], bytes]) -> None:
    built = build.build(csrc)
    content = built.library.read_bytes()
    built.library.unlink()  # a new file, in case something has the old one loaded
    built.library.write_bytes(damage(content))
    again = build.build(csrc)
    assert again == built
    assert again.compiled
    assert ctypes.CDLL(str(again.library)).answer() == 42


@pytest.mark.parametrize("damage", ["", "{}", "[]", '{"sha256": "0"}'])
def test_a_library_with_a_damaged_record_is_built_anew(csrc: Path, damage: str) -> None:
    built = build.build(csrc)
    (built.library.parent / build.RECORD).write_text(damage)
    assert build.build(csrc) == built


@POSIX
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write everywhere")
def test_a_cache_that_may_only_be_read_is_used_and_one_that_lacks_the_library_is_named(
    csrc: Path, own_cache: Path
) -> None:
    built = build.build(csrc)
    own_cache.chmod(0o500)
    try:
        assert build.build(csrc) == replace(built, compiled=False)
        (csrc / "twice.c").write_text(TINY["twice.c"] + "/* edited */\n")
        with pytest.raises(OSError, match="Make that folder writable, or set GROUNDUP_CACHE"):
            build.build(csrc)
    finally:
        own_cache.chmod(0o700)


def test_a_cache_that_cannot_be_made_is_named_with_the_variable_that_moves_it(csrc: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file, not a folder")
    with pytest.raises(OSError, match="GROUNDUP_CACHE") as error:
        build.build(csrc)
    said = f"{tmp_path / 'cache' / 'stage3'}: {tmp_path / 'cache'} is a file, and no folder. Make that folder writable"
    assert f"stage 3 cannot be built in the cache folder {said}" in str(error.value)


def test_without_groundup_cache_the_library_lies_in_the_users_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("GROUNDUP_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert build.cache_folder() == caches.user_cache() / "stage3"


def test_a_folder_without_sources_is_named(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"has no \.c files"):
        build.build(tmp_path)


# Sources that do not compile


@pytest.mark.parametrize(
    ("body", "line", "said"),
    [
        ("    return x + x\n", 5, "expected"),
        ("    return x + y;\n", 5, "y"),
        ("    int unused = 0;\n    return x;\n", 5, "unused"),
        ("    float narrowed = (double)x * 2;\n    return narrowed;\n", 5, "conver"),
    ],
    ids=["syntax error", "undeclared name", "-Wall", "-Wconversion"],
)
def test_an_error_shows_the_file_the_line_and_the_compilers_words(csrc: Path, body: str, line: int, said: str) -> None:
    (csrc / "twice.c").write_text(TINY["twice.c"].replace("    return x + x;\n", body))
    with pytest.raises(build.CompileError, match=rf"csrc/twice\.c does not compile .*csrc/twice\.c:{line}:") as error:
        build.build(csrc)
    assert said in str(error.value)
    assert said in error.value.output
    assert len(str(error.value).splitlines()) == 1


def test_an_error_in_lines_that_a_line_directive_places_elsewhere_is_told_there(csrc: Path) -> None:
    """The course puts a learner's function among the project's: the learner is to find it in their own file."""
    body = '#line 70 "/home/me/course/twice.c"\n    return x + y;\n#line 1 "the project\'s own function"\n'
    (csrc / "twice.c").write_text(TINY["twice.c"].replace("    return x + x;\n", body))
    with pytest.raises(build.CompileError, match=r": /home/me/course/twice\.c:70:16: error: .*y"):
        build.build(csrc)


def test_a_function_that_is_called_and_not_written_is_an_error_of_the_build(csrc: Path) -> None:
    (csrc / "machine.c").write_text(
        "int missing(void);\nint other(void);\nint other(void)\n{\n    return missing();\n}\n"
    )
    with pytest.raises(build.CompileError, match=r"do not link .*missing"):
        build.build(csrc)


def test_after_the_error_is_mended_the_next_build_succeeds(csrc: Path, own_cache: Path) -> None:
    (csrc / "twice.c").write_text("broken")
    with pytest.raises(build.CompileError):
        build.build(csrc)
    assert sorted(path.name for path in own_cache.iterdir()) == ["lock", build.OBJECTS]
    (csrc / "twice.c").write_text(TINY["twice.c"])
    assert build.build(csrc).compiled


def test_the_program_tells_a_compile_error_in_full_with_exit_code_2(
    csrc: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (csrc / "twice.c").write_text(TINY["twice.c"].replace("x + x;", "x + x"))
    monkeypatch.setattr(stage3_c, "_facts", {})
    monkeypatch.setattr(library, "load", lambda: build.build(csrc))
    for command in (["check", "c"], ["race"], ["train", "c"], ["bench"]):
        with pytest.raises(SystemExit) as end:
            cli.main(command)
        first, *rest = capsys.readouterr().err.splitlines()
        assert end.value.code == 2
        assert first.startswith("error: csrc/twice.c does not compile (")
        assert any("csrc/twice.c:5:" in line for line in rest)


@pytest.mark.skipif(os.name != "posix", reason="Windows has other permissions")
def test_a_library_in_a_folder_that_others_may_write_to_is_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDUP_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "cache" / "stage3"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    private_folder._is_private.cache_clear()
    with pytest.warns(UserWarning, match=rf"the cache folder {folder} is not used"):
        root = build._root()
    assert root != folder
    assert list(folder.iterdir()) == []
