"""The tables of docs/benchmarks/schema.md, out of the schema itself.

    python -m tests.shared.bench.bench_schema_docs       puts them into the page anew

In the page a line `<!-- fields: NAME -->` stands before each table, `<!-- end -->` after it; NAME is a definition of
results.schema.json, or `document`. test_document.py compares.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shared.bench.records.schema import schema

PAGE = Path(__file__).resolve().parents[3] / "docs" / "benchmarks" / "schema.md"
TABLE = re.compile(r"(<!-- fields: (\S+) -->\n)(.*?)(?=<!-- end -->)", re.DOTALL)


def definitions() -> dict[str, Mapping[str, Any]]:
    """Name -> what the page has a table of."""
    return {"document": schema(), **schema()["$defs"]}


def table(name: str) -> str:
    """A definition's fields, their types, units and meaning."""
    rule = definitions()[name]
    lines = ["| field | type | unit | meaning |", "|---|---|---|---|"]
    for field, inner in rule["properties"].items():
        optional = "" if field in rule["required"] else " (may be missing)"
        meaning = inner["description"].replace("|", "\\|")
        lines.append(f"| `{field}` | {kind(inner)}{optional} | {inner.get('x-unit', '')} | {meaning} |")
    return "\n".join(lines)


def kind(rule: Mapping[str, Any]) -> str:
    """The type that a rule asks for, in words."""
    if "$ref" in rule:
        name = rule["$ref"].rpartition("/")[2]
        return f"[{name}](#{name})"
    if "anyOf" in rule:
        return " or ".join(map(kind, rule["anyOf"]))
    if "const" in rule:
        return f"`{rule['const']}`"
    if "enum" in rule:
        return " or ".join(f"`{each}`" for each in rule["enum"])
    if not isinstance(rule["type"], str):
        return " or ".join(kind(rule | {"type": each}) for each in rule["type"])
    if rule["type"] == "array":
        each = kind(rule["items"])
        return f"list of {each}s" if each.endswith("number") else f"list of {each}"
    if rule["type"] == "object" and isinstance(rule.get("additionalProperties"), dict):
        return f"text -> {kind(rule['additionalProperties'])}"
    words = {"object": "object", "string": "text", "integer": "whole number", "boolean": "true or false"}
    return words.get(rule["type"], rule["type"])


def refreshed(page: str) -> str:
    """The page with every table made anew."""
    return TABLE.sub(lambda found: f"{found[1]}\n{table(found[2])}\n\n", page)


if __name__ == "__main__":
    PAGE.write_text(refreshed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
