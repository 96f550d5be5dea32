"""Training does not use up memory: after the first step, three thousand more take none."""

import subprocess
import sys
from pathlib import Path

import pytest

from shared.contract import StageUnavailable, load_stage
from tests.wide import widely

try:
    load_stage("stage3_c")
except StageUnavailable as reason:
    pytest.skip(str(reason), allow_module_level=True)

STATM = Path("/proc/self/statm")
SLACK_PAGES = 128
"""512 KB. A leak of 350 bytes a step would be twice as much."""

SCRIPT = """
import sys
import numpy as np
from shared.architectures import mlp
from shared.contract import load_stage

def resident_pages():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1])

stage = load_stage("stage3_c")
step = stage.network.STEP_LADDER[sys.argv[1]]
rng = np.random.default_rng(0)
network, optimizer = stage.network.Network(mlp([50, 40, 10], dropout=0.1)), stage.optimizers.Adam()
batches = [(rng.random((rows, 50), np.float32), rng.integers(0, 10, rows)) for rows in (32, 32, 32, 7)]
masks = [np.ones((rows, 40), np.float32) for rows in (32, 32, 32, 7)]

def train(steps):
    for i in range(steps):
        step(network, *batches[i % 4], optimizer, [masks[i % 4]])

train(200)
before = resident_pages()
train(3_000)
print(resident_pages() - before)
"""


@pytest.mark.skipif(not STATM.exists(), reason="the resident size is read from /proc, which this system does not have")
@pytest.mark.parametrize("rung", widely(["one_call", "fused", "op_by_op"]))
def test_three_thousand_training_steps_leave_the_resident_size_as_it_was(rung: str) -> None:
    result = subprocess.run([sys.executable, "-c", SCRIPT, rung], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) < SLACK_PAGES
