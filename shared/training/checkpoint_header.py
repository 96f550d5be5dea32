"""The header of a checkpoint, read with distrust: a file may come from a stranger.

The safetensors format already makes sure that opening a file runs no code. What the JSON document says is checked here
against what a network can be, and the forms of the tensors against what the document says: their names, shapes and
types. So the code after this can rely on all of it, and no array is made for a file that asks for what it does not
have.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shared.architectures import MOST_LAYERS, Architecture, mlp
from shared.contract import STAGES
from shared.layers import Shape, shortened
from shared.machine import strict_json
from shared.machine.strict_json import is_count
from shared.names import ACTIVATIONS, DTYPES, LOSSES
from shared.training.checkpoint_file import Form

FORMAT = 3
"""What is written: the architecture, the loss, the dtype, the optimizer, and how far the run has come."""
EARLIER = (1, 2)
"""Formats that are read as well. 1 names a stack of dense layers by its sizes and activation, 2 has both beside the
architecture."""

MOST_BUFFERS = 8
"""Of an optimizer, and of the arguments of its constructor."""

MEANS_OF_SQUARES = ("optimizer.second_moment", "optimizer.square_average")
"""Tensors of an optimizer that have no number below 0, as variances have none."""

LARGEST_OUTPUT = 2**24
"""Numbers of one sample after one layer. Padding makes an image of any size without a weight in the file for it."""


@dataclass(frozen=True)
class SavedOptimizer:
    """The optimizer of a checkpoint: its class name, the arguments of its constructor, its steps and buffers' names."""

    name: str
    hyperparameters: dict[str, Any]
    steps: int
    buffers: list[str]


@dataclass(frozen=True)
class Header:
    """The JSON document of a checkpoint, checked."""

    stage: str
    architecture: Architecture
    loss: str
    dtype: str
    optimizer: SavedOptimizer | None
    progress: dict[str, Any]


def read_header(text: str, forms: Mapping[str, Form]) -> Header:
    """The header, after a check of it and of the tensors' forms. Raises ValueError or TypeError for what is wrong."""
    try:
        about = strict_json.loads(text)
    except ValueError as error:
        raise ValueError(f"its header is no JSON ({error})") from None
    if not isinstance(about, dict):
        raise TypeError(f"its header is {shortened(about)}, not an object")
    if about.get("format") not in (*EARLIER, FORMAT) or type(about["format"]) is not int:
        raise ValueError(
            f"it has checkpoint format {shortened(about.get('format'))}, this version of groundup reads formats 1 to "
            f"{FORMAT}; open it with the version that wrote it, or train again"
        )
    _check_progress(about.get("progress"))
    header = Header(
        stage=_one_of(about, "stage", STAGES),
        architecture=architecture_of(about),
        loss=_one_of(about, "loss", LOSSES),
        dtype=_one_of(about, "dtype", DTYPES),
        optimizer=_optimizer(about.get("optimizer")),
        progress=about["progress"],
    )
    _check_forms(header, forms)
    return header


def architecture_of(about: Mapping[str, Any]) -> Architecture:
    """The network's form in a document of any format. Raises ValueError or TypeError for one that is impossible."""
    if about.get("format") == 1:
        sizes, activation = about.get("layer_sizes"), _one_of(about, "activation", ACTIVATIONS)
        if not isinstance(sizes, list) or len(sizes) > MOST_LAYERS:
            raise ValueError(f"layer_sizes: expected a list of up to {MOST_LAYERS:,} sizes, got {shortened(sizes)}")
        architecture = mlp(sizes, activation, _dropout_of_run(about))
    else:
        architecture = Architecture.from_json(about.get("architecture"))
    largest = max(math.prod(each.output_shape) for each in architecture.placed())
    if largest > LARGEST_OUTPUT:
        raise ValueError(f"architecture: a layer's output has {largest:,} numbers, more than {LARGEST_OUTPUT:,}")
    if len(architecture.output_shape) != 1:
        raise ValueError(f"architecture: its output is {architecture.output_shape}, an image; expected (classes,)")
    return architecture


def readable_architecture(about: Mapping[str, Any]) -> Architecture | None:
    """The architecture that a checkpoint's document describes; None if it describes none that is possible."""
    try:
        return architecture_of(about)
    except (ValueError, TypeError, OverflowError):
        return None


def _dropout_of_run(about: Mapping[str, Any]) -> float:
    """The rate that a run of format 1 had among its settings; its best checkpoint has none, and answers without."""
    progress = about.get("progress")
    settings = progress.get("settings") if isinstance(progress, Mapping) else None
    rate: float = settings.get("dropout", 0.0) if isinstance(settings, Mapping) else 0.0
    return rate


def _one_of(about: Mapping[str, Any], name: str, choices: Sequence[str]) -> str:
    value = about.get(name)
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name}: expected one of {', '.join(choices)}, got {shortened(value)}")
    return value


