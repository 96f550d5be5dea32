"""The profile of checkpoint 7 is the recorded one, and what it says stands in the table of week 24."""

import re

import pytest

from groundup.course.checks.check import Tally
from groundup.course.grading.checkpoints import phase7_profile
from groundup.course.manifest import ROOT


def recorded() -> tuple[float, dict[str, float]]:
    """(µs of a step, kernel -> µs) of the residual CNN, as the profiler wrote it."""
    file = ROOT / "docs" / "benchmarks" / "gpu" / "nvidia-h200-2026-11-26" / "profile.txt"
    part = file.read_text(encoding="utf-8").split("## residual_cnn b64 ours graph: wall ")[1].split("\n## ")[0]
    kernels = re.findall(r"^ +([\d.]+) us a step .* stage4_numba_cuda::kernels::(\S+)", part, re.MULTILINE)
    return float(part.split()[0]), {name: float(time) for time, name in kernels}


def test_the_checkpoints_profile_is_the_recorded_one() -> None:
    step, kernels = recorded()
    assert step == pytest.approx(1e6 * phase7_profile.STEP)
    for name, time in phase7_profile.RECORDED.items():
        assert any(each == time and f"::{name[:6]}" in kernel for kernel, each in kernels.items()), name
    slowest = sorted(kernels.values(), reverse=True)
    assert slowest[: len(phase7_profile.RECORDED)] == sorted(phase7_profile.RECORDED.values(), reverse=True)


def test_the_page_of_week_24_has_its_roofs() -> None:
    page = (ROOT / "docs" / "weeks" / "week24.md").read_text(encoding="utf-8")
    known = phase7_profile.roofs()
    for name in ("correlate", "correlate_weights", "forward"):
        taken, least = phase7_profile.RECORDED[name], 1e6 * known[name]
        row = next(line for line in page.splitlines() if line.startswith(f"| `{name}`"))
        assert row.endswith(f" | {taken:.0f} | {least:.0f} | {taken - least:.0f} |"), row
    after = phase7_profile.STEP - 1e-6 * phase7_profile.RECORDED["correlate"] + known["correlate"]
    assert f"640 =\n{1e6 * after:,.0f} µs" in page


def test_the_projects_own_function_names_the_convolution_and_then_its_gradient() -> None:
    notes: list[str] = []
    tally = Tally()
    tally.note = notes.append  # type: ignore[method-assign]
    phase7_profile._read(tally)
    assert notes[0].startswith(
        "to mend first: correlate, 765 µs of a step of 2,135, at 16 % of its roof; there the step"
    )
    assert notes[1].startswith("to mend next: correlate_weights, 330 µs of a step of 1,495")
