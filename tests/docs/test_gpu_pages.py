"""A GPU's numbers on the pages are those of the records: tables cell by cell, and sentences with measured values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import pytest

from shared.bench.on_gpu import gpu_goals
from shared.bench.on_gpu.gpu_record import RECORDS, REPORT, load
from shared.numbers import three_digits
from tests.docs.test_recorded_numbers import page, same, table

H100, H200 = RECORDS / "nvidia-h100-80gb-hbm3-2026-11-22", RECORDS / "nvidia-h200-2026-11-26"
GPU_PAGE = "docs/benchmarks/gpu.md"
CUDA, STORY = "docs/cuda.md", "docs/guides/step-on-a-gpu.md"
SMALL, LARGE = gpu_goals.SMALL, gpu_goals.LARGE
BATCHES = (64, 256, 1024)
MODELS = ("lenet5", "fashion_cnn", "residual_cnn")
WAYS = ("graph", "fused", "compiled")
TENSOR = ("tf32", "bf16", "f16")


@cache
def parts() -> dict[str, Any]:
    """The parts of the H200's report."""
    found: dict[str, Any] = load(H200 / REPORT)["parts"]
    return found


def rows(part: str, /, **wanted: Any) -> list[dict[str, Any]]:
    """The rows of a part that have these values."""
    return [row for row in parts()[part]["rows"] if all(row.get(name) == value for name, value in wanted.items())]


def the(part: str, /, **wanted: Any) -> dict[str, Any]:
    """The one row that has these values."""
    (row,) = rows(part, **wanted)
    return row


def step(network: tuple[int, ...], batch: int, who: str, part: str = "steps") -> float:
    """Microseconds of a step."""
    return 1e6 * float(the(part, network=list(network), batch=batch, who=who)["median"])


def times(network: tuple[int, ...], batch: int, who: str, part: str = "steps", way: str = "graph") -> float:
    return float(the(part, network=list(network), batch=batch, who=who)["against"][way])


def known(kind: str, model: str, batch: int, who: str, part: str = "networks") -> float:
    """Microseconds of a step or of a prediction."""
    return 1e6 * float(the(part, kind=kind, model=model, batch=batch, who=who)["median"])


def product(size: int, precision: str, rung: str) -> tuple[float, float]:
    """TFLOP/s and the percentage of cuBLAS's."""
    row = the("ladder", size=size, precision=precision, rung=rung)
    return row["tflops"], 100 * row["share_of_cublas"]


@cache
def kernels() -> dict[str, tuple[float, dict[str, float]]]:
    """profile.txt: step -> microseconds that the GPU works, and those of each kernel, by the last part of its name."""
    found = {}
    for block in (H200 / "profile.txt").read_text(encoding="utf-8").split("\n## ")[1:]:
        times_: dict[str, float] = {}
        for time, name in re.findall(r"^ +([\d.]+) us a step .*? mean +[\d.]+  (.+)$", block, re.MULTILINE):
            path = [part for part in re.split(r"::", name.partition("[")[0]) if "locals" not in part]
            key = "persistent" if "persistent" in name else path[-2] + "." + path[-1] if len(path) > 1 else name
            times_[key] = times_.get(key, 0.0) + float(time)
        (busy,) = re.findall(r"busy ([\d.]+) us a step", block)
        found[block.partition(": wall")[0]] = float(busy), times_
    return found


def of_kernel(step_: str, name: str) -> float:
    """Microseconds a step of all kernels with this in their name."""
    return sum(time for key, time in kernels()[step_][1].items() if name in key)


def host() -> tuple[float, float]:
    """host_profile.txt: milliseconds in copy_to_device, and of all, in the dense network's 300 steps."""
    text = (H200 / "host_profile.txt").read_text(encoding="utf-8").partition("lenet5")[0]
    (whole,) = re.findall(r"function calls .* in ([\d.]+) seconds", text)
    (copying,) = re.findall(r"^ +300 +[\d.]+ +[\d.]+ +([\d.]+) .*\(copy_to_device\)$", text, re.MULTILINE)
    return 1e3 * float(copying), 1e3 * float(whole)


def assert_same(told: Sequence[str], values: Sequence[float | None]) -> None:
    """The cells have these values, in three digits or two; None for an empty cell."""
    for cell, value in zip(told, values, strict=True):
        assert (cell == "") if value is None else same(cell, value), (told, cell, value)


# ---- tables


