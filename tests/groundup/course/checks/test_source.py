"""What stands in a function's source: names and loops."""

import numpy as np
import pytest

from groundup.course.checks.check import Tally, Wrong
from groundup.course.checks.source import uses_none_of, without_loops


def plain(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.outer(a, b)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a @ b


def adds_rows(a: np.ndarray) -> np.ndarray:
    return np.asarray(sum(a))


def one_loop(a: np.ndarray) -> np.ndarray:
    for row in a:
        row += 1
    return a


def with_a_variable(a: np.ndarray) -> np.ndarray:
    product = np.sqrt(a)
    return product + product


def with_an_attribute(a: np.ndarray) -> np.ndarray:
    return np.asarray(np.random.default_rng(1).one_loop(a))  # type: ignore[attr-defined]


def test_a_variable_or_an_attribute_is_no_function_of_the_same_name() -> None:
    uses_none_of(with_a_variable, {"product": "no", "@": "no"})(Tally())
    without_loops(with_an_attribute, "no")(Tally())


def test_a_name_that_is_not_allowed_is_told_with_its_line() -> None:
    tally = Tally()
    uses_none_of(plain, {"@": "no"})(tally)
    assert tally.count > 0
    with pytest.raises(Wrong, match=r"^product uses @$") as raised:
        uses_none_of(product, {"@": "write the sum"})(Tally())
    assert raised.value.cause == "write the sum"
    assert raised.value.line == product.__code__.co_firstlineno + 1


def test_a_loop_in_python_is_found_also_in_a_call_that_walks_over_an_array() -> None:
    without_loops(plain, "vectorise")(Tally())
    for function in (adds_rows, one_loop):
        with pytest.raises(Wrong, match="has a loop in Python"):
            without_loops(function, "vectorise")(Tally())
    without_loops(one_loop, "vectorise", nested=1)(Tally())
