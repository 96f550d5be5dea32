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
from groundup.studio.convolution.same_sum import function_of
from groundup.studio.digits import embedded
from groundup.studio.digits.reasons import packed
from shared.charts.figures.architecture import TITLES
from shared.data.datasets import CLASSES, load_dataset
from shared.layers import Activate, AveragePool, BatchNorm, Conv, Dense, MaxPool, Placed, Residual, describe

DIGIT = 3
"""The digit that is shown at first."""

ARRAYS = {
    Conv: ("bias",),
    Dense: ("weights", "bias"),
    BatchNorm: ("gamma", "beta", "running_mean", "running_var"),
}
"""Layer -> its arrays of numbers, beside the filters, which every page is given."""

PLACE = ("channel", "row", "column")


def described(network: LayeredPasses) -> dict[str, Any]:
    """What the page Digits is told about a network, and its "layers" as they follow each other."""
    about = embedded.network(network.trained)
    title = TITLES.get(about["title"], about["title"])
    return {**about, "title": title, "layers": [_layer(network, each) for each in network.placed.values()]}


def digits() -> list[np.ndarray]:
    """The first test image of each digit of the bundled set: 784 bytes."""
    test = load_dataset().test
    firsts = [test.x[np.flatnonzero(test.y == digit)[0]] for digit in range(CLASSES)]
    return [np.rint(each * 255).astype(np.uint8) for each in firsts]


def as_base64(images: list[np.ndarray]) -> list[str]:
    """The images as the page gets them."""
    return [base64.b64encode(each.tobytes()).decode() for each in images]


def data(options: Mapping[str, Any]) -> dict[str, Any]:
    """What the exported page carries: {"network", "drawn": its architecture, "digits", "last": the layer of Grad-CAM,
    "opening": {"digit", "class", "at": the number that is shown at first, or None}}.

    options: "run": the folder of a run, or "network": one that ships, without both LeNet-5; "digit", "class", "layer",
    "channel", "row", "column": with what it opens
    Raises ValueError for a network without maps, and for a number that there is not.
    """
    run = options.get("run")
    trained = networks.load(Path(), options.get("network", networks.SHIPPED)) if run is None else networks.of_run(run)
    network, images = LayeredPasses(trained), digits()
    about = described(network)
    for layer in about["layers"]:
        layer |= _computed(network, layer["number"])
    return {
        "network": about,
        "drawn": as_svg(NetworkForm.of(trained.checkpoint)),
        "digits": as_base64(images),
        "last": str(behind_last_maps(network.architecture)),
        "opening": _opening(network, images, options),
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
    placed, layer = network.placed[number], network.layer(number)
    window, stride, padding = geometry(placed.layer)
    epsilon = {"epsilon": layer.epsilon} if isinstance(placed.layer, BatchNorm) else {}
    return {
        "kind": "dense" if isinstance(placed.layer, Dense) else KINDS.get(type(placed.layer), "same"),
        "function": function_of(placed.layer),
        "input": list(placed.input_shape),
        "past": network.origins[number].past,
        **{"window": window, "stride": stride, "padding": padding},
        "arrays": {name: packed(getattr(layer, name)) for name in ARRAYS.get(type(placed.layer), ())},
        **epsilon,
    }


def _opening(network: LayeredPasses, images: list[np.ndarray], options: Mapping[str, Any]) -> dict[str, Any]:
    digit, chosen = options.get("digit", DIGIT), options.get("class")
    if digit not in range(CLASSES):
        raise ValueError(f"digit: expected a whole number from 0 to {CLASSES - 1}, got {digit}")
    if chosen is not None and chosen not in range(len(network.trained.form.names)):
        raise ValueError(f"class: expected one of the network's {len(network.trained.form.names)} classes, got {chosen}")
    if "layer" not in options:
        return {"digit": digit, "class": chosen, "at": None}
    at = {"layer": str(options["layer"]), **{name: options[name] for name in PLACE if name in options}}
    passed = network.passed(images[digit].tobytes(), chosen)
    pixel(network, passed, at["layer"], *(at.get(name, 0) for name in PLACE))
    return {"digit": digit, "class": chosen, "at": at}
