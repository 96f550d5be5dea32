"""PyTorch on the CPU, as an opponent to measure against. It is never required: where it is missing, its rows are.

It gets what it likes best: its own contiguous tensors, `out=` where there is one, `torch.nn.Linear` and
`torch.optim.SGD` as its documentation writes them, and batches gathered by one indexing operation instead of a
DataLoader, which would cost more than the step.
"""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from shared.datasets import Dataset


def load_torch(threads: int) -> tuple[Any | None, str]:
    """(torch set to that many threads, its version), or (None, why there is none)."""
    if importlib.util.find_spec("torch") is None:
        return None, "PyTorch is not installed (pip install torch); it is only measured against"
    try:
        torch = importlib.import_module("torch")
    except (ImportError, OSError) as error:  # installed for another Python or without a library it needs
        return None, f"PyTorch cannot be imported: {error}"
    torch.set_num_threads(threads)
    return torch, str(torch.__version__)


def product(torch: Any, form: str, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> Callable[[], object]:
    """A call of torch.mm on the same memory as the arrays. form: nn, tn (a transposed) or nt (b transposed)."""
    left, right, result = (torch.from_numpy(array) for array in (a, b, out))
    left = left.t() if form == "tn" else left
    right = right.t() if form == "nt" else right
    return lambda: torch.mm(left, right, out=result)


def network(torch: Any, parameters: Sequence[np.ndarray]) -> Any:
    """torch.nn.Linear layers with ReLU between, started from copies of [W1, b1, W2, b2, …] of a stage's network."""
    layers: list[Any] = []
    for weights, bias in zip(parameters[::2], parameters[1::2], strict=True):
        if layers:
            layers.append(torch.nn.ReLU())
        weights, bias = np.array(weights), np.array(bias)
        linear = torch.nn.Linear(*weights.shape, dtype=getattr(torch, str(weights.dtype)))
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(weights.T.copy()))  # torch keeps (out_features, in_features)
            linear.bias.copy_(torch.from_numpy(bias))
        layers.append(linear)
    return torch.nn.Sequential(*layers)


def stepper(torch: Any, model: Any, learning_rate: float) -> Callable[[Any, Any], float]:
    """step(x, y) -> the loss before the step: softmax cross-entropy, backward, plain SGD."""
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
    loss_function = torch.nn.CrossEntropyLoss()

    def step(x: Any, y: Any) -> float:
        optimizer.zero_grad()
        loss = loss_function(model(x), y)
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step


def epoch(
    torch: Any, parameters: Sequence[np.ndarray], data: Dataset, *, batch_size: int, learning_rate: float, seed: int
) -> tuple[float, float]:
    """One epoch from those parameters on the batches of `shared.training.train`: (seconds of training, accuracy).

    The clock runs where it runs in `train`: over the gathering of each batch and its step, not over the evaluation.
    """
    from shared.batches import batch_order  # here, because it needs more packages than a step does

    model = network(torch, parameters)
    step = stepper(torch, model, learning_rate)
    dtype = getattr(torch, str(np.asarray(parameters[0]).dtype))
    x, y = torch.from_numpy(data.train.x).to(dtype), torch.from_numpy(data.train.y)
    order = torch.from_numpy(batch_order(len(data.train), seed, 0))
    seconds = 0.0
    for start in range(0, len(order), batch_size):
        indices = order[start : start + batch_size]
        begin = time.perf_counter()
        step(x[indices], y[indices])
        seconds += time.perf_counter() - begin
    with torch.no_grad():
        predictions = model(torch.from_numpy(data.test.x).to(dtype)).argmax(dim=1).numpy()
    return seconds, float(np.mean(predictions == data.test.y))
