"""Catching a launch on its way: the kernel, its grid and block, and the arguments as they are at that moment.

    launch, seen = catch(lambda: module.main(), lambda kernel: kernel.__name__ == "scale")

The program runs as far as the launch that is wanted, and no further: that launch is not made, so its arguments are
what the kernel would have found. All launches before it are made as usual.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from cuda_emulator.runtime.dispatcher import Kernel


@dataclass(frozen=True)
class Launch:
    """kernel[grid, block, 0, sharedmem](*arguments). name: for people"""

    name: str
    kernel: Any
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: tuple[Any, ...]
    sharedmem: int = 0


class _Reached(BaseException):
    """Ends the program at the launch that is wanted. Not an Exception, so that no handler of the program's meets it."""


def catch(
    program: Callable[[], object], wanted: Callable[[Any], bool], number: int = 1
) -> tuple[Launch | None, dict[str, int]]:
    """Run the program up to a launch.

    wanted: whether a kernel is the one; number: which of its launches, from 1
    Returns the launch, None where the program ended before, and how often each kernel was launched until then, by name.
    """
    if number < 1:
        raise ValueError(f"launch: expected a number from 1 on, got {number}")
    caught: list[Launch] = []
    seen: dict[str, int] = {}
    left = number

    def look(kernel: Any, grid: Any, block: Any, dynamic_bytes: int, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        name = kernel.py_func.__name__
        seen[name] = seen.get(name, 0) + 1
        if wanted(kernel):
            left -= 1
            if left == 0:
                caught.append(Launch(name, kernel, grid, block, arguments, dynamic_bytes))
                raise _Reached

    with _told_of_launches(look), contextlib.suppress(_Reached):
        program()
    return (caught[0] if caught else None), seen


@contextlib.contextmanager
def _told_of_launches(look: Callable[..., None]) -> Iterator[None]:
    """Calls `look` before each launch of the emulator, in this process, with what Kernel.run gets."""
    run = Kernel.run

    def looked_at(kernel: Any, *launch: Any) -> None:
        look(kernel, *launch)
        run(kernel, *launch)

    Kernel.run = looked_at  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        Kernel.run = run  # type: ignore[method-assign]
