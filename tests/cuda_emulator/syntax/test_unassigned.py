"""Reads of variables that may have no value yet: which ones are found, and that they are those where Python fails."""

import textwrap
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuda_emulator.compiler.reading.source import FunctionSource
from cuda_emulator.compiler.reading.unassigned import find_unassigned
from tests.cuda_emulator.emulator_steps import expected, function, normal_form, text

FOUND = {
    "an if without else": ("if A[0]:\n    v = 1\nout[0] = v", ["v"]),
    "one side of an if": ("if A[0]:\n    v = 1\nelse:\n    w = 1\nout[0] = v + w", ["v", "w"]),
    "a loop of unknown length": ("for i in range(n):\n    v = i\nout[i] = v", ["i", "v"]),
    "a loop without a round": ("for i in range(0):\n    pass\nout[0] = i", ["i"]),
    "a while": ("while n > 0:\n    n -= 1\n    v = n\nout[0] = v", ["v"]),
    "a break before the assignment": ("while True:\n    if A[n]:\n        break\n    v = n\nout[0] = v", ["v"]),
    "a continue before the assignment": (
        "for i in range(3):\n    if A[i]:\n        continue\n    v = i\nout[0] = v",
        ["v"],
    ),
    "the first round reads what the last one assigned": ("for i in range(3):\n    out[i] = v\n    v = i", ["v"]),
    "an addition to nothing": ("for i in range(3):\n    v += A[i]\nout[0] = 1", ["v"]),
    "an index, and a view that is written": ("if n:\n    r = A[1:]\n    j = 0\nr[j] = 1", ["j", "r"]),
    "an operand that may be skipped": ("if n:\n    v = 1\nout[0] = v if n else 0", ["v"]),
    "both of a pair": ("if n:\n    a, b = A.shape\nout[0] = a * b", ["a", "b"]),
    "only a type is noted": ("v: int\nout[0] = v", ["v"]),
}

NOT_FOUND = {
    "both sides of an if": "if A[0]:\n    v = 1\nelse:\n    v = 2\nout[0] = v",
    "a side that returns": "if A[0]:\n    v = 1\nelse:\n    return\nout[0] = v",
    "a side that raises": "if A[0]:\n    v = 1\nelse:\n    raise ValueError\nout[0] = v",
    "a loop over a constant range": "for i in range(1, SIZE):\n    v = i\nout[i] = v",
    "a loop over a tuple": "for i in (8, 4):\n    v = i\nout[i] = v",
    "an endless loop, left behind the assignment": "while True:\n    v = A[n]\n    if v:\n        break\nout[0] = v",
    "a continue behind the assignment": "for i in range(3):\n    v = i\n    if n:\n        continue\nout[0] = v",
    "a parameter": "if A[0]:\n    n = 2\nout[0] = n",
    "a condition that is a constant": "if SIZE > 2:\n    v = 1\nout[0] = v",
    "what is behind a return": "return\nout[0] = v\nv = 1",
    "shared memory that one side declares": "if n:\n    s = cuda.shared.array(4, float32)\nout[0] = s[0]",
    "a function inside": "def square(v):\n    return v * v\nout[0] = square(n)",
}


def found_in(body: str) -> list[str]:
    return sorted(find_unassigned(FunctionSource(function(body, "A, out, n", SIZE=4))).variables)


@pytest.mark.parametrize(("body", "names"), FOUND.values(), ids=FOUND)
def test_a_variable_that_some_path_leaves_without_a_value_is_found(body: str, names: list[str]) -> None:
    assert found_in(body) == names


@pytest.mark.parametrize("body", NOT_FOUND.values(), ids=NOT_FOUND)
def test_a_variable_that_certainly_has_a_value_is_not_found_and_nothing_is_added_for_it(body: str) -> None:
    assert found_in(body) == []
    assert "_has_" not in text(normal_form(body, SIZE=4).body)


def test_a_second_variable_says_whether_the_first_has_a_value() -> None:
    assert text(normal_form("for i in range(n):\n    v = A[i]\nout[0] = v + n").body) == expected(
        """
        _has_v = False
        for i in range(n):
            v = A[i]
            _has_v = True
        out[0] = _assigned(_has_v, v) + n
        """
    )


# ---- random functions: their normal form stops exactly where Python raises UnboundLocalError

NAMES = st.sampled_from("abc")
TEST = st.integers(0, 5).map("x[{}] > 1".format)
SIMPLE = st.one_of(
    NAMES.map("{} = 1".format),
    NAMES.map("out[0] = {}".format),
    NAMES.map("{} += 1".format),
    st.tuples(NAMES, NAMES).map("{0[0]} = {0[1]}".format),
    st.tuples(NAMES, NAMES, TEST).map("{0[0]} = {0[1]} if {0[2]} else 2".format),
    st.tuples(NAMES, NAMES).map("out[1] = x[0] and {0[0]} or {0[1]}".format),
    TEST.map("if {}:\n    return".format),
)
LEAVE = st.tuples(TEST, st.sampled_from(["break", "continue"])).map("if {0[0]}:\n    {0[1]}".format)


def indented(lines: list[str]) -> str:
    return textwrap.indent("\n".join(lines), "    ")


def compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """An if or a loop around some statements. The loops share a counter, so that each of them ends."""
    some = st.lists(inner, min_size=1, max_size=3)
    in_loop = st.lists(st.one_of(inner, LEAVE), min_size=1, max_size=4).map(indented)
    return st.one_of(
        st.tuples(TEST, some.map(indented)).map("if {0[0]}:\n{0[1]}".format),
        st.tuples(TEST, some.map(indented), some.map(indented)).map("if {0[0]}:\n{0[1]}\nelse:\n{0[2]}".format),
        st.tuples(NAMES, st.sampled_from(["0", "2", "x[1]"]), in_loop).map(
            "for {0[0]} in range({0[1]}):\n{0[2]}".format
        ),
        in_loop.map("while n < 3:\n    n += 1\n{}".format),
        in_loop.map("while True:\n    n += 1\n    if n > 3:\n        break\n{}".format),
    )


ALL_STORED = "\na = b = c = 0"  # a name that is never assigned would be a global one
BODIES = st.lists(st.recursive(SIMPLE, compound, max_leaves=6), min_size=2, max_size=5).map("\n".join)


class NoValue(Exception):
    """What a guard raises."""


def assigned(has: bool, value: int) -> int:
    if not has:
        raise NoValue
    return value


def fails(run: Any, x: list[int], problem: type[Exception]) -> bool:
    try:
        run(x, [0, 0], 0)
    except problem:
        return True
    return False


@settings(max_examples=80)
@given(BODIES, st.lists(st.integers(0, 3), min_size=6, max_size=6))
def test_the_normal_form_stops_exactly_where_python_finds_no_value(body: str, x: list[int]) -> None:
    body += ALL_STORED
    original = function(body, "x, out, n")
    scope: dict[str, Any] = {"_assigned": assigned}
    exec(f"def run(x, out, n):\n    a = b = c = 7\n{indented([text(normal_form(body, 'x, out, n').body)])}", scope)
    assert fails(scope["run"], x, NoValue) == fails(original, x, UnboundLocalError)
