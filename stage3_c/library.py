"""All calls of C functions go through this file: every function's types in one table, the library, its pool of threads.

C cannot check an address: if it gets a float64 array in place of float32, or a view with gaps, it reads wrong numbers
or memory past the end. So the table below has the types of every function's arguments, and these types check each
array at every call. The modules that call the functions (matmul.py and so on) check the shapes before.

The library is built and loaded by the first call that needs it. ctypes.CDLL releases the GIL while C runs.
"""

import atexit
import ctypes
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from shared.machine.hardware import usable_cores
from shared.names import ACTIVATIONS

from .build import build
from .compiler import NOT_UNDONE, unavailable

MOST_THREADS = 1024
"""More than any machine this runs on has cores; a larger number is a mistake, and each thread costs memory."""


@dataclass(frozen=True)
class ArrayArgument:
    """An argtype: the address of a C-contiguous, aligned array of one dtype.

    written: the C function writes to it, so it must not be read-only
    optional: None is allowed and crosses as NULL
    """

    dtype: np.dtype
    written: bool = False
    optional: bool = False

    def from_param(self, array: Any) -> Any:
        """What ctypes passes on. It holds on to the array's memory until the call is over."""
        if type(array) is np.ndarray and array.dtype is self.dtype and array.flags.carray:
            return _Address.from_buffer(array)  # the usual case, with as few questions as will do
        if array is None and self.optional:
            return None
        if not isinstance(array, np.ndarray) or array.dtype != self.dtype:
            given = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
            raise TypeError(f"expected an array of {self.dtype}, got {given}")
        flags = array.flags
        if flags.carray:  # C-contiguous, aligned and writable
            return _Address.from_buffer(array)
        if not (flags.c_contiguous and flags.aligned) or self.written:
            raise ValueError(
                f"expected a C-contiguous, aligned{' and writable' if self.written else ''} array, got strides "
                f"{array.strides} for shape {array.shape}{'' if flags.writeable else ', read-only'}"
            )
        return ctypes.c_void_p(array.ctypes.data)  # read-only: from_buffer would refuse it


_Address: Any = ctypes.c_char * 0  # an array type, because ctypes passes arrays by their address

# What stands in the table: C's name for it, and ctypes'.
SIZE = ctypes.c_size_t  # size_t
REAL = ctypes.c_double  # double
INT = ctypes.c_int  # int, and enums
POOL = ctypes.c_void_p  # pool *
STRUCT = ctypes.c_void_p  # any struct *, passed with ctypes.byref
STATUS = "status"  # int: 0, or -1 where memory cannot be had
ROW = "row"  # int64_t: as STATUS, or 1 + a row
IN = "in"  # const real *
OUT, OUT_OR_NULL = "out", "out or null"  # real *
ADDRESS = ctypes.c_void_p  # void *, checked by the caller
LABELS = ArrayArgument(np.dtype(np.int64))  # const int64_t *
CLASSES = ArrayArgument(np.dtype(np.int64), written=True)  # int64_t *
DOUBLES = ArrayArgument(np.dtype(np.float64), written=True)  # double *
DOUBLES_OR_NULL = ArrayArgument(np.dtype(np.float64), written=True, optional=True)
NOTES = ArrayArgument(np.dtype(np.int64), written=True, optional=True)  # int64_t *, NULL where nobody listens
EIGHT_BITS = ArrayArgument(np.dtype(np.int8))  # const int8_t *
WHOLE_SUMS = ArrayArgument(np.dtype(np.int32), written=True)  # int32_t *
NOTHING = None  # void

BACKWARD = (NOTHING, SIZE, SIZE, IN, IN, IN, OUT)
LADDER_RUNG = (NOTHING, SIZE, SIZE, SIZE, IN, IN, OUT)
POOLED_RUNG = (STATUS, POOL, SIZE, SIZE, SIZE, IN, IN, OUT)
WHOLE_PRODUCT = (SIZE, SIZE, SIZE, EIGHT_BITS, EIGHT_BITS, WHOLE_SUMS)
CONVOLUTION_RUNG = (STATUS, POOL, STRUCT, SIZE, IN, IN, IN, OUT)

