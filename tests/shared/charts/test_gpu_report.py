"""shared.charts.figures.gpu_report: the figures of the GPU report, and that no time of the emulator is drawn."""

from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from shared.charts.figures import gpu_report as report_charts


def step(who: str, median: float, batch: int, **against: float) -> dict[str, Any]:
    return {
        "network": [784, 128, 10], "batch": batch, "who": who, "resident": "resident" in who, "median": median,
        "against": against,
    }  # fmt: skip


def known_step(model: str, who: str, median: float, batch: int = 64, precision: str = "float32") -> dict[str, Any]:
    names = {"kind": "step", "model": model, "batch": batch, "who": who, "precision": precision}
    return names | {"median": median}


def made_up(emulated: bool = False) -> dict[str, Any]:
    """A document with numbers that nobody measured."""
    ladder = [
        {"size": size, "precision": precision, "rung": rung, "tflops": 48 * share, "share_of_cublas": share}
        for size in (1024, 4096)
        for precision, rung, share in (("float32", "cuBLAS", 1.0), ("float32", "naive", 0.01),
                                       ("float32", "warp_tiled", 0.93), ("bf16", "mma", 0.5))
    ]  # fmt: skip
    steps = [
        each
        for batch in (64, 1024)
        for each in (
            step("graph", 7e-5, batch, eager=4.4, graph=1.2),
            step("PyTorch eager", 3.1e-4, batch),
            step("resident", 1.3e-5, batch, eager=27.0, graph=4.5),
            step("PyTorch graph, resident", 6e-5, batch),
        )
    ]
    training = [
        {"kind": "epoch", "dataset": name, "epoch": i, "test_accuracy": top - 0.1 / i, "training_seconds": 0.02 * i}
        for name, top in (("mnist", 0.98), ("fashion-mnist", 0.89))
        for i in (1, 2, 3)
    ]
    launches = [{"kind": kind, "host": {"median": us * 1e-6}} for kind, us in (("empty", 4.0), ("six arrays", 28.0),
                                                                            ("replay of 20", 0.3))]  # fmt: skip
    known = [
        *(known_step("lenet5", "graph", 1e-4), known_step("lenet5", "graph TF32", 2e-5, precision="tf32")),
        *(known_step("lenet5", "PyTorch graph", 1.5e-4), known_step("lenet5", "PyTorch compiled", 5e-5)),
        *(known_step("lenet5", "graph", 1e-3, batch=128), known_step("fashion_cnn", "graph", 4e-4)),
        {"kind": "memory", "model": "lenet5", "median": None},
    ]
    rows = {"ladder": ladder, "steps": steps, "networks": known, "launches": launches, "training": training}
    return {
        "emulated": emulated,
        "date": "2026-01-31T00:00:00",
        "device": {"name": "NVIDIA T4", "cards": [{"driver": "580.1"}]},
        "versions": {"numba": "0.68.1"},
        "parts": {name: {"rows": each} for name, each in rows.items()},
    }


@pytest.fixture
def unsaved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are drawn and not written, which takes most of a second for each."""

    def named(figure: Figure, stem: Path) -> list[Path]:
        return [stem.with_name(f"{stem.name}.{kind}") for kind in ("png", "svg")]

    monkeypatch.setattr(report_charts, "save", named)


def test_charts_come_with_titles_and_a_sentence_for_who_cannot_see_them(unsaved: None, tmp_path: Path) -> None:
    charts = {chart["file"]: chart for chart in report_charts.draw(made_up(), tmp_path)}
    assert set(charts) == {
        f"gpu_{name}.{kind}"
        for name in ("ladder", "steps", "known_networks", "launches", "training")
        for kind in ("png", "svg")
    }
    assert charts["gpu_ladder.png"]["title"] == "The rung warp_tiled reaches 93% of cuBLAS at 4,096"
    assert charts["gpu_ladder.png"]["alt"] == (
        "Share of cuBLAS's speed at 4,096 by 4,096: naive 1.0%, warp_tiled 93.0%, mma bf16 50.0%."
    )
    assert charts["gpu_steps.png"]["title"] == (
        "A training step of 784-128-10, batch 64, data on the GPU: 27 times PyTorch's speed, 4.5 times its graph's"
    )
    assert charts["gpu_launches.png"]["title"] == "One launch: 28\u00a0µs with six arrays; 0.3\u00a0µs in a graph of 20"
    assert charts["gpu_known_networks.png"]["title"] == (
        "A training step of batch 64, in times of PyTorch's speed at its fastest: lenet5 0.5"
    )
    assert charts["gpu_known_networks.png"]["alt"] == (
        "Time of one training step at batch 64. lenet5: graph 100 µs, graph TF32 20 µs, PyTorch graph 150 µs, "
        "PyTorch compiled 50 µs; fashion_cnn: graph 400 µs."
    )
    assert "resident 13 µs" in charts["gpu_steps.png"]["alt"]
    assert "six arrays 28 µs" in charts["gpu_launches.png"]["alt"]
    assert "mnist ends at 94.67%" in charts["gpu_training.png"]["alt"]


def test_no_time_of_the_emulator_is_drawn(tmp_path: Path) -> None:
    (png, _) = report_charts.draw(made_up(emulated=True), tmp_path)
    assert png["file"] == "gpu_training.png"
    assert png["title"] == "mnist: 94.7% after 3 epochs"
    assert png["alt"].startswith("Test accuracy against epochs, emulated on the CPU: ")
    assert "emulated on the CPU" in (tmp_path / "gpu_training.svg").read_text()


def test_rows_without_numbers_are_left_out_and_the_others_drawn(unsaved: None, tmp_path: Path) -> None:
    """JSON has "nan" for what is no number, and null for a rung that had no cuBLAS beside it."""
    document = made_up()
    for part, place, value in (
        ("ladder", "share_of_cublas", None),
        ("ladder", "tflops", "inf"),
        ("steps", "median", "nan"),
    ):
        document["parts"][part]["rows"].append(document["parts"][part]["rows"][-1] | {place: value})
    document["parts"]["launches"]["rows"][0]["host"]["median"] = "nan"
    document["parts"]["training"]["rows"].append({"kind": "summary"})
    assert len(report_charts.draw(document, tmp_path)) == 10
    document["parts"]["steps"]["rows"] = [step("graph", "nan", 64)]  # type: ignore[arg-type]
    assert {chart["file"] for chart in report_charts.draw(document, tmp_path) if "steps" in chart["file"]} == set()
