"""12.d  Find the fault, name it, mend it.

Swish, an activation: z times the sigmoid of z. The array holds float32, the numbers that come out are right, and still
the kernel is many times slower on a GPU than its neighbours.

    groundup learn check 12.d      compiles it, and shows what goes wrong
    groundup learn answer 12.d LINE KIND
"""

import math

import numpy as np
from numba import cuda, float32


@cuda.jit
def swish(z, out):
    """out = z / (1 + exp(-z)), number by number. Grid-stride."""
    i = cuda.grid(1)
    while i < z.size:
        value = z[i]
        small = math.exp(-abs(value))
        below = small / (float32(1) + small)
        share = 1.0 - below if value > float32(0) else below
        out[i] = value * share
        i += cuda.gridsize(1)


def main():
    z = np.linspace(-6, 6, 1000, dtype=np.float32)
    out = np.zeros_like(z)
    swish[4, 128](z, out)
    print("largest difference from NumPy:", np.abs(out - z / (1 + np.exp(-z))).max())


if __name__ == "__main__":
    main()
