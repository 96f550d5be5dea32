"""Checkpoints of strangers: whatever a file says, it opens, or is refused with a sentence."""

import copy
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from shared import contract
from shared.architectures import Architecture
from shared.layers import Activate, BatchNorm, Conv, Dense, Dropout, Flatten, MaxPool, Residual
from shared.training import checkpoint_file
from shared.training.checkpoint_file import Stored
from shared.training.checkpoints import CheckpointError, checksum, load_checkpoint, restore_optimizer
from shared.training.runs import Position

SMALL = Architecture(
    (1, 4, 4),
    (
        Conv(2, 3, padding=1),
        BatchNorm(),
        Residual((Conv(2, 1),)),
        Activate("relu"),
        MaxPool(2),
        Flatten(),
        Dropout(0.5),
        Dense(3),
    ),
)
ABOUT: dict[str, Any] = {
    "format": 3,
    "stage": "stage2_numpy",
    "loss": "softmax_cross_entropy",
    "dtype": "float32",
    "architecture": SMALL.to_json(),
    "optimizer": {
        "name": "SGD",
        "hyperparameters": {"learning_rate": 0.1, "momentum": 0.9, "nesterov": False, "weight_decay": 0.0},
        "steps": 2,
        "buffers": ["velocity"],
    },
    "progress": {},
}
TENSORS = {
    f"{kind}.{i}": np.full(shape, 0.5, np.float32)
    for kind in ("parameters", "optimizer.velocity")
    for i, shape in enumerate(SMALL.parameter_shapes())
} | {f"running.{i}": np.full(shape, i - 1.0, np.float32) for i, shape in enumerate(SMALL.running_shapes())}


def forged(path: Path, about: Any, tensors: dict[str, np.ndarray] | None = None) -> Path:
    """A file with this header and these tensors, whose checksum is right."""
    text = about if isinstance(about, str) else json.dumps(about)
    tensors = TENSORS if tensors is None else tensors
    metadata = {"groundup": text, "sha256": checksum(text, tensors)}
    path.write_bytes(safetensors.numpy.save(tensors, metadata))
    return path


def test_the_unchanged_file_opens(tmp_path: Path) -> None:
    checkpoint = load_checkpoint(forged(tmp_path / "c", ABOUT))
    assert checkpoint.architecture == SMALL
    assert [array.shape for array in checkpoint.parameters] == SMALL.parameter_shapes()
    assert [array.shape for array in checkpoint.running_statistics] == SMALL.running_shapes()
    assert restore_optimizer(contract.load_stage("numpy"), checkpoint).state()["steps"] == 2


def at(*path: Any, value: Any) -> Callable[[Any], None]:
    def change(about: Any) -> None:
        for key in path[:-1]:
            about = about[key]
        about[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (at("format", value=4), "has checkpoint format 4, this version of groundup reads formats 1 to 3; open it with"),
        (at("dtype", value="float64"), r"its dtype is float64, but the tensor \S+ is float32"),
        (at("stage", value="stage9"), "stage: expected one of stage1_pure_python"),
        (at("architecture", value=None), "architecture: expected an object with input_shape and layers, got None"),
        (at("architecture", "layers", 0, "kind", value="Exec"), "layer 1: expected a kind of Conv"),
        (
            at("architecture", "layers", 7, "out_features", value=10**30),
            "architecture: expected numbers below 2,147,483,648",
        ),
        (
            at("architecture", "layers", 0, "padding", value=10**5),
            r"a layer's output has 80,001,\d{3},\d{3} numbers, more",
        ),
        (at("architecture", "layers", 0, "out_channels", value=3), "turn 3 x 4 x 4 into 2 x 4 x 4"),
        (at("optimizer", value=[]), "optimizer: expected name, hyperparameters, steps and buffers"),
        (at("optimizer", "steps", value=-1), "optimizer: steps: expected a whole number of at least 0, got -1"),
        (at("optimizer", "buffers", value=["speed"]), "tensor optimizer.speed.0 is missing: the network has 8 of its"),
        (at("optimizer", "buffers", value=[]), r"tensor 'optimizer.velocity.0' belongs to no part"),
    ],
)
def test_a_strange_header_is_refused_with_a_sentence(
    change: Callable[[Any], None], message: str, tmp_path: Path
) -> None:
    about = copy.deepcopy(ABOUT)
    change(about)
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(forged(tmp_path / "c", about))


