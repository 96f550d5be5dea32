"""Wrong answers of week 24: images on the device, two streams, a step that is replayed, and what is seen inside."""

from tests.groundup.course.course_mutants import Mutant, RightAnswer

LAPS = "            column += column_step\n        row += row_step\n"

MUTANTS = [
    # 24.7 and 24.8 first: they compile nothing
    Mutant("24.7", "gains = [taken - at_best if", "gains = [taken if", "values", "the slowest operation"),
    Mutant("24.7", "taken - at_best if", "1 - at_best / taken if", "values", "the least efficient one"),
    Mutant("24.7", "else 0.0 for", "else taken for", "values", "without a roof is chosen"),
    Mutant("24.7", "if at_best is not None", "if at_best", "values", ""),
    Mutant("24.8", "(weights * maps)", "(weights * np.maximum(maps, 0))", "agreement", "what a map has below 0 counts"),
    Mutant(
        "24.7",
        "    gains = [",
        "    least[:] = [b if b is not None else s for s, b in zip(seconds, least)]\n    gains = [",
        "values",
        "changes the lists",
    ),
    Mutant("24.7", "step - largest)", "largest)", "values", "what is left of the step"),
    Mutant("24.7", "step - largest)", "sum(seconds) - largest)", "values", "more in it than its operations"),
    Mutant(
        "24.7",
        "step - largest)",
        "step - seconds[gains.index(largest)])",
        "values",
        "this is the step without the operation",
    ),
    Mutant("24.7", "if largest > 0 else None", "if gains else None", "values", "where none gains"),
    Mutant(
        "24.7",
        "gains.index(largest), ",
        "len(gains) - 1 - gains[::-1].index(largest), ",
        "values",
        "",
    ),
    Mutant("24.7", "max(gains, default=0.0)", "max(gains)", "sizes", "empty"),
    Mutant(
        "24.8", "np.maximum((weights * maps).sum(axis=1), 0)", "(weights * maps).sum(axis=1)", "values", "counts as 0"
    ),
    Mutant(
        "24.8",
        "np.maximum((weights * maps).sum(axis=1), 0)",
        "np.abs((weights * maps).sum(axis=1))",
        "values",
        "not as evidence",
    ),
    Mutant(
        "24.8",
        "np.maximum((weights * maps).sum(axis=1), 0)",
        "np.maximum(weights * maps, 0).sum(axis=1)",
        "values",
        "cut at 0 map by map",
    ),
    Mutant("24.8", "slopes.mean(axis=(2, 3), keepdims=True)", "slopes", "values", "not each place's own slope"),
    Mutant(
        "24.8",
        "slopes.mean(",
        "np.maximum(slopes, 0).mean(",
        "values",
        "negative slopes belong to the mean",
    ),
    Mutant("24.8", "slopes.mean(axis=(2, 3)", "slopes.max(axis=(2, 3)", "values", "the largest slope"),
    Mutant("24.8", "slopes.mean(axis=(2, 3)", "slopes.mean(axis=(1, 2, 3)", "values", "one weight for all maps"),
    Mutant("24.8", "evidence.max(axis=(1, 2), keepdims=True)", "evidence.max()", "values", "not by that of the batch"),
    Mutant("24.8", "np.where(largest > 0, largest, 1)", "largest", "values", "divides 0 by 0"),
    Mutant("24.8", "np.where(largest > 0, largest, 1)", "(largest + 1e-7)", "values", "a small one added"),
    Mutant(
        "24.8",
        "return evidence / np.where(largest > 0, largest, 1)",
        "return evidence",
        "values",
        "divided by its largest",
    ),
    Mutant("24.8", "(weights * maps)", "np.multiply(maps, weights, out=maps)", "shape", "maps"),
    Mutant("24.1", "table[images[image, column]]", "images[image, column]", "values", "these are the bytes"),
    Mutant(
        "24.1",
        "table[images[image, column]]",
        "x.dtype.type(images[image, column]) / x.dtype.type(255)",
        "values",
        "a byte over 255",
    ),
    Mutant("24.1", "order[position[0] + row]", "order[row]", "values", "the position is not added"),
    Mutant("24.1", "order[position[0] + row]", "position[0] + row", "values", "the order is not used"),
    Mutant("24.1", "table[images[image, column]]", "table[column]", "values", "the column's number"),
    Mutant("24.1", LAPS, "            column += column_step\n        break\n", "agreement", "first lap down the rows"),
    Mutant(
        "24.1",
        "    first_column, row = cuda.grid(2)\n    column_step, row_step = cuda.gridsize(2)\n",
        "    row, first_column = cuda.grid(2)\n    row_step, column_step = cuda.gridsize(2)\n",
        "memory",
        "x and y",
    ),
    Mutant(
        "24.2",
        "p * (one - across) + q * across",
        "p * across + q * (one - across)",
        "values",
        "the shares are exchanged",
    ),
    Mutant("24.2", "upper * (one - along) + lower * along", "upper", "values", "nothing between the rows"),
    Mutant("24.2", "* (one - across) + q * across", "", "values", "nothing between the columns"),
    Mutant("24.2", "math.floor(from_row)", "from_row", "values", ""),
    Mutant(
        "24.2",
        "    one = table.dtype.type(1)\n",
        "    above, left = min(int32(from_row), int32(height - 1)), min(int32(from_column), int32(width - 1))\n"
        "    one = table.dtype.type(1)\n",
        "values",
        "cut off towards 0",
    ),
    Mutant(
        "24.2",
        "    one = table",
        "    above, left = max(above, int32(0)), max(left, int32(0))\n    one = table",
        "values",
        "",
    ),
    Mutant(
        "24.2",
        "    upper = p * (one - across) + q * across\n",
        "    upper = p * (one - along) + q * along\n",
        "values",
        "",
    ),
    Mutant("24.2", "int32(height - 1)", "int32(height - 2)", "values", ""),
    Mutant("24.3", "changes[image, DOWN]", "changes[row, DOWN]", "agreement", ""),
    Mutant("24.3", "changes[image, ", "changes[row, ", "agreement", "the changes of line r"),
    Mutant("24.3", "image = order[position[0] + row]", "image = order[row]", "agreement", "the position is not added"),
    Mutant("24.3", "cos * z - sin * y", "cos * z + sin * y", "values", ""),
    Mutant("24.3", "sin = changes[image, SIN]", "sin = -changes[image, SIN]", "values", "turns the wrong way"),
    Mutant("24.3", " - changes[image, RIGHT]", " + changes[image, RIGHT]", "values", ""),
    Mutant("24.3", " - changes[image, DOWN]", "", "values", ""),
    Mutant("24.3", "int32(uint32(line) % uint32(height))", "line", "agreement", ""),
    Mutant("24.3", "int32((line - to_row) * width)", "int32(0)", "agreement", ""),
    Mutant(
        "24.3",
        "            at += column_step\n        row += row_step\n",
        "            at += column_step\n        break\n",
        "sizes",
        "first lap down the rows",
    ),
    Mutant(
        "24.4",
        "        if self._copies:\n            self._copies.synchronize()  # what it sent before",
        "        #",
        "memory",
        "still reading the host's memory",
    ),
    Mutant(
        "24.4",
        "self._arrays[1 - self.current]",
        "self._arrays[self.current]",
        "values",
        "into which nothing was copied",
    ),
    Mutant("24.4", ", stream=self._copies)", ")", "memory", "here the host waits for the kernels"),
    Mutant(
        "24.4",
        "        self._ahead = self._pinned\n",
        "        self._ahead = self._pinned\n        if self._copies:\n            self._copies.synchronize()\n",
        "memory",
        "the copy that it has just ordered",
    ),
    Mutant(
        "24.4",
        "copy_to_device(self._pinned, stream",
        "copy_to_device(order.astype(np.int32), stream",
        "memory",
        "memory that the system may move",
    ),
    Mutant(
        "24.4",
        "        self._ahead = self._pinned\n",
        "        self._ahead = order\n",
        "memory",
        "self._ahead has to say",
    ),
    Mutant("24.4", "        self._pinned[...] = order\n", "", "values", ""),
    Mutant(
        "24.4",
        "        if self._copies:\n            self._copies.synchronize()  # what",
        "        cuda.synchronize()\n        if self._copies:\n            self._copies.synchronize()  # what",
        "memory",
        "waits for the whole device",
    ),
    Mutant(
        "24.4",
        "        if self._copies:\n            self._copies.synchronize()  # what",
        "        if True:\n            self._copies.synchronize()  # what",
        "sizes",
        "int",
    ),
    Mutant(
        "24.4", "self._pinned[...] = order", "self._pinned = order.astype(np.int32)", "memory", "the system may move"
    ),
    Mutant(
        "24.5",
        "        if self._copies:\n            self._copies.synchronize()\n",
        "",
        "memory",
        "does not wait for the stream of the copies",
    ),
    Mutant(
        "24.5",
        "self.current, self._ahead, self._begun = 1 - self.current, None, True",
        "self._ahead, self._begun = None, True",
        "values",
        "",
    ),
    Mutant(
        "24.5",
        "= 1 - self.current, None, True",
        "= 1 - self.current, self._ahead, True",
        "values",
        "self._ahead = None",
    ),
    Mutant(
        "24.5",
        "self._ahead is None or not np.array_equal(self._ahead, order)",
        "self._ahead is None",
        "values",
        "where self._ahead is not this one",
    ),
    Mutant(
        "24.5",
        "self._ahead is None or not np.array_equal(self._ahead, order)",
        "True",
        "memory",
        "sent ahead is sent again",
    ),
    Mutant(
        "24.5",
        "        if self._ahead is None or not",
        "        self._begun = True\n        if self._ahead is None or not",
        "memory",
        "has begun an epoch all the same",
    ),
    Mutant(
        "24.5",
        "            self.prefetch(order)\n",
        "            self._arrays[1 - self.current].copy_to_device(np.asarray(order, np.int32))\n",
        "memory",
        "other memory than self._pinned",
    ),
    Mutant(
        "24.5",
        "            self._copies.synchronize()\n",
        "            cuda.synchronize()\n",
        "memory",
        "waits for the whole device",
    ),
    Mutant(
        "24.6", "    cuda.syncthreads()  # all threads have read the slot\n", "", "values", "all have to read it first"
    ),
    Mutant("24.6", "counters[POSITION] += losses.size", "counters[POSITION] += 1", "values", "not 1"),
    Mutant("24.6", "row_losses[slot, row] = ", "row_losses[slot, row] += ", "values", "added to what an earlier"),
    Mutant("24.6", "        counters[SLOT] += 1\n", "", "values", "the slot is not moved on"),
    Mutant("24.6", "row_losses[slot, row]", "row_losses[0, row]", "values", "line 0"),
    Mutant("24.6", "        row += cuda.blockDim.x\n", "        break\n", "agreement", "only the first losses"),
    Mutant("24.6", "    if cuda.threadIdx.x == 0:\n", "    if True:\n", "values", "every thread moves the counters on"),
    Mutant(
        "24.6",
        "counters[POSITION] += losses.size",
        "counters[POSITION] += cuda.blockDim.x",
        "values",
        "not after the threads",
    ),
]

