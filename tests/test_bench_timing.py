"""shared.bench.timing with a clock of its own: statistics, interleaving, inner calls, rests and ratios, exactly."""

import json
import time
from collections.abc import Callable

import numpy as np
import pytest

from shared.bench import timing
from shared.bench.rows import BenchRow


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
    timing.measure(candidates, repeats=3, warmup=2, clock=machine.clock)
    assert "".join(machine.log) == "ABCABC" + "ABC" + "ABCABCABC"  # warm-up, counting the inner calls, samples


def test_median_and_quartiles_of_the_samples() -> None:
    machine = FakeMachine()
    # The 100 s of the warm-up and the 50 s of the calibration must not count.
    call = machine.work("A", 100.0, 50.0, 5.0, 1.0, 3.0, 2.0, 4.0)
    result = timing.measure({"A": call}, repeats=5, warmup=1, clock=machine.clock)["A"]
    assert (result.lower, result.median, result.upper) == (2.0, 3.0, 4.0)
    assert (result.fastest, result.samples, result.calls) == (1.0, 5, 1)


def test_one_outlier_does_not_move_the_median() -> None:
    machine = FakeMachine()
    call = machine.work("A", 1.0, 1.0, 1.0, 1000.0, 1.0)
    assert timing.measure({"A": call}, repeats=5, warmup=0, clock=machine.clock)["A"].median == 1.0


def test_a_short_call_is_repeated_until_a_sample_fills_the_minimum() -> None:
    machine = FakeMachine()
    result = timing.measure(
        {"A": machine.work("A", 2e-6)}, repeats=2, warmup=0, minimum_sample=0.001, clock=machine.clock
    )["A"]
    assert result.calls * 2e-6 >= 0.001
    assert result.calls < 2000
    assert result.median == pytest.approx(2e-6)


def test_a_call_faster_than_the_clock_still_ends() -> None:
    ticks = iter(range(10_000))
    coarse = lambda: next(ticks) // 100 * 0.01  # noqa: E731  a clock that stands still for 100 readings
    result = timing.measure({"A": lambda: None}, repeats=1, warmup=0, clock=coarse)["A"]
    assert result.calls > 1


def test_the_limit_stops_after_three_rounds_at_least() -> None:
    machine = FakeMachine()
    result = timing.measure({"A": machine.work("A", 10.0)}, repeats=50, warmup=0, limit=1.0, clock=machine.clock)
    assert result["A"].samples == 3


def test_a_real_sleep_takes_at_least_its_length() -> None:
    result = timing.measure({"nap": lambda: time.sleep(0.01)}, repeats=3, warmup=0)["nap"]
    assert result.fastest >= 0.0099  # the clock and the sleep may round apart by microseconds
    assert result.lower <= result.median <= result.upper


@pytest.mark.parametrize(("repeats", "warmup"), [(0, 0), (1, -1)])
def test_measure_rejects_bad_counts(repeats: int, warmup: int) -> None:
    with pytest.raises(ValueError, match="repeats must be at least 1 and warmup at least 0"):
        timing.measure({"A": lambda: None}, repeats=repeats, warmup=warmup)


def test_measure_rejects_no_candidates() -> None:
    with pytest.raises(ValueError, match="candidates is empty"):
        timing.measure({}, repeats=1, warmup=0)


def test_a_threaded_candidate_rests_and_then_wakes_uncounted_before_each_sample() -> None:
    machine = FakeMachine()

    def sleep(seconds: float) -> None:
        machine.log.append("z")
        machine.now += seconds

    candidates = {"A": machine.work("A", 1.0), "B": machine.work("B", 1.0)}
    result = timing.measure(
        candidates, repeats=2, warmup=1, threaded={"B"}, rest=7.0, wake=2.5, clock=machine.clock, sleep=sleep
    )
    # Warm-up, counting the inner calls, samples: each of B's after a rest and three calls, the last begun before 2.5.
    assert "".join(machine.log) == "AB" + "AzBBBB" + "AzBBBB" * 2
    assert result["A"].median == result["B"].median == 1.0  # neither the rest nor the waking is in a sample


def test_times_as_fast_leaves_out_oneself_and_who_was_not_there() -> None:
    measured = {name: timing.summarise([seconds]) for name, seconds in {"a": 2.0, "b": 1.0}.items()}
    opponents = {"first": "a", "second": "b", "third": "c"}
    assert timing.times_as_fast(measured, "b", opponents) == {"first": 2.0}


def test_a_row_knows_its_speed_its_share_of_the_peak_and_its_name() -> None:
    measurement = timing.summarise([0.5])
    row = BenchRow("product", "stage3_c", "ab", "float32", (), 10**9, measurement, "r", 1.0, variant="packed", peak=8e9)
    assert (row.gflops, row.share_of_peak, row.contender) == (2.0, 0.25, "stage 3 packed")
    assert (row.as_dict()["gflops"], row.as_dict()["share_of_peak"]) == (2.0, 0.25)
    skipped = BenchRow("step", "pytorch", "s", "float32", (), 1, None, "r", None, "reason", peak=8e9)
    assert (skipped.gflops, skipped.share_of_peak, skipped.contender) == (None, None, "PyTorch")


def test_the_document_is_json_with_environment_and_schema() -> None:
    measurement = timing.summarise([0.5])
    rows = [BenchRow("ladder", "stage2_numpy", "einsum", "float64", (2, 2, 2), 16, measurement, "r", 1.0)]
    document = json.loads(json.dumps(timing.document(rows, complete=False)))
    assert (document["schema"], document["complete"]) == (2, False)
    assert all(document[name] == [] for name in ("peaks", "products", "steps", "epochs"))
    assert document["ladders"][0]["measurement"]["samples"] == 1
    facts = document["environment"]
    assert {"cpu", "cores", "python", "numpy", "blas", "os", "date", "groundup", "revision"} <= set(facts)
    assert facts["numpy"] == np.__version__
    assert facts["cores"] >= 1


def test_what_runs_behind_the_callers_back_is_waited_for_once_a_sample_and_inside_its_time() -> None:
    now, log = [0.0], []

    def launch() -> None:
        log.append("launch")
        now[0] += 1.0

    def wait() -> None:
        log.append("wait")
        now[0] += 10.0

    measured = timing.measure(
        {"gpu": launch}, repeats=1, minimum_sample=0.0, finish={"gpu": wait}, clock=lambda: now[0]
    )
    assert measured["gpu"].median == 11.0
    assert log == ["launch", "wait"] * 3  # the warm-up, the calibration, the sample
