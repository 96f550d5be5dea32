"""The rungs of every stage's ladder as parameters of a test.

Compiling a rung of stage 4 for the emulator takes seconds: `make test` has the first and the last, which is the one in
use, the wide tests have all.
"""

from typing import Any

import pytest

from shared.contract import load_stage
from tests.stages import STAGE_PARAMS
from tests.wide import widened


def rungs(module: str, ladder: str) -> list[Any]:
    """(stage name, rung) of every stage that can be used here; the others are one skipped case each."""
    cases = []
    for param in STAGE_PARAMS:
        name = param.values[0]
        names = [None] if param.marks else [*getattr(getattr(load_stage(name), module), ladder)]
        for rung in names:
            case = pytest.param(name, rung, id=f"{name}-{rung}", marks=param.marks)
            is_wide = name == "stage4_numba_cuda" and rung not in (names[0], names[-1])
            cases.append(widened(case) if is_wide else case)
    return cases
