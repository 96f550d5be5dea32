"""Compiled kernels on disk: what makes another name, what is damaged, and, with numba-cuda's compiler, a second process
that compiles nothing. No GPU is needed."""

from __future__ import annotations

import importlib.util
import json
import os
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numba
import numpy as np
import pytest

from stage4_numba_cuda import kernel_cache
from stage4_numba_cuda.kernel_cache import MAGIC, KernelCache
from stage4_numba_cuda.kernel_fingerprint import Unknown, fingerprint
from tests.wide import wide

ROOT = Path(__file__).resolve().parents[2]


def written(source: str, **names: Any) -> Callable[..., Any]:
    """The function `kernel` of this source, with these names around it."""
    found = dict(names)
    exec(textwrap.dedent(source), found)
    return found["kernel"]


def device_function(source: str, **options: Any) -> Any:
    """What @cuda.jit(device=True) makes of a function, as far as the fingerprint looks at it."""
    return SimpleNamespace(py_func=written(source), targetoptions={"device": True, **options})


CALLS = "def kernel(x):\n    x[0] = helper(x[1]) + SIZE"
HELPER = "def kernel(v):\n    return v + 1"


# ---- the fingerprint


def test_the_same_source_has_the_same_fingerprint_whatever_stands_in_its_comments() -> None:
    one, other = (written(f"{line}\ndef kernel(x):\n    x[0] = 1") for line in ("", "# a comment\n\n"))
    assert fingerprint(one) == fingerprint(other)


@pytest.mark.parametrize(
    "changed",
    [
        {"source": CALLS.replace("SIZE", "SIZE + 1")},
        {"SIZE": 33},
        {"SIZE": 32.0},
        {"SIZE": np.float32(32)},
        {"helper": device_function(HELPER.replace("1", "2"))},
        {"helper": device_function(HELPER, fastmath=True)},
    ],
    ids=["its own line", "a global", "a global's type", "a global's dtype", "a device function", "its options"],
)
def test_what_changes_the_machine_code_changes_the_fingerprint(changed: dict[str, Any]) -> None:
    usual = {"source": CALLS, "SIZE": 32, "helper": device_function(HELPER)}
    assert fingerprint(written(**usual)) == fingerprint(written(**usual))
    assert fingerprint(written(**usual)) != fingerprint(written(**(usual | changed)))


def test_closures_arrays_and_functions_of_functions_are_looked_at() -> None:
    def made(tile: int, table: np.ndarray, deeper: str) -> Callable[..., Any]:
        inner = SimpleNamespace(py_func=written(deeper), targetoptions={})
        helper = SimpleNamespace(
            py_func=written("def kernel(v):\n    return inner(v)", inner=inner), targetoptions={"device": True}
        )

        def kernel(x: Any) -> None:
            x[0] = helper(tile) + table[0]

        return kernel

    usual: tuple[Any, ...] = (16, np.arange(3), HELPER)
    names = {fingerprint(made(*usual))}
    names |= {fingerprint(made(*case)) for case in [(32, *usual[1:]), (16, np.arange(1, 4), HELPER)]}
    names |= {fingerprint(made(*usual[:2], HELPER.replace("1", "2")))}
    assert len(names) == 4
    assert fingerprint(made(*usual)) in names


def test_a_value_that_cannot_be_told_from_another_is_refused() -> None:
    with pytest.raises(Unknown, match=r"it uses .*a Lamp, whose value cannot be told apart from another"):
        fingerprint(written("def kernel(x):\n    x[0] = LAMP.on", LAMP=Lamp()))


class Lamp:
    on = 1


# ---- the files


@pytest.fixture
def cached(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., KernelCache]:
    """A cache whose kernels are plain dictionaries, as if each process began with it anew."""
    monkeypatch.setenv("GROUNDUP_CACHE", str(tmp_path))
    monkeypatch.setattr(kernel_cache, "_reduced", pickle.dumps)
    monkeypatch.setattr(kernel_cache, "_rebuilt", pickle.loads)
    monkeypatch.setattr(kernel_cache, "_installed", lambda: ("numba 1",))
    monkeypatch.setattr(kernel_cache, "_capability", lambda: (9, 0))
    kernel_cache._say_once.cache_clear()

    def make(source: str = CALLS, helper: str = HELPER, **options: Any) -> KernelCache:
        return KernelCache(written(source, SIZE=1, helper=device_function(helper)), options)

    return make


TYPES = (numba.float32[:, ::1], numba.int64)


