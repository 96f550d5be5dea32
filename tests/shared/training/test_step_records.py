"""steps.jsonl: what is written is read again, a long file is thinned without losing a step, and damage is left out."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from shared.training import step_records
from shared.training.step_records import StepFile, StepRecord, merged, read_line, thinned

RECORD = StepRecord(
    step=12,
    epoch=2,
    loss=0.5,
    steps=3,
    rate=0.1,
    seconds=1.5,
    images_per_second=2000.0,
    weights=(1.5, 2.5),
    gradients=(0.25, None),
    memory=1000,
    cores=1.9,
    gpu=((0.5, 2e9),),
)


def read(path: Path) -> list[StepRecord]:
    found = [read_line(line) for line in path.read_text().splitlines()]
    assert None not in found
    return [each for each in found if each is not None]


def test_a_record_comes_back_as_it_was() -> None:
    assert read_line(RECORD.line()) == RECORD


def test_numbers_are_short_and_those_that_are_not_finite_are_left_out() -> None:
    line = replace(RECORD, loss=math.nan, rate=1 / 3, weights=(math.inf, 1e305), gpu=()).line()
    assert json.loads(line)["rate"] == 0.333333
    assert "loss" not in json.loads(line)
    assert json.loads(line)["weights"] == [None, None]
    back = read_line(line)
    assert back is not None
    assert (back.loss, back.weights, back.gpu) == (None, (None, None), ())


@pytest.mark.parametrize(
    "line",
    [
        "",
        RECORD.line()[:-10],
        "[" * 100_000,
        '{"step": true, "epoch": 1, "steps": 1, "seconds": 1}',
        '{"step": -1, "epoch": 1, "steps": 1, "seconds": 1}',
        '{"step": 1, "epoch": 1, "steps": 1, "seconds": NaN}',
        f'{{"step": {"9" * 5000}, "epoch": 1, "steps": 1, "seconds": 1}}',
    ],
)
def test_a_damaged_line_is_no_record(line: str) -> None:
    assert read_line(line) is None


def test_strange_values_in_a_line_are_left_out() -> None:
    strange = {"loss": "<img>", "rate": [1], "weights": {"a": 1}, "gradients": [1, "x", True], "gpu": [[1], 2]}
    back = read_line(json.dumps({"step": 1, "epoch": 1, "steps": 1, "seconds": 0.5, **strange}))
    assert back == StepRecord(1, 1, None, 1, None, 0.5, gradients=(1.0, None, None))
    assert read_line('{"step": 1, "epoch": 1, "steps": 1, "seconds": 0.5, "gradients": [1e400]}') is None


def test_two_neighbours_become_one_with_the_mean_over_all_their_steps() -> None:
    later = replace(RECORD, step=13, steps=1, loss=0.9, images_per_second=None, memory=500, seconds=2.0, weights=(3.0,))
    both = merged(RECORD, later)
    assert (both.step, both.steps, both.seconds, both.weights) == (13, 4, 2.0, (3.0,))
    assert both.loss == pytest.approx((3 * 0.5 + 0.9) / 4)
    assert both.images_per_second == 2000.0
    assert both.memory == 1000


def test_thinning_keeps_every_step_and_the_mean_of_all_losses() -> None:
    records = [StepRecord(i + 1, 1, float(i % 7), 1, 0.1, i / 100) for i in range(101)]
    half = list(thinned(records))
    assert len(half) == 51
    assert sum(each.steps for each in half) == 101
    mean = sum(each.steps * each.loss for each in half if each.loss is not None) / 101
    assert mean == pytest.approx(sum(i % 7 for i in range(101)) / 101)
    assert half[-1].step == 101


def test_a_file_is_thinned_when_it_has_too_many_lines_and_says_how_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_records, "MOST_RECORDS", 16)
    file = StepFile(tmp_path / "steps.jsonl", 0)
    for i in range(100):
        file.add(replace(RECORD, step=i + 1, steps=1, seconds=float(i)))
        assert len(read(file.path)) < 16
    assert file.stretch == 11  # 16 lines, and then 8 more each time
    assert sum(each.steps for each in read(file.path)) == 100
    assert file.last == replace(RECORD, step=100, steps=1, seconds=99.0)
    file.close()


def test_a_resumed_run_keeps_the_lines_up_to_its_checkpoint_and_no_damaged_one(tmp_path: Path) -> None:
    path = tmp_path / "steps.jsonl"
    lines = [replace(RECORD, step=step, seconds=step / 10).line() for step in (3, 6, 9, 12)]
    path.write_text("".join([*lines[:2], "garbage\n", *lines[2:], lines[0][:20]]))
    file = StepFile(path, 9)
    file.add(replace(RECORD, step=10))
    file.close()
    assert [each.step for each in read(path)] == [3, 6, 9, 10]
