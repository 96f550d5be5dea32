"""The guide to several processes and the recorded scaling: numbers of ranks.json, and drawings of what a ring does."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from groundup import scaling
from groundup.scaling import Machine, Network
from tests.docs.test_recorded_numbers import same, table

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "benchmarks" / "ranks"


def words(name: str) -> str:
    """A page, without its line ends."""
    return " ".join((ROOT / name).read_text(encoding="utf-8").split())


@pytest.fixture(scope="module")
def recorded() -> Any:
    return json.loads((FOLDER / "ranks.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def figures() -> Iterator[Any]:
    """The module that the drawings are made by."""
    folder = str(ROOT / "docs" / "figures")
    sys.path.insert(0, folder)
    yield importlib.import_module("ranks")
    sys.path.remove(folder)


def test_the_guides_times_are_the_recorded_ones(recorded: Any) -> None:
    machine, guide = Machine(**recorded["machine"]), words("docs/guides/several-processes.md")
    dense, lenet = (Network(**each) for each in recorded["networks"][:2])
    facts = recorded["environment"]
    for network, batch in ((dense, 64), (lenet, 1024)):
        assert f"{network.parameters:,}" in guide
        alone = 1e3 * scaling.step(machine, network, batch, 1)
        sent = 1e3 * machine.all_reduce(2, 4 * network.parameters)
        assert f"{batch:,} rows takes {alone:.2g} ms on one core, and the all-reduce {sent:.2g} ms" in guide
    assert machine.all_reduce(2, 4 * dense.parameters) > scaling.step(machine, dense, 64, 1) / 2
    assert f"{1e6 * machine.latency:.2g} µs, and $\\beta$ = {1e9 * machine.byte:.2g} ns" in guide
    assert f"{facts['cores']} cores, {recorded['mpi']}, {facts['date'][:10]}" in guide


def test_the_recorded_page_has_every_measured_row_and_the_models(recorded: Any) -> None:
    rows, page = recorded["rows"], "docs/benchmarks/README.md"
    told = table(page, "| network | scaling |")
    assert len(told) == len(rows)
    for row in rows:
        (cells,) = (c for c in told if c[:3] == [row["network"], row["scaling"], str(row["ranks"])])
        assert cells[3] == str(row["batch"])
        assert same(cells[4], row["steps_per_second"])
        shares = [scaling.measured_efficiency(rows, row), row["communication"]]
        assert cells[5:] == ([f"{share:.0%}".replace("%", " %") for share in shares] if row["ranks"] > 1 else ["", ""])
    best: dict[str, list[str]] = {}
    for curve in scaling.curves(recorded):
        best.setdefault(curve.network, [curve.network]).append(f"{curve.best:,}")
    assert table(page, "| network | batch 64 |") == list(best.values())
    assert f"load average {recorded['environment']['load_average']:.0f}" in words(page)


def test_the_drawn_ring_adds_every_rank_once_and_then_copies(figures: Any) -> None:
    states = figures.ring_states()
    assert [name for name, _, _ in states] == ["at first", "add 1", "add 2", "add 3", "copy 1", "copy 2", "copy 3"]
    sets = [[{rank} for _ in range(4)] for rank in range(4)]  # whose numbers are in each piece
    for step, (_, holds, taken) in enumerate(states[1:]):
        before = [[set(piece) for piece in pieces] for pieces in sets]
        for rank, piece in enumerate(taken):
            came = before[rank - 1][piece]
            assert step >= 3 or not came & before[rank][piece], "a rank is added twice"
            sets[rank][piece] = came | before[rank][piece] if step < 3 else came
        assert holds == [[len(piece) for piece in pieces] for pieces in sets]
    assert states[-1][1] == [[4] * 4] * 4