def test_a_kernel_is_found_again_and_only_for_its_own_types(cached: Callable[..., KernelCache]) -> None:
    assert cached().load_overload(TYPES, None) is None
    cached().save_overload(TYPES, {"code": 1})
    found = cached()
    assert found.load_overload(TYPES, None) == {"code": 1}
    assert (found.hits, found.misses) == (1, 0)
    assert found.load_overload(numba.void(*TYPES), None) == {"code": 1}
    assert found.load_overload((numba.float64[:, ::1], numba.int64), None) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda patch: patch.setattr(kernel_cache, "_installed", lambda: ("numba 2",)),
        lambda patch: patch.setattr(kernel_cache, "_capability", lambda: (8, 0)),
        lambda patch: patch.setenv("NUMBA_OPT", "0"),
    ],
    ids=["a version", "the architecture", "a setting"],
)
def test_what_compiles_and_for_which_device_is_part_of_the_name(
    cached: Callable[..., KernelCache], monkeypatch: pytest.MonkeyPatch, change: Callable[..., None]
) -> None:
    cached().save_overload(TYPES, {"code": 1})
    change(monkeypatch)
    assert cached().load_overload(TYPES, None) is None


@pytest.mark.parametrize("damage", [b"", MAGIC, b"something else", None], ids=["empty", "cut", "foreign", "one bit"])
def test_a_damaged_file_is_told_and_compiled_again(
    cached: Callable[..., KernelCache], capsys: pytest.CaptureFixture[str], tmp_path: Path, damage: bytes | None
) -> None:
    cached().save_overload(TYPES, {"code": 1})
    (path,) = tmp_path.rglob("*.kernel")
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]) if damage is None else damage)
    assert cached().load_overload(TYPES, None) is None
    assert capsys.readouterr().err == (
        f"{path} is damaged (its hash is not that of its content): the kernel is compiled again\n"
    )
    cached().save_overload(TYPES, {"code": 2})
    assert cached().load_overload(TYPES, None) == {"code": 2}


def test_a_folder_that_cannot_be_written_is_told_once_and_stops_nothing(
    cached: Callable[..., KernelCache],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("GROUNDUP_CACHE", str(tmp_path / "file"))
    for _ in range(2):
        assert cached().load_overload(TYPES, None) is None
        cached().save_overload(TYPES, {"code": 1})
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("compiled kernels are not kept: cannot write ")


def test_the_kernels_that_were_not_used_for_longest_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_cache, "MOST", 3)
    for i in range(4):
        (tmp_path / f"{i}.kernel").touch()
        os.utime(tmp_path / f"{i}.kernel", (10 - i, 0))
    kernel_cache.prune(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.kernel", "1.kernel"]


# ---- with numba-cuda's compiler

COMPILED = """
import json, sys, time, types, warnings
warnings.simplefilter("ignore")
from numba import cuda
from numba.cuda import codegen, dispatcher
# No device: its compute capability is stated, and a kernel is compiled and linked, but not loaded.
dispatcher.get_current_device = lambda: types.SimpleNamespace(compute_capability=(9, 0), id=0)
dispatcher._Kernel.bind = lambda kernel: kernel._codelibrary.get_cubin(cc=(9, 0))
codegen.CUDACodeLibrary._ensure_cc = lambda library, cc: cc or (9, 0)
from stage4_numba_cuda import kernel_cache
kernel_cache.install(cuda)
from groundup.compiling.worker import find
from groundup.kernels.catalogue import CATALOGUE
from groundup.kernels.entries import argument_types
found = {}
for entry in CATALOGUE:
    if "float32" in entry.dtypes and entry.kernel.startswith(tuple(sys.argv[1:])):
        kernel = find(entry.package, entry.kernel, "float32")
        begin = time.perf_counter()
        compiled = kernel.compile(tuple(argument_types(entry.arguments, "float32")))
        bits = compiled._codelibrary.get_cubin(cc=(9, 0))
        found[entry.kernel] = [kernel._cache.hits, kernel._cache.misses, len(bytes(getattr(bits, "code", bits)))]
print(json.dumps(found))
"""


def compiled(cache: Path, *names: str) -> subprocess.Popen[str]:
    variables = os.environ | {"GROUNDUP_CUDA": "compiler", "GROUNDUP_CACHE": str(cache), "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-c", COMPILED, *names], env=variables, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )


@pytest.mark.skipif(importlib.util.find_spec("numba_cuda") is None, reason="needs numba-cuda: pip install '.[cu13]'")
@wide
def test_a_second_process_compiles_nothing_and_two_at_once_disturb_nobody(tmp_path: Path) -> None:
    names = ("sums.total", "matmul_2_register.vectorised('nn', True")
    both = [compiled(tmp_path, *names) for _ in range(2)]
    first = [json.loads(process.communicate(timeout=300)[0]) for process in both]
    again = json.loads(compiled(tmp_path, *names).communicate(timeout=300)[0])
    assert len(again) == 4
    for kernel, (hits, misses, size) in again.items():
        assert (hits, misses) == (1, 0), kernel
        assert size == first[0][kernel][2] == first[1][kernel][2]
