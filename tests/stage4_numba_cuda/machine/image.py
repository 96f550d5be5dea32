"""A PTX text as a program for this machine's processor: a shared library that the driver loads.

python -m tests.stage4_numba_cuda.machine.image image.so < kernel.ptx
"""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.stage4_numba_cuda.machine.to_c import translate

HERE = Path(__file__).parent
COMPILER = shutil.which("gcc") or shutil.which("cc")

FLAGS = ("-O1", "-march=native", "-ffp-contract=off", "-fno-strict-aliasing", "-fwrapv", "-w", "-shared", "-fPIC")
"""A product and a sum are rounded each by itself, registers are read as any type, and whole numbers wrap around."""


def build(text: str, target: Path) -> None:
    """Translate a PTX text and compile it to `target`, which appears whole or not at all.

    Raises PtxError for what is not known, and subprocess.CalledProcessError where the compiler refuses.
    """
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        source, made = Path(folder) / "kernel.c", Path(folder) / "kernel.so"
        source.write_text(translate(text))
        command = [str(COMPILER), *FLAGS, "-I", str(HERE), "-o", str(made), str(source), "-lm"]
        subprocess.run(command, check=True)
        os.replace(made, target)


def build_driver(target: Path) -> None:
    """Compile the driver to `target`, whose name has to be libcuda.so.1."""
    flags = ("-O1", "-Wall", "-Wno-unused-result", "-shared", "-fPIC")
    parts = sorted(map(str, (HERE / "driver").glob("*.c")))
    subprocess.run([str(COMPILER), *flags, "-o", str(target), *parts, "-ldl", "-pthread"], check=True)


class _Launch(ctypes.Structure):
    """Launch of kernel.h."""

    _fields_ = (
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("dynamic", ctypes.c_uint32),
        ("parameters", ctypes.c_char_p),
        ("find", ctypes.c_void_p),
        ("seed", ctypes.c_uint64),
        ("cooperative", ctypes.c_int),
        ("said", ctypes.c_char_p),
    )


class Image:
    """The kernels of a compiled text, launched without a driver."""

    def __init__(self, path: Path) -> None:
        self.library = ctypes.CDLL(str(path))

    def launch(
        self, number: int, arrays: list[Any], threads: int, blocks: int = 1, seed: int = 0, together: bool = False
    ) -> None:
        """Run the kernel of that number, from 0, whose parameters are the addresses of these NumPy arrays.

        Raises RuntimeError with the machine's sentence where the kernel makes a mistake.
        """
        pieces = [(array.ctypes.data, array.ctypes.data + array.nbytes) for array in arrays]

        @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, *[ctypes.POINTER(ctypes.c_uint64)] * 2)
        def find(address: int, begin: Any, end: Any) -> int:
            for piece in pieces:
                if piece[0] <= address < piece[1]:
                    begin[0], end[0] = piece
                    return 1
            return 0

        said = ctypes.create_string_buffer(400)
        launch = _Launch(
            grid=(blocks, 1, 1),
            block=(threads, 1, 1),
            parameters=struct.pack(f"{len(arrays)}Q", *(begin for begin, _ in pieces)),
            find=ctypes.cast(find, ctypes.c_void_p),
            seed=seed,
            cooperative=together,
            said=ctypes.cast(said, ctypes.c_char_p),
        )
        if self.library.launch(number, ctypes.byref(launch)):
            raise RuntimeError(said.value.decode())


if __name__ == "__main__":
    build(sys.stdin.read(), Path(sys.argv[1]))
