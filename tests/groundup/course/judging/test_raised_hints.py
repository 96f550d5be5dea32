"""What an exception most likely means."""

import pytest

from groundup.course.judging.raised_hints import raised_hint


def test_a_known_exception_has_a_hint_that_fits_the_line() -> None:
    said = "'str' object has no attribute '__name__'"
    assert "the name comes first" in raised_hint(said, "return named(kernel, name)")
    assert raised_hint(said, "print(kernel.__name__)") == ""
    assert "Leave out the decorator" in raised_hint("kernel is already made by @cuda.jit: apply it once", "@cuda.jit")


@pytest.mark.parametrize(("row", "hint"), [([1], "beyond the end of its list"), ([1, 2, 3], "A slice without an end")])
def test_lists_of_two_lengths_in_a_zip_have_a_hint_about_slices(row: list[int], hint: str) -> None:
    with pytest.raises(ValueError, match=r"zip\(\) argument 2") as raised:
        list(zip([1, 2], row, strict=True))
    assert hint in raised_hint(str(raised.value), "")


def sum_of(numbers: list[int]) -> int:
    for number in numbers:
        total = number
    return total


def test_a_variable_without_a_value_has_a_hint_for_the_path_that_leaves_it_so() -> None:
    with pytest.raises(UnboundLocalError) as raised:
        sum_of([])
    assert "a first value before that" in raised_hint(str(raised.value), "return total")
