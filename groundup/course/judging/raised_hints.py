"""What an exception that a learner's line raises most likely means, in the words of the course."""

from __future__ import annotations

import re

RAISED_HINTS = [
    (
        r"'str' object has no attribute '__(?:qual)?name__'",
        r"\bnamed\(",
        "the arguments of `named` have changed places: the name comes first, named(name, kernel)",
    ),
    (
        r"is already made by @cuda\.jit",
        "",
        "one function goes through cuda.jit twice. Leave out the decorator above it: cuda.jit(f) makes the kernel, and "
        "so does named(name, f)",
    ),
    (
        r"zip\(\) argument \d+ is shorter than",
        "",
        "what zip pairs is not equally long: print the lengths. A slice that reaches beyond the end of its list is "
        "shorter, and no error",
    ),
    (
        r"zip\(\) argument \d+ is longer than",
        "",
        "what zip pairs is not equally long: print the lengths. A slice without an end, row[j:], goes on to the end of "
        "its list",
    ),
    (
        r"maximum recursion depth",
        "",
        "a function calls itself, by its own name or through another one, and never stops: what it calls must be "
        "another function, such as the method of a layer",
    ),
    (
        r"cannot access local variable|has no value yet",
        "",
        "a variable is read on a path that has not assigned it: does this line belong into the `if` or the loop above "
        "it, or does the variable need a first value before that?",
    ),
]
"""(what the exception says, what stands in the learner's line, the hint); the first that fits."""


def raised_hint(text: str, source: str) -> str:
    """A hint for an exception, "" for one that is not in RAISED_HINTS. text: its message; source: the learner's line"""
    fitting = (hint for said, line, hint in RAISED_HINTS if re.search(said, text) and re.search(line, source))
    return next(fitting, "")
