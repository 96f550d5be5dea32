"""A grader's checks of a profile: each passes, or says what is wrong and in which line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from numba import float32, types

from cuda_emulator import cuda
from cuda_emulator.lens import checks, profile
from cuda_emulator.lens.profile import Branch, LineOperations, Party, Race, Uninitialised
from cuda_emulator.lens.targets import Wanted, launch_of
from cuda_emulator.trace import NotTraced
from tests.cuda_emulator.lens.profile_parts import access, made, reuse, site

ROOT = Path(__file__).resolve().parents[3]
VECTORS = (types.Array(types.float32, 1, "C"),) * 2


@cuda.jit
def product(a, b, c):
    column, row = cuda.grid(2)
    total = float32(0)
    for k in range(a.shape[1]):
        total += a[row, k] * b[k, column]
    c[row, column] = total


def test_nothing_wrong_passes_every_check_and_all_of_them() -> None:
    fine = made(
        accesses=[
            access(sectors=40, ideal_sectors=40),
            access("tile", space="shared", wavefronts=4, ideal_wavefronts=4),
        ],
        branches=[Branch(site("branch"), 4, 0, 128, 100)],
        reuse=[reuse(loads=256, most_loads=1, most_loads_in_block=1, most_requests_in_block=1)],
        operations=[LineOperations("kernels.py", 5, 1280, 0, 0)],
    )
    findings = [
        checks.no_faults(fine), checks.no_races(fine), checks.no_uninitialised(fine),
        checks.reads_at_most(fine, "a", 1), checks.reads_at_most(fine, "a", 1, count="requests"),
        checks.coalesced(fine), checks.coalesced(fine, "a", 1.0), checks.no_bank_conflicts(fine),
        checks.no_divergence(fine), checks.no_divergence(fine, 5), checks.intensity_at_least(fine, 1.0),
    ]  # fmt: skip
    assert [each.message for each in findings if not each] == []
    assert checks.all_of(*findings) == checks.Finding(True, "all 11 checks passed")


def test_a_race_is_told_with_both_lines_and_threads() -> None:
    first, second = Party(site("store", line=7), 0, 3), Party(site(line=9), 0, 40)
    inside = Race("read after write", "tile", "shared", (3, 0), first, second, 5)
    between = Race("write after write", "out", "global", (0,), first, Party(site("store", line=7), 2, 0), 1)
    found = checks.no_races(made(races=[inside, between]))
    assert not found
    assert found.line == 9
    assert found.message == (
        "race: read after write of tile[3, 0], line 7 and line 9, by threads 3 and 40 of block 0; and 1 more"
    )
    assert "thread 3 of block 0 and thread 0 of block 2" in checks.no_races(made(races=[between])).message


def test_the_tiled_product_of_the_exercise_is_within_its_budget_and_the_untiled_one_is_not() -> None:
    """64 x 64 with tiles of 16: a block reads each element of a once, the four blocks of a row of tiles four times."""
    arguments = Wanted(args="a=float32[64,64] b=float32[64,64] c=float32[64,64]", grid=(4, 4), block=(16, 16))
    launch = launch_of(f"{ROOT / 'examples' / 'tiled_matmul.py'}:tiled_matmul", arguments)
    tiled = profile(launch.kernel, launch.grid, launch.block, *launch.arguments, blocks=16)
    plain = profile(product, launch.grid, launch.block, *launch.arguments, blocks=16)
    assert (
        checks.all_of(
            checks.no_races(tiled),
            checks.no_uninitialised(tiled),
            checks.reads_at_most(tiled, "a", 1),
            checks.reads_at_most(tiled, "a", 4, per="launch"),
            checks.no_bank_conflicts(tiled),
            checks.intensity_at_least(tiled, 3),
        ).message
        == "all 6 checks passed"
    )
    assert checks.reads_at_most(tiled, "a", 3, per="launch").message == (
        "an element of a is read 4 times by the launch; it may be 3 times"
    )
    found = checks.reads_at_most(plain, "a", 1)
    assert found.message == "an element of a is read 16 times by a block; it may be once"
    assert found.line == product.py_func.__code__.co_firstlineno + 5
    assert checks.reads_at_most(plain, "a", 64, per="launch")
    assert not checks.reads_at_most(plain, "a", 63, per="launch")
    assert checks.reads_at_most(plain, "a", 1, count="requests")  # 16 threads of a row read it together


def test_what_could_not_be_judged_is_in_the_message_of_races() -> None:
    found = checks.no_races(made(unjudged=["out: ordered by threadfence"]))
    assert found
    assert found.message == "no race in 2 of 8 blocks; not judged: out: ordered by threadfence"


def test_uninitialised_shared_memory_is_told_with_its_element() -> None:
    read = Uninitialised(site(array="tile", line=6), "tile", (0, 2), 1, 33, 2)
    found = checks.no_uninitialised(made(uninitialised=[read]))
    assert (found.passed, found.line) == (False, 6)
    said = "line 6 reads tile[0, 2], which no thread of the block had written (thread 33 of block 1; twice)"
    assert said in found.message


def test_reads_are_counted_per_block_per_launch_and_per_warp() -> None:
    read = reuse(loads=512, most_loads=32, most_loads_in_block=16, most_requests_in_block=2)
    sampled = made(accesses=[access(line=8, sectors=4)], reuse=[read])
    whole = made(accesses=[access(line=8, sectors=4)], reuse=[read], blocks=list(range(8)))
    assert checks.reads_at_most(sampled, "a", 16)
    found = checks.reads_at_most(sampled, "a", 15)
    assert (found.passed, found.line) == (False, 8)
    assert found.message == "an element of a is read 16 times by a block; it may be 15 times"
    assert checks.reads_at_most(sampled, "a", 2, count="requests")
    assert (
        "read twice by warps of a block; it may be once"
        in checks.reads_at_most(sampled, "a", 1, count="requests").message
    )
    assert checks.reads_at_most(whole, "a", 32, per="launch")
    assert not checks.reads_at_most(whole, "a", 31, per="launch")
    with pytest.raises(ValueError, match=r"2 of 8 blocks were traced; .* blocks=8 only"):
        checks.reads_at_most(sampled, "a", 32, per="launch")
    with pytest.raises(ValueError, match="is known per block"):
        checks.reads_at_most(whole, "a", 32, per="launch", count="requests")


def test_an_array_that_is_never_read_is_within_every_budget_and_an_unknown_one_is_an_error() -> None:
    assert checks.reads_at_most(made(), "a", 0)
    with pytest.raises(ValueError, match="scale has no array 'b'; it has a, n"):
        checks.reads_at_most(made(), "b", 1)


def test_scattered_access_is_told_and_a_broadcast_is_not() -> None:
    broadcast = access(bytes_used=40, sectors=10, ideal_sectors=10)
    strided = access("a", 9, sectors=320, ideal_sectors=40)
    assert checks.coalesced(made(accesses=[broadcast]))
    found = checks.coalesced(made(accesses=[broadcast, strided]))
    assert (found.passed, found.line) == (False, 9)
    assert found.message == "line 9: a[i] takes 32 sectors a request, 4 would do"
    assert checks.coalesced(made(accesses=[strided]), at_least=0.125)
    with pytest.raises(ValueError, match="expected a share from 0 to 1, got 90"):
        checks.coalesced(made(), at_least=90)


def test_bank_conflicts_are_told_with_their_ways() -> None:
    tile = access("tile", 11, "shared", wavefronts=320, ideal_wavefronts=10, most_ways=32)
    found = checks.no_bank_conflicts(made(accesses=[tile]), "tile")
    assert (found.passed, found.line) == (False, 11)
    assert found.message == "line 11: tile[i] meets a bank up to 32 times in one pass: 320 passes where 10 would do"


def test_divergence_is_told_for_the_line_that_was_asked_for() -> None:
    branches = [Branch(site("branch", line=4), 8, 0, 256, 256), Branch(site("branch", line=6), 8, 3, 256, 100)]
    profile = made(branches=branches)
    assert checks.no_divergence(profile, 4)
    found = checks.no_divergence(profile)
    assert (found.passed, found.line) == (False, 6)
    assert "in 3 of 8 cases" in found.message
    with pytest.raises(ValueError, match="line 5 has no branch; lines that do: 4, 6"):
        checks.no_divergence(profile, 5)


def test_too_little_work_for_its_traffic_is_told() -> None:
    found = checks.intensity_at_least(made(accesses=[access(sectors=40)]), 2.0)
    assert not found
    assert "does 0 operations for each byte of global memory; 2 are asked for" in found.message


@pytest.mark.parametrize(
    "fields",
    [
        {"fault": "a[9] is out of bounds", "fault_line": 5},
        {"not_traced": [NotTraced("kernels.py", 5, "a[1:]", "a slice")]},
    ],
    ids=["fault", "not traced"],
)
def test_what_the_trace_cannot_tell_is_not_passed(fields: dict[str, Any]) -> None:
    profile = made(**fields)
    for found in (
        checks.no_races(profile), checks.no_uninitialised(profile), checks.reads_at_most(profile, "a", 9),
        checks.coalesced(profile), checks.no_bank_conflicts(profile), checks.intensity_at_least(profile, 0),
    ):  # fmt: skip
        assert (found.passed, found.line) == (False, 5)
        assert "out of bounds" in found.message or "a[1:] is not traced (a slice)" in found.message
    assert checks.no_divergence(profile).passed is not bool(profile.fault)


def test_all_of_has_a_line_for_each_failure_and_the_place_of_the_first() -> None:
    found = checks.all_of(
        checks.Finding(True, "fine"), checks.Finding(False, "one", 3), checks.Finding(False, "two", 4)
    )
    assert found == checks.Finding(False, "one\ntwo", 3)


def test_float64_arithmetic_is_told_with_its_line_unless_an_array_is_float64() -> None:
    operations = [LineOperations("kernels.py", 5, 10, 0, 0), LineOperations("kernels.py", 6, 10, 0, 0, double=3)]
    found = checks.no_float64(made(operations=operations))
    assert (found.passed, found.line) == (False, 6)
    assert "line 6 computes in float64 (3 times in 2 of 8 blocks)" in found.message
    assert checks.no_float64(made(operations=operations[:1]))
    assert checks.no_float64(made(operations=operations, argument_types=["array(float64, 1d, C)"]))
