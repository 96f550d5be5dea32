"""shared.bench.measuring.children: a question to a fresh process, its answer, and what is said where there is none."""

import pytest

from shared.bench.measuring import children

ECHO = "import json, sys; print('noise'); print(json.dumps(json.load(sys.stdin)))"


def test_the_last_line_is_the_answer() -> None:
    assert children.ask(ECHO, {"a": [1, 2]}, threads=1) == {"a": [1, 2]}


def test_the_process_finds_this_package_and_its_variables_and_threads() -> None:
    code = (
        "import json, os, shared.contract as c; "
        "print(json.dumps([c.__file__, os.environ['OMP_NUM_THREADS'], os.environ['GROUNDUP_CACHE']]))"
    )
    from shared import contract

    assert children.ask(code, threads=3, variables={"GROUNDUP_CACHE": "x"}) == [contract.__file__, "3", "x"]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise ValueError('no network')", r"ended with exit code 1: ValueError: no network$"),
        ("import sys; sys.exit(3)", r"ended with exit code 3: it said nothing$"),
        ("print('hello')", r"answered 'hello\\n'; expected a line of JSON$"),
        ("pass", r"answered ''; expected a line of JSON$"),
        ("import time; time.sleep(30)", r"took longer than 0.5 s$"),
    ],
)
def test_a_process_without_an_answer_is_an_error(code: str, said: str) -> None:
    with pytest.raises(ChildProcessError, match=said):
        children.ask(code, threads=1, patience=0.5 if "sleep" in code else 60.0)
