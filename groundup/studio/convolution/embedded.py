"""What the page is given about a network, and what an exported page carries.

An exported page has no server and computes every number itself (static/offline.js), so it carries all numbers of the
network. They are float32, as the network has them: float16 would keep three digits of each, and the page shows four.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from groundup.inside_layers import behind_last_maps
from groundup.run_architecture import NetworkForm, as_svg
from groundup.studio.convolution import networks
from groundup.studio.convolution.field import geometry
from groundup.studio.convolution.passes import LayeredPasses
from groundup.studio.convolution.pixel import KINDS, pixel
from groundup.studio.convolution.same_sum import FUNCTIONS
from groundup.studio.digits import embedded
from groundup.studio.digits.reasons import packed
from shared.charts.figures.architecture import TITLES
from shared.data.datasets import CLASSES, load_dataset
from shared.layers import Activate, AveragePool, BatchNorm, Conv, Dense, MaxPool, Placed, Residual, describe

DIGIT = 3
"""The digit that is shown at first."""

NORM = {"mean": "running_mean", "variance": "running_var", "gamma": "gamma", "beta": "beta"}
ARRAYS = {Conv: {"bias": "bias"}, Dense: {"weights": "weights", "bias": "bias"}, BatchNorm: NORM}
"""Layer -> its arrays as they are called in an exported page and on stage 2, without the filters."""


def described(network: LayeredPasses) -> dict[str, Any]:
    """What the page Digits is told about a network, and its "layers" as they follow each other."""
    about = embedded.network(network.trained)
    title = TITLES.get(about["title"], about["title"])
    return {**about, "title": title, "layers": [_layer(network, each) for each in network.placed.values()]}


def digits() -> list[bytes]:
    """The first test image of each digit of the bundled set: 784 bytes."""
    test = load_dataset().test
    firsts = [test.x[np.flatnonzero(test.y == digit)[0]] for digit in range(CLASSES)]
    return [np.rint(each * 255).astype(np.uint8).tobytes() for each in firsts]


def data(options: Mapping[str, Any]) -> dict[str, Any]:
    """What the exported page carries: {"network", "drawn": its architecture, "digits", "last": the layer of Grad-CAM,
    "opening": {"digit", "class", "at": the number that is shown at first}}.

    options: "run": the folder of a run, or "network": one that ships, without both LeNet-5; "digit", "class", "layer",
    "channel", "row", "column": with what it opens
    Raises ValueError for a network without maps, and for a digit, class or number that there is not.
    """
    run, images = Path(options.get("run", "")).absolute(), digits()
    known = options.get("network", networks.SHIPPED)
    trained = networks.load(run.parent, run.name) if "run" in options else networks.load(run, known)
    network, digit, chosen = LayeredPasses(trained), options.get("digit", DIGIT), options.get("class")
    if digit not in range(CLASSES):
        raise ValueError(f"digit: expected a whole number from 0 to {CLASSES - 1}, got {digit}")
    at = {name: options[name] for name in ("channel", "row", "column") if name in options}
    if "layer" in options:
        at["layer"] = str(options["layer"])
        passed = network.passed(images[digit], chosen)
        pixel(network, passed, at["layer"], at.get("channel", 0), at.get("row", 0), at.get("column", 0))
    about = described(network)
    about["layers"] = [layer | _computed(network, layer["number"]) for layer in about["layers"]]
    return {
        "network": about,
        "drawn": as_svg(NetworkForm.of(trained.checkpoint)),
        "digits": [base64.b64encode(each).decode() for each in images],
        "last": str(behind_last_maps(network.architecture)),
        "opening": {"digit": digit, "class": chosen, "at": at if "layer" in options else None},
    }


def _layer(network: LayeredPasses, placed: Placed) -> dict[str, Any]:
    layer = placed.layer
    names = {Residual: "sum", BatchNorm: "batch norm", MaxPool: "max pool", AveragePool: "average pool"}
    weights = {"weights": packed(network.layer(placed.number).weights)} if isinstance(layer, Conv) else {}
    return {
        "number": placed.number,
        "name": layer.name if isinstance(layer, Activate) else names.get(type(layer), type(layer).__name__),
        "words": "layers(x) + x" if isinstance(layer, Residual) else describe(layer),
        "shape": list(placed.output_shape),
        "before": network.origins[placed.number].before,
        **weights,
    }


def _computed(network: LayeredPasses, number: str) -> dict[str, Any]:
    """What static/layers.js needs to compute a layer."""
    placed, own, kind = network.placed[number], network.layer(number), type(network.placed[number].layer)
    window, stride, padding = geometry(placed.layer)
    name = "dense" if kind is Dense else KINDS.get(kind, "same")
    return {
        "kind": name,
        "function": ("activations", placed.layer.name) if isinstance(placed.layer, Activate) else FUNCTIONS.get(name),
        "input": list(placed.input_shape),
        "past": network.origins[number].past,
        "window": window,
        "stride": stride,
        "padding": padding,
        "arrays": {name: packed(getattr(own, array)) for name, array in ARRAYS.get(kind, {}).items()},
        **({"epsilon": own.epsilon} if kind is BatchNorm else {}),
    }
