"""Grad-CAM: which places of an image speak for a class, as a convolution's maps and their gradient say.

    weight of map k     the mean over all places of d score / d map k: how much the class wants more of what k finds
    evidence            the weighted sum of the maps, place by place; what speaks against the class counts as 0

R. R. Selvaraju and others, Grad-CAM: visual explanations from deep networks via gradient-based localization, 2017.
groundup/inside_layers.py takes the maps and their gradient from a trained network.
"""

from __future__ import annotations

import numpy as np


def grad_cam(maps: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """How much each place speaks for a class, from 0 to 1: (batch, height, width).

    maps: the outputs of a layer, (batch, channels, height, width); slopes: d score / d maps of each image's own score,
    of the same shape. Each image is divided by its own largest evidence. Where no place of an image has any, the
    image's result is 0 everywhere, and never 0 / 0.

    Raises ValueError for other shapes.
    """
    if maps.ndim != 4 or maps.shape != slopes.shape:
        raise ValueError(
            f"grad_cam: maps is {maps.shape} and slopes {slopes.shape}; expected (batch, channels, height, width) twice"
        )
    weights = slopes.mean(axis=(2, 3), keepdims=True)
    evidence = np.maximum((weights * maps).sum(axis=1), 0)
    largest = evidence.max(axis=(1, 2), keepdims=True)
    return evidence / np.where(largest > 0, largest, 1)
