"""The results file of `groundup bench`: what is in it, how it is written, and how it is read again.

    as_document(results)   for `shared.machine.results.write_json`
    load(path)             the same Results again, or a ValueError that names what is wrong and where
    results_of(document)   the same, of a document that was read already

The format is written down once, in results.schema.json beside this file: `load` checks by it, any other JSON Schema
validator can, and docs/benchmarks/schema.md is made from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise
from pathlib import Path
from typing import Any

from shared.bench.measuring.rows import BenchRow, Curve
from shared.bench.measuring.timing import Measurement
from shared.bench.records.schema import fault, shown
from shared.machine import regular, strict_json

SHORTEST, LONGEST = 1e-13, 1e9
"""Seconds of a call that a file may state: less than any clock tells, and thirty years."""

DIMENSIONS = {"ladder": 3, "product": 3, "integer": 3, "bandwidth": 1, "convolution": 7}
"""Kind of a row -> how many sizes its shape has, of the kinds in which a size has a meaning of its own."""

ROUNDED = 1e-9
"""By how much, relatively, rounding may put one quantile before another."""

MOST_BYTES, MOST_VALUES = 16 * 2**20, 300_000
"""Of a results file; one with all that groundup can measure has a twentieth of it."""

SCHEMA = 3
KIND = "groundup bench"
_OTHERS = {
    "groundup race": "a race's results: its charts lie beside it, and `groundup race` draws them again",
    "groundup profile": "where the time of a training step went; its charts lie beside it",
    "groundup doctor": "what `groundup doctor` found, and holds no measurement",
}
"""Kinds of files that groundup writes too -> what a reader must know who took one for a benchmark's."""


@dataclass(frozen=True)
class Results:
    """What one run measured.

    rows: merged over the passes. curves: the trainings.
    environment: `shared.machine.environment.environment()` and "threads", "pytorch" (a version or None), "pinned" (the
    cores     to which the process was bound, or None).
    complete: False after an interrupt. quick: whether less was asked for. passes: processes that measured everything.
    unavailable: what could not be measured -> why.
    predictions: {"question", "unit", "guess", "measured"} each; the guess may be None.
    command: what was typed.
    """

    rows: Sequence[BenchRow]
    curves: Sequence[Curve]
    environment: Mapping[str, Any]
    complete: bool = True
    quick: bool = False
    passes: int = 1
    unavailable: Mapping[str, str] = field(default_factory=dict)
    predictions: Sequence[Mapping[str, Any]] = ()
    command: str = ""


def as_document(results: Results) -> dict[str, Any]:
    """The results as the file holds them; times in seconds."""
    return {
        "schema": SCHEMA,
        "kind": KIND,
        "complete": results.complete,
        "quick": results.quick,
        "passes": results.passes,
        "command": results.command,
        "environment": dict(results.environment),
        "unavailable": dict(results.unavailable),
        "predictions": [dict(each) for each in results.predictions],
        "rows": [row.as_dict() for row in results.rows],
        "curves": [curve.as_dict() for curve in results.curves],
    }


def load(path: Path) -> Results:
    """Read what `write_json(path, as_document(results))` wrote.

    Raises ValueError, with the file and what is wrong with it in one sentence, for anything else; OSError where the
    file cannot be read.
    """
    return results_of(read_json(path), str(path))


