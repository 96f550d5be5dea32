"""Step 7 of the compiler: the generated source is Python that reads as expected, in each way of compiling."""

import ast
import re
from typing import Any

import pytest
from numba import njit, types

from cuda_emulator import cuda, helpers
from cuda_emulator.compiler.compile import generate
from cuda_emulator.compiler.reading.source import FunctionSource
from cuda_emulator.compiler.writing.thread_code import Variant
from cuda_emulator.errors import KernelError
from tests.cuda_emulator.emulator_steps import device, expected, function

VECTOR = types.float32[::1]
MATRIX = types.float32[:, ::1]
UNCHECKED = Variant(bounds=False)
VARIANTS = [Variant(), UNCHECKED, Variant(check=True), Variant(fastmath=True), Variant(divergence="warn")]


def generated(body: str, variant: Variant = UNCHECKED, first: Any = VECTOR, **names: Any) -> str:
    """The generated module for arguments A (`first`), out (float32, 1d) and n (int64)."""
    source = FunctionSource(function(body, **names))
    return generate(source, (first, VECTOR, types.int64), variant)[0]


def body_of(name: str, module: str) -> str:
    """The text of one function's body."""
    found = next(node for node in ast.parse(module).body if isinstance(node, ast.FunctionDef) and node.name == name)
    lines = module.splitlines()[found.body[0].lineno - 1 : found.end_lineno]
    above = module.splitlines()[found.lineno : found.body[0].lineno - 1]  # comments before the first statement
    return "\n".join(line[4:] for line in [*(text for text in above if text.strip().startswith("#")), *lines])


def block_of(module: str) -> str:
    """The text of what one block does: in `run`, behind the block's place, or in a function of its own."""
    if "def run_block" in module:
        return body_of("run_block", module)
    behind = re.split(r"^_?    _bx, _by, _bz = .*\n", body_of("run", module), flags=re.MULTILINE)[1]
    return "\n".join(line[4:] for line in behind.splitlines())


def imported(module: str) -> set[str]:
    return set(re.findall(r"^    (\w+) as _\1,$", module, re.MULTILINE))


# ---- Whole kernels, as a learner reads them.


def test_a_kernel_without_a_collective_is_its_own_lines_in_a_loop_over_the_threads() -> None:
    assert block_of(generated("i = cuda.grid(1)\nif i < n:\n    out[i] = A[i] * 2")) == expected(
        """
        for _row in range(_bdz * _bdy):
            for _tx in range(_bdx):
                i = _bx * _bdx + _tx
                if i < n:
                    out[i] = A[i] * 2
        """
    )


def test_a_barrier_is_the_end_of_one_loop_over_the_threads() -> None:
    module = generated(
        """
        tile = cuda.shared.array(64, float32)
        t = cuda.threadIdx.x
        v = A[t]
        tile[t] = v
        cuda.syncthreads()
        out[t] = tile[63 - t] + v
        """
    )
    assert block_of(module) == expected(
        """
        # lines 4 to 5, for each thread
        for _row in range(_bdz * _bdy):
            for _tx in range(_bdx):
                _thread = _row * _bdx + _tx
                t = _tx
                v = A[t]
                tile[t] = v
                _all_v[_thread] = v
        # line 7, for each thread
        for _row in range(_bdz * _bdy):
            for _tx in range(_bdx):
                _thread = _row * _bdx + _tx
                v = _all_v[_thread]
                t = _tx
                out[t] = tile[63 - t] + v
        """
    )
    run = body_of("run", module)
    assert "tile = _array_from(_part_of(_memory, 0, np.float32), (64,))" in run
    assert "_all_v = _array_from(_part_of(_memory, _offset, np.float32), _threads)" in run


def test_a_masked_loop_runs_until_no_thread_is_left() -> None:
    module = generated("k = cuda.threadIdx.x\nwhile k < n:\n    cuda.syncwarp()\n    k += 32")
    assert block_of(module) == expected(
        """
        # line 2, for each thread
        for _row in range(_bdz * _bdy):
            for _tx in range(_bdx):
                _thread = _row * _bdx + _tx
                k = _tx
                _all_k[_thread] = k
        _fill_bytes(_mask1, 1)
        while True:
            # line 3, for each thread
            for _row in range(_bdz * _bdy):
                for _tx in range(_bdx):
                    _thread = _row * _bdx + _tx
                    if _mask1[_thread]:
                        k = _all_k[_thread]
                        _mask1[_thread] = bool(k < n)
            if not _anyone(_mask1):
                break
            _copy_mask(_mask2, _mask1)
            _sync_warp(0xffffffff, _mask2, None, _threads, None, 0, _block)
            # line 5, for each thread
            for _row in range(_bdz * _bdy):
                for _tx in range(_bdx):
                    _thread = _row * _bdx + _tx
                    if _mask2[_thread]:
                        k = _all_k[_thread]
                        k = k + 32
                        _all_k[_thread] = k
        """
    )


