"""Compile csrc/*.c into a shared library on first use, and find it again until something changes.

The library's folder in the user's cache is named by a hash of everything that decides what the compiler makes: the
sources, the compiler, its options and the processor. Edit a .c file, run again, and the hash differs: it is built anew.
The object file of each source is kept in the same way, under a hash of that source and the headers. So
after an edit of one .c file only that one is compiled, and the rest is linked to it.

A half-written library is never loaded. The library is built in a folder with another name, which is renamed when it is
complete; a build that is killed leaves only that other folder, which the next build removes. A lock lets one process
build at a time, so the second of two that start at once finds the first one's work.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from shared.countdown import Countdown
from shared.machine import caches, private_folder, processes
from shared.machine.atomic import why_not
from shared.machine.hardware import cpu_name, usable_cores

from .compiler import (
    SUFFIX,
    Compiler,
    compile_command,
    find_compiler,
    first_error,
    flags,
    has_fast_math,
    libraries,
    link_command,
    processor_options,
    run,
)
from .filelock import locked

__all__ = ["Build", "CompileError", "Compiler", "build", "cache_folder", "find_compiler"]

CSRC = Path(__file__).resolve().parent / "csrc"
SOURCES_VARIABLE = "GROUNDUP_CSRC"
"""Names another folder to build from: the course puts a learner's own functions there."""
ONCE = ("pool.c", "machine.c", "eight_bits.c")
"""The sources without floats of a precision; every other is compiled for float32 and for float64."""

KEEP = 24
"""Built libraries that stay in the cache: enough to go back and forth between compilers, options, edits, and the
course's exercises, each of which makes a library of its own. One takes about 140 kB, with sanitizers 2 MB."""

KEEP_OBJECTS = 300
"""Object files that stay in the cache, some 20 kB each: those of the last library built, and of many edits."""

DIGEST = hashlib.sha256().digest_size
UNDONE = "loses NaN and small numbers: stage 3 is compiled without it"
LIBRARY, RECORD, BUILDING, OBJECTS = f"groundup{SUFFIX}", "build.json", "building-", "objects"


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
    """A library ready to load.

    compiled: whether this call made it; False where it was in the cache
    fast_math: whether the compiler asked for fast mathematics, which was undone
    """

    library: Path
    compiler: Compiler
    flags: tuple[str, ...]
    compiled: bool
    fast_math: bool = False


def build(csrc: Path | None = None) -> Build:
    """The library of the sources in a folder, compiled now unless it is in the cache.

    csrc: None for what GROUNDUP_CSRC names, and where it names nothing this package's own
    Raises CompileError where the sources do not compile, shared.contract.StageUnavailable where no compiler works,
    OSError where the cache cannot be written.
    """
    own = os.environ.get(SOURCES_VARIABLE)
    # The package may have been imported from an archive, where CSRC is no folder.
    folder = csrc or (Path(own) if own else resources.files(__package__).joinpath("csrc"))
    with processes.ending_with_us():
        return _found_or_built(read_sources(folder))


def _found_or_built(sources: Mapping[str, bytes]) -> Build:
    root = _root()

    def folder(compiler: Compiler) -> Path:
        return root / key(sources, compiler)

    compiler = find_compiler(is_known=lambda compiler: _options(root, compiler) is not None)
    known_build = find_built(folder(compiler))
    if known_build:
        return known_build
    probed = compiler.options is not None
    if not probed:
        compiler = replace(compiler, options=_options(root, compiler))
        if compiler.options is None:  # what told them was in the cache a moment ago, and is no longer
            compiler, probed = find_compiler(), True
    try:
        with locked(root / "lock"):
            # Whoever had the lock before may have built the same.
            return find_built(folder(compiler)) or _build(sources, compiler, root, folder(compiler))
    except CompileError:
        if not probed:
            find_compiler()  # where the compiler has stopped working since, that is what has to be told
        raise
    except OSError as error:
        raise _no_room(root, error) from error


def cache_folder() -> Path:
    """The folder of the built libraries."""
    return caches.compiled() / "stage3"


def _root() -> Path:
    """The same, made if it is missing; one for this process alone where others may write to it."""
    try:
        return caches.private(cache_folder())
    except OSError as error:
        raise _no_room(cache_folder(), error) from error


