"""A trained network in eight bits, and what it loses: what `groundup check --int8` tells.

in_eight_bits    the network of a run, calibrated on some of its training images
check            its answers, size and time for an image beside those in floats, and what each step loses
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from groundup.trained import LAYERED_AT_A_TIME, as_learned, in_words, load_data, open_checkpoint
from shared.contract import display_title, load_part, load_stage, stage_name
from shared.data.datasets import Dataset
from shared.training.checkpoints import Checkpoint, build_network

PRODUCTS = {"stage2_numpy": "integer_matmul", "stage3_c": "product"}
"""Stages that multiply whole numbers, and the function of their module eight_bits that does."""

CALIBRATE = 200
"""Images of the calibration, unless an option says otherwise or the set has fewer."""

LOOKED_AT = 1000
"""Test images on which the loss of each step is measured."""


def calibrated_on(data: Dataset, count: int | None) -> int:
    """The number of training images that decide about the scales. count: what the user asked for, None for nothing"""
    return min(CALIBRATE, len(data.train.x)) if count is None else count


def in_eight_bits(checkpoint: Checkpoint, data: Dataset, count: int, stage: str = "numpy") -> Any:
    """The network as a stage2_numpy.eight_bit_network.EightBitNetwork, which multiplies whole numbers by a stage.

    data: as the network learned from it; count: training images of the calibration, from the whole set
    Raises ValueError for a stage without whole numbers, and for a count that is none.
    """
    if stage_name(stage) not in PRODUCTS:
        raise ValueError(f"{stage_name(stage)} has no product of whole numbers; choose {' or '.join(PRODUCTS)}")
    images = data.train.x
    if not 1 <= count <= len(images):
        raise ValueError(f"--calibrate: expected a number of images from 1 to {len(images):,}, got {count:,}")
    load_stage(stage)  # it is made ready
    product = getattr(load_part(stage, "eight_bits"), PRODUCTS[stage_name(stage)])
    numbers = checkpoint.architecture, checkpoint.parameters, checkpoint.running_statistics
    network = load_part("numpy", "eight_bit_network").EightBitNetwork
    return network(*numbers, evenly(images, count), product=product)


def evenly(x: np.ndarray, count: int) -> np.ndarray:
    """So many of the images, from the whole set: those of a class may lie together."""
    return x[np.linspace(0, len(x) - 1, min(len(x), count)).astype(int)]


def check(
    run: Path,
    stage: str,
    calibrate: int | None = None,
    data_dir: Path | None = None,
    tell: Callable[[str, float], None] = lambda activity, share: None,
) -> dict[str, Any]:
    """The network of a run in eight bits beside itself, on all test images. Returns the document for --json.

    calibrate: the number of training images that decide about the scales; None for CALIBRATE of them, or all
    tell: called with what is done next, and the share of all that is done
    Raises ValueError or OSError for what is no run, data or stage.
    """
    checkpoint = open_checkpoint(run)
    data = as_learned(checkpoint, load_data(checkpoint, data_dir))
    count = calibrated_on(data, calibrate)
    eight = in_eight_bits(checkpoint, data, count, stage)
    floor, dtype = load_stage(stage), checkpoint.dtype
    network, x, labels = build_network(floor, checkpoint), data.test.x, data.test.y

    def by_floats(part: np.ndarray) -> np.ndarray:
        return np.array(floor.arrays.to_host(network.forward(floor.arrays.asarray(part, dtype))))

    ways = {dtype: by_floats, "int8": eight.forward}
    logits: dict[str, list[np.ndarray]] = {name: [] for name in ways}
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for start in range(0, len(x), LAYERED_AT_A_TIME):
        tell(f"{len(x):,} test images", start / len(x))
        for name, answer in ways.items():  # in turn, so that a busy machine disturbs both
            begin = time.perf_counter()
            logits[name].append(answer(x[start : start + LAYERED_AT_A_TIME]))
            seconds[name].append((time.perf_counter() - begin) / len(logits[name][-1]))
    answers = {name: np.concatenate(parts).argmax(axis=1) for name, parts in logits.items()}
    sizes = {dtype: sum(np.asarray(each).nbytes for each in checkpoint.parameters), "int8": eight.nbytes}
    return {
        "network": in_words(checkpoint),
        "checkpoint": str(checkpoint.path),
        "stage": display_title(floor.name),
        "calibrated_on": count,
        "images": len(x),
        "same_answers": int(np.sum(answers[dtype] == answers["int8"])),
        "numbers": {
            name: {
                "right": int(np.sum(own == labels)),
                "bytes": sizes[name],
                "seconds": float(np.median(seconds[name])),
            }
            for name, own in answers.items()
        },
        "steps": losses(eight, evenly(x, LOOKED_AT)),
    }


def losses(network: Any, x: np.ndarray) -> list[dict[str, Any]]:
    """What each step gives for these images, and how far eight bits are off by then.

    smallest, largest: of the floats; reach: the largest number of eight bits, None where nothing is rounded
    error: the square root of the mean squared difference, over that of the mean squared number
    """
    kept: dict[Any, np.ndarray] = {}
    sums: dict[Any, list[float]] = {}

    def keep(step: Any, values: np.ndarray) -> None:
        kept[step] = values

    def compare(step: Any, values: np.ndarray) -> None:
        own = kept.pop(step).astype(np.float64)
        before = sums.get(step, [0.0, 0.0, np.inf, -np.inf])
        squares = before[0] + np.sum((values - own) ** 2), before[1] + np.sum(own**2)
        sums[step] = [*squares, min(before[2], own.min()), max(before[3], own.max())]

    for start in range(0, len(x), LAYERED_AT_A_TIME):
        part = x[start : start + LAYERED_AT_A_TIME]
        network.real(part, keep)
        network.forward(part, compare)
    return [
        {
            "step": step.title,
            "smallest": float(smallest),
            "largest": float(largest),
            "reach": None if step.scale is None else float(127 * step.scale),
            "error": float(np.sqrt(off / total)) if total else 0.0,
        }
        for step, (off, total, smallest, largest) in sums.items()
    ]
