"""Calls of a learner's C that fail, to see whether the failure is handed on.

The products of stage 3 return -1 where memory cannot be had, which no test can wait for. So network.c is compiled once
more and linked with stand-ins for all other functions. They compute nothing; of those that may fail, the one whose turn
it is returns -1.
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from groundup.course.checks.check import Tally
from groundup.course.grading.calling.c_trace import MISSING
from shared.contract import load_part

MAY_FAIL = ("dense_backward_f64", "matmul_tn_f64", "matmul_nt_f64")
"""The functions that an answer to 8.4 may call and that return a status."""

COUNTING = """
static int calls, failing;
void fail_at(int call) { calls = 0, failing = call; }
int calls_so_far(void) { return calls; }
static int status(void) { return ++calls == failing ? -1 : 0; }
static void nothing(void) {}
void (*activation_backward_by_number_f64(void))(void) { return nothing; }
"""

LAYERS = 3

MEAN_SQUARED_ERROR = 0
"""In `enum loss` of groundup.h."""

UNHEARD = (
    "dense_backward returns 0, or -1 where it found no memory, and then there are no gradients: look at what it "
    "returns, and return that"
)


def hands_on_failure() -> Callable[[Tally], None]:
    """The check that `backward` of network.c returns the failure of whichever call fails, and else 0.

    It is compiled when this is called, before memory is limited. Where it cannot be compiled, a note says so.
    """
    built = _Backward()

    def check(tally: Tally) -> None:
        tally.count += 1
        if built.why_not:
            tally.note(f"what backward makes of a call that fails was not looked at: {built.why_not}")
            return
        tally.trying("backward of three layers when a call fails")
        succeeded, calls = built.step(failing=0)
        tally.holds(succeeded == 0, "backward fails although every call has succeeded: return 0 at the end")
        for call in range(1, calls + 1):
            returned, _ = built.step(call)
            what = f"backward returns 0 although its call {call} of {calls} found no memory"
            tally.holds(returned != 0, what, cause=UNHEARD)

    return check


class _Backward:
    """The learner's network.c among stand-ins. why_not: why it cannot be had, else ""."""

    def __init__(self) -> None:
        self.why_not = "" if sys.platform == "linux" else f"not on {sys.platform}"
        if self.why_not:
            return
        known, build = load_part("stage3_c", "compiler"), load_part("stage3_c", "build")
        csrc, compiler = Path(os.environ.get(build.SOURCES_VARIABLE) or build.CSRC), build.build().compiler
        with tempfile.TemporaryDirectory(prefix="groundup-failing-") as name:
            folder = Path(name)
            source = [*known.compile_command(compiler), "-DGROUNDUP_BITS=64", "-c", str(csrc / "network.c")]
            link = [compiler.path, *compiler.command[1:], "-shared", "-fPIC", "-Wl,-Bsymbolic,-z,defs"]
            link += ["-o", "failing.so", "network.o", "others.c", *known.libraries()]
            written = known.run([*source, "-o", "network.o"], folder)
            (folder / "others.c").write_text(COUNTING, encoding="utf-8")
            missing = set(MISSING.findall(known.run(link, folder).stderr))
            others = "".join(
                f"int {each}(void) {{ return {'status()' if each in MAY_FAIL else '0'}; }}\n"
                for each in sorted(missing)
            )
            (folder / "others.c").write_text(COUNTING + others, encoding="utf-8")
            if written.returncode != 0 or known.run(link, folder).returncode != 0:
                self.why_not = f"{Path(compiler.path).name} cannot link it with stand-ins"
                return
            self._library = ctypes.CDLL(str(folder / "failing.so"))

    def step(self, failing: int) -> tuple[int, int]:
        """A step of layers without neurons. Returns (its status; how many calls there were that may fail)."""
        call = self._library
        call.layer_bytes_f64.restype, call.network_step_f64.restype = ctypes.c_size_t, ctypes.c_int64
        layers, loss = ctypes.create_string_buffer(LAYERS * call.layer_bytes_f64()), ctypes.c_double()
        size, batch, kind = ctypes.c_size_t(LAYERS), ctypes.c_size_t(1), ctypes.c_int(MEAN_SQUARED_ERROR)
        call.fail_at(failing)
        given = (None, size, layers, ctypes.c_int(1), kind, batch, None, None, None, None, ctypes.byref(loss))
        status: int = call.network_step_f64(*given)
        return status, call.calls_so_far()
