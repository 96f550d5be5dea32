"""Products and convolutions on arrays next to memory that may not be read: one number too far is a crash."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from groundup.course.grading.calling.guarded_memory import can_guard
from tests.stages import REASONS, USABLE_STAGES

pytestmark = [
    pytest.mark.skipif("stage3_c" not in USABLE_STAGES, reason=REASONS["stage3_c"] or ""),
    pytest.mark.skipif(not can_guard(), reason="no page can be made unreadable here"),
]

CALLS = """
import sys
import numpy as np
from groundup.course.grading.calling.guarded_memory import guarded
from stage3_c import convolution, matmul

PRODUCTS = [(1, 1, 1), (2, 3, 5), (13, 17, 11), (31, 2, 29), (33, 65, 17), (1, 3, 301), (5, 1100, 9), (300, 5, 9)]
CONVOLUTIONS = [
    (1, 1, 3, 3, 1, (3, 3), 1, 0), (17, 2, 7, 5, 3, (3, 3), 1, 1), (2, 17, 13, 6, 19, (3, 3), 1, (0, 2)),
    (3, 3, 10, 11, 5, (5, 4), (3, 1), 2), (9, 4, 8, 8, 9, (1, 1), 2, 0),
]
behind, rng = sys.argv[1] == "behind", np.random.default_rng(0)


def put(*shapes):
    return [guarded(i, rng.random(shape).astype(dtype), behind) for i, shape in enumerate(shapes)]


for dtype in ("float32", "float64"):
    for m, k, n in PRODUCTS:
        for rung in (*matmul.LADDER.values(), matmul.matmul):
            a, b, out = put((m, k), (k, n), (m, n))
            np.testing.assert_allclose(rung(a, b, out=out), a @ b, rtol=1e-4)
        a, b, out = put((k, m), (k, n), (m, n))
        np.testing.assert_allclose(matmul.matmul_tn(a, b, out=out), a.T @ b, rtol=1e-4)
        a, b, out = put((m, k), (n, k), (m, n))
        np.testing.assert_allclose(matmul.matmul_nt(a, b, out=out), a @ b.T, rtol=1e-4)
    for n, c, height, width, filters, kernel, stride, padding in CONVOLUTIONS:
        for rung in convolution.CONVOLUTION_LADDER.values():
            x, weights, bias = put((n, c, height, width), (filters, c, *kernel), (filters,))
            y = rung(x, weights, bias, stride, padding)
        x, weights, grad = put((n, c, height, width), (filters, c, *kernel), y.shape)
        convolution.conv2d_backward(grad, x, weights, stride, padding)
"""


@pytest.mark.parametrize("where", ["behind", "before"])
def test_nothing_reads_or_writes_outside_its_arrays(where: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", CALLS, where], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr[-2000:]}"
