"""shared.bench.running.passes: several processes' rows become one, and its noise covers what another run finds."""

import math
from dataclasses import replace

import numpy as np
import pytest

from shared.bench.measuring.noise import STUDENT_99, agree, noise
from shared.bench.measuring.rows import BenchRow
from shared.bench.measuring.timing import Measurement, summarise
from shared.bench.running.passes import merge

ROW = BenchRow("ladder", "stage2_numpy", "einsum", "float64", (4, 4, 4), 128, summarise([2.0]), "NumPy", 2.0)


def test_the_noise_is_the_99_percent_interval_of_the_mean_on_a_log_scale() -> None:
    values = [1.0, math.e, math.e**2]  # logarithms 0, 1, 2: mean 1, standard deviation 1
    assert noise(values) == pytest.approx(math.expm1(9.925 / math.sqrt(3)))


def test_students_t_is_that_of_the_distribution() -> None:
    # The density of Student's t, summed numerically from -t to t, has to be 0.99.
    for degrees, t in enumerate(STUDENT_99, start=1):
        x = np.linspace(-t, t, 400_001)
        density = (1 + x**2 / degrees) ** (-(degrees + 1) / 2)
        density *= math.gamma((degrees + 1) / 2) / (math.sqrt(degrees * math.pi) * math.gamma(degrees / 2))
        area = float(np.sum((density[1:] + density[:-1]) / 2 * np.diff(x)))
        assert area == pytest.approx(0.99, abs=2e-5)


def test_a_single_pass_states_no_noise() -> None:
    assert noise([3.0]) is None
    assert agree(1.0, None, 5.0, 0.1) is None


@pytest.mark.parametrize("passes", [3, 5])
def test_two_runs_of_the_same_machine_agree_on_almost_every_ratio(passes: int) -> None:
    random = np.random.default_rng(0)
    disagreed = 0
    for _ in range(2000):
        runs = np.exp(random.normal(0.0, 0.05, (2, passes)))  # passes that scatter by 5 %
        one, other = (float(np.median(run)) for run in runs)
        disagreed += not agree(one, noise(list(runs[0])), other, noise(list(runs[1])))
    assert disagreed <= 4  # of 2,000


def test_a_change_beyond_the_noise_is_seen() -> None:
    random = np.random.default_rng(1)
    seen = 0
    for _ in range(500):
        old, new = np.exp(random.normal(0.0, 0.01, 5)), 1.2 * np.exp(random.normal(0.0, 0.01, 5))
        seen += agree(float(np.median(old)), noise(list(old)), float(np.median(new)), noise(list(new))) is False
    assert seen >= 490  # of 500


def test_values_are_the_medians_of_the_passes() -> None:
    rows = [
        replace(ROW, measurement=summarise([seconds]), ratio=ratio, against={"pytorch": against}, peak=peak)
        for seconds, ratio, against, peak in ((2.0, 4.0, 1.0, 10.0), (1.0, 6.0, 3.0, 30.0), (3.0, 5.0, 2.0, 20.0))
    ]
    (merged,) = merge(rows)
    assert (merged.seconds, merged.ratio, merged.against, merged.peak) == (2.0, 5.0, {"pytorch": 2.0}, 20.0)
    assert merged.ratio_noise == noise([4.0, 6.0, 5.0])
    assert merged.against_noise == {"pytorch": noise([1.0, 3.0, 2.0])}
    assert merged.passes == 3
    (merged,) = merge([*rows, replace(ROW, against={"cupy": 7.0})])
    assert merged.against == {"pytorch": 2.0, "cupy": 7.0}


def test_samples_add_up_and_the_fastest_is_the_fastest_of_all() -> None:
    measurements = [Measurement(2.0, 1.5, 2.5, 1.2, 6, 3, True), Measurement(4.0, 3.5, 4.5, 0.9, 8, 3, False)]
    (merged,) = merge([replace(ROW, measurement=each) for each in measurements])
    assert merged.measurement == Measurement(3.0, 2.5, 3.5, 0.9, 14, 3, False)
    settled = [replace(ROW, measurement=replace(each, settled=True)) for each in measurements]
    assert merge(settled)[0].measurement == Measurement(3.0, 2.5, 3.5, 0.9, 14, 3, True)


def test_rows_of_different_things_stay_apart_in_their_order() -> None:
    others = [
        replace(ROW, name="at_operator"),
        replace(ROW, dtype="float32"),
        replace(ROW, shape=(8, 8, 8)),
        replace(ROW, variant="packed"),
        replace(ROW, part="backward"),
        replace(ROW, threads=2),
        replace(ROW, emulated=True),
    ]
    merged = merge([ROW, *others, *others, ROW])
    assert [(row.key, row.passes) for row in merged] == [(row.key, 2) for row in [ROW, *others]]


def test_what_one_pass_skipped_and_another_measured_counts_as_measured() -> None:
    skipped = replace(ROW, measurement=None, ratio=None, skipped="too slow")
    (merged,) = merge([skipped, ROW])
    assert (merged.skipped, merged.seconds, merged.passes, merged.ratio_noise) == (None, 2.0, 1, None)
    assert merge([skipped, skipped]) == [skipped]
