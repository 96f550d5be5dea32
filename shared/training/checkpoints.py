"""Checkpoints: everything a training run needs to go on, in one file that any stage can read.

The file is safetensors: a JSON header and raw numbers, nothing that could run code when it is opened. It holds the
parameters (`parameters.0` is W1, `parameters.1` is b1, …) and the optimizer's buffers (`optimizer.velocity.0`, …) in
the dtype the stage computes in, so that nothing is rounded. Two texts stand in the header: `groundup`, a JSON document
of all the rest, and `sha256`, the checksum of that document and every tensor, which finds a single flipped bit.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from shared.contract import OPTIMIZERS, NetworkLike, Optimizer, Stage
from shared.machine.atomic import write_atomically

FORMAT_VERSION = 1


class CheckpointError(ValueError):
    """The file is no checkpoint, is damaged, or belongs to another network or run; the message says which."""


@dataclass(frozen=True)
class Checkpoint:
    """What `load_checkpoint` found.

    parameters: [W1, b1, W2, b2, …] as the writing stage computed with them: float32, or float64 (always on stage 1)
    stage: who wrote it; dtype: the name that its Network was given
    optimizer: its class name, or None where none was saved; hyperparameters: its constructor's arguments;
    optimizer_state: as `Optimizer.state()` returns it
    progress: whatever the training loop wanted to remember
    """

    path: Path
    stage: str
    parameters: list[np.ndarray]
    layer_sizes: list[int]
    activation: str
    loss: str
    dtype: str
    optimizer: str | None
    hyperparameters: dict[str, Any]
    optimizer_state: dict[str, Any]
    progress: dict[str, Any]


def save_checkpoint(
    path: str | os.PathLike[str],
    stage: Stage,
    network: NetworkLike,
    optimizer: Optimizer | None = None,
    progress: Mapping[str, Any] | None = None,
) -> None:
    """Write a checkpoint: all of it or nothing, whatever happens meanwhile.

    progress: anything JSON can hold, finite numbers only
    Raises OSError where the file cannot be written, ValueError where progress holds something JSON cannot.
    """
    tensors = {f"parameters.{i}": _host(stage, array) for i, array in enumerate(network.parameters)}
    about: dict[str, Any] = {
        "format": FORMAT_VERSION,
        "stage": stage.name,
        "layer_sizes": list(network.layer_sizes),
        "activation": network.activation,
        "loss": network.loss_name,
        "dtype": network.dtype,
        "optimizer": None,
        "progress": dict(progress or {}),
    }
    if optimizer is not None:
        state = optimizer.state()
        about["optimizer"] = {
            "name": type(optimizer).__name__,
            "hyperparameters": hyperparameters(optimizer),
            "steps": state["steps"],
            "buffers": sorted(state["buffers"]),
        }
        for name, arrays in state["buffers"].items():
            tensors |= {f"optimizer.{name}.{i}": _host(stage, array) for i, array in enumerate(arrays)}
    text = json.dumps(about, sort_keys=True, allow_nan=False)
    metadata = {"groundup": text, "sha256": _checksum(text, tensors)}
    write_atomically(Path(path), safetensors.numpy.save(tensors, metadata))


def load_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Read a checkpoint, whichever stage wrote it.

    Raises CheckpointError where the file is missing, truncated, damaged or of another format version.
    """
    path = Path(path)
    text, tensors = _read_verified(path)
    about = json.loads(text)
    if about["format"] != FORMAT_VERSION:
        raise CheckpointError(
            f"{path} has checkpoint format {about['format']}, this version of groundup reads format {FORMAT_VERSION}"
        )
    count = 2 * (len(about["layer_sizes"]) - 1)
    saved = about["optimizer"]
    buffers = {
        name: [tensors[f"optimizer.{name}.{i}"] for i in range(count)] for name in (saved["buffers"] if saved else [])
    }
    return Checkpoint(
        path=path,
        stage=about["stage"],
        parameters=[tensors[f"parameters.{i}"] for i in range(count)],
        layer_sizes=about["layer_sizes"],
        activation=about["activation"],
        loss=about["loss"],
        dtype=about["dtype"],
        optimizer=saved["name"] if saved else None,
        hyperparameters=saved["hyperparameters"] if saved else {},
        optimizer_state={"steps": saved["steps"] if saved else 0, "buffers": buffers},
        progress=about["progress"],
    )


def build_network(stage: Stage, checkpoint: Checkpoint) -> NetworkLike:
    """A new network of this stage with the checkpoint's parameters. A float32 network rounds what stage 1 wrote."""
    parameters = [stage.arrays.asarray(array, checkpoint.dtype) for array in checkpoint.parameters]
    network: NetworkLike = stage.network.Network.from_parameters(
        parameters, activation=checkpoint.activation, loss=checkpoint.loss, dtype=checkpoint.dtype
    )
    return network


def restore_optimizer(stage: Stage, checkpoint: Checkpoint) -> Optimizer:
    """A new optimizer of this stage that goes on where the checkpoint's stood.

    Raises CheckpointError where the checkpoint was saved without one.
    """
    if checkpoint.optimizer not in OPTIMIZERS:
        raise CheckpointError(f"{checkpoint.path} holds no optimizer of this program, got {checkpoint.optimizer!r}")
    optimizer: Optimizer = getattr(stage.optimizers, checkpoint.optimizer)(**checkpoint.hyperparameters)
    optimizer.load_state(optimizer_state(stage, checkpoint))
    return optimizer


def optimizer_state(stage: Stage, checkpoint: Checkpoint) -> dict[str, Any]:
    """The checkpoint's optimizer state in this stage's own arrays, as `Optimizer.load_state` takes it."""
    state = checkpoint.optimizer_state
    convert = stage.arrays.asarray
    buffers = {name: [convert(a, checkpoint.dtype) for a in arrays] for name, arrays in state["buffers"].items()}
    return {"steps": state["steps"], "buffers": buffers}


def hyperparameters(optimizer: Optimizer) -> dict[str, Any]:
    """The arguments that would make this optimizer again; each is an attribute of the same name."""
    return {name: getattr(optimizer, name) for name in inspect.signature(type(optimizer)).parameters}


def _read_verified(path: Path) -> tuple[str, dict[str, np.ndarray]]:
    """The JSON text and the tensors of a file whose checksum is right, or a CheckpointError."""
    if not path.is_file():
        raise CheckpointError(f"no checkpoint at {path}: there is no such file")
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no dict)
    except OSError:
        raise
    except Exception as error:  # a damaged header fails in the reader in many ways, each of them "damaged"
        raise CheckpointError(f"{path} is no safetensors file, or is truncated or damaged ({error})") from error
    if "groundup" not in metadata or "sha256" not in metadata:
        raise CheckpointError(f"{path} is a safetensors file, but not a groundup checkpoint, or its header is damaged")
    if _checksum(metadata["groundup"], tensors) != metadata["sha256"]:
        raise CheckpointError(f"{path} is damaged: its contents do not match their checksum; use an earlier copy")
    return metadata["groundup"], tensors


def _checksum(text: str, tensors: Mapping[str, np.ndarray]) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _host(stage: Stage, array: Any) -> np.ndarray:
    # safetensors writes an array's memory as it lies, so it must lie in row-major order
    return np.ascontiguousarray(stage.arrays.to_host(array))
