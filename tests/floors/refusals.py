"""The assertion of the tests that every stage answers a mistake with the same error."""

from collections.abc import Callable
from typing import Any

import pytest

from shared.contract import Stage


def assert_refused(stage: Stage, mistake: Callable[[Stage], Any], kind: type[Exception], sentence: str) -> None:
    """Assert that the mistake raises exactly this type of error with this sentence.

    A sentence without ", got …" is compared with what the stage says before it: each stage may tell in its own words
    what came, for a list has no dtype. Stage 4 may say "device array" for "array".
    """
    with pytest.raises(Exception) as caught:  # noqa: PT011 (type and words are compared below)
        mistake(stage)
    said = str(caught.value).replace("a device array", "an array").replace("device arrays", "arrays")
    if ", got " not in sentence:
        said = said.partition(", got ")[0]
    assert (caught.type, said) == (kind, sentence)
