"""Wrong answers of week 19: convolution on lists."""

from tests.groundup.course.course_mutants import Mutant, RightAnswer

ROWS = "int(image[-2]) + 2 * padding[0]"
COLUMNS = "int(image[-1]) + 2 * padding[1]"
PIXEL = "0 <= row < rows and 0 <= column < columns"

WEIGHTS = """    of_channels = [_flat(of_images) for of_images in zip(*grad_output, strict=True)]
    windows = [window for image in x for window in _windows(image, g)]
    return [_as_kernel(line, len(x[0]), g.window) for line in matmul_nt(of_channels, _transposed(windows))]
"""


def weights_in_loops(
    add: str = "out[o][c][i][j] += grad_output[n][o][r][s] * x[n][c][row][column]",
    inside: str = "0 <= row < g.image[0] and 0 <= column < g.image[1]",
    row: str = "r * g.stride[0] + i - g.padding[0]",
    images: str = "range(len(x))",
    last: str = "return out",
) -> str:
    """_grad_weights in seven loops, as the hints lead to it, with one part of it changed."""
    return f"""    out = zeros((len(grad_output[0]), len(x[0]), *g.window))
    for n, o, c in product({images}, range(len(out)), range(len(x[0]))):
        for r, s, i, j in product(*map(range, (*g.output, *g.window))):
            row, column = {row}, s * g.stride[1] + j - g.padding[1]
            if {inside}:
                {add}
    {last}
"""


INPUT = """    (down, right), (top, left) = g.stride, g.padding
    weights_in = _transposed([_flat(kernel) for kernel in weights])
    grad_input = []
    for image in grad_output:
        parts = iter(matmul_nt(weights_in, _transposed([_joined(channel) for channel in image])))
        padded = zeros((len(weights[0]), g.image[0] + 2 * top, g.image[1] + 2 * left))
        for channel, i, j in product(padded, range(g.window[0]), range(g.window[1])):
            for r, part_row in enumerate(_as_rows(next(parts), g.output)):
                row = channel[r * down + i]
                for at, part in zip(range(j, len(row), right), part_row, strict=False):
                    row[at] += part
        grad_input.append([[row[left : left + g.image[1]] for row in rows[top : top + g.image[0]]] for rows in padded])
    return grad_input
"""


def input_in_loops(
    add: str = "out[n][c][row][column] += grad_output[n][o][r][s] * weights[o][c][i][j]",
    inside: str = "0 <= row < g.image[0] and 0 <= column < g.image[1]",
    row: str = "r * g.stride[0] + i - g.padding[0]",
    kernels: str = "range(len(weights))",
) -> str:
    """_grad_input in seven loops, as the hints lead to it, with one part of it changed."""
    return f"""    out = zeros((len(grad_output), len(weights[0]), *g.image))
    for n, o, c in product(range(len(out)), {kernels}, range(len(weights[0]))):
        for r, s, i, j in product(*map(range, (*g.output, *g.window))):
            row, column = {row}, s * g.stride[1] + j - g.padding[1]
            if {inside}:
                {add}
    return out
"""


BIAS = "[sum(_flat(of_images)) for of_images in zip(*grad_output, strict=True)]"

