"""Runs for the tests of the page Digits, and a drawing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from shared.architectures import Architecture
from shared.contract import load_stage
from shared.data.datasets import load_dataset
from shared.layers import Activate, Conv, Dense, Flatten, MaxPool
from shared.training.checkpoints import save_checkpoint

SMALL_CNN = Architecture((1, 28, 28), (Conv(3, 5), Activate("relu"), MaxPool(4), Flatten(), Dense(10)))


def a_drawing(number: int = 0) -> np.ndarray:
    """A test image as the page sends it: uint8 (784,)."""
    return np.rint(load_dataset().test.x[number] * 255).astype(np.uint8)


def a_run(
    folder: Path,
    layers: Any,
    notes: dict[str, Any] | None = None,
    loss: str = "softmax_cross_entropy",
    scale: float = 1.0,
) -> Path:
    """A run's folder with a last checkpoint of a new network. scale: of its parameters"""
    stage = load_stage("numpy")
    network = stage.network.Network(layers, loss=loss, seed=3)
    for values in network.parameters:
        values *= np.float32(scale)
    about = {"position": {"epoch": 2, "step": 0}, "notes": {"dataset": "mnist", **(notes or {})}}
    save_checkpoint(folder / "last.safetensors", stage, network, None, about)
    return folder
