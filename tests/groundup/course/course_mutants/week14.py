"""Wrong answers of week 14: backward kernels."""

from tests.groundup.course.course_mutants import Mutant

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
]
