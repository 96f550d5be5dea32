"""Losses: the error of the network, row by row, and the gradient of the error: three kernels for every loss.

    LOSS[lanes][name]       row_losses (rows,): what each row adds to the loss; their sum is the loss
    BACKWARD[lanes][name]   grad (rows, columns): the gradient with respect to the outputs
    FUSED[lanes][name]      both in one launch, which share what they have in common; the one that training takes

The division by the number of rows or elements is in the numbers already, so that whoever adds them up need not know
which loss they are from.

Launched with blocks of (lanes, rows of a block). With 32 lanes a warp works on a row together: neighbouring lanes read
neighbouring columns, and shuffles add up. With 1 lane a thread has its row to itself, and its kernels hold no shuffle
at all: that is right for Numba's simulator, which has none, and fast on the emulator, where the 22 lanes that 10
classes leave idle cost time too. The step from column to column is blockDim.x all the same: knowing the number, the
compiler would unroll these loops, and some would take half as many registers again.

`outputs.dtype.type(n)` is the number n in the array's own type: float32 must meet no float64 on its way.
"""

import math

from ..backend import cuda
from .activations import named, sigmoid_of
from .softmax import WARP, warp_largest, warp_sum


@cuda.jit(device=True)
def first_row():
    """The row of this thread; the next one is row_step() further, so that any grid covers any number of rows."""
    return cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y


@cuda.jit(device=True)
def row_step():
    return cuda.gridDim.x * cuda.blockDim.y


@cuda.jit(device=True)
def alone(value):
    """The sum, or the largest, over the one lane of a row."""
    return value


SUM = {WARP: warp_sum, 1: alone}
LARGEST = {WARP: warp_largest, 1: alone}
"""By the lanes of a row: what they have together, in every lane."""


# Mean squared error and sigmoid cross-entropy: every element has a term and a slope of its own.


@cuda.jit(device=True)
def squared_error(output, target):
    return (output - target) * (output - target)


@cuda.jit(device=True)
def squared_error_slope(output, target):
    return type(output)(2) * (output - target)


@cuda.jit(device=True)
def sigmoid_error(z, target):
    """-t log(s) - (1 - t) log(1 - s), s = sigmoid(z), in a form that is finite for any finite z."""
    positive_part = type(z)(0) if z <= type(z)(0) else z
    return positive_part - z * target + math.log1p(math.exp(-abs(z)))


@cuda.jit(device=True)
def sigmoid_error_slope(z, target):
    return sigmoid_of(z) - target


def target_kernels(name, error, slope, lanes):
    """The three kernels of a loss that is the mean over all elements of error(output, target)."""
    sum_over_lanes = SUM[lanes]

    def loss(outputs, targets, row_losses):
        rows, columns = outputs.shape
        elements = outputs.dtype.type(rows * columns)
        row = first_row()
        while row < rows:
            total = outputs.dtype.type(0)
            j = cuda.threadIdx.x
            while j < columns:
                total += error(outputs[row, j], targets[row, j])
                j += cuda.blockDim.x
            total = sum_over_lanes(total)
            if cuda.threadIdx.x == 0:
                row_losses[row] = total / elements
            row += row_step()

    def backward(outputs, targets, grad):
        rows, columns = outputs.shape
        elements = outputs.dtype.type(rows * columns)
        row = first_row()
        while row < rows:
            j = cuda.threadIdx.x
            while j < columns:
                grad[row, j] = slope(outputs[row, j], targets[row, j]) / elements
                j += cuda.blockDim.x
            row += row_step()

    def fused(outputs, targets, row_losses, grad):
        rows, columns = outputs.shape
        elements = outputs.dtype.type(rows * columns)
        row = first_row()
        while row < rows:
            total = outputs.dtype.type(0)
            j = cuda.threadIdx.x
            while j < columns:
                output = outputs[row, j]
                target = targets[row, j]
                total += error(output, target)
                grad[row, j] = slope(output, target) / elements
                j += cuda.blockDim.x
            total = sum_over_lanes(total)
            if cuda.threadIdx.x == 0:
                row_losses[row] = total / elements
            row += row_step()

    return named(name, loss), named(f"{name}_backward", backward), named(f"{name}_fused", fused)


# Softmax cross-entropy: -log(exp(z_y) / sum exp(z)) = log(sum exp(z - m)) - (z_y - m), m the largest z of the row.


