"""The networks that can answer: the one that ships with groundup, and the runs in the folder runs of the studio.

A run can answer if its network takes images, those of a known data set or of one of the user's own; dense layers and
convolutions both can. Of a run's checkpoints the best answers, or the last while there is no best one.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from groundup.run_notes import title_of
from shared.architectures import Architecture
from shared.contract import STAGE_TITLES
from shared.data.datasets import FORMS, Form
from shared.data.normalisation import Normalisation
from shared.layers import shortened
from shared.machine.regular import real
from shared.machine.strict_json import is_count, is_number
from shared.numbers import percent, plural
from shared.training.checkpoint_header import readable_architecture
from shared.training.checkpoints import Checkpoint, CheckpointError, load_checkpoint, read_about
from shared.training.runs import BEST, LAST

DEFAULT = "/shipped"
"""The name of the network that ships. No run can have it: a run's name, counted from runs/, begins with no slash."""

SHIPPED = Path(__file__).with_name("network.safetensors")

SUBSET = "mnist-subset"
"""The data set of a network that does not say which."""

DEPTH = 4
"""Folders below runs/ in which a run may lie."""

MOST = 200
"""Runs that are listed, the newest ones."""


@dataclass(frozen=True, eq=False)
class Trained:
    """A network that can answer.

    name: DEFAULT or the run's folder, counted from runs/; title: its layers
    about: how it was trained, and how well, in words
    form: the shape of its images, and the names of its classes
    dataset: the name of the one that it learned from, "" where its file does not say it
    version: when its file was written; an answer of another version is another network's
    certain: whether softmax of its scores are probabilities; another loss than cross-entropy only ranks the classes
    """

    name: str
    title: str
    about: str
    form: Form
    certain: bool
    checkpoint: Checkpoint
    normalisation: Normalisation | None
    dataset: str
    version: str

    def learned(self, x: np.ndarray) -> np.ndarray:
        """Images (n, pixels) as the network learned from them: in its dtype, normalised if its run did that."""
        x = x.astype(self.checkpoint.dtype)
        return x if self.normalisation is None else self.normalisation.normalised(x)


def listed(runs: Path) -> list[dict[str, str]]:
    """The networks that can answer: {"name", "title", "about"}, the one that ships first, then the newest run first.

    Only the headers of the checkpoints are read. What is no checkpoint, or cannot answer, is left out.
    """
    newest = sorted(_runs(runs).items(), key=lambda item: -_changed(item[1]))[:MOST]
    networks = []
    for name, path in [(DEFAULT, SHIPPED), *newest]:
        about = _header(path)
        architecture = None if about is None else readable_architecture(about)
        if about is not None and architecture is not None and _form(architecture, _notes(about)) is not None:
            words = {"title": _title(architecture, about), "about": _about(about)}
            networks.append({"name": name, **words})
    return networks


def load(runs: Path, name: str) -> Trained:
    """The network of this name.

    Raises ValueError for a name that is not listed, CheckpointError for a damaged file.
    """
    return opened(_path(runs, name), name)


def opened(path: Path, name: str) -> Trained:
    """The network of a checkpoint, under this name.

    Raises ValueError for one that takes no images of a data set, CheckpointError for a damaged file.
    """
    checkpoint = load_checkpoint(path)
    version = str(path.stat().st_mtime_ns)
    notes = checkpoint.about_run.get("notes")
    notes = notes if isinstance(notes, Mapping) else {}
    about = {"stage": checkpoint.stage, "progress": checkpoint.about_run}
    form = _form(checkpoint.architecture, notes)
    if form is None:
        raise ValueError(f"network: {name} does not take the images of its data set, or {FORMS[SUBSET]}")
    return Trained(
        name=name,
        title=_title(checkpoint.architecture, about),
        about=_about(about),
        form=form,
        certain=checkpoint.loss == "softmax_cross_entropy",
        checkpoint=checkpoint,
        normalisation=Normalisation.from_notes(notes),
        dataset=str(notes.get("dataset") or ""),
        version=version,
    )


