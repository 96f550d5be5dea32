"""The format of the results file as JSON Schema, and the first thing in a document that breaks it, as a sentence.

    schema()                  results.schema.json
    fault(document, rules)    what is wrong, where, and what was expected there; rules: another schema, as a profile's
    environment_fault(facts)  the same for the facts of the machine, which files of every kind have

`fault` follows the published schema, as far as that goes: the keywords it knows are those that the schema uses. So the
format is described in one place, and reading a file needs no validator to be installed; the tests set both beside the
`jsonschema` package.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

_TYPES = {"object": "an object", "array": "a list", "string": "text", "integer": "a whole number"}
_TYPES |= {"number": "a number", "boolean": "true or false", "null": "null"}

_BOUNDS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "minimum": ("at least", lambda value, bound: value >= bound),
    "exclusiveMinimum": ("more than", lambda value, bound: value > bound),
    "maximum": ("at most", lambda value, bound: value <= bound),
}
LARGEST = 1.7976931348623157e308
"""Of a float. JSON can write larger numbers."""

Rule = Mapping[str, Any]


@cache
def schema() -> dict[str, Any]:
    """The format: JSON Schema, draft 2020-12, with "x-unit" beside what has a unit."""
    found: dict[str, Any] = json.loads(files(__package__).joinpath("results.schema.json").read_bytes())
    return found


def fault(document: object, rules: Rule | None = None) -> str | None:
    """What is wrong with a document: 'rows[3].measurement.median: expected a number, got "fast"'; None for nothing.

    rules: the schema that the document must keep to, None for the one of `groundup bench`; no rule may hold itself
    """
    told = _rules_of_bench() if rules is None else _without_references(rules, rules.get("$defs", {}))
    return next(_unusable(document), None) or next(_faults(document, told, ""), None)


def environment_fault(facts: object) -> str | None:
    """What is wrong with the facts of a machine in a file of any kind; a fact that is missing is not known there."""
    return next(_unusable(facts), None) or next(_faults(facts, _rules_of_environment(), "environment"), None)


@cache
def _rules_of_environment() -> Rule:
    return {**_rules_of_bench()["properties"]["environment"], "required": ()}


@cache
def _rules_of_bench() -> Rule:
    rules: Rule = _without_references(schema(), schema()["$defs"])
    return rules


def _without_references(value: object, named: Mapping[str, Any]) -> Any:
    """A part of a schema with every "$ref" replaced by the rule that it names."""
    if isinstance(value, list):
        return [_without_references(each, named) for each in value]
    if not isinstance(value, dict):
        return value
    if isinstance(value.get("$ref"), str):
        return _without_references(named[value["$ref"].removeprefix("#/$defs/")], named)
    return {name: _without_references(each, named) for name, each in value.items() if name != "$defs"}


def shown(value: object) -> str:
    """A JSON value for an error's sentence: as JSON, and cut where it is long."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except RecursionError:
        text = "a value nested without end"
    return text if len(text) <= 60 else f"{text[:57]}..."


def _faults(value: object, rule: Rule, place: str) -> Iterator[str]:
    """Every breach of a rule of the schema in a value and inside of it."""
    if "anyOf" in rule:
        fitting = next((each for each in rule["anyOf"] if _fits(value, each)), None)
        wanted = " or ".join(dict.fromkeys(_wanted(each) for each in rule["anyOf"]))
        yield from [_told(place, wanted, value)] if fitting is None else _faults(value, fitting, place)
    elif not _fits(value, rule):
        yield _told(place, _wanted(rule), value)
    elif isinstance(value, dict):
        yield from _faults_of_object(value, rule, place)
    elif isinstance(value, list):
        for at, each in enumerate(value if "items" in rule else ()):
            yield from _faults(each, rule["items"], f"{place}[{at}]")
    elif isinstance(value, int | float):
        for name, (words, holds) in _BOUNDS.items():
            if name in rule and not holds(value, rule[name]):
                yield _told(place, f"{words} {rule[name]}", value)


def _faults_of_object(value: Mapping[str, Any], rule: Rule, place: str) -> Iterator[str]:
    known, further = rule.get("properties", {}), rule.get("additionalProperties", True)
    inside = f"{place}." if place else ""
    for name in rule.get("required", ()):
        if name not in value:
            yield f"{inside}{name}: is missing"
    for name, each in value.items():
        if name in known:
            yield from _faults(each, known[name], f"{inside}{name}")
        elif further is False:
            yield f"{inside}{name}: is no field of this format"
        elif further is not True:
            yield from _faults(each, further, f"{inside}{name}")


def _fits(value: object, rule: Rule) -> bool:
    """Whether a value is of a type and, where they are listed, among the values that a rule allows."""
    if "const" in rule or "enum" in rule:
        allowed = rule.get("enum", [rule.get("const")])
        return any(value == each and isinstance(value, bool) == isinstance(each, bool) for each in allowed)
    names = rule.get("type", ())
    return not names or any(_is(value, name) for name in ([names] if isinstance(names, str) else names))


def _is(value: object, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return name in ("integer", "number")
    kinds = {"number": float, "string": str, "array": list, "object": dict, "null": type(None)}
    return isinstance(value, kinds.get(name, ()))


def _wanted(rule: Rule) -> str:
    if "const" in rule:
        return shown(rule["const"])
    if "enum" in rule:
        return f"one of {', '.join(rule['enum'])}"
    names = rule["type"]
    return " or ".join(_TYPES[name] for name in ([names] if isinstance(names, str) else names))


def _told(place: str, wanted: str, value: object) -> str:
    return f"{place}: expected {wanted}, got {shown(value)}".removeprefix(": ")


def _unusable(document: object) -> Iterator[str]:
    """Where a document has what JSON can write and a program cannot use: 1e999, which no float holds, and half a
    character, which no file holds. Without recursion: a document may be nested deeper than Python's stack."""
    left: list[Iterator[tuple[str, Any]]] = [iter([("", document)])]
    while left:
        found = next(left[-1], None)
        if found is None:
            left.pop()
            continue
        place, value = found
        if isinstance(value, int | float) and not (math.isfinite(value) if isinstance(value, float) else _held(value)):
            yield f"{place}: expected a number below 1.8e308"
        if isinstance(value, str) and not _written(value):
            yield f"{place}: expected text, got half a character"
        if isinstance(value, dict):
            if not all(map(_written, value)):
                yield f"{place}: expected names of whole characters".removeprefix(": ")
            left.append(_fields(place, value))
        elif isinstance(value, list):
            left.append(_items(place, value))


def _fields(place: str, value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    return ((f"{place}.{name}".removeprefix("."), each) for name, each in value.items())


def _items(place: str, value: list[Any]) -> Iterator[tuple[str, Any]]:
    return ((f"{place}[{at}]", each) for at, each in enumerate(value))


def _held(value: int) -> bool:
    return -LARGEST <= value <= LARGEST


def _written(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
