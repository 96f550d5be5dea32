"""shared.bench.on_gpu.gpu_goals: every goal has a sentence with the ratio that it is about, and a verdict."""

from __future__ import annotations

from typing import Any

from shared.bench.on_gpu.gpu_goals import (
    Goal,
    goals,
    lines,
)  # fmt: skip

FINE: dict[str, Any] = {"status": "ok", "rows": []}


def judged(**parts: Any) -> dict[str, Goal]:
    document = {"emulated": False, "parts": parts}
    return {each.what: each for each in goals(document)}


def part(*rows: dict[str, Any], status: str = "ok") -> dict[str, Any]:
    return {"status": status, "rows": list(rows)}


def product(rung: str, tflops: float, share: float | None, precision: str = "float32") -> dict[str, Any]:
    return {"size": 4096, "precision": precision, "rung": rung, "tflops": tflops, "share_of_cublas": share}


def step(who: str, median: float, **against: float) -> dict[str, Any]:
    row = {"network": [784, 128, 10], "batch": 64, "who": who, "resident": "resident" in who}
    return row | {"median": median, "against": against}


def test_what_was_not_measured_is_no_goal_that_was_missed() -> None:
    found = judged(device=FINE)
    assert len(found) > 20
    assert {each.measured for each in found.values()} == {"not measured"}
    assert {each.met for each in found.values()} == {None}
    assert goals({"emulated": True, "parts": {}}) == []


def test_the_best_rung_is_judged_beside_cublas_in_its_precision() -> None:
    ladder = part(
        *(product("cuBLAS", 50, 1.0), product("naive", 1, 0.02), product("fitted_tile", 46, 0.92)),
        *(product("cuBLAS", 800, 1.0, "bf16"), product("mma", 200, 0.25, "bf16"), product("mma", 150, None, "tf32")),
    )
    found = judged(ladder=ladder)
    best, bf16 = found["product in float32 at 4,096"], found["product in bf16 at 4,096"]
    assert (best.measured, best.met) == ("0.920 of cuBLAS, 46 TFLOP/s by fitted_tile", True)
    assert (bf16.ratio, bf16.met) == (0.25, False)
    tf32 = found["product in tf32 at 4,096"]
    assert (tf32.measured, tf32.met) == ("150 TFLOP/s by mma; cuBLAS was not measured", None)


def test_a_step_is_judged_beside_pytorchs_graph_with_data_of_the_same_kind() -> None:
    rows = part(
        *(step("op_by_op", 2e-3, graph=0.04), step("graph", 4e-4, graph=0.2), step("PyTorch graph", 8e-5, eager=10.0)),
        *(step("resident, graph", 4e-5, graph=2.0), step("resident", 8e-6, graph=10.0)),
        step("PyTorch graph, resident", 8e-5),
    )
    found = judged(steps=rows)
    ours = found["step of 784-128-10, data on the GPU, batch 64"]
    assert (ours.measured, ours.met) == ("10 times as fast as PyTorch's graph, 8 µs by resident", True)
    given = found["step of 784-128-10, x and y given, batch 64"]
    assert (given.goal, given.ratio, given.met) == ("as fast as PyTorch's graph", 0.2, False)
    odd = rows | {"rows": [*rows["rows"], step("resident", 1e-6) | {"median": "nan"}]}
    assert judged(steps=odd)["step of 784-128-10, data on the GPU, batch 64"] == ours
    alone = judged(steps=part(step("resident", 8e-6)))["step of 784-128-10, data on the GPU, batch 64"]
    assert (alone.measured, alone.met) == ("8 µs by resident; PyTorch's graph was not measured", None)


def test_training_and_waits_are_judged_in_seconds() -> None:
    summary = {"kind": "summary", "dataset": "mnist", "goal": 0.97, "test_accuracy": 0.96, "epochs": 5}
    for seconds, met in ((0.029, True), (0.031, False), (None, False)):
        found = judged(training=part(summary | {"seconds_to_goal": seconds}))["training of mnist until 97%"]
        assert found.met is met
    waits = judged(
        commands=part(
            {"what": "first step", "ok": True, "seconds": 0.8, "said": ""},
            {"what": "groundup check 4", "ok": False, "seconds": 3.0, "said": "exit code 1"},
        )
    )
    assert waits["first step of a second process, after its imports"].met is True
    check = waits["groundup check 4"]
    assert (check.measured, check.met) == ("failed after 3 s: exit code 1", False)
    assert list(lines([check])) == ["NOT MET  groundup check 4: failed after 3 s: exit code 1 (goal: 20 s)"]


def test_known_networks_are_judged_beside_pytorchs_graph_and_by_their_accuracy() -> None:
    def row(who: str, median: float, model: str = "lenet5", precision: str = "float32", **against: float) -> Any:
        names = {"kind": "step", "model": model, "batch": 64, "who": who, "precision": precision}
        return names | {"median": median, "against": against}

    steps = (row("fused", 3e-4, graph=0.5), row("graph", 1e-4, graph=2.5), row("PyTorch graph", 5e-5))
    rounded = row("graph TF32", 5e-5, precision="tf32", graph=5.0)
    found = judged(networks=part(*steps, rounded, row("graph", 1e-3, "residual_cnn", graph=0.9)))
    lenet, residual = found["step of lenet5, batch 64"], found["step of residual_cnn, batch 64"]
    assert (lenet.measured, lenet.met) == ("2.5 times as fast as PyTorch's graph, 100 µs by graph", True)
    assert (residual.goal, residual.met) == ("as fast as PyTorch's graph", False)
    summary = {"kind": "summary", "model": "fashion_cnn", "goal": 0.91, "epochs": 5}
    for seconds, accuracy, met in ((4.9, 0.91, True), (5.1, 0.92, False), (4.9, 0.9099, False)):
        rows = part(summary | {"seconds": seconds, "test_accuracy": accuracy})
        trained = judged(network_training=rows)["training of fashion_cnn by its recipe"]
        assert (trained.goal, trained.met) == ("91% in 5 s", met)


def test_a_part_that_ended_early_has_cleared_nothing() -> None:
    right, wrong = {"ok": True, "comparisons": 5}, {"ok": False, "comparisons": 2}
    for rows, status, met in (
        *(((right,), "ok", True), ((right,), "out of time", None)),
        *(((right, wrong), "failed", False), ((wrong,), "out of time", False)),
    ):
        assert judged(correctness=part(*rows, status=status))["every rung against float64"].met is met
    tools = [
        {"tool": "memcheck", "clean": True, "found": False, "exit_code": 0, "summary": "clean"},
        {"tool": "racecheck", "clean": False, "found": False, "exit_code": None, "summary": "stopped after 90 s"},
        {"tool": "initcheck", "clean": False, "found": True, "exit_code": 86, "summary": "ERROR SUMMARY: 1 error"},
    ]
    found = judged(sanitizer=part(*tools))
    assert [found[f"compute-sanitizer, {row['tool']}"].met for row in tools] == [True, None, False]
    for failed, status, met in ((0, "ok", True), (1, "failed", False), (0, "out of time", None)):
        counts = {"passed": 5, "failed": failed, "skipped": 1}
        assert judged(suite=part(counts, status=status))["the tests of stage 4"].met is met
