"""Wrong answers of week 21: im2col and col2im, one product, and convolution in C."""

from tests.groundup.course.course_mutants import Mutant, RightAnswer

GATHER = "np.copyto(columns, as_strided(padded, columns.shape, steps))"
SCATTER = "pixels += columns[:, i, j]"
BY_IMAGE = "np.add(_by_image(sums, len(x), g.output), bias[:, np.newaxis, np.newaxis], out=out)"
COLUMN = "const ptrdiff_t column = left + (ptrdiff_t)v;"
OUTSIDE = "if (column < 0 || column >= width) continue;"
WEIGHT = "w[(c * s->kernel_height + u) * s->kernel_width + v]"
PLACES = "if (++v == s->kernel_width) {"

MUTANTS = [
    # 21.1 gather_columns
    Mutant(
        "21.1",
        GATHER,
        "columns[...] = g.windows(padded).reshape(columns.shape)",
        "values",
        "reshape does not move an axis",
    ),
    Mutant(
        "21.1",
        GATHER,
        "columns[...] = g.windows(padded).transpose(0, 1, 4, 5, 2, 3).reshape(columns.shape)",
        "values",
        "images and channels are in the wrong order",
    ),
    Mutant(
        "21.1",
        GATHER,
        "windows = sliding_window_view(padded, g.window, axis=(2, 3))[:, :, : g.output[0], : g.output[1]]\n"
        "    columns[...] = windows.transpose(1, 4, 5, 0, 2, 3)",
        "values",
        "as if the stride were 1",
    ),
    Mutant(
        "21.1",
        GATHER,
        "columns[...] = g.windows(padded)[..., ::-1, ::-1].transpose(1, 4, 5, 0, 2, 3)",
        "values",
        "turned by half a turn",
    ),
    Mutant(
        "21.1",
        "of_channel, of_row, of_pixel, of_image,",
        "of_channel, of_pixel, of_row, of_image,",
        "values",
        "rows and columns",
    ),
    Mutant("21.1", "of_pixel, of_image,", "of_pixel, 0,", "values", "every image has the numbers of the first one"),
    Mutant("21.1", "steps = (of_channel,", "steps = (0,", "agreement", "every channel has the numbers of the first"),
    Mutant("21.1", "of_channel, of_row, of_pixel, of_image,", "of_channel, 0, 0, of_image,", "values", "of its corner"),
    Mutant("21.1", GATHER, "return g.windows(padded).transpose(1, 4, 5, 0, 2, 3)", "values", "nothing was written"),
    Mutant(
        "21.1",
        GATHER,
        "for r in range(g.output[0]):\n        for s in range(g.output[1]):\n"
        "            top, left = r * g.stride[0], s * g.stride[1]\n"
        "            window = padded[:, :, top : top + g.window[0], left : left + g.window[1]]\n"
        "            columns[..., r, s] = window.transpose(1, 2, 3, 0)",
        "way",
        "loop at most over the places in the window",
    ),
    # 21.2 scatter_columns
    Mutant("21.2", SCATTER, "pixels[...] = columns[:, i, j]", "values", "keeps what the last one brought"),
    Mutant(
        "21.2",
        "    for i, j in product",
        "    padded[...] = 0\n    for i, j in product",
        "values",
        "what padded held before is lost",
    ),
    Mutant("21.2", SCATTER, "pixels = pixels + columns[:, i, j]", "values", "padded is as it was before"),
    Mutant(
        "21.2",
        "g.shifted(padded, i, j)",
        "padded[..., i : i + g.output[0], j : j + g.output[1]]",
        "values",
        "as if the stride were 1",
    ),
    Mutant("21.2", "columns[:, i, j]", "columns[:, -1 - i, -1 - j]", "values", "turned by half a turn"),
    Mutant("21.2", "columns[:, i, j]", "columns[:, j, i]", "values", "have changed places"),
    Mutant("21.2", "g.shifted(padded, i, j)", "g.shifted(padded, 0, 0)", "values", "added to the window's corner"),
    Mutant(
        "21.2",
        "product(range(g.window[0]), range(g.window[1]))",
        "[(0, 0)]",
        "values",
        "only the corner of each window comes back",
    ),
    Mutant(
        "21.2",
        SCATTER,
        SCATTER + "\n    whole = padded.base\n    whole[...] = np.maximum(whole, -1e9) + 1e-9",
        "shape",
        "writes beside padded",
    ),
    Mutant(
        "21.2",
        "    for i, j in product",
        "    given, padded = padded, padded.copy()\n    for i, j in product",
        "values",
        "padded is as it was before",
    ),
    # 21.3 im2col
    Mutant("21.3", "_by_image(sums, len(x), g.output)", "sums.reshape(out.shape)", "values", "Bring the images to the"),
    Mutant("21.3", "bias[:, np.newaxis, np.newaxis]", "0", "values", "the bias is not added"),
    Mutant("21.3", "bias[:, np.newaxis, np.newaxis]", "bias", "values", "one number for each filter"),
    Mutant("21.3", "gather_columns(pad(x, g), columns, g)", "gather_columns(x, columns, g)", "values", ""),
    Mutant("21.3", "weights.reshape", "weights[:, :, ::-1, ::-1].reshape", "values", "the kernel is turned"),
    Mutant(
        "21.3",
        "weights.reshape",
        "weights.swapaxes(2, 3).reshape",
        "values",
        "rows and columns of the kernel are exchanged",
    ),
    Mutant(
        "21.3", "pad(x, g)", 'np.pad(x, [(0, 0), (0, 0), *((n, n) for n in g.padding)], "edge")', "values", "it is 0"
    ),
    Mutant("21.3", "    return out", "    return _by_image(sums, len(x), g.output)", "values", "the bias is not added"),
    Mutant("21.3", BY_IMAGE, f"out = {BY_IMAGE.replace(', out=out', '')}", "values", "did not return out"),
    Mutant(
        "21.3",
        "sums = weights.reshape(len(weights), -1) @ columns.reshape(weights[0].size, -1)",
        'sums = np.einsum("ok,kn->on", weights.reshape(len(weights), -1), columns.reshape(weights[0].size, -1))',
        "way",
        "this is another way to a convolution",
    ),
    Mutant(
        "21.3",
        "sums = weights.reshape(len(weights), -1) @ columns.reshape(weights[0].size, -1)",
        "flat = columns.reshape(weights[0].size, -1)\n"
        "    sums = np.stack([filters.reshape(-1) @ flat for filters in weights])",
        "way",
        "the point of im2col is one product",
    ),
    Mutant(
        "21.3",
        "sums = weights.reshape(len(weights), -1) @ columns.reshape(weights[0].size, -1)",
        "of_images = columns.reshape(weights[0].size, len(x), -1).transpose(1, 0, 2)\n"
        "    products = weights.reshape(len(weights), -1) @ of_images\n"
        "    sums = products.transpose(1, 0, 2).reshape(len(weights), -1)",
        "way",
        "a product for each image",
    ),
    # 21.4 one_output
    Mutant("21.4", OUTSIDE, "", "values", "both are tested before x is read"),
    Mutant("21.4", "if (row < 0 || row >= height) continue;", "", "values", "both are tested before x is read"),
    Mutant("21.4", "column >= width", "column > width", "sizes", "both are tested before x is read"),
    Mutant("21.4", "row >= height", "row >= height - 1", "values", "the last row of the image is left out"),
    Mutant(
        "21.4", WEIGHT, "w[(c * s->kernel_width + u) * s->kernel_height + v]", "agreement", "those of w kernel_width"
    ),
    Mutant("21.4", WEIGHT, "w[u * s->kernel_width + v]", "values", "all channels meet the first channel of the kernel"),
    Mutant(
        "21.4",
        "((ptrdiff_t)c * height + row)",
        "(row)",
        "values",
        "all channels of the kernel meet the first of x",
    ),
    Mutant("21.4", "sum += x", "sum = x", "values", ""),
    Mutant("21.4", "c < s->channels", "c < 1", "values", "only the first input channel counts"),
    Mutant(
        "21.4", "u < s->kernel_height", "u + 1 < s->kernel_height", "values", "the last row of the kernel is left out"
    ),
    Mutant("21.4", "v < s->kernel_width", "v + 1 < s->kernel_width", "values", "the last column of the kernel"),
    Mutant(
        "21.4",
        WEIGHT,
        "w[((c + 1) * s->kernel_height - u) * s->kernel_width - v - 1]",
        "values",
        "the kernel is turned",
    ),
    Mutant("21.4", COLUMN, "size_t column = (size_t)left + v;", "compile", "comparison of unsigned expression"),
    Mutant("21.4", "real sum = 0;", "static real sum = 0;", "shape", "static and global variables"),
    # 21.5 pack_windows
    Mutant("21.5", "k_begin / (s->kernel_width * s->kernel_height)", "0", "agreement", "row k_begin comes first"),
    Mutant(
        "21.5",
        "size_t v = k_begin % s->kernel_width, u = k_begin / s->kernel_width % s->kernel_height;\n"
        "    size_t c = k_begin / (s->kernel_width * s->kernel_height);",
        "size_t v = 0, u = 0, c = 0;",
        "agreement",
        "row k_begin comes first",
    ),
    Mutant("21.5", "runs[r].left + (ptrdiff_t)v", "runs[r].left", "values", "column j lies j columns further on"),
    Mutant("21.5", "runs[r].top + (ptrdiff_t)u", "runs[r].top", "values", "row i lies i rows further on"),
    Mutant("21.5", "(c * s->height + (size_t)row)", "((size_t)row)", "values", "x goes on with the channel, too"),
    Mutant("21.5", "at += runs[r++].count", "r++", "values", ""),
    Mutant("21.5", PLACES, "if (++v == s->kernel_height) {", "shape", "those of w kernel_width"),
    Mutant(
        "21.5",
        "if (row >= 0 && row < (ptrdiff_t)s->height)",
        "if (row < (ptrdiff_t)s->height)",
        "values",
        "both are tested before x is read",
    ),
    Mutant("21.5", "panel[at + i] = 0", "panel[at + i] = panel[0]", "values", ""),
    Mutant(
        "21.5",
        "    for (size_t k = k_begin; k < k_end; k++, panel += width) {",
        "    real *columns = __builtin_malloc(sizeof(real));\n    __builtin_free(columns);\n"
        "    for (size_t k = k_begin; k < k_end; k++, panel += width) {",
        "way",
        "the matrix of columns must never exist",
    ),
]

RIGHT_ANSWERS = [
    RightAnswer(
        "21.1",
        "    np.copyto(columns, as_strided(padded, columns.shape, steps))",
        "    for i in range(g.window[0]):\n        for j in range(g.window[1]):\n"
        "            columns[:, i, j] = g.shifted(padded, i, j).swapaxes(0, 1)",
    ),
    RightAnswer(
        "21.1",
        "np.copyto(columns, as_strided(padded, columns.shape, steps))",
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
]
