"""Wrong answers of phase 5. Week 12's are in activation_kernels.py."""

from tests.groundup.course.course_mutants import Mutant
from tests.groundup.course.course_mutants.activation_kernels import MUTANTS_12

LANES_TAKE_PIECES = """def softmax_warp(z, output):
    row = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
    rows, columns = z.shape
    size = (columns + WARP - 1) // WARP
    first = cuda.threadIdx.x * size
    end = min(first + size, columns)
    while row < rows:
        largest = z[row, 0]
        j = first
        while j < end:
            largest = z[row, j] if z[row, j] > largest else largest
            j += 1
        largest = warp_largest(largest)
        total = z.dtype.type(0)
        j = first
        while j < end:
            output[row, j] = math.exp(z[row, j] - largest)
            total += output[row, j]
            j += 1
        total = warp_sum(total)
        j = first
        while j < end:
            output[row, j] /= total
            j += 1
        row += cuda.gridDim.x * cuda.blockDim.y
    return
"""

WEEK_13 = [
    Mutant(
        "13.1",
        "    row = cuda.grid(1)\n",
        "    z = z.T\n    output = output.T\n    row = cuda.grid(1)\n",
        "values",
        "normalised over the wrong axis",
    ),
    Mutant("13.1", "z[row, j] - largest", "z[row, j]", "values", "forgot to subtract the row's largest"),
    Mutant("13.1", "largest = z[row, j] if", "largest = z[row, 0] if", "values", "the row's first number is taken"),
    Mutant("13.1", "row += cuda.gridsize(1)", "row += 1", "memory", "two threads work on one row"),
    Mutant("13.2", "half = BLOCK // 2", "half = BLOCK // 4", "values", "the first level of the tree is left out"),
    Mutant("13.2", "while half > 0", "while half > 1", "values", "the last level of the tree is left out"),
    Mutant("13.2", "while i < vector.size", "if i < vector.size", "values", "only the first 512 numbers"),
    Mutant(
        "13.2",
        "        cuda.syncthreads()\n        half",
        "        half",
        "values",
        "barrier missing inside the tree",
    ),
    Mutant(
        "13.2",
        "        cuda.syncthreads()\n        half",
        "            cuda.syncthreads()\n        half",
        "shape",
        "a barrier in an `if`",
    ),
    Mutant("13.2", "= own\n    cuda.syncthreads()", "= own", "memory", "after all sums are in shared memory"),
    Mutant("13.3", "shfl_xor_sync", "shfl_down_sync", "values", "right in lane 0 only"),
    Mutant("13.3", "WHOLE_WARP", "0xFFFF", "shape", "the mask of a shuffle says which lanes take part"),
    Mutant("13.3", "while offset > 0", "while offset > 1", "values", "the last step is left out"),
    Mutant("13.3", "offset = WARP // 2", "offset = WARP // 4", "values", "the first step is left out"),
    Mutant("13.3", "value += cuda", "value = cuda", "values", "not added to the own one"),
    Mutant(
        "13.4",
        "        largest = warp_largest(largest)\n",
        "",
        "values",
        "the largest over the own lane only",
    ),
    Mutant("13.4", "        total = warp_sum(total)\n", "", "values", "the sum over the own lane only"),
    Mutant("13.4", "row += cuda.gridDim.x * cuda.blockDim.y", "row += cuda.gridsize(1)", "sizes", "not every element"),
    Mutant("13.4", "def softmax_warp(z, output):\n", LANES_TAKE_PIECES, "memory", "lanes far apart"),
    Mutant("13.3", "@cuda.jit(device=True)\n", "", "import", "is @cuda.jit(device=True) above"),
    Mutant("13.4", "@cuda.jit\n", "", "shape", "is @cuda.jit above"),
    Mutant(
        "13.4", "        largest = z[row, 0]\n", "        output[row, :] = z[row, :]\n", "shape", "index the arrays"
    ),
]