def test_the_ladders_of_products() -> None:
    told = table(GPU_PAGE, "| rung, float32 |")
    library, *rungs = (row["rung"] for row in rows("ladder", size=4096, precision="float32"))
    assert [row[0] for row in told] == [*rungs, library]
    for rung, *cells in told:
        found = [product(size, "float32", rung) for size in (1024, 2048, 4096)]
        assert_same(cells, [*(share for _, share in found), found[-1][0]])
    told = table(GPU_PAGE, "| rung, 4,096 by 4,096 |")
    for rung, *cells in told:
        values: list[float | None] = []
        for precision in TENSOR:
            is_there = rows("ladder", size=4096, precision=precision, rung=rung)
            values += product(4096, precision, rung) if is_there else (None, None)
        assert_same(cells, values)
    assert {row[0] for row in told} == {row["rung"] for name in TENSOR for row in rows("ladder", precision=name)}
    for rung, *cells in table(CUDA, "| rung | TFLOP/s | share of cuBLAS |"):
        tflops, share = product(4096, "float32", rung)
        assert_same(cells, [tflops, None if rung == "cuBLAS" else share])
    for rung, *cells in table(CUDA, "| rung | tf32 | bf16 |"):
        assert_same(cells, [product(4096, precision, rung)[1] for precision in TENSOR[:2]])


@pytest.mark.parametrize("network", [SMALL, LARGE], ids=str)
def test_the_steps(network: tuple[int, ...]) -> None:
    name = "-".join(map(str, network))
    text = page(GPU_PAGE)
    place = re.search(rf"^{name}[:,][^|]*\n\|", text, re.MULTILINE)
    assert place is not None
    lines = text[place.end() - 1 :].splitlines()
    told = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2 : lines.index("")]]
    assert {row[0] for row in told} == {row["who"] for row in rows("steps", network=list(network))}
    for who, *cells in told:
        assert_same(cells, [step(network, batch, who) for batch in BATCHES])


def test_the_steps_beside_pytorchs_fastest() -> None:
    told = table(GPU_PAGE, "| network | batch | our rung | ours |")
    assert len(told) == len(BATCHES) * 2 + len(MODELS)
    fused, compiled = [], []
    for name, batch, who, *cells in told:
        if name in MODELS:
            ours = known("step", name, int(batch), who, "fastest_pytorch")
            theirs = [known("step", name, int(batch), f"PyTorch {way}", "fastest_pytorch") for way in WAYS]
        else:
            network, count = tuple(map(int, name.split("-"))), int(batch.replace(",", ""))
            ours = step(network, count, who, "fastest_pytorch")
            theirs = [step(network, count, f"PyTorch {way}, resident", "fastest_pytorch") for way in WAYS]
        assert_same(cells, [ours, *theirs, theirs[0] / ours, theirs[2] / ours])
        fused.append(theirs[0] / theirs[1])
        compiled.append(theirs[0] / theirs[2])
    assert max(abs(ratio - 1) for ratio in fused) < 0.01
    assert f"{min(compiled):.1f} to {max(compiled):.1f} times as fast" in flat(GPU_PAGE)


def test_the_known_networks() -> None:
    cases = (
        ("| network | batch | fused | graph |", "", ("fused", "graph"), (32, 64, 128)),
        ("| network, TF32 on | batch |", " TF32", ("graph TF32",), (32, 64, 128)),
    )
    for heading, suffix, ours, batches in cases:
        told = table(GPU_PAGE, heading)
        assert [(row[0], int(row[1])) for row in told] == [(model, batch) for model in MODELS for batch in batches]
        theirs = [f"PyTorch {way}{suffix}" for way in ("eager", "graph")] + [f"PyTorch graph{suffix} channels-last"]
        for model, batch, *cells in told:
            values = [known("step", model, int(batch), who) for who in (*ours, *theirs)]
            row = the("networks", kind="step", model=model, batch=int(batch), who=ours[-1])
            assert_same(cells, [*values, row["against"][f"graph{suffix}"]])
    who = ("in use", "PyTorch eager", "PyTorch graph", "TF32", "PyTorch eager TF32", "PyTorch graph TF32")
    told = table(GPU_PAGE, "| network | batch | ours | PyTorch, eager |")
    assert [(row[0], int(row[1])) for row in told] == [(model, batch) for model in MODELS for batch in (1, 8, 32, 64)]
    for model, batch, *cells in told:
        assert_same(cells, [known("inference", model, int(batch), each) for each in who])
    beside = [row["against"]["eager"] for row in rows("networks", kind="inference", who="in use")]
    slower = f"{1 / max(beside):.2f} to {1 / min(beside):.2f} times as long as PyTorch without a graph"
    assert slower in flat(GPU_PAGE)
    beside = [row["against"]["graph"] for row in rows("networks", kind="inference", who="in use")]
    assert f"at least {1 / max(beside):.1f} times as long as its graph" in flat(GPU_PAGE)


