"""Every test kernel, in every mode, gives what NumPy gives in float64: at sizes of one, primes, one past the block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cuda_emulator import cuda, options
from tests.cuda_emulator.emulator_kernels import all_examples
from tests.cuda_emulator.emulator_kernels.elementwise import add_guarded
from tests.cuda_emulator.emulator_kernels.example import Example, check, poisoned
from tests.wide import wide

EXAMPLES = all_examples()

MODES: dict[str, dict[str, Any]] = {
    "compiled": {"threads": 1},
    "parallel": {"threads": 2},
    "check": {"check": True},
    "unchecked": {"bounds": False, "threads": 1},
    "step": {"step": True},
}
#: These compile every kernel once more.
EXPENSIVE_MODES = ("check", "unchecked")
#: Seconds are what it costs to compile a kernel; these are much like another, so they are wide.
ALIKE = {
    *("matmul.naive_rows_along_x", "matmul.tiled_32", "matmul.transposed_left", "elementwise.add_while_stride"),
    *("elementwise.sgd_momentum", "reductions.sum_tree", "reductions.bias_gradient", "warps.votes", "warps.shuffles"),
    *("scans.scan_one_buffer", "images.heat_step", "images.rotate_phases", "images.median_3x3"),
    *("control.return_after_barrier", "control.first_at_least", "control.standardise_rows"),
    *("language.with_options", "language.other_layouts", "language.rows_as_views", "randomness.normal_draws"),
    *("reductions.softmax_cross_entropy", "reductions.sum_block", "reductions.sum_shuffle", "scans.scan_shuffle"),
    *(
        "scans.scan_two_buffers",
        "scans.bitonic_sort",
        "warps.filter_active",
        "warps.until_all_are_done",
        "warps.compact",
    ),
    *("warps.count_above", "warps.count_keys", "warps.matched_all", "control.continue_before_barrier"),
    *("control.break_at_barrier", "language.precedence", "images.conv2d", "images.mandelbrot", "elementwise.adam"),
    *("elementwise.integer_types", "matmul.transposed_right", "randomness.estimate_pi", "warps.half_warps"),
    *("control.threads_part_ways", "images.planes", "images.smooth", "reductions.largest_and_place", "matmul.naive"),
    "elementwise.mathematics",
}
#: Python runs these line by line for more than a second.
SLOW_STEPS = {"matmul.tiled_32", "matmul.register_blocked"}
#: Without bounds checks a kernel is the same with less in it: a short run has these three.
UNCHECKED = {"matmul.tiled_16", "elementwise.move_particles", "scans.every_atomic"}


def is_wide(mode: str, name: str) -> bool:
    """Whether a short run leaves this out: the modes that compile once more have only a few kernels in it."""
    if mode in EXPENSIVE_MODES:
        return name not in UNCHECKED
    return name in SLOW_STEPS if mode == "step" else name in ALIKE


def runs() -> list[Any]:
    """(mode, example) for every mode and the examples that are run in it, modes that share kernels side by side."""
    return [
        pytest.param(mode, name, id=f"{name}-{mode}", marks=[wide] if is_wide(mode, name) else [])
        for mode in MODES
        for name, example in EXAMPLES.items()
        if mode != "step" or example.step_sizes
    ]


def run(example: Example, size: Any, name: str) -> None:
    """One launch on arrays of its own, and a look at all of its arguments. Check mode must not accuse it."""
    launch = example.launch(size, np.random.default_rng(7))
    arguments = tuple(each.copy(order="K") if isinstance(each, np.ndarray) else each for each in launch.arguments)
    example.kernel[launch.grid, launch.block, 0, launch.dynamic_bytes](*arguments)
    check(launch, arguments, example.tolerance, f"{name} at size {size}")


@pytest.mark.filterwarnings("ignore::cuda_emulator.errors.KernelWarning")
@pytest.mark.parametrize(("mode", "name"), runs())
def test_kernel_gives_what_numpy_gives(mode: str, name: str) -> None:
    example = EXAMPLES[name]
    with options(**MODES[mode]):
        for size in example.step_sizes if mode == "step" else example.sizes:
            run(example, size, name)


def test_parallel_blocks_give_the_bits_that_one_core_gives() -> None:
    example = EXAMPLES["matmul.tiled_16"]
    results = []
    for threads in (1, 2):
        launch = example.launch((33, 65, 17), np.random.default_rng(7))
        with options(threads=threads):
            example.kernel[launch.grid, launch.block](*launch.arguments)
        results.append(launch.arguments[2])
    np.testing.assert_array_equal(results[0], results[1])


def test_device_arrays_are_copies_that_have_to_be_fetched() -> None:
    a = np.arange(100, dtype=np.float32)
    out = poisoned(100)
    device_a, device_out = cuda.to_device(a), cuda.to_device(out)
    add_guarded[1, 128](device_a, device_a, device_out)
    assert np.isnan(out).all()
    np.testing.assert_array_equal(device_out.copy_to_host(), 2 * a)
    assert np.isnan(out).all()
    device_out.copy_to_host(out)
    np.testing.assert_array_equal(out, 2 * a)


@pytest.mark.parametrize("size", [1, 1023, 1024, 4099])
def test_forall_covers_every_element(size: int) -> None:
    a = np.arange(size, dtype=np.float32)
    out = poisoned(size)
    add_guarded.forall(size)(a, a, out)
    np.testing.assert_array_equal(out, 2 * a)
