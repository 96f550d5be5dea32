"""groundup check --compile: every kernel through a GPU's compiler, where numba-cuda's compile libraries are installed;
that none is forgotten, and what is printed, everywhere. How log and code are read: test_reading.py."""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from groundup.commands.check import check
from groundup.compiling import check as compile_check
from groundup.compiling import show
from groundup.compiling.check import (
    CAPABILITIES,
    LEVELS_AT,
    CompilerMissing,
    Job,
    Measurement,
    all_faults,
    compile_all,
    jobs,
    judge,
)
from groundup.compiling.sass import find_nvdisasm
from groundup.compiling.worker import find
from groundup.kernels.catalogue import CATALOGUE
from groundup.kernels.entries import Capability, Entry, argument_types, entry, words
from stage4_numba_cuda import kernels
from tests.wide import WIDE

# The table


def test_argument_notation_is_numbers_and_arrays_of_any_type() -> None:
    from numba import float64, int32, types

    assert words("T[2] int32[1] T int64") == [("T", 2), ("int32", 1), ("T", 0), ("int64", 0)]
    made = argument_types("T[2] int32[1] T", "float64")
    assert made == (types.Array(float64, 2, "C"), types.Array(int32, 1, "C"), float64)


def is_kernel(value: Any) -> bool:
    return hasattr(value, "py_func") and not getattr(value, "targetoptions", {"device": True}).get("device")


