"""Compile csrc/*.c into a shared library on first use, and find it again until something changes.

The library's folder in the user's cache is named by a hash of everything that decides what the compiler makes: the
sources, the compiler, its options and the processor. Edit a .c file, run again, and the hash differs: it is built anew.

Nobody ever sees half a library. It is built in a folder of another name and renamed into place, complete, last; a
build that is killed leaves only that other folder, which the next one clears away. A lock lets one process build at
a time, so the second of two that start at once finds the first one's work.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from shared.environment import cpu_name, usable_cores
from stage3_c.compiler import (
    SUFFIX,
    Compiler,
    compile_command,
    find_compiler,
    first_error,
    flags,
    libraries,
    link_command,
    run,
)
from stage3_c.filelock import locked

__all__ = ["Build", "CompileError", "Compiler", "build", "cache_folder", "find_compiler"]

CSRC = Path(__file__).resolve().parent / "csrc"
ONCE = ("pool.c", "machine.c")
"""The sources without numbers of a precision; every other is compiled for float32 and for float64."""

KEEP = 8
"""Built libraries that stay in the cache: enough to go back and forth between compilers, options and edits."""

LIBRARY, RECORD, BUILDING = f"groundup{SUFFIX}", "build.json", "building-"


class CompileError(ValueError):
    """The sources do not compile. The message has the first error with file and line; the compiler's whole output is
    in `output`, and is the error's note, which tracebacks and the groundup program show below the message."""

    fix = None  # for the doctor: any command that mends the sources would throw away what the learner is writing

    def __init__(self, message: str, output: str) -> None:
        super().__init__(message)
        self.output = output
        self.add_note(output)


@dataclass(frozen=True)
class Build:
    """A library ready to load. compiled: whether this call made it; False where it was in the cache."""

    library: Path
    compiler: Compiler
    flags: tuple[str, ...]
    compiled: bool


def build(csrc: Path = CSRC) -> Build:
    """The library of the sources in a folder, compiled now unless it is in the cache.

    Raises CompileError where the sources do not compile, shared.contract.StageUnavailable where no compiler works,
    OSError where the cache cannot be written.
    """
    sources = read_sources(csrc)
    root = cache_folder()

    def folder(compiler: Compiler) -> Path:
        return root / key(sources, compiler)

    compiler = find_compiler(is_known=lambda compiler: find_built(folder(compiler)) is not None)
    found = find_built(folder(compiler))
    if found:
        return found
    if compiler.options is None:  # its library was in the cache a moment ago, and is no longer
        compiler = find_compiler()
    try:
        root.mkdir(parents=True, exist_ok=True)
        with locked(root / "lock"):
            # Whoever had the lock before may have built the same.
            return find_built(folder(compiler)) or _build(sources, compiler, root, folder(compiler))
    except OSError as error:
        raise OSError(
            f"stage 3 cannot be built in the cache folder {root}: {error}. Make that folder writable, or set "
            "GROUNDUP_CACHE to one on a local disk that is"
        ) from error