def version(runs: Path, name: str) -> tuple[str, int]:
    """The name and when its file was written last: a run that is still training gets a new version each epoch."""
    return name, _path(runs, name).stat().st_mtime_ns


def checkpoint_of(run: Path) -> Path:
    """The checkpoint of a run that answers: the best one, or the last while there is no best one."""
    return run / BEST if (run / BEST).is_file() else run / LAST


def _path(runs: Path, name: object) -> Path:
    """The checkpoint of a network. A name that leads out of the folder, by dots or by a link, is that of no run."""
    if name == DEFAULT:
        return SHIPPED
    if isinstance(name, str) and name and (runs / name / LAST).is_file():
        path = checkpoint_of(runs / name)
        if real(path).is_relative_to(real(runs)):
            return path
    raise ValueError(f"network: there is no run {shortened(name)} in {runs}")


def _runs(runs: Path) -> dict[str, Path]:
    """Name -> checkpoint of every run; a link that leads out of the folder, and what is no file, are left out."""
    inside = real(runs)
    found = {}
    for place, folders, files in os.walk(runs, followlinks=True):  # which passes over a folder that is gone meanwhile
        name = Path(place).relative_to(runs)
        folders[:] = folders if len(name.parts) < DEPTH else []
        if name.parts and LAST in files:
            path = checkpoint_of(Path(place))
            if _changed(path) and real(path).is_relative_to(inside):
                found[name.as_posix()] = path
    return found


def _changed(path: Path) -> float:
    """When a regular file was written last; 0 for anything else, such as a FIFO, and for what is gone meanwhile."""
    try:
        facts = path.stat()
    except OSError:
        return 0.0
    return facts.st_mtime if stat.S_ISREG(facts.st_mode) else 0.0


def _header(path: Path) -> Mapping[str, Any] | None:
    """What a checkpoint says about itself; None where it is none, or damaged."""
    try:
        return read_about(path)
    except (CheckpointError, OSError):  # a listing names no damaged file
        return None


def _form(architecture: Architecture, notes: Mapping[str, Any]) -> Form | None:
    """What the network's images and classes are; None if its layers are not for those."""
    try:
        form = FORMS.get(str(notes.get("dataset"))) or Form.from_notes(notes) or FORMS[SUBSET]
    except ValueError:
        return None
    return form if form.fits(architecture) else None


def _title(architecture: Architecture, about: Mapping[str, Any]) -> str:
    """'784-128-10 relu', or the name of a known architecture."""
    model, stack = _notes(about).get("model"), architecture.as_mlp()
    if stack is not None:
        return stack.title
    return model if isinstance(model, str) else plural(len(architecture.layers), "layer")


def _about(about: Mapping[str, Any]) -> str:
    """'40 epochs of mnist-subset by stage 3: C; 97.1 % of the test images right', as far as the file says it."""
    record, stage = _part(about, "record"), about.get("stage")
    epochs = record.get("epoch") or _part(about, "position").get("epoch")
    words = plural(epochs, "epoch") if epochs is not None and is_count(epochs) else "trained"
    dataset, accuracy = _notes(about).get("dataset"), record.get("test_accuracy")
    if isinstance(dataset, str):
        words += f" of {title_of(dataset)}"
    if isinstance(stage, str) and stage in STAGE_TITLES:
        words += f" by {STAGE_TITLES[stage]}"
    if accuracy is not None and is_number(accuracy) and 0 <= accuracy <= 1:
        words += f"; {percent(accuracy)} of the test images right"
    return words


def _notes(about: Mapping[str, Any]) -> Mapping[str, Any]:
    return _part(about, "notes")


def _part(about: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    progress = about.get("progress")
    part = progress.get(name) if isinstance(progress, Mapping) else None
    return part if isinstance(part, Mapping) else {}
