"""shared.bench.kinds.phases: what surrounds computing, each by itself, and what is said where it cannot be measured."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from shared import contract
from shared.bench.kinds import phases
from shared.bench.measuring import children
from shared.bench.measuring.compared_candidates import Effort
from shared.bench.measuring.rows import BenchRow
from tests.fake_stages import fake_stage, product
from tests.shared.stage_params import STAGE_4_WIDE

QUICK: dict[str, Any] = {"effort": Effort(1, 3.0, 0.0, 1)}


def by_part(rows: list[BenchRow]) -> dict[str, BenchRow]:
    return {row.part: row for row in rows}


def copying(name: str, multiply: Any = product) -> contract.Stage:
    """A stage whose arrays are copies."""
    stage = fake_stage({}, name)
    stage.arrays.asarray = lambda values, dtype="float32": np.array(values, dtype)  # type: ignore[method-assign]
    stage.arrays.to_host = lambda array: array.copy()  # type: ignore[method-assign]
    stage.matmul.matmul = multiply  # type: ignore[method-assign]
    return stage


@pytest.mark.parametrize("name", STAGE_4_WIDE)
def test_a_stage_with_memory_of_its_own_copies_in_and_out(name: str) -> None:
    stage = contract.load_stage(name)
    rows = list(phases.phase_rows([stage], sizes=[16], processes=False, **QUICK))
    copies = name in ("stage1_pure_python", "stage4_numba_cuda")
    assert [row.part for row in rows] == (["copy in", "compute", "copy out"] if copies else ["compute"])
    size = {"stage1_pure_python": 64, "stage4_numba_cuda": 128 if contract.is_emulated(name) else 16}.get(name, 16)
    matrix = size * size * (8 if name == "stage1_pure_python" else 4)
    for row in rows:
        assert (row.kind, row.name, row.shape) == ("phase", f"product {size}³", (size, size, size))
        assert row.skipped is None
        assert row.emulated is contract.is_emulated(name)
        assert row.ratio is None
        assert row.bytes == {"copy in": 2, "compute": 3, "copy out": 1}[row.part] * matrix
        assert row.flops == (2 * size**3 if row.part == "compute" else 0)


def test_a_wrong_product_is_not_timed() -> None:
    def wrong(a: Any, b: Any, out: Any = None) -> Any:
        np.matmul(a, b, out=out)
        out[-1, -1] += 1
        return out

    (row,) = phases.phase_rows([copying("stage2_numpy", wrong)], sizes=[8], processes=False, **QUICK)
    assert (row.part, row.measurement) == ("compute", None)
    assert row.skipped is not None
    assert row.skipped.startswith("its product is wrong: matmul")


def test_import_and_compile_come_from_processes_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int, bool]] = []

    def ask(code: str, request: Any = None, *, threads: int, variables: Mapping[str, str] | None = None) -> Any:
        if code == phases.IMPORT_TORCH:
            return 1.5
        asked.append((request["stage"], request["size"], "GROUNDUP_CACHE" in (variables or {})))
        return [4.0, 0.75, 0.25] if request["size"] else [0.5]

    monkeypatch.setattr(children, "ask", ask)
    stages = [copying("stage2_numpy"), copying("stage3_c")]
    rows = list(phases.phase_rows(stages, size=8, sizes=[], **QUICK))
    assert [(row.stage, row.part, row.seconds) for row in rows] == [
        ("stage2_numpy", "import", 0.5),
        ("stage3_c", "import", 0.5),
        ("stage3_c", "compile", 4.0 + 0.75 - 0.25 - 0.5),
    ]
    assert {(row.name, row.flops, row.bytes) for row in rows} == {("product 8³", 0, 0)}
    loads = [("stage2_numpy", 0, False)] * 3 + [("stage3_c", 0, False)] * 3
    assert asked == [*loads, ("stage3_c", 8, True)]


def test_a_process_that_fails_is_told_in_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(code: str, request: Any = None, **settings: Any) -> Any:
        if request["size"]:
            raise ChildProcessError("its process took longer than 180 s")
        return [0.5]

    monkeypatch.setattr(children, "ask", ask)
    found = by_part(list(phases.phase_rows([copying("stage3_c")], sizes=[], **QUICK)))
    assert found["import"].seconds == 0.5
    assert found["compile"].skipped == "its process took longer than 180 s"


def test_a_real_process_loads_the_first_floor() -> None:
    row = phases.phase_rows([contract.load_stage("1")], sizes=[], **QUICK)
    *_, imported = row
    assert (imported.part, imported.name, imported.dtype) == ("import", "product 64³", "float64")
    assert imported.seconds is not None
    assert 0 < imported.seconds < 60
