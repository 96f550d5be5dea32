"""The numbers of a few pages are those of the recorded files that they come from."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from groundup.course.manifest import course
from shared.data.datasets import load_dataset
from tests.wide import wide

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


def test_a_number_that_is_not_the_recorded_one_is_found() -> None:
    assert same("1,230", 1231.4)
    assert same("89 %", 88.8)
    assert not same("1,240", 1231.4)
    assert not same("88 %", 88.8)


def test_the_readmes_figures_without_a_gpu_are_the_recorded_ones() -> None:
    """Those of the GPU are held by test_gpu_pages."""
    readme = " ".join(page("README.md").split())
    race = recorded("race-2-cores/results.json")
    _, numpy, c, *_ = race["stages"]
    assert f"After {['no', 'one', 'two', 'three', 'four', 'five'][race['settings']['epochs']]} epochs" in readme
    assert [stage["other_predictions"] for stage in race["stages"]] == [0, 0, 0, 0]
    machine, bench = race["environment"], recorded("bench-2-threads/results.json")
    where = f"{machine['cpu']}, {machine['cores']} cores, {machine['date'][:10]}"
    assert f"trains {numpy['speed']:.0f} times as fast as pure Python, and C {c['speed']:.0f} times ({where})" in readme
    images = len(load_dataset(race["settings"]["dataset"]).test.y)
    assert f"they give each of {images:,} test images the same class" in readme
    gpu = next(line for line in page("docs/benchmarks/gpu.md").splitlines() if line.startswith("- **GPU**: an "))
    assert f"On an {gpu.removeprefix('- **GPU**: an ').split(' (')[0]} the kernels" in readme
    day = recorded("gpu/nvidia-h200-2026-11-26/gpu_report.json")["date"][:10]
    told = f"Processor: {bench['environment']['cpu']}, {bench['environment']['date'][:10]}. GPU: NVIDIA H200, {day}."
    assert told in readme
    rows = bench["rows"]
    small, large = (
        next(row for row in rows if (row["kind"], row["stage"], row["dtype"], row["name"], row["shape"])
             == ("ladder", "stage3_c", "float32", "threads", [size] * 3))
        for size in (64, 256)
    )  # fmt: skip
    assert (
        "| C, product of 256 by 256, float32, two cores "
        f"| {large['against']['numpy']:.2f} times as fast as NumPy's library | noise "
        f"{100 * large['against_noise']['numpy']:.0f} %; at 64 by 64 it is {small['against']['numpy']:.2f} times as"
    ) in readme
    step = next(row for row in rows if (row["kind"], row["dtype"], row["name"], row["variant"])
                == ("step", "float32", "784-128-10, batch 64", "one_call"))  # fmt: skip
    numpy, pytorch = (step["against"][who] for who in ("stage2_numpy", "pytorch"))
    noise = [100 * step["against_noise"][who] for who in ("stage2_numpy", "pytorch")]
    assert (
        "| C, training step 784-128-10, batch 64, two cores "
        f"| {1e6 * step['measurement']['median']:.0f} µs: {numpy:.2f} times as fast as NumPy, "
        f"{pytorch:.2f} times as PyTorch | noise {noise[0]:.0f} % and {noise[1]:.0f} %"
    ) in readme


def test_what_eight_bits_lose_is_recorded() -> None:
    networks = list(recorded("eight-bits.json")["networks"].values())
    own, files = (
        table("docs/guides/eight-bits.md", f"| network | {head}") for head in ("float32: right", "file, float32")
    )
    for network, row, file in zip(networks, own, files, strict=True):
        floats, whole, of_file = *network["numbers"].values(), network["files"]
        told = [floats["right"], whole["right"], network["same_answers"]]
        assert row[1:-1] == [f"{each / 100:.2f} %" for each in told]
        assert same(row[-1], whole["bytes"] / floats["bytes"])
        sizes = [f"{size:,}" for size in of_file["bytes"].values()]
        assert file[1:4] == [*sizes, f"{of_file['same_class'] / 100:.2f} %"]
        steps, *times = file[4:]
        assert same(steps, of_file["steps"])
        assert all(same(time, 1e6 * seconds) for time, seconds in zip(times, of_file["seconds"].values(), strict=True))
        assert abs(told[0] - told[1]) <= 30
        assert told[2] >= 9900
        assert of_file["bytes"]["int8"] <= 0.3 * of_file["bytes"]["float32"]
        assert of_file["same_class"] >= 9990
        assert of_file["steps"] <= 2


def test_the_readme_counts_the_course_as_it_is() -> None:
    readme = page("README.md")
    for phase in course().phases:
        first, last = phase.weeks[0], phase.weeks[-1]
        hours = [sum(week.hours[end] for week in phase.weeks) for end in (0, 1)]
        tasks = sum(len(week.tasks) for week in phase.weeks)
        assert (
            f"| {phase.number} {phase.title} | {first.number} to {last.number} | {tasks} | {hours[0]} to {hours[1]} |"
            in (readme)
        )
    hours = [sum(week.hours[end] for phase in course().phases for week in phase.weeks) for end in (0, 1)]
    assert f"a course of {hours[0]} to {hours[1]} hours" in readme
    assert f"{len(course().tasks)} exercises and {len(course().cases)} programs with a hidden fault" in readme
    assert f"takes {hours[0]} hours, not two" in readme
    assert f"plans for\n{re.search(r'A term of (.*)', page('docs/teaching/index.md'))[1]} and for a year" in readme  # type: ignore[index]
    assert f"a step from {page('docs/guides/step-on-a-gpu.md').splitlines()[0].removeprefix('# From ')}]" in readme
    versions = re.findall(r"Python :: (3\.\d+)", page("pyproject.toml"))
    assert f"with Python {versions[0]} to {versions[-1]}" in readme
    assert readme.count("\n") < 120


@wide
def test_the_moving_picture_shows_what_the_commands_print_today() -> None:
    spec = importlib.util.spec_from_file_location("moving_picture", ROOT / "scripts" / "moving_picture.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    sys.modules["moving_picture"] = script  # its dataclass looks its module up
    spec.loader.exec_module(script)
    drawn = script.PICTURE.read_text(encoding="utf-8")
    assert len(drawn) < 300_000
    assert drawn == script.picture(script.record()), "draw it anew: python scripts/moving_picture.py"


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
    told = table("docs/guides/convolution-ladder.md", "| stage | rung | milliseconds")
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


def test_the_integer_product_has_the_recorded_times() -> None:
    rows: dict[str, dict[str, Any]] = {}
    for row in recorded("integers/results.json")["rows"]:
        if row["kind"] == "integer" and row["measurement"]:
            rows.setdefault(row["name"].removeprefix("ab "), {})[row["variant"]] = row
    told = table("docs/guides/eight-bits.md", "| product | float32, µs")
    assert [line[0] for line in told] == list(rows)
    for name, *microseconds, times, share in told:
        mine = rows[name]
        medians = [mine[rung]["measurement"]["median"] for rung in ("float32 packed", "vnni")]
        assert all(same(cell, 1e6 * seconds) for cell, seconds in zip(microseconds, medians, strict=True)), name
        assert same(times, medians[0] / medians[1]), name
        assert share == f"{100 * mine['vnni']['flops'] / medians[1] / mine['vnni']['peak']:.0f} %"
        assert float(times) >= 2.5, "what eight bits are to gain at least"


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
    found = recorded("studio/xeon.json")["studio"]
    keys = ["start_to_page_s", "click_small_ms", "click_784_128_10_ms", "digit_ms", "pixel_ms", "race_digit_ms"]
    rows = table("docs/guides/studio.md", "| | median | nine of ten under")
    for (_, median, most), key in zip(rows, [*keys, "walk_cold_s"], strict=True):
        step = 0.51 if key in ("digit_ms", "pixel_ms", "race_digit_ms") else 0.051
        assert float(median.split()[0]) == pytest.approx(found[key]["median"], abs=step)
        assert float(most.split()[0]) == pytest.approx(found[key]["p90"], abs=step)
    pictures = re.search(
        r"shows (\d+) to (\d+) pictures a second.*?A race paints (\d+) ", page("docs/guides/studio.md"), re.S
    )
    names = ("spirals_8_8_8_stage3", "default", "race")
    assert pictures
    assert [int(each) for each in pictures.groups()] == [round(found[f"pictures_a_second_{name}"]) for name in names]