RIGHT_ANSWERS = [
    RightAnswer("24.4", "        if self._copies:", "        if cuda_graphs.available():"),
    RightAnswer("24.5", "        if self._copies:", "        if cuda_graphs.available():"),
    RightAnswer(
        "24.1",
        "        column = first_column\n        while column < features:\n"
        "            x[row, column] = table[images[image, column]]\n            column += column_step\n",
        "        for column in range(first_column, features, column_step):\n"
        "            byte = images[image, column]\n            x[row, column] = table[byte]\n",
    ),
    RightAnswer(
        "24.2",
        "    return upper * (one - along) + lower * along",
        "    return upper + along * (lower - upper)",
    ),
    RightAnswer(
        "24.3",
        "            line = int32(uint32(at) // uint32(width))\n"
        "            to_row = int32(uint32(line) % uint32(height))\n"
        "            plane = int32((line - to_row) * width)\n",
        "            line = at // width\n            plane = at // (width * height) * width * height\n"
        "            to_row = (at - plane) // width\n",
    ),
    RightAnswer(
        "24.4",
        "        self._ahead = None  # until the copy is ordered: Ctrl-C may come between\n"
        "        self._pinned[...] = order\n",
        "        np.copyto(self._pinned, order)\n",
    ),
    RightAnswer(
        "24.4",
        "self._arrays[1 - self.current].copy_to_device(self._pinned, stream=self._copies)",
        "self._arrays[not self.current].copy_to_device(self._pinned, self._copies)",
    ),
    RightAnswer(
        "24.5",
        "        if self._copies:\n            self._copies.synchronize()\n        self.current",
        "        if self._copies != 0:\n            self._copies.synchronize()\n        self.current",
    ),
    RightAnswer(
        "24.6",
        "    row = cuda.threadIdx.x\n    while row < losses.size:\n        row_losses[slot, row] = losses[row]\n"
        "        row += cuda.blockDim.x\n    cuda.syncthreads()  # all threads have read the slot\n"
        "    if cuda.threadIdx.x == 0:\n",
        "    for row in range(cuda.grid(1), losses.size, cuda.gridsize(1)):\n"
        "        row_losses[slot, row] = losses[row]\n    cuda.syncthreads()\n"
        "    if cuda.threadIdx.x == cuda.blockDim.x - 1:\n",
    ),
    RightAnswer(
        "24.7",
        "    largest = max(gains, default=0.0)\n"
        "    return (gains.index(largest), step - largest) if largest > 0 else None\n",
        "    best = None\n    for i, each in enumerate(gains):\n"
        "        if each > 0 and (best is None or each > gains[best]):\n            best = i\n"
        "    return None if best is None else (best, step - gains[best])\n",
    ),
    RightAnswer(
        "24.8",
        "    weights = slopes.mean(axis=(2, 3), keepdims=True)\n"
        "    evidence = np.maximum((weights * maps).sum(axis=1), 0)\n",
        '    evidence = np.einsum("nc,nchw->nhw", slopes.mean(axis=(2, 3)), maps)\n    evidence[evidence < 0] = 0\n',
    ),
    RightAnswer(  # the sum of the slopes, which the division takes away again
        "24.8",
        "slopes.mean(axis=(2, 3), keepdims=True)",
        "slopes.sum(axis=(2, 3), keepdims=True)",
    ),
]
