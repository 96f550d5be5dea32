"""A number of a map once more, by each stage's own function on exactly its window.

A stage has to be prepared first, so as soon as a network is asked for, each stage computes one number of each kind.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from groundup.studio.convolution.pixel import KINDS, Pixel
from groundup.studio.prepared_stages import PreparedStages
from shared.checks.tolerance import tolerance
from shared.contract import STAGES, Stage
from shared.layers import Activate, AveragePool, BatchNorm, Conv, Layer, MaxPool

SAMPLES: list[Layer] = [Conv(1, 1), MaxPool(1), AveragePool(1), BatchNorm(), Activate("relu")]
"""A layer of each kind, for the preparation."""

FUNCTIONS = {
    "convolution": ("convolution", "conv2d"),
    "norm": ("batch_norm", "batch_norm"),
    "max": ("pooling", "max_pool2d"),
    "average": ("pooling", "average_pool2d"),
}
"""Kind of number -> (room, name) of the function that computes it on every stage."""


def function_of(pixel: Pixel) -> tuple[str, str] | None:
    """(room, name) of the function that computes such a number on every stage; None where it is no function's."""
    return ("activations", pixel.layer.name) if isinstance(pixel.layer, Activate) else FUNCTIONS.get(pixel.kind)


def computed(stage: Stage, pixel: Pixel, dtype: str) -> float:
    """The number by the stage's own function, from the window alone. Raises KeyError where it is no function's."""

    def own(values: Any) -> Any:
        return stage.arrays.asarray(np.asarray(values, dtype), dtype)

    room, name = function_of(pixel) or FUNCTIONS[pixel.kind]
    call = getattr(getattr(stage, room), name)
    window, numbers = own(pixel.inputs[np.newaxis]), pixel.numbers
    if pixel.weights is not None:
        out = call(window, own(pixel.weights[np.newaxis]), own([numbers["bias"]]))
    elif pixel.kind == "norm":
        vectors = [own([numbers[each]]) for each in ("gamma", "beta", "mean", "variance")]
        out, _ = call(window, *vectors, training=False, epsilon=numbers["epsilon"])
    elif pixel.kind == "activation":
        out = call(own(pixel.inputs[0]))
    else:
        out = call(window, pixel.inputs.shape[1:])
        out = out[0] if pixel.kind == "max" else out
    return float(np.asarray(stage.arrays.to_host(out)).item())


class StageSums:
    """The stages, prepared for a dtype. Every method may be called by any thread."""

    def __init__(self) -> None:
        self._stages = PreparedStages("convolution", _warm)
        self.prepare = self._stages.prepare

    def sums(self, pixel: Pixel, dtype: str) -> dict[str, Any]:
        """The number by every stage that is ready.

        {"function": (room, name) or None, "allowed": the largest difference between two stages that rounding explains,
        "stages": what `PreparedStages.answer` says, with "value" and "seconds" if it is ready}
        """

        def call(stage: Stage) -> dict[str, Any]:
            began = time.perf_counter()
            return {"value": computed(stage, pixel, dtype), "seconds": time.perf_counter() - began}

        function, allowed = function_of(pixel), tolerance(dtype, 16 + pixel.inputs.size, pixel.size)
        stages = [self._stages.answer(stage, dtype, call) for stage in STAGES] if function else []
        return {"function": function, "stages": stages, "allowed": allowed}


def _warm(stage: Stage, dtype: str) -> None:
    one, ends = np.ones((1, 1, 1)), dict.fromkeys(("bias", "mean", "variance", "gamma", "beta", "epsilon"), 1.0)
    for layer in SAMPLES:
        weights = one if isinstance(layer, Conv) else None
        computed(stage, Pixel(KINDS[type(layer)], layer, 1.0, 0.0, (0, 0), one, one, weights, ends), dtype)
