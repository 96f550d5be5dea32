"""A trained network of a run, and its answers to the test images of the data that it learned from.

open_checkpoint    the checkpoint of a run's folder
settings_of        what it was trained with; it names the data set
load_data          the data set, checked against the network
as_learned         the images as the network saw them
beliefs            the network's probabilities for every class
how_long, in_words how long it was trained; the same, with its layers, data and stage
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from groundup import inside
from groundup.run_notes import check_same_form, check_size, data_notes, title_of
from shared.contract import STAGE_TITLES, load_stage
from shared.data.datasets import Dataset, Form, load_dataset
from shared.data.normalisation import Normalisation
from shared.machine.strict_json import is_count
from shared.numbers import plural
from shared.training.checkpoints import Checkpoint, CheckpointError, build_network, load_checkpoint
from shared.training.runs import LAST

AT_A_TIME = 1000
"""Images in one forward pass of dense layers; this bounds the memory."""

LAYERED_AT_A_TIME = 100
"""Images in one forward pass of other networks, in which an image grows to many channels."""


def open_checkpoint(run: Path) -> Checkpoint:
    """The last checkpoint of a folder, or the checkpoint that is this file.

    Raises CheckpointError, a ValueError, if there is none.
    """
    if not run.exists():
        raise CheckpointError(f"there is no {run}; name the folder of a run, such as runs/stage2_numpy")
    if run.is_dir() and not (run / LAST).is_file():
        raise CheckpointError(
            f"{run} holds no run: there is no {LAST} in it. `groundup train numpy --run-dir {run}` would make one"
        )
    return load_checkpoint(run / LAST if run.is_dir() else run)


def settings_of(checkpoint: Checkpoint) -> Mapping[str, Any]:
    """The settings of the run that wrote the checkpoint, which name the data set.

    Raises CheckpointError if they do not.
    """
    return data_notes(checkpoint)


def load_data(checkpoint: Checkpoint, data_dir: Path | None = None) -> Dataset:
    """The data set that the network learned from. data_dir: where it is now, None for where it was.

    Raises CheckpointError if the network is none for its images, DataError if they cannot be read.
    """
    notes = settings_of(checkpoint)
    made = {"colour": notes.get("colour", False), "resize": notes.get("resize")} if Form.from_notes(notes) else {}
    data = load_dataset(notes["dataset"], data_dir or notes["data_dir"], **made)
    check_fit(checkpoint, data.name, data.described)
    return data


def check_fit(checkpoint: Checkpoint, name: str, form: Form) -> None:
    """Raise CheckpointError if the network is not one for the images of this data set, or is too large to look
    into."""
    if not form.fits(checkpoint.architecture):
        inputs, outputs = checkpoint.architecture.ends
        raise CheckpointError(
            f"{checkpoint.path} holds a network from {inputs} inputs to {outputs} outputs, but {name} has {form}"
        )
    check_same_form(str(checkpoint.path), Form.from_notes(settings_of(checkpoint)), name, form)
    check_size(checkpoint)


def as_learned(checkpoint: Checkpoint, data: Dataset) -> Dataset:
    """The data set as the network learned from it: normalised, if the run did that."""
    normalisation = Normalisation.from_notes(settings_of(checkpoint))
    return data if normalisation is None else normalisation.dataset(data)


def how_long(checkpoint: Checkpoint) -> str:
    """How long the network was trained: '10 epochs', '2 epochs and 31 steps', 'no epoch'."""
    if "record" in checkpoint.about_run:
        epochs, steps = checkpoint.about_run["record"].get("epoch", 0), 0
    else:
        position = checkpoint.about_run.get("position", {})  # a Python program's own checkpoint may not say it
        epochs, steps = (n if is_count(n := position.get(each)) else 0 for each in ("epoch", "step"))
    parts = [plural(number, unit) for number, unit in ((epochs, "epoch"), (steps, "step")) if number]
    return " and ".join(parts) or "no epoch"


def in_words(checkpoint: Checkpoint) -> str:
    """'784-128-10 relu, 10 epochs of mnist-subset by stage 3: C', after `settings_of` has checked its notes."""
    notes, stack = settings_of(checkpoint), checkpoint.architecture.as_mlp()
    model = notes.get("model")
    layers = model if isinstance(model, str) else plural(len(checkpoint.architecture.layers), "layer")
    trained = f"{how_long(checkpoint)} of {title_of(notes['dataset'])} by {STAGE_TITLES[checkpoint.stage]}"
    return f"{stack.title if stack else layers}, {trained}"


def beliefs(
    checkpoint: Checkpoint, x: np.ndarray, stage: str = "numpy", on_progress: Callable[[int], None] | None = None
) -> np.ndarray:
    """The probabilities (n, classes) that the checkpoint's network gives x (n, features), as it learned from them.

    The formulas of groundup/inside.py answer for a stack of dense layers. Any other network is built on `stage`.
    on_progress: called after each part with the number of images that are done
    """
    if stack := checkpoint.architecture.as_mlp():
        parameters, size = checkpoint.parameters, AT_A_TIME

        def scores(part: np.ndarray) -> np.ndarray:
            return inside.scores(parameters, stack.activation, part.astype(parameters[0].dtype))
    else:
        size, floor = LAYERED_AT_A_TIME, load_stage(stage)
        network = build_network(floor, checkpoint)

        def scores(part: np.ndarray) -> np.ndarray:
            outputs = network.forward(floor.arrays.asarray(part.astype(checkpoint.dtype), checkpoint.dtype))
            return np.array(floor.arrays.to_host(outputs))

    parts = []
    for start, part in _parts(x, size):
        parts.append(inside.probabilities(scores(part)))
        if on_progress is not None:
            on_progress(start + len(part))
    return np.concatenate(parts)


def _parts(x: np.ndarray, size: int) -> Iterator[tuple[int, np.ndarray]]:
    return ((start, x[start : start + size]) for start in range(0, len(x), size))
