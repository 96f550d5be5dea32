"""Finds a C compiler, and the options with which it uses all instructions of this machine's processor.

A program called cc may be missing, be a stub, lack the headers of the C library, or not know -march=native. So each
candidate is asked its version and then given a small program to compile and link, with the very options that the
real sources will get.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from shared.contract import StageUnavailable
from shared.machine import caches, processes

WINDOWS = sys.platform == "win32"
SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror")
# For some processors, Zen 3 among them, gcc leaves the multiplication and the addition of a sum apart in a loop that
# has one sum only, and fuses them in a loop that has several. Then the edge of a tile is rounded differently from its
# middle, and a product depends on how many threads share it. Versions before 9 do not know the parameter.
FUSE_EVERY_SUM = "--param=avoid-fma-max-bits=0"
SANITIZERS = ("address", "undefined", "thread", "leak")

INSTALL = {
    "linux": "sudo apt install gcc libc6-dev (Debian, Ubuntu) or sudo dnf install gcc (Fedora)",
    "darwin": "xcode-select --install",
}

NOT_UNDONE = "fast mathematics, which the options cannot undo"
EXACT = ("-fno-fast-math", "-fno-unsafe-math-optimizations", "-fno-finite-math-only")
"""Undo -ffast-math and its kin in $CC, or in a compiler that has them by default. They lose NaN, reorder sums, and link
a start-up file that rounds subnormal numbers to 0 in the whole process, NumPy's too. -O3 undoes -Ofast."""

FAST = f"""\
#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__)
#error "{NOT_UNDONE}"
#elif defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "mathematics without NaN, which the options cannot undo"
#endif
"""

PROBE = """\
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
double groundup_probe(double x);
double groundup_probe(double x)
{
    atomic_size_t calls;
    atomic_init(&calls, (size_t)1);
    void *memory = malloc(64);
    free(memory);
    if (pthread_equal(pthread_self(), pthread_self()) == 0) {
        return 0;
    }
    return exp(x) * (double)atomic_load(&calls);
}
"""


@dataclass(frozen=True)
class Compiler:
    """A C compiler: the words that call it, where its program lies, and what it answers to --version.

    options: what makes it compile for this processor (see `probe`); None before it was probed
    """

    command: tuple[str, ...]
    path: str
    version_text: str
    options: tuple[str, ...] | None = None

    @property
    def version(self) -> str:
        """The first line of its answer to --version: 'gcc (Debian 12.2.0-14) 12.2.0'."""
        return self.version_text.partition("\n")[0]


class DoesNotWork(Exception):
    """This candidate cannot be used; the message says why."""


def find_compiler(is_known: Callable[[Compiler], bool] = lambda compiler: False) -> Compiler:
    """The first that works of $CC, or where that is not set of cc, gcc, clang and the one in the ziglang package.

    is_known: says of a compiler that it need not be probed, because what it made is in the cache; its `options` stay
        None
    Raises StageUnavailable where none works, with what to install; and where $CC is set and does not work: who set it
    meant that compiler and no other.
    """
    failures = {}
    for command in candidates():
        try:
            compiler = identify(command)
            return compiler if is_known(compiler) else probe(compiler)
        except DoesNotWork as reason:
            failures[" ".join(command)] = str(reason)
    raise unavailable(failures)


def candidates() -> list[list[str]]:
    """The commands to try, in order, each as a list of words."""
    chosen = os.environ.get("CC", "").strip()
    if chosen:
        return [_words(chosen)]
    commands = [["cc"], ["gcc"], ["clang"]]
    if importlib.util.find_spec("ziglang") is not None:
        commands.append(processes.python("-m", "ziglang", "cc"))
    return commands


def _words(command: str) -> list[str]:
    """$CC may carry options ("ccache gcc", "clang -m64"), and may be a path with blanks or backslashes in it."""
    if shutil.which(command):
        return [command]
    try:
        return [word.strip('"') for word in shlex.split(command, posix=not WINDOWS)]
    except ValueError:  # a quotation mark without its pair; as one word it will not be found, which is then told
        return [command]


def identify(command: Sequence[str]) -> Compiler:
    """Find the program on the PATH and ask its version. Raises DoesNotWork."""
    path = shutil.which(command[0])
    if path is None:
        raise DoesNotWork("not found")
    answer = run([path, *command[1:], "--version"])
    if answer.returncode != 0 or not answer.stdout.strip():
        raise DoesNotWork(f"--version fails: {first_error(answer.stderr) or f'exit code {answer.returncode}'}")
    return Compiler(tuple(command), path, answer.stdout.strip())


def probe(compiler: Compiler) -> Compiler:
    """The same compiler with the options for this processor that it understands. Raises DoesNotWork.

    x86 compilers call the option -march, Arm's -mcpu; the last resort is code for any processor of the kind.
    """
    reason = ""
    for options in processor_options(compiler):
        candidate = replace(compiler, options=options)
        with tempfile.TemporaryDirectory(prefix="groundup-") as folder:
            source, library = Path(folder, "probe.c"), Path(folder, f"probe{SUFFIX}")
            source.write_text(FAST + PROBE, encoding="utf-8")
            object_file = source.with_suffix(".o")
            done = run([*compile_command(candidate), "-c", str(source), "-o", str(object_file)])
            if done.returncode == 0:
                done = run([*link_command(candidate), str(object_file), "-o", str(library), *libraries()])
            if done.returncode == 0 and library.is_file():
                return candidate
            reason = first_error(done.stderr) or f"exit code {done.returncode} and no message"
    raise DoesNotWork(reason)