# Compiled once: what it returns, then what it takes.
PLAIN_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "simd_bytes": (SIZE,),
    "pool_create": (POOL, SIZE),
    "pool_destroy": (NOTHING, POOL),
    "pool_threads": (SIZE, POOL),
    "pool_listen": (NOTHING, POOL, NOTES, SIZE),
    "pool_notes": (NOTHING, POOL, SIZE),
    "eight_bits_plain": (NOTHING, *WHOLE_PRODUCT),
    "eight_bits_ordered": (NOTHING, *WHOLE_PRODUCT),
    "eight_bits_has": (INT, SIZE),
    "eight_bits_packed": (STATUS, POOL, SIZE, SIZE, *WHOLE_PRODUCT),
    "eight_bits_peak": (REAL, SIZE, SIZE, WHOLE_SUMS),
}

C_NAMES = {"tanh": "tanh_activation"}
"""Activations whose name math.h has taken."""

# Compiled for float and for double, as name_f32 and name_f64; in the order of groundup.h.
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "peak": (REAL, SIZE, OUT),
    "triad": (STATUS, POOL, SIZE, SIZE, SIZE, REAL, IN, IN, OUT),
    "matmul_ijk": LADDER_RUNG,
    "matmul_ikj": LADDER_RUNG,
    "matmul_blocked": LADDER_RUNG,
    "matmul_restrict": LADDER_RUNG,
    "matmul_packed": POOLED_RUNG,
    "matmul_nn": POOLED_RUNG,
    "matmul_tn": POOLED_RUNG,
    "matmul_nt": POOLED_RUNG,
    **{
        f"{C_NAMES.get(name, name)}{end}": types
        for name in ACTIVATIONS
        for end, types in (("", (NOTHING, SIZE, SIZE, IN, OUT)), ("_backward", BACKWARD))
    },
    "mean_squared_error": (REAL, SIZE, SIZE, IN, IN),
    "mean_squared_error_backward": (NOTHING, SIZE, SIZE, IN, IN, OUT),
    "softmax_cross_entropy": (REAL, SIZE, SIZE, IN, LABELS),
    "softmax_cross_entropy_backward": (NOTHING, SIZE, SIZE, IN, LABELS, OUT),
    "sigmoid_cross_entropy": (REAL, SIZE, SIZE, IN, IN),
    "sigmoid_cross_entropy_backward": (NOTHING, SIZE, SIZE, IN, IN, OUT),
    "hinge": (REAL, SIZE, SIZE, IN, LABELS),
    "hinge_backward": (NOTHING, SIZE, SIZE, IN, LABELS, OUT),
    "softmax_cross_entropy_fused": (REAL, SIZE, SIZE, IN, LABELS, OUT),
    "first_bad_label": (SIZE, SIZE, SIZE, LABELS),
    "dense_forward": (STATUS, POOL, SIZE, SIZE, SIZE, IN, IN, IN, INT, OUT),
    "dense_backward": (STATUS, POOL, SIZE, SIZE, SIZE, IN, IN, IN, OUT, OUT, OUT_OR_NULL),
    "add_bias": (NOTHING, SIZE, SIZE, IN, OUT),
    "column_sums": (NOTHING, SIZE, SIZE, IN, OUT),
    "multiply": (NOTHING, SIZE, IN, IN, OUT),
    "add": (NOTHING, SIZE, IN, IN, OUT),
    "conv2d_direct": (NOTHING, STRUCT, SIZE, IN, IN, IN, OUT),
    "conv2d_im2col": (STATUS, POOL, STRUCT, SIZE, IN, IN, IN, OUT, OUT),
    "conv2d_implicit": CONVOLUTION_RUNG,
    "conv2d_winograd2": CONVOLUTION_RUNG,
    "conv2d_winograd4": CONVOLUTION_RUNG,
    "conv2d_threads": CONVOLUTION_RUNG,
    "conv2d_backward": (STATUS, POOL, STRUCT, SIZE, IN, IN, IN, OUT, OUT, OUT_OR_NULL),
    "max_pool2d": (STATUS, POOL, STRUCT, SIZE, IN, OUT, CLASSES),
    "max_pool2d_backward": (STATUS, POOL, STRUCT, SIZE, IN, LABELS, OUT),
    "average_pool2d": (STATUS, POOL, STRUCT, SIZE, IN, OUT),
    "average_pool2d_backward": (STATUS, POOL, STRUCT, SIZE, IN, OUT),
    "first_bad_index": (SIZE, SIZE, SIZE, LABELS),
    "batch_norm": (
        *(STATUS, POOL, SIZE, SIZE, SIZE, IN, IN, IN, OUT, OUT, INT, REAL, REAL),
        *(DOUBLES_OR_NULL, OUT, DOUBLES, DOUBLES),
    ),
    "batch_norm_backward": (
        *(STATUS, POOL, SIZE, SIZE, SIZE, IN, IN, IN, INT, DOUBLES, DOUBLES, DOUBLES_OR_NULL, OUT_OR_NULL, OUT, OUT),
    ),
    "batch_norm_moments": (STATUS, POOL, SIZE, SIZE, SIZE, IN, DOUBLES),
    "batch_norm_sums": (STATUS, POOL, SIZE, SIZE, SIZE, IN, IN, DOUBLES, DOUBLES),
    "sgd": (NOTHING, SIZE, OUT, IN, OUT_OR_NULL, REAL, REAL, INT, REAL),
    "rmsprop": (NOTHING, SIZE, OUT, IN, OUT, REAL, REAL, REAL, REAL),
    "adam": (NOTHING, SIZE, OUT, IN, OUT, OUT, REAL, REAL, REAL, REAL, REAL, REAL),
    "network_forward": (STATUS, POOL, SIZE, STRUCT, SIZE, IN, ADDRESS, INT, INT),
    "network_backward": (STATUS, POOL, SIZE, STRUCT, SIZE, IN, ADDRESS),
    "network_step": (ROW, POOL, SIZE, STRUCT, INT, SIZE, IN, ADDRESS, ADDRESS, INT, STRUCT, ADDRESS),
    "operation_bytes": (SIZE,),
    "few_images": (SIZE,),
    "optimizer_step_bytes": (SIZE,),
    "predict": (NOTHING, SIZE, SIZE, IN, REAL, CLASSES),
}

