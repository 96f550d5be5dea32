"""A plugin of pytest: the tests of a project run on the emulator, with `from numba import cuda` left as it is.

    pytest --cuda-emulator              or =check, =warn, or other words of CUDA_EMULATOR with commas between
    cuda_emulator = "check"             the same in a project's configuration, [tool.pytest.ini_options]
    @pytest.mark.cuda_emulator(check=True)
                                        options of the emulator for one test

Without the option nothing of the emulator is imported. Workers of pytest-xdist and child processes of the tests run on
the emulator, too. The summary counts the tests that the emulator has refused, and tracebacks leave its frames out.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

OPTION = "cuda_emulator"
VARIABLE = "CUDA_EMULATOR"
OFF = ("", "0", "off", "no", "false")
PACKAGE = str(Path(__file__).parent)
REFUSED = "cuda_emulator_refused"

_undone_at_end = contextlib.ExitStack()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option, and its line in the configuration."""
    described = "run kernels of numba.cuda on the emulator; WORDS: check, warn, nobounds, step, wrap"
    group = parser.getgroup("cuda-emulator")
    group.addoption("--cuda-emulator", dest=OPTION, nargs="?", const="1", default=None, metavar="WORDS", help=described)
    parser.addini(OPTION, described, default="")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> None:
    """Install the emulator before the project's own files import numba.cuda.

    A worker of pytest-xdist has the variable from the process that started it.
    """
    args[:] = ["--cuda-emulator=1" if each == "--cuda-emulator" else each for each in args]  # or it takes a path along
    options = [each.partition("=")[2] for each in args if each.startswith("--cuda-emulator=")]
    given = options[-1] if options else None
    words = given if given is not None else early_config.getini(OPTION) or os.environ.get(VARIABLE, "")
    if words.strip().lower() in OFF:
        return
    _undone_at_end.callback(_set_variable, os.environ.get(VARIABLE))
    _set_variable(words)
    try:
        import cuda_emulator
        from cuda_emulator.scripts import emulator_in_children
        from cuda_emulator.settings import from_environment, set_defaults

        settings = from_environment()
    except ValueError as error:
        raise pytest.UsageError(str(error).replace(f"{VARIABLE}:", "--cuda-emulator:")) from None
    set_defaults(settings)
    _undone_at_end.callback(set_defaults, None)
    cuda_emulator.install()
    _undone_at_end.callback(cuda_emulator.uninstall)
    _undone_at_end.enter_context(emulator_in_children(settings))


def _set_variable(words: str | None) -> None:
    os.environ.pop(VARIABLE, None)
    if words is not None:
        os.environ[VARIABLE] = words


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known."""
    config.addinivalue_line("markers", "cuda_emulator(**options): options of the emulator for one test, check=True")


def pytest_unconfigure() -> None:
    """Leave everything as it was: pytest may have been called by a program."""
    _undone_at_end.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """The options of a test's mark hold for its fixtures, too."""
    with _options_of(item):
        return (yield)


@contextlib.contextmanager
def _options_of(item: pytest.Item) -> Iterator[None]:
    mark = item.get_closest_marker(OPTION)
    if mark is None:
        yield
        return
    from cuda_emulator import options

    with options(**mark.kwargs):
        yield


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Hide the emulator's frames, and note the sentence of a refusal for the summary."""
    error = call.excinfo.value if call.excinfo is not None else None
    if call.excinfo is not None and type(error).__name__ == "KernelError":
        without = _without_emulator(call.excinfo.tb)
        if without is not None:
            call.excinfo.traceback = type(call.excinfo.traceback)(without)
        item.user_properties.append((REFUSED, reason(str(getattr(error, "sentence", error)))))
    return (yield)


def _without_emulator(trace: TracebackType | None) -> TracebackType | None:
    """The traceback without the emulator's own frames."""
    if trace is None:
        return None
    rest = _without_emulator(trace.tb_next)
    if trace.tb_frame.f_code.co_filename.startswith(PACKAGE):
        return rest
    return TracebackType(rest, trace.tb_frame, trace.tb_lasti, trace.tb_lineno)


def reason(sentence: str) -> str:
    """The kind of a refusal: its sentence without names and numbers, so that equal ones count together."""
    kinds = {
        "race": "race",
        "out of bounds": "index out of bounds",
        "negative index": "negative index",
        "live threads": "a barrier that only a part of the block reaches",
        "not supported by the emulator": "not supported by the emulator",
        "cannot be read": "no source",
        "nobody has written": "memory that nobody has written",
        "no thread of the block": "memory that nobody has written",
    }
    return next((kind for words, kind in kinds.items() if words in sentence), sentence.partition(":")[0][:60])


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Count the refusals of all tests, those of the workers included."""
    reports = [report for category in ("failed", "error") for report in terminalreporter.stats.get(category, [])]
    refusals = [value for each in reports for name, value in getattr(each, "user_properties", ()) if name == REFUSED]
    if refusals:
        terminalreporter.section("cuda emulator")
        counted = ", ".join(f"{kind} ({number})" for kind, number in Counter(refusals).most_common())
        tests = "1 test" if len(refusals) == 1 else f"{len(refusals)} tests"
        terminalreporter.write_line(f"the emulator refused kernels in {tests}: {counted}")
