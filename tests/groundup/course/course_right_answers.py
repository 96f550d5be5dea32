"""Right answers that are written in another way than the project's own: the grader has to let each pass."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RightAnswer:
    """task: its id; old, new: what is replaced in the solution, and by what"""

    task: str
    old: str
    new: str


RIGHT_ANSWERS = [
    RightAnswer(
        "1.2",
        "            total = 0.0\n            for x, b_row in zip(a_row, b, strict=True):\n"
        "                total += x * b_row[j]\n            c_row[j] = total\n",
        "            c_row[j] = sum(x * b_row[j] for x, b_row in zip(a_row, b))\n",
    ),
    RightAnswer(
        "4.2",
        "    np.copyto(out, grad_output)\n    np.copyto(out, 0, where=stopped)",
        "    out[...] = np.where(z > 0, grad_output, 0)\n    #",
    ),
    RightAnswer("1.1", "c[i][j] += a[i][k] * b[k][j]", "c[i][j] = a[i][k] * b[k][j] + c[i][j]"),
    RightAnswer("1.3", "list(zip(*b, strict=True))", "[[row[j] for row in b] for j in range(n)]"),
    RightAnswer(
        "1.4",
        "    return _rows_times_rows(_transpose(a), _transpose(b))",
        "    c = [[0.0] * b_columns for _ in range(a_columns)]\n    for x, y in zip(a, b):\n"
        "        for i in range(a_columns):\n            for j in range(b_columns):\n"
        "                c[i][j] += x[i] * y[j]\n    return c",
    ),
    RightAnswer("1.4", "_rows_times_rows(_transpose(a), _transpose(b))", "matmul(_transpose(a), b)"),
    RightAnswer("2.1", "0.0 if v <= 0.0 else g", "g if v > 0.0 else 0.0"),
    RightAnswer(
        "2.2",
        "    if v >= 0.0:\n        return 1.0 / (1.0 + math.exp(-v))\n    e = math.exp(v)\n    return e / (1.0 + e)",
        "    e = math.exp(-abs(v))\n    return 1.0 / (1.0 + e) if v > 0 else e / (1.0 + e)",
    ),
    RightAnswer(
        "2.3",
        "        total = sum(exps)\n        output.append([e / total for e in exps])\n",
        "        whole = largest + math.log(sum(exps))\n        output.append([math.exp(v - whole) for v in row])\n",
    ),
    RightAnswer(
        "2.5",
        "        total += math.log(sum(math.exp(v - largest) for v in row)) - (row[label] - largest)",
        "        total += largest + math.log(sum(math.exp(v - largest) for v in row)) - row[label]",
    ),
    RightAnswer(
        "2.6",
        "    grad = softmax(logits)\n    for row, label in zip(grad, labels, strict=True):\n        row[label] -= 1.0\n"
        "    return [[g / rows for g in row] for row in grad]",
        "    return [[(s - (j == y)) / rows for j, s in enumerate(row)] for row, y in zip(softmax(logits), labels)]",
    ),
    RightAnswer("3.3", "s * (g - weighted) for", "s * g - s * weighted for"),
    RightAnswer("3.5", "for layer in reversed(layers):", "for layer in layers[::-1]:"),
    RightAnswer("3.7", "first.backward(grad, needs_grad_input=False)", "first.backward(grad)"),
    RightAnswer("4.1", "np.multiply(a[:, k, np.newaxis], b[k], out=product)", "product = np.outer(a[:, k], b[k])"),
    RightAnswer(
        "4.1",
        "        np.multiply(a[:, k, np.newaxis], b[k], out=product)\n        out += product\n",
        "        out += a[:, k : k + 1] * b[k : k + 1]\n",
    ),
    RightAnswer(
        "4.2",
        "    np.copyto(out, grad_output)\n    np.copyto(out, 0, where=stopped)",
        "    out.fill(0)\n    np.copyto(out, grad_output, where=z > 0)\n    #",
    ),
    RightAnswer(
        "4.3",
        "    np.subtract(z, z.max(axis=1, keepdims=True, out=per_row), out=out)\n    np.exp(out, out=out)\n",
        "    out[...] = np.exp(z - np.max(z, axis=1)[:, None])\n",
    ),
    RightAnswer("4.4", "out += self.bias", "np.add(out, self.bias, out=out)"),
    RightAnswer(
        "4.5",
        "grad_output.sum(axis=0, out=self.grad_bias)",
        "self.grad_bias[:] = np.ones(len(grad_output)) @ grad_output",
    ),
    RightAnswer(
        "5.1",
        "    np.exp(shifted, out=shifted).sum(axis=1, keepdims=True, out=per_row)\n    np.log(per_row, out=per_row)\n"
        "    per_row -= of_label\n    return _mean(per_row)\n",
        "    terms = np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(rows), labels]\n"
        "    return float(np.mean(terms, dtype=np.float64))\n",
    ),
    RightAnswer(
        "5.2",
        "np.subtract(out, 1, out=out, where=_is_label(labels, classes, scratch))",
        "out[np.arange(rows), labels] -= 1",
    ),
    RightAnswer(
        "5.4", "p -= np.multiply(slope, self.learning_rate, out=update)", "p[...] = p - self.learning_rate * slope"
    ),
    RightAnswer("6.1", "z[i] <= 0 ? 0 : grad_output[i]", "z[i] > 0 ? grad_output[i] : 0"),
    RightAnswer(
        "6.3",
        "for (size_t j = 0; j < columns; j++) sums[j] = values[j];\n    for (size_t i = 1;",
        "for (size_t j = 0; j < columns; j++) sums[j] = 0;\n    for (size_t i = 0;",
    ),
    RightAnswer(
        "6.5",
        "            output[j] = REAL_FUNCTION(exp)(z[j] - largest);\n            sum += output[j];\n        }\n"
        "        for (size_t j = 0; j < columns; j++) output[j] /= sum;",
        "            sum += REAL_FUNCTION(exp)(z[j] - largest);\n        }\n"
        "        for (size_t j = 0; j < columns; j++) output[j] = REAL_FUNCTION(exp)(z[j] - largest) / sum;",
    ),
    RightAnswer(
        "7.2",
        "p0 += DEPTH) {\n            const size_t p1 = smaller(p0 + DEPTH, k)",
        "p0 += 128) {\n            const size_t p1 = smaller(p0 + 128, k)",
    ),
    RightAnswer(
        "7.2",
        "j0 += WIDTH) {\n        const size_t j1 = smaller(j0 + WIDTH, n)",
        "j0 += 64) {\n        const size_t j1 = smaller(j0 + 64, n)",
    ),
    RightAnswer(
        "7.3",
        "        grad[labels[i]] -= sum; /* e / sum - 1 = (e - sum) / sum */\n"
        "        for (size_t j = 0; j < columns; j++) grad[j] = grad[j] / sum / (real)rows;",
        "        for (size_t j = 0; j < columns; j++) grad[j] = grad[j] / (sum * (real)rows);\n"
        "        grad[labels[i]] -= 1 / (real)rows;",
    ),
    RightAnswer(
        "7.4",
        "        velocity[i] = keep * velocity[i] + slope;",
        "        velocity[i] *= keep;\n        velocity[i] += slope;",
    ),
    RightAnswer(  # the bias's function adds a row
        "6.3",
        "for (size_t j = 0; j < columns; j++) sums[j] += values[i * columns + j];",
        "NAME(add_bias)(1, columns, values + i * columns, sums);",
    ),
    RightAnswer(  # column by column
        "6.3",
        "    for (size_t j = 0; j < columns; j++) sums[j] = values[j];\n"
        "    for (size_t i = 1; i < rows; i++) {\n"
        "        for (size_t j = 0; j < columns; j++) sums[j] += values[i * columns + j];\n"
        "    }",
        "    for (size_t j = 0; j < columns; j++) {\n"
        "        real sum = 0;\n"
        "        for (size_t i = 0; i < rows; i++) sum += values[i * columns + j];\n"
        "        sums[j] = sum;\n"
        "    }",
    ),
    RightAnswer("7.5", "for (size_t j = j0; j < j1; j++)", "for (size_t j = j0; j < j1 && j < n; j++)"),
    RightAnswer(  # a generator over the two buffers
        "5.5",
        'm, v = self._state.buffers["first_moment"][i], self._state.buffers["second_moment"][i]',
        'm, v = (self._state.buffers[name][i] for name in ("first_moment", "second_moment"))',
    ),
    RightAnswer(
        "8.1",
        "raise ValueError(f\"matmul: a is {a.shape} but b is {b.shape}; a's columns must equal b's rows\")",
        'raise ValueError("these two do not fit")',
    ),
    RightAnswer(  # a cast or two more
        "7.3",
        "grad[j] = grad[j] / sum / (real)rows;",
        "grad[j] = (real)((double)grad[j] / (double)sum / (double)rows);",
    ),
    RightAnswer(  # order ikj
        "1.1",
        "        for j in range(n):\n            for k in range(k_size):\n",
        "        for k in range(k_size):\n            for j in range(n):\n",
    ),
    RightAnswer(  # fsum
        "1.1",
        "            for k in range(k_size):\n                c[i][j] += a[i][k] * b[k][j]\n",
        "            c[i][j] = math.fsum(a[i][k] * b[k][j] for k in range(k_size))\n",
    ),
    RightAnswer(  # rows of rows
        "1.2",
        "        for j in range(n):\n"
        "            total = 0.0\n"
        "            for x, b_row in zip(a_row, b, strict=True):\n"
        "                total += x * b_row[j]\n"
        "            c_row[j] = total\n",
        "        for x, b_row in zip(a_row, b):\n            c_row[:] = [y + x * z for y, z in zip(c_row, b_row)]\n",
    ),
    RightAnswer(  # fsum
        "2.3",
        "total = sum(exps)",
        "total = math.fsum(exps)",
    ),
    RightAnswer(  # log1p
        "2.5",
        "        total += math.log(sum(math.exp(v - largest) for v in row)) - (row[label] - largest)",
        "        others = sum(math.exp(v - largest) for v in row) - 1\n"
        "        total += math.log1p(others) + largest - row[label]",
    ),
    RightAnswer(  # loops
        "3.1",
        "        return [[y + b for y, b in zip(row, self.bias, strict=True)] for row in matmul(x, self.weights)]",
        "        y = matmul(x, self.weights)\n"
        "        for row in y:\n"
        "            for j in range(len(row)):\n"
        "                row[j] += self.bias[j]\n"
        "        return y",
    ),
    RightAnswer(  # x copied
        "3.1",
        "self._x = x",
        "self._x = [list(row) for row in x]",
    ),
    RightAnswer(  # in place grads
        "3.2",
        "self.grad_weights = matmul_tn(self._x, grad_output)",
        "self.grad_weights[:] = matmul_tn(self._x, grad_output)",
    ),
    RightAnswer(  # double loop
        "3.3",
        "        grad_z.append([s * (g - weighted) for g, s in zip(g_row, s_row, strict=True)])",
        "        row = []\n"
        "        for i in range(len(s_row)):\n"
        "            row.append(sum(g_row[j] * s_row[j] * ((i == j) - s_row[i]) for j in "
        "range(len(s_row))))\n"
        "        grad_z.append(row)",
    ),
    RightAnswer(  # recursion
        "3.5",
        "    for layer in reversed(layers):\n        grad = layer.backward(grad)\n    return grad",
        "    if not layers:\n        return grad\n    return backward(layers[:-1], layers[-1].backward(grad))",
    ),
    RightAnswer(  # always momentum
        "3.6",
        "                if self.momentum:\n"
        "                    (v,) = buffers\n"
        "                    v[i] = self.momentum * v[i] + slope\n"
        "                    slope = slope + self.momentum * v[i] if self.nesterov else v[i]\n"
        "                p[i] -= self.learning_rate * slope",
        "                if self.momentum == 0:\n"
        "                    p[i] = p[i] - slope * self.learning_rate\n"
        "                    continue\n"
        "                buffers[0][i] *= self.momentum\n"
        "                buffers[0][i] += slope\n"
        "                step = buffers[0][i] * self.momentum + slope if self.nesterov else "
        "buffers[0][i]\n"
        "                p[i] = p[i] - step * self.learning_rate",
    ),
    RightAnswer(  # zip
        "4.1",
        "    for k in range(a.shape[1]):\n"
        "        np.multiply(a[:, k, np.newaxis], b[k], out=product)\n"
        "        out += product\n",
        "    for column, row in zip(a.T, b):\n        out += np.outer(column, row)\n",
    ),
    RightAnswer(  # logsumexp
        "4.3",
        "    np.exp(out, out=out)\n    out /= out.sum(axis=1, keepdims=True, out=per_row)\n",
        "    out -= np.log(np.exp(out).sum(axis=1, keepdims=True))\n    np.exp(out, out=out)\n",
    ),
    RightAnswer(  # take
        "5.1",
        "    of_label = _select_label(shifted, labels, scratch)\n",
        "    of_label = np.take_along_axis(shifted, labels[:, None], axis=1)\n",
    ),
    RightAnswer(  # velocity replaced
        "5.4",
        "                v *= self.momentum\n                v += slope\n",
        '                v = self._state.buffers["velocity"][i] = self.momentum * v + slope\n',
    ),
    RightAnswer(  # textbook
        "5.5",
        "            np.sqrt(v, out=denominator)\n"
        "            denominator /= root_correction\n"
        "            denominator += self.epsilon\n"
        "            np.divide(m, denominator, out=update)\n"
        "            update *= step_size\n"
        "            p -= update\n",
        "            p -= self.learning_rate * (m / (1 - self.beta1**t)) / (np.sqrt(v / (1 - "
        "self.beta2**t)) + self.epsilon)\n",
    ),
    RightAnswer(  # if else
        "6.1",
        "    for (size_t i = 0; i < rows * columns; i++) grad_z[i] = z[i] <= 0 ? 0 : grad_output[i];",
        "    const real *end = z + rows * columns;\n"
        "    while (z < end) {\n"
        "        if (*z > 0) *grad_z = *grad_output;\n"
        "        else *grad_z = 0;\n"
        "        z++, grad_output++, grad_z++;\n"
        "    }",
    ),
    RightAnswer(  # mod
        "6.2",
        "    for (size_t i = 0; i < rows; i++) {\n"
        "        for (size_t j = 0; j < columns; j++) values[i * columns + j] += bias[j];\n"
        "    }",
        "    for (size_t i = 0; i < rows * columns; i++) values[i] += bias[i % columns];",
    ),
    RightAnswer(  # double sum
        "6.4",
        "            real sum = 0;\n"
        "            NO_SIMD_LOOP\n"
        "            for (size_t p = 0; p < k; p++) sum += a[i * k + p] * b[p * n + j];\n"
        "            c[i * n + j] = sum;\n",
        "            double sum = 0;\n"
        "            NO_SIMD_LOOP\n"
        "            for (size_t p = 0; p < k; p++) sum += (double)a[i * k + p] * (double)b[p "
        "* n + j];\n"
        "            c[i * n + j] = (real)sum;\n",
    ),
    RightAnswer(  # from -inf
        "6.5",
        "real largest = z[0];\n        for (size_t j = 1;",
        "real largest = -INFINITY;\n        for (size_t j = 0;",
    ),
    RightAnswer(  # kij
        "7.1",
        "    for (size_t i = 0; i < m; i++) {\n"
        "        for (size_t j = 0; j < n; j++) c[i * n + j] = 0;\n"
        "        for (size_t p = 0; p < k; p++) {",
        "    for (size_t i = 0; i < m * n; i++) c[i] = 0;\n"
        "    for (size_t p = 0; p < k; p++) {\n"
        "        for (size_t i = 0; i < m; i++) {",
    ),
    RightAnswer(  # first product set
        "7.1",
        "        for (size_t j = 0; j < n; j++) c[i * n + j] = 0;\n        for (size_t p = 0; p < k; p++) {",
        "        for (size_t j = 0; j < n; j++) c[i * n + j] = a[i * k] * b[j];\n"
        "        for (size_t p = 1; p < k; p++) {",
    ),
    RightAnswer(  # local v
        "7.4",
        "        velocity[i] = keep * velocity[i] + slope;\n"
        "        p[i] -= rate * (nesterov ? slope + keep * velocity[i] : velocity[i]);",
        "        const real v = keep * velocity[i] + slope;\n"
        "        velocity[i] = v;\n"
        "        p[i] = p[i] - rate * (nesterov ? slope + keep * v : v);",
    ),
    RightAnswer(  # x itself
        "8.2",
        "        self._x = x.view()",
        "        self._x = x",
    ),
    RightAnswer("18.4", "return central[0]", "return (4 * central[1] - central[0]) / 3"),
    RightAnswer("18.4", "max(1.0, abs(here), abs(central[0]))", "(1 + abs(here) + abs(central[0]))"),
    RightAnswer("18.4", "STEP * max(1.0, abs(p))", "STEP * (1.0 + p * p) ** 0.5"),
    RightAnswer(
        "17.1",
        "    np.add.at(counts, (labels, predictions), 1)",
        "    for i, j in zip(labels, predictions):\n        counts[i, j] += 1\n    #",
    ),
    RightAnswer(
        "4.1", "np.multiply(a[:, k, np.newaxis], b[k], out=product)", "np.einsum('i,j->ij', a[:, k], b[k], out=product)"
    ),
    RightAnswer("4.1", "for k in range(a.shape[1])", "inner = a.shape[1]\n    for k in range(inner)"),
    RightAnswer(
        "5.1",
        "    return _mean(per_row)",
        "    own = (logits - logits[np.arange(rows), labels][:, None]).astype(np.float64)\n"
        "    return float(np.logaddexp.reduce(own, axis=1).mean())",
    ),
    RightAnswer("6.5", "largest", "peak"),
    RightAnswer("7.1", "factor", "name"),
    RightAnswer(
        "8.4",
        "    if (backward(&way, count, operations) != 0) return -1;\n",
        "    for (size_t i = count; i-- > 0;) {\n"
        "        if (backward_one(&way, &operations[i]) != 0) return -1;\n    }\n",
    ),
    RightAnswer("8.4", "    pool_note(threads);\n", ""),
    RightAnswer("9.2", "column = i - row * columns", "multiply = row * columns\n        column = i - multiply"),
    RightAnswer("12.3", "positive_part", "hinge"),
    RightAnswer(
        "15.2",
        "        velocity = numbers[KEEP_FIRST] * first[i] + gradient\n        first[i] = velocity\n"
        "        change = gradient + numbers[KEEP_FIRST] * velocity",
        "        momentum = numbers[KEEP_FIRST]\n        moved = momentum * first[i] + gradient\n"
        "        first[i] = moved\n        change = gradient + momentum * moved",
    ),
    RightAnswer(
        "14.2",
        "    half = WARPS // 2\n    while half > 0:\n        if row < half:\n"
        "            partial[row, lane] += partial[row + half, lane]\n        cuda.syncthreads()\n        half //= 2\n"
        "    if row == 0 and column < columns:\n        sums[column] = partial[0, lane]\n",
        "    if row == 0 and column < columns:\n        for warp in range(1, WARPS):\n"
        "            total += partial[warp, lane]\n        sums[column] = total\n",
    ),
    RightAnswer(
        "21.1",
        "    np.copyto(columns, g.windows(padded).transpose(1, 4, 5, 0, 2, 3))",
        "    for i in range(g.window[0]):\n        for j in range(g.window[1]):\n"
        "            columns[:, i, j] = g.shifted(padded, i, j).swapaxes(0, 1)",
    ),
    RightAnswer(
        "21.1",
        "np.copyto(columns, g.windows(padded).transpose(1, 4, 5, 0, 2, 3))",
        'np.einsum("nchwij->cijnhw", g.windows(padded), out=columns)',
    ),
    RightAnswer(
        "21.2",
        "        pixels = g.shifted(padded, i, j)\n        pixels += columns[:, i, j]",
        "        rows = slice(i, i + (g.output[0] - 1) * g.stride[0] + 1, g.stride[0])\n"
        "        places = slice(j, j + (g.output[1] - 1) * g.stride[1] + 1, g.stride[1])\n"
        "        padded[:, :, rows, places] = padded[:, :, rows, places] + columns[:, i, j]",
    ),
    RightAnswer(
        "21.3",
        "    sums = weights.reshape(len(weights), -1) @ columns.reshape(weights[0].size, -1)\n",
        "    flat = columns.reshape(weights[0].size, -1)\n"
        "    sums = np.dot(flat.T, weights.reshape(len(weights), -1).T).T\n",
    ),
    RightAnswer(
        "21.4",
        "            if (row < 0 || row >= height) continue;\n",
        "            if ((size_t)row >= s->height) continue; /* a negative one is huge */\n",
    ),
    RightAnswer(
        "21.4",
        "                if (column < 0 || column >= width) continue;\n                sum += x",
        "                const int inside = column >= 0 && column < width;\n                if (inside) sum += x",
    ),
    RightAnswer(
        "21.5",
        "        for (; at < width; at++) panel[at] = 0;\n        if (++v",
        "        memset(panel + at, 0, (width - at) * sizeof(real));\n        if (++v",
    ),
    RightAnswer(
        "22.1",
        "(d2 - d1) * ((g0 - g1 + g2) / 2)",
        "(d1 - d2) * (g1 / 2 - g0 / 2 - g2 / 2)",
    ),
    RightAnswer(
        "22.2",
        "    const vector same12 = from[2];\n    const vector other12 = from[1];\n    to[1] = same12 + other12;\n"
        "    to[2] = same12 - other12;\n",
        "    const vector *d = from;\n    to[2] = d[2] - d[1];\n    to[1] = d[1] + d[2];\n",
    ),
    RightAnswer(
        "22.3",
        "    UNROLL for (size_t i = 0; i < outputs; i++) {\n        vector from[MOST];",
        "    for (size_t i = outputs; i-- > 0;) {\n        vector from[MOST];",
    ),
    RightAnswer(
        "22.4",
        "    return float((largest / KERNEL) ** 2)",
        "    one = float(largest) / KERNEL\n    return one * one",
    ),
    RightAnswer(
        "22.5",
        "planes * pixels * log2(pixels) + 4 * (pixels / 2) * batch * channels * filters",
        "pixels * (planes * log2(pixels) + 2 * batch * filters * channels)",
    ),
]
