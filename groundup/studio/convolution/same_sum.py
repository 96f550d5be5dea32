"""A number of a map once more, by each stage's own function on exactly its window.

A stage has to be prepared first: stage 3 may have to compile its C, stage 4 its kernels, which on the emulator takes
seconds. So a thread lets each stage compute one number of each kind as soon as a network is asked for.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np

from groundup.studio.convolution.pixel import KINDS, Pixel
from shared.checks.tolerance import tolerance
from shared.contract import STAGES, Stage, StageUnavailable, display_title, load_stage
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
    """The stages, prepared one after the other. Every method may be called by any thread."""

    def __init__(self) -> None:
        self._prepared: dict[tuple[str, str], Stage | str] = {}  # or the reason why it cannot be used here
        self._asked: set[str] = set()
        self._lock = threading.Lock()
        self._turns = {stage: threading.Lock() for stage in STAGES}

    def prepare(self, dtype: str) -> None:
        """Begin to prepare all stages for this dtype, if nobody has asked for that before."""
        with self._lock:
            if dtype in self._asked:
                return
            self._asked.add(dtype)
        threading.Thread(target=self._warm, args=(dtype,), daemon=True, name=f"convolution {dtype}").start()

    def sums(self, pixel: Pixel, dtype: str) -> dict[str, Any]:
        """The number by every stage that is ready.

        {"function": (room, name) or None, "allowed": the largest difference between two stages that rounding explains,
        "stages": [{"title", "state": "warming", "ready" or "absent", "why": of an absent one, "value", "seconds"}]}
        """
        function, allowed = function_of(pixel), tolerance(dtype, 16 + pixel.inputs.size, pixel.size)
        stages = [self._sum(stage, pixel, dtype) for stage in STAGES] if function else []
        return {"function": function, "stages": stages, "allowed": allowed}

    def _sum(self, name: str, pixel: Pixel, dtype: str) -> dict[str, Any]:
        stage = self._prepared.get((name, dtype))
        found: dict[str, Any] = {"title": display_title(name), "state": "warming" if stage is None else "ready"}
        if isinstance(stage, str):
            return found | {"state": "absent", "why": stage}
        if stage is not None:
            with self._turns[name]:
                began = time.perf_counter()
                found |= {"value": computed(stage, pixel, dtype), "seconds": time.perf_counter() - began}
        return found

    def _warm(self, dtype: str) -> None:
        one, ends = np.ones((1, 1, 1)), dict.fromkeys(("bias", "mean", "variance", "gamma", "beta", "epsilon"), 1.0)
        for name in STAGES:
            try:
                with self._turns[name]:
                    stage = load_stage(name)
                    for layer in SAMPLES:
                        weights = one if isinstance(layer, Conv) else None
                        sample = Pixel(KINDS[type(layer)], layer, 1.0, 0.0, (0, 0), one, one, weights, ends)
                        computed(stage, sample, dtype)
                self._prepared[name, dtype] = stage
            except (StageUnavailable, ValueError, OSError) as reason:  # also C that does not compile
                self._prepared[name, dtype] = str(reason)
