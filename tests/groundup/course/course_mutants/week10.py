"""Wrong answers of week 10: coalescing."""

from tests.groundup.course.course_mutants import Mutant

CHUNK = """    run = ({n} + cuda.gridsize(1) - 1) // cuda.gridsize(1)
    {i} = cuda.grid(1) * run
    end = min({i} + run, {n})
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

INSIDE = "row < c.shape[0] and column < c.shape[1]"

MUTANTS = [
    Mutant("10.1", "column, row = cuda.grid(2)", "row, column = cuda.grid(2)", "agreement", "has to run along"),
    Mutant("10.1", INSIDE, "row < c.shape[1] and column < c.shape[0]", "agreement", "row and column exchanged"),
    Mutant("10.1", "k < a.shape[1]", "k < b.shape[1]", "values", "of a (2, 3) and b (3, 2)"),
    Mutant("10.2", "while column < columns", "if column < columns", "values", "no grid-stride loop"),
    Mutant("10.2", "sums[column] = total", "sums[column] = total / rows", "values", "forgot the batch"),
    Mutant(
        "10.2",
        "    column = cuda.grid(1)\n" + COLUMN,
        CHUNK.format(n="columns", i="column")
        + COLUMN.replace("column < columns", "column < end").replace("column += cuda.gridsize(1)", "column += 1"),
        "memory",
        "a run of neighbouring elements",
    ),
    Mutant("10.3", "= order[position[0] + row]", "= position[0] + row", "values", "the order is not used"),
    Mutant("10.3", "while row < rows", "if row < rows", "values", "down the rows"),
    Mutant(
        "10.3",
        "    first_column, row = cuda.grid(2)\n    column_step, row_step = cuda.gridsize(2)\n",
        "    row, first_column = cuda.grid(2)\n    row_step, column_step = cuda.gridsize(2)\n",
        "memory",
        "threadIdx.x has to run along the columns",
    ),
    Mutant("10.1", "a.dtype.type(0)", "0.0", "types", "computes in float64"),
    Mutant(
        "10.1",
        "total += a[row, k] * b[k, column]",
        "total += float(a[row, k]) * b[k, column]",
        "types",
        "computes in float64",
    ),
    Mutant("10.1", "column < c.shape[1]", "column <= c.shape[1]", "shape", "lets one too many through"),
    Mutant("10.2", "matrix.dtype.type(0)", "0.0", "types", "computes in float64"),
    Mutant(
        "10.2", "column += cuda.gridsize(1)", "column += cuda.blockDim.x", "memory", "by as many as the whole grid has"
    ),
    Mutant("10.2", "sums[column] = total", "sums[column] += total", "shape", "holds nothing yet"),
    Mutant(
        "10.2",
        "        total = matrix.dtype.type(0)\n",
        "        if column == 0:\n            total = matrix.dtype.type(0)\n",
        "shape",
        "a first value before that",
    ),
    Mutant("10.2", "while row < rows", "while row <= rows", "shape", "lets one too many through"),
    Mutant("10.3", "column += column_step", "column += cuda.blockDim.x", "memory", "by as many as the whole grid has"),
    Mutant("10.3", "row += row_step", "row += cuda.blockDim.y", "memory", "by as many as the whole grid has"),
    Mutant("10.3", "column < features", "column <= features", "shape", "lets one too many through"),
    Mutant(
        "10.1",
        "        c[row, column] = total",
        "        c[row, column] = 0\n        cuda.atomic.add(c, (row, column), total)",
        "memory",
        "nothing has to be atomic",
    ),
    Mutant("10.2", "        row = 0\n", "        row = 1\n", "values", "the first row is left out"),
    Mutant("10.2", "total += matrix", "total = matrix", "values", "only the last row is there"),
    Mutant("10.2", "matrix.dtype.type(0)", "float(0)", "types", "total begins as float(0)"),
    Mutant(
        "10.2",
        "    while column < columns:\n        total = matrix.dtype.type(0)\n",
        "    total = matrix.dtype.type(0)\n    while column < columns:\n",
        "values",
        "column before is still in total",
    ),
    Mutant(
        "10.2",
        "    while column < columns:\n        total = matrix.dtype.type(0)\n        row = 0\n",
        "    row = 0\n    while column < columns:\n        total = matrix.dtype.type(0)\n",
        "values",
        "row begins at 0 again",
    ),
    Mutant(
        "10.3",
        "    while row < rows:\n        sample = order[position[0] + row]\n        column = first_column\n",
        "    column = first_column\n    while row < rows:\n        sample = order[position[0] + row]\n",
        "values",
        "the column begins anew in each row",
    ),
    Mutant(
        "10.3",
        "    first_column, row = cuda.grid(2)\n    column_step, row_step = cuda.gridsize(2)\n",
        "    first_column, row = cuda.grid(2)\n    column_step, row_step = cuda.gridsize(2)\n"
        "    first_column, column_step = (0 if first_column == 0 else features), 1\n",
        "memory",
        "a thread does the work of several",
    ),
]
