"""The document of a GPU report: parts are added to it, and neither a full disk nor a broken row takes what it has."""

from __future__ import annotations

import errno
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from groundup.gpu_report import document as gpu_document
from groundup.gpu_report import report
from groundup.gpu_report.commands import BENCH
from groundup.gpu_report.document import JSON_NAME
from shared.machine.processes import Finished

GPU = {"name": "NVIDIA H100", "cards": []}
FINE: dict[str, Any] = {"status": "ok", "error": "", "rows": [], "emulated": False, "skipped": []}
DEVICE = FINE | {"backend": "gpu", "device": GPU, "versions": {}, "environment": {"revision": "abc"}}
STEP = {
    "network": [784, 128, 10], "batch": 64, "who": "resident", "resident": True, "against": {"graph": 10.0},
    "median": 1e-5,
}  # fmt: skip
STEPS = FINE | {"rows": [STEP]}


class Parts:
    """In place of the parts' processes: each writes its text and ends with code 0."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.variables: list[Mapping[str, str]] = []
        self.give(device=DEVICE, compile=FINE)

    def give(self, **documents: Any) -> None:
        self.texts |= {name: each if isinstance(each, str) else json.dumps(each) for name, each in documents.items()}

    def run(self, command: list[str], seconds: float, *, variables: Mapping[str, str], **settings: Any) -> Finished:
        self.variables.append(dict(variables))
        text = self.texts[command[command.index("--part") + 1]]
        if text:
            Path(command[command.index("--result") + 1]).write_text(text)
        return Finished(0)


def drawn(document: dict[str, Any], out: Path) -> list[dict[str, str]]:
    """In place of the figures, which take a second."""
    names = ["gpu_steps.png", "gpu_steps.svg"] if document["parts"].get("steps", FINE)["rows"] else []
    for name in names:
        (out / name).write_bytes(b"a figure")
    return [{"file": name} for name in names]


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Parts:
    made = Parts()
    monkeypatch.setattr(report.processes, "run", made.run)
    monkeypatch.setattr("shared.charts.figures.gpu_report.draw", drawn)
    return made


def command(out: Path, *arguments: str) -> int:
    return report.main(["--out", str(out), *arguments])


def written(out: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((out / JSON_NAME).read_text())
    return document


def test_a_second_command_adds_its_parts(parts: Parts, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    waited = {"what": "groundup check 4", "ok": True, "seconds": 30.0, "said": ""}
    parts.give(steps=STEPS, commands=FINE | {"rows": [waited]})
    assert command(tmp_path, "--only", "steps") == 0
    first = written(tmp_path)
    assert command(tmp_path, "--only", "commands", "--add") == 0
    both = written(tmp_path)
    assert list(both["parts"]) == ["device", "compile", "steps", "commands"]
    assert (both["date"], both["complete"]) == (first["date"], True)
    assert both["seconds"] >= first["seconds"]
    verdicts = {goal["what"]: goal["met"] for goal in both["goals"]}
    assert verdicts["step of 784-128-10, data on the GPU, batch 64"] is True
    assert verdicts["groundup check 4"] is False
    assert "NOT MET  groundup check 4: 30 s (goal: 20 s)" in capsys.readouterr().out
    assert [chart["file"] for chart in both["charts"]] == ["gpu_steps.png", "gpu_steps.svg"]
    assert not (tmp_path / report.PART_NAME).exists()
    assert command(tmp_path, "--only", "commands") == 0  # without --add a report begins anew
    assert list(written(tmp_path)["parts"]) == ["device", "commands"]


def test_a_part_that_finds_nothing_the_second_time_keeps_its_rows(parts: Parts, tmp_path: Path) -> None:
    parts.give(steps=STEPS)
    command(tmp_path, "--only", "steps")
    parts.give(steps=FINE | {"status": "error", "error": "no GPU"})
    assert command(tmp_path, "--only", "steps", "--add") == 1
    found = written(tmp_path)["parts"]["steps"]
    assert (found["status"], found["rows"]) == ("error", [STEP])
    assert found["error"] == "again: no GPU; the rows are those of the time before"


def test_nothing_is_added_to_what_is_of_another_gpu_or_revision_quick_or_no_report(
    parts: Parts, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts.give(steps=STEPS)
    command(tmp_path, "--only", "steps")
    before = written(tmp_path)
    for other, said in (
        ({"device": GPU | {"name": "NVIDIA H200"}}, "of NVIDIA H100, and this device is NVIDIA H200"),
        ({"environment": {"revision": "def"}}, "of revision abc, and this is def"),
    ):
        parts.give(device=DEVICE | other)
        assert command(tmp_path, "--only", "steps", "--add") == 2
        assert said in capsys.readouterr().err
        assert written(tmp_path)["parts"] == before["parts"]
    parts.give(device=DEVICE)
    command(tmp_path, "--only", "steps", "--quick")
    assert command(tmp_path, "--only", "steps", "--add") == 2
    (tmp_path / JSON_NAME).write_text("{}")
    assert command(tmp_path, "--only", "steps", "--add") == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first.endswith("was measured with --quick")
    assert second.startswith("error: ")
    assert "is no GPU report" in second


def test_a_part_that_writes_garbage_costs_only_itself(parts: Parts, tmp_path: Path) -> None:
    parts.give(steps='{"status": "ok", "rows": [', launches=FINE)
    assert command(tmp_path, "--only", "steps,launches") == 1
    found = written(tmp_path)["parts"]
    assert (found["steps"]["status"], found["steps"]["rows"], found["launches"]["status"]) == ("error", [], "ok")
    assert "and what it wrote cannot be read: " in found["steps"]["error"]


def test_a_full_disk_does_not_end_the_report_and_the_screen_has_the_results(
    parts: Parts, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(path: Path, document: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(gpu_document, "write_json", full)
    parts.give(launches=FINE)
    assert command(tmp_path, "--only", "launches") == 1
    said = capsys.readouterr()
    assert "Written: " not in said.out
    assert f"{JSON_NAME} cannot be written: No space left on device" in said.err
    document = json.loads(said.out[said.out.index("{") : said.out.rindex("}") + 1])
    assert list(document["parts"]) == ["device", "launches"]


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where records go, in place of the documentation's folder."""
    kept = tmp_path / "kept"
    record = gpu_document.record
    for module in (report, gpu_document):
        monkeypatch.setattr(module, "record", lambda out, document: record(out, document, kept))
    return kept


