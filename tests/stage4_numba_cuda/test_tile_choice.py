"""Which tile a product takes, by a pure function of its shape and of how many multiprocessors there are."""

import pytest

from stage4_numba_cuda import launch
from stage4_numba_cuda.tile_choice import CANDIDATES, FITTED, busiest, fastest

MEASURED = {
    512: {"narrow_tile": 9.1, "small_tile": 8.3, "wide_tile": 2.9},
    1024: {"narrow_tile": 32.7, "small_tile": 37.3, "wide_tile": 11.7},
    1536: {"narrow_tile": 32.9, "small_tile": 34.3, "wide_tile": 26.6},
    2048: {"narrow_tile": 38.3, "small_tile": 43.7, "wide_tile": 46.6},
}
"""TFLOP/s of kernels with these tiles on an H100 (132 multiprocessors), 2026-11-22, for square products."""


@pytest.mark.parametrize("size", MEASURED)
def test_choice_on_an_h100_is_within_five_percent_of_what_was_fastest_there(size: int) -> None:
    speeds = MEASURED[size]
    assert speeds[fastest(size, size, "float32", 132, FITTED)] >= 0.95 * max(speeds.values())


def test_choice_depends_on_the_device() -> None:
    # 40 multiprocessors are busy with 32 large blocks; of 132 they would leave 100 idle.
    assert fastest(1024, 1024, "float32", 32) == "wide_tile"
    assert fastest(1024, 1024, "float32", 132) == "small_tile"


def test_whole_waves_are_counted_by_the_busiest_multiprocessor() -> None:
    tile = CANDIDATES["small_tile"]
    full = tile.rows * tile.columns / tile.speed
    assert busiest(tile, 64, 128 * 132, 132) == full
    assert busiest(tile, 64, 128 * 132 + 1, 132) == 2 * full
    assert busiest(tile, 1, 1, 132) == full


def test_narrow_results_take_narrow_tiles() -> None:
    assert fastest(4096, 10, "float32", 132) == "tiled_16"
    assert fastest(4096, 100, "float32", 132) == "narrow_tile"


def test_float64_has_no_wide_tile() -> None:
    assert fastest(8192, 8192, "float64", 132) == "small_tile"


def test_a_tile_that_could_not_be_launched_is_not_chosen() -> None:
    rows = 64 * launch.MOST_DOWN
    assert CANDIDATES[fastest(rows, 100, "float32", 132)].rows == 64
    assert fastest(rows + 1, 100, "float32", 132) == "wide_tile"
