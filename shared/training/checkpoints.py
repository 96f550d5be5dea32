"""Checkpoints: everything that a training run needs to go on, in one file that every stage can read.

The file format is safetensors: a JSON header and raw numbers, so opening a file cannot run code. It holds the
parameters (`parameters.0` is W1, `parameters.1` is b1, …), the running statistics of batch normalisation (`running.0`
is a mean, `running.1` its variance, …) and the optimizer's buffers (`optimizer.velocity.0`, …) in the dtype that the
stage computes in, so no number is rounded. The header holds two texts: `groundup`, a JSON document with everything
else, and `sha256`, the checksum of that document and of every tensor, which detects a flipped bit.

This is format 3. Files of formats 1 and 2 open as well (`architecture_of` in checkpoint_header).
"""

from __future__ import annotations

import inspect
import json
import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from shared.architectures import Architecture
from shared.contract import OPTIMIZERS, NetworkLike, Optimizer, Stage
from shared.machine import regular, strict_json
from shared.machine.atomic import write_atomically
from shared.plain_arrays import check_held
from shared.training.checkpoint_file import Stored, digest
from shared.training.checkpoint_header import DTYPES, FORMAT, Header, check_values, read_header

MOST_LISTED, MOST_LISTED_VALUES = 4 * 2**20, 50_000
"""Bytes of the header, and values in its document, that `read_about` reads."""

MOST_KEPT = 2**24
"""Characters of such documents that are kept."""


class CheckpointError(ValueError):
    """The file is not a checkpoint, is damaged, or belongs to another network or run; the message says which."""


@dataclass(frozen=True)
class Checkpoint:
    """The contents of a checkpoint file.

    stage: name of the stage that wrote it
    architecture: the network's form as data
    parameters: [W1, b1, W2, b2, …] in the dtype that this stage computed in: float32 or float64 (stage 1: float64)
    running_statistics: [mean, variance, …] of the batch normalisations
    dtype: the name that its Network was given
    optimizer: the class name of the optimizer, or None if none was saved
    hyperparameters: the arguments of its constructor; optimizer_state: as `Optimizer.state()` returns it
    about_run: what the training loop wrote about its run ("progress" in the file)
    """

    path: Path
    stage: str
    architecture: Architecture
    parameters: list[np.ndarray]
    running_statistics: list[np.ndarray]
    loss: str
    dtype: str
    optimizer: str | None
    hyperparameters: dict[str, Any]
    optimizer_state: dict[str, Any]
    about_run: dict[str, Any]

    @property
    def activation(self) -> str:
        """The activation of a stack of dense layers; "" for any other architecture."""
        stack = self.architecture.as_mlp()
        return "" if stack is None else stack.activation


