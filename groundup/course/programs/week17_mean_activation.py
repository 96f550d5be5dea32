"""17.d  Find the fault, name it, mend it.

The mean activation of every neuron over a batch shows which neurons are dead. A warp takes a neuron: each lane adds
every 32nd sample, and the lanes' sums are added up by shuffles, without shared memory. The means come out too small.

    groundup run detective/week17_mean_activation.py      shows what goes wrong
    groundup learn answer 17.d LINE KIND
"""

import numpy as np
from numba import cuda, float32

LANES = 32
"""Threads of a warp, and of a block."""

EVERY_LANE = 0xFFFFFFFF


@cuda.jit
def mean_activation(outputs, means):
    """means[neuron] = the mean of outputs[neuron] over the samples. A block of LANES threads for each neuron."""
    lane = cuda.threadIdx.x
    neuron = cuda.blockIdx.x
    total = float32(0)
    sample = lane
    while sample < outputs.shape[1]:
        total += outputs[neuron, sample]
        sample += LANES
    offset = LANES // 2
    while offset > 1:
        total += cuda.shfl_down_sync(EVERY_LANE, total, offset)
        offset //= 2
    if lane == 0:
        means[neuron] = total / float32(outputs.shape[1])


def main():
    outputs = np.ones((3, 100), np.float32)
    outputs[1] = 0  # a dead neuron
    means = np.zeros(3, np.float32)
    mean_activation[3, LANES](outputs, means)
    print(f"means {means}, NumPy finds {outputs.mean(axis=1)}")


if __name__ == "__main__":
    main()
