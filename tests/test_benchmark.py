"""shared.benchmark with a clock of its own: statistics, interleaving, inner calls, ratios and skipping, exactly."""

import json
import time
import types
from collections.abc import Callable

import numpy as np
import pytest

from shared import benchmark, contract


class FakeMachine:
    """A clock that moves only when work is done on it, and a log of who worked."""

    def __init__(self) -> None:
        self.now = 0.0
        self.log: list[str] = []

    def clock(self) -> float:
        return self.now

    def work(self, name: str, *seconds: float) -> Callable[[], object]:
        """A candidate whose calls take `seconds` in turn, the last one for ever after."""
        remaining = list(seconds)

        def call() -> None:
            self.log.append(name)
            self.now += remaining.pop(0) if len(remaining) > 1 else remaining[0]

        return call


def test_candidates_are_interleaved_after_warmup() -> None:
    machine = FakeMachine()
    candidates = {name: machine.work(name, 1.0) for name in "ABC"}
    benchmark.measure(candidates, repeats=3, warmup=2, clock=machine.clock)
    assert "".join(machine.log) == "ABCABC" + "ABC" + "ABCABCABC"  # warm-up, counting the inner calls, samples


def test_median_and_quartiles_of_the_samples() -> None:
    machine = FakeMachine()
    # The 100 s of the warm-up and the 50 s of the calibration must not count.
    call = machine.work("A", 100.0, 50.0, 5.0, 1.0, 3.0, 2.0, 4.0)
    result = benchmark.measure({"A": call}, repeats=5, warmup=1, clock=machine.clock)["A"]
    assert (result.lower, result.median, result.upper) == (2.0, 3.0, 4.0)
    assert (result.fastest, result.samples, result.calls) == (1.0, 5, 1)


def test_one_outlier_does_not_move_the_median() -> None:
    machine = FakeMachine()
    call = machine.work("A", 1.0, 1.0, 1.0, 1000.0, 1.0)
    assert benchmark.measure({"A": call}, repeats=5, warmup=0, clock=machine.clock)["A"].median == 1.0


def test_a_short_call_is_repeated_until_a_sample_fills_the_minimum() -> None:
    machine = FakeMachine()
    result = benchmark.measure(
        {"A": machine.work("A", 2e-6)}, repeats=2, warmup=0, minimum_sample=0.001, clock=machine.clock
    )["A"]
    assert result.calls * 2e-6 >= 0.001
    assert result.calls < 2000
    assert result.median == pytest.approx(2e-6)


def test_a_call_faster_than_the_clock_still_ends() -> None:
    ticks = iter(range(10_000))
    coarse = lambda: next(ticks) // 100 * 0.01  # noqa: E731  a clock that stands still for 100 readings
    result = benchmark.measure({"A": lambda: None}, repeats=1, warmup=0, clock=coarse)["A"]
    assert result.calls > 1


def test_the_limit_stops_after_three_rounds_at_least() -> None:
    machine = FakeMachine()
    result = benchmark.measure({"A": machine.work("A", 10.0)}, repeats=50, warmup=0, limit=1.0, clock=machine.clock)
    assert result["A"].samples == 3


def test_a_real_sleep_takes_at_least_its_length() -> None:
    result = benchmark.measure({"nap": lambda: time.sleep(0.01)}, repeats=3, warmup=0)["nap"]
    assert result.fastest >= 0.0099  # the clock and the sleep may round apart by microseconds
    assert result.lower <= result.median <= result.upper


@pytest.mark.parametrize(("repeats", "warmup"), [(0, 0), (1, -1)])
def test_measure_rejects_bad_counts(repeats: int, warmup: int) -> None:
    with pytest.raises(ValueError, match="repeats must be at least 1 and warmup at least 0"):
        benchmark.measure({"A": lambda: None}, repeats=repeats, warmup=warmup)


def test_measure_rejects_no_candidates() -> None:
    with pytest.raises(ValueError, match="candidates is empty"):
        benchmark.measure({}, repeats=1, warmup=0)


