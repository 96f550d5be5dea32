"""What a measurement is written down as: one row for each thing that was measured, or could not be and why.

A time alone says little about another machine. So a row also carries the operations and bytes that the shapes ask for,
from which GFLOP/s, GB/s and arithmetic intensity follow; its ratio to a reference that was measured in the same rounds;
and how far another run of the same program may come out from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from shared.bench.measuring.timing import Measurement
from shared.contract import short_title

NOT_TIMED = "; not timed"
"""The end of a row's `skipped` where the result was wrong."""


def raised(error: Exception) -> str:
    """Why a contender that raised this is not timed. The others of its group are."""
    return f"raised {type(error).__name__}: {error}{NOT_TIMED}"


LIBRARIES = {"numpy": "NumPy", "pytorch": "PyTorch", "cublas": "cuBLAS"}
"""What is measured beside the stages."""

KINDS: dict[str, str] = {
    "peak": "multiply-adds in registers alone, on one core; shape ()",
    "bandwidth": "the triad a = b + s c; shape (bytes of its three arrays,)",
    "ladder": "a square product on one rung of a ladder; name: the rung; shape (M, K, N)",
    "product": "a product of a network's shape; name: 'xW 64x784x128'; shape (M, K, N)",
    "integer": "a product of whole numbers of eight bits; name and shape as of a product; variant: the rung, or that "
    "of the float32 product beside it",
    "convolution": "a convolution of a network's shape; name: '64x13x13 by 128 of 3x3, batch 32'; variant: the rung; "
    "part: 'forward' or 'backward'; shape (N, C, H, W, O, rows, columns)",
    "op": "one operation forward or backward; name: 'relu', part: 'forward' or 'backward'; shape (rows, columns)",
    "step": "a training step; name: '784-128-10, batch 64' or 'lenet5, batch 64'; shape: the layer sizes; variant: the "
    "rung of its ladder",
    "part": "one operation of that step, alone; part: 'dense 1 forward'; the same name and shape as the step's",
    "inference": "predictions for one batch; name: '784-128-10, batch 64'; shape: the layer sizes",
    "epoch": "an epoch of training; name: '784-128-10, batch 64, mnist'; shape: the layer sizes; accuracy after it",
    "target": "training until a test accuracy is reached; name: '97 % on mnist, 784-128-10'; accuracy: what was asked",
    "memory": "the most memory that a process held more than before; name and shape as of the step; part: 'growth …' "
    "of what further steps held beyond the first ones",
    "phase": "what surrounds computing; name: 'product 512³'; part: 'import', 'compile', 'copy in', 'compute', "
    "'copy out'",
}
"""Kind of row -> what was done, and with it what `name`, `part` and `shape` are."""


