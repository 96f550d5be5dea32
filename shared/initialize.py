"""The first weights: the same numbers on every floor.

Weights start random so that the neurons of a layer differ. Their scale keeps the size of the signal
the same from layer to layer: with larger weights it would grow without limit, with smaller ones it
would vanish. With fan_in inputs and fan_out outputs of a layer:

    he_normal        mean 0, variance 2 / fan_in                       for ReLU (He et al. 2015)
    he_uniform       the same variance, within ± sqrt(6 / fan_in)
    xavier_normal    mean 0, variance 2 / (fan_in + fan_out)           for tanh and sigmoid (Glorot & Bengio 2010)
    xavier_uniform   the same variance, within ± sqrt(6 / (fan_in + fan_out))

"he" and "xavier" mean the normal ones. Biases start at zero. PyTorch: torch.nn.init.kaiming_normal_,
kaiming_uniform_, xavier_normal_ and xavier_uniform_ (the distributions, not the same random numbers).

This module uses only the standard library, and only the method `random()` of its generator: Python
promises that its sequence for a seed is the same in every version. So a seed gives the same network
on all floors.
"""

import math
import random
from collections.abc import Callable, Sequence

from shared.architectures import Architecture, mlp
from shared.layers import Parameter


def _uniform(rng: random.Random, limit: float) -> float:
    return (2.0 * rng.random() - 1.0) * limit


def _normal(rng: random.Random, deviation: float) -> float:
    """A normal number from two uniform ones, by Box-Muller. 1 - random() is never 0, so its log is finite."""
    radius = math.sqrt(-2.0 * math.log(1.0 - rng.random()))
    return deviation * radius * math.cos(2.0 * math.pi * rng.random())


def he_normal(rng: random.Random, fan_in: int, fan_out: int) -> float:
    """One weight for a layer before a ReLU: normal, mean 0, variance 2 / fan_in, drawn with `_normal`.

    fan_in, fan_out: how many inputs and outputs the layer has
    """
    # A neuron's sum has fan_in times the variance of one product. ReLU makes half of the numbers 0, which halves their
    # mean square. Together the two leave the signal as large as it was.
    deviation = math.sqrt(2.0 / fan_in)
    return _normal(rng, deviation)


def he_uniform(rng: random.Random, fan_in: int, fan_out: int) -> float:
    """One weight: uniform within ± sqrt(6 / fan_in), variance 2 / fan_in."""
    return _uniform(rng, math.sqrt(6.0 / fan_in))


def xavier_normal(rng: random.Random, fan_in: int, fan_out: int) -> float:
    """One weight: normal, mean 0, variance 2 / (fan_in + fan_out)."""
    return _normal(rng, math.sqrt(2.0 / (fan_in + fan_out)))


def xavier_uniform(rng: random.Random, fan_in: int, fan_out: int) -> float:
    """One weight: uniform within ± sqrt(6 / (fan_in + fan_out)), variance 2 / (fan_in + fan_out)."""
    return _uniform(rng, math.sqrt(6.0 / (fan_in + fan_out)))


INITIALIZERS: dict[str, Callable[[random.Random, int, int], float]] = {
    "he": he_normal,
    "he_normal": he_normal,
    "he_uniform": he_uniform,
    "xavier": xavier_normal,
    "xavier_normal": xavier_normal,
    "xavier_uniform": xavier_uniform,
}


def initialize_parameters(layers: Sequence[int] | Architecture, initializer: str = "he", seed: int = 0) -> list[list]:
    """The first parameters of a network, as nested lists of Python floats.

    layers: an Architecture, or [in_features, hidden, …, out_features] for a stack of dense layers
    initializer: a name in INITIALIZERS
    seed: any integer; the same seed gives the same numbers, bit for bit, on every stage
    Returns the flat list of parameters, layer by layer: weights (in_features, out_features) or (out_channels,
    in_channels, rows, columns), then the bias, which is 0; gamma, which is 1, then beta, which is 0. A convolution has
    fan_in = in_channels * rows * columns and fan_out = out_channels * rows * columns.
    Raises ValueError for sizes that are not positive whole numbers, an unknown initializer or a seed
    that is not an integer.

    >>> w, b = initialize_parameters([2, 3], "xavier_uniform", seed=1)
    >>> len(w), len(w[0]), b
    (2, 3, [0.0, 0.0, 0.0])
    """
    architecture = layers if isinstance(layers, Architecture) else mlp(layers)
    if initializer not in INITIALIZERS:
        raise ValueError(f"unknown initializer {initializer!r}; choose one of {', '.join(INITIALIZERS)}")
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise ValueError(f"seed: expected a whole number, got {seed!r}")
    draw = INITIALIZERS[initializer]
    rng = random.Random(seed)

    def filled(shape: Sequence[int], number: Callable[[], float]) -> list:
        if len(shape) == 1:
            return [number() for _ in range(shape[0])]
        return [filled(shape[1:], number) for _ in range(shape[0])]

    return [filled(parameter.shape, _first_number(parameter, draw, rng)) for parameter in architecture.parameters()]


def _first_number(
    parameter: Parameter, draw: Callable[[random.Random, int, int], float], rng: random.Random
) -> Callable[[], float]:
    """A function that gives one number of the parameter after the other, in row-major order."""
    if parameter.fan_in:
        return lambda: draw(rng, parameter.fan_in, parameter.fan_out)
    constant = 1.0 if parameter.name.endswith("gamma") else 0.0
    return lambda: constant
