"""Checkpoints: what goes in comes out, on every stage, and every kind of damage is found."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shared import contract
from shared.architectures import Architecture, mlp
from shared.training.checkpoints import (
    CheckpointError,
    build_network,
    load_checkpoint,
    restore_optimizer,
    save_checkpoint,
)
from tests.stages import STAGE_PARAMS

X = np.random.default_rng(0).random((6, 3), dtype=np.float32)
LABELS = np.array([0, 1, 1, 0, 1, 0])
MAKERS = {
    "SGD": {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True},
    "RMSProp": {"learning_rate": 0.01, "weight_decay": 0.01},
    "Adam": {"learning_rate": 0.01},
}


def step(stage: contract.Stage, network: Any, optimizer: Any, count: int = 1) -> None:
    x = stage.arrays.asarray(X, network.dtype)
    for _ in range(count):
        network.train_step(x, LABELS, optimizer)


def trained(stage: contract.Stage, dtype: str = "float64", optimizer: str = "Adam", steps: int = 3) -> tuple[Any, Any]:
    network = stage.network.Network([3, 4, 2], activation="tanh", seed=5, dtype=dtype)
    made = getattr(stage.optimizers, optimizer)(**MAKERS[optimizer])
    step(stage, network, made, steps)
    return network, made


def host(stage: contract.Stage, arrays: Any) -> list[np.ndarray]:
    return [np.array(stage.arrays.to_host(array)) for array in arrays]


def assert_same(got: list[np.ndarray], expected: list[np.ndarray]) -> None:
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    stage = contract.load_stage("stage1_pure_python")
    network = stage.network.Network([1, 1, 2])
    path = tmp_path / "last.safetensors"
    save_checkpoint(path, stage, network, stage.optimizers.SGD(0.1), {"epoch": 3})
    return path


@pytest.mark.parametrize("optimizer", contract.OPTIMIZERS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_training_goes_on_from_a_checkpoint_as_if_nothing_had_happened(
    stage: contract.Stage, dtype: str, optimizer: str, tmp_path: Path
) -> None:
    network, made = trained(stage, dtype, optimizer)
    save_checkpoint(tmp_path / "c", stage, network, made)
    step(stage, network, made, 4)

    checkpoint = load_checkpoint(tmp_path / "c")
    again, restored = build_network(stage, checkpoint), restore_optimizer(stage, checkpoint)
    step(stage, again, restored, 4)
    assert_same(host(stage, again.parameters), host(stage, network.parameters))
    state, expected = restored.state(), made.state()
    assert state["steps"] == expected["steps"] == 7
    assert state["buffers"].keys() == expected["buffers"].keys()
    for name, arrays in expected["buffers"].items():
        assert_same(host(stage, state["buffers"][name]), host(stage, arrays))


@pytest.mark.parametrize("reader_name", STAGE_PARAMS)
def test_every_stage_reads_what_every_stage_wrote(stage: contract.Stage, reader_name: str, tmp_path: Path) -> None:
    network, made = trained(stage)
    save_checkpoint(tmp_path / "c", stage, network, made)
    reader = contract.load_stage(reader_name)
    checkpoint = load_checkpoint(tmp_path / "c")
    again, restored = build_network(reader, checkpoint), restore_optimizer(reader, checkpoint)
    assert checkpoint.stage == stage.name
    assert_same(host(reader, again.parameters), host(stage, network.parameters))
    step(stage, network, made)
    step(reader, again, restored)
    for a, b in zip(host(reader, again.parameters), host(stage, network.parameters), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_stage_1_is_stored_in_the_float64_it_computes_in_whatever_it_was_told(tmp_path: Path) -> None:
    stage = contract.load_stage("stage1_pure_python")
    network, made = trained(stage, dtype="float32")
    save_checkpoint(tmp_path / "c", stage, network, made)
    checkpoint = load_checkpoint(tmp_path / "c")
    assert checkpoint.dtype == "float32"
    assert {array.dtype for array in checkpoint.parameters} == {np.dtype("float64")}
    assert_same(checkpoint.parameters, host(stage, network.parameters))


def test_checkpoint_tells_all_about_network_optimizer_and_progress(stage: contract.Stage, tmp_path: Path) -> None:
    network = stage.network.Network([3, 4, 5, 2], activation="sigmoid", loss="hinge", dtype="float64")
    progress = {"epoch": 2, "loss": 0.1 + 0.2, "records": [{"a": None}]}
    save_checkpoint(tmp_path / "c", stage, network, stage.optimizers.SGD(0.25, momentum=0.5), progress)
    checkpoint = load_checkpoint(tmp_path / "c")
    assert checkpoint.architecture == mlp([3, 4, 5, 2], "sigmoid")
    assert (checkpoint.activation, checkpoint.loss) == ("sigmoid", "hinge")
    assert (checkpoint.optimizer, checkpoint.dtype) == ("SGD", "float64")
    assert checkpoint.hyperparameters == {
        "learning_rate": 0.25,
        "momentum": 0.5,
        "nesterov": False,
        "weight_decay": 0.0,
    }
    assert checkpoint.optimizer_state == {"steps": 0, "buffers": {}}
    assert checkpoint.about_run == progress


def test_checkpoint_without_optimizer_builds_a_network_but_restores_no_optimizer(
    stage: contract.Stage, tmp_path: Path
) -> None:
    network, _ = trained(stage)
    save_checkpoint(tmp_path / "c", stage, network)
    checkpoint = load_checkpoint(tmp_path / "c")
    assert_same(host(stage, build_network(stage, checkpoint).parameters), host(stage, network.parameters))
    with pytest.raises(CheckpointError, match="holds no optimizer"):
        restore_optimizer(stage, checkpoint)


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"no checkpoint at .*absent\.safetensors: there is no such file"):
        load_checkpoint(tmp_path / "absent.safetensors")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04" + bytes(100), b"\xff" * 64])
def test_files_of_another_kind_are_rejected(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "c").write_bytes(content)
    with pytest.raises(CheckpointError, match="is no safetensors file, or is truncated or damaged"):
        load_checkpoint(tmp_path / "c")


def test_every_truncation_is_found(saved: Path) -> None:
    content = saved.read_bytes()
    for length in range(0, len(content), 7):
        saved.write_bytes(content[:length])
        with pytest.raises(CheckpointError, match="truncated or damaged"):
            load_checkpoint(saved)


def test_a_flipped_bit_is_found_wherever_it_is(saved: Path) -> None:
    content = saved.read_bytes()
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 1 << position % 7
        saved.write_bytes(damaged)
        with pytest.raises(CheckpointError, match="damaged"):
            load_checkpoint(saved)


def test_header_is_plain_json_that_any_tool_reads(saved: Path) -> None:
    content = saved.read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    about = json.loads(header["__metadata__"]["groundup"])
    assert about["format"] == 3
    assert Architecture.from_json(about["architecture"]) == mlp([1, 1, 2])
    assert about["progress"] == {"epoch": 3}


def test_progress_that_json_cannot_hold_leaves_the_old_checkpoint(saved: Path) -> None:
    before = saved.read_bytes()
    stage = contract.load_stage("stage1_pure_python")
    with pytest.raises(ValueError, match="JSON"):
        save_checkpoint(saved, stage, stage.network.Network([1, 2]), None, {"loss": float("nan")})
    assert saved.read_bytes() == before
