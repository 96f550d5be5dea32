"""Kernels at the edge of what numba-cuda compiles: what it refuses, the emulator should refuse too.

Where the two differ, compatibility/test_real_compiler.py says so, and why.
"""

from __future__ import annotations

import linecache
import math
import textwrap
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import float32, njit

from cuda_emulator import cuda


@cuda.jit(device=True)
def made_here():
    values = cuda.local.array(4, float32)
    values[0] = 1
    return values


@njit
def twice(value):
    return 2 * value


@cuda.jit(device=True)
def scaled(value, factor=2):
    return factor * value


BODIES = {
    "shape_from_argument": "values = cuda.shared.array(n, float32)\nvalues[i] = 1\nout[i] = values[i]",
    "shape_from_local_constant": (
        "size = 32\nvalues = cuda.shared.array(size, float32)\nvalues[i] = 1\nout[i] = values[i]"
    ),
    "shape_from_expression": "values = cuda.shared.array(TILE * 4, float32)\nvalues[i] = 1\nout[i] = values[i]",
    "shape_from_tuple_expression": (
        "values = cuda.shared.array((TILE, TILE + 1), float32)\nvalues[i % 8, 0] = 1\nout[i] = values[i % 8, 0]"
    ),
    "local_shape_from_expression": "values = cuda.local.array(TILE + 1, float32)\nvalues[0] = 1\nout[i] = values[0]",
    "shape_from_block_dim": "values = cuda.shared.array(cuda.blockDim.x, float32)\nvalues[i] = 1\nout[i] = values[i]",
    "dtype_as_text": 'values = cuda.shared.array(32, "float32")\nvalues[i] = 1\nout[i] = values[i]',
    "dtype_is_pythons_float": "values = cuda.shared.array(32, float)\nvalues[i] = 1\nout[i] = values[i]",
    "returns_a_value": "out[i] = 1\nreturn out[0]",
    "returns_none": "out[i] = 1\nreturn None",
    "count_of_bools": "out[i] = cuda.syncthreads_count(i < 7)",
    "makes_a_list": "values = [1, 2, 3]\nout[i] = values[i % 3]",
    "makes_a_dictionary": "values = {1: 2}\nout[i] = values[1]",
    "makes_a_set": "values = {1, 2}\nout[i] = len(values)",
    "comprehension": "values = [i * i for i in range(4)]\nout[i] = values[2]",
    "new_numpy_array": "values = np.zeros(4)\nout[i] = values[0]",
    "numpy_sum": "out[i] = np.sum(x)",
    "array_method": "out[i] = x.sum()",
    "array_arithmetic": "y = x + 1\nout[i] = y[0]",
    "assertion": "assert x[0] == x[0]\nout[i] = x[0]",
    "raising": 'if x.size == 0:\n    raise ValueError("empty")\nout[i] = x[0]',
    "catching": "try:\n    out[i] = x[0]\nexcept Exception:\n    out[i] = 0",
    "with_statement": "with x:\n    out[i] = 1",
    "printing": 'if i == 0 and x[0] > 1e30:\n    print("large", x[0])\nout[i] = 1',
    "formatting": 'text = f"{x.size}"\nout[i] = len(text)',
    "inner_function": "def double(value):\n    return 2 * value\nout[i] = double(x[0])",
    "lambda_function": "double = lambda value: 2 * value\nout[i] = double(x[0])",
    "generator_loop": "out[i] = sum(x[i] for i in range(3))",
    "for_else": "for i in range(3):\n    if x[i] > 1e30:\n        break\nelse:\n    out[i] = 1",
    "walrus": "if (value := x[0]) > -1e30:\n    out[i] = value",
    "starred": "first, *_ = x.shape\nout[i] = first",
    "match_statement": "match mode:\n    case 1:\n        out[i] = 1\n    case _:\n        out[i] = 2",
    "global_statement": "global TILE\nTILE = 3\nout[i] = TILE",
    "two_types": "value = 1\nif x[0] > 0:\n    value = x\nout[i] = 1",
    "unknown_name": "out[i] = not_defined_anywhere",
    "unknown_attribute": "out[i] = cuda.threadIdx.w",
    "unknown_function": "out[i] = math.lcm(3, 4)",
    "grid_of_four": "out[i] = cuda.grid(4)",
    "tuple_element": "pair = (x[0], 1)\nout[i] = pair[1]",
    "complex_atomics": "cuda.atomic.add(out, 0, x[0])",
    "float_bit_atomics": "cuda.atomic.or_(out, 0, 1)",
    "float_index": "out[i] = x[i / 1]",
    "too_many_indices": "out[i] = x[0, 0]",
    "writes_a_constant_array": "weights = cuda.const.array_like(WEIGHTS)\nweights[0] = 3\nout[i] = weights[0]",
    "writes_a_global_array": "WEIGHTS[0] = 3\nout[i] = WEIGHTS[0]",
    "reads_a_global_array": "out[i] = WEIGHTS[1]",
    "shape_name_assigned_again": (
        "size = 32\nvalues = cuda.shared.array(size, float32)\nsize = 7\nvalues[i] = size\nout[i] = values[i]"
    ),
    "shared_name_assigned_again": (
        "values = cuda.shared.array(32, float32)\nvalues[i] = i\n"
        "cuda.syncthreads()\nvalues = values[1:]\nout[i] = values[0]"
    ),
    "slice_of_a_new_shared_array": "values = cuda.shared.array(64, float32)[32:]\nvalues[i] = 1\nout[i] = values[i]",
    "flat_attribute": "out[i] = x.flat[i]",
    "array_as_index": "picked = x[chosen]\nout[i] = picked[0]",
    "returned_local_array": "values = made_here()\nout[i] = values[0]",
    "numba_jit_function": "out[i] = twice(x[i])",
    "default_of_a_device_function": "out[i] = scaled(x[i])",
    "slice_copied": "if i == 0:\n    out[:] = x[:]",
    "ufunc_of_arrays": "if i == 0:\n    np.add(x, x, out)",
    "vector_type": "pair = cuda.float2(1, 2)\nout[i] = pair.x",
    "loop_over_numbers": (
        "value = x[i]\nfor offset in (16, 8, 4, 2, 1):\n"
        "    value += cuda.shfl_down_sync(0xFFFFFFFF, value, offset)\nout[i] = value"
    ),
    "loop_over_mixed_numbers": "for value in (1, 2.5):\n    out[i] += value",
    "adds_to_a_record": "points[i].mass += 1\nout[i] = points[i].mass",
    "floating_remainder": "out[i] = math.fmod(x[i], 3.0)",
    "power_with_negative_exponent": "out[i] = (x[i] + 1) ** (-2)",
    "list_argument": "out[i] = np.sum(x)",
    "text_argument": "out[i] = np.sum(x)",
    "none_argument": "x[i] = 1",
    "tuple_argument": "out[i] = x[1]",
    "float16_argument": "out[i] = x[0]",
    "object_argument": "x[i] = 1",
    "boolean_argument": "values = cuda.shared.array(x, float32)\nvalues[i] = 1\nout[i] = values[i]",
    "datetime_argument": "x[i] = 1",
}
"""What each probe does in thread i."""

