"""What the tests of all stages share: the dtypes as a fixture. The stages are one of tests/conftest.py."""

import pytest


@pytest.fixture(params=["float64", "float32"])
def dtype(request: pytest.FixtureRequest) -> str:
    return request.param
