"""Batch normalisation of x (N, C, L), L = H W numbers or 1: each channel over N and L, two kernels in each direction.

    statistics    count, mean and squared deviations of each channel in parts, x read once
    normalise     adds the parts up, and normalises; an activation and a residual block's input in the same pass
    sums          of the gradient and of the gradient times the deviation, in parts
    backward      adds them up, and dL/dx

The mean of the squares less the square of the mean would need x only once, too, but of numbers far from zero it leaves
nothing: with a mean of 1e4 the two differ in the ninth digit, and float32 has seven. So everything is computed from
d = x - shift, the shift being the channel's first number, and a thread keeps the mean and the squared deviations of
the numbers that it has seen (Welford 1962); two threads' are joined by Chan's formula (1983). Threads are joined by a
tree and parts in their order: the same bits every time. `mean` in these kernels is that of d, so it keeps its digits
where that of x would be rounded to a multiple of 0.001.

`planes` of x are the N C lines of L numbers.
"""

import math

from ..backend import cuda
from .activations import activate, back

THREADS = 256
"""The most threads of a block that adds up; a power of two."""

COUNT, MEAN, SQUARES = 0, 1, 2
"""What a part of a channel consists of: how many numbers, the mean of d and the sum of its squared deviations."""

SHIFT, REST, INVERSE = 0, 1, 2
"""What the backward pass needs of a channel: x - shift - rest is centred, and times inverse normalised."""


@cuda.jit(device=True)
def joined_mean(count_a, mean_a, count_b, mean_b):
    """The mean of two groups of numbers together; b has at least one."""
    return mean_a + (mean_b - mean_a) * (count_b / (count_a + count_b))


@cuda.jit(device=True)
def joined_squares(count_a, mean_a, squares_a, count_b, mean_b, squares_b):
    """Their sum of squared deviations."""
    distance = mean_b - mean_a
    return squares_a + squares_b + distance * distance * (count_a * (count_b / (count_a + count_b)))


@cuda.jit(device=True)
def seen_by_thread(x, channel, shift, first, end):
    """Count, mean and squared deviations of x - shift, of the numbers that the thread takes of a channel of the images
    from `first` to `end`: every number that is as many further on as the block has threads."""
    length = x.shape[2]
    one = x.dtype.type(1)
    count = x.dtype.type(0)
    mean = x.dtype.type(0)
    squares = x.dtype.type(0)
    # The thread's next number is `threads` further on: so many images and so many numbers.
    threads = cuda.blockDim.x
    images = threads // length
    numbers = threads - images * length
    n = first + cuda.threadIdx.x // length
    i = cuda.threadIdx.x % length
    while n < end:
        d = x[n, channel, i] - shift
        count += one
        distance = d - mean
        mean += distance / count
        squares += distance * (d - mean)
        n += images
        i += numbers
        if i >= length:
            i -= length
            n += 1
    return count, mean, squares


@cuda.jit
def statistics(x, parts):
    """parts (P, 3, C): COUNT, MEAN and SQUARES of x (N, C, L) - x[0, c, 0], each part over its share of the images:
    N / P, rounded up, so that the last parts may have fewer or none.

    Grid (C, P), a block of a power of two of threads, at most THREADS.
    """
    counts = cuda.shared.array(THREADS, x.dtype)
    means = cuda.shared.array(THREADS, x.dtype)
    squares_of = cuda.shared.array(THREADS, x.dtype)
    channel = cuda.blockIdx.x
    thread = cuda.threadIdx.x
    share = (x.shape[0] + parts.shape[0] - 1) // parts.shape[0]
    first = cuda.blockIdx.y * share
    end = min(first + share, x.shape[0])
    count, mean, squares = seen_by_thread(x, channel, x[0, channel, 0], first, end)
    counts[thread] = count
    means[thread] = mean
    squares_of[thread] = squares
    cuda.syncthreads()
    half = cuda.blockDim.x // 2
    while half > 0:
        if thread < half:
            other = counts[thread + half]
            if other > x.dtype.type(0):
                own = counts[thread]
                squares_of[thread] = joined_squares(
                    own, means[thread], squares_of[thread], other, means[thread + half], squares_of[thread + half]
                )
                means[thread] = joined_mean(own, means[thread], other, means[thread + half])
                counts[thread] = own + other
        cuda.syncthreads()
        half //= 2
    if thread == 0:
        parts[cuda.blockIdx.y, COUNT, channel] = counts[0]
        parts[cuda.blockIdx.y, MEAN, channel] = means[0]
        parts[cuda.blockIdx.y, SQUARES, channel] = squares_of[0]


