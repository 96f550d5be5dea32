"""In which order a learner's C reads and writes its arrays.

A result does not tell whether a product goes block by block, or a step makes one pass over memory or three. So the
source is compiled once more, with the compiler's -fsanitize=thread: it then calls a function before every load and
store, such as __tsan_read8(address). The library that belongs to the option looks for races; here RUNTIME takes its
place and writes down every access to the arrays of the call. It counts the exponentials, too.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from groundup.course.checks.check import Tally
from shared.contract import load_part

MISSING = re.compile(r"undefined (?:reference to|symbol:) [`']?(\w+)")
"""A function that a linker, GNU's or LLVM's, does not find."""

MOST_ACCESSES = 20_000_000
"""Of a call; eight bytes each. What comes after them is not noted."""

RUNTIME = r"""
#include <stddef.h>
#include <stdint.h>

static const char *begins[8];
static size_t lengths[8], arrays, used, most;
static uint64_t *noted;

void trace_begin(size_t count, const void **at, const size_t *bytes, uint64_t *into, size_t room) {
    for (arrays = 0; arrays < count; arrays++) begins[arrays] = at[arrays], lengths[arrays] = bytes[arrays];
    noted = into, used = 0, most = room;
}

size_t trace_end(void) {
    arrays = 0;
    return used;
}

static void note(const void *address, uint64_t written) {
    for (size_t i = 0; i < arrays; i++) {
        const size_t offset = (size_t)((const char *)address - begins[i]);
        if (offset < lengths[i] && used < most) noted[used++] = (uint64_t)i << 56 | written << 48 | offset;
    }
}

void __tsan_init(void) {}
void __tsan_func_entry(void *caller) { (void)caller; }
void __tsan_func_exit(void) {}
#define ACCESS(kind, size, written) void __tsan_##kind##size(void *at) { note(at, written); }
#define SIZES(kind, written) \
    ACCESS(kind, 1, written) ACCESS(kind, 2, written) ACCESS(kind, 4, written) ACCESS(kind, 8, written) \
    ACCESS(kind, 16, written)
SIZES(read, 0)
SIZES(write, 1)
SIZES(unaligned_read, 0)
SIZES(unaligned_write, 1)
SIZES(read_write, 1)

