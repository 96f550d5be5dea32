"""Wrong mends of the detective exercises: each hides what is seen of the fault and leaves it, or breaks something else.

And other right mends than the project's own, which have to pass.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mend:
    """case: its id; replaced: (old, new) texts in the given program; check: which has to fail, "" for a right mend

    says: what has to stand in the verdict's `what`, `expected` or `cause`
    """

    case: str
    replaced: tuple[tuple[str, str], ...]
    check: str = ""
    says: str = ""


ONE_THREAD_NORM = (
    (
        "    i = cuda.grid(1)\n    while i < gradient.size:",
        "    i = 0 if cuda.grid(1) == 0 else gradient.size\n    while i < gradient.size:",
    ),
    ("        i += cuda.gridsize(1)", "        i += 1"),
    ("        total[0] += partial[0]", "        if cuda.blockIdx.x == 0:\n            total[0] += partial[0]"),
)

ONE_BLOCK_NORM = (
    (
        "    i = cuda.grid(1)\n    while i < gradient.size:",
        "    i = x if cuda.blockIdx.x == 0 else gradient.size\n    while i < gradient.size:",
    ),
    ("        i += cuda.gridsize(1)", "        i += THREADS"),
    ("        total[0] += partial[0]", "        if cuda.blockIdx.x == 0:\n            total[0] += partial[0]"),
)

ONE_THREAD_A_ROW = (
    ("    column = x\n", "    column = 0\n    partial[x] = own\n"),
    ("    while column < exponentials.shape[1]:", "    while x == 0 and column < exponentials.shape[1]:"),
    ("        column += THREADS", "        column += 1"),
)

CLAMPED = (
    ("share = 1.0 - below", "share = float32(1) - below"),
    ("value = z[i]", "value = max(z[i], float32(-1000))"),
)

FIRST_ROW_OF_THREADS = (
    ("    while row < grad.shape[0]:", "    while y == 0 and row < grad.shape[0]:"),
    ("        cuda.syncthreads()\n        row += ROWS\n", "        row += 1\n    cuda.syncthreads()\n"),
)

ZERO_BEYOND = (
    (
        "total = values[i - 1] + values[i] + values[i + 1]",
        "total = values[i - 1] + values[i] + (values[i + 1] if i < last else float32(0))",
    ),
)

ONE_THREAD_BRIGHTENS = (
    ("i = cuda.grid(1) * share", "i = 0 if cuda.grid(1) == 0 else pixels.size"),
    ("min(i + share, pixels.size)", "pixels.size"),
)

WITHOUT_THE_TILE = (("row] * tile[k]", "row] * vector[start + k]"),)

BARRIER_IN_THE_INNER_LOOP = (("            k += 1\n", "            k += 1\n            cuda.syncthreads()\n"),)

OF_A_WARP_ONLY = (("        start += TILE\n", "        cuda.syncwarp()\n        start += TILE\n"),)

ONE_ELEMENT_WRITTEN = (
    ("    half = THREADS // 2\n", "    if x == 0:\n        partial[x] = own\n    half = THREADS // 2\n"),
)

LAST_ROWS_LEFT_OUT = (("row < grad.shape[0]:", "row < grad.shape[0] // ROWS * ROWS:"),)

MORE_BARRIERS = (("    if x == 0:\n", "    cuda.syncthreads()\n    cuda.threadfence()\n    if x == 0:\n"),)

WRITTEN_ALONG_COLUMNS = (
    ("out[column + y, row + x] = tile[x, y]", "out[column + x, row + y] = tile[y, x]"),
    ("column + y < out.shape[0] and row + x < out.shape[1]", "column + x < out.shape[0] and row + y < out.shape[1]"),
)

SWIZZLED = (
    ("tile[y, x] = weights", "tile[y, (x + y) % TILE] = weights"),
    ("= tile[x, y]", "= tile[x, (y + x) % TILE]"),
)

CORNER = "        tile[TILE + 1, x + 1] = at(image, row + 1, column)\n"

ZERO_CORNERS = (
    (CORNER, f"{CORNER}    if x < 2 and y < 2:\n        tile[y * (TILE + 1), x * (TILE + 1)] = float32(0)\n"),
)

WITHOUT_THE_BLUR_TILE = (("total += tile[y + i, x + j]", "total += at(image, row + i - 1, column + j - 1)"),)

TWO_LOOPS = (
    (
        CORNER,
        f"{CORNER}    i = y\n    while i < SIDE:\n        j = x\n        while j < SIDE:\n"
        "            if (i == 0 or i == SIDE - 1) and (j == 0 or j == SIDE - 1):\n"
        "                tile[i, j] = at(image, row - y - 1 + i, column - x - 1 + j)\n"
        "            j += TILE\n        i += TILE\n",
    ),
)

TREE_BARRIER = "            cuda.syncthreads()\n"

THREAD_0_ADDS = (
    ("        if thread < half:\n", "        if thread == 0 and half == THREADS // 2:\n"),
    (
        "            partial[thread] += partial[thread + half]\n",
        "            for k in range(1, THREADS):\n                partial[0] += partial[k]\n",
    ),
    (TREE_BARRIER, "        cuda.syncthreads()\n"),
)

WRONG = [
    Mend("7.d", (("pairs = (columns + 1) / 2", "pairs = columns / 2"),), "values"),
    Mend(
        "7.d",
        (("= row[2 * j + 1];", "= 2 * j + 1 < columns ? row[2 * j + 1] : 0;"),),
        "values",
        "compared with 0, which is larger than a negative number",
    ),
    Mend(
        "7.d",
        (("= row[2 * j + 1];", "= i * columns + 2 * j + 1 < rows * columns ? row[2 * j + 1] : left;"),),
        "values",
        "compared with the first of the next row",
    ),
    Mend("8.d", (("sum0 = a[i] * b[i]", "break"),), "values", "behind the last whole four are left out"),
    Mend("8.d", (("sum0 = a[i] * b[i]", "sum1 = a[i] * b[i]"),), "values", "wrong"),
    Mend("9.d", (("while i <= last:", "while i < last:"),), "values", "the loop ends before it"),
    Mend("9.d", ZERO_BEYOND, "values", "counts a zero behind it"),
    Mend("9.d", (("if i == 0 or i > last:", "if i == 0 or i >= last - 1:"),), "values", "wrong at index [3]"),
    Mend("10.d", ONE_THREAD_BRIGHTENS, "memory", "at most 8"),
    Mend("11.d", WITHOUT_THE_TILE, "memory", "copies the vector to shared memory once"),
    Mend("11.d", BARRIER_IN_THE_INNER_LOOP, "shape", "live threads"),
    Mend("11.d", OF_A_WARP_ONLY, "memory", "race"),
    Mend("12.d", (("out[i] = value * share", "out[i] = float32(value * share)"),), "types", "float64"),
    Mend("12.d", (("share = 1.0 - below", "share = float32(1.0 - below)"),), "types", "float64"),
    Mend("12.d", CLAMPED, "memory", "get lost"),
    Mend("13.d", ONE_THREAD_A_ROW, "memory", "only thread 0 of each block works"),
    Mend("13.d", ONE_ELEMENT_WRITTEN, "values", "nan"),
    Mend("14.d", (("        cuda.syncthreads()\n", ""),), "values", "first barrier missing"),
    Mend("14.d", FIRST_ROW_OF_THREADS, "memory", "at most 3"),
    Mend("14.d", LAST_ROWS_LEFT_OUT, "agreement", "wrong"),
    Mend("15.d", ONE_THREAD_NORM, "memory", "at most 3"),
    Mend("15.d", ONE_BLOCK_NORM, "memory", "at most 3"),
    Mend("15.d", MORE_BARRIERS, "memory", "what another block writes in between is lost"),
    Mend("16.d", WRITTEN_ALONG_COLUMNS, "memory", "read along rows and written along rows"),
    Mend("16.d", (("(TILE, TILE), float32)", "(TILE, 34), float32)"),), "memory", "passes"),
    Mend("17.d", (("while offset > 1:", "while offset > 2:"),), "values", "wrong"),
    Mend("17.d", (("= total / float32", "= float32(2) * total / float32"),), "values", "wrong"),
    Mend(
        "21.d", (("column > columns + 1)", "column >= columns)"),), "values", "the last column of the image is left out"
    ),
    Mend(
        "21.d",
        (("column > columns + 1)", "column > columns || row > rows - 1)"),),
        "values",
        "the last row of the image",
    ),
    Mend("23.d", ZERO_CORNERS, "values", "count as zeros"),
    Mend("23.d", WITHOUT_THE_BLUR_TILE, "memory", "into its tile"),
    Mend("23.e", ((TREE_BARRIER, ""),), "values", "barrier"),
    Mend("23.e", THREAD_0_ADDS, "memory", "a tree of halves"),
]

RIGHT = [
    Mend("7.d", (("= row[2 * j + 1];", "= row[2 * j + 1 - (2 * j + 1 == columns)];"),)),
    Mend("8.d", (("sum0 = a[i] * b[i]", "sum3 += a[i] * b[i]"),)),
    Mend("9.d", (("if i == 0 or i > last:", "if i < 1 or i + 1 > last:"),)),
    Mend("13.d", (("    own = float32(0)\n", "    own = float32(0)\n    partial[x] = own\n"),)),
    Mend("16.d", SWIZZLED),
    Mend("21.d", (("column < 1 || column > columns + 1", "column == 0 || column == columns + 1"),)),
    Mend("23.d", TWO_LOOPS),
    Mend("23.e", ((TREE_BARRIER, "        cuda.syncthreads()\n        cuda.threadfence()\n"),)),
]