MUTANTS = [
    Mutant("19.1", "// stride[0] + 1\n", "// stride[0]\n", "values", "wrong at index"),
    Mutant("19.1", "] + 1\n", "]\n", "values", "the first place is not counted"),
    Mutant("19.1", "+ 2 * padding", "+ padding", "values", "padding is added once"),
    Mutant("19.1", " // stride", " / stride", "shape", "// divides and rounds down"),
    Mutant("19.1", "return rows, columns", "return columns, rows", "values", "rows and columns are exchanged"),
    Mutant(
        "19.1",
        "    rows = (int(image[-2]) + 2 * padding[0] - window[0]) // stride[0] + 1\n"
        "    columns = (int(image[-1]) + 2 * padding[1] - window[1]) // stride[1] + 1\n",
        "    rows = -(-(image[-2] + 2 * padding[0] - window[0]) // stride[0]) + 1\n"
        "    columns = -(-(image[-1] + 2 * padding[1] - window[1]) // stride[1]) + 1\n",
        "values",
        "rounded up",
    ),
    Mutant("19.1", "image[-", "image[2-", "values", "its last two numbers"),
    Mutant("19.1", "// stride[1]", "// stride[0]", "values", "one number of a pair serves for both axes"),
    Mutant("19.1", "    check_window(function, image, window, padding)\n", "", "way", "check_window(…), has to stay"),
    Mutant("19.2", "weights[o][c][i][j]", "weights[o][c][-1 - i][-1 - j]", "values", "the kernel is turned"),
    Mutant("19.2", "[b] * output_columns", "[0.0] * output_columns", "values", "the bias is not added"),
    Mutant("19.2", "s * g.stride[1]", "s * g.stride[0]", "agreement", "stride's two numbers are exchanged"),
    Mutant("19.2", " * g.stride[0]", "", "values", "the window moves by one place"),
    Mutant("19.2", "0 <= column < columns", "column < columns", "values", "and 0 <= column"),
    Mutant("19.2", "* x[n][c]", "* x[0][c]", "values", "every image has the result of the first one"),
    Mutant("19.2", "0 <= row < rows and 0 <= column < columns", "row < rows and column < columns", "values", "below 0"),
    Mutant(
        "19.2", "out[n][o][r][s] += weights", "out[n][o][r][s] = weights", "values", "only the last product is kept"
    ),
    Mutant("19.2", "row = r * g.stride[0] + i - g.padding[0]", "row = r * g.stride[0] + i", "values", "is left out"),
    Mutant(
        "19.2",
        "[[[[b] * output_columns for _ in range(output_rows)] for b in bias] for _ in x]",
        "[[[[b] * output_columns] * output_rows for b in bias] for _ in x]",
        "values",
        "one and the same list",
    ),
    Mutant("19.2", "range(len(weights[o]))", "range(1)", "values", "only the first input channel counts"),
    Mutant(
        "19.2",
        "out[n][o][r][s] += weights[o][c][i][j] * x[n][c][row][column]",
        "out[n][o][r][s] += weights[o][c][i][j] * x[n][c][row][column] + bias[o]",
        "values",
        "the bias is added once for every product",
    ),
    Mutant(
        "19.2",
        "    (rows, columns), (output_rows",
        "    return zip_rows(x, weights, bias, stride, padding)\n    (rows, columns), (output_rows",
        "way",
        "uses zip_rows",
    ),
    Mutant("19.2", "    return out\n", "    return out[0]\n", "shape", "the images of the batch are missing"),
    Mutant("19.3", BIAS, "[sum(_flat([channel])) for channel in grad_output[0]]", "values", "only the first image"),
    Mutant("19.3", BIAS, "[sum(_flat([channel])) for channel in grad_output[-1]]", "values", "forgot the batch"),
    Mutant(
        "19.3", BIAS, f"[v / len(grad_output) for v in {BIAS}]", "values", "that mean is in the loss's gradient already"
    ),
    Mutant(
        "19.3",
        BIAS,
        "[sum(_flat(of_images)) / len(_flat(of_images)) for of_images in zip(*grad_output, strict=True)]",
        "values",
        "the mean, and not the sum",
    ),
    Mutant("19.3", BIAS, "[sum(_flat(image)) for image in grad_output]", "values", "summed over the channels"),
    Mutant("19.3", BIAS, BIAS.replace("sum(_flat(of_images))", "sum(set(_flat(of_images)))"), "values", "wrong at"),
    Mutant(
        "19.3",
        BIAS,
        f"[sum(done) for done in (({BIAS})[: o + 1] for o in range(len(grad_output[0])))]",
        "values",
        "the sum of the channels before is still in it",
    ),
    Mutant("19.3", BIAS, f"[sum({BIAS})] * len(grad_output[0])", "values", "every channel has the sum of all"),
    Mutant(
        "19.3", BIAS, "[[sum(_flat([c])) for c in image] for image in grad_output]", "shape", "each image and channel"
    ),
    Mutant(
        "19.3",
        BIAS,
        "[sum(sum(channel[0]) for channel in channels) for channels in zip(*grad_output)]",
        "values",
        "only the first row of the output counts",
    ),
    Mutant("19.4", WEIGHTS, weights_in_loops(row="r + i - g.padding[0]"), "values", "moves by one place"),
    Mutant(
        "19.4",
        WEIGHTS,
        weights_in_loops(row="r * g.stride[0] + i").replace(" - g.padding[1]", ""),
        "values",
        "pixel (-padding, -padding)",
    ),
    Mutant(
        "19.4",
        WEIGHTS,
        weights_in_loops(inside="row < g.image[0] and column < g.image[1]"),
        "values",
        "an index below 0 counts from the end",
    ),
    Mutant("19.4", WEIGHTS, weights_in_loops(images="[len(x) - 1]"), "gradient", "only the last image counts"),
    Mutant(
        "19.4",
        WEIGHTS,
        weights_in_loops(add="out[o][c][i][j] = grad_output[n][o][r][s] * x[n][c][row][column]"),
        "values",
        "only the last window counts",
    ),
    Mutant(
        "19.4",
        WEIGHTS,
        weights_in_loops(add="out[o][c][-1 - i][-1 - j] += grad_output[n][o][r][s] * x[n][c][row][column]"),
        "values",
        "turned by half a circle",
    ),
    Mutant(
        "19.4",
        WEIGHTS,
        weights_in_loops(add="out[o][c][i][j] += x[n][c][row][column]"),
        "values",
        "the output's gradient is left out",
    ),
    Mutant(
        "19.4",
        WEIGHTS,
        weights_in_loops(add="out[o][c][i][j] += grad_output[n][o][r][s] * x[n][c][row][column] / len(x)"),
        "gradient",
        "divided by the batch",
    ),
    Mutant(
        "19.4",
        WEIGHTS,
        weights_in_loops(last="return [list(kernels) for kernels in zip(*out)]"),
        "values",
        "output channels and input channels are exchanged",
    ),
    Mutant(
        "19.5",
        INPUT,
        input_in_loops(add="out[n][c][row][column] = grad_output[n][o][r][s] * weights[o][c][i][j]"),
        "values",
        "add up over all windows and kernels",
    ),
    Mutant(
        "19.5",
        INPUT,
        input_in_loops(add="out[n][c][row][column] += grad_output[n][o][r][s] * weights[o][c][-1 - i][-1 - j]"),
        "values",
        "the kernel is turned",
    ),
    Mutant("19.5", INPUT, input_in_loops(kernels="[len(weights) - 1]"), "values", "only the last kernel counts"),
    Mutant("19.5", INPUT, input_in_loops(kernels="[0]"), "values", "only the first kernel counts"),
    Mutant(
        "19.5", INPUT, input_in_loops().replace("stride[1]", "stride[0]"), "gradient", "one of them serves for both"
    ),
    Mutant(
        "19.5",
        INPUT,
        input_in_loops(inside="row < g.image[0] and column < g.image[1]"),
        "values",
        "an index below 0 counts from the end",
    ),
    Mutant("19.5", INPUT, input_in_loops(row="r + i - g.padding[0]"), "values", "moves by one place"),
    Mutant(
        "19.5",
        "[[row[left : left + g.image[1]] for row in rows[top : top + g.image[0]]] for rows in padded]",
        "padded",
        "values",
        "the border is still around it",
    ),
    Mutant("19.5", "rows[top : top + g.image[0]]", "rows[: g.image[0]]", "values", "off at both ends"),
    Mutant(
        "19.5",
        "row[left : left + g.image[1]] for row in rows[top : top + g.image[0]]",
        "row[: g.image[1]] for row in rows[: g.image[0]]",
        "values",
        "off at both ends",
    ),
    Mutant(
        "19.5",
        "row[at] += part",
        "row[at] += part / len(grad_output)",
        "gradient",
        "divided by the batch",
    ),
    Mutant("19.6", "sums = [b] * output_columns", "sums = [0.0] * output_columns", "values", "the bias is not added"),
    Mutant("19.6", "enumerate(kernel_row)", "enumerate(kernel_row[::-1])", "values", "the kernel is turned"),
    Mutant("19.6", "total + weight * value", "weight * value", "values", "only the last product is kept"),
    Mutant("19.6", "channel[r * down :", "channel[r :", "values", "ValueError"),
    Mutant("19.6", "padded = _pad(image, g)", "padded = image", "values", "beyond the end of its list"),
    Mutant("19.6", "row[j : j + span : across]", "row[j::across]", "shape", "A slice without an end"),
    Mutant(
        "19.6",
        "                            pairs = zip(sums, row[j : j + span : across], strict=True)\n"
        "                            sums = [total + weight * value for total, value in pairs]\n",
        "                            sums = [total + weight * row[j + s * across] for s, total in enumerate(sums)]\n",
        "way",
        "looks up numbers of the image one by one",
    ),
    Mutant(
        "19.6",
        "                        for j, weight in enumerate(kernel_row):\n"
        "                            pairs = zip(sums, row[j : j + span : across], strict=True)\n"
        "                            sums = [total + weight * value for total, value in pairs]\n",
        "                        for s in range(output_columns):\n"
        "                            window = row[s * across : s * across + g.window[1]]\n"
        "                            sums[s] += sum(w * v for w, v in zip(kernel_row, window, strict=True))\n",
        "way",
        "takes a slice for every output",
    ),
    Mutant(
        "19.6",
        "    (output_rows, output_columns), (down, across) = g.output, g.stride\n",
        "    return seven_loops(x, weights, bias, stride, padding)\n"
        "    (output_rows, output_columns), (down, across) = g.output, g.stride\n",
        "way",
        "uses seven_loops",
    ),
]

