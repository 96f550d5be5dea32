"""Step 5 of the compiler: kernels cut at their collectives, what threads carry over the cuts, and masks."""

from typing import Any

import pytest
from numba import types

from cuda_emulator.compiler.analysis.regions import (
    CollectiveCall,
    Jump,
    Leave,
    MaskedIf,
    MaskedLoop,
    OncePerBlock,
    Region,
    Regions,
    UniformIf,
    UniformLoop,
)
from cuda_emulator.compiler.analysis.uniformity import Uniformity, lower_masked_for_loops
from cuda_emulator.compiler.analysis.webs import split_webs
from cuda_emulator.compiler.reading.normalise import normalise
from cuda_emulator.compiler.reading.source import FunctionSource
from cuda_emulator.compiler.trees import placed
from tests.cuda_emulator.emulator_steps import function, text

VECTOR, MATRIX = types.float32[::1], types.float32[:, ::1]


def regions_of(body: str, **variable_types: types.Type) -> Regions:
    unit = normalise(FunctionSource(function(body)))
    split_webs(unit)
    uniformity = Uniformity(unit)
    if lower_masked_for_loops(unit, uniformity):
        uniformity = Uniformity(unit)
    return Regions(unit, uniformity, {"A": VECTOR, "out": VECTOR, "n": types.int64, **variable_types})


def outline(parts: list[Any]) -> list[Any]:
    """The tree as lists of text: each part's kind, its mask, what it says, and the parts in it."""
    return [outline_of(part) for part in parts]


def outline_of(part: Any) -> Any:
    mask = f" {part.mask}" if getattr(part, "mask", None) else ""
    if isinstance(part, Region):
        return f"threads{mask}: {text(part.statements)}"
    if isinstance(part, OncePerBlock):
        return f"block: {text([part.statement])}"
    if isinstance(part, CollectiveCall):
        return f"meet{mask}: {text([part.collective])}"
    if isinstance(part, UniformIf):
        test = text([placed(part.statement.test, part.statement)])  # type: ignore[list-item]
        return [f"if {test}", outline(part.body), outline(part.orelse)]
    if isinstance(part, UniformLoop):
        return ["loop", outline(part.body)]
    if isinstance(part, Jump):
        return part.word
    if isinstance(part, MaskedIf):
        return [f"{part.then}, {part.orelse}: {outline_of(part.test)}", outline(part.body), outline(part.other)]
    if isinstance(part, MaskedLoop):
        return [f"{part.active}, {part.current}: {outline_of(part.test)}", outline(part.body)]
    assert isinstance(part, Leave)
    return f"leave{mask}: {', '.join(part.cleared)}"


# ---- The tree.


def test_what_is_the_same_for_all_is_done_once_for_the_block() -> None:
    parts = regions_of("m = n // 2\nout[cuda.threadIdx.x] = m\ncuda.syncthreads()")
    assert outline(parts.tree) == ["block: m = n // 2", "threads: out[_tx] = m", "meet: syncthreads()"]


def test_loops_and_ifs_that_all_decide_alike_are_the_blocks() -> None:
    parts = regions_of(
        """
        for i in range(n):
            if i > 2:
                cuda.syncthreads()
            else:
                break
        """
    )
    assert outline(parts.tree) == [["loop", [["if i > 2", ["meet: syncthreads()"], ["break"]]]]]


def test_an_if_that_threads_decide_for_themselves_sets_masks() -> None:
    parts = regions_of(
        """
        if A[0] > 1:
            out[0] = 1
            cuda.syncwarp()
        else:
            out[1] = 1
        """
    )
    assert outline(parts.tree) == [
        [
            "_mask1, _mask2: threads: A[0] > 1",
            ["threads _mask1: out[0] = 1", "meet _mask1: syncwarp()"],
            ["threads _mask2: out[1] = 1"],
        ]
    ]
    assert parts.masks == ["_mask1", "_mask2"]
    assert not parts.uses_alive


def test_break_leaves_the_loop_and_continue_the_round() -> None:
    parts = regions_of(
        """
        while A[0]:
            if A[1]:
                break
            if A[2]:
                continue
            cuda.syncwarp()
        """
    )
    assert outline(parts.tree) == [
        [
            "_mask1, _mask2: threads: A[0]",
            [
                ["_mask3, None: threads _mask2: A[1]", ["leave _mask3: _mask1, _mask2, _mask3"], []],
                ["_mask4, None: threads _mask2: A[2]", ["leave _mask4: _mask2, _mask4"], []],
                "meet _mask2: syncwarp()",
            ],
        ]
    ]


