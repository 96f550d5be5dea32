"""Dropout masks from a counter, so that every stage drops the same neurons.

Dropout sets each hidden neuron to 0 with probability `rate` and multiplies the others by 1 / (1 - rate), so that
the expected output stays the same (Srivastava et al. 2014; torch.nn.Dropout). An ordinary random generator gives its
numbers one after the other, but the threads of a GPU need them all at once. A counter-based generator has no state:
the number for element i is a fixed function of i.

    bits(key, i) = mix(key + (i + 1) * GAMMA)    mod 2^64, SplitMix64's i-th output from the seed `key`
    key          = bits(bits(bits(0, seed), step), layer)
    survives     = (bits(key, row * columns + column) >> 11) / 2^53 >= rate

`mask_value` is this formula for one element in plain integers, and `dropout_mask` computes it for a whole layer. Each
later floor has its own. Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators"
(2014); the constants of `_mix` are David Stafford's variant 13.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

GAMMA = 0x9E3779B97F4A7C15
"""2^64 divided by the golden ratio, made odd: its multiples reach every 64-bit number before they repeat."""

_M1 = 0xBF58476D1CE4E5B9
_M2 = 0x94D049BB133111EB
_MASK64 = (1 << 64) - 1
_TO_UNIT = 2.0**-53


def random_bits(key: int, index: int) -> int:
    """64 random bits: number `index` (from 0) of the sequence named by `key`, both in 0 … 2^64 - 1."""
    z = (key + (index + 1) * GAMMA) & _MASK64
    z = ((z ^ (z >> 30)) * _M1) & _MASK64
    z = ((z ^ (z >> 27)) * _M2) & _MASK64
    return z ^ (z >> 31)


def mask_key(seed: int, step: int, layer: int) -> int:
    """The key of one layer's mask at one training step: seed, step and layer go through the generator in turn.

    seed, step (optimizer steps taken before this one), layer (0 for the first hidden layer): whole numbers of at
    least 0. Raises ValueError for a negative one.
    """
    key = 0
    for name, value in (("seed", seed), ("step", step), ("layer", layer)):
        if value < 0:
            raise ValueError(f"dropout: {name} must be at least 0, got {value}")
        key = random_bits(key, value)
    return key


def mask_value(index: int, rate: float, seed: int, step: int, layer: int) -> float:
    """One element of the mask, 0.0 or 1 / (1 - rate), in plain Python. index = row * columns + column."""
    _check_rate(rate)
    uniform = (random_bits(mask_key(seed, step, layer), index) >> 11) * _TO_UNIT  # 53 bits: exact in a float
    return 1.0 / (1.0 - rate) if uniform >= rate else 0.0


def dropout_mask(
    rows: int, columns: int, rate: float, seed: int, step: int, layer: int, dtype: str = "float32"
) -> np.ndarray:
    """The mask of one hidden layer at one step, (rows, columns): 0 for dropped neurons, else 1 / (1 - rate).

    rows: the batch size; columns: the layer's neurons; both at least 1
    rate: the probability of dropping, at least 0 and below 1
    seed, step, layer: as `mask_key` takes them; each combination gives an independent mask
    Raises ValueError for a number out of its range.
    """
    _check_rate(rate)
    if rows < 1 or columns < 1:
        raise ValueError(f"dropout: expected at least one row and one column, got ({rows}, {columns})")
    indices = np.arange(rows * columns, dtype=np.uint64)
    survives = uniform_numbers(mask_key(seed, step, layer), indices) >= rate
    scale = np.asarray(1.0 / (1.0 - rate), dtype)
    return (survives * scale).reshape(rows, columns)


def step_masks(
    rows: int, places: Sequence[tuple[int, float]], seed: int, step: int, dtype: str = "float32", first_row: int = 0
) -> list[Any] | None:
    """The `dropout_masks` of one step: a mask for each place, or None if nothing is dropped.

    places: (numbers of one sample, rate) of each layer that can be dropped from, as `Architecture.dropouts` gives them;
        the place's number in this list is the `layer` of its mask
    first_row: of a batch that is taken in several parts, the row that this part begins with. The masks
        of the rows before are made, too, and cut off: a mask is a sequence from its first row on
    """
    if not any(rate for _, rate in places):
        return None
    masks = [
        dropout_mask(first_row + rows, size, rate, seed, step, layer, dtype)
        for layer, (size, rate) in enumerate(places)
    ]
    return [mask[first_row:] for mask in masks]


def uniform_numbers(key: int, indices: np.ndarray) -> np.ndarray:
    """Numbers from 0 to below 1 of the sequence named by `key`: float64, shaped like indices (uint64).

    Element i is (random_bits(key, indices[i]) >> 11) / 2^53: the formula of `random_bits` for a whole array.
    """
    # Unsigned arrays wrap around at 2^64, as the formula demands.
    z = indices + np.uint64(1)
    z *= np.uint64(GAMMA)
    z += np.uint64(key)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_M1)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_M2)
    numbers: np.ndarray = ((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * _TO_UNIT
    return numbers


def _check_rate(rate: float) -> None:
    if not 0.0 <= rate < 1.0:
        raise ValueError(f"dropout: expected a rate of at least 0 and below 1, got {rate}")
