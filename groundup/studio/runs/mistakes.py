"""Which test images the network of a run takes for what: the confusion matrix, the images behind each cell, and the
mistakes of which the network is surest.

A network needs between a tenth of a second and some minutes for the test images, so they are asked about in a thread;
the page sees how far it is. The answers of the last few checkpoints are kept.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from groundup import inside
from groundup.run_notes import title_of
from groundup.studio.answers import Refused
from groundup.studio.runs.folders import BEST, LAST, RunFolder
from groundup.trained import beliefs, check_fit, settings_of
from shared.contract import StageUnavailable, load_stage
from shared.data.datasets import DATASETS, FORMS, Form, load_dataset, load_test
from shared.data.normalisation import Normalisation
from shared.machine import caches
from shared.machine.regular import real
from shared.training.checkpoints import Checkpoint, load_checkpoint

KEPT = 3
"""Checkpoints whose answers are kept: 0.8 MB each for 10,000 images, and their images once for each data set."""

BATCH = 128
"""Images for which gradients are computed."""

MOST_IMAGES = 60
"""Images in one answer to the page."""


# eq=False: comparing arrays with == gives an array, which a dataclass would take for a truth value.
@dataclass(frozen=True, eq=False)
class Answers:
    """A network's answers to all test images.

    form: of the data set; images: uint8 (n, pixels), 255 for full ink or light; labels (n,); beliefs (n, classes)
    file: the checkpoint's name; epoch: the epoch that it is from, or None if it does not say
    """

    form: Form
    dataset: str
    images: np.ndarray
    labels: np.ndarray
    beliefs: np.ndarray
    file: str
    epoch: int | None

    def matrix(self) -> dict[str, Any]:
        """The confusion matrix, and how many are right."""
        predictions = self.beliefs.argmax(axis=1)
        counts = inside.confusion_matrix(self.labels, predictions, len(self.form.names))
        return {
            "names": list(self.form.names),
            "shape": list(self.form.shape),
            "dataset": self.dataset,
            "counts": counts.tolist(),
            "right": int(np.trace(counts)),
            "of": len(self.labels),
            "file": self.file,
            "epoch": self.epoch,
        }

    def cell(self, label: int, prediction: int) -> dict[str, Any]:
        """The images of one class that are taken for another (or for itself), the surest answers first."""
        classes = len(self.form.names)
        if not (0 <= label < classes and 0 <= prediction < classes):
            raise ValueError(f"the classes are 0 to {classes - 1}, got label {label} and prediction {prediction}")
        chosen = np.flatnonzero((self.labels == label) & (self.beliefs.argmax(axis=1) == prediction))
        chosen = chosen[np.argsort(-self.beliefs[chosen, prediction], kind="stable")]
        return {"count": len(chosen), "images": self._shown(chosen[:MOST_IMAGES])}

    def surest(self, count: int) -> dict[str, Any]:
        """The wrong answers that the network is surest of."""
        wrong = inside.most_wrong(self.beliefs, self.labels, min(count, MOST_IMAGES))
        return {"count": int(np.sum(self.beliefs.argmax(axis=1) != self.labels)), "images": self._shown(wrong)}

    def _shown(self, chosen: np.ndarray) -> list[dict[str, Any]]:
        predictions = self.beliefs.argmax(axis=1)
        return [
            {
                "image": int(i),
                "label": int(self.labels[i]),
                "prediction": int(predictions[i]),
                "confidence": float(self.beliefs[i, predictions[i]]),
                "pixels": base64.b64encode(self.images[i].tobytes()).decode(),
            }
            for i in chosen
        ]


@dataclass
class Asking:
    """A network that is being asked, or was.

    version: of the checkpoint, by which its answers are found again when the run has a newer one;
    done, of: images; answers: when all are done; refusal: why there are none, a sentence
    """

    version: str = ""
    done: int = 0
    of: int = 0
    answers: Answers | None = None
    refusal: str = ""
    finished: threading.Event = field(default_factory=threading.Event)


class Mistakes:
    """The answers of the runs that were looked at. folders: where data may be read, beside the usual places."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = [real(folder) for folder in folders]
        self._asked: dict[tuple[str, int, int], Asking] = {}
        self._tests: dict[tuple[Any, ...], tuple[np.ndarray, np.ndarray, Form]] = {}
        self._batches: dict[str, tuple[np.ndarray, np.ndarray, Form]] = {}
        self._lock = threading.Lock()
        self._one = threading.Lock()
        """One network is asked at a time: two would not be faster, and a training wants the processor, too."""

    def ask(self, run: RunFolder) -> Asking:
        """The answers of a run's best network as it is now; the first call for it starts a thread."""
        path = run.file(BEST) or run.file(LAST)
        if path is None:
            raise Refused("this run has no checkpoint yet: the first one comes with the end of the first epoch", 404)
        stat = path.stat()
        key = (str(path), stat.st_mtime_ns, stat.st_size)
        with self._lock:
            asking = self._asked.pop(key, None)
            if asking is None:
                asking = Asking(_version(key))
                threading.Thread(target=self._work, args=(path, asking), daemon=True).start()
            self._asked[key] = asking  # the last place: those in front are forgotten first
            for old in list(self._asked)[:-KEPT]:
                del self._asked[old]
        return asking

    def ready(self, run: RunFolder, version: str = "") -> Answers:
        """The answers of a run, now or as of an earlier version. Raises Refused until they are there, or without any.

        A training writes a checkpoint each epoch, and the images behind a matrix are those of the matrix's checkpoint.
        """
        asking = self._earlier(run, version) if version else self.ask(run)
        if asking.refusal:
            raise Refused(asking.refusal)
        if asking.answers is None:
            raise Refused("the network is still being asked", 409)
        return asking.answers

    def _earlier(self, run: RunFolder, version: str) -> Asking:
        places = {str(path) for path in (run.file(BEST), run.file(LAST)) if path is not None}
        with self._lock:
            for key, asking in self._asked.items():
                if key[0] in places and asking.version == version:
                    return asking
        asking = self.ask(run)  # it may have been forgotten only
        if asking.version != version:
            raise Refused("the run has a newer checkpoint: ask again", 409)
        return asking

    def _work(self, path: Path, asking: Asking) -> None:
        try:
            with self._one:
                asking.answers = self._answers(path, asking)
        except (ValueError, TypeError, OSError, MemoryError, StageUnavailable) as error:
            asking.refusal = str(error) or type(error).__name__
        except Exception as error:
            asking.refusal = f"groundup made a mistake with this checkpoint: {type(error).__name__}: {error}"
        finally:
            asking.finished.set()

    def _answers(self, path: Path, asking: Asking) -> Answers:
        checkpoint = load_checkpoint(path)
        settings = settings_of(checkpoint)
        name = title_of(settings["dataset"])
        images, labels, form = self._test(settings)
        check_fit(checkpoint, name, form)
        normalisation = Normalisation.from_notes(settings)
        x = images / np.float32(255)
        if normalisation is not None:
            x = normalisation.normalised(x)
        asking.of = len(x)

        def told(done: int) -> None:
            asking.done = done

        found = beliefs(checkpoint, x, _fastest(), told)
        if not np.isfinite(found).all():
            raise ValueError("the network's answers are not finite, so none of them is a class")
        return Answers(form, name, images, labels, found.astype(np.float32), path.name, _epoch(checkpoint))

    def batch(self, checkpoint: Checkpoint) -> tuple[np.ndarray, np.ndarray]:
        """(x, labels) of BATCH images of a run's training set. ValueError or OSError where it is not at hand."""
        settings = settings_of(checkpoint)
        name, place, made = self._source(settings)
        key = f"{name} {place} {made}"
        if key not in self._batches:
            data = load_dataset(name, place, **made)
            chosen = np.linspace(0, len(data.train.x) - 1, BATCH).astype(int)
            self._batches[key] = (data.train.x[chosen], data.train.y[chosen], data.described)
        x, labels, form = self._batches[key]
        check_fit(checkpoint, title_of(name), form)
        normalisation = Normalisation.from_notes(settings)
        return (x if normalisation is None else normalisation.normalised(x)), labels

    def _source(self, settings: Mapping[str, Any]) -> tuple[str, Path | None, dict[str, Any]]:
        """(name, place, further arguments of load_dataset) of a run's data set."""
        name, own = settings["dataset"], settings["dataset"] not in DATASETS
        place = self._place(name, settings["data_dir"] or (name if own else None))
        return name, place, {"colour": settings.get("colour", False), "resize": settings.get("resize")} if own else {}

    def _test(self, settings: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray, Form]:
        """(images as bytes, labels, form) of a data set's test samples, kept for the next checkpoint of it."""
        name, place, made = self._source(settings)
        key = (name, str(place), *made.values())
        if key not in self._tests:
            data = load_dataset(name, place, **made) if made else None
            test, form = (data.test, data.described) if data else (load_test(name, place), FORMS[name])
            self._tests[key] = (np.rint(test.x * 255).astype(np.uint8), test.y, form)  # a quarter of the memory
        return self._tests[key]

    def _place(self, name: str, data_dir: Any) -> Path | None:
        """The place to read the data set from: a run from a stranger must not lead to just any folder."""
        if data_dir is None or name == "mnist-subset":
            return None
        place = real(Path(str(data_dir)).expanduser())
        allowed = [*self._folders, real(caches.data())]
        if not any(place.is_relative_to(each) for each in allowed):
            raise ValueError(
                f"the run was trained on data in {place}, which lies outside the folders that this studio was given; "
                f"start it with that folder, too: groundup studio runs {place}"
            )
        return place


def _version(key: tuple[str, int, int]) -> str:
    """Of a checkpoint: its name, when it was written, its size."""
    place, *rest = key
    return "-".join([Path(place).name, *map(str, rest)])


def document(asking: Asking) -> dict[str, Any]:
    """How far the asking is, as JSON values; with the confusion matrix once it is there."""
    if asking.refusal:
        return {"state": "refused", "reason": asking.refusal}
    if asking.answers is None:
        return {"state": "asking", "done": asking.done, "of": asking.of}
    return {"state": "ready", "version": asking.version, **asking.answers.matrix()}


def _fastest() -> str:
    """The stage that answers for a convolutional network: C where there is a compiler, else NumPy."""
    try:
        return load_stage("c").name
    except (StageUnavailable, ValueError, OSError):
        return "numpy"


def _epoch(checkpoint: Checkpoint) -> int | None:
    record: Mapping[str, Any] = checkpoint.about_run.get("record") or checkpoint.about_run.get("position") or {}
    epoch = record.get("epoch") if isinstance(record, Mapping) else None
    return epoch if isinstance(epoch, int) else None
