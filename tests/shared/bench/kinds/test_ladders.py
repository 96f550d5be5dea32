"""shared.bench.kinds.ladders and machine: which rungs are timed, against what, and what is skipped and why."""

import time
from typing import Any

import numpy as np
import pytest

from shared import contract
from shared.bench.kinds import ladders
from shared.bench.measuring import compared_candidates, gpu, timing
from shared.bench.measuring.compared_candidates import Effort
from tests.fake_stages import fake_stage, product, say_of_stage_4

FOUR = "stage4_numba_cuda"


def nap(a: Any, b: Any, out: Any = None) -> Any:
    time.sleep(0.002)
    return np.matmul(a, b, out=out)


def test_ladder_rows_name_the_reference_and_follow_their_shape() -> None:
    stage = fake_stage({"nap": nap, "fast": product})
    rows = list(ladders.ladder_rows([stage], sizes=[4], dtypes=["float32"], effort=Effort(repeats=3, threads=1)))
    assert [row.name for row in rows] == ["nap", "fast"]
    assert {row.reference for row in rows} == {"NumPy a @ b, float32"}
    first = rows[0]
    assert first.flops == 2 * 4 * 4 * 4
    assert first.bytes == 3 * 4 * 4 * 4  # three matrices of 4 by 4 numbers of 4 bytes
    assert first.measurement is not None
    assert first.ratio is not None
    assert first.gflops == pytest.approx(128 / first.measurement.median / 1e9)
    assert first.ratio > 1  # 2 ms of sleep against a product of 64 multiply-adds


def test_a_rung_too_slow_for_the_next_size_is_skipped_with_the_reason() -> None:
    calls: list[int] = []

    def slow(a: Any, b: Any, out: Any = None) -> Any:
        calls.append(len(a))
        time.sleep(0.01)
        return np.matmul(a, b, out=out)

    stage = fake_stage({"slow": slow, "fast": product})
    rows = list(ladders.ladder_rows([stage], sizes=[2, 16], dtypes=["float64"], effort=Effort(repeats=1, threads=1)))
    skipped = [row for row in rows if row.skipped]
    assert [(row.name, row.shape) for row in skipped] == [("slow", (16, 16, 16))]
    assert skipped[0].skipped is not None
    assert "the limit is 1 s" in skipped[0].skipped
    assert skipped[0].measurement is None
    assert set(calls) == {2}


def test_a_rung_that_raises_costs_only_itself() -> None:
    def broken(a: Any, b: Any, out: Any = None) -> Any:
        raise RuntimeError("CUDA_ERROR_INVALID_VALUE")

    stage = fake_stage({"broken": broken, "fast": product})
    rows = list(ladders.ladder_rows([stage], sizes=[2], dtypes=["float32"], effort=Effort(repeats=1, threads=1)))
    assert [(row.name, row.skipped) for row in rows] == [
        ("broken", "broken: raised RuntimeError: CUDA_ERROR_INVALID_VALUE; not timed"),
        ("fast", None),
    ]


def test_only_the_last_rung_counts_as_threaded(monkeypatch: pytest.MonkeyPatch) -> None:
    rested: list[set[tuple[str, str]]] = []

    def measure(candidates: Any, *, threaded: set[tuple[str, str]], **_: Any) -> dict[Any, timing.Measurement]:
        rested.append(threaded)
        return {name: timing.summarise([1.0]) for name in candidates}

    monkeypatch.setattr(compared_candidates, "measure", measure)
    stages = [fake_stage({"a": product, "b": product}, name) for name in ("stage1_pure_python", "stage3_c")]
    rows = list(ladders.ladder_rows(stages, sizes=[2], dtypes=["float64"], effort=Effort(threads=6)))
    assert {(row.stage, row.name): row.threads for row in rows} == {
        ("stage1_pure_python", "a"): 1,
        ("stage1_pure_python", "b"): 1,
        ("stage3_c", "a"): 1,
        ("stage3_c", "b"): 6,
    }
    assert rested == [{ladders.REFERENCE, ("stage3_c", "b")}]
    list(ladders.ladder_rows(stages, sizes=[2], dtypes=["float64"], effort=Effort(threads=1)))
    assert rested[1] == set()


