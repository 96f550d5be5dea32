"""Makes docs/emulator-compatibility.md: which tests and kernels of other people run on the emulator, and how fast.

    python scripts/emulator_compatibility.py CHECKOUTS                        makes the page's section of these trials
    python scripts/emulator_compatibility.py CHECKOUTS --only stumpy          makes a part of it, and leaves the rest
    python scripts/emulator_compatibility.py CHECKOUTS --print                prints it instead

CHECKOUTS is a folder with what the reader has got: stumpy (its source distribution, unpacked), numba_cuda (the wheel,
unpacked), and the repositories of tests/cuda_emulator/compatibility/right_kernels.toml, each under its name with + in
place of the /. What is not there is left out, and the page says so. Nothing of these programs is copied. It needs
pytest and pytest-xdist, and what the programs themselves need, beside the emulator in the same environment.

With --every N only the first of each N tests is run, in pytest's order, and the page says so: the simulator takes long.
With --minutes M a run of the simulator ends with the first test after M minutes; the emulator's seconds are then those
of the same tests, and the page says how many they are.
"""

from __future__ import annotations

import argparse
import ast
import atexit
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

from numba_cuda_tests import of_the_compiler

from cuda_emulator import KernelError, options
from cuda_emulator.inspection import ScriptFailed, run_script

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/emulator-compatibility.md"
BEGIN, END = "<!-- made by scripts/emulator_compatibility.py -->", "<!-- end -->"
KERNELS = ROOT / "tests/cuda_emulator/compatibility/right_kernels.toml"
STUMPY_FILES = ("mpdist", "aampdist", "ostinato", "stump", "aamp")
SIMULATOR = {"NUMBA_ENABLE_CUDASIM": "1", "CUDA_EMULATOR": "0"}
"""The environment of Numba's simulator."""
MINITORCH = ("*minitorch*", "*mod3-*")
HELPERS = "numba_cuda_tests"
"""The plugin for numba-cuda's tests, beside this file."""

#: A plugin that keeps every n-th test, the first of these only, and stops after some seconds if there are any.
SAMPLE = """
import pytest, time

started = time.monotonic()

@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    kept = items[::{n}][:{first}]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept

def pytest_runtest_teardown(item):
    if {seconds} and time.monotonic() - started > {seconds}:
        item.session.shouldstop = "time is up"
"""

#: A plugin that prints the processor's seconds in launches of kernels, of all threads. STUMPY's tests draw their
#: parameters: with a seed every process draws the same.
LAUNCHES = """
import os, sys, time
import numpy

spent, running = [0.0], []

def pytest_configure(config):
    if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1":
        from numba.cuda.simulator.kernel import FakeCUDAKernel as Launch
    else:
        from cuda_emulator.runtime.dispatcher import Configured as Launch
    untimed = Launch.__call__
    numpy.random.seed(0)

    def timed(self, *arguments):
        if running:  # a device function of the simulator
            return untimed(self, *arguments)
        running.append(self)
        start = time.process_time()
        try:
            return untimed(self, *arguments)
        finally:
            spent[0] += time.process_time() - start
            running.clear()

    Launch.__call__ = timed

def pytest_unconfigure(config):
    print("LAUNCHES", spent[0], file=sys.__stderr__)
"""


@dataclass
class Outcome:
    """What pytest said of some tests. verdicts: test -> "passed", "failed" or "skipped"; reasons: why tests failed

    seconds: of the processor, with all child processes; launches: of these in launches of kernels, if measured
    """

    verdicts: dict[str, str] = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    launches: float = 0.0

    def count(self, verdict: str) -> int:
        """The number of tests with this verdict."""
        return sum(each == verdict for each in self.verdicts.values())


