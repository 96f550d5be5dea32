"""shared.pytorch: what is said without PyTorch, and, where it is installed, that it trains the same network."""

import importlib
from typing import Any

import numpy as np
import pytest

from shared import contract
from shared.bench.kinds import products, steps, training
from shared.bench.measuring.compared_candidates import Effort
from shared.bench.measuring.rows import Curve
from shared.bench.peers import pytorch
from shared.data.datasets import Dataset, Split


def test_without_torch_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pytorch.importlib.util, "find_spec", lambda name: None)
    torch, reason = pytorch.load_torch(1)
    assert torch is None
    assert reason == "PyTorch is not installed (pip install torch); it is only measured against"


def test_a_torch_that_cannot_be_imported_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> Any:
        raise OSError("libgomp.so.1: cannot open shared object file")

    monkeypatch.setattr(pytorch.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(pytorch.importlib, "import_module", broken)
    assert pytorch.load_torch(1) == (
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
    monkeypatch.setattr(pytorch.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(pytorch.importlib, "import_module", lambda name: fake)
    assert pytorch.load_torch(3) == (fake, "9.9")
    assert fake.threads == 3


@pytest.fixture
def torch() -> Any:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed; it is only measured against")
    return importlib.import_module("torch")


@pytest.mark.parametrize("case", products.PRODUCTS[:3], ids=lambda case: case.form)
def test_products_are_numpys(torch: Any, case: products.Product) -> None:
    a, b, out = products.operands(case, "float32")
    pytorch.product(torch, case.form, a, b, out)()
    expected = (a.T if case.form == "tn" else a) @ (b.T if case.form == "nt" else b)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


def test_steps_have_the_losses_of_stage_2(torch: Any) -> None:
    case = steps.Case((7, 5, 3), 4, "float64")
    rows = list(
        steps.step_rows([contract.load_stage("2")], cases=[case], effort=Effort(repeats=1, threads=1), torch=torch)
    )
    assert [row.contender for row in rows] == ["stage 2", "PyTorch"]
    assert [row.skipped for row in rows] == [None, None]


def test_training_follows_stage_2(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "REST", 0.0)
    random = np.random.default_rng(0)
    splits = []
    for count in (200, 100):
        y = random.integers(0, 3, count)
        splits.append(Split((random.random((count, 3)) + np.eye(3)[y]).astype(np.float32), y))
    data = Dataset("blobs", *splits, 3)
    recipe = training.Recipe(8, 16, 0.1, 0.9, "cosine", 3, 0.5, "float64")
    things = training.training_rows([contract.load_stage("2")], data, recipe=recipe, threads=1, torch=torch)
    mine, theirs = (thing for thing in things if isinstance(thing, Curve))
    assert (mine.stage, theirs.stage) == ("stage2_numpy", "pytorch")
    assert mine.accuracy == theirs.accuracy
    np.testing.assert_allclose(theirs.loss, mine.loss, rtol=1e-9)
