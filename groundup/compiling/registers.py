"""The number of registers of a kernel, from the compiler for GPUs, if it is installed.

    registers_of(kernel, types, (9, 0))     Usage(registers=40, stack=0, spills=0, shared=2048)

The emulator does not know it, since ptxas assigns registers when it makes a GPU's machine code. So a process of its own
compiles the kernel with numba-cuda (registers_worker.py). It takes two seconds to start, and then usually less than one
for each kernel.
"""

from __future__ import annotations

import atexit
import base64
import importlib
import importlib.util
import pickle
import threading
from functools import lru_cache
from pathlib import Path
from typing import Any

from cuda_emulator.inspection import DeviceFunction, RegistersUnknown
from groundup.compiling.check import FIX, CompilerMissing, Worker
from groundup.compiling.log import Usage
from groundup.compiling.shipping import pack
from groundup.kernels.catalogue import CATALOGUE
from groundup.kernels.entries import PACKAGE, Capability

WORKER = "groundup.compiling.registers_worker"
SECONDS = 120
"""Time limit of a compilation; the largest kernel of this project takes five seconds."""


def registers_of(kernel: Any, types: tuple[Any, ...], capability: Capability) -> Usage:
    """Registers, stack and shared memory of the kernel on that architecture.

    kernel: a kernel of the emulator; types: Numba's types of its arguments
    Raises RegistersUnknown if numba-cuda's compiler is not installed, or if it refuses the kernel.
    """
    if importlib.util.find_spec("numba_cuda") is None:
        raise RegistersUnknown(f"numba-cuda is not installed (it compiles without a GPU): {FIX}")
    name = kernel.py_func.__name__
    dtype = next((str(kind.dtype) for kind in types if str(getattr(kind, "dtype", "")).startswith("float")), "float32")
    ours = project_name(kernel, dtype)
    try:
        packed = (
            ("named", PACKAGE, ours, dtype, types)
            if ours is not None
            else ("packed", pack(kernel.py_func, types, dict(kernel.targetoptions)))
        )
        question = pickle.dumps(packed)
    except Exception as error:  # pickling may raise any exception for a value in the learner's program
        raise RegistersUnknown(f"{name} uses something that cannot be handed to the compiler ({error})") from error
    folder = str(Path(kernel.py_func.__code__.co_filename).resolve().parent)
    answer = _ask(question, capability, folder)
    if "error" in answer:
        raise RegistersUnknown(f"numba-cuda does not compile {name} ({answer['error']})")
    return Usage(**answer)


class _LearnersWorker(Worker):
    module = WORKER


_workers: list[_LearnersWorker] = []
"""The running process, at most one: its imports take longer than a kernel."""

_missing: list[str] = []
"""The reason why it cannot run, once it is known."""

_one_at_a_time = threading.Lock()


@lru_cache(maxsize=256)
def _ask(question: bytes, capability: Capability, folder: str) -> dict[str, Any]:
    """The worker's answer. Raises RegistersUnknown if it has no compiler."""
    with _one_at_a_time:
        worker = _ready_worker()
        late = threading.Timer(SECONDS, worker.kill)
        late.start()
        try:
            kernel = base64.b64encode(question).decode()
            return worker.ask({"kernel": kernel, "capability": capability, "folder": folder})
        finally:
            late.cancel()


def _ready_worker() -> Worker:
    if not _workers and not _missing:
        worker = _LearnersWorker()
        atexit.register(worker.close)
        try:
            worker.wait_until_ready()
            _workers.append(worker)
        except CompilerMissing as missing:
            _missing.append(str(missing))
    if not _workers:
        raise RegistersUnknown(_missing[0])
    return _workers[0]


def project_name(kernel: Any, dtype: str) -> str | None:
    """The name of a kernel of this project in groundup/kernels/catalogue.py; None for any other kernel.

    A kernel of this project is compiled by name: imported for a device, it contains instructions that on the emulator
    are functions in Python.
    """
    package, _, file = str(kernel.py_func.__module__).rpartition(".")
    if package != PACKAGE:
        return None
    names = vars(importlib.import_module(f"{package}.{file}"))
    for entry in CATALOGUE:
        module, _, expression = entry.kernel.partition(".")
        if module == file and (dtype in entry.dtypes or entry.dtypes == ("",)):
            found = eval(expression, names, {"dtype": dtype})
            if same_function(found.py_func, kernel.py_func):
                return entry.kernel
    return None


def same_function(one: Any, other: Any) -> bool:
    """Whether two functions have the same code and the same values in their closures."""
    if one is other:
        return True
    if one.__code__ is not other.__code__:
        return False
    cells = zip(one.__closure__ or (), other.__closure__ or (), strict=True)
    return all(_same_value(left.cell_contents, right.cell_contents) for left, right in cells)


def _same_value(one: Any, other: Any) -> bool:
    if isinstance(one, DeviceFunction) and isinstance(other, DeviceFunction):
        return same_function(one.py_func, other.py_func)
    return one is other or (type(one) is type(other) and bool(one == other))
