"""Step 7 of the compiler: the generated source is Python that reads as expected, in each way of compiling."""

import ast
import re
from typing import Any

import numpy as np
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


def test_a_thread_that_returns_is_the_end_of_a_round() -> None:
    assert block_of(generated("i, j = cuda.grid(2)\nif i >= n:\n    return\nout[i] = j")) == expected(
        """
        for _tz in range(_bdz):
            for _ty in range(_bdy):
                for _tx in range(_bdx):
                    i = _bx * _bdx + _tx
                    j = _by * _bdy + _ty
                    if i >= n:
                        continue
                    out[i] = j
        """
    )


APART = {
    "a return in a loop": ("while out[0] > 0:\n    if n:\n        return\n    out[0] -= 1", "run_thread"),
    "a changed argument": ("if A[0] > 0:\n    n = 3\nout[0] = n", "run_thread"),
    "a variable that may have no value": ("if n > 0:\n    v = A[0]\nout[0] = v", "run_thread"),
    "a variable of a loop that may have no round": ("for k in range(n):\n    v = A[k]\nout[0] = v", "run_thread"),
    "a local array": ("w = cuda.local.array(4, float32)\nw[n] = 1\nout[0] = w[0]", "run_thread"),
    "barriers": ("cuda.syncthreads()\nout[0] = 1", "run_block"),
}


@pytest.mark.parametrize("kernel", APART)
def test_a_function_of_its_own_is_there_for_old_values_returns_and_many_loops(kernel: str) -> None:
    body, name = APART[kernel]
    for variant in VARIANTS:
        tree = ast.parse(generated(body, variant))
        assert [node.name for node in tree.body if isinstance(node, ast.FunctionDef)] == [name, "run"]


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


def test_a_shuffle_is_a_call_on_what_all_threads_bring() -> None:
    block = block_of(generated("out[0] = cuda.shfl_down_sync(0xFFFFFFFF, A[0], 4)"))
    assert "_shuffle_down(_all__result1, _all__operand1, 4294967295, 4, None, None, _threads, None, 0, _block)" in block


def test_votes_of_the_block_have_one_result() -> None:
    block = block_of(generated("v = cuda.syncthreads_count(A[0])\nif v:\n    out[0] = v"))
    assert "_result1 = _block_count(_all__operand1, None, _threads)\nv = _result1" in block


# ---- Variants.

REVERSED = "t = cuda.threadIdx.x\nv = A[t]\ncuda.syncthreads()\nout[-1 - t] = v + A[-1]"


def test_bounds_are_checked_by_default_and_loops_can_be_stopped() -> None:
    module = generated("for i in range(n):\n    out[i] = A[i]\nwhile out[0] > 0:\n    out[0] -= 1", Variant())
    thread = block_of(module)
    assert re.search(r"= A\[_at\(A.shape, i, _status, \d, _block, _thread\)\]$", thread, re.MULTILINE)
    assert "    _go_on(_status)\n" in thread
    assert "while _go_on(_status) and out[" in thread


def test_nothing_is_checked_where_nothing_is_to_be() -> None:
    module = generated(REVERSED)
    assert imported(module) == {
        "address_of",
        "array_from",
        "go_on",
        "inner",
        "numbers",
        "outer",
        "part_of",
        "unravelled",
    }  # a launch can still be stopped between blocks
    assert "_at(" not in module


def test_fresh_memory_is_poisoned_where_bounds_are_checked() -> None:
    declared = "s = cuda.shared.array(4, float32)\nw = cuda.local.array(4, int32)\ncuda.syncthreads()\ns[0] = w[0]"
    assert "_fill_bytes(s, 0xff)\n_fill_bytes(_all_w, " in block_of(generated(declared, Variant()))
    assert "_fill_bytes" not in generated(declared)


def test_check_mode_runs_threads_and_blocks_in_the_given_order_and_is_strict_about_negative_indices() -> None:
    module = generated(REVERSED, Variant(check=True))
    assert "_block = _block_order[_block_turn]" in body_of("run", module)
    block = block_of(module)
    assert "for _turn in range(_threads):\n    _thread = _order[_turn]\n    _tx, _ty, _tz = " in block
    assert "out[_at_strict(out.shape, -1 - t, " in block
    assert "A[_at(A.shape, -1, " in block  # as the learner wrote it: meant


