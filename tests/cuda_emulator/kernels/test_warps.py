"""What the lanes of a warp do together: every collective against one lane at a time in plain Python."""

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

from cuda_emulator import helpers
from cuda_emulator.helpers import status as codes
from tests.wide import widely

FULL = 0xFFFFFFFF
SIZES = [1, 31, 32, 33, 64, 97]
NOT_WRITTEN = -77


def compiled(name):
    helper = getattr(helpers, name)

    @njit
    def call(*arguments):
        return helper(*arguments)

    return call


SHUFFLES = {
    "shuffle_index": lambda lane, operand: operand & 31,
    "shuffle_up": lambda lane, operand: lane - (operand & 31),
    "shuffle_down": lambda lane, operand: lane + (operand & 31),
    "shuffle_xor": lambda lane, operand: lane ^ (operand & 31),
}
VOTES = {
    "vote_all": all,
    "vote_any": any,
    "vote_eq": lambda said: len(set(said)) <= 1,
}
CALL = {
    name: compiled(name)
    for name in (
        *SHUFFLES,
        *VOTES,
        *("vote_ballot", "match_any", "match_all", "sync_warp", "active_mask"),
        *("block_count", "block_and", "block_or"),
    )
}


class Block:
    """A block of random threads; `plain`: every thread is here and masks and operands are scalars."""

    def __init__(self, threads, plain, seed=0, dtype=np.int64):
        rng = np.random.default_rng(1000 * threads + seed)
        self.threads = threads
        self.values = rng.choice(np.array([0, 0, 1, -5, 2**31 - 1]), threads).astype(dtype)
        self.result = np.full(threads, NOT_WRITTEN, dtype)
        if plain:
            self.here = None
            self.members = int(rng.choice([FULL, 0x0F0F_3FF0, -1]))
            self.operand = int(rng.choice([0, 1, 7, 16, 31, 32, 33]))
        else:
            self.here = rng.random(threads) < 0.7
            self.members = rng.integers(0, 2**32, threads) | rng.choice([0, FULL], threads)
            self.operand = rng.integers(-3, 40, threads)

    def is_here(self, thread):
        return self.here is None or bool(self.here[thread])

    def mask(self, thread):
        return (self.members if np.isscalar(self.members) else int(self.members[thread])) & FULL

    def others(self, thread):
        """The threads of its warp that are here and that its mask names."""
        start = thread - thread % 32
        warp = range(start, min(start + 32, self.threads))
        return [other for other in warp if self.is_here(other) and self.mask(thread) >> (other - start) & 1]

    def expected(self, answer, not_here=NOT_WRITTEN):
        return [answer(thread) if self.is_here(thread) else not_here for thread in range(self.threads)]


CASES = [(threads, plain, seed) for threads in SIZES for plain in (True, False) for seed in range(3)]


def bits(threads):
    """The mask that names these threads of one warp."""
    return sum(1 << thread % 32 for thread in threads)


@pytest.mark.parametrize("name", widely(SHUFFLES))
def test_a_shuffle_reads_from_lanes_that_are_here_and_named_and_else_keeps_the_value(name):
    for case in CASES:
        # plain blocks move float32, the others int64
        block = Block(*case, dtype=np.float32 if case[1] else np.int64)

        def answer(thread, block=block):
            operand = block.operand if np.isscalar(block.operand) else int(block.operand[thread])
            source = thread - thread % 32 + SHUFFLES[name](thread % 32, operand)
            return block.values[source if source in block.others(thread) else thread]

        CALL[name](
            *(block.result, block.values, block.members, block.operand, block.here, None, block.threads, None, 0, 0)
        )
        assert block.result.tolist() == block.expected(answer), case


@pytest.mark.parametrize("name", widely(SHUFFLES))
def test_with_a_status_a_lane_that_takes_no_part_gives_the_bytes_that_the_status_has_for_it(name):
    """A lane whose source is below 0 or above 31 keeps its value with a status, too."""
    for threads, operand in [(20, 16), (32, 5), (40, 9), (40, 31)]:
        block, status = Block(threads, plain=True, dtype=np.float64), codes.new_status()
        status[codes.ABSENT] = 0x7E
        expected, readers = [], []
        for thread in range(threads):
            source = SHUFFLES[name](thread % 32, operand)
            other = thread - thread % 32 + source
            if 0 <= source < 32 and other >= threads:
                readers.append(thread)
                expected.append(np.frombuffer(b"\x7e" * 8)[0])
            else:
                expected.append(block.values[other if 0 <= source < 32 else thread])
        CALL[name](*(block.result, block.values, FULL, operand, None, None, threads, status, 4, 2))
        assert block.result.tolist() == expected, (threads, operand)
        found = tuple(status[[codes.READ_SITE, codes.READ_BLOCK, codes.READ_THREAD]])
        assert found == ((5, 2, readers[0]) if readers else (0, 0, 0)), (threads, operand)


