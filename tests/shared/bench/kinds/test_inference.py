"""shared.bench.kinds.inference: which batches are predicted, by whom, and that a wrong prediction is not timed."""

import dataclasses
import time
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from shared import contract
from shared.bench.kinds import inference
from shared.bench.kinds.steps import start_parameters
from shared.bench.measuring.compared_candidates import Effort

SIZES = (6, 5, 3)
ONE, NUMPY, C, CUDA = contract.STAGES


def rows_of(stages: list[contract.Stage], **more: Any) -> list[inference.BenchRow]:
    settings: dict[str, Any] = {"layer_sizes": SIZES, "batches": (4, 1), "effort": Effort(1, 4.0, 0.0, 1)}
    return list(inference.inference_rows(stages, **settings | more))


def numpy_that(name: str, predict: Callable[[Any, Any], Any] | None = None, **arrays: Any) -> contract.Stage:
    """Stage 2 under another stage's name, with another way to predict: predict(network, x)."""
    stage = contract.load_stage("2")

    class Network(stage.network.Network):  # type: ignore[misc, name-defined]
        def predict(self, x: Any) -> Any:
            return predict(self, x) if predict else super().predict(x)

    room: Any = types.SimpleNamespace(Network=Network)
    own: Any = types.SimpleNamespace(**vars(stage.arrays) | arrays)
    return dataclasses.replace(stage, name=name, network=room, arrays=own)


def test_every_stage_predicts_every_batch(stage: contract.Stage) -> None:
    # where there is a GPU, PyTorch and TF32 have rows, too
    rows = [row for row in rows_of([stage]) if row.stage == stage.name and not row.variant]
    emulated = contract.is_emulated(stage.name)
    assert [(row.name, row.samples) for row in rows] == [("6-5-3, batch 1", 1), ("6-5-3, batch 4", 4)]
    for row in rows:
        assert (row.kind, row.stage, row.shape, row.skipped) == ("inference", stage.name, SIZES, None)
        assert row.dtype == ("float64" if stage.number == 1 else "float32")
        assert row.flops == 2 * row.samples * (6 * 5 + 5 * 3)
        numbers = row.samples * 6 + 6 * 5 + row.samples * 5 + row.samples * 5 + 5 * 3 + row.samples * 3
        assert row.bytes == numbers * (8 if stage.number == 1 else 4)
        assert row.seconds is not None
        assert row.samples_per_second == row.samples / row.seconds
        assert (row.emulated, row.clock) == (emulated, "wall")


def test_the_first_floor_stands_in_float64_beside_stage_2() -> None:
    rows = rows_of([contract.load_stage("1"), contract.load_stage("2"), numpy_that(C)])
    assert [(row.stage, row.dtype, row.samples) for row in rows] == [
        *((NUMPY, "float32", 1), (C, "float32", 1), (NUMPY, "float32", 4), (C, "float32", 4)),
        *((ONE, "float64", 1), (NUMPY, "float64", 1), (ONE, "float64", 4), (NUMPY, "float64", 4)),
    ]
    seconds = {(row.stage, row.dtype, row.samples): row.seconds for row in rows}
    for row in rows:
        ours, theirs = seconds[row.stage, row.dtype, row.samples], seconds[NUMPY, row.dtype, row.samples]
        assert ours is not None
        assert theirs is not None
        assert (row.reference, row.ratio) == (f"stage 2, {row.dtype}", ours / theirs)
        assert row.against == ({} if row.stage == NUMPY else {NUMPY: theirs / ours})
    together = rows_of([contract.load_stage("1"), contract.load_stage("2")], dtype="float64", batches=(2,))
    assert [(row.stage, row.dtype) for row in together] == [(ONE, "float64"), (NUMPY, "float64")]


def test_a_wrong_class_is_not_timed() -> None:
    def wrong(network: Any, x: Any) -> Any:
        return network.forward(x).argmin(axis=1)

    rows = rows_of([contract.load_stage("2"), numpy_that(C, wrong)])
    refused = [row for row in rows if row.stage == C]
    assert len(refused) == 2
    for row in refused:
        assert (row.measurement, row.ratio, row.against) == (None, None, {})
        assert row.skipped is not None
        assert row.skipped.startswith("it predicts class ")
        assert " for image 0, whose score is " in row.skipped
        assert row.skipped.endswith("; not timed")


@pytest.mark.parametrize("classes", [[0], [0, 1, 3, 0], [0, 1, -1, 0], [[0, 1, 2, 0]]])
def test_what_is_no_list_of_classes_is_not_timed(classes: list[Any]) -> None:
    (row,) = rows_of([numpy_that(C, lambda network, x: np.array(classes))], batches=(4,))
    assert row.measurement is None
    assert row.skipped == "it does not predict one of 3 classes for each of 4 images; not timed"


def test_where_two_scores_are_as_good_as_equal_either_class_is_right() -> None:
    right = inference.Scores(np.array([[1.0, 1.0 + 1e-7, 0.5]]), np.full((1, 3), 1e-7))
    for predicted, good in ((0, True), (1, True), (2, False)):
        wrong = inference._wrong_class(np.array([predicted]), 1, right)
        assert (wrong is None) == good
    far = right._replace(allowed=np.full((1, 3), 1e-9))
    assert inference._wrong_class(np.array([0]), 1, far) == (
        "it predicts class 0 for image 0, whose score is 1, but class 1 has 1; not timed"
    )


def test_scores_are_those_of_stage_2_and_rounding_stays_within_what_is_allowed() -> None:
    parameters = start_parameters(SIZES, "float32")
    images = np.random.default_rng(0).random((50, 6)).astype("float32")
    right = inference.scores(parameters, images, "float32")
    network = contract.load_stage("2").network.Network.from_parameters(parameters, dtype="float32")
    apart = np.abs(np.asarray(network.forward(images), np.float64) - right.exact)
    assert apart.max() > 0
    assert (apart <= right.allowed).all()
    assert right.allowed.max() < 1e-4 * np.abs(right.exact).max()


def test_a_batch_that_would_take_too_long_is_skipped_with_the_reason() -> None:
    predicted: list[int] = []

    def slow(network: Any, x: Any) -> Any:
        predicted.append(len(x))
        time.sleep(0.002 * len(x))
        return network.forward(x).argmax(axis=1)

    rows = rows_of([numpy_that(C, slow)], batches=(1, 2, 1000), call_limit=1.0)
    assert [row.skipped is None for row in rows] == [True, True, False]
    assert rows[-1].skipped is not None
    assert rows[-1].skipped.startswith("one call would take about ")
    assert rows[-1].skipped.endswith(" s; the limit is 1 s")
    assert set(predicted) == {1, 2}


@pytest.mark.parametrize("batches", [(), (0, 1)])
def test_batches_must_be_at_least_one_image(batches: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"batches must be one or more sizes of at least 1; got \["):
        rows_of([contract.load_stage("2")], batches=batches)


def test_pytorch_predicts_the_same_classes() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    rows = rows_of([contract.load_stage("2")], torch=torch)
    assert [(row.contender, row.samples) for row in rows] == [
        ("stage 2", 1),
        ("PyTorch", 1),
        ("stage 2", 4),
        ("PyTorch", 4),
    ]
    for row in rows:
        assert row.skipped is None
        assert list(row.against) == ["pytorch" if row.stage == NUMPY else NUMPY]
