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

MAY_FAIL = ("dense_forward_f64", "dense_backward_f64", "optimize_f64")
"""The functions that a step of dense layers calls and that return a status."""

COUNTING = """
static int calls, failing;
void fail_at(int call) { calls = 0, failing = call; }
int calls_so_far(void) { return calls; }
static int status(void) { return ++calls == failing ? -1 : 0; }
"""

LAYERS = 3

MEAN_SQUARED_ERROR, SOFTMAX_CROSS_ENTROPY = 0, 1
"""In `enum loss` of groundup.h."""

BAD_LABEL = "1 + the row of the first label that is no class is returned, before anything is computed: the stub has it"

UNHEARD = (
    "forward, backward and optimize return 0, or another number where they found no memory, and then the step is not "
    "done: look at what each returns, and return -1"
)


def hands_on_failure() -> Callable[[Tally], None]:
    """The check that `network_step` of network.c returns the failure of whichever call fails, and else 0.

    It is compiled when this is called, before memory is limited. Where it cannot be compiled, a note says so.
    """
    built = _Step()

    def check(tally: Tally) -> None:
        tally.count += 1
        if built.why_not:
            tally.note(f"what network_step makes of a call that fails was not looked at: {built.why_not}")
            return
        tally.trying("network_step of three layers when a call fails")
        succeeded, calls = built.step(failing=0)
        tally.holds(succeeded == 0, "network_step fails although every call has succeeded: return 0 at the end")
        for call in range(1, calls + 1):
            returned, _ = built.step(call)
            sentence = f"network_step returns {returned} although its call {call} of {calls} found no memory"
            tally.holds(returned == -1, sentence, expected="-1", cause=UNHEARD)
        returned, _ = built.step(0, SOFTMAX_CROSS_ENTROPY)  # the stand-in of first_bad_label says row 0
        sentence = f"network_step returns {returned} although the label of row 0 is no class"
        tally.holds(returned == 1, sentence, expected="1", cause=BAD_LABEL)

    return check


class _Step:
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
                f"int {name}(void) {{ return {'status()' if name in MAY_FAIL else '0'}; }}\n"
                for name in sorted(missing)
            )
            (folder / "others.c").write_text(COUNTING + others, encoding="utf-8")
            if written.returncode != 0 or known.run(link, folder).returncode != 0:
                self.why_not = f"{Path(compiler.path).name} cannot link it with stand-ins"
                return
            self._library = ctypes.CDLL(str(folder / "failing.so"))

    def step(self, failing: int, loss_kind: int = MEAN_SQUARED_ERROR) -> tuple[int, int]:
        """A step of layers without neurons. Returns (its status; how many calls there were that may fail)."""
        call, known = self._library, load_part("stage3_c", "operations")
        call.network_step_f64.restype = ctypes.c_int64
        somewhere, loss = ctypes.create_string_buffer(1000), ctypes.c_double()
        address = ctypes.addressof(somewhere)
        connect = known.COperation(kind=known.KINDS.index("connect"), grad_output=address, grad_w=address)
        operations = (known.COperation * LAYERS)(connect, connect, connect)
        size, batch, kind = ctypes.c_size_t(LAYERS), ctypes.c_size_t(1), ctypes.c_int(loss_kind)
        call.fail_at(failing)
        given = (None, size, operations, kind, batch, None, None, None, 1, somewhere, ctypes.byref(loss))
        status: int = call.network_step_f64(*given)
        return status, call.calls_so_far()
