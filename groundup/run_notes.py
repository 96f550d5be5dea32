"""The settings in a checkpoint of `groundup train`, read with distrust: the file may come from a stranger.

`groundup look` and `groundup train --resume` take from them which images the network learned from. What they say is
checked against the checkpoint's own network, so that nothing large is built for a file that does not have it; a data
set is one of the known ones, or the user's own with its form, and a folder is one of this machine. Notes never start a
download.

data_notes      what `groundup look` needs: the data set and its folder
train_notes     every setting of `groundup train`
check_size      that the network is not too large to look into
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any

from shared.architectures import named
from shared.data.accepted_data import NOTE
from shared.data.datasets import DATASETS, FORMS, Form
from shared.data.normalisation import Normalisation
from shared.layers import AveragePool, MaxPool, shortened
from shared.machine.strict_json import is_count, is_number
from shared.training.checkpoints import Checkpoint, CheckpointError
from shared.windows import as_pair

MOST_OUTPUTS = 2**22
"""Numbers that all layers together give for one image: ten times those of residual_cnn, the largest known network."""

MOST_OPERATIONS = 2**28
"""Multiply-adds of convolutions and dense layers for one image, and numbers that pools look at: NumPy takes up to
minutes for those of a thousand images."""


MOST_UNITS = 100_000
"""Of a hidden layer whose network, in the file, is not one for the images of the known data sets."""


def data_notes(checkpoint: Checkpoint) -> Mapping[str, Any]:
    """The notes, if they name a known data set and no folder of another machine. Raises CheckpointError."""
    notes: Mapping[str, Any] = checkpoint.about_run.get("notes", {})
    known = notes.get("dataset") in DATASETS
    if not (known or notes.get(NOTE) is not None) or "dataset" not in notes or "data_dir" not in notes:
        raise CheckpointError(
            f"{checkpoint.path} was not written by groundup train: it does not say which images it was trained on. "
            'A run from Python says so by Saving(..., notes={"dataset": "mnist-subset", "data_dir": None})'
        )
    for name in ("data_dir",) if known else ("dataset", "data_dir"):
        folder = notes[name] or ""
        if "\0" in folder or folder.startswith(("//", "\\\\")):
            raise CheckpointError(
                f"{checkpoint.path}: its {name} is {shortened(folder)}, no folder of this machine; "
                "name the right one with --data-dir"
            )
    try:
        if known and notes.get(NOTE) is not None:
            raise ValueError(f"{NOTE}: expected none beside the known set {notes['dataset']}")
        Form.from_notes(notes)
        for name in ("colour", "resize"):
            _, fits, expected = SETTINGS[name]
            if not fits(notes.get(name, False if name == "colour" else None)):
                raise ValueError(f"{name}: expected {expected}, got {shortened(notes[name])}")
        Normalisation.from_notes(notes)
    except (ValueError, OverflowError) as error:
        raise CheckpointError(f"{checkpoint.path}: {error}") from None
    return notes


def train_notes(checkpoint: Checkpoint, notes: Mapping[str, Any]) -> dict[str, Any]:
    """The settings, if they are ones that `groundup train` can have had for this checkpoint. Raises CheckpointError.

    notes: those of the checkpoint, with the defaults of settings that its version did not have. Whether a data set may
    be downloaded is never among them.
    """
    data_notes(checkpoint)
    for name, (_, fits, expected) in SETTINGS.items():
        if not fits(notes[name]):
            raise _wrong(checkpoint, name, f"expected {expected}, got {shortened(notes[name])}")
    same: dict[str, Any] = {
        "loss": checkpoint.loss,
        "dtype": checkpoint.dtype,
        "optimizer": (checkpoint.optimizer or "").lower(),
    }
    stack = checkpoint.architecture.as_mlp()
    if notes["model"] is None and stack is not None and len(stack.sizes) > 2:  # else there is nothing to follow a layer
        same |= {"activation": stack.activation, "dropout": stack.dropout}
    for name, own in same.items():
        value = notes[name].lower() if name == "optimizer" else notes[name]
        if value != own:
            raise _wrong(checkpoint, name, f"it is {shortened(value)}, but its network has {shortened(own)}")
    _check_network(checkpoint, notes)
    return {**notes, "download": False}


def title_of(dataset: str) -> str:
    """A data set's name for a page or a table: of one of the user's own, that of its folder or file."""
    return dataset if dataset in DATASETS else PurePath(dataset.replace("\\", "/")).name or dataset


def form_of(notes: Mapping[str, Any]) -> Form:
    """The form of the data set that the notes of a checkpoint name, after `data_notes` has checked them."""
    return Form.from_notes(notes) or FORMS[notes["dataset"]]


def check_same_form(where: str, learned: Form | None, name: str, form: Form) -> None:
    """Raise CheckpointError if a set of the user's own is another one now than what the network learned from."""
    if learned not in (None, form):
        assert learned is not None
        pairs = zip(learned.names, form.names, strict=False)
        changed = next((f": {was} was class {i} and is {now}" for i, (was, now) in enumerate(pairs) if was != now), "")
        raise CheckpointError(f"{where} learned from {learned}, but {name} has {form} now{changed:.200}")


