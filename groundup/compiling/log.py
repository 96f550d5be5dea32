"""What the compiler says of a kernel: the lines of ptxas in nvJitLink's log, as numbers.

    ptxas         .     16 bytes stack frame, 20 bytes spill stores, 24 bytes spill loads
    ptxas info    : Used 128 registers, used 1 barriers, 16 bytes cumulative stack size, 32768 bytes smem

A stack frame is memory for what registers cannot hold: an array indexed by a number that is known only at run time, or
a call that was not inlined. A spill is a register that had to be emptied into it. Both lie in the "local" memory, which
is the device's ordinary memory: hundreds of cycles away instead of one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

ENTRY = re.compile(r"Compiling entry function '([^']+)'")
FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
REGISTERS = re.compile(r"Used (\d+) registers")
STACK = re.compile(r"(\d+) bytes cumulative stack size")
SHARED = re.compile(r"(\d+) bytes smem")
FLOAT64 = re.compile(r"\.f64\b")


@dataclass(frozen=True)
class Usage:
    """registers: of a thread; stack, spills: bytes of a thread (spills: stored and loaded); shared: bytes of a block,
    without those that are asked for at the launch."""

    registers: int
    stack: int
    spills: int
    shared: int


def read_log(log: str) -> Usage:
    """The numbers of the one kernel that the log tells of. What it calls without inlining counts, too.

    Raises ValueError where the log tells of no kernel, or of several.
    """
    entries = ENTRY.findall(log)
    if len(entries) != 1:
        raise ValueError(f"the compiler's log tells of {len(entries)} kernels, expected one:\n{log}")
    registers = [int(count) for count in REGISTERS.findall(log)]
    if not registers:
        raise ValueError(f"the compiler's log names no registers:\n{log}")
    frames = [tuple(map(int, found)) for found in FRAME.findall(log)]
    stacks = [int(size) for size in STACK.findall(log)]
    return Usage(
        registers=max(registers),
        stack=max([frame for frame, _, _ in frames] + stacks, default=0),
        spills=sum(stores + loads for _, stores, loads in frames),
        shared=max((int(size) for size in SHARED.findall(log)), default=0),
    )


def float64_lines(ptx: str) -> list[str]:
    """The instructions in PTX that compute with float64, convert from it or to it. In a kernel of float32 there must
    be none: most GPUs do 32 or 64 times fewer of them a second."""
    return [line.strip() for line in ptx.splitlines() if FLOAT64.search(line.partition("//")[0])]
