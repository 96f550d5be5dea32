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
    Mutant("16.3", "split < parts.shape[0]", "split < parts.shape[0] - 1", "values", "one part is left out, the last"),
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
]
