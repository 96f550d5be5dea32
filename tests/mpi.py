"""How tests start ranks, and why they cannot on this machine."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from groundup.ranks import mpiexec
from shared.machine import processes

WHY_NOT = "" if find_spec("mpi4py") and mpiexec() else "needs the extra mpi: pip install -e '.[mpi]'"

needs_mpi = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)

SECONDS = 300


def run_ranks(count: int, *words: str, folder: Path | None = None, **variables: str) -> processes.Finished:
    """Run `python words…` as so many ranks, each with one thread."""
    environment = processes.finding_our_packages(os.environ) | {"GROUNDUP_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return processes.run(
        [str(mpiexec()), "-n", str(count), *processes.python(*words)],
        SECONDS,
        folder=folder,
        variables=environment | variables,
    )
