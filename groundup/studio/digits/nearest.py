"""The training images that are most like a drawing: those of the bundled subset at the smallest distance.

    distance = sqrt(sum over the pixels of (drawing - image)^2), with pixels from 0 to 1

A network never looks at them when it answers. They are what it was shown, and show what the drawing resembles.
"""

from __future__ import annotations

import base64
from functools import cached_property
from typing import Any

import numpy as np

from groundup.run_notes import title_of
from groundup.studio.digits.pixels import as_input
from shared.data.datasets import Split, load_dataset
from shared.layers import shortened

OF_DIGITS = ("mnist-subset", "mnist")
"""The data sets whose images the bundled ones are a part of."""


def why_none(dataset: str) -> str:
    """Why a network of this data set has no nearest images here; "" where it has."""
    if dataset in OF_DIGITS:
        return ""
    known = (
        f"This network learned from {shortened(title_of(dataset))}"
        if dataset
        else "The network's file does not say what it learned from"
    )
    return f"{known}; only the images of MNIST's bundled subset are at hand here."


class TrainingImages:
    """The 6,000 training images of the bundled subset, read when they are first asked for."""

    def nearest(self, pixels: np.ndarray, count: int) -> list[dict[str, Any]]:
        """The `count` nearest images to a drawing, uint8 (784,), the nearest first.

        Each is {"index": in the training set, "label", "distance", "pixels": 784 bytes in base64}.
        """
        x = as_input(pixels)[0]
        # |a - b|^2 = |a|^2 - 2 ab + |b|^2: one matrix product, and |b|^2 is the same for all
        order = np.argsort(self._squares - 2 * (self.split.x @ x), kind="stable")[:count]
        distances = np.sqrt(np.sum(np.square(self.split.x[order].astype(np.float64) - x), axis=1))
        # The formula above loses digits, so that equals may change places: sorted again by what is shown.
        again = np.argsort(distances, kind="stable")
        return [
            {"index": int(i), "label": int(self.split.y[i]), "distance": float(far), "pixels": image(self.split.x[i])}
            for i, far in zip(order[again], distances[again], strict=True)
        ]

    @cached_property
    def split(self) -> Split:
        return load_dataset("mnist-subset").train

    @cached_property
    def _squares(self) -> np.ndarray:
        squares: np.ndarray = np.einsum("ij,ij->i", self.split.x, self.split.x)
        return squares


def image(x: np.ndarray) -> str:
    """Images of a data set, pixel / 255, as bytes in base64."""
    return base64.b64encode(np.rint(x * 255).astype(np.uint8).tobytes()).decode()
