"""What an exception most likely means."""

from groundup.course.judging.raised_hints import raised_hint


def test_a_known_exception_has_a_hint_that_fits_the_line() -> None:
    said = "'str' object has no attribute '__name__'"
    assert "the name comes first" in raised_hint(said, "return named(kernel, name)")
    assert raised_hint(said, "print(kernel.__name__)") == ""
    assert "Leave out the decorator" in raised_hint("kernel is already made by @cuda.jit: apply it once", "@cuda.jit")
