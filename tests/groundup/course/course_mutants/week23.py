"""Wrong answers of week 23: convolution, pooling and batch normalisation in kernels."""

from tests.groundup.course.course_mutants import Mutant

INSIDE = "if h >= 0 and h < x.shape[2] and w >= 0 and w < x.shape[3]:"

HALO_INSIDE = "inside = h >= 0 and h < x.shape[2] and w >= 0 and w < x.shape[3]"

HALO_VALUE = "image[i, j] = x[n, c, h, w] if inside else x.dtype.type(0)"

ROUND = "        fill_group(kernels, weights, first, c)\n        cuda.syncthreads()\n"

LAST_BARRIER = "        cuda.syncthreads()  # nobody may overwrite a tile that another thread still reads\n"

TILE_BARRIER = "                i += channels\n            cuda.syncthreads()\n"

TILE_LAST = "            cuda.syncthreads()  # nobody may overwrite a tile that another thread still reads\n"

TREE = (
    "                squares_of[thread] = joined_squares(\n"
    "                    own, means[thread], squares_of[thread], "
    "other, means[thread + half], squares_of[thread + half]\n"
    "                )\n"
)

MEAN = "                means[thread] = joined_mean(own, means[thread], other, means[thread + half])\n"

MUTANTS = [
    Mutant("23.1", INSIDE, "if h < x.shape[2] and w < x.shape[3]:", "values", "an index below 0 through"),
    Mutant("23.1", INSIDE, "if h >= 0 and h <= x.shape[2] - 1 and w >= 0:", "agreement", "guard"),
    Mutant("23.1", "h = r * down + i - top", "h = r * down + i", "values", "the padding is forgotten"),
    Mutant("23.1", "h = r * down + i - top", "h = r + i - top", "values", "the stride is forgotten"),
    Mutant("23.1", "s * right + j - left", "s * down + j - left", "agreement", "the strides have changed places"),
    Mutant("23.1", "total = bias[o]", "total = x.dtype.type(0)", "values", "the bias is missing"),
    Mutant("23.1", "total = bias[o]", "total = 0.0 + bias[o]", "types", "a bare 1.0 is a float64"),
    Mutant("23.1", "weights[o, c, i, j]", "weights[o, c, -1 - i, -1 - j]", "shape", "counts from the end"),
    Mutant(
        "23.1",
        "weights[o, c, i, j]",
        "weights[o, c, weights.shape[2] - 1 - i, weights.shape[3] - 1 - j]",
        "values",
        "turned by half a turn",
    ),
    Mutant("23.1", "while c < weights.shape[1]:", "while c < 1:", "values", "only the first channel"),
    Mutant(
        "23.1",
        "        while c < weights.shape[1]:\n",
        "        while c < weights.shape[1]:\n            total = bias[o]\n",
        "values",
        "only the last channel",
    ),
    Mutant("23.1", "index = cuda.grid(1)", "index = cuda.threadIdx.x", "agreement", "only one block's part"),
    Mutant("23.1", "while j < weights.shape[3]:", "while j < weights.shape[3] - 1:", "values", "the last column"),
    Mutant(
        "23.1",
        "s = index % columns\n        r = index // columns % rows\n",
        "r = index % rows\n        s = index // rows % columns\n",
        "memory",
        "walk down a column",
    ),
    Mutant("23.2", HALO_VALUE, "if inside:\n                image[i, j] = x[n, c, h, w]", "values", "a zero"),
    Mutant("23.2", "            j += TILE\n", "            j += width\n", "agreement", "the columns right of them"),
    Mutant("23.2", "        i += TILE\n", "        i += height\n", "agreement", "the rows below them"),
    Mutant(
        "23.2",
        "    i = cuda.threadIdx.y\n    while i < height:\n        h = row + i\n        j = cuda.threadIdx.x\n",
        "    i = cuda.threadIdx.y\n    j = cuda.threadIdx.x\n    while i < height:\n        h = row + i\n",
        "agreement",
        "does j begin anew",
    ),
    Mutant("23.2", HALO_INSIDE, "inside = h < x.shape[2] and w < x.shape[3]", "values", "an index below 0 through"),
    Mutant("23.2", "h = row + i", "h = i", "values", ""),
    Mutant("23.2", "x[n, c, h, w] if", "x[c, n, h, w] if", "values", ""),
    Mutant("23.2", "    i = cuda.threadIdx.y\n", "    i = cuda.grid(2)[1]\n", "values", "cuda.grid counts through"),
    Mutant(
        "23.2",
        HALO_INSIDE + "\n            " + HALO_VALUE,
        "image[i, j] = x[n, c, min(max(h, 0), x.shape[2] - 1), min(max(w, 0), x.shape[3] - 1)]",
        "values",
        "the nearest number",
    ),
    Mutant(
        "23.2",
        "            " + HALO_VALUE,
        "            if i < TILE or j < TILE:\n                " + HALO_VALUE,
        "agreement",
        "the corners of the halo are missing",
    ),
    Mutant(
        "23.2",
        "    i = cuda.threadIdx.y\n    while i < height:\n        h = row + i\n        j = cuda.threadIdx.x\n",
        "    i = cuda.threadIdx.x\n    while i < height:\n        h = row + i\n        j = cuda.threadIdx.y\n",
        "memory",
        "x and y mixed up",
    ),
    Mutant("23.3", ROUND, ROUND.replace("        cuda.syncthreads()\n", ""), "values", "first barrier missing"),
    Mutant("23.3", LAST_BARRIER, "", "agreement", "second barrier missing"),
    Mutant("23.3", "r0 * down - top, s0 * right - left", "r0 * down, s0 * right", "values", "the padding is forgotten"),
    Mutant(
        "23.3", "image[ty * down + i, tx * right + j]", "image[ty + i, tx + j]", "values", "the stride is forgotten"
    ),
    Mutant(
        "23.3",
        "(TILE - 1) * down + kh, (TILE - 1) * right + kw",
        "TILE - 1 + kh, TILE - 1 + kw",
        "sizes",
        "too small where there is a stride",
    ),
    Mutant("23.3", "r0 * down - top, s0 * right - left", "r0 - top, s0 - left", "sizes", "no row of the image"),
    Mutant("23.3", "kernels[g, i * kw + j]", "kernels[0, i * kw + j]", "values", "the sums of its first kernel"),
    Mutant("23.3", "kernels[g, i * kw + j]", "kernels[g, i * kh + j]", "agreement", ""),
    Mutant("23.3", "bias[first + g]", "bias[g]", "agreement", "not bias[g]"),
    Mutant(
        "23.3",
        "    c = 0\n    while c < weights.shape[1]:\n",
        "    c = 0\n    while c < weights.shape[1]:\n"
        "        for g in range(GROUP):\n            sums[g] = x.dtype.type(0)\n",
        "values",
        "only the last channel",
    ),
    Mutant("23.3", " + bias[first + g]", "", "values", "the bias is missing"),
    Mutant(
        "23.3",
        "    c = 0\n    while c < weights.shape[1]:\n",
        "    if r0 + ty >= out.shape[2] or s0 + tx >= out.shape[3]:\n        return\n    c = 0\n"
        "    while c < weights.shape[1]:\n",
        "values",
        "a guard before the barrier returns early",
    ),
    Mutant(
        "23.3",
        "number = image[ty * down + i, tx * right + j]",
        "h = (r0 + ty) * down + i - top\n                w = (s0 + tx) * right + j - left\n"
        "                inside = h >= 0 and h < x.shape[2] and w >= 0 and w < x.shape[3]\n"
        "                number = x[n, c, h, w] if inside else x.dtype.type(0)",
        "memory",
        "into its tile",
    ),
    Mutant(
        "23.4",
        TILE_BARRIER,
        TILE_BARRIER.replace("            cuda.syncthreads()\n", ""),
        "values",
        "one after the tiles are filled",
    ),
    Mutant("23.4", TILE_LAST, "", "agreement", "one after the tiles are filled"),
    Mutant(
        "23.4",
        "            while i < LANES:\n",
        "            while i < y + 1:\n",
        "values",
        "never written",
    ),
    Mutant(
        "23.4", "while start < taps.shape[1]:", "while start < LANES:", "agreement", "only the first LANES products"
    ),
    Mutant(
        "23.4",
        "        while start < taps.shape[1]:\n",
        "        while start < taps.shape[1]:\n            total = image.dtype.type(0)\n",
        "agreement",
        "only the last products",
    ),
    Mutant("23.4", "end(total, ending, more, activation, channel, at)", "total", "values", "the bias is missing"),
    Mutant(
        "23.4",
        "end(total, ending, more, activation, channel, at)",
        "total + more[channel]",
        "sizes",
        "what is written is end(",
    ),
    Mutant("23.4", "more, activation, channel, at)", "more, activation, channel, place)", "sizes", "hand it `at`"),
    Mutant("23.4", "row + taps[ROW, tap], column + taps[COLUMN, tap]", "row, column", "values", ""),
    Mutant("23.4", " and place < count:", ":", "shape", ""),
    Mutant(
        "23.4",
        "        total = image.dtype.type(0)\n        start = 0\n",
        "        if channel >= numbers[ROWS] or place >= count:\n            return\n"
        "        total = image.dtype.type(0)\n        start = 0\n",
        "values",
        "a guard before the barrier returns early",
    ),
    Mutant("23.4", "                i += channels\n", "                i += 1\n", "memory", ""),
    Mutant("23.5", "total += back(", "total = back(", "values", "only one window hands back"),
    Mutant(
        "23.5", "while i <= last_row:", "while i < last_row:", "values", "the last window over each number is left out"
    ),
    Mutant("23.5", "            i = first_row\n", "            i = last_row\n", "agreement", ""),
    Mutant(
        "23.5",
        "if indices[plane, i, j] == row * width + column:",
        "if indices[plane, i, j] >= 0:",
        "values",
        "every number of a window",
    ),
    Mutant(
        "23.5",
        "back(after, grad_output[plane, i, j], output[plane, i, j])",
        "grad_output[plane, i, j]",
        "agreement",
        "after the pool",
    ),
    Mutant(
        "23.5",
        "            if before != 0:\n                total = back(before, total, x[plane, row, column])\n",
        "",
        "sizes",
        "before the pool",
    ),
    Mutant(
        "23.5",
        "                        total += back(after, grad_output[plane, i, j], output[plane, i, j])\n"
        "                    j += 1\n                i += 1\n            if before != 0:\n"
        "                total = back(before, total, x[plane, row, column])\n",
        "                        total += back(before, grad_output[plane, i, j], output[plane, i, j])\n"
        "                    j += 1\n                i += 1\n            if after != 0:\n"
        "                total = back(after, total, x[plane, row, column])\n",
        "sizes",
        "have changed places",
    ),
    Mutant(
        "23.5",
        "            column += cuda.blockDim.x\n",
        "            column += width\n",
        "agreement",
        "columns beyond the block",
    ),
    Mutant("23.5", "min(row // stride_rows, output.shape[1] - 1)", "row // stride_rows", "shape", ""),
    Mutant("23.5", "            i = first_row\n", "            i = 0\n", "memory", "row // stride_rows"),
    Mutant(
        "23.5",
        "            grad_input[plane, row, column] = total\n",
        "            grad_input[plane, row, column] = 0\n"
        "            cuda.atomic.add(grad_input, (plane, row, column), total)\n",
        "memory",
        "nothing has to be atomic",
    ),
    Mutant(
        "23.6",
        "            if other > x.dtype.type(0):\n",
        "            if other >= x.dtype.type(0):\n",
        "sizes",
        "0 / 0",
    ),
    Mutant("23.6", TREE + MEAN, MEAN + TREE, "values", "the mean is replaced before"),
    Mutant(
        "23.6",
        "                own = counts[thread]\n" + TREE + MEAN + "                counts[thread] = own + other\n",
        "                counts[thread] += other\n                own = counts[thread]\n" + TREE + MEAN,
        "values",
        "the count is replaced before",
    ),
    Mutant(
        "23.6",
        TREE,
        "                squares_of[thread] += squares_of[thread + half]\n",
        "values",
        "the squared deviations are only added",
    ),
    Mutant(
        "23.6",
        MEAN,
        "                means[thread] = (means[thread] + means[thread + half]) / x.dtype.type(2)\n",
        "agreement",
        "the means are averaged",
    ),
    Mutant("23.6", "half = cuda.blockDim.x // 2", "half = cuda.blockDim.x // 4", "values", "first level"),
    Mutant(
        "23.6", "        cuda.syncthreads()\n        half //= 2\n", "        half //= 2\n", "values", "inside the tree"
    ),
    Mutant("23.6", "first = cuda.blockIdx.y * share", "first = 0", "values", ""),
    Mutant(
        "23.6",
        "x[0, channel, 0], first, end",
        "x[first, channel, 0], first, end",
        "values",
        "the shift is the channel's first number",
    ),
    Mutant(  # right numbers, and 63 threads that wait
        "23.6",
        "            other = counts[thread + half]\n",
        "            other = x.dtype.type(0)\n"
        "            for k in range(1, cuda.blockDim.x if thread == 0 and half == cuda.blockDim.x // 2 else 1):\n"
        "                if counts[k] > x.dtype.type(0):\n"
        "                    squares_of[0] = joined_squares(\n"
        "                        counts[0], means[0], squares_of[0], counts[k], means[k], squares_of[k]\n"
        "                    )\n"
        "                    means[0] = joined_mean(counts[0], means[0], counts[k], means[k])\n"
        "                    counts[0] = counts[0] + counts[k]\n",
        "memory",
        "a tree of halves",
    ),
    Mutant(
        "23.6",
        "            if other > x.dtype.type(0):\n",
        "            cuda.syncthreads()\n            if other > x.dtype.type(0):\n",
        "shape",
        "a barrier in an `if`",
    ),
]

