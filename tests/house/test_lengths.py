"""A file is read in one sitting."""

import pytest

from tests.house.source_tree import PACKAGES, ROOT, files, lines_of_code

MOST = 400
"""Lines of code, without blank lines, comments and docstrings."""

FOLDERS = (*PACKAGES, "tests", "docs", "examples", "scripts")


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_file_has_more_lines_of_code_than_one_sitting_takes(folder: str) -> None:
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in files(folder)}
    long = {path: lines_of_code(text) for path, text in texts.items() if text.count("\n") > MOST}
    assert {path: lines for path, lines in long.items() if lines > MOST} == {}
