"""The chart of a profile: a row for each layer, in words that fit, of a plain and of a fused step."""

from __future__ import annotations

from typing import Any

import pytest

from shared.architectures import named
from shared.bench.measuring.timing import summarise
from shared.charts.figures.profile import profile_chart
from shared.machine.environment import environment
from shared.profile.operations import BACKWARD, BOTH, FORWARD, UPDATE, Operation, plain
from shared.profile.step_profile import Bound, Noted, Profile, Timed
from tests.shared.charts import chart_checks

FUSED = [
    Operation("arrange side by side", "", FORWARD, (2, 784), (2, 784), 0, 9),
    Operation("conv 5x5 + bias", "1", FORWARD, (2, 784), (2, 784), 900, 9),
    Operation("max pool 2x2 + relu", "2, 3", FORWARD, (2, 784), (2, 784), 90, 9),
    Operation("add + tanh", "4, 5", FORWARD, (2, 784), (2, 784), 90, 9),
    Operation("softmax cross-entropy + gradient", "", BOTH, (2, 10), (), 90, 9, kind="loss"),
    Operation("tanh", "5", BACKWARD, (2, 784), (2, 784), 90, 9),
    Operation("add", "4", BACKWARD, (2, 784), (2, 784), 90, 9),
    Operation("relu + max pool 2x2", "2, 3", BACKWARD, (2, 784), (2, 784), 90, 9),
    Operation("conv 5x5: dW, db", "1", BACKWARD, (2, 784), (2, 784), 900, 9),
    Operation("SGD", "1", UPDATE, (9,), (9,), 18, 9, kind="update"),
]
PLAIN = plain(named("residual_cnn"), 2, 4, copies=False)


def profile(operations: list[Operation], **more: Any) -> Profile:
    step = 1e-6 * sum(range(1, len(operations) + 2))
    timed = [
        Timed(each, summarise([1e-6 * i]), 1e-6 * i / step, each.flops / (1e9 * i), Bound("neither", 0.1, "latency"))
        for i, each in enumerate(operations, start=1)
    ]
    own: dict[str, Any] = {
        "stage": "stage3_c",
        "network": "residual_cnn",
        "batch": 2,
        "dtype": "float32",
        "threads": 2,
        "emulated": False,
        "clock": "wall",
        "step": summarise([step]),
        "noted_step": summarise([step]),
        "between": summarise([1e-9]),
        "notes": 3,
        "note_seconds": 25e-9,
        "operations": timed,
        "timeline": Noted(step, []),
    }
    return Profile(**own | more)


@pytest.mark.parametrize("operations", [FUSED, PLAIN], ids=["fused", "plain"])
@pytest.mark.parametrize("emulated", [False, True])
def test_no_text_is_cut_off_too_small_over_another_or_unreadable(operations: list[Operation], emulated: bool) -> None:
    figure = profile_chart(profile(operations, emulated=emulated), environment() | {"threads": 2}).figure
    chart_checks.assert_sound(figure)


def test_both_ways_of_a_layer_and_its_update_are_one_row() -> None:
    chart = profile_chart(profile(FUSED), environment())
    (axes,) = chart.figure.axes
    names = [label.get_text().replace("\u00a0\u00a0", " ") for label in axes.get_yticklabels()]
    assert names == [
        *("arrange side by side", "1 conv 5x5", "2, 3 max pool 2x2 + relu", "4, 5 add + tanh", "loss"),
        "between the operations",
    ]
    assert chart.title.replace("\u00a0", " ") == "C spends 32 % of a step of residual_cnn in layer 1, conv 5x5"
    assert "2, 3 max pool 2x2 + relu 17 %" in chart.alt.replace("  ", " ").replace("\u00a0", " ")


def test_a_kernel_of_several_layers_is_not_counted_as_one_of_them() -> None:
    kernels = [
        Operation("forward_partial: dense", "1", FORWARD, (2, 784), (2, 784), 90, 9),
        Operation("head: bias + relu, dense, loss, gradient, dx", "1, 3", BOTH, (2, 784), (2, 10), 90, 9),
        Operation("update: dW, db, SGD", "1, 3", UPDATE, (2, 784), (2, 10), 90, 9),
    ]
    chart = profile_chart(profile(kernels), environment())
    (axes,) = chart.figure.axes
    names = [label.get_text().replace("\u00a0\u00a0", " ") for label in axes.get_yticklabels()]
    assert names == ["1 forward_partial", "1, 3 head", "1, 3 update", "between the operations"]
    assert chart.title.replace("\u00a0", " ") == (
        "C spends 30 % of a step of residual_cnn in the operation update of layers 1, 3"
    )


def test_an_emulated_step_is_never_shown_as_a_gpus() -> None:
    chart = profile_chart(profile(FUSED, stage="stage4_numba_cuda", emulated=True), environment())
    assert chart.title.startswith("Emulated on the CPU, CUDA spends")
    assert "which says nothing about a GPU" in chart.figure._supxlabel.get_text()  # type: ignore[attr-defined]
