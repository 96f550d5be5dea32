"""What the program writes on a terminal: every text goes through `printable`, and none of it is rich's markup."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import typer

from shared.console import TextConsole, Whole
from shared.text import one_line, printable

__all__ = ["TextConsole", "Whole", "attempt", "say"]

T = TypeVar("T")


def attempt(failure: str, do: Callable[[], T]) -> T | None:
    """What `do` returns; where it fails, None, and a sentence on standard error that begins with `failure`.

    For what comes after the results, which are on the disk already: a figure that cannot be drawn costs only itself. So
    every exception is caught, and told.
    """
    try:
        return do()
    except Exception as error:
        say(f"warning: {failure}: {one_line(f'{type(error).__name__}: {error}')}", err=True)
        return None


def say(text: str = "", err: bool = False, nl: bool = True) -> None:
    """Print a text on stdout or stderr. nl: whether a newline follows."""
    typer.echo(printable(text), err=err, nl=nl)
