"""timing with a clock of its own: statistics, interleaving, inner calls, rests and ratios, exactly."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from shared.bench.kinds import ladders
from shared.bench.measuring import compared_candidates, timing
from shared.bench.measuring.compared_candidates import Effort
from shared.bench.measuring.rows import BenchRow
from shared.bench.measuring.timing import Clock, Rest, Rounds
from shared.bench.records.tables import tables
from shared.bench.running.passes import merge
from tests.fake_stages import fake_stage


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
    timing.measure(candidates, repeats=3, rounds=Rounds(warmup=2), clock=Clock(machine.clock))
    assert "".join(machine.log) == "ABCABC" + "ABC" + "ABCABCABC"  # warm-up, counting the inner calls, samples


def test_median_and_quartiles_of_the_samples() -> None:
    machine = FakeMachine()
    # The 100 s of the warm-up and the 50 s of the calibration must not count.
    call = machine.work("A", 100.0, 50.0, 5.0, 1.0, 3.0, 2.0, 4.0)
    result = timing.measure({"A": call}, repeats=5, rounds=Rounds(warmup=1), clock=Clock(machine.clock))["A"]
    assert (result.lower, result.median, result.upper) == (2.0, 3.0, 4.0)
    assert (result.fastest, result.samples, result.calls) == (1.0, 5, 1)


def test_a_short_call_is_repeated_until_a_sample_fills_the_minimum() -> None:
    machine = FakeMachine()
    result = timing.measure(
        {"A": machine.work("A", 2e-6)},
        repeats=2,
        rounds=Rounds(warmup=0, minimum_sample=0.001),
        clock=Clock(machine.clock),
    )["A"]
    assert result.calls * 2e-6 >= 0.001
    assert result.calls < 2000
    assert result.median == pytest.approx(2e-6)


def test_a_call_faster_than_the_clock_still_ends() -> None:
    ticks = iter(range(10_000))
    coarse = lambda: next(ticks) // 20 * 0.01  # noqa: E731  a clock that stands still for 20 readings
    result = timing.measure({"A": lambda: None}, repeats=1, rounds=Rounds(warmup=0), clock=Clock(coarse))["A"]
    assert result.calls > 1


def test_the_limit_stops_after_three_rounds_at_least() -> None:
    machine = FakeMachine()
    result = timing.measure(
        {"A": machine.work("A", 10.0)}, repeats=50, rounds=Rounds(warmup=0, limit=1.0), clock=Clock(machine.clock)
    )
    assert result["A"].samples == 3


@pytest.mark.parametrize(("repeats", "warmup"), [(0, 0), (1, -1)])
def test_measure_rejects_bad_counts(repeats: int, warmup: int) -> None:
    with pytest.raises(ValueError, match="repeats must be at least 1 and warmup at least 0"):
        timing.measure({"A": lambda: None}, repeats=repeats, rounds=Rounds(warmup=warmup))


def test_a_threaded_candidate_rests_and_then_wakes_uncounted_before_each_sample() -> None:
    machine = FakeMachine()

    def sleep(seconds: float) -> None:
        machine.log.append("z")
        machine.now += seconds

    candidates = {"A": machine.work("A", 1.0), "B": machine.work("B", 1.0)}
    result = timing.measure(
        candidates, repeats=2, threaded={"B"}, rest=Rest(7.0, wake=2.5), clock=Clock(machine.clock, sleep)
    )
    # Warm-up, counting the inner calls, samples: each of B's after a rest and three calls, the last begun before 2.5.
    assert "".join(machine.log) == "AB" + "AB" + "AzBBBB" * 2
    assert result["A"].median == result["B"].median == 1.0  # neither the rest nor the waking is in a sample


def test_a_row_knows_its_speed_its_share_of_the_peak_and_its_name() -> None:
    measurement = timing.summarise([0.5])
    row = BenchRow("product", "stage3_c", "ab", "float32", (), 10**9, measurement, "r", 1.0, variant="packed", peak=8e9)
    assert (row.gflops, row.share_of_peak, row.contender) == (2.0, 0.25, "stage 3 packed")
    assert (row.as_dict()["gflops"], row.as_dict()["share_of_peak"]) == (2.0, 0.25)
    skipped = BenchRow("step", "pytorch", "s", "float32", (), 1, None, "r", None, "reason", peak=8e9)
    assert (skipped.gflops, skipped.share_of_peak, skipped.contender) == (None, None, "PyTorch")


@pytest.mark.parametrize(
    ("samples", "settled"),
    [
        ([1.0] * 5, False),  # five may all lie on the same side of the median
        ([1.0] * 6, True),
        ([1.0, 1.0, 1.0, 1.0, 1.0, 1.02], False),
        ([1.0, 1.0, 1.0, 1.0, 1.0, 1.009], True),
        ([0.5, *[1.0] * 8, 1.5], True),  # of ten samples one may stray at either end
        ([0.5, 0.5, *[1.0] * 6, 1.5, 1.5], False),
    ],
)
def test_a_median_has_settled_when_its_interval_is_narrow(samples: list[float], settled: bool) -> None:
    assert timing.has_settled(samples) is settled


def test_the_interval_of_a_median_holds_it_as_often_as_it_should() -> None:
    random = np.random.default_rng(0)
    for count in (6, 9, 15, 40):
        outside = timing._samples_outside(count)
        assert outside is not None
        draws = np.sort(random.exponential(size=(20_000, count)), axis=1)
        held = (draws[:, outside] <= np.log(2)) & (np.log(2) <= draws[:, -1 - outside])
        assert 0.945 <= held.mean() < 0.99


def test_rounds_end_when_every_median_has_settled() -> None:
    machine = FakeMachine()
    steady, restless = machine.work("S", 1.0), machine.work("R", *[1.0, 2.0] * 6, 1.0)
    result = timing.measure({"S": steady}, repeats=30, rounds=Rounds(warmup=0), clock=Clock(machine.clock))["S"]
    assert (result.samples, result.settled) == (timing.LEAST_ROUNDS, True)
    result = timing.measure({"R": restless}, repeats=10, rounds=Rounds(warmup=0), clock=Clock(machine.clock))["R"]
    assert (result.samples, result.settled) == (10, False)


def test_candidates_of_known_speed_come_out_as_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the clock to the table: order, statistics, ratios, noise and labels of a ladder whose rungs sleep 4, 2 and
    1 ms beside a NumPy that sleeps 1 ms, on a machine that is a tenth slower in every further pass."""
    machine = FakeMachine()
    slower = 1.0

    def sleeper(name: str, seconds: float) -> Callable[..., Any]:
        def multiply(a: Any = None, b: Any = None, out: Any = None) -> Any:
            machine.log.append(name[0])
            machine.now += seconds * slower
            return out if a is None else np.matmul(a, b, out=out)

        return multiply

    def measure(candidates: Any, **options: Any) -> Any:
        own = {"clock": Clock(machine.clock, lambda seconds: None), "rounds": Rounds(minimum_sample=0.0)}
        return timing.measure(candidates | {ladders.REFERENCE: sleeper("R", 0.001)}, **options | own)

    monkeypatch.setattr(compared_candidates, "measure", measure)
    speeds = {"nap": 0.004, "doze": 0.002, "blink": 0.001}
    stage = fake_stage({name: sleeper(name, seconds) for name, seconds in speeds.items()})
    rows: list[BenchRow] = []
    for number in range(4):
        slower = 1.0 + 0.1 * number
        machine.log.clear()
        rows += ladders.ladder_rows([stage], sizes=[4], dtypes=["float64"], effort=Effort(threads=1))
        # Each once to be checked, to warm up and to be counted, then as many rounds as settle a median.
        assert "".join(machine.log) == "ndb" + "Rndb" * (2 + timing.LEAST_ROUNDS)
    merged = merge(rows)
    assert [(row.contender, row.name, row.passes) for row in merged] == [("stage 2", name, 4) for name in speeds]
    assert [row.seconds for row in merged] == pytest.approx([0.0046, 0.0023, 0.00115])
    assert [row.ratio for row in merged] == pytest.approx([4, 2, 1])
    assert [row.ratio_noise for row in merged] == pytest.approx([0, 0, 0], abs=1e-9)
    assert [row.gflops for row in merged] == pytest.approx([128 / each / 1e9 for each in (0.0046, 0.0023, 0.00115)])
    ((_, table),) = tables(merged)
    cells = [list(column.cells) for column in table.columns]
    assert list(zip(*(cells[i] for i in (1, 3, 4, 7, 8)), strict=True)) == [
        ("nap", "4", "4.6 ms", "4", "0.0%"),
        ("doze", "4", "2.3 ms", "2", "0.0%"),
        ("blink", "4", "1.15 ms", "1", "0.0%"),
    ]


def test_what_runs_behind_the_callers_back_is_waited_for_once_a_sample_and_inside_its_time() -> None:
    now, log = [0.0], []

    def launch() -> None:
        log.append("launch")
        now[0] += 1.0

    def wait() -> None:
        log.append("wait")
        now[0] += 10.0

    measured = timing.measure(
        {"gpu": launch}, repeats=1, rounds=Rounds(minimum_sample=0.0), finish={"gpu": wait}, clock=Clock(lambda: now[0])
    )
    assert measured["gpu"].median == 11.0
    assert log == ["launch", "wait"] * 3  # the warm-up, the calibration, the sample
