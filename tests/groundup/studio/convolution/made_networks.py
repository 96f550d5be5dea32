"""Networks for the tests of the page Convolution: small, with every kind of layer, odd strides and padding."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from groundup.studio.convolution.networks import SHIPPED, load
from groundup.studio.convolution.passes import LayeredPasses
from shared.architectures import Architecture
from shared.contract import load_stage
from shared.layers import Activate, AveragePool, BatchNorm, Conv, Dense, Dropout, Flatten, MaxPool, Residual

BLOCK = Residual((Conv(4, 3, padding=1), BatchNorm(), Activate("relu"), Dropout(0.5), Conv(4, 1)))
EVERY_KIND = Architecture(
    (1, 28, 28),
    (
        *(Conv(4, (3, 5), stride=(2, 1), padding=(1, 2)), BatchNorm(), Activate("relu"), MaxPool(3, 2), BLOCK),
        *(AveragePool(2, (1, 2)), Conv(3, (2, 3), stride=(1, 2), padding=(0, 1)), Activate("relu")),
        *(Flatten(), Dense(10)),
    ),
)
"""Windows of the max pool overlap, and the strides of rows and columns differ."""


def made(architecture: Architecture, positive: bool = False, dtype: str = "float32") -> LayeredPasses:
    """A network whose weights and statistics are random. positive: all weights above 0, so that it only grows."""
    random = np.random.default_rng(5)
    shapes = [*architecture.parameter_shapes(), *architecture.running_shapes()]
    arrays = [random.normal(size=shape) for shape in shapes]
    count = len(architecture.parameter_shapes())
    variances = {count + i for i in range(1, len(shapes) - count, 2)}
    arrays = [np.abs(array) + 0.1 if positive or i in variances else array for i, array in enumerate(arrays)]
    own = [array.astype(dtype) for array in arrays]
    trained = load(Path(), SHIPPED)
    changed = {"architecture": architecture, "parameters": own[:count], "running_statistics": own[count:]}
    checkpoint = replace(trained.checkpoint, dtype=dtype, **changed)
    return LayeredPasses(replace(trained, checkpoint=checkpoint, normalisation=None))


def a_run(folder: Path) -> Path:
    """A run's folder with a checkpoint of EVERY_KIND."""
    from shared.training.checkpoints import save_checkpoint

    stage, network = load_stage("numpy"), made(EVERY_KIND)
    about = {"position": {"epoch": 2, "step": 0}, "notes": {"dataset": "mnist"}}
    save_checkpoint(folder / "last.safetensors", stage, network._network, None, about)
    return folder
