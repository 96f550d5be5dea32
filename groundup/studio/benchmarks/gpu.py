"""A GPU report as rows and curves: the products, the training steps and the trainings that it measured.

of_report(document, name)    the Results in a gpu_report.json, in any version of its format
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shared.bench.measuring.rows import BenchRow, Curve
from shared.bench.measuring.timing import Measurement
from shared.bench.on_gpu import gpu_record
from shared.bench.records.document import Results
from shared.bench.records.schema import environment_fault, shown
from shared.contract import STAGES

STAGE = STAGES[3]

VERSIONS = (1, gpu_record.SCHEMA)
"""Of the format."""


def of_report(document: Mapping[str, Any], name: str) -> Results:
    """What a GPU report measured. Raises ValueError, with the file and the place, for what is no such report."""
    if document.get("schema") not in VERSIONS:
        raise ValueError(
            f"{name}: schema: expected {' or '.join(map(str, VERSIONS))}, got {shown(document.get('schema'))}"
        )
    emulated = document.get("emulated") is True
    parts = {part: _rows_of(document, part, name) for part in ("ladder", "steps", "training")}
    steps = _each(parts["steps"], lambda row: _step(row, emulated), f"{name}: parts.steps.rows")
    ladder = _each(parts["ladder"], lambda row: _product(row, emulated), f"{name}: parts.ladder.rows")
    facts = document.get("environment")
    if isinstance(facts, dict) and (wrong := environment_fault(facts)):
        raise ValueError(f"{name}: {wrong}")
    return Results(
        rows=[*ladder, *steps],
        curves=_curves(parts["training"], emulated, f"{name}: parts.training.rows"),
        environment=facts if isinstance(facts, dict) else {},
        complete=document.get("complete") is True,
    )


def _rows_of(document: Mapping[str, Any], part: str, name: str) -> list[Any]:
    """The rows of a part; none where the report lacks it."""
    parts = document.get("parts")
    if not isinstance(parts, dict):
        raise ValueError(f"{name}: parts: expected an object, got {shown(parts)}")
    found = parts.get(part, {"rows": []})
    rows = found.get("rows") if isinstance(found, dict) else None
    if not isinstance(rows, list):
        raise ValueError(f"{name}: parts.{part}.rows: expected a list, got {shown(rows)}")
    return rows


def _each(rows: Sequence[Any], made: Callable[[Any], Any], place: str) -> list[Any]:
    """A value for each row; where one cannot be made, a ValueError says in which row and why."""
    found = []
    for at, row in enumerate(rows):
        try:
            found.append(made(row))
        except KeyError as error:
            raise ValueError(f"{place}[{at}].{error.args[0]}: is missing") from None
        except (TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"{place}[{at}]: {error}") from None
    return found


def _product(row: Mapping[str, Any], emulated: bool) -> BenchRow:
    size, precision, rung = int(row["size"]), str(row["precision"]), str(row["rung"])
    cublas = rung == "cuBLAS"
    against = {} if cublas else {"cublas": _positive(row, "share_of_cublas")}
    return BenchRow(
        "ladder",
        "cublas" if cublas else STAGE,
        rung if not cublas else "",
        precision,
        (size, size, size),
        flops=2 * size**3,
        measurement=_measurement(row),
        against=against,
        emulated=emulated and not cublas,
        clock="events",
    )


def _step(row: Mapping[str, Any], emulated: bool) -> BenchRow:
    who, sizes = str(row["who"]), [int(each) for each in row["network"]]
    library = who.startswith("PyTorch ")
    against = row.get("against", {})
    return BenchRow(
        "step",
        "pytorch" if library else STAGE,
        f"{'-'.join(map(str, sizes))}, batch {int(row['batch'])}",
        "float32",
        tuple(sizes),
        measurement=_measurement(row),
        variant=who.removeprefix("PyTorch "),
        against={f"PyTorch {name}": float(factor) for name, factor in against.items()},
        emulated=emulated and not library,
    )


def _measurement(row: Mapping[str, Any]) -> Measurement:
    """The times of a row; where only the median was kept, it stands for the quartiles, too."""
    median = _positive(row, "median")
    lower, upper, fastest = (_positive(row, name) if name in row else median for name in ("lower", "upper", "fastest"))
    return Measurement(median, lower, upper, fastest, int(row.get("samples", 1)), int(row.get("calls", 1)))


def _positive(row: Mapping[str, Any], name: str) -> float:
    value = row[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ValueError(f"{name}: expected a number above 0, got {shown(value)}")
    return float(value)


def _curves(rows: Sequence[Any], emulated: bool, place: str) -> list[Curve]:
    """A curve for each data set. Its network stands in the row of kind "summary"."""
    epochs: dict[str, list[tuple[int, float, float, float]]] = {}
    networks: dict[str, str] = {}

    def read(row: Mapping[str, Any]) -> None:
        dataset = str(row["dataset"])
        if row["kind"] == "summary":
            networks[dataset] = "-".join(str(int(each)) for each in row["network"])
        elif row["kind"] == "epoch":
            values = (int(row["epoch"]), float(row["train_loss"]), float(row["test_accuracy"]))
            epochs.setdefault(dataset, []).append((*values, _positive(row, "training_seconds")))

    _each(rows, read, place)
    found = []
    for dataset, values in epochs.items():
        numbers, loss, accuracy, seconds = (list(each) for each in zip(*values, strict=True))
        network = networks.get(dataset, "a network")
        found.append(Curve(STAGE, network, dataset, numbers, loss, accuracy, seconds, emulated=emulated))
    return found
