"""Leaky ReLU as PyTorch has it, with a slope that the caller chooses.

This stage's own (activations.py) has the slope 0.01 built in and finds its derivative in the sign of the output. With
a slope of 0 or less that sign would be a wrong answer, so here the backward pass looks at z itself.
"""

from ..backend import cuda


@cuda.jit
def leaky_relu(z, slope, output):
    """output = z where z > 0, slope z elsewhere; vectors, slope of their dtype."""
    i = cuda.grid(1)
    step = cuda.gridsize(1)
    while i < z.size:
        output[i] = z[i] if z[i] > z.dtype.type(0) else slope * z[i]
        i += step


@cuda.jit
def leaky_relu_backward(grad_output, z, slope, grad_z):
    """grad_z = grad_output where z > 0, slope grad_output elsewhere."""
    i = cuda.grid(1)
    step = cuda.gridsize(1)
    while i < z.size:
        grad_z[i] = grad_output[i] if z[i] > z.dtype.type(0) else slope * grad_output[i]
        i += step
