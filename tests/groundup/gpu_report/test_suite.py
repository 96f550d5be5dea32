"""The GPU report's part `suite`: which tests it runs, and what it tells of them, also when it is stopped."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from groundup.gpu_report import suite, suite_outcomes
from groundup.gpu_report.part import Part
from shared.bench.on_gpu.gpu_plan import GpuPlan
from shared.machine import processes
from tests.wide import wide


def part(seconds: float = 30.0) -> Part:
    return Part(GpuPlan(seconds, tiny=True))


@wide
def test_the_suites_failures_and_the_reasons_of_its_skips_are_told(tmp_path: Path) -> None:
    file = tmp_path / "test_three.py"
    file.write_text(
        "import os, pytest\n"
        "def test_right():\n    assert os.environ['GROUNDUP_CUDA'] == 'emulator'\n"
        "def test_wrong():\n    assert 1 == 2\n"
        "def test_elsewhere():\n    pytest.skip('needs two GPUs')\n"
    )
    found = part()
    suite.suite(found, [str(file), f"--rootdir={tmp_path}"])
    assert (found.status, found.error) == ("failed", "1 passed, 1 failed, 1 skipped")
    (row,) = found.rows
    assert row["failures"] == ["test_three.py::test_wrong: assert 1 == 2"]
    assert list(row["skips"].values()) == [1]
    assert any("assert 1 == 2" in line for line in row["output"])


def test_each_outcome_is_kept_with_its_reason_and_a_failure_stays_one(tmp_path: Path) -> None:
    file = tmp_path / "outcomes.jsonl"
    writer = suite_outcomes.Writer(file)
    for test, outcome, when, said in [
        ("skips", "skipped", "setup", ("t.py", 3, "Skipped: needs two GPUs")),
        ("fails", "failed", "call", "boom"),
        ("fails", "failed", "teardown", "boom again"),
        ("passes", "passed", "setup", None),
        ("passes", "passed", "call", None),
    ]:
        report = SimpleNamespace(nodeid=test, outcome=outcome, when=when, longrepr=said)
        writer.pytest_runtest_logreport(report)
    file_of_tests = SimpleNamespace(nodeid="t.py", outcome="skipped", longrepr=("t.py", 1, "Skipped: needs PyTorch"))
    writer.pytest_collectreport(file_of_tests)
    writer.pytest_runtest_logreport(SimpleNamespace(nodeid="fails", outcome="passed", when="call"))
    found = suite_outcomes.read(file)
    skipped = {"skips": "needs two GPUs", "t.py": "needs PyTorch"}
    assert found == suite_outcomes.Outcomes(passed=1, failed={"fails": "boom"}, skipped=skipped)


@wide  # it waits for its time to be over
@pytest.mark.parametrize("workers", [0, 2])
def test_a_suite_that_is_stopped_says_what_has_passed_and_failed_until_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    monkeypatch.setattr(suite, "usable_cores", lambda: 2 * workers)
    (tmp_path / "test_slow.py").write_text(
        "import time\ndef test_right(): pass\ndef test_wrong(): assert 0\ndef test_endless(): time.sleep(600)\n"
    )
    found = part(12.0)
    suite.suite(found, [str(tmp_path), f"--rootdir={tmp_path}"])
    assert found.status == "out of time"
    assert found.error == "stopped after 12 s: 1 passed, 1 failed, 0 skipped until then"
    assert found.rows[0]["failures"] == ["test_slow.py::test_wrong: assert 0"]


@wide
def test_the_suite_has_the_tests_that_run_stage_4s_kernels() -> None:
    begin = suite.TESTS.index("-k")
    folders, options = suite.TESTS[:begin], suite.TESTS[begin:]
    assert all((processes.ROOT / place).exists() for place in (*folders, *suite.REHEARSED))
    files = ["tests/stage4_numba_cuda/test_gather.py", "tests/floors/test_pooling.py"]
    assert all(any(file.startswith(f"{folder}/") for folder in folders) for file in files)
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *files, *options]
    collected = processes.run(command, 100, folder=processes.ROOT).output
    assert "test_gather.py::" in collected
    assert "test_pooling.py::" in collected
    assert "[stage2_numpy" not in collected


@wide
def test_a_file_of_tests_that_needs_a_missing_package_is_skipped_and_one_that_is_broken_is_not(tmp_path: Path) -> None:
    (tmp_path / "test_needs.py").write_text("import no_such_package\ndef test_it(): pass\n")
    (tmp_path / "test_fine.py").write_text("def test_it(): pass\n")
    found = part()
    suite.suite(found, [str(tmp_path), f"--rootdir={tmp_path}"])
    assert (found.status, found.rows[0]["passed"]) == ("ok", 1)
    assert found.rows[0]["skips"] == {"needs the package no_such_package": 1}
    (tmp_path / "test_broken.py").write_text("import shared.no_such_module\n")
    found = part()
    suite.suite(found, [str(tmp_path), f"--rootdir={tmp_path}"])
    assert (found.status, found.error) == ("failed", "1 passed, 1 failed, 1 skipped")
