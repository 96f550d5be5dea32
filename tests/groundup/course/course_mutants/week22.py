"""Wrong answers of week 22: Winograd's transforms, their rounding, and the cost of Fourier's way."""

from tests.groundup.course.course_mutants import Mutant, RightAnswer

RESULT = "[first + same + other, same - other + last]"
TERM = "abs(weight) * term"
ROWS = "transform_output(outputs, from, y + i * outputs);"

MUTANTS = [
    # 22.1 two_outputs
    Mutant(
        "22.1", RESULT, "[d0 * g0 + d1 * g1 + d2 * g2, d1 * g0 + d2 * g1 + d3 * g2]", "way", "the definition takes six"
    ),
    Mutant("22.1", "(g0 + g1 + g2) / 2", "(g0 + g1 + g2)", "values", "wrong"),
    Mutant(
        "22.1", RESULT, "[first + 2 * same + 2 * other, 2 * same - 2 * other + last]", "values", "are twice as large"
    ),
    Mutant("22.1", "same - other + last]", "same + other + last]", "values", "taken off in y1"),
    Mutant("22.1", "(d2 - d1)", "(d1 - d2)", "values", "m3 has the wrong sign"),
    Mutant("22.1", "(d3 - d1)", "(d1 - d3)", "values", "m4 has the wrong sign"),
    Mutant("22.1", "(d0 - d2)", "(d2 - d0)", "values", "m1 has the wrong sign"),
    Mutant("22.1", "[first + same", "[same", "values", "m1 is missing in y0"),
    Mutant("22.1", " + last]", "]", "values", "m4 is missing in y1"),
    Mutant("22.1", RESULT, "[same - other + last, first + same + other]", "values", "have changed places"),
    Mutant("22.1", "g0, g1, g2 = weights", "g2, g1, g0 = weights", "values", "the weights are turned round"),
    Mutant("22.1", "g0, g1, g2 = weights", "g0, g1, g2 = weights\n    g1 = -g1", "values", "the two sums of weights"),
    Mutant(
        "22.1",
        "    same = (d1 + d2) * ((g0 + g1 + g2) / 2)\n    other = (d2 - d1) * ((g0 - g1 + g2) / 2)",
        "    same = (d1 + d2) * (g0 + g1 + g2) / 2\n    other = (d2 - d1) * (g0 - g1 + g2) / 2",
        "way",
        "halves are taken of the weights",
    ),
    # 22.2 winograd2_input
    Mutant("22.2", "from[0] - from[2]", "from[0] + from[2]", "values", "not d0 + d2"),
    Mutant("22.2", "from[0] - from[2]", "from[2] - from[0]", "values", "to[0] has the wrong sign"),
    Mutant("22.2", "to[2] = same12 - other12", "to[2] = other12 - same12", "values", "to[2] has the wrong sign"),
    Mutant("22.2", "from[3] - from[1]", "from[1] - from[3]", "values", "to[3] has the wrong sign"),
    Mutant("22.2", "from[3] - from[1]", "from[3]", "values", "not d3 alone"),
    Mutant(
        "22.2", "to[2] = same12 - other12;", "to[2] = to[1];\n    to[1] = same12 - other12;", "values", "changed places"
    ),
    Mutant("22.2", "to[3] = from[3] - from[1];", "", "values", "not every element is written"),
    Mutant("22.2", "to[0] = from[0]", "to[0] = (real)1 * from[0]", "way", "additions and subtractions"),
    Mutant("22.2", "to[0] = from[0] - from[2];", "to[0] = from[0] - from[2]", "compile", "expected"),
    # 22.3 places_to_outputs
    Mutant("22.3", "(i * a + j) * place", "(j * a + i) * place", "values", "rows and columns have changed places"),
    Mutant("22.3", "(i * a + j) * place", "(i * a + j) * LANES", "compile", "never looks at the argument place"),
    Mutant("22.3", "(i * a + j) * place", "(i * a) * place", "values", "column j begins at j * place"),
    Mutant("22.3", "(i * a + j) * place", "j * place", "values", "row i begins at i * a * place"),
    Mutant("22.3", "columns[j][i]", "columns[j][0]", "values", "all rows of outputs are the first one"),
    Mutant(
        "22.3",
        ROWS,
        "vector to[4];\n        transform_output(outputs, from, to);\n"
        "        UNROLL for (size_t j = 0; j < outputs; j++) y[j * outputs + i] = to[j];",
        "values",
        "rows and columns have changed places",
    ),
    Mutant(
        "22.3",
        ROWS,
        "UNROLL for (size_t j = 0; j < outputs; j++) y[i * outputs + j] = from[j];",
        "values",
        "rows follow",
    ),
    Mutant(
        "22.3",
        "transform_output(outputs, from, columns[j]);",
        "winograd2_output(from, columns[j]);",
        "compile",
        "uninitialized",
    ),
    # 22.4 growth
    Mutant("22.4", "** 2", "** 1", "values", "that is one dimension"),
    Mutant("22.4", "largest / KERNEL", "largest / 1", "values", "give the ratio"),
    Mutant(
        "22.4",
        "largest = max(",
        "largest = (lambda sums: sum(sums := list(sums)) / len(sums))(",
        "values",
        "the mean",
    ),
    Mutant("22.4", "for row in at)", "for row in at[:1])", "values", "the first output was taken"),
    Mutant("22.4", "for row in at)", "for row in at[-1:])", "values", "the last output was taken"),
    Mutant("22.4", TERM, "weight * term", "values", "signs cancel"),
    Mutant("22.4", TERM, "term", "values", "AT is missing"),
    Mutant("22.4", "sum(map(abs, g_row)) * sum(map(abs, bt_row))", "sum(map(abs, g_row))", "values", "BT is missing"),
    Mutant("22.4", "sum(map(abs, g_row)) * sum(map(abs, bt_row))", "sum(map(abs, bt_row))", "values", "G is missing"),
    Mutant(
        "22.4",
        "sum(map(abs, g_row)) * sum(map(abs, bt_row))",
        "abs(sum(g_row) * sum(bt_row))",
        "values",
        "signs cancel",
    ),
    Mutant(
        "22.4",
        "sum(abs(weight) * term for weight, term in zip(row, terms, strict=True)) for row in at",
        "terms",
        "values",
        "AT",
    ),
    # 22.5 by_fourier
    Mutant("22.5", "(height + 2 * padding[0]) * (width + 2 * padding[1])", "height * width", "values", "padded first"),
    Mutant("22.5", "(pixels / 2)", "pixels", "values", "half as many frequencies as pixels"),
    Mutant("22.5", "4 * (pixels", "(pixels", "values", "takes 4 multiplications"),
    Mutant("22.5", "4 * (pixels", "2 * (pixels", "values", "takes 4 multiplications"),
    Mutant("22.5", " + filters * channels", "", "values", "the kernels are transformed, too"),
    Mutant("22.5", " + batch * filters", "", "values", "the outputs are transformed back, too"),
    Mutant(
        "22.5",
        "batch * channels + filters * channels",
        "filters * channels",
        "values",
        "the images are transformed, too",
    ),
    Mutant("22.5", "log2(pixels)", "(log2(pixels) / log2(2.718281828459045))", "values", "to the base 2"),
    Mutant("22.5", "planes * pixels * log2(pixels) +", "planes * pixels * pixels +", "values", ""),
    Mutant("22.5", "+ 2 * padding[1]", "+ padding[1]", "values", ""),
]

RIGHT_ANSWERS = [
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
    RightAnswer(  # a * that multiplies nothing: it reads and writes through the pointer
        "22.2",
        "    to[0] = from[0] - from[2];\n",
        "    *to = *from - *(from + 2);\n",
    ),
]