_lock = threading.RLock()
_library: ctypes.CDLL | None = None
_pool: int | None = None
_functions: dict[tuple[str, Any], Callable[..., Any]] = {}


def load() -> ctypes.CDLL:
    """The library, built and loaded on the first call.

    Raises what build raises (StageUnavailable with no compiler, CompileError); the next call tries again. Raises
    StageUnavailable where the library has switched off subnormal numbers, which its start-up file does if it was linked
    with crtfastmath.o.
    """
    global _library
    with _lock:
        if _library is None:
            built = build()
            loaded = ctypes.CDLL(str(built.library))
            if _HAD_SUBNORMALS and not _has_subnormals():
                raise unavailable({" ".join(built.compiler.command): NOT_UNDONE})
            _library = loaded
        return _library


def _has_subnormals() -> bool:
    """Whether this thread computes with numbers below float32's smallest normal one, or takes them for 0."""
    with np.errstate(all="ignore"):
        return bool(np.float32(1e-38) * np.float32(1e-3) != 0)


_HAD_SUBNORMALS = _has_subnormals()


def function(name: str, dtype: Any) -> Callable[..., Any]:
    """The C function of this name for this dtype, its types declared: function("relu", "float32") is relu_f32.

    It raises MemoryError where C has none, ValueError where C finds a label out of range, and ctypes.ArgumentError
    for an array that must not cross.
    """
    found = _functions.get((name, dtype))
    if found is None:
        found = _functions[name, dtype] = _declare(name, np.dtype(dtype))
    return found


