"""Generated sources on disk, where Numba keeps the machine code of each beside it.

A kernel's file is named by a hash of everything that decides what it becomes: the kernel's text and place, the values
of the globals that it reads, the same of every device function that it calls, the types of its arguments, how it is to
be compiled, and the emulator's own sources. So a file, once written, never changes; processes that write the same one
at the same moment write the same text, and each sees a whole file (it is renamed into place). Numba writes its files
the same way.
"""

from __future__ import annotations

import ast
import hashlib
import os
import sys
import tempfile
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core import types

from ..intrinsics import Intrinsic
from . import names
from .functions import DeviceFunction
from .source import FunctionSource

#: Kernels that stay in the cache; beyond that the ones not used for longest go.
KEEP = 500


def cache_folder() -> Path:
    """Where generated sources are kept: in GROUNDUP_CACHE where that is set, else in the user's cache folder."""
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
    return root / "groundup" / "emulator"


def fingerprint(source: FunctionSource, seen: tuple[FunctionSource, ...] = ()) -> str:
    """A hash of what a function's text means: its text, its place, and what its names stand for."""
    digest = hashlib.sha256()
    digest.update(f"{source.filename}:{source.first_line}\n{source.text}".encode())
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            value = names.look_up(source, node)
            if value is not names.UNKNOWN:
                digest.update(f"{ast.unparse(node)}={meaning(value, (*seen, source))}\n".encode())
    return digest.hexdigest()


def meaning(value: Any, seen: tuple[FunctionSource, ...]) -> str:
    """What a global means to a kernel, as text that is the same in every process."""
    if isinstance(value, Intrinsic):
        return value.path
    if isinstance(value, DeviceFunction):
        return "itself" if value.source in seen else fingerprint(value.source, seen)
    if getattr(value, "__cuda_ndarray__", False):
        return f"device {value.numba_type}{value.shape}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}"
    if isinstance(value, np.dtype):
        return f"dtype {value.descr} {value.itemsize} {value.isalignedstruct}"
    if isinstance(value, bool | int | float | complex | str | tuple | np.generic | types.Type) or value is None:
        return f"{type(value).__name__} {value!r}"
    return f"{type(value).__name__} {getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"


def global_arrays(source: FunctionSource, seen: tuple[FunctionSource, ...] = ()) -> dict[str, np.ndarray[Any, Any]]:
    """The global arrays that a function reads, itself or in device functions, by their names in generated source."""
    found: dict[str, np.ndarray[Any, Any]] = {}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            value = names.look_up(source, node)
            captured = names.captured_array(value)
            if captured is not None:
                found[names.array_name(ast.unparse(node), captured)] = captured
            elif isinstance(value, DeviceFunction) and value.source not in (*seen, source):
                found.update(global_arrays(value.source, (*seen, source)))
    return found


@lru_cache(maxsize=1)
def emulator_version() -> str:
    """A hash of the emulator's own sources and of what compiles them: a change of either makes every kernel anew."""
    digest = hashlib.sha256(f"{numba.__version__} {np.__version__} {sys.version_info[:2]}".encode())
    for path in sorted(Path(__file__).parent.parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def path_of(source: FunctionSource, what: tuple[Any, ...]) -> Path | None:
    """The file of a kernel's generated source, whether it is there or not. None where no cache can be written.

    what: everything else that decides what the source becomes
    """
    digest = hashlib.sha256(f"{fingerprint(source)} {what!r} {emulator_version()}".encode()).hexdigest()
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder / f"{source.name}_{digest[:24]}.py" if os.access(folder, os.W_OK) else None


def write(path: Path, text: str) -> None:
    """Put a generated source in its place, whole; one that is there stays, and what Numba keeps for it stays valid."""
    prune(path.parent)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        try:
            os.link(temporary, path)
        except FileExistsError:
            pass
        except OSError:  # a file system without hard links
            os.replace(temporary, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)


def prune(folder: Path) -> None:
    """Remove the kernels not used for longest, where there are too many."""
    sources = sorted(folder.glob("*.py"), key=last_used)
    for path in sources[: max(0, len(sources) - KEEP)]:
        for kept in folder.glob(f"__pycache__/{path.stem}.*"):
            with suppress(OSError):
                kept.unlink()
        with suppress(OSError):
            path.unlink()


def last_used(path: Path) -> float:
    """When a kernel was last used, in seconds; Numba reads its index then."""
    with suppress(OSError):
        return path.stat().st_atime
    return 0.0
