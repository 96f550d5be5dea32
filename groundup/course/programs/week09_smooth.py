"""9.d  Find the fault, name it, mend it.

A row of measurements is smoothed: each number becomes the mean of itself and its two neighbours. The first and the last
number have one neighbour only; they are copied.

    groundup run detective/week09_smooth.py      shows what goes wrong
    groundup learn answer 9.d LINE KIND
"""

import numpy as np
from numba import cuda, float32


@cuda.jit
def smooth(values, out):
    """out[i] = the mean of values[i - 1], values[i] and values[i + 1]; both ends are copied. Grid-stride."""
    last = values.size - 1
    i = cuda.grid(1)
    while i <= last:
        if i == 0 or i > last:
            out[i] = values[i]
        else:
            total = values[i - 1] + values[i] + values[i + 1]
            out[i] = total / float32(3)
        i += cuda.gridsize(1)


def main():
    values = np.array([3, 0, 3, 6, 9, 9, 9, 0, 6, 3], np.float32)
    out = np.zeros_like(values)
    smooth[2, 4](values, out)
    print("measured", values)
    print("smoothed", out)


if __name__ == "__main__":
    main()
