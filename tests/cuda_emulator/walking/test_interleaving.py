"""A barrier taken away: the order of the warps that gives a wrong number, and which access got it from whom."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_emulator import cuda
from cuda_emulator.walking.interleaving import NoRace, Race, find_race
from cuda_emulator.walking.walked_launch import Launched

SIDE = 8


@cuda.jit
def product(a, b, c):
    tile_a = cuda.shared.array((SIDE, SIDE), np.float32)
    tile_b = cuda.shared.array((SIDE, SIDE), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = np.float32(0)
    start = 0
    while start < a.shape[1]:
        tile_a[y, x] = a[y, start + x]
        tile_b[y, x] = b[start + y, x]
        cuda.syncthreads()  # the tiles are complete
        for k in range(SIDE):
            total += tile_a[y, k] * tile_b[k, x]
        cuda.syncthreads()  # nobody reads them any more
        start += SIDE
    c[y, x] = total
    cuda.syncthreads()  # nobody needs this one


@cuda.jit
def neighbours(x, out):
    tile = cuda.shared.array(32, np.float32)
    i = cuda.threadIdx.x
    tile[i] = x[i]
    cuda.syncthreads()
    out[i] = tile[i ^ 1]


def barrier(kernel: object, comment: str) -> frozenset[tuple[str, int]]:
    source = kernel.source  # type: ignore[attr-defined]
    lines = source.text.splitlines()
    number = next(i for i, line in enumerate(lines) if "syncthreads" in line and comment in line)
    return frozenset({(source.filename, source.first_line + number)})


@pytest.fixture(scope="module")
def launched() -> Launched:
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape).astype(np.float32) for shape in ((SIDE, 2 * SIDE), (2 * SIDE, SIDE)))
    return Launched(product, 1, (SIDE, SIDE), (a, b, np.zeros((SIDE, SIDE), np.float32)))


def right_and_wrong(launched: Launched, race: Race) -> tuple[float, float]:
    values = launched.values()
    expected = (values["a"].astype(np.float64) @ values["b"]).ravel()[race.place]
    assert float(race.right) == pytest.approx(expected, rel=1e-5)  # type: ignore[arg-type]
    return float(race.right), float(race.wrong)  # type: ignore[arg-type]


def test_without_the_first_barrier_a_warp_reads_a_tile_before_it_is_complete(launched: Launched) -> None:
    race = find_race(launched, 0, barrier(product, "complete"))
    assert isinstance(race, Race)
    right, wrong = right_and_wrong(launched, race)
    assert np.isfinite(wrong)
    assert abs(right - wrong) > 1e-3
    assert race.early
    assert race.missed is not None
    assert race.missed.step > race.read.step
    assert race.walk.arrays[race.read.array].space == "shared"
    # Whoever was to write it is of another warp than the reader.
    assert race.missed.thread // 32 != race.read.thread // 32
    # The value that it got is what stood there: the tile of the iteration before.
    assert race.seen is not None
    assert race.seen.value == race.read.value != race.expected
    assert race.missed.value == race.expected


def test_without_the_second_barrier_a_warp_overwrites_a_tile_that_another_still_reads(launched: Launched) -> None:
    race = find_race(launched, 0, barrier(product, "reads them"))
    assert isinstance(race, Race)
    right, wrong = right_and_wrong(launched, race)
    assert abs(right - wrong) > 1e-3
    assert not race.early
    assert race.seen is not None
    assert race.seen.thread // 32 != race.read.thread // 32
    assert race.seen.step < race.read.step


def test_a_barrier_without_a_conflict_around_it_can_go(launched: Launched) -> None:
    assert find_race(launched, 0, barrier(product, "needs this one")) == NoRace(0, 0)


def test_within_a_warp_a_single_thread_runs_ahead() -> None:
    alone = Launched(neighbours, 1, 32, (np.arange(32, dtype=np.float32), np.zeros(32, np.float32)))
    race = find_race(alone, 0, barrier(neighbours, ""))
    assert isinstance(race, Race)
    assert len(race.ahead) == 1
    assert race.early


def test_with_its_barriers_no_order_of_the_warps_changes_the_result(launched: Launched) -> None:
    right = launched.walk()
    groups = [list(range(32, 64)), list(range(32))]
    other = launched.walk(groups=lambda phase: groups)
    np.testing.assert_array_equal(other.arrays[2].after, right.arrays[2].after)
    assert find_race(launched, 0, frozenset()) == NoRace(0, 0)
