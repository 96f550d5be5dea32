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
