"""Wrong answers of week 11: the product through shared tiles."""

from tests.groundup.course.course_mutants import Mutant

AXES = "    y = cuda.threadIdx.y\n    x = cuda.threadIdx.x\n"

EXCHANGED = "    y = cuda.threadIdx.x\n    x = cuda.threadIdx.y\n"

THREAD = "        x = cuda.threadIdx.x\n        y = cuda.threadIdx.y\n"

THREAD_EXCHANGED = "        x = cuda.threadIdx.y\n        y = cuda.threadIdx.x\n"

CORNER = "        row = cuda.blockIdx.y * int32(tile)\n        column = cuda.blockIdx.x * int32(tile)\n"

CORNER_EXCHANGED = "        row = cuda.blockIdx.x * int32(tile)\n        column = cuda.blockIdx.y * int32(tile)\n"

SECOND = "            cuda.syncthreads()  # nobody may overwrite a tile that another thread still reads\n"

MUTANTS = [
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
    Mutant(
        "11.1",
        "    y = cuda.threadIdx.y\n    x = cuda.threadIdx.x\n",
        "    x, y = cuda.grid(2)\n",
        "shape",
        "cuda.grid counts through the whole grid",
    ),
    Mutant(
        "11.1",
        "source[row + y, column + x] if inside",
        "source[row + y + cuda.blockIdx.y * cuda.blockDim.y, column + x + cuda.blockIdx.x * cuda.blockDim.x] if inside",
        "shape",
        "lets this index through",
    ),
    Mutant(
        "11.1",
        "    tile[y, x] =",
        "    if cuda.blockIdx.x == 0 and cuda.blockIdx.y == 0:\n        tile[y, x] =",
        "values",
        "",
    ),
    Mutant("11.1", "else source.dtype.type(0)", "else source.dtype.type(1)", "values", ""),
    Mutant("11.1", "else source.dtype.type(0)", "else 0.0", "types", "a bare 1.0 is a float64"),
    Mutant("11.1", "else source.dtype.type(0)", "else -0", "types", "convert that number first"),
    Mutant(
        "11.1",
        "    tile[y, x] = source[row + y, column + x] if inside else source.dtype.type(0)",
        "    value = 0.0\n    if inside:\n        value = source[row + y, column + x]\n    tile[y, x] = value",
        "types",
        "computes in float64: value = 0.0",
    ),
    Mutant(
        "11.2",
        "    y = cuda.threadIdx.y\n    x = cuda.threadIdx.x\n",
        "    x, y = cuda.grid(2)\n",
        "shape",
        "cuda.grid counts through the whole grid",
    ),
    Mutant(
        "11.2",
        "source[column + y, row + x] if inside",
        "source[column + y + cuda.blockIdx.y * cuda.blockDim.y, row + x + cuda.blockIdx.x * cuda.blockDim.x] if inside",
        "shape",
        "lets this index through",
    ),
    Mutant(
        "11.2",
        "column + y < source.shape[0] and row + x < source.shape[1]",
        "column + y < source.shape[1] and row + x < source.shape[0]",
        "shape",
        "lets this index through",
    ),
    Mutant(
        "11.2",
        "    inside = column + y < source.shape[0] and row + x < source.shape[1]\n"
        "    tile[x, y] = source[column + y, row + x] if inside",
        "    inside = column + x < source.shape[0] and row + y < source.shape[1]\n"
        "    tile[y, x] = source[column + x, row + y] if inside",
        "memory",
        "x and y mixed up",
    ),
    Mutant("11.3", "total = a.dtype.type(0)", "total = 0.0", "types", "total begins as 0.0"),
    Mutant("11.3", "fill_a(tile_a, a, row, start)", "fill(tile_a, a, row, start)", "sizes", "it is right as nn"),
    Mutant("11.3", "tile_b[k, x]", "tile_b[x, k]", "values", ""),
    Mutant(
        "11.3",
        "            fill_a(tile_a",
        "            total = a.dtype.type(0)\n            fill_a(tile_a",
        "agreement",
        "",
    ),
    Mutant(
        "11.3",
        "            cuda.syncthreads()\n            for",
        "            cuda.syncwarp()\n            for",
        "memory",
        "the project's line `tile[y, x] = source",
    ),
    Mutant(
        "11.3",
        "            cuda.syncthreads()\n            for",
        "            cuda.syncwarp()\n            for",
        "memory",
        "cuda.syncwarp() waits for those of a warp only",
    ),
    Mutant(
        "11.1",
        "    y = cuda.threadIdx.y\n    x = cuda.threadIdx.x\n"
        "    inside = row + y < source.shape[0] and column + x < source.shape[1]\n"
        "    tile[y, x] = source[row + y, column + x] if inside else source.dtype.type(0)",
        "    x = cuda.threadIdx.x\n"
        "    for y in range(cuda.blockDim.y if cuda.threadIdx.y == 0 else 0):\n"
        "        inside = row + y < source.shape[0] and column + x < source.shape[1]\n"
        "        tile[y, x] = source[row + y, column + x] if inside else source.dtype.type(0)",
        "memory",
        "only warp 0 of each block works",
    ),
]
