"""What a kernel's machine code (SASS) does: its hot loop, and what share of it is multiplying and adding.

SASS is what nvdisasm prints of a compiled kernel, one instruction a line; the names in front are branch targets:

    .L_x_2:
            /*0610*/                   LDS.128 R4, [R44] ;
            /*0620*/                   FFMA R8, R0, R4, R8 ;
            /*0630*/              @P0 BRA `(.L_x_2) ;

A loop is what lies between a branch and the place before it where it jumps back to. The hot loop is the innermost one
with the most multiplications: FFMA for float32, DFMA for float64, HMMA on the tensor cores. Their share of the loop's
instructions is an upper bound on what the kernel can reach: a multiprocessor issues so many instructions a cycle,
whatever they do. One load of 128 bits (LDS.128 from shared memory) brings four numbers for one issue.
"""

from __future__ import annotations

import re
import shutil
import sysconfig
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from shared.machine import processes

DISASSEMBLY_SECONDS = 120.0
"""The longest that nvdisasm may take; the largest kernel takes it less than a second."""

INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)([^;]*)")
LABEL = re.compile(r"^\s*(\.L\w+):")
TARGET = re.compile(r"\((\.L\w+)\)")
MULTIPLY_ADDS = ("FFMA", "FFMA2", "DFMA", "HMMA")
"""FFMA2, of compute capability 10.0 and later, does two at once."""


@dataclass(frozen=True)
class HotLoop:
    """instructions: how many it has; multiply_adds: how many of these are FFMA (or DFMA, or HMMA); wide_loads: how many
    load 128 bits from shared memory for one thread, LDSM (a tensor core's operands) included."""

    instructions: int
    multiply_adds: int
    wide_loads: int

    @property
    def share(self) -> float:
        """Of the instructions, those that multiply and add, 0 to 1."""
        return self.multiply_adds / self.instructions


def hot_loop(sass: str) -> HotLoop | None:
    """The innermost loop with the most multiplications; of two with as many, the shorter. None where none has any."""
    instructions, loops = _loops(sass)
    inner = [(a, b) for a, b in loops if not any(a <= c and d <= b and (a, b) != (c, d) for c, d in loops)]
    found = [_describe(instructions[first : last + 1]) for first, last in inner]
    found = [loop for loop in found if loop.multiply_adds]
    return max(found, key=lambda loop: (loop.multiply_adds, -loop.instructions), default=None)


def _loops(sass: str) -> tuple[list[str], set[tuple[int, int]]]:
    """All instructions by name, and the loops among them: (first, last), both included."""
    labels: dict[str, int] = {}
    instructions: list[str] = []
    branches: list[tuple[int, str]] = []
    for line in sass.splitlines():
        if label := LABEL.match(line):
            labels[label.group(1)] = len(instructions)
        elif found := INSTRUCTION.match(line):
            name, operands = found.groups()
            if name.startswith("BRA") and (target := TARGET.search(operands)):
                branches.append((len(instructions), target.group(1)))
            instructions.append(name)
    # A branch to itself is the padding behind the end.
    loops = {(labels[target], at) for at, target in branches if labels.get(target, at) < at}
    return instructions, loops


def _describe(instructions: list[str]) -> HotLoop:
    counts = Counter(name.partition(".")[0] for name in instructions)
    wide = sum((name.startswith("LDS.") and ".128" in name) or name.startswith("LDSM") for name in instructions)
    return HotLoop(len(instructions), sum(counts[name] for name in MULTIPLY_ADDS), wide)


def find_nvdisasm() -> Path | None:
    """The disassembler: of the wheel nvidia-cuda-nvdisasm, else on the path."""
    packages = Path(sysconfig.get_paths()["purelib"]) / "nvidia"
    for pattern in ("cu*/bin/nvdisasm*", "cuda_nvdisasm/bin/nvdisasm*"):
        for tool in sorted(packages.glob(pattern), reverse=True):
            return tool
    found = shutil.which("nvdisasm")
    return Path(found) if found else None


def disassemble(nvdisasm: Path, cubin: Path) -> str:
    """The code of a compiled kernel as text. Raises ValueError with nvdisasm's own words where it cannot read it."""
    done = processes.run([str(nvdisasm), "-c", str(cubin)], DISASSEMBLY_SECONDS)
    if done.code != 0:
        raise ValueError(f"nvdisasm cannot read {cubin.name}: {done.errors.strip() or done.failure}")
    return done.output
