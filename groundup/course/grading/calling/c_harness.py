"""Functions of a header of stage 3, which are inlined into others: called through a small C file that includes it.

Every file of stage 3 reads its headers, so a change of one compiles all files anew. Here only the small file is
compiled, for both precisions.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from shared.contract import load_part


def harness(text: str, name: str, arguments: str, header: str) -> tuple[str, Callable[..., Any]]:
    """(the file of the compiled library; a C function of it that takes sizes and NumPy arrays).

    text: the C file; name: the function that stands in NAME(...); arguments: a letter each, "s" for a size and "a" for
    an array; header: the learner's, which an error names. The function is that for the dtype of the first array.
    Raises stage3_c.build.CompileError where the text, or the header that it includes, does not compile.
    """
    build, known = load_part("stage3_c", "build"), load_part("stage3_c", "compiler")
    compiler = known.find_compiler()
    csrc = Path(os.environ.get(build.SOURCES_VARIABLE) or build.CSRC)
    folder = Path(tempfile.mkdtemp(prefix="groundup-harness-"))
    (folder / "harness.c").write_text(text, encoding="utf-8")
    command = [*known.compile_command(compiler), "-shared", f"-I{csrc}", "harness.c"]

    def compiled(bits: int) -> ctypes.CDLL:
        done = known.run([*command, f"-DGROUNDUP_BITS={bits}", "-o", f"{bits}.so", *known.libraries()], folder)
        if done.returncode != 0:
            said = done.stderr.strip()
            message = f"csrc/{header} does not compile ({compiler.version}): {known.first_error(said)}"
            raise build.CompileError(message, said)
        return ctypes.CDLL(str(folder / f"{bits}.so"))

    with ThreadPoolExecutor(2) as threads:
        libraries = dict(zip((32, 64), threads.map(compiled, (32, 64)), strict=True))

    def call(*values: Any) -> None:
        dtype = next(each.dtype for each in values if isinstance(each, np.ndarray))
        bits = 8 * dtype.itemsize
        kinds = {"s": ctypes.c_size_t, "a": np.ctypeslib.ndpointer(dtype, flags="C_CONTIGUOUS")}
        function = getattr(libraries[bits], f"{name}_f{bits}")
        function.argtypes, function.restype = [kinds[each] for each in arguments], None
        function(*values)

    return str(folder / "64.so"), call
