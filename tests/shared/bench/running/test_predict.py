"""shared.bench.running.predict: guesses as people type them, and answers that come from the rows that were measured."""

from dataclasses import replace

import pytest

from shared.bench.measuring.rows import BenchRow
from shared.bench.measuring.timing import summarise
from shared.bench.running import predict
from shared.bench.running.plan import Plan, jobs


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("20", 20.0),
        (" 1.5 ", 1.5),
        ("1,5", 1.5),
        ("300x", 300.0),
        ("12 times", 12.0),
        ("1e3", 1000.0),
        ("7\u00d7", 7.0),
        ("", None),
    ],
)
def test_a_guess_is_understood_as_people_type_it(text: str, value: float | None) -> None:
    assert predict.parse(text) == value


@pytest.mark.parametrize("text", ["many", "0", "-3", "nan", "inf", "1e99", "2 or 3"])
def test_what_is_no_factor_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected a factor like 20 or 1\.5, got"):
        predict.parse(text)


@pytest.mark.parametrize(
    ("guess", "measured", "words"),
    [
        (20.0, 187.0, "190 times; you said 20: too low by a factor of 9.3"),
        (400.0, 200.0, "200 times; you said 400: too high by a factor of 2"),
        (11.0, 10.0, "10 times; you said 11: within a quarter of it"),
        (None, 2.5, "2.5 times"),
        (3.0, None, "not measured here"),
    ],
)
def test_the_verdict_says_how_far_off_the_guess_was(guess: float | None, measured: float | None, words: str) -> None:
    assert predict.verdict(guess, measured) == words


def row(kind: str, stage: str, seconds: float, **fields: object) -> BenchRow:
    defaults = {"name": "", "dtype": "float64", "shape": (1,)}
    return BenchRow(kind=kind, stage=stage, measurement=summarise([seconds]), **(defaults | fields))  # type: ignore[arg-type]


def answers(rows: list[BenchRow]) -> dict[str, float]:
    found = {question.text: question.measured(rows) for question in predict.QUESTIONS}
    return {text: value for text, value in found.items() if value is not None}


def test_no_rows_answer_nothing() -> None:
    assert answers([]) == {}


def test_ladders_are_compared_at_the_largest_size_that_both_were_measured_at() -> None:
    rows = [
        row("ladder", "stage1_pure_python", 8.0, name="index_loops", shape=(128,) * 3),
        row("ladder", "stage1_pure_python", 2.0, name="multiply_in_c", shape=(128,) * 3),
        row("ladder", "stage1_pure_python", 0.1, name="multiply_in_c", shape=(16,) * 3),
        row("ladder", "stage2_numpy", 0.01, name="at_operator", shape=(128,) * 3),
        row("ladder", "stage2_numpy", 0.05, name="einsum", shape=(128,) * 3),
        row("ladder", "stage2_numpy", 1.0, name="at_operator", shape=(512,) * 3),
    ]
    assert sorted(answers(rows).values()) == [4.0, 200.0]


def test_steps_inference_training_and_memory_answer_their_questions() -> None:
    rows = [
        row("step", "stage2_numpy", 6.0, name="784-128-10, batch 64", dtype="float32"),
        row("step", "stage3_c", 4.0, name="784-128-10, batch 64", dtype="float32", variant="op_by_op"),
        row("step", "stage3_c", 2.0, name="784-128-10, batch 64", dtype="float32", variant="one_call"),
        row("inference", "stage2_numpy", 1.0, samples=1, dtype="float32"),
        row("inference", "stage2_numpy", 64.0, samples=1024, dtype="float32"),
        replace(row("memory", "stage2_numpy", 1.0, samples=64), memory=100),
        replace(row("memory", "stage2_numpy", 1.0, samples=4096), memory=2500),
    ]
    assert sorted(answers(rows).values()) == [3.0, 16.0, 25.0]


def test_every_question_belongs_to_a_job_and_every_job_has_one() -> None:
    titles = [job.title for job in jobs(Plan(stages=(), mnist=""))]
    assert {question.job for question in predict.QUESTIONS} <= set(titles)
    silent = [title for title in titles if not predict.questions(title)]
    assert silent == [], f"jobs of running/plan.py without a question in running/predict.py: {silent}"
