"""What a residual block does beside its layers: it adds its input to its output, and the gradient takes both ways.

One thread for each number, grid-stride: any grid covers any size.
"""

from ..backend import cuda
from .activations import activate


@cuda.jit
def join(a, b, activation, output):
    """output = activate(a + b), all of them flat; output may be a or b. activation: 0 for none."""
    i = cuda.grid(1)
    step = cuda.gridsize(1)
    while i < a.size:
        output[i] = activate(activation, a[i] + b[i])
        i += step
