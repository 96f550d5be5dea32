"""gpu: when there is another clock and who is beaten, as far as a machine without a GPU can tell."""

from typing import Any

import numpy as np
import pytest

from shared.bench.measuring import device_clock, device_roofs, gpu
from shared.bench.measuring.timing import Rounds, measure
from tests.fake_stages import fake_stage, say_of_stage_4


def test_without_a_gpu_there_is_no_other_clock_and_nobody_to_beat(monkeypatch: pytest.MonkeyPatch) -> None:
    say_of_stage_4(monkeypatch, "emulator")
    monkeypatch.setattr(gpu, "cuda_torch", lambda: None)
    for name in ("stage2_numpy", "stage4_numba_cuda"):
        stage = fake_stage({}, name)
        assert gpu.sampler(stage) is None
        assert gpu.samplers(stage, ["a"]) == {}
        assert gpu.roofs(stage) is None
    assert gpu.torch_steppers([], np.zeros((1, 1)), np.zeros(1), 0.1) == {}
    assert gpu.torch_predictors([], np.zeros((1, 1)), [1]) == {}


def test_on_a_gpu_all_of_a_stages_candidates_share_a_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    say_of_stage_4(monkeypatch, "gpu")
    made: list[object] = []

    def sampler() -> Any:
        made.append(0)
        return lambda call, calls: 0.25

    monkeypatch.setattr(device_clock, "sampler", sampler)
    stage = fake_stage({}, "stage4_numba_cuda")
    samplers = gpu.samplers(stage, ["a", "b"])
    assert gpu.roofs(stage) is device_roofs
    assert len(made) == 1
    calls: dict[str, Any] = {"a": lambda: None, "b": lambda: None, "host": lambda: None}
    measured = measure(calls, repeats=2, rounds=Rounds(minimum_sample=0.0), samplers=samplers)
    assert (measured["a"].median, measured["b"].median) == (0.25, 0.25)
    assert measured["host"].median < 0.25


def test_the_device_clock_takes_many_calls_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []

    def device_sample(call: Any, calls: int, sleeper: Any) -> float:
        taken.append(calls)
        return 1.0 if calls == device_clock.MOST_CALLS else 4.0

    monkeypatch.setattr(device_clock, "device_sample", device_sample)
    assert device_clock.sampler()(lambda: None, 2 * device_clock.MOST_CALLS) == 1.0
    assert device_clock.sampler()(lambda: None, 400 + 50) == (400 * 1.0 + 50 * 4.0) / 450
    assert taken == [200, 200, 200, 200, 50]
