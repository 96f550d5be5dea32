"""What a group's candidates are given, and the columns that follow from their times."""

from typing import Any

import pytest

from shared.bench.measuring import compared_candidates, gpu, timing
from shared.bench.measuring.compared_candidates import CallLimit, Effort, take_turns
from tests.fake_stages import fake_stage, say_of_stage_4

TWO, FOUR = "stage2_numpy", "stage4_numba_cuda"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What `measure` was asked for, each time; every candidate takes 2 s, and the reference 1 s."""
    seen: list[dict[str, Any]] = []

    def measure(candidates: Any, **how: Any) -> dict[Any, timing.Measurement]:
        seen.append(how | {"candidates": list(candidates)})
        return {key: timing.summarise([1.0 if key[0] == "numpy" else 2.0]) for key in candidates}

    monkeypatch.setattr(compared_candidates, "measure", measure)
    return seen


def nothing() -> float:
    return 10.0


def test_an_effort_is_handed_on_and_no_number_of_threads_means_every_core(asked: list[dict[str, Any]]) -> None:
    take_turns({(TWO, ""): nothing}, [fake_stage({})], Effort(3, 4.0, 0.5), threads={(TWO, ""): 1})
    assert asked[0]["repeats"] == 3
    assert asked[0]["rounds"] == timing.Rounds(limit=4.0, minimum_sample=0.5)
    assert Effort(threads=7).most_threads == 7
    assert Effort().most_threads == compared_candidates.usable_cores()


def test_every_call_on_several_threads_rests_unless_a_library_is_woken_once_a_round(
    asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    say_of_stage_4(monkeypatch, "emulator")
    stages = [fake_stage({}), fake_stage({}, FOUR)]
    calls = {(name, part): nothing for name in (TWO, "pytorch", FOUR) for part in ("a", "b")}
    threads = dict.fromkeys(calls, 2)
    take_turns(calls, stages, Effort(), threads=threads)
    take_turns(calls, stages, Effort(), threads=threads, wake_once=True)
    take_turns({(TWO, "a"): nothing}, stages, Effort(), threads=threads, wake_once=True)
    assert [each["threaded"] for each in asked] == [set(calls), {(TWO, "a"), ("pytorch", "a")}, {(TWO, "a")}]
    assert [each["rest"].seconds for each in asked] == [timing.REST, timing.REST, 0.0]


def test_a_gpu_is_waited_for_and_has_no_share_of_a_cores_peak(
    asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    say_of_stage_4(monkeypatch, "gpu")
    stages = [fake_stage({}, "stage3_c", peak=lambda dtype, rounds: 10.0), fake_stage({}, FOUR)]
    calls = {("stage3_c", ""): nothing, (FOUR, ""): nothing, ("pytorch", "on the GPU"): nothing}
    threads = {("stage3_c", ""): 3, (FOUR, ""): 1, ("pytorch", "on the GPU"): 1}
    clock = {(FOUR, ""): lambda call, calls: 1.0}
    found = take_turns(
        calls, stages, Effort(), threads=threads, peak_in="float32", own_clock=clock,
        also_on_device=[("pytorch", "on the GPU")],
    )  # fmt: skip
    assert set(asked[0]["finish"]) == {(FOUR, "")}
    assert asked[0]["samplers"] == clock
    columns = [found.columns(key, reference=None, label="") for key in calls]
    assert [each["peak"] for each in columns] == [15.0, None, None]  # 10 operations in 2 s, on 3 threads
    assert [each["clock"] for each in columns] == ["wall", gpu.CLOCK, "wall"]
    assert compared_candidates.PEAK not in found.measured


def test_columns_compare_with_the_reference_and_the_opponents(asked: list[dict[str, Any]]) -> None:
    reference, mine = ("numpy", ""), (TWO, "")
    found = take_turns({reference: nothing, mine: nothing}, [fake_stage({})], Effort(), threads={reference: 2, mine: 2})
    columns = found.columns(mine, reference=reference, label="NumPy", opponents={"numpy": reference, "none": ("x", "")})
    assert (columns["reference"], columns["ratio"], columns["against"]) == ("NumPy", 2.0, {"numpy": 0.5})
    alone = found.columns(mine, reference=("nobody", ""), label="nobody")
    assert (alone["reference"], alone["ratio"], alone["against"], alone["threads"]) == ("", None, {}, 2)


def test_an_emulated_stage_has_a_time_and_is_compared_with_nothing(
    asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    say_of_stage_4(monkeypatch, "emulator")
    reference, mine = ("numpy", ""), (FOUR, "")
    found = take_turns(
        {reference: nothing, mine: nothing}, [fake_stage({}, FOUR)], Effort(), threads={reference: 1, mine: 1}
    )
    columns = found.columns(mine, reference=reference, label="NumPy", opponents={"numpy": reference})
    assert columns["measurement"].median == 2.0
    assert (columns["reference"], columns["ratio"], columns["against"]) == (gpu.NO_REFERENCE, None, {})
    assert columns["emulated"] is True


def test_without_candidates_nothing_is_measured(asked: list[dict[str, Any]]) -> None:
    stage = fake_stage({}, "stage3_c", peak=lambda dtype, rounds: 10.0)
    found = take_turns({}, [stage], Effort(), threads={("stage3_c", ""): 2}, peak_in="float32")
    assert asked == []
    assert found.columns(("stage3_c", ""), reference=None, label="")["measurement"] is None


def test_a_call_that_is_expected_to_take_too_long_is_left_out_with_the_reason() -> None:
    limit = CallLimit(1.0)
    assert limit.reason("a", 1000) is None  # nothing is known of it
    limit.note("a", work=10, seconds=0.5)
    assert limit.reason("a", 20) is None
    assert limit.reason("a", 30) == "one call would take about 1.5 s; the limit is 1 s"
    assert limit.reason("b", 30) is None