X: dict[str, Any] = {
    "complex_atomics": np.zeros(32, np.complex64),
    "list_argument": [1.0, 2.0],
    "text_argument": "abc",
    "none_argument": None,
    "tuple_argument": (2.0, 3.0),
    "float16_argument": np.arange(32, dtype=np.float16),
    "object_argument": np.array([None, 1]),
    "boolean_argument": True,
    "datetime_argument": np.zeros(3, "datetime64[s]"),
}
"""The argument x where it is not 0, 1, 2, ..., 31 in float32."""
OUT = {"complex_atomics": np.complex64, "count_of_bools": np.int32}


@dataclass(frozen=True)
class Probe:
    """One kernel and arguments for one block of 32 threads."""

    kernel: Any
    arguments: tuple[Any, ...]


def kernel_of(name: str) -> Any:
    """The kernel with that body, whose text the emulator finds."""
    body = textwrap.indent(f"i = cuda.threadIdx.x\n{BODIES[name]}", "    ")
    text, filename = f"def {name}(x, n, mode, chosen, points, out):\n{body}\n", f"<probe {name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    weights = np.arange(4, dtype=np.float32)
    scope = {"cuda": cuda, "np": np, "math": math, "float32": float32, "TILE": 8, "WEIGHTS": weights}
    scope |= {"made_here": made_here, "twice": twice, "scaled": scaled}
    exec(compile(text, filename, "exec"), scope)
    return cuda.jit(scope[name])


def probes() -> dict[str, Probe]:
    """Every probe by its name."""
    points = np.zeros(32, [("place", np.float32), ("mass", np.float32)])
    found = {}
    for name in BODIES:
        x = X.get(name, np.arange(32, dtype=np.float32))
        out = np.zeros(32, OUT.get(name, np.float32))
        found[name] = Probe(kernel_of(name), (x, 32, 1, np.array([3, 1]), points, out))
    return found
