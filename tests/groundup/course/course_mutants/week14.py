"""Wrong answers of week 14: backward kernels."""

from tests.groundup.course.course_mutants import Mutant, RightAnswer

MUTANTS = [
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
    Mutant("14.1", "weighted = output.dtype.type(0)", "weighted = 0.0", "types", "weighted begins as 0.0"),
    Mutant(
        "14.1",
        "        j = lane\n"
        "        while j < columns:\n"
        "            weighted += grad_output[row, j] * output[row, j]\n"
        "            j += WARP\n"
        "        weighted = warp_sum(weighted)\n",
        "        j = 0\n"
        "        while j < columns:\n"
        "            weighted += grad_output[row, j] * output[row, j]\n"
        "            j += 1\n",
        "memory",
        "each lane does the whole row",
    ),
    Mutant("14.1", "grad_z[row, j] =", "grad_z[row, j] +=", "shape", "holds nothing yet"),
    Mutant(
        "14.2",
        "    partial[row, lane] = total\n"
        "    cuda.syncthreads()\n"
        "    half = WARPS // 2\n"
        "    while half > 0:\n"
        "        if row < half:\n"
        "            partial[row, lane] += partial[row + half, lane]\n"
        "        cuda.syncthreads()\n"
        "        half //= 2\n"
        "    if row == 0 and column < columns:\n"
        "        sums[column] = partial[0, lane]\n",
        "    if row == 0:\n"
        "        partial[0, lane] = matrix.dtype.type(0)\n"
        "    cuda.syncthreads()\n"
        "    cuda.atomic.add(partial, (0, lane), total)\n"
        "    cuda.syncthreads()\n"
        "    if row == 0 and column < columns:\n"
        "        sums[column] = partial[0, lane]\n",
        "memory",
        "atomic additions come in the order",
    ),
    Mutant("14.2", "(WARPS, LANES), matrix.dtype", "(WARPS, LANES), 'float64'", "types", "computes in float64"),
    Mutant("14.2", "total = matrix.dtype.type(0)", "total = 0.0", "types", "computes in float64"),
    Mutant(
        "14.3",
        "        j = cuda.threadIdx.x\n"
        "        while j < grad.shape[1]:\n"
        "            exponential = grad[row, j]\n"
        "            if j == label:\n"
        "                exponential -= total\n",
        "        grad[row, label] -= total\n"
        "        j = cuda.threadIdx.x\n"
        "        while j < grad.shape[1]:\n"
        "            exponential = grad[row, j]\n",
        "values",
        "every lane subtracts",
    ),
    Mutant(
        "14.3",
        "            if j == label:\n                exponential -= total\n",
        "            exponential -= total\n",
        "values",
        "1 is subtracted in every column",
    ),
    Mutant("14.3", "grad.dtype.type(grad.shape[0])", "grad.shape[0]", "types", "computes in float64"),
    Mutant(
        "14.3",
        "            if j == label:\n"
        "                exponential -= total\n"
        "            grad[row, j] = exponential / total / rows",
        "            slope = exponential / total\n"
        "            if j == label:\n"
        "                slope -= 1.0\n"
        "            grad[row, j] = slope / rows",
        "types",
        "computes in float64",
    ),
    Mutant("14.3", "exponential -= total", "exponential += total", "values", "1 is added where"),
    Mutant(
        "14.3",
        "exponential / total / rows",
        "(exponential / total + grad.dtype.type(1e-10)) / rows",
        "agreement",
        "a small one added",
    ),
    Mutant(
        "14.1",
        "    lane = cuda.threadIdx.x\n",
        "    lane = cuda.threadIdx.x\n    if lane >= output.shape[1]:\n        return\n",
        "values",
        "lanes have left before the shuffle",
    ),
    Mutant(
        "14.1",
        "    while row < rows:\n        weighted = output.dtype.type(0)\n",
        "    weighted = output.dtype.type(0)\n    while row < rows:\n",
        "sizes",
        "the sum of the rows before",
    ),
    Mutant(
        "14.2",
        "    total = matrix.dtype.type(0)\n",
        "    if row >= rows:\n        return\n    total = matrix.dtype.type(0)\n",
        "values",
        "a guard before the barrier returns early",
    ),
    Mutant(
        "14.2",
        "    if column < columns:\n        while row < rows:\n            total += matrix[row, column]\n"
        "            row += WARPS\n",
        "    for k in range(row, rows, WARPS):\n        total += matrix[k, column]\n",
        "shape",
        "no condition around this line asks about column",
    ),
    Mutant("14.3", "j += cuda.blockDim.x", "j += 32", "sizes", "a row has fewer lanes than 32"),
    Mutant("14.3", "if j == label:", "if j == label and j < 64:", "sizes", "logits (5, 70): wrong"),
]

RIGHT_ANSWERS = [
    RightAnswer(
        "14.2",
        "    half = WARPS // 2\n    while half > 0:\n        if row < half:\n"
        "            partial[row, lane] += partial[row + half, lane]\n        cuda.syncthreads()\n        half //= 2\n"
        "    if row == 0 and column < columns:\n        sums[column] = partial[0, lane]\n",
        "    if row == 0 and column < columns:\n        for warp in range(1, WARPS):\n"
        "            total += partial[warp, lane]\n        sums[column] = total\n",
    ),
]
