"""What `make test` leaves to `make test-wide`: the further cases of what it tests with a few.

`make test` proves the product right. The wide tests take many times as long: every wrong answer of the course, every
kernel compiled for the emulator, all combinations of parameters, long fuzz, browsers, every documented command. They
carry the marker `wide`, given in conftest.py to folders and to the cases of a parametrised test in which no pair of
values is new, and elsewhere to a test by `@wide`, or to the later cases of a parametrised test by `widely`. `-m wide`
brings them in. With GROUNDUP_EVERY_KERNEL=1, which `make test-wide` sets, tests that use WIDE take more, and
hypothesis takes new examples: these tests are wide then, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest

WIDE = os.environ.get("GROUNDUP_EVERY_KERNEL") == "1"
"""Whether this run has the wide tests in it."""

wide = pytest.mark.wide


def widely(cases: Iterable[Any], first: int = 1) -> list[Any]:
    """The cases of a parametrized test, all but the `first` few marked as wide. A case is a value or a pytest.param."""
    return [case if number < first else widened(case) for number, case in enumerate(cases)]


def widened(case: Any) -> Any:
    """A case of a parametrized test, marked as wide."""
    if isinstance(case, type(pytest.param())):
        return pytest.param(*case.values, id=case.id, marks=[*case.marks, wide])
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=wide)
