"""What `groundup predict` does: a trained network's answer to pictures, and what was done to them before.

predict    everything: open the run, read the pictures, ask the network
lines      the answers as text
OpenRun    a run and the images that it learned from, for all who ask it about pictures
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from groundup.run_notes import form_of
from groundup.trained import beliefs, check_fit, in_words, open_checkpoint, settings_of
from shared.data.datasets import FORMS, Form
from shared.data.normalisation import Normalisation
from shared.data.own_images import on_white, split_of
from shared.data.pictures import Original, Wanted, read_one
from shared.machine.atomic import write_atomically
from shared.machine.results import results_folder
from shared.numbers import percent
from shared.training.checkpoints import Checkpoint

NO_ANSWER = "the network's numbers grow beyond all limits (infinity or NaN), so there is no answer"
"""Of a network that diverged."""

PAPER = {True: "light", False: "dark"}
"""What the border of an image is, where there is paper."""


@dataclass(frozen=True)
class OpenRun:
    """A run's network and the images that it learned from.

    known: whether they are of a known set, which all lie on such paper as its form says
    """

    checkpoint: Checkpoint
    form: Form
    known: bool
    normalisation: Normalisation | None

    @classmethod
    def of(cls, run: Path) -> OpenRun:
        """Raises ValueError or OSError for what is no run, and for a network of no images."""
        checkpoint = open_checkpoint(run)
        notes = settings_of(checkpoint)
        form = form_of(notes)
        check_fit(checkpoint, str(notes["dataset"]), form)
        return cls(checkpoint, form, notes["dataset"] in FORMS, Normalisation.from_notes(notes))

    @property
    def wanted(self) -> Wanted:
        """What a picture is made into."""
        channels, height, width = self.form.shape
        return Wanted(channels == 3, (height, width))

    @property
    def are_probabilities(self) -> bool:
        """Softmax of the scores are probabilities if the network learned by them; else they rank the classes."""
        return self.checkpoint.loss == "softmax_cross_entropy"

    def as_learned(self, pixels: np.ndarray) -> np.ndarray:
        """Numbers from 0 to 1, of any shape, as the network learned from them."""
        return pixels if self.normalisation is None else self.normalisation.normalised(pixels)

    def top(self, row: np.ndarray, count: int) -> list[dict[str, Any]]:
        """The likeliest classes of one picture. row: the probability of every class"""
        best = np.argsort(-row, kind="stable")[:count]
        names = self.form.names
        return [{"class": names[label], "label": int(label), "probability": float(row[label])} for label in best]


def predict(
    run: Path,
    pictures: Sequence[Path],
    top: int,
    inverted: bool | None = None,
    explained: Path | None = None,
) -> dict[str, Any]:
    """The `top` classes of each picture with their probabilities. Returns the document for --json.

    inverted: whether black becomes white; None: where the border of a picture is light and that of the images that the
    network learned from is dark, or the other way round, if these are of a known set, which all lie on such paper
    explained: folder of the pictures that show where each answer comes from; None for no such pictures
    Raises ValueError or OSError for what is no run or no picture, for a network of no images, for one whose answer is
    NaN, and for one without a convolution that should explain itself.
    """
    opened = OpenRun.of(run)
    form, checkpoint = opened.form, opened.checkpoint
    evidence_of = None if explained is None else evidence(opened)
    targets = {} if explained is None else _targets(pictures, results_folder(explained))
    seen = [as_seen(*read_one(path, opened.wanted), opened, inverted) for path in pictures]
    x = opened.as_learned(split_of(np.array([pixels for pixels, _ in seen]), np.zeros(len(seen), np.int64)).x)
    with np.errstate(over="ignore", invalid="ignore"):  # told below
        answers = beliefs(checkpoint, x)
    for path, row in zip(pictures, answers, strict=True):
        if not np.isfinite(row).all():
            raise ValueError(f"{checkpoint.path}: {NO_ANSWER} for {path}")
    found: list[dict[str, Any]] = []
    for i, (path, (pixels, done)) in enumerate(zip(pictures, seen, strict=True)):
        found.append({"file": str(path), "done": done, "top": opened.top(answers[i], top)})
        if evidence_of is not None:
            from groundup.evidence_picture import evidence_picture, evidence_words  # its Pillow may be missing

            label = int(answers[i].argmax())
            places = evidence_of(x[i : i + 1], label)
            write_atomically(targets[path], evidence_picture(pixels, places, form.names[label]))
            words = evidence_words(places, form.names[label])
            found[-1]["explained"] = {"file": str(targets[path]), "words": words, "evidence": bool(places.any())}
    return {
        "checkpoint": str(checkpoint.path),
        "network": in_words(checkpoint),
        "classes": list(form.names),
        "loss": checkpoint.loss,
        "are_probabilities": opened.are_probabilities,
        "pictures": found,
    }


def evidence(opened: OpenRun) -> Callable[[np.ndarray, int], np.ndarray]:
    """The function from an image as the network learned from it, (1, features), and a label to the evidence for it.

    Raises ValueError for a network without a convolution.
    """
    from groundup.inside_layers import Layered, convolves  # only who wants to know why needs it

    checkpoint = opened.checkpoint
    if not convolves(checkpoint.architecture):
        raise ValueError(
            f"Grad-CAM needs a convolution, whose maps have places; {in_words(checkpoint)}, has none. "
            "The studio's page Digits shows which pixels matter to it"
        )
    network = Layered(checkpoint, checkpoint.architecture)

    def places(x: np.ndarray, label: int) -> np.ndarray:
        found = network.evidence(x, np.array([label]))
        assert found is not None
        return found[0]

    return places


def _targets(pictures: Sequence[Path], folder: Path) -> dict[Path, Path]:
    """Where the picture that explains each answer is written. Raises ValueError for two that would have one name."""
    targets = {path: folder / f"{path.stem}-gradcam.png" for path in pictures}
    for path, target in targets.items():
        other = next(each for each in pictures if targets[each] == target)
        if other != path:
            raise ValueError(f"--explain: {other} and {path} would both be explained in {target}; ask one at a time")
    return targets


def as_seen(
    pixels: np.ndarray, original: Original, opened: OpenRun, inverted: bool | None
) -> tuple[np.ndarray, list[str]]:
    """A picture as the network sees it, uint8 (channels, height, width), and what was done to it.

    pixels, original: as read_one gives them
    """
    form = opened.form
    image = pixels.transpose(2, 0, 1)
    light = on_white(image[np.newaxis] / 255)
    turned_over = opened.known and light != form.on_white if inverted is None else inverted
    borders = f"its border is {PAPER[light]} and that of the network's own images {PAPER[form.on_white]}"
    done = _done(original, form)
    if turned_over:
        image = 255 - image
        done.append("inverted" if inverted else f"inverted, because {borders}")
    elif inverted is None and form.shape[0] == 1 and light != form.on_white:
        done.append(f"not inverted, though {borders} (--invert inverts it)")
    return image, done


def _done(original: Original, form: Form) -> list[str]:
    channels, *size = form.shape
    done = ["turned upright"] if original.lay else []
    if original.coloured and channels == 1:
        done.append("made grey")
    if original.size != tuple(size):
        (high, wide), (height, width) = original.size, size
        stretched = "" if high * width == wide * height else ", which changes its proportions"
        done.append(f"resized from {wide} by {high} to {width} by {height} pixels{stretched}")
    return done


def lines(document: Mapping[str, Any]) -> list[str]:
    """The document as lines of text: two for each picture, its classes and what was done to it."""
    lines = [f"{document['network']} ({document['checkpoint']})"]
    for picture in document["pictures"]:
        classes = ", ".join(f"{each['class']} ({percent(each['probability'])})" for each in picture["top"])
        lines += [f"{picture['file']}: {classes}", f"    {'; '.join(picture['done']) or 'as it is'}"]
        if "explained" in picture:
            lines.append(f"    {picture['explained']['file']}: {picture['explained']['words']}")
    if not document["are_probabilities"]:
        lines.append(f"trained with {document['loss']}: the numbers rank the classes, and are no probabilities")
    return lines
