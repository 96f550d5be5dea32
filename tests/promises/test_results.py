"""Results of commit aa8f7fd are compared and drawn, or it is said why not."""

import json
from pathlib import Path

import pytest

from tests.program import run
from tests.promises.earlier_files import MADE
from tests.wide import wide


def test_results_compare_with_later_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("bench", "compare", str(MADE / "bench.json"), str(MADE / "bench-later.json"), "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["differences"]) > 5
    assert run("bench", "compare", str(MADE / "bench.json"), str(MADE / "bench-later.json"), "--all") == 0
    assert "packed" in capsys.readouterr().out


@wide
def test_figures_are_drawn_from_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("charts", str(MADE / "bench-later.json"), "--out", str(tmp_path)) == 0
    assert "figure" in capsys.readouterr().out
    assert (tmp_path / "report.html").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (MADE / "race.json", "a race's results"),
        (MADE.parents[2] / "docs" / "benchmarks" / "ladder-2048" / "results.json", "measure again"),
    ],
    ids=["race", "older format"],
)
def test_results_that_cannot_be_drawn_say_why(file: Path, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("charts", str(file)) == 2
    assert said in capsys.readouterr().err
