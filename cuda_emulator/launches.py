"""Intercept a launch of a program: the kernel, its grid and block, and the arguments at that moment.

    launch, seen = catch(lambda: module.main(), lambda kernel: kernel.__name__ == "scale")

The program runs up to the wanted launch and is ended there. That launch does not happen, so its arguments have the
values that the kernel would have read. All earlier launches happen as usual.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .runtime.dispatcher import Kernel


@dataclass(frozen=True)
class Launch:
    """The launch kernel[grid, block, 0, sharedmem](*arguments). name: the name to show"""

    name: str
    kernel: Any
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: tuple[Any, ...]
    sharedmem: int = 0


class _Reached(BaseException):
    """Ends the program at the wanted launch. It is no Exception, so that the program does not catch it."""


def catch(
    program: Callable[[], object], wanted: Callable[[Any], bool], number: int = 1
) -> tuple[Launch | None, dict[str, int]]:
    """Run the program up to a launch.

    wanted: whether a kernel is the wanted one; number: the number of its launch, from 1
    Returns (the launch, or None if the program ended before; {name of a kernel: its number of launches}).
    """
    if number < 1:
        raise ValueError(f"launch: expected a number of at least 1, got {number}")
    caught: list[Launch] = []
    seen: dict[str, int] = {}
    left = number

    def before_launch(kernel: Any, grid: Any, block: Any, dynamic_bytes: int, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        name = kernel.py_func.__name__
        seen[name] = seen.get(name, 0) + 1
        if wanted(kernel):
            left -= 1
            if left == 0:
                caught.append(Launch(name, kernel, grid, block, arguments, dynamic_bytes))
                raise _Reached

    with _called_before_launches(before_launch), contextlib.suppress(_Reached):
        program()
    return (caught[0] if caught else None), seen


@contextlib.contextmanager
def _called_before_launches(function: Callable[..., None]) -> Iterator[None]:
    """Within the `with`, call `function` before each launch of the emulator, with the arguments of Kernel.run."""
    run = Kernel.run

    def intercepted(kernel: Any, *launch: Any) -> None:
        function(kernel, *launch)
        run(kernel, *launch)

    Kernel.run = intercepted  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        Kernel.run = run  # type: ignore[method-assign]
