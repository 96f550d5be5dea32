"""What the tests of shared have in common."""

import pytest

from shared import contract


@pytest.fixture
def numpy_stage() -> contract.Stage:
    return contract.load_stage("stage2_numpy")
