"""The table of C functions says what groundup.h says; library, functions and pool come when they are needed."""

import ctypes
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shared.contract import StageUnavailable
from stage3_c import build, library
from tests.stages import REASONS, USABLE_STAGES

pytestmark = pytest.mark.skipif("stage3_c" not in USABLE_STAGES, reason=REASONS["stage3_c"] or "")

HEADER = Path(library.__file__).parent / "csrc" / "groundup.h"
PLAIN_TYPES: dict[str, Any] = {
    "size_t": library.SIZE,
    "double": library.REAL,
    "int": library.INT,
    "void": library.NOTHING,
    "pool *": library.POOL,
    "const pool *": library.POOL,
    "const int64_t *": library.LABELS,
    "int64_t *": library.CLASSES,
    "int64_t": library.ROW,
    "const int8_t *": library.EIGHT_BITS,
    "int32_t *": library.WHOLE_SUMS,
    "double *": library.ADDRESS,
    "const void *": library.ADDRESS,
    "const real *const *": library.ADDRESS,
    "const optimizer_step *": library.STRUCT,
    "const convolution *": library.STRUCT,
    "const pooling *": library.STRUCT,
}
NULLABLE = {("sgd", "velocity")}
NULLABLE |= {(f"{kind}_backward", "grad_x") for kind in ("dense", "conv2d", "batch_norm")}
"""The pointers that groundup.h says may be NULL, in words, which no parser reads."""


def exported() -> tuple[dict[str, tuple[Any, ...]], dict[str, tuple[Any, ...]]]:
    """What the header exports, in the table's form: the functions compiled once, and those compiled twice."""
    text = re.sub(r"/\*.*?\*/", " ", HEADER.read_text(encoding="utf-8"), flags=re.DOTALL).replace("\\\n", " ")
    macro = re.search(r"#define DECLARE_ACTIVATION\(name\)(.*)", text)
    assert macro
    for name in re.findall(r"^DECLARE_ACTIVATION\((\w+)\);", text, flags=re.MULTILINE):
        text += macro[1].replace("name##_backward", f"{name}_backward").replace("NAME(name)", f"NAME({name})") + ";\n"
    text = re.sub(r"^#.*$", "", text, flags=re.MULTILINE)
    plain: dict[str, tuple[Any, ...]] = {}
    both: dict[str, tuple[Any, ...]] = {}
    for result, name, precise, parameters in re.findall(
        r"EXPORT ([^;()]*?)(?:NAME\((\w+)\)|(\w+))\(([^;]*?)\);", " ".join(text.split())
    ):
        types = [as_declared(name, parameter) for parameter in parameters.split(",") if parameter.strip() != "void"]
        takes_pool = library.POOL in types
        returned = library.STATUS if result.strip() == "int" and takes_pool else as_declared(name, f"{result} result")
        (both if name else plain)[name or precise] = (returned, *types)
    return plain, both


def as_declared(function: str, parameter: str) -> Any:
    """'const real *restrict a' -> library.IN."""
    words = re.match(r"(.*?)(\w+)$", parameter.replace("restrict", "").strip())
    assert words, parameter
    kind, name = " ".join(words[1].replace("*", " *").split()), words[2]
    if kind == "double *" and function.startswith("batch_norm"):
        return library.DOUBLES_OR_NULL if name == "whole" else library.DOUBLES
    if name == "notes":
        return library.NOTES
    if kind in PLAIN_TYPES:
        return PLAIN_TYPES[kind]
    if kind.startswith(("NAME(", "const NAME(")):
        return library.STRUCT
    role = {"real *": library.OUT, "const real *": library.IN}[kind]
    return f"{role} or null" if (function, name) in NULLABLE else role


def test_the_parser_of_the_header_finds_every_export() -> None:
    plain, both = exported()
    text = HEADER.read_text(encoding="utf-8")
    activations = len(re.findall(r"^DECLARE_ACTIVATION\(", text, flags=re.MULTILINE))
    in_macro = 2
    direct = len(re.findall(r"^EXPORT ", text, flags=re.MULTILINE))
    assert len(plain) + len(both) == direct + in_macro * activations
    assert both["relu_backward"] == library.BACKWARD
    assert both["matmul_restrict"] == library.LADDER_RUNG


def test_the_table_and_the_header_declare_the_same_functions_with_the_same_types() -> None:
    plain, both = exported()
    assert plain == library.PLAIN_FUNCTIONS
    assert library.FUNCTIONS.keys() == both.keys()
    for name, declared in library.FUNCTIONS.items():
        assert declared == both[name], name


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_declared_function_is_in_the_library_and_carries_its_types(dtype: str) -> None:
    for name, (_, *arguments) in library.FUNCTIONS.items():
        found = library.function(name, dtype)
        assert found is library.function(name, dtype)
        assert found.__name__ == f"{name}_f{dtype[-2:]}"  # type: ignore[attr-defined]
        assert len(found.argtypes) == len(arguments)  # type: ignore[attr-defined]
    for name in library.PLAIN_FUNCTIONS:
        assert library.plain_function(name).__name__ == name  # type: ignore[attr-defined]


