"""Generated sources on disk; the machine code of each lies beside it (machine_code.py).

The name of a kernel's file contains a hash of everything that the result depends on: the kernel's text and place, the
values of the globals that it reads, the same for every device function that it calls, the types of its arguments, the
variant, and the emulator's own sources. So a file never changes after it was written. Two processes that write one file
at the same time write the same text, and a reader never sees a part of it, because a file is renamed into place. A file
begins with a hash of the rest: one that was damaged is made again.
"""

from __future__ import annotations

import ast
import hashlib
import math
import os
import sys
import time
from contextlib import suppress
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

#: Number of kernels in the cache. If there are more, those that were not used for the longest time are removed.
KEEP = 500

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


def fingerprint(source: FunctionSource, seen: tuple[FunctionSource, ...] = ()) -> str:
    """A hash of a function's text and place, and of the values of its names."""
    digest = hashlib.sha256()
    digest.update(f"{source.filename}:{source.first_line}\n{source.text}".encode())
    for name, value in source.defaults.items():
        digest.update(f"{name}={meaning(value, (*seen, source))}\n".encode())
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            value = names.look_up(source, node)
            if value is not names.UNKNOWN:
                digest.update(f"{ast.unparse(node)}={meaning(value, (*seen, source))}\n".encode())
    return digest.hexdigest()


def meaning(value: Any, seen: tuple[FunctionSource, ...]) -> str:
    """A text for the value of a global, equal in every process for equal values."""
    if isinstance(value, Intrinsic):
        return value.path
    if isinstance(value, DeviceFunction):
        return "itself" if value.source in seen else fingerprint(value.source, seen)
    if not isinstance(value, np.ndarray) and (device := names.captured_array(value)) is not None:
        return f"device {numba.typeof(device)}{device.shape}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}"
    if isinstance(value, np.dtype):
        return f"dtype {value.descr} {value.itemsize} {value.isalignedstruct}"
    if isinstance(value, tuple):
        items = ", ".join(meaning(item, seen) for item in value)
        return f"{type(value).__name__} {getattr(value, '_fields', '')} ({items})"
    if isinstance(value, bool | int | float | complex | str | np.generic | types.Type) or value is None:
        return f"{type(value).__name__} {value!r}"
    return f"{type(value).__name__} {getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"


def global_arrays(source: FunctionSource, seen: tuple[FunctionSource, ...] = ()) -> dict[str, np.ndarray[Any, Any]]:
    """The global arrays that a function reads, itself or in device functions, by their names in generated source."""
    found: dict[str, np.ndarray[Any, Any]] = {}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            value = names.look_up(source, node)
            for item in value if isinstance(value, tuple) else (value,):  # a tuple is unrolled
                captured = names.captured_array(item)
                if captured is not None:
                    found[names.array_name(ast.unparse(node), captured)] = captured
            if isinstance(value, DeviceFunction) and value.source not in (*seen, source):
                found.update(global_arrays(value.source, (*seen, source)))
    return found


@lru_cache(maxsize=1)
def emulator_version() -> str:
    """A hash of the emulator's own sources and of the versions of Numba, NumPy and Python."""
    digest = hashlib.sha256(f"{numba.__version__} {np.__version__} {sys.version_info[:2]}".encode())
    sources = sorted(Path(__file__).parent.parent.rglob("*.py"))
    # Imported from an archive, they are in that file.
    for path in sources or [each for each in Path(__file__).parents if each.is_file()]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def path_of(source: FunctionSource, dependencies: tuple[Any, ...]) -> Path | None:
    """The path of a kernel's generated source, which need not exist yet. None if the cache folder cannot be written, or
    others can write to it.

    dependencies: everything besides the function's source that the result depends on
    """
    digest = hashlib.sha256(f"{fingerprint(source)} {dependencies!r} {emulator_version()}".encode()).hexdigest()
    folder = cache_folder()
    try:
        private_folder.make(folder)
    except OSError:
        return None
    usable = os.access(folder, os.W_OK) and private_folder.is_private(folder)
    return folder / f"{source.name}_{digest[:24]}.py" if usable else None


MAGIC = b"# Generated by cuda_emulator. The rest has this hash: "


def write(path: Path, text: str) -> None:
    """Write a generated source in one step."""
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
