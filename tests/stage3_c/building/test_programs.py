"""The C by itself: the programs in the folder c, under every tool that finds what a right answer does not show.

Each tool is first given programs with a planted error: one that does not find those is no check. Where the compiler
or the machine does not have a tool, its test is skipped and says why.
"""

import os
import platform
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from shared.contract import StageUnavailable
from shared.machine.hardware import usable_cores
from stage3_c.build import CSRC, ONCE
from stage3_c.compiler import WARNINGS, Compiler, DoesNotWork, find_compiler, identify
from tests.wide import wide, widely

PROGRAMS = Path(__file__).parent / "c"
FOR_ALL = ("-std=c11", "-ffp-contract=fast", "-fno-math-errno", "-pthread", f"-I{CSRC}", *WARNINGS)
# -Og: with more than that, gcc takes half a minute to compile the matmul's unrolled tiles for a sanitizer.
CHECKED = ("-Og", "-g", "-fno-omit-frame-pointer")
SANITIZED = (*CHECKED, "-fno-sanitize-recover=all")
X86 = platform.machine() in ("x86_64", "AMD64")
# Without AVX-512, which valgrind does not know: this is also the test of AVX2.
FOR_VALGRIND = ("-march=x86-64-v3",) if X86 else ()

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the C tests need POSIX threads")


@dataclass(frozen=True)
class Tool:
    """How the programs are compiled and run, and which planted errors must be found that way.

    only: the programs, where not all; sources: the files of csrc that they need, where not all
    native: compiled for this machine's own processor
    """

    options: tuple[str, ...]
    planted: tuple[str, ...] = ()
    prefix: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    argument: str = "all"
    only: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    native: bool = True


VALGRIND = ("valgrind", "--quiet", "--leak-check=full", "--errors-for-leak-kinds=all", "--show-leak-kinds=all")
TOOLS = {
    # What is compiled in a second; everything else is wide.
    "guard zones, not optimized": Tool(
        ("-O0", "-fstack-protector-all"),
        only=("test_activations", "test_batch_norm", "test_optimizers", "test_pool"),
        sources=("activations", "batch_norm", "optimizers", "pool"),
    ),
    "guard zones": Tool(("-O3",)),
    # The narrowest registers of x86, and those with the high tiles of aarch64, which are narrower than they are high.
    **{
        name: Tool(("-O3", "-march=x86-64", *more), only=("test_matmul", "test_convolution"), native=False)
        for name, more in {"SSE2": (), "SSE2, eight rows": ("-DTILE_ROWS=8",)}.items()
        if X86
    },
    "valgrind": Tool(
        (*CHECKED, *FOR_VALGRIND, "-DGUARD=0"),
        planted=("read_beyond", "leak"),
        prefix=(*VALGRIND, "--error-exitcode=9", "--fair-sched=yes"),
        argument="small",
        native=False,
    ),
    "address,undefined": Tool(
        (*SANITIZED, "-fsanitize=address,undefined", "-DGUARD=0"),
        planted=("read_beyond", "undefined", "leak"),
        environment=(("ASAN_OPTIONS", "detect_leaks=1"),),
    ),
    "thread": Tool(
        (*SANITIZED, "-fsanitize=thread"),
        planted=("race",),
        argument="small",
        only=("test_pool", "test_matmul", "test_convolution"),
    ),
}


@pytest.fixture(scope="module")
def compiler() -> Compiler:
    try:
        return find_compiler()
    except StageUnavailable as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", widely(TOOLS))
