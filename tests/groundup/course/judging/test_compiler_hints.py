"""A compiler's first error is explained in the words of the course."""

import re

import pytest

from groundup.course.judging.compiler_hints import compile_hint

GCC = """/tmp/t.c: In function 'f':
/tmp/t.c:5:21: error: {0}
    5 |   for (int i = 0; i < n; i++) c[i] = s;
/tmp/t.c:9:45: error: unused parameter 'b' [-Werror=unused-parameter]
"""


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (
            "comparison of integer expressions of different signedness: 'int' and 'size_t' {aka 'long unsigned int'} "
            "[-Werror=sign-compare]",
            "count with size_t, as the sizes are",
        ),
        ("comparison of integers of different signs: 'int' and 'size_t' [-Werror,-Wsign-compare]", "with size_t"),
        ("implicit conversion changes signedness: 'int' to 'unsigned long' [-Werror,-Wsign-conversion]", "with size_t"),
        (
            "conversion to 'long unsigned int' from 'ptrdiff_t' {aka 'long int'} may change the sign of the result "
            "[-Werror=sign-conversion]",
            "stays a ptrdiff_t",
        ),
        ("conversion from 'size_t' {aka 'long unsigned int'} to 'int' may change value [-Werror=conversion]", "size_t"),
        (
            "conversion from 'double' to 'real' {aka 'float'} may change value [-Werror=float-conversion]",
            "(real)s says that you mean it",
        ),
        (
            "implicit conversion loses floating-point precision: 'double' to 'real' (aka 'float') "
            "[-Werror,-Wimplicit-float-conversion]",
            "(real)s says that you mean it",
        ),
        (
            "implicit declaration of function 'printf' [-Werror=implicit-function-declaration]",
            "printf is declared in stdio.h: write #include <stdio.h> at the top of the file",
        ),
        (
            "call to undeclared library function 'memset' with type 'void *(void *, int, unsigned long)'; ISO C99 and "
            "later do not support implicit function declarations [-Wimplicit-function-declaration]",
            "write #include <string.h>",
        ),
        ("implicit declaration of function 'foo' [-Wimplicit-function-declaration]", "no function foo is declared"),
        ("unused parameter 'values' [-Werror=unused-parameter]", "your code never looks at the argument values"),
        ("unused parameter 'values' [-Werror,-Wunused-parameter]", "your code never looks at the argument values"),
        ("conversion from 'double' to 'int' may change value [-Werror=float-conversion]", ""),
        ("expected ';' before '}' token", ""),
    ],
)
def test_a_compilers_first_error_is_told_in_the_courses_words(error: str, hint: str) -> None:
    text = GCC.format(error)
    found = compile_hint(text)
    assert hint in found
    assert bool(found) == bool(hint)
    assert compile_hint(re.sub(r"'(\S+)'", "\u2018\\1\u2019", text)) == found  # as gcc writes it in UTF-8