def save_checkpoint(
    path: str | os.PathLike[str],
    stage: Stage,
    network: NetworkLike,
    optimizer: Optimizer | None = None,
    about_run: Mapping[str, Any] | None = None,
) -> None:
    """Write a checkpoint. The file is replaced as a whole: after a crash it is the old one or the new one.

    about_run: values that JSON can hold, with finite numbers only
    Raises OSError if the file cannot be written, ValueError if JSON cannot hold about_run.
    """
    tensors = {f"parameters.{i}": _host(stage, array) for i, array in enumerate(network.parameters)}
    tensors |= {f"running.{i}": _host(stage, array) for i, array in enumerate(network.running_statistics)}
    about: dict[str, Any] = {
        "format": FORMAT,
        "stage": stage.name,
        "architecture": network.architecture.to_json(),
        "loss": network.loss_name,
        "dtype": network.dtype,
        "optimizer": None,
        "progress": dict(about_run or {}),
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
    metadata = {"groundup": text, "sha256": checksum(text, tensors)}
    write_atomically(Path(path), safetensors.numpy.save(tensors, metadata))


def load_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Read a checkpoint that any stage wrote.

    Raises CheckpointError if the file is missing, no regular file, truncated, damaged or of another format version, or
    if its tensors are not those of the network that it says it holds; OSError if it cannot be read. Everything that the
    file says is checked before an array is made.
    """
    path = Path(path)
    header, tensors = _read_verified(path)
    saved, architecture = header.optimizer, header.architecture

    def numbered(prefix: str, shapes: Sequence[Any]) -> list[np.ndarray]:
        return [tensors[f"{prefix}.{i}"] for i in range(len(shapes))]

    shapes = architecture.parameter_shapes()
    buffers = {name: numbered(f"optimizer.{name}", shapes) for name in (saved.buffers if saved else [])}
    return Checkpoint(
        path=path,
        stage=header.stage,
        architecture=architecture,
        parameters=numbered("parameters", shapes),
        running_statistics=numbered("running", architecture.running_shapes()),
        loss=header.loss,
        dtype=header.dtype,
        optimizer=saved.name if saved else None,
        hyperparameters=saved.hyperparameters if saved else {},
        optimizer_state={"steps": saved.steps if saved else 0, "buffers": buffers},
        about_run=header.progress,
    )


def read_about(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a checkpoint says about itself: the document in its header, for a list. No tensor is read, so the checksum
    is not tested; what the document says is for its readers to check, such as `readable_architecture`.

    Raises CheckpointError if the file is none, or says more than a list wants to know; OSError if it cannot be read. A
    file that has not changed is read once.
    """
    with regular.opened(path) as file:
        facts = os.fstat(file.fileno())
        key = os.fspath(path), facts.st_ino, facts.st_mtime_ns, facts.st_size
        text = _texts.get(key)
        try:
            if text is None:
                text = Stored.opened(file, MOST_LISTED).texts.get("groundup", "")
                _keep(key, text)
            document = strict_json.loads(text, MOST_LISTED_VALUES)
        except ValueError as error:
            raise CheckpointError(f"it is no checkpoint, or its header is damaged: {error}") from None
    if not isinstance(document, dict):
        raise CheckpointError("its header is damaged: it holds no object")
    return document


_texts: OrderedDict[Any, str] = OrderedDict()
"""The texts that `read_about` found last."""


def _keep(key: object, text: str) -> None:
    _texts[key] = text
    while len(_texts) > 1 and sum(map(len, list(_texts.values()))) > MOST_KEPT:
        _texts.popitem(last=False)


def build_network(stage: Stage, checkpoint: Checkpoint) -> NetworkLike:
    """A new network of this stage with the checkpoint's parameters, rounded to its dtype if stage 1 wrote them.

    Raises ValueError if the stage cannot build the architecture, or its dtype does not hold a number.
    """
    network: NetworkLike = stage.network.Network.from_parameters(
        own_arrays(stage, checkpoint, "parameters", checkpoint.parameters),
        loss=checkpoint.loss,
        dtype=checkpoint.dtype,
        architecture=checkpoint.architecture,
        running_statistics=own_arrays(stage, checkpoint, "running", checkpoint.running_statistics),
    )
    return network


def own_arrays(stage: Stage, checkpoint: Checkpoint, kind: str, arrays: Sequence[np.ndarray]) -> list[Any]:
    """The tensors of this kind as the stage's own arrays, in the checkpoint's dtype.

    Raises CheckpointError for a number of stage 1's, which computes in float64, that this dtype does not hold.
    """
    for i, array in enumerate(arrays if stage.number > 1 else ()):
        try:
            check_held(f"{checkpoint.path}: {kind}.{i}", array, checkpoint.dtype)
        except ValueError as error:
            raise CheckpointError(str(error)) from None
    return [stage.arrays.asarray(array, checkpoint.dtype) for array in arrays]


def restore_optimizer(stage: Stage, checkpoint: Checkpoint) -> Optimizer:
    """A new optimizer of this stage in the state that the checkpoint holds.

    Raises CheckpointError if the checkpoint was saved without an optimizer, or with one that cannot be.
    """
    if checkpoint.optimizer not in OPTIMIZERS:
        raise CheckpointError(f"{checkpoint.path} holds no optimizer of this program, got {checkpoint.optimizer!r}")
    kind = getattr(stage.optimizers, checkpoint.optimizer)
    if missing := sorted(set(inspect.signature(kind).parameters) - set(checkpoint.hyperparameters)):
        raise CheckpointError(f"{checkpoint.path}: its optimizer cannot be restored: it has no {missing[0]}")
    try:
        optimizer: Optimizer = kind(**checkpoint.hyperparameters)
        optimizer.load_state(optimizer_state(stage, checkpoint))
    except (ValueError, TypeError) as error:
        raise CheckpointError(f"{checkpoint.path}: its optimizer cannot be restored: {error}") from error
    return optimizer


def optimizer_state(stage: Stage, checkpoint: Checkpoint) -> dict[str, Any]:
    """The checkpoint's optimizer state in this stage's own arrays, for `Optimizer.load_state`."""
    state = checkpoint.optimizer_state
    kinds = state["buffers"].items()
    buffers = {name: own_arrays(stage, checkpoint, f"optimizer.{name}", arrays) for name, arrays in kinds}
    return {"steps": state["steps"], "buffers": buffers}


def hyperparameters(optimizer: Optimizer) -> dict[str, Any]:
    """The constructor's arguments of an optimizer; each one is an attribute of the same name."""
    return {name: getattr(optimizer, name) for name in inspect.signature(type(optimizer)).parameters}


def _read_verified(path: Path) -> tuple[Header, dict[str, np.ndarray]]:
    """The header and the tensors of a file. Raises CheckpointError if anything is wrong with it."""
    try:
        with regular.opened(path) as file:
            try:
                stored = Stored.opened(file)
            except ValueError as error:
                raise CheckpointError(f"{path} is no safetensors file, or is truncated or damaged ({error})") from error
            _check_texts(path, stored)
            try:
                header = read_header(stored.texts["groundup"], stored.forms)
                tensors = stored.tensors()
                check_values(tensors)
            except (ValueError, TypeError, OverflowError) as error:
                raise CheckpointError(f"{path} is no checkpoint that this program can use: {error}") from error
    except FileNotFoundError:
        raise CheckpointError(f"no checkpoint at {path}: there is no such file") from None
    except regular.NoRegularFile as error:
        raise CheckpointError(f"no checkpoint at {path}: {error}") from None
    except OSError as error:
        raise OSError(f"cannot read {path}: {error.strerror or error}") from error
    return header, tensors


def _check_texts(path: Path, stored: Stored) -> None:
    """Raise CheckpointError if the file was not written by `save_checkpoint`, or its checksum is wrong."""
    if "groundup" not in stored.texts or "sha256" not in stored.texts:
        raise CheckpointError(f"{path} is a safetensors file, but not a groundup checkpoint, or its header is damaged")
    strange = next((name for name, form in stored.forms.items() if form.dtype not in DTYPES), None)
    if strange is not None:
        raise CheckpointError(
            f"{path} is no checkpoint that this program can use: the tensor {strange[:60]} is "
            f"{stored.forms[strange].dtype}, expected one of {', '.join(DTYPES)}, or its header is damaged"
        )
    if stored.damaged(stored.texts["groundup"], stored.texts["sha256"]):
        raise CheckpointError(f"{path} is damaged: its contents do not match their checksum; use an earlier copy")


def checksum(text: str, tensors: Mapping[str, np.ndarray]) -> str:
    """The checksum in the header of a checkpoint with this document and these tensors."""
    return digest(text, tensors, lambda name: (np.ascontiguousarray(tensors[name]).data,))


def _host(stage: Stage, array: Any) -> np.ndarray:
    # safetensors writes the memory of an array as it is, so the array must be in row-major order
    return np.ascontiguousarray(stage.arrays.to_host(array))