def softmax_kernels(lanes):
    """The three kernels of softmax cross-entropy."""
    sum_over_lanes, largest_over_lanes = SUM[lanes], LARGEST[lanes]

    @cuda.jit(device=True)
    def largest_of(logits, row):
        """The largest logit of the row, in every lane."""
        largest = logits[row, 0]
        j = cuda.threadIdx.x
        while j < logits.shape[1]:
            largest = logits[row, j] if logits[row, j] > largest else largest
            j += cuda.blockDim.x
        return largest_over_lanes(largest)

    @cuda.jit(device=True)
    def exponentials_into(logits, row, largest, exponentials):
        """exp(z - largest) for the columns of this lane, and their sum over the row, in every lane."""
        total = logits.dtype.type(0)
        j = cuda.threadIdx.x
        while j < logits.shape[1]:
            exponential = math.exp(logits[row, j] - largest)
            exponentials[row, j] = exponential
            total += exponential
            j += cuda.blockDim.x
        return sum_over_lanes(total)

    @cuda.jit(device=True)
    def exponentials_to_slopes(row, label, total, grad):
        """softmax - one_hot, divided by the rows, where exp(z - largest) was: e / sum - 1 = (e - sum) / sum."""
        rows = grad.dtype.type(grad.shape[0])
        j = cuda.threadIdx.x
        while j < grad.shape[1]:
            exponential = grad[row, j]
            if j == label:
                exponential -= total
            grad[row, j] = exponential / total / rows
            j += cuda.blockDim.x

    @cuda.jit
    def softmax_cross_entropy(logits, labels, row_losses):
        rows, columns = logits.shape
        row = first_row()
        while row < rows:
            largest = largest_of(logits, row)
            total = logits.dtype.type(0)
            j = cuda.threadIdx.x
            while j < columns:
                total += math.exp(logits[row, j] - largest)
                j += cuda.blockDim.x
            total = sum_over_lanes(total)
            if cuda.threadIdx.x == 0:
                row_losses[row] = (math.log(total) - (logits[row, labels[row]] - largest)) / logits.dtype.type(rows)
            row += row_step()

    @cuda.jit
    def softmax_cross_entropy_backward(logits, labels, grad):
        rows = logits.shape[0]
        row = first_row()
        while row < rows:
            largest = largest_of(logits, row)
            total = exponentials_into(logits, row, largest, grad)
            exponentials_to_slopes(row, labels[row], total, grad)
            row += row_step()

    @cuda.jit
    def softmax_cross_entropy_fused(logits, labels, row_losses, grad):
        """The exponentials, most of the work, are computed once; grad holds them until the row's sum is known."""
        rows = logits.shape[0]
        row = first_row()
        while row < rows:
            largest = largest_of(logits, row)
            total = exponentials_into(logits, row, largest, grad)
            exponentials_to_slopes(row, labels[row], total, grad)
            if cuda.threadIdx.x == 0:
                row_losses[row] = (math.log(total) - (logits[row, labels[row]] - largest)) / logits.dtype.type(rows)
            row += row_step()

    return softmax_cross_entropy, softmax_cross_entropy_backward, softmax_cross_entropy_fused


# Hinge: a wrong class j costs max(0, 1 - s_y + s_j), nothing once the right one leads by 1.


def hinge_kernels(lanes):
    """The three kernels of the hinge loss."""
    sum_over_lanes = SUM[lanes]

    @cuda.jit(device=True)
    def margins_of(scores, row, label):
        """The costs of this row's wrong classes added up, in every lane. "Not <= 0" instead of "> 0" keeps a NaN."""
        base = scores.dtype.type(1) - scores[row, label]
        total = scores.dtype.type(0)
        j = cuda.threadIdx.x
        while j < scores.shape[1]:
            margin = base + scores[row, j]
            if j != label and not margin <= scores.dtype.type(0):
                total += margin
            j += cuda.blockDim.x
        return sum_over_lanes(total)

    @cuda.jit(device=True)
    def margins_to_slopes(scores, row, label, grad):
        """1 for every wrong class within the margin, minus their number for the right one, divided by the elements."""
        base = scores.dtype.type(1) - scores[row, label]
        elements = scores.dtype.type(scores.size)
        active = scores.dtype.type(0)
        j = cuda.threadIdx.x
        while j < scores.shape[1]:
            costs = scores.dtype.type(0)
            if j != label and base + scores[row, j] > scores.dtype.type(0):
                costs = scores.dtype.type(1)
            active += costs
            grad[row, j] = costs / elements
            j += cuda.blockDim.x
        active = sum_over_lanes(active)
        if label % cuda.blockDim.x == cuda.threadIdx.x:  # the lane that has just written this column
            grad[row, label] = -active / elements

    @cuda.jit
    def hinge(scores, labels, row_losses):
        rows = scores.shape[0]
        row = first_row()
        while row < rows:
            total = margins_of(scores, row, labels[row])
            if cuda.threadIdx.x == 0:
                row_losses[row] = total / scores.dtype.type(scores.size)
            row += row_step()

    @cuda.jit
    def hinge_backward(scores, labels, grad):
        rows = scores.shape[0]
        row = first_row()
        while row < rows:
            margins_to_slopes(scores, row, labels[row], grad)
            row += row_step()

    @cuda.jit
    def hinge_fused(scores, labels, row_losses, grad):
        rows = scores.shape[0]
        row = first_row()
        while row < rows:
            total = margins_of(scores, row, labels[row])
            margins_to_slopes(scores, row, labels[row], grad)
            if cuda.threadIdx.x == 0:
                row_losses[row] = total / scores.dtype.type(scores.size)
            row += row_step()

    return hinge, hinge_backward, hinge_fused


def all_kernels(lanes):
    """Every loss's three kernels."""
    return {
        "mean_squared_error": target_kernels("mean_squared_error", squared_error, squared_error_slope, lanes),
        "softmax_cross_entropy": softmax_kernels(lanes),
        "sigmoid_cross_entropy": target_kernels("sigmoid_cross_entropy", sigmoid_error, sigmoid_error_slope, lanes),
        "hinge": hinge_kernels(lanes),
    }


KERNELS = {lanes: all_kernels(lanes) for lanes in (WARP, 1)}
LOSS, BACKWARD, FUSED = (
    {lanes: {name: kernels[part] for name, kernels in losses.items()} for lanes, losses in KERNELS.items()}
    for part in range(3)
)
"""By the lanes of a row, 32 or 1, and the loss's name."""
