"""A Python process that has the machine as its GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.stage4_numba_cuda.machine.image import build_driver

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


def variables(folder: Path) -> dict[str, str]:
    """The environment of such a process. Kernels, the driver and its log, log.txt, are kept in `folder`."""
    library, images = folder / "libcuda.so.1", folder / "images"
    if not library.exists():
        build_driver(library)
        images.mkdir()
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("GROUNDUP_", "NUMBA_", "CUDA_"))}
    places = os.pathsep.join(filter(None, [str(folder), os.environ.get("LD_LIBRARY_PATH")]))
    return kept | {
        "LD_LIBRARY_PATH": places,
        "PYTHONPATH": os.pathsep.join([str(HERE), str(ROOT)]),
        "GROUNDUP_CUDA": "gpu",
        "GROUNDUP_CACHE": str(folder / "cache"),
        "MACHINE_LOG": str(folder / "log.txt"),
        "MACHINE_CACHE": str(images),
        "MACHINE_PYTHON": sys.executable,
        "MACHINE_ROOT": str(ROOT),
    }


def run(arguments: list[str], folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run `python *arguments` in such a process. more: further variables"""
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=variables(folder) | more, cwd=ROOT, capture_output=True, text=True)
