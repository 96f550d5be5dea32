"""Measures of a trained convolutional network, beside those of groundup/inside.py, which are for dense layers.

Layered             a network of a checkpoint on stage 2, asked about images
convolves           whether a network has maps whose places can speak for a class
filter_images       the filters of the first convolution as images
layer_maps          what each layer makes of one image
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from groundup.grad_cam import grad_cam
from shared.architectures import Architecture
from shared.contract import load_part, load_stage
from shared.layers import Activate, BatchNorm, Conv, Dense, Dropout, Flatten, Layer, Residual, describe
from shared.numbers import plural
from shared.training.checkpoints import Checkpoint, build_network

if TYPE_CHECKING:  # it imports matplotlib, which who asks for evidence does not need
    from shared.charts.figures.activation_maps import LayerMaps

AT_A_TIME = 100
"""Images in one forward pass; this bounds the memory."""


class Layered:
    """The network of a checkpoint, built on stage 2. x is (batch, features), as the network learned from it."""

    def __init__(self, checkpoint: Checkpoint, architecture: Architecture) -> None:
        self.architecture = architecture
        self._network = build_network(load_stage("numpy"), checkpoint)
        self._dtype = checkpoint.dtype
        self._passes = load_part("numpy", "network")
        self._memory = load_part("numpy", "arrays").Scratch()

    def outputs(self, x: np.ndarray) -> list[np.ndarray]:
        """The output of every top-level layer."""
        network = self._network
        return [np.asarray(each) for each in network.outputs(x.astype(self._dtype))]

    def saliency(self, x: np.ndarray, plus: np.ndarray, minus: np.ndarray) -> np.ndarray:
        """d (score[plus] - score[minus]) / dx for each row, (batch, features); plus, minus: classes (batch,).

        Backpropagation from the scores through the parts of stage 2, in evaluation: batch normalisation is a constant
        scale there, and nothing is dropped.
        """
        passes, layers = self._passes, self._network.layers
        images = x.astype(self._dtype).reshape(len(x), *self.architecture.input_shape)
        this_pass = passes.Pass(training=False, masks=None, scratch=self._memory)
        outputs = passes.forward(layers, images, this_pass)
        grad = np.zeros_like(outputs[-1])
        rows = np.arange(len(x))
        grad[rows, plus] += 1
        grad[rows, minus] -= 1
        return np.array(passes.backward(layers, grad, this_pass, needs_grad_input=True)).reshape(len(x), -1)

    def evidence(self, x: np.ndarray, labels: np.ndarray) -> np.ndarray | None:
        """Grad-CAM: how much each place of the last convolution's maps speaks for each row's label, from 0 to 1.

        (batch, height, width) of these maps, 0 everywhere where none does; None for a network without a convolution.
        In evaluation, as `saliency`.
        """
        cut = behind_last_maps(self.architecture)
        if cut is None:
            return None
        passes, layers = self._passes, self._network.layers
        images = x.astype(self._dtype).reshape(len(x), *self.architecture.input_shape)
        this_pass = passes.Pass(training=False, masks=None, scratch=self._memory)
        outputs = passes.forward(layers, images, this_pass)
        grad = np.zeros_like(outputs[-1])
        grad[np.arange(len(x)), labels] = 1
        return grad_cam(outputs[cut - 1], passes.backward(layers[cut:], grad, this_pass))

    def activity(self, x: np.ndarray) -> list[np.ndarray]:
        """For each ReLU at the top level the share of images for which each unit, or channel, is not 0 everywhere."""
        layers = self.architecture.layers
        chosen = [i for i, layer in enumerate(layers) if layer == Activate("relu")]
        counts: list[np.ndarray | None] = [None] * len(chosen)
        for part in self._in_parts(x):
            outputs = self.outputs(part)
            for k, i in enumerate(chosen):
                alive = np.any(outputs[i].reshape(len(part), outputs[i].shape[1], -1) != 0, axis=2).sum(axis=0)
                before = counts[k]
                counts[k] = alive if before is None else before + alive
        return [np.asarray(each) / len(x) for each in counts if each is not None]

    def _in_parts(self, x: np.ndarray) -> Iterator[np.ndarray]:
        return (x[i : i + AT_A_TIME].astype(self._dtype) for i in range(0, len(x), AT_A_TIME))


def convolves(architecture: Architecture) -> bool:
    """Whether there are maps, so that `Layered.evidence` has an answer."""
    return behind_last_maps(architecture) is not None


def behind_last_maps(architecture: Architecture) -> int | None:
    """The number of layers up to the last convolution or block of images, its normalisation and activation included.

    None for a network without one.
    """
    layers, shapes = architecture.layers, architecture.shapes()[1:]
    maps = [i for i, shape in enumerate(shapes) if len(shape) == 3 and isinstance(layers[i], Conv | Residual)]
    if not maps:
        return None
    rest = (i for i in range(maps[-1] + 1, len(layers)) if not isinstance(layers[i], Activate | BatchNorm))
    return next(rest, len(layers))


def filter_images(weights: np.ndarray) -> np.ndarray:
    """The first convolution's filters (O, C, kh, kw) as images (O, kh, kw) from -1 to 1, each by its largest |weight|.

    Of several channels the mean is shown. A filter whose weights are all 0 gives an image of 0.
    """
    images = weights.mean(axis=1)
    largest = np.abs(images).max(axis=(1, 2), keepdims=True)
    return np.asarray(images / np.where(largest == 0, 1, largest))


def layer_maps(network: Layered, x: np.ndarray, image: np.ndarray) -> list[LayerMaps]:
    """The image and what the network makes of it, a row for each layer with weights or windows.

    x: (features,) as the network learned from it; image: the same as it is shown, (channels, height, width)
    """
    from shared.charts.figures.activation_maps import LayerMaps

    found = [LayerMaps("the image", image)]
    for layer, output in zip(network.architecture.layers, network.outputs(x[np.newaxis]), strict=True):
        if isinstance(layer, Activate | BatchNorm | Dropout | Flatten):
            last = found.pop()
            named = f"{last.words} · {_short(layer)}" if _short(layer) else last.words
            found.append(LayerMaps(named, last.output if isinstance(layer, Flatten | Dropout) else output[0]))
        else:
            found.append(LayerMaps(_words(layer), output[0]))
    return found


def _words(layer: Layer) -> str:
    if isinstance(layer, Residual):
        weights = sum(isinstance(each, Conv | Dense) for each in layer.layers)
        return f"residual block of {plural(weights, 'convolution')}"
    return describe(layer)


def _short(layer: Layer) -> str:
    """What is said of a layer that only changes the numbers of the one before; flattening and dropout change none."""
    return layer.name if isinstance(layer, Activate) else "batch norm" if isinstance(layer, BatchNorm) else ""
