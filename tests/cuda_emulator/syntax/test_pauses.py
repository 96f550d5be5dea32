"""What a block keeps over a barrier across the grid: the variables read behind it before they are written."""

import pytest

from cuda_emulator.compiler.analysis.pauses import Needed
from tests.cuda_emulator.emulator_steps import normal_form

MEET = "cuda.cg.this_grid().sync()"


def needed(body: str) -> set[str]:
    found = Needed()
    found.before(normal_form(body.replace("MEET", MEET)).body, set())
    return found.at_barriers & {"a", "b", "c"}


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("a = n\nb = n\nMEET\nout[0] = a", {"a"}),
        ("a = n\nMEET\na = 1\nout[0] = a", set()),
        ("a = n\nMEET\nif n > 1:\n    out[0] = a", {"a"}),
        ("a = n\nMEET\nif n > 1:\n    return\nout[0] = a", {"a"}),
        ("a = n\nb = n\nwhile a > 0:\n    out[0] = b\n    MEET\n    a -= 1", {"a", "b"}),
        # what the next round reads, and what is read behind the loop
        ("b = n\nwhile True:\n    out[0] = b\n    MEET\n    if n > 1:\n        continue\n    break", {"b"}),
        ("b = n\nc = n\nwhile True:\n    out[0] = b\n    MEET\n    break\nout[0] = c", {"c"}),
    ],
)
def test_what_is_read_behind_a_barrier_is_needed_there(body: str, names: set[str]) -> None:
    assert needed(body) == names