@pytest.mark.parametrize("error", [build.CompileError("csrc/x.c:1: error", "output"), OSError("no room in the cache")])
def test_what_build_raises_comes_out_unchanged_and_the_next_call_tries_again(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    right, calls = library.build(), 0

    def fails_once() -> build.Build:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise error
        return right

    monkeypatch.setattr(library, "_library", None)
    monkeypatch.setattr(library, "build", fails_once)
    with pytest.raises(type(error)) as caught:
        library.load()
    assert caught.value is error
    assert library.load() is library.load()
    assert calls == 2


def test_a_library_after_which_small_numbers_are_0_is_refused_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_library", None)
    monkeypatch.setattr(library, "_has_subnormals", lambda: False)
    built = replace(library.build(), compiler=build.Compiler(("mycc",), "mycc", "1"))
    monkeypatch.setattr(library, "build", lambda: built)
    monkeypatch.setenv("CC", "mycc")
    for _ in range(2):
        with pytest.raises(
            StageUnavailable, match=r"CC is set to 'mycc', which does not work \(fast mathematics, which"
        ):
            library.load()


def array_view(kind: str) -> Any:
    square = np.zeros((4, 4), np.float32)
    square.flags.writeable = kind != "read-only"
    return {
        "float64": np.zeros((4, 4)),
        "list": [[0.0]],
        "None": None,
        "Fortran order": np.asfortranarray(np.ones((4, 4), np.float32)),
        "gaps": square[:, ::2],
        "misaligned": np.zeros(65, np.uint8)[1:].view(np.float32).reshape(4, 4),
        "byte-swapped": square.astype(">f4"),
        "read-only": square,
    }[kind]


REFUSED_EVERYWHERE = ("float64", "list", "None", "Fortran order", "gaps", "misaligned", "byte-swapped")


@pytest.mark.parametrize("kind", REFUSED_EVERYWHERE)
@pytest.mark.parametrize("position", [2, 3])
def test_an_array_that_c_would_misread_does_not_cross(kind: str, position: int) -> None:
    arguments: list[Any] = [4, 4, np.ones((4, 4), np.float32), np.zeros((4, 4), np.float32)]
    arguments[position] = array_view(kind)
    with pytest.raises(ctypes.ArgumentError, match=f"argument {position + 1}: .*expected"):
        library.function("relu", "float32")(*arguments)


def test_a_read_only_array_may_be_read_and_not_written() -> None:
    frozen, out = array_view("read-only"), np.full((4, 4), np.nan, np.float32)
    library.function("identity", "float32")(4, 4, frozen, out)
    assert not out.any()
    with pytest.raises(ctypes.ArgumentError, match=r"argument 4: .*writable.*read-only"):
        library.function("identity", "float32")(4, 4, out, frozen)


def test_null_crosses_only_where_the_table_says_so() -> None:
    p, g = np.ones(3, np.float32), np.ones(3, np.float32)
    library.function("sgd", "float32")(3, p, g, None, 0.5, 0.0, 0, 0.0)
    assert p.tolist() == [0.5] * 3
    with pytest.raises(ctypes.ArgumentError, match="argument 3"):
        library.function("sgd", "float32")(3, p, None, None, 0.5, 0.0, 0, 0.0)


def test_a_status_of_minus_one_is_a_memory_error_naming_the_function() -> None:
    for name in ("matmul_nn", "network_step"):
        called: Any = library.function(name, "float32")
        assert called.errcheck(0, called, ()) == 0
        with pytest.raises(MemoryError, match=rf"{name}_f32: .*not enough memory"):
            called.errcheck(-1, called, ())


def test_the_pool_has_the_threads_that_were_asked_for() -> None:
    assert library.pool() == library.pool()
    assert library.plain_function("pool_threads")(library.pool()) == library.thread_count()


@pytest.mark.parametrize(("text", "count"), [("1", 1), (" 3 ", 3), ("1024", 1024)])
def test_groundup_threads_is_the_number_of_threads(monkeypatch: pytest.MonkeyPatch, text: str, count: int) -> None:
    monkeypatch.setenv("GROUNDUP_THREADS", text)
    assert library.thread_count() == count


@pytest.mark.parametrize("text", [None, "", "  "])
def test_without_groundup_threads_every_usable_core_gets_one(monkeypatch: pytest.MonkeyPatch, text: str | None) -> None:
    monkeypatch.setattr(library, "usable_cores", lambda: 5)
    if text is None:
        monkeypatch.delenv("GROUNDUP_THREADS", raising=False)
    else:
        monkeypatch.setenv("GROUNDUP_THREADS", text)
    assert library.thread_count() == 5


@pytest.mark.parametrize("text", ["0", "two", "1.5", "1025", "²"])
def test_a_bad_groundup_threads_is_refused_with_the_range_and_the_way_out(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(library, "usable_cores", lambda: 5)
    monkeypatch.setenv("GROUNDUP_THREADS", text)
    message = f"GROUNDUP_THREADS: expected a whole number from 1 to 1024, got {text!r}; unset it to use all 5 cores"
    with pytest.raises(ValueError, match=re.escape(message)):
        library.thread_count()


def test_importing_the_modules_neither_builds_nor_starts_a_thread() -> None:
    code = (
        "from stage3_c import activations, arrays, dense, library, losses, matmul, optimizers\n"
        "arrays.asarray([1.0]); optimizers.Adam()\n"
        "assert library._library is None and library._pool is None"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
