"""23.d  Find the fault, name it, mend it.

A box blur: each number becomes the mean of the 3 x 3 numbers around it, with zeros outside the image. A block copies
its TILE x TILE numbers to shared memory, and the halo around them, which its neighbours' threads have. Most of the
result is right.

    groundup run detective/week23_box_blur.py      shows what goes wrong
    groundup learn answer 23.d LINE KIND
"""

import numpy as np
from numba import cuda, float32

TILE, SIDE = 8, 10
"""Rows and columns of a block, and of its tile with the halo."""


@cuda.jit(device=True)
def at(image, row, column):
    """image[row, column], 0 outside."""
    inside = row >= 0 and row < image.shape[0] and column >= 0 and column < image.shape[1]
    return image[row, column] if inside else float32(0)


@cuda.jit
def box_blur(image, out):
    """out = the mean of the 3 x 3 numbers around each of image. Blocks of (TILE, TILE) threads, x along the columns."""
    tile = cuda.shared.array((SIDE, SIDE), float32)
    x = cuda.threadIdx.x
    y = cuda.threadIdx.y
    column, row = cuda.grid(2)
    tile[y + 1, x + 1] = at(image, row, column)
    if x == 0:
        tile[y + 1, 0] = at(image, row, column - 1)
    if x == TILE - 1:
        tile[y + 1, TILE + 1] = at(image, row, column + 1)
    if y == 0:
        tile[0, x + 1] = at(image, row - 1, column)
    if y == TILE - 1:
        tile[TILE + 1, x + 1] = at(image, row + 1, column)
    cuda.syncthreads()
    if row < out.shape[0] and column < out.shape[1]:
        total = float32(0)
        for i in range(3):
            for j in range(3):
                total += tile[y + i, x + j]
        out[row, column] = total / float32(9)


def main():
    image = np.ones((16, 12), np.float32)
    out = np.zeros_like(image)
    box_blur[(2, 2), (TILE, TILE)](image, out)
    wrong = np.argwhere(np.isnan(out)).tolist()
    print(f"{len(wrong)} of {out.size} numbers are NaN, at {wrong}")


if __name__ == "__main__":
    main()
