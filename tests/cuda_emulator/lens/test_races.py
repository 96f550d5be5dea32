"""Races and uninitialised shared memory on traces made by hand, against the meaning of the words, pair by pair."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cuda_emulator.lens.analysis import analyse
from cuda_emulator.trace import NotTraced
from tests.cuda_emulator.lens.lens_traces import Tracing

# ---------------------------------------------------------------- races


def two(*accesses: tuple[str, int], space: Any = "shared", **more: Any) -> list[str]:
    """The kinds of races that accesses to one element make: (kind, thread), and keywords of each by its place."""
    tracing = Tracing(threads=96, blocks=2)
    tracing.array("x", 4, space=space)
    for place, (kind, thread) in enumerate(accesses):
        tracing.access(kind, "x", thread, 1, **more.get(f"at{place}", {}))
    return [race.kind for race in analyse(tracing.trace()).races]


def test_a_write_and_a_read_of_two_threads_race_whichever_came_first() -> None:
    assert two(("store", 0), ("load", 1)) == ["read after write"]
    assert two(("load", 0), ("store", 1)) == ["write after read"]
    assert two(("store", 0), ("store", 40)) == ["write after write"]
    assert two(("load", 0), ("load", 1)) == []


def test_a_barrier_orders_a_block_and_a_syncwarp_only_a_warp() -> None:
    assert two(("store", 0), ("load", 40), at1={"epoch": 1}) == []
    assert two(("store", 0), ("load", 1), at1={"warp_epoch": 1}) == []
    assert two(("store", 0), ("load", 40), at1={"warp_epoch": 1}) == ["read after write"]


def test_atomics_race_with_plain_accesses_but_not_with_each_other() -> None:
    assert two(("atomic", 0), ("atomic", 1)) == []
    assert two(("atomic", 0), ("load", 1)) == ["read after write"]
    assert two(("store", 0), ("atomic", 1)) == ["write after write"]
    assert two(("load", 0), ("atomic", 40)) == ["write after read"]


def test_writing_the_value_that_is_there_does_not_race_with_its_writer_but_with_a_reader() -> None:
    assert two(("store", 0), ("store", 1), at1={"same": True}) == []
    assert two(("load", 0), ("store", 1), at1={"same": True}) == ["write after read"]


def test_a_write_is_found_whichever_reader_was_not_itself() -> None:
    assert two(("load", 1), ("load", 0), ("store", 0)) == ["write after read"]
    assert two(("load", 0), ("load", 1), ("load", 0), ("store", 0)) == ["write after read"]


def test_a_reader_of_another_warp_is_not_forgotten_for_readers_that_a_syncwarp_orders() -> None:
    later = {"at1": {"warp_epoch": 1}, "at2": {"warp_epoch": 1}, "at3": {"warp_epoch": 2}}
    assert two(("load", 40), ("load", 0), ("load", 1), ("store", 2), **later) == ["write after read"]


def test_an_atomics_reader_is_found_even_behind_its_own_atomic() -> None:
    assert two(("atomic", 0), ("atomic", 1), ("load", 1)) == ["read after write"]


def test_a_race_names_the_element_both_threads_and_how_often() -> None:
    tracing = Tracing()
    tracing.array("x", (8, 8))
    for thread in range(32):
        tracing.access("store", "x", thread, (thread % 4, 2))
    (race,) = analyse(tracing.trace()).races
    assert (race.array, race.index, race.first.thread, race.second.thread) == ("x", (0, 2), 0, 4)
    assert race.times == 28
    assert race.first.site.line == 10
    assert not race.between_blocks


def test_a_fence_means_that_reads_of_another_blocks_results_are_not_judged() -> None:
    tracing = Tracing(blocks=2)
    tracing.array("x", 4)
    tracing.access("store", "x", 0, 1, block=0)
    tracing.access("load", "x", 0, 1, block=1)
    profile = analyse(tracing.trace(fence=True))
    assert profile.races == []
    assert "cuda.threadfence()" in profile.unjudged[0]
    assert "line 11" in profile.unjudged[0]
    assert [race.between_blocks for race in analyse(tracing.trace()).races] == [True]


def test_two_blocks_that_write_race_in_spite_of_a_fence() -> None:
    tracing = Tracing(blocks=2)
    tracing.array("x", 4)
    for block in range(2):
        tracing.access("store", "x", 0, 1, block=block)
    profile = analyse(tracing.trace(fence=True))
    assert [race.kind for race in profile.races] == ["write after write"]
    assert profile.unjudged == []


def locked(*order: str, fence: bool = True) -> list[str]:
    """The races of two threads of two blocks that each do these things: "lock", "load", "store" and "unlock"."""
    tracing = Tracing(blocks=2)
    tracing.array("x", 4)
    tracing.array("mutex", 4)
    for block in range(2):
        for what in order:
            if what in ("lock", "unlock"):
                tracing.access("atomic", "mutex", 0, 0, block=block, text=what)
            else:
                tracing.access(what, "x", 0, 1, block=block)
    return [race.kind for race in analyse(tracing.trace(fence=fence)).races]


def test_a_lock_of_atomics_and_a_fence_orders_what_it_holds() -> None:
    assert locked("lock", "load", "store", "unlock") == []
    assert "write after write" in locked("lock", "load", "store", "unlock", fence=False)
    assert "write after write" in locked("load", "store", "lock", "unlock")


def test_a_read_before_each_atomic_of_a_thread_is_a_guess_and_no_race() -> None:
    assert two(("load", 0), ("atomic", 0), ("load", 1), ("atomic", 1)) == []
    assert two(("load", 0), ("load", 1), ("atomic", 1)) == []
    assert two(("load", 0), ("atomic", 0), ("atomic", 1)) == ["write after read"]
    assert two(("atomic", 0), ("load", 1), ("atomic", 1)) != []


def test_overlapping_arrays_race_by_address_whatever_their_names_and_types() -> None:
    tracing = Tracing()
    wide = tracing.array("wide", 8, np.float64)
    tracing.array("narrow", 16, np.float32, address=wide.address)
    tracing.access("store", "wide", 0, 2)
    tracing.access("load", "narrow", 1, 5)
    tracing.access("load", "narrow", 1, 6)
    (race,) = analyse(tracing.trace()).races
    assert (race.kind, race.array, race.index) == ("read after write", "narrow", (5,))


KINDS_OF_ACCESS = ["load", "store", "atomic"]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.data())
def test_a_granule_races_exactly_when_some_pair_of_accesses_does(data: st.DataObject) -> None:
    space = data.draw(st.sampled_from(["shared", "global"]))
    size = data.draw(st.integers(2, 10))
    shape = st.tuples(
        st.integers(0, 1), st.integers(0, 1), st.integers(0, 2), st.sampled_from([0, 1, 2, 32, 33, 64]),
        st.sampled_from(KINDS_OF_ACCESS), st.integers(0, 1), st.booleans(),
    )  # fmt: skip
    # As the emulator runs them: block by block, barrier by barrier, and in each warp syncwarp by syncwarp.
    touches = sorted(data.draw(st.lists(shape, min_size=size, max_size=size)), key=lambda touch: touch[:3])
    tracing = Tracing(threads=96, blocks=2)
    tracing.array("x", 2, space=space)
    for block, epoch, warp_epoch, thread, kind, index, same in touches:
        tracing.access(kind, "x", thread, index, block=block, epoch=epoch, warp_epoch=warp_epoch, same=same)
    expected = set()
    for (b, e, w, t, kind, i, _), (b2, e2, w2, t2, kind2, i2, same2) in combinations(touches, 2):
        apart = b != b2 and space == "global"
        together = b == b2 and e == e2 and t != t2 and (t // 32 != t2 // 32 or w == w2)
        writes = {kind, kind2} != {"load"} and {kind, kind2} != {"atomic"}
        excused = kind == kind2 == "store" and same2
        if i == i2 and (apart or together) and writes and not excused:
            expected.add(i)
    # One race is reported for each kind and pair of sites, so each element is looked at by itself.
    found = set()
    for index in (0, 1):
        alone = Tracing(threads=96, blocks=2)
        alone.array("x", 2, space=space)
        for block, epoch, warp_epoch, thread, kind, i, same in touches:
            if i == index:
                alone.access(kind, "x", thread, i, block=block, epoch=epoch, warp_epoch=warp_epoch, same=same)
        found |= {race.index[0] for race in analyse(alone.trace()).races}
    assert found == expected
    assert bool(analyse(tracing.trace()).races) == bool(expected)


# ---------------------------------------------------------------- uninitialised shared memory


def test_a_read_before_any_write_of_the_block_is_uninitialised() -> None:
    tracing = Tracing(blocks=2)
    tracing.array("tile", (4, 8), space="shared")
    tracing.access("store", "tile", 0, (1, 3), block=0)
    tracing.access("load", "tile", 0, (1, 3), block=0, epoch=1)
    tracing.access("load", "tile", 5, (1, 3), block=1, epoch=1)
    tracing.access("load", "tile", 6, (1, 3), block=1, epoch=1)
    (found,) = analyse(tracing.trace()).uninitialised
    assert (found.array, found.index, found.block, found.thread, found.times) == ("tile", (1, 3), 1, 5, 2)


def test_an_atomic_on_memory_that_nobody_zeroed_is_uninitialised() -> None:
    tracing = Tracing()
    tracing.array("counts", 8, space="shared")
    tracing.warp("atomic", "counts", [0] * 32)
    assert [each.times for each in analyse(tracing.trace()).uninitialised] == [1]


def test_a_read_that_races_with_its_writer_is_called_a_race_only() -> None:
    tracing = Tracing()
    tracing.array("tile", 8, space="shared")
    tracing.access("load", "tile", 0, 1)
    tracing.access("store", "tile", 1, 1)
    profile = analyse(tracing.trace())
    assert profile.uninitialised == []
    assert [race.kind for race in profile.races] == ["write after read"]


def test_a_read_whose_writer_comes_after_a_barrier_is_uninitialised() -> None:
    tracing = Tracing()
    tracing.array("tile", 8, space="shared")
    tracing.access("load", "tile", 0, 1)
    tracing.access("store", "tile", 1, 1, epoch=1)
    assert len(analyse(tracing.trace()).uninitialised) == 1


def test_nobody_is_accused_where_a_write_to_shared_memory_is_not_traced() -> None:
    tracing = Tracing()
    tracing.array("tile", 8, space="shared")
    tracing.access("load", "tile", 0, 1)
    profile = analyse(tracing.trace(not_traced=[NotTraced("kernel.py", 5, "tile[:] = 0", "a slice")]))
    assert profile.uninitialised == []
    assert "line 5 (`tile[:] = 0`)" in profile.unjudged[0]
    other = analyse(tracing.trace(not_traced=[NotTraced("kernel.py", 5, "x[:] = 0", "a slice")]))
    assert len(other.uninitialised) == 1