# ---- Variants.

REVERSED = "t = cuda.threadIdx.x\nv = A[t]\ncuda.syncthreads()\nout[-1 - t] = v + A[-1]"


def test_bounds_are_checked_by_default_and_loops_can_be_stopped() -> None:
    module = generated("for i in range(n):\n    out[i] = A[i]\nwhile out[0] > 0:\n    out[0] -= 1", Variant())
    thread = block_of(module)
    assert re.search(r"= A\[_at\(A.shape, i, _status, \d, _block, _thread\)\]$", thread, re.MULTILINE)
    assert "    _go_on(_status)\n" in thread
    assert "while _go_on(_status) and out[" in thread


def test_fastmath_is_the_learners_choice() -> None:
    for body in ("out[0] = 1", "w = cuda.local.array(4, float32)\nw[n] = 1\nout[0] = w[0]"):
        functions = generated(body).count("\ndef ")
        assert generated(body, Variant(fastmath=True)).count("(fastmath=True, error_model='numpy'") == functions
        assert generated(body).count("(fastmath={'contract', 'nsz'}, error_model='numpy'") == functions


# ---- Every kernel, in every variant.

KERNELS = {
    "nothing": "pass",
    "a docstring": "'what it does'",
    "a barrier alone": "cuda.syncthreads()",
    "barriers alone in a loop": "for i in range(n):\n    cuda.syncthreads()",
    "an empty masked if": "if cuda.threadIdx.x:\n    cuda.syncwarp()",
    "an assertion": "assert n > 0, 'nothing'\ncuda.syncthreads()",
}


@pytest.mark.parametrize("kernel", KERNELS)
def test_generated_source_is_python_that_imports_what_it_uses(kernel: str) -> None:
    for variant in VARIANTS:
        module = generated(KERNELS[kernel], variant)
        tree = ast.parse(module)
        functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
        assert functions[-1] == "run"
        called = {
            node.func.id[1:]
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id[1:] in helpers.__all__
        }
        assert imported(module) == called
        assert "\n    \n" not in module


# ---- What one thread says.


def test_large_local_arrays_are_not_on_the_stack() -> None:
    small = body_of("run_thread", generated("w = cuda.local.array((8, 8), float32)\nw[0, n] = 1\nout[0] = w[0, 0]"))
    assert "w = _array_from(_stack_array(64, np.float32), (8, 8))" in small
    large = generated("w = cuda.local.array(5000, float32)\nw[n] = 1\nout[0] = w[0]")
    assert "_stack_array" not in large
    assert "w = _array_from(_part_of(_memory, 0, np.float32), (5000,))" in body_of("run", large)
    many = generated("\n".join(f"w{k} = cuda.local.array(200, float32)\nw{k}[n] = 1" for k in range(12)))
    assert many.count("_stack_array(200, np.float32)") == 4  # 4 KB together, whatever each of them takes


def test_what_only_numba_can_check_is_checked_by_numba() -> None:
    assert ", boundscheck=True" in generated("out[0] = A.T[n, 0]", Variant(), MATRIX)
    assert "boundscheck" not in generated("out[0] = A.T[n, 0]", UNCHECKED, MATRIX)
    assert "boundscheck" not in generated("out[A.shape[0]] = A[n, 0]", Variant(), MATRIX)


# ---- Variables that cannot be carried.


@pytest.mark.parametrize(
    ("body", "what", "way_out"),
    [
        (
            "v = A[cuda.threadIdx.x + int(A[0, 0])]\ncuda.syncthreads()\nout[0] = v[0]",
            "a view of an array",
            "Index the array itself after the barrier",
        ),
        (
            "v = (A[0, 0], n)\ncuda.syncthreads()\nout[v[1]] = v[0]",
            "a value of type Tuple(float32, int64)",
            "Keep its parts in variables of their own",
        ),
    ],
)
def test_what_is_no_number_cannot_cross_a_barrier(body: str, what: str, way_out: str) -> None:
    with pytest.raises(KernelError) as raised:
        generated(body, first=MATRIX)
    assert raised.value.line == 2
    assert raised.value.sentence == (
        f"'v' holds {what} on both sides of a cuda.syncthreads() or shuffle; only numbers can be kept there. {way_out}"
    )