def has_fast_math(compiler: Compiler) -> bool:
    """Whether $CC or the compiler itself asks for the mathematics that EXACT undoes."""
    with tempfile.TemporaryDirectory(prefix="groundup-") as folder:
        source = Path(folder, "fast.c")
        source.write_text(FAST, encoding="utf-8")
        return "mathematics" in run([compiler.path, *compiler.command[1:], "-E", str(source)]).stderr


def processor_options(compiler: Compiler) -> list[tuple[str, ...]]:
    """What `probe` tries, in this order: options that make this compiler compile for this processor."""
    unaligned: tuple[str, ...] = ()
    fused: list[tuple[str, ...]] = [()]
    if "clang" not in compiler.version_text:
        fused = [(FUSE_EVERY_SUM,), ()]
        if WINDOWS:
            # Windows aligns the stack to 16 bytes, and gcc does not align AVX registers saved there any further (its
            # bug 54412): only with moves that accept any address does AVX code of gcc run safely.
            unaligned = ("-Wa,-muse-unaligned-vector-move",)
    processors = ["-march=native"] if unaligned else ["-march=native", "-mcpu=native"]
    return [*((processor, *unaligned, *each) for processor in processors for each in fused), ()]


def flags(compiler: Compiler) -> tuple[str, ...]:
    """All options that the sources are compiled with. Raises ValueError for a bad GROUNDUP_SANITIZE."""
    sanitizers = _sanitizers()
    if sanitizers:  # -Og: with more, gcc takes half a minute for the unrolled tiles of the product
        speed: tuple[str, ...] = ("-Og", "-g", "-fno-omit-frame-pointer", *_sanitize(sanitizers))
    else:
        speed = ("-O3",)
    # Contraction is fused multiply-add, one rounding in place of two, which -std=c11 alone would forbid; nothing here
    # reads errno after exp. Neither reorders a sum, which -ffast-math would.
    numbers = ("-ffp-contract=fast", "-fno-math-errno")
    linking = () if WINDOWS else ("-fPIC", "-fvisibility=hidden")
    return ("-std=c11", *speed, *(compiler.options or ()), *EXACT, *numbers, *linking, *WARNINGS, "-pthread")


def compile_command(compiler: Compiler) -> list[str]:
    """The words before "-c SOURCE -o OBJECT"."""
    return [compiler.path, *compiler.command[1:], *flags(compiler)]


def link_command(compiler: Compiler) -> list[str]:
    """The words before "OBJECT… -o LIBRARY", after which `libraries` follow."""
    sanitizers = _sanitizers()
    options = ["-O3", *EXACT, *(compiler.options or ()), "-shared", "-pthread", *_sanitize(sanitizers)]
    if sys.platform == "linux" and not sanitizers:
        options.append("-Wl,-z,defs")  # a function that is called and nowhere written is an error now, not when loaded
    if WINDOWS and "clang" not in compiler.version_text:
        options.append("-static")  # gcc's own libraries go in: they lie in a folder that Python does not search
    return [compiler.path, *compiler.command[1:], *options]


def libraries() -> list[str]:
    """What is linked beside the objects: the mathematics, which on Windows needs no naming."""
    return [] if WINDOWS else ["-lm"]


def _sanitizers() -> str:
    chosen = os.environ.get("GROUNDUP_SANITIZE", "").replace(" ", "")
    unknown = [name for name in chosen.split(",") if chosen and name not in SANITIZERS]
    if unknown:
        raise ValueError(
            f"GROUNDUP_SANITIZE: expected {', '.join(SANITIZERS)} with commas between, got {unknown[0]!r} in {chosen!r}"
        )
    return chosen


def _sanitize(sanitizers: str) -> tuple[str, ...]:
    return (f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all") if sanitizers else ()


def run(
    command: Sequence[str], folder: Path | None = None, stop: threading.Event | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a compiler in a folder. A program that cannot be started at all is one that fails with that message.

    It ends with this process, however that ends, and when `stop` is set.
    """
    environment = {**os.environ, "LC_ALL": "C"}  # messages in English, whose form `first_error` knows
    if os.environ.get(caches.CACHE_VARIABLE) and "ziglang" in command:
        environment.setdefault("ZIG_GLOBAL_CACHE_DIR", str(caches.private(caches.compiled() / "zig")))
    done = processes.run(command, None, folder=folder, variables=environment, stop=stop)
    if done.code is None:
        return subprocess.CompletedProcess(list(command), 127, "", done.failure)
    return subprocess.CompletedProcess(list(command), done.code, done.output, done.errors)


def first_error(output: str) -> str:
    """The first line of a compiler's messages that tells of an error; the very first where none says so."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"\berror\b|undefined", line)]
    return (telling or lines or [""])[0]


def unavailable(failures: dict[str, str]) -> StageUnavailable:
    """The error that says why each compiler, by its command, cannot be used, and what to do."""
    chosen = os.environ.get("CC", "").strip()
    if chosen:
        (reason,) = failures.values()
        unset = "set CC=" if WINDOWS else "unset CC"
        return StageUnavailable(
            f"stage 3 cannot be compiled: CC is set to {chosen!r}, which does not work ({reason}). Set CC to a C "
            f"compiler that takes gcc's options, or let one be found: {unset}",
            fix=unset,
        )
    package = f'"{sys.executable}" -m pip install ziglang'
    system = INSTALL.get(sys.platform)
    advice = f"{system}; or, on any machine, {package}" if system else package
    tried = "; ".join(f"{command}: {reason}" for command, reason in failures.items())
    return StageUnavailable(
        f"stage 3 needs a C compiler, and none works here ({tried}). Install one: {advice} "
        "(the extra compiler of this project brings the same)",
        fix=package,
    )