def run_tests(
    folder: Path,
    arguments: Sequence[str],
    environment: dict[str, str],
    every: int = 1,
    plugin: str = "",
    first: int | None = None,
    seconds: float = 0,
) -> Outcome:
    """Run pytest in a folder, and return what it said.

    every: 4 runs the first of each four tests; plugin: the text of a plugin of pytest; first: the number of tests to
    run; seconds: after which no other test is begun, 0 for no limit
    """
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        plugin += SAMPLE.format(n=every, first=first, seconds=seconds)
        Path(scratch, "plugin_of_the_trial.py").write_text(plugin, encoding="utf-8")
        paths = [scratch, str(folder), str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
        used = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "1", **environment}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "plugin_of_the_trial"]
        whole = [*command, f"--junitxml={report}", *arguments]
        said = subprocess.run(whole, cwd=folder, env=used, capture_output=True, text=True).stderr
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        outcome = read_report(report) if report.exists() else Outcome()
    outcome.seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    measured = re.search(r"^LAUNCHES (.+)$", said, re.M)
    outcome.launches = float(measured[1]) if measured else 0.0
    return outcome


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
        "float16": "float16",
        "bfloat16": "bfloat16",
        "recursion": "not supported by the emulator: recursion",
        "is not supported by the emulator": "not supported by the emulator: {}",
        "cannot be read": "kernels made by exec, whose text cannot be found",
        "out of bounds": "index out of bounds",
        "live threads": "a barrier that only a part of the block reaches",
        "does not fit into the signature": "a number or an array that does not fit into the signature's type",
        "as the signature says": "a number or an array that does not fit into the signature's type",
        "literal_unroll": "numba.literal_unroll",
        "'Interval' is the class": "functions and types added with numba.extending",
        "is a _Intrinsic": "functions and types added with numba.extending",
        "a kernel takes plain arguments": "*args and its like",
        "cannot be stored or passed": "a function kept in a variable",
        "kernel has no '": "asks for what numba-cuda's compiler keeps of a kernel",
        "collection failure": "a file of tests that needs more than this environment has",
        "is a plain Python function": "functions and types added with numba.extending",
        "Numba finds no types": "something that Numba has for a GPU and not for a CPU",
        "No module named": "imports a part of numba-cuda that makes code for a GPU",
        "has no attribute": "asks for a name that is not there: {}",
        "cannot import name": "asks for a name that is not there: {}",
        "CalledProcessError": "a child process failed",
        "pickle": "pickling of a kernel",
        "not raised": "no error where numba-cuda has one",
        "DID NOT RAISE": "no error where numba-cuda has one",
        "DID NOT WARN": "no warning where numba-cuda has one",
        "not triggered": "no warning where numba-cuda has one",
        "not found in": "another wording of an error",
        "does not match": "another wording of an error",
        "race": "race",
        "AssertionError": "another result",
    }
    first = " ".join(message.split())
    for words, kind in kinds.items():
        if words in first:
            named = re.search(
                r"[`'\"]?([\w.]+)[`'\"]?\(?\)? is not supported|has no attribute '(\w+)'|import name '(\w+)'", first
            )
            return kind.format(next(filter(None, named.groups()), "") if named else "").rstrip(": ")
    return first.partition(":")[0][:60] or "unknown"


