"""Makes docs/emulator-compatibility.md: which tests and kernels of other people run on the emulator, and how fast.

    python scripts/emulator_compatibility.py CHECKOUTS            writes the page
    python scripts/emulator_compatibility.py CHECKOUTS --only stumpy --print

CHECKOUTS is a folder with what the reader has got: stumpy (its source distribution, unpacked), numba_cuda (the wheel,
unpacked), sgkit, and the sources of tests/cuda_emulator/compatibility/right_kernels.toml, each under the name that
FOLDERS has for it. What is not there is left out, and the page says so. Nothing of these programs is copied. It needs
pytest and pytest-xdist, and what the programs themselves need, beside the emulator in the same environment.
"""

from __future__ import annotations

import argparse
import ast
import atexit
import contextlib
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

from cuda_emulator import KernelError, options
from cuda_emulator.inspection import ScriptFailed, run_script

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/emulator-compatibility.md"
BEGIN, END = "<!-- made by scripts/emulator_compatibility.py -->", "<!-- end -->"
KERNELS = ROOT / "tests/cuda_emulator/compatibility/right_kernels.toml"
FOLDERS = {
    "makepath/xarray-spatial": "makepath+xarray-spatial",
    "sgkit-dev/sgkit": "sgkit-dev+sgkit",
    "vargalg/CUDA-Python-tutorial": "vargalg+CUDA-Python-tutorial",
    "nyu-cds/python-numba": "nyu-cds+python-numba",
    "nicoleyu0623/CUDA-Python-with-Numba": "nicoleyu0623+CUDA-Python-with-Numba",
    "numba/nvidia-cuda-tutorial": "numba+nvidia-cuda-tutorial",
    "rm-wu/GPU-Puzzles": "rm-wu+GPU-Puzzles",
}
STUMPY_FILES = ("mpdist", "aampdist", "ostinato", "stump", "aamp")

#: Stands in numba_cuda's tests for helpers that import its compiler.
SUPPORT = """
def pytest_configure(config):
    register()

def register():
    import contextlib, io, sys, types, unittest
    from numba.cuda.testing import CUDATestCase
    from numba.core import config

    @contextlib.contextmanager
    def captured(name):
        before, new = getattr(sys, name), io.StringIO()
        setattr(sys, name, new)
        try:
            yield new
        finally:
            setattr(sys, name, before)

    @contextlib.contextmanager
    def override_config(name, value):
        before = getattr(config, name, None)
        setattr(config, name, value)
        try:
            yield
        finally:
            setattr(config, name, before)

    class TestCase(unittest.TestCase):
        def assertPreciseEqual(self, first, second, *more, **options):
            import numpy
            numpy.testing.assert_array_equal(first, second)

    support = types.ModuleType("numba.cuda.tests.support")
    vars(support).update(
        TestCase=TestCase, CUDATestCase=CUDATestCase, override_config=override_config,
        captured_stdout=lambda: captured("stdout"), captured_stderr=lambda: captured("stderr"),
        linux_only=lambda f: f, skip_if_py314=lambda f: f, skip_unless_cffi=unittest.skip("cffi"),
    )
    tests = types.ModuleType("numba.cuda.tests")
    tests.__path__, tests.support = [], support
    sys.modules["numba.cuda.tests"], sys.modules["numba.cuda.tests.support"] = tests, support
    for name in ("CUDATestCase",):
        for method in ("assertPreciseEqual",):
            setattr(CUDATestCase, method, TestCase.assertPreciseEqual)
"""


@dataclass
class Outcome:
    """What pytest said of some tests. verdicts: test -> "passed", "failed" or "skipped"; reasons: why tests failed"""

    verdicts: dict[str, str] = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def count(self, verdict: str) -> int:
        """The number of tests with this verdict."""
        return sum(each == verdict for each in self.verdicts.values())


