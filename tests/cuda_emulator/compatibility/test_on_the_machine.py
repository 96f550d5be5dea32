"""The emulator's test kernels, as numba-cuda compiles them, give the results that they give on the emulator.

They run on the GPU made of programs that the tests of stage 4 use, with the launches of kernels/test_kernels.py, and
are held to the same references.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cuda_emulator.emulator_kernels import all_examples
from tests.stage4_numba_cuda.machine.needed import needs_numba_cuda
from tests.stage4_numba_cuda.machine.process import run
from tests.wide import WIDE

pytestmark = needs_numba_cuda

SCRIPT = ["-m", "tests.cuda_emulator.compatibility.run_for_real"]
DEVICES = [("9.0", "0"), ("7.5", "1"), ("12.0", "2")] if WIDE else [("9.0", "0")]
NAMES = list(all_examples())


def answers(folder: Path, *names: str, **more: str) -> dict[str, str]:
    """How each kernel's results differ from the reference, "" where they do not. more: variables of the process"""
    done = run([*SCRIPT, *names], folder, **more)
    assert done.returncode == 0, done.stderr[-4000:]
    return dict(map(json.loads, done.stdout.splitlines()))


@pytest.mark.parametrize("names", [NAMES[::2], NAMES[1::2]], ids=["one half", "other half"])
@pytest.mark.parametrize(("capability", "order"), DEVICES)
def test_every_kernel_gives_as_compiled_what_its_reference_says(
    names: list[str], capability: str, order: str, tmp_path: Path
) -> None:
    """order: a number that changes the order in which threads take turns"""
    found = answers(tmp_path, *names, MACHINE_CAPABILITY=capability, MACHINE_SEED=order)
    assert list(found) == names
    assert {name: said for name, said in found.items() if said} == {}


@pytest.mark.skipif(not WIDE, reason="it takes minutes: make test-wide has it")
@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_kernels_give_as_compiled_what_they_give_on_the_emulator(first: int, tmp_path: Path) -> None:
    seeds = list(range(first, first + 20))
    done = run(["-m", "tests.cuda_emulator.compatibility.fuzz_for_real", str(tmp_path), *map(str, seeds)], tmp_path)
    assert done.returncode == 0, done.stderr[-4000:]
    found = dict(map(json.loads, done.stdout.splitlines()))
    assert found == dict.fromkeys(seeds, ""), done.stderr[-4000:]