def stumpy_section(checkouts: Path, every: int, minutes: float) -> list[str]:
    """STUMPY's GPU tests under the emulator and under Numba's simulator.

    minutes: after which the simulator begins no other test of a file, 0 for no limit
    """
    folder = next(iter(sorted(checkouts.glob("stumpy*/"))), None)
    if folder is None:
        return ["STUMPY was not at hand."]
    lines = [
        "Seconds of the processor, with what STUMPY and its tests compile and compute on the CPU in both cases; in",
        "brackets those in launches of kernels alone. The emulator's cache was warm; the simulator is Numba's own.",
        *([f"The simulator began no other test of a file after {minutes:g} minutes."] if minutes else []),
        "",
        "| file | tests | as the simulator | with `-n 2`, too | emulator, s | simulator, s |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    outcomes = []
    for name in STUMPY_FILES:
        tests = [f"tests/test_gpu_{name}.py"]
        shared = run_tests(folder, ["--cuda-emulator", "-n", "2", *tests], {}, every, LAUNCHES)  # fills the cache, too
        simulator = run_tests(folder, tests, SIMULATOR, every, LAUNCHES, seconds=60 * minutes)
        reached = len(simulator.verdicts)
        emulator = run_tests(folder, ["--cuda-emulator", *tests], {}, every, LAUNCHES, first=reached)
        outcomes.append((emulator, simulator))
        label = f"`test_gpu_{name}.py`" + (f", every {every}th test" if every > 1 else "")
        label += f", {len(shared.verdicts)} tests" * (reached < len(shared.verdicts))
        counts = (reached, agreement(emulator, simulator), agreement(shared, simulator))
        lines.append(f"| {label} | {' | '.join(map(str, counts))} | {seconds(emulator)} | {seconds(simulator)} |")
        print(lines[-1], file=sys.stderr, flush=True)
    both = [seconds(*which) for which in zip(*outcomes, strict=True)]
    lines.append(f"| all | | | | {' | '.join(both)} |")
    return lines


def seconds(*outcomes: Outcome) -> str:
    """The seconds of some runs, and in brackets those of the launches."""
    return f"{sum(each.seconds for each in outcomes):.1f} ({sum(each.launches for each in outcomes):.2f})"


def agreement(outcome: Outcome, simulator: Outcome) -> int:
    """The number of tests for which both say the same."""
    return sum(outcome.verdicts.get(test) == verdict for test, verdict in simulator.verdicts.items())


def numba_cuda_section(checkouts: Path, every: int, minutes: float) -> list[str]:
    """numba-cuda's own tests of its language."""
    folder = tests_of_numba_cuda(checkouts)
    if folder is None:
        return ["numba-cuda's wheel was not at hand."]
    lines = [
        "Left out are the tests that look at numba-cuda's compiler, at PTX, LLVM's code or linking, or at a driver:",
        "`scripts/numba_cuda_tests.py` finds them by the names they use. Left out, too, is the example that draws 454",
        "million random numbers.",
        "",
        "| folder | tests | left out | passed | failed | skipped | passed of those that ran | emulator, s |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    reasons: Counter[str] = Counter()
    for part in ("doc_examples", "cudapy"):
        beyond = ["doc_examples/test_random.py::TestRandom::test_ex_3d_grid"] if part == "doc_examples" else []
        for file in sorted((folder / part).glob("test_*.py")):
            beyond += [f"{part}/{file.name}::{test}" for test in of_the_compiler(file.read_text(encoding="utf-8"))[1]]
        arguments = [
            *("--cuda-emulator", "--continue-on-collection-errors", "--import-mode=importlib", "-n", "2"),
            *("-p", HELPERS, *(f"--deselect={test}" for test in beyond), part),
        ]
        outcome = run_tests(folder, arguments, {}, every)
        reasons += outcome.reasons
        passed, failed = outcome.count("passed"), outcome.count("failed")
        lines.append(
            f"| `{part}` | {len(outcome.verdicts) + len(beyond)} | {len(beyond)} | {passed} | {failed} | "
            f"{outcome.count('skipped')} | {100 * passed / max(1, passed + failed):.0f} % | {outcome.seconds:.0f} |"
        )
        print(lines[-1], file=sys.stderr, flush=True)
    return [
        *lines,
        "",
        "| why not | tests |",
        "|---|---:|",
        *(f"| {why} | {n} |" for why, n in reasons.most_common()),
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


def sgkit_section(checkouts: Path, every: int, minutes: float) -> list[str]:
    """sgkit's distance tests with target="gpu"."""
    folder = next(iter(checkouts.glob("sgkit-dev+sgkit")), None)
    if folder is None:
        return ["sgkit was not at hand."]
    arguments = ["-o", "addopts=", "sgkit/tests/test_distance.py"]
    emulator = run_tests(folder, ["--cuda-emulator", *arguments], {}, every)
    simulator = run_tests(folder, arguments, SIMULATOR, every, seconds=60 * minutes)
    return [
        *TABLE,
        row("`sgkit/tests/test_distance.py`", emulator),
        row("the same, on Numba's simulator", simulator),
    ]


def minitorch_section(checkouts: Path, every: int, minutes: float) -> list[str]:
    """The CUDA tests of minitorch's module 3, in students' repositories."""
    folders = sorted({folder for pattern in MINITORCH for folder in checkouts.glob(pattern) if folder.is_dir()})
    if not folders:
        return ["No repository with a solution of minitorch's module 3 was at hand."]
    tests = ["--hypothesis-seed=0", "-m", "task3_3 or task3_4", "-k", "cuda or Cuda or CUDA", "tests"]
    return [
        *TABLE,
        *(
            row(folder.name.replace("+", "/"), run_tests(folder, ["--cuda-emulator", *tests], {}, every))
            for folder in folders
        ),
    ]


TABLE = (
    "| tests | passed | failed or refused | skipped | s of the processor | why not |",
    "|---|---:|---:|---:|---:|---|",
)


def row(label: str, outcome: Outcome) -> str:
    """A line of TABLE."""
    counts = " | ".join(str(outcome.count(verdict)) for verdict in ("passed", "failed", "skipped"))
    reasons = "; ".join(f"{why} ({number})" for why, number in outcome.reasons.most_common())
    return f"| {label} | {counts} | {outcome.seconds:.1f} | {reasons} |"


def kernels_section(checkouts: Path, every: int, minutes: float) -> list[str]:
    """The sixty right kernels under check."""
    wanted = tomllib.loads(KERNELS.read_text(encoding="utf-8"))["kernel"]
    verdicts: Counter[str] = Counter()
    lines = []
    for kernel in wanted[::every]:
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
    file = checkouts / kernel["source"].replace("/", "+") / kernel["file"]
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
            *("-p", HELPERS),
            f"doc_examples/{Path(kernel['file']).name}::{name}",
        ]
    if folder is None:
        return "not at hand"
    outcome = run_tests(folder, arguments, {})
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
    "minitorch": ("minitorch's module 3", minitorch_section),
    "sgkit": ("sgkit's distance tests", sgkit_section),
    "numba-cuda": ("numba-cuda's own tests", numba_cuda_section),
}


def main() -> None:
    """Make the parts that were asked for, and put them into the page, or print them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("--only", choices=list(SECTIONS), action="append", help="these parts alone")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="the first of each N tests alone")
    parser.add_argument("--minutes", type=float, default=0, metavar="M", help="of the simulator for each file of tests")
    parser.add_argument("--print", action="store_true", help="print the parts, and leave the page alone")
    given = parser.parse_args()
    if not given.checkouts.is_dir():
        parser.error(f"{given.checkouts} is no folder; name the one that holds the checkouts")
    where = (
        f"Made on {date.today()}, on {platform.system()} {platform.machine()} with Python {platform.python_version()}, "
        f"numba {version('numba')} and NumPy {version('numpy')}"
        + (f"; of these tests the first of each {given.every} tests." if given.every > 1 else ".")
    )
    parts = {}
    for name in given.only or SECTIONS:
        title, section = SECTIONS[name]
        parts[title] = "\n".join([where, "", *section(given.checkouts.resolve(), given.every, given.minutes)])
        print(f"{name}: done", file=sys.stderr)
    if given.print:
        print("\n\n".join(f"### {title}\n\n{text}" for title, text in parts.items()))
    else:
        PAGE.write_text(with_parts(PAGE.read_text(encoding="utf-8"), parts), encoding="utf-8")


def with_parts(page: str, parts: dict[str, str]) -> str:
    """The page with these parts in place of those that had their titles; the others stay."""
    before, _, rest = page.partition(BEGIN)
    section, _, after = rest.partition(END)
    known = dict(part.split("\n\n", 1) for part in section.split("### ")[1:]) | parts
    titles = [title for title, _ in SECTIONS.values() if title in known]
    text = "\n\n".join(f"### {title}\n\n{known[title].strip()}" for title in titles)
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


if __name__ == "__main__":
    main()
