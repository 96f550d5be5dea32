"""Which files the page Benchmarks offers, and what it reads from each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from groundup.studio.benchmarks.reading import PROFILE, of_profile, read
from groundup.studio.benchmarks.recorded_results import MOST_UPLOADS, RECORDED, Shelf
from shared.bench.on_gpu import gpu_record
from shared.bench.records.document import load
from shared.profile import document as profile_file
from tests.shared.profile.test_step_profile import ROOFS, profile

BENCH = RECORDED / "bench-quick" / "results.json"


def shelf(tmp_path: Path, *paths: Path) -> Shelf:
    return Shelf(tmp_path, paths)


def test_the_recorded_files_come_first_and_the_largest_run_before_all(tmp_path: Path) -> None:
    entries = shelf(tmp_path).entries()
    assert entries[0].name == "bench-2-threads/results.json"
    assert {each.group for each in entries} == {"recorded"}
    kinds = {"groundup bench", "groundup race", "groundup profile", "groundup gpu report"}
    assert {each.kind for each in entries} == kinds


def test_a_file_of_an_older_format_is_named_with_its_version(tmp_path: Path) -> None:
    (old,) = [each for each in shelf(tmp_path).entries() if each.name.startswith("ladder-2048")]
    assert old.version == 2
    assert old.document()["old"]
    assert "version 2" in old.document()["name"]


def test_runs_below_the_folder_and_files_of_the_command_line_are_offered(tmp_path: Path) -> None:
    mine, given, other = tmp_path / "runs" / "a" / "results.json", tmp_path / "x.json", tmp_path / "runs" / "b.json"
    mine.parent.mkdir(parents=True)
    for path in (mine, given, other):
        path.write_bytes(BENCH.read_bytes())
    found = {each.name: each.group for each in shelf(tmp_path, given).entries() if each.group != "recorded"}
    assert found == {"runs/a/results.json": "yours", str(given): "given"}


def test_a_folder_of_the_command_line_gives_its_results_file(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_bytes(BENCH.read_bytes())
    found = [each.name for each in Shelf(tmp_path / "elsewhere", [tmp_path], tmp_path / "no docs").entries()]
    assert found == [str(tmp_path / "results.json")]


def test_without_the_projects_documents_there_may_be_no_file(tmp_path: Path) -> None:
    assert Shelf(tmp_path, (), tmp_path / "no docs").entries() == []


def test_a_link_out_of_the_runs_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "secret" / "results.json"
    outside.parent.mkdir()
    outside.write_bytes(BENCH.read_bytes())
    (tmp_path / "studio" / "runs" / "a").mkdir(parents=True)
    (tmp_path / "studio" / "runs" / "a" / "results.json").symlink_to(outside)
    assert [each for each in shelf(tmp_path / "studio").entries() if each.group == "yours"] == []


def test_only_files_that_are_offered_can_be_asked_for(tmp_path: Path) -> None:
    found = shelf(tmp_path)
    name, text = found.text(found.entries()[0].code)
    assert (name, text) == ("bench-2-threads/results.json", (RECORDED / name).read_bytes())
    for code in ("", "/etc/passwd", "../../pyproject.toml", "0" * 16):
        with pytest.raises(ValueError, match="not there any more"):
            found.text(code)


def test_a_large_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groundup.studio.benchmarks.recorded_results.MOST_BYTES", 1000)
    found = shelf(tmp_path)
    with pytest.raises(ValueError, match=r"bench-2-threads/results.json: 617,838 bytes"):
        found.text(found.entries()[0].code)


def test_a_file_that_was_sent_is_kept_and_the_oldest_of_many_forgotten(tmp_path: Path) -> None:
    found = shelf(tmp_path)
    sent = [found.add(f"../{number}\\mine.json", f'{{"kind": "groundup race", "n": {number}}}') for number in range(10)]
    kept = [each.name for each in found.entries() if each.group == "uploaded"]
    assert kept == ["mine.json"] * MOST_UPLOADS
    assert found.text(sent[-1].code) == ("mine.json", b'{"kind": "groundup race", "n": 9}')
    with pytest.raises(ValueError, match="not there any more"):
        found.text(sent[0].code)


def test_a_benchmark_is_read_by_its_own_reader() -> None:
    assert read(BENCH.read_bytes(), "a.json") == load(BENCH)


def test_the_operations_of_a_profile_become_rows() -> None:
    results = profile_file.Results([profile()], [ROOFS], {"cpu": "a CPU"}, "groundup profile 3")
    text = json.dumps(profile_file.as_document(results)).encode()
    found = read(text, "profile.json")
    assert found == of_profile(profile_file.results_of(json.loads(text), "profile.json"))
    step, *operations = found.rows
    assert {row.kind for row in found.rows} == {PROFILE}
    assert (step.part, step.seconds) == ("the whole step", profile().step.median)
    for row, timed in zip(operations, profile().operations, strict=True):
        assert row.seconds == timed.seconds
        assert timed.operation.name in row.part
        assert row.gflops == pytest.approx(timed.gflops)
        assert row.share_of_peak == pytest.approx(timed.share_of_peak)


def gpu_report() -> dict[str, Any]:
    folder = gpu_record.newest()
    assert folder is not None
    found: dict[str, Any] = json.loads((folder / gpu_record.REPORT).read_bytes())
    return found


def test_a_gpu_report_becomes_rows_and_curves() -> None:
    document = gpu_report()
    found = read(json.dumps(document).encode(), "gpu_report.json")
    steps = {(row.name, row.contender): row.seconds for row in found.rows if row.kind == "step"}
    assert steps["784-128-10, batch 64", "stage 4 resident"] == pytest.approx(11.22e-6, rel=1e-3)
    assert steps["784-128-10, batch 64", "PyTorch graph"] == pytest.approx(79.46e-6, rel=1e-3)
    products = [row for row in found.rows if row.kind == "ladder"]
    for row, saved in zip(products, document["parts"]["ladder"]["rows"], strict=True):
        assert row.gflops == pytest.approx(1000 * saved["tflops"])
    assert [curve.dataset for curve in found.curves] == ["mnist"]
    assert found.curves[0].accuracy[-1] == 0.9804
    assert not any(row.emulated for row in found.rows)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": 3}, "g.json: schema: expected 1 or 2, got 3"),
        ({"parts": []}, r"g.json: parts: expected an object, got \[\]"),
        ({"parts": {"steps": {"rows": [{}]}}}, r"g.json: parts.steps.rows\[0\].who: is missing"),
        ({"parts": {"steps": {"rows": [7]}}}, r"g.json: parts.steps.rows\[0\]: "),
        (
            {"parts": {"ladder": {"rows": [{"size": 8, "precision": "tf32", "rung": "cuBLAS", "median": "1"}]}}},
            r'g.json: parts.ladder.rows\[0\]: median: expected a number above 0, got "1"',
        ),
    ],
)
def test_a_wrong_gpu_report_is_refused_with_the_place(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read(json.dumps({**gpu_report(), **change}).encode(), "g.json")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "mine.json is not JSON"),
        (b"[]", "mine.json is no results file: expected a JSON object"),
        (b'{"kind": "<img onerror>"}', 'mine.json: expected a results file of .* got kind "<img onerror>"'),
        (b'{"kind": "groundup bench", "schema": 2}', "mine.json has version 2 of the format and this reads 3"),
        (b'{"kind": "groundup race"}', "mine.json: schema: is missing"),
        (b'{"kind": "groundup profile", "schema": 1}', "mine.json: command: is missing"),
        (b"\xff\xfe", "mine.json is not JSON"),
        (b"[" * 100_000, "mine.json is not JSON"),
    ],
)
def test_a_wrong_file_is_a_sentence_with_its_name(text: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read(text, "mine.json")
