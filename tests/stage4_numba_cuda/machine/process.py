"""A Python process that has the machine as its GPU."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from shared.machine import caches
from tests.stage4_numba_cuda.machine.image import build_driver

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


def variables(folder: Path) -> dict[str, str]:
    """The environment of such a process. Kernels, the driver and its log, log.txt, are kept in `folder`."""
    library, images, cache = folder / "libcuda.so.1", folder / "images", folder / "cache"
    if not library.exists():
        build_driver(library)
        images.mkdir()
        cache.mkdir(mode=0o700)
        with suppress(FileNotFoundError):  # stage 3's library, which takes longer to compile than most tests
            shutil.copytree(caches.compiled() / "stage3", cache / "stage3")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("GROUNDUP_", "NUMBA_", "CUDA_"))}
    places = os.pathsep.join(filter(None, [str(folder), os.environ.get("LD_LIBRARY_PATH")]))
    return kept | {
        "LD_LIBRARY_PATH": places,
        "PYTHONPATH": os.pathsep.join([str(HERE), str(ROOT)]),
        "GROUNDUP_CUDA": "gpu",
        "GROUNDUP_CACHE": str(cache),
        "MACHINE_LOG": str(folder / "log.txt"),
        "MACHINE_CACHE": str(images),
        "MACHINE_PYTHON": sys.executable,
        "MACHINE_ROOT": str(ROOT),
    }


def run(arguments: list[str], folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run `python *arguments` in such a process. more: further variables"""
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=variables(folder) | more, cwd=ROOT, capture_output=True, text=True)