def _no_room(root: Path, error: OSError) -> OSError:
    return OSError(
        f"stage 3 cannot be built in the cache folder {root}: {why_not(root / 'lock', error)}. Make that folder "
        "writable, or set GROUNDUP_CACHE to one on a local disk that is"
    )


def read_sources(csrc: Path | Traversable) -> dict[str, bytes]:
    """The content of every .c and .h file of a folder by name, in alphabetical order. Raises OSError where none is."""
    names = sorted(each.name for each in csrc.iterdir()) if csrc.is_dir() else []
    sources = {name: csrc.joinpath(name).read_bytes() for name in names if name.endswith((".c", ".h"))}
    if not any(name.endswith(".c") for name in sources):
        raise OSError(f"{csrc} has no .c files: expected the sources of stage 3 there; install groundup again")
    return sources


def key(sources: Mapping[str, bytes], compiler: Compiler) -> str:
    """The name of the library's folder: a hash of all that decides what is built.

    The compiler's options for this processor are in it as they are tried, not as it took them: those follow from the
    compiler and the processor. So a library in the cache is found without probing, and its options for the next one.
    """
    return _hash([*_contents(sources), *_translation(compiler)])


def object_key(sources: Mapping[str, bytes], compiler: Compiler, name: str, bits: int | None) -> str:
    """The name of an object file: as `key`, but of all sources only the one compiled, and the headers.

    name: the source's; bits: of its numbers, 32 or 64, None where it has none
    """
    read = {each: content for each, content in sources.items() if each == name or each.endswith(".h")}
    return _hash([name, str(bits), *_contents(read), *_translation(compiler)])


def _contents(sources: Mapping[str, bytes]) -> list[str]:
    return [f"{name} {hashlib.sha256(content).hexdigest()}" for name, content in sources.items()]


def _translation(compiler: Compiler) -> list[str]:
    """What besides the sources decides what is built."""
    plain = replace(compiler, options=())
    return [
        *(*compiler.command, compiler.path, compiler.version_text),
        *(*flags(plain), *link_command(plain)),
        *map(" ".join, processor_options(compiler)),
        *(processor(), sys.platform, platform.machine()),
    ]


def _hash(parts: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


@cache
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
        if not private_folder.is_private(folder):
            return None
        record = json.loads(private_folder.read(folder / RECORD))
        whole = record["sha256"] == hashlib.sha256(private_folder.read(folder / LIBRARY)).hexdigest()
        compiler = Compiler(
            tuple(record["command"]), record["path"], record["version_text"], options=tuple(record["options"])
        )
        found = Build(folder / LIBRARY, compiler, tuple(record["flags"]), False, record["fast_math"])
    except (OSError, ValueError, KeyError, TypeError):  # not there, or damaged: built anew either way
        return None
    if whole:
        with suppress(OSError):  # a cache that may only be read does not need to know what was used last
            os.utime(folder)
    return found if whole else None


def _options(root: Path, compiler: Compiler) -> tuple[str, ...] | None:
    """The compiler's options for this processor, from a library that it made before; None where there is none.

    So a compiler is probed once, and not again for every edit.
    """
    wanted = _hash(_translation(compiler))
    for path in root.glob(f"*/{RECORD}"):
        with suppress(OSError, ValueError, KeyError, TypeError):  # removed meanwhile, or damaged: not this one
            record = json.loads(private_folder.read(path))
            if record["translation"] == wanted and private_folder.is_private(path.parent):
                return tuple(record["options"])
    return None


def _build(sources: Mapping[str, bytes], compiler: Compiler, root: Path, folder: Path) -> Build:
    """Compile, link, and rename into place. Called with the lock held."""
    if sys.stderr.isatty():
        print(f"compiling stage 3 with {compiler.version}; done once, until it is edited", file=sys.stderr)
    fast = has_fast_math(compiler)
    if fast:
        print(f"stage 3: {' '.join(compiler.command)} asks for fast mathematics, which {UNDONE}", file=sys.stderr)
    _tidy(root)
    work = Path(tempfile.mkdtemp(prefix=BUILDING, dir=root))
    try:
        # Copies of what the folder's name was computed from, so that an edit at this very moment cannot slip in. They
        # lie in csrc too: the compiler's messages say csrc/matmul_loops.c:12, which is where the learner finds it.
        (work / "csrc").mkdir()
        for name, content in sources.items():
            (work / "csrc" / name).write_bytes(content)
        objects = _objects(sources, compiler, root, work)
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
            "fast_math": fast,
            "translation": _hash(_translation(compiler)),
        }
        (work / RECORD).write_text(json.dumps(record, indent=2), encoding="utf-8")
        private_folder.make_below(folder)
        for file in (work / RECORD, library):  # a compiler's files have what the umask leaves, which may be everything
            file.chmod(0o600)
        # The library last: with the record of another, or none, it does not count.
        os.replace(work / RECORD, folder / RECORD)
        os.replace(library, folder / LIBRARY)
    finally:
        shutil.rmtree(work, ignore_errors=True)  # what cannot be removed now, _tidy removes before the next build
    return Build(folder / LIBRARY, compiler, flags(compiler), compiled=True, fast_math=fast)


