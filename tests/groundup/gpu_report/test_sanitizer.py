"""The part of the GPU report about compute-sanitizer: what its tools find, and what they could not look at."""

from types import SimpleNamespace
from typing import Any

import pytest

from groundup.gpu_report import sanitizer
from groundup.gpu_report.part import Part
from shared.bench.on_gpu.gpu_plan import GpuPlan
from shared.machine.processes import Finished

GPU = SimpleNamespace(emulated=False, name="gpu", reason="NVIDIA T4, compute capability 7.5")


def part() -> Part:
    return Part(GpuPlan(30.0, tiny=True))


@pytest.mark.skipif(sanitizer.BACKEND.name != "emulator", reason="looks at what the report says without a GPU")
def test_without_a_gpu_the_sanitizer_is_skipped() -> None:
    found = part()
    sanitizer.sanitizer(found)
    assert (found.status, found.error) == ("skipped", "no GPU")


def test_what_the_sanitizer_finds_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = "  matmul, naive, float32: ok, 2 comparisons, 0.1 tolerances apart\n" * 3
    said = {
        "memcheck": (86, f"{checks}Invalid __global__ write of size 4 bytes\n========= ERROR SUMMARY: 1 error\n"),
        "racecheck": (0, f"{checks}========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n"),
        "initcheck": (0, "========= Error: Device not supported\n========= ERROR SUMMARY: 0 errors\n"),
        "synccheck": (None, f"{checks}still at it\n"),
    }
    ended = f"{checks}  the other checks: skipped: there was no time left\n========= ERROR SUMMARY: 0 errors\n"
    early = sanitizer.verdict_of("memcheck", Finished(1, ended), 90.0)
    assert (early["clean"], early["found"], early["checks"]) == (False, False, 3)
    assert early["summary"] == "ERROR SUMMARY: 0 errors, there was no time left for the other checks"

    def run(command: list[str], seconds: float, **settings: Any) -> Finished:
        assert command[-4:-1] == ["correctness", "--tiny", "--seconds"]
        assert float(command[-1]) < seconds - 10  # the tool has time to sum up
        assert seconds > 25  # side by side: each tool has all of the part's time
        code, text = said[command[command.index("--tool") + 1]]
        return Finished(code, text)

    monkeypatch.setattr(sanitizer, "BACKEND", GPU)
    monkeypatch.setattr(sanitizer, "find_sanitizer", lambda: "/usr/bin/compute-sanitizer")
    monkeypatch.setattr(sanitizer.processes, "run", run)
    found = part()
    sanitizer.sanitizer(found)
    assert found.status == "failed"
    assert "memcheck: ERROR SUMMARY: 1 error, exit code 86; initcheck: Error: Device not supported" in found.error
    assert {row["tool"]: (row["clean"], row["found"], row["checks"]) for row in found.rows} == {
        "memcheck": (False, True, 3),
        "racecheck": (True, False, 3),
        "initcheck": (False, False, 0),  # the program ran, but nothing was watched
        "synccheck": (False, False, 3),
    }
    assert found.rows[3]["summary"].startswith("stopped after")
    assert "Invalid __global__ write of size 4 bytes" in found.rows[0]["output"]
    monkeypatch.setattr(sanitizer, "find_sanitizer", lambda: None)
    missing = part()
    sanitizer.sanitizer(missing)
    assert missing.error == "compute-sanitizer is neither on the PATH nor in /usr/local/cuda*/bin"
