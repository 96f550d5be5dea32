"""shared.steps: what a step costs at least, who takes it, and that a wrong one is not timed."""

from typing import Any

import pytest

from shared import contract
from shared.architectures import NAMED
from shared.bench.kinds import steps
from shared.bench.kinds.steps import Case
from shared.bench.measuring.compared_candidates import Effort
from tests.fake_stages import fake_stage
from tests.wide import widely

SMALL = Case((5, 4, 3), 2, "float64")


@pytest.fixture
def halving(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the expected losses be those of a fake stage's network: each half of the one before."""
    monkeypatch.setattr(steps, "expected_losses", lambda layer_sizes, batches: [2.0, 1.0, 0.5])


@pytest.mark.parametrize("left_out", widely(["persistent", ""]))
def test_step_rows_time_every_stage_against_the_bare_products(
    stage: contract.Stage, left_out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The persistent kernel is a rung as the others are, and takes longest of all to compile: test_persistent.py does,
    and takes its steps. Here its row is wide."""
    if hasattr(stage.network, "STEP_LADDER"):
        ladder = {name: step for name, step in stage.network.STEP_LADDER.items() if name != left_out}
        monkeypatch.setattr(stage.network, "STEP_LADDER", ladder)
    rows = list(steps.step_rows([stage], cases=[SMALL], effort=Effort(repeats=1, threads=1)))
    assert [row.variant for row in rows] == list(getattr(stage.network, "STEP_LADDER", [""]))
    for row in rows:
        assert (row.kind, row.stage, row.name, row.skipped) == ("step", stage.name, "5-4-3, batch 2", None)
        # xW: 2·5·4 + 2·4·3; xᵀg: the same counts; gWᵀ of the second layer: 2·3·4. Two operations each.
        assert row.flops == 2 * (40 + 24 + 40 + 24 + 24)
        # Each layer has the same three matrices in all its products: two of the first layer, three of the second.
        assert row.bytes == 8 * (2 * (10 + 20 + 8) + 3 * (8 + 12 + 6))
        assert row.samples == 2
        if contract.is_emulated(stage.name):
            assert (row.reference, row.ratio) == ("nothing: emulated on the CPU", None)
        else:
            assert row.reference == "its matrix products alone, NumPy a @ b, float64"
            assert row.ratio is not None
            assert row.ratio > 0


@pytest.mark.usefixtures("halving")
def test_rungs_are_set_against_stage_2() -> None:
    stages = [fake_stage({}), fake_stage({}, "stage3_c", step_ladder={"slow": step, "fast": step})]
    rows = list(steps.step_rows(stages, cases=[SMALL], effort=Effort(repeats=1, threads=1)))
    assert [row.contender for row in rows] == ["stage 2", "stage 3 slow", "stage 3 fast"]
    assert rows[0].against == {}
    for row in rows[1:]:
        assert row.measurement is not None
        assert rows[0].measurement is not None
        assert row.against == {"stage2_numpy": rows[0].measurement.median / row.measurement.median}


@pytest.mark.usefixtures("halving")
def test_a_step_with_another_loss_is_refused_with_both_losses() -> None:
    calls: list[float] = []

    def wrong(network: Any, x: Any, y: Any, optimizer: Any, masks: Any) -> float:
        calls.append(network.train_step(x, y, optimizer))
        return calls[-1] if len(calls) == 1 else 1.001  # the first loss is right, the update is not

    stages = [fake_stage({}), fake_stage({}, "stage3_c", step_ladder={"wrong": wrong, "right": step})]
    first, refused, right = steps.step_rows(stages, cases=[SMALL], effort=Effort(repeats=1, threads=1))
    assert (refused.measurement, refused.ratio, refused.against) == (None, None, {})
    assert refused.skipped == "its loss in step 2 is 1.001 but stage 2 in float64 has 1; not timed"
    assert len(calls) == steps.CHECKED_STEPS
    assert first.skipped is None
    assert right.skipped is None


@pytest.mark.parametrize("model", widely(NAMED, first=1))
@pytest.mark.parametrize("batch", widely([32, 64, 128]))
def test_the_loss_of_a_known_network_falls(model: str, batch: int) -> None:
    """Where it grows, float32 moves away from float64 by more than is allowed, and a right step is refused."""
    case = Case((784, 10), batch, "float64", model)
    losses = steps.expected_losses(case.network, [steps.batch_of(case)] * steps.CHECKED_STEPS)
    assert losses == sorted(losses, reverse=True)


def test_the_first_floor_takes_no_float32_step() -> None:
    stages = [fake_stage({}, "stage1_pure_python"), fake_stage({})]
    rows = list(steps.step_rows(stages, cases=[SMALL._replace(dtype="float32")], effort=Effort(repeats=1, threads=1)))
    assert [row.stage for row in rows] == ["stage2_numpy"]


def step(network: Any, x: Any, y: Any, optimizer: Any, masks: Any) -> float:
    return float(network.train_step(x, y, optimizer, masks))
