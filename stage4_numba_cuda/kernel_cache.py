"""Compiled kernels kept on disk on a GPU, so that the second process need not compile what the first has compiled.

numba-cuda's own `cache=True` asks the date of the kernel's file, and misses a change in a device function of another
file. Here the name of a kept kernel is a hash of everything that its machine code depends on:

    what the kernel says      its bytecode and constants, the values of its globals and closures, and the same for every
                              device function and intrinsic that it reaches (kernel_fingerprint.py)
    what it is compiled for   the types of its arguments, the options of its @cuda.jit, the compute capability
    what compiles it          the versions of Python and the packages, the CUDA libraries that are found, NUMBA_*

So a file never becomes stale: what has changed has another name. A file is written whole or not at all, and begins with
a hash of the rest. One that was damaged is compiled again, and a line on stderr says so. Two processes that write the
same file at once write the same kernel.

GROUNDUP_CACHE moves the folder. The emulator keeps its kernels by itself (cuda_emulator/compiler/cache.py).
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import sys
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from shared.machine import caches, private_folder
from shared.machine.atomic import write_atomically
from shared.machine.software import installed_versions

from .kernel_fingerprint import Unknown, fingerprint, meaning

PACKAGES = (
    *("numba", "numba-cuda", "llvmlite", "numpy", "cuda-bindings", "cuda-core"),
    *("nvidia-nvvm", "nvidia-nvjitlink", "nvidia-cuda-nvrtc"),
    *("nvidia-cuda-nvcc-cu12", "nvidia-nvjitlink-cu12", "nvidia-cuda-nvrtc-cu12"),
)
LIBRARIES = ("nvvm", "nvJitLink", "nvrtc")
"""Those that compile; they may come from a toolkit outside Python, which has no version that pip knows."""

MAGIC = b"groundup kernel 1\n"
MOST = 1000
"""Kernels in the folder. Beyond that, those go that were not used for the longest time."""

SUFFIX = ".kernel"


def folder() -> Path:
    """Where compiled kernels are kept."""
    return caches.compiled() / "gpu"


def install(cuda: Any) -> None:
    """Let every kernel that `cuda.jit` makes from now on look on disk before it is compiled.

    cuda: numba-cuda's namespace. Device functions are compiled into the kernels that call them, and are not kept.
    """
    made = cuda.jit
    if hasattr(made, "__wrapped__"):
        return

    @functools.wraps(made)
    def jit(*arguments: Any, **options: Any) -> Any:
        found = made(*arguments, **options)
        if hasattr(found, "py_func"):
            return keep(found)
        return lambda function: keep(found(function))  # @cuda.jit(option=…) gives a decorator

    cuda.jit = jit


def keep(dispatcher: Any) -> Any:
    """The dispatcher itself; if it is a kernel's, it takes its compiled forms from the disk where they are there."""
    if not dispatcher.targetoptions.get("device"):
        dispatcher._cache = KernelCache(dispatcher.py_func, dispatcher.targetoptions)
    return dispatcher


class KernelCache:
    """The compiled forms of one kernel: what numba-cuda's dispatcher asks before it compiles, and tells after it has.

    hits, misses: how many forms were found on disk, and were not
    """

    cache_path: str | None = None
    hits = misses = 0

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.function, self.options = function, options

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """The compiled kernel for these types of arguments; None where it must be compiled."""
        path = self._path(signature)
        kernel = None if path is None else _loaded(path)
        self.hits += kernel is not None
        self.misses += kernel is None
        return kernel

    def save_overload(self, signature: Any, kernel: Any) -> None:
        """Keep a kernel that was just compiled."""
        path = self._path(signature)
        if path is None or getattr(kernel, "launch_config_sensitive", False):
            return  # the second kind is compiled for one shape of grid, which is not in the name
        payload = zlib.compress(_reduced(kernel), 1)
        try:
            prune(path.parent)
            write_atomically(path, MAGIC + hashlib.sha256(payload).digest() + payload, mode=0o600)
        except OSError as error:
            _say_once(f"compiled kernels are not kept: {error}")

    def enable(self) -> None:
        """Nothing: it is."""

    def disable(self) -> None:
        """Nothing: numba-cuda asks for this where it cannot compile, and kept kernels are still right."""

    def flush(self) -> None:
        """Nothing: the names of stale kernels are never asked for."""

    def _path(self, signature: Any) -> Path | None:
        """The file for these types; None where it depends on something that cannot be told from its value."""
        try:
            what = [fingerprint(self.function), meaning(self.options), *map(str, _types(signature)), *compiler()]
        except Unknown as reason:
            _say_once(f"{self.function.__qualname__} is not kept on disk: {reason}")
            return None
        digest = hashlib.sha256("\n".join([*what, str(_capability())]).encode()).hexdigest()
        try:
            return caches.private(folder()) / f"{self.function.__name__}-{digest[:32]}{SUFFIX}"
        except OSError as error:
            _say_once(f"compiled kernels are not kept: cannot write {folder()}: {error.strerror}")
            return None


