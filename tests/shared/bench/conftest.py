"""What the tests of the benchmark have in common."""

import pytest

from shared import contract
from tests.shared.stage_params import STAGE_4_WIDE


@pytest.fixture(params=STAGE_4_WIDE)
def stage(request: pytest.FixtureRequest) -> contract.Stage:
    return contract.load_stage(request.param)
