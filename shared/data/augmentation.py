"""Augmentation: every training image is shifted and rotated a little, otherwise in every epoch.

A digit stays the same digit when it stands two pixels further left or leans by a few degrees. A network that sees such
images learns the digit and not the pixels. Only training samples are changed; the network is tested on the true ones.

How an image is changed is a fixed function of the seed, the epoch and the number of the sample, by the counter-based
generator of `shared.dropout`. So every stage trains on the same pixels, whatever the batches are, and a run that was
stopped goes on with the pixels that it would have seen.

    numbers[i]   uniform number 3 * sample + i of the key of (seed, epoch)
    angle        (2 numbers[0] - 1) * rotation
    down, right  floor(numbers[1] * (2 shift + 1)) - shift, and the same with numbers[2]: whole pixels

The new pixel at (row, column) is read from where it was before, between the old pixels by bilinear interpolation. With
y and x as the distances from the centre of the moved image, that place is (cos y + sin x, cos x - sin y) from the
centre of the old one. Places outside the image have the value `background`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shared.dropout import mask_key, uniform_numbers

STREAM = 2**32
"""The `layer` of the generator's key. No dropout layer has so high a number, so masks and images are independent."""


@dataclass(frozen=True)
class Augmentation:
    """How far images are changed.

    shift: the most pixels that an image moves up, down, left or right; a whole number of at least 0
    rotation: the largest angle in degrees, to either side; from 0 to 180
    background: the value of what comes in from outside the image
    Raises ValueError for a number out of its range.
    """

    shift: int = 0
    rotation: float = 0.0
    background: float = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.shift, bool) or not isinstance(self.shift, int) or self.shift < 0:
            raise ValueError(f"augment_shift: expected a whole number of at least 0, got {self.shift!r}")
        number = isinstance(self.rotation, int | float) and not isinstance(self.rotation, bool)
        if not number or not 0.0 <= self.rotation <= 180.0:
            raise ValueError(f"augment_rotation: expected an angle from 0 to 180 degrees, got {self.rotation!r}")
        if not math.isfinite(self.background):
            raise ValueError(f"augmentation: background: expected a finite number, got {self.background}")

    def augmented(self, images: np.ndarray, samples: np.ndarray, seed: int, epoch: int) -> np.ndarray:
        """The images as the network sees them in this epoch: a new array of the same shape and dtype.

        images: float32 or float64 (N, C, H, W); all channels of an image move together
        samples: the number of each image in the training data, (N,); with seed and epoch it decides about the change
        Raises ValueError if the shift could move an image out of sight.
        """
        smaller_side = min(images.shape[2:])
        if self.shift >= smaller_side:
            raise ValueError(
                f"augment_shift: expected less than the images' smaller side, {smaller_side} pixels, got {self.shift}"
            )
        angles, down, right = self.changes(samples, seed, epoch)
        return moved(images, angles, down, right, self.background)

    def changes(self, samples: np.ndarray, seed: int, epoch: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(angles in radians, pixels down, pixels right) for these samples in this epoch: float64 (N,) each."""
        indices = np.asarray(samples).astype(np.uint64)[:, None] * np.uint64(3) + np.arange(3, dtype=np.uint64)
        numbers = uniform_numbers(mask_key(seed, epoch, STREAM), indices)
        angles = (2.0 * numbers[:, 0] - 1.0) * math.radians(self.rotation)
        down, right = np.floor(numbers[:, 1:].T * (2 * self.shift + 1)) - self.shift
        return angles, down, right


def moved(images: np.ndarray, angles: np.ndarray, down: np.ndarray, right: np.ndarray, background: float) -> np.ndarray:
    """Each image rotated around its centre, counter-clockwise, and then shifted; bilinear interpolation.

    images: (N, C, H, W); angles in radians, down and right in pixels: (N,) each. Whole pixels without a rotation move
    the values as they are.
    """
    count, channels, height, width = images.shape
    y = np.arange(height)[None, :, None] - (height - 1) / 2 - down[:, None, None]  # (N, H, 1)
    x = np.arange(width)[None, None, :] - (width - 1) / 2 - right[:, None, None]  # (N, 1, W)
    cos, sin = np.cos(angles)[:, None, None], np.sin(angles)[:, None, None]
    row, down_share = _neighbours(cos * y + sin * x + (height - 1) / 2, height, images.dtype)
    column, right_share = _neighbours(cos * x - sin * y + (width - 1) / 2, width, images.dtype)

    # A frame of background around every image: a place outside lies between two of its pixels.
    framed = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=background)
    pixels = framed.reshape(-1)
    plane = (height + 2) * (width + 2)
    planes = np.arange(count * channels).reshape(count, channels, 1, 1) * plane
    corner = planes + (row * (width + 2) + column)[:, None]  # (N, C, H, W): the pixel above and left of the place
    across, along = right_share[:, None], down_share[:, None]
    above = pixels[corner] * (1 - across) + pixels[corner + 1] * across
    below = pixels[corner + (width + 2)] * (1 - across) + pixels[corner + (width + 3)] * across
    result: np.ndarray = above * (1 - along) + below * along
    return result


def _neighbours(places: np.ndarray, extent: int, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """(index in the framed image of the pixel before each place, share of the pixel after it, from 0 to 1)."""
    within = np.clip(places, -1.0, extent)
    before = np.minimum(np.floor(within), extent - 1.0)
    return before.astype(np.int64) + 1, (within - before).astype(dtype)
