"""No kernel, however wrong, takes the process down: each is refused with its line, or gives some number."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.wide import wide

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = "tests.cuda_emulator.emulator_wrong_kernels"
OUT_OF_BOUNDS = r"KernelError: .*emulator_wrong_kernels\.py:\d+: .* is out of bounds"
NUMBAS_OWN = r"KernelError: .*(IndexError|out of bounds)"
NOT_SUPPORTED = r"KernelError: .*not supported by the emulator"

EXPECTED = {
    **dict.fromkeys(("with_an_ellipsis", "with_a_new_axis", "transposed", "of_a_part", "within_a_record"), NUMBAS_OWN),
    **dict.fromkeys(("of_one_or_the_other", "flat", "by_an_array", "renamed"), NOT_SUPPORTED + "|IndexError"),
    "local_without_end": r"KernelError: .* bytes of every thread's local memory",
    "divided_by_nothing": r"^$",
    # Whatever the conversion gives; where that is an index, it is written to.
    "from_a_float": OUT_OF_BOUNDS + r"|^$",
}


@pytest.fixture(scope="module")
def answers() -> dict[str, str]:
    finished = subprocess.run(
        [sys.executable, "-m", SCRIPT], capture_output=True, text=True, check=False, timeout=300, cwd=ROOT
    )
    assert finished.returncode == 0, f"the process ended with {finished.returncode} at {finished.stderr[-300:]}"
    return json.loads(finished.stdout.splitlines()[-1])


@wide
def test_every_wrong_kernel_is_told_what_is_wrong(answers: dict[str, str]) -> None:
    unexpected = {
        name: said
        for name, said in answers.items()
        if not re.search(EXPECTED.get(name, OUT_OF_BOUNDS), said, flags=re.DOTALL)
    }
    assert not unexpected
    assert len(answers) > 30