def kernels_within(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """All kernels in a module's attribute, also inside dictionaries and sequences, with how to reach them."""
    if is_kernel(value):
        yield name, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from kernels_within(inner, f"{name}[{key!r}]")
    elif isinstance(value, list | tuple):
        for i, inner in enumerate(value):
            yield from kernels_within(inner, f"{name}[{i}]")
    elif type(value).__name__ == "SimpleNamespace":
        for key, inner in vars(value).items():
            yield from kernels_within(inner, f"{name}.{key}")


FILES = [name for _, name, _ in pkgutil.iter_modules(kernels.__path__)]


@pytest.mark.parametrize("file", FILES)
def test_every_kernel_is_in_the_table(file: str) -> None:
    listed = [find(line.package, line.kernel, "float32") for line in CATALOGUE if line.kernel.startswith(f"{file}.")]
    functions = {kernel.py_func for kernel in listed}
    module = importlib.import_module(f"{kernels.__name__}.{file}")
    reachable = [pair for name, value in vars(module).items() for pair in kernels_within(value, name)]
    missing = [
        name
        for name, kernel in reachable
        if kernel.py_func.__module__ == module.__name__ and kernel.py_func not in functions
    ]
    assert not missing

    # What a function makes is reachable from nowhere: at least one product of each has to be there.
    source = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    written = {kernel.py_func.__qualname__ for kernel in listed}
    assert set(decorated(source, "")) <= written


def decorated(node: ast.AST, within: str) -> Iterator[str]:
    """The qualified names of all functions that @cuda.jit makes kernels of, and not device functions."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.FunctionDef):
            texts = [ast.unparse(decorator) for decorator in inner.decorator_list]
            if any(text.startswith("cuda.jit") and "device=True" not in text for text in texts):
                yield within + inner.name
            yield from decorated(inner, f"{within}{inner.name}.<locals>.")
        else:
            yield from decorated(inner, within)


def test_table_has_every_kernel_once_with_as_many_arguments_as_it_takes() -> None:
    names = [line.kernel for line in CATALOGUE]
    assert len(names) == len(set(names))
    for line in CATALOGUE:
        code = find(line.package, line.kernel, "float32").py_func.__code__
        assert len(words(line.arguments)) == code.co_argcount, line.kernel


# What is right and what is wrong

ANSWER = {"registers": 40, "stack": 0, "spills": 0, "shared": 0, "float64": [], "hot_loop": None}
LINE = entry("matmul.rung", "T[2]", 1024, 64, 64, share=0.5, wide_loads=4)


def faults(dtype: str = "float32", **answer: Any) -> tuple[str, ...]:
    return judge(Job(LINE, dtype, (9, 0)), ANSWER | answer).faults


def test_kernel_within_its_budget_has_no_faults() -> None:
    assert faults() == ()
    assert faults(hot_loop={"instructions": 8, "multiply_adds": 4, "wide_loads": 4}) == ()
    assert faults("float64", float64=["add.rn.f64 %fd1, %fd2, %fd3;"]) == ()


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ({"stack": 16}, "16 bytes of stack frame, expected none"),
        ({"registers": 65}, "65 registers, its budget is 64"),
        ({"registers": 65}, "no block of 1024 threads fits on a multiprocessor: out of registers"),
        ({"shared": 240_000}, "no block of 1024 threads fits on a multiprocessor: out of shared"),
        ({"float64": ["cvt.f64.f32 %fd1, %f1;"]}, "computes with float64: cvt.f64.f32 %fd1, %f1;"),
        (
            {"hot_loop": {"instructions": 100, "multiply_adds": 49, "wide_loads": 3}},
            "49.0% of its inner loop multiply and add, expected 50%",
        ),
        (
            {"hot_loop": {"instructions": 100, "multiply_adds": 50, "wide_loads": 3}},
            "3 loads of 128 bits in its inner loop, expected 4",
        ),
        ({"error": "TypingError: unknown attribute"}, "does not compile: TypingError: unknown attribute"),
    ],
)
def test_every_fault_is_a_sentence(answer: dict[str, Any], fault: str) -> None:
    assert fault in faults(**answer)


def test_fault_of_several_architectures_is_told_once() -> None:
    measurements = [
        judge(Job(LINE, "float32", capability), ANSWER | {"registers": registers, "spills": 8})
        for capability, registers in (((7, 5), 64), ((8, 0), 70), ((9, 0), 64))
    ]
    assert all_faults(measurements) == [
        "matmul.rung, float32, sm_75 sm_80 sm_90: 8 bytes of registers are spilled to memory",
        "matmul.rung, float32, sm_80: 70 registers, its budget is 64",
        "matmul.rung, float32, sm_80: no block of 1024 threads fits on a multiprocessor: out of registers",
    ]


# The command

app = typer.Typer(rich_markup_mode=None)
app.command()(check)


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["--compile", *arguments], env={"COLUMNS": "100"})


def single_spaced(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the compiler is made to say of every kernel; change it to have it say something else."""
    said = ANSWER | {"hot_loop": {"instructions": 100, "multiply_adds": 90, "wide_loads": 32}}

    def compiled(work: list[Job], on_done: Any) -> list[Measurement]:
        for done, job in enumerate(work):
            on_done(job, done + 1)
        return [judge(job, said) for job in work]

    monkeypatch.setattr(show, "compile_all", compiled)
    return said


def test_table_shows_registers_spills_shared_memory_occupancy_and_the_inner_loop(answers: dict[str, Any]) -> None:
    answers["registers"], answers["shared"] = 24, 4224
    result = run("--kernel", "matmul_1_basic.naive", "--arch", "8.0", "--arch", "sm_75", "--dtype", "float32")
    assert result.exit_code == 0, result.output
    assert "matmul_1_basic.naive float32 24/40 0 4224 100% 100% 90%, 32" in single_spaced(result.stdout)
    assert "All 2 compile and stay within their budgets." in result.stdout


def test_kernel_that_needs_a_newer_architecture_says_so(
    answers: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = entry("matmul_1_basic.naive", "T[2] T[2] T[2]", 256, 40, 40, needs=(8, 0))
    monkeypatch.setattr(show, "CATALOGUE", (line,))
    assert "needs 8.0 75%" in single_spaced(run("--arch", "7.5", "--arch", "8.0").stdout)
    error = run("--arch", "7.5").exception
    assert isinstance(error, ValueError)
    assert "there is nothing to compile" in str(error)


def test_broken_budget_ends_in_exit_code_1_and_names_the_kernel(answers: dict[str, Any]) -> None:
    answers["registers"] = 250
    result = run("--kernel", "sums.total_by_tree", "--arch", "9.0", "--dtype", "float32")
    assert result.exit_code == 1
    assert "sums.total_by_tree, float32, sm_90: 250 registers, its budget is" in result.stderr
    assert "within their budgets" not in result.stdout


def test_json_has_one_entry_for_every_kernel_dtype_and_architecture(answers: dict[str, Any]) -> None:
    result = run("--kernel", "dense.add_bias", "--json")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert document["ok"] is True
    assert len(document["kernels"]) == 2 * len(CAPABILITIES)
    first = document["kernels"][0]
    assert (first["kernel"], first["dtype"], first["architecture"]) == ("dense.add_bias", "float32", "7.5")
    assert first["usage"]["registers"] == 40
    assert first["occupancy"]["limit"] in ("threads", "registers")
    assert first["inner_loop"]["share"] == 0.9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--kernel", "fortran"], "no kernel has 'fortran' in its name; the files are activations, "),
        (["--arch", "3.5"], "unknown architecture '3.5'; choose one of 7.5, 8.0, 8.6, 8.9, 9.0, 10.0, 12.0"),
        (["stage2"], "--compile takes no stages"),
    ],
)
def test_mistake_is_an_error_that_says_what_is_wrong(arguments: list[str], message: str) -> None:
    error = run(*arguments).exception
    assert isinstance(error, ValueError)
    assert message in str(error)


