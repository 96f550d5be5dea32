"""The settings with which `groundup train --model` trains each known network, unless an option says otherwise.

A recipe is the same on every floor. Those below were chosen on the last 10,000 of MNIST's training images (the Fashion
CNN's is Adam's usual one); docs/benchmarks/README.md has the accuracies on the test images.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.architectures import Architecture, named
from shared.data.accepted_data import Form

RECIPES: dict[str, dict[str, Any]] = {
    "lenet5": {
        "optimizer": "adam",
        "learning_rate": 0.002,
        "batch_size": 32,
        "epochs": 5,
        "schedule": "cosine",
        "normalise": True,
        "augment_shift": 1,
        "augment_rotation": 10.0,
    },
    "fashion_cnn": {
        "optimizer": "adam",
        "learning_rate": 0.001,
        "batch_size": 64,
        "epochs": 5,
        "schedule": "cosine",
        "normalise": True,
    },
    "residual_cnn": {
        "optimizer": "adam",
        "learning_rate": 0.001,
        "batch_size": 64,
        "epochs": 3,
        "schedule": "cosine",
        "normalise": True,
        "augment_shift": 1,
        "augment_rotation": 10.0,
    },
}
"""By the name of the network in `shared.architectures.NAMED`, what it has in place of `groundup train`'s defaults."""

OF_OPTIMIZER = ("learning_rate", "momentum")
"""Settings of a recipe that make sense with its own optimizer only."""


def recipe(model: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a model's recipe, but for the optimizer's where another optimizer is given.

    A model has its own layers, so hidden and activation are None.
    Raises ValueError for an unknown model, and if `options` has hidden sizes or an activation.
    """
    if model not in RECIPES:
        raise ValueError(f"unknown model {model!r}; choose one of {', '.join(RECIPES)}")
    for name in ("hidden", "activation"):
        if name in options:
            raise ValueError(
                f"--{name} is for a stack of dense layers; --model {model} has its own: choose one of them"
            )
    chosen = dict(RECIPES[model])
    if str(options.get("optimizer", chosen["optimizer"])).lower() != chosen["optimizer"]:
        chosen = {name: value for name, value in chosen.items() if name not in OF_OPTIMIZER}
    return {"hidden": None, "activation": None, **chosen}


def fitted(model: str, form: Form) -> Architecture:
    """The known network of this name for the images and classes of a data set. ValueError naming the layer for images
    that are too small for it."""
    try:
        return named(model, form.shape, len(form.names))
    except ValueError as error:
        raise ValueError(f"--model {model} for {form}: {error}") from None


def described(model: str) -> str:
    """A recipe in a line: 'sgd 0.05, momentum 0.9, batches of 32, 5 epochs, cosine, normalised'."""
    of = RECIPES[model]
    parts = [f"{of['optimizer']} {of['learning_rate']:g}"]
    if "momentum" in of:
        parts.append(f"momentum {of['momentum']:g}")
    parts += [f"batches of {of['batch_size']}", f"{of['epochs']} epochs", of["schedule"]]
    if of.get("normalise"):
        parts.append("normalised")
    if "augment_shift" in of:
        parts.append(f"shift {of['augment_shift']}")
    if "augment_rotation" in of:
        parts.append(f"rotation {of['augment_rotation']:g}")
    return ", ".join(parts)