def _check_network(checkpoint: Checkpoint, notes: Mapping[str, Any]) -> None:
    """Raise CheckpointError if the settings describe another network than the checkpoint holds."""
    stack, form = checkpoint.architecture.as_mlp(), form_of(notes)
    if notes["model"] is not None:
        try:
            told = named(notes["model"], form.shape, len(form.names))
        except ValueError as error:
            raise _wrong(checkpoint, "model", str(error)) from None
        fits = told == checkpoint.architecture
    else:
        inputs, *hidden, _ = stack.sizes if stack else (0, 0, 0)
        # The network is built for the images of the data set before it is compared with the one in the file.
        pixels = math.prod(form.shape)
        fits = hidden == _sizes(notes["hidden"]) and (inputs == pixels or max(hidden, default=0) <= MOST_UNITS)
    if not fits:
        name = "hidden" if notes["model"] is None else "model"
        told_size = "-".join(map(str, stack.sizes if stack else checkpoint.architecture.ends))
        raise _wrong(
            checkpoint, name, f"{shortened(notes[name])} is not the network in the file, which is {told_size:.60}"
        )


def _sizes(hidden: str | None) -> list[int]:
    """The sizes of the hidden layers; 0 for what is none."""
    if (hidden or "").strip() == "none":
        return []
    return [int(part) if part.strip().isdecimal() and len(part) < 20 else 0 for part in (hidden or "").split(",")]


def _wrong(checkpoint: Checkpoint, name: str, why: str) -> CheckpointError:
    return CheckpointError(f"{checkpoint.path} holds settings that groundup train does not write: {name}: {why}")


def check_size(checkpoint: Checkpoint) -> None:
    """Raise CheckpointError for a network whose answers to a thousand images take minutes or much memory."""
    network = checkpoint.architecture
    outputs = sum(math.prod(each.output_shape) for each in network.placed())
    operations = network.multiply_adds + sum(
        math.prod(each.output_shape) * math.prod(as_pair(each.layer.size))
        for each in network.placed()
        if isinstance(each.layer, MaxPool | AveragePool)
    )
    if outputs > MOST_OUTPUTS or operations > MOST_OPERATIONS:
        raise CheckpointError(
            f"{checkpoint.path}: one image takes {operations:,} operations and {outputs:,} numbers, more than the "
            f"{MOST_OPERATIONS:,} and {MOST_OUTPUTS:,} up to which groundup looks into a network"
        )


def _text(value: object) -> bool:
    return isinstance(value, str)


def _or_none(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or fits(value)


def _truth(value: object) -> bool:
    return isinstance(value, bool)


_TEXT, _NUMBER = (_text, "a text"), (is_number, "a finite number")
_COUNT, _TRUTH = (is_count, "a whole number of at least 0"), (_truth, "true or false")

SETTINGS: dict[str, tuple[Any, Callable[[Any], bool], str]] = {
    "dataset": ("mnist-subset", *_TEXT),
    "data_dir": (None, _or_none(_text), "a folder or null"),
    "download": (False, *_TRUTH),
    "colour": (False, *_TRUTH),
    "resize": (None, _or_none(_text), "a size or null"),
    "normalise": (False, *_TRUTH),
    "augment_shift": (0, *_COUNT),
    "augment_rotation": (0.0, *_NUMBER),
    "model": (None, _or_none(_text), "a name or null"),
    "hidden": ("128", _or_none(_text), "sizes or null"),
    "activation": ("relu", _or_none(_text), "a name or null"),
    "loss": ("softmax_cross_entropy", *_TEXT),
    "initializer": ("he", *_TEXT),
    "dtype": ("float32", *_TEXT),
    "optimizer": ("sgd", *_TEXT),
    "learning_rate": (None, _or_none(is_number), "a number or null"),
    "momentum": (0.0, *_NUMBER),
    "nesterov": (False, *_TRUTH),
    "weight_decay": (0.0, *_NUMBER),
    "epochs": (10, *_COUNT),
    "batch_size": (64, *_COUNT),
    "schedule": ("constant", *_TEXT),
    "warmup_epochs": (0.0, *_NUMBER),
    "step_epochs": (3.0, *_NUMBER),
    "gamma": (None, _or_none(is_number), "a number or null"),
    "dropout": (0.0, *_NUMBER),
    "validation": (0.0, *_NUMBER),
    "patience": (None, _or_none(is_count), "a whole number or null"),
    "monitor": (None, _or_none(_text), "a name or null"),
    "seed": (0, lambda value: isinstance(value, int) and not _truth(value), "a whole number"),
    "checkpoint_every": (None, _or_none(is_count), "a whole number or null"),
    "mine": (False, *_TRUTH),
    "accumulate": (1, *_COUNT),
    "local_statistics": (False, *_TRUTH),
}
"""Of each setting of `groundup train`: its default, whether a value of JSON can be it, and what is expected."""
