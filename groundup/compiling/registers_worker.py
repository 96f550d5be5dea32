"""A process that compiles kernels for a GPU, and reports their registers and memory. It needs no GPU.

    python -m groundup.compiling.registers_worker      one JSON object a line: questions in, answers out

registers.py starts it. It works like the worker of check.py. An answer has the fields of log.py's
Usage, or is {"error": the reason}.
"""

from __future__ import annotations

import base64
import pickle
import sys
from dataclasses import asdict
from typing import Any

from groundup.compiling.shipping import unpack
from groundup.compiling.worker import find, measure, serve


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """The compiler's answer for one kernel.

    question["kernel"]: base64 of a pickled ("named", package, kernel, dtype, types) for a kernel of this project, or
        ("packed", bytes)
    question["capability"]: [9, 0]; question["folder"]: the folder of the kernel's file, for the modules that it imports
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
    except Exception as error:  # any exception of the compiler is an answer
        return {"error": _short(error)}
    finally:
        sys.path.remove(question["folder"])
        _forget(question["folder"], known)


def _forget(folder: str, known: set[str]) -> None:
    """Forget the modules of the learner's folder: they may have been edited before the next question."""
    for name in set(sys.modules) - known:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(folder):
            del sys.modules[name]


def _short(error: Exception) -> str:
    """The first line of the message, without the name of Numba's compiler pass and without the source."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and not line.startswith("Failed in ")]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


if __name__ == "__main__":
    serve(answer)