RIGHT_ANSWERS = [
    RightAnswer(  # the places are counted
        "19.1",
        "    rows = (int(image[-2]) + 2 * padding[0] - window[0]) // stride[0] + 1\n"
        "    columns = (int(image[-1]) + 2 * padding[1] - window[1]) // stride[1] + 1\n    return rows, columns\n",
        "    last = [int(image[a - 2]) + 2 * padding[a] - window[a] for a in (0, 1)]\n"
        "    return len(range(0, last[0] + 1, stride[0])), len(range(0, last[1] + 1, stride[1]))\n",
    ),
    RightAnswer(  # the border is made, and no pixel asked for
        "19.2",
        "row = r * g.stride[0] + i - g.padding[0]\n"
        "                                column = s * g.stride[1] + j - g.padding[1]\n"
        "                                if 0 <= row < rows and 0 <= column < columns:  "
        "# else it lies in the border of zeros\n"
        "                                    out[n][o][r][s] += weights[o][c][i][j] * x[n][c][row][column]\n",
        "row = r * g.stride[0] + i\n"
        "                                pixel = _pad(x[n], g)[c][row][s * g.stride[1] + j]\n"
        "                                out[n][o][r][s] += weights[o][c][i][j] * pixel\n",
    ),
    RightAnswer(
        "19.3",
        "    return [sum(_flat(of_images)) for of_images in zip(*grad_output, strict=True)]\n",
        "    out = [0.0] * len(grad_output[0])\n"
        "    for image in grad_output:\n        for o, rows in enumerate(image):\n"
        "            out[o] += sum(map(sum, rows))\n    return out\n",
    ),
    RightAnswer("19.4", WEIGHTS, weights_in_loops()),
    RightAnswer("19.5", INPUT, input_in_loops()),
    RightAnswer(  # each pixel looks for the outputs that it went into
        "19.5",
        INPUT,
        input_in_loops().replace(
            "        for r, s, i, j in product(*map(range, (*g.output, *g.window))):\n"
            "            row, column = r * g.stride[0] + i - g.padding[0], s * g.stride[1] + j - g.padding[1]\n"
            "            if 0 <= row < g.image[0] and 0 <= column < g.image[1]:\n",
            "        for row, column, i, j in product(*map(range, (*g.image, *g.window))):\n"
            "            r, down = divmod(row + g.padding[0] - i, g.stride[0])\n"
            "            s, right = divmod(column + g.padding[1] - j, g.stride[1])\n"
            "            if not (down or right) and 0 <= r < g.output[0] and 0 <= s < g.output[1]:\n",
        ),
    ),
    RightAnswer(
        "19.6",
        "sums = [total + weight * value for total, value in pairs]",
        "sums = [weight * value + total for total, value in pairs]",
    ),
]