def _loaded(path: Path) -> Any | None:
    """The kernel in a file; None where there is no such file, and where it is damaged, which is told."""
    try:
        content = private_folder.read(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        _say_once(f"kept kernels cannot be read: {error}")
        return None
    try:
        return _rebuilt(_payload(content))
    except Exception as error:  # whatever a damaged file makes of it, the kernel can be compiled again
        print(f"{path} is damaged ({error}): the kernel is compiled again", file=sys.stderr)
        return None


def _types(signature: Any) -> tuple[Any, ...]:
    """The types of the arguments, whether numba-cuda hands over a signature or only these."""
    return tuple(getattr(signature, "args", signature))


def _capability() -> Any:
    """The compute capability of the current device. Asked for where numba-cuda's compiler asks."""
    from numba.cuda import dispatcher

    return dispatcher.get_current_device().compute_capability


def compiler() -> tuple[str, ...]:
    """What compiles: versions, libraries and settings, the same in every process of one installation."""
    settings = sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith("NUMBA_"))
    return (*_installed(), *settings)


@functools.cache
def _installed() -> tuple[str, ...]:
    versions = installed_versions(PACKAGES)
    return (
        f"Python {platform.python_version()} {platform.machine()}",
        *(f"{name} {versions[name]}" for name in sorted(versions)),
        *map(_library, LIBRARIES),
    )


def _library(name: str) -> str:
    """A library's place, size and date; or only its name where there is none."""
    from cuda import pathfinder

    try:
        path = Path(pathfinder.load_nvidia_dynamic_lib(name).abs_path)
        found = path.stat()
    except Exception:  # pathfinder's own kinds of errors; compiling without the library says what is missing
        return name
    return f"{name} {path} {found.st_size} {found.st_mtime_ns}"


def _reduced(kernel: Any) -> bytes:
    from numba.cuda import serialize

    return bytes(serialize.dumps(kernel._reduce_states()))


def _rebuilt(payload: bytes) -> Any:
    import pickle

    from numba.cuda.dispatcher import _Kernel

    return _Kernel._rebuild(**pickle.loads(payload))


def _payload(content: bytes) -> bytes:
    """What `save_overload` wrote, after a look at its hash. Raises ValueError for anything else."""
    head, rest = content[: len(MAGIC) + 32], content[len(MAGIC) + 32 :]
    if not head.startswith(MAGIC) or hashlib.sha256(rest).digest() != head[len(MAGIC) :]:
        raise ValueError("its hash is not that of its content")
    return zlib.decompress(rest)


def prune(kept: Path) -> None:
    """Remove the kernels that were not used for the longest time, where there are more than MOST."""
    if not kept.is_dir():
        return
    files = sorted(kept.glob(f"*{SUFFIX}"), key=_last_used)
    for path in files[: max(0, len(files) - MOST + 1)]:
        path.unlink(missing_ok=True)


def _last_used(path: Path) -> float:
    """In seconds; a file that another process has just removed counts as unused."""
    with suppress(OSError):
        return path.stat().st_atime
    return 0.0


@functools.cache
def _say_once(sentence: str) -> None:
    print(sentence, file=sys.stderr)
