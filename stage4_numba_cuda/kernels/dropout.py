"""Dropout masks on the device, the same bits as shared/dropout.py makes on the host.

A generator with a state would have to be asked for one number after the other. This one has none: number i of the
sequence named by `key` is a scramble of i, so every thread makes its own, in any order.

    bits(key, i) = mix(key + (i + 1) * GAMMA)    mod 2^64
    key          = bits(bits(bits(0, seed), step), layer)
    kept         = bits(key, row * columns + column) >> 11  >=  threshold,    threshold = ceil(rate * 2^53)

Everything is a uint64. Numba makes a float64 of a uint64 and an int64 together, and NumPy's type rules cannot be
argued with, so every constant and every index is converted before it meets the others. Comparing whole numbers
instead of fractions keeps float64 out of a float32 kernel and is exact: rate * 2^53 only moves the exponent.
"""

from numba import uint64

from ..backend import cuda

GAMMA = 0x9E3779B97F4A7C15
MIX_1 = 0xBF58476D1CE4E5B9
MIX_2 = 0x94D049BB133111EB


@cuda.jit(device=True)
def random_bits(key, index):
    """64 random bits: number `index` of the sequence named by `key`; both and the result are uint64."""
    z = key + (index + uint64(1)) * uint64(GAMMA)
    z = (z ^ (z >> uint64(30))) * uint64(MIX_1)
    z = (z ^ (z >> uint64(27))) * uint64(MIX_2)
    return z ^ (z >> uint64(31))


@cuda.jit(device=True)
def mask_key(seed, step, layer):
    """The key of one layer's mask at one step; all uint64."""
    return random_bits(random_bits(random_bits(uint64(0), seed), step), layer)


@cuda.jit(device=True)
def mask_value(key, index, threshold, scale):
    """scale where element `index` is kept, else 0, in scale's type; the others are uint64."""
    kept = random_bits(key, index) >> uint64(11) >= threshold
    return scale if kept else type(scale)(0)


@cuda.jit
def dropout_mask(seed, steps, layer, threshold, scale, mask):
    """mask (rows, columns): 0 where dropped, scale where kept. Threads along both, grid-stride.

    seed, layer, threshold: uint64; steps (1,) int64: the optimizer's steps so far, read from memory so that a captured
    graph sees the count as it is then; scale: 1 / (1 - rate), already rounded to mask's dtype
    """
    rows, columns = mask.shape
    key = mask_key(seed, uint64(steps[0]), layer)
    first_column, row = cuda.grid(2)
    column_step, row_step = cuda.gridsize(2)
    while row < rows:
        column = first_column
        while column < columns:
            mask[row, column] = mask_value(key, uint64(row * columns + column), threshold, scale)
            column += column_step
        row += row_step
