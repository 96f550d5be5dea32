"""Launches in step mode, and what step mode says when it refuses one, for the tests of step mode."""

import pytest

from cuda_emulator import KernelError
from cuda_emulator.compiler.reading.source import FunctionSource
from cuda_emulator.stepping.step import run_kernel

ORDERS = ["forward", "reverse", 0, 1]


def step(kernel, grid, block, *arguments, dynamic_bytes=0, **options_of_step):
    """Launch in step mode."""
    extents = [(*shape, 1, 1)[:3] if isinstance(shape, tuple) else (shape, 1, 1) for shape in (grid, block)]
    run_kernel(FunctionSource(kernel.py_func), arguments, *extents, dynamic_bytes, **options_of_step)


def line_of(kernel, text):
    """The line of the kernel's file that holds this text."""
    source = FunctionSource(kernel.py_func)
    return source.first_line + next(i for i, line in enumerate(source.text.splitlines()) if text in line)


def refusal(kernel, grid, block, *arguments, at, written_in=None, **options_of_step):
    """The sentence that step mode refuses the kernel with; it must point to the line with the text `at`.

    written_in: the device function with that line; None for the kernel itself
    """
    with pytest.raises(KernelError) as caught:
        step(kernel, grid, block, *arguments, **options_of_step)
    file = kernel.py_func.__code__.co_filename
    assert caught.value.filename == file
    assert caught.value.line == line_of(written_in or kernel, at)
    assert str(caught.value).startswith(f"{file}:{caught.value.line}: ")
    return caught.value.sentence