def test_a_real_peak_does_as_much_as_it_is_asked_for(stage: contract.Stage) -> None:
    if stage.ceilings is None:
        pytest.skip(f"{stage.title} does not measure the machine's peak")
    peak = stage.ceilings.peak
    for dtype in ("float32", "float64"):
        assert peak(dtype, 1000) == 1000 * peak(dtype, 1) > 0
    assert peak("float32", 1) == 2 * peak("float64", 1)  # twice as many numbers in a register
    with pytest.raises(ValueError, match="unknown dtype 'float16'"):
        peak("float16", 1)


def test_every_rung_of_a_real_ladder_is_timed(stage: contract.Stage) -> None:
    rows = list(ladders.ladder_rows([stage], sizes=[8], dtypes=["float64"], effort=Effort(repeats=1, threads=1)))
    assert [row.name for row in rows] == list(stage.matmul.LADDER)


def test_rungs_on_a_gpu_are_timed_by_events_and_set_beside_cublas(monkeypatch: pytest.MonkeyPatch) -> None:
    say_of_stage_4(monkeypatch, "gpu")
    stage = fake_stage({"slow": product, "fast": lambda a, b, out=None: product(a, b, out=out)}, FOUR)
    seconds = {(FOUR, "slow"): 4.0, (FOUR, "fast"): 1.0, ladders.CUBLAS: 2.0}
    monkeypatch.setattr(gpu, "samplers", lambda stage, names: {n: lambda call, calls, n=n: seconds[n] for n in names})
    library = gpu.Cublas("PyTorch 2.11.0", lambda: None, lambda: np.zeros((4, 4)))
    monkeypatch.setattr(gpu, "cublas", lambda a, b, precision: library)
    rows = list(ladders.ladder_rows([stage], sizes=[4], dtypes=["float32"], effort=Effort(repeats=3, threads=1)))
    assert {row.reference for row in rows} == {"cuBLAS through PyTorch 2.11.0, float32"}
    assert [(row.ratio, row.clock, row.against) for row in rows] == [
        (2.0, "events", {"cublas": 0.5}),
        (0.5, "events", {"cublas": 2.0}),
    ]
    monkeypatch.setattr(gpu, "cublas", lambda a, b, precision: None)  # neither PyTorch nor CuPy
    row, _ = ladders.ladder_rows([stage], sizes=[4], dtypes=["float32"], effort=Effort(repeats=1, threads=1))
    assert (row.reference, row.against) == ("NumPy a @ b, float32", {})


@pytest.mark.parametrize(
    "wrong",
    [lambda a, b, out: np.matmul(b, a, out=out), lambda a, b, out: out],
    ids=["its operands exchanged", "nothing written"],
)
def test_a_rung_whose_product_is_wrong_is_not_timed(wrong: Any) -> None:
    stage = fake_stage({"wrong": wrong, "right": product})
    first, second = ladders.ladder_rows([stage], sizes=[8], dtypes=["float32"], effort=Effort(repeats=1, threads=1))
    assert first.measurement is None
    assert first.skipped is not None
    assert first.skipped.endswith("; not timed")
    assert "wrong" in first.skipped
    assert (second.skipped, second.measurement is None) == (None, False)


def test_the_ladder_has_sizes_for_where_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    for backend, sizes in (("gpu", ladders.GPU_SIZES), ("emulator", ladders.EMULATED_SIZES)):
        say_of_stage_4(monkeypatch, backend)
        monkeypatch.setattr(ladders, "_ladder_at", lambda stages, size, *_: iter([size]))
        assert tuple(ladders.ladder_rows([fake_stage({"a": product}, FOUR)], dtypes=["float32"])) == sizes  # type: ignore[comparison-overlap]