RIGHT_KERNELS = [
    (
        "23.1",
        "the bias at the end, tests outside the inner loop",
        (
            ("        total = bias[o]\n", "        total = x.dtype.type(0)\n"),
            ("        out[n, o, r, s] = total\n", "        out[n, o, r, s] = total + bias[o]\n"),
            (
                "                while j < weights.shape[3]:\n",
                "                while j < weights.shape[3] and h >= 0 and h < x.shape[2]:\n",
            ),
            ("if h >= 0 and h < x.shape[2] and w >= 0 and w < x.shape[3]:", "if w >= 0 and w < x.shape[3]:"),
        ),
    ),
    (
        "23.2",
        "one loop over all numbers of the piece",
        (
            (
                "    i = cuda.threadIdx.y\n    while i < height:\n        h = row + i\n        j = cuda.threadIdx.x\n"
                "        while j < width:\n            w = column + j\n",
                "    k = cuda.threadIdx.y * TILE + cuda.threadIdx.x\n    while k < height * width:\n"
                "            i = k // width\n            j = k - i * width\n            h, w = row + i, column + j\n",
            ),
            ("            j += TILE\n        i += TILE\n", "            k += TILE * TILE\n"),
        ),
    ),
    (
        "23.3",
        "the bias first, and range",
        (
            ("        sums[g] = x.dtype.type(0)\n", "        sums[g] = bias[min(first + g, bias.size - 1)]\n"),
            (" + bias[first + g]", ""),
            (
                "        i = 0\n        while i < kh:\n            j = 0\n            while j < kw:\n",
                "        for i in range(kh):\n            for j in range(kw):\n",
            ),
            ("                j += 1\n            i += 1\n", ""),
        ),
    ),
    (
        "23.4",
        "range, and the sum from the end",
        (
            (
                "            i = y\n            while i < LANES:\n",
                "            for i in range(y, LANES, channels):\n",
            ),
            ("                i += channels\n", ""),
            ("k = uint32(i)", "k = LANES - 1 - i"),
        ),
    ),
    (
        "23.5",
        "range",
        (
            (
                "            i = first_row\n            while i <= last_row:\n                j = first_column\n"
                "                while j <= last_column:\n",
                "            for i in range(first_row, last_row + 1):\n"
                "                for j in range(first_column, last_column + 1):\n",
            ),
            ("                    j += 1\n                i += 1\n", ""),
        ),
    ),
    (
        "23.6",
        "the mean first, from variables",
        (
            (
                "                squares_of[thread] = joined_squares(\n"
                "                    own, means[thread], squares_of[thread], other, means[thread + half], "
                "squares_of[thread + half]\n"
                "                )\n"
                "                means[thread] = joined_mean(own, means[thread], other, means[thread + half])\n",
                "                a, b = means[thread], means[thread + half]\n"
                "                means[thread] = joined_mean(own, a, other, b)\n"
                "                squares_of[thread] += squares_of[thread + half] + (b - a) * (b - a) * "
                "(own * (other / (own + other)))\n",
            ),
        ),
    ),
]
"""As in right_kernels.py, which has them all."""
