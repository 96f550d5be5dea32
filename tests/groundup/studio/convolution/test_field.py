"""The receptive field is exactly the set of pixels whose change changes the number."""

from __future__ import annotations

import numpy as np
import pytest

from groundup.studio.convolution.field import receptive_field
from shared.architectures import Architecture
from shared.layers import Activate, AveragePool, Conv, Dense, Flatten, MaxPool, Residual
from tests.groundup.studio.convolution.made_networks import EVERY_KIND, made

WITH_HOLES = Architecture((1, 28, 28), (Conv(2, 1, stride=3), AveragePool(2), Flatten(), Dense(10)))
NESTED = Architecture(
    (1, 28, 28),
    (
        MaxPool((1, 2), 2),
        Residual((Conv(1, 3, padding=1), Residual((Activate("relu"), Conv(1, (5, 1), padding=(2, 0)))))),
        *(Conv(2, 3, stride=4, padding=2), Flatten(), Dense(10)),
    ),
)


@pytest.mark.parametrize("architecture", [EVERY_KIND, WITH_HOLES, NESTED])
def test_the_field_is_what_changes_the_number(architecture):
    """All weights are above 0, and so each pixel that is seen makes the number larger, by a max pool's window, too."""
    network = made(architecture, positive=True, dtype="float64")
    drawings = np.full((785, 1, 28, 28), 0.5)
    drawings[np.arange(784), 0, np.arange(784) // 28, np.arange(784) % 28] += 1e3
    outputs = {}
    this_pass = network._passes.Pass(training=False, masks=None, scratch=network._memory)
    network._through(network._network.layers, "", drawings, this_pass, outputs)
    random = np.random.default_rng(2)
    for number, output in outputs.items():
        if output.ndim != 4:
            continue
        rows, columns = output.shape[2:]
        for row, column in [(0, 0), (rows - 1, columns - 1), *random.integers(0, (rows, columns), (6, 2))]:
            changed = output[:784, 0, row, column] - output[784, 0, row, column] > 1e-3
            np.testing.assert_array_equal(receptive_field(architecture, number, row, column).ravel(), changed, number)