def test_a_return_leaves_everything_and_what_follows_is_for_those_alive() -> None:
    parts = regions_of("if cuda.threadIdx.x > n:\n    return\nout[0] = 1\ncuda.syncthreads()")
    assert parts.uses_alive
    assert outline(parts.tree) == [
        ["_mask1, None: threads: _tx > n", ["leave _mask1: _alive, _mask1"], []],
        "threads _alive: out[0] = 1",
        "meet _alive: syncthreads()",
    ]


# ---- What crosses a cut.


@pytest.mark.parametrize(
    ("body", "carried", "recomputed"),
    [
        ("v = A[0]\ncuda.syncthreads()\nout[0] = v", ["v"], []),
        ("v = A[0]\nout[0] = v\ncuda.syncthreads()", [], []),
        ("i = cuda.grid(1)\ncuda.syncthreads()\nout[i] = 1", [], ["i"]),
        ("i = cuda.grid(1)\nj = i * 2 + n\ncuda.syncthreads()\nout[j] = 1", [], ["i", "j"]),
        ("m = n * 2\ncuda.syncthreads()\nout[0] = m", [], []),
        ("i = cuda.threadIdx.x\nif A[0]:\n    i = 3\ncuda.syncthreads()\nout[i] = 1", ["i"], []),
        ("n = cuda.threadIdx.x\ncuda.syncthreads()\nout[n] = 1", [], ["n_2"]),
        ("n += cuda.threadIdx.x\ncuda.syncthreads()\nout[n] = 1", [], ["n_2"]),
        ("if A[0]:\n    v = 1\nelse:\n    v = 2\ncuda.syncthreads()\nout[0] = v", ["v"], []),
        ("v = A[0]\ncuda.syncthreads()\nv = A[1]\nout[0] = v", [], []),
        ("last = out.shape[0] - 1 - cuda.threadIdx.x\ncuda.syncthreads()\nout[last] = 1", [], ["last"]),
        ("w = min(cuda.threadIdx.x, n)\ncuda.syncthreads()\nout[w] = 1", [], ["w"]),
        ("w = cuda.atomic.add(A, 0, 1)\ncuda.syncthreads()\nout[w] = 1", ["w"], []),
    ],
)
def test_variables_are_carried_computed_again_or_neither(body: str, carried: list[str], recomputed: list[str]) -> None:
    parts = regions_of(body)
    assert (parts.carried, list(parts.recomputed)) == (carried, recomputed)


def test_a_region_computes_again_what_it_reads_each_after_what_it_needs() -> None:
    parts = regions_of("i = cuda.grid(1)\nj = i + 1\nk = j + i\ncuda.syncthreads()\nout[k] = 1")
    (region,) = parts.regions
    assert list(parts.recomputed_in(region)) == ["i", "j", "k"]


def test_a_view_is_computed_again_where_nothing_decides_about_it() -> None:
    body = "row = A[cuda.blockIdx.x]\ncuda.syncthreads()\nout[0] = row[cuda.threadIdx.x]"
    assert list(regions_of(body, A=MATRIX, row=VECTOR).recomputed) == ["row"]


def test_a_view_whose_place_is_read_from_memory_is_not_computed_again() -> None:
    body = "row = A[int(out[0])]\ncuda.syncthreads()\nout[0] = row[cuda.threadIdx.x]"
    parts = regions_of(body, A=MATRIX, row=VECTOR)
    assert (parts.carried, parts.recomputed) == (["row"], {})


@pytest.mark.parametrize("condition", ["if n:", "if cuda.threadIdx.x < n:"])
def test_a_view_under_an_if_is_not_computed_where_the_learner_would_not_have(condition: str) -> None:
    body = f"{condition}\n    row = A[cuda.blockIdx.x]\n    cuda.syncwarp()\n    out[0] = row[0]"
    assert regions_of(body, A=MATRIX, row=VECTOR).recomputed == {}


def test_a_uniform_statement_is_no_cut() -> None:
    """It would act as a barrier that nobody wrote, and hide that one is missing."""
    parts = regions_of("out[0] = A[0]\nm = n * 2\nout[1] = m\ncuda.syncthreads()")
    assert [type(part).__name__ for part in parts.tree] == ["OncePerBlock", "Region", "CollectiveCall"]


def test_a_uniform_statement_stays_behind_what_reads_the_old_value() -> None:
    parts = regions_of("m = n\nfor k in range(3):\n    out[0] = m\n    m = m + 1\n    cuda.syncthreads()")
    loop = parts.tree[-1]
    assert [type(part).__name__ for part in loop.body] == ["Region", "OncePerBlock", "CollectiveCall"]
