"""The optimizers' formulas for one parameter, and the kernels that go over all of them.

    sgd         p -= learning_rate * g
    momentum    v = momentum * v + g;  p -= learning_rate * v
    nesterov    the same v;  p -= learning_rate * (g + momentum * v)
    rmsprop     s = alpha * s + (1 - alpha) * g²;  p -= learning_rate * g / (sqrt(s) + epsilon)
    adam        m and v as in the paper;  p -= step_size * m / (sqrt(v) / root_correction + epsilon)

g is the gradient, plus weight_decay * p where there is decay. A few operations for each number that is read and
written: memory is the limit, so a kernel reads each number once, and `update` is a function of its own, for a fused
kernel to call while the gradient is still in a register.

Everything that an optimizer multiplies with lies in `numbers`, eight entries on the device. They are no arguments of
the kernel because a captured CUDA graph repeats its arguments for ever: a learning rate that changes must be read
from memory.
"""

import math

from ..backend import cuda

SGD, MOMENTUM, NESTEROV, RMSPROP, ADAM = range(5)

# Where each stands in `numbers`. What an optimizer does not have is not read.
RATE = 0  # the learning rate; Adam: learning_rate / (1 - beta1^t)
DECAY = 1  # weight_decay
KEEP_FIRST = 2  # how much of `first` stays: momentum, alpha, beta1
ADD_FIRST = 3  # how much comes to it: 1 - alpha, 1 - beta1
KEEP_SECOND = 4  # how much of `second` stays: beta2
ADD_SECOND = 5  # 1 - beta2
EPSILON = 6
ROOT_CORRECTION = 7  # sqrt(1 - beta2^t)
COUNT = 8


@cuda.jit(device=True)
def update(kind, parameters, first, second, i, gradient, numbers):
    """Move parameters[i] by one step of the optimizer `kind` against its gradient, and its buffers with it.

    parameters (size,); first: v of SGD with momentum, s of RMSProp, m of Adam; second: v of Adam; both (size,), or
    any vector where the optimizer has none, and then not touched; numbers (8,). All have one dtype. Each number of
    parameters, first and second that is needed is read once and written once.
    """
    p = parameters[i]
    decay = numbers[DECAY]
    if decay != type(decay)(0):  # not always: 0 * inf would be NaN
        gradient += decay * p
    change = gradient
    if kind == MOMENTUM:
        change = numbers[KEEP_FIRST] * first[i] + gradient
        first[i] = change
    elif kind == NESTEROV:
        velocity = numbers[KEEP_FIRST] * first[i] + gradient
        first[i] = velocity
        change = gradient + numbers[KEEP_FIRST] * velocity
    elif kind == RMSPROP:
        square = numbers[KEEP_FIRST] * first[i] + numbers[ADD_FIRST] * gradient * gradient
        first[i] = square
        change = gradient / (math.sqrt(square) + numbers[EPSILON])
    elif kind == ADAM:
        mean = numbers[KEEP_FIRST] * first[i] + numbers[ADD_FIRST] * gradient
        square = numbers[KEEP_SECOND] * second[i] + numbers[ADD_SECOND] * gradient * gradient
        first[i] = mean
        second[i] = square
        change = mean / (math.sqrt(square) / numbers[ROOT_CORRECTION] + numbers[EPSILON])
    parameters[i] = p - numbers[RATE] * change


@cuda.jit
def sgd(parameters, gradients, numbers):
    """parameters (size,) -= learning_rate * gradients (size,). One thread for each number, grid-stride."""
    i = cuda.grid(1)
    while i < parameters.size:
        update(SGD, parameters, parameters, parameters, i, gradients[i], numbers)
        i += cuda.gridsize(1)


@cuda.jit
def momentum(parameters, gradients, velocity, numbers):
    """SGD along a running sum of the gradients. All vectors (size,); the first and third change.

    Each number is read once and written once, by neighbouring threads side by side.
    """
    i = cuda.grid(1)
    while i < parameters.size:
        update(MOMENTUM, parameters, velocity, velocity, i, gradients[i], numbers)
        i += cuda.gridsize(1)


@cuda.jit
def nesterov(parameters, gradients, velocity, numbers):
    """SGD with a look ahead along the momentum. All vectors (size,); the first and third change."""
    i = cuda.grid(1)
    while i < parameters.size:
        update(NESTEROV, parameters, velocity, velocity, i, gradients[i], numbers)
        i += cuda.gridsize(1)


@cuda.jit
def rmsprop(parameters, gradients, square_average, numbers):
    """Each gradient divided by its own running size. All vectors (size,); the first and third change."""
    i = cuda.grid(1)
    while i < parameters.size:
        update(RMSPROP, parameters, square_average, square_average, i, gradients[i], numbers)
        i += cuda.gridsize(1)


@cuda.jit
def adam(parameters, gradients, first_moment, second_moment, numbers):
    """Both together. All vectors (size,); the first, third and fourth change."""
    i = cuda.grid(1)
    while i < parameters.size:
        update(ADAM, parameters, first_moment, second_moment, i, gradients[i], numbers)
        i += cuda.gridsize(1)


KERNELS = (sgd, momentum, nesterov, rmsprop, adam)
"""By kind. Each takes (parameters, gradients, the buffers that this optimizer has, numbers)."""
