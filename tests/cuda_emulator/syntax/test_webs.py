"""Step 3 of the compiler: independent uses of a variable get names of their own, uses that belong together keep one."""

import pytest

from cuda_emulator.compiler.analysis.webs import split_webs
from cuda_emulator.compiler.unit import Unit
from tests.cuda_emulator.emulator_steps import expected, normal_form, text


def split(body: str, parameters: str = "A, out, n") -> Unit:
    unit = normal_form(body, parameters)
    split_webs(unit)
    return unit


INDEPENDENT = {
    "one use after another": (
        "v = A[0]\nout[0] = v\nv = A[1]\nout[1] = v",
        "v = A[0]\nout[0] = v\nv_2 = A[1]\nout[1] = v_2",
    ),
    "a variable made from itself": ("v = n\nv = v + 1\nout[0] = v", "v = n\nv_2 = v + 1\nout[0] = v_2"),
    "a parameter that is assigned anew": ("out[0] = n\nn = 2\nout[1] = n", "out[0] = n\nn_2 = 2\nout[1] = n_2"),
    "the two sides of an if": (
        "if n:\n    v = 1\n    out[0] = v\nelse:\n    v = 2\n    out[1] = v",
        "if n:\n    v = 1\n    out[0] = v\nelse:\n    v_2 = 2\n    out[1] = v_2",
    ),
    "what a loop's body overwrites before it reads it": (
        "v = 5\nout[n] = v\nwhile n:\n    v = A[n]\n    out[n] = v\n    n -= 1",
        "v = 5\nout[n] = v\nwhile n:\n    v_2 = A[n]\n    out[n] = v_2\n    n = n - 1",
    ),
    "what only a return leaves with": (
        "v = 1\nif n:\n    v = 2\n    out[0] = v\n    return\nout[1] = v",
        "v = 1\nif n:\n    v_2 = 2\n    out[0] = v_2\n    return\nout[1] = v",
    ),
    "a name that is taken": (
        "v_2 = 7\nv = 1\nout[0] = v + v_2\nv = 2\nout[1] = v",
        "v_2 = 7\nv = 1\nout[0] = v + v_2\nv_3 = 2\nout[1] = v_3",
    ),
}
JOINED = {
    "both sides of an if": "if n:\n    v = 1\nelse:\n    v = 2\nout[0] = v",
    "an if that may be skipped": "v = 1\nif n:\n    v = 2\nout[0] = v",
    "a sum over a loop": "total = 0\nfor i in range(n):\n    total = total + A[i]\nout[0] = total",
    "the value of the last round": "v = 0\nwhile n:\n    out[n] = v\n    v = A[n]\n    n = n - 1",
    "a value that leaves by break": "v = 0\nwhile True:\n    v = 1\n    if n:\n        break\n    v = 2\nout[0] = v",
    "a parameter that is assigned in a branch": "if A[0]:\n    n = 2\nout[0] = n",
    "the counter that a loop leaves behind": "i = 0\nfor i in range(n):\n    out[i] = 1\nA[0] = i",
}


@pytest.mark.parametrize("case", INDEPENDENT)
def test_independent_uses_get_names_of_their_own(case: str) -> None:
    written, names = INDEPENDENT[case]
    unit = split(written)
    assert text(unit.body) == names


@pytest.mark.parametrize("case", JOINED)
def test_uses_that_belong_together_keep_their_name(case: str) -> None:
    assert text(split(JOINED[case]).body) == text(normal_form(JOINED[case]).body)


def test_results_and_operands_of_collectives_are_followed() -> None:
    unit = split("v = A[0]\nv = cuda.shfl_down_sync(n, v, 1)\nout[0] = v\nv = 2\nout[1] = v")
    assert text(unit.body) == expected(
        """
        v = A[0]
        _operand1 = n
        _operand2 = v
        _result1 = shfl_down_sync(_operand1, _operand2, 1)
        v_2 = _result1
        out[0] = v_2
        v_3 = 2
        out[1] = v_3
        """
    )


def test_messages_still_use_the_learners_name() -> None:
    unit = split("v = 1\nout[0] = v\nv = 2\nout[1] = v")
    assert unit.learners_name("v_2") == "v"


def test_arrays_keep_their_names() -> None:
    unit = split("tile = cuda.shared.array(4, float32)\nv = tile[0]\nout[0] = v\ntile_2 = 3\nv = tile_2\nout[1] = v")
    assert text(unit.body) == "v = tile[0]\nout[0] = v\ntile_2 = 3\nv_2 = tile_2\nout[1] = v_2"
