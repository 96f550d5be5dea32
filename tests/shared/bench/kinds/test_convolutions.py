"""convolutions, and the known networks in the other parts: what is measured, and what is not timed."""

from typing import Any

import numpy as np
import pytest

from shared import contract
from shared.architectures import NAMED, named
from shared.bench.kinds import inference, steps
from shared.bench.kinds.convolutions import Form, convolution_rows, forms_of
from shared.bench.measuring import gpu
from shared.bench.measuring.compared_candidates import Effort
from shared.bench.peers import pytorch
from shared.bench.running.plan import MODEL_PARTS, Plan, jobs
from shared.bench.running.predict import QUESTIONS
from tests.stages import USABLE_STAGES
from tests.wide import wide

TINY = Form((3, 2, 6, 5), (4, 2, 3, 3), (1, 1), (1, 1))
ONCE = Effort(repeats=1, group_limit=1.0, minimum_sample=0.0001, threads=1)
NUMPY = contract.load_stage("stage2_numpy")
STAGES = [contract.load_stage(name) for name in USABLE_STAGES]
BELOW_AND_ALL = [[stage for stage in STAGES if stage.number < 4], pytest.param(STAGES, marks=wide)]
"""Stage 4's rungs take half a minute to compile."""


@pytest.mark.parametrize("stages", BELOW_AND_ALL, ids=["to stage 3", "all"])
def test_every_rung_of_every_stage_has_a_row_forward_and_the_gradients_backward(stages: list[contract.Stage]) -> None:
    rows = list(convolution_rows(stages, forms=[TINY], effort=ONCE, dtype="float64"))
    assert [row.skipped for row in rows if row.skipped] == []
    for stage in stages:
        images = 1 if stage.number == 1 else 3
        mine = [row for row in rows if row.stage == stage.name and row.shape[0] == images]
        forward, backward = ([row for row in mine if row.part == part] for part in ("forward", "backward"))
        assert [row.variant for row in forward] == list(stage.convolution.CONVOLUTION_LADDER)
        assert len(backward) == 1
    row = next(row for row in rows if row.stage == "stage2_numpy")
    assert (row.name, row.shape) == ("2x6x5 by 4 of 3x3, padding 1, batch 3", (3, 2, 6, 5, 4, 3, 3))
    assert row.flops == 2 * (3 * 4 * 6 * 5) * (2 * 3 * 3)
    assert row.bytes == 8 * (3 * 2 * 6 * 5 + 4 * 2 * 3 * 3 + 4 + 3 * 4 * 6 * 5)
    assert row.reference == f"stage 2 {list(NUMPY.convolution.CONVOLUTION_LADDER)[-1]}, float64"


def test_a_wrong_rung_is_not_timed_and_says_where_it_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    right = NUMPY.convolution.CONVOLUTION_LADDER["im2col"]

    def wrong(x: Any, weights: Any, *more: Any, out: Any) -> Any:
        return right(x, weights[:, :, ::-1], *more, out=out)

    monkeypatch.setitem(NUMPY.convolution.CONVOLUTION_LADDER, "im2col", wrong)
    rows = list(convolution_rows([NUMPY], forms=[TINY], effort=ONCE))
    skipped = [(row.variant, row.skipped) for row in rows if row.skipped]
    assert [variant for variant, _ in skipped] == ["im2col"]
    assert skipped[0][1].startswith("im2col, index (")
    assert skipped[0][1].endswith("; not timed")


def test_the_forms_are_those_of_the_known_networks_once_each() -> None:
    assert [form.name for form in forms_of(["lenet5"])] == [
        "1x28x28 by 6 of 5x5, padding 2, batch 32",
        "6x14x14 by 16 of 5x5, batch 32",
    ]
    every = forms_of()
    assert len(every) == len(set(every)) == 8
    assert sum(form.flops for form in forms_of(["lenet5"], batch=1)) == 2 * (117_600 + 240_000)


@pytest.mark.parametrize("model", NAMED)
def test_the_work_of_a_step_is_three_times_the_forward_pass_but_for_the_first_layer(model: str) -> None:
    case = steps.model_cases(model, [7])[0]
    first = next(form for form in forms_of([model], batch=1)).flops
    assert case.flops == 7 * (6 * named(model).multiply_adds - first)
    assert (case.name, list(case.layer_sizes), case.bytes) == (f"{model}, batch 7", [784, 10], 0)


