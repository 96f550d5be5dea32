"""Recorded GPU reports: the earlier format is read, what stands beside emulated results is what was recorded."""

import json
from pathlib import Path
from typing import Any

import pytest

from shared.bench.on_gpu import gpu_record

RECORDS = sorted(gpu_record.RECORDS.glob(f"*/{gpu_record.REPORT}"))


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.parent.name)
def test_a_record_can_be_read_and_migrating_changes_no_number(path: Path) -> None:
    before = json.loads(path.read_text(encoding="utf-8"))
    after = gpu_record.load(path)
    assert after["schema"] == gpu_record.SCHEMA
    assert after["emulated"] is False
    assert list(after["parts"]) == list(before["parts"])
    for name, part in after["parts"].items():
        for new, old in zip(part["rows"], before["parts"][name]["rows"], strict=True):
            assert new.items() <= old.items()
    epochs = [row for row in after["parts"]["training"]["rows"] if row["kind"] == "epoch"]
    assert {tuple(row) for row in epochs} == {gpu_record.EPOCH}
    assert {tuple(row) for row in after["parts"]["ladder"]["rows"] if row["rung"] == "cuBLAS"} == {gpu_record.CUBLAS}


def test_the_numbers_beside_the_package_are_those_of_the_newest_record() -> None:
    newest = gpu_record.newest()
    assert newest is not None
    shipped = json.loads(gpu_record.REFERENCE.read_text(encoding="utf-8"))
    assert shipped == gpu_record.extract(newest), "run python -m shared.bench.on_gpu.gpu_record"
    found = gpu_record.reference()
    assert found is not None
    assert found.title == "NVIDIA H200, 2026-11-26, revision d0c3bb7"
    assert found.step((784, 128, 10), 64, "resident") == pytest.approx(11.22e-6, rel=1e-3)
    assert found.step((784, 128, 10), 64, "no such rung") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not JSON: "),
        ("[]", "is no results file: expected a JSON object, got"),
        ('{"kind": "groundup bench"}', "is no GPU report: "),
        ('{"kind": "groundup gpu report", "schema": 9}', "schema: expected 1 to 2, got 9"),
    ],
)
def test_what_is_no_gpu_report_is_refused(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "gpu_report.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=said):
        gpu_record.load(path)


REPORT: dict[str, Any] = {
    "kind": gpu_record.KIND,
    "schema": gpu_record.SCHEMA,
    "date": "2026-01-01",
    "emulated": False,
    "parts": {
        "steps": {
            "rows": [{"network": [2, 1], "batch": 8, "who": "ours", "resident": True, "against": {}, "median": 1e-3}]
        },
        "networks": {
            "rows": [{"kind": "step", "model": "a", "batch": 1, "who": "ours", "precision": "tf32", "median": 1e-3}]
        },
        "launches": {"rows": [{"kind": "empty", "host": {"median": 1e-6}}]},
        "training": {"rows": [{"kind": "total"}]},
    },
}


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("emulated",), "no", "emulated: expected true or false, got"),
        (("parts", "steps", "rows", 0, "median"), 0, r"parts.steps.rows\[0\].median: expected at least 1e-13, got 0"),
        (("parts", "launches", "rows", 0, "host"), {}, "host.median: is missing"),
        (("parts", "training", "rows", 0, "kind"), "epoch", "dataset: is missing"),
        (("parts", "networks", "rows", 0, "median"), "1", r"parts.networks.rows\[0\].median: expected a number, got"),
        (("parts", "training"), {}, "parts.training.rows: is missing"),
    ],
)
def test_what_the_figures_cannot_use_is_refused(place: tuple[Any, ...], value: Any, said: str, tmp_path: Path) -> None:
    path = tmp_path / "gpu_report.json"
    path.write_text(json.dumps(REPORT))
    assert gpu_record.load(path) == REPORT
    document = json.loads(json.dumps(REPORT))
    container = document
    for key in place[:-1]:
        container = container[key]
    container[place[-1]] = value
    path.write_text(json.dumps(document))
    with pytest.raises(ValueError, match=said) as caught:
        gpu_record.load(path)
    assert str(path) in str(caught.value)
