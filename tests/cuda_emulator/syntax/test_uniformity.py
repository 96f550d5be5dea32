"""Step 4 of the compiler: what is the same for all threads of a block, and where threads have to wait under a mask."""

import ast

import pytest

from cuda_emulator.compiler.analysis.uniformity import Uniformity, lower_masked_for_loops
from cuda_emulator.compiler.analysis.webs import split_webs
from cuda_emulator.compiler.reading.normalise import normalise
from cuda_emulator.compiler.reading.source import FunctionSource
from cuda_emulator.compiler.unit import Unit
from cuda_emulator.errors import KernelError
from tests.cuda_emulator.emulator_steps import expected, function, text


def unit_of(body: str) -> Unit:
    unit = normalise(FunctionSource(function(body)))
    split_webs(unit)
    return unit


def found(body: str) -> Uniformity:
    return Uniformity(unit_of(body))


def masked_lines(body: str) -> set[int]:
    """The lines of masked statements, counted from 1 within the body."""
    return {node.lineno - 1 for node in found(body).masked}


@pytest.mark.parametrize(
    "value",
    [
        "n",
        "3 * n + 1",
        "cuda.blockIdx.x * cuda.blockDim.x",
        "cuda.gridsize(1)",
        "A.shape[0] // 2",
        "min(n, A.size)",
        "np.sqrt(2.0 * n)",
        "1 if n > 2 else 0",
        "cuda.syncthreads_count(cuda.threadIdx.x > 3)",
        "(1, 2, 3)[n]",
    ],
)
def test_what_is_the_same_for_all_threads(value: str) -> None:
    assert "v" not in found(f"v = {value}\nout[0] = v").varying


@pytest.mark.parametrize(
    "value",
    [
        "cuda.threadIdx.y",
        "cuda.grid(1)",
        "cuda.laneid",
        "n + cuda.threadIdx.x",
        "A[0]",  # another thread may write it between two reads
        "A[cuda.threadIdx.x]",
        "A.shape[cuda.threadIdx.x % 2]",
        "(1, 2)[cuda.threadIdx.x % 2]",
        "cuda.atomic.add(A, 0, 1)",
        "cuda.shfl_sync(n, n, 0)",
        "cuda.ballot_sync(n, n)",
    ],
)
def test_what_differs_between_threads(value: str) -> None:
    assert "v" in found(f"v = {value}\nout[0] = v").varying


def test_what_depends_on_something_that_differs_differs() -> None:
    varying = found("a = cuda.threadIdx.x\nb = a + 1\nc = n\nfor i in range(b):\n    c = c + 1\nout[0] = c").varying
    assert {"a", "b", "c", "i"} <= varying
    assert not {"n", "A", "out"} & varying


def test_a_variable_assigned_under_a_condition_that_differs_differs() -> None:
    assert "v" in found("v = 0\nif cuda.threadIdx.x:\n    v = 1\nout[0] = v").varying
    assert "v" not in found("v = 0\nif n:\n    v = 1\nout[0] = v").varying


def test_only_what_holds_a_collective_or_a_return_is_run_by_the_block() -> None:
    result = found("if n:\n    out[0] = 1\nfor i in range(n):\n    cuda.syncthreads()\nwhile n:\n    n -= 1\n    break")
    assert {type(node) for node in result.structural if isinstance(node, ast.For | ast.While | ast.If)} == {ast.For}


MASKED = {
    "an if on the thread's index": ("if cuda.threadIdx.x < n:\n    cuda.syncthreads()", {1}),
    "an if that all decide alike": ("if n:\n    cuda.syncthreads()", set()),
    "an if without a collective": ("if cuda.threadIdx.x < n:\n    out[0] = 1\ncuda.syncthreads()", set()),
    "an if in a masked one": ("if cuda.threadIdx.x:\n    if n:\n        cuda.syncthreads()", {1, 2}),
    "a loop of different lengths": ("for i in range(cuda.threadIdx.x):\n    cuda.syncthreads()", {1}),
    "a loop of one length": ("for i in range(0, n, 2):\n    cuda.syncthreads()", set()),
    "a while on memory": ("while A[0]:\n    cuda.syncthreads()", {1}),
    "a while on a vote": ("while cuda.syncthreads_or(A[0]):\n    A[0] -= 1", set()),
    "a break that some make": (
        "for i in range(n):\n    if A[i]:\n        break\n    cuda.syncthreads()",
        {1, 2},
    ),
    "a continue that some make": (
        "for i in range(n):\n    cuda.syncthreads()\n    if A[i]:\n        continue\n    out[i] = 1",
        {1, 3},
    ),
    "a break that all make": ("for i in range(n):\n    cuda.syncthreads()\n    if i > 3:\n        break", set()),
    "a return in two loops": (
        "for i in range(n):\n    for j in range(n):\n        if A[i]:\n            return\n        cuda.syncthreads()",
        {1, 2, 3},
    ),
    "a break in the inner of two loops": (
        "for i in range(n):\n    for j in range(n):\n        if A[i]:\n            break\n        cuda.syncthreads()",
        {2, 3},
    ),
}


@pytest.mark.parametrize("case", MASKED)
def test_masks(case: str) -> None:
    body, lines = MASKED[case]
    assert masked_lines(body) == lines


def test_only_a_return_that_some_make_leaves_others_behind() -> None:
    assert found("if cuda.threadIdx.x:\n    return\ncuda.syncthreads()").leaves
    assert not found("if n:\n    return\ncuda.syncthreads()").leaves


def lowered(body: str) -> str:
    unit = unit_of(body)
    uniformity = Uniformity(unit)
    assert lower_masked_for_loops(unit, uniformity)
    assert not any(isinstance(node, ast.For) for node in Uniformity(unit).masked)
    return text(unit.body)


def test_a_masked_for_becomes_a_while_that_counts() -> None:
    assert lowered("for i in range(cuda.threadIdx.x):\n    cuda.syncthreads()") == expected(
        """
        _next1 = 0
        _stop1 = _tx
        while _next1 < _stop1:
            i = _next1
            _next1 = _next1 + 1
            syncthreads()
        """
    )


@pytest.mark.parametrize(
    ("arguments", "test", "step"),
    [
        ("cuda.threadIdx.x, n", "_next1 < _stop1", "1"),
        ("cuda.threadIdx.x, n, 32", "_next1 < _stop1", "32"),
        ("n, cuda.threadIdx.x, -2", "_next1 > _stop1", "-2"),
        ("cuda.threadIdx.x, 9, n", "_next1 < _stop1 if _step1 > 0 else _next1 > _stop1", "_step1"),
    ],
)
def test_a_step_of_either_sign_is_counted_with(arguments: str, test: str, step: str) -> None:
    lines = lowered(f"for i in range({arguments}):\n    cuda.syncthreads()").splitlines()
    assert f"while {test}:" in lines
    assert f"    _next1 = _next1 + {step}" in lines


def test_a_loop_over_something_else_cannot_synchronise() -> None:
    body = "n = 0\nfor row in A:\n    cuda.syncthreads()"
    with pytest.raises(KernelError, match=r"a loop that synchronises must say 'for NAME in range\(\.\.\.\)'") as raised:
        found(body)
    assert raised.value.line == 3
