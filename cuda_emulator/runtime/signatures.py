"""Read the signatures that programs give to `@cuda.jit` and `kernel.compile`."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import sigutils
from numba.core.errors import NumbaError

from .places import launch_error


def argument_types(signature: Any, device: bool) -> tuple[Any, ...]:
    """The argument types of a signature, which may have any form that Numba accepts."""
    try:
        arguments, result = sigutils.normalize_signature(signature)
    except (NumbaError, TypeError, NameError, SyntaxError, AttributeError) as error:
        raise launch_error(f"cuda.jit: the signature {signature!r} cannot be read: {error}") from None
    if not device and result not in (None, types.none):
        raise TypeError(f"cuda.jit: a kernel returns nothing, its signature says {result}: write void(...)")
    return tuple(arguments)


def without_pointers(kinds: tuple[Any, ...]) -> tuple[Any, ...]:
    """The types with which a kernel is compiled: behind a pointer there is an array."""
    return tuple(types.Array(kind.dtype, 1, "C") if isinstance(kind, types.CPointer) else kind for kind in kinds)
