"""shared.bench_torch: what is said without PyTorch, and, where it is installed, that it trains the same network."""

import importlib
from typing import Any

import numpy as np
import pytest

from shared import bench_epochs, bench_products, bench_steps, bench_torch, contract
from shared.datasets import Dataset, Split


def test_without_torch_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_torch.importlib.util, "find_spec", lambda name: None)
    torch, reason = bench_torch.load_torch(1)
    assert torch is None
    assert reason == "PyTorch is not installed (pip install torch); it is only measured against"


def test_a_torch_that_cannot_be_imported_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> Any:
        raise OSError("libgomp.so.1: cannot open shared object file")

    monkeypatch.setattr(bench_torch.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(bench_torch.importlib, "import_module", broken)
    assert bench_torch.load_torch(1) == (
        None,
        "PyTorch cannot be imported: libgomp.so.1: cannot open shared object file",
    )


def test_torch_is_given_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    class Torch:
        __version__ = "9.9"
        threads = 0

        def set_num_threads(self, count: int) -> None:
            self.threads = count

    fake = Torch()
    monkeypatch.setattr(bench_torch.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(bench_torch.importlib, "import_module", lambda name: fake)
    assert bench_torch.load_torch(3) == (fake, "9.9")
    assert fake.threads == 3


@pytest.fixture
def torch() -> Any:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed; it is only measured against")
    return importlib.import_module("torch")


@pytest.mark.parametrize("case", bench_products.PRODUCTS[:3], ids=lambda case: case.form)
def test_products_are_numpys(torch: Any, case: bench_products.Product) -> None:
    a, b, out = bench_products.operands(case, "float32")
    bench_torch.product(torch, case.form, a, b, out)()
    expected = (a.T if case.form == "tn" else a) @ (b.T if case.form == "nt" else b)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


def test_steps_have_the_losses_of_stage_2(torch: Any) -> None:
    case = bench_steps.Case((7, 5, 3), 4, "float64")
    rows = list(bench_steps.step_rows([contract.load_stage("2")], cases=[case], repeats=1, threads=1, torch=torch))
    assert [row.contender for row in rows] == ["stage 2", "PyTorch"]
    assert [row.skipped for row in rows] == [None, None]


def test_an_epoch_ends_at_the_accuracy_of_stage_2(torch: Any) -> None:
    random = np.random.default_rng(0)
    splits = []
    for count in (200, 100):
        y = random.integers(0, 3, count)
        splits.append(Split((random.random((count, 3)) + np.eye(3)[y]).astype(np.float32), y))
    data = Dataset("blobs", *splits, 3)
    rows = list(bench_epochs.epoch_rows([contract.load_stage("2")], data, rounds=1, threads=1, torch=torch))
    assert [row.stage for row in rows] == ["stage2_numpy", "pytorch"]
    assert rows[0].accuracy == rows[1].accuracy
