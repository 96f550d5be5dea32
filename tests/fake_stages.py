"""Fake stages for the tests of measurements: they have only the modules that the measurement uses."""

import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from shared import contract


def fake_stage(
    ladder: dict[str, Callable[..., Any]],
    name: str = "stage2_numpy",
    peak: Callable[[str, int], float] | None = None,
    triad: Callable[..., Any] | None = None,
    step_ladder: dict[str, Callable[..., float]] | None = None,
) -> contract.Stage:
    """A stage with this matmul ladder, NumPy's products, and, where given, ceilings and a step ladder."""
    module = types.SimpleNamespace()
    matmul = types.SimpleNamespace(
        LADDER=ladder,
        matmul=lambda a, b, out=None: np.matmul(a, b, out=out),
        matmul_tn=lambda a, b, out=None: np.matmul(a.T, b, out=out),
        matmul_nt=lambda a, b, out=None: np.matmul(a, b.T, out=out),
    )
    ceilings = None if peak is None and triad is None else types.SimpleNamespace(peak=peak, triad=triad)
    arrays = types.SimpleNamespace(
        asarray=lambda values, dtype="float32": np.asarray(values, dtype),
        to_host=lambda array: array,
        cuda=types.SimpleNamespace(synchronize=lambda: None),
    )
    network = types.SimpleNamespace(Network=FakeNetwork)
    if step_ladder is not None:
        network.STEP_LADDER = step_ladder
    optimizers = types.SimpleNamespace(SGD=lambda learning_rate: None)
    return contract.Stage(name, arrays, matmul, module, module, module, network, optimizers, ceilings)  # type: ignore[arg-type]


class FakeNetwork:
    """A network that learns without computing: its loss halves with every step."""

    def __init__(self, layer_sizes: Sequence[int], dtype: str) -> None:
        self.loss = 4.0

    def train_step(self, x: Any, y: Any, optimizer: Any, masks: Any = None) -> float:
        self.loss /= 2
        return self.loss


def product(a: Any, b: Any, out: Any = None) -> Any:
    """np.matmul with the signature of a rung."""
    return np.matmul(a, b, out=out)


def say_of_stage_4(monkeypatch: pytest.MonkeyPatch, backend: str) -> dict[str, Any]:
    """Let stage 4, wherever it is asked, say that its kernels run there: "gpu" or "emulator". Returns what it says."""
    device = "NVIDIA T4, compute capability 7.5" if backend == "gpu" else "numba-cuda finds no GPU"
    facts = {"backend": backend, "device": device, "emulated": backend != "gpu"}
    monkeypatch.setattr("stage4_numba_cuda.facts", lambda: facts)
    return facts
