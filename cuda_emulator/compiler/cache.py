"""Generated sources on disk; the machine code of each lies beside it (machine_code.py).

The name of a kernel's file contains a hash of everything that the result depends on: the kernel's text, the name of its
file and its line there, the values of the globals that it reads, the same for every device function that it calls, the
types of its arguments, the variant, and the emulator's own sources. The folder of the file does not count: a second
clone of a project finds the kernels of the first. So a file never changes after it was written. Two processes that
write one file at the same time write the same text, and a reader never sees a part of it, because a file is renamed
into place. A file begins with a hash of the rest: one that was damaged is made again.
"""

from __future__ import annotations

import ast
import hashlib
import itertools
import math
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core import types

from ..intrinsics import Intrinsic
from . import machine_code, private_folder
from .functions import DeviceFunction
from .reading import names
from .reading.source import FunctionSource

#: Number of kernels in the cache, of some 90 kB each. If there are more, those that were not used for the longest time
#: are removed. All tests of the project take a third of them.
KEEP = 2000

#: Number of kernels that a process writes between two looks at how many there are; the first look is at the first.
BETWEEN_PRUNES = 50

_written = itertools.count()

#: Seconds after which a temporary file belongs to a process that was killed while it wrote: writing takes far less.
ABANDONED = 3600.0


def cache_folder() -> Path:
    """The folder of the generated sources: in GROUNDUP_CACHE if it is set, else in the user's cache folder, or in a
    temporary one if that cannot be written."""
    given = os.environ.get("GROUNDUP_CACHE")
    if given:
        return Path(given) / "emulator"
    home = Path.home()
    if sys.platform == "win32":
        root = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        root = home / "Library" / "Caches"
    else:
        root = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return private_folder.or_temporary(root / "groundup") / "emulator"


class Reached(dict[FunctionSource, list[tuple[str, Any]]]):
    """A kernel and the device functions that it calls, directly or through others, each with the (name, value) of all
    that it reads from outside.

    files: the files in which they are written. The generated source has FILES[number] for them, and is given their
        names when it is loaded: a copy of a kernel in another folder has the same source, and names its own file.
    """

    def __init__(self, source: FunctionSource) -> None:
        todo = [source]
        for function in todo:
            self[function] = list(outer_values(function))
            for _, value in self[function]:
                called = [item.source for item in items_of(value) if isinstance(item, DeviceFunction)]
                todo += [each for each in dict.fromkeys(called) if each not in todo]
        self.files = list(dict.fromkeys(function.filename for function in todo))

    def fingerprint(self) -> str:
        """A hash of the functions' texts, of the values of their names, and of their places but for the folders."""
        digest = hashlib.sha256()
        functions = list(self)
        for function, values in self.items():
            file = f"{self.files.index(function.filename)} {Path(function.filename).name}"
            digest.update(f"{file}:{function.first_line}\n{function.text}".encode())
            for name, value in values:
                digest.update(f"{name}={meaning(value, functions)}\n".encode())
        return digest.hexdigest()

    def global_arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """The global arrays that the functions read, by their names in generated source."""
        found: dict[str, np.ndarray[Any, Any]] = {}
        for values in self.values():
            for name, value in values:
                for item in items_of(value):  # a tuple is unrolled
                    captured = names.captured_array(item)
                    if captured is not None:
                        found[names.array_name(name, captured)] = captured
        return found


def outer_values(source: FunctionSource) -> Iterator[tuple[str, Any]]:
    """(name, value) of a function's default arguments and of the global names that it reads."""
    yield from source.defaults.items()
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            value = names.look_up(source, node)
            if value is not names.UNKNOWN:
                yield ast.unparse(node), value


def items_of(value: Any) -> Iterator[Any]:
    """The value itself; of a tuple its items, and those of tuples in it."""
    for item in value if isinstance(value, tuple) else ():
        yield from items_of(item)
    if not isinstance(value, tuple):
        yield value


