"""operations: who does each operation, what it costs by its shape, and that a wrong one is not timed."""

import dataclasses
import types
from typing import Any

import pytest

from shared import contract
from shared.bench.kinds import operations
from shared.bench.kinds.operation_table import NAMES, dense_work, problem
from shared.bench.measuring import timing
from shared.bench.measuring.compared_candidates import Effort

SHAPE = (3, 5)
NUMPY, C, CUDA = "stage2_numpy", "stage3_c", "stage4_numba_cuda"


def rows_of(
    stages: list[contract.Stage], *names: str, dtype: str = "float64", **more: Any
) -> list[operations.BenchRow]:
    settings: dict[str, Any] = {"shapes": [SHAPE], "effort": Effort(1, 2.0, 0.0, 1), **more}
    return list(operations.operation_rows(stages, names=names, dtypes=[dtype], **settings))


def numpy_as(name: str, **rooms: Any) -> contract.Stage:
    """Stage 2 under another stage's name, with some of its functions replaced: activations={"relu": …}."""
    stage = contract.load_stage("2")
    changed = {room: types.SimpleNamespace(**vars(getattr(stage, room)) | new) for room, new in rooms.items()}
    return dataclasses.replace(stage, name=name, **changed)


def test_every_operation_of_every_stage_is_timed_after_it_agreed(stage: contract.Stage) -> None:
    emulated = contract.is_emulated(stage.name)
    names = ("relu", "SGD") if emulated else NAMES  # compiling every kernel would take minutes
    for dtype in timing.stage_dtypes(stage):
        rows = rows_of([stage], *names, dtype=dtype)
        assert [(row.name, row.part) for row in rows] == [
            (name, part)
            for name in names
            for part in (("step",) if name in contract.OPTIMIZERS else ("forward", "backward"))
        ]
        for row in rows:
            assert (row.kind, row.stage, row.dtype, row.skipped) == ("op", stage.name, dtype, None)
            assert row.shape == ((3, 5, 5) if row.name == "dense" else SHAPE)
            assert row.seconds is not None
            assert row.seconds > 0
            assert (row.emulated, row.clock, row.against) == (emulated, "wall", {})
            assert row.bytes > 0


def test_a_stage_is_set_beside_stage_2_and_stage_2_beside_itself() -> None:
    rows = rows_of([contract.load_stage("1"), contract.load_stage("2")], "tanh")
    seconds = {(row.stage, row.part): row.seconds for row in rows}
    for row in rows:
        assert row.reference == "stage 2, float64"
        ours, theirs = seconds[row.stage, row.part], seconds[NUMPY, row.part]
        assert ours is not None
        assert theirs is not None
        assert row.ratio == ours / theirs
        assert row.against == ({} if row.stage == NUMPY else {NUMPY: theirs / ours})


@pytest.mark.parametrize(
    ("name", "part", "flops", "numbers"),
    [  # numbers: float32 numbers read and written, of 3 rows and 5 columns
        ("identity", "forward", 0, 15 + 15),
        ("identity", "backward", 0, 15 + 15),
        ("relu", "backward", 15, 15 + 15 + 15),
        ("softmax", "forward", 5 * 15, 15 + 15),
        ("mean_squared_error", "forward", 3 * 15, 15 + 15 + 2),
        ("hinge", "backward", 4 * 15, 15 + 2 * 3 + 15),
        ("Adam", "step", 13 * 15, 7 * 15),
        ("dense", "forward", 2 * 3 * 5 * 5 + 15, 15 + 25 + 5 + 15),
        ("dense", "backward", 2 * 2 * 3 * 5 * 5 + 15, 15 + 15 + 25 + 15 + 25 + 5),
    ],
)
def test_flops_and_bytes_follow_from_the_shape(name: str, part: str, flops: int, numbers: int) -> None:
    assert problem(name, SHAPE, "float32").work[part] == (flops, 4 * numbers)
    work = problem(name, SHAPE, "float64").work[part]
    assert work.flops == flops
    assert 4 * numbers < work.bytes <= 8 * numbers  # labels and the loss have 64 bits in either


