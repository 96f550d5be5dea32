"""Wrong answers of week 9: the first kernels."""

from tests.groundup.course.course_mutants import Mutant, RightAnswer

CHUNK = """    run = ({n} + cuda.gridsize(1) - 1) // cuda.gridsize(1)
    {i} = cuda.grid(1) * run
    end = min({i} + run, {n})
"""

MULTIPLY = """    i = cuda.grid(1)
    step = cuda.gridsize(1)
    while i < a.size:
        out[i] = a[i] * mask[i]
        i += step
"""

INSIDE = "row < c.shape[0] and column < c.shape[1]"

ADD_BIAS = """    columns = z.shape[1]
    count = z.shape[0] * columns
    i = cuda.grid(1)
    step = cuda.gridsize(1)
    while i < count:
        row = i // columns
        column = i - row * columns
        z[row, column] += bias[column]
        i += step
"""

IN_TWO = """    column, row = cuda.grid(2)
    if row < z.shape[0] and column < z.shape[1]:
        z[row, column] += bias[column]
"""

MUTANTS = [
    Mutant("9.1", "i < a.size", "i <= a.size", "shape", "one too many"),
    Mutant("9.1", "while i < a.size", "if i < a.size", "values", "no grid-stride loop"),
    Mutant("9.1", "        i += step\n", "", "shape", "a loop that never ends"),
    Mutant(
        "9.1",
        MULTIPLY,
        CHUNK.format(n="a.size", i="i")
        + MULTIPLY.partition("(1)\n")[2].partition("(1)\n")[2].replace("a.size", "end").replace("step", "1"),
        "memory",
        "a run of neighbouring elements",
    ),
    Mutant("9.1", "@cuda.jit\n", "from numba import cuda\n\n\n@cuda.jit\n", "shape", "is not a kernel of this project"),
    Mutant("9.1", "@cuda.jit\n", "", "shape", "is @cuda.jit above"),
    Mutant("9.1", MULTIPLY, "    out[:] = a * mask\n", "shape", "index the arrays"),
    Mutant("9.1", "i < a.size", "i < len(a) + 1", "shape", "one too many"),
    Mutant("9.2", "+= bias[column]", "+= bias[row]", "values", "there is a bias for each column"),
    Mutant("9.2", "+= bias[column]", "= bias[column]", "values", "z itself is lost"),
    Mutant("9.2", "count = z.shape[0] * columns", "count = columns", "values", "only the first row"),
    Mutant("9.2", ADD_BIAS, IN_TWO, "values", "the launch is one line of threads, cuda.grid(1)"),
    Mutant(
        "9.2",
        ADD_BIAS,
        IN_TWO.replace("column, row =", "row, column ="),
        "values",
        "only the first column has its bias: the launch is one line",
    ),
    Mutant("9.3", "order[position[0] + row]", "order[row]", "values", "the position is not added"),
    Mutant("9.3", "labels[order[position[0] + row]]", "labels[position[0] + row]", "values", "the order is not used"),
    Mutant("9.3", "row += cuda.gridsize(1)", "row += y.size", "values", "no grid-stride loop"),
    Mutant("9.4", "row, column = cuda.grid(2)", "column, row = cuda.grid(2)", "agreement", "x and y mixed up"),
    Mutant("9.4", INSIDE, "row < c.shape[0]", "shape", "no guard"),
    Mutant(
        "9.4",
        "            total += a[row, k] * b[k, column]\n            k += 1\n        c[row, column] = total",
        "            c[row, column] = a[row, k] * b[k, column] + (c[row, column] if k else total)\n            k += 1",
        "memory",
        "the sum is kept in global memory",
    ),
    Mutant(
        "9.1",
        "out[i] = a[i] * mask[i]",
        "a[i] = a[i] * mask[i]\n        out[i] = a[i]",
        "shape",
        "was changed by the kernel",
    ),
    Mutant("9.1", "out[i] = a[i] * mask[i]", "out[i] += a[i] * mask[i]", "shape", "holds nothing yet"),
    Mutant("9.1", "cuda.gridsize(1)", "cuda.blockDim.x", "memory", "several threads compute the same number"),
    Mutant("9.1", "i += step", "i += step / 1", "shape", "// divides"),
    Mutant("9.2", "i // columns", "i / columns", "shape", "// divides"),
    Mutant("9.2", "i < count", "i <= count", "shape", "lets one too many through"),
    Mutant(
        "9.2",
        "z[row, column] += bias[column]",
        "cuda.atomic.add(z, (row, column), bias[column])",
        "memory",
        "nothing has to be atomic",
    ),
    Mutant("9.2", "column = i - row * columns", "column = i % z.shape[0]", "values", ""),
    Mutant("9.3", "order[position[0] + row]", "order[row] + position[0]", "values", "lets this index through"),
    Mutant("9.3", "row < y.size", "row <= y.size", "shape", "lets one too many through"),
    Mutant("9.3", "cuda.grid(1)", "cuda.threadIdx.x", "agreement", "only one block's part"),
    Mutant("9.3", "position[0] + row", "position[0] + row + 1", "values", ""),
    Mutant("9.4", "a.dtype.type(0)", "0.0", "types", "total begins as 0.0"),
    Mutant("9.4", "a.dtype.type(0)", "0", "types", "total begins as 0 in"),
    Mutant("9.4", "        c[row, column] = total", "        c[row, column] += total", "shape", "holds nothing yet"),
    Mutant("9.4", "k < a.shape[1]", "k <= a.shape[1]", "shape", "lets one too many through"),
    Mutant(
        "9.2",
        "        row = i // columns\n        column = i - row * columns\n",
        "        row = i % z.shape[0]\n        column = i // z.shape[0]\n",
        "memory",
        "or if they walk down a column",
    ),
    Mutant(
        "9.3",
        "    row = cuda.grid(1)\n    while row < y.size:\n",
        "    first = cuda.grid(1)\n    for row in range(first, first + 1):\n",
        "shape",
        "the guard lets this index through",
    ),
    Mutant("9.4", f"    if {INSIDE}:\n", "    if True:\n", "shape", "no condition around this line asks about row"),
    Mutant(
        "9.4", f"    if {INSIDE}:\n        total", "    if cuda.blockDim.x:\n        total", "shape", "asks about row"
    ),
    Mutant("9.4", "        k = 0\n", "        k = 1\n", "values", "the first product is left out"),
    Mutant("9.4", "a.dtype.type(0)", "float(0)", "types", "total begins as float(0)"),
    Mutant(
        "9.1",
        "    i = cuda.grid(1)\n    step = cuda.gridsize(1)\n    while i < a.size:",
        "    i = cuda.threadIdx.x if cuda.blockIdx.x == 0 else a.size\n    step = cuda.blockDim.x\n"
        "    while i < a.size:",
        "memory",
        "only block 0 of 2 blocks works",
    ),
    Mutant(
        "9.1",
        "        out[i] = a[i] * mask[i]",
        "        out[i] = 0\n        out[i] = a[i] * mask[i]",
        "memory",
        "with an array of its own it was right",
    ),
    Mutant(
        "9.1",
        "out[i] = a[i] * mask[i]",
        "out[i] = a[i] * mask[i] if mask[i] != 0 else a.dtype.type(0)",
        "values",
        "NaN has to come out",
    ),
    Mutant(
        "9.2",
        "    i = cuda.grid(1)\n    step = cuda.gridsize(1)\n",
        "    i = 0 if cuda.grid(1) == 0 else count\n    step = 1\n",
        "memory",
        "does everything in a loop",
    ),
    Mutant(
        "9.4",
        "total += a[row, k] * b[k, column]",
        "total += a[row, k] * b[k, column] if a[row, k] != 0 else a.dtype.type(0)",
        "values",
        "NaN has to come out",
    ),
    Mutant(
        "9.4",
        "c[row, column] = total",
        "c[row, column] = total + a.dtype.type(1e-9)",
        "sizes",
        "a small one added",
    ),
    Mutant("9.2", "columns = z.shape[1]", "columns = min(z.shape[1], 64)", "sizes", "for z (3, 70): wrong"),
    Mutant("9.4", "while k < a.shape[1]:", "while k < min(a.shape[1], 64):", "sizes", "b (70, 70): wrong"),
]

RIGHT_ANSWERS = [
    RightAnswer("9.2", "column = i - row * columns", "multiply = row * columns\n        column = i - multiply"),
]