@pytest.mark.parametrize(("text", "message"), [("{", "its header is no JSON"), ("[" * 100_000, "JSON"), ("7", "is 7")])
def test_a_header_that_is_no_object_is_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(forged(tmp_path / "c", text))


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("running.1", None, "the tensor running.1 is missing: the network has 2 of its kind"),
        ("running.2", np.ones(2, np.float32), "the tensor 'running.2' belongs to no part of the network"),
        (
            "parameters.0",
            np.ones((2, 3, 3), np.float32),
            r"parameters.0 is \(2, 3, 3\), but the network says \(2, 1, 3",
        ),
        (
            "running.1",
            np.array([0.5, -0.5], np.float32),
            "the tensor running.1 is a variance, and has a number below 0",
        ),
        ("parameters.3", np.array([0, np.nan], "f4"), "the tensor parameters.3 holds numbers that are not finite"),
    ],
)
def test_tensors_that_are_not_the_network_s_are_refused(
    name: str, array: np.ndarray | None, message: str, tmp_path: Path
) -> None:
    tensors = {key: value for key, value in TENSORS.items() if key != name}
    if array is not None:
        tensors[name] = array
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(forged(tmp_path / "c", ABOUT, tensors))


def test_an_optimizer_with_strange_settings_is_refused(tmp_path: Path) -> None:
    about = copy.deepcopy(ABOUT)
    settings = about["optimizer"]["hyperparameters"]
    for change, message in (({"velocity": "high"}, "unexpected keyword"), ({"momentum": None}, "it has no momentum")):
        about["optimizer"]["hyperparameters"] = {k: v for k, v in (settings | change).items() if v is not None}
        checkpoint = load_checkpoint(forged(tmp_path / "c", about))
        with pytest.raises(CheckpointError, match=f"its optimizer cannot be restored: .*{message}"):
            restore_optimizer(contract.load_stage("numpy"), checkpoint)


def test_a_mean_of_squares_below_0_is_refused(tmp_path: Path) -> None:
    about = ABOUT | {"optimizer": ABOUT["optimizer"] | {"buffers": ["second_moment"]}}
    tensors = {
        name.replace("velocity", "second_moment"): -array if "velocity" in name else array
        for name, array in TENSORS.items()
    }
    with pytest.raises(CheckpointError, match=r"the tensor optimizer\.second_moment\.0 is a mean of squares, and has"):
        load_checkpoint(forged(tmp_path / "c", about, tensors))


