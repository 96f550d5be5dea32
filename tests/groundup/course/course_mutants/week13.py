"""Wrong answers of week 13: softmax and reductions."""

from tests.groundup.course.course_mutants import Mutant

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

MUTANTS = [
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
