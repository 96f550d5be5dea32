"""A call of a function on all stages gives the same numbers to rounding, and says so only then."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from groundup.studio.floors.rooms import FUNCTIONS
from groundup.studio.floors.running import Runs
from shared.contract import STAGES, load_stage
from tests.stages import REASONS

FEW = [("activations", "softmax"), ("losses", "hinge_backward"), ("matmul", "matmul ladder"), ("arrays", "to_host")]


def ran(runs: Runs, room: str, name: str, seed: int = 1, rungs: tuple[str, ...] = ()) -> dict[str, Any]:
    """The answer when all stages are prepared."""
    for _ in range(12_000):
        found = runs.run(room, name, rungs, seed)
        if all(each["state"] != "warming" for each in found["stages"]):
            return found
        time.sleep(0.05)
    raise AssertionError("the stages were not prepared within a minute")


@pytest.mark.parametrize(("room", "name"), FEW)
def test_all_stages_give_the_same_numbers(room: str, name: str) -> None:
    found = ran(Runs(), room, name)
    assert [each["state"] for each in found["stages"]] == ["absent" if REASONS[each] else "ready" for each in STAGES]
    ready = [each for each in found["stages"] if each["state"] == "ready"]
    for stage in ready:
        assert stage["seconds"] > 0
        for result, other in zip(stage["results"], ready[0]["results"], strict=True):
            assert result["apart"] <= result["allowed"]
            np.testing.assert_allclose(result["values"], other["values"], rtol=1e-12, atol=1e-13)
    assert found["stages"][3]["emulated"] or REASONS[STAGES[3]]


def test_the_numbers_are_those_of_the_seed() -> None:
    runs = Runs()
    one, same, other = (ran(runs, "activations", "relu", seed) for seed in (1, 1, 2))
    assert one["inputs"] == same["inputs"] != other["inputs"]
    z = np.array(one["inputs"][0]["values"])
    assert one["stages"][0]["results"][0]["values"] == np.maximum(z, 0).tolist()
    assert one["inputs"][0]["shape"] == [2, 3]


def test_a_wrong_stage_is_beyond_what_rounding_explains(monkeypatch: pytest.MonkeyPatch) -> None:
    numpy = load_stage("numpy")
    monkeypatch.setattr(
        load_stage("stage1_pure_python").activations, "relu", lambda z: (numpy.activations.relu(z) * 1.001).tolist()
    )
    result = ran(Runs(), "activations", "relu")["stages"][0]["results"][0]
    assert result["apart"] > result["allowed"]


@pytest.mark.parametrize(("seed", "came"), [(-1, "-1"), ("1", "1"), (None, "None"), (True, "True")])
def test_a_seed_that_is_none_gets_a_sentence(seed: Any, came: str) -> None:
    with pytest.raises(ValueError, match=f"seed: expected a whole number from 0, got {came}"):
        Runs().run("activations", "relu", (), seed)


def test_the_last_function_that_was_chosen_is_prepared_first() -> None:
    runs = Runs()
    for name in FUNCTIONS["pooling"]:
        runs.function("pooling", name, (), prepare=True)
    assert ran(runs, "activations", "identity")["stages"][1]["state"] == "ready"
