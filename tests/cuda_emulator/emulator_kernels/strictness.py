"""Kernels at the edge of what numba-cuda compiles: what it refuses, the emulator should refuse too.

Where the two differ, DIFFERENCES in compatibility/test_real_compiler.py says so, and why.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import float32, njit

from cuda_emulator import cuda

TILE = 8


@dataclass(frozen=True)
class Probe:
    """One kernel and arguments for one block of 32 threads."""

    kernel: Any
    arguments: tuple[Any, ...]


@cuda.jit
def shape_from_argument(n, out):
    values = cuda.shared.array(n, float32)
    values[cuda.threadIdx.x] = 1
    out[cuda.threadIdx.x] = values[cuda.threadIdx.x]


@cuda.jit
def shape_from_local_constant(out):
    size = 32
    values = cuda.shared.array(size, float32)
    values[cuda.threadIdx.x] = 1
    out[cuda.threadIdx.x] = values[cuda.threadIdx.x]


@cuda.jit
def shape_from_expression(out):
    values = cuda.shared.array(TILE * 4, float32)
    values[cuda.threadIdx.x] = 1
    out[cuda.threadIdx.x] = values[cuda.threadIdx.x]


@cuda.jit
def shape_from_tuple_expression(out):
    values = cuda.shared.array((TILE, TILE + 1), float32)
    values[cuda.threadIdx.x % 8, 0] = 1
    out[cuda.threadIdx.x] = values[cuda.threadIdx.x % 8, 0]


@cuda.jit
def local_shape_from_expression(out):
    values = cuda.local.array(TILE + 1, float32)
    values[0] = 1
    out[cuda.threadIdx.x] = values[0]


@cuda.jit
def shape_from_block_dim(out):
    values = cuda.shared.array(cuda.blockDim.x, float32)
    values[cuda.threadIdx.x] = 1
    out[cuda.threadIdx.x] = values[cuda.threadIdx.x]


@cuda.jit
def dtype_as_text(out):
    values = cuda.shared.array(32, "float32")
    values[cuda.threadIdx.x] = 1
    out[cuda.threadIdx.x] = values[cuda.threadIdx.x]


@cuda.jit
def dtype_is_pythons_float(out):
    values = cuda.shared.array(32, float)
    values[cuda.threadIdx.x] = 1
    out[cuda.threadIdx.x] = values[cuda.threadIdx.x]


@cuda.jit
def returns_a_value(out):
    out[cuda.threadIdx.x] = 1
    return out[0]


@cuda.jit
def returns_none(out):
    out[cuda.threadIdx.x] = 1
    return None


@cuda.jit
def count_of_bools(out):
    out[cuda.threadIdx.x] = cuda.syncthreads_count(cuda.threadIdx.x < 7)


@cuda.jit
def makes_a_list(out):
    values = [1, 2, 3]
    out[cuda.threadIdx.x] = values[cuda.threadIdx.x % 3]


@cuda.jit
def makes_a_dictionary(out):
    values = {1: 2}
    out[cuda.threadIdx.x] = values[1]


@cuda.jit
def makes_a_set(out):
    values = {1, 2}
    out[cuda.threadIdx.x] = len(values)


@cuda.jit
def comprehension(out):
    values = [i * i for i in range(4)]
    out[cuda.threadIdx.x] = values[2]


@cuda.jit
def new_numpy_array(out):
    values = np.zeros(4)
    out[cuda.threadIdx.x] = values[0]


@cuda.jit
def numpy_sum(x, out):
    out[cuda.threadIdx.x] = np.sum(x)


@cuda.jit
def array_method(x, out):
    out[cuda.threadIdx.x] = x.sum()


@cuda.jit
def array_arithmetic(x, out):
    y = x + 1
    out[cuda.threadIdx.x] = y[0]


@cuda.jit
def assertion(x, out):
    assert x[0] == x[0]
    out[cuda.threadIdx.x] = x[0]


@cuda.jit
def raising(x, out):
    if x.size == 0:
        raise ValueError("empty")
    out[cuda.threadIdx.x] = x[0]


@cuda.jit
def catching(x, out):
    try:
        out[cuda.threadIdx.x] = x[0]
    except Exception:
        out[cuda.threadIdx.x] = 0


@cuda.jit
def with_statement(x, out):
    with x:
        out[cuda.threadIdx.x] = 1


@cuda.jit
def printing(x, out):
    if cuda.threadIdx.x == 0 and x[0] > 1e30:
        print("large", x[0])
    out[cuda.threadIdx.x] = 1


@cuda.jit
def formatting(x, out):
    text = f"{x.size}"
    out[cuda.threadIdx.x] = len(text)


@cuda.jit
def inner_function(x, out):
    def double(value):
        return 2 * value

    out[cuda.threadIdx.x] = double(x[0])


@cuda.jit
def lambda_function(x, out):
    double = lambda value: 2 * value  # noqa: E731
    out[cuda.threadIdx.x] = double(x[0])


@cuda.jit
def generator_loop(x, out):
    out[cuda.threadIdx.x] = sum(x[i] for i in range(3))


@cuda.jit
def for_else(x, out):
    for i in range(3):
        if x[i] > 1e30:
            break
    else:
        out[cuda.threadIdx.x] = 1


@cuda.jit
def walrus(x, out):
    if (value := x[0]) > -1e30:
        out[cuda.threadIdx.x] = value


@cuda.jit
def starred(x, out):
    first, *_ = x.shape
    out[cuda.threadIdx.x] = first


@cuda.jit
def match_statement(mode, out):
    match mode:
        case 1:
            out[cuda.threadIdx.x] = 1
        case _:
            out[cuda.threadIdx.x] = 2


@cuda.jit
def global_statement(out):
    global TILE
    TILE = 3
    out[cuda.threadIdx.x] = TILE


@cuda.jit
def two_types(x, out):
    value = 1
    if x[0] > 0:
        value = x  # noqa: F841
    out[cuda.threadIdx.x] = 1


@cuda.jit
def unknown_name(out):
    out[cuda.threadIdx.x] = not_defined_anywhere  # noqa: F821


@cuda.jit
def unknown_attribute(out):
    out[cuda.threadIdx.x] = cuda.threadIdx.w


@cuda.jit
def unknown_function(x, out):
    out[cuda.threadIdx.x] = math.lcm(3, 4)


@cuda.jit
def grid_of_four(out):
    out[cuda.threadIdx.x] = cuda.grid(4)


@cuda.jit
def tuple_element(x, out):
    pair = (x[0], 1)
    out[cuda.threadIdx.x] = pair[1]


@cuda.jit
def complex_atomics(x, out):
    cuda.atomic.add(out, 0, x[0])


@cuda.jit
def float_bit_atomics(out):
    cuda.atomic.or_(out, 0, 1)


@cuda.jit
def float_index(x, out):
    out[cuda.threadIdx.x] = x[cuda.threadIdx.x / 1]


@cuda.jit
def too_many_indices(x, out):
    out[cuda.threadIdx.x] = x[0, 0]


@cuda.jit
def writes_a_constant_array(out):
    weights = cuda.const.array_like(WEIGHTS)
    weights[0] = 3
    out[cuda.threadIdx.x] = weights[0]


@cuda.jit
def writes_a_global_array(out):
    WEIGHTS[0] = 3
    out[cuda.threadIdx.x] = WEIGHTS[0]


@cuda.jit
def reads_a_global_array(out):
    out[cuda.threadIdx.x] = WEIGHTS[1]


@cuda.jit
def shape_name_assigned_again(out):
    size = 32
    values = cuda.shared.array(size, float32)
    size = 7
    values[cuda.threadIdx.x] = size
    out[cuda.threadIdx.x] = values[cuda.threadIdx.x]


@cuda.jit
def shared_name_assigned_again(out):
    values = cuda.shared.array(32, float32)
    values[cuda.threadIdx.x] = cuda.threadIdx.x
    cuda.syncthreads()
    values = values[1:]
    out[cuda.threadIdx.x] = values[0]


@cuda.jit
def slice_of_a_new_shared_array(out):
    values = cuda.shared.array(64, float32)[32:]
    values[cuda.threadIdx.x] = 1
    out[cuda.threadIdx.x] = values[cuda.threadIdx.x]


@cuda.jit
def flat_attribute(x, out):
    out[cuda.threadIdx.x] = x.flat[cuda.threadIdx.x]


@cuda.jit
def array_as_index(x, chosen, out):
    picked = x[chosen]
    out[cuda.threadIdx.x] = picked[0]


@cuda.jit(device=True)
def _made_here():
    values = cuda.local.array(4, float32)
    values[0] = 1
    return values


@cuda.jit
def returned_local_array(out):
    values = _made_here()
    out[cuda.threadIdx.x] = values[0]


@njit
def _twice(value):
    return 2 * value


@cuda.jit
def numba_jit_function(x, out):
    out[cuda.threadIdx.x] = _twice(x[cuda.threadIdx.x])


@cuda.jit(device=True)
def _scaled(value, factor=2):
    return factor * value


@cuda.jit
def default_of_a_device_function(x, out):
    out[cuda.threadIdx.x] = _scaled(x[cuda.threadIdx.x])


@cuda.jit
def slice_copied(x, out):
    if cuda.threadIdx.x == 0:
        out[:] = x[:]


@cuda.jit
def ufunc_of_arrays(x, out):
    if cuda.threadIdx.x == 0:
        np.add(x, x, out)


@cuda.jit
def vector_type(out):
    pair = cuda.float2(1, 2)
    out[cuda.threadIdx.x] = pair.x


@cuda.jit
def loop_over_numbers(x, out):
    value = x[cuda.threadIdx.x]
    for offset in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, offset)
    out[cuda.threadIdx.x] = value


@cuda.jit
def loop_over_mixed_numbers(out):
    for value in (1, 2.5):
        out[cuda.threadIdx.x] += value


@cuda.jit
def adds_to_a_record(points, out):
    points[cuda.threadIdx.x].mass += 1
    out[cuda.threadIdx.x] = points[cuda.threadIdx.x].mass


@cuda.jit
def floating_remainder(x, out):
    out[cuda.threadIdx.x] = math.fmod(x[cuda.threadIdx.x], 3.0)


@cuda.jit
def power_with_negative_exponent(x, out):
    out[cuda.threadIdx.x] = (x[cuda.threadIdx.x] + 1) ** -2


WEIGHTS = np.arange(4, dtype=np.float32)


def probes() -> dict[str, Probe]:
    """Every probe by its kernel's name."""
    x = np.arange(32, dtype=np.float32)
    points = np.zeros(32, [("place", np.float32), ("mass", np.float32)])
    first: dict[str, Any] = {"n": 32, "mode": 1, "x": x, "chosen": np.array([3, 1]), "points": points}
    found = {}
    for name, kernel in list(globals().items()):
        function = getattr(kernel, "py_func", None)
        if function is None or name.startswith("_"):
            continue
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        dtype = np.int32 if name == "count_of_bools" else np.float32
        arguments = tuple(np.zeros(32, dtype) if each == "out" else first[each] for each in names)
        found[name] = Probe(kernel, arguments)
    plain = np.zeros(32, np.complex64)
    found["complex_atomics"] = Probe(found["complex_atomics"].kernel, (plain, plain.copy()))
    found["list_argument"] = Probe(numpy_sum, ([1.0, 2.0], np.zeros(32, np.float32)))
    found["text_argument"] = Probe(numpy_sum, ("abc", np.zeros(32, np.float32)))
    found["none_argument"] = Probe(returns_none, (None,))
    found["tuple_argument"] = Probe(tuple_element, ((2.0, 3.0), np.zeros(32, np.float32)))
    found["float16_argument"] = Probe(assertion, (x.astype(np.float16), np.zeros(32, np.float32)))
    found["object_argument"] = Probe(returns_none, (np.array([None, 1]),))
    found["boolean_argument"] = Probe(shape_from_argument, (True, np.zeros(32, np.float32)))
    found["datetime_argument"] = Probe(returns_none, (np.zeros(3, "datetime64[s]"),))
    return found
