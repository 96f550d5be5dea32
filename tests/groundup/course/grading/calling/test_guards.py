"""Which conditions guard an index."""

import ast

import pytest

from groundup.course.grading.calling.guards import Guards

ACCESS = "x[row, column] = 1"


@pytest.mark.parametrize(
    ("lines", "axis", "concerned"),
    [
        ([ACCESS], 0, []),
        (["if row < 9:", f"    {ACCESS}"], 0, ["row < 9"]),
        (["if row < 9:", f"    {ACCESS}"], 1, []),
        (["if row < 9:", "    pass", ACCESS], 0, []),
        (["if row >= 9:", "    return", ACCESS], 0, ["row >= 9"]),
        (["while row < 9:", f"    {ACCESS}", "    row += 1"], 0, ["row < 9"]),
        (["for column in range(9):", f"    {ACCESS}"], 1, ["range(9)"]),
        (["for column in range(9):", f"    {ACCESS}"], 0, []),
        (["row, column = cuda.grid(2)", "if row < 9:", f"    {ACCESS}"], 1, []),
        (["row = i // columns", "if i < 9:", f"    {ACCESS}"], 0, ["i < 9"]),
        (["columns = x.shape[1]", "row = i // columns", "if k < columns:", f"    {ACCESS}"], 0, []),
        (["inside = row < 9", "if inside:", f"    {ACCESS}"], 0, ["inside", "row < 9"]),
        (["y = x[row, column] if column < 9 else 0"], 1, ["column < 9"]),
        (["y = column < 9 and x[row, column] > 0"], 1, ["column < 9"]),
        (["row = cuda.threadIdx.y", "if cuda.threadIdx.y < 9:", f"    {ACCESS}"], 0, ["cuda.threadIdx.y < 9"]),
        (["if row < 9:", "    cuda.atomic.add(x, (row, column), 1)"], 0, ["row < 9"]),
    ],
)
def test_a_guard_concerns_an_index_with_which_it_has_a_variable_in_common(
    lines: list[str], axis: int, concerned: list[str]
) -> None:
    text = "def kernel(x, i, k, row, column):\n" + "".join(f"    {line}\n" for line in lines)
    function = ast.parse(text).body[0]
    assert isinstance(function, ast.FunctionDef)
    line = next(number for number, each in enumerate(text.splitlines(), 1) if "x[" in each or "(x," in each[8:])
    guards = Guards(function, "x", line, axis)
    assert [ast.unparse(each) for each in guards.concerned] == concerned
    assert guards.written == ("row", "column")[axis]


def test_an_array_without_an_access_has_no_guards() -> None:
    function = ast.parse("def kernel(x, i):\n    if i < 9:\n        x[i] = 1\n").body[0]
    assert isinstance(function, ast.FunctionDef)
    guards = Guards(function, "y", 3, None)
    assert (guards.written, guards.any, guards.concerned) == ("", False, [])