def test_a_convolution_and_the_time_of_the_kernels() -> None:
    names = {"PyTorch: cuDNN, TF32 off": "PyTorch", "PyTorch: cuDNN, TF32 on": "PyTorch TF32"}
    for rung, cell in table(GPU_PAGE, "| forward | µs |"):
        row = the("networks", kind="convolution", part="forward", who=names.get(rung, rung))
        assert same(cell, 1e6 * row["median"]), rung
    of_text = {
        "correlate": "correlate.correlate_bloc",
        "correlate_weights": "correlate_weights.correl",
        "max_backward": "pooling.max_backward",
        "normalise": "batch_norm.normalise",
        "forward": "tiled.forward",
    }
    for model, busy, most in table(GPU_PAGE, "| | kernels work, µs a step |"):
        title = f"{model} b64 ours graph"
        assert same(busy, kernels()[title][0])
        for name, told in re.findall(r"`(\w+)`[^\d,]* ([\d.]+)", most):
            assert same(told, of_kernel(title, of_text[name])), (model, name, told)


def test_the_trainings_and_the_launches() -> None:
    told = {row[0]: row[2:] for row in table(GPU_PAGE, "| network | data | right of the test images")}
    assert set(told) == {"784-128-10", "fashion_cnn", "residual_cnn"}
    for name, (accuracies, seconds, goal) in told.items():
        part = "network_training" if name in MODELS else "training"
        mine = [row for row in parts()[part]["rows"] if row.get("model", name) == name]
        epochs, (summary,) = [row for row in mine if row["kind"] == "epoch"], [row for row in mine if "goal" in row]
        assert accuracies.strip(" %").split(", ") == [f"{100 * row['test_accuracy']:.2f}" for row in epochs]
        assert [in_seconds(each) for each in seconds.split(", ")] == [
            pytest.approx(row["training_seconds"], rel=5e-3) for row in epochs
        ]
        aimed, after = goal.split(" after ")
        assert aimed == f"{100 * summary['goal']:.0f} %"
        assert in_seconds(after) == pytest.approx(summary["seconds_to_goal"], rel=5e-3)
    kinds = [row["kind"] for row in parts()["launches"]["rows"]]
    for (_, cell), kind in zip(table(GPU_PAGE, "| one launch |"), kinds, strict=True):
        assert same(cell, 1e6 * the("launches", kind=kind)["host"]["median"])


def in_seconds(text: str) -> float:
    number, unit = text.split()
    return float(number) / {"ms": 1e3, "s": 1.0}[unit]


def test_what_was_compared() -> None:
    text = flat(GPU_PAGE)
    checks = parts()["correctness"]["rows"]
    assert all(row["ok"] for row in checks)
    assert f"all {sum(row['comparisons'] for row in checks):,} comparisons agree" in text
    assert [(row["clean"], row["checks"]) for row in parts()["sanitizer"]["rows"]] == [(True, 93)] * 4
    assert "in 93 checks each" in text
    suite = parts()["suite"]["rows"][0]
    assert f"{suite['passed']:,} passed, {suite['failed']} failed, {suite['skipped']} skipped" in text
    of_machine = sum("/machine/" in each for each in suite["failures"])
    assert f"Of the {suite['failed']} tests that failed, {of_machine} belong to" in text
    for part, text_ in (("steps", "{} of {} of the part `steps`"), ("networks", "{} of {} of `networks`")):
        unsettled = rows(part, settled=False)
        assert text_.format(len(unsettled), len(parts()[part]["rows"])) in text