@pytest.mark.parametrize("name", widely(["vote_ballot", *VOTES], first=2))
def test_a_vote_looks_at_lanes_that_are_here_and_named(name):
    for case in CASES:
        block = Block(*case)
        votes = block.values != 0 if block.here is None else block.values  # bools, and ints of any size

        def answer(thread, block=block):
            others = block.others(thread)
            if name == "vote_ballot":
                return bits(other for other in others if block.values[other])
            return VOTES[name]([bool(block.values[other]) for other in others])

        CALL[name](block.result, votes, block.members, block.here, None, block.threads, None, 0, 0)
        assert block.result.tolist() == block.expected(answer), case


@pytest.mark.parametrize("dtype", widely(["float32", "int64"]))
def test_match_any_names_the_lanes_with_the_same_bits(dtype):
    for case in CASES:
        block = Block(*case, dtype=dtype)
        result = np.full(block.threads, NOT_WRITTEN)
        if dtype == "float32":
            block.values[::4] = np.nan
            block.values[1::4] = -0.0

        def answer(thread, block=block):
            mine = block.values[thread].tobytes()
            return bits(other for other in block.others(thread) if block.values[other].tobytes() == mine)

        CALL["match_any"](result, block.values, block.members, block.here, None, block.threads, None, 0, 0)
        assert result.tolist() == block.expected(answer), case


