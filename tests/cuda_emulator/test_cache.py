"""Generated kernels on disk: what is found again, what makes a file of its own, and folders that cannot be written."""

import os
import pickle
import runpy
import stat
import subprocess
import sys
import textwrap
import time
import warnings
from enum import Enum
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from numba import types

from cuda_emulator import cuda
from cuda_emulator.compiler import cache, machine_code, private_folder
from cuda_emulator.compiler.reading.source import FunctionSource
from cuda_emulator.compiler.writing.thread_code import Variant
from cuda_emulator.errors import KernelError
from cuda_emulator.runtime.tracing import trace_launch
from tests.cuda_emulator.emulator_steps import device, function
from tests.wide import wide

VECTOR = types.float32[::1]
SCRIPT = """
import sys
import numpy as np
from cuda_emulator.compiler import compile
from cuda_emulator import cuda

if "from the cache" in sys.argv:
    def generate(*arguments):
        raise AssertionError("this kernel was to come from the cache")
    compile.generate = generate

SCALE = 3
WEIGHTS = np.array([10.0, 20.0])

@cuda.jit(device=True)
def weighted(x):
    return SCALE * x + WEIGHTS[1]

@cuda.jit
def kernel(values, out):
    t = cuda.threadIdx.x
    tile = cuda.shared.array(32, np.float64)
    tile[t] = values[t]
    cuda.syncthreads()
    out[t] = weighted(tile[31 - t])

values, out = np.arange(32.0), np.zeros(32)
kernel[1, 32](values, out)
assert out.tolist() == (3 * values[::-1] + 20).tolist()
print("right")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GROUNDUP_CACHE", str(tmp_path))
    return tmp_path / "emulator"


def start(tmp_path: Path, *arguments: str) -> subprocess.Popen:
    script = tmp_path / "script.py"
    if not script.exists():
        script.write_text(textwrap.dedent(SCRIPT))
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "GROUNDUP_CACHE": str(tmp_path / "kept"), "PYTHONPATH": str(root)}
    command = [sys.executable, str(script), *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended_well(process: subprocess.Popen) -> None:
    out, errors = process.communicate(timeout=1200)
    assert (process.returncode, out) == (0, "right\n"), errors


def kept(tmp_path: Path) -> dict[str, int]:
    """Every file in the cache, with the time of its last change."""
    files = (tmp_path / "kept").rglob("*")
    return {path.name: path.stat().st_mtime_ns for path in files if path.is_file()}


def test_a_second_process_finds_source_and_machine_code_and_makes_neither(tmp_path: Path) -> None:
    ended_well(start(tmp_path))
    before = kept(tmp_path)
    assert sorted(Path(name).suffix for name in before) == [".code", ".py"]
    ended_well(start(tmp_path, "from the cache"))
    assert kept(tmp_path) == before


def test_two_processes_that_start_at_once_both_succeed(tmp_path: Path) -> None:
    for process in [start(tmp_path), start(tmp_path)]:
        ended_well(process)
    assert sum(name.endswith(".py") for name in kept(tmp_path)) == 1
    assert not any(name.endswith(".tmp") for name in kept(tmp_path))


# ---- What decides the name of the file.

WHAT: tuple[Any, ...] = (("array(float32, 1d, C)",), Variant())


def path_with(body: str, what: tuple[Any, ...] = WHAT, **names: Any) -> Path | None:
    """The file of a kernel that is the same function of the same place each time, with these globals."""
    if body not in _codes:
        _codes[body] = function(body, **names)
    first = _codes[body]
    return path_of(FunctionType(first.__code__, {**first.__globals__, **names}), what)


_codes: dict[str, Any] = {}


def path_of(kernel: Any, what: tuple[Any, ...] = WHAT) -> Path | None:
    return cache.path_of(cache.Reached(FunctionSource(kernel)), what)


def test_the_same_kernel_has_the_same_file(folder: Path) -> None:
    path = path_with("out[0] = TILE", TILE=4)
    assert path is not None
    assert path.parent == folder
    assert path.name.startswith("kernel_")
    assert path == path_with("out[0] = TILE", TILE=4, OTHER=5)


MODES = Enum("MODES", "ONE TWO")


@pytest.mark.parametrize(
    ("body", "one", "other"),
    [
        ("out[0] = TILE", 4, 5),
        ("out[1] = TILE", 4, 4.0),
        ("out[2] = TILE", 4, np.float32(4)),
        ("out[3] = TILE.size", np.zeros(3), np.zeros(4)),
        ("out[4] = TILE[0]", np.zeros(3), np.array([0.0, 0.0, 1.0])),
        ("out[5] = TILE[0]", np.zeros(3), np.zeros(3, np.float32)),
        ("out[6] = TILE(1)", types.float32, types.float64),
        ("out[7] = TILE(n)", abs, round),
        ("out[7] = TILE.value", MODES.ONE, MODES.TWO),
        ("out[8] = TILE(n)", device("return x"), device("return -x")),
        ("out[9] = TILE(n)", device("return k * x", k=1), device("return k * x", k=2)),
    ],
)
def test_another_value_of_a_global_makes_another_file(folder: Path, body: str, one: Any, other: Any) -> None:
    assert path_with(body, TILE=one) == path_with(body, TILE=one)
    assert path_with(body, TILE=one) != path_with(body, TILE=other)


def test_another_default_of_a_parameter_makes_another_file(folder: Path) -> None:
    kernel = function("out[0] = n")
    of = [FunctionType(kernel.__code__, kernel.__globals__, "kernel", (default,)) for default in (1, 2, 2)]
    one, other, same = (cache.path_of(cache.Reached(FunctionSource(each)), WHAT) for each in of)
    assert one != other == same


def test_a_device_function_changed_behind_another_makes_another_file(folder: Path) -> None:
    def outer(inner: Any) -> Any:
        return device("return inner(x)", name="outer", inner=inner)

    one, other = outer(device("return x")), outer(device("return x + 1"))
    other.py_func.__code__ = one.py_func.__code__  # the same text at the same place
    assert path_with("out[0] = outer(n)", outer=one) != path_with("out[0] = outer(n)", outer=other)


@pytest.mark.parametrize(
    "what",
    [
        (("array(float64, 1d, C)",), Variant()),
        (("array(float32, 1d, A)",), Variant()),
        (WHAT[0], Variant(bounds=False)),
        (WHAT[0], Variant(check=True)),
        (WHAT[0], Variant(fastmath=True)),
        (WHAT[0], Variant(divergence="warn")),
    ],
)
def test_other_arguments_and_other_ways_of_compiling_make_another_file(folder: Path, what: tuple[Any, ...]) -> None:
    assert path_with("out[0] = 1") != path_with("out[0] = 1", what)


def test_another_text_file_or_line_makes_another_file_and_another_folder_does_not(folder: Path, tmp_path: Path) -> None:
    text = "def kernel(out):\n    out[0] = 1\n"
    places = [("one", text), ("one", text.replace("1", "2")), ("other", text), ("one", f"\n{text}"), ("one", text)]
    paths = []
    for number, (name, written) in enumerate(places):
        file = tmp_path / str(number) / f"{name}.py"
        file.parent.mkdir()
        file.write_text(written)
        paths.append(path_of(runpy.run_path(str(file))["kernel"]))
    assert len(set(paths)) == 4
    assert paths[0] == paths[4]


def test_an_argument_that_hides_a_global_does_not_count(folder: Path) -> None:
    assert path_with("out[0] = n", n=1) == path_with("out[0] = n", n=2)


def test_a_changed_emulator_makes_every_kernel_anew(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = path_with("out[0] = 1")
    monkeypatch.setattr(cache, "emulator_version", lambda: "another")
    assert path_with("out[0] = 1") != before


HELPERS = """
@cuda.jit(device=True)
def element(values, i):
    return 2 * values[i]