def test_the_c_programs_pass(name: str, compiler: Compiler, tmp_path: Path) -> None:
    tool = TOOLS[name]
    if tool.native:
        tool = replace(tool, options=(*tool.options, *(compiler.options or ())))
    _compile_planted(name, tool, compiler, tmp_path)
    leaks = _run(tool, tmp_path / "planted", "none")
    if "LeakSanitizer" in leaks.stderr:  # it needs ptrace, which a container or a debugger may take away
        planted = tuple(error for error in tool.planted if error != "leak")
        tool = replace(tool, planted=planted, environment=(("ASAN_OPTIONS", "detect_leaks=0"),))
    harmless = _run(tool, tmp_path / "planted", "none")
    if harmless.returncode != 0:
        pytest.skip(f"a program without errors does not run under {name} here: {harmless.stderr.strip()[-300:]}")
    for error in tool.planted:
        assert _run(tool, tmp_path / "planted", error).returncode != 0, f"{name} did not find the planted {error}"

    programs = _build(compiler, tool, tmp_path)
    assert programs
    with ThreadPoolExecutor(usable_cores()) as workers:
        results = workers.map(lambda program: _run(tool, program, tool.argument), programs)
    failures = [
        f"{program.name} under {name}: exit code {result.returncode}\n{result.stdout}{result.stderr}"
        for program, result in zip(programs, results, strict=True)
        if result.returncode != 0
    ]
    assert not failures, "\n".join(failures)
    if "LeakSanitizer" in leaks.stderr:
        pytest.skip(f"all passed under {name}, but leaks could not be looked for: {leaks.stderr.strip()[-300:]}")


@wide
@pytest.mark.parametrize(
    "command", [("gcc",), ("clang",), (sys.executable, "-m", "ziglang", "cc")], ids=lambda c: c[-1]
)
def test_every_further_compiler_here_is_free_of_warnings(
    command: tuple[str, ...], compiler: Compiler, tmp_path: Path
) -> None:
    try:
        further = identify(command)
    except DoesNotWork as error:
        pytest.skip(f"{' '.join(command)}: {error}")
    if further.version_text.partition(" ")[2] == compiler.version_text.partition(" ")[2]:
        pytest.skip("this is the compiler of all other tests, to which warnings are errors too")
    _compile(further, Tool(("-O3",)), tmp_path)


def _compile_planted(name: str, tool: Tool, compiler: Compiler, folder: Path) -> None:
    """Compile planted.c with the tool; skip where this machine does not have the tool."""
    if tool.prefix and shutil.which(tool.prefix[0]) is None:
        pytest.skip(f"{tool.prefix[0]} is not installed")
    plain = [*_words(compiler), *FOR_ALL, str(PROGRAMS / "planted.c"), "-o", str(folder / "planted")]
    _succeed(plain)  # what does not even compile without the tool is no reason to skip
    done = subprocess.run([*plain, *tool.options], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"{compiler.version} cannot compile for {name}: {done.stderr.strip()[-300:]}")


def _build(compiler: Compiler, tool: Tool, folder: Path) -> list[Path]:
    """Compile and link every program with the whole of csrc. Returns the paths of the programs."""
    objects = _compile(compiler, tool, folder)
    library = [str(path) for path in objects if not path.name.startswith("test_")]
    programs = []
    for test in (path for path in objects if path.name.startswith("test_")):
        program = test.with_suffix("")
        _succeed([*_words(compiler), *FOR_ALL, *tool.options, str(test), *library, "-o", str(program), "-lm"])
        programs.append(program)
    return programs


def _compile(compiler: Compiler, tool: Tool, folder: Path) -> list[Path]:
    """Compile csrc and the tests, each for both precisions where it has a precision. Returns the object files."""
    programs = [path for path in PROGRAMS.glob("test_*.c") if not tool.only or path.stem in tool.only]
    library = [path for path in CSRC.glob("*.c") if not tool.sources or path.stem in tool.sources]
    commands = {}
    for source in [*sorted(programs), *sorted(library)]:
        for bits in ("",) if source.name in (*ONCE, "test_pool.c") else ("32", "64"):
            target = folder / f"{source.stem}{bits}.o"
            precision = [f"-DGROUNDUP_BITS={bits}"] if bits else []
            words = [*_words(compiler), *FOR_ALL, *tool.options, *precision]
            commands[target] = [*words, "-c", str(source), "-o", str(target)]
    with ThreadPoolExecutor(usable_cores()) as workers:
        list(workers.map(_succeed, commands.values()))
    return list(commands)


def _words(compiler: Compiler) -> list[str]:
    return [compiler.path, *compiler.command[1:]]


def _succeed(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"


def _run(tool: Tool, program: Path, argument: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TSAN_OPTIONS": "halt_on_error=1", **dict(tool.environment)}
    environment.pop("LD_PRELOAD", None)  # what `make test-sanitized` gives Python is not for these
    command = [*tool.prefix, str(program), argument]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
