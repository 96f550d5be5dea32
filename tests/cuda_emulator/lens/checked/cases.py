"""One launch of a kernel, with what check mode has to say about it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuda_emulator import cuda


@dataclass(frozen=True)
class Case:
    """A launch.

    arguments: makes them anew for each launch; says: a part of the error; "" for a correct kernel
    marked: gives the function that holds the mistake, if the kernel itself does not
    """

    kernel: Any
    grid: Any
    block: Any
    arguments: Callable[[], tuple[Any, ...]]
    says: str = ""
    dynamic_bytes: int = 0
    marked: Callable[[], Any] | None = None

    @property
    def line(self) -> int:
        """The line of the mistake, which carries the comment `# here`."""
        lines, first = inspect.getsourcelines((self.marked() if self.marked else self.kernel).py_func)
        found = [first + number for number, line in enumerate(lines) if line.rstrip().endswith("# here")]
        assert len(found) == 1, (self.kernel, found)
        return found[0]

    def launch(self) -> tuple[Any, ...]:
        """Launch it once and return its arguments."""
        given = self.arguments()
        self.kernel[self.grid, self.block, 0, self.dynamic_bytes](*given)
        return given


class Collection(dict[str, Case]):
    """The cases of a file, by the names of their kernels."""

    def case(
        self, grid: Any, block: Any, *makers: Callable[[], Any], **more: Any
    ) -> Callable[[Callable[..., None]], Callable[..., None]]:
        """A decorator that makes a kernel of a function and adds its launch.

        makers: they make the arguments; more: further fields of Case
        """

        def keep(function: Callable[..., None]) -> Callable[..., None]:
            name = function.__name__
            assert name not in self, name
            self[name] = Case(cuda.jit(function), grid, block, lambda: tuple(make() for make in makers), **more)
            return function

        return keep


def numbers(*shape: int) -> Callable[[], np.ndarray]:
    """Maker of random float32 numbers between -1 and 1."""
    return lambda: np.random.default_rng(5).uniform(-1, 1, shape).astype(np.float32)


def zeros(*shape: int, dtype: Any = np.float32) -> Callable[[], np.ndarray]:
    """Maker of an array of zeros."""
    return lambda: np.zeros(shape, dtype)


def fresh(*shape: int, dtype: Any = np.float32) -> Callable[[], Any]:
    """Maker of an array of the device that nobody has written."""
    return lambda: cuda.device_array(shape, dtype)


def keys(size: int, below: int) -> Callable[[], np.ndarray]:
    """Maker of random int32 numbers from 0 to below - 1."""
    return lambda: np.random.default_rng(6).integers(0, below, size).astype(np.int32)
