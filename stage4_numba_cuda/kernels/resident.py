"""What a training run on the device needs between its steps: which step this is, and what the optimizer's numbers are.

The host cannot pass them as arguments: it gives the device many steps at once, and a captured graph has only one set
of arguments. So they lie in device memory, and these kernels of a single block move them on.
"""

from ..backend import cuda
from .fused import POSITION, SLOT, STEP


@cuda.jit
def begin_step(schedule, counters, numbers):
    """numbers = schedule[slot]: schedule (steps, 8), one row for each step until the next reading; numbers (8,)."""
    i = cuda.grid(1)
    if i < numbers.size:
        numbers[i] = schedule[counters[SLOT], i]


@cuda.jit
def end_step(counters, rows):
    """The next step's batch begins `rows` places further on."""
    if cuda.grid(1) == 0:
        counters[POSITION] += rows
        counters[STEP] += 1
        counters[SLOT] += 1


@cuda.jit
def end_kept_step(losses, row_losses, counters):
    """Keep this step's losses, and move on to the next batch. A single block.

    losses (rows,); row_losses (steps, at least rows): its line `slot` gets them
    """
    slot = counters[SLOT]
    row = cuda.threadIdx.x
    while row < losses.size:
        row_losses[slot, row] = losses[row]
        row += cuda.blockDim.x
    cuda.syncthreads()  # all threads have read the slot
    if cuda.threadIdx.x == 0:
        counters[POSITION] += losses.size
        counters[STEP] += 1
        counters[SLOT] += 1
