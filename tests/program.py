"""The program called inside the test's process, as a shell would call it."""

import pytest

from groundup.cli import main


def run(*arguments: object) -> int:
    """The exit code of a command."""
    with pytest.raises(SystemExit) as ended:
        main([str(each) for each in arguments])
    return int(ended.value.code or 0)


def ran(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Its exit code, and what it said on stdout and stderr."""
    capsys.readouterr()
    code = run(*arguments)
    said = capsys.readouterr()
    return code, said.out, said.err
