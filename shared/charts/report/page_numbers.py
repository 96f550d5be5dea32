"""The few numbers at the head of the page: factors and shares, which say more than times about another machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from shared.bench.measuring.rows import BenchRow, drawable
from shared.bench.records.document import Results
from shared.bench.records.trust import spoilt, steady
from shared.charts.drawing import contenders as who
from shared.charts.drawing.words import as_fast, duration, share, three_digits

PYTHON_STAGE = who.ORDER[0]


class Headline(NamedTuple):
    """title: such as 'C beside NumPy'. value: '12 times as fast'. about: what was measured. noise: how far another run
    may find it, as a share; None if it was measured in one pass."""

    title: str
    value: str
    about: str
    noise: float | None = None


def headlines(results: Results) -> list[Headline]:
    """The headlines for which enough was measured; none where something spoilt the run. Left out are emulated rows and
    those too unsteady to rest a headline on."""
    rows = [] if spoilt(results) else [row for row in drawable(results.rows) if steady(row)]
    asked: Sequence[Callable[[list[BenchRow]], Headline | None]] = (
        _numpy_beside_python,
        _c_beside_numpy,
        _c_beside_pytorch,
        _best_product,
        _gpu_ladder,
        _gpu_step,
        _target,
        _throughput,
    )
    return [found for ask in asked if (found := ask(rows))]


def _numpy_beside_python(rows: list[BenchRow]) -> Headline | None:
    for kind in ("epoch", "step"):
        for row in rows:
            if row.kind == kind and row.stage == PYTHON_STAGE and who.NUMPY_STAGE in row.against:
                factor, noise = 1 / row.against[who.NUMPY_STAGE], row.against_noise.get(who.NUMPY_STAGE)
                return _beside(who.NUMPY_STAGE, PYTHON_STAGE, factor, noise, row)
    return None


def _c_beside_numpy(rows: list[BenchRow]) -> Headline | None:
    return _opponent(rows, ("epoch", "step"), who.C_STAGE, who.NUMPY_STAGE)


def _c_beside_pytorch(rows: list[BenchRow]) -> Headline | None:
    return _opponent(rows, ("step", "product"), who.C_STAGE, "pytorch")


def _gpu_step(rows: list[BenchRow]) -> Headline | None:
    return _opponent(rows, ("step", "epoch"), who.GPU_STAGE, "pytorch")


def _gpu_ladder(rows: list[BenchRow]) -> Headline | None:
    best = _fastest_product(row for row in rows if row.stage == who.GPU_STAGE and row.ratio)
    if best is None or best.ratio is None:
        return None
    about = f"{_product(best)}, beside {best.reference}"
    return Headline("CUDA's best product", f"{share(1 / best.ratio)} of the library", about, best.ratio_noise)


def _best_product(rows: list[BenchRow]) -> Headline | None:
    best = _fastest_product(row for row in rows if row.stage == who.C_STAGE and row.share_of_peak)
    if best is None or best.share_of_peak is None:
        return None
    about = f"{_product(best)} on {'one core' if best.threads == 1 else f'{best.threads} cores'}"
    return Headline("C's best product", f"{share(best.share_of_peak)} of the peak", about)


def _target(rows: list[BenchRow]) -> Headline | None:
    targets = [row for row in rows if row.kind == "target"]
    hardest = max((row.accuracy or 0.0 for row in targets), default=0.0)
    best = _fastest(row for row in targets if row.accuracy == hardest)
    if best is None or best.seconds is None:
        return None
    return Headline(best.name, f"after {duration(best.seconds)}", f"of training: {best.contender}, the fastest")


def _throughput(rows: list[BenchRow]) -> Headline | None:
    mine = [row for row in rows if row.kind == "inference" and row.samples_per_second]
    best = max(mine, key=lambda row: row.samples_per_second or 0.0, default=None)
    if best is None or best.samples_per_second is None:
        return None
    value = f"{three_digits(best.samples_per_second)} images a second"
    return Headline("Predicting", value, f"{best.contender}, the fastest; {best.name}")


def _opponent(rows: list[BenchRow], kinds: Sequence[str], stage: str, opponent: str) -> Headline | None:
    """The fastest way of `stage` at the first of these kinds that was measured beside the opponent; float32 first."""
    for kind in kinds:
        mine = [row for row in rows if row.kind == kind and row.stage == stage and opponent in row.against]
        mine = [row for row in mine if row.dtype == "float32"] or mine
        best = _fastest(row for row in mine if row.name == mine[0].name)
        if best is not None:
            return _beside(stage, opponent, best.against[opponent], best.against_noise.get(opponent), best)
    return None


def _beside(one: str, other: str, factor: float, noise: float | None, row: BenchRow) -> Headline:
    what = {"epoch": "one epoch", "step": "one training step", "product": "one product"}[row.kind]
    return Headline(
        f"{who.name(one)} beside {who.name(other)}", as_fast(factor), f"{what}, {row.name}, {row.dtype}", noise
    )


def _fastest(rows: Iterable[BenchRow]) -> BenchRow | None:
    return min(rows, key=lambda row: row.seconds or 0.0, default=None)


def _fastest_product(rows: Iterable[BenchRow]) -> BenchRow | None:
    """Of square products in float32 the one at the most GFLOP/s."""
    mine = [row for row in rows if row.kind == "ladder" and row.dtype == "float32"]
    return max(mine, key=lambda row: row.gflops or 0.0, default=None)


def _product(row: BenchRow) -> str:
    return f"{row.name}, {row.shape[0]:,} by {row.shape[0]:,}, {row.dtype}: {three_digits(row.gflops or 0.0)} GFLOP/s"
