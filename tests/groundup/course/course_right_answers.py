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
]
