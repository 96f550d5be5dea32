"""The page Benchmarks through a running studio: its numbers are the files', and its comparison is the library's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from groundup.studio.benchmarks.recorded_results import RECORDED
from shared.bench.records.compare import as_document, compare
from shared.bench.records.document import load
from shared.numbers import duration

QUICK, FULL = (RECORDED / name / "results.json" for name in ("bench-quick", "bench-2-threads"))


def code(studio_server: Any, name: str) -> str:
    (found,) = [each for each in studio_server.get("/api/benchmarks/files")["files"] if each["name"] == name]
    return str(found["code"])


def test_every_number_of_a_file_is_shown(studio_server: Any) -> None:
    found = studio_server.get(f"/api/benchmarks/results?file={code(studio_server, 'bench-quick/results.json')}")
    rows = load(QUICK).rows
    assert len(found["points"]) == len(rows)
    for point, row in zip(found["points"], rows, strict=True):
        assert (point["kind"], point["stage"], point["dtype"]) == (row.kind, row.stage, row.dtype)
        assert point["values"]["seconds"] == row.seconds
        assert point["values"]["ratio"] == row.ratio
        if row.seconds is not None:
            assert point["texts"]["seconds"] == duration(row.seconds)
    assert {each["name"] for each in found["kinds"]} == {row.kind for row in rows}
    assert [each["name"] for each in found["stages"]][:3] == ["stage1_pure_python", "stage2_numpy", "stage3_c"]
    assert "AMD EPYC" in found["origin"]


def test_a_race_has_its_curves(studio_server: Any) -> None:
    found = studio_server.get(f"/api/benchmarks/results?file={code(studio_server, 'race-2-cores/results.json')}")
    assert [each["who"] for each in found["curves"]][-1] == "stage 4: CUDA (emulated)"
    assert any("say nothing about a GPU" in note for note in found["notes"])
    assert any(point["emulated"] for point in found["points"])


def test_two_files_are_compared_by_the_librarys_own_comparison(studio_server: Any) -> None:
    old, new = (code(studio_server, f"{name}/results.json") for name in ("bench-quick", "bench-2-threads"))
    found = studio_server.get(f"/api/benchmarks/compare?old={old}&new={new}")
    expected = as_document(load(QUICK), load(FULL))
    assert found["warnings"] == expected["warnings"]
    shown = [row for group in found["groups"] for row in group["rows"]]
    assert len(shown) == len(expected["differences"])
    assert sum(found["counts"].values()) == len(shown)
    assert [len(each) for each in found["only"]] == [len(expected["only_old"]), len(expected["only_new"])]
    largest = compare(load(QUICK), load(FULL))[0]
    assert shown[0]["factor"] == pytest.approx(largest.factor)


def test_a_file_of_ones_own_is_opened_and_compared(studio_server: Any) -> None:
    text = QUICK.read_text(encoding="utf-8")
    entry = studio_server.post("/api/benchmarks/open", {"name": "mine.json", "text": text})
    assert (entry["name"], entry["group"]) == ("mine.json", "uploaded")
    same = studio_server.get(f"/api/benchmarks/compare?old={entry['code']}&new={entry['code']}")
    assert {row["factor"] for group in same["groups"] for row in group["rows"]} == {1.0}


def test_a_wrong_file_is_refused_by_its_name_and_not_kept(studio_server: Any) -> None:
    wrong = json.dumps({"kind": "groundup bench", "schema": 3, "rows": "<script>"})
    said = studio_server.refused("/api/benchmarks/open", {"name": "mine.json", "text": wrong})
    assert said.startswith("mine.json: ")
    assert all(each["group"] != "uploaded" for each in studio_server.get("/api/benchmarks/files")["files"])
    assert "name and its text" in studio_server.refused("/api/benchmarks/open", {"name": 3})


def test_a_path_is_no_code(studio_server: Any, tmp_path: Path) -> None:
    assert "not there any more" in studio_server.refused("/api/benchmarks/results?file=/etc/passwd")
