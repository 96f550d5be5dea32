"""What the program writes on a terminal: every text goes through `printable`, and none of it is rich's markup."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from shared.text import printable


class TextConsole(Console):
    """rich's console for texts that may come from anywhere: `[bold]` is shown as it stands, and so is an escape."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"markup": False, "emoji": False, **options})

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """rich's own rendering; what is text in it is made printable, and what rich itself orders stays."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


def say(text: str = "", err: bool = False, nl: bool = True) -> None:
    """Print a text on stdout or stderr. nl: whether a newline follows."""
    typer.echo(printable(text), err=err, nl=nl)