WEEK_14 = [
    Mutant("14.1", "        weighted = warp_sum(weighted)\n", "", "values", "the sum over the own lane only"),
    Mutant(
        "14.1",
        "(grad_output[row, j] - weighted) * output[row, j]",
        "grad_output[row, j] * output[row, j] * (output.dtype.type(1) - output[row, j])",
        "values",
        "every output depends on every z of its row",
    ),
    Mutant("14.1", "- weighted) * output[row, j]", "- weighted)", "values", "not multiplied by the output"),
    Mutant("14.1", "j = lane", "j = lane + lane", "values", "not every element"),
    Mutant("14.2", "half = WARPS // 2", "half = WARPS // 4", "values", "the first level of the tree is left out"),
    Mutant("14.2", "while half > 0", "while half > 1", "values", "the last level of the tree is left out"),
    Mutant("14.2", "while row < rows", "if row < rows", "values", "only the first 16 rows"),
    Mutant("14.2", "= partial[0, lane]", "= partial[0, lane] / rows", "values", "the mean over the rows"),
    Mutant(
        "14.2",
        "        cuda.syncthreads()\n        half",
        "        half",
        "values",
        "barrier missing inside the tree",
    ),
    Mutant(
        "14.2",
        "        cuda.syncthreads()\n        half",
        "            cuda.syncthreads()\n        half",
        "shape",
        "a barrier in an `if`",
    ),
    Mutant(
        "14.2",
        "    total = matrix.dtype.type(0)\n",
        "    if column >= columns:\n        return\n    total = matrix.dtype.type(0)\n",
        "memory",
        "a guard before the barrier returns early",
    ),
    Mutant("14.3", " / total / rows", " / total", "values", "forgot the batch mean"),
    Mutant("14.3", "if j == label", "if j < 0", "values", "the label's column is not treated"),
    Mutant("14.3", "-= total", "-= grad.dtype.type(1)", "values", "1 is subtracted before the division"),
    Mutant(
        "14.3",
        "j += cuda.blockDim.x",
        "j = cuda.blockDim.x * grad.shape[1]",
        "gradient",
        "only each lane's first column",
    ),
]

BY_HAND = "update(MOMENTUM, parameters, velocity, velocity, i, gradients[i], numbers)"

WEEK_15 = [
    Mutant("15.1", "update(MOMENTUM", "update(SGD", "values", "the step is along the gradient alone"),
    Mutant("15.1", "update(MOMENTUM", "update(NESTEROV", "values", "a look ahead"),
    Mutant(
        "15.1",
        BY_HAND,
        "parameters[i] -= numbers[RATE] * (numbers[KEEP_FIRST] * velocity[i] + gradients[i])",
        "values",
        "the velocity is not kept",
    ),
    Mutant(
        "15.1",
        BY_HAND,
        "velocity[i] = numbers[KEEP_FIRST] * velocity[i] + gradients[i]\n"
        "        parameters[i] += numbers[RATE] * velocity[i]",
        "values",
        "plus instead of minus",
    ),
    Mutant(
        "15.1",
        BY_HAND,
        "velocity[i] = numbers[KEEP_FIRST] * velocity[i] + gradients[i]\n"
        "        parameters[i] -= numbers[RATE] * velocity[i]",
        "values",
        "weight decay is left out",
    ),
    Mutant("15.1", "i += cuda.gridsize(1)", "i += parameters.size", "sizes", "beyond the grid"),
    Mutant("15.2", "p - numbers[RATE]", "p + numbers[RATE]", "values", "plus instead of minus"),
    Mutant("15.2", "gradient += decay * p", "gradient -= decay * p", "values", "weight decay with the wrong sign"),
    Mutant(
        "15.2",
        "gradient += decay * p",
        "p -= numbers[RATE] * decay * p",
        "values",
        "weight decay is taken from the parameter at the end",
    ),
    Mutant("15.2", "        first[i] = change\n", "", "values", "the velocity is not kept"),
    Mutant("15.2", "gradient + numbers[KEEP_FIRST] * velocity", "velocity", "values", "Nesterov's step is along"),
    Mutant(
        "15.2",
        "(math.sqrt(square) + numbers[EPSILON])",
        "math.sqrt(square + numbers[EPSILON])",
        "values",
        "epsilon is inside the root",
    ),
    Mutant(
        "15.2",
        "(math.sqrt(square) / numbers[ROOT_CORRECTION] + numbers[EPSILON])",
        "math.sqrt(square / (numbers[ROOT_CORRECTION] * numbers[ROOT_CORRECTION]) + numbers[EPSILON])",
        "values",
        "epsilon is inside the root",
    ),
    Mutant("15.2", " / numbers[ROOT_CORRECTION]", "", "values", "the root is not divided by numbers[ROOT_CORRECTION]"),
    Mutant("15.2", "        second[i] = square\n", "", "agreement", "the second_moment is not kept"),
    Mutant(
        "15.3",
        "        slope(below, rows.output[i - 1], rows.output[i - 1], out=below)\n",
        "",
        "agreement",
        "the activation's derivative is left out",
    ),
    Mutant(
        "15.3", "multiply(below, masks[i - 1], below)", "pass", "sizes", "the dropout mask is forgotten on the way back"
    ),
    Mutant(
        "15.3", "reversed(range(1, len(layers)))", "range(1, len(layers))", "agreement", "from the last to the first"
    ),
    Mutant(
        "15.3",
        "    losses.gradient_of(network.loss_name, signal, y, rows.grad[-1])\n",
        "",
        "values",
        "losses.gradient_of fills rows.grad[-1]",
    ),
    Mutant(
        "15.3",
        "    layers[0].backward(rows.grad[0], needs_grad_input=False)\n",
        "",
        "values",
        "backward is never called",
    ),
    Mutant(
        "15.3",
        "optimizer.step(network.parameters, network.layer_gradients)",
        "pass",
        "shape",
        "optimizer.step was called 0 times",
    ),
]

