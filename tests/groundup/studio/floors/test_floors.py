"""The page Floors shows the text that runs, aligned by name, and the recorded speeds of each function."""

from __future__ import annotations

import json
from typing import Any

import pytest

from groundup.studio.floors import source, underlying_code
from groundup.studio.floors.colouring import coloured
from groundup.studio.floors.page_rows import room, rooms
from groundup.studio.floors.recorded_speeds import DOCS, PATH, collected, recorded_times, records
from groundup.studio.floors.rooms import NAMES, rows
from shared.bench.records.document import load
from shared.contract import STAGES
from shared.machine.processes import ROOT
from shared.numbers import duration


@pytest.mark.parametrize("name", NAMES)
def test_every_function_of_a_room_is_found_on_every_floor(name: str) -> None:
    for row in room(name)["rows"]:
        for stage, cell in row["floors"].items():
            assert cell["functions"] or cell["note"], (row["title"], stage)
            for function in cell["functions"]:
                assert function["parts"], (row["title"], stage, function["name"])


@pytest.mark.parametrize("name", NAMES)
def test_what_is_shown_is_the_text_of_the_file(name: str) -> None:
    for row in room(name)["rows"]:
        for function in (each for cell in row["floors"].values() for each in cell["functions"]):
            for part in function["parts"]:
                file, _, line = part["place"].rpartition(":")
                lines = (ROOT / file).read_text(encoding="utf-8").splitlines()[int(line) - 1 :]
                shown = ["".join(text for _, text in each) for each in part["lines"]]
                for one, other in zip(shown, lines, strict=False):
                    assert one.strip() == other.strip(), part["place"]


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"arrays"}))
def test_stage_3_has_its_c_below_it_and_stage_4_its_kernels(name: str) -> None:
    for row in room(name)["rows"]:
        if row["title"] == "Network.forward" or row["title"] == "Network.predict":
            continue  # stage 4 chooses the products of the room matmul
        c = [
            part for each in row["floors"][STAGES[2]]["functions"] for part in each["parts"] if part["language"] == "C"
        ]
        kernels = [
            part
            for each in row["floors"][STAGES[3]]["functions"]
            for part in each["parts"]
            if part["language"] == "kernel"
        ]
        assert c, row["title"]
        assert kernels, row["title"]


def test_the_tables_name_what_is_there() -> None:
    assert [name for names in underlying_code.KERNELS.values() for name in names if source.kernel(name) is None] == []
    assert [name for names in underlying_code.C.values() for name in names if source.c(name) is None] == []
    for key in underlying_code.KERNELS:
        file, _, function = key.partition(".")
        assert source.python(STAGES[3], file, function) is not None, key
    for key in underlying_code.C:
        file, _, function = key.partition(".")
        assert source.python(STAGES[2], file, function) is not None, key


def test_a_c_function_has_the_comment_above_it() -> None:
    found = source.c("relu")
    assert found is not None
    assert found.text.startswith("/* max(0, z).")
    assert found.text.rstrip().endswith("}")
    assert source.c("no_such_function") is None


def test_a_ladders_rungs_are_read_in_their_order() -> None:
    assert list(source.ladder("stage3_c", "matmul"))[:2] == ["ijk", "ikj"]
    assert next(iter(source.ladder("stage4_numba_cuda", "steps"))) == "op_by_op"
    assert source.ladder("stage1_pure_python", "steps") == {}


def test_python_is_coloured() -> None:
    text = '@cache\ndef f(x):\n    """Twice."""\n    return 2 * x  # why\n'
    parts = [part for line in coloured(text, "python") for part in line]
    assert {("name", "f"), ("keyword", "return"), ("number", "2"), ("comment", "# why")} <= set(parts)
    assert ("string", '"""Twice."""') in parts
    assert ("rule", "@cache") in parts


@pytest.mark.parametrize("text", ["def f(:\n  (", 'x = """', "    if x:\n  y\n z\n", "\x00", "", "\n\n"])
def test_what_is_no_python_is_shown_without_colours(text: str) -> None:
    assert "\n".join("".join(part for _, part in line) for line in coloured(text, "python")) == text.rstrip("\n")


def test_c_is_coloured() -> None:
    text = (
        '#include <math.h>\n/* a\n   b */\nvoid NAME(relu)(size_t n) { char c = \'"\'; f("a//b", 1.5e3f); // why\n}\n'
    )
    lines = coloured(text, "c")
    parts = [part for line in lines for part in line]
    assert {("rule", "<math.h>"), ("comment", "/* a"), ("comment", "   b */"), ("name", "relu")} <= set(parts)
    assert {("string", "'\"'"), ("string", '"a//b"'), ("number", "1.5e3f"), ("comment", "// why")} <= set(parts)
    assert {("keyword", "void"), ("keyword", "size_t"), ("keyword", "char")} <= set(parts)
    assert "\n".join("".join(text for _, text in line) for line in lines) == text.rstrip("\n")


def test_the_speeds_in_the_package_are_those_of_the_records() -> None:
    assert json.loads(PATH.read_text(encoding="utf-8")) == json.loads(json.dumps(collected())), (
        "python -m groundup.studio.floors.recorded_speeds makes recorded.json again"
    )


def test_a_speed_is_the_recorded_one_and_compared_with_the_lowest_floor() -> None:
    found = {
        row.stage: row.seconds
        for row in load(DOCS / "bench-2-threads" / "results.json").rows
        if (row.kind, row.name, row.part, row.dtype) == ("op", "relu", "forward", "float64")
    }
    (first,) = recorded_times(STAGES[0], "op", "relu", "forward")
    (second,) = recorded_times(STAGES[1], "op", "relu", "forward")
    assert first == f"{duration(found[STAGES[0]])} for 64 by 128, float64"
    assert second.startswith(duration(found[STAGES[1]]))
    assert second.endswith(f"{round(found[STAGES[0]] / found[STAGES[1]]):.0f} times as fast as stage 1")


def test_of_stage_4_only_a_gpus_times_are_there() -> None:
    machines = {each.title for each in records() for time in each.times if time.stage == STAGES[3]}
    assert machines
    assert all("H200" in each for each in machines)


def test_the_page_works_where_there_are_no_docs(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groundup.studio.floors.recorded_speeds.DOCS", tmp_path)
    assert len(rooms()["records"]) == 3
    assert rows("matmul")


def test_the_routes(studio_server: Any) -> None:
    assert [each["name"] for each in studio_server.get("/api/floors/rooms")["rooms"]] == list(NAMES)
    assert studio_server.get("/api/floors/room?name=dense")["rows"][0]["title"] == "Dense.forward"
    said = studio_server.refused("/api/floors/room?name=../../secret")
    assert "there is no room '../../secret'; the rooms are arrays, matmul" in said
