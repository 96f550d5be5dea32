"""shared.products: what is multiplied, by whom, into which memory."""

from typing import Any

import numpy as np
import pytest

from shared import contract
from shared.bench.kinds import products
from shared.bench.kinds.products import Product
from shared.bench.measuring import compared_candidates, timing
from shared.bench.measuring.compared_candidates import Effort
from shared.bench.measuring.timing import CACHE_LINE
from tests.fake_stages import fake_stage, product

SMALL = (Product("xW", "nn", 4, 5, 3), Product("xᵀg", "tn", 5, 4, 3), Product("gWᵀ", "nt", 4, 3, 5))


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.form)
def test_operands_are_aligned_and_fit_their_form(case: Product) -> None:
    a, b, out = products.operands(case, "float32")
    for array in (a, b, out):
        assert array.dtype == np.float32
        assert array.flags.c_contiguous
        assert array.ctypes.data % CACHE_LINE == 0
    left = a.T if case.form == "tn" else a
    right = b.T if case.form == "nt" else b
    assert (left @ right).shape == out.shape == (case.m, case.n)


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.form)
def test_every_contender_computes_the_same_product(
    case: Product, stage: contract.Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    if stage.number == 1:
        pytest.skip("stage 1 does not compute in float32")
    results: dict[Any, np.ndarray] = {}

    def measure(candidates: Any, **_: Any) -> dict[Any, timing.Measurement]:
        for name, call in candidates.items():
            if name != compared_candidates.PEAK:
                results[name] = np.array(call())
        return {name: timing.summarise([1.0]) for name in candidates}

    monkeypatch.setattr(compared_candidates, "measure", measure)
    list(products.product_rows([stage], products=[case], effort=Effort(threads=1)))
    assert (stage.name, "") in results
    for result in results.values():
        np.testing.assert_allclose(result, results[products.NUMPY], rtol=1e-5, atol=1e-5)


def test_rows_say_how_many_times_as_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = {("numpy", ""): 2.0, ("stage3_c", ""): 1.0, ("stage3_c", "packed"): 4.0}

    def measure(candidates: Any, *, threaded: Any, **_: Any) -> dict[Any, timing.Measurement]:
        assert set(threaded) == {("numpy", ""), ("stage3_c", "")}
        return {name: timing.summarise([seconds[name]]) for name in candidates}

    monkeypatch.setattr(compared_candidates, "measure", measure)
    stage = fake_stage({"packed": product, "threads": product}, "stage3_c")
    rows = list(products.product_rows([stage], products=SMALL[:1], effort=Effort(threads=2)))
    assert [(row.contender, row.threads, row.ratio, row.against) for row in rows] == [
        ("NumPy", 2, 1.0, {}),
        ("stage 3", 2, 0.5, {"numpy": 2.0}),
        ("stage 3 packed", 1, 2.0, {"numpy": 0.5}),
    ]
    assert {row.flops for row in rows} == {2 * 4 * 5 * 3}
    assert {row.bytes for row in rows} == {4 * (4 * 5 + 5 * 3 + 4 * 3)}
    assert {row.name for row in rows} == {"xW 4x5x3"}
