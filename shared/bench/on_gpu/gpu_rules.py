"""What must stand in a GPU report so that its figures can be drawn: the file may be damaged, or come from a stranger.

check(document, path)    ValueError for the first thing that the figures cannot use
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.bench.records.schema import fault

MOST_ROWS, MOST_NETWORKS = 2000, 8
"""Rows of a part, and networks of the steps, each of which has a panel in its figure."""

OF_NETWORKS = ("fastest_pytorch", "networks")
"""The parts with steps of known networks, rows of the kind "step"; a figure takes the first of them that has some."""

_TEXT, _TRUTH = {"type": "string"}, {"type": "boolean"}
_COUNT = {"type": "integer", "minimum": 1, "maximum": 2**31}
_SECONDS = {"type": "number", "minimum": 1e-13, "maximum": 1e9}
_SHARE = {"type": "number", "minimum": 0, "maximum": 1e6}


def _object(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(fields), "properties": fields}


_OF_ROWS = {
    "ladder": _object(size=_COUNT, precision=_TEXT, rung=_TEXT, share_of_cublas={"anyOf": [_SHARE, {"type": "null"}]}),
    "steps": _object(
        network={"type": "array", "items": _COUNT},
        batch=_COUNT,
        who=_TEXT,
        resident=_TRUTH,
        against={
            "anyOf": [
                {"type": "object", "properties": {"eager": _SHARE, "graph": _SHARE}, "additionalProperties": False},
                {"type": "null"},
            ]
        },
        median=_SECONDS,
    ),
    "launches": _object(kind=_TEXT, host=_object(median=_SECONDS)),
    "training": _object(kind=_TEXT),
}
_EPOCH = _object(
    dataset=_TEXT,
    epoch=_COUNT,
    training_seconds={"type": "number", "minimum": 0, "maximum": 1e9},
    test_accuracy={"type": "number", "minimum": 0, "maximum": 1},
)
_KNOWN_STEP = _object(model=_TEXT, batch=_COUNT, who=_TEXT, precision=_TEXT, median=_SECONDS)
_CARDS = {"type": "array", "items": {"type": "object", "properties": {"driver": _TEXT}}}
_REPORT = _object(
    date=_TEXT,
    emulated=_TRUTH,
    parts={
        "type": "object",
        "additionalProperties": _object(rows={"type": "array", "items": {"type": "object"}}),
    },
) | {"additionalProperties": True}
_REPORT["properties"] |= {
    "device": {"anyOf": [{"type": "object", "properties": {"name": _TEXT, "cards": _CARDS}}, {"type": "null"}]},
    "versions": {"anyOf": [{"type": "object", "additionalProperties": _TEXT}, {"type": "null"}]},
}


def check(document: Mapping[str, Any], path: str) -> None:
    """Raise ValueError, with the file and the place in it, for what the figures of the report cannot use."""
    if wrong := fault(document, _REPORT):
        raise ValueError(f"{path}: {wrong}")
    for name, part in document["parts"].items():
        if len(part["rows"]) > MOST_ROWS:
            raise ValueError(f"{path}: parts.{name}.rows: expected at most {MOST_ROWS}, got {len(part['rows'])}")
        for at, row in enumerate(part["rows"]):
            rules = [_OF_ROWS[name]] if name in _OF_ROWS else []
            if name == "training" and row.get("kind") == "epoch":
                rules.append(_EPOCH)
            if name in OF_NETWORKS and row.get("kind") == "step":
                rules.append(_KNOWN_STEP)
            if wrong := next(filter(None, (fault(row, rule) for rule in rules)), None):
                raise ValueError(f"{path}: parts.{name}.rows[{at}].{wrong}")
    rows = document["parts"].get("steps", {"rows": []})["rows"]
    if len({tuple(row["network"]) for row in rows}) > MOST_NETWORKS:
        raise ValueError(f"{path}: parts.steps: expected at most {MOST_NETWORKS} networks")
    for name in OF_NETWORKS:
        rows_of_part = document["parts"].get(name, {"rows": []})["rows"]
        if len({row["model"] for row in rows_of_part if row.get("kind") == "step"}) > MOST_NETWORKS:
            raise ValueError(f"{path}: parts.{name}: expected at most {MOST_NETWORKS} networks")
    if any(not row["network"] for row in rows):
        raise ValueError(f"{path}: parts.steps: expected the sizes of a network, got []")