@pytest.mark.parametrize(
    ("body", "first", "second"),
    [
        ("v = A\nif n:\n    v = n\ncuda.syncthreads()\nout[0] = v", "array(float32, 1d, C)", "int64"),
        ("v = 1\nif n:\n    v = (n, 2)\ncuda.syncthreads()\nprint(v)", "int", "Tuple(int64, int)"),
    ],
)
def test_a_variable_of_two_types_is_told_with_its_name_and_line(body: str, first: str, second: str) -> None:
    with pytest.raises(KernelError) as raised:
        generated(body)
    assert raised.value.line == 4
    assert raised.value.sentence == (
        f"'v' is {first} on one path and {second} on another, and a variable has one type; give each its own name"
    )


def test_a_variable_may_have_the_name_that_numba_gives_to_arguments() -> None:
    module = generated("arg = A[0]\ncuda.syncthreads()\nout[0] = arg")
    assert "_all_arg = _array_from(_part_of(_memory, _offset, np.float32), _threads)" in module


# ---- What came out of a review: loops that nobody could stop, and numbers that are none.


@pytest.mark.parametrize(
    ("loops", "can_be_stopped"),
    [
        ("for i in range(64):\n    out[i] = 1", False),
        ("for i in range(10**14):\n    out[0] = 1", True),
        ("for i in range(n):\n    out[0] = 1", True),
        ("for i in range(100000):\n    for j in range(100000):\n        out[0] = 1", True),
        ("for i in range(100):\n    for j in range(100):\n        out[0] = 1", False),
        ("while out[0] < 3:\n    out[0] += 1", True),
    ],
)
def test_a_loop_of_many_rounds_can_be_stopped(loops: str, can_be_stopped: bool) -> None:
    module = generated(loops, Variant())
    assert ("_go_on(_status)" in block_of(module)) == can_be_stopped
    assert f"MAY_LOOP = {can_be_stopped}" in module


def test_a_conversion_or_shift_without_an_answer_is_one_number() -> None:
    text = block_of(generated("i = int(A[0])\nout[i] = 1 << n\nout[i + 1] = 1 << 3"))
    assert "i = _frozen(int(A[0]))" in text
    assert "out[i] = _frozen(1 << n)" in text
    assert "out[i + 1] = 1 << 3" in text


def test_nothing_in_a_run_holds_a_share_in_an_array() -> None:
    plain = generated(REVERSED, Variant())
    assert "np.empty" not in plain
    assert "nogil=True, _nrt=False, quick=True)\ndef run(" in plain  # nobody counts
    views = generated("part = A[1:]\nout[0] = part[0]", Variant())
    assert "nogil=True, quick=True)\ndef run(" in views
    assert "A = _borrowed(A)" in body_of("run", views)


OWNING = {
    "a view": "part = A[1:]\nout[0] = part[0]",
    "a slice that is filled": "out[:] = n",
    "another name": "B = A\nout[0] = B[0]",
    "an array that is handed on": "w = cuda.local.array(4, float32)\nw[0] = 1\nout[0] = total(w)",
    "arithmetic with arrays": "out[0] = (A + A)[0]",
    "a tuple": "pair = (A, n)\nout[0] = pair[1]",
    "a method": "out[0] = A.sum()",
}


@pytest.mark.parametrize("kernel", OWNING)
def test_owners_are_counted_where_a_variable_may_own_memory(kernel: str) -> None:
    total = device("return x[0] + x[1]")
    assert "def run(" in (module := generated(OWNING[kernel], total=total))
    assert "_nrt=False" not in module


def test_a_device_function_does_not_return_its_own_array() -> None:
    helper = device("w = cuda.local.array(4, np.float32)\nw[0] = x\nreturn w")
    with pytest.raises(KernelError, match="'helper' returns an array, and has local arrays, which end with the call"):
        generated("out[0] = helper(n)[0]", helper=helper)


def test_a_kernel_may_call_what_is_no_device_function_by_name() -> None:
    """numba-cuda's compiler takes these, too."""
    beside = cuda.jit(function("out[0] = n", parameters="out, n"))
    compiled = njit(function("return x + 1", parameters="x"))
    text = block_of(generated("beside(out, compiled(n))", beside=beside, compiled=compiled))
    assert text.splitlines()[-1].strip() == "_device_kernel(out, _device_kernel_(n))"
