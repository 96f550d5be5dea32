"""Listening to a step on stages 1 to 3: the step computes the same, and every part of its time is told once."""

from __future__ import annotations

from typing import Any

import pytest

from shared.architectures import Architecture
from shared.bench.kinds.steps import Case
from shared.contract import Stage, load_part, load_stage
from shared.layers import Activate, BatchNorm, Conv, Dense, Flatten, MaxPool, Residual
from shared.profile import measure
from shared.profile.c_step import CStep
from shared.profile.measure import Effort, listener_of
from shared.profile.python_step import PythonStep
from shared.profile.roofs import Roofs
from tests.stages import REASONS

DENSE = Case((6, 5, 4, 3), 3, "float64")
BLOCK = Residual((Conv(2, 3, padding=1), BatchNorm(), Activate("relu")))
LAYERS = (
    Conv(2, 3, padding=1),
    Activate("relu"),
    BLOCK,
    Activate("tanh"),
    MaxPool(2),
    Flatten(),
    Dense(3),
)
FORM = Architecture((1, 6, 6), LAYERS)


def available(name: str) -> Stage:
    """The stage, or a skip that says why it cannot be used here."""
    if reason := REASONS[name]:
        pytest.skip(reason)
    return load_stage(name)


class LayeredCase(Case):
    """A case of FORM, which is no known network."""

    @property
    def network(self) -> Any:
        return FORM

    @property
    def flops(self) -> int:
        return 0


LAYERED = LayeredCase((36, 3), 4, "float64", "lenet5")
CASES = [pytest.param(DENSE, id="dense"), pytest.param(LAYERED, id="layered")]


@pytest.fixture(params=["stage1_pure_python", "stage2_numpy", "stage3_c"])
def floor(request: pytest.FixtureRequest) -> Stage:
    return available(request.param)


@pytest.mark.parametrize("case", CASES)
def test_a_noted_step_computes_what_a_plain_one_does(floor: Stage, case: Case) -> None:
    plain, noted = (listener_of(floor, case) for _ in range(2))
    for each in (plain, noted):
        each._optimizer.learning_rate = 0.1  # type: ignore[attr-defined]
    losses = [plain.step() for _ in range(3)]
    for _ in range(3):
        noted.noted_step()
    assert noted.step() == plain.step()
    assert losses[0] != losses[2]


@pytest.mark.parametrize("case", CASES)
def test_the_spans_of_a_step_lie_one_after_the_other_and_inside_of_it(floor: Stage, case: Case) -> None:
    listener = listener_of(floor, case)
    total, spans = listener.noted_step()
    assert len(spans) == len(listener.operations)
    end = 0.0
    for began, seconds in spans:
        assert seconds > 0
        assert began >= end - 1e-9
        end = began + seconds
    assert end <= total + 1e-9


def test_after_a_noted_step_the_network_has_its_own_functions_again() -> None:
    listener = PythonStep(load_stage("2"), LAYERED)
    network: Any = listener._network
    before = {name: value for name, value in vars(network).items() if callable(value)}
    listener.noted_step()
    assert {name: value for name, value in vars(network).items() if callable(value)} == before
    for layer in (*network.layers, *network.layers[2].layers):
        assert not {"forward", "backward"} & set(vars(layer))


def test_what_c_does_at_once_is_named_as_what_it_is() -> None:
    stage = available("stage3_c")
    found = [(each.layer, each.direction, each.name) for each in CStep(stage, LAYERED).operations]
    assert found == [
        ("", "forward", "arrange side by side"),
        ("1, 2", "forward", "conv 3x3 + bias + relu"),
        ("3.1", "forward", "conv 3x3 + bias"),
        ("3.2, 3.3", "forward", "batch norm + relu"),
        ("3, 4", "forward", "add + tanh"),
        ("5", "forward", "max pool 2x2"),
        ("6", "forward", "flatten"),
        ("7", "forward", "dense + bias"),
        ("", "both", "softmax cross-entropy + gradient"),
        ("7", "backward", "dense: dW, db, dx"),
        ("6", "backward", "flatten"),
        ("5", "backward", "max pool 2x2"),
        ("4", "backward", "tanh"),
        ("3.2, 3.3", "backward", "relu + batch norm"),
        ("3.1", "backward", "conv 3x3: dW, db, dx"),
        ("3", "backward", "add"),
        ("1, 2", "backward", "relu + conv 3x3: dW, db"),
        ("1", "update", "SGD"),
        ("3.1", "update", "SGD"),
        ("3.2", "update", "SGD"),
        ("7", "update", "SGD"),
    ]


def test_the_work_of_c_is_that_of_the_plain_operations_together() -> None:
    """Fusing changes the bytes, and of the operations only softmax, which is worked out once for loss and gradient."""
    stage = available("stage3_c")
    for case in (DENSE, LAYERED):
        plain = sum(each.flops for each in PythonStep(load_stage("2"), case).operations)
        once = 4 * case.batch * case.layer_sizes[-1]
        assert sum(each.flops for each in CStep(stage, case).operations) == plain - once


def test_c_notes_nothing_where_nobody_listens() -> None:
    stage = available("stage3_c")
    notes = load_part(stage.name, "step_notes")
    listener = CStep(stage, DENSE)
    with notes.listening(listener.notes) as heard:
        listener.step()
    assert heard.all()
    before = heard.copy()
    listener.step()
    assert (heard == before).all()
    with notes.listening(2) as short:  # no room for more is no reason to write past the end
        listener.step()
    assert short.all()


def test_a_profile_says_how_the_parts_stand_to_the_whole(floor: Stage) -> None:
    shares: list[float] = []
    found = measure.profile(floor, DENSE, 1, Roofs(), Effort(4, 5.0), shares.append)
    assert (found.stage, found.network, found.batch, found.dtype) == (floor.name, "6-5-4-3", 3, "float64")
    assert found.step.samples == found.noted_step.samples == 4
    assert shares[-1] == 1.0
    assert found.sum_of_operations == pytest.approx(sum(each.measurement.median for each in found.operations))
    assert found.share_of_operations == pytest.approx(sum(each.share for each in found.operations))
    assert found.note_seconds > 0
    assert all(each.share_of_peak is None and each.bound.share is None for each in found.operations)
    total, spans = found.timeline
    assert sum(seconds for _, seconds in spans) <= total