def run_tests(
    folder: Path, arguments: Sequence[str], environment: dict[str, str], limit: float = 900, plugin: str = ""
) -> Outcome:
    """Run pytest in a folder, and return what it said. seconds: of the processor, with all child processes."""
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        Path(scratch, "helpers_of_the_trial.py").write_text(plugin or "\n", encoding="utf-8")
        paths = [scratch, str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
        used = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "1", **environment}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
        more = ["-p", "helpers_of_the_trial"] if plugin else []
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run([*command, *more, *arguments], cwd=folder, env=used, timeout=limit, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found = read_report(report) if report.exists() else Outcome()
    found.seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return found


def read_report(report: Path) -> Outcome:
    """The verdicts in a JUnit report."""
    outcome = Outcome()
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        bad = next((each for each in case if each.tag in ("failure", "error")), None)
        if bad is not None:
            outcome.verdicts[name] = "failed"
            outcome.reasons[reason(bad.get("message") or bad.text or "")] += 1
        else:
            outcome.verdicts[name] = "skipped" if case.find("skipped") is not None else "passed"
    return outcome


def reason(message: str) -> str:
    """The kind of a failure, without names and numbers."""
    kinds = {
        "is not supported by the emulator": "not supported by the emulator: {}",
        "float16": "float16",
        "cannot be read": "kernels made by exec, whose text cannot be found",
        "out of bounds": "index out of bounds",
        "No module named": "imports a part of numba-cuda that makes code for a GPU",
        "has no attribute": "asks for a name that the emulator does not have: {}",
        "cannot import name": "asks for a name that the emulator does not have: {}",
        "race": "race",
        "AssertionError": "another result, or another wording of an error",
    }
    first = " ".join(message.split())
    for words, kind in kinds.items():
        if words in first:
            named = re.search(
                r"[`'\"]?([\w.]+)[`'\"]?\(?\)? is not supported|has no attribute '(\w+)'|import name '(\w+)'", first
            )
            return kind.format(next(filter(None, named.groups()), "") if named else "").rstrip(": ")
    return first.partition(":")[0][:60] or "unknown"


def stumpy_section(checkouts: Path) -> list[str]:
    """STUMPY's GPU tests under the emulator and under Numba's simulator."""
    folder = next(iter(sorted(checkouts.glob("stumpy*/"))), None)
    if folder is None:
        return ["STUMPY was not at hand."]
    lines = [
        "| file | tests | same verdict as the simulator | emulator, s | with two processes, s | simulator, s |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name in STUMPY_FILES:
        tests = [f"tests/test_gpu_{name}.py"]
        run_tests(folder, ["--cuda-emulator", *tests], {})  # fills the caches
        emulator = run_tests(folder, ["--cuda-emulator", *tests], {})
        shared = run_tests(folder, ["--cuda-emulator", "-n", "2", *tests], {})
        simulator = run_tests(folder, tests, {"NUMBA_ENABLE_CUDASIM": "1", "CUDA_EMULATOR": "0"})
        same = sum(simulator.verdicts.get(test) == verdict for test, verdict in emulator.verdicts.items())
        both = same if shared.verdicts == emulator.verdicts else f"{same}, other ones with two processes"
        lines.append(
            f"| `test_gpu_{name}.py` | {len(emulator.verdicts)} | {both} | {emulator.seconds:.0f} | "
            f"{shared.seconds:.0f} | {simulator.seconds:.0f} |"
        )
        print(lines[-1], file=sys.stderr, flush=True)
    return lines


def numba_cuda_section(checkouts: Path) -> list[str]:
    """numba-cuda's own tests of its language."""
    folder = tests_of_numba_cuda(checkouts)
    if folder is None:
        return ["numba-cuda's wheel was not at hand."]
    lines = ["| folder | tests | passed | failed or refused | skipped |", "|---|---:|---:|---:|---:|"]
    reasons: Counter[str] = Counter()
    for part in ("doc_examples", "cudapy"):
        skipped = [f"--ignore={folder / part / each}" for each in DRIVER.get(part, ())]
        arguments = [
            "--cuda-emulator",
            "--continue-on-collection-errors",
            "--import-mode=importlib",
            "-n",
            "2",
            *skipped,
            part,
        ]
        outcome = run_tests(folder, arguments, {}, limit=1200, plugin=SUPPORT)
        reasons += outcome.reasons
        lines.append(
            f"| `{part}` | {len(outcome.verdicts)} | {outcome.count('passed')} | {outcome.count('failed')} | "
            f"{outcome.count('skipped')} |"
        )
    return [
        *lines,
        "",
        "| why not | tests |",
        "|---|---:|",
        *(f"| {why} | {n} |" for why, n in reasons.most_common(25)),
    ]


@cache
def tests_of_numba_cuda(checkouts: Path) -> Path | None:
    """A copy of numba-cuda's tests that is no package, so that pytest imports none of numba-cuda with them."""
    folder = next(iter(checkouts.glob("numba_cuda/**/numba/cuda/tests")), None)
    if folder is None:
        return None
    copied = Path(tempfile.mkdtemp(prefix="tests-of-numba-cuda-"))
    atexit.register(shutil.rmtree, copied, ignore_errors=True)
    shutil.copytree(folder, copied, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__init__.py", "__pycache__"))
    return copied


#: Files that look at PTX, LLVM's code or linking, or need a driver.
DRIVER = {
    "doc_examples": ("test_ffi.py", "test_random.py", "ffi"),
    "cudapy": (
        *(
            "test_caching.py",
            "test_inspect.py",
            "test_fastmath.py",
            "test_inline.py",
            "test_overload.py",
            "test_debug.py",
        ),
        *("test_debuginfo.py", "test_debuginfo_types.py", "test_lineinfo.py", "test_compiler.py", "test_ir.py"),
        *("test_ir_utils.py", "test_analysis.py", "test_ssa.py", "test_typeconv.py", "test_typeinfer.py", "test_sm.py"),
        *("test_copy_propagate.py", "test_tracing.py", "test_nvvm_driver.py", "test_bfloat16.py", "test_fp16.py"),
        *("test_extending.py", "test_extending_types.py", "test_array_alignment.py", "test_minimal.py", "test_ipc.py"),
        *("test_multithreads.py", "test_mvc.py", "test_multigpu.py", "test_nondet.py", "test_operator.py"),
        *(
            "test_optimization.py",
            "test_retrieve_autoconverted_arrays.py",
            "test_userexc.py",
            "test_cuda_jit_no_types.py",
        ),
        *("test_ffi.py", "test_errors.py", "test_event.py", "test_gufunc_sched.py", "test_forall.py"),
    ),
}


def sgkit_section(checkouts: Path) -> list[str]:
    """sgkit's distance tests with target="gpu"."""
    folder = next(iter(checkouts.glob("sgkit-dev+sgkit")), None)
    if folder is None:
        return ["sgkit was not at hand."]
    outcome = run_tests(
        folder, ["--cuda-emulator", "-p", "no:cov", "-o", "addopts=", "sgkit/tests/test_distance.py"], {}
    )
    failed = "".join(f"; {why}: {n}" for why, n in outcome.reasons.items())
    return [
        f"`sgkit/tests/test_distance.py`: {len(outcome.verdicts)} tests, {outcome.count('passed')} passed, "
        f"{outcome.count('failed')} failed, {outcome.count('skipped')} skipped{failed}."
    ]


def kernels_section(checkouts: Path) -> list[str]:
    """The sixty right kernels under check."""
    wanted = tomllib.loads(KERNELS.read_text(encoding="utf-8"))["kernel"]
    verdicts: Counter[str] = Counter()
    lines = []
    for kernel in wanted:
        verdict = judged(kernel, checkouts)
        print(kernel["file"], kernel["name"], verdict, file=sys.stderr, flush=True)
        verdicts["accused" if verdict not in ("accepted", "not at hand") else verdict] += 1
        if verdict not in ("accepted", "not at hand"):
            lines.append(f"| {kernel['source']} | `{kernel['file']}` | `{kernel['name']}` | {verdict} |")
    counted = ", ".join(f"{number} {verdict}" for verdict, number in verdicts.most_common())
    table = ["", "| from | file | kernel | what was said |", "|---|---|---|---|", *lines] if lines else []
    return [f"Of {len(wanted)} kernels: {counted}.", *table]


def judged(kernel: dict[str, str], checkouts: Path) -> str:
    """Whether check mode accepts a kernel: "accepted", "not at hand", or what it says."""
    if "test" in kernel:
        return judged_by_test(kernel, checkouts)
    file = checkouts / FOLDERS[kernel["source"]] / kernel["file"]
    if not file.exists():
        return "not at hand"
    with tempfile.TemporaryDirectory() as scratch:
        script = Path(scratch) / "kernel.py"
        script.write_text(reduced(file.read_text(encoding="utf-8"), kernel), encoding="utf-8")
        try:
            with options(check=True):
                run_script(script)
        except KernelError as error:
            return error.sentence.replace("|", "\\|")[:200]
        except ScriptFailed as failed:
            return f"{type(failed.__cause__).__name__}: {failed.__cause__}".replace("|", "\\|")[:200]
    return "accepted"


def judged_by_test(kernel: dict[str, str], checkouts: Path) -> str:
    """The same for a kernel that a test of its project launches."""
    if kernel["source"].startswith("STUMPY"):
        folder = next(iter(sorted(checkouts.glob("stumpy*/"))), None)
        arguments = ["--cuda-emulator=check,wrap", kernel["test"], "-k", "constant or A_B_join"]
    else:
        folder = tests_of_numba_cuda(checkouts)
        name = kernel["test"].replace(".", "::")
        arguments = [
            "--cuda-emulator=check",
            "--import-mode=importlib",
            f"doc_examples/{Path(kernel['file']).name}::{name}",
        ]
    if folder is None:
        return "not at hand"
    outcome = run_tests(folder, arguments, {}, plugin=SUPPORT)
    if outcome.verdicts and not outcome.count("failed") and outcome.count("passed"):
        return "accepted"
    return "; ".join(outcome.reasons) or "not run"


def reduced(text: str, kernel: dict[str, str]) -> str:
    """A program of a kernel's file: its imports of numba, NumPy and mathematics, its constants, the functions of cuda,
    and one launch of the kernel."""
    tree, kept = ast.parse(text), []
    outer, _, inner = kernel["name"].partition(".")
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]
            if all(name.split(".")[0] in ("numba", "numpy", "math", "cmath", "typing") for name in names):
                kept.append(node)
        elif isinstance(node, ast.Assign) and not any(isinstance(each, ast.Call) for each in ast.walk(node)):
            kept.append(node)
        elif isinstance(node, ast.FunctionDef):
            marks = [ast.unparse(each) for each in node.decorator_list]
            if node.name == outer or any("cuda.jit" in mark for mark in marks):
                kept.append(node)
    named = f"cuda.jit({outer}(cuda))" if inner else outer
    # A constant that is computed from what was left out is left out, too.
    body = "\n".join(
        f"try:\n    {ast.unparse(node)}\nexcept NameError:\n    pass"
        if isinstance(node, ast.Assign)
        else ast.unparse(node)
        for node in kept
    )
    return f"""from __future__ import annotations
import math
from contextlib import suppress
import numpy as np
from numba import cuda, float32
TPB, block_size, threads_per_block, ArrayLike = 16, (16, 16), 256, object
{body}
from cuda_emulator.lens.arguments_from_text import arguments_from
kernel = {named}
arguments = arguments_from({kernel["arguments"]!r}, kernel.parameters, "kernel")
kernel[({kernel["grid"]}), ({kernel["block"]})](*arguments)
"""


SECTIONS = {
    "kernels": ("Sixty right kernels under check", kernels_section),
    "stumpy": ("STUMPY's GPU tests", stumpy_section),
    "sgkit": ("sgkit's distance tests", sgkit_section),
    "numba-cuda": ("numba-cuda's own tests", numba_cuda_section),
}


def main() -> None:
    """Make the parts that were asked for, and put them into the page, or print them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("--only", choices=list(SECTIONS), action="append", help="these parts alone")
    parser.add_argument("--print", action="store_true", help="print the parts, and leave the page alone")
    given = parser.parse_args()
    if not given.checkouts.is_dir():
        parser.error(f"{given.checkouts} is no folder; name the one that holds the checkouts")
    where = (
        f"Made on {date.today()}, on {platform.system()} {platform.machine()} with Python {platform.python_version()}, "
        f"numba {version('numba')} and NumPy {version('numpy')}."
    )
    lines = [where]
    for name in given.only or SECTIONS:
        title, section = SECTIONS[name]
        lines += ["", f"### {title}", "", *section(given.checkouts.resolve())]
        print(f"{name}: done", file=sys.stderr)
    text = "\n".join(lines)
    if given.print:
        print(text)
        return
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
