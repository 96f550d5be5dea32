"""The first training step of a process: what somebody waits for who has just imported stage 4.

    python -m shared.bench.on_gpu.first_step 784-128-10 64

prints one JSON object, in seconds: until the stage was imported, from there until the first step had ended, and for the
step after it. The first step makes the network and loads the kernels, which an earlier process has compiled.
"""

from __future__ import annotations

import json
import sys
import time


def main() -> None:
    """Take two steps and tell how long each took."""
    sizes, batch = [int(each) for each in sys.argv[1].split("-")], int(sys.argv[2])
    begin = time.perf_counter()
    import numpy as np

    from shared.contract import STAGES, load_stage

    stage = load_stage(STAGES[3])
    imported = time.perf_counter()
    random = np.random.default_rng(0)
    x = random.random((batch, sizes[0]), np.float32)
    y = random.integers(0, sizes[-1], batch)
    network, optimizer = stage.network.Network(sizes), stage.optimizers.SGD(0.01)
    times = []
    for _ in range(2):
        network.train_step(x, y, optimizer)
        times.append(time.perf_counter())
    print(json.dumps({"import": imported - begin, "first": times[0] - imported, "second": times[1] - times[0]}))


if __name__ == "__main__":
    main()
