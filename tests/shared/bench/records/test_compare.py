"""Two results files beside each other: what is called faster, what noise, and what nobody can know."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from groundup.commands.bench_compare import bench_compare_command
from shared.bench.measuring.rows import BenchRow
from shared.bench.records.compare import (
    FASTER,
    SAME,
    SLOWER,
    UNKNOWN,
    Difference,
    compare,
    machines,
    only_in,
    warnings,
)
from shared.bench.records.document import Results
from shared.bench.records.document import as_document as results_document
from shared.machine.results import write_json
from tests.shared.bench import bench_results as made


def step(seconds: float = 1e-3, ratio: float | None = 2.0, **more: Any) -> BenchRow:
    given: dict[str, Any] = {"ratio_noise": 0.03, "passes": 3} | more
    return BenchRow(
        "step", "stage3_c", "784-128-10, batch 64", "float32", (784, 128, 10), 1, made.timed(seconds), "NumPy", ratio,
        **given,
    )  # fmt: skip


def results(*rows: BenchRow, environment: Mapping[str, Any] | None = None, **more: Any) -> Results:
    return Results(rows, [], made.ENVIRONMENT | (environment or {}), **({"passes": 3} | more))


def only(old: BenchRow, new: BenchRow, **environment: Any) -> Difference:
    (found,) = compare(results(old), results(new, environment=environment))
    return found


@pytest.mark.parametrize(
    ("ratio", "verdict"), [(2.0, SAME), (2.1, SAME), (1.9, SAME), (2.3, SLOWER), (1.7, FASTER)]
)  # 3 % of each run: together 6 %
def test_a_ratio_is_judged_by_the_noise_that_both_runs_state(ratio: float, verdict: str) -> None:
    found = only(step(), step(ratio=ratio))
    assert (found.verdict, found.basis, found.reference) == (verdict, "ratio", "NumPy")
    assert found.ratio is not None
    assert found.ratio.factor == pytest.approx(ratio / 2)
    assert found.ratio.noise == pytest.approx(1.03 * 1.03 - 1)


def test_what_has_no_reference_is_judged_by_an_opponent() -> None:
    old = step(ratio=None, against={"pytorch": 2.0}, against_noise={"pytorch": 0.01})
    found = only(old, replace(old, against={"pytorch": 4.0}))
    assert (found.verdict, found.reference) == (FASTER, "pytorch")
    assert found.factor == pytest.approx(0.5)
    assert found.ratio is not None
    assert (found.ratio.old, found.ratio.new) == (0.5, 0.25)
    other = replace(old, against={"cupy": 4.0, "pytorch": 2.0})
    assert (only(old, other).verdict, only(old, other).reference) == (SAME, "pytorch")


@pytest.mark.parametrize(("seconds", "verdict"), [(1.005e-3, SAME), (1.2e-3, SLOWER), (0.8e-3, FASTER)])
def test_what_has_nothing_beside_it_is_judged_by_its_quartiles(seconds: float, verdict: str) -> None:
    found = only(step(ratio=None), step(seconds, ratio=None))  # quartiles 1 % from the median
    assert (found.verdict, found.basis) == (verdict, "time")


def test_across_machines_only_ratios_are_judged() -> None:
    other = {"cpu": "another processor"}
    assert only(step(ratio=None), step(9.0, ratio=None), **other).verdict == UNKNOWN
    assert only(step(), step(9.0, ratio=1.0), **other).verdict == FASTER


@pytest.mark.parametrize(("size", "verdict"), [(1000, SAME), (1001, UNKNOWN)])
def test_memory_states_no_noise(size: int, verdict: str) -> None:
    row = BenchRow("memory", "stage2_numpy", "784-128-10, batch 64", "float32", (784, 128, 10), memory=1000)
    found = only(row, replace(row, memory=size))
    assert found.verdict == verdict
    assert found.factor == size / 1000
    timed = [replace(row, measurement=made.timed(seconds)) for seconds in (1e-3, 3e-3)]
    found = only(*timed, cpu="another processor")
    assert (found.verdict, found.basis, found.factor) == (SAME, "memory", 1.0)


def test_the_largest_changes_come_first_and_the_noise_last() -> None:
    names = {"a": 1.0, "b": 1.5, "c": 3.0, "d": 0.2, "e": 0.5}
    old = [replace(step(), name=name) for name in names]
    new = [replace(step(ratio=2 * factor), name=name) for name, factor in names.items()]
    found = compare(results(*old), results(*new))
    assert [(each.new.name, each.verdict) for each in found] == [
        ("d", FASTER),
        ("e", FASTER),
        ("c", SLOWER),
        ("b", SLOWER),
        ("a", SAME),
    ]


def test_rows_of_one_file_alone_are_listed_and_skipped_ones_count_as_absent() -> None:
    common, gone = step(), replace(step(), variant="fused")
    skipped = replace(gone, measurement=None, skipped="too slow")
    old, new = results(common, gone), results(common, skipped, replace(step(), variant="new"))
    assert [row.variant for row in only_in(old, new)] == ["fused"]
    assert [row.variant for row in only_in(new, old)] == ["new"]
    assert len(compare(old, new)) == 1


def test_what_differs_between_the_environments_is_listed_with_inner_facts() -> None:
    stage3 = dict(made.ENVIRONMENT["stage3_c"]) | {"compiler": "clang 19"}
    new = results(step(), environment={"numpy": "9.9", "stage3_c": stage3, "date": "2027-01-01"}, quick=True)
    assert machines(results(step()), new) == [
        ("numpy", "2.4.6", "9.9"),
        ("stage3_c, compiler", "cc (Debian 12.2.0) 12.2.0", "clang 19"),
        ("quick", False, True),
    ]


def test_a_run_that_cannot_be_trusted_is_warned_of() -> None:
    assert warnings(results(), results(passes=2)) == []
    said = warnings(results(complete=False), results(passes=1, environment={"cpu": "another"}))
    assert [each.partition(":")[0] for each in said] == [
        "the two runs are from different machines",
        "the old run was interrupted",
        "the new run is a single pass",
    ]


def test_a_whole_run_beside_itself_differs_in_nothing() -> None:
    full = made.full_results()
    found = compare(full, full)
    assert len(found) == sum(row.skipped is None for row in full.rows)
    assert {each.verdict for each in found} <= {SAME, UNKNOWN}
    assert only_in(full, full) == []
    assert machines(full, full) == []


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    old = results(step(), replace(step(), variant="fused"), replace(step(), variant="gone"))
    new = results(step(), replace(step(ratio=1.0), variant="fused"), environment={"numpy": "9.9"})
    paths = tmp_path / "old.json", tmp_path / "new.json"
    for path, each in zip(paths, (old, new), strict=True):
        write_json(path, results_document(each))
    return paths


def test_the_command_shows_changes_and_counts_the_rest(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    bench_compare_command(*files, False, False)
    out = capsys.readouterr().out
    assert "numpy   2.4.6   9.9" in out
    assert "Faster than the noise explains" in out
    assert "stage 3 fused" in out
    assert "0.500" in out
    assert "Of 2 measured in both: 1 faster, 0 slower, 0 unknown, 1 within the noise (--all shows them)" in out
    assert "only in the old file: step 784-128-10, batch 64 (stage 3 gone)" in out
    assert "Within the noise\n" not in out


def test_the_command_prints_json(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    bench_compare_command(*files, False, True)
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == 1
    assert document["environment"] == [{"fact": "numpy", "old": "2.4.6", "new": "9.9"}]
    assert [each["verdict"] for each in document["differences"]] == [FASTER, SAME]
    assert document["differences"][0]["ratio"]["factor"] == 0.5
    assert [each["variant"] for each in document["only_old"]] == ["gone"]
    assert document["only_new"] == []