def cache_folder() -> Path:
    """Where built libraries are kept: in GROUNDUP_CACHE where that is set, else in the user's cache folder."""
    chosen = os.environ.get("GROUNDUP_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute() / "stage3"
    from shared import download  # imported where it is needed, for what it imports

    return download.cache_folder() / "stage3"


def read_sources(csrc: Path) -> dict[str, bytes]:
    """The content of every .c and .h file of a folder by name, in alphabetical order. Raises OSError where none is."""
    sources = {path.name: path.read_bytes() for path in sorted(csrc.glob("*.[ch]"))}
    if not any(name.endswith(".c") for name in sources):
        raise OSError(f"{csrc} has no .c files: expected the sources of stage 3 there; install groundup again")
    return sources


def key(sources: Mapping[str, bytes], compiler: Compiler) -> str:
    """The name of the library's folder: a hash of all that decides what is built.

    The compiler's options for this processor are not in it, because they follow from the compiler and the processor,
    which are; so a library in the cache is found without probing.
    """
    parts = [
        *(f"{name} {hashlib.sha256(content).hexdigest()}" for name, content in sources.items()),
        *(*compiler.command, compiler.path, compiler.version_text),
        *flags(replace(compiler, options=())),
        *link_command(replace(compiler, options=())),
        *(processor(), sys.platform, platform.machine()),
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def processor() -> str:
    """The processor's name and abilities, which decide what -march=native means."""
    cpuinfo = Path("/proc/cpuinfo")
    if not cpuinfo.is_file():
        return cpu_name() or platform.machine()
    telling = ("model name", "flags", "Features", "CPU implementer", "CPU part", "isa")
    lines = cpuinfo.read_text(errors="replace").splitlines()
    return "\n".join(sorted({line for line in lines if line.partition(":")[0].strip() in telling}))


def find_built(folder: Path) -> Build | None:
    """The build in a folder of the cache; None where there is none, or it is not what was written there."""
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        whole = record["sha256"] == hashlib.sha256((folder / LIBRARY).read_bytes()).hexdigest()
        compiler = Compiler(
            tuple(record["command"]), record["path"], record["version_text"], options=tuple(record["options"])
        )
        found = Build(folder / LIBRARY, compiler, tuple(record["flags"]), compiled=False)
    except (OSError, ValueError, KeyError, TypeError):  # not there, or damaged: built anew either way
        return None
    if whole:
        with suppress(OSError):  # a cache that may only be read does not need to know what was used last
            os.utime(folder)
    return found if whole else None


def _build(sources: Mapping[str, bytes], compiler: Compiler, root: Path, folder: Path) -> Build:
    """Compile, link, and rename into place. Called with the lock held."""
    if sys.stderr.isatty():
        print(f"compiling stage 3 with {compiler.version}; done once, until it is edited", file=sys.stderr)
    _tidy(root)
    work = Path(tempfile.mkdtemp(prefix=BUILDING, dir=root))
    try:
        # Copies of what the folder's name was computed from, so that an edit at this very moment cannot slip in. They
        # lie in csrc too: the compiler's messages say csrc/matmul.c:12, which is where the learner finds it.
        (work / "csrc").mkdir()
        for name, content in sources.items():
            (work / "csrc" / name).write_bytes(content)
        objects = _compile(sources, compiler, work)
        library = work / LIBRARY
        done = run([*link_command(compiler), *objects, "-o", LIBRARY, *libraries()], work)
        if done.returncode != 0 or not library.is_file():
            raise _compile_error("csrc/*.c do not link", compiler, done.stderr)
        record = {
            "sha256": hashlib.sha256(library.read_bytes()).hexdigest(),
            "command": compiler.command,
            "path": compiler.path,
            "version_text": compiler.version_text,
            "options": compiler.options,
            "flags": flags(compiler),
        }
        (work / RECORD).write_text(json.dumps(record, indent=2), encoding="utf-8")
        folder.mkdir(exist_ok=True)
        # The library last: with the record of another, or none, it does not count.
        os.replace(work / RECORD, folder / RECORD)
        os.replace(library, folder / LIBRARY)
    finally:
        shutil.rmtree(work, ignore_errors=True)  # what cannot be removed now, _tidy removes before the next build
    return Build(folder / LIBRARY, compiler, flags(compiler), compiled=True)


def _compile(sources: Mapping[str, bytes], compiler: Compiler, work: Path) -> list[str]:
    """Compile every source, as many at a time as there are cores. Returns the names of the object files."""
    commands: dict[str, tuple[str, list[str]]] = {}
    for name in (name for name in sources if name.endswith(".c")):
        for bits in (None,) if name in ONCE else (32, 64):
            target = f"{Path(name).stem}{bits or ''}.o"
            define = [f"-DGROUNDUP_BITS={bits}"] if bits else []
            source = f"csrc/{name}"
            commands[target] = (source, [*compile_command(compiler), *define, "-c", source, "-o", target])
    with ThreadPoolExecutor(usable_cores()) as workers:
        runs = {target: workers.submit(run, command, work) for target, (_, command) in commands.items()}
        try:
            for target, done in runs.items():
                result = done.result()
                if result.returncode != 0:
                    raise _compile_error(f"{commands[target][0]} does not compile", compiler, result.stderr)
        finally:
            workers.shutdown(cancel_futures=True)  # after an error or Ctrl-C, those not yet begun need not begin
    return list(commands)


def _compile_error(what: str, compiler: Compiler, output: str) -> CompileError:
    text = output.strip() or "the compiler gave no message"
    return CompileError(f"{what} ({compiler.version}): {first_error(text)}", text)


def _tidy(root: Path) -> None:
    """Remove what killed builds left, and all but the libraries used last. Called with the lock held."""
    for left in root.glob(f"{BUILDING}*"):
        shutil.rmtree(left, ignore_errors=True)  # an orphaned compiler may still be writing there; then next time
    built = sorted((path.parent for path in root.glob(f"*/{RECORD}")), key=lambda folder: folder.stat().st_mtime)
    for old in built[: -(KEEP - 1)]:  # with the one about to be made: KEEP
        # A running process keeps what it has loaded: elsewhere the file lives on without a name, and Windows refuses
        # to delete it, which is as well.
        shutil.rmtree(old, ignore_errors=True)
