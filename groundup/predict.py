"""What `groundup predict` does: a trained network's answer to pictures, and what was done to them before.

predict    everything: open the run, read the pictures, ask the network
lines      the answers as text
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from groundup.run_notes import form_of
from groundup.trained import beliefs, check_fit, in_words, open_checkpoint, settings_of
from shared.data.datasets import FORMS, Form
from shared.data.normalisation import Normalisation
from shared.data.own_images import on_white, split_of
from shared.data.pictures import Original, Wanted, read_one
from shared.numbers import percent
from shared.training.checkpoints import Checkpoint

PAPER = {True: "light", False: "dark"}
"""What the border of an image is, where there is paper."""


def predict(run: Path, pictures: Sequence[Path], top: int, inverted: bool | None = None) -> dict[str, Any]:
    """The `top` classes of each picture with their probabilities. Returns the document for --json.

    inverted: whether black becomes white; None: where the border of a picture is light and that of the images that the
    network learned from is dark, or the other way round, if these are of a known set, which all lie on such paper
    Raises ValueError or OSError for what is no run or no picture, and for a network of no images.
    """
    checkpoint = open_checkpoint(run)
    notes = settings_of(checkpoint)
    form, known = form_of(notes), notes["dataset"] in FORMS
    check_fit(checkpoint, str(notes["dataset"]), form)
    seen = [_seen(path, form, known, inverted) for path in pictures]
    x = split_of(np.array([pixels for pixels, _ in seen]), np.zeros(len(seen), np.int64)).x
    normalisation = Normalisation.from_notes(notes)
    answers = beliefs(checkpoint, x if normalisation is None else normalisation.normalised(x))
    return {
        "checkpoint": str(checkpoint.path),
        "network": in_words(checkpoint),
        "classes": list(form.names),
        "loss": checkpoint.loss,
        "are_probabilities": _are_probabilities(checkpoint),
        "pictures": [
            {"file": str(path), "done": done, "top": _top(row, form, top)}
            for path, (_, done), row in zip(pictures, seen, answers, strict=True)
        ],
    }


def _are_probabilities(checkpoint: Checkpoint) -> bool:
    """Softmax of the scores are probabilities if the network learned by them; else they rank the classes."""
    return checkpoint.loss == "softmax_cross_entropy"


def _top(row: np.ndarray, form: Form, top: int) -> list[dict[str, Any]]:
    best = np.argsort(-row, kind="stable")[:top]
    return [{"class": form.names[label], "label": int(label), "probability": float(row[label])} for label in best]


def _seen(path: Path, form: Form, known: bool, inverted: bool | None) -> tuple[np.ndarray, list[str]]:
    """A picture as the network sees it, uint8 (channels, height, width), and what was done to it."""
    channels, height, width = form.shape
    pixels, original = read_one(path, Wanted(channels == 3, (height, width)))
    image = pixels.transpose(2, 0, 1)
    light = on_white(image[np.newaxis] / 255)
    turned_over = known and light != form.on_white if inverted is None else inverted
    borders = f"its border is {PAPER[light]} and that of the network's own images {PAPER[form.on_white]}"
    done = _done(original, form)
    if turned_over:
        image = 255 - image
        done.append("inverted" if inverted else f"inverted, because {borders}")
    elif inverted is None and channels == 1 and light != form.on_white:
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
        done.append(f"resized from {high} by {wide} to {height} by {width} pixels{stretched}")
    return done


def lines(document: Mapping[str, Any]) -> list[str]:
    """The document as lines of text: two for each picture, its classes and what was done to it."""
    lines = [f"{document['network']} ({document['checkpoint']})"]
    for picture in document["pictures"]:
        classes = ", ".join(f"{each['class']} ({percent(each['probability'])})" for each in picture["top"])
        lines += [f"{picture['file']}: {classes}", f"    {'; '.join(picture['done']) or 'as it is'}"]
    if not document["are_probabilities"]:
        lines.append(f"trained with {document['loss']}: the numbers rank the classes, and are no probabilities")
    return lines
