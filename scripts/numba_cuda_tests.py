"""numba-cuda's own tests, as far as the emulator can be asked to pass them: a plugin of pytest, and what it leaves out.

The plugin stands in for the helpers of the tests, which import numba-cuda's compiler. `of_the_compiler` finds the tests
that look at that compiler, at the code it makes, or at a driver, by what stands in them: they use a name of CODE, or
one that their file imports from COMPILER, themselves or in a function of the file that they call.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import io
import re
import subprocess
import sys
import tempfile
import types
import unittest
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

#: Parts of numba-cuda that make code for a GPU. `core` has its settings and errors, too, which programs import.
COMPILER = re.compile(
    r"(numba\.cuda\.(compiler|codegen|descriptor|cudadecl|cudaimpl|cgutils|flags|lowering|target|typing(?!\.typeof)"
    r"|typeconv|deviceufunc|libdevicefuncs|launchconfig|_internal|cudadrv\.(nvvm|nvrtc|libs)"
    r"|core\.(?!config\b|errors\b)\w+|kernels|utils|args|api|bf16|vector_types|simulator|LinkableCode|types\.bfloat16)"
    r"|cuda(?=$|\.core|\.bindings))\b"
)

CUDAPY = "numba.cuda.tests.cudapy"

#: Names of what shows a GPU's code, links to it, or asks a driver.
CODE = re.compile(
    r"inspect_(asm|llvm|sass|types|lto)|compile_ptx|cuda\.compile|compile_all|compile_for_current|\bptx|\bllvm|nvdisasm"
    r"|regs_per_thread|_mem_size|mem_per_(block|thread)|declare_device|\blink=|ipc_handle|cufunc|_cuda_context"
    r"|\bdriver\.|gpu_data|memory_manager|external_stream|_type_annotation|_codelibrary"
)


def of_the_compiler(text: str) -> tuple[list[str], list[str]]:
    """The tests of a file, as "Class::test": those that need no more than a kernel, and those of the compiler."""
    tree = ast.parse(text)
    outside = {
        (each.asname or each.name).partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom | ast.Import)
        for each in node.names
        if COMPILER.match(f"{node.module}.{each.name}" if isinstance(node, ast.ImportFrom) else each.name)
    }
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    outside |= {node.name for node in functions if CODE.search(ast.unparse(node))}
    users: set[str] = set()
    while users != (users := {node.name for node in functions if _names(node) & outside}):
        outside |= users
    within: list[str] = []
    beyond: list[str] = []
    for group in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        inherited = bool(_names(*group.bases, *group.decorator_list) & outside)
        for node in group.body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
                listed = beyond if inherited or node.name in outside else within
                listed.append(f"{group.name}::{node.name}")
    return within, beyond


def _names(*nodes: ast.AST) -> set[str]:
    """The names that some nodes use, also behind `self.`"""
    used = [part for node in nodes for part in ast.walk(node)]
    attributes = {part.attr for part in used if isinstance(part, ast.Attribute) and ast.unparse(part.value) == "self"}
    return attributes | {part.id for part in used if isinstance(part, ast.Name)}


class _Anything(type):
    """The type of Nothing, which has every attribute."""

    def __getattr__(cls, name: str) -> Any:
        return cls

    def __iter__(cls) -> Iterator[Any]:
        return iter(())


class Nothing(metaclass=_Anything):
    """Stands for a name of the compiler. A file of tests imports it; the tests that run do not use it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Take what comes."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """What it decorates, if it is a decorator."""
        return arguments[0] if arguments else self

    def __getattr__(self, name: str) -> Any:
        return self


class _Compiler(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives an empty module for each of COMPILER, and the files that stand beside the tests."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        package, _, name = fullname.rpartition(".")
        if package == CUDAPY:
            return importlib.util.spec_from_file_location(fullname, Path.cwd() / "cudapy" / f"{name}.py")
        if COMPILER.match(fullname) is None:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        module = types.ModuleType(spec.name)
        vars(module)["__getattr__"] = lambda name: Nothing
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """There is nothing to run."""


@contextlib.contextmanager
def captured(stream: str) -> Iterator[io.StringIO]:
    """What is written to sys.stdout or sys.stderr."""
    before, new = getattr(sys, stream), io.StringIO()
    setattr(sys, stream, new)
    try:
        yield new
    finally:
        setattr(sys, stream, before)


@contextlib.contextmanager
def override_config(name: str, value: Any) -> Iterator[None]:
    """One of Numba's settings, for a while."""
    from numba.core import config

    before = getattr(config, name, None)
    setattr(config, name, value)
    try:
        yield
    finally:
        setattr(config, name, before)


