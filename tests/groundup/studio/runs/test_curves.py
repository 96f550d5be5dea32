"""The columns of a run's charts: exact for short runs, thinned for long ones, and never broken by a damaged file."""

import json
import os
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from groundup.studio.runs import curves
from groundup.studio.runs.curves import MOST_POINTS, SAMPLES, Steps, epoch_columns, read_epochs, seconds_left, tail
from shared.training.step_records import StepRecord
from tests.wide import widely

RECORD = StepRecord(1, 1, 0.5, 1, 0.1, 0.01, 100.0, (1.0, 2.0), (0.1, 0.2), 1000, 1.5, ((0.25, 7.0),))


def records(count: int, steps: int = 1) -> list[StepRecord]:
    return [
        replace(RECORD, step=steps * (i + 1), steps=steps, seconds=0.01 * (i + 1), loss=float(i % 100))
        for i in range(count)
    ]


def write(path: Path, found: list[StepRecord]) -> Path:
    path.write_text("".join(each.line() for each in found))
    return path


def columns_of(path: Path) -> dict[str, list]:
    steps = Steps(path)
    steps.read()
    return steps.columns()


def test_a_short_run_comes_as_it_is(tmp_path: Path) -> None:
    found = columns_of(write(tmp_path / "steps.jsonl", records(5)))
    assert found["step"] == [1, 2, 3, 4, 5]
    assert found["loss"] == found["low"] == found["high"] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert found["weights"] == [[1.0] * 5, [2.0] * 5]
    assert found["gradients"] == [[0.1] * 5, [0.2] * 5]
    assert (found["busy"], found["held"]) == ([[0.25] * 5], [[7.0] * 5])
    assert found["cores"] == [1.5] * 5


def test_a_long_run_is_thinned_and_its_leaps_stay_visible(tmp_path: Path) -> None:
    long = records(4000)
    long[2321] = replace(long[2321], loss=9999.0)
    found = columns_of(write(tmp_path / "steps.jsonl", long))
    assert MOST_POINTS / 2 <= len(found["step"]) <= MOST_POINTS + 1
    assert found["step"][-1] == 4000
    assert max(found["high"]) == 9999.0
    assert np.average(found["loss"]) == pytest.approx(np.mean([each.loss for each in long]), rel=0.01)


def test_a_growing_file_is_read_on_and_gives_what_reading_it_at_once_gives(tmp_path: Path) -> None:
    path, found = tmp_path / "steps.jsonl", records(3000)
    text = "".join(each.line() for each in found)
    steps = Steps(path)
    for end in (0, 10, 500, 501, 100_000, len(text)):
        path.write_text(text[:end])  # the last line is cut off, as while it is written
        steps.read()
        assert steps.skipped == 0
    assert steps.columns() == columns_of(path)
    assert steps.columns()["step"][-1] == 3000


def test_a_file_that_was_replaced_is_read_anew(tmp_path: Path) -> None:
    path = write(tmp_path / "steps.jsonl", records(50))
    steps = Steps(path)
    steps.read()
    write(tmp_path / "new", records(3, steps=7)).replace(path)
    steps.read()
    assert steps.columns()["step"] == [7, 14, 21]


def test_damaged_lines_are_left_out_and_counted(tmp_path: Path) -> None:
    lines = [each.line() for each in records(4)]
    path = tmp_path / "steps.jsonl"
    path.write_bytes((lines[0] + "garbage\n" + lines[1] + lines[0]).encode() + b"\xff\x00\n" + lines[3][:30].encode())
    steps = Steps(path)
    steps.read()
    assert steps.columns()["step"] == [1, 2]
    assert steps.skipped == 3  # garbage, the line that goes back, and the bytes; the last line may still be written


def test_a_line_without_an_end_is_given_up(tmp_path: Path) -> None:
    path = tmp_path / "steps.jsonl"
    path.write_bytes(b"x" * 1_000_000)
    steps = Steps(path)
    steps.read()
    assert steps.columns()["step"] == []