def test_the_goals_table_has_both_records_and_marks_what_was_missed() -> None:
    """In bold what a goal was missed with; the step that the H100's report lacks is in its steps_again.txt."""
    labels: dict[str, list[str]] = {
        "product in float32, 1,024 / 2,048 / 4,096": [
            f"product in float32 at {n}" for n in ("1,024", "2,048", "4,096")
        ],
        "product in tf32 / bf16, 4,096": ["product in tf32 at 4,096", "product in bf16 at 4,096"],
        **{
            f"step of {name}, data resident, batch 64 / 256 / 1,024": [
                f"step of {name}, data on the GPU, batch {batch:,}" for batch in BATCHES
            ]
            for name in ("784-128-10", "784-512-512-10")
        },
        "step of 784-128-10, x and y given, batch 64": ["step of 784-128-10, x and y given, batch 64"],
        "training until 97 % of MNIST's test images are right": ["training of mnist until 97%"],
        "step of LeNet-5 / the Fashion CNN / the residual CNN, batch 64": [f"step of {m}, batch 64" for m in MODELS],
        "training of the Fashion CNN by its recipe, to 91 %": ["training of fashion_cnn by its recipe"],
        "training of the residual CNN by its recipe, to 99 %": ["training of residual_cnn by its recipe"],
    }
    told = {row[0]: row[2:] for row in table("docs/gpu-report.md", "| what | target | H100, 2026-11-22 |")}
    assert set(labels) <= set(told)
    for column, record in enumerate((H100, H200)):
        found = {goal.what: goal for goal in gpu_goals.goals(load(record / REPORT))}
        for label, names in labels.items():
            cell = told[label][column]
            goals = [found[name] for name in names]
            if cell == "not measured":
                assert {goal.measured for goal in goals} == {"not measured"}, label
                continue
            values = re.findall(r"(\*\*)?([\d.]+)(?= s|\*\*| /|$| s\b)", cell.partition(",")[0])
            assert len(values) == len(goals), (label, cell)
            for (bold, number), goal in zip(values, goals, strict=True):
                if goal.ratio is None:
                    assert (number, bold, record) == ("0.40", "**", H100), (label, goal)
                    continue
                digits = len(number.partition(".")[2])
                assert float(number) in (round(goal.ratio, digits), float(f"{goal.ratio:.3g}")), (label, number, goal)
                assert bool(bold) is (goal.met is False), (label, goal)
    checks = told["every rung against float64"][1], told["the tests of stage 4"][1]
    assert checks == ("all 13,855 comparisons agree", "**26 of 2,728** failed")


# ---- sentences


def flat(name: str) -> str:
    """A page's text in one line."""
    return " ".join(page(name).split())


def us(value: float) -> str:
    return three_digits(value)


