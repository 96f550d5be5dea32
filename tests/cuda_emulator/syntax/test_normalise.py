"""Step 2 of the compiler: each row of normalise.py's table, the order of evaluation, and what is refused, and where."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numba import types

from cuda_emulator import cuda
from tests.cuda_emulator.emulator_steps import device, expected, normal_form, refused, text

TILE = 16
NAMES: dict[str, Any] = {"TILE": TILE, "config": SimpleNamespace(TILE=8), "math": math, "types": types}

PLAIN = [
    ("x = cuda.threadIdx.x", "x = _tx"),
    ("x = cuda.blockIdx.y * cuda.blockDim.z + cuda.gridDim.x", "x = _by * _bdz + _gdx"),
    ("i = cuda.grid(1)", "i = _bx * _bdx + _tx"),
    ("x, y = cuda.grid(2)", "x = _bx * _bdx + _tx\ny = _by * _bdy + _ty"),
    ("step = cuda.gridsize(1)", "step = _gdx * _bdx"),
    ("lane = cuda.laneid % cuda.warpsize", "lane = _lane % 32"),
    ("x = TILE * config.TILE", "x = 16 * 8"),
    ("x = float32(1)", "x = np.float32(1)"),
    ("x = math.sqrt(2.0) + math.inf", "x = math.sqrt(2.0) + np.inf"),
    ("M, K = A.shape", "M = A.shape[0]\nK = A.shape[1]"),
    ("n += 2", "n = n + 2"),
    ("A[n] += 2", "A[n] = A[n] + 2"),
    ("A[out[n]] += 2", "_index1 = out[n]\nA[_index1] = A[_index1] + 2"),
    ("A[n].x += 2", "A[n].x = A[n].x + 2"),
    ("A[out[n]].x += 2", "_index1 = out[n]\nA[_index1].x = A[_index1].x + 2"),
    ("a, b = 1, 2", "a = 1\nb = 2"),
    (
        "a, b = 1, 2\na, b = b, a",
        "a = 1\nb = 2\n_value1 = b\n_value2 = a\na = _value1\nb = _value2",
    ),
    ("a = b = n", "_value1 = n\na = _value1\nb = _value1"),
    ("x: int32 = 3\ny: int32", "x = 3"),
    ("'a docstring'\npass\n1\nn", "pass"),
    ("cuda.threadfence()", "pass"),
    ("if n:\n    return\n    n = 1\nout[0] = n", "if n:\n    return\nout[0] = n"),
    ("old = cuda.atomic.add(A, (0, 1), n)", "old = _atomic_add(A, (0, 1), n)"),
    ("x = cuda.popc(n) + cuda.fma(n, n, n)", "x = _popc(n) + _fma(n, n, n)"),
    ("x = cuda.brev(cuda.threadIdx.x)", "x = _brev(np.int32(_tx))"),
    ("assert n > 0, 'no elements'", "if not n > 0:\n    _raise(0)"),
    ("raise ValueError(n)", "_raise(0)"),
    ("_hidden = n", "u_hidden = n"),
    ("math = n", "math_ = n"),
]


@pytest.mark.parametrize(("written", "normal"), PLAIN, ids=[written.replace("\n", "; ") for written, _ in PLAIN])
def test_what_the_learner_writes_becomes(written: str, normal: str) -> None:
    names = {name: value for name, value in NAMES.items() if f"{name} =" not in written}
    assert text(normal_form(written, **names).body) == normal


def test_however_cuda_is_imported() -> None:
    unit = normal_form(
        "i = grid(1)\nsyncthreads()\nadd(A, 0, i)", grid=cuda.grid, syncthreads=cuda.syncthreads, add=cuda.atomic.add
    )
    assert text(unit.body) == "i = _bx * _bdx + _tx\nsyncthreads()\n_atomic_add(A, 0, i)"


def test_a_global_array_becomes_a_hidden_argument_frozen_as_it_is_now() -> None:
    weights = np.arange(3.0)
    unit = normal_form("out[0] = weights[1]", weights=weights)
    weights[1] = 9
    (name,) = unit.constants
    assert text(unit.body) == f"out[0] = {name}[1]"
    assert unit.constants[name].tolist() == [0, 1, 2]
    assert not unit.constants[name].flags.writeable
    assert unit.learners_name(name) == "weights"


def test_arrays_are_entries_in_tables_and_no_statements() -> None:
    unit = normal_form(
        """
        tile = cuda.shared.array((TILE, TILE + 1), float32)
        more = cuda.shared.array(0, dtype=int32)
        mine = cuda.local.array(shape=4, dtype=np.float64)
        """,
        **NAMES,
    )
    assert text(unit.body) == "pass"
    assert {name: (a.shape, a.dtype, a.line) for name, a in unit.shared.items()} == {
        "tile": ((16, 17), np.float32, 2),
        "more": ((0,), np.int32, 3),
    }
    assert unit.local["mine"].nbytes == 32
    assert unit.shared_bytes == 16 * 17 * 4


# ---- Collectives leave their expressions.


def test_a_collective_is_a_statement_of_its_own() -> None:
    unit = normal_form("v = 1.5\nv += cuda.shfl_down_sync(0xFFFFFFFF, v, 4) * 2\ncuda.syncthreads()")
    assert text(unit.body) == expected(
        """
        v = 1.5
        _operand1 = v
        _result1 = shfl_down_sync(4294967295, _operand1, 4)
        v = v + _result1 * 2
        syncthreads()
        """
    )


def test_what_reads_memory_before_a_collective_is_read_before_it() -> None:
    unit = normal_form("out[0] = n + A[0] + cuda.syncthreads_count(n) + A[1]")
    assert text(unit.body) == expected(
        """
        _saved1 = n + A[0]
        _operand1 = n
        _result1 = syncthreads_count(_operand1)
        out[0] = _saved1 + _result1 + A[1]
        """
    )


def test_an_element_is_read_before_the_collective_that_is_added_to_it() -> None:
    unit = normal_form("out[0] += cuda.syncthreads_count(n)")
    assert text(unit.body) == expected(
        """
        _saved1 = out[0]
        _operand1 = n
        _result1 = syncthreads_count(_operand1)
        out[0] = _saved1 + _result1
        """
    )


def test_the_value_is_evaluated_before_the_index_it_is_stored_at() -> None:
    unit = normal_form("out[cuda.syncthreads_count(n)] = A[0]")
    assert text(unit.body) == expected(
        """
        _saved1 = A[0]
        _operand1 = n
        _result1 = syncthreads_count(_operand1)
        out[_result1] = _saved1
        """
    )


def test_arguments_of_a_call_keep_their_order() -> None:
    unit = normal_form("x = min(A[0], cuda.syncthreads_or(n), cuda.atomic.add(A, 0, 1), cuda.syncthreads_and(n))")
    assert text(unit.body) == expected(
        """
        _saved1 = A[0]
        _operand1 = n
        _result1 = syncthreads_or(_operand1)
        _saved2 = _atomic_add(A, 0, 1)
        _operand2 = n
        _result2 = syncthreads_and(_operand2)
        x = min(_saved1, _result1, _saved2, _result2)
        """
    )


def test_the_test_of_a_while_with_a_collective_is_a_statement_of_its_body() -> None:
    unit = normal_form("while cuda.syncthreads_or(n):\n    n -= 1")
    assert text(unit.body) == expected(
        """
        while True:
            _operand1 = n
            _result1 = syncthreads_or(_operand1)
            if not _result1:
                break
            n = n - 1
        """
    )


def test_a_match_has_two_results() -> None:
    unit = normal_form("mask, same = cuda.match_all_sync(n, 3)")
    assert text(unit.body).splitlines()[-3:] == [
        "_result1, _result2 = match_all_sync(_operand1, _operand2)",
        "mask = _result1",
        "same = _result2",
    ]


# ---- Device functions.


def test_a_device_function_that_synchronises_is_put_in_place() -> None:
    total = device("x = x + 1\ny = x * cuda.syncthreads_count(x)\nreturn y", name="total")
    unit = normal_form("out[0] = A[0] + total(n)", total=total)
    assert text(unit.body) == expected(
        """
        _saved1 = A[0]
        total1_x = n
        total1_x = total1_x + 1
        _operand1 = total1_x
        _result1 = syncthreads_count(_operand1)
        total1_y = total1_x * _result1
        total1_result = total1_y
        out[0] = _saved1 + total1_result
        """
    )
    assert unit.learners_name("total1_y") == "y"


def test_its_arrays_are_the_callers_arrays_and_its_variables_new_each_time() -> None:
    fill = device("v = values[0]\ncuda.syncthreads()\nvalues[0] = v", "values", name="fill")
    unit = normal_form("fill(A)\nfill(values=out)", fill=fill)
    assert text(unit.body) == expected(
        """
        fill1_v = A[0]
        syncthreads()
        A[0] = fill1_v
        fill2_v = out[0]
        syncthreads()
        out[0] = fill2_v
        """
    )


def test_a_plain_device_function_stays_a_function() -> None:
    square = device("return x * x", name="square")
    unit = normal_form("out[0] = square(x=n) + square(2)", square=square)
    assert text(unit.body) == "out[0] = _device_square(n) + _device_square(2)"
    assert unit.device_functions == {"_device_square": square}


# ---- Refusals: each with its message and line.

EXPRESSIONS = [
    ("x = [1, 2]", "a device has no lists; use a tuple, or cuda.local.array"),
    ("x = [i for i in range(3)]", "a device has no lists; use a loop"),
    ("x = {1: 2}", "a device has no dictionaries"),
    ("x = (lambda: 1)()", "a lambda that is used at once is not supported by the emulator; give it a name, and call"),
    ("print(f'{n}')", "f-strings are not supported in a kernel; give print several arguments"),
    ("x = (y := n)", "':=' is not supported by the emulator; assign in a statement of its own"),
    ("x = (yield n)", "Yield is not supported by the emulator"),
    ("x = missing", "the name 'missing' is not defined"),
    ("x = config.SIZE", "'config' has no attribute 'SIZE'"),
    ("x = table", "'table' is a dict; a kernel can use numbers, tuples of them"),
    ("x = plain(n)", "'plain' is a plain Python function; a kernel can call it once it is marked"),
    ("x = helper", "'helper' is a device function: call it; it cannot be stored or passed as an argument"),
    ("x = helper(1, 2)", "helper() takes 1 arguments (x), got 2"),
    ("x = helper(y=1)", "helper() has no argument 'y', or it is given twice"),
    ("kernel_beside[1, 1](n)", "a kernel cannot launch a kernel; called without [blocks, threads]"),
    ("x = words[0]", "'words' is an array of <U3; a kernel can use numbers"),
    ("x = cuda.threadIdx", "cuda.threadIdx has the fields .x, .y and .z: use one of them"),
    ("x = cuda.threadIdx()", "cuda.threadIdx is not a function; write cuda.threadIdx.x"),
    ("g = cuda.cg.this_grid(); g.thread_rank()", "cuda.cg.this_grid().thread_rank() is not supported by the emulator"),
    ("g = cuda.cg.this_block()", "cuda.cg.this_block() is not supported by the emulator"),
    ("cuda.cg.this_grid(1).sync()", "cuda.cg.this_grid() takes no arguments"),
    ("cuda.cg.this_grid().sync(1)", "cuda.cg.this_grid().sync() takes 0 arguments, got 1"),
    ("x = 1 if n else cuda.cg.this_grid().sync()", "cuda.cg.this_grid().sync() inside 'a if c else b'"),
    ("x = cuda.fp16.hadd(n)", "cuda.fp16.hadd() takes 2 arguments, got 1"),
    ("x = cuda.fp16.atomicAdd(A, n)", "cuda.fp16.atomicAdd() is not supported by the emulator"),
    ("for i in cuda.literal_unroll(A): pass", "literal_unroll() takes a tuple in the emulator"),
    ("for i in cuda.literal_unroll((1, 2.0)): break", "break and continue are not supported by the emulator in"),
    ("x = cuda.grid(n)", "cuda.grid() takes the number of dimensions: 1, 2 or 3, written as a constant"),
    ("cuda.atomic.add(A, n)", "cuda.atomic.add() takes 3 arguments, got 2"),
    ("x = cuda.popc(x=n)", "cuda.popc() takes its arguments by position in the emulator"),
    ("cuda.syncthreads(1)", "cuda.syncthreads() takes 0 arguments, got 1"),
    ("x = cuda.ballot_sync(n)", "cuda.ballot_sync() takes 2 arguments, got 1"),
    ("cuda.syncwarp(1, 2)", "cuda.syncwarp() takes 0 or 1 arguments, got 2"),
    ("x = cuda.syncthreads_or(n) if n else 0", "cuda.syncthreads_or() inside 'a if c else b', 'and' or 'or'"),
    ("x = n or waiting(n)", "'waiting' synchronises, so a call inside 'a if c else b', 'and' or 'or'"),
]  # fmt: skip
STATEMENTS = [
    ("n = 1\ntry:  # here\n    n = 2\nexcept ValueError:\n    pass", "try is not supported by the emulator"),
    ("with n:\n    pass", "with is not supported by the emulator inside a kernel"),
    ("def inner():\n    pass\nx = inner  # here", "'inner' is a device function: call it; it cannot be stored"),
    ("def inner():\n    pass\ninner = 1", "'inner' is defined in the kernel and assigned again: that is not supported"),
    ("def inner(v=1):\n    return v\nx = inner()", "'inner' has default values inside a kernel: that is not supported"),
    ("class Inner:\n    pass", "class is not supported"),
    ("del n", "del is not supported"),
    ("from os import path", "import is not supported"),
    ("global TILE", "global is not supported"),
    ("match n:\n    case 1:\n        pass", "match is not supported"),
    ("if n:\n    return n  # here", "a kernel cannot return a value: write it into an array that you pass in"),
    ("a, *b = A", "'*b' cannot be assigned to in a kernel"),
    ("a, b = 1, 2, 3", "2 names on the left, 3 values on the right"),
]  # fmt: skip
DECLARATIONS = [
    ("s = cuda.shared.array(n, float32)", "the shape of cuda.shared.array is 'n'; it must be known when"),
    ("s = cuda.local.array(cuda.blockDim.x, float32)", "the shape of cuda.local.array is 'cuda.blockDim.x'"),
    ("s = cuda.shared.array(4, n)", "the dtype of cuda.shared.array is 'n'; it must be a Numba or NumPy type"),
    ("s = cuda.shared.array(4, types.void)", "the dtype of cuda.shared.array is 'types.void'; it must be"),
    ("s = cuda.shared.array(4, 'U3')", "cuda.shared.array cannot hold <U3; it holds booleans, integers and floats"),
    ("s = cuda.shared.array(4)", "cuda.shared.array needs a shape and a dtype"),
    ("s = t = cuda.shared.array(4, int32)", "cuda.shared.array(shape, dtype) must be assigned to one name"),
    ("x = cuda.shared.array(4, int32)[0]", "cuda.shared.array(shape, dtype) must be assigned to a name"),
    ("v = np.zeros(4)", "np.zeros makes an array, and a device has no memory to allocate while a kernel runs"),
    ("s = cuda.local.array(65537, np.float64)", "with 's' the local arrays take 524,296 bytes of every"),
]  # fmt: skip


def plain(x: int) -> int:
    return x


@cuda.jit
def kernel_beside(n):  # type: ignore[no-untyped-def]
    pass


@pytest.mark.parametrize(("written", "message"), [*EXPRESSIONS, *STATEMENTS, *DECLARATIONS])
def test_what_a_device_or_the_emulator_has_not_is_refused(written: str, message: str) -> None:
    names = {
        **NAMES,
        "table": {1: 2},
        "plain": plain,
        "helper": device("return x"),
        "waiting": device("cuda.syncthreads()\nreturn x", name="waiting"),
        "kernel_beside": kernel_beside,
        "words": np.array(["abc"]),
    }
    assert refused(written, **names).startswith(message)


def test_a_synchronising_device_function_returns_at_its_end_only() -> None:
    early = device("if x:\n    return 1\ncuda.syncthreads()\nreturn 2", name="early")
    with pytest.raises(Exception, match="'early' synchronises, and returns before its end") as raised:
        normal_form("y = early(n)", early=early)
    assert (raised.value.filename, raised.value.line) == (early.source.filename, 3)  # type: ignore[attr-defined]


def test_recursion_is_refused() -> None:
    loop = device("cuda.syncthreads()\nhelper(x)", name="loop")
    loop.py_func.__globals__["helper"] = loop
    with pytest.raises(Exception, match="'loop' calls itself; recursion is not supported by the emulator") as raised:
        normal_form("loop(n)", loop=loop)
    assert raised.value.line == 3  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("loop", "warned"),
    [
        ("while A[0] == 0:\n    pass", True),
        ("while cuda.atomic.cas(A, 0, 0, 1) != 0:\n    pass", True),
        ("while A[0] > 0:\n    A[0] -= 1", False),
        ("while A[n] > 0:\n    n += 1", False),
        ("while A[0] > 0:\n    break", False),
        ("while n > 0:\n    n -= 1", False),
    ],
)
def test_a_loop_that_waits_for_another_thread_is_warned_of(loop: str, warned: bool) -> None:
    found = normal_form(loop).warnings
    assert [line for line, _ in found] == ([2] if warned else [])
    assert all("this loop waits for what another thread writes" in sentence for _, sentence in found)
