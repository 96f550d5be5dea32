"""shared.checks.rungs: every rung of every ladder is compared, and a wrong one is found with its place."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from shared import contract
from shared.checks import rungs
from shared.checks.pair import Pair
from shared.checks.resident import LARGE, RUNS, resident_run
from shared.checks.rungs import SIZES, SMALL_SIZES, normal, rung_checks, written
from stage4_numba_cuda.backend import BACKEND
from tests.stages import USABLE_STAGES
from tests.wide import wide

REFERENCE = contract.load_stage("stage2_numpy")


def product(a: Any, b: Any, out: Any) -> Any:
    np.matmul(a, b, out=out)
    return out


def without_the_last_column(a: Any, b: Any, out: Any) -> Any:
    product(a, b, out)[:, -1] = 0
    return out


def stage_with(ladder: Mapping[str, Any], cores: Mapping[str, Any] | None = None) -> contract.Stage:
    """Stage 2 with these rungs of matmul, and tensor cores."""
    room: Any = SimpleNamespace(**vars(REFERENCE.matmul) | {"LADDER": ladder, "TENSOR_CORES": cores or {}})
    return dataclasses.replace(REFERENCE, matmul=room)


def worst_of(stage: contract.Stage, what: str, sizes: Any = SMALL_SIZES) -> dict[str, Any]:
    """Rung -> the comparison that came out worst, of one ladder in float32."""
    return {
        check.rung: max(check.run(), key=lambda comparison: comparison.tolerances)
        for check in rung_checks(stage, REFERENCE, "float32", sizes)
        if check.what == what
    }


def test_a_wrong_rung_is_found_with_its_place_and_the_others_go_on() -> None:
    def broken(a: Any, b: Any, out: Any) -> Any:
        raise RuntimeError("an illegal address was accessed")

    stage = stage_with({"right": product, "wrong": without_the_last_column, "broken": broken, "last": product})
    found = worst_of(stage, "matmul")
    assert {rung: worst.ok for rung, worst in found.items() if "in use" not in rung} == {
        "right": True,
        "wrong": False,
        "broken": False,
        "last": True,
    }
    assert found["wrong"].index[1] in (10, 16)  # the last of 11 or 17 columns
    assert "raised RuntimeError: an illegal address was accessed" in str(found["broken"])
    assert {rung: worst.ok for rung, worst in found.items() if "in use" in rung} == {
        "in use, nn": True,
        "in use, tn": True,
        "in use, nt": True,
    }


def test_a_softmax_that_overflows_far_from_zero_is_found() -> None:
    def without_the_largest(z: Any, out: Any) -> Any:
        with np.errstate(all="ignore"):
            np.exp(z, out=out)
            out /= out.sum(axis=1, keepdims=True)
        return out

    found = rungs.softmaxes(Pair(REFERENCE, REFERENCE, "float64"), without_the_largest, [(2, 3)])
    assert [comparison.ok for comparison in found] == [True, False]


def test_a_number_that_a_rung_does_not_write_is_found() -> None:
    found = worst_of(stage_with({"lazy": lambda a, b, out: out}), "matmul")["lazy"]
    assert not found.ok
    assert np.isnan(found.got)


@pytest.mark.parametrize(
    ("precision", "bits", "ok"), [("tf32", 11, True), ("tf32", 8, False), ("bf16", 8, True), ("bf16", 5, False)]
)
def test_a_tensor_core_may_round_its_factors_and_no_more(precision: str, bits: int, ok: bool) -> None:
    def rounded(x: np.ndarray) -> np.ndarray:
        mantissa, exponent = np.frexp(x)
        return np.ldexp(np.rint(mantissa * 2.0**bits) / 2.0**bits, exponent).astype(np.float32)

    def multiply(a: Any, b: Any, out: Any) -> None:
        product(rounded(a), rounded(b), out)

    stage = stage_with({}, {precision: multiply})
    assert worst_of(stage, "tensor cores", [SIZES[0], *SMALL_SIZES])[precision].ok is ok


def test_every_rung_on_tensor_cores_is_checked_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = stage_with({}, {"bf16": product, "tf32": product})
    monkeypatch.setattr(stage.matmul, "TENSOR_LADDER", {"bf16": {"mma": product, "staged": product}}, raising=False)
    monkeypatch.setattr(stage.matmul, "tensor_precisions", lambda: ["bf16"], raising=False)
    assert list(worst_of(stage, "tensor cores")) == ["bf16", "tf32"]
    monkeypatch.setattr(rungs, "stage_facts", lambda name: {"backend": "gpu"})
    assert list(worst_of(stage, "tensor cores")) == ["bf16 mma", "bf16 staged"]


@wide  # the emulator takes seconds to compile the kernels with register tiles
@pytest.mark.skipif(BACKEND.name != "emulator", reason="a GPU launches them anyway")
def test_large_batches_are_checked_with_the_kernels_that_a_gpu_takes_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    from cuda_emulator.inspection import Kernel
    from stage4_numba_cuda import tile_choice

    launched: list[Any] = []
    run = Kernel.run
    monkeypatch.setattr(Kernel, "run", lambda kernel, *launch: (launched.append(kernel), run(kernel, *launch)))
    monkeypatch.setattr(tile_choice, "multiprocessors", lambda: 132)
    stage = contract.load_stage("stage4_numba_cuda")
    for run in LARGE.values():
        assert all(each.ok for each in resident_run(Pair(stage, REFERENCE, "float32"), run))
    blocked = contract.load_part(stage.name, "kernels.blocked")
    kernels = {"FORWARD_BYTES": (32, 64), "FORWARD_PARTIAL": (32,), "BACKWARD": (64,), "UPDATE": (32,)}
    assert {getattr(blocked, name)[side] for name, sides in kernels.items() for side in sides} <= set(launched)


def test_every_ladder_of_stage_4_has_its_checks() -> None:
    stage = contract.load_stage("stage4_numba_cuda")
    found: dict[str, list[str]] = {}
    for check in rung_checks(stage, REFERENCE, "float32", SMALL_SIZES):
        found.setdefault(check.what, []).append(check.rung)
    reductions = contract.load_part("stage4_numba_cuda", "reductions")
    rounded = ["tf32", "bf16", "f16"]
    if contract.stage_facts(stage.name)["backend"] == "gpu":
        known = stage.matmul.tensor_precisions()
        rounded = [f"{each} {rung}" for each in known for rung in stage.matmul.TENSOR_LADDER[each]]
    assert found == {
        "matmul": [*stage.matmul.LADDER, "in use, nn", "in use, tn", "in use, nt"],
        "softmax": list(stage.activations.SOFTMAX_LADDER),
        "softmax_backward": list(stage.activations.SOFTMAX_BACKWARD_LADDER),
        "column_sums": list(reductions.COLUMN_SUMS_LADDER),
        "total": list(reductions.TOTAL_LADDER),
        "tensor cores": rounded,
        "step": list(stage.network.STEP_LADDER),
        "outputs": ["replayed"],
        "resident": list(RUNS) + (list(LARGE) if contract.stage_facts(stage.name)["backend"] == "gpu" else []),
    }
    in_float64 = {check.what for check in rung_checks(stage, REFERENCE, "float64", SMALL_SIZES)}
    assert in_float64 == set(found) - {"tensor cores"}


@wide
def test_the_rungs_of_stage_4_agree_with_stage_2() -> None:
    stage = contract.load_stage("stage4_numba_cuda")
    first = list(stage.matmul.LADDER)[:3]  # tests/stage4_numba_cuda has the others, which take long to compile
    for check in rung_checks(stage, REFERENCE, "float32", SMALL_SIZES):
        if check.what == "tensor cores" or (check.what == "matmul" and check.rung not in first):
            continue
        for comparison in check.run():
            assert comparison.ok, f"{check.what}, {check.rung}: {comparison}"


@wide
def test_resident_runs_are_checked_with_every_kernel_that_picks_a_batch(launched: set[str]) -> None:
    check_runs([name for name in RUNS if name != "dense layers, fused"], "float64")
    assert {f"gather_{what}" for what in ("rows", "labels", "table", "moved", "targets")} <= launched
    assert {"begin_step", "end_kept_step", "dropout_mask"} <= launched


@wide  # the emulator compiles the persistent kernel for it
def test_resident_runs_are_checked_with_the_persistent_kernel(
    launched: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDUP_PERSISTENT", "1")  # the choice of a run on a GPU
    check_runs(RUNS, "float32")
    assert {"persistent", "forward_bytes", "gather_bytes", "begin_step", "end_step"} <= launched


def check_runs(names: Iterable[str], dtype: str) -> None:
    pair = Pair(contract.load_stage("stage4_numba_cuda"), REFERENCE, dtype)
    for name in names:
        found = resident_run(pair, RUNS[name])
        assert all(comparison.ok for comparison in found), name
        assert {comparison.op for comparison in found} >= {"losses", "trained weights", "trained bias"}


@wide
@pytest.mark.parametrize("name", ["dense layers, graph", "images of any numbers"])
def test_a_resident_run_that_goes_wrong_is_found(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """With a step too few; with the dropout masks of later steps."""
    pair, run = Pair(contract.load_stage("stage4_numba_cuda"), REFERENCE, "float64"), RUNS[name]
    real = pair.stage.network.Network.resident

    def changed(change: Callable[[int, list[float], int], tuple[int, list[float], int]]) -> None:
        def resident(*arguments: Any) -> Any:
            taken = real(*arguments)
            take = taken.take
            taken.take = lambda *given: take(*change(*given))
            return taken

        monkeypatch.setattr(pair.stage.network.Network, "resident", resident)

    changed(lambda first, rates, before: (first, rates[:-1], before))
    assert {each.op for each in resident_run(pair, run) if not each.ok} >= {"losses", "trained weights"}
    changed(lambda first, rates, before: (first, rates, before + 4))
    assert all(each.ok for each in resident_run(pair, run)) is not bool(run.architecture.dropouts())


def test_a_step_that_leaves_its_statistics_alone_is_found() -> None:
    def forgets(network: Any, x: Any, y: Any, optimizer: Any, masks: Any) -> None:
        before = [array.copy() for array in network.running_statistics]
        network.train_step(x, y, optimizer, masks)
        for array, values in zip(network.running_statistics, before, strict=True):
            array[...] = values

    ladder = {"right": lambda network, *arguments: network.train_step(*arguments), "forgets": forgets}
    room: Any = SimpleNamespace(**vars(REFERENCE.network) | {"STEP_LADDER": ladder})
    stage = dataclasses.replace(REFERENCE, network=room)
    checks = rung_checks(stage, REFERENCE, "float64", SMALL_SIZES)
    steps = {check.rung: check.run() for check in checks if check.what == "step"}
    assert all(each.ok for each in steps["right"])
    assert {each.op for each in steps["forgets"] if not each.ok} == {"trained running_mean", "trained running_var"}


def test_outputs_that_go_on_with_old_numbers_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    network = REFERENCE.network.Network
    forward = network.forward
    pair, names = Pair(REFERENCE, REFERENCE, "float64"), ("dense layers", "residual block")
    right = list(rungs.replays(pair, names))
    assert len(right) == 4
    assert all(each.ok for each in right)

    def kept(self: Any, x: Any) -> Any:
        if not hasattr(self, "kept"):
            self.kept = forward(self, x)
        return self.kept

    monkeypatch.setattr(network, "forward", kept)
    stale = rungs.replays(pair, names)
    assert [each.op for each in stale if not each.ok] == ["Network.forward after a step"] * 2


@pytest.mark.skipif("stage3_c" not in USABLE_STAGES, reason="stage 3 cannot run here")
def test_the_steps_of_stage_3_agree_with_stage_2() -> None:
    for check in rung_checks(contract.load_stage("3"), REFERENCE, "float64", SMALL_SIZES):
        assert all(comparison.ok for comparison in check.run()), check


def test_results_are_written_into_arrays_full_of_nan(stage: contract.Stage) -> None:
    if stage.number == 1:
        pytest.skip("stage 1 writes into no given array")
    for dtype in ("float32", "float64"):
        pair = Pair(stage, REFERENCE, dtype)
        assert np.isnan(pair.from_stage(written(pair, (3, 2), lambda out: None))).all()
        values = normal(pair, (5, 4))
        np.testing.assert_array_equal(pair.from_stage(pair.to_stage(values)), values)