@pytest.mark.parametrize(
    ("dtype", "expected"), [("float32", ["fused", "graph", "graph TF32"]), ("float64", ["fused", "graph"])]
)
def test_a_gpu_rounds_the_steps_in_float32_only(
    monkeypatch: pytest.MonkeyPatch, dtype: str, expected: list[str]
) -> None:
    monkeypatch.setattr(gpu, "on_gpu", lambda stage: True)
    monkeypatch.setattr(gpu, "has_tf32", lambda stage: True)
    case = steps.model_cases("lenet5", [2])[0]._replace(dtype=dtype)
    assert list(steps._rungs(contract.load_stage("4"), case)) == expected


@pytest.mark.parametrize("stages", BELOW_AND_ALL, ids=["to stage 3", "all"])
def test_a_step_of_a_known_network_is_timed_beside_stage_2_where_the_losses_agree(stages: list[contract.Stage]) -> None:
    able = [stage for stage in stages if stage.number > 1]
    cases = [case._replace(dtype="float64") for case in steps.model_cases("lenet5", [2])]
    rows = list(steps.step_rows(able, cases=cases, effort=ONCE, torch=torch_or_none()))
    assert [row.stage for row in rows if row.stage != "pytorch"] == [stage.name for stage in able]
    assert [row.skipped for row in rows] == [None] * len(rows)
    for row in rows:
        assert row.reference == ("nothing: emulated on the CPU" if row.emulated else "stage 2, float64")
    assert all(row.peak is None or row.share_of_peak for row in rows)


def test_predictions_of_a_known_network_are_timed_where_they_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = list(inference.inference_rows([NUMPY], model="lenet5", batches=[1, 3], effort=ONCE, torch=torch_or_none()))
    assert [row.skipped for row in rows] == [None] * len(rows)
    assert {(row.name, row.flops) for row in rows} == {
        (f"lenet5, batch {n}", 2 * n * named("lenet5").multiply_adds) for n in (1, 3)
    }
    monkeypatch.setattr(NUMPY.network.Network, "predict", lambda self, x: np.zeros(len(x), np.int64))
    (row,) = inference.inference_rows([NUMPY], model="lenet5", batches=[40], effort=ONCE)
    assert "it predicts class 0 for image " in (row.skipped or "")


def torch_or_none() -> Any:
    return pytorch.load_torch(1)[0]


@pytest.mark.parametrize("model", ["lenet5", "residual_cnn"])
def test_a_known_network_in_pytorch_has_stage_2s_outputs_and_gradients(model: str) -> None:
    torch = torch_or_none()
    if torch is None:
        pytest.skip("PyTorch is not installed; it is only measured against")
    parameters = steps.start_parameters(named(model), "float64")
    theirs = pytorch.network(torch, parameters, model)
    ours = NUMPY.network.Network.from_parameters(parameters, dtype="float64", architecture=named(model))
    random = np.random.default_rng(0)
    x, y = random.random((2, 784)), np.array([3, 9])
    torch.nn.functional.cross_entropy(theirs(torch.from_numpy(x)), torch.from_numpy(y)).backward()
    for gradient, parameter in zip(ours.gradients(x, y), theirs.parameters(), strict=True):
        expected = parameter.grad.numpy().T if gradient.ndim == 2 else parameter.grad.numpy()
        np.testing.assert_allclose(gradient, expected, rtol=1e-8, atol=1e-10)


def test_a_model_has_jobs_of_its_own_and_no_question_about_other_networks() -> None:
    plan = Plan(stages=(), parts=MODEL_PARTS, model="lenet5")
    found = jobs(plan)
    assert [job.part for job in found] == ["machine", *MODEL_PARTS]
    asked = {question.job for question in QUESTIONS} & {job.title for job in found}
    assert asked == {"the machine's roofs", "convolutions"}
    assert [job.part for job in jobs(Plan(stages=(), parts=("memory",), model="lenet5"))] == ["memory"]
