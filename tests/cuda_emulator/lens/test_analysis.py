"""The lens's analysis, on traces made by hand: each number against a textbook's, and against a slow oracle."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cuda_emulator.lens.analysis import analyse
from cuda_emulator.lens.profile import LineOperations
from cuda_emulator.trace import Operations
from tests.cuda_emulator.lens.lens_traces import GLOBAL, Tracing

FEW = settings(max_examples=60, deadline=None, derandomize=True)


def one_access(indices: Any, dtype: Any = np.float32, space: Any = "global", kind: str = "load", **array: Any) -> Any:
    """The analysis of one request: lane i at indices[i]."""
    tracing = Tracing()
    tracing.array("x", 4096, dtype, space, **array)
    tracing.warp(kind, "x", indices)
    return analyse(tracing.trace()).accesses[0]


# ---------------------------------------------------------------- requests


def test_one_site_that_touches_two_arrays_has_an_access_for_each() -> None:
    tracing = Tracing()
    first, second = tracing.array("a", 64), tracing.array("b", 64)
    site = tracing.site("load", "p", space="")
    for thread in range(32):
        memory = first if thread < 16 else second
        tracing.event(site, thread, memory.address + 4 * thread, size=4)
    reuse = {each.array: each.touched for each in analyse(tracing.trace()).reuse}
    assert reuse == {"a": 16, "b": 16}


@settings(FEW, max_examples=15)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 95), st.integers(0, 2), st.integers(0, 3)), max_size=200))
def test_requests_equal_a_count_by_dictionary(touches: list[tuple[int, int, int, int]]) -> None:
    tracing = Tracing(threads=96, blocks=2)
    tracing.array("x", 64)
    seen: dict[Any, Counter[int]] = {}
    for block, thread, site, key in touches:
        tracing.access("load", "x", thread, thread % 64, block=block, key=key, text=f"x[{site}]")
        seen.setdefault((block, thread // 32, site, key), Counter())[thread % 32] += 1
    found = Counter({a.site.text: a.requests for a in analyse(tracing.trace()).accesses})
    expected: Counter[str] = Counter()
    for (_, _, site, _), lanes in seen.items():
        expected[f"x[{site}]"] += max(lanes.values())
    assert found == expected


# ---------------------------------------------------------------- sectors


def test_a_view_that_starts_within_a_sector_is_misaligned_as_its_allocation_says() -> None:
    access = one_access(range(32), address=GLOBAL + 0x1004, offset=4)
    assert access.sectors == 5
    assert access.example.addresses[0] == 4
    assert access.example.indices[0] == (0,)


def test_an_array_that_the_computer_put_anywhere_starts_at_a_sector_on_a_device() -> None:
    assert one_access(range(32), address=GLOBAL + 0x1014).sectors == 4


@FEW
@given(
    st.lists(st.integers(0, 200), min_size=1, max_size=32),
    st.sampled_from([np.int8, np.int16, np.float32, np.float64, np.complex128]),
)
def test_sectors_and_bytes_equal_sets_of_them(indices: list[int], dtype: Any) -> None:
    access, size = one_access(indices, dtype), np.dtype(dtype).itemsize
    touched = {byte for i in indices for byte in range(i * size, (i + 1) * size)}
    assert access.sectors == len({byte // 32 for byte in touched})
    assert access.bytes_used == len(touched)
    assert access.ideal_sectors == math.ceil(len(touched) / 32)
    assert access.broadcasts == (len(indices) > 1 and len(set(indices)) == 1)


# ---------------------------------------------------------------- banks


@FEW
@given(
    st.lists(st.integers(0, 300), min_size=1, max_size=32),
    st.sampled_from([np.int8, np.int16, np.float32, np.float64, np.complex128]),
)
def test_passes_equal_the_fullest_bank_of_each_part_of_the_warp(indices: list[int], dtype: Any) -> None:
    access, size = one_access(indices, dtype, "shared"), np.dtype(dtype).itemsize
    lanes = {4: 32, 8: 16, 16: 8}[max(size, 4)]
    ways = []
    for start in range(0, len(indices), lanes):
        part = indices[start : start + lanes]
        words = {word for i in part for word in range(i * size // 4, ((i + 1) * size - 1) // 4 + 1)}
        ways.append(max(Counter(word % 32 for word in words).values()))
    assert (access.wavefronts, access.ideal_wavefronts, access.most_ways) == (sum(ways), len(ways), max(ways))


def test_banks_follow_the_layout_of_all_shared_memory_of_the_block() -> None:
    tracing = Tracing()
    tracing.array("before", 1, space="shared")
    tracing.array("tile", 64, space="shared")
    tracing.warp("store", "tile", range(32))
    example = analyse(tracing.trace()).accesses[0].example
    assert example is not None
    assert example.addresses[:2] == (4, 8)
    assert example.indices[:2] == ((0,), (1,))


# ---------------------------------------------------------------- other spaces


def test_constant_memory_costs_as_many_passes_as_there_are_addresses() -> None:
    access = one_access([i // 8 for i in range(32)], space="constant")
    assert (access.space, access.wavefronts, access.most_ways, access.sectors) == ("constant", 4, 4, 0)


def test_a_local_array_in_a_frame_has_requests_and_lanes_only() -> None:
    tracing = Tracing()
    site = tracing.site("store", "mine", space="local")
    for thread in range(32):
        tracing.event(site, thread, 0x7FFF0000 + 4 * thread, size=4)
    access = analyse(tracing.trace()).accesses[0]
    assert (access.space, access.array, access.requests, access.lanes) == ("local", "mine", 1, 32)
    assert (access.sectors, access.wavefronts) == (0, 0)


def test_an_address_in_no_array_is_listed_as_not_traced() -> None:
    tracing = Tracing()
    tracing.array("x", 8)
    tracing.event(tracing.site("load", "p", space=""), 0, 0x99999990, size=4)
    profile = analyse(tracing.trace())
    assert profile.accesses == []
    assert [(each.line, each.text) for each in profile.not_traced] == [(10, "p[i]")]
    assert "in no known array" in profile.not_traced[0].reason


def test_of_two_views_of_one_allocation_the_source_says_which_is_meant() -> None:
    tracing = Tracing()
    first = tracing.array("a", 64)
    tracing.array("b", 64, address=first.address)
    tracing.warp("load", "b", range(32))
    assert [(each.array, each.loads) for each in analyse(tracing.trace()).reuse] == [("a", 0), ("b", 32)]


# ---------------------------------------------------------------- branches, collectives, phases, operations


def test_a_collective_counts_warps_and_their_lanes() -> None:
    tracing = Tracing()
    site = tracing.site("barrier", text="cuda.syncthreads()")
    for epoch in range(2):
        tracing.event(site, 0, 0xFFFFFFFF, epoch=epoch)
        tracing.event(site, 32, 0xFF, epoch=epoch)
    collective = analyse(tracing.trace()).collectives[0]
    assert (collective.times, collective.lanes) == (4, 80)


def test_phases_are_what_lies_between_barriers() -> None:
    tracing = Tracing()
    tracing.array("x", 64)
    tracing.warp("load", "x", range(64))
    tracing.event(tracing.site("barrier"), 0, 0xFFFFFFFF)
    tracing.warp("store", "x", range(32), epoch=1)
    phases = analyse(tracing.trace()).phases
    assert [(phase.number, phase.requests, phase.active_warps) for phase in phases] == [(0, {0: 2}, 2), (1, {2: 1}, 1)]


def test_operations_are_added_up_by_line() -> None:
    given_ones = [Operations("kernel.py", 3, 10, 1, 0, 4), Operations("kernel.py", 3, 5, 0, 2)]
    profile = analyse(Tracing().trace(operations=given_ones))
    assert profile.operations == [LineOperations("kernel.py", 3, 15, 1, 2, 4)]


def test_an_access_to_several_elements_at_once_touches_each_of_them() -> None:
    tracing = Tracing()
    memory = tracing.array("x", 128)
    for thread in range(32):
        tracing.event(tracing.site("load", "x"), thread, memory.address + 16 * thread, size=16)
    profile = analyse(tracing.trace())
    assert (profile.reuse[0].touched, profile.reuse[0].loads, profile.reuse[0].most_loads) == (128, 128, 1)
    assert (profile.accesses[0].lanes, profile.accesses[0].sectors) == (32, 16)


def test_an_array_with_negative_strides_has_its_indices_from_its_end() -> None:
    tracing = Tracing()
    forward = tracing.array("x", (4, 8))
    tracing.memories["x"] = replace(forward, strides=(-32, 4))
    tracing.event(tracing.site("load", "x"), 0, forward.address + 2 * 32 + 5 * 4, size=4)
    example = analyse(tracing.trace()).accesses[0].example
    assert example is not None
    assert example.indices == ((1, 5),)


def test_the_example_is_the_first_request_that_costs_most() -> None:
    tracing = Tracing()
    tracing.array("x", (64, 64))
    tracing.warp("load", "x", [(0, lane) for lane in range(32)], key=1)
    tracing.warp("load", "x", [(lane, 3) for lane in range(32)], key=2)
    tracing.warp("load", "x", [(lane, 4) for lane in range(32)], key=3)
    access = analyse(tracing.trace()).accesses[0]
    assert (access.sectors, access.most_sectors) == (4 + 32 + 32, 32)
    assert access.example is not None
    assert access.example.indices[:2] == ((0, 3), (1, 3))
