"""The command `cuda-emulator`: run, check and lens; enable and disable the emulator for an environment's processes.

Exit codes: 0 success; 1 the program raised, or the lens found a mistake; 2 the command could not be carried out, or a
kernel is wrong.
"""

from __future__ import annotations

import argparse
import sys
import sysconfig
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from . import __version__

PTH = "cuda_emulator_startup.pth"

LENS_NEEDS = "rich"


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command and leave through SystemExit. argv: the words after the program's name; sys.argv's where None"""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] in (["run"], ["check"]):
        from .scripts import separated

        words = [words[0], *separated(words[1:])]
    own: list[str] = []
    if words[:1] == ["lens"] and "--" in words:
        at = words.index("--")
        words, own = words[:at], words[at + 1 :]
    given = _parser().parse_args(words)
    try:
        sys.exit(given.do(given, own))
    except KeyboardInterrupt:
        _fail("interrupted", ())
    except (ValueError, OSError) as error:
        _fail(str(error), getattr(error, "__notes__", ()))


def _fail(message: str, notes: Sequence[str]) -> None:
    print("\n".join([f"error: {message}", *notes]), file=sys.stderr)
    sys.exit(2)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="cuda-emulator", description="CUDA kernels in Python, on the CPU.")
    parser.add_argument("--version", action="version", version=f"cuda-emulator {__version__}")
    commands = parser.add_subparsers(required=True, metavar="run | check | lens | enable | disable")
    for name, described in (("run", "Run a program on the emulator."), ("check", "The same as run --check.")):
        run = commands.add_parser(name, help=described, description=described)
        run.set_defaults(do=_run, check=name == "check")
        if name == "run":
            run.add_argument("--check", action="store_true", help="find races and reads of unwritten memory")
            run.add_argument("--step", action="store_true", help="run kernels line by line in Python")
        run.add_argument("--source", action="store_true", help="print what each kernel is compiled from")
        run.add_argument("--unchecked", action="store_true", help="no bounds checks")
        run.add_argument("--wrap", action="store_true", help="negative indices are meant to count from the end")
        run.add_argument("--threads", type=int, help="how many cores a kernel may use; 1 runs its blocks in order")
        run.add_argument(
            "program", nargs="+", metavar="SCRIPT.py | -m MODULE | -c CODE | -", help="and its own arguments"
        )
    described = "Show what a kernel does to memory. The script's own arguments stand after `--`."
    lens = commands.add_parser("lens", help="Show what a kernel does to memory.", description=described)
    lens.set_defaults(do=_lens)
    lens.add_argument("target", metavar="SCRIPT.py:KERNEL")
    lens.add_argument("second", nargs="?", metavar="SCRIPT.py:KERNEL", help="a second kernel, to compare")
    lens.add_argument("--launch", type=int, default=1, metavar="N", help="the kernel's N-th launch in the script")
    lens.add_argument("--args", metavar="TEXT", help='"a=float32[64,64] n=64": make arguments, launch nothing')
    lens.add_argument("--grid", default="", help="with --args: blocks, like 4 or 4,4")
    lens.add_argument("--block", default="", help="with --args: threads of a block")
    lens.add_argument("--sharedmem", type=int, default=0, help="with --args: bytes of dynamic shared memory")
    lens.add_argument("--blocks", default="", help="how many blocks to trace (8), or which (0,5)")
    lens.add_argument("--device", default="H100", help="for occupancy and roofline")
    lens.add_argument("--html", type=Path, help="also write a page with pictures to this file")
    lens.add_argument("--json", action="store_true", help="print the numbers as JSON instead")
    lens.add_argument("--source", action="store_true", help="print the generated Python instead")
    described = "Let every process of this environment that has CUDA_EMULATOR=1, check or warn use the emulator."
    commands.add_parser("enable", help=described, description=described).set_defaults(do=_enable)
    described = "Undo `enable`."
    commands.add_parser("disable", help=described, description=described).set_defaults(do=_disable)
    return parser


def _run(given: argparse.Namespace, own: Sequence[str]) -> int:
    from .scripts import program_from, run
    from .settings import settings_for

    step = getattr(given, "step", False)
    settings = settings_for(given.check, step, given.source, given.unchecked, given.wrap, given.threads)
    return run(program_from(given.program), settings)


def _lens(given: argparse.Namespace, own: Sequence[str]) -> int:
    if find_spec(LENS_NEEDS) is None and not (given.json or given.source):
        raise ValueError(f"the lens's report needs {LENS_NEEDS}: pip install 'cuda-emulator[lens]'; --json does not")
    from .lens import command

    return command.lens(
        [given.target] if given.second is None else [given.target, given.second],
        launch=given.launch,
        args=given.args,
        grid=given.grid,
        block=given.block,
        sharedmem=given.sharedmem,
        blocks=given.blocks,
        device=given.device,
        html=given.html,
        json=given.json,
        source=given.source,
        script_arguments=own,
    )


def _pth() -> Path:
    return Path(sysconfig.get_path("purelib")) / PTH


def _enable(given: argparse.Namespace, own: Sequence[str]) -> int:
    """A line of a .pth file runs at every start of Python. Without the variable it asks for it, and that is all."""
    startup = str(Path(__file__).with_name("startup.py"))
    line = f"import os; os.environ.get('CUDA_EMULATOR') and __import__('runpy').run_path({startup!r})\n"
    try:
        _pth().write_text(line, encoding="utf-8")
    except OSError as error:
        raise OSError(f"cannot write {_pth()}: {error.strerror}; use a virtual environment of your own") from error
    print(f"wrote {_pth()}: with CUDA_EMULATOR=1, check or warn, `from numba import cuda` is the emulator")
    return 0


def _disable(given: argparse.Namespace, own: Sequence[str]) -> int:
    there = _pth().exists()
    _pth().unlink(missing_ok=True)
    print(f"removed {_pth()}" if there else f"there is no {_pth()}: nothing to undo")
    return 0


if __name__ == "__main__":
    main()
