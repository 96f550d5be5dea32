"""What the page Benchmarks shows of a file: its points, its curves, and what they can be filtered by.

document(results, name)    all of it, ready for JSON; numbers in SI units, and each beside them as text for people
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from groundup.studio.benchmarks.reading import PROFILE
from shared.bench.measuring.rows import LIBRARIES, BenchRow, Curve
from shared.bench.records.compare import title
from shared.bench.records.document import Results
from shared.contract import STAGE_TITLES, STAGES, short_title
from shared.machine.environment import describe, emulation
from shared.numbers import duration, noise_text, percent, plural, quantity, share, size_of, three_digits

KIND_TITLES = {
    "ladder": "Ladders of the matrix product",
    "product": "Products of a network",
    "convolution": "Convolutions of a network",
    "op": "Operations",
    "step": "Training steps",
    PROFILE: "Inside a training step",
    "part": "Parts of a training step, each alone",
    "inference": "Predictions",
    "epoch": "An epoch of training",
    "target": "Training until an accuracy is reached",
    "memory": "Memory held at most",
    "phase": "Compiling, copying, computing",
    "peak": "The peak of a core",
    "bandwidth": "Bandwidth of memory",
}
"""Kind of a row -> how the page calls it, in the page's order."""

Value = tuple[str, str, str, Callable[[BenchRow], float | None], Callable[[float], str], bool]

VALUES: Sequence[Value] = (
    ("seconds", "time", "s", lambda row: row.seconds, duration, True),
    (
        "flops",
        "operations a second",
        "FLOP/s",
        lambda row: row.gflops and 1e9 * row.gflops,
        lambda value: quantity(value, "FLOP/s"),
        True,
    ),
    ("peak", "share of the peak", "", lambda row: row.share_of_peak, share, True),
    (
        "bandwidth",
        "bytes a second",
        "B/s",
        lambda row: row.gigabytes and 1e9 * row.gigabytes,
        lambda value: quantity(value, "B/s"),
        True,
    ),
    ("ratio", "time as a multiple of the reference", "", lambda row: row.ratio, three_digits, True),
    ("images", "images a second", "1/s", lambda row: row.samples_per_second, three_digits, True),
    ("accuracy", "test accuracy", "", lambda row: row.accuracy, percent, False),
    ("memory", "memory", "B", lambda row: row.memory, size_of, True),
)
"""(name, title, unit, the number of a row, the number as text, whether its axis is logarithmic)"""


def document(results: Results, name: str) -> dict[str, Any]:
    """What the page shows of a file; name: of the file."""
    points = [point(row) for row in results.rows]
    kinds = {entry["kind"] for entry in points}
    facts = results.environment
    notes = [f"Not measured: {why if part in why else f'{part}: {why}'}" for part, why in results.unavailable.items()]
    if not results.complete:
        notes.insert(0, "The run was interrupted: some numbers rest on fewer passes, others are missing.")
    if warning := emulation(facts) if any(row.emulated for row in results.rows) else None:
        notes.insert(0, f"{warning[0].upper()}{warning[1:]}.")
    return {
        "name": name,
        "origin": origin(facts),
        "command": results.command,
        "passes": plural(results.passes, "pass", "passes"),
        "notes": notes,
        "points": points,
        "curves": [curve(training) for training in results.curves],
        "kinds": [{"name": kind, "title": text} for kind, text in KIND_TITLES.items() if kind in kinds],
        "stages": stages(results),
        "values": [{"name": name, "title": text, "unit": unit, "log": log} for name, text, unit, _, _, log in VALUES],
        "predictions": [dict(prediction) for prediction in results.predictions],
    }


def origin(facts: Mapping[str, Any]) -> str:
    """The machine and the day in one line, as far as the file tells them."""
    try:
        return describe(facts)
    except (KeyError, TypeError):  # a profile's file may hold any facts
        return " · ".join(str(facts[name]) for name in ("cpu", "python", "numpy", "date") if facts.get(name))


