"""What all tests share: which stages exist, and the sizes that catch wrong indexing."""

import pytest

from shared import contract

AWKWARD_SIZES = [(1, 1, 1), (1, 7, 3), (2, 3, 5), (13, 17, 11), (5, 97, 2), (31, 2, 29), (33, 65, 17)]
"""(M, K, N): ones, primes, one past a power of two, K much larger than N and the reverse."""


@pytest.fixture(params=contract.available_stages())
def stage(request: pytest.FixtureRequest) -> contract.Stage:
    return contract.load_stage(request.param)