def run_in_subprocess(
    code: str, flags: Sequence[str] = (), env: Any = None, timeout: float | None = None
) -> tuple[bytes, bytes]:
    """What Python prints for some code, which runs on the emulator, too."""
    done = subprocess.run(
        [sys.executable, *flags, "-c", code], env=env, timeout=timeout, capture_output=True, check=True
    )
    return done.stdout, done.stderr


class CheckWarningsMixin:
    """A check of numba-cuda's tests."""

    @contextlib.contextmanager
    def check_warnings(self, messages: Sequence[str], category: Any = RuntimeWarning) -> Iterator[None]:
        """Fail unless there is a warning with each of the messages."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        said = [str(warning.message) for warning in caught if issubclass(warning.category, category)]
        assert all(any(message in sentence for sentence in said) for message in messages), (messages, said)


class TestCase(unittest.TestCase):
    """The class of numba-cuda's tests, with equal arrays for its own comparison."""

    def assertPreciseEqual(self, first: Any, second: Any, *more: Any, **options: Any) -> None:
        """Fail unless both have the same values, but for the last bits of a float."""
        import numpy as np

        single = options.get("prec") == "single" or np.asarray(first).dtype in (np.float32, np.complex64)
        bits = 1e-6 if single else 1e-13
        for part in (np.real, np.imag) if np.iscomplexobj(second) else (np.asarray,):  # one of them may be infinite
            np.testing.assert_allclose(part(first), part(second), rtol=bits, atol=bits)

    @staticmethod
    def run_test_in_subprocess(test: Any) -> Any:
        """A test that numba-cuda runs in a process of its own; here it runs in this one."""
        return test

    def reset_module_warnings(self, module: Any) -> None:
        """Let warnings be shown again: pytest does that for each test."""


def pytest_configure(config: Any) -> None:
    """Put the stand-ins in place, before a test imports them."""
    import numba
    from numba.core.datamodel import models
    from numba.cuda.testing import CUDATestCase

    sys.meta_path.insert(0, _Compiler())
    CUDATestCase.assertPreciseEqual = TestCase.assertPreciseEqual
    CUDATestCase.reset_module_warnings = TestCase.reset_module_warnings
    ours: dict[str, dict[str, Any]] = {
        "testing": {"test_data_dir": Path.cwd() / "data"},
        "types": {"bfloat16": Nothing},
        "extending": {"core_models": models},
        "cudadrv.driver": {"_have_nvjitlink": lambda: False},
        **{name: {"CUDA_ENABLE_NRT": False, "CUDA_DEBUG_POLY": False} for name in ("config", "core.config")},
    }
    for name, names in ours.items():
        vars(importlib.import_module(f"numba.cuda.{name}")).update(names)
    vars(numba.core.config).update(ours["config"])
    vars(numba.cuda)["CUSource"] = Nothing
    contents: dict[str, dict[str, Any]] = {
        "numba.cuda.tests": {"__path__": []},
        CUDAPY: {"__path__": []},
        "numba.cuda.tests.support": {
            "TestCase": TestCase,
            "CUDATestCase": CUDATestCase,
            "CheckWarningsMixin": CheckWarningsMixin,
            "MemoryLeakMixin": type("MemoryLeakMixin", (), {"disable_leak_check": lambda self: None}),
            "override_config": override_config,
            "run_in_subprocess": run_in_subprocess,
            "temp_directory": tempfile.mkdtemp,
            "import_dynamic": importlib.import_module,
            "ignore_internal_warnings": lambda: None,
            "captured_stdout": lambda: captured("stdout"),
            "captured_stderr": lambda: captured("stderr"),
            **dict.fromkeys(("linux_only", "skip_if_py314"), lambda test: test),
            **{each: unittest.skip(each) for each in ("skip_unless_cffi", "windows_only")},
        },
        "numba.cuda.typing": {"__path__": []},
        "numba.cuda.typing.typeof": {"typeof": numba.typeof},
        "numba.cuda.misc": {"__path__": []},
        "numba.cuda.misc.special": {"literal_unroll": numba.literal_unroll},
    }
    for name, names in contents.items():
        module = sys.modules[name] = types.ModuleType(name)
        vars(module).update(names)
