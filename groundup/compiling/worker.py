"""A process that compiles kernels as a device would, on a machine that needs no GPU.

    python -m groundup.compiling.worker      one JSON object a line: questions in, answers out

check.py starts it with GROUNDUP_CUDA=compiler, so that the kernels' `cuda` is numba-cuda's. What happens on a
device at the first launch happens here: numba-cuda compiles the kernel to LTO-IR, NVVM's form for optimising while
linking, and nvJitLink makes the machine code of one architecture, whose log (-verbose) tells registers and spills.

The first answer is {"missing": null}, or a sentence that says what is missing; then one for each question.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
import types
import warnings
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from groundup.compiling.log import Usage, float64_lines, read_log
from groundup.compiling.sass import disassemble, find_nvdisasm, hot_loop
from groundup.kernels.entries import argument_types

SHOWN = 3
"""The number of float64 instructions that are sent along, to show where to look."""


def main() -> None:
    """Answer until the questions end."""
    serve(answer)


def serve(respond: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """The process: say what is missing, then `respond` to each question."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints must not stand between the answers
    warnings.simplefilter("ignore")  # Numba's advice on how to launch; there is no launch here

    def say(answer: dict[str, Any]) -> None:
        print(json.dumps(answer), file=answers, flush=True)

    missing = what_is_missing()
    say({"missing": missing})
    if missing is None:
        for line in sys.stdin:
            say(respond(json.loads(line)))


def what_is_missing() -> str | None:
    """What keeps this process from compiling, as the rest of a sentence; None where it can."""
    try:
        dispatcher = importlib.import_module("numba.cuda.dispatcher")
        importlib.import_module("cuda.bindings.nvjitlink")
    except ImportError as error:
        return f"numba-cuda cannot be imported ({_first_line(error)})"
    if not hasattr(dispatcher, "get_current_device"):
        return "this version of numba-cuda asks for its device elsewhere than this check knows"

    def nothing(out):  # type: ignore[no-untyped-def]
        out[0] = 1

    try:
        _link(_ltoir(nothing, argument_types("int32[1]", ""), (8, 0), {}), (8, 0), {})
    except Exception as error:  # whichever library is not found, the error says so
        return f"numba-cuda's compile libraries do not work ({_first_line(error)})"
    return None


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """What the compiler makes of one kernel: log.Usage, and where they are asked for the float64
    instructions of its PTX and its hot loop; or {"error": why it does not compile}."""
    capability = tuple(question["capability"])
    try:
        kernel = find(question["package"], question["kernel"], question["dtype"])
        options = dict(kernel.targetoptions)
        code = _ltoir(kernel.py_func, argument_types(question["arguments"], question["dtype"]), capability, options)
        cubin, log = _link(code, capability, options)
        found: dict[str, Any] = asdict(read_log(log))
        ptx = _link(code, capability, options, "-ptx")[0].decode() if question["ptx"] else ""
        found["float64"] = float64_lines(ptx)[:SHOWN]
        found["hot_loop"] = _hot_loop(cubin) if question["hot_loop"] else None
    except Exception as error:  # every refusal of the compiler is an answer, whatever its type
        return {"error": f"{type(error).__name__}: {error}".strip()}
    return found


@cache
def find(package: str, name: str, dtype: str) -> Any:
    """The kernel that a name in the table stands for: a file, a dot, and an expression of what is in that file."""
    module, _, expression = name.partition(".")
    names = vars(importlib.import_module(f"{package}.{module}" if package else module))
    return eval(expression, names, {"dtype": dtype})


def measure(function: Callable[..., Any], arguments: tuple[Any, ...], capability: Any, options: Any) -> Usage:
    """What a kernel's Python function takes on that architecture, for arguments of these Numba types.

    options: those of its @cuda.jit. Raises whatever the compiler refuses with.
    """
    return read_log(_link(_ltoir(function, arguments, capability, options), capability, options)[1])


def _ltoir(function: Callable[..., Any], arguments: tuple[Any, ...], capability: Any, options: dict[str, Any]) -> bytes:
    from numba import cuda
    from numba.cuda import dispatcher

    # A kernel that calls a device function asks what device there is.
    device = types.SimpleNamespace(compute_capability=capability, id=0)
    dispatcher.get_current_device = lambda: device
    passed = {name: options[name] for name in ("fastmath", "opt", "launch_bounds") if options.get(name) is not None}
    code, _ = cuda.compile(function, arguments, cc=capability, device=False, abi="numba", output="ltoir", **passed)
    return bytes(code)


def _link(code: bytes, capability: Any, options: dict[str, Any], *more: str) -> tuple[bytes, str]:
    """The machine code (with "-ptx": the PTX) and the log."""
    from cuda.bindings import nvjitlink

    flags = ["-lto", f"-arch=sm_{capability[0]}{capability[1]}", "-verbose", *more]
    if options.get("max_registers"):
        flags.append(f"-maxrregcount={options['max_registers']}")
    linker = nvjitlink.create(len(flags), flags)
    try:
        try:
            nvjitlink.add_data(linker, nvjitlink.InputType.LTOIR, code, len(code), "kernel")
            nvjitlink.complete(linker)
        except nvjitlink.nvJitLinkError as error:
            words = _text(linker, nvjitlink.get_error_log_size, nvjitlink.get_error_log)
            raise ValueError(f"{error}: {words}") from error
        kind = "linked_ptx" if "-ptx" in more else "linked_cubin"
        linked = bytearray(getattr(nvjitlink, f"get_{kind}_size")(linker))
        getattr(nvjitlink, f"get_{kind}")(linker, linked)
        return bytes(linked).rstrip(b"\0") if "-ptx" in more else bytes(linked), _text(
            linker, nvjitlink.get_info_log_size, nvjitlink.get_info_log
        )
    finally:
        nvjitlink.destroy(linker)


def _text(linker: int, size: Callable[[int], int], get: Callable[[int, bytearray], None]) -> str:
    text = bytearray(size(linker))
    if text:
        get(linker, text)
    return text.decode(errors="replace").rstrip("\0")


def _hot_loop(cubin: bytes) -> dict[str, int] | None:
    nvdisasm = find_nvdisasm()
    if nvdisasm is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.cubin"
        file.write_bytes(cubin)
        loop = hot_loop(disassemble(nvdisasm, file))
    if loop is None:
        raise ValueError("its machine code has no loop that multiplies and adds")
    return asdict(loop)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__).rstrip(".")


if __name__ == "__main__":
    main()