@cuda.jit
def normalise(
    x, parts, gamma, beta, running_mean, running_var, momentum, epsilon, training, tracking,
    added, with_added, activation, saved, output,
):  # fmt: skip
    """output (N, C, L) = activate(normalised x * gamma + beta + added), the last where with_added is not 0.

    training: by the statistics in `parts`, of which `tracking` mixes the mean and the unbiased variance into the
    running ones; else by the running ones. saved (3, C): SHIFT, REST and INVERSE, for the way back
    """
    channels = x.shape[1]
    one = x.dtype.type(1)
    plane = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
    while plane < x.shape[0] * channels:
        image = plane // channels
        channel = plane - image * channels
        if training:
            shift = x[0, channel, 0]
            count = parts[0, COUNT, channel]
            rest = parts[0, MEAN, channel]
            squares = parts[0, SQUARES, channel]
            p = 1
            while p < parts.shape[0]:
                other = parts[p, COUNT, channel]
                if other > x.dtype.type(0):
                    mean = parts[p, MEAN, channel]
                    squares = joined_squares(count, rest, squares, other, mean, parts[p, SQUARES, channel])
                    rest = joined_mean(count, rest, other, mean)
                    count += other
                p += 1
            variance = squares / count
            if tracking and image == 0 and cuda.threadIdx.x == 0:
                running_mean[channel] = (one - momentum) * running_mean[channel] + momentum * shift + momentum * rest
                unbiased = squares / (count - one)
                running_var[channel] = (one - momentum) * running_var[channel] + momentum * unbiased
        else:
            shift = running_mean[channel]
            rest = x.dtype.type(0)
            variance = running_var[channel]
        inverse = one / math.sqrt(variance + epsilon)
        if image == 0 and cuda.threadIdx.x == 0:
            saved[SHIFT, channel] = shift
            saved[REST, channel] = rest
            saved[INVERSE, channel] = inverse
        slope = gamma[channel] * inverse
        offset = beta[channel] - rest * slope
        i = cuda.threadIdx.x
        while i < x.shape[2]:
            value = (x[image, channel, i] - shift) * slope + offset
            if with_added:
                value += added[image, channel, i]
            output[image, channel, i] = activate(activation, value)
            i += cuda.blockDim.x
        plane += cuda.gridDim.x * cuda.blockDim.y


@cuda.jit
def sums(grad_output, output, activation, x, saved, parts):
    """parts (P, 2, C): the sums of g and of g * centred, g being the gradient before the activation that made `output`.

    All (N, C, L). Grid (C, P), a block of a power of two of threads, at most THREADS.
    """
    totals = cuda.shared.array(THREADS, x.dtype)
    products = cuda.shared.array(THREADS, x.dtype)
    channel = cuda.blockIdx.x
    thread = cuda.threadIdx.x
    length = x.shape[2]
    share = (x.shape[0] + parts.shape[0] - 1) // parts.shape[0]
    first = cuda.blockIdx.y * share
    end = min(first + share, x.shape[0])
    shift = saved[SHIFT, channel]
    rest = saved[REST, channel]
    total = x.dtype.type(0)
    product = x.dtype.type(0)
    threads = cuda.blockDim.x
    images = threads // length
    numbers = threads - images * length
    n = first + thread // length
    i = thread % length
    while n < end:
        g = grad_output[n, channel, i]
        if activation != 0:
            g = back(activation, g, output[n, channel, i])
        total += g
        product += g * (x[n, channel, i] - shift - rest)
        n += images
        i += numbers
        if i >= length:
            i -= length
            n += 1
    totals[thread] = total
    products[thread] = product
    cuda.syncthreads()
    half = threads // 2
    while half > 0:
        if thread < half:
            totals[thread] += totals[thread + half]
            products[thread] += products[thread + half]
        cuda.syncthreads()
        half //= 2
    if thread == 0:
        parts[cuda.blockIdx.y, 0, channel] = totals[0]
        parts[cuda.blockIdx.y, 1, channel] = products[0]


@cuda.jit
def backward(
    grad_output, output, activation, x, saved, gamma, parts, training, grad_gamma, grad_beta,
    grad_added, with_added, grad_input,
):  # fmt: skip
    """grad_input (N, C, L), grad_gamma and grad_beta (C,) from the sums in `parts`.

    grad_added: where with_added is not 0, the gradient before the activation, which is that of `normalise`'s added
    """
    channels = x.shape[1]
    count = x.dtype.type(x.shape[0] * x.shape[2])
    plane = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
    while plane < x.shape[0] * channels:
        image = plane // channels
        channel = plane - image * channels
        total = parts[0, 0, channel]
        product = parts[0, 1, channel]
        p = 1
        while p < parts.shape[0]:
            total += parts[p, 0, channel]
            product += parts[p, 1, channel]
            p += 1
        shift = saved[SHIFT, channel]
        rest = saved[REST, channel]
        inverse = saved[INVERSE, channel]
        if image == 0 and cuda.threadIdx.x == 0:
            grad_gamma[channel] = inverse * product
            grad_beta[channel] = total
        slope = gamma[channel] * inverse
        mean = x.dtype.type(0)  # of g, and of g * normalised times inverse: nothing where the statistics are constants
        bend = x.dtype.type(0)
        if training:
            mean = total / count
            bend = inverse * inverse * (product / count)
        i = cuda.threadIdx.x
        while i < x.shape[2]:
            g = grad_output[image, channel, i]
            if activation != 0:
                g = back(activation, g, output[image, channel, i])
            if with_added:
                grad_added[image, channel, i] = g
            grad_input[image, channel, i] = slope * (g - mean - (x[image, channel, i] - shift - rest) * bend)
            i += cuda.blockDim.x
        plane += cuda.gridDim.x * cuda.blockDim.y
