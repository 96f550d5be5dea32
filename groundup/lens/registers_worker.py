"""A process that compiles kernels of a learner as a device would, and tells what they take. It needs no GPU.

    python -m groundup.lens.registers_worker      one JSON object a line: questions in, answers out

registers.py starts it, as compiling/check.py starts the worker that this one is like. An answer is compiling/log.py's
Usage, or {"error": why it does not compile}.
"""

from __future__ import annotations

import base64
import pickle
import sys
from dataclasses import asdict
from typing import Any

from groundup.compiling.worker import find, measure, serve
from groundup.lens.shipping import unpack


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """The compiler's answer for one kernel.

    kernel: base64 of a pickled ("named", package, kernel, dtype, types) of a kernel of ours, or ("packed", bytes)
    capability: [9, 0]; folder: where the kernel's file is, and so the modules that it may import
    """
    known = set(sys.modules)
    sys.path.append(question["folder"])
    try:
        kind, *rest = pickle.loads(base64.b64decode(question["kernel"]))
        if kind == "named":
            package, name, dtype, arguments = rest
            kernel = find(package, name, dtype)
            function, options = kernel.py_func, dict(kernel.targetoptions)
        else:
            function, arguments, options = unpack(rest[0])
        return asdict(measure(function, arguments, tuple(question["capability"]), options))
    except Exception as error:  # every refusal of the compiler is an answer, whatever its type
        return {"error": _short(error)}
    finally:
        sys.path.remove(question["folder"])
        _forget(question["folder"], known)


def _forget(folder: str, known: set[str]) -> None:
    """Modules from the learner's folder are imported anew the next time: they may have been edited."""
    for name in set(sys.modules) - known:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(folder):
            del sys.modules[name]


def _short(error: Exception) -> str:
    """What it says, without the name of Numba's pass that stands first, and without the source that comes after."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and not line.startswith("Failed in ")]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


if __name__ == "__main__":
    serve(answer)