def _check_progress(progress: Any) -> None:
    """Raise TypeError for what a run wrote about itself, if it has not the form that every reader takes for granted."""
    if not isinstance(progress, dict):
        raise TypeError(f"progress: expected an object, got {shortened(progress)}")
    for name in ("position", "record", "settings", "notes"):
        if not isinstance(progress.get(name, {}), dict):
            raise TypeError(f"progress: {name}: expected an object, got {shortened(progress[name])}")
    notes = progress.get("notes", {})
    for name in ("dataset", "data_dir", "model"):
        if not isinstance(notes.get(name, ""), str | None):
            raise TypeError(f"progress: notes: {name}: expected a text or null, got {shortened(notes[name])}")
    epoch = progress.get("record", {}).get("epoch", 1)
    if not is_count(epoch):
        raise TypeError(f"progress: record: epoch: expected a whole number, got {shortened(epoch)}")


def _optimizer(saved: object) -> SavedOptimizer | None:
    if saved is None:
        return None
    if not isinstance(saved, dict) or not {"name", "hyperparameters", "steps", "buffers"} <= set(saved):
        raise ValueError(f"optimizer: expected name, hyperparameters, steps and buffers, got {shortened(saved)}")
    name, given, steps, buffers = (saved[key] for key in ("name", "hyperparameters", "steps", "buffers"))
    if not isinstance(name, str) or not isinstance(given, dict):
        raise TypeError(f"optimizer: expected a name and its hyperparameters, got {shortened([name, given])}")
    if not is_count(steps):
        raise ValueError(f"optimizer: steps: expected a whole number of at least 0, got {shortened(steps)}")
    if not isinstance(buffers, list) or not all(isinstance(each, str) for each in buffers):
        raise TypeError(f"optimizer: buffers: expected a list of names, got {shortened(buffers)}")
    if len(buffers) > MOST_BUFFERS or len(set(buffers)) < len(buffers):
        raise ValueError(f"optimizer: buffers: expected up to {MOST_BUFFERS} different names, got {shortened(buffers)}")
    if len(given) > MOST_BUFFERS or not all(isinstance(each, str | int | float | None) for each in given.values()):
        raise TypeError(f"optimizer: hyperparameters: expected a few numbers, got {shortened(given)}")
    return SavedOptimizer(name, given, steps, buffers)


def _check_forms(header: Header, forms: Mapping[str, Form]) -> None:
    """Raise ValueError if a tensor is missing, has another shape than the network says, is one too many, or of another
    type than the rest.

    Their types are checked where the file is opened, before its checksum.
    """
    architecture = header.architecture
    expected: dict[str, Shape] = dict(_named("parameters", architecture.parameter_shapes()))
    expected |= _named("running", architecture.running_shapes())
    for buffer in header.optimizer.buffers if header.optimizer else []:
        expected |= _named(f"optimizer.{buffer}", architecture.parameter_shapes())
    for name, shape in expected.items():
        if name not in forms:
            raise ValueError(f"the tensor {name} is missing: the network has {_counted(expected, name)} of its kind")
        if forms[name].shape != shape:
            raise ValueError(f"the tensor {name} is {forms[name].shape}, but the network says {shape}")
    types = {form.dtype: name for name, form in forms.items()}
    if len(types) > 1:
        listing = " and ".join(f"{name} is {dtype}" for dtype, name in sorted(types.items()))
        raise ValueError(f"its tensors are of several types: {listing}; a stage computes in one")
    if header.dtype == "float64" and "float32" in types:
        raise ValueError(f"its dtype is float64, but the tensor {types['float32']} is float32")
    for name in sorted(set(forms) - set(expected)):
        raise ValueError(f"the tensor {shortened(name)} belongs to no part of the network")


def check_values(tensors: Mapping[str, np.ndarray]) -> None:
    """Raise ValueError for numbers that no training leaves behind: a mean of squares below 0, a number that is not
    finite."""
    for name, array in tensors.items():
        if not np.isfinite(array).all():
            raise ValueError(f"the tensor {name} holds numbers that are not finite, which no training goes on from")
        kind, _, number = name.rpartition(".")
        is_mean_of_squares = kind in MEANS_OF_SQUARES or (kind == "running" and int(number) % 2)
        if is_mean_of_squares and (array < 0).any():
            raise ValueError(
                f"the tensor {name} is a {'variance' if kind == 'running' else 'mean of squares'}, "
                "and has a number below 0"
            )


def _named(what: str, shapes: Iterable[Shape]) -> dict[str, Shape]:
    return {f"{what}.{i}": shape for i, shape in enumerate(shapes)}


def _counted(expected: Mapping[str, Shape], name: str) -> int:
    """How many of the expected tensors have this name but for the number at its end."""
    return sum(re.sub(r"\d+$", "", each) == re.sub(r"\d+$", "", name) for each in expected)