def test_fastmath_is_the_learners_choice() -> None:
    for body in ("out[0] = 1", APART["a local array"][0]):
        functions = generated(body).count("\ndef ")
        assert generated(body, Variant(fastmath=True)).count("(fastmath=True, error_model='numpy'") == functions
        assert generated(body).count("(fastmath={'contract', 'nsz'}, error_model='numpy'") == functions


def test_a_barrier_under_a_mask_is_checked_or_noted() -> None:
    divergent = "if cuda.threadIdx.x < n:\n    cuda.syncthreads()"
    assert "_barrier(_mask1, None, _status, 0, _block)" in generated(divergent, Variant())
    assert "_warn_divergent_barrier(_mask1, None, _status, 0, _block)" in generated(
        divergent, Variant(divergence="warn")
    )
    assert "_barrier(" not in generated("cuda.syncthreads()\nout[0] = 1", Variant())


def test_check_mode_notes_threads_that_have_returned() -> None:
    guarded = "if cuda.threadIdx.x >= n:\n    return\ncuda.syncthreads()"
    assert "_note_returned_threads(_alive, _status, 0, _block)" in generated(guarded, Variant(check=True))
    assert "_note_returned_threads" not in generated(guarded, Variant())


# ---- Every kernel, in every variant.

KERNELS = {
    "nothing": "pass",
    "a docstring": "'what it does'",
    "a barrier alone": "cuda.syncthreads()",
    "barriers alone in a loop": "for i in range(n):\n    cuda.syncthreads()",
    "an empty masked if": "if cuda.threadIdx.x:\n    cuda.syncwarp()",
    "a masked return": "if cuda.threadIdx.x:\n    return\ncuda.syncthreads()",
    "a masked else": "if A[0]:\n    cuda.syncwarp()\nelse:\n    pass",
    "loops in loops": "for i in range(cuda.laneid):\n    for j in range(n):\n        cuda.syncwarp()\n        break",
    "an assertion": "assert n > 0, 'nothing'\ncuda.syncthreads()",
    "local arrays": "w = cuda.local.array((2, 3), float32)\nw[1, 2] = 1\ncuda.syncthreads()\nout[0] = w[1][2]",
    "dynamic shared memory": "s = cuda.shared.array(0, int32)\ns[0] = 1\ncuda.syncthreads()\nout[0] = s[0]",
    "a vote": "out[0] = cuda.ballot_sync(0xFFFFFFFF, A[0])",
    "a match": "m, same = cuda.match_all_sync(0xFFFFFFFF, n)\nout[0] = same",
    "lanes": "out[cuda.laneid] = cuda.lanemask_lt()",
    "an atomic": "cuda.atomic.add(out, 0, A[0])",
    "printing": "print(n, A[0])",
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


def test_the_head_says_what_it_is() -> None:
    lines = generated("out[0] = 1").splitlines()
    assert re.fullmatch(r"# kernel, from <kernel \w+> line 1, as groundup's CUDA emulator runs it\.", lines[0])
    assert lines[1] == "# Arguments: array(float32, 1d, C), array(float32, 1d, C), int64"


# ---- What one thread says.


def test_two_brackets_are_one_access() -> None:
    assert "A[_at(A.shape, (n, 2), " in generated("out[0] = A[n][2]", Variant(), MATRIX)


def test_a_declared_shape_is_checked_against_as_a_literal() -> None:
    assert "w[_at((4,), n, " in generated("w = cuda.local.array(4, float32)\nw[n] = 1\nout[0] = w[0]", Variant())


def test_local_arrays_have_one_more_axis_where_they_cross_a_cut() -> None:
    module = generated("w = cuda.local.array(4, float32)\nw[n] = 1\ncuda.syncthreads()\nout[0] = w[0]")
    block = block_of(module)
    assert "_all_w[n, _thread] = 1" in block
    assert "out[0] = _all_w[0, _thread]" in block


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


def test_a_device_function_is_told_the_indices_that_it_uses() -> None:
    where = device("return x + cuda.threadIdx.x * cuda.blockDim.y", name="where")
    module = generated("out[0] = where(n)", where=where)
    assert "def _device_where(x, _tx, _bdy):\n    return x + _tx * _bdy" in module
    assert "out[0] = _device_where(n, _tx, _bdy)" in module


def test_a_device_function_called_by_another_passes_on_what_it_needs() -> None:
    inner = device("return x[cuda.laneid]", name="inner")
    outer = device("return inner(x)", name="outer", inner=inner)
    module = generated("out[0] = outer(A)", Variant(), outer=outer)
    assert "def _device_outer__inner(x, _status, _block, _thread, _lane):" in module
    assert "return _device_outer__inner(x, _status, _block, _thread, _lane)" in module


def test_a_record_keeps_its_layout() -> None:
    point = np.dtype([("x", np.float32), ("mark", np.int8)], align=True)
    module = generated("s = cuda.shared.array(4, point)\ns[0].x = n\ncuda.syncthreads()\nout[0] = s[0].x", point=point)
    assert re.search(r"^_record_\w+ = np.dtype\(.*align=True\)$", module, re.MULTILINE)


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


def test_integers_and_floats_go_together() -> None:
    module = generated("v = 1\nif cuda.threadIdx.x:\n    v = 2.5\ncuda.syncthreads()\nout[0] = v")
    assert "_all_v = _array_from(_part_of(_memory, _offset, np.float64), _threads)" in module


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


def test_slices_and_numbers_in_one_index_are_checked_together() -> None:
    text = block_of(generated("part = A[n, 1:3]\nout[0] = part[0]", Variant(), first=MATRIX))
    assert "part = A[_at(A.shape, (n, slice(1, 3)), _status, 0, _block, _thread)]" in text


def test_a_row_of_a_local_array_is_the_threads_own() -> None:
    module = generated("w = cuda.local.array((2, 3), float32)\nrow = w[n]\nout[0] = row[1]\ncuda.syncthreads()")
    assert "row = _all_w[n, :, _thread]" in block_of(module)


def test_nothing_in_a_run_holds_a_share_in_an_array() -> None:
    plain = generated(REVERSED, Variant())
    assert "np.empty" not in plain
    assert "nogil=True, _nrt=False, quick=True)\ndef run(" in plain  # nobody counts
    views = generated("part = A[1:]\nout[0] = part[0]", Variant())
    assert "nogil=True, quick=True)\ndef run(" in views
    assert "A = _borrowed(A)" in body_of("run", views)


def test_only_a_kernel_that_checks_its_indices_is_compiled_quickly() -> None:
    """Without checks LLVM computes loops with vectors, and needs all of its passes for it."""
    assert "quick=True" in generated(REVERSED, Variant(bounds=True))
    assert "quick" not in generated(REVERSED, Variant(bounds=False))


OWNING = {
    "a view": "part = A[1:]\nout[0] = part[0]",
    "a slice that is filled": "out[:] = n",
    "another name": "B = A\nout[0] = B[0]",
    "an array that is handed on": "w = cuda.local.array(4, float32)\nw[0] = 1\nout[0] = total(w)",
    "printing": "print(n)",
    "arithmetic with arrays": "out[0] = (A + A)[0]",
    "a tuple": "pair = (A, n)\nout[0] = pair[1]",
    "a method": "out[0] = A.sum()",
}


@pytest.mark.parametrize("kernel", OWNING)
def test_owners_are_counted_where_a_variable_may_own_memory(kernel: str) -> None:
    total = device("return x[0] + x[1]")
    assert "def run(" in (module := generated(OWNING[kernel], total=total))
    assert "_nrt=False" not in module


def test_the_name_of_an_array_of_the_block_may_be_assigned_another() -> None:
    text = generated("tile = cuda.shared.array(8, float32)\ntile = A\ntile[0] = 1")
    assert "tile = tile_at_line_" in text
    assert "tile_2 = A" in text


def test_flat_is_refused() -> None:
    with pytest.raises(KernelError, match=r"A\.flat is not supported by the emulator"):
        generated("out[0] = A.flat[n]")


def test_a_device_function_does_not_return_its_own_array() -> None:
    helper = device("w = cuda.local.array(4, np.float32)\nw[0] = x\nreturn w")
    with pytest.raises(KernelError, match="'helper' returns an array, and has local arrays, which end with the call"):
        generated("out[0] = helper(n)[0]", helper=helper)


def test_a_device_function_may_have_local_arrays() -> None:
    helper = device("w = cuda.local.array(4, np.float32)\nw[0] = x\nreturn w[0]")
    assert "_device_helper(n" in generated("out[0] = helper(n)", helper=helper)


def test_a_kernel_may_call_what_is_no_device_function_by_name() -> None:
    """numba-cuda's compiler takes these, too."""
    beside = cuda.jit(function("out[0] = n", parameters="out, n"))
    compiled = njit(function("return x + 1", parameters="x"))
    text = block_of(generated("beside(out, compiled(n))", beside=beside, compiled=compiled))
    assert text.splitlines()[-1].strip() == "_device_kernel(out, _device_kernel_(n))"
