"""A file is read in one sitting."""

import pytest

from tests.layout.source_tree import FOLDERS, lines_of_code, sources

MOST = 400
"""Lines of code, without blank lines, comments and docstrings."""


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_file_has_more_lines_of_code_than_one_sitting_takes(folder: str) -> None:
    long = {module: lines_of_code(text) for module, text in sources(folder).items() if text.count("\n") > MOST}
    assert {module: lines for module, lines in long.items() if lines > MOST} == {}
