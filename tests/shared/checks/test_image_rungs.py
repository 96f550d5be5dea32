"""shared.checks.image_rungs: every rung of a convolutional network is compared, and a wrong one is found."""

import dataclasses
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from shared import contract
from shared.checks.image_rungs import GRADIENTS, coarser, image_rung_checks
from shared.checks.tolerance import Comparison
from tests.wide import wide

REFERENCE, STAGE_4 = contract.load_stage("stage2_numpy"), contract.load_stage("stage4_numba_cuda")
ROOM: Any = REFERENCE.convolution


def found(stage: contract.Stage, what: str, dtype: str = "float64") -> dict[str, list[Comparison]]:
    """Rung -> its comparisons at tiny sizes."""
    checks = image_rung_checks(stage, REFERENCE, dtype, tiny=True)
    return {check.rung: check.run() for check in checks if check.what == what}


def stage_with(**rooms: Mapping[str, Any]) -> contract.Stage:
    """Stage 2 with other names in these rooms."""
    made = {room: SimpleNamespace(**vars(getattr(REFERENCE, room)) | more) for room, more in rooms.items()}
    return dataclasses.replace(REFERENCE, **made)  # type: ignore[arg-type]


def test_every_rung_of_stage_4_has_its_check() -> None:
    listed: dict[str, list[str]] = {}
    for check in image_rung_checks(STAGE_4, REFERENCE, "float32"):
        listed.setdefault(check.what, []).append(check.rung)
    room: Any = STAGE_4.convolution
    passes = contract.load_part(STAGE_4.name, "convolution_passes")
    known: list[str] = STAGE_4.matmul.tensor_precisions()  # type: ignore[attr-defined]
    rounded = [name for name in room.TENSOR_CORES if name in known]
    assert listed == {
        "convolution": list(room.CONVOLUTION_LADDER),
        "convolution gradients": [*passes.BACKWARD, "in use"],
        **({"convolution, tensor cores": rounded, "gradients, tensor cores": rounded} if rounded else {}),
        "pooling": ["all operations"],
        "batch norm": ["all operations"],
    }
    in_float64 = {check.what for check in image_rung_checks(STAGE_4, REFERENCE, "float64")}
    assert in_float64 == {what for what in listed if "tensor cores" not in what}


def test_a_wrong_rung_is_found_and_the_others_go_on() -> None:
    def without_the_last_channel(*given: Any, out: Any) -> None:
        ROOM.conv2d(*given, out=out)[:, -1] = 0

    ladder = {"right": ROOM.conv2d, "wrong": without_the_last_channel, "lazy": lambda *given, out: out}
    worst = {
        rung: [each.ok for each in comparisons]
        for rung, comparisons in found(stage_with(convolution={"CONVOLUTION_LADDER": ladder}), "convolution").items()
    }
    assert worst == {"right": [True, True], "wrong": [False, False], "lazy": [False, False]}


@pytest.mark.parametrize("wrong", [None, 0, 1, 2])
def test_a_wrong_gradient_is_found_by_its_name(wrong: int | None) -> None:
    def backward(*given: Any) -> Any:
        slopes = list(ROOM.conv2d_backward(*given))
        if wrong is not None:
            slopes[wrong] = slopes[wrong] * 1.001
        return slopes

    (comparisons,) = found(stage_with(convolution={"conv2d_backward": backward}), "convolution gradients").values()
    assert len(comparisons) == 2 * len(GRADIENTS)
    assert {each.op for each in comparisons if not each.ok} == ({GRADIENTS[wrong]} if wrong is not None else set())


def test_rounded_factors_may_be_off_by_their_rounding_and_no_more() -> None:
    assert coarser("", 10) == 1.0
    k, scale = 9, 5.0
    allowed = 4 * np.finfo(np.float32).eps * k**0.5 * scale
    assert allowed * coarser("bf16", k) == pytest.approx(allowed + (2 * 2**-8 + 2**-16) * scale)


@wide
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_rungs_of_stage_4_agree_with_stage_2(dtype: str) -> None:
    for check in image_rung_checks(STAGE_4, REFERENCE, dtype, tiny=True):
        for comparison in check.run():
            assert comparison.ok, f"{check.what}, {check.rung}: {comparison}"