def results_of(document: Mapping[str, Any], path: str) -> Results:
    """The Results in a document. Raises ValueError as `load` does. path: what the error calls the file"""
    kind, version = document.get("kind"), document.get("schema")
    if isinstance(kind, str) and kind in _OTHERS:
        raise ValueError(f"{path} is {_OTHERS[kind]}; expected a results file of `groundup bench`")
    if kind != KIND:
        raise ValueError(f"{path} is no results file of `groundup bench`: expected kind {KIND!r}, got {shown(kind)}")
    if not isinstance(version, int) or isinstance(version, bool):
        raise ValueError(f"{path}: schema: expected the format's version, a whole number, got {shown(version)}")
    if version != SCHEMA:
        remedy = "measure again with `groundup bench`" if version < SCHEMA else "it needs another version of groundup"
        raise ValueError(f"{path} has version {shown(version)} of the format and this reads {SCHEMA}: {remedy}")
    if document.get("environment") == {}:
        raise ValueError(f"{path} is of a run that was interrupted before it measured anything: measure again")
    if wrong := fault(document):
        raise ValueError(f"{path}: {wrong}")
    return Results(
        rows=[row_of(row, f"{path}: rows[{at}]") for at, row in enumerate(document["rows"])],
        curves=[_curve(curve, f"{path}: curves[{at}]") for at, curve in enumerate(document["curves"])],
        environment=document["environment"],
        complete=document["complete"],
        quick=document["quick"],
        passes=document["passes"],
        unavailable=document["unavailable"],
        predictions=document["predictions"],
        command=document["command"],
    )


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file; ValueError where there is none, OSError where the file cannot be read."""
    try:
        text = regular.read(path, MOST_BYTES)
    except OSError as error:
        raise OSError(f"cannot read {path}: {error.strerror or error}") from error
    return object_of(text, str(path))


def object_of(text: bytes, path: str) -> dict[str, Any]:
    """The JSON object in a text; ValueError where there is none. path: what the error calls the file"""
    try:
        document = strict_json.loads(text, MOST_VALUES)
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise ValueError(f"{path} is no results file: expected a JSON object, got {shown(document)}")
    return document


def row_of(saved: Mapping[str, Any], where: str) -> BenchRow:
    """A row that keeps to the schema, as a BenchRow. Raises ValueError, with `where`, for times that no clock has."""
    own = {each.name: saved[each.name] for each in fields(BenchRow)}
    if len(own["shape"]) != (wanted := DIMENSIONS.get(own["kind"], len(own["shape"]))):
        raise ValueError(f"{where}.shape: expected {wanted} sizes of a {own['kind']}, got {len(own['shape'])}")
    quotients = {"ratio": own["ratio"], **{f"against.{who}": factor for who, factor in own["against"].items()}}
    for name, quotient in quotients.items():
        if quotient and not SHORTEST / LONGEST <= quotient <= LONGEST / SHORTEST:
            raise ValueError(f"{where}.{name}: expected the quotient of two times, got {shown(quotient)}")
    measurement = _measurement(own["measurement"], f"{where}.measurement") if own["measurement"] else None
    return BenchRow(**(own | {"measurement": measurement, "shape": tuple(own["shape"])}))


def _measurement(saved: Mapping[str, Any], where: str) -> Measurement:
    """Times that a clock can have measured. The schema cannot compare two numbers with each other."""
    order = ("fastest", "lower", "median", "upper")
    for name in order:
        check_clock([saved[name]], f"{where}.{name}")
    for one, other in pairwise(order):
        if saved[one] > saved[other] * (1 + ROUNDED):
            raise ValueError(
                f"{where}: expected {one} to be at most {other}, got {shown(saved[one])} and {shown(saved[other])}"
            )
    return Measurement(**saved)


def check_clock(times: Sequence[float], where: str) -> None:
    """Raise ValueError, with `where`, for seconds that no clock tells."""
    for seconds in times:
        if not SHORTEST <= seconds <= LONGEST:
            raise ValueError(f"{where}: expected {SHORTEST:g} to {LONGEST:g} seconds, got {shown(seconds)}")


def _curve(saved: Mapping[str, Any], where: str) -> Curve:
    length = len(saved["epochs"])
    for name in ("loss", "accuracy", "seconds"):
        if len(saved[name]) != length:
            raise ValueError(f"{where}.{name}: expected a value for each of {length} epochs, got {len(saved[name])}")
    return Curve(**{**saved, "loss": [float(value) for value in saved["loss"]]})
