"""Nothing that is passed to stage 3 crashes the process, is read past its end, or comes out as a wrong number.

fuzz_stage3.py makes the calls, in a process of its own: what a bug there does to it must not be done to this one.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stages import REASONS, USABLE_STAGES
from tests.wide import widely

pytestmark = [
    pytest.mark.skipif("stage3_c" not in USABLE_STAGES, reason=REASONS["stage3_c"] or ""),
    pytest.mark.slow,
]

SCRIPT = Path(__file__).with_name("fuzz_stage3.py")


def fuzz(tmp_path: Path, *options: str) -> tuple[int, str]:
    """The exit code, and what was printed with the last call that was begun."""
    last = tmp_path / "last"
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--last", str(last), *options],
        env={**os.environ, "PYTHONPATH": str(SCRIPT.parents[2])},
        capture_output=True,
        text=True,
        timeout=300,
    )
    begun = last.read_text(encoding="utf-8") if last.exists() else "no call"
    return done.returncode, f"{done.stdout}\n{done.stderr}\nlast call begun: {begun}"


@pytest.mark.parametrize("examples", widely([150, 1400]))
def test_thousands_of_calls_return_what_is_right_or_refuse_with_a_sentence(tmp_path: Path, examples: int) -> None:
    code, output = fuzz(tmp_path, "--examples", str(examples))
    assert code == 0, output
    counted = re.search(r"^(\d+) calls: (\d+) accepted, (\d+) refused$", output, flags=re.MULTILINE)
    assert counted, output
    calls, accepted, refused = (int(number) for number in counted.groups())
    assert calls == accepted + refused >= 7 * examples
    assert min(accepted, refused) >= examples


@pytest.mark.parametrize("check", widely(["form", "labels", "overlap", "writable"]))
def test_the_fuzzing_notices_a_check_that_is_left_out(tmp_path: Path, check: str) -> None:
    code, output = fuzz(tmp_path, "--without", check)
    found_a_call = re.search(r"^.*\({'m': \d+, 'k': \d+, 'n': \d+} float", output, flags=re.MULTILINE)
    assert code != 0, output
    assert found_a_call, output
