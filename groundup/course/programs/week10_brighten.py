"""10.d  Find the fault, name it, mend it.

All pixels of a batch of images are multiplied by a factor and moved by an offset. The numbers that come out are right,
and still the kernel reads and writes eight times as many bytes as it has to.

    groundup learn check 10.d      runs it, and shows what goes wrong
    groundup learn answer 10.d LINE KIND
    groundup lens detective/week10_brighten.py:brighten      says nearly all: look for yourself first
"""

import numpy as np
from numba import cuda


@cuda.jit
def brighten(pixels, factor, offset, out):
    """out = factor * pixels + offset, for any number of pixels and any grid."""
    threads = cuda.gridsize(1)
    share = (pixels.size + threads - 1) // threads
    i = cuda.grid(1) * share
    end = min(i + share, pixels.size)
    while i < end:
        out[i] = factor * pixels[i] + offset
        i += 1


def main():
    pixels = np.arange(64 * 28, dtype=np.float32)
    out = np.zeros_like(pixels)
    brighten[2, 64](pixels, np.float32(0.5), np.float32(10), out)
    print("largest difference from NumPy:", np.abs(out - (0.5 * pixels + 10)).max())


if __name__ == "__main__":
    main()
