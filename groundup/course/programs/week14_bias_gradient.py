"""14.d  Find the fault, name it, mend it.

The gradient of a bias: the sum of each column of the output's gradient. A block adds COLUMNS columns, ROWS rows at a
time, and then adds up the ROWS sums of each column. For 16 samples all is well, for 20 it is not.

    groundup run detective/week14_bias_gradient.py      shows what goes wrong
    groundup learn answer 14.d LINE KIND
"""

import numpy as np
from numba import cuda, float32

COLUMNS, ROWS = 32, 8


@cuda.jit
def bias_gradient(grad, out):
    """out[column] = the sum of grad[row, column] over the rows. Blocks of (COLUMNS, ROWS) threads."""
    partial = cuda.shared.array((ROWS, COLUMNS), float32)
    x = cuda.threadIdx.x
    y = cuda.threadIdx.y
    column = cuda.grid(2)[0]
    partial[y, x] = float32(0)
    row = y
    while row < grad.shape[0]:
        if column < grad.shape[1]:
            partial[y, x] += grad[row, column]
        cuda.syncthreads()
        row += ROWS
    if y == 0 and column < grad.shape[1]:
        total = float32(0)
        for k in range(ROWS):
            total += partial[k, x]
        out[column] = total


def main():
    rng = np.random.default_rng(0)
    for samples in (16, 20):
        grad = rng.standard_normal((samples, 40)).astype(np.float32)
        out = np.zeros(40, np.float32)
        bias_gradient[2, (COLUMNS, ROWS)](grad, out)
        print(f"{samples} samples: largest difference from NumPy:", np.abs(out - grad.sum(axis=0)).max())


if __name__ == "__main__":
    main()
