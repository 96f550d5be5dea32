"""What the lens and other packages add to the emulator.

The emulator records what a kernel does (runtime/tracing.py), and leaves it to the lens to explain the record:

    a profiler   profiler(kernel, griddim, blockdim, *arguments, sharedmem=0, **options): `kernel.profile(...)` calls it
    progress     progress(what, done, total): is told what takes long, a compilation or a check; total 0: not known,
                 what "": it is over
    a detector   detector(kernel, griddim, blockdim, arguments, sharedmem, number): a Detection; check mode calls it
                 before the launch, the `number`-th of a kernel of this name

A package offers them in two ways. One that offers both registers the detector when its profiler is imported:

    register_profiler(function), register_detector(function)    when it is imported
    [project.entry-points."cuda_emulator.profilers"]            in its pyproject.toml: found without an import
    NAME = "package.module:function"

What the lens cannot know, another package may give it, by a function without arguments that is an entry point of
"cuda_emulator.hooks" and calls register(...):

    registers       registers(kernel, types, capability): Registers, of a compiler for GPUs; raises RegistersUnknown
    named_kernel    named_kernel(name, size, dtype): the Launch of a kernel that goes by a name of that package
    import_advice   import_advice(folder, error): a sentence about a script's ImportError; "" if there is none
    command         the name of the command that hints to the lens should use
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

ENTRY_POINTS = "cuda_emulator.profilers"
EXTENSIONS = "cuda_emulator.hooks"


@dataclass(frozen=True)
class Found:
    """A mistake that a detector found.

    sentence: what happens there, and how to mend it; file, line: of the access
    array: the learner's name of the array; space: its memory, "shared" or "global"
    """

    sentence: str
    file: str
    line: int
    array: str = ""
    space: str = "shared"


@dataclass(frozen=True)
class Detection:
    """What a detector found in a launch, and how much of the launch it looked at.

    races, unwritten: pairs of accesses without an order; reads of shared memory that the block has not written, and of
        global memory that nobody has
    blocks, grid_blocks: the number of blocks that it looked at, and of all blocks
    cut: whether the last of them was looked at in part only
    unjudged: sentences about accesses that it cannot judge
    remarks: sentences about what is no mistake, and worth knowing
    more: the command that shows more about the launch; "" if there is none
    """

    races: tuple[Found, ...] = ()
    unwritten: tuple[Found, ...] = ()
    blocks: int = 0
    grid_blocks: int = 0
    cut: bool = False
    unjudged: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    more: str = ""

    @property
    def complete(self) -> bool:
        """Whether it looked at every access of every block."""
        return self.blocks == self.grid_blocks and not self.cut and not self.unjudged


@dataclass(frozen=True)
class Registers:
    """What a compiler for GPUs says of a kernel. registers: of a thread; spills, stack: bytes of a thread"""

    registers: int
    spills: int = 0
    stack: int = 0


class RegistersUnknown(Exception):
    """The number of registers is unknown; the message has the reason, and what to install if that helps."""


@dataclass
class Extensions:
    """What other packages have registered; the fields are described at the top of this file."""

    registers: Callable[[Any, tuple[Any, ...], tuple[int, int]], Any] | None = None
    named_kernel: Callable[[str, tuple[int, int, int], str], Any] | None = None
    import_advice: Callable[[Path, ImportError], str] | None = None
    command: str = "cuda-emulator"


Profiler = Callable[..., Any]
Detector = Callable[[Any, tuple[int, int, int], tuple[int, int, int], Sequence[Any], int, int], Detection]

Progress = Callable[[str, int, int], None]

_extensions: Extensions | None = None
_progress: Progress | None = None
_profiler: Profiler | None = None
_detector: Detector | None = None


def register_profiler(profiler: Profiler | None) -> None:
    """Use this profiler from now on; None forgets the one in use, and the next call searches again."""
    global _profiler
    _profiler = profiler


def register_detector(detector: Detector | None) -> None:
    """Use this detector from now on; None forgets the one in use."""
    global _detector
    _detector = detector


def register_progress(function: Progress | None) -> Progress | None:
    """Tell this function what takes long, from now on; None tells nobody. Returns the one before."""
    global _progress
    before, _progress = _progress, function
    return before


def progress(activity: str, done: int = 0, total: int = 0) -> None:
    """Tell the registered function, if there is one."""
    if _progress is not None:
        _progress(activity, done, total)


def find_profiler() -> Profiler | None:
    """The registered profiler, else the first that an installed package offers, else None."""
    if _profiler is None:
        for entry_point in entry_points(group=ENTRY_POINTS):
            register_profiler(entry_point.load())
            break
    return _profiler


def find_detector() -> Detector | None:
    """The registered detector, which may be registered by the package that offers a profiler, else None."""
    if _detector is None:
        find_profiler()
    return _detector


def register(**fields: Any) -> None:
    """Set some fields of Extensions."""
    for name, value in fields.items():
        setattr(extensions(), name, value)


def extensions() -> Extensions:
    """What other packages have registered. At the first call the installed ones are asked."""
    global _extensions
    if _extensions is None:
        _extensions = Extensions()
        for entry_point in entry_points(group=EXTENSIONS):
            entry_point.load()()
    return _extensions