def _sentences() -> Iterator[tuple[str, str]]:
    """(page, words that stand in it), with the record's numbers that stand in no table of the page."""
    resident, goal = us(step(SMALL, 64, "resident")), times(SMALL, 64, "resident")
    profiled = {batch: f"(784, 128, 10) b{batch} resident, rung" for batch in BATCHES}
    persistent = {batch: of_kernel(f"{title} persistent", "persistent") for batch, title in profiled.items()}
    names = ("forward", "head", "update")
    parts_of_three = {batch: [of_kernel(f"{title} graph", name) for name in names] for batch, title in profiled.items()}
    three = {batch: sum(each) for batch, each in parts_of_three.items()}
    yield GPU_PAGE, f"works {persistent[64]:.2f} of these microseconds"
    yield STORY, f"works {persistent[64]:.2f} of these microseconds"
    yield GPU_PAGE, f"{persistent[256]:.4g} µs a step at 256 and {persistent[1024]:.1f} at 1,024"
    yield GPU_PAGE, f"kernels of graph {three[256]:.1f} and {three[1024]:.1f}"
    copying, whole = host()
    yield GPU_PAGE, f"{copying:.0f} of {whole:.0f} ms were in numba-cuda's `copy_to_device`"
    yield STORY, f"of {whole:.0f} ms, {copying:.0f} are in numba-cuda's `copy_to_device`"
    yield GPU_PAGE, f"takes {resident} µs a step: {goal:.3g} times as fast as PyTorch's graph"
    given = us(step(SMALL, 64, "persistent"))
    yield GPU_PAGE, f"takes {given} µs, {times(SMALL, 64, 'persistent'):.3g} times PyTorch's graph"
    ratios = [f"{times(LARGE, batch, 'resident'):.3g}" for batch in BATCHES]
    yield GPU_PAGE, f"{ratios[0]}, {ratios[1]} and {ratios[2]} times as fast as PyTorch's graph at batches of"
    gains = [product(n, "float32", "wide_tile")[0] / product(n, "float32", "warp_tiled")[0] - 1 for n in (4096, 2048)]
    yield GPU_PAGE, f"gained {gains[0]:.0%} over warp_tiled at 4,096, and {gains[1]:.0%} at 2,048".replace("%", " %")
    backward = [the("networks", kind="convolution", part="backward", who=who)["median"] * 1e6
                for who in ("in use", "PyTorch", "PyTorch TF32")]  # fmt: skip
    told = f"ours takes {us(backward[0])} µs, and PyTorch's {us(backward[1])} with TF32 off and {us(backward[2])}"
    yield GPU_PAGE, told
    empty = the("launches", kind="replay of 20")["done"]["median"]
    yield GPU_PAGE, f"a captured kernel that does nothing takes {us(1e6 * empty)} µs"
    # the other pages
    readme = "README.md"
    tflops, share = product(4096, "float32", "fitted_tile")
    multiply = f"multiply large matrices of float32 at {share:.0f} % of cuBLAS's speed, and a training step takes"
    yield readme, f"{multiply} {resident} µs"
    tensor_share = max(row["share_of_cublas"] for row in rows("ladder", size=4096, precision="tf32")[1:])
    yield readme, f"| {us(tflops)} TFLOP/s, {share:.0f} % of cuBLAS | on the tensor cores {100 * tensor_share:.0f} %"
    beside = times(SMALL, 64, "resident", "fastest_pytorch", "compiled")
    yield readme, f"| {resident} µs: {goal:.3g} times as fast as PyTorch's CUDA graph | {beside:.3g} times with"
    from_host = f"{times(SMALL, 64, 'persistent'):.3g} times as fast as PyTorch's graph"
    yield readme, f"x and y from the host | {from_host} | slower"
    lenet = the("networks", kind="step", model="lenet5", batch=64, who="graph")["against"]["graph"]
    yield readme, f"GPU, LeNet-5, batch 64 | {lenet:.3g} times as fast as PyTorch's graph | slower"
    theirs = us(step(SMALL, 64, "PyTorch graph, resident"))
    yield "docs/benchmarks/README.md", f"| stage 4 on an H200, data on the GPU | {resident} µs |"
    yield "docs/benchmarks/README.md", f"in a CUDA graph, data on the GPU | {theirs} µs |"
    shares = [product(size, "float32", "fitted_tile")[1] / 100 for size in (1024, 2048)]
    yield CUDA, f"reached {shares[0]:.2f} of cuBLAS's speed at 1,024 on the H200, and {shares[1]:.2f} at 2,048"
    convolution = {row["who"]: us(1e6 * row["median"]) for row in rows("networks", kind="convolution", part="forward")}
    ours = ", ".join(f"{rung} {convolution[rung]}" for rung in ("im2col", "implicit_tile", "fitted"))
    yield CUDA, f"naive takes {convolution['naive']} µs, {ours}, and cuDNN {convolution['PyTorch']}"
    for who in ("op_by_op", "fused", "few_kernels", "graph", "persistent"):
        yield CUDA, f"| {us(step(SMALL, 64, who))} µs |"
    forward, head, update = parts_of_three[1024]
    yield CUDA, f"{forward:.1f} and {update:.1f} µs on the H200"
    yield STORY, f"takes {forward:.1f} µs at batch 1,024, `head` {head:.3g} and `update` {update:.1f}"
    for model in MODELS:
        rounded, exact = (us(known("step", model, 64, who)) for who in ("graph TF32", "graph"))
        yield CUDA, f"{rounded} µs with it and {exact} without" if model == "lenet5" else f"{rounded} and {exact}"
    yield CUDA, f"takes {resident} µs at batch 64. PyTorch's step, captured in a CUDA graph and with its data"
    yield STORY, f"a step takes **{resident} µs** at batch 64: {goal:.3g} times as fast as PyTorch's graph"
    yield STORY, f"takes {given} µs on the H200, `graph` {us(step(SMALL, 64, 'graph'))}, and PyTorch's graph"
    right_after = the("training", kind="summary")["seconds_to_goal"]
    yield "docs/weeks/week18.md", f"were right after {1e3 * right_after:.1f} ms of training"


def test_the_sentences() -> None:
    assert [(name, words) for name, words in _sentences() if words not in flat(name)] == []


def test_the_tables_of_the_story_and_the_rungs_of_week_16() -> None:
    for (_, time, ratio), way in zip(table(STORY, "| PyTorch's step, batch 64 |"), WAYS, strict=True):
        assert same(time, step(SMALL, 64, f"PyTorch {way}, resident", "fastest_pytorch"))
        assert same(ratio, times(SMALL, 64, "resident", "fastest_pytorch", way))
    who = ("resident", "resident, graph", "PyTorch graph, resident")
    for (_, *cells), name in zip(table(STORY, "| a run on the device |"), who, strict=True):
        assert_same(cells, [step(SMALL, batch, name) for batch in BATCHES])
    old = {
        row["who"]: 1e6 * row["median"]
        for row in load(H100 / REPORT)["parts"]["steps"]["rows"]
        if (row["network"], row["batch"]) == ([784, 128, 10], 64)
    }
    said = f"On an H100 (2026-11-22) `fused` took {old['fused']:,.0f} and `few_kernels` {old['few_kernels']:,.0f}"
    assert said in flat("docs/weeks/week16.md")
