"""Sums on the device: of a matrix's columns (a bias gradient), and of a vector (a loss).

Columns of a (rows, columns) matrix:

    columns_by_thread    one thread a column                      neighbours read neighbours, but the threads are few
    columns_by_atomics   and one for each piece of 32 rows too    fills the device; adds in whatever order they come
    columns_by_block     512 threads for 32 columns               16 rows at once, added by a tree in shared memory

All of a vector:

    total_by_thread      one thread, one addition after the other   every addition waits for a read and the one before
    total_by_tree        512 threads, a tree in shared memory       512 reads under way; ten barriers
    total_by_warps       the same, and shuffles for the tree        a warp's lanes add in registers; one barrier

A float addition rounds, so another order gives other bits. Atomic additions come in the order in which the device
happens to run its blocks: two runs of the same program differ, and then no difference means anything any more. The
last rungs add in an order that depends on nothing but the shape.

The warps' rung needs shuffles, which Numba's simulator lacks.
"""

from ..backend import cuda

LANES = 32
"""Threads of a warp, and columns of a block: one warp reads 32 neighbours of one row."""

WARPS = 16
"""Rows that a block adds at once. With 32, a thread could have 64 registers and no more, or no block would start."""

BLOCK = WARPS * LANES
"""Threads that add up a vector."""

PIECE = 32
"""Rows that one thread of columns_by_atomics adds before it goes to memory."""

EVERY_LANE = 0xFFFFFFFF


@cuda.jit
def columns_by_thread(matrix, sums):
    """sums (columns,) = the sum of matrix (rows, columns) over its rows. Grid-stride."""
    rows, columns = matrix.shape
    column = cuda.grid(1)
    while column < columns:
        total = matrix.dtype.type(0)
        row = 0
        while row < rows:
            total += matrix[row, column]
            row += 1
        sums[column] = total
        column += cuda.gridsize(1)


@cuda.jit
def columns_by_atomics(matrix, sums):
    """The same, added to what `sums` holds: zeros, please. Grid: x over the columns, y over pieces of PIECE rows."""
    rows, columns = matrix.shape
    column = cuda.grid(1)
    row = cuda.blockIdx.y * PIECE
    if column < columns:
        end = min(row + PIECE, rows)
        total = matrix.dtype.type(0)
        while row < end:
            total += matrix[row, column]
            row += 1
        cuda.atomic.add(sums, column, total)


@cuda.jit
def columns_by_block(matrix, sums):
    """The same, deterministic. Blocks of (LANES, WARPS) threads, one for each 32 columns."""
    partial = cuda.shared.array((WARPS, LANES), matrix.dtype)
    rows, columns = matrix.shape
    lane = cuda.threadIdx.x
    row = cuda.threadIdx.y
    column = cuda.blockIdx.x * LANES + lane
    total = matrix.dtype.type(0)
    if column < columns:
        while row < rows:
            total += matrix[row, column]
            row += WARPS
    row = cuda.threadIdx.y
    partial[row, lane] = total
    cuda.syncthreads()
    half = WARPS // 2
    while half > 0:
        if row < half:
            partial[row, lane] += partial[row + half, lane]
        cuda.syncthreads()
        half //= 2
    if row == 0 and column < columns:
        sums[column] = partial[0, lane]


@cuda.jit
def total_by_thread(vector, total):
    """total (1,) = the sum of vector (size,). One block of one thread."""
    if cuda.grid(1) == 0:
        sum_so_far = vector.dtype.type(0)
        i = 0
        while i < vector.size:
            sum_so_far += vector[i]
            i += 1
        total[0] = sum_so_far


@cuda.jit
def total_by_tree(vector, total):
    """The same. One block of BLOCK threads."""
    partial = cuda.shared.array(BLOCK, vector.dtype)
    thread = cuda.threadIdx.x
    own = vector.dtype.type(0)
    i = thread
    while i < vector.size:
        own += vector[i]
        i += BLOCK
    partial[thread] = own
    cuda.syncthreads()
    half = BLOCK // 2
    while half > 0:
        if thread < half:
            partial[thread] += partial[thread + half]
        cuda.syncthreads()
        half //= 2
    if thread == 0:
        total[0] = partial[0]


@cuda.jit(device=True)
def warp_sum(value):
    """The sum of `value` over a warp, in its first lane; all 32 lanes must call it."""
    offset = LANES // 2
    while offset > 0:
        value += cuda.shfl_down_sync(EVERY_LANE, value, offset)
        offset //= 2
    return value


@cuda.jit
def total_by_warps(vector, total):
    """The same. One block of BLOCK threads: each warp adds its lanes, then the warps' sums are added by one warp.

    In the second half every warp does what only the first is asked for, which costs nothing and needs no branch.
    """
    partial = cuda.shared.array(WARPS, vector.dtype)
    thread = cuda.threadIdx.x
    own = vector.dtype.type(0)
    i = thread
    while i < vector.size:
        own += vector[i]
        i += BLOCK
    own = warp_sum(own)
    if thread % LANES == 0:
        partial[thread // LANES] = own
    cuda.syncthreads()
    lane = thread % LANES
    own = warp_sum(partial[lane] if lane < WARPS else vector.dtype.type(0))
    if thread == 0:
        total[0] = own
