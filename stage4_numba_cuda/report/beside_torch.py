"""PyTorch on the GPU, as an opponent of the training step: eager, and captured in a CUDA graph.

It gets what it likes best. Everything is on the device before the clock runs, TF32 is off on both sides, and the graph
holds all of a step, the gathering of its batch included, so that a step is one call of the driver, as ours is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from shared.bench import pytorch

Steps = Callable[[int], list[float]]
"""Takes so many training steps and returns the losses that it read: all of them, or their mean, read at the end."""


class Batches(NamedTuple):
    """A data set in memory: images (n, features) uint8, labels (n,) int64; n is a multiple of the batch size."""

    images: np.ndarray
    labels: np.ndarray
    size: int

    def first(self) -> tuple[np.ndarray, np.ndarray]:
        """The first batch: x float32 in [0, 1], y."""
        return self.x(0), self.labels[: self.size]

    def x(self, number: int) -> np.ndarray:
        """Batch `number` from 0, as float32 in [0, 1]."""
        return self.images[number * self.size : (number + 1) * self.size].astype(np.float32) / np.float32(255)


def contenders(torch: Any, parameters: Sequence[np.ndarray], batches: Batches, rate: float) -> dict[str, Steps]:
    """ "eager" and "graph" take a batch that lies on the device and read every loss; "eager, resident" and "graph,
    resident" pick each batch by index from bytes on the device, and read the losses once, at the end."""
    torch.set_float32_matmul_precision("highest")
    return {
        f"{way}{', resident' if resident else ''}": _Trainer(torch, parameters, batches, rate, way == "graph", resident)
        for resident in (False, True)
        for way in ("eager", "graph")
    }


class _Trainer:
    """A model on the GPU and its steps."""

    def __init__(
        self,
        torch: Any,
        parameters: Sequence[np.ndarray],
        batches: Batches,
        rate: float,
        graph: bool,
        resident: bool,
        device: str = "cuda",
    ) -> None:
        self.torch, self.resident, self.size = torch, resident, batches.size
        self.model = pytorch.network(torch, parameters).to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=rate)
        self.images = torch.from_numpy(batches.images).to(device)
        self.labels = torch.from_numpy(batches.labels).to(device)
        self.order = torch.arange(len(batches.images), device=device)
        self.offsets = torch.arange(batches.size, device=device)
        self.position = torch.zeros(1, dtype=torch.int64, device=device)
        self.x, self.y = (torch.from_numpy(each).to(device) for each in batches.first())
        self.total = torch.zeros((), device=device)
        self.step: Callable[[], Any] = self._captured() if graph else self._step

    def __call__(self, steps: int) -> list[float]:
        if not self.resident:
            return [float(self.step().item()) for _ in range(steps)]
        self.position.zero_()
        self.total.zero_()
        for _ in range(steps):
            self.step()
        return [float(self.total.item()) / steps]

    def _step(self) -> Any:
        """Forward, backward, update; the loss stays on the device."""
        x, y = self._batch() if self.resident else (self.x, self.y)
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.torch.nn.functional.cross_entropy(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        if self.resident:
            self.total.add_(loss.detach())
        return loss

    def _batch(self) -> tuple[Any, Any]:
        rows = self.order.index_select(0, self.position + self.offsets)
        self.position.add_(self.size)
        return self.images.index_select(0, rows).float().div_(255), self.labels.index_select(0, rows)

    def _captured(self) -> Callable[[], Any]:
        """The step as a graph; it begins with the first batch, wherever the capture ended."""
        step = pytorch.captured(self.torch, self._step, list(self.model.parameters()))
        self.position.zero_()
        return step