def plain_function(name: str) -> Callable[..., Any]:
    """The C function of this name that knows no dtype, its types declared: plain_function("simd_bytes")."""
    found = _functions.get((name, None))
    if found is None:
        found = _functions[name, None] = _declare(name, None)
    return found


def pool() -> int:
    """The handle of this process's pool of `thread_count()` threads, made on the first call.

    Raises ValueError for a bad GROUNDUP_THREADS, MemoryError where so many threads cannot be had.
    """
    return _pool if _pool is not None else _make_pool()


def thread_count() -> int:
    """How many threads a pool made now would have: GROUNDUP_THREADS, or as many as there are cores to use.

    Raises ValueError where GROUNDUP_THREADS is not a whole number from 1 to 1024.
    """
    text = os.environ.get("GROUNDUP_THREADS", "").strip()
    if not text:
        return min(usable_cores(), MOST_THREADS)
    if not (text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= MOST_THREADS):
        raise ValueError(
            f"GROUNDUP_THREADS: expected a whole number from 1 to {MOST_THREADS}, got {text!r}; "
            f"unset it to use all {usable_cores()} cores"
        )
    return int(text)


def _declare(name: str, dtype: np.dtype | None) -> Callable[..., Any]:
    if dtype is None:
        exported, (result, *arguments), roles = name, PLAIN_FUNCTIONS[name], {}
    else:
        exported, (result, *arguments) = f"{name}_f{8 * dtype.itemsize}", FUNCTIONS[name]
        roles = {
            IN: ArrayArgument(dtype),
            OUT: ArrayArgument(dtype, written=True),
            OUT_OR_NULL: ArrayArgument(dtype, written=True, optional=True),
        }
    declared: Any = load()[exported]  # by index: a new object, which nobody else can declare otherwise
    declared.argtypes = [roles[argument] if isinstance(argument, str) else argument for argument in arguments]
    if result in (STATUS, ROW):
        declared.restype, declared.errcheck = (INT if result == STATUS else ctypes.c_int64), _check_status
    else:
        declared.restype = result
    return declared


def _check_status(status: int, called: Any, arguments: tuple[Any, ...]) -> int:
    if status > 0:
        raise ValueError(f"{called.__name__}: the label of row {status - 1} is out of range")
    if status < 0:
        raise MemoryError(
            f"{called.__name__}: there is not enough memory for its working space; free some and try again"
        )
    return status


def _make_pool() -> int:
    global _pool
    with _lock:
        if _pool is None:
            threads = thread_count()
            _pool = plain_function("pool_create")(threads)
            if _pool is None:
                raise MemoryError(f"the pool: cannot start {threads} threads; set GROUNDUP_THREADS to a smaller number")
        return _pool


@atexit.register
def _destroy_pool() -> None:
    global _pool
    if threading.active_count() > 1:  # a daemon thread may be inside a call: leave the pool to the system
        return
    with _lock:
        handle, _pool = _pool, None
    if handle is not None:
        plain_function("pool_destroy")(handle)


def _forget_pool_in_child() -> None:
    """A forked child has the pool's memory but none of its threads: it makes its own. The old one is not destroyed,
    because that would wait for threads that do not exist; nor is a lock trusted that another thread may have held."""
    global _lock, _pool
    _lock, _pool = threading.RLock(), None


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    # A fork waits for a thread that loads the library: what that thread imports meanwhile, a child could never import.
    os.register_at_fork(
        before=lambda: _lock.acquire(), after_in_parent=lambda: _lock.release(), after_in_child=_forget_pool_in_child
    )
