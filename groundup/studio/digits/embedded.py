"""What the page is given about a network, and what an exported page carries.

An exported page has no server and computes the forward pass itself (static/offline.js): it carries the network's
parameters, and some training images in which it looks for the nearest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from groundup.inside_layers import convolves
from groundup.studio.digits import networks
from groundup.studio.digits.nearest import image, why_none
from groundup.studio.digits.networks import Trained
from groundup.studio.digits.pixels import MNIST
from groundup.studio.digits.reasons import packed
from shared.data.datasets import CLASSES, load_dataset

PER_CLASS = 40
"""Training images of each digit that an exported page carries: 784 bytes each."""


def network(trained: Trained) -> dict[str, Any]:
    """A network as the page needs it to show its neurons' weights.

    {"name", "version", "title", "about", "classes", "shape", "onWhite", "certain", "convolves", "normalisation"}, and
    of a stack of dense layers "sizes", "activation" and "parameters", of any other network "filters": those of the
    first convolution (O, kh, kw) or None.
    """
    checkpoint, normalisation = trained.checkpoint, trained.normalisation
    about: dict[str, Any] = {
        "name": trained.name,
        "version": trained.version,
        "title": trained.title,
        "about": trained.about,
        "classes": list(trained.form.names),
        "shape": list(trained.form.shape),
        "onWhite": trained.form.on_white,
        "certain": trained.certain,
        "convolves": convolves(checkpoint.architecture),
        "normalisation": None if normalisation is None else asdict(normalisation),
    }
    if stack := checkpoint.architecture.as_mlp():
        parameters = [packed(array) for array in checkpoint.parameters]
        return {**about, "sizes": stack.sizes, "activation": stack.activation, "parameters": parameters}
    first = checkpoint.parameters[0]
    return {**about, "filters": packed(first.mean(axis=1)) if first.ndim == 4 else None}


def data(options: Mapping[str, Any]) -> dict[str, Any]:
    """What the exported page carries: {"network", "images": {"pixels", "labels"}, "why": the images are none}.

    options: "run": the folder of a run, a stack of dense layers; without it the network that ships
    Raises ValueError for a network that an exported page cannot compute.
    """
    run = options.get("run")
    if run is None:
        trained = networks.opened(networks.SHIPPED, networks.DEFAULT)
    else:
        trained = networks.opened(networks.checkpoint_of(Path(run)), Path(run).name)
    if trained.checkpoint.architecture.as_mlp() is None:
        raise ValueError(f"network: {trained.name} is no stack of dense layers; an exported page computes only those")
    if trained.form.shape != MNIST.shape:
        raise ValueError(f"network: {trained.name} takes {trained.form}; an exported page carries images of MNIST")
    train = load_dataset("mnist-subset").train
    chosen = np.sort(np.concatenate([np.flatnonzero(train.y == digit)[:PER_CLASS] for digit in range(CLASSES)]))
    why = why_none(trained.dataset)
    if why:
        chosen = chosen[:0]
    images = {"pixels": image(train.x[chosen]), "labels": train.y[chosen].tolist()}
    return {"network": network(trained), "images": images, "why": why}
