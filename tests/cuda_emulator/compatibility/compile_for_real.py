"""Compiles the emulator's test kernels with the real numba-cuda, to PTX, on a machine that needs no GPU.

    python -m tests.cuda_emulator.compatibility.compile_for_real

prints one JSON object: kernel -> the compiler's answer for each compute capability, "" where it accepts. The kernels
take `cuda` from the emulator; here numba.cuda stands in its place, which is why this is a process of its own
(test_real_compiler.py starts it). Exits with 3, and a sentence, where numba-cuda or its compile libraries are
missing.
"""

from __future__ import annotations

import json
import sys
import types
import warnings
from typing import Any

from tests.wide import WIDE

CAPABILITIES = ((9, 0), (8, 0)) if WIDE else ((9, 0),)
MISSING = 3


def real_cuda() -> Any:
    """numba.cuda as numba-cuda provides it, ready to compile without a driver; leaves the process where it cannot."""
    try:
        import numba_cuda
    except ImportError:
        print("numba-cuda is not installed: pip install 'numba-cuda[cu13]'")
        raise SystemExit(MISSING) from None
    from numba import cuda, int64
    from numba.cuda import dispatcher

    if not hasattr(dispatcher, "get_current_device"):
        print(f"numba-cuda {numba_cuda.__version__} asks for its device elsewhere than this test knows")
        raise SystemExit(MISSING)

    def nothing(out):  # type: ignore[no-untyped-def]
        out[0] = 1

    try:
        cuda.compile(nothing, (int64[::1],), cc=CAPABILITIES[0], device=False, abi="numba", output="ptx")
    except Exception as error:  # whatever is missing, it says so itself
        print(f"numba-cuda's compile libraries do not work: {type(error).__name__}: {str(error).splitlines()[0]}")
        raise SystemExit(MISSING) from None
    return cuda


def take_the_place_of_the_emulator(cuda: Any) -> None:
    """From here on `from cuda_emulator import cuda` gives the real one."""
    import numba.cuda.random

    emulator = types.ModuleType("cuda_emulator")
    emulator.cuda = cuda  # type: ignore[attr-defined]
    sys.modules["cuda_emulator"] = emulator
    sys.modules["cuda_emulator.runtime.random"] = numba.cuda.random


def leave_signatures_aside(cuda: Any) -> None:
    """A signature compiles at once, for the device at hand; without a device @cuda.jit must not see it."""
    decorate = cuda.jit

    def without_signature(signature: Any = None, **options: Any) -> Any:
        if isinstance(signature, types.FunctionType):
            return decorate(signature, **options)
        return decorate(**options)

    cuda.jit = without_signature


def answer(cuda: Any, kernel: Any, arguments: tuple[Any, ...], capability: tuple[int, int]) -> str:
    """What the compiler says; "" where it accepts."""
    import numba
    from numba.cuda import dispatcher

    device = types.SimpleNamespace(compute_capability=capability, id=0)
    dispatcher.get_current_device = lambda: device
    function = getattr(kernel, "py_func", kernel)
    fastmath = bool(getattr(kernel, "targetoptions", {}).get("fastmath"))
    try:
        argument_types = tuple(numba.typeof(argument) for argument in arguments)
        text, _ = cuda.compile(
            function, argument_types, cc=capability, device=False, abi="numba", output="ptx", fastmath=fastmath
        )
    except Exception as error:  # every refusal is an answer, whatever its type
        return f"{type(error).__name__}: {error}"
    return "" if ".entry" in text else "no kernel in the PTX"


def main() -> None:
    warnings.simplefilter("ignore")
    cuda = real_cuda()
    leave_signatures_aside(cuda)
    take_the_place_of_the_emulator(cuda)
    import numpy as np

    from tests.cuda_emulator.emulator_kernels import all_examples
    from tests.cuda_emulator.emulator_kernels.strictness import probes

    asked = {name: (probe.kernel, probe.arguments) for name, probe in probes().items()}
    asked = {f"strictness.{name}": pair for name, pair in asked.items()}
    for name, example in all_examples().items():
        asked[name] = (example.kernel, example.launch(example.sizes[0], np.random.default_rng(0)).arguments)
    answers = {}
    for name, (kernel, arguments) in asked.items():
        answers[name] = {
            f"{major}.{minor}": answer(cuda, kernel, arguments, (major, minor)) for major, minor in CAPABILITIES
        }
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
