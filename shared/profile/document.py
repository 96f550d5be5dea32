"""The results file of `groundup profile`. Its schema is profile.schema.json, JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from shared.profile.found import Profile
from shared.profile.roofs import Roofs

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


@cache
def schema() -> dict[str, Any]:
    """The format: JSON Schema, draft 2020-12, with "x-unit" beside what has a unit."""
    found: dict[str, Any] = json.loads(files(__package__).joinpath("profile.schema.json").read_bytes())
    return found
