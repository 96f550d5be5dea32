"""The results file: written and read without loss, refused with a reason, and described by a schema that is true."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.bench.measuring.rows import KINDS, LIBRARIES, BenchRow, Curve
from shared.bench.measuring.timing import Measurement
from shared.bench.records.document import DIMENSIONS, SCHEMA, Results, as_document, load
from shared.bench.records.schema import fault, schema
from shared.contract import STAGES
from shared.machine.environment import environment
from shared.machine.results import as_json, write_json
from tests.shared.bench import bench_results as made
from tests.shared.bench import bench_schema_docs as docs
from tests.wide import WIDE

ALL = {"full": made.full_results, "gpu": made.gpu_results, "tiny": made.tiny_results}
RECORDED = Path(__file__).resolve().parents[4] / "docs" / "benchmarks"
DERIVED = {"gflops", "gigabytes", "intensity", "samples_per_second", "share_of_peak"}


def few() -> Results:
    return made.only(made.full_results(), stages=["stage3_c"], kinds=["step", "memory"])


def document(results: Results | None = None) -> dict[str, Any]:
    """As it is read back from a file."""
    found: dict[str, Any] = json.loads(as_json(as_document(results or few())))
    return found


def refusal(tmp_path: Path, text: str | bytes) -> str:
    path = tmp_path / "results.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=r"results\.json") as error:
        load(path)
    return str(error.value).removeprefix(str(path))


def changed(path: str, value: Any) -> str:
    """The document with one entry replaced, or taken out where value is `...`."""
    whole = document()
    *way, last = [int(step) if step.isdecimal() else step for step in path.split(".")]
    inner: Any = whole
    for step in way:
        inner = inner[step]
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    return json.dumps(whole)


@pytest.mark.parametrize("name", ALL)
def test_what_is_written_is_read_back(name: str, tmp_path: Path) -> None:
    results = ALL[name]()
    results = replace(results, predictions=list(results.predictions))
    assert load(write_json(tmp_path / "results.json", as_document(results))) == results


def test_a_loss_that_became_infinite_is_read_back(tmp_path: Path) -> None:
    curve = replace(made.full_results().curves[0], loss=[float("inf")] * 8)
    results = replace(few(), curves=[curve], predictions=[])
    assert load(write_json(tmp_path / "results.json", as_document(results))) == results


@pytest.mark.parametrize("name", ALL)
def test_the_schema_describes_what_is_written(name: str) -> None:
    jsonschema.Draft202012Validator(schema()).validate(document(ALL[name]()))


def test_the_schema_describes_this_machines_environment() -> None:
    facts = environment() | {"threads": 2, "pytorch": None, "pinned": [0, 1]}
    known = schema()["$defs"]["environment"]["properties"]
    jsonschema.Draft202012Validator(schema()).validate(document(replace(few(), environment=facts)))
    assert set(facts) == set(known)


@pytest.mark.parametrize(
    ("name", "of"), [("row", BenchRow), ("measurement", Measurement), ("curve", Curve)], ids=lambda each: str(each)
)
def test_the_schema_names_exactly_the_fields(name: str, of: type) -> None:
    rule = schema()["$defs"][name]
    expected = [each.name for each in fields(of)]  # type: ignore[arg-type]
    assert [each for each in rule["properties"] if each not in DERIVED] == expected
    assert set(rule["required"]) == set(rule["properties"])


def test_the_schema_names_every_kind_stage_and_library() -> None:
    row = schema()["$defs"]["row"]["properties"]
    assert row["kind"]["enum"] == list(KINDS)
    assert row["stage"]["enum"] == schema()["$defs"]["curve"]["properties"]["stage"]["enum"] == [*STAGES, *LIBRARIES]
    assert all(kind in row["kind"]["description"] for kind in KINDS)


def test_every_field_is_described_and_the_page_says_the_same() -> None:
    page = docs.PAGE.read_text(encoding="utf-8")
    assert sorted(name for _, name, _ in docs.TABLE.findall(page)) == sorted(docs.definitions())
    assert docs.refreshed(page) == page, f"make the page's tables anew: python -m {docs.__name__}"


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("rows.0.measurement.median", "fast", ': rows[0].measurement.median: expected a number, got "fast"'),
        ("rows.1.measurement.median", 0, ": rows[1].measurement.median: expected more than 0, got 0"),
        (
            "rows.0.measurement.median",
            1e300,
            ": rows[0].measurement.median: expected 1e-13 to 1e+09 seconds, got 1e+300",
        ),
        ("rows.0.measurement.lower", 1e3, ": rows[0].measurement: expected lower to be at most median, got 1000.0 and"),
        ("rows.0.measurement", 3, ": rows[0].measurement: expected an object or null, got 3"),
        ("rows.0.accuracy", 97, ": rows[0].accuracy: expected at most 1, got 97"),
        ("rows.0.threads", True, ": rows[0].threads: expected a whole number, got true"),
        ("rows.0.shape", [64, 64.5], ": rows[0].shape[1]: expected a whole number, got 64.5"),
        ("rows.0.clock", "sun", ': rows[0].clock: expected one of wall, events, got "sun"'),
        ("rows.0.name", ..., ": rows[0].name: is missing"),
        ("rows.0.speed", 3, ": rows[0].speed: is no field of this format"),
        ("rows.0.against", {"pytorch": "x"}, ': rows[0].against.pytorch: expected a number, got "x"'),
        ("curves.0.loss.2", "low", ': curves[0].loss[2]: expected a number or one of nan, inf, -inf, got "low"'),
        ("curves.0.loss", [0.1], ": curves[0].loss: expected a value for each of 8 epochs, got 1"),
        ("environment", {}, " is of a run that was interrupted before it measured anything: measure again"),
        ("schema", 2, f" has version 2 of the format and this reads {SCHEMA}: measure again with `groundup bench`"),
        ("schema", 4, f" has version 4 of the format and this reads {SCHEMA}: it needs another version of groundup"),
        ("schema", ..., ": schema: expected the format's version, a whole number, got null"),
        ("kind", "else", " is no results file of `groundup bench`: expected kind 'groundup bench', got \"else\""),
    ],
)
def test_a_wrong_entry_is_named_with_what_was_expected(path: str, value: Any, expected: str, tmp_path: Path) -> None:
    assert refusal(tmp_path, changed(path, value)).startswith(expected)


@pytest.mark.parametrize(("kind", "sizes"), DIMENSIONS.items())
def test_a_row_without_its_sizes_is_refused(kind: str, sizes: int, tmp_path: Path) -> None:
    whole = json.loads(changed("rows.0.kind", kind))
    whole["rows"][0]["shape"] = [64] * (sizes - 1)
    expected = f": rows[0].shape: expected {sizes} sizes of a {kind}, got {sizes - 1}"
    assert refusal(tmp_path, json.dumps(whole)) == expected


ODD = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from([0.5, -1.0, 2.0, 1e300]),
    st.sampled_from(["", "float32", "ladder", "stage3_c", "nan", "wall", "data"]),
    st.lists(st.one_of(st.none(), st.integers(-2, 3), st.just("x")), max_size=2),
    st.dictionaries(st.sampled_from(["pytorch", "name", "x"]), st.one_of(st.none(), st.floats(0, 2)), max_size=2),
)  # fmt: skip
"""What may stand where something else should: near misses of every type."""


@st.composite
def mutated(draw: st.DrawFn) -> dict[str, Any]:
    """A document in which up to three entries, anywhere, are replaced, removed or joined by another."""
    whole = json.loads(as_json(as_document(SMALL)))
    for _ in range(draw(st.integers(1, 3))):
        inner: Any = whole
        while inner:
            key = draw(st.sampled_from(list(inner) if isinstance(inner, dict) else range(len(inner))))
            if isinstance(inner[key], dict | list) and inner[key] and draw(st.integers(0, 4)):
                inner = inner[key]
                continue
            change = draw(st.sampled_from(["replace", "remove", "add"]))
            if change == "remove":
                del inner[key]
            elif change == "replace" or isinstance(inner, list):
                inner[key] = draw(ODD)
            else:
                inner[draw(st.sampled_from(["new", "name", "cpu", "kind"]))] = draw(ODD)
            break
    return whole


SMALL = replace(
    few(),
    rows=few().rows[:2],
    curves=made.full_results().curves[:1],
    environment=made.ENVIRONMENT,
    predictions=[{"question": "q", "unit": "x", "guess": None, "measured": 2.0}],
)
VALIDATOR = jsonschema.Draft202012Validator(schema())


@settings(max_examples=400 if WIDE else 100, deadline=None, suppress_health_check=list(HealthCheck))
@given(mutated())
def test_the_reader_and_the_published_schema_agree(whole: dict[str, Any]) -> None:
    found = fault(whole)
    errors = list(VALIDATOR.iter_errors(whole))
    assert (found is None) == (not errors), found or errors[0].message
    if found is not None:
        places = {schema_place(each) for error in errors for each in [error, *(error.context or ())]}
        assert any(found.startswith(place) for place in places), (found, places)


def schema_place(error: jsonschema.ValidationError) -> str:
    return "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in error.absolute_path).lstrip(".")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", " is not JSON: Expecting value"),
        ('{"schema": 3', " is not JSON: "),
        ('{"schema": NaN}', " is not JSON: NaN is not a number in JSON"),
        (b"\xff\xfe\x00", " is not JSON: "),
        ("[" * 100_000, " is not JSON: "),
        ("[1, 2]", " is no results file: expected a JSON object, got [1, 2]"),
        ("{}", " is no results file of `groundup bench`: expected kind 'groundup bench', got null"),
    ],
    ids=["empty", "cut", "NaN", "binary", "nested", "list", "another object"],
)
def test_a_file_that_is_no_results_file_is_refused(text: str | bytes, expected: str, tmp_path: Path) -> None:
    assert refusal(tmp_path, text).startswith(expected)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"cannot read .*absent\.json: No such file"):
        load(tmp_path / "absent.json")


@pytest.mark.parametrize("path", sorted(RECORDED.glob("bench-*/results.json")), ids=lambda path: path.parent.name)
def test_what_the_project_recorded_can_be_read(path: Path) -> None:
    results = load(path)
    assert results.complete
    assert results.passes >= 4
    assert {"cpu", "cores", "threads", "pytorch", "date", "revision"} <= set(results.environment)
    assert not [row for row in results.rows if row.emulated and row.ratio is not None]
