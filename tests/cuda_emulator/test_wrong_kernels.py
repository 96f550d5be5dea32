"""No kernel, however wrong, takes the process down: each is refused with its line, or gives some number.

They are launched in a process of their own, this file as a program: if the emulator lets one through, it dies,
and the last name on standard error says which.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numba import float64, int64, uint64

from cuda_emulator import cuda
from tests.cuda_emulator.emulator_steps import device, function
from tests.wide import wide

ROOT = Path(__file__).resolve().parents[2]
FAR = 10**9
POINT = np.dtype([("x", np.float64), ("counts", np.int64, (3,))], align=True)
VECTOR, MATRIX, COUNTS, TABLE = np.ones(4), np.ones((4, 4)), np.zeros(4, np.int64), np.zeros((4, 4), np.int64)

OUT_OF_BOUNDS = r"KernelError: <kernel \d+>:\d+: .* is out of bounds"
NUMBAS_OWN = r"KernelError: .*(IndexError|out of bounds)"
NOT_SUPPORTED = r"KernelError: .*not supported by the emulator|IndexError"

KERNELS: list[tuple[str, np.ndarray, Any, str]] = [
    # body, a, i, what is said
    ("a[i] = 1", VECTOR, FAR, OUT_OF_BOUNDS),
    ("a[i] = 1", VECTOR, -FAR, OUT_OF_BOUNDS),
    ("a[i] = 1", VECTOR, np.uint64(2**64 - 1), OUT_OF_BOUNDS),
    ("a[i - uint64(1)] = 1", VECTOR, np.uint64(0), OUT_OF_BOUNDS),
    ("a[0] = a[i]", np.zeros(0), FAR, OUT_OF_BOUNDS),
    ("a[0][i] = 1", MATRIX, FAR, OUT_OF_BOUNDS),
    ("place = (i, 0)\na[place] = 1", MATRIX, FAR, OUT_OF_BOUNDS),
    ("part = a[i, :]\no[0] = part[0]", MATRIX, FAR, OUT_OF_BOUNDS),
    ("a[0:2, i] = 5.0", MATRIX, FAR, OUT_OF_BOUNDS),
    ("place = (i, slice(0, 2))\na[place] = 5.0", MATRIX, FAR, OUT_OF_BOUNDS),
    ("a[i, ...] = 5.0", MATRIX, FAR, NUMBAS_OWN),
    ("part = a[None, i]\no[0] = part[0, 0]", MATRIX, FAR, NUMBAS_OWN),
    ("a.T[i, 0] = 1", MATRIX, FAR, NUMBAS_OWN),
    ("a[1:][i] = 1", VECTOR, FAR, NUMBAS_OWN),
    ("a.flat[i] = 5.0", VECTOR, FAR, NOT_SUPPORTED),
    ("a[i] = 3.0", VECTOR, np.array([FAR, FAR]), NOT_SUPPORTED),
    ("b = a\n(a if i > 0 else b)[i] = 1", VECTOR, FAR, NOT_SUPPORTED),
    ("s = cuda.shared.array(10000, float32)\ns = a\ns[9000] = 1", VECTOR, FAR, OUT_OF_BOUNDS),
    # Whatever the conversion gives; if that is an index, it is written to.
    ("k = int(1e30)\na[k] = 7", VECTOR, FAR, OUT_OF_BOUNDS + "|^$"),
    ("a[i].x = 1.0", np.zeros(4, POINT), FAR, OUT_OF_BOUNDS),
    ("a[0].counts[i] = 1", np.zeros(4, POINT), FAR, NUMBAS_OWN),
    ("cuda.atomic.add(a, i, 1)", COUNTS, FAR, OUT_OF_BOUNDS),
    ("cuda.atomic.add(a[0], i, 1)", TABLE, FAR, OUT_OF_BOUNDS),
    ("cuda.atomic.add(a[1:], i, 1)", COUNTS, FAR, OUT_OF_BOUNDS),
    ("cuda.atomic.compare_and_swap(a, 0, 1)", COUNTS[:0], FAR, OUT_OF_BOUNDS),
    ("s = cuda.shared.array(8, float64)\ns[i] = 1\ncuda.syncthreads()\no[0] = s[0]", VECTOR, FAR, OUT_OF_BOUNDS),
    ("s = cuda.shared.array(0, float64)\ns[0] = 1\no[0] = s[0]", VECTOR, FAR, OUT_OF_BOUNDS),
    ("own = cuda.local.array((2, 3), float32)\nown[i, 0] = 1\no[0] = own[0, 0]", VECTOR, FAR, OUT_OF_BOUNDS),
    (
        "own = cuda.local.array((2, 3), float32)\nown[0, 0] = 1\ncuda.syncthreads()\npart = own[i, :]\no[0] = part[0]",
        *(VECTOR, FAR, OUT_OF_BOUNDS),
    ),
    (
        "own = cuda.local.array((2**32, 2**32), float64)\nown[0, 0] = 1\no[0] = own[0, 0]",
        *(VECTOR, FAR, r"KernelError: .* bytes of every thread's local memory"),
    ),
    ("a[0] = first_of(a, i)", VECTOR, FAR, OUT_OF_BOUNDS),
    ("a[0, 0] = row_of(a, i)", MATRIX, FAR, OUT_OF_BOUNDS),
    ("a[0, 0] = counted(a, i)", TABLE, FAR, OUT_OF_BOUNDS),
    ("n = int64(o[0]) - 1\no[0] = 5 // n + 5 % n + i // (n - 1)", VECTOR, FAR, "^$"),
]


def told(kernel: Any, *arguments: Any) -> str:
    """What a launch says; "" where it says nothing."""
    try:
        kernel[1, 1](*(each.copy() if isinstance(each, np.ndarray) else each for each in arguments))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def main() -> None:
    """Launch them all, each twice: the second launch of a kernel takes another way."""
    warnings.simplefilter("ignore")
    names = {
        "first_of": device("return array[i]", "array, i", name="first_of"),
        "row_of": device("row = array[i, :]\nreturn row[0]", "array, i", name="row_of"),
        "counted": device("return cuda.atomic.add(array[0], i, 1)", "array, i", name="counted"),
        "float64": float64,
        "int64": int64,
        "uint64": uint64,
    }
    answers = []
    for body, a, i, _ in KERNELS:
        print(body, file=sys.stderr, flush=True)
        kernel = cuda.jit(function(body, "a, o, i", **names))
        answers.append(told(kernel, a, VECTOR, i))
        assert told(kernel, a, VECTOR, i) == answers[-1]
    print(json.dumps(answers))


@wide
def test_every_wrong_kernel_is_told_what_is_wrong() -> None:
    finished = subprocess.run(
        [sys.executable, "-m", __name__], capture_output=True, text=True, check=False, timeout=300, cwd=ROOT
    )
    assert finished.returncode == 0, f"the process ended with {finished.returncode} at {finished.stderr[-300:]}"
    answers = json.loads(finished.stdout.splitlines()[-1])
    unexpected = {
        body: said
        for (body, _, _, expected), said in zip(KERNELS, answers, strict=True)
        if not re.search(expected, said, flags=re.DOTALL)
    }
    assert not unexpected


if __name__ == "__main__":
    main()
