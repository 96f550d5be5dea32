"""Kernels made by exec: their text is looked for with its callers, and among the texts that Python has compiled."""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from cuda_emulator import KernelError, cuda, install, uninstall


@pytest.fixture
def installed() -> Iterator[None]:
    install()
    yield
    uninstall()


@pytest.mark.parametrize("other", ["", "print(1)\n"])
def test_a_kernel_made_by_exec_is_found_in_the_string_of_its_caller(
    other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(linecache.cache, "<string>", raising=False)
    if other:  # what `python -c` or an earlier exec() left behind
        monkeypatch.setitem(linecache.cache, "<string>", (len(other), None, [other], "<string>"))
    text = "@cuda.jit\ndef made_by_exec(a):\n    a[cuda.grid(1)] = 1\n"
    names: dict[str, Any] = {"cuda": cuda}
    exec(text, names)
    a = np.zeros(2)
    names["made_by_exec"][1, 2](a)
    assert a.tolist() == [1, 1]
    exec("".join(["@cuda.jit\ndef ", "without_a_string(a):\n    a[0] = 1\n"]), names)
    with pytest.raises(KernelError, match=r"made by exec\(\), keep the text in a variable of the function that calls"):
        names["without_a_string"][1, 1](a)


MADE_AND_RETURNED = """
from __future__ import annotations
def texts(name, body):
    names = {}
    exec(f"def {name}(a, factor: missing):\\n    a[0] = {body}\\n", names)
    return names[name]
double, thrice = texts("times", "2 * factor"), texts("times", "3 * factor")
double.__name__ = "double"
makers = {}
exec("".join(["def maker(number):\\n  def inner(a):\\n    a[0] += number\\n  return in", "ner\\n"]), makers)
"""


def test_a_kernel_of_an_exec_that_has_returned_is_found_by_its_instructions(installed: None) -> None:
    names: dict[str, Any] = {}
    exec(MADE_AND_RETURNED, names)
    for function, expected in ((names["double"], 8), (names["thrice"], 12), (names["makers"]["maker"](5), 5)):
        a = np.zeros(1)
        cuda.jit(function)[1, 1](a, *(4,) * (function.__code__.co_argcount - 1))
        assert a[0] == expected


def test_a_text_of_exec_is_noted_while_the_emulator_is_installed(installed: None) -> None:
    names: dict[str, Any] = {}
    exec("".join(["def on", "ce(a):\n    a[0] = 1\n"]), names)
    uninstall()
    exec("".join(["def twi", "ce(a):\n    a[0] = 1\n"]), names)
    install()
    for name in ("once", "twice"):  # the first was forgotten, the second not noted
        with pytest.raises(KernelError, match="cannot be read"):
            cuda.jit(names[name])[1, 1](np.zeros(1))
