"""What a training writes beside its checkpoints: how it goes, who started it, and how it ended."""

import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shared import contract
from shared.architectures import Architecture
from shared.data.batches import split_validation
from shared.layers import Activate, BatchNorm, Conv, Dense, Flatten
from shared.machine.own_process import machine_mark
from shared.training import recorder
from shared.training.loop import train
from shared.training.metrics import read_metrics
from shared.training.recorder import layer_names
from shared.training.run_facts import DONE, RUNNING, STOPPED, UNKNOWN, RunFacts, Session, read_facts, state_of
from shared.training.settings import QUIET, Hooks, Saving, TrainingSettings
from shared.training.step_records import StepRecord, read_line
from tests.shared.training.small_runs import CONSTANT, DATA, FULL, assert_same_run, host, make, run


def steps_of(folder: Path) -> list[StepRecord]:
    found = [read_line(line) for line in (folder / "steps.jsonl").read_text().splitlines()]
    assert None not in found
    return [each for each in found if each is not None]


@pytest.fixture
def every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recording may take all the time that it wants: a line for each step."""
    monkeypatch.setattr(recorder, "SHARE", 1e9)
    monkeypatch.setattr(recorder, "LEAST_SECONDS", 0.0)


@pytest.mark.usefixtures("one_step_at_a_time", "every_step")
def test_every_stage_records_the_same_losses_rates_weights_and_gradients(stage: contract.Stage, tmp_path: Path) -> None:
    seen: list[tuple[float, list[float]]] = []
    network, optimizer = make(stage)
    fitted, _ = split_validation(DATA, FULL.validation, FULL.seed)

    def look(epoch: int, step: int, loss: float) -> None:
        seen.append((loss, [float(np.linalg.norm(each)) for each in host(stage, network)[::2]]))

    run(stage, (network, optimizer), FULL, tmp_path, Hooks(on_batch=look, progress_bar=False))
    found = steps_of(tmp_path)
    assert [(each.step, each.epoch, each.steps) for each in found] == [(i + 1, i // 5 + 1, 1) for i in range(20)]
    assert [each.loss for each in found] == pytest.approx([loss for loss, _ in seen], rel=1e-5)
    for each, (_, norms) in zip(found, seen, strict=True):
        assert each.weights == pytest.approx(norms, rel=1e-5)
        assert len(each.gradients) == 3
    assert found[4].rate == pytest.approx(read_metrics(tmp_path / "metrics.jsonl")[0].learning_rate, rel=1e-5)
    if stage.name != "stage1_pure_python":
        first = contract.load_stage("stage1_pure_python")
        run(first, make(first), FULL, tmp_path / "first")
        for each, other in zip(found, steps_of(tmp_path / "first"), strict=True):
            assert each.loss == pytest.approx(other.loss, rel=1e-5)
            if getattr(network, "steps_keep_gradients", True):
                assert each.gradients == pytest.approx(other.gradients, rel=1e-4)
    if not getattr(network, "steps_keep_gradients", True):
        some = stage.arrays.asarray(fitted.x[:8], "float64")
        norms = [float(np.linalg.norm(stage.arrays.to_host(each))) for each in network.gradients(some, fitted.y[:8])]
        assert found[-1].gradients == pytest.approx(norms[::2], rel=1e-5)


@pytest.mark.usefixtures("every_step")
@pytest.mark.parametrize("name", ["stage1_pure_python", "stage2_numpy", "stage3_c"])
def test_the_gradients_are_those_of_the_last_step(name: str, tmp_path: Path) -> None:
    try:
        stage = contract.load_stage(name)
    except contract.StageUnavailable as reason:
        pytest.skip(str(reason))
    network, optimizer = make(stage, dropout=0.0)
    kept = host(stage, network)
    once = TrainingSettings(epochs=1, batch_size=50, seed=3)
    train(stage, network, optimizer, DATA, once, saving=Saving(tmp_path), hooks=QUIET)
    before = stage.network.Network.from_parameters(kept, activation="tanh", dtype="float64")
    gradients = before.gradients(stage.arrays.asarray(DATA.x, "float64"), DATA.y)
    expected = [float(np.linalg.norm(np.asarray(each))) for each in gradients[::2]]
    assert steps_of(tmp_path)[-1].gradients == pytest.approx(expected, rel=1e-5)


@pytest.mark.usefixtures("every_step")
def test_convolutions_and_dense_layers_are_recorded_and_batch_normalisation_is_not(
    numpy_stage: contract.Stage, tmp_path: Path
) -> None:
    layers = (Conv(2, 2), BatchNorm(), Activate("relu"), Flatten(), Dense(3))
    network = numpy_stage.network.Network(Architecture((1, 2, 2), layers), seed=1)
    optimizer = numpy_stage.optimizers.SGD(0.1)
    train(*(numpy_stage, network, optimizer, DATA, TrainingSettings(1, 25)), saving=Saving(tmp_path), hooks=QUIET)
    assert (
        read_facts(tmp_path / "run.json").layers
        == layer_names(network.architecture)
        == ("1: 2 x 1 x 2 x 2", "5: 2 x 3")
    )
    for each in steps_of(tmp_path):
        assert len(each.weights) == len(each.gradients) == 2
    kernels = np.asarray(network.parameters[0])
    assert steps_of(tmp_path)[-1].weights[0] == pytest.approx(float(np.linalg.norm(kernels)), rel=1e-5)


def test_lines_come_seldom_and_no_loss_is_missing(numpy_stage: contract.Stage, tmp_path: Path) -> None:
    losses: list[float] = []
    hooks = Hooks(on_batch=lambda epoch, step, loss: losses.append(loss), progress_bar=False)
    settings = replace(CONSTANT, epochs=8, batch_size=1, validation=0.0)
    begin = time.perf_counter()
    run(numpy_stage, make(numpy_stage), settings, tmp_path, hooks)
    spent = time.perf_counter() - begin
    found = steps_of(tmp_path)
    assert len(found) <= spent * 20 + 2  # the first step, and the last one
    assert sum(each.steps for each in found) == len(losses) == found[-1].step == 400
    mean = sum(each.steps * (each.loss or 0.0) for each in found) / 400
    assert mean == pytest.approx(sum(losses) / 400, rel=1e-4)
    assert found[-1].seconds <= spent
    assert all(each.images_per_second for each in found)


def test_a_run_is_running_until_it_is_done(numpy_stage: contract.Stage, tmp_path: Path) -> None:
    states = []

    def ask(record: object) -> None:
        states.append(state_of(read_facts(tmp_path / "run.json"), 0.0))

    hooks = Hooks(on_epoch=ask, progress_bar=False)
    run(numpy_stage, make(numpy_stage), FULL, tmp_path, hooks)
    if sys.platform != "win32":
        assert states == [(RUNNING, "")] * 4
    facts = read_facts(tmp_path / "run.json")
    assert state_of(facts, 0.0) == (DONE, "")
    assert (facts.stage, facts.epochs, facts.steps_per_epoch) == ("stage2_numpy", 4, 5)
    assert (facts.batch_size, facts.samples) == (8, 40)
    assert facts.layers == ("1: 4 x 6", "2: 6 x 5", "3: 5 x 3")
    [session] = facts.sessions
    assert session.command == tuple(sys.orig_argv)
    assert (session.pid, session.folder, session.first_step) == (os.getpid(), os.getcwd(), 0)
    assert session.ended is not None
    assert session.ended >= session.began


def test_a_run_that_failed_says_why_and_goes_on_in_the_same_file(numpy_stage: contract.Stage, tmp_path: Path) -> None:
    def poison(epoch: int, step: int, loss: float) -> None:
        if (epoch, step) == (3, 2):
            raise RuntimeError("the roof is leaking")

    run(numpy_stage, make(numpy_stage), FULL, tmp_path / "whole")
    with pytest.raises(RuntimeError, match="leaking"):
        run(numpy_stage, make(numpy_stage), FULL, tmp_path / "r", Hooks(on_batch=poison, progress_bar=False))
    assert state_of(read_facts(tmp_path / "r" / "run.json"), 0.0) == (STOPPED, "the roof is leaking")
    run(numpy_stage, make(numpy_stage), FULL, tmp_path / "r", resume=True)
    assert_same_run(tmp_path / "r", tmp_path / "whole")
    facts = read_facts(tmp_path / "r" / "run.json")
    assert (facts.state, [each.first_step for each in facts.sessions]) == (DONE, [0, 10])
    found = steps_of(tmp_path / "r")
    assert [each.step for each in found] == sorted({each.step for each in found})
    assert found[-1].step == 20
    seconds = [each.seconds for each in found]
    assert seconds == sorted(seconds)


def facts_of(mark: str = "another-machine 1", **changes: Any) -> RunFacts:
    session = Session(("python", "x.py"), "/tmp", 1.0, 0, 4711, mark)
    return RunFacts("stage2_numpy", ("1: 4 x 3",), 1, 2, 3, 4, sessions=(session,), **changes)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows gives no mark to a process")
def test_a_training_that_was_killed_is_not_called_running() -> None:
    """The file of a killed training still says that it runs, by a process that is no more."""
    state, reason = state_of(facts_of(f"{machine_mark()} 1"), time.time())
    assert (state, "it was killed" in reason) == (STOPPED, True)


def test_a_training_of_another_machine_is_judged_by_its_files() -> None:
    assert state_of(facts_of(), changed=1000.0, now=1010.0)[0] == RUNNING
    state, reason = state_of(facts_of(), changed=1000.0, now=1100.0)
    assert state == UNKNOWN
    assert "have not changed for 60 s" in reason


def test_facts_come_back_as_they_were(tmp_path: Path) -> None:
    facts = facts_of(gpus=("NVIDIA H100",), no_gpus="", reason="x")
    facts.write(tmp_path / "run.json")
    assert read_facts(tmp_path / "run.json") == facts


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "is not of format 1"),
        ({"state": "<b>"}, "damaged: .*state is '<b>'"),
        ({"sessions": []}, "names no session"),
        ({"epochs": -1}, "expected a whole number"),
    ],
)
def test_a_damaged_file_is_refused_with_a_sentence(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = tmp_path / "run.json"
    facts_of().write(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ValueError, match=message):
        read_facts(path)


@pytest.mark.parametrize("content", [b"{", b"[" * 100_000, b"0" * 4_000_001])
def test_a_file_that_is_no_document_is_refused_with_a_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"^run\.json is "):
        read_facts(tmp_path / "run.json")


def test_a_damaged_run_json_does_not_stop_a_resume(numpy_stage: contract.Stage, tmp_path: Path) -> None:
    run(numpy_stage, make(numpy_stage), replace(CONSTANT, epochs=1), tmp_path)
    (tmp_path / "run.json").write_text("{")
    (tmp_path / "steps.jsonl").write_text("{\n")
    run(numpy_stage, make(numpy_stage), replace(CONSTANT, epochs=2), tmp_path, resume=True)
    assert read_facts(tmp_path / "run.json").state == DONE
    assert [each.step for each in steps_of(tmp_path)][-1] == 10
