"""Everything that decides about a training of the playground, checked: the same settings give the same numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from shared.contract import stage_name
from shared.initialize import INITIALIZERS
from shared.names import ACTIVATIONS, DTYPES, LOSSES

SETS = ("xor", "clouds", "circles", "spirals", "own", "digits")
"""own: points drawn by hand or read from CSV; digits: images of the bundled MNIST subset."""

OPTIMIZERS = ("SGD", "momentum", "RMSProp", "Adam")
"""momentum: SGD with a momentum of 0.9."""

MISTAKES = ("none", "wrong_sign", "missing_mean", "zero_initialisation", "large_rate")
"""What each does is in mistakes.py."""

MOST_LAYERS, MOST_NEURONS = 6, 128
MOST_POINTS, MOST_CLASSES, FARTHEST = 1000, 5, 10.0

GO_ON = ("stage", "learning_rate", "batch_size", "dropout", "mistake")
"""A training goes on from the same state when only these change; any other change begins a new one."""


@dataclass(frozen=True)
class Settings:
    """One training.

    data: a name in SETS; noise: how far points are moved at random, 0 to 0.5, in the picture's units; samples: points
        of a made set, 20 to 1,000; points: (x, y, class) of the set "own", coordinates of at most ±10
    stage: any name that shared.contract.stage_name takes; layers: the sizes of the hidden layers, at most 6
    activation, loss, initializer: names of the library; optimizer: a name in OPTIMIZERS
    learning_rate: at most 10; batch_size: 1 to 1,000; dropout: below 0.9
    mistake: a name in MISTAKES; seed: decides about the points, the first weights, the order and the dropout
    dtype: float64 makes the stages agree to 1e-10 after many steps
    Raises ValueError or TypeError that names the setting.
    """

    data: str = "circles"
    noise: float = 0.05
    samples: int = 300
    points: tuple[tuple[float, float, int], ...] = ()
    stage: str = "stage2_numpy"
    layers: tuple[int, ...] = (6, 4)
    activation: str = "tanh"
    loss: str = "softmax_cross_entropy"
    initializer: str = "xavier"
    optimizer: str = "Adam"
    learning_rate: float = 0.02
    batch_size: int = 20
    dropout: float = 0.0
    mistake: str = "none"
    seed: int = 0
    dtype: str = "float64"

    def __post_init__(self) -> None:
        object.__setattr__(self, "stage", stage_name(_name("stage", self.stage, None)))
        _name("data", self.data, SETS)
        _name("activation", self.activation, ACTIVATIONS)
        _name("loss", self.loss, LOSSES)
        _name("initializer", self.initializer, INITIALIZERS)
        _name("optimizer", self.optimizer, OPTIMIZERS)
        _name("mistake", self.mistake, MISTAKES)
        _name("dtype", self.dtype, DTYPES)
        _number("noise", self.noise, 0.0, 0.5)
        _number("learning_rate", self.learning_rate, 0.0, 10.0)
        _number("dropout", self.dropout, 0.0, 0.9)
        _whole("samples", self.samples, 20, 1000)
        _whole("batch_size", self.batch_size, 1, 1000)
        _whole("seed", self.seed, 0, 2**31 - 1)
        object.__setattr__(self, "layers", _layers(self.layers))
        object.__setattr__(self, "points", _points(self.points) if self.data == "own" else ())

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Settings:
        """The settings of a request: a JSON object with any of the names above; what it leaves out is the default."""
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise ValueError(f"unknown setting {unknown[0]!r}; the playground has {', '.join(sorted(known))}")
        return cls(**values)

    def to_json(self) -> dict[str, Any]:
        """The settings without the points, which the page has."""
        values = asdict(self)
        del values["points"]
        return values

    def goes_on_from(self, before: Settings) -> bool:
        """Whether a training with the settings `before` can go on with these, from the state that it has."""
        same = all(getattr(self, field.name) == getattr(before, field.name) for field in fields(self)
                   if field.name not in GO_ON)  # fmt: skip
        zero = "zero_initialisation"  # a mistake of the first moment
        return same and (self.mistake == zero) == (before.mistake == zero)


def _name(setting: str, value: object, choices: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{setting}: expected a name, got {value!r}")
    if choices is not None and value not in choices:
        raise ValueError(f"{setting}: unknown {value!r}; choose one of {', '.join(choices)}")
    return value


def _number(setting: str, value: object, least: float, most: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{setting}: expected a number, got {value!r}")
    if not least <= value <= most:  # nor is NaN, and a whole number may be too large for a float
        raise ValueError(f"{setting}: expected a number from {least:g} to {most:g}, got {value}")


def _whole(setting: str, value: object, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{setting}: expected a whole number, got {value!r}")
    if not least <= value <= most:
        raise ValueError(f"{setting}: expected a whole number from {least} to {most:,}, got {value:,}")


def _layers(values: object) -> tuple[int, ...]:
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise TypeError(f"layers: expected a list of sizes, got {values!r}")
    if len(values) > MOST_LAYERS:
        raise ValueError(f"layers: expected at most {MOST_LAYERS} hidden layers, got {len(values)}")
    for i, size in enumerate(values, start=1):
        _whole(f"layers: number {i}", size, 1, MOST_NEURONS)
    return tuple(values)


def _points(values: object) -> tuple[tuple[float, float, int], ...]:
    """The points of a set of one's own, checked: enough for a training and a test part, and of at least two classes."""
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise TypeError(f"points: expected a list of [x, y, class], got {type(values).__name__}")
    if len(values) > MOST_POINTS:
        raise ValueError(f"points: expected at most {MOST_POINTS:,} points, got {len(values):,}")
    for i, point in enumerate(values, start=1):
        if isinstance(point, str) or not isinstance(point, Sequence) or len(point) != 3:
            raise ValueError(f"points: number {i}: expected [x, y, class], got {point!r}")
        _number(f"points: x of number {i}", point[0], -FARTHEST, FARTHEST)
        _number(f"points: y of number {i}", point[1], -FARTHEST, FARTHEST)
        _whole(f"points: class of number {i}", point[2], 0, MOST_CLASSES - 1)
    if len(values) < 4 or len({point[2] for point in values}) < 2:
        raise ValueError("points: a set of your own needs at least 4 points and 2 classes; draw some, or paste a CSV")
    return tuple((float(x), float(y), label) for x, y, label in values)