@pytest.mark.parametrize("line", widely(['{"epoch":1}\n', "\n", "[" * 90_000 + "\n"], first=0))
def test_a_file_of_millions_of_lines_takes_little_memory(tmp_path: Path, line: str) -> None:
    path = tmp_path / "a file"
    path.write_text(line * (3_000_000 // len(line)))
    tracemalloc.start()
    steps = Steps(path)
    steps.read()
    steps.read()
    epochs, _ = read_epochs(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 12_000_000
    assert len(epochs) <= SAMPLES + 1


def test_a_file_of_too_many_lines_is_sampled_once_until_it_grows(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(curves, "MOST_LINES", 1000)
    path = write(tmp_path / "steps.jsonl", records(1001))
    steps = Steps(path)
    steps.read()
    assert steps.sampled
    assert steps.columns()["step"][-1] == 1001
    points = steps.points
    steps.read()
    assert steps.points is points
    write(path, records(1002))
    steps.read()
    assert steps.columns()["step"][-1] == 1002
    write(tmp_path / "new", records(3)).replace(path)
    steps.read()
    assert (steps.sampled, steps.columns()["step"]) == (False, [1, 2, 3])


def test_epochs_of_which_some_are_left_out_keep_their_times(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(json.dumps({"epoch": i, "seconds": 2.0}) + "\n" for i in range(1, 5001)))
    monkeypatch.setattr(curves, "MOST_LINES", 1000)
    monkeypatch.setattr(curves, "SAMPLES", 100)
    shown = epoch_columns(path, {}, None)
    assert len(shown["epoch"]) <= 101
    assert shown["epoch"][-1] == 5000
    assert shown["time"] == [2.0 * epoch for epoch in shown["epoch"]]


def test_a_record_of_more_layers_than_a_network_has_is_left_out(tmp_path: Path) -> None:
    many = replace(records(2)[1], weights=(1.0,) * 20_000)
    steps = Steps(write(tmp_path / "steps.jsonl", [records(2)[0], many]))
    steps.read()
    assert (steps.columns()["step"], steps.skipped) == ([1], 1)


def test_a_million_records_are_opened_at_once_and_in_little_memory(tmp_path: Path, monkeypatch) -> None:
    path = write(tmp_path / "steps.jsonl", records(8000))
    monkeypatch.setattr(curves, "MOST_BYTES", 500_000)  # as if these were a million
    tracemalloc.start()
    steps = Steps(path)
    steps.read()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8_000_000
    assert steps.sampled
    assert steps.skipped == 0
    found = steps.columns()["step"]
    assert found[-1] == 8000
    assert MOST_POINTS / 2 <= len(found) <= MOST_POINTS + 1
    assert max(np.diff(found)) < 8000 / MOST_POINTS * 5


def test_the_end_of_a_file_tells_how_a_run_is_doing(tmp_path: Path) -> None:
    path = write(tmp_path / "steps.jsonl", records(3000))
    with open(path, "a") as file:
        file.write('{"step": 3001, "ep')
    found = tail(path)
    assert found[-1].step == 3000
    assert 100 < len(found) < 1000
    assert [each.step for each in tail(write(path, records(3)))] == [1, 2, 3]


def test_the_time_left_is_that_of_the_last_minute() -> None:
    slow = [replace(RECORD, step=i, seconds=10.0 * i) for i in range(1, 100)]
    fast = [replace(RECORD, step=99 + i, seconds=990.0 + i) for i in range(1, 100)]
    assert seconds_left([*slow, *fast], 298) == pytest.approx(100.0)
    assert seconds_left(slow[:2], 12) == pytest.approx(100.0)
    assert seconds_left([slow[0], replace(slow[1], seconds=1000.0)], 3) == pytest.approx(990.0)
    assert seconds_left(slow, 50) == 0.0
    assert seconds_left(slow[:1], 100) is None


EPOCH = {
    "epoch": 1, "learning_rate": 0.1, "train_loss": 0.5, "train_accuracy": 0.9, "validation_loss": None,
    "validation_accuracy": None, "test_loss": 0.6, "test_accuracy": 0.8, "seconds": 2.0, "samples_per_second": 30.0,
}  # fmt: skip


def test_epochs_have_the_time_of_their_last_step(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(json.dumps({**EPOCH, "epoch": i}) + "\n" for i in (1, 2, 3)))
    steps = columns_of(write(tmp_path / "steps.jsonl", records(30)))
    found = epoch_columns(path, steps, 10)
    assert (found["step"], found["time"]) == ([10, 20, 30], [0.1, 0.2, 0.3])
    alone = epoch_columns(path, {}, 10)
    assert alone["time"] == [2.0, 4.0, 6.0]  # without the steps, what the epochs say themselves
    assert alone["test_accuracy"] == [0.8] * 3


def test_a_damaged_metrics_file_gives_what_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    strange = [
        json.dumps(EPOCH),
        "{",
        "[]",
        '{"epoch": "two"}',
        '{"epoch": 2, "train_loss": null, "test_accuracy": "high", "seconds": "long"}',
        '{"epoch": 3, "train_loss": ' + "9" * 400 + "}",
        '{"epoch": 4, "train_loss": NaN}',
        '{"epoch": 5, "train_loss": 1e400}',
        '{"epoch": 6, "epoch": 7}',
        "[" * 50_000,
    ]
    path.write_text("\n".join(strange) + "\n")
    found, skipped = read_epochs(path)
    assert skipped == 8
    assert [each["epoch"] for each in found] == [1, 2]
    assert [each["train_loss"] for each in found] == [0.5, None]
    assert epoch_columns(path, {}, 5)["step"] == [5, 10]


def test_many_epochs_are_thinned_and_the_last_one_stays(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(json.dumps({**EPOCH, "epoch": i + 1}) + "\n" for i in range(3500)))
    found = epoch_columns(path, {}, 1)
    assert len(found["epoch"]) <= MOST_POINTS
    assert found["epoch"][-1] == 3500


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no FIFOs")
@pytest.mark.parametrize("read", [lambda path: Steps(path).read(), tail, read_epochs])
def test_a_fifo_that_has_taken_the_name_is_not_waited_for(read: Callable[[Path], object], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "steps.jsonl")
    with pytest.raises(OSError, match=r"is a FIFO \(a named pipe\), expected a regular file"):
        read(tmp_path / "steps.jsonl")