def layers(number: int, layer: dict[str, Any]) -> dict[str, Any]:
    return {"architecture": {"input_shape": [1, 28, 28], "layers": [layer] * number}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (layers(200_000, {"kind": "BatchNorm"}), "expected at most 10,000 layers, got 200,000"),
        (layers(3, {"kind": "Conv", "out_channels": 10**9, "size": 1}), "more than 16,777,216"),
        (
            {"optimizer": {**ABOUT["optimizer"], "buffers": ["m"] * 200_000}},
            "buffers: expected up to 8 different names",
        ),
        ({"optimizer": {**ABOUT["optimizer"], "steps": 10**400}}, "a number of 401 digits"),
        ({"progress": {"notes": 3}}, "progress: notes: expected an object, got 3"),
        ({"progress": {"loss": float("nan")}}, "NaN is not a number in JSON"),
        ({"progress": {"loss": [[]] * 600_000}}, "values are more than the 1,000,000 that are read"),
    ],
)
def test_what_asks_for_much_is_refused_at_once(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = forged(tmp_path / "c", ABOUT | change)
    began = time.process_time()
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(path)
    assert time.process_time() - began < 2.0


def bare(path: Path, header: Any) -> Path:
    """A file with this header and 8 bytes of tensors."""
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(8))
    return path


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"dtype": "F32", "shape": [2**52], "data_offsets": [0, 8]}, "expected 18014398509481984 bytes, got 8"),
        ({"dtype": "F32", "shape": [2], "data_offsets": [8, 16]}, "expected a tensor from byte 0 after the header on"),
        ({"dtype": "F32", "shape": [1] * 99, "data_offsets": [0, 4]}, "shape: expected up to 8 sizes"),
        ({"dtype": "object", "shape": [1], "data_offsets": [0, 8]}, "dtype: expected one of F32"),
        ({"dtype": "F32", "shape": [2], "data_offsets": [8, 0]}, "data_offsets: expected a begin and an end"),
        (7, "expected dtype, shape and data_offsets, got 7"),
    ],
)
def test_a_tensor_that_does_not_fit_the_file_is_refused(form: Any, message: str, tmp_path: Path) -> None:
    path = bare(tmp_path / "c", {"__metadata__": {"groundup": "", "sha256": ""}, "w": form})
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(path)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ([], r"its header is \[\], not an object"),
        ({"__metadata__": 7}, "__metadata__: expected texts, got 7"),
        ({"__metadata__": {"groundup": ""}}, "a safetensors file, but not a groundup checkpoint"),
    ],
)
def test_a_file_without_the_texts_of_a_checkpoint_is_refused(header: Any, message: str, tmp_path: Path) -> None:
    if isinstance(header, dict):
        header |= {"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(bare(tmp_path / "c", header))


@pytest.mark.parametrize("chunk", [5, checkpoint_file.CHUNK])
def test_a_file_is_read_as_the_safetensors_package_reads_it(
    chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint_file, "CHUNK", chunk)  # most tensors are larger, as those of real networks are
    changing = {name: np.arange(array.size, dtype="f4").reshape(array.shape) for name, array in TENSORS.items()}
    path = forged(tmp_path / "c", ABOUT, changing)
    assert load_checkpoint(path).parameters[0].flat[-1] == changing["parameters.0"].size - 1
    theirs = safetensors.numpy.load_file(path)
    with path.open("rb") as file:
        ours = Stored.opened(file).tensors()
    assert sorted(ours) == sorted(theirs)
    for name, array in theirs.items():
        assert ours[name].dtype == array.dtype
        np.testing.assert_array_equal(ours[name], array)
        assert ours[name].flags.writeable


RECORD = {
    "epoch": 1,
    "learning_rate": 0.1,
    "train_loss": 0.5,
    "train_accuracy": 0.9,
    "validation_loss": None,
    "validation_accuracy": None,
    "test_loss": 0.4,
    "test_accuracy": 0.8,
    "seconds": 1.0,
    "samples_per_second": 9.0,
}
POSITION: dict[str, Any] = {
    "epoch": 1,
    "step": 0,
    "loss_sum": 0.0,
    "seconds": 0.0,
    "best_value": 0.4,
    "best_epoch": 1,
    "epochs_since_best": 0,
    "records": [RECORD],
}


def test_a_position_of_a_run_is_read_again() -> None:
    assert Position.from_json(POSITION).records[0].test_accuracy == 0.8
    assert Position.from_json({"records": []}).epoch == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epoch": 2}, "epoch is 2, but there are records of 1"),
        ({"best_epoch": None}, "are known both, or none"),
        ({"best_value": "x"}, "best_value is 'x', expected a finite number"),
        ({"records": [{**RECORD, "epoch": 3}]}, "not those of the epochs 1, 2, 3"),
        ({"records": [{**RECORD, "test_accuracy": 80}]}, "test_accuracy is 80, expected 0 to 1"),
        ({"speed": 1}, "expected an object with records"),
    ],
)
def test_a_position_that_no_run_has_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        Position.from_json(POSITION | change)
