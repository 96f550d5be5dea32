"""A program for test_driver_calls.py: training steps on the machine, whose driver writes each call to a log."""

import ctypes
import gc
from contextlib import suppress
from typing import Any

import numpy as np

from stage4_numba_cuda.backend import cuda
from stage4_numba_cuda.network import STEP_LADDER, Network
from stage4_numba_cuda.optimizers import SGD, Adam
from stage4_numba_cuda.plans import cuda_graphs

SIZES, ROWS, STEPS = [12, 16, 3], 8, 4


def interrupted(stream: Any) -> None:
    """Launches nothing: Ctrl-C comes first."""
    raise KeyboardInterrupt


def main() -> None:
    """Steps given x and y, then an epoch with the data on the device."""
    driver = ctypes.CDLL("libcuda.so.1")
    random = np.random.default_rng(0)
    x, y = (random.integers(0, 256, (STEPS * ROWS, SIZES[0])) / 255).astype(np.float32), np.arange(STEPS * ROWS) % 3

    def mark(text: str) -> None:
        driver.machine_mark(text.encode())

    for kind, rung in ((SGD, "graph"), (Adam, "graph"), (SGD, "persistent")):
        network, optimizer, name = Network(SIZES), kind(0.1), f"{kind.__name__}, {rung}"
        for i in range(STEPS):
            mark(f"{name}, step {i}")
            STEP_LADDER[rung](network, x[:ROWS], y[:ROWS], optimizer)
        mark("the network goes")
        del network, optimizer
        gc.collect()
        context = cuda.current_context()
        for later in (context.deallocations, context.memory_manager.deallocations):
            later.clear()  # numba-cuda frees many pieces at once
        mark(f"{name} is gone")
    network, optimizer, on_device = Network(SIZES), SGD(0.1), cuda.to_device(x[:ROWS])
    for i in range(STEPS):
        mark(f"x on the device, step {i}")
        loss = STEP_LADDER["graph"](network, on_device, y[:ROWS], optimizer)
    mark("the steps with x on the device are over")
    again, optimizer = Network(SIZES), SGD(0.1)
    assert loss == [STEP_LADDER["graph"](again, x[:ROWS], y[:ROWS], optimizer) for _ in range(STEPS)][-1]
    run = Network(SIZES).resident(x, y, SGD(0.1), ROWS, 0)
    for epoch in range(4):
        run.begin_epoch(random.permutation(len(x)))
        mark(f"epoch {epoch}")
        run.take(0, [0.1] * STEPS, epoch * STEPS)
        mark(f"epoch {epoch} is over")
    with suppress(KeyboardInterrupt):
        mark("an interrupted capture")
        cuda_graphs.capture(interrupted)
    mark("it was left")


if __name__ == "__main__":
    main()
