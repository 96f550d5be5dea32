"""Activations: functions of y = xW + b that are no straight lines, one number to a thread.

First the arithmetic, as device functions: what becomes of one number, and beside it of the gradient that comes back.
Every one asks for the output of the forward pass instead of z, so that a network needs to keep only one of the two.
Then the kernels, which walk over an array and apply one of them; and `activate`, `slope` and `back`, which pick one by
its number and which other kernels call at the end of a product, while the number is still in a register.

`type(z)(1)` is 1 in z's own type. A bare 1.0 is a float64, and one such number would make a kernel of float32 compute
in float64: on most GPUs 32 or 64 times slower. Comparisons are written so that NaN fails them and passes on, as it does
in PyTorch; max(z, 0) would be 0 for NaN on a GPU.
"""

import math

from ..backend import cuda

IDENTITY, RELU, LEAKY_RELU, SIGMOID, TANH, SOFTMAX = range(6)
"""An activation's number is its place in shared.names.ACTIVATIONS. Softmax needs its whole row: see softmax.py."""

LEAKY_SLOPE = 0.01


@cuda.jit(device=True)
def identity_of(z):
    return z


@cuda.jit(device=True)
def identity_back(grad_output, output):
    return grad_output


@cuda.jit(device=True)
def relu_of(z):
    return type(z)(0) if z <= type(z)(0) else z


@cuda.jit(device=True)
def relu_back(grad_output, output):
    """0 where z was not positive. Not a product with 0 and 1: an infinite gradient times 0 would be NaN."""
    return type(grad_output)(0) if output <= type(output)(0) else grad_output


@cuda.jit(device=True)
def leaky_relu_of(z):
    return z if z > type(z)(0) else type(z)(LEAKY_SLOPE) * z


@cuda.jit(device=True)
def leaky_relu_back(grad_output, output):
    return grad_output if output > type(output)(0) else type(grad_output)(LEAKY_SLOPE) * grad_output


@cuda.jit(device=True)
def sigmoid_of(z):
    """1 / (1 + exp(-z)). Far below 0, exp(-z) is inf and 1 / (1 + inf) is 0, which is right."""
    return type(z)(1) / (type(z)(1) + math.exp(-z))


@cuda.jit(device=True)
def sigmoid_back(grad_output, output):
    return grad_output * ((type(output)(1) - output) * output)


@cuda.jit(device=True)
def tanh_of(z):
    return math.tanh(z)


@cuda.jit(device=True)
def tanh_back(grad_output, output):
    return grad_output * (type(output)(1) - output * output)


@cuda.jit(device=True)
def activate(activation, z):
    """The activation of that number (not softmax) of z. All threads of a launch take the same branch."""
    if activation == RELU:
        return relu_of(z)
    if activation == LEAKY_RELU:
        return leaky_relu_of(z)
    if activation == SIGMOID:
        return sigmoid_of(z)
    if activation == TANH:
        return tanh_of(z)
    return z


@cuda.jit(device=True)
def back(activation, grad_output, output):
    """dL/dz from dL/doutput and the output."""
    if activation == RELU:
        return relu_back(grad_output, output)
    if activation == LEAKY_RELU:
        return leaky_relu_back(grad_output, output)
    if activation == SIGMOID:
        return sigmoid_back(grad_output, output)
    if activation == TANH:
        return tanh_back(grad_output, output)
    return grad_output


@cuda.jit(device=True)
def slope(activation, output):
    """doutput/dz from the output: what a gradient of 1 becomes."""
    return back(activation, type(output)(1), output)


def named(name, kernel):
    """The function as a kernel of that name, which is what profilers and error messages show."""
    kernel.__name__ = kernel.__qualname__ = name
    return cuda.jit(kernel)


def forward_kernel(name, function):
    """output = function(z), both flat vectors of one length; output may be z. Grid-stride: any grid covers any size."""

    def kernel(z, output):
        i = cuda.grid(1)
        step = cuda.gridsize(1)
        while i < z.size:
            output[i] = function(z[i])
            i += step

    return named(name, kernel)


def backward_kernel(name, function):
    """grad_z = function(grad_output, output), flat vectors of one length; grad_z may be grad_output."""

    def kernel(grad_output, output, grad_z):
        i = cuda.grid(1)
        step = cuda.gridsize(1)
        while i < output.size:
            grad_z[i] = function(grad_output[i], output[i])
            i += step

    return named(name, kernel)


identity = forward_kernel("identity", identity_of)
identity_backward = backward_kernel("identity_backward", identity_back)
relu = forward_kernel("relu", relu_of)
relu_backward = backward_kernel("relu_backward", relu_back)
leaky_relu = forward_kernel("leaky_relu", leaky_relu_of)
leaky_relu_backward = backward_kernel("leaky_relu_backward", leaky_relu_back)
sigmoid = forward_kernel("sigmoid", sigmoid_of)
sigmoid_backward = backward_kernel("sigmoid_backward", sigmoid_back)
tanh = forward_kernel("tanh", tanh_of)
tanh_backward = backward_kernel("tanh_backward", tanh_back)

FORWARD = {"identity": identity, "relu": relu, "leaky_relu": leaky_relu, "sigmoid": sigmoid, "tanh": tanh}
BACKWARD = {
    "identity": identity_backward,
    "relu": relu_backward,
    "leaky_relu": leaky_relu_backward,
    "sigmoid": sigmoid_backward,
    "tanh": tanh_backward,
}
