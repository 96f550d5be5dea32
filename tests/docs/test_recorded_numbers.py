"""The numbers of a few pages are those of the recorded files that they come from."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "docs" / "benchmarks"


def recorded(name: str) -> Any:
    """A recorded file."""
    return json.loads((BENCHMARKS / name).read_text(encoding="utf-8"))


def page(name: str) -> str:
    """A page's text."""
    return (ROOT / name).read_text(encoding="utf-8")


def table(name: str, heading: str) -> list[list[str]]:
    """The rows of a page's table, from the one below its heading on."""
    lines = page(name).split(f"\n{heading}", 1)[1].splitlines()[2:]
    end = next(i for i, line in enumerate(lines) if not line.startswith("|"))
    return [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines[:end]]


def same(told: str, value: float) -> bool:
    """Whether a text has the value's first three digits, rounded, or the first two."""
    number = float(re.sub(r"[^\d.]", "", told))
    return number in (float(f"{value:.3g}"), float(f"{value:.2g}"))


def test_the_readme_shows_the_recorded_race() -> None:
    rows = [re.split(r" {2,}", line) for line in re.findall(r"^stage \d.+%.+$", page("README.md"), re.MULTILINE)]
    stages = recorded("race-2-cores/results.json")["stages"]
    assert len(rows) == len(stages)
    for (_, accuracy, epoch, speed, times, differ, worst), stage in zip(rows, stages, strict=True):
        assert accuracy == f"{stage['test_accuracy']:.2%}"
        assert same(epoch, stage["seconds_per_epoch"])
        assert speed == f"{stage['samples_per_second']:,.0f}"
        assert same(times, stage["speed"])
        if differ != "-":
            assert int(differ) == stage["other_predictions"]
            assert worst == f"{stage['worst']['tolerances']:.1g}"


def test_the_page_on_c_has_the_recorded_ladder_and_steps() -> None:
    found = recorded("bench-2-threads/results.json")["rows"]
    ladder = {
        row["name"]: row
        for row in found
        if (row["kind"], row["stage"], row["dtype"], row["shape"]) == ("ladder", "stage3_c", "float32", [512] * 3)
    }
    rows = table("docs/c.md", "| rung | what it changes")
    assert [row[0] for row in rows] == list(ladder)
    for rung, _, speed, share, beside in rows:
        assert same(speed, ladder[rung]["gflops"])
        assert same(share, 100 * ladder[rung]["share_of_peak"])
        assert same(beside, ladder[rung]["against"]["numpy"])
    noises = [row["against_noise"]["numpy"] for row in ladder.values()]
    told = [int(number) / 100 for number in re.findall(r"up to (\d+) %", page("docs/c.md"))]
    assert told == [round(max(noises[3:]), 2), round(max(noises[:3]), 2)]
    contenders = ["stage2_numpy", "op_by_op", "fused", "one_call", "pytorch"]
    rows = table("docs/c.md", "| a step of 784-128-10, batch 64, float32")
    for column, name in ((1, "bench-quick"), (2, "bench-2-threads")):
        steps = {
            row["variant"] or row["stage"]: row["measurement"]["median"]
            for row in recorded(f"{name}/results.json")["rows"]
            if (row["kind"], row["dtype"], row["name"]) == ("step", "float32", "784-128-10, batch 64")
        }
        for row, who in zip(rows, contenders, strict=True):
            assert same(row[column], 1e6 * steps[who]), (row, who)


def test_the_convolution_ladder_has_the_recorded_times() -> None:
    rows = [row for row in recorded("convolutions/results.json")["rows"] if row.get("part") == "forward"]
    second = {(row["stage"], row["variant"]): row for row in rows if row["shape"][:5] == [32, 64, 13, 13, 128]}
    stage = ""
    told = table("docs/guides/convolution-ladder.md", "| floor | rung | milliseconds")
    assert len(told) == 11
    for floor, rung, milliseconds, speed in told:
        stage = {"NumPy": "stage2_numpy", "C": "stage3_c", "PyTorch": "pytorch"}.get(floor, stage)
        row = second[stage, rung]
        assert same(milliseconds, 1e3 * row["measurement"]["median"]), rung
        assert same(speed, row["gflops"]), rung
    python = {
        (tuple(row["shape"]), row["variant"]): row["measurement"]["median"]
        for row in rows
        if row["stage"] == "stage1_pure_python" and row["measurement"]
    }
    gains = [python[shape, "seven_loops"] / python[shape, "im2col"] for shape, rung in python if rung == "seven_loops"]
    assert f"is {min(gains):.0f} to {max(gains):.0f} times as fast as its first" in page(
        "docs/guides/convolution-ladder.md"
    )


def test_the_step_on_a_gpu_has_the_recorded_times() -> None:
    report = recorded("gpu/nvidia-h100-80gb-hbm3-2026-11-22/gpu_report.json")
    steps = {
        row["who"]: 1e6 * row["median"]
        for row in report["parts"]["steps"]["rows"]
        if (row["network"], row["batch"]) == ([784, 128, 10], 64)
    }
    # the last of them, persistent, is of the newest record: test_gpu_pages has it
    told = re.findall(r"^## .*: ([\d.,]+) µs$", page("docs/guides/step-on-a-gpu.md"), re.MULTILINE)[:-1]
    rungs = ["op_by_op", "fused", "few_kernels", "graph", "resident"]
    assert [float(each.replace(",", "")) for each in told] == [
        pytest.approx(steps[rung], abs=0.5 if steps[rung] > 100 else 0.05) for rung in rungs
    ]
    ratio = steps["PyTorch graph, resident"] / steps["resident"]
    assert f"{ratio:.2f} times as long as ours" in page("docs/guides/step-on-a-gpu.md")
    launches = {row["kind"]: 1e6 * row["host"]["median"] for row in report["parts"]["launches"]["rows"]}
    rows = table("docs/guides/step-on-a-gpu.md", "| one launch | time of the host")
    for (_, time), kind in zip(rows, ("empty", "six scalars", "six arrays"), strict=True):
        assert same(time, launches[kind])


def test_the_studio_answers_in_the_recorded_times() -> None:
    found = recorded("studio/epyc.json")["studio"]
    keys = ["start_to_page_s", "click_small_ms", "click_784_128_10_ms", "digit_ms", "walk_cold_s"]
    rows = table("docs/guides/studio.md", "| | median | nine of ten under")
    for (_, median, most), key in zip(rows, keys, strict=True):
        assert float(median.split()[0]) == pytest.approx(found[key]["median"], abs=0.5 if key == "digit_ms" else 0.051)
        assert float(most.split()[0]) == pytest.approx(found[key]["p90"], abs=0.2 if key == "digit_ms" else 0.051)
