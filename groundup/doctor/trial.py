"""One small kernel, launched and checked, on the emulator or on the GPU; started by survey.py in a process of its own.

    python -m groundup.doctor.trial emulator
    python -m groundup.doctor.trial gpu
    mpiexec -n 2 python -m groundup.doctor.trial ranks      without a kernel: whether the two find each other

The last line on standard output is JSON: {"works": true, "said": "…"}. On a GPU this is where a driver refuses what a
newer toolkit compiled, which nothing but a launch brings to light.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

ALONE = "mpi4py's MPI is another one than mpiexec's: each of two ranks is alone"

cuda: Any = None
"""What the kernel below means by cuda: the emulator's or numba-cuda's, put here before it is compiled."""


def double(x: Any) -> None:
    """Multiply each number of x by two, a thread for each."""
    i = cuda.grid(1)
    if i < x.size:
        x[i] = x[i] * 2


def attempt(backend: str) -> str:
    """Launch the kernel on "emulator" or "gpu" and compare what it computed. Returns the device's name.

    backend: "ranks" instead counts them. Returns the MPI's name.
    Raises RuntimeError where the numbers are wrong, and whatever numba-cuda or mpi4py raises.
    """
    global cuda
    if backend == "ranks":
        mpi = importlib.import_module("mpi4py.MPI")
        name, version = mpi.get_vendor()
        name += f" {'.'.join(map(str, version))}"
        if mpi.COMM_WORLD.allreduce(1) != 2:
            raise RuntimeError(f"{ALONE} ({name})")
        return name
    if backend == "gpu":
        cuda = importlib.import_module("numba.cuda")
    else:
        cuda = importlib.import_module("cuda_emulator").cuda
    numpy = importlib.import_module("numpy")
    values = cuda.to_device(numpy.arange(8, dtype=numpy.float32))
    cuda.jit(double)[1, 8](values)
    computed = values.copy_to_host().tolist()
    if computed != [2.0 * i for i in range(8)]:
        raise RuntimeError(f"expected 0, 2, 4, … from a kernel that doubles 0, 1, 2, …, got {computed}")
    if backend != "gpu":
        return f"numba {importlib.import_module('numba').__version__}"
    device = cuda.get_current_device()
    name = device.name.decode() if isinstance(device.name, bytes) else device.name
    return f"{name}, compute capability {'.'.join(map(str, device.compute_capability))}"


def main() -> None:
    """Try what the command line names and print what came of it."""
    try:
        answer = {"works": True, "said": attempt(sys.argv[1])}
    except Exception as error:  # every kind of failure is an answer
        answer = {"works": False, "said": " ".join(f"{type(error).__name__}: {error}".split())}
    mpi: Any = sys.modules.get("mpi4py.MPI")
    if mpi is None or mpi.COMM_WORLD.Get_rank() == 0:
        print(json.dumps(answer))


if __name__ == "__main__":
    main()