def test_no_part_goes_on_with_another_backend_than_the_device_part_has_found(
    parts: Parts, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("GROUNDUP_CUDA", raising=False)
    parts.give(launches=FINE | {"emulated": True})
    command(tmp_path, "--only", "launches")
    assert [each.get("GROUNDUP_CUDA") for each in parts.variables] == [None, "gpu"]
    assert written(tmp_path)["emulated"] is False


def test_a_record_has_the_quick_bench_and_the_name_of_what_was_asked_for(
    parts: Parts, records: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    parts.give(steps=STEPS, **dict.fromkeys(("networks", "network_training", "commands"), FINE))
    (out / BENCH).mkdir(parents=True)
    (out / BENCH / "results.json").write_text("{}")
    charts = {"gpu_steps.png", "gpu_steps.svg"}
    for only, name, drawn in (
        *(("steps,networks,commands", "nvidia-h100-", charts), ("network_training", "nvidia-h100-", set())),
        ("commands", "nvidia-h100-", set()),
    ):
        assert command(out, "--only", only, "--record") == 0
        suffix = {"network_training": "-network", "commands": "-commands"}.get(only, "")
        folder = records / f"{name}{written(out)['date'][:10]}{suffix}"
        assert {path.name for path in folder.iterdir()} == {JSON_NAME, f"{BENCH}.json", *drawn}


def test_a_report_of_another_machine_is_drawn_and_recorded(
    parts: Parts, records: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    parts.give(steps=STEPS)
    command(tmp_path, "--only", "steps")
    for path in tmp_path.glob("*.png"):
        path.unlink()  # only the numbers came back
    monkeypatch.setattr(gpu_document.sys, "argv", ["document", str(tmp_path)])
    assert gpu_document.main() == 0
    assert len(list(records.glob("*/gpu_steps.png"))) == 1
    parts.give(device=DEVICE | {"emulated": True})
    command(tmp_path, "--only", "steps")
    capsys.readouterr()
    assert gpu_document.main() == 2
    assert capsys.readouterr().err.startswith("error: record: these are not results of a GPU")
    assert command(tmp_path, "--only", "steps", "--record") == 1
    assert "error: record: these are not results of a GPU" in capsys.readouterr().err
    (tmp_path / JSON_NAME).write_text(json.dumps(written(tmp_path) | {"emulated": False, "device": None}))
    assert gpu_document.main() == 2
    assert capsys.readouterr().err.startswith("error: record: the report does not say which GPU it is of")
