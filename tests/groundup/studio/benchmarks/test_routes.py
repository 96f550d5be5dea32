"""The page Benchmarks through a running studio: the comparison is the library's own, the report that of the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from groundup.studio.benchmarks.desk import RECORDS
from shared.bench.records.compare import as_document
from shared.bench.records.document import load


def code(studio_server: Any, name: str) -> str:
    (found,) = [each for each in studio_server.get("/api/benchmarks/files")["files"] if each["name"] == name]
    return str(found["code"])


def test_two_files_are_compared_by_the_librarys_own_comparison(studio_server: Any) -> None:
    new, old = (code(studio_server, f"{name}/results.json") for name in ("bench-2-threads", "bench-quick"))
    found = studio_server.get(f"/api/benchmarks/shown?mine={new}&other={old}")["comparison"]
    expected = as_document(*(load(RECORDS / name / "results.json") for name in ("bench-quick", "bench-2-threads")))
    differences = expected["differences"]
    assert [row[0] for row in found["rows"]] == [each["verdict"] for each in differences]
    assert found["rows"][0][-1] == f"its time over that of {differences[0]['reference']}: less is faster"
    assert found["summary"].startswith(f"Of {len(differences)} results of both, the recorded run is slower in ")
    assert "without a verdict in 1 and within the noise in 79; " in found["summary"]
    only = len(expected["only_new"]), len(expected["only_old"])
    assert f"{only[0]} more are in the recorded run alone, {only[1]} in the other run." in found["summary"]
    assert len(found["warnings"]) == len(expected["warnings"])


def test_the_report_is_drawn_from_the_file_and_runs_no_script(studio_server: Any, tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "race"
    folder.mkdir(parents=True)
    (folder / "results.json").write_bytes((RECORDS / "race-2-cores" / "results.json").read_bytes())
    (folder / "report.html").write_text("<script>alert(1)</script>")
    answer = studio_server.ask("GET", f"/api/benchmarks/report?file={code(studio_server, 'runs/race/results.json')}")
    text = answer.body.decode()
    assert answer.headers["content-type"].startswith("text/html")
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert "<title>groundup race, 2026-11-22</title>" in text
    assert text.count("<img") + text.count("<svg") >= 3
    assert "<script" not in text
    assert "groundup charts" not in text


def test_a_path_is_no_code(studio_server: Any) -> None:
    assert "not there any more" in studio_server.refused("/api/benchmarks/shown?mine=/etc/passwd")
    assert "not there any more" in studio_server.refused("/api/benchmarks/report?file=/etc/passwd")
