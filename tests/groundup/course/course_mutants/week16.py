"""Wrong answers of week 16: fusing."""

from tests.groundup.course.course_mutants import Mutant

MUTANTS = [
    Mutant("16.1", "bias[column]", "bias[row]", "values", "a bias per row"),
    Mutant("16.1", "total + bias[column])", "total) + bias[column]", "values", "the activation comes before the bias"),
    Mutant("16.1", "activate(activation, total + bias[column])", "total + bias[column]", "values", "is left out"),
    Mutant(
        "16.1",
        "        total = product(x, weights, tile_a, tile_b)\n"
        "        if row < out.shape[0] and column < out.shape[1]:\n",
        "        if row < out.shape[0] and column < out.shape[1]:\n"
        "            total = product(x, weights, tile_a, tile_b)\n",
        "shape",
        "a barrier in an `if`",
    ),
    Mutant("16.1", "row < out.shape[0] and ", "", "shape", "no guard"),
    Mutant(
        "16.1",
        "            out[row, column] = activate(activation, total + bias[column])\n",
        "            out[row, column] = total + bias[column]\n"
        "            out[row, column] = activate(activation, out[row, column])\n",
        "memory",
        "goes to memory and is read back",
    ),
    Mutant("16.2", " / logits.dtype.type(rows)", "", "values", "forgot the batch mean"),
    Mutant(
        "16.2", "(logits[row, labels[row]] - largest)", "logits[row, labels[row]]", "values", "the largest logit is not"
    ),
    Mutant(
        "16.2", "            exponentials_to_slopes(row, labels[row], total, grad)\n", "", "values", "still holds the"
    ),
    Mutant("16.2", "if cuda.threadIdx.x == 0", "if cuda.threadIdx.x >= 0", "memory", "two threads write one element"),
    Mutant("16.3", "split = 1", "split = 0", "values", "the first part is added twice"),
    Mutant("16.3", "split < parts.shape[0]", "split < parts.shape[0] - 1", "values", "wrong at index"),
    Mutant("16.3", "if masked:", "if True:", "sizes", "though masked is 0"),
    Mutant("16.3", "z + bias[column])", "z) + bias[column]", "values", "the activation comes before the bias"),
    Mutant("16.3", "value * mask[row, column]", "value", "values", "dropped is the output without its mask"),
    Mutant(
        "16.3",
        "value * mask[row, column]",
        "output[row, column] * mask[row, column]",
        "memory",
        "goes to memory and is read back",
    ),
    Mutant(
        "16.1",
        "        total = product(x, weights, tile_a, tile_b)\n"
        "        if row < out.shape[0] and column < out.shape[1]:\n",
        "        total = x.dtype.type(0)\n"
        "        if row < out.shape[0] and column < out.shape[1]:\n"
        "            k = 0\n"
        "            while k < x.shape[1]:\n"
        "                total += x[row, k] * weights[k, column]\n"
        "                k += 1\n",
        "memory",
        "each number is fetched once",
    ),
    Mutant("16.1", "total + bias[column]", "total + bias[column] * 1.0", "types", "computes in float64"),
    Mutant("16.1", "activate(activation,", "activate(1,", "agreement", ""),
    Mutant("16.1", "out[row, column] = activate", "out[row, column] += activate", "shape", "holds nothing yet"),
    Mutant(
        "16.2",
        "            largest = largest_of(logits, row)\n",
        "            largest = max(largest_of(logits, row), logits.dtype.type(0))\n",
        "agreement",
        "0, or the row's largest logit",
    ),
    Mutant(
        "16.2",
        "            largest = largest_of(logits, row)\n",
        "            largest = logits.dtype.type(0)\n",
        "agreement",
        "nothing is subtracted",
    ),
    Mutant("16.2", "largest_of(logits, row)", "largest_of(logits, 0)", "agreement", "the largest of row 0"),
    Mutant("16.2", "largest_of(logits, row)", "logits[row, 0]", "sizes", "the row's first logit"),
    Mutant(
        "16.2",
        "            exponentials_to_slopes(row, labels[row], total, grad)\n",
        "            total = exponentials_into(logits, row, largest, grad)\n"
        "            exponentials_to_slopes(row, labels[row], total, grad)\n",
        "types",
        "the exponentials are most of the work",
    ),
    Mutant(
        "16.2",
        "(math.log(total) - (logits[row, labels[row]] - largest))",
        "-math.log(math.exp(logits[row, labels[row]] - largest) / total)",
        "sizes",
        "",
    ),
    Mutant("16.3", "z = parts[0, row, column]", "z = 0.0 + parts[0, row, column]", "types", "computes in float64"),
    Mutant("16.3", "i // columns", "i / columns", "shape", "// divides"),
    Mutant("16.3", "i < count", "i <= count", "shape", "lets one too many through"),
    Mutant(
        "16.3",
        "        output[row, column] = value\n"
        "        if masked:\n"
        "            dropped[row, column] = value * mask[row, column]\n",
        "        if masked:\n"
        "            value *= mask[row, column]\n"
        "            dropped[row, column] = value\n"
        "        output[row, column] = value\n",
        "values",
        "",
    ),
    Mutant(
        "16.1",
        "column, row = cuda.grid(2)",
        "column = cuda.blockIdx.x * 16 + cuda.threadIdx.x\n        row = cuda.blockIdx.y * 16 + cuda.threadIdx.y",
        "agreement",
        "",
    ),
    Mutant("16.3", "z = parts[0, row, column]", "z = parts[0, row, column] + bias[column]", "values", ""),
    Mutant(
        "16.1",
        "            out[row, column] = activate",
        "            out[row, column] = 0\n"
        "            cuda.atomic.add(out, (row, column), total)\n"
        "            out[row, column] = activate",
        "memory",
        "nothing has to be atomic",
    ),
    Mutant(
        "16.1",
        "        total = product(x, weights, tile_a, tile_b)\n",
        "        if row >= out.shape[0] or column >= out.shape[1]:\n            return\n"
        "        total = product(x, weights, tile_a, tile_b)\n",
        "values",
        "a guard before the barrier returns early",
    ),
    Mutant(
        "16.2",
        "        row = first_row()\n",
        "        row = first_row()\n        if cuda.threadIdx.x >= logits.shape[1]:\n            return\n",
        "values",
        "lanes have left before the shuffle",
    ),
    Mutant(
        "16.3",
        "        output[row, column] = value\n        if masked:\n"
        "            dropped[row, column] = value * mask[row, column]\n",
        "        if masked:\n            value *= mask[row, column]\n            dropped[row, column] = value\n"
        "        output[row, column] = value\n",
        "values",
        "output has the mask, too",
    ),
    Mutant(
        "16.3",
        "        split = 1\n",
        "        split = 1 if i < step else parts.shape[0]\n",
        "sizes",
        "`split` begins anew",
    ),
    Mutant(
        "16.3",
        "    i = cuda.grid(1)\n    step = cuda.gridsize(1)\n",
        "    i = cuda.threadIdx.x if cuda.blockIdx.x == 0 else count\n    step = cuda.blockDim.x\n",
        "memory",
        "only block 0 of 2 blocks works",
    ),
]