@pytest.mark.parametrize("option", ["--kernel", "--arch"])
def test_options_of_compile_without_it_are_an_error(option: str) -> None:
    error = CliRunner().invoke(app, [option, "9.0"]).exception
    assert isinstance(error, ValueError)
    assert f"{option} belongs to --compile" in str(error)


def test_missing_compiler_is_an_error_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_check.importlib.util, "find_spec", lambda name: None)
    error = run("--kernel", "sums", "--arch", "9.0").exception
    assert isinstance(error, CompilerMissing)
    assert "numba-cuda is not installed; " in str(error)
    assert "python -m pip install -e '.[cu13]'" in str(error)


# The real compiler, from here on

MAIN = [line for line in CATALOGUE if not line.variant]
LOOKED_INTO = [line for line in MAIN if line.share is not None]
"""The kernels whose inner loop is looked into: the products, which are the long ones."""
OF_EACH_FILE = list({line.kernel.partition(".")[0]: line for line in reversed(MAIN)}.values())
"""The first kernel of each file."""


def compiled(entries: list[Entry], capabilities: tuple[Capability, ...], dtypes: tuple[str, ...]) -> list[Measurement]:
    try:
        return compile_all(jobs(entries, capabilities, dtypes))
    except CompilerMissing as reason:
        pytest.skip(str(reason))


def wrong(name: str, arguments: str = "T[1] T[1]", registers: int = 255, **more: Any) -> Entry:
    kernel = f"compile_wrong_kernels.{name}"
    return entry(kernel, arguments, 256, registers, registers, package="tests.groundup.compiling", **more)


def test_wrong_kernels_are_caught_and_right_ones_are_not() -> None:
    entries = [
        wrong("right"),
        wrong("right", registers=8),
        wrong("tenth_in_float64"),
        wrong("spilling"),
        wrong("framed"),
        wrong("mistyped"),
        wrong("ends_the_process()"),
        wrong("dense", "T[1] T[1] T[1]", share=0.5, wide_loads=1),
        wrong("right"),
    ]
    found = compiled(entries, ((8, 0),), ("float32",))
    expected = [
        [],
        ["registers, its budget is 8"],
        ["computes with float64: "],
        ["bytes of registers are spilled to memory", "bytes of stack frame"],
        ["bytes of stack frame, expected none"],
        ["does not compile: TypingError: ", "no_such_attribute"],
        ["does not compile: the compiler's process ended with exit code 70"],
        ["of its inner loop multiply and add, expected 50%"] if find_nvdisasm() else [],
        [],
    ]
    for measurement, parts in zip(found, expected, strict=True):
        text = "\n".join(measurement.faults)
        assert bool(measurement.faults) == bool(parts), text
        assert all(part in text for part in parts), text


def test_every_kernel_compiles_for_float32_on_old_and_new_architectures_within_its_budget() -> None:
    # Where inner loops are looked into; the long kernels on the oldest, too. Every kernel on every architecture in the
    # wide tests, and in `groundup check --compile`.
    if WIDE:
        found = compiled(MAIN, CAPABILITIES, ("float32",))
    else:
        found = compiled(MAIN, LEVELS_AT[-1:], ("float32",))
        found += compiled(LOOKED_INTO, CAPABILITIES[:1], ("float32",))
    assert all_faults(found) == []
    multiplying = {line.kernel for line in MAIN if line.kernel.startswith("matmul") and line.share is not None}
    products = [m for m in found if m.capability in LEVELS_AT and m.kernel in multiplying]
    assert len(products) >= len(multiplying)
    assert all((m.hot_loop is not None) == (find_nvdisasm() is not None) for m in products)


def test_every_kernel_compiles_for_float64_within_its_budget() -> None:
    lines = MAIN if WIDE else [line for line in MAIN if line in LOOKED_INTO or line in OF_EACH_FILE]
    with_dtype = [line for line in lines if "float64" in line.dtypes]
    found = compiled(with_dtype, CAPABILITIES if WIDE else LEVELS_AT[-1:], ("float64",))
    assert all_faults(found) == []
