"""The results file of `groundup profile`. Its schema is profile.schema.json, JSON Schema.

as_document(results)    for `shared.machine.results.write_json`
results_of(document)    the same Results again, or a ValueError that names what is wrong and where
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from shared.bench.records.schema import environment_fault, fault, shown
from shared.profile.roofs import Roofs
from shared.profile.step_profile import Profile

KIND = "groundup profile"
SCHEMA = 1


@dataclass(frozen=True)
class Results:
    """What one run of `groundup profile` measured. unavailable: stage -> why it was not profiled"""

    profiles: Sequence[Profile]
    roofs: Sequence[Roofs]
    environment: Mapping[str, Any]
    command: str = ""
    unavailable: Mapping[str, str] = field(default_factory=dict)


def as_document(results: Results) -> dict[str, Any]:
    """The results as the file holds them; times in seconds."""
    return {
        "schema": SCHEMA,
        "kind": KIND,
        "command": results.command,
        "environment": dict(results.environment),
        "unavailable": dict(results.unavailable),
        "roofs": [each.as_dict() for each in results.roofs],
        "profiles": [each.as_dict() for each in results.profiles],
    }


def results_of(document: Mapping[str, Any], path: str) -> Results:
    """The Results in a document that was read from a file.

    path: what the error calls the file
    Raises ValueError, with the file and what is wrong with it in one sentence, for any other document.
    """
    if document.get("kind") != KIND:
        got = shown(document.get("kind"))
        raise ValueError(f"{path} is no results file of `groundup profile`: expected kind {KIND!r}, got {got}")
    if wrong := fault(document, schema()) or environment_fault(document["environment"]):
        raise ValueError(f"{path}: {wrong}")
    return Results(
        profiles=[_profile(each, f"{path}: profiles[{at}]") for at, each in enumerate(document["profiles"])],
        roofs=[_roofs(each, f"{path}: roofs[{at}]") for at, each in enumerate(document["roofs"])],
        environment=document["environment"],
        command=document["command"],
        unavailable=document["unavailable"],
    )


def _profile(saved: Mapping[str, Any], where: str) -> Profile:
    """A profile. The schema can neither count the numbers of a list nor forbid a step that took no time."""
    operations, spans = saved["operations"], saved["timeline"]["spans"]
    if len(spans) != len(operations):
        raise ValueError(
            f"{where}.timeline.spans: expected one for each of {len(operations)} operations, got {len(spans)}"
        )
    _check_pairs(spans, f"{where}.timeline.spans")
    if not saved["step"]["median"] > 0:
        raise ValueError(f"{where}.step.median: expected more than 0 seconds, got {shown(saved['step']['median'])}")
    return Profile.from_dict(saved)


def _roofs(saved: Mapping[str, Any], where: str) -> Roofs:
    for name in ("bandwidth", "bandwidth_of_one"):
        _check_pairs(saved[name], f"{where}.{name}")
    return Roofs.from_dict(saved)


def _check_pairs(found: Sequence[Sequence[Any]], where: str) -> None:
    """Raises ValueError if a list holds anything but pairs."""
    for at, each in enumerate(found):
        if len(each) != 2:
            raise ValueError(f"{where}[{at}]: expected two numbers, got {shown(each)}")


@cache
def schema() -> dict[str, Any]:
    """The format: JSON Schema, draft 2020-12, with "x-unit" beside what has a unit."""
    found: dict[str, Any] = json.loads(files(__package__).joinpath("profile.schema.json").read_bytes())
    return found
