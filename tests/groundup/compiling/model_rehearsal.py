"""A rehearsal of the GPU report's parts about convolutional networks, without a GPU: which kernels would be compiled.

    python -m tests.groundup.compiling.model_rehearsal 132      prints {part: names of kernels} for so many
                                                                multiprocessors

Steps, predictions and trainings of the known networks are launched at the report's batch sizes, in float32 and with
TF32. As in bench_rehearsal.py every launch is noted and none happens.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

os.environ |= {"GROUNDUP_CUDA": "emulator", "GROUNDUP_ANNOUNCED": "emulator"}
os.environ |= {"NUMBA_CUDA_PER_THREAD_DEFAULT_STREAM": "1"}  # without graphs, which the emulator has not

from shared.architectures import NAMED, named
from tests.groundup.compiling.bench_rehearsal import Launches, note_launches, pretend_gpu
from tests.groundup.compiling.bench_rehearsal import named as names_of

TEST_IMAGES = 100
"""In one pass of an evaluation."""


def main() -> None:
    """Rehearse both parts."""
    lines, sys.stdout = sys.stdout, sys.stderr
    pretend_gpu(int(sys.argv[1]))
    tensor_cores = importlib.import_module("stage4_numba_cuda.tensor_cores")
    tensor_cores.is_known = lambda precision: True
    launches: Launches = {}
    note_launches(launches)
    found = {}
    for part, rehearse in (("networks", networks), ("network_training", network_training)):
        launches.clear()
        for _ in rehearse():
            pass
        found[part] = sorted(names_of(launches))
    print(json.dumps(found), file=lines)


def networks() -> Iterator[Any]:
    """What groundup/gpu_report/networks.py measures in its first part."""
    from groundup.gpu_report.networks import STEP_BATCHES
    from shared.bench.kinds.convolutions import forms_of
    from shared.bench.kinds.inference import MODEL_BATCHES
    from shared.bench.measuring import device_clock
    from shared.contract import load_stage

    stage: Any = load_stage("stage4_numba_cuda")
    for model in NAMED:
        form = named(model)
        size, classes = int(np.prod(form.input_shape)), form.output_shape[0]
        for chosen in (None, "tf32"):
            network = stage.network.Network(form)
            network.precision = chosen
            for batch in STEP_BATCHES:
                x, y = np.zeros((batch, size), np.float32), np.zeros(batch, np.int64)
                yield network.train_step(x, y, stage.optimizers.SGD(0.1)), classes
            for batch in MODEL_BATCHES:
                yield network.predict(np.zeros((batch, size), np.float32))
        for each in forms_of([model]):
            x, weights, grad = (np.zeros(shape, np.float32) for shape in (each.x, each.weights, each.outputs))
            room, window = stage.convolution, (each.stride, each.padding)
            for rung in (*room.CONVOLUTION_LADDER.values(), *room.TENSOR_CORES.values()):
                yield rung(x, weights, np.zeros(len(weights), np.float32), *window)
            yield room.conv2d_backward(grad, x, weights, *window)
    device_clock.sleep[1, 1](1)


def network_training() -> Iterator[Any]:
    """And in its second."""
    from groundup.gpu_report.networks import TRAININGS
    from groundup.recipes import recipe
    from shared.contract import load_stage
    from shared.data.augmentation import Augmentation

    stage: Any = load_stage("stage4_numba_cuda")
    for model, _, _ in TRAININGS:
        chosen, form = recipe(model, {}), named(model)
        network, batch = stage.network.Network(form), chosen["batch_size"]
        count, size = 2 * batch + 60_000 % batch, int(np.prod(form.input_shape))
        images = np.random.default_rng(0).integers(0, 256, (count, size)).astype(np.float32) / np.float32(255)
        changes = Augmentation(chosen.get("augment_shift", 0), chosen.get("augment_rotation", 0.0))
        run = network.resident(
            images, np.zeros(count, np.int64), stage.optimizers.Adam(), batch, 0,
            changes if "augment_shift" in chosen else None,
        )  # fmt: skip
        assert run is not None
        run.begin_epoch(np.arange(count))
        yield run.take(0, [0.1] * run.steps, 0)
        yield network.loss(images[:TEST_IMAGES], np.zeros(TEST_IMAGES, np.int64))
        yield network.predict(images[:TEST_IMAGES])


if __name__ == "__main__":
    main()
