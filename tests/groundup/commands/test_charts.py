"""`groundup charts`: what it writes, where, and what it says about files that it cannot draw."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from groundup.commands.charts import charts
from shared.bench.on_gpu import gpu_record
from shared.bench.records.document import Results, as_document
from shared.charts import book
from shared.machine.results import write_json
from tests.shared.bench import bench_results as made
from tests.wide import wide

app = typer.Typer()
app.command()(charts)


@pytest.fixture(autouse=True)
def one_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(book, "FIGURES", (book.staircase,))


def saved(folder: Path, results: Results | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    return write_json(folder / "results.json", as_document(results or made.full_results()))


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(each) for each in arguments])


EMULATED = "emulated on the CPU 1.9"


def page(folder: Path) -> str:
    return (folder / "report.html").read_text(encoding="utf-8").replace("\u00a0", " ")


def test_figures_and_page_are_written_beside_the_results(tmp_path: Path) -> None:
    result = run(saved(tmp_path / "run"))
    assert result.exit_code == 0, result.output
    looks = [f"time_per_stage{look}{kind}" for look in ("", "-dark") for kind in (".png", ".svg")]
    assert sorted(os.listdir(tmp_path / "run")) == sorted(["report.html", "results.json", *looks])
    assert "1 figure in" in result.output
    assert "time_per_stage" in result.output
    assert str(tmp_path / "run" / "report.html") in result.output
    assert EMULATED not in page(tmp_path / "run")


def test_another_folder_takes_them_where_asked_and_the_emulators_times_too(tmp_path: Path) -> None:
    path = saved(tmp_path / "run")
    assert run(path, "--out", tmp_path / "figures", "--emulated").exit_code == 0
    assert os.listdir(tmp_path / "run") == ["results.json"]
    assert EMULATED in page(tmp_path / "figures")


def test_a_file_with_too_little_for_a_figure_gets_its_page(tmp_path: Path) -> None:
    result = run(saved(tmp_path / "run", Results([], [], made.ENVIRONMENT)))
    assert result.exit_code == 0, result.output
    assert "too little was measured for a figure" in result.output
    assert sorted(os.listdir(tmp_path / "run")) == ["report.html", "results.json"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ('{"kind": "groundup race"}', "is a race's results"),
        ('{"kind": "groundup bench", "schema": 2}', "measure again"),
    ],
)
def test_a_file_that_cannot_be_drawn_is_an_error_and_nothing_is_written(
    text: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "results.json").write_text(text)
    result = run(tmp_path / "results.json")
    assert isinstance(result.exception, ValueError)
    assert message in str(result.exception)
    assert os.listdir(tmp_path) == ["results.json"]


def test_a_folder_that_takes_nothing_is_an_error_before_anything_is_drawn(tmp_path: Path) -> None:
    path = saved(tmp_path / "run")
    (tmp_path / "taken").write_text("")
    result = run(path, "--out", tmp_path / "taken")
    assert isinstance(result.exception, OSError)
    assert "choose another --out" in str(result.exception)


@wide
def test_the_figures_of_a_gpu_report_are_drawn_from_its_file(tmp_path: Path) -> None:
    record = gpu_record.newest()
    assert record is not None
    result = run(record / gpu_record.REPORT, "--out", tmp_path / "figures")
    assert result.exit_code == 0, result.output
    drawn = ("known_networks", "ladder", "launches", "steps", "training")
    names = [f"gpu_{name}{kind}" for name in drawn for kind in (".png", ".svg")]
    assert sorted(os.listdir(tmp_path / "figures")) == names
