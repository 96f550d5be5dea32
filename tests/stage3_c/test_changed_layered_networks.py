"""A network of any architecture between two steps: C is told sizes once, so whatever they come from must still be so.

Each change is made after a forward pass went well, and noticed by the next one, whether its batch fits into the memory
that is there or asks for more.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from shared.architectures import Architecture
from shared.contract import Stage, StageUnavailable, load_stage
from shared.layers import BatchNorm, Conv, Dense, Flatten, Residual

try:
    STAGE: Stage = load_stage("stage3_c")
except StageUnavailable as reason:
    pytest.skip(str(reason), allow_module_level=True)

LAYERS = (Conv(4, 3, padding=1), BatchNorm(), Residual((Conv(4, 3, padding=1),)), Flatten(), Dense(3))
FORM = Architecture((2, 8, 8), LAYERS)


def halve_the_filters(network: Any) -> None:
    part = network.layers[2].parts[0]
    for name in ("weights", "bias", "grad_weights", "grad_bias"):
        setattr(part, name, getattr(part, name)[:2].copy())


CHANGES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "stride": (lambda n: setattr(n.layers[0], "stride", (2, 2)), r"stride was changed to \(2, 2\), expected \(1, 1\)"),
    "stride in a block": (lambda n: setattr(n.layers[2].parts[0], "stride", (6, 6)), "convolve: stride was changed to"),
    "padding": (lambda n: setattr(n.layers[0], "padding", (9, 9)), "convolve: padding was changed to"),
    "fewer filters in a block": (halve_the_filters, r"weights was replaced by float32 \(2, 4, 3, 3\), expected"),
    "momentum": (lambda n: setattr(n.layers[1], "momentum", 7), "momentum: expected a number from 0 to 1, got 7"),
    "epsilon": (lambda n: setattr(n.layers[1], "epsilon", -1.0), "epsilon: expected a finite number above 0, got -1"),
    "dtype": (lambda n: setattr(n, "dtype", "float64"), "architecture, dtype, layer_sizes or layers were changed"),
    "architecture": (
        lambda n: setattr(n, "architecture", Architecture((2, 4, 4), LAYERS)),
        "architecture, dtype, layer_sizes or layers were changed",
    ),
    "classes": (lambda n: n.layer_sizes.__setitem__(1, 9), "architecture, dtype, layer_sizes or layers were changed"),
    "no layers": (lambda n: n.layers.clear(), "architecture, dtype, layer_sizes or layers were changed"),
}


@pytest.mark.parametrize("rows", [2, 40], ids=["memory is there", "memory is made"])
@pytest.mark.parametrize("change", CHANGES)
def test_what_was_changed_after_a_forward_pass_is_an_error(change: str, rows: int) -> None:
    network: Any = STAGE.network.Network(FORM)
    network.forward(np.ones((2, 2, 8, 8)))
    apply, message = CHANGES[change]
    apply(network)
    labels = np.zeros(rows, np.int64)
    with pytest.raises(ValueError, match=message):
        network.train_step(np.ones((rows, *network.architecture.input_shape)), labels, STAGE.optimizers.SGD(0.1))
    with pytest.raises(ValueError, match=message):
        network.forward(np.ones((rows, *network.architecture.input_shape)))


def test_one_optimizer_after_the_other_takes_its_own_steps() -> None:
    x, y = np.random.default_rng(0).random((5, 2, 8, 8)), np.array([0, 1, 2, 0, 1])
    makes: list[Callable[[], Any]] = [
        lambda: STAGE.optimizers.SGD(0.1),
        lambda: STAGE.optimizers.SGD(0.1, momentum=0.9),
        lambda: STAGE.optimizers.Adam(),
        lambda: STAGE.optimizers.SGD(0.2),
        lambda: STAGE.optimizers.RMSProp(),
    ]
    whole, by_hand = (STAGE.network.Network(FORM, dtype="float64") for _ in range(2))
    for make in makes:
        one, other = make(), make()
        for _ in range(2):
            other.step(by_hand.parameters, by_hand.gradients(x, y))
            whole.train_step(x, y, one)
        for a, b in zip(whole.parameters, by_hand.parameters, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