static size_t exponentials;
double __real_exp(double x);
double __wrap_exp(double x) {
    exponentials++;
    return __real_exp(x);
}
size_t exponentials_so_far(void) { return exponentials; }
"""


@dataclass(frozen=True)
class Accesses:
    """The accesses of a call, in order. array: which array; written: whether it is a store; element: its index.

    exponentials: how often the call computed exp
    """

    array: np.ndarray
    written: np.ndarray
    element: np.ndarray
    exponentials: int = 0

    def of(self, array: int, written: bool) -> np.ndarray:
        """The elements of one array that are read, or written, in order."""
        found: np.ndarray = self.element[(self.array == array) & (self.written == written)]
        return found


class Traced:
    """A C function of the learner's in float64 that notes its accesses. why_not: why it cannot be had, else ""."""

    def __init__(self, name: str, sources: Sequence[str]) -> None:
        """sources: the files with the function and with those that it may call, such as matmul_loops.c."""
        self.name, self.why_not = name, ""
        self._library: Any = None
        if sys.platform != "linux":
            self.why_not = f"not on {sys.platform}"
            return
        build = load_part("stage3_c", "build")
        with tempfile.TemporaryDirectory(prefix="groundup-trace-") as folder:
            whole = build.build()
            self.why_not = _compiled(Path(folder), whole.compiler, sources)
            if not self.why_not:
                self._library = ctypes.CDLL(str(Path(folder) / "traced.so"))

    def accesses(self, *arguments: Any) -> Accesses:
        """Call the function, with arrays of eight-byte numbers, sizes, None and floats. Returns its accesses."""
        arrays = [each for each in arguments if isinstance(each, np.ndarray)]
        at = (ctypes.c_void_p * len(arrays))(*(each.ctypes.data for each in arrays))
        sizes = (ctypes.c_size_t * len(arrays))(*(each.nbytes for each in arrays))
        noted = np.empty(MOST_ACCESSES, np.uint64)
        function = getattr(self._library, f"{self.name}_f64")
        function.restype = None
        self._library.trace_end.restype = self._library.exponentials_so_far.restype = ctypes.c_size_t
        before = self._library.exponentials_so_far()
        self._library.trace_begin(
            ctypes.c_size_t(len(arrays)), at, sizes, ctypes.c_void_p(noted.ctypes.data), ctypes.c_size_t(len(noted))
        )
        function(*map(_as_c, arguments))
        noted = noted[: self._library.trace_end()]
        low = np.uint64((1 << 48) - 1)
        written = (noted >> np.uint64(48)) & np.uint64(1) == 1
        exponentials = self._library.exponentials_so_far() - before
        return Accesses(noted >> np.uint64(56), written, (noted & low) // 8, exponentials)


def _as_c(value: Any) -> Any:
    if value is None or isinstance(value, np.ndarray):
        return ctypes.c_void_p(None if value is None else value.ctypes.data)
    if isinstance(value, bool):
        return ctypes.c_int(value)
    return ctypes.c_double(value) if isinstance(value, float) else ctypes.c_size_t(value)


def _compiled(folder: Path, compiler: Any, sources: Sequence[str]) -> str:
    """Compile the sources into traced.so of the folder. Returns the reason if that cannot be done."""
    known, build = load_part("stage3_c", "compiler"), load_part("stage3_c", "build")
    csrc = Path(os.environ.get(build.SOURCES_VARIABLE) or build.CSRC)
    (folder / "runtime.c").write_text(RUNTIME, encoding="utf-8")
    plain = [compiler.path, *compiler.command[1:]]
    options = [*known.compile_command(compiler), "-DGROUNDUP_BITS=64", "-fsanitize=thread", "-O1", "-c"]
    commands = [[*options, str(csrc / source), "-o", f"{source}.o"] for source in sources]
    commands.append([*plain, "-O1", "-fPIC", "-c", "runtime.c", "-o", "runtime.o"])
    objects = [*(f"{source}.o" for source in sources), "runtime.o"]
    link = [*plain, "-shared", "-Wl,-Bsymbolic,-z,defs,--wrap=exp", "-o", "traced.so", *objects]
    for command in commands:
        if known.run(command, folder).returncode != 0:
            return f"{Path(compiler.path).name} cannot compile it with -fsanitize=thread"
    done = known.run([*link, *known.libraries()], folder)
    missing = set(MISSING.findall(done.stderr))
    if missing:  # functions of other files, which the traced function does not call
        stubs = "".join(f"void {name}(void) {{}}\n" for name in sorted(missing))
        (folder / "stubs.c").write_text(stubs, encoding="utf-8")
        done = known.run([*link, "-fPIC", "stubs.c", *known.libraries()], folder)
    return "" if done.returncode == 0 else f"{Path(compiler.path).name} cannot link what notes its accesses"


def order_of_accesses(
    name: str,
    sources: Sequence[str],
    arguments: Callable[[], tuple[Any, ...]],
    judge: Callable[[Tally, Accesses], None],
) -> Callable[[Tally], None]:
    """The check of the order in which a C function reads and writes.

    The function is compiled when this is called, before memory is limited. arguments: makes those of the traced call
    judge: compares. Where the compiler cannot trace, the check says so in a note and passes.
    """
    traced = Traced(name, sources)

    def check(tally: Tally) -> None:
        if traced.why_not:
            tally.count += 1
            tally.note(f"the order of {name}'s reads and writes was not looked at: {traced.why_not}")
            return
        tally.trying(f"the order of {name}'s reads and writes")
        judge(tally, traced.accesses(*arguments()))

    return check


def longest_until_read_again(elements: np.ndarray) -> int:
    """The largest number of reads of an array between two reads of one element; 0 if each is read once."""
    order = np.argsort(elements, kind="stable")
    same = elements[order][1:] == elements[order][:-1]
    return int(np.max(np.diff(order)[same], initial=0))


def passes(elements: np.ndarray, near: int = 64) -> int:
    """How often a walk over an array begins: once, and again wherever it goes back by more than `near` elements."""
    return 1 + int(np.sum(np.diff(elements.astype(np.int64)) < -near)) if len(elements) else 0


def share_of_neighbours(elements: np.ndarray) -> float:
    """The share of reads that go to the element beside the one before, or to the same."""
    steps = np.diff(elements.astype(np.int64))
    return float(np.mean(np.abs(steps) <= 1)) if len(steps) else 1.0
