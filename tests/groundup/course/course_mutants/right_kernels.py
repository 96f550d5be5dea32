"""Right answers that do not look like the project's own: other loops, other orders, other typed zeros."""

from __future__ import annotations

from tests.groundup.course.course_mutants import week23

Changes = tuple[tuple[str, str], ...]

RIGHT: list[tuple[str, str, Changes]] = [
    (
        "9.1",
        "for range",
        (
            (
                "    i = cuda.grid(1)\n"
                "    step = cuda.gridsize(1)\n"
                "    while i < a.size:\n"
                "        out[i] = a[i] * mask[i]\n"
                "        i += step\n",
                "    for k in range(cuda.grid(1), out.size, cuda.gridsize(1)):\n        out[k] = mask[k] * a[k]\n",
            ),
        ),
    ),
    ("9.2", "% for column", (("column = i - row * columns", "column = i % columns"),)),
    (
        "9.2",
        "divmod and assign",
        (("        z[row, column] += bias[column]", "        z[row, column] = bias[column] + z[row, column]"),),
    ),
    (
        "9.4",
        "total of float32 type, early return",
        (
            (
                "    if row < c.shape[0] and column < c.shape[1]:\n"
                "        total = a.dtype.type(0)\n"
                "        k = 0\n"
                "        while k < a.shape[1]:\n"
                "            total += a[row, k] * b[k, column]\n"
                "            k += 1\n"
                "        c[row, column] = total",
                "    if row >= c.shape[0] or column >= c.shape[1]:\n"
                "        return\n"
                "    s = c.dtype.type(0.0)\n"
                "    for k in range(a.shape[1]):\n"
                "        s = s + a[row, k] * b[k, column]\n"
                "    c[row, column] = s",
            ),
        ),
    ),
    ("9.4", "a fma", (("total += a[row, k] * b[k, column]", "total = cuda.fma(a[row, k], b[k, column], total)"),)),
    (
        "10.1",
        "starts with first product",
        (
            (
                "        total = a.dtype.type(0)\n        k = 0\n",
                "        total = a[row, 0] * b[0, column]\n        k = 1\n",
            ),
        ),
    ),
    (
        "10.2",
        "starts with row 0",
        (
            (
                "        total = matrix.dtype.type(0)\n        row = 0\n",
                "        total = matrix[0, column]\n        row = 1\n",
            ),
        ),
    ),
    (
        "10.3",
        "for loops",
        (
            (
                "        while column < features:\n"
                "            x[row, column] = values[sample, column]\n"
                "            column += column_step\n",
                "        for c in range(column, features, column_step):\n            x[row, c] = values[sample, c]\n",
            ),
        ),
    ),
    (
        "11.1",
        "if else",
        (
            (
                "    tile[y, x] = source[row + y, column + x] if inside else source.dtype.type(0)",
                "    if inside:\n        tile[y, x] = source[row + y, column + x]\n    else:\n        tile[y, x] = 0",
            ),
        ),
    ),
    (
        "11.1",
        "zero first",
        (
            (
                "    tile[y, x] = source[row + y, column + x] if inside else source.dtype.type(0)",
                "    tile[y, x] = 0.0\n    if inside:\n        tile[y, x] = source[row + y, column + x]",
            ),
        ),
    ),
    (
        "11.2",
        "if else",
        (
            (
                "    tile[x, y] = source[column + y, row + x] if inside else source.dtype.type(0)",
                "    tile[x, y] = 0\n    if inside:\n        tile[x, y] = source[column + y, row + x]",
            ),
        ),
    ),
    (
        "11.3",
        "ceil loop",
        (
            (
                "        while start < a.shape[inner]:\n",
                "        rounds = (a.shape[inner] + tile - 1) // tile\n        for _ in range(rounds):\n",
            ),
        ),
    ),
    (
        "12.1",
        "for",
        (
            (
                "        i = cuda.grid(1)\n"
                "        step = cuda.gridsize(1)\n"
                "        while i < z.size:\n"
                "            output[i] = function(z[i])\n"
                "            i += step\n",
                "        for i in range(cuda.grid(1), z.size, cuda.gridsize(1)):\n"
                "            output[i] = function(z[i])\n",
            ),
        ),
    ),
    (
        "12.3",
        "two branches",
        (
            (
                "    positive_part = type(z)(0) if z <= type(z)(0) else z\n"
                "    return positive_part - z * target + math.log1p(math.exp(-abs(z)))",
                "    if z > 0:\n"
                "        return z - z * target + math.log1p(math.exp(-z))\n"
                "    return math.log1p(math.exp(z)) - z * target",
            ),
        ),
    ),
    ("12.3", "max typed", (("type(z)(0) if z <= type(z)(0) else z", "max(z, type(z)(0))"),)),
    (
        "13.1",
        "exp thrice no rewrite",
        (
            ("            output[row, j] = exponential\n", ""),
            ("output[row, j] /= total", "output[row, j] = math.exp(z[row, j] - largest) / total"),
        ),
    ),
    (
        "13.1",
        "max()",
        (("largest = z[row, j] if z[row, j] > largest else largest", "largest = max(largest, z[row, j])"),),
    ),
    (
        "13.1",
        "inf start",
        (("largest = z[row, 0]\n        j = 1", "largest = z.dtype.type(-math.inf)\n        j = 0"),),
    ),
    (
        "13.2",
        "interleaved tree",
        (
            (
                "    half = BLOCK // 2\n"
                "    while half > 0:\n"
                "        if thread < half:\n"
                "            partial[thread] += partial[thread + half]\n"
                "        cuda.syncthreads()\n"
                "        half //= 2\n",
                "    s = 1\n"
                "    while s < BLOCK:\n"
                "        if thread % (2 * s) == 0:\n"
                "            partial[thread] += partial[thread + s]\n"
                "        cuda.syncthreads()\n"
                "        s *= 2\n",
            ),
        ),
    ),
    (
        "13.2",
        "own kept",
        (
            (
                "            partial[thread] += partial[thread + half]\n",
                "            own = own + partial[thread + half]\n            partial[thread] = own\n",
            ),
        ),
    ),
    (
        "13.3",
        "unrolled for",
        (
            (
                "    offset = WARP // 2\n"
                "    while offset > 0:\n"
                "        value += cuda.shfl_xor_sync(WHOLE_WARP, value, offset)\n"
                "        offset //= 2\n",
                "    for offset in (1, 2, 4, 8, 16):\n"
                "        value = value + cuda.shfl_xor_sync(WHOLE_WARP, value, offset)\n",
            ),
        ),
    ),
    (
        "13.3",
        "down then broadcast",
        (
            (
                "    offset = WARP // 2\n"
                "    while offset > 0:\n"
                "        value += cuda.shfl_xor_sync(WHOLE_WARP, value, offset)\n"
                "        offset //= 2\n"
                "    return value",
                "    offset = 16\n"
                "    while offset > 0:\n"
                "        value += cuda.shfl_down_sync(WHOLE_WARP, value, offset)\n"
                "        offset = offset // 2\n"
                "    return cuda.shfl_sync(WHOLE_WARP, value, 0)",
            ),
        ),
    ),
    (
        "13.4",
        "max and -inf",
        (
            ("largest = z[row, 0]\n", "largest = z.dtype.type(-math.inf)\n"),
            ("largest = z[row, j] if z[row, j] > largest else largest", "largest = max(largest, z[row, j])"),
        ),
    ),
    (
        "14.1",
        "kept order",
        (("(grad_output[row, j] - weighted) * output[row, j]", "output[row, j] * (grad_output[row, j] - weighted)"),),
    ),
    (
        "14.2",
        "serial by row 0",
        (
            (
                "    half = WARPS // 2\n"
                "    while half > 0:\n"
                "        if row < half:\n"
                "            partial[row, lane] += partial[row + half, lane]\n"
                "        cuda.syncthreads()\n"
                "        half //= 2\n"
                "    if row == 0 and column < columns:\n"
                "        sums[column] = partial[0, lane]\n",
                "    if row == 0 and column < columns:\n"
                "        total = matrix.dtype.type(0)\n"
                "        for k in range(WARPS):\n"
                "            total += partial[k, lane]\n"
                "        sums[column] = total\n",
            ),
        ),
    ),
    (
        "14.3",
        "typed one",
        (
            (
                "            if j == label:\n"
                "                exponential -= total\n"
                "            grad[row, j] = exponential / total / rows",
                "            slope = exponential / total\n"
                "            if j == label:\n"
                "                slope -= grad.dtype.type(1)\n"
                "            grad[row, j] = slope / rows",
            ),
        ),
    ),
    (
        "15.1",
        "by hand",
        (
            (
                "update(MOMENTUM, parameters, velocity, velocity, i, gradients[i], numbers)",
                "g, p = gradients[i], parameters[i]\n"
                "        if numbers[DECAY] != 0:\n"
                "            g += numbers[DECAY] * p\n"
                "        v = numbers[KEEP_FIRST] * velocity[i] + g\n"
                "        velocity[i] = v\n"
                "        parameters[i] = p - numbers[RATE] * v",
            ),
        ),
    ),
    ("15.2", "decay without typed zero", (("if decay != type(decay)(0):", "if decay != 0:"),)),
    (
        "16.1",
        "value first",
        (
            (
                "            out[row, column] = activate(activation, total + bias[column])",
                "            z = total + bias[column]\n            out[row, column] = activate(activation, z)",
            ),
        ),
    ),
    (
        "16.2",
        "loss first",
        (
            (
                "            exponentials_to_slopes(row, labels[row], total, grad)\n"
                "            if cuda.threadIdx.x == 0:\n"
                "                row_losses[row] = (math.log(total) - "
                "(logits[row, labels[row]] - largest)) / logits.dtype.type(rows)\n",
                "            if cuda.threadIdx.x == 0:\n"
                "                loss = math.log(total) + largest - logits[row, labels[row]]\n"
                "                row_losses[row] = loss / logits.dtype.type(rows)\n"
                "            exponentials_to_slopes(row, labels[row], total, grad)\n",
            ),
        ),
    ),
    (
        "16.3",
        "typed zero start",
        (("z = parts[0, row, column]\n        split = 1", "z = parts.dtype.type(0)\n        split = 0"),),
    ),
    (
        "13.1",
        "one walk for the largest and the sum",
        (
            (
                "        j = 1\n"
                "        while j < columns:\n"
                "            largest = z[row, j] if z[row, j] > largest else largest\n"
                "            j += 1\n"
                "        total = z.dtype.type(0)\n"
                "        j = 0\n"
                "        while j < columns:\n"
                "            exponential = math.exp(z[row, j] - largest)\n"
                "            output[row, j] = exponential\n"
                "            total += exponential\n"
                "            j += 1\n",
                "        total = z.dtype.type(1)\n"
                "        for j in range(1, columns):\n"
                "            if z[row, j] > largest:\n"
                "                total = total * math.exp(largest - z[row, j]) + z.dtype.type(1)\n"
                "                largest = z[row, j]\n"
                "            else:\n"
                "                total += math.exp(z[row, j] - largest)\n",
            ),
            ("output[row, j] /= total", "output[row, j] = math.exp(z[row, j] - largest) / total"),
        ),
    ),
    (
        "14.1",
        "lanes from the right",
        (
            (
                "        j = lane\n        while j < columns:\n            grad_z",
                "        j = WARP - 1 - lane\n        while j < columns:\n            grad_z",
            ),
        ),
    ),
    *week23.RIGHT_KERNELS,
]
"""(task, what is different, the changes to the solution)."""