WEEK_16 = [
    Mutant("16.1", "bias[column]", "bias[row]", "values", "a bias per row"),
    Mutant("16.1", "total + bias[column])", "total) + bias[column]", "values", "the activation comes before the bias"),
    Mutant("16.1", "activate(activation, total + bias[column])", "total + bias[column]", "values", "is left out"),
    Mutant(
        "16.1",
        "        total = product(x, weights, tile_a, tile_b)\n"
        "        if row < out.shape[0] and column < out.shape[1]:\n",
        "        if row < out.shape[0] and column < out.shape[1]:\n"
        "            total = product(x, weights, tile_a, tile_b)\n",
        "shape",
        "a barrier in an `if`",
    ),
    Mutant("16.1", "row < out.shape[0] and ", "", "shape", "no guard"),
    Mutant(
        "16.1",
        "            out[row, column] = activate(activation, total + bias[column])\n",
        "            out[row, column] = total + bias[column]\n"
        "            out[row, column] = activate(activation, out[row, column])\n",
        "memory",
        "goes to memory and is read back",
    ),
    Mutant("16.2", " / logits.dtype.type(rows)", "", "values", "forgot the batch mean"),
    Mutant(
        "16.2", "(logits[row, labels[row]] - largest)", "logits[row, labels[row]]", "values", "the largest logit is not"
    ),
    Mutant(
        "16.2", "            exponentials_to_slopes(row, labels[row], total, grad)\n", "", "values", "still holds the"
    ),
    Mutant("16.2", "if cuda.threadIdx.x == 0", "if cuda.threadIdx.x >= 0", "memory", "two threads write one element"),
    Mutant("16.3", "split = 1", "split = 0", "values", "the first part is added twice"),
    Mutant("16.3", "split < parts.shape[0]", "split < parts.shape[0] - 1", "values", "one part is left out, the last"),
    Mutant("16.3", "if masked:", "if True:", "sizes", "though masked is 0"),
    Mutant("16.3", "z + bias[column])", "z) + bias[column]", "values", "the activation comes before the bias"),
    Mutant("16.3", "value * mask[row, column]", "value", "values", "dropped is the output without its mask"),
    Mutant(
        "16.3",
        "value * mask[row, column]",
        "output[row, column] * mask[row, column]",
        "memory",
        "goes to memory and is read back",
    ),
]

MUTANTS: list[Mutant] = [*MUTANTS_12, *WEEK_13, *WEEK_14, *WEEK_15, *WEEK_16]
