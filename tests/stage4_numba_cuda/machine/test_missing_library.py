"""CUDA without libcudadevrt, a file that numba-cuda links with every kernel whose blocks wait for each other."""

from __future__ import annotations

from pathlib import Path

from tests.stage4_numba_cuda.machine.needed import needs_numba_cuda
from tests.stage4_numba_cuda.machine.process import run
from tests.wide import wide

pytestmark = [*needs_numba_cuda, wide]

PROGRAM = """
import numpy as np
from numba.cuda import codegen
codegen.get_cudalib = lambda name, static=False: "libcudadevrt.a"  # what it answers where it finds none
from stage4_numba_cuda.network import Network
from stage4_numba_cuda.optimizers import SGD
x = np.zeros((8, 6), np.float32)
run = Network([6, 5, 3]).resident(x, np.zeros(8, int), SGD(0.1), 4, 0)
run.begin_epoch(np.arange(8))
print(run.rung, "because", run.reason, run.take(0, [0.1, 0.1], 0))
"""


def test_the_graph_takes_the_steps(tmp_path: Path) -> None:
    done = run(["-c", PROGRAM], tmp_path)
    assert done.returncode == 0, done.stderr
    reason = "numba-cuda cannot link a kernel whose blocks wait for each other: libcudadevrt.a not found"
    assert done.stdout.startswith(f"graph because {reason} [1.09"), done.stdout