def test_a_first_layer_saves_the_product_for_an_input_that_needs_no_gradient() -> None:
    work = dense_work(3, 5, 7, 4, needs_grad_input=False)["backward"]
    assert work == (2 * 3 * 5 * 7 + 21, 4 * (15 + 21 + 35 + 7))


@pytest.mark.parametrize("dtype", timing.DTYPES)
@pytest.mark.parametrize("name", ["2", "3"])
def test_at_the_largest_shape_rounding_is_no_disagreement(name: str, dtype: str) -> None:
    try:
        stage = contract.load_stage(name)
    except contract.StageUnavailable as reason:
        pytest.skip(str(reason))
    case_rows = rows_of([stage], *NAMES, dtype=dtype, shapes=[operations.SHAPES[-1]])
    assert [row.skipped for row in case_rows] == [None] * (2 * 11 + 3)


def test_an_operation_that_computes_something_else_is_not_timed() -> None:
    relu_backward = contract.load_stage("2").activations.relu_backward
    timed: list[int] = []

    def wrong(grad: Any, z: Any, output: Any) -> Any:
        timed.append(1)
        return -relu_backward(grad, z, output)

    right, other = contract.load_stage("2"), numpy_as(C, activations={"relu_backward": wrong})
    rows = rows_of([right, other], "relu")
    assert [row.skipped is None for row in rows] == [True, True, True, False]
    refused = rows[-1]
    assert (refused.stage, refused.part, refused.measurement) == (C, "backward", None)
    assert (refused.ratio, refused.against) == (None, {})
    assert refused.skipped is not None
    assert refused.skipped.startswith("relu backward, index (")
    assert refused.skipped.endswith("tolerances apart; not timed")
    assert len(timed) == 1


def test_pure_python_is_left_out_where_there_are_too_many_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "FIRST_FLOOR_NUMBERS", 15)
    stages = [contract.load_stage("1"), contract.load_stage("2")]
    rows = rows_of(stages, "relu", "dense", shapes=[SHAPE, (4, 4)])
    left_out = [(row.stage, row.name, row.shape, row.part) for row in rows if row.skipped]
    one = "stage1_pure_python"
    assert left_out == [
        (one, "relu", (4, 4), "forward"),
        (one, "relu", (4, 4), "backward"),
        (one, "dense", (4, 4, 4), "forward"),
        (one, "dense", (4, 4, 4), "backward"),
    ]
    assert {row.skipped for row in rows} == {
        None,
        "left out at this size: pure Python is measured on up to 15 numbers",
    }
    assert rows_of(stages[:1], "relu", dtype="float32") == []
    with_nobody = rows_of(stages[:1], "relu", shapes=[(4, 4)])
    assert all(row.skipped and row.measurement is None for row in with_nobody)


def test_unknown_names_and_impossible_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"unknown operation 'gelu'; choose of identity, relu, .*dense$"):
        rows_of([], "gelu")
    with pytest.raises(ValueError, match=r"expected shapes \(rows, columns\), each at least 1; got \(0, 4\)"):
        rows_of([], "relu", shapes=[(0, 4)])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_pytorch_does_every_operation_and_agrees(dtype: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    rows = rows_of([contract.load_stage("2")], *NAMES, dtype=dtype, torch=torch)
    theirs = [row for row in rows if row.stage == "pytorch"]
    assert len(theirs) == 2 * 11 + 3
    for row in theirs:
        assert (row.contender, row.skipped) == ("PyTorch", None)
        assert row.ratio is not None
        assert row.against == {NUMPY: pytest.approx(1 / row.ratio)}
    for row in rows:
        if row.stage == NUMPY:
            assert list(row.against) == ["pytorch"]
