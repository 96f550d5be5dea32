"""The tracer: which events a kernel leaves, whatever way it reaches its memory."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import float32, int32

from cuda_emulator import KernelError, cuda
from cuda_emulator.runtime.tracing import chosen_blocks, trace_launch
from cuda_emulator.trace import SAME_VALUE, Trace

THREADS = 64
POINT = np.dtype([("x", np.float32), ("y", np.float32), ("n", np.int64)])
TABLE = np.arange(8, dtype=np.float32)


def by_site(trace: Trace) -> dict[tuple[str, str], np.ndarray]:
    """The events of each (kind, text)."""
    return {(site.kind, site.text): trace.events[trace.events["site"] == site.number] for site in trace.sites}


@cuda.jit(device=True)
def element(a, i):
    return a[i]


@cuda.jit(device=True)
def pair(a, i):
    return element(a, i) + element(a, i + 1)


@cuda.jit(device=True)
def add_own(own):
    own[0] += float32(1)


@cuda.jit
def every_way(x, matrix, points, out):
    tile = cuda.shared.array(64, float32)
    own = cuda.local.array(2, float32)
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    index = (t, 1)
    row = matrix[t]
    own[0] = x[i]
    add_own(own)
    tile[t] = own[0]
    cuda.syncthreads()
    value = pair(x, i) + matrix[index] + row[2] + matrix.T[3, t] + points[t].y + x[1:][t] + TABLE[t % 8]
    points[t].n = 5
    cuda.atomic.add(out, 0, value)
    matrix[t, 4:6] = value
    out[t] = tile[63 - t]


@pytest.fixture(scope="module")
def trace() -> Trace:
    x = np.arange(2 * THREADS + 1, dtype=np.float32)
    matrix = np.zeros((THREADS, 8), np.float32)
    points = np.zeros(THREADS, POINT)
    before = x.copy(), matrix.copy(), points.copy()
    out = np.zeros(THREADS, np.float32)
    trace = trace_launch(every_way, 2, THREADS, (x, matrix, points, out))
    for given, was in zip((x, matrix, points, out), (*before, np.zeros_like(out)), strict=True):
        np.testing.assert_array_equal(given, was)
    return trace


@pytest.mark.parametrize(
    ("kind", "text", "array", "offset", "size"),
    [
        ("load", "x[i]", "x", 4 * 5, 4),
        ("load", "matrix[index]", "matrix", 32 * 5 + 4, 4),
        ("load", "row[2]", "matrix", 32 * 5 + 8, 4),
        ("load", "matrix.T[3, t]", "matrix", 32 * 5 + 12, 4),
        ("load", "x[1:][t]", "x", 4 * 6, 4),
        ("load", "points[t]", "points", 16 * 5 + 4, 4),
        ("store", "points[t]", "points", 16 * 5 + 8, 8),
        ("load", "TABLE[t % 8]", "TABLE", 4 * 5, 4),
        ("store", "tile[t]", "tile", 4 * 5, 4),
        ("load", "tile[63 - t]", "tile", 4 * 58, 4),
        ("store", "out[t]", "out", 4 * 5, 4),
        ("atomic", "cuda.atomic.add(out, 0, value)", "out", 0, 4),
    ],
)
def test_an_access_leaves_its_address_and_size(
    trace: Trace, kind: str, text: str, array: str, offset: int, size: int
) -> None:
    events = by_site(trace)[kind, text]
    assert len(events) == 2 * THREADS
    mine = events[events["thread"] == 5][0]
    memory = next(memory for memory in trace.memories if memory.name == array)
    assert (mine["address"] - memory.address, mine["size"]) == (offset, size)


def test_a_device_function_called_twice_leaves_two_requests(trace: Trace) -> None:
    events = by_site(trace)["load", "a[i]"]
    mine = events[(events["thread"] == 5)][:2]
    x = next(memory for memory in trace.memories if memory.name == "x")
    assert [int(each) for each in mine["address"] - x.address] == [4 * 5, 4 * 6]
    assert mine["key"][0] != mine["key"][1]
    assert set(events["key"][: 2 * 32]) == set(mine["key"])


def test_a_threads_own_array_is_counted_and_leaves_no_event(trace: Trace) -> None:
    counted = {(trace.sites[n].kind, trace.sites[n].function): count for n, count in trace.own_accesses.items()}
    assert counted == {
        ("store", "every_way"): 2 * THREADS,
        ("load", "add_own"): 2 * THREADS,
        ("store", "add_own"): 2 * THREADS,
        ("load", "every_way"): 2 * THREADS,
    }
    own_events = [site.number for site in trace.sites if site.array == "own"]
    assert not np.isin(trace.events["site"], own_events).any()


def test_a_store_of_several_elements_is_listed_as_not_traced(trace: Trace) -> None:
    assert [(each.text, each.reason) for each in trace.not_traced] == [
        ("matrix[t, 4:6]", "it stores several elements at once")
    ]


def test_a_barrier_is_an_event_of_each_warp_and_begins_an_epoch(trace: Trace) -> None:
    barrier = by_site(trace)["barrier", "cuda.syncthreads()"]
    assert barrier["thread"].tolist() == [0, 32, 0, 32]
    assert set(barrier["address"].tolist()) == {0xFFFFFFFF}
    events = by_site(trace)
    assert set(events["store", "tile[t]"]["epoch"]) == {0}
    assert set(events["load", "tile[63 - t]"]["epoch"]) == {1}


def test_the_trace_says_what_was_launched(trace: Trace) -> None:
    assert (trace.kernel, trace.grid, trace.block, trace.blocks) == ("every_way", (2, 1, 1), (64, 1, 1), [0, 1])
    assert trace.arguments[1] == ("matrix", "float32 (64, 8)")
    assert trace.argument_types[0] == "array(float32, 1d, C)"
    assert trace.source[0] == "@cuda.jit"
    assert sorted(lines[1].split("(")[0] for _, _, lines in trace.device_functions) == [
        *("def add_own", "def element", "def pair")
    ]
    assert (trace.shared_bytes, trace.local_bytes, trace.fence) == (256, 8, False)


def test_whole_arrays_in_expressions_are_listed_as_not_traced() -> None:
    @cuda.jit
    def whole(a, out):
        out[0] = a.sum()

    trace = trace_launch(whole, 1, 1, (np.ones(4), np.zeros(1)))
    assert [(each.line - whole.source.first_line, each.reason) for each in trace.not_traced] == [
        (2, "the whole array is used in one expression")
    ]


def test_lanes_that_leave_a_loop_early_do_not_mix_up_the_others() -> None:
    @cuda.jit
    def ragged(x, out):
        i = cuda.grid(1)
        for j in range(i):
            if (i + j) % 2 == 0:
                continue
            out[i] += x[j]

    trace = trace_launch(ragged, 1, 8, (np.ones(8, np.float32), np.zeros(8, np.float32)))
    loads = by_site(trace)["load", "x[j]"]
    x = next(memory for memory in trace.memories if memory.name == "x")
    for key in np.unique(loads["key"]):
        together = loads[loads["key"] == key]
        assert len(set(together["address"])) == 1  # all lanes of a round read x[j] of the same j
        j = (together["address"][0] - x.address) // 4
        assert together["thread"].tolist() == [i for i in range(j + 1, 8) if (i + j) % 2]
    branch = by_site(trace)["branch", "range(i)"]
    assert [int((branch["thread"] == i).sum()) for i in range(8)] == [i + 1 for i in range(8)]
    assert branch["address"].sum() == sum(range(8))


def test_a_loop_under_masks_counts_its_rounds_for_all() -> None:
    @cuda.jit
    def shuffled(x, out):
        i = cuda.threadIdx.x
        total = x[i]
        step = 1
        while step < i + 2:
            total += cuda.shfl_xor_sync(cuda.activemask(), total, step)
            step *= 2
        out[i] = total

    trace = trace_launch(shuffled, 1, 32, (np.ones(32, np.float32), np.zeros(32, np.float32)))
    events = by_site(trace)
    tests = events["branch", "step < i + 2"]
    rounds = [tests[tests["key"] == key] for key in dict.fromkeys(tests["key"].tolist())]
    assert [len(each) for each in rounds] == [32, 32, 31, 29, 25, 17, 1]
    met = [int(lanes).bit_count() for lanes in events["warp", "cuda.shfl_xor_sync()"]["address"]]
    assert met == [32, 31, 29, 25, 17, 1]


def test_syncwarp_begins_a_warp_epoch_for_those_who_come() -> None:
    @cuda.jit
    def synced(out):
        i = cuda.threadIdx.x
        out[i] = 1
        if i < 32:
            cuda.syncwarp()
        out[i] = 2

    trace = trace_launch(synced, 1, 64, (np.zeros(64, np.int32),))
    stores = trace.events[np.isin(trace.events["site"], [s.number for s in trace.sites if s.kind == "store"])]
    last = {int(event["thread"]): int(event["warp_epoch"]) for event in stores}
    assert [last[i] for i in (0, 31, 32, 63)] == [1, 1, 0, 0]
    assert set(trace.events["epoch"]) == {0}


def test_a_store_that_changes_nothing_is_marked() -> None:
    @cuda.jit
    def flagged(flag, z):
        flag[0] = 7
        z[cuda.threadIdx.x] = complex(0, 1)

    trace = trace_launch(flagged, 1, 4, (np.zeros(1, np.int64), np.array([0, 1j, 0, 1j])))
    events = by_site(trace)
    assert events["store", "flag[0]"]["flags"].tolist() == [0, SAME_VALUE, SAME_VALUE, SAME_VALUE]
    assert events["store", "z[cuda.threadIdx.x]"]["flags"].tolist() == [0, SAME_VALUE, 0, SAME_VALUE]


def test_operations_are_counted_by_line_and_only_of_floating_point_numbers() -> None:
    @cuda.jit
    def arithmetic(x, n):
        i = cuda.grid(1) * 2 // 2 + 0
        scale = 1.0 / n
        x[i] = x[i] * x[i] + x[i]
        x[i] = math_sqrt(x[i]) - scale
        cuda.syncthreads()
        x[i] += float(i // 2)

    trace = trace_launch(arithmetic, 1, 8, (np.ones(8), 4))
    first = arithmetic.source.first_line
    found = {each.line - first: (each.simple, each.division, each.special) for each in trace.operations}
    own = math_sqrt.source.first_line + 2 - first
    assert found == {3: (0, 8, 0), 4: (16, 0, 0), 5: (8, 0, 0), 7: (8, 0, 0), own: (0, 0, 8)}


@cuda.jit(device=True)
def math_sqrt(value):
    return math.sqrt(value)


def test_views_keep_their_place_in_the_allocation_and_overlapping_arguments_overlap() -> None:
    @cuda.jit
    def shift(to, source):
        i = cuda.grid(1)
        to[i] = source[i]

    device = cuda.to_device(np.arange(40, dtype=np.float32))
    trace = trace_launch(shift, 1, 32, (device[:32], device[3:35]))
    to, source = trace.memories[:2]
    assert (to.offset, source.offset) == (0, 12)
    assert source.address - to.address == 12
    assert to.address % 256 == 0
    assert device.copy_to_host().tolist() == list(range(40))


def test_an_index_out_of_bounds_ends_the_trace_and_is_told() -> None:
    @cuda.jit
    def past(x):
        i = cuda.grid(1)
        x[i] = i

    trace = trace_launch(past, 4, 32, (np.zeros(40, np.int64),))
    assert "x[40] is out of bounds" in trace.fault
    assert trace.fault_line == past.source.first_line + 3
    assert trace.blocks == [0, 1]
    assert len(trace.events) == 40


def test_dynamic_shared_memory_has_the_size_of_the_launch() -> None:
    @cuda.jit
    def dynamic(out):
        tile = cuda.shared.array(0, int32)
        i = cuda.threadIdx.x
        tile[i] = i
        cuda.syncthreads()
        out[i] = tile[31 - i]

    trace = trace_launch(dynamic, 1, 32, (np.zeros(32, np.int32),), dynamic_bytes=128)
    tile = next(memory for memory in trace.memories if memory.name == "tile")
    assert (tile.space, tile.nbytes, tile.shape) == ("shared", 128, (32,))
    assert trace.dynamic_bytes == 128


def test_the_length_of_an_array_is_no_use_of_the_array() -> None:
    @cuda.jit
    def as_long(x, out):
        i = cuda.grid(1)
        if i < len(x):
            out[i] = len(out) + x[i]

    trace = trace_launch(as_long, 1, 8, (np.zeros(5), np.zeros(5)))
    assert trace.not_traced == []
    assert set(by_site(trace)) == {("branch", "i < len(x)"), ("load", "x[i]"), ("store", "out[i]")}


def test_a_fence_is_noticed() -> None:
    @cuda.jit
    def fenced(out):
        out[0] = 1
        cuda.threadfence()

    assert trace_launch(fenced, 1, 1, (np.zeros(1),)).fence


def test_a_trace_that_would_be_too_large_names_the_sampling_to_use() -> None:
    @cuda.jit
    def reads(x, out):
        i = cuda.grid(1)
        out[i] = x[i]

    arguments = np.zeros(256), np.zeros(256)
    with pytest.raises(ValueError, match=r"reads: the trace of 3 blocks would hold more than 150 events: 64 are from"):
        trace_launch(reads, 8, 32, arguments, blocks=4, most_events=150)
    assert len(trace_launch(reads, 8, 32, arguments, blocks=2, most_events=150).events) == 128
    assert trace_launch(reads, 8, 32, arguments, most_events=150).blocks == [0, 1]  # where nobody asked for so many
    with pytest.raises(ValueError, match="one block alone makes more: trace a smaller problem"):
        trace_launch(reads, 8, 32, arguments, most_events=10)
    with pytest.raises(ValueError, match="one block alone makes more: trace a smaller problem"):
        trace_launch(reads, 8, 32, arguments, blocks=3, most_events=10)


@pytest.mark.parametrize(
    ("blocks", "grid", "expected"),
    [
        (None, (100, 1, 1), [0, 1, 50, 99]),
        (None, (1, 1, 1), [0]),
        (1, (10, 10, 1), [0]),
        (3, (5, 1, 1), [0, 2, 4]),
        (9, (2, 2, 1), [0, 1, 2, 3]),
        ([7, 3, 3], (8, 1, 1), [3, 7]),
    ],
)
def test_blocks_are_spread_over_the_grid_or_those_that_were_named(blocks, grid, expected) -> None:
    assert chosen_blocks(blocks, grid) == expected


@pytest.mark.parametrize(
    ("blocks", "told"), [(0, "at least 1 block"), ([8], "numbers from 0 to 7"), ([], "from 0 to 7")]
)
def test_blocks_that_are_not_in_the_grid_are_refused(blocks, told) -> None:
    with pytest.raises(ValueError, match=told):
        chosen_blocks(blocks, (8, 1, 1))


def test_wrong_arguments_are_refused_as_at_a_launch() -> None:
    @cuda.jit
    def two(a, b):
        a[0] = b

    with pytest.raises(KernelError, match="takes 2 arguments"):
        trace_launch(two, 1, 1, (np.zeros(1),))
    with pytest.raises(KernelError, match="threads"):
        trace_launch(two, 1, 4096, (np.zeros(1), 1.0))


@cuda.jit(device=True)
def bits_of(x):
    number = cuda.local.array(1, float32)
    number[0] = x
    return number.view(np.uint32)[0]


def test_a_view_of_a_threads_own_array_is_its_own_memory_and_makes_no_event() -> None:
    @cuda.jit
    def reinterpreted(x, out):
        i = cuda.grid(1)
        out[i] = bits_of(x[i])

    out = np.zeros(32, np.uint32)
    trace = trace_launch(reinterpreted, 1, 32, (np.ones(32, np.float32), out))
    events = by_site(trace)
    assert {place for place in events if len(events[place])} == {("load", "x[i]"), ("store", "out[i]")}
    own = [site for site in trace.sites if site.text.startswith("number")]
    assert {(site.kind, site.space) for site in own} == {("store", "local"), ("load", "local")}
