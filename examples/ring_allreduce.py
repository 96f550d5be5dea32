"""An all-reduce with nothing but Send and Recv: afterwards every rank has the sum of all ranks' numbers.

mpiexec -n 4 python examples/ring_allreduce.py

The ranks stand in a ring, and the numbers are cut into as many pieces as there are ranks. On the first way around, each
rank adds the piece that comes from the left to its own, and sends the sum to the right; then each has one piece that is
complete. On the second way around the complete pieces are copied.
"""

import numpy as np
from mpi4py import MPI


def ring_allreduce(world, numbers):
    """Replace the numbers by the sums over all ranks, in place."""
    rank, size = world.Get_rank(), world.Get_size()
    pieces = np.array_split(numbers, size)  # views: a change of a piece changes the numbers
    for step in range(2 * (size - 1)):
        sent, taken = pieces[(rank - step) % size], pieces[(rank - step - 1) % size]
        received = np.empty_like(taken)
        exchange(world, sent, received)
        if step < size - 1:
            taken += received
        else:
            taken[:] = received


def exchange(world, sent, received):
    """Send to the right, and receive from the left. Were all to send first, each could wait for the next one."""
    rank, size = world.Get_rank(), world.Get_size()
    calls = [lambda: world.Send(sent, dest=(rank + 1) % size), lambda: world.Recv(received, source=(rank - 1) % size)]
    for call in calls if rank % 2 == 0 else reversed(calls):
        call()


if __name__ == "__main__":
    rank = MPI.COMM_WORLD.Get_rank()
    numbers = np.arange(10.0) + 100 * rank
    ring_allreduce(MPI.COMM_WORLD, numbers)
    print(f"rank {rank}: {numbers}")
