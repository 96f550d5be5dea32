"""Where a function stands in a file, and the stub that is made of it."""

import ast

import pytest

from groundup.course.learner.c_source import c_function, exported, rest_of
from groundup.course.learner.functions import FunctionMissing, find, function_text, lines_of, replaced, stub, stub_line
from groundup.course.learner.project_files import files, solution, solution_file, stubbed
from groundup.course.manifest import course

PYTHON = '''\
import math


@decorated
def first(a):
    """What it is for."""
    # A comment that tells the solution.
    b = check(a)
    return b  # done


class Layer:
    def forward(self, x):
        return x

    def backward(self, x):
        return -x


def maker(n):
    def inner(x):
        return x + n

    return inner
'''

C = """\
/* twice(x): a function in a comment { */
#define TWO 2
static size_t twice(size_t x);

/* What it does. */
static size_t twice(size_t x) {
    const char *brace = "}";  // and one here }
    return TWO * x;
}

void NAME(scale)(size_t n, real *x) {
    for (size_t i = 0; i < n; i++) { x[i] = NAME(other)(x[i]); }
}
"""


@pytest.mark.parametrize(
    ("name", "lines"),
    [("first", (4, 7, 9)), ("Layer.backward", (16, 17, 17)), ("maker", (20, 21, 24)), ("maker.inner", (21, 22, 22))],
)
def test_a_python_function_is_found_with_its_decorators(name: str, lines: tuple[int, int, int]) -> None:
    place = find(PYTHON, name, "file.py")
    assert (place.first, place.body, place.last) == lines


def test_a_stub_keeps_signature_and_docstring_and_drops_comments_that_tell_the_solution() -> None:
    text = stub(PYTHON, "first", "file.py", "week 1, task 1: do it")
    assert text == (
        '@decorated\ndef first(a):\n    """What it is for."""\n    raise NotImplementedError("week 1, task 1: do it")\n'
    )


def test_a_stub_keeps_the_statements_it_is_told_to() -> None:
    text = stub(PYTHON, "first", "file.py", "week 1, task 1: do it", keep=1)
    assert text.splitlines()[-2:] == ["    b = check(a)", '    raise NotImplementedError("week 1, task 1: do it")']


def test_keeping_the_whole_body_is_refused() -> None:
    with pytest.raises(FunctionMissing, match="first has 2 statements, expected more than 2"):
        find(PYTHON, "first", "file.py", keep=2)


def test_a_file_that_is_no_python_is_told_with_its_line() -> None:
    with pytest.raises(FunctionMissing, match=r"file.py, line 2: SyntaxError") as raised:
        find("a = 1\nb = = 2\n", "first", "file.py")
    assert raised.value.line == 2


@pytest.mark.parametrize("text", ["x = " + "-" * 200_000 + "1", "x = f" + "()" * 100_000, "x = '\0'"])
def test_a_file_that_python_cannot_parse_at_all_is_named(text: str) -> None:
    with pytest.raises(FunctionMissing, match=r"^room\.py"):
        find(text, "f", "room.py")


def test_a_function_that_is_not_there_is_named() -> None:
    with pytest.raises(FunctionMissing, match=r"file\.py has no function Layer\.sideways"):
        find(PYTHON, "Layer.sideways", "file.py")


@pytest.mark.parametrize(("name", "lines"), [("twice", (6, 6, 9)), ("scale", (11, 11, 13))])
def test_a_c_function_is_found_past_comments_strings_calls_and_declarations(
    name: str, lines: tuple[int, int, int]
) -> None:
    assert c_function(C, name) == lines


def test_a_stub_in_c_does_not_compile_and_says_why() -> None:
    text = stub(C, "scale", "file.c", "week 6, task 1: do it")
    assert text == 'void NAME(scale)(size_t n, real *x) {\n#error "week 6, task 1: do it"\n}\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [("int other(void) { return 1; }", "there is no function twice"), ("int twice(int x) { return x;", "do not match")],
)
def test_c_without_the_function_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        c_function(text, "twice")


@pytest.mark.parametrize("file", files(course()))
def test_putting_every_solution_back_gives_the_projects_file(file: str) -> None:
    text = stubbed(file, course())
    assert text != solution_file(file)
    for task in course().tasks:
        if task.file == file:
            assert task.message in text
            text = replaced(text, find(text, task.function, file), solution(task))
    assert text == solution_file(file)


def test_an_exercise_is_five_to_twenty_lines_or_so() -> None:
    """What the solution puts in the stub's place; a few are shorter in the project than a learner will write them."""
    sizes = {}
    for task in course().tasks:
        text = solution_file(task.file)
        place = find(text, task.function, task.file, task.keep)
        sizes[task.id] = len([line for line in lines_of(text)[place.body - 1 : place.last] if line.strip()])
    assert max(sizes.values()) <= 25, sizes
    assert sum(size < 4 for size in sizes.values()) <= len(sizes) / 6, sizes


@pytest.mark.parametrize("character", ["\f", "\v", "\x85", "\u2028"])
def test_a_line_ends_where_python_and_c_end_it(character: str) -> None:
    text = f"# one{character}still one\ndef f():\n    return 1\n"
    assert find(text, "f", "file.py").first == 2
    assert lines_of(text) == [f"# one{character}still one\n", "def f():\n", "    return 1\n"]
    assert lines_of("") == []
    assert lines_of("a\nb") == ["a\n", "b\n"]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('    raise NotImplementedError("week 1, task 2: whatever")', 1),
        ('#error "week 1, task 2: whatever"', 1),
        ('    # raise NotImplementedError("week 1, task 2: whatever")', 0),
        ('    // #error "week 1, task 2: whatever"', 0),
        ('    raise NotImplementedError("week 1, task 20: whatever")', 0),
    ],
)
def test_a_stub_is_known_by_its_line_and_not_by_a_comment_about_it(line: str, found: int) -> None:
    assert stub_line(line, 1, 2) == found


@pytest.mark.parametrize("file", [file for file in files(course()) if file.endswith(".py")])
def test_a_stubbed_file_is_python(file: str) -> None:
    ast.parse(stubbed(file, course()))


def test_a_functions_text_ends_with_a_newline_at_the_end_of_a_file() -> None:
    text = "def f():\n    return 1"
    assert function_text(text, find(text, "f", "file.py")) == "def f():\n    return 1\n"


NOW = """\
#include "groundup.h"

static real twice(real x) { return 2 * x; }

int NAME(count)(size_t n); /* declared, and defined below */

EXPORT void NAME(scale)(size_t n, real *x) {
    for (size_t i = 0; i < n; i++) x[i] = twice(x[i]);
}

NAME(kind) NAME(chosen)(int which) { return which; }

int NAME(count)(size_t n) {
    if (n > 0) { return 1; }
    return 0;
}
"""


def test_the_functions_that_a_c_file_has_for_others_are_those_that_are_not_static() -> None:
    assert exported(NOW) == ["scale", "chosen", "count"]


def test_a_copy_that_has_every_function_needs_no_rest() -> None:
    assert rest_of(NOW, NOW.replace("2 * x", "x + x")) == ""


def test_the_rest_of_an_older_copy_has_what_the_copy_lacks_and_not_what_it_has() -> None:
    copy = NOW[: NOW.index("int NAME(count)(size_t n) {")] + "static int count(size_t n) { return n > 0; }\n"
    rest = rest_of(NOW, copy)
    assert exported(rest) == ["count"]
    assert "static real twice" in rest
    assert rest_of(NOW, copy + "int NAME(count)(size_t n) { return n > 0; }\n") == ""
