"""Wrong answers of week 13: softmax and reductions."""

from tests.groundup.course.course_mutants import Mutant

LANES_TAKE_PIECES = """def softmax_warp(z, output):
    row = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
    rows, columns = z.shape
    size = (columns + WARP - 1) // WARP
    first = cuda.threadIdx.x * size
    end = min(first + size, columns)
    while row < rows:
        largest = z[row, 0]
        j = first
        while j < end:
            largest = z[row, j] if z[row, j] > largest else largest
            j += 1
        largest = warp_largest(largest)
        total = z.dtype.type(0)
        j = first
        while j < end:
            output[row, j] = math.exp(z[row, j] - largest)
            total += output[row, j]
            j += 1
        total = warp_sum(total)
        j = first
        while j < end:
            output[row, j] /= total
            j += 1
        row += cuda.gridDim.x * cuda.blockDim.y
    return
"""

MUTANTS = [
    Mutant(
        "13.1",
        "    row = cuda.grid(1)\n",
        "    z = z.T\n    output = output.T\n    row = cuda.grid(1)\n",
        "values",
        "normalised over the wrong axis",
    ),
    Mutant("13.1", "z[row, j] - largest", "z[row, j]", "values", "forgot to subtract the row's largest"),
    Mutant("13.1", "largest = z[row, j] if", "largest = z[row, 0] if", "values", "the row's first number is taken"),
    Mutant("13.1", "row += cuda.gridsize(1)", "row += 1", "memory", "two threads work on one row"),
    Mutant("13.2", "half = BLOCK // 2", "half = BLOCK // 4", "values", "the first level of the tree is left out"),
    Mutant("13.2", "while half > 0", "while half > 1", "values", "the last level of the tree is left out"),
    Mutant("13.2", "while i < vector.size", "if i < vector.size", "values", "only the first 512 numbers"),
    Mutant(
        "13.2",
        "        cuda.syncthreads()\n        half",
        "        half",
        "values",
        "barrier missing inside the tree",
    ),
    Mutant(
        "13.2",
        "        cuda.syncthreads()\n        half",
        "            cuda.syncthreads()\n        half",
        "shape",
        "a barrier in an `if`",
    ),
    Mutant("13.2", "= own\n    cuda.syncthreads()", "= own", "memory", "after all sums are in shared memory"),
    Mutant("13.2", "    if thread == 0:\n        total", "    total", "memory", "one thread writes it out"),
    Mutant("13.3", "shfl_xor_sync", "shfl_down_sync", "values", "right in lane 0 only"),
    Mutant("13.3", "WHOLE_WARP", "0xFFFF", "shape", "the mask of a shuffle says which lanes take part"),
    Mutant("13.3", "while offset > 0", "while offset > 1", "values", "the last step is left out"),
    Mutant("13.3", "while offset > 0", "while offset > 2", "values", "in each lane of 1 warp:"),
    Mutant("13.3", "offset = WARP // 2", "offset = WARP // 4", "values", "the first step is left out"),
    Mutant("13.3", "value += cuda", "value = cuda", "values", "not added to the own one"),
    Mutant(
        "13.4",
        "        largest = warp_largest(largest)\n",
        "",
        "values",
        "the largest over the own lane only",
    ),
    Mutant("13.4", "        total = warp_sum(total)\n", "", "values", "the sum over the own lane only"),
    Mutant("13.4", "row += cuda.gridDim.x * cuda.blockDim.y", "row += cuda.gridsize(1)", "sizes", "not every element"),
    Mutant("13.4", "def softmax_warp(z, output):\n", LANES_TAKE_PIECES, "memory", "lanes far apart"),
    Mutant("13.3", "@cuda.jit(device=True)\n", "", "import", "is @cuda.jit(device=True) above"),
    Mutant("13.4", "@cuda.jit\n", "", "shape", "is @cuda.jit above"),
    Mutant(
        "13.4", "        largest = z[row, 0]\n", "        output[row, :] = z[row, :]\n", "shape", "index the arrays"
    ),
    Mutant(
        "13.1", "largest = z[row, 0]\n", "largest = z.dtype.type(0)\n", "values", "the largest begins at a fixed number"
    ),
    Mutant(
        "13.1",
        "        j = 1\n"
        "        while j < columns:\n"
        "            largest = z[row, j] if z[row, j] > largest else largest\n"
        "            j += 1\n",
        "        largest = z[0, 0]\n"
        "        j = 0\n"
        "        while j < rows * columns:\n"
        "            value = z[j // columns, j % columns]\n"
        "            largest = value if value > largest else largest\n"
        "            j += 1\n",
        "values",
        "the largest of the whole matrix",
    ),
    Mutant(
        "13.1",
        "largest = z[row, j] if z[row, j] > largest else largest",
        "largest = abs(z[row, j]) if abs(z[row, j]) > largest else largest",
        "values",
        "wrong at index",
    ),
    Mutant("13.1", "z[row, j] > largest", "z[row, j] < largest", "values", "the smallest number is subtracted"),
    Mutant("13.1", "total = z.dtype.type(0)", "total = 0.0", "types", "total begins as 0.0"),
    Mutant(
        "13.2",
        "    partial[thread] = own\n"
        "    cuda.syncthreads()\n"
        "    half = BLOCK // 2\n"
        "    while half > 0:\n"
        "        if thread < half:\n"
        "            partial[thread] += partial[thread + half]\n"
        "        cuda.syncthreads()\n"
        "        half //= 2\n"
        "    if thread == 0:\n"
        "        total[0] = partial[0]\n",
        "    if thread == 0:\n"
        "        partial[0] = vector.dtype.type(0)\n"
        "    cuda.syncthreads()\n"
        "    cuda.atomic.add(partial, 0, own)\n"
        "    cuda.syncthreads()\n"
        "    if thread == 0:\n"
        "        total[0] = partial[0]\n",
        "memory",
        "not a tree",
    ),
    Mutant(
        "13.2",
        "    partial[thread] = own\n"
        "    cuda.syncthreads()\n"
        "    half = BLOCK // 2\n"
        "    while half > 0:\n"
        "        if thread < half:\n"
        "            partial[thread] += partial[thread + half]\n"
        "        cuda.syncthreads()\n"
        "        half //= 2\n"
        "    if thread == 0:\n"
        "        total[0] = partial[0]\n",
        "    partial[thread] = own\n"
        "    cuda.syncthreads()\n"
        "    if thread == 0:\n"
        "        for k in range(1, BLOCK):\n"
        "            own += partial[k]\n"
        "        total[0] = own\n",
        "memory",
        "not a tree",
    ),
    Mutant(
        "13.2",
        "    i = thread\n    while i < vector.size:\n        own += vector[i]\n        i += BLOCK\n",
        "    i = 0\n    while i < vector.size and thread == 0:\n        own += vector[i]\n        i += 1\n",
        "memory",
        "one does the work of many",
    ),
    Mutant(
        "13.2",
        "cuda.shared.array(BLOCK, vector.dtype)",
        "cuda.shared.array(BLOCK, 'float64')",
        "types",
        "computes in float64",
    ),
    Mutant("13.3", "value += cuda", "value += 1.0 * cuda", "types", "computes in float64"),
    Mutant(
        "13.3",
        "    offset = WARP // 2\n"
        "    while offset > 0:\n"
        "        value += cuda.shfl_xor_sync(WHOLE_WARP, value, offset)\n"
        "        offset //= 2\n"
        "    return value",
        "    total = value - value\n"
        "    lane = 0\n"
        "    while lane < WARP:\n"
        "        total += cuda.shfl_sync(WHOLE_WARP, value, lane)\n"
        "        lane += 1\n"
        "    return total",
        "types",
        "five questions are enough",
    ),
    Mutant(
        "13.3",
        "    offset = WARP // 2\n"
        "    while offset > 0:\n"
        "        value += cuda.shfl_xor_sync(WHOLE_WARP, value, offset)\n"
        "        offset //= 2\n"
        "    return value",
        "    s = cuda.shared.array(1024, 'float32')\n"
        "    me = cuda.threadIdx.x + cuda.blockDim.x * cuda.threadIdx.y\n"
        "    s[me] = value\n"
        "    cuda.syncwarp()\n"
        "    total = type(value)(0)\n"
        "    for k in range(32):\n"
        "        total += s[me // 32 * 32 + k]\n"
        "    cuda.syncwarp()\n"
        "    return total",
        "memory",
        "float32 stands in it",
    ),
    Mutant(
        "13.4", "largest = z[row, 0]\n", "largest = z.dtype.type(0)\n", "values", "the largest begins at a fixed number"
    ),
    Mutant(
        "13.4",
        "        while j < columns:\n            largest",
        "        while j < min(columns, WARP):\n            largest",
        "agreement",
        "",
    ),
    Mutant(
        "13.4",
        "        j = lane\n"
        "        while j < columns:\n"
        "            largest = z[row, j] if z[row, j] > largest else largest\n"
        "            j += WARP\n"
        "        largest = warp_largest(largest)\n",
        "        j = 0\n"
        "        while j < columns:\n"
        "            largest = z[row, j] if z[row, j] > largest else largest\n"
        "            j += 1\n",
        "memory",
        "each lane does the whole row",
    ),
    Mutant(
        "13.4",
        "        j = lane\n"
        "        while j < columns:\n"
        "            largest = z[row, j] if z[row, j] > largest else largest\n"
        "            j += WARP\n",
        "        j = lane\n"
        "        while j < rows * columns:\n"
        "            v = z[j // columns, j % columns]\n"
        "            largest = v if v > largest else largest\n"
        "            j += WARP\n",
        "values",
        "",
    ),
    Mutant(
        "13.4",
        "largest = z[row, j] if z[row, j] > largest else largest",
        "largest = abs(z[row, j]) if abs(z[row, j]) > largest else largest",
        "values",
        "the largest size is taken",
    ),
    Mutant(
        "13.1",
        "largest = z[row, 0]\n        j = 1",
        "largest = -1e30\n        j = 0",
        "types",
        "computes in float64: largest = -1e+30",
    ),
    Mutant("13.4", "largest = z[row, 0]\n", "largest = -1e30\n", "types", "computes in float64: largest = -1e+30"),
    Mutant(
        "13.2",
        "    partial = cuda.shared.array(BLOCK, vector.dtype)\n    thread = cuda.threadIdx.x\n"
        "    own = vector.dtype.type(0)\n    i = thread\n    while i < vector.size:\n        own += vector[i]\n"
        "        i += BLOCK\n    partial[thread] = own\n    cuda.syncthreads()\n    half = BLOCK // 2\n"
        "    while half > 0:\n        if thread < half:\n            partial[thread] += partial[thread + half]\n"
        "        cuda.syncthreads()\n        half //= 2\n    if thread == 0:\n        total[0] = partial[0]\n",
        "    total_by_warps(vector, total)\n",
        "way",
        "calls total_by_warps, which is another kernel",
    ),
    Mutant(
        "13.1",
        "math.exp(z[row, j] - largest)",
        "math.exp(max(z[row, j] - largest, z.dtype.type(-80)))",
        "values",
        "is a number clamped",
    ),
    Mutant(
        "13.4",
        "math.exp(z[row, j] - largest)",
        "math.exp(max(z[row, j] - largest, z.dtype.type(-20)))",
        "values",
        "is a number clamped",
    ),
    Mutant(
        "13.1",
        "            j += 1\n        total = z.dtype.type(0)\n",
        "            j += 1\n        total = total if row >= cuda.gridsize(1) else z.dtype.type(0)\n",
        "sizes",
        "the sum of the rows before is still in total",
    ),
    Mutant(
        "13.2",
        "    own = vector",
        "    if thread >= vector.size:\n        return\n    own = vector",
        "values",
        "a guard before the barrier returns early",
    ),
    Mutant(
        "13.2",
        "    i = thread\n    while i < vector.size:\n        own += vector[i]\n        i += BLOCK\n",
        "    own += vector[thread]\n",
        "shape",
        "no guard: threads beyond the edge",
    ),
    Mutant(
        "13.2",
        "    i = thread\n    while i < vector.size:\n        own += vector[i]\n        i += BLOCK\n",
        "    for k in range(vector.size // BLOCK + 1):\n        own += vector[thread + k * BLOCK]\n",
        "shape",
        "the guard lets this index through",
    ),
    Mutant(
        "13.4",
        "    lane = cuda.threadIdx.x\n",
        "    if cuda.threadIdx.x >= z.shape[1]:\n        return\n    lane = cuda.threadIdx.x\n",
        "values",
        "lanes have left before the shuffle",
    ),
    Mutant(
        "13.1",
        "largest = z[row, 0]\n        j = 1",
        "largest = z.dtype.type(-10000)\n        j = 0",
        "values",
        "the largest begins at a fixed number",
    ),
    Mutant(
        "13.4", "largest = z[row, 0]", "largest = z.dtype.type(-1000)", "values", "the largest begins at a fixed number"
    ),
    Mutant(
        "13.1",
        "total += exponential",
        "total += math.exp(z[row, j] - largest)",
        "memory",
        "with an array of its own it was right",
    ),
    Mutant(
        "13.1",
        "largest = z[row, j] if z[row, j] > largest else largest",
        "largest = abs(z[row, j]) if abs(z[row, j]) > largest else largest",
        "values",
        "wrong at index",
    ),
]