def meaning(value: Any, functions: Sequence[FunctionSource]) -> str:
    """A text for the value of a global, equal in every process for equal values. functions: what may be called."""
    if isinstance(value, Intrinsic):
        return value.path
    if isinstance(value, DeviceFunction):
        return f"function {functions.index(value.source)}"
    if not isinstance(value, np.ndarray) and (device := names.captured_array(value)) is not None:
        return f"device {numba.typeof(device)}{device.shape}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}"
    if isinstance(value, Enum):
        return f"{type(value).__module__}.{type(value).__qualname__} {value.name} {value.value!r}"
    if isinstance(value, np.dtype):
        return f"dtype {value.descr} {value.itemsize} {value.isalignedstruct}"
    if isinstance(value, tuple):
        items = ", ".join(meaning(item, functions) for item in value)
        return f"{type(value).__name__} {getattr(value, '_fields', '')} ({items})"
    if isinstance(value, bool | int | float | complex | str | np.generic | types.Type) or value is None:
        return f"{type(value).__name__} {value!r}"
    return f"{type(value).__name__} {getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"


@lru_cache(maxsize=1)
def emulator_version() -> str:
    """A hash of the emulator's own sources and of the versions of Numba, NumPy and Python."""
    digest = hashlib.sha256(f"{numba.__version__} {np.__version__} {sys.version_info[:2]}".encode())
    sources = sorted(Path(__file__).parent.parent.rglob("*.py"))
    # Imported from an archive, they are in that file.
    for path in sources or [each for each in Path(__file__).parents if each.is_file()]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def path_of(reached: Reached, dependencies: tuple[Any, ...]) -> Path | None:
    """The path of a kernel's generated source, which need not exist yet. None if the cache folder cannot be written, or
    others can write to it.

    dependencies: everything besides the functions' sources that the result depends on
    """
    digest = hashlib.sha256(f"{reached.fingerprint()} {dependencies!r} {emulator_version()}".encode()).hexdigest()
    folder = cache_folder()
    try:
        private_folder.make(folder)
    except OSError:
        return None
    usable = os.access(folder, os.W_OK) and private_folder.is_private(folder)
    return folder / f"{next(iter(reached)).name}_{digest[:24]}.py" if usable else None


MAGIC = b"# Generated by cuda_emulator. The rest has this hash: "


def write(path: Path, text: str) -> None:
    """Write a generated source in one step."""
    if next(_written) % BETWEEN_PRUNES == 0:
        prune(path.parent)
    machine_code.write(path, MAGIC, b"\n" + text.encode())


def read(path: Path) -> str | None:
    """A generated source; None where it is not in the cache, or was damaged: then it is removed."""
    content = machine_code.read(path, MAGIC)
    return None if content is None else content[1:].decode()


def prune(folder: Path) -> None:
    """Remove the kernels that were not used for the longest time, if there are more than KEEP; machine code whose
    source is gone, also that of earlier versions, which lay in __pycache__; temporary files of killed processes."""
    sources = sorted(folder.glob("*.py"), key=last_used)
    spare = sources[: max(0, len(sources) - KEEP)]
    stems = {path.stem for path in sources[len(spare) :]}
    orphans = [path for path in folder.glob(f"*{machine_code.SUFFIX}") if path.name.split(".")[0] not in stems]
    begun = [path for path in folder.glob(f"*{machine_code.TEMPORARY}") if written(path) < time.time() - ABANDONED]
    for path in [*spare, *orphans, *begun, *folder.glob("__pycache__/*.nb[ic]")]:
        with suppress(OSError):
            path.unlink()


def written(path: Path) -> float:
    """When a file was written, in seconds since 1970; infinity if it is gone."""
    with suppress(OSError):
        return path.stat().st_mtime
    return math.inf


def last_used(path: Path) -> float:
    """The time of a kernel's last use, in seconds. Each use reads the file."""
    with suppress(OSError):
        return path.stat().st_atime
    return 0.0