def stages(results: Results) -> list[dict[str, str]]:
    """The contenders: the stages in their order, then the libraries."""
    found = {row.stage for row in results.rows} | {curve.stage for curve in results.curves}
    names = {**STAGE_TITLES, **LIBRARIES}
    return [{"name": name, "title": text} for name, text in names.items() if name in found]


def point(row: BenchRow) -> dict[str, Any]:
    """A row for the page."""
    values = {name: number(row) for name, _, _, number, _, _ in VALUES}
    texts = {name: text(found) for name, _, _, _, text, _ in VALUES if (found := values[name]) is not None}
    measured = row.measurement
    return {
        **labels(row),
        "title": title(row),
        "values": values,
        "texts": texts,
        "lower": measured and measured.lower,
        "upper": measured and measured.upper,
        "skipped": row.skipped,
        "more": more(row),
    }


def labels(row: BenchRow) -> dict[str, Any]:
    """The values by which a row is filtered, and its name."""
    return {
        "kind": row.kind,
        "stage": row.stage,
        "colour": f"stage{STAGES.index(row.stage) + 1}" if row.stage in STAGES else "ink",
        "who": who(row),
        "operation": operation(row),
        "size": size(row),
        "number": row.shape[0] if row.kind in ("ladder", "bandwidth") else None,
        "dtype": row.dtype,
        "emulated": row.emulated,
    }


def who(row: BenchRow) -> str:
    """The contender of a row; of a ladder also the rung, of bandwidth the threads."""
    if row.kind == "ladder":
        return f"{row.contender} {row.name}"
    return f"{row.contender}, {plural(row.threads, 'thread')}" if row.kind == "bandwidth" else row.contender


def operation(row: BenchRow) -> str:
    """The operation of a row, where a kind of rows has several operations."""
    if row.kind == "op":
        return f"{row.name} {row.part}".strip()
    return {"ladder": "matrix product", "product": "matrix product"}.get(row.kind, row.part)


def size(row: BenchRow) -> str:
    """The size of what a row measured."""
    if row.kind == "bandwidth":
        return size_of(row.shape[0])
    if row.kind == "ladder":
        return f"{row.shape[0]:,}"
    return " by ".join(f"{each:,}" for each in row.shape) if row.kind == "op" else row.name


def more(row: BenchRow) -> list[str]:
    """Further lines about a row, for a closer look."""
    lines = []
    if row.measurement:
        lower, upper = row.measurement.lower, row.measurement.upper
        quartiles = f", quartiles {duration(lower)} and {duration(upper)}" if lower < upper else ""
        lines.append(f"median {duration(row.measurement.median)}{quartiles}")
    if row.ratio:
        lines.append(f"{three_digits(row.ratio)}{_noise(row.ratio_noise)} times {row.reference}")
    for opponent, factor in row.against.items():
        noise = _noise(row.against_noise.get(opponent))
        lines.append(f"{three_digits(factor)}{noise} times as fast as {_opponent(opponent)}")
    if row.share_of_peak:
        lines.append(f"{share(row.share_of_peak)} of the peak")
    if row.threads > 1:
        lines.append(plural(row.threads, "thread"))
    if row.emulated:
        lines.append("emulated on the CPU: not the time of a GPU")
    return lines


def _noise(noise: float | None) -> str:
    return "" if noise is None else f" ± {noise_text(noise)}"


def _opponent(name: str) -> str:
    return LIBRARIES.get(name) or (short_title(name, False) if name in STAGES else name)


def curve(training: Curve) -> dict[str, Any]:
    """A training's curve for the page."""
    emulated = " (emulated)" if training.emulated else ""
    named = STAGE_TITLES.get(training.stage) or LIBRARIES.get(training.stage, training.stage)
    return {
        "stage": training.stage,
        "colour": f"stage{STAGES.index(training.stage) + 1}" if training.stage in STAGES else "ink",
        "who": f"{named}{emulated}",
        "of": f"{training.network} on {training.dataset}",
        "epochs": list(training.epochs),
        "seconds": list(training.seconds),
        "loss": list(training.loss),
        "accuracy": list(training.accuracy),
    }
