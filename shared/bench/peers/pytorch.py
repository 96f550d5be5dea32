"""PyTorch, as an opponent to measure against (on a GPU: pytorch_device). If it is not installed, its rows are omitted.

It gets what it likes best: its own contiguous tensors, `out=` where there is one, `torch.nn.Linear` and
`torch.optim.SGD` as its documentation writes them, and batches gathered by one indexing operation instead of a
DataLoader, which would cost more than the step.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shared.architectures import named
from shared.bench.peers import pytorch_layers

if TYPE_CHECKING:
    from shared.data.datasets import Dataset


AT_A_TIME = 1000
"""Test images in one forward pass."""


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


def product(torch: ModuleType, form: str, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> Callable[[], object]:
    """A call of torch.mm on the same memory as the arrays. form: nn, tn (a transposed) or nt (b transposed)."""
    left, right, result = (torch.from_numpy(array) for array in (a, b, out))
    left = left.t() if form == "tn" else left
    right = right.t() if form == "nt" else right
    return lambda: torch.mm(left, right, out=result)


def network(torch: ModuleType, parameters: Sequence[np.ndarray], model: str = "") -> Any:
    """torch.nn.Linear layers with ReLU between, started from copies of [W1, b1, W2, b2, …] of a stage's network.

    model: the name of a known network, whose parameters these are
    """
    if model:
        return pytorch_layers.network(torch, named(model), parameters)
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


def stepper(torch: ModuleType, model: Any, learning_rate: float) -> Callable[[Any, Any], float]:
    """step(x, y) -> the loss before the step: softmax cross-entropy, backward, plain SGD."""
    step = step_of(torch, model, torch.optim.SGD(model.parameters(), lr=learning_rate))
    return lambda x, y: float(step(x, y).item())


def step_of(torch: ModuleType, model: Any, optimizer: Any) -> Callable[[Any, Any], Any]:
    """step(x, y) -> the loss before it, as a tensor where the model is: nothing waits for it."""
    return descent(loss_of(torch, model), optimizer)


def loss_of(torch: ModuleType, model: Any) -> Callable[[Any, Any], Any]:
    """loss(x, y): softmax cross-entropy of what the model makes of x."""
    loss_function = torch.nn.CrossEntropyLoss()
    return lambda x, y: loss_function(model(x), y)


def descent(loss_of_batch: Callable[..., Any], optimizer: Any) -> Callable[..., Any]:
    """A step of the optimizer down that loss: the same arguments, and the loss before the step."""

    def step(*batch: Any) -> Any:
        optimizer.zero_grad()
        loss = loss_of_batch(*batch)
        loss.backward()
        optimizer.step()
        return loss

    return step


class Trained(NamedTuple):
    """An epoch: seconds of training alone, mean loss over its batches, accuracy on the test images after it."""

    seconds: float
    loss: float
    accuracy: float


def training(
    torch: ModuleType,
    parameters: Sequence[np.ndarray],
    data: Dataset,
    *,
    batch_size: int,
    rates: Callable[[int, int], float],
    momentum: float = 0.0,
    seed: int = 0,
    model: str = "",
) -> Iterator[Trained]:
    """Epoch after epoch, for as long as somebody asks, from those parameters on the batches of
    `shared.training.loop.train`.

    rates: (steps taken before, steps of an epoch) -> the learning rate of a step; model: as `network` takes it
    The clock runs where it runs in `train`: over the gathering of each batch and its step, not over the evaluation.
    """
    from shared.data.batches import batch_order  # here, because it needs more packages than a step does

    own = network(torch, parameters, model)
    optimizer = torch.optim.SGD(own.parameters(), lr=rates(0, 1), momentum=momentum)
    take = step_of(torch, own, optimizer)
    dtype = getattr(torch, str(np.asarray(parameters[0]).dtype))
    x, y = torch.from_numpy(data.train.x).to(dtype), torch.from_numpy(data.train.y)
    test_x = torch.from_numpy(data.test.x).to(dtype)
    steps = math.ceil(len(data.train) / batch_size)
    for epoch in itertools.count():
        order = torch.from_numpy(batch_order(len(data.train), seed, epoch))
        seconds = loss_sum = 0.0
        for i in range(steps):
            begin = time.perf_counter()
            indices = order[i * batch_size : (i + 1) * batch_size]
            optimizer.param_groups[0]["lr"] = rates(epoch * steps + i, steps)
            loss = float(take(x[indices], y[indices]).item())
            seconds += time.perf_counter() - begin
            loss_sum += loss * len(indices)
        own.eval()
        with torch.no_grad():
            predictions = np.concatenate([own(part).argmax(dim=1).numpy() for part in test_x.split(AT_A_TIME)])
        own.train()
        yield Trained(seconds, loss_sum / len(data.train), float(np.mean(predictions == data.test.y)))
