"""What the first error of a C compiler most likely means, in the words of the course."""

from __future__ import annotations

import re
from collections.abc import Callable


def compile_hint(text: str) -> str:
    """A hint for the first error of a C compiler; "" for an error that is not in COMPILE_HINTS.

    text: the output of gcc or clang, or a part of it that begins with the first error
    """
    text = text.replace("\u2018", "'").replace("\u2019", "'")  # gcc's quotes, where the language is not C
    first = next((line for line in text.splitlines() if "error:" in line), text)
    for pattern, hint in COMPILE_HINTS:
        found = re.search(pattern, first)
        if found:
            return hint(found)
    return ""


def _undeclared(name: str) -> str:
    """The hint for a call of an undeclared function."""
    header = next((header for header, names in HEADERS.items() if name in names), "")
    if header:
        return f"{name} is declared in {header}: write #include <{header}> at the top of the file"
    return f"no function {name} is declared above this line: is its name spelled right, its #include at the top?"


HEADERS = {
    "stdio.h": ("printf", "fprintf", "puts", "putchar", "fflush"),
    "stdlib.h": ("malloc", "calloc", "free", "abs", "abort", "exit"),
    "string.h": ("memcpy", "memmove", "memset"),
    "math.h": ("exp", "expf", "log", "logf", "sqrt", "sqrtf", "pow", "fabs", "fabsf", "fmax", "fmaxf", "fmin", "fminf"),
}
"""What learners call of the standard library, by where it is declared."""


COMPILE_HINTS: list[tuple[str, Callable[[re.Match[str]], str]]] = [
    (
        r"'ptrdiff_t'.*sign-(?:compare|conversion)\]",
        lambda found: (
            "a size_t has no number below 0: what may lie before the beginning stays a ptrdiff_t, and a size is "
            "made one where both meet, (ptrdiff_t)u"
        ),
    ),
    (
        r"\[-W[^\]]*sign-(?:compare|conversion)\]|'size_t'.* to 'int'",
        lambda found: "count with size_t, as the sizes are: an int may be negative, and holds smaller numbers",
    ),
    (
        r" to '(?:real|float)'.*float-conversion\]",
        lambda found: "`real` may be float: (real)s says that you mean it, or keep the sum in real",
    ),
    (
        r"(?:implicit declaration of|call to undeclared(?: library)?) function '(\w+)'",
        lambda found: _undeclared(found[1]),
    ),
    (
        r"unused parameter '(\w+)'",
        lambda found: f"your code never looks at the argument {found[1]}: is a part of the task missing?",
    ),
]
"""What a line with an error looks like, gcc's or clang's, and what to say. All compiles with -Wconversion -Werror."""