@dataclass(frozen=True)
class BenchRow:
    """One measured thing, or one skipped thing and why.

    kind: one of KINDS, which says what name, part and shape are.
    stage: who did it: a stage, or one of LIBRARIES. variant: which of its ways, where it has several.
    flops: two per multiply-add, of the matrix products alone (of an `op`: every arithmetic operation, exp as one).
    bytes: each operand read once and each result written once, from the shapes; 0 where nobody counted.
    samples: training or test images that one call works on, 0 where that means nothing.
    threads: how many threads it may use.
    measurement: seconds; None where `skipped` gives a reason, and for kind "memory".
    reference: what `ratio` is a multiple of, in words; "" for nothing.
    ratio: time / time of the reference: 1 is as fast, 50 is fifty times slower.
    ratio_noise: how far, as a share of it, another run on this machine may find `ratio`; None after a single pass.
    against: opponent -> its time / this time: 1.3 is 1.3 times as fast as the opponent. against_noise: as ratio_noise.
    peak: FLOP/s that `threads` cores cannot exceed, one core's measured in the same rounds times `threads`.
    accuracy: on the test images, in [0, 1]. memory: bytes.
    emulated: a GPU's kernels, timed on the CPU. Such a row is compared with nothing, and no chart of speeds shows it.
    clock: "wall" for a clock of the host, "events" for the GPU's own.
    passes: how many processes, one after the other, measured it.
    """

    kind: str
    stage: str
    name: str
    dtype: str
    shape: tuple[int, ...]
    flops: int = 0
    measurement: Measurement | None = None
    reference: str = ""
    ratio: float | None = None
    skipped: str | None = None
    variant: str = ""
    part: str = ""
    bytes: int = 0
    samples: int = 0
    threads: int = 1
    ratio_noise: float | None = None
    against: Mapping[str, float] = field(default_factory=dict)
    against_noise: Mapping[str, float] = field(default_factory=dict)
    peak: float | None = None
    accuracy: float | None = None
    memory: int | None = None
    emulated: bool = False
    clock: str = "wall"
    passes: int = 1

    @property
    def key(self) -> tuple[Any, ...]:
        """The key that two rows of one thing share, in two passes or two runs."""
        what = (self.kind, self.stage, self.variant, self.name, self.part, self.dtype, tuple(self.shape))
        return (*what, self.threads, self.emulated)

    @property
    def seconds(self) -> float | None:
        """The median time of a call, in seconds."""
        return self.measurement.median if self.measurement else None

    @property
    def gflops(self) -> float | None:
        """10⁹ floating-point operations per second."""
        return self.flops / self.measurement.median / 1e9 if self.measurement and self.flops else None

    @property
    def gigabytes(self) -> float | None:
        """10⁹ bytes per second that had to be moved at least."""
        return self.bytes / self.measurement.median / 1e9 if self.measurement and self.bytes else None

    @property
    def intensity(self) -> float | None:
        """Arithmetic intensity: floating-point operations per byte that has to be moved at least."""
        return self.flops / self.bytes if self.flops and self.bytes else None

    @property
    def samples_per_second(self) -> float | None:
        """Images per second."""
        return self.samples / self.measurement.median if self.measurement and self.samples else None

    @property
    def share_of_peak(self) -> float | None:
        """The share of the most that `threads` cores can do, in [0, 1] up to the noise of both measurements."""
        return self.gflops * 1e9 / self.peak if self.gflops and self.peak else None

    @property
    def contender(self) -> str:
        """The contender and its way in words: 'stage 3 packed', 'stage 4 (emulated) fused', 'PyTorch'."""
        return f"{LIBRARIES.get(self.stage) or short_title(self.stage, self.emulated)} {self.variant}".rstrip()

    def as_dict(self) -> dict[str, Any]:
        """The row for the results document; times in seconds. What follows from the rest is written out for readers."""
        derived = ("gflops", "gigabytes", "intensity", "samples_per_second", "share_of_peak")
        return {**asdict(self), **{name: getattr(self, name) for name in derived}}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> BenchRow:
        """The row again, from `as_dict` and through JSON; what follows from the rest is worked out anew."""
        own: dict[str, Any] = {each.name: values[each.name] for each in fields(cls)}
        own["shape"] = tuple(own["shape"])
        if own["measurement"] is not None:
            own["measurement"] = Measurement(**own["measurement"])
        return cls(**own)


@dataclass(frozen=True)
class Curve:
    """One training, a value per epoch: of one stage or library, one network, one set of images.

    epochs: their numbers from 1. loss: mean training loss (nats). accuracy: on the test images, in [0, 1].
    seconds: of training alone, no evaluation, from the start to the end of that epoch.
    """

    stage: str
    network: str
    dataset: str
    epochs: Sequence[int]
    loss: Sequence[float]
    accuracy: Sequence[float]
    seconds: Sequence[float]
    threads: int = 1
    emulated: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The curve for the results document."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Curve:
        """The curve again, from `as_dict` and through JSON, which has no NaN and no infinity but as words."""
        return cls(**{**values, "loss": [float(value) for value in values["loss"]]})


def drawable(rows: Sequence[BenchRow], *, emulated: bool = False) -> list[BenchRow]:
    """The rows that a chart of speeds may show: those that were timed, and on what they are written for.

    emulated: True lets the emulator's through too, for a chart that says so beside each.
    """
    return [row for row in rows if row.measurement and (emulated or not row.emulated)]


def product_bytes(m: int, k: int, n: int, dtype: str) -> int:
    """The least that a product (m, k) times (k, n) must move: both operands read once, the result written once."""
    return (m * k + k * n + m * n) * {"float32": 4, "float64": 8}[dtype]