def fake_stage(ladder: dict[str, Callable[[object, object], object]], name: str = "stage2_numpy") -> contract.Stage:
    """A stage whose ladder is given and whose other rooms are bare."""
    room = types.SimpleNamespace()
    arrays = types.SimpleNamespace(asarray=lambda values, dtype="float32": np.asarray(values, dtype))
    matmul = types.SimpleNamespace(LADDER=ladder)
    return contract.Stage(name, arrays, matmul, room, room, room, room, room)  # type: ignore[arg-type]


def test_ladder_rows_name_the_reference_and_follow_their_shape() -> None:
    stage = fake_stage({"nap": lambda a, b: time.sleep(0.002), "fast": np.matmul})
    rows = list(benchmark.ladder_rows([stage], sizes=[4], dtypes=["float32"], repeats=3))
    assert [row.name for row in rows] == ["nap", "fast"]
    assert {row.reference for row in rows} == {"NumPy a @ b, float32"}
    nap = rows[0]
    assert nap.flops == 2 * 4 * 4 * 4
    assert nap.measurement is not None
    assert nap.ratio is not None
    assert nap.gflops == pytest.approx(128 / nap.measurement.median / 1e9)
    assert nap.ratio > 1  # 2 ms of sleep against a product of 64 multiply-adds


def test_a_rung_too_slow_for_the_next_size_is_skipped_with_the_reason() -> None:
    calls: list[int] = []

    def nap(a: np.ndarray, b: np.ndarray) -> None:
        calls.append(len(a))
        time.sleep(0.01)

    stage = fake_stage({"nap": nap, "fast": np.matmul})
    rows = list(benchmark.ladder_rows([stage], sizes=[2, 16], dtypes=["float64"], repeats=1, call_limit=1.0))
    skipped = [row for row in rows if row.skipped]
    assert [(row.name, row.shape) for row in skipped] == [("nap", (16, 16, 16))]
    assert skipped[0].skipped is not None
    assert "the limit is 1 s" in skipped[0].skipped
    assert skipped[0].measurement is None
    assert set(calls) == {2}


def test_the_first_floor_stands_only_among_the_float64_rows() -> None:
    stage = fake_stage({"fast": np.matmul}, name="stage1_pure_python")
    rows = list(benchmark.ladder_rows([stage], sizes=[2], repeats=1))
    assert [row.dtype for row in rows] == ["float64"]


def test_step_rows_time_every_stage_against_the_bare_products(stage: contract.Stage) -> None:
    rows = list(benchmark.step_rows([stage], networks=[[5, 4, 3]], batch=2, repeats=1, dtypes=["float64"]))
    (row,) = rows
    assert (row.kind, row.stage, row.name) == ("step", stage.name, "5-4-3, batch 2")
    # xW: 2·5·4 + 2·4·3; xᵀg: the same counts; gWᵀ of the second layer: 2·3·4. Two operations each.
    assert row.flops == 2 * (40 + 24 + 40 + 24 + 24)
    assert row.reference == "its matrix products alone, NumPy a @ b, float64"
    assert row.ratio is not None
    assert row.ratio > 0


def test_every_rung_of_a_real_ladder_is_timed(stage: contract.Stage) -> None:
    rows = list(benchmark.ladder_rows([stage], sizes=[8], dtypes=["float64"], repeats=1))
    assert [row.name for row in rows] == list(stage.matmul.LADDER)


def test_the_document_is_json_with_environment_and_schema() -> None:
    stage = fake_stage({"fast": np.matmul})
    rows = list(benchmark.ladder_rows([stage], sizes=[2], dtypes=["float64"], repeats=1))
    document = json.loads(json.dumps(benchmark.document(rows, complete=False)))
    assert (document["schema"], document["complete"], document["steps"]) == (1, False, [])
    assert document["ladders"][0]["measurement"]["samples"] == 1
    facts = document["environment"]
    assert {"cpu", "cores", "python", "numpy", "blas", "os", "date", "groundup", "revision"} <= set(facts)
    assert facts["numpy"] == np.__version__
    assert facts["cores"] >= 1
