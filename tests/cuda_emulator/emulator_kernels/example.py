"""How a kernel is launched in a test, and what must come out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Size = int | tuple[int, ...]


@dataclass(frozen=True)
class Launch:
    """One launch.

    grid, block: blocks and threads a block, as in kernel[grid, block]
    arguments: what the kernel gets; arrays are the launch's own
    expected: argument's position -> what must be in it afterwards; float64 (or complex128) for floats; None: anything
    sorted: positions of arguments whose order is up to the threads: compared after sorting
    dynamic_bytes: dynamic shared memory
    """

    grid: Size
    block: Size
    arguments: tuple[Any, ...]
    expected: dict[int, np.ndarray | None]
    sorted: tuple[int, ...] = ()
    dynamic_bytes: int = 0


@dataclass(frozen=True)
class Example:
    """One kernel and its launches.

    kernel: what @cuda.jit returned
    launch: makes the launch for a size
    sizes: the sizes to run; step_sizes: those that step mode runs (it is slow)
    tolerance: largest |got - expected| / (1 + largest |expected|)
    """

    kernel: Any
    launch: Callable[[Any, np.random.Generator], Launch]
    sizes: tuple[Any, ...]
    step_sizes: tuple[Any, ...] = field(default=())
    tolerance: float = 1e-5


def fixed(
    kernel: Any,
    block: Size,
    arguments: tuple[Any, ...],
    expected: dict[int, Any],
    *,
    grid: Size = 1,
    dynamic_bytes: int = 0,
    tolerance: float = 0,
) -> Example:
    """The example of a kernel that is launched in one way only."""
    arrays = {position: None if values is None else np.asarray(values) for position, values in expected.items()}

    def launch(size: None, generator: np.random.Generator) -> Launch:
        return Launch(grid, block, arguments, arrays, dynamic_bytes=dynamic_bytes)

    return Example(kernel, launch, (None,), (None,), tolerance)


def poisoned(shape: Size, dtype: Any = np.float32) -> np.ndarray:
    """An array to be filled by the kernel: NaN, or for integers a value that no test expects."""
    if np.dtype(dtype).kind in "fc":
        return np.full(shape, np.nan, dtype)
    return np.full(shape, np.iinfo(dtype).max - 7, dtype)


def normal(generator: np.random.Generator, *shape: int) -> np.ndarray:
    """float32, normally distributed."""
    return generator.standard_normal(shape).astype(np.float32)


def blocks_for(size: int, block: int) -> int:
    """How many blocks cover `size`; at least one."""
    return max(1, -(-size // block))


def check(launch: Launch, arguments: tuple[Any, ...], tolerance: float, name: str) -> None:
    """Raise AssertionError unless `arguments` hold what was expected and what was only read is as it was."""
    for position, (got, given) in enumerate(zip(arguments, launch.arguments, strict=True)):
        if not isinstance(given, np.ndarray):
            continue
        label = f"{name}, argument {position}"
        expected = launch.expected.get(position, given)
        if expected is None:
            continue
        if expected is given:
            np.testing.assert_array_equal(got, given, err_msg=f"{label} was only to be read")
            continue
        if position in launch.sorted:
            got, expected = np.sort(got), np.sort(expected)
        assert got.shape == expected.shape, label
        if got.dtype.kind in "fc":
            scale = 1 + np.nanmax(np.abs(expected), initial=0)
            np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance * scale, err_msg=label)
        else:
            np.testing.assert_array_equal(got, expected, err_msg=label)
