"""Learning-rate schedules against values worked out by hand, and against each other at their seams."""

import pytest

from shared.training.schedules import SCHEDULES, Schedule, learning_rate_at, learning_rates


def rates(schedule: str, epochs: int = 4, steps_per_epoch: int = 5, **options: float) -> list[float]:
    count = epochs * steps_per_epoch
    chosen = Schedule(schedule, **options)
    return [learning_rate_at(0.8, chosen, step, steps_per_epoch, epochs) for step in range(count)]


def test_constant_never_changes() -> None:
    assert set(rates("constant")) == {0.8}


def test_step_drops_by_gamma_every_step_epochs() -> None:
    assert rates("step", step_epochs=2, gamma=0.5) == [0.8] * 10 + [0.4] * 10


def test_exponential_loses_gamma_over_each_epoch_a_little_at_every_step() -> None:
    got = rates("exponential", gamma=0.5)
    assert got[::5] == pytest.approx([0.8, 0.4, 0.2, 0.1])
    assert got[1] == pytest.approx(0.8 * 0.5**0.2)


def test_cosine_starts_at_base_passes_half_in_the_middle_and_nears_zero() -> None:
    got = rates("cosine")
    assert got[0] == 0.8
    assert got[10] == pytest.approx(0.4)
    assert got[5] == pytest.approx(0.8 * (1 + 2**-0.5) / 2)
    assert 0.0 < got[-1] < 0.01


def test_after_its_end_the_cosine_stays_0() -> None:
    assert [learning_rate_at(0.8, Schedule("cosine"), step, 5, 4) for step in (20, 30, 40)] == [0.0] * 3


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_no_schedule_ever_rises(schedule: str) -> None:
    got = rates(schedule)
    assert got == sorted(got, reverse=True)
    assert min(got) > 0.0


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_warm_up_rises_in_a_line_to_base_and_then_the_schedule_begins(schedule: str) -> None:
    got = rates(schedule, warmup_epochs=1)
    assert got[:5] == pytest.approx([0.16, 0.32, 0.48, 0.64, 0.8])
    # what follows is the schedule of a training that is one epoch shorter, from its beginning
    assert got[5:] == rates(schedule, epochs=3)


def test_warm_up_takes_fractions_of_an_epoch_and_may_last_to_the_end() -> None:
    assert rates("constant", warmup_epochs=0.4)[:3] == pytest.approx([0.4, 0.8, 0.8])
    assert rates("cosine", warmup_epochs=4)[-1] == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("schedule", "options", "message"),
    [
        ("linear", {}, "unknown schedule 'linear'; choose one of constant, step, exponential, cosine"),
        ("step", {"step_epochs": 0}, "step_epochs: expected a finite number above 0, got 0"),
        ("step", {"gamma": 0.0}, "gamma: expected a number above 0 and at most 1, got 0.0"),
        ("exponential", {"gamma": float("nan")}, "gamma: expected"),
    ],
)
def test_impossible_schedules_are_rejected(schedule: str, options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Schedule(schedule, **options)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("first", [0, 2, 5, 6])
def test_the_rates_of_several_steps_are_those_of_each(schedule: str, first: int) -> None:
    chosen = Schedule(schedule, warmup_epochs=1, step_epochs=1)
    expected = [learning_rate_at(0.8, chosen, step, 5, 4) for step in range(first, first + 9)]
    assert learning_rates(0.8, chosen, first, 9, 5, 4) == expected