def test_match_all_names_the_voters_where_they_agree():
    for case in CASES:
        block = Block(*case)
        if case[2] < 2:
            block.values[: case[0] // 2] = 3  # so that some warps agree
        agreed = np.full(block.threads, True)

        def answer(thread, block=block):
            others = block.others(thread)
            alike = {block.values[other] for other in others} <= {block.values[thread]}
            return bits(others) if alike else 0

        CALL["match_all"](
            block.result, agreed, block.values, block.members, block.here, None, block.threads, None, 0, 0
        )
        assert block.result.tolist() == block.expected(answer), case
        own_value_only = block.expected(
            lambda thread, block=block: all(
                block.values[other] == block.values[thread] for other in block.others(thread)
            ),
            not_here=True,
        )
        assert agreed.tolist() == own_value_only, case


@pytest.mark.parametrize("threads", SIZES)
@pytest.mark.parametrize("plain", [True, False])
def test_the_active_mask_names_the_lanes_that_are_here(threads, plain):
    block = Block(threads, plain)
    CALL["active_mask"](block.result, block.here, threads)
    block.members = FULL
    assert block.result.tolist() == block.expected(lambda thread: bits(block.others(thread)))


@pytest.mark.parametrize("threads", SIZES)
@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("fill", [None, 0, 1])
def test_a_block_counts_and_agrees_over_the_threads_that_are_here(threads, plain, fill):
    block = Block(threads, plain)
    if fill is not None:
        block.values[block.here if block.here is not None else slice(None)] = fill  # the others keep theirs
    said = [bool(block.values[thread]) for thread in range(threads) if block.is_here(thread)]
    assert CALL["block_count"](block.values, block.here, threads) == sum(said)
    assert CALL["block_and"](block.values, block.here, threads) == all(said)
    assert CALL["block_or"](block.values, block.here, threads) == any(said)


@pytest.mark.parametrize("dtype", widely(["float32", "int32", "int64", "float64"]))
@pytest.mark.parametrize("kind", ["shuffle_index", "shuffle_up", "shuffle_down", "shuffle_xor"])
def test_whole_warps_and_parts_of_them_move_the_same_values_at_every_distance(kind: str, dtype: str) -> None:
    values = np.arange(100, 196).astype(dtype)
    masks = np.full(96, FULL, np.int64)  # a mask for each thread takes the loop over single lanes
    everyone = np.ones(96, bool)
    for distance in range(32):
        expected, whole, with_mask = (np.zeros(96, dtype) for _ in range(3))
        CALL[kind](expected, values, masks, distance, None, None, 96, None, 0, 0)
        CALL[kind](whole, values, FULL, distance, None, None, 96, None, 0, 0)
        CALL[kind](with_mask, values, FULL, distance, everyone, None, 96, None, 0, 0)
        assert whole.tolist() == with_mask.tolist() == expected.tolist()


# ---- masks that no device promises anything for


def stopped(name, *arguments, members, here, alive, threads, operand=()):
    """Run with checks; the code, the thread and the details of the fault, or None."""
    status = codes.new_status()
    try:
        CALL[name](*arguments, members, *operand, here, alive, threads, status, 5, 6)
    except codes.Stopped:
        assert status[codes.SITE] == 5
        assert status[codes.BLOCK] == 6
        return tuple(status[[codes.CODE, codes.THREAD, codes.DETAIL, codes.DETAIL + 1]].tolist())
    assert not status[: codes.POISON].any()
    return None


def named(*lanes):
    return bits(lanes)


@pytest.mark.parametrize(
    ("absent", "returned", "mask", "expected"),
    [
        ([], [], FULL, None),
        ([40], [], FULL, (codes.WARP_MEMBERS, 32, 32, 31)),
        ([40], [40], FULL, None),  # a thread that has returned is not waited for
        ([40, 41], [41], FULL, (codes.WARP_MEMBERS, 32, 31, 30)),
        ([8, 31, 40, 63], [], FULL & ~named(8, 31), None),  # lanes that are elsewhere and not named
        (list(range(32, 64)), [], FULL, None),  # a warp that is elsewhere altogether
        ([], [], FULL & ~named(3), (codes.NOT_A_MEMBER, 3, FULL & ~named(3), 0)),
        ([3, 35, 67], [], FULL & ~named(3), None),
        ([64], [], FULL, (codes.WARP_MEMBERS, 65, 6, 5)),  # the last warp has six lanes
    ],
)
def test_a_mask_names_its_lane_and_no_living_lane_that_is_elsewhere(absent, returned, mask, expected):
    threads = 70
    here, alive = np.ones(threads, bool), np.ones(threads, bool)
    here[absent] = False
    alive[returned] = False
    block = {"members": mask, "here": here, "alive": alive, "threads": threads}
    assert stopped("sync_warp", **block) == expected
    values = np.ones(threads, np.int64)
    assert stopped("vote_ballot", values.copy(), values, **block) == expected
    assert stopped("shuffle_down", values.copy(), values, **block, operand=(1,)) == expected


def test_masks_of_their_own_are_checked_lane_by_lane():
    threads = 64
    halves = np.array([0xFFFF if thread % 32 < 16 else 0xFFFF0000 for thread in range(threads)])
    everyone = np.ones(threads, bool)
    assert stopped("sync_warp", members=halves, here=everyone, alive=everyone, threads=threads) is None
    lower_half = np.arange(threads) % 32 < 16
    assert stopped("sync_warp", members=halves, here=lower_half, alive=everyone, threads=threads) is None
    halves[50] = FULL  # its lower half is here, its upper half is not asked: lane 18 is not here itself
    assert stopped("sync_warp", members=halves, here=lower_half, alive=everyone, threads=threads) is None
    halves[33] = FULL
    expected = (codes.WARP_MEMBERS, 33, 32, 16)
    assert stopped("sync_warp", members=halves, here=lower_half, alive=everyone, threads=threads) == expected


@pytest.mark.parametrize("returned", [[], [32]])
def test_lanes_that_take_part_have_the_same_mask(returned):
    threads = 64
    masks = np.full(threads, FULL)
    here = np.ones(threads, bool)
    here[returned] = False
    block = {"members": masks, "here": here, "alive": here.copy(), "threads": threads}
    assert stopped("sync_warp", **block) is None
    masks[40] = 0xFFFFFFFE  # all that it names are here, and name it, but by another mask
    first = 33 if returned else 32
    assert stopped("sync_warp", **block) == (codes.OTHER_MASK, first, FULL, 8)
    masks[:] = np.where(np.arange(threads) % 2, 0xAAAAAAAA, 0x55555555)
    assert stopped("sync_warp", **block) is None


# ---- types


@pytest.mark.parametrize("dtype", ["uint32", "int8", "bool", "complex64", "uint64"])
def test_a_shuffle_refuses_what_a_device_cannot_move(dtype):
    values = np.zeros(32, dtype)
    with pytest.raises(TypingError, match=f"a shuffle moves int32, int64, float32 and float64, not {dtype}: convert"):
        CALL["shuffle_up"](values.copy(), values, FULL, 1, None, None, 32, None, 0, 0)
