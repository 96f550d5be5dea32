"""Mistakes that learners make, each put into a kernel that was right: the lens finds it, on its line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cuda_emulator import cuda
from cuda_emulator.lens.findings import findings
from cuda_emulator.lens.profile import Profile, Race
from tests.cuda_emulator.lens import lens_kernels
from tests.cuda_emulator.lens.lens_kernels import looked_at


def line_of(text: str, module: Any = None) -> int:
    """The one line of a file (this one, if none is given) that holds a text outside of this function's callers."""
    path = __file__ if module is None else module.__file__
    with open(path, encoding="utf-8") as file:
        lines = [number for number, line in enumerate(file, 1) if line.strip().startswith(text)]
    assert len(lines) == 1, (text, lines)
    return lines[0]


def sides(race: Race) -> tuple[int, int]:
    """The two lines of a race, in the order of the source."""
    return tuple(sorted((race.first.site.line, race.second.site.line)))  # type: ignore[return-value]


# ---------------------------------------------------------------- barriers of the tiled product


def product(first: bool, second: bool) -> Profile:
    a, b, c = (np.ones((32, 32), np.float32) * np.arange(32, dtype=np.float32) for _ in range(3))
    return looked_at(lens_kernels.tiled_matmul(16, first, second), (2, 2), (16, 16), a, b, c)


READS = line_of("total += tile_a[ty, k]", lens_kernels)


@pytest.mark.parametrize(
    ("first", "second", "cure"),
    [
        (False, True, "before line {reads}."),
        (True, False, "at the end of the loop of line {loop}, before its next round: line {last} of the next round"),
        (False, False, "before line {reads}, and a second one at the end of the loop of line {loop}"),
    ],
)
def test_the_remedy_of_both_tiles_is_one_barrier_at_its_line(first: bool, second: bool, cure: str) -> None:
    (found,) = findings(product(first, second))
    assert (found.kind, found.level) == ("race", "error")
    assert "tile_a" in found.title
    assert "tile_b" in found.title
    loop = line_of("for start in range(0, a.shape[1], tile)", lens_kernels)
    last = line_of("tile_b[ty, tx] =", lens_kernels)
    assert f"Put cuda.syncthreads() {cure.format(reads=READS - 1, loop=loop, last=last)}" in found.remedy


# ---------------------------------------------------------------- an index below zero


@cuda.jit
def left_neighbours(image, out):  # type: ignore[no-untyped-def]
    x, y = cuda.grid(2)
    out[y, x] = image[y, -1] + image[y, x - 1]  # the left edge


@cuda.jit
def last_columns(image, out):  # type: ignore[no-untyped-def]
    y = cuda.grid(1)
    out[y] = image[y, -1]


def test_a_computed_negative_index_is_a_fault_on_its_line_and_a_literal_one_is_meant() -> None:
    image = np.zeros((4, 8), np.float32)
    profile = looked_at(left_neighbours, 1, (8, 4), image, np.zeros_like(image))
    assert "image[0, -1] counts from the end of image, which has shape (4, 8)" in profile.fault
    assert profile.fault_line == line_of("out[y, x] = image[y, -1] + image[y, x - 1]  # the left edge")
    assert looked_at(last_columns, 1, 4, image, np.zeros(4, np.float32)).fault == ""


# ---------------------------------------------------------------- access patterns


def test_a_transposed_tile_is_told_to_pad_its_rows() -> None:
    a = np.zeros((32, 32), np.float32)
    profile = looked_at(lens_kernels.transposes, 1, (32, 32), a, a.copy(), a.copy(), a.copy())
    remedies = {each.kind: each.remedy for each in findings(profile)}
    assert "Pad the row to 33: `cuda.shared.array((32, 33), np.float32)` in line" in remedies["bank conflict"]
    assert "Stage it through a shared tile" in remedies["uncoalesced access"]


# ---------------------------------------------------------------- updates of one element


@cuda.jit
def counted_wrongly(x, total):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    total[0] += x[i]


def test_an_update_without_an_atomic_is_a_race_within_and_between_blocks() -> None:
    profile = looked_at(counted_wrongly, 2, 32, np.ones(64, np.float32), np.zeros(1, np.float32))
    line = line_of("total[0] += x[i]")
    assert {sides(race) for race in profile.races} == {(line, line)}
    assert {race.between_blocks for race in profile.races} == {True, False}
    assert {(race.array, race.index) for race in profile.races} == {("total", (0,))}
    assert "write after write" in {race.kind for race in profile.races}
    (found,) = findings(profile)  # six entries of one race are one
    assert (found.kind, found.lines) == ("lost update", ((__file__, line),))
    assert f"Use `cuda.atomic.add(total, 0, x[i])` in place of line {line}" in found.remedy
    assert "A barrier does not help" in found.remedy


# ---------------------------------------------------------------- a shift in place


@cuda.jit
def shifted_in_place(x):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    if i + 1 < x.size:
        x[i] = x[i + 1]  # in place


def test_a_shift_in_place_is_a_race() -> None:
    profile = looked_at(shifted_in_place, 2, 64, np.arange(128, dtype=np.float32))
    line = line_of("x[i] = x[i + 1]  # in place")
    assert {(race.array, sides(race)) for race in profile.races} == {("x", (line, line))}
    assert {race.between_blocks for race in profile.races} == {True, False}
    (found,) = findings(profile)
    assert "Write to another array than x" in found.remedy


# ---------------------------------------------------------------- shared memory that nobody wrote


@cuda.jit
def half_filled(x, out):  # type: ignore[no-untyped-def]
    tile = cuda.shared.array(64, np.float32)
    t = cuda.threadIdx.x
    if t < 32:
        tile[t] = x[t]
    cuda.syncthreads()
    out[t] = tile[t]  # half of it


def test_a_tile_that_is_filled_in_part_is_read_uninitialised() -> None:
    profile = looked_at(half_filled, 1, 64, np.zeros(64, np.float32), np.zeros(64, np.float32))
    (found,) = profile.uninitialised
    assert (found.site.line, found.array, found.index, found.times) == (
        line_of("out[t] = tile[t]  # half of it"), "tile", (32,), 32,
    )  # fmt: skip
    assert not profile.races
    (found_too, *_) = findings(profile)
    assert found_too.kind == "uninitialised read"
    writes = line_of("tile[t] = x[t]")
    assert f"line {writes} may leave some out" in found_too.remedy
