"""Which stages can be tested on this machine, and the sizes that catch wrong indexing."""

import pytest

from shared import contract

AWKWARD_SIZES = [(1, 1, 1), (1, 7, 3), (2, 3, 5), (13, 17, 11), (5, 97, 2), (31, 2, 29), (33, 65, 17)]
"""(M, K, N): ones, primes, one past a power of two, K much larger than N and the reverse."""


def why_not(name: str) -> str | None:
    """Why an installed stage cannot be used on this machine (it has no compiler, say); None where it can be."""
    try:
        contract.load_stage(name)
    except contract.StageUnavailable as reason:
        return str(reason)
    except OSError as error:  # a GROUNDUP_CACHE that cannot be written, say: every test of the stage would fail
        pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)
    except Exception:  # a broken stage: the tests that load it fail with the error, each by itself
        return None
    return None


REASONS = {name: why_not(name) for name in contract.available_stages()}
USABLE_STAGES = [name for name, reason in REASONS.items() if reason is None]
"""The stages for tests that look at all at once."""

STAGE_PARAMS = [
    pytest.param(name, id=name, marks=[pytest.mark.skip(reason=reason)] if reason else [])
    for name, reason in REASONS.items()
]
"""The names of the installed stages to parametrise over; those that cannot be used here are skipped and say why."""


def needs_precision(name: str) -> None:
    """Skip this test where stage 4 runs on a GPU whose tensor cores do not know tf32, bf16 or f16."""
    if not contract.load_part("stage4_numba_cuda", "tensor_cores").is_known(name):
        pytest.skip(f"this GPU's tensor cores do not know {name}")


def without_announcement(stderr: str) -> str:
    """What a command said besides the line in which stage 4 says what it runs on."""
    return "".join(line for line in stderr.splitlines(keepends=True) if not line.startswith("stage 4 runs its kernels"))
