"""Every test kernel, in every mode, gives what NumPy gives in float64: at sizes of one, primes, one past the block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cuda_emulator import options
from cuda_emulator.walking.walk import Block, walk_block
from cuda_emulator.walking.walked_launch import Launched
from tests.cuda_emulator.emulator_kernels import EMULATED, MODULES, all_examples, grids
from tests.cuda_emulator.emulator_kernels.example import Example, Launch, check
from tests.wide import wide

EXAMPLES = all_examples((*MODULES, *EMULATED))

MODES: dict[str, dict[str, Any]] = {
    "compiled": {"threads": 1},
    "parallel": {"threads": 2},
    "check": {"check": True},
    "unchecked": {"bounds": False, "threads": 1},
    "step": {"step": True},
    "walk": {},
}
#: These compile every kernel once more: a short run has these kernels in them.
EXPENSIVE_MODES = {
    "check": {
        "matmul.tiled_16",
        "scans.every_atomic",
        "programs.loops_with_else",
        "grids.rotate",
        "edges.leaves_early",
    },
    "unchecked": {"matmul.tiled_16", "elementwise.move_particles", "scans.every_atomic"},
}
#: Seconds are what it costs to compile a kernel; these are much like another, so a short run only steps and walks.
ALIKE = {
    *("scans.scan_shuffle", "scans.bitonic_sort", "reductions.sum_block", "images.rotate_phases", "images.smooth"),
    *("warps.votes", "warps.shuffles", "warps.half_warps", "warps.filter_active", "warps.count_keys"),
    *("control.break_at_barrier", "control.threads_part_ways", "control.standardise_rows", "elementwise.mathematics"),
    *("elementwise.integer_types", "language.precedence", "language.other_layouts", "language.rows_as_views"),
    *("grids.rotate_in_turns", "grids.rotate_with_continue", "grids.rotate_by_some", "grids.rotate_blocks"),
    "edges.continues_in_loops_that_vote",
}
#: Python runs it line by line for more than a second.
SLOW_STEPS = {"matmul.register_blocked"}
#: A walk takes no views with gaps and no default values, and shows one block alone.
NO_WALK = {"language.other_layouts", "programs.default_values", "programs.default_values_given"}
NO_WALK |= {f"grids.{name}" for name in grids.EXAMPLES}


def is_wide(mode: str, name: str) -> bool:
    """Whether a short run leaves this out."""
    if mode in EXPENSIVE_MODES:
        return name not in EXPENSIVE_MODES[mode]
    return name in (SLOW_STEPS if mode in ("step", "walk") else ALIKE)


def runs() -> list[Any]:
    """(mode, example) for every mode and the examples that are run in it, modes that share kernels side by side."""
    return [
        pytest.param(mode, name, id=f"{name}-{mode}", marks=[wide] if is_wide(mode, name) else [])
        for mode in MODES
        for name, example in EXAMPLES.items()
        if (example.step_sizes or mode != "step") and not (mode == "walk" and name in NO_WALK)
    ]


def walk(kernel: Any, launch: Launch, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """What the arguments hold after a walk through all blocks."""
    launched = Launched(kernel, launch.grid, launch.block, arguments, launch.dynamic_bytes)
    values = launched.fresh()
    for number in range(launched.blocks):
        shape = launched.grid, launched.block, number, launched.dynamic_bytes
        walked = walk_block(Block(kernel.source, kernel.parameters, *shape), values, watched=range(0))
        assert (walked.fault, walked.cut) == ("", False)
    return tuple(values)


def run(example: Example, size: Any, name: str, mode: str) -> None:
    """One launch on arrays of its own, and a look at all of its arguments. Check mode must not accuse it."""
    launch = example.launch(size, np.random.default_rng(7))
    arguments = tuple(each.copy(order="K") if isinstance(each, np.ndarray) else each for each in launch.arguments)
    if mode == "walk":
        arguments = walk(example.kernel, launch, arguments)
    else:
        example.kernel[launch.grid, launch.block, 0, launch.dynamic_bytes](*arguments)
    check(launch, arguments, example.tolerance, f"{name} at size {size}")


@pytest.mark.filterwarnings("ignore::cuda_emulator.errors.KernelWarning")
@pytest.mark.parametrize(("mode", "name"), runs())
def test_kernel_gives_what_numpy_gives(mode: str, name: str) -> None:
    example = EXAMPLES[name]
    with options(**MODES[mode]):
        for size in example.step_sizes or example.sizes[:1] if mode in ("step", "walk") else example.sizes:
            run(example, size, name, mode)


def test_parallel_blocks_give_the_bits_that_one_core_gives() -> None:
    example = EXAMPLES["matmul.tiled_16"]
    results = []
    for threads in (1, 2):
        launch = example.launch((33, 65, 17), np.random.default_rng(7))
        with options(threads=threads):
            example.kernel[launch.grid, launch.block](*launch.arguments)
        results.append(launch.arguments[2])
    np.testing.assert_array_equal(results[0], results[1])
