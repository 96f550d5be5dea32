"""Wrong answers of phase 4."""

from tests.groundup.course.course_mutants import Mutant

CHUNK = """    run = ({n} + cuda.gridsize(1) - 1) // cuda.gridsize(1)
    {i} = cuda.grid(1) * run
    end = min({i} + run, {n})
"""
"""A run of neighbours for each thread, which is what a CPU's thread would take."""

MULTIPLY = """    i = cuda.grid(1)
    step = cuda.gridsize(1)
    while i < a.size:
        out[i] = a[i] * mask[i]
        i += step
"""
COLUMN = """    while column < columns:
        total = matrix.dtype.type(0)
        row = 0
        while row < rows:
            total += matrix[row, column]
            row += 1
        sums[column] = total
        column += cuda.gridsize(1)
"""
AXES = "    y = cuda.threadIdx.y\n    x = cuda.threadIdx.x\n"
EXCHANGED = "    y = cuda.threadIdx.x\n    x = cuda.threadIdx.y\n"
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
THREAD = "        x = cuda.threadIdx.x\n        y = cuda.threadIdx.y\n"
THREAD_EXCHANGED = "        x = cuda.threadIdx.y\n        y = cuda.threadIdx.x\n"
CORNER = "        row = cuda.blockIdx.y * int32(tile)\n        column = cuda.blockIdx.x * int32(tile)\n"
CORNER_EXCHANGED = "        row = cuda.blockIdx.x * int32(tile)\n        column = cuda.blockIdx.y * int32(tile)\n"
SECOND = "            cuda.syncthreads()  # nobody may overwrite a tile that another thread still reads\n"

MUTANTS = [
    Mutant("9.1", "i < a.size", "i <= a.size", "shape", "no guard"),
    Mutant("9.1", "while i < a.size", "if i < a.size", "values", "no grid-stride loop"),
    Mutant("9.1", "        i += step\n", "", "shape", "a loop that never ends"),
    Mutant(
        "9.1",
        MULTIPLY,
        CHUNK.format(n="a.size", i="i")
        + MULTIPLY.partition("(1)\n")[2].partition("(1)\n")[2].replace("a.size", "end").replace("step", "1"),
        "memory",
        "a run of neighbours to itself",
    ),
    Mutant("9.1", "@cuda.jit\n", "from numba import cuda\n\n\n@cuda.jit\n", "shape", "is not a kernel of this project"),
    Mutant("9.1", "@cuda.jit\n", "", "shape", "is @cuda.jit above"),
    Mutant("9.1", MULTIPLY, "    out[:] = a * mask\n", "shape", "index the arrays"),
    Mutant("9.1", "i < a.size", "i < len(a) + 1", "shape", "no guard"),
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
    Mutant("9.3", "labels[order[position[0] + row]]", "labels[position[0] + row]", "values", "the order is not asked"),
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
    Mutant("10.1", "column, row = cuda.grid(2)", "row, column = cuda.grid(2)", "agreement", "has to run along"),
    Mutant("10.1", INSIDE, "row < c.shape[1] and column < c.shape[0]", "agreement", "row and column exchanged"),
    Mutant("10.1", "k < a.shape[1]", "k < b.shape[1]", "values", "the last product is left out"),
    Mutant("10.2", "while column < columns", "if column < columns", "values", "no grid-stride loop"),
    Mutant("10.2", "sums[column] = total", "sums[column] = total / rows", "values", "forgot the batch"),
    Mutant(
        "10.2",
        "    column = cuda.grid(1)\n" + COLUMN,
        CHUNK.format(n="columns", i="column")
        + COLUMN.replace("column < columns", "column < end").replace("column += cuda.gridsize(1)", "column += 1"),
        "memory",
        "a run of neighbours to itself",
    ),
    Mutant("10.3", "= order[position[0] + row]", "= position[0] + row", "values", "the order is not asked"),
    Mutant("10.3", "while row < rows", "if row < rows", "values", "down the rows"),
    Mutant(
        "10.3",
        "    first_column, row = cuda.grid(2)\n    column_step, row_step = cuda.gridsize(2)\n",
        "    row, first_column = cuda.grid(2)\n    row_step, column_step = cuda.gridsize(2)\n",
        "memory",
        "threadIdx.x has to run along the columns",
    ),
    Mutant("11.1", " if inside else source.dtype.type(0)", "", "shape", "no guard"),
    Mutant(
        "11.1",
        "tile[y, x] = source[row + y, column + x] if inside else source.dtype.type(0)",
        "if inside:\n        tile[y, x] = source[row + y, column + x]",
        "values",
        "the tile needs a zero there",
    ),
    Mutant("11.1", "@cuda.jit(device=True)\n", "", "import", "is @cuda.jit(device=True) above"),
    Mutant("11.1", AXES, EXCHANGED, "memory", "x and y mixed up"),
    Mutant("11.2", "tile[x, y]", "tile[y, x]", "values", "not turned around"),
    Mutant(
        "11.2", "source[column + y, row + x]", "source[row + y, column + x]", "agreement", "row and column exchanged"
    ),
    Mutant("11.2", AXES, EXCHANGED, "memory", "x and y mixed up"),
    Mutant(
        "11.3", "            cuda.syncthreads()\n            for", "            for", "values", "first barrier missing"
    ),
    Mutant("11.3", SECOND, "", "sizes", "second barrier missing"),
    Mutant("11.3", "while start < a.shape[inner]", "while start + tile <= a.shape[inner]", "values", "off by one tile"),
    Mutant("11.3", "start < a.shape[inner]", "start < cuda.gridDim.x * int32(tile)", "agreement", "gridDim.x"),
    Mutant(
        "11.3", "start += int32(tile)", "start += int32(tile) if inner else int32(0)", "sizes", "a loop that never ends"
    ),
    Mutant("11.3", CORNER, "        column, row = cuda.grid(2)\n", "values", "they are not cuda.grid(2)"),
    Mutant("11.3", CORNER, "        row, column = cuda.grid(2)\n", "values", "they are not cuda.grid(2)"),
    Mutant("11.3", THREAD, THREAD_EXCHANGED, "values", "threadIdx.x runs along the columns of c"),
    Mutant("11.3", CORNER, CORNER_EXCHANGED, "agreement", "blockIdx.x runs along the columns of c"),
    Mutant(
        "11.3",
        THREAD + CORNER,
        THREAD_EXCHANGED + CORNER_EXCHANGED,
        "values",
        "mixed up",
    ),
    Mutant("11.3", "start < a.shape[inner]", "start < a.shape[1]", "sizes", "the axis `inner`"),
    Mutant(
        "11.3",
        "            fill_a(",
        "            fill_a(tile_a, a, row, start)\n            fill_a(",
        "memory",
        "once",
    ),
]
