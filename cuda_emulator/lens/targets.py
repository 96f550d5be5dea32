"""Find the launch for a target on the command line.

kernels.py:scale                           a kernel of a script: its first launch, or its N-th
kernels.py:scale with args                 the same kernel with arguments made from text (arguments_from_text.py)
tiled_16, softmax_warp                     a kernel that another package knows by this name (hooks.py)
"""

from __future__ import annotations

import contextlib
import difflib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..hooks import extensions
from ..launches import Launch, catch
from ..runtime.dispatcher import Kernel
from ..scripts import require_script, run_script
from .arguments_from_text import arguments_from


@dataclass(frozen=True)
class Wanted:
    """The options for the launch of a target.

    size, dtype: for a kernel that goes by a name; number: the number of the launch of a script's kernel
    script_arguments: the script's own arguments
    args: arguments as text, with grid and block; None to take a launch of the script
    """

    size: tuple[int, int, int] = (256, 256, 256)
    dtype: str = "float32"
    number: int = 1
    args: str | None = None
    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()
    sharedmem: int = 0
    script_arguments: tuple[str, ...] = ()


def launch_of(target: str, wanted: Wanted) -> Launch:
    """The launch of a target.

    Raises ValueError for an unknown name, a script that does not launch the kernel, or arguments that do not fit;
    FileNotFoundError for a missing script; ScriptFailed if the script raises an exception; KernelError for a wrong
    kernel in it.
    """
    script, colon, name = target.rpartition(":")
    if colon and script.endswith(".py"):
        return _of_script(Path(script), name, wanted)
    if target.endswith(".py"):
        raise ValueError(f"{target}: name the kernel, too: {target}:KERNEL")
    if wanted.args is not None:
        raise ValueError(f"args belongs to a kernel of a script, SCRIPT.py:KERNEL; {target} makes its own")
    named = extensions().named_kernel
    if named is None:
        raise ValueError(f"{target}: expected a script and the name of its kernel, like kernels.py:scale")
    launch: Launch = named(target, wanted.size, wanted.dtype)
    return launch


def _of_script(script: Path, name: str, wanted: Wanted) -> Launch:
    require_script(script)
    if not name.isidentifier():
        raise ValueError(f"{script}:{name}: expected the name of a kernel after the colon")
    if wanted.args is None:
        return _launched(script, name, wanted)
    if not wanted.grid or not wanted.block:
        raise ValueError("args: needs grid and block, too: how many blocks, and how many threads in each")
    kernel = _defined(script, name, wanted)
    configured = kernel[wanted.grid, wanted.block, 0, wanted.sharedmem]
    arguments = arguments_from(wanted.args, kernel.parameters, name)
    return Launch(name, kernel, configured.griddim, configured.blockdim, arguments, wanted.sharedmem)


def _launched(script: Path, name: str, wanted: Wanted) -> Launch:
    """A launch of the script, which is run as a program."""
    found: dict[str, Any] = {}

    def program() -> None:
        found.update(_run(script, "__main__", wanted))

    launch, seen = catch(program, lambda kernel: kernel.py_func.__name__ == name, wanted.number)
    if launch is not None:
        return launch
    if name in seen:
        times = {1: "once", 2: "twice"}.get(seen[name], f"{seen[name]} times")
        raise ValueError(f"{script} launches {name} {times}; there is no launch {wanted.number}")
    launched = f"it launches {', '.join(seen)}" if seen else "it launches no kernel"
    defined = [key for key, value in found.items() if isinstance(value, Kernel)]
    if name in defined:
        raise ValueError(f"{script} defines {name} and never launches it; give its arguments (--args, --grid, --block)")
    raise ValueError(f"{script} never launches a kernel {name}; {launched}{_near(name, [*seen, *defined])}")


def _defined(script: Path, name: str, wanted: Wanted) -> Any:
    """The kernel of a script that is run as a module, in which `if __name__ == "__main__"` is false."""
    found: dict[str, Any] = {}
    launch, seen = catch(
        lambda: found.update(_run(script, script.stem, wanted)), lambda kernel: kernel.py_func.__name__ == name
    )
    kernel = launch.kernel if launch is not None else found.get(name)
    if isinstance(kernel, Kernel):
        return kernel
    defined = [key for key, value in found.items() if isinstance(value, Kernel)]
    known = f"it defines {', '.join(defined)}" if defined else "it defines none at its top level"
    raise ValueError(f"{script} has no kernel {name}; {known}{_near(name, [*seen, *defined])}")


def _near(name: str, known: list[str]) -> str:
    near = [each for each in difflib.get_close_matches(name, known, 1, 0.6) if each != name]
    return f"; did you mean {near[0]}?" if near else ""


def _run(script: Path, run_name: str, wanted: Wanted) -> dict[str, Any]:
    """The script's global names after it has run on the emulator. Its output goes to stderr."""
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return run_script(script, wanted.script_arguments, run_name)
    except SystemExit:  # the script has ended normally
        return {}
