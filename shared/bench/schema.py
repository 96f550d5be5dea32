"""The format of the results file as JSON Schema, and the first thing in a document that breaks it, as a sentence.

    schema()           results.schema.json
    fault(document)    what is wrong, where, and what was expected there

The `jsonschema` package validates; here its findings are put into the words of this project's other errors.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match

_TYPES = {"object": "an object", "array": "a list", "string": "text", "integer": "a whole number"}
_TYPES |= {"number": "a number", "boolean": "true or false", "null": "null"}
_BOUNDS = {"minimum": "at least", "exclusiveMinimum": "more than", "maximum": "at most"}


@cache
def schema() -> dict[str, Any]:
    """The format: JSON Schema, draft 2020-12, with "x-unit" beside what has a unit."""
    found: dict[str, Any] = json.loads(files(__package__).joinpath("results.schema.json").read_bytes())
    return found


def fault(document: Any) -> str | None:
    """What is wrong with a document: 'rows[3].measurement.median: expected a number, got "fast"'; None for nothing."""
    if (place := _beyond_floats(document)) is not None:
        return f"{place}: expected a number below 1.8e308"
    error = best_match(Draft202012Validator(schema()).iter_errors(document))
    return None if error is None else _told(error)


def shown(value: Any) -> str:
    """A JSON value for an error's sentence: as JSON, and cut where it is long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _told(error: ValidationError) -> str:
    place = _place(error.absolute_path)
    if error.validator == "required":
        missing = next(name for name in error.validator_value if name not in error.instance)
        return f"{place}.{missing}: is missing".lstrip(".")
    if error.validator == "additionalProperties" and error.validator_value is False:
        unknown = next(name for name in error.instance if name not in error.schema["properties"])
        return f"{place}.{unknown}: is no field of this format".lstrip(".")
    return f"{place}: expected {_wanted(error)}, got {shown(error.instance)}".removeprefix(": ")


def _wanted(error: ValidationError) -> str:
    """What the rule that was broken asks for; of alternatives, what each of them asks for at that place."""
    value = error.validator_value
    if error.validator == "anyOf":
        return " or ".join(dict.fromkeys(_wanted(each) for each in error.context or () if not each.relative_path))
    if error.validator == "type":
        return " or ".join(_TYPES[name] for name in ([value] if isinstance(value, str) else value))
    if error.validator == "enum":
        return f"one of {', '.join(value)}"
    if error.validator == "const":
        return shown(value)
    return f"{_BOUNDS[str(error.validator)]} {value}"


def _place(path: Iterable[str | int]) -> str:
    """rows, 3, ratio -> 'rows[3].ratio'."""
    return "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in path).lstrip(".")


def _beyond_floats(value: Any, path: tuple[str | int, ...] = ()) -> str | None:
    """Where a document has a number like 1e999, which JSON can write and no float holds; None for nowhere."""
    if isinstance(value, float) and not math.isfinite(value):
        return _place(path)
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return next((found for name, each in inside if (found := _beyond_floats(each, (*path, name)))), None)
