"""The machine code of a generated source, kept on disk beside it.

Numba's own cache unpickles whatever it finds, so that a file cut off by a power cut ends every later run with an
EOFError. Here a file begins with a hash of the rest. What is damaged, or does not load for any other reason, is deleted
and compiled again; a line for Python's logging, at level DEBUG, says so.
"""

from __future__ import annotations

import hashlib
import logging
import os
import pickle
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from numba.core import compiler, serialize

from . import private_folder

MAGIC = b"cuda_emulator machine code 1\n"
SUFFIX = ".code"
TEMPORARY = ".tmp"
DIGITS = 64
"""Of a hash, SHA-256 in hexadecimal: a generated source stays a text."""

log = logging.getLogger("cuda_emulator")


class MachineCode:
    """What Numba's dispatcher asks before it compiles the function of a generated source, and tells after it has.

    source: the generated source's path, which names everything that the machine code depends on but the processor
    """

    cache_path = None

    def __init__(self, source: Path) -> None:
        self.source = source

    def load_overload(self, signature: Any, target_context: Any) -> Any | None:
        """The compiled function for these types of arguments; None where it has to be compiled."""
        path = self._path(signature, target_context.codegen())
        content = read(path, MAGIC)
        if content is None:
            return None
        target_context.refresh()
        try:
            return compiler.CompileResult._rebuild(target_context, *pickle.loads(content))
        except Exception as error:  # whatever the reason: compiling it again is always right
            discard(path, f"{type(error).__name__}: {error}")
            return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep a function that was just compiled."""
        if compiled.library.has_dynamic_globals:  # addresses of this process
            return
        write(self._path(signature, compiled.codegen), MAGIC, serialize.dumps(compiled._reduce()))

    def enable(self) -> None:
        """Nothing: it is."""

    def disable(self) -> None:
        """Nothing: Numba asks for this where it cannot compile."""

    def flush(self) -> None:
        """Nothing: a stale source is never asked for."""

    def _path(self, signature: Any, codegen: Any) -> Path:
        digest = hashlib.sha256(f"{signature} {codegen.magic_tuple()}".encode()).hexdigest()
        return self.source.with_suffix(f".{digest[:16]}{SUFFIX}")


def read(path: Path, magic: bytes) -> bytes | None:
    """What `write` put into a file; None where there is no such file, or another content: then the file is removed."""
    try:
        content = private_folder.read(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        discard(path, str(error))
        return None
    begin = len(magic) + DIGITS
    if content[:begin] == magic + _digest(content[begin:]):
        return content[begin:]
    discard(path, "it is damaged")
    return None


def write(path: Path, magic: bytes, content: bytes) -> None:
    """Write the content after a hash of it, whole or not at all, for this user alone.

    A disk that is full leaves the cache without this file: it is a cache.
    """
    temporary = None
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=TEMPORARY)  # mode 0600
        with os.fdopen(descriptor, "wb") as file:
            file.write(magic + _digest(content) + content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        log.debug("%s is not kept: %s", path, error)
        if temporary is not None:
            with suppress(OSError):
                os.unlink(temporary)


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


def discard(path: Path, reason: str) -> None:
    """Remove a file that cannot be used."""
    log.debug("%s is made again: %s", path, reason)
    with suppress(OSError):
        path.unlink()
