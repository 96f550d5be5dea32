"""That `make test-sanitized` tests what it says: the library in use is sanitized, and an error in it ends the run.

Without these, a build that quietly lost its sanitizers would pass every test.
"""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stage3_c import build, library

SANITIZERS = os.environ.get("GROUNDUP_SANITIZE", "")

pytestmark = pytest.mark.skipif(
    "address" not in SANITIZERS or "undefined" not in SANITIZERS,
    reason="GROUNDUP_SANITIZE is not address,undefined: `make test-sanitized` sets it",
)

READ_BEYOND = """
import numpy as np
from stage3_c import library
relu = library.function("relu", np.float32)
z, output = np.zeros(1000, np.float32), np.zeros(1001, np.float32)
relu(1, 1000, z, output)
print("within bounds", flush=True)
relu(1, 1001, z, output)
"""

MISALIGNED = """
import ctypes
import numpy as np
from stage3_c import library
relu = library.load()["relu_f32"]
relu.argtypes = [ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p]
z, output = np.zeros(11, np.float32), np.zeros(10, np.float32)
relu(1, 10, z.ctypes.data, output.ctypes.data)
print("aligned", flush=True)
relu(1, 10, z.ctypes.data + 1, output.ctypes.data)
"""


def test_the_library_that_is_loaded_is_the_sanitized_one() -> None:
    path = Path(library.load()._name)
    assert path == build.build().library
    assert f"-fsanitize={SANITIZERS}" in build.build().flags
    assert str(path) in Path("/proc/self/maps").read_text()
    content = path.read_bytes()
    assert b"__asan_report" in content
    assert b"__ubsan_handle" in content


def test_the_runtime_of_the_sanitizers_is_in_this_process() -> None:
    assert ctypes.CDLL(None)["__asan_init"]
    assert ctypes.CDLL(None)["__ubsan_handle_add_overflow"]


def test_a_call_that_reads_out_of_bounds_ends_the_process_with_a_report() -> None:
    result = run(READ_BEYOND)
    assert result.stdout == "within bounds\n"
    assert result.returncode != 0
    assert "AddressSanitizer: heap-buffer-overflow" in result.stderr
    assert "relu_f32" in result.stderr


def test_a_misaligned_address_ends_the_process_with_a_report() -> None:
    result = run(MISALIGNED)
    assert result.stdout == "aligned\n"
    assert result.returncode != 0
    assert "runtime error: load of misaligned address" in result.stderr


def run(program: str) -> subprocess.CompletedProcess[str]:
    """Run it as this process runs, its reports going to stderr."""
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": ""}
    return subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False, timeout=120
    )
