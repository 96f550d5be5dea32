"""The results file of `groundup race`, read again: its format is race.schema.json beside this file.

results_of(document)    what the race measured, as the rows and curves that a results file of `groundup bench` has
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from itertools import accumulate
from typing import Any

from shared.bench.measuring.rows import BenchRow, Curve
from shared.bench.measuring.timing import summarise
from shared.bench.records import schema as bench_schema
from shared.bench.records.document import Results, check_clock, row_of
from shared.bench.records.schema import environment_fault, fault, shown

KIND = "groundup race"


@cache
def schema() -> dict[str, Any]:
    """The format as JSON Schema, draft 2020-12, with the rules that it takes from the results of `groundup bench`."""
    found: dict[str, Any] = json.loads(files(__package__).joinpath("race.schema.json").read_bytes())
    return {**found, "$defs": bench_schema.schema()["$defs"]}


def results_of(document: Mapping[str, Any], path: str) -> Results:
    """The ladders, an epoch's time and accuracy for each stage, and the curves of their trainings.

    path: what the error calls the file
    Raises ValueError, with the file and what is wrong with it in one sentence, for what `groundup race` did not write.
    """
    if document.get("kind") != KIND:
        got = shown(document.get("kind"))
        raise ValueError(f"{path} is no results file of `groundup race`: expected kind {KIND!r}, got {got}")
    if wrong := fault(document, schema()) or environment_fault(document["environment"]):
        raise ValueError(f"{path}: {wrong}")
    for at, stage in enumerate(document["stages"]):
        if not stage["epochs"]:
            raise ValueError(f"{path}: stages[{at}].epochs: expected at least one epoch, got []")
        check_clock([epoch["seconds"] for epoch in stage["epochs"]], f"{path}: stages[{at}].epochs")
    ladders = [row_of(row, f"{path}: ladders[{at}]") for at, row in enumerate(document["ladders"])]
    return Results(
        rows=[*ladders, *(_epoch(stage, document) for stage in document["stages"])],
        curves=[_curve(stage, document) for stage in document["stages"]],
        environment=document["environment"],
        unavailable=document["unavailable"],
        command=KIND,
    )


def _network(document: Mapping[str, Any]) -> str:
    return "-".join(map(str, document["network"]))


def _epoch(raced: Mapping[str, Any], document: Mapping[str, Any]) -> BenchRow:
    settings = document["settings"]
    images = settings["dataset"] + (f", {settings['limit']} images" if settings["limit"] else "")
    return BenchRow(
        "epoch",
        raced["stage"],
        f"{_network(document)}, batch {settings['batch_size']}, {images}",
        settings["dtype"],
        tuple(document["network"]),
        measurement=summarise([each["seconds"] for each in raced["epochs"]]),
        accuracy=raced["test_accuracy"],
        emulated=raced["emulated"],
    )


def _curve(raced: Mapping[str, Any], document: Mapping[str, Any]) -> Curve:
    epochs = raced["epochs"]
    return Curve(
        raced["stage"],
        _network(document),
        document["settings"]["dataset"],
        [each["epoch"] for each in epochs],
        [float(each["train_loss"]) for each in epochs],
        [each["test_accuracy"] or 0.0 for each in epochs],
        list(accumulate(each["seconds"] for each in epochs)),
        emulated=raced["emulated"],
    )
