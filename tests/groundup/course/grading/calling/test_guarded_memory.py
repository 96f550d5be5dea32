"""Memory that may not be read, and memory that is not freed."""

import ctypes
import faulthandler
import os
import sys

import numpy as np
import pytest

from groundup.course.grading.calling import guarded_memory

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="no mprotect and no fork here")


def ends_by(read: int, behind: bool) -> int:
    """The signal that ends a process which reads this byte of a guarded array of 24 bytes; 0 if none does."""
    values = guarded_memory.guarded(0, np.arange(3.0), behind)
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        ctypes.string_at(values.ctypes.data + read, 1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@POSIX
@pytest.mark.parametrize(
    ("read", "behind", "crashes"),
    [(0, True, False), (23, True, False), (24, True, True), (0, False, False), (-1, False, True)],
)
def test_a_byte_outside_a_guarded_array_may_not_be_read(read: int, behind: bool, crashes: bool) -> None:
    assert (ends_by(read, behind) != 0) == crashes


@POSIX
def test_a_guarded_array_has_the_values_and_a_larger_one_takes_more_pages() -> None:
    for size in (3, 70_000, 5):
        values = np.random.default_rng(1).standard_normal((size, 2))
        assert np.array_equal(guarded_memory.guarded(1, values, behind=True), values)


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="this C library does not count its memory")
def test_calls_that_free_nothing_leak() -> None:
    malloc, free = ctypes.CDLL(None).malloc, ctypes.CDLL(None).free
    malloc.restype, free.argtypes = ctypes.c_void_p, (ctypes.c_void_p,)
    kept = []
    assert guarded_memory.leaks(lambda: kept.append(malloc(1000))) >= 1000
    assert guarded_memory.leaks(lambda: free(malloc(1000))) == 0
    assert guarded_memory.leaks(lambda: None) == 0
