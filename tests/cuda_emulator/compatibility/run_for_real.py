"""Runs the emulator's test kernels as numba-cuda compiles them, on the GPU made of programs that stage 4's tests use.

    python -m tests.cuda_emulator.compatibility.run_for_real [NAME ...]

prints one JSON line a kernel: its name, and how its results differ from the reference, "" where they do not. The
process needs that machine as its GPU (process.py in tests/stage4_numba_cuda/machine): test_on_the_machine.py starts it.
A launch that ends by a mistake is the last: the device is broken after it, as a real one would be.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

import numpy as np

from tests.cuda_emulator.compatibility.compile_for_real import take_the_place_of_the_emulator


def difference(example: Any, name: str) -> str:
    """How the results of a kernel's launches, those of the emulator's tests, differ from the reference."""
    from tests.cuda_emulator.emulator_kernels.example import check

    for size in example.sizes:
        launch = example.launch(size, np.random.default_rng(7))
        arguments = tuple(each.copy(order="K") if isinstance(each, np.ndarray) else each for each in launch.arguments)
        try:
            example.kernel[launch.grid, launch.block, 0, launch.dynamic_bytes](*arguments)
            check(launch, arguments, example.tolerance, f"{name} at size {size}")
        except Exception as error:  # a refusal by the compiler or the machine is an answer, too
            return f"{type(error).__name__}: {error}"
    return ""


def main(names: list[str]) -> None:
    warnings.simplefilter("ignore")
    from numba import cuda

    take_the_place_of_the_emulator(cuda)
    from tests.cuda_emulator.emulator_kernels import all_examples

    for name, example in all_examples().items():
        if not names or name in names:
            print(json.dumps([name, difference(example, name)]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
