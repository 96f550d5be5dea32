"""The document of a walk: it says what the walk has recorded, and the lens's costs of each request."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from cuda_emulator import cuda
from cuda_emulator.inspection import Launch, profile
from groundup.studio.kernel.document import document, packed, value
from groundup.studio.kernel.opened import Opened

SIDE = 16


@cuda.jit
def turned(x, out):
    tile = cuda.shared.array((SIDE, SIDE), np.float32)
    a, b = cuda.threadIdx.x, cuda.threadIdx.y
    tile[b, a] = x[b, a]
    cuda.syncthreads()
    for _k in range(3):
        out[b, a] = tile[a, b]
    cuda.syncthreads()  # nobody needs this one


@pytest.fixture(scope="module")
def opened() -> Opened:
    x = np.random.default_rng(0).standard_normal((SIDE, SIDE)).astype(np.float32)
    return Opened(Launch("turned", turned, (1, 1, 1), (SIDE, SIDE, 1), (x, np.zeros_like(x))))


def unpacked(given: Any, count: int) -> list[Any]:
    """What static/walk.js does."""
    if isinstance(given, list):
        return given
    return [given["a"] + i * given["d"] for i in range(count)] if isinstance(given, dict) else [given] * count


@pytest.mark.parametrize(
    ("values", "short"),
    [([], []), ([3], [3]), ([3, 3, 3], 3), ([1, 3, 5], {"a": 1, "d": 2}), ([1, 3], [1, 3]), ([1, 2, 4], [1, 2, 4])],
)
def test_a_regular_list_is_shortened_and_comes_back(values: list[int], short: Any) -> None:
    assert packed(values) == short
    assert unpacked(short, len(values)) == values


def test_one_and_true_are_different_values() -> None:
    assert packed([True, 1]) == [True, 1]
    assert packed([1, True, 1]) == [1, True, 1]


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        (np.float32(0.1), 0.1), (np.float64(1) / 3, 0.333333), (np.int32(7), 7), (2**60, str(2**60)), (True, True),
        (float("nan"), "NaN"), (np.float32("-inf"), "-inf"), (np.zeros(3), "float64 (3,)"), ((1, 2.5), "(1, 2.5)"),
        (None, "None"), (1 + 2j, "(1+2j)"), (np.float32(3), 3),
    ],
)  # fmt: skip
def test_a_value_is_sent_as_a_number_or_a_text(given: Any, sent: Any) -> None:
    assert value(given) == sent
    assert type(value(given)) is type(sent)


def test_the_costs_of_the_requests_add_up_to_the_lenss(opened: Opened) -> None:
    launch = opened.launch
    found = profile(turned, launch.grid, launch.block, *launch.arguments)
    costs: dict[tuple[str, str], int] = {}
    for warp in range(SIDE * SIDE // 32):
        shown = opened.walk(0, warp)
        for step in shown["steps"]:
            for access in step.get("a", []):
                key = shown["arrays"][access["m"]]["name"], ("load", "store", "atomic")[access["k"]]
                costs[key] = costs.get(key, 0) + access["c"][0]
    lens = {(each.array, each.kind): each.sectors or each.wavefronts for each in found.accesses}
    assert costs == lens
    assert costs["tile", "load"] > costs["tile", "store"]  # down the columns: bank conflicts


def test_the_memory_and_the_variables_are_those_of_the_walk(opened: Opened) -> None:
    x = opened.launched.values()["x"]
    for warp in (0, 5):
        shown = opened.walk(0, warp)
        tile = next(number for number, each in enumerate(shown["arrays"]) if each["name"] == "tile")
        written = {}
        for step in shown["steps"]:
            for write in step.get("w", []):
                count = sum(last - first + 1 for first, last in shown["active"][step["l"][4]])
                if write["m"] == tile:
                    places, values = unpacked(write["p"], count), unpacked(write["x"], count)
                    written.update(zip(places, values, strict=True))
        np.testing.assert_allclose([written[place] for place in range(SIDE * SIDE)], x.ravel(), rtol=1e-5)
        variables = [each for step in shown["steps"] for each in step.get("v", [])]
        a = next(each for each in variables if each[1] == "a")
        assert unpacked(a[3], 32) == list(range(SIDE)) * 2
        assert [each[1] for each in variables if each[1] in ("x", "out", "tile")] == []  # arrays are drawn


def test_the_document_is_small_strict_json_with_the_learners_lines(opened: Opened) -> None:
    shown = opened.walk()
    assert len(json.dumps(shown, allow_nan=False)) < 20_000
    (source,) = shown["sources"]
    lines = {source["first"] + at: text for at, text in enumerate(source["lines"])}
    assert "syncthreads" in lines[shown["barriers"][0][1]]
    assert [lines[step["l"][1]].strip() for step in shown["steps"]][:3] == [
        "tile = cuda.shared.array((SIDE, SIDE), np.float32)",
        "a, b = cuda.threadIdx.x, cuda.threadIdx.y",
        "tile[b, a] = x[b, a]",
    ]


def test_places_can_be_shown_as_those_of_another_file(opened: Opened) -> None:
    shown = document(opened.launched.walk(), 0, lambda file, line: ("mine.py", line - opened_line() + 1))
    assert shown["sources"][0]["file"] == "mine.py"
    assert shown["sources"][0]["first"] == 1


def opened_line() -> int:
    return int(turned.source.first_line)


def test_a_race_is_told_in_sentences_with_the_walk_of_its_reader(opened: Opened) -> None:
    race = opened.race(0, 0, [0])
    assert race["found"]
    shown = race["walk"]
    assert race["thread"] // 32 == shown["warp"]
    step = shown["steps"][race["step"]]
    access = next(each for each in step["a"] if each["m"] == race["element"][0])
    assert race["element"][1] in unpacked(access["p"], 32)
    out = opened.launched.values()["x"].T.ravel()
    assert race["right"] == pytest.approx(out[race["cell"][1]], rel=1e-5)
    assert race["wrong"] != race["right"]
    assert str(race["wrong"]) in race["text"]
    assert "runs ahead of the others" in race["text"]


def test_a_barrier_that_is_not_needed_is_said_to_be_so(opened: Opened) -> None:
    race = opened.race(0, 0, [1])
    assert not race["found"]
    assert "not needed" in race["text"]


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda opened: opened.walk(1), "block: expected a number from 0 to 0, got 1"),
        (lambda opened: opened.walk(0, 8), "warp: expected a number from 0 to 7, got 8"),
        (lambda opened: opened.race(0, 0, [2]), "barriers: expected numbers from 0 to 1"),
        (lambda opened: opened.race(0, 0, []), "barriers: expected numbers from 0 to 1"),
    ],
)
def test_what_is_not_there_is_refused(opened: Opened, ask: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        ask(opened)


def test_the_verdicts_stand_at_the_lines_of_the_document(opened: Opened) -> None:
    shown, verdicts = opened.walk(), opened.verdicts()
    (source,) = shown["sources"]
    here = [each for each in verdicts["lines"] if each[0] == source["file"]]
    assert here
    last = source["first"] + len(source["lines"])
    assert all(source["first"] <= line < last for _, line, _, _ in here)
    conflict = [text for _, _, level, text in here if level == "costly" and "bank conflict" in text]
    assert conflict