def _objects(sources: Mapping[str, bytes], compiler: Compiler, root: Path, work: Path) -> list[str]:
    """Every source as object files in `work`, from the cache or compiled, as many at a time as there are cores.

    Returns their names. Called with the lock held.
    """
    kept = root / OBJECTS
    private_folder.make_below(kept)
    targets: list[str] = []
    commands: dict[str, tuple[str, Path, list[str]]] = {}
    for name in (name for name in sources if name.endswith(".c")):
        for bits in (None,) if name in ONCE else (32, 64):
            target = f"{Path(name).stem}{bits or ''}.o"
            targets.append(target)
            place = kept / f"{object_key(sources, compiler, name, bits)}.o"
            if _take_object(place, work / target):
                continue
            define = [f"-DGROUNDUP_BITS={bits}"] if bits else []
            source = f"csrc/{name}"
            commands[target] = (source, place, [*compile_command(compiler), *define, "-c", source, "-o", target])
    stop = threading.Event()
    with ThreadPoolExecutor(usable_cores()) as workers, Countdown() as line:
        runs = {target: workers.submit(run, command, work, stop) for target, (_, _, command) in commands.items()}
        try:
            for number, (target, done) in enumerate(runs.items()):
                line.show("compiling stage 3", number, len(runs))
                result = done.result()
                source, place, _ = commands[target]
                if result.returncode != 0:
                    raise _compile_error(f"{source} does not compile", compiler, result.stderr)
                _keep_object(work / target, place)
        finally:
            stop.set()  # after an error or Ctrl-C
            workers.shutdown(cancel_futures=True)
    return targets


def _keep_object(made: Path, place: Path) -> None:
    """Put an object file into the cache, after the hash of it that `_take_object` checks."""
    content = made.read_bytes()
    whole = made.with_suffix(".kept")
    whole.write_bytes(hashlib.sha256(content).digest() + content)
    whole.chmod(0o600)
    os.replace(whole, place)


def _take_object(place: Path, target: Path) -> bool:
    """Copy an object file out of the cache; False where there is none, or it is not what was written there."""
    try:
        kept = private_folder.read(place)
    except (FileNotFoundError, private_folder.NotOwn):
        return False
    digest, content = kept[:DIGEST], kept[DIGEST:]
    if hashlib.sha256(content).digest() != digest:
        return False
    target.write_bytes(content)
    os.utime(place)
    return True


def _compile_error(what: str, compiler: Compiler, output: str) -> CompileError:
    text = output.strip() or "the compiler gave no message"
    return CompileError(f"{what} ({compiler.version}): {first_error(text)}", text)


def _tidy(root: Path) -> None:
    """Remove what killed builds left, and all but the libraries and objects used last. Called with the lock held."""
    for left in root.glob(f"{BUILDING}*"):
        shutil.rmtree(left, ignore_errors=True)  # an orphaned compiler may still be writing there; then next time
    for old in _oldest([path.parent for path in root.glob(f"*/{RECORD}")], KEEP - 1):  # with the one to be made: KEEP
        # A running process keeps what it has loaded: elsewhere the file lives on without a name, and Windows refuses
        # to delete it, which is as well.
        shutil.rmtree(old, ignore_errors=True)
    for old in _oldest(list((root / OBJECTS).glob("*.o")), KEEP_OBJECTS):
        with suppress(OSError):  # Windows, where another program is looking at it: then next time
            old.unlink()


def _oldest(paths: Sequence[Path], keep: int) -> list[Path]:
    """All but the `keep` that were used last."""
    return sorted(paths, key=lambda path: path.stat().st_mtime)[: max(0, len(paths) - keep)]
