"""Networks of any architecture with the kernels and grids that a GPU would get, run by the emulator.

    python -m tests.stage4_numba_cuda.as_on_a_gpu      prints {network: largest difference from stage 2}

On a CPU, stage 4 chooses other tiles and one thread a line. So the files of stage 4 are told that they are on a GPU,
before they are imported, which is why this is a process of its own. Graphs are left out.
"""

from __future__ import annotations

import json
import os
import sys

import numpy as np

os.environ |= {"GROUNDUP_CUDA": "emulator", "GROUNDUP_ANNOUNCED": "emulator"}
os.environ |= {"NUMBA_CUDA_PER_THREAD_DEFAULT_STREAM": "1"}  # without graphs, which the emulator has not

from shared.architectures import Architecture
from shared.contract import load_stage
from tests.groundup.compiling.bench_rehearsal import pretend_gpu
from tests.layered_forms import FORMS

NETWORKS = ("blocks", "relu before and after pooling", "blocks in blocks")
ROWS, STEPS, MULTIPROCESSORS = 5, 4, 132


def main() -> None:
    """Take a few steps of each network on both stages."""
    pretend_gpu(MULTIPROCESSORS)
    stages = [load_stage("stage4_numba_cuda"), load_stage("stage2_numpy")]
    rng = np.random.default_rng(0)
    worst = {}
    for name in NETWORKS:
        form = Architecture(*FORMS[name])
        batches = [(rng.normal(size=(ROWS, np.prod(form.input_shape))), rng.integers(0, 3, ROWS)) for _ in range(STEPS)]
        ends = []
        for stage in stages:
            network = stage.network.Network(form, seed=1, dtype="float64")
            optimizer = stage.optimizers.SGD(0.05, momentum=0.9)
            losses = [network.train_step(x, y, optimizer) for x, y in batches]
            arrays = [*network.parameters, *network.running_statistics]
            ends.append([np.array(losses), *(np.array(stage.arrays.to_host(array)) for array in arrays)])
        distances = (np.abs(a - b).max() / max(1.0, np.abs(b).max()) for a, b in zip(*ends, strict=True))
        worst[name] = float(max(distances))
    json.dump(worst, sys.stdout)


if __name__ == "__main__":
    main()