@cuda.jit(device=True)
def exchanged(tile, i):
    cuda.syncthreads()
    return tile[i]
"""
KERNELS = """
@cuda.jit
def kernel(values, out, i, j, k):
    tile = cuda.shared.array(4, np.float32)
    tile[cuda.threadIdx.x] = element(values, i)
    out[j] = exchanged(tile, k) + tile[0]
"""


def test_a_kernel_of_another_folder_is_found_again_and_names_its_own_files(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, clone in enumerate((tmp_path / "first", tmp_path / "second clone")):
        clone.mkdir()
        helpers, kernels = clone / "helpers.py", clone / "kernels.py"
        helpers.write_text(HELPERS)
        kernels.write_text(KERNELS)
        functions = runpy.run_path(str(helpers), {"cuda": cuda})
        kernel = runpy.run_path(str(kernels), {**functions, "np": np})["kernel"]
        values, out = np.ones(4, np.float32), np.zeros(4, np.float32)
        for wrong, place in enumerate([(helpers, 4), (kernels, 6), (helpers, 9)]):
            with pytest.raises(KernelError) as raised:
                kernel[1, 1](values, out, *(9 if place == wrong else 0 for place in range(3)))
            assert (raised.value.filename, raised.value.line) == (str(place[0]), place[1])
        trace = trace_launch(kernel, 1, 1, (values, out, 0, 0, 0))
        sites = {(Path(site.file), site.line) for site in trace.sites if site.kind == "load"}
        assert sites == {(helpers, 4), (helpers, 9), (kernels, 6)}
        assert {Path(counted.file) for counted in trace.operations} == {helpers, kernels}
        if number == 0:
            made = {path.name for path in folder.iterdir()}
            monkeypatch.setattr("cuda_emulator.compiler.compile.generate", None)
    assert {path.name for path in folder.iterdir()} == made


# ---- Where it is, and where it cannot be.


def test_the_users_cache_folder_is_used_where_nothing_is_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("GROUNDUP_CACHE", raising=False)
    for name in ("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    found = cache.cache_folder()
    assert found.is_relative_to(tmp_path)
    assert found.parts[-2:] == ("groundup", "emulator")


def test_without_a_folder_that_can_be_written_kernels_work_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("GROUNDUP_CACHE", str(tmp_path / "file"))
    assert path_with("out[0] = 1") is None

    @cuda.jit
    def double(out):  # type: ignore[no-untyped-def]
        out[cuda.threadIdx.x] *= 2

    out = np.arange(4)
    double[1, 4](out)
    assert out.tolist() == [0, 2, 4, 6]
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_global_array_is_frozen_when_a_kernel_is_compiled_and_looked_at_by_the_next(folder: Path) -> None:
    weights = np.array([1, 2])

    def weigh(out):  # type: ignore[no-untyped-def]
        out[0] = weights[1]

    out = np.zeros(1, np.int64)
    first = cuda.jit(weigh)
    first[1, 1](out)
    weights[1] = 7
    first[1, 1](out)
    assert out.tolist() == [2]
    cuda.jit(weigh)[1, 1](out)
    assert out.tolist() == [7]
    weights[1] = 2
    cuda.jit(weigh)[1, 1](out)  # the first one's file, found again
    assert out.tolist() == [2]
    assert len(list(folder.glob("*.py"))) == 2


# ---- Files.


def test_what_was_written_is_read_and_stays_a_text_of_python(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    cache.write(path, "x = 'µ'\n")
    assert cache.read(path) == "x = 'µ'\n"
    compile(path.read_text(encoding="utf-8"), "kernel.py", "exec")
    assert [found.name for found in tmp_path.iterdir()] == ["kernel.py"]


def damages(content: bytes) -> dict[str, bytes]:
    """What a power cut, a full disk or a flipped bit makes of a file."""
    return {
        "empty": b"",
        "cut in the first line": content[:20],
        "cut in the middle": content[: len(content) // 2],
        "one byte short": content[:-1],
        "one byte more": content + b"#",
        "one bit": content[:-9] + bytes([content[-9] ^ 4]) + content[-8:],
        "zeros": bytes(len(content)),
        "a former version": b"import math\n",
    }


@pytest.mark.parametrize("how", damages(b"x" * 100))
def test_a_damaged_file_is_removed_and_told_to_the_log_only(
    tmp_path: Path, how: str, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "kernel.py"
    cache.write(path, "x = 1\n" * 20)
    path.write_bytes(damages(path.read_bytes())[how])
    with caplog.at_level("DEBUG", "cuda_emulator"):
        assert cache.read(path) is None
    assert not path.exists()
    assert "is made again: it is damaged" in caplog.text
    assert capsys.readouterr() == ("", "")


@wide
def test_every_damaged_file_of_the_cache_is_made_again(tmp_path: Path) -> None:
    ended_well(start(tmp_path))
    whole = {path: path.read_bytes() for path in (tmp_path / "kept").rglob("*") if path.is_file()}
    assert len(whole) == 2
    for how in ("empty", "cut in the middle", "one bit"):
        for path, content in whole.items():
            path.write_bytes(damages(content)[how])
        process = start(tmp_path)
        ended_well(process)
        assert {path.name for path in whole} == set(kept(tmp_path))
        assert all(path.read_bytes().startswith((cache.MAGIC, machine_code.MAGIC)) for path in whole)


def test_machine_code_that_is_whole_and_does_not_load_is_made_again(tmp_path: Path) -> None:
    ended_well(start(tmp_path))
    (path,) = (tmp_path / "kept").rglob("*.code")
    machine_code.write(path, machine_code.MAGIC, pickle.dumps(("of another version",)))
    ended_well(start(tmp_path, "from the cache"))
    assert len(path.read_bytes()) > 1000


def test_a_full_disk_costs_the_cache_and_not_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    cache.write(tmp_path / "kernel.py", "text")
    assert list(tmp_path.iterdir()) == []


# ---- Whose folder it is.

POSIX = pytest.mark.skipif(os.name != "posix", reason="Windows has other permissions")


@POSIX
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_folders_and_files_are_this_users_alone_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        private_folder.make(tmp_path / "a" / "b")
        cache.write(tmp_path / "a" / "b" / "kernel.py", "text")
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "a", *(tmp_path / "a").rglob("*"))}
    assert modes == {"a": 0o700, "b": 0o700, "kernel.py": 0o600}


@POSIX
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_may_write_to_is_not_used_and_named_once(folder: Path, mode: int) -> None:
    folder.mkdir()
    folder.chmod(mode)
    private_folder._is_private.cache_clear()
    with pytest.warns(UserWarning, match=rf"the cache folder {folder} is not used: other users .* rm -r {folder}"):
        assert path_with("out[0] = 1") is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert path_with("out[0] = 1") is None
    folder.chmod(0o700)
    private_folder._is_private.cache_clear()
    assert path_with("out[0] = 1") is not None


@POSIX
def test_a_folder_below_one_that_others_may_change_is_not_used(folder: Path, tmp_path: Path) -> None:
    folder.mkdir(mode=0o700)
    tmp_path.chmod(0o777)
    private_folder._is_private.cache_clear()
    with pytest.warns(UserWarning, match="other users may write to"):
        assert path_with("out[0] = 1") is None
    tmp_path.chmod(0o1777)  # as /tmp is: nobody can replace what belongs to somebody else
    private_folder._is_private.cache_clear()
    assert path_with("out[0] = 1") is not None


@POSIX
@pytest.mark.skipif(os.name == "posix" and os.getuid() != 0, reason="only the administrator can give a folder away")
def test_a_folder_of_another_user_is_not_used(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    os.chown(folder, 12345, -1)
    private_folder._is_private.cache_clear()
    with pytest.warns(UserWarning, match=r"belongs to another user. To mend it: sudo rm -r"):
        assert path_with("out[0] = 1") is None


def test_the_kernels_not_used_for_longest_go_with_their_machine_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "KEEP", 2)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "newest.run-1.py311.nbi").write_text("of an earlier version")
    for age, name in enumerate(["newest", "newer", "old", "oldest"]):
        for path in (tmp_path / f"{name}.py", tmp_path / f"{name}.0123456789abcdef.code"):
            path.write_text(name)
            os.utime(path, (1e9 - age, 1e9 - age))
    cache.prune(tmp_path)
    assert {path.name for path in tmp_path.rglob("*.*")} == {
        *("newest.py", "newest.0123456789abcdef.code", "newer.py", "newer.0123456789abcdef.code")
    }


def test_what_a_killed_process_was_writing_goes_after_an_hour(tmp_path: Path) -> None:
    for name, age in (("tmpold.tmp", 2 * cache.ABANDONED), ("tmpnew.tmp", 0.0)):
        (tmp_path / name).write_text("half of it")
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    cache.prune(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["tmpnew.tmp"]


def test_record_types_of_other_fields_are_other_kernels() -> None:
    texts = [np.dtype([("x", np.float64)]), np.dtype([("x", np.float32)]), np.dtype([("x", np.float64)], align=True)]
    assert len({cache.meaning(dtype, ()) for dtype in texts}) == 3


TWO = """
import sys
import numpy as np
from numba import float32
from cuda_emulator import cuda

def cutting(change):
    @cuda.jit(device=True)
    def changed(x):
        return change * x

    @cuda.jit
    def kernel(values, out):
        tile = cuda.shared.array(32, float32)
        t = cuda.threadIdx.x
        tile[t] = changed(values[t])
        cuda.syncthreads()
        out[t] = tile[31 - t]
    return kernel

for word in sys.argv[1:]:
    values, out = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    cutting(float32(int(word)))[1, 32](values, out)
    assert out.tolist() == [int(word) * v for v in range(31, -1, -1)], (word, out)
print("right")
"""


@wide
def test_kernels_that_other_processes_compiled_are_not_mistaken_for_each_other(tmp_path: Path) -> None:
    """Two processes number their functions alike, so what tells the machine code apart must be in the names."""
    (tmp_path / "script.py").write_text(TWO)
    for words in (["2"], ["3"], ["5"], ["2", "3", "5"]):
        ended_well(start(tmp_path, *words))
