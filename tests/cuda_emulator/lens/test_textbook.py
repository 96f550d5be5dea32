"""What the textbooks say about coalescing, banks and divergence comes out of real kernels, number by number."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from cuda_emulator import cuda
from cuda_emulator.lens.profile import Access, Profile
from tests.cuda_emulator.lens import lens_kernels as kernels
from tests.cuda_emulator.lens.lens_kernels import looked_at

# One line each: what is looked at, and the number a textbook gives.


@cache
def walk(stride: int, offset: int) -> Profile:
    """One warp reads every type with a stride."""
    arrays = [cuda.to_device(np.zeros(2048, kind)) for kind in ("f4", "f8", "i1", "i2", "c8")]
    return looked_at(kernels.walk, 1, 32, *arrays, np.zeros(32, np.float64), stride, offset)


@pytest.mark.parametrize(
    ("array", "stride", "offset", "sectors"),
    [
        ("singles", 1, 0, 4),
        ("singles", 2, 0, 8),
        ("singles", 8, 0, 32),
        ("singles", 32, 0, 32),
        ("singles", 0, 0, 1),
        ("singles", -1, 31, 4),
        ("singles", 1, 1, 5),
        ("singles", 1, 8, 4),
        ("doubles", 1, 0, 8),
        ("doubles", 4, 0, 32),
        ("doubles", 1, 1, 9),
        ("bytes_", 1, 0, 1),
        ("bytes_", 32, 0, 32),
        ("bytes_", 1, 1, 2),
        ("shorts", 1, 0, 2),
        ("shorts", 16, 0, 32),
        ("pairs", 1, 0, 8),
    ],
)
def test_sectors_of_a_walk(array: str, stride: int, offset: int, sectors: int) -> None:
    access = walk(stride, offset).access("load", array)
    assert (access.requests, access.lanes, access.sectors) == (1, 32, sectors)


@cache
def planes() -> Profile:
    a = np.zeros((32, 32), np.float32)
    cube = np.zeros((32, 32, 32), np.float32)
    fortran = np.asfortranarray(a)
    points, coordinates = np.zeros((32, 3), np.float32), np.zeros((3, 32), np.float32)
    return looked_at(kernels.planes, 1, 32, a, fortran, points, coordinates, cube, np.zeros(32, np.float32))


@pytest.mark.parametrize(
    ("array", "text", "sectors"),
    [
        ("a", "a[3, i]", 4),
        ("a", "a[i, 3]", 32),
        ("a", "a[i, i]", 32),
        ("fortran", "fortran[3, i]", 32),
        ("fortran", "fortran[i, 3]", 4),
        ("points", "points[i, 0]", 12),
        ("coordinates", "coordinates[0, i]", 4),
        ("cube", "cube[0, 0, i]", 4),
        ("cube", "cube[0, i, 0]", 32),
        ("cube", "cube[i, 0, 0]", 32),
    ],
)
def test_sectors_of_rows_columns_and_structures(array: str, text: str, sectors: int) -> None:
    assert planes().access("load", array, text).sectors == sectors


@cache
def banks(stride: int) -> Profile:
    return looked_at(kernels.banks, 1, 32, np.zeros(32, np.float64), stride)


@pytest.mark.parametrize(
    ("array", "stride", "ways"),
    [
        ("singles", 0, 1),
        ("singles", 1, 1),
        ("singles", 2, 2),
        ("singles", 16, 16),
        ("singles", 32, 32),
        ("singles", 33, 1),
        ("doubles", 1, 1),
        ("doubles", 2, 2),
        ("doubles", 33, 1),
        ("small", 1, 1),
        ("small", 4, 1),
        ("small", 32, 8),
    ],
)
def test_bank_conflicts_of_a_stride(array: str, stride: int, ways: int) -> None:
    access = banks(stride).access("load", array, f"{array}[i * stride]")
    assert (access.requests, access.most_ways, access.ways) == (1, ways, ways)


@cache
def transposes() -> Profile:
    a = np.zeros((64, 64), np.float32)
    return looked_at(kernels.transposes, (2, 2), (32, 32), a, a.copy(), a.copy(), a.copy())


@pytest.mark.parametrize(("array", "sectors"), [("naive", 32), ("tiled", 4), ("padded", 4)])
def test_sectors_of_a_transposes_store(array: str, sectors: int) -> None:
    access = transposes().access("store", array)
    assert (access.requests, access.sectors_per_request) == (128, sectors)
    assert transposes().correct


@pytest.mark.parametrize(
    ("kind", "array", "ways"), [("store", "tile", 1), ("load", "tile", 32), ("store", "wide", 1), ("load", "wide", 1)]
)
def test_bank_conflicts_of_a_transposes_tile(kind: Any, array: str, ways: int) -> None:
    access = transposes().access(kind, array)
    assert (access.most_ways, access.ways) == (ways, ways)


@cache
def matmul(tile: int) -> Profile:
    """64 x 64 x 64, in blocks of 32 x 32, or of the tile's size."""
    a, b, c = (np.zeros((64, 64), np.float32) for _ in range(3))
    kernel = kernels.tiled_matmul(tile) if tile else kernels.naive_matmul
    side = tile or 32
    return looked_at(kernel, (64 // side, 64 // side), (side, side), a, b, c)


@pytest.mark.parametrize("array", ["a", "b"])
@pytest.mark.parametrize("tile", [16, 32])
def test_a_tile_divides_global_loads_by_its_side(tile: int, array: str) -> None:
    assert matmul(tile).access("load", array).lanes * tile == matmul(0).access("load", array).lanes == 64**3


@pytest.mark.parametrize(("tile", "in_block", "in_all"), [(0, 32, 64), (16, 1, 4), (32, 1, 2)])
def test_how_often_a_product_loads_each_element(tile: int, in_block: int, in_all: int) -> None:
    reuse = {each.array: each for each in matmul(tile).reuse}
    for array in ("a", "b"):
        assert (reuse[array].touched, reuse[array].most_loads_in_block, reuse[array].most_loads) == (
            4096,
            in_block,
            in_all,
        )


@pytest.mark.parametrize(("array", "sectors", "broadcasts"), [("a", 1, 2 * 2 * 32 * 64), ("b", 4, 0)])
def test_a_naive_product_broadcasts_a_and_reads_b_coalesced(array: str, sectors: int, broadcasts: int) -> None:
    access = matmul(0).access("load", array)
    assert (access.sectors_per_request, access.broadcasts) == (sectors, broadcasts)


@pytest.mark.parametrize(("array", "ways", "broadcast"), [("tile_a", 1, True), ("tile_b", 1, False)])
def test_a_tiled_product_has_no_bank_conflict(array: str, ways: int, broadcast: bool) -> None:
    access = matmul(32).access("load", array)
    assert (access.most_ways, access.broadcasts == access.requests) == (ways, broadcast)


@pytest.mark.parametrize(("tile", "barriers"), [(16, 2 * 4 * 16 * 8), (32, 2 * 2 * 4 * 32)])
def test_a_tiled_product_meets_twice_in_each_round(tile: int, barriers: int) -> None:
    assert sum(each.times for each in matmul(tile).collectives) == barriers
    assert len(matmul(tile).phases) == 2 * (64 // tile) + 1


@pytest.mark.parametrize("tile", [0, 16, 32])
def test_a_product_does_two_operations_for_each_step_and_is_not_accused(tile: int) -> None:
    assert matmul(tile).correct
    assert matmul(tile).flops == 2 * 64**3


@cache
def flow() -> Profile:
    """Two blocks of 64, of whose 128 threads 80 have something to do."""
    return looked_at(kernels.flow, 2, 64, np.zeros(256, np.float32), np.zeros(128, np.float32), 80)


@pytest.mark.parametrize(
    ("text", "evaluated", "divergent", "lanes", "taken"),
    [("i >= n", 4, 1, 128, 48), ("i % 2 == 0", 3, 3, 80, 40), ("i < 32", 3, 0, 80, 32)],
)
def test_branches_that_divide_warps(text: str, evaluated: int, divergent: int, lanes: int, taken: int) -> None:
    (branch,) = [each for each in flow().branches if each.site.text == text]
    assert (branch.evaluated, branch.divergent, branch.lanes, branch.taken) == (evaluated, divergent, lanes, taken)


@pytest.mark.parametrize(
    ("kind", "text", "requests", "lanes"),
    [("store", "out[i]", 3, 40), ("load", "x[i]", 3, 40), ("load", "x[i + k]", 9, 120)],
)
def test_active_lanes_of_what_part_of_a_warp_does(kind: str, text: str, requests: int, lanes: int) -> None:
    access = next(each for each in flow().accesses if each.site.text == text and each.kind == kind)
    assert (access.requests, access.lanes) == (requests, lanes)


def test_loops_of_different_lengths_divide_a_warp_once_for_each_length() -> None:
    (loop,) = [each for each in flow().branches if "i % 4" in each.site.text]
    assert (loop.evaluated, loop.divergent) == (4 * 3, 3 * 3)


@cache
def warps() -> Profile:
    counts, values, out = np.zeros(1, np.int32), np.zeros(64, np.int32), np.zeros(64, np.int32)
    return looked_at(kernels.warps, 2, 32, counts, values, out)


@pytest.mark.parametrize(("array", "sectors", "broadcasts"), [("counts", 2, 2), ("values", 8, 0)])
def test_sectors_of_atomics(array: str, sectors: int, broadcasts: int) -> None:
    access = warps().access("atomic", array)
    assert (access.requests, access.lanes, access.sectors, access.broadcasts) == (2, 64, sectors, broadcasts)


def test_collectives_are_counted_by_warps() -> None:
    assert [(each.site.kind, each.times, each.lanes) for each in warps().collectives] == [
        ("warp", 2, 64),
        ("warp", 2, 64),
        ("warp", 2, 64),
        ("barrier", 2, 64),
    ]


@cache
def spaces() -> Profile:
    x, out = np.zeros(256, np.float32), np.zeros(64, np.float32)
    return looked_at(kernels.spaces, 2, 32, x, out, dynamic_bytes=128)


def constant(text: str) -> Access:
    return spaces().access("load", "weights", text)


@pytest.mark.parametrize(("text", "passes"), [("weights[3]", 1), ("weights[t % 32]", 32)])
def test_constant_memory_serves_one_address_at_a_time(text: str, passes: int) -> None:
    assert (constant(text).space, constant(text).most_ways, constant(text).sectors) == ("constant", passes, 0)


@pytest.mark.parametrize("kind", ["store", "load"])
def test_local_memory_is_counted_and_costs_no_sectors(kind: Any) -> None:
    access = spaces().access(kind, "mine")
    assert (access.space, access.lanes, access.sectors, access.wavefronts) == ("local", 64, 0, 0)


def test_a_grid_stride_loop_stays_coalesced_and_reads_each_element_once() -> None:
    access = spaces().access("load", "x")
    assert (access.requests, access.sectors_per_request, access.efficiency) == (2 * 4, 4, 1.0)
    (reuse,) = [each for each in spaces().reuse if each.array == "x"]
    assert (reuse.touched, reuse.loads, reuse.most_loads) == (256, 256, 1)


def test_the_requests_to_choose_from_are_of_the_first_and_the_last_warp_and_round() -> None:
    """A block of 256 threads has 8 warps; each loads an element of a in 64 / 16 rounds of the tile's loop."""
    access = matmul(16).access("load", "a")
    assert {(each.warp, each.round) for each in access.examples} == {(0, 0), (0, 3), (7, 0), (7, 3)}
    assert access.example in access.examples
    assert access.shape == (64, 64)
