"""The command of the GPU report without a GPU: its parts and their time, and what happens when one of them fails."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from groundup.compiling import precompile
from groundup.gpu_report import document as gpu_document
from groundup.gpu_report import report
from groundup.gpu_report.document import JSON_NAME
from groundup.gpu_report.part import BACKEND
from groundup.gpu_report.report_parts import PARTS
from shared.machine.processes import Finished
from shared.training.run_lock import LOCK, RunLock
from tests.wide import wide

pytestmark = pytest.mark.skipif(BACKEND.name != "emulator", reason="looks at what the report says without a GPU")


def command(*arguments: str, out: Path) -> int:
    return report.main(["--out", str(out), *arguments])


def written(out: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((out / JSON_NAME).read_text())
    return document


@wide
def test_the_command_writes_one_document_labelled_as_emulated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GROUNDUP_CUDA", "emulator")
    assert command("--only", "launches", out=tmp_path) == 0
    document = written(tmp_path)
    assert (document["kind"], document["complete"], document["emulated"]) == ("groundup gpu report", True, True)
    assert list(document["parts"]) == ["device", "launches"]
    assert document["device"]["name"] == "groundup emulator"
    assert document["charts"] == []
    assert document["parts"]["launches"]["budget"] > 0


@wide
def test_a_gpu_that_was_asked_for_and_is_not_there_ends_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GROUNDUP_CUDA", "none")
    assert command(out=tmp_path) == 2
    assert "choose one of gpu, emulator, simulator" in written(tmp_path)["parts"]["device"]["error"]


@pytest.fixture
def endings(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let each part's process write this document (None: nothing) and end with this code (None: it was stopped)."""

    def give(**parts: tuple[int | None, dict[str, Any] | None]) -> None:
        parts.setdefault("compile", (0, FINE))

        def run(command: list[str], seconds: float, **settings: Any) -> Finished:
            code, document = parts[command[command.index("--part") + 1]]
            if document is not None:
                Path(command[command.index("--result") + 1]).write_text(json.dumps(document))
            return Finished(code)

        monkeypatch.setattr(report.processes, "run", run)

    return give


FINE = {"status": "ok", "error": "", "rows": [], "emulated": False, "skipped": []}


def test_what_the_parts_launch_is_compiled_before_the_first_of_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[list[str]] = []

    def run(command: list[str], seconds: float, **settings: Any) -> Finished:
        asked.append(command[command.index("--part") + 1 :])
        Path(command[command.index("--result") + 1]).write_text(json.dumps(FINE))
        return Finished(0)

    monkeypatch.setattr(report.processes, "run", run)
    assert command("--only", "steps,suite,training", out=tmp_path) == 0
    assert [each[0] for each in asked] == ["device", "compile", "steps", "training", "suite"]
    assert asked[1][asked[1].index("--only") + 1] == "steps,training,suite"
    assert report._parts("launches,suite") == ["device", "launches", "suite"]  # nothing of a catalogue
    assert set(report.COMPILED) == set(precompile.OF_THE_REPORT)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--seconds", "0"], "--seconds: expected a number above 0, got 0"),
        (["--only", "ladders"], "error: only: expected some of device, compile, steps"),
    ],
)
def test_options_with_which_nothing_can_run_are_refused(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        command(*arguments, out=tmp_path / "out")
    assert left.value.code == 2
    assert said in capsys.readouterr().err


def test_parts_that_are_too_much_for_one_command_run_where_they_are_named() -> None:
    assert not set(report._parts(None)) & set(report.ASKED_FOR)
    assert report._parts(",".join(report.ASKED_FOR)) == ["device", "compile", *report.ASKED_FOR]
    assert report._parts("commands") == ["device", "commands"]  # they compile what they launch
    assert set(report.SHARES) == set(PARTS)


def test_a_part_that_crashes_or_hangs_costs_only_itself(endings: Callable[..., None], tmp_path: Path) -> None:
    endings(
        device=(0, FINE),
        ladder=(None, FINE | {"status": "running"}),
        launches=(-11, FINE | {"status": "running"}),
        steps=(1, None),
        training=(0, FINE),
    )
    assert command("--only", "ladder,launches,steps,training", out=tmp_path) == 1
    document = written(tmp_path)
    assert document["complete"] is True
    assert {name: each["status"] for name, each in document["parts"].items()} == {
        "device": "ok",
        "compile": "ok",
        "ladder": "out of time",
        "launches": "error",
        "steps": "error",
        "training": "ok",
    }
    assert document["parts"]["launches"]["error"] == "its process ended with code -11"


def test_the_document_is_written_after_every_part(
    endings: Callable[..., None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[list[str]] = []
    write = gpu_document.write_json
    monkeypatch.setattr(
        gpu_document, "write_json", lambda path, document: seen.append(list(document["parts"])) or write(path, document)
    )
    endings(device=(0, FINE), ladder=(0, FINE))
    command("--only", "ladder", out=tmp_path)
    every = ["device", "compile", "ladder"]
    assert seen == [every[:1], every[:2], every, every]


def test_a_folder_takes_one_report_at_a_time(
    endings: Callable[..., None], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """They would remove the rows of each other's parts."""
    endings(device=(0, FINE))
    with RunLock(tmp_path):
        assert command("--only", "device", out=tmp_path) == 2
    assert f"error: {tmp_path} is in use: process " in capsys.readouterr().err
    assert not (tmp_path / JSON_NAME).exists()
    assert command("--only", "device", out=tmp_path) == 0
    assert not (tmp_path / LOCK).exists()


def test_an_interrupt_keeps_the_parts_that_were_done(
    endings: Callable[..., None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    endings(device=(0, FINE))
    inside = report._in_process

    def interrupted(name: str, *more: Any) -> dict[str, Any]:
        if name == "ladder":
            raise KeyboardInterrupt
        return inside(name, *more)

    monkeypatch.setattr(report, "_in_process", interrupted)
    assert command("--only", "ladder", out=tmp_path) == 2
    assert (written(tmp_path)["complete"], list(written(tmp_path)["parts"])) == (False, ["device", "compile"])


def test_the_time_is_shared_out_and_fits(endings: Callable[..., None], tmp_path: Path) -> None:
    for only in (None, "networks,network_training", "commands,network_training"):
        assert sum(report.SHARES[name] for name in report._parts(only)) < 600
    endings(**dict.fromkeys(report.SHARES, (0, FINE)))
    assert command("--seconds", "100", out=tmp_path) == 0
    budgets = [each["budget"] for each in written(tmp_path)["parts"].values()]
    assert budgets[0] == report.SHARES["device"]  # nothing runs without it, so that it is never hurried
    assert budgets[-1] == pytest.approx(100, abs=1)  # nothing before it took any
