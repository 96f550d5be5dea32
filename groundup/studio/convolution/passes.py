"""A drawing's way through a network, layer by layer, and the way back of the gradient of one class's score.

Stage 2 computes both, in evaluation: batch normalisation uses its running statistics, and nothing is dropped.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from groundup.grad_cam import grad_cam
from groundup.inside import probabilities
from groundup.inside_layers import Layered, behind_last_maps
from groundup.studio.convolution.field import Sources, sources
from groundup.studio.digits.networks import Trained
from groundup.studio.digits.pixels import as_input
from shared.layers import Placed, Residual

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Passed:
    """What one drawing left in the network. Images are (channels, height, width), everything else (features,).

    x: what the first layer got; outputs: of each layer, by its number; slopes: d score / d output, by the same
    scores, shares: of the classes, shares being their softmax; chosen: the class whose score is derived
    evidence: Grad-CAM of this class, (height, width) of the last maps, from 0 to 1
    """

    x: np.ndarray
    outputs: Arrays
    slopes: Arrays
    scores: np.ndarray
    shares: np.ndarray
    chosen: int
    evidence: np.ndarray


class LayeredPasses(Layered):
    """A convolutional network on stage 2 that keeps what each layer got and gave. Any thread may call it.

    placed: its layers by their numbers; origins: where the input of each comes from
    """

    def __init__(self, trained: Trained) -> None:
        super().__init__(trained.checkpoint, trained.checkpoint.architecture)
        self.trained = trained
        self.placed: dict[str, Placed] = {each.number: each for each in self.architecture.placed()}
        self.origins: dict[str, Sources] = dict(sources(self.architecture.layers))
        self._turn = threading.Lock()

    def layer(self, number: str) -> Any:
        """The layer of stage 2 with this number, which has its weights."""
        found: Any = self._network
        for part in number.split("."):
            found = found.layers[int(part) - 1]
        return found

    def passed(self, pixels: bytes, chosen: int | None) -> Passed:
        """A drawing, height * width bytes, through the network and back.

        chosen: the class whose score is derived, None for the one with the highest score
        Raises ValueError for a class that there is not.
        """
        classes = len(self.trained.form.names)
        if chosen is not None and (type(chosen) is not int or not 0 <= chosen < classes):
            raise ValueError(f"class: expected a whole number from 0 to {classes - 1}, got {str(chosen)[:20]}")
        outputs, slopes = Arrays(), Arrays()
        x = self.trained.learned(as_input(np.frombuffer(pixels, np.uint8), self.trained.form.shape[0]))
        x = x.astype(self._dtype).reshape(1, *self.architecture.input_shape)
        with self._turn:
            this_pass = self._passes.Pass(training=False, masks=None, scratch=self._memory)
            scores = self._through(self._network.layers, "", x, this_pass, outputs)
            chosen = int(scores.argmax()) if chosen is None else chosen
            slope = np.eye(scores.shape[1], dtype=scores.dtype)[chosen : chosen + 1]
            self._back(self._network.layers, "", slope, this_pass, slopes)
        last = str(behind_last_maps(self.architecture))
        evidence = grad_cam(outputs[last], slopes[last])[0]
        ways = [{number: array[0] for number, array in arrays.items()} for arrays in (outputs, slopes)]
        return Passed(x[0], ways[0], ways[1], scores[0], probabilities(scores)[0], chosen, evidence)

    # What a layer returns lies in memory that the next pass uses again, so it is copied.

    def _through(self, layers: Sequence[Any], block: str, x: np.ndarray, this_pass: Any, outputs: Arrays) -> np.ndarray:
        for i, layer in enumerate(layers, start=1):
            number = f"{block}{i}"
            if isinstance(self.placed[number].layer, Residual):
                x = self._through(layer.layers, f"{number}.", x, this_pass, outputs) + x
            else:
                x = self._passes.forward([layer], x, this_pass)[-1].copy()
            outputs[number] = x
        return x

    def _back(self, layers: Sequence[Any], block: str, slope: np.ndarray, this_pass: Any, slopes: Arrays) -> np.ndarray:
        for i, layer in reversed(list(enumerate(layers, start=1))):
            number = f"{block}{i}"
            slopes[number] = slope
            if isinstance(self.placed[number].layer, Residual):
                slope = self._back(layer.layers, f"{number}.", slope, this_pass, slopes) + slope
            else:
                slope = self._passes.backward([layer], slope, this_pass).copy()
        return slope
