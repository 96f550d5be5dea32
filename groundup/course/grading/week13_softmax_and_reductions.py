"""Week 13: softmax and sums, first by threads, then by warps.

Kernels that wait at barriers are compiled and traced. The others run line by line, which costs no compiling: in two
dtypes, and with shuffles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from groundup.course.checks.check import Check
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.calling.early_returns import left_early
from groundup.course.grading.calling.kernel_arithmetic import AtMost, only_float32
from groundup.course.grading.calling.kernel_launches import (
    Launch,
    Out,
    any_grid,
    as_float,
    launched,
    module,
    of_the_project,
    random,
    threads,
)
from groundup.course.grading.calling.kernel_memory import (
    COALESCED,
    no_bank_conflicts,
    reads,
    requests_of_shared,
    stores,
    watched,
)
from groundup.course.grading.calling.launched_again import APART, ONLY_NAN, kernel_checks
from groundup.course.grading.calling.line_by_line import followed, line_by_line
from groundup.course.grading.calling.shared_work import Work
from groundup.course.grading.problems.activations import softmax_scale
from groundup.course.grading.problems.kernel_reductions import (
    BARRIER_MISSING,
    ROWS_BEFORE,
    WARP,
    below,
    block_sum_mistakes,
    far_apart,
    softmax_of,
    warps,
    with_rows_before,
)
from shared.numbers import plural


def wrong_in_float32(compute: Callable[..., Any]) -> Callable[..., Any]:
    """The result of a mistake in float32, overflow included."""

    def wrong(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return compute(*arguments)

    return wrong


def of_own_lane(z: np.ndarray) -> np.ndarray:
    """For each number the largest one that its lane has seen: in every 32nd column, and in the first."""
    lanes = [np.maximum(z[:, lane::WARP].max(axis=1), z[:, 0]) for lane in range(min(WARP, z.shape[1]))]
    return np.stack([lanes[j % WARP] for j in range(z.shape[1])], axis=1)


SOFTMAX_MISTAKES = [
    Mistake(
        "normalised over the wrong axis: each row adds up to 1, not each column",
        wrong_in_float32(lambda z, launch: softmax_of(z, z.max(axis=0), axis=0)),
    ),
    Mistake(
        "forgot to subtract the row's largest number: exp(89) is more than a float32 can hold, and inf / inf is NaN",
        wrong_in_float32(lambda z, launch: softmax_of(z, as_float(0)) if z.max() > 88 else None),
    ),
    *(
        Mistake(
            "the largest begins at a fixed number, and in a row whose numbers all lie below it every exponential is 0: "
            "begin with a number of the row",
            wrong_in_float32(
                lambda z, launch, least=least: softmax_of(z, np.maximum(z.max(axis=1, keepdims=True), least))
            ),
        )
        for least in map(as_float, (0, -100, -500, -999, -1e3, -9999, -1e4, -1e5, -1e6))
    ),
    Mistake(
        "the largest of the rows so far is subtracted: begin anew for each row, with z[row, 0]",
        wrong_in_float32(lambda z, launch: softmax_of(z, np.maximum.accumulate(z.max(axis=1, keepdims=True), axis=0))),
    ),
    Mistake(
        "the largest of the whole matrix is subtracted: a row far below it has only exponentials that are 0. Begin "
        "anew for each row",
        wrong_in_float32(lambda z, launch: softmax_of(z, z.max())),
    ),
    Mistake(
        "the largest of each column is subtracted: z[row, j] belongs to the row, whose largest is asked for",
        wrong_in_float32(lambda z, launch: softmax_of(z, z.max(axis=0))),
    ),
    Mistake(
        "the row's first number is taken for the largest: the loop has to look at all of them",
        wrong_in_float32(lambda z, launch: softmax_of(z, z[:, :1])),
    ),
    Mistake(
        "the smallest number is subtracted: then every exponential is 1 or more, and the large ones overflow",
        wrong_in_float32(lambda z, launch: softmax_of(z, z.min(axis=1, keepdims=True))),
    ),
    Mistake(
        "the largest size is taken, as with abs: the largest of -3 and 2 is 2",
        wrong_in_float32(lambda z, launch: softmax_of(z, np.abs(z).max(axis=1, keepdims=True))),
    ),
    Mistake(
        "never divided by the sum",
        wrong_in_float32(lambda z, launch: np.exp(z - z.max(axis=1, keepdims=True))),
    ),
]


def of_rows_before(lanes: int) -> Mistake:
    """The mistake of a sum that goes on from row to row. lanes: the threads of a row"""

    def wrong(z: np.ndarray, launch: Launch) -> Any:
        exponentials = np.exp(z.astype(np.float64) - z.max(axis=1, keepdims=True))
        at_once = threads(launch)[0] // lanes
        return exponentials / with_rows_before(exponentials.sum(axis=1), at_once, lanes)[:, None]

    return Mistake(ROWS_BEFORE.format("total"), wrong)


SOFTMAX_BY_HAND = [
    ([[0.0, 0.0], [0.0, np.log(3.0)]], [[0.5, 0.5], [0.25, 0.75]]),
    ([[0.0, -1000.0], [0.0, 0.0]], [[1.0, 0.0], [0.5, 0.5]]),
    ([[0.0, 1000.0], [1000.0, 1000.0]], [[0.0, 1.0], [0.5, 0.5]]),
    ([[-1000.0, -1000.0], [-2000.0, -1000.0]], [[0.5, 0.5], [0.0, 1.0]]),
    ([[-1000.0, -1000.0], [1000.0, 1000.0]], [[0.5, 0.5], [0.5, 0.5]]),
    ([[1000.0, 1000.0], [-1000.0, -1000.0]], [[0.5, 0.5], [0.5, 0.5]]),
    ([[-1200.0, -1200.0], [-20000.0, -20000.0]], [[0.5, 0.5], [0.5, 0.5]]),
    ([[-1e9, -1e9], [-1e6, -1e6]], [[0.5, 0.5], [0.5, 0.5]]),
]
"""In the second the number of the largest size is not the largest. The third has numbers whose exponentials overflow,
and a largest that is not the first; the fourth has no number above 0. In the last four the rows lie far apart."""


def softmax_exercise(kernel: Any, launches: Callable[[int], list[Launch]], mistakes: Sequence[Mistake]) -> Exercise:
    """The exercise of softmax of every row. launches: makes the launches for this many rows"""

    def arguments(rng: np.random.Generator, size: tuple[int, int, Launch]) -> tuple[Any, ...]:
        return far_apart(rng, *size[:2]), size[2]

    shapes = [(1, 1), (1, 31), (2, 33), (5, 70), (7, 13)]
    return Exercise(
        call=lambda z, launch: line_by_line(kernel, launch, z, Out(z.shape)),
        reference=lambda z, launch: below("activations", "softmax", z),
        show=lambda z, launch: f"{kernel.__name__}{launch} of z {z.shape}",
        hand=[((as_float(z), launches(2)[0]), output) for z, output in SOFTMAX_BY_HAND],
        arguments=arguments,
        typical=(4, 37, launches(4)[0]),
        sizes=[(*shape, launch) for shape in shapes for launch in launches(shape[0])],
        dtype="float32",
        terms=lambda z, launch: z.shape[1] + 8,
        scale=lambda z, launch: softmax_scale(z.astype(np.float64)),
        mistakes=mistakes,
    )


def softmax_thread() -> list[Check]:
    """Softmax with a thread for each row."""
    kernel = module("kernels.softmax").softmax_thread
    memory = watched(
        kernel,
        Launch(2, 2),
        lambda rng: (random(rng, 8, 5), Out((8, 5))),
        work=[Work(1, 2, row=5)],
        race="two threads work on one row: a thread goes on by as many rows as the grid has threads, cuda.gridsize(1)",
    )
    types = only_float32(kernel, Launch(1, 2), lambda rng: (random(rng, 3, 4), Out((3, 4))))
    mistakes = [*SOFTMAX_MISTAKES, of_rows_before(1)]
    return kernel_checks(
        replace(softmax_exercise(kernel, any_grid, mistakes), memory=memory, types=types),
        same=[(0, 1)],
        special=ONLY_NAN,
    )


def softmax_warp() -> list[Check]:
    """Softmax with a warp for each row."""
    kernel = module("kernels.softmax").softmax_warp

    def own_sum(z: np.ndarray, launch: Launch) -> np.ndarray:
        exponentials = np.exp(z - z.max(axis=1, keepdims=True))
        lanes = [exponentials[:, lane::WARP].sum(axis=1) for lane in range(min(WARP, z.shape[1]))]
        return exponentials / np.stack([lanes[j % WARP] for j in range(z.shape[1])], axis=1)

    mistakes = [
        *left_early(),
        Mistake(
            "the largest over the own lane only: warp_largest makes it that of all 32",
            wrong_in_float32(lambda z, launch: softmax_of(z, of_own_lane(z))),
        ),
        Mistake(
            "divided by the sum over the own lane only: warp_sum makes it that of all 32", wrong_in_float32(own_sum)
        ),
        *SOFTMAX_MISTAKES,
        of_rows_before(WARP),
    ]
    exercise = softmax_exercise(kernel, warps, mistakes)
    memory = followed(
        kernel,
        Launch(2, (WARP, 2)),
        lambda rng: (random(rng, 8, 64), Out((8, 64))),
        side_by_side=[0, 1],
        shared_out=[0, 1],
        work=[Work(1, 4)],
    )
    types = only_float32(kernel, Launch(1, (WARP, 1)), lambda rng: (random(rng, 2, 40), Out((2, 40))))
    return kernel_checks(replace(exercise, memory=memory, types=types), same=[(0, 1)], special=ONLY_NAN)


NO_TREE = (
    "not a tree: its levels take half as many sums each, log2(512) = 9 levels of one addition a thread. Atomic "
    "additions to one number, and a loop of one thread over all sums, come one after the other"
)


ONE_WRITES = "the sum stands in shared memory, for all to see, and one thread writes it out: if thread == 0"

IDLE_LANES = (
    "in every warp a part of the lanes is idle. If thread i adds from i + half, whole warps fall idle, and need not be "
    "run at all"
)

SAME_BANKS = (
    "the threads of a warp reach every second number, every fourth and so on, which lie in the same banks. If thread i "
    "adds from i + half, a warp reads neighbours"
)


def total_by_tree() -> list[Check]:
    """The sum of a vector, by one block."""
    sums = module("kernels.sums")
    kernel, block = sums.total_by_tree, sums.BLOCK
    launch = Launch(1, block)

    def places(vector: np.ndarray) -> np.ndarray:
        """What each thread has added up by itself: (block, 1)."""
        padded = np.zeros(-(-vector.size // block) * block)
        padded[: vector.size] = vector
        return padded.reshape(-1, block).sum(axis=0)[:, None]

    return kernel_checks(
        Exercise(
            call=lambda vector: launched(kernel, launch, vector, Out((1,))),
            reference=lambda vector: np.array([vector.astype(np.float64).sum()]),
            show=lambda vector: f"{kernel.__name__}{launch} of {vector.size} numbers",
            hand=[((as_float([1, 2, 3, 4]),), [10.0]), ((np.ones(700, np.float32),), [700.0])],
            arguments=lambda rng, size: (random(rng, size),),
            typical=777,
            sizes=[1, 2, 31, block - 1, block, block + 1, 2 * block + 1],
            dtype="float32",
            terms=lambda vector: vector.size,
            scale=lambda vector: np.abs(vector).sum(),
            mistakes=[
                *left_early(),
                *block_sum_mistakes(f"{block} threads", block, places),
                Mistake(
                    f"only the first {block} numbers are added: a thread takes every {block}th, not one",
                    lambda vector: vector[:block].sum(keepdims=True),
                ),
            ],
            memory=watched(
                kernel,
                launch,
                lambda rng: (random(rng, 600), Out((1,))),
                COALESCED,
                reads(0, 1, "a number is fetched more than once: add it to the thread's own sum, and that is all"),
                stores(1, 1, ONE_WRITES),
                race=BARRIER_MISSING,
                atomics=NO_TREE,
                work=[
                    Work(0, 2, "load", "each thread takes every 512th number: here one does the work of many"),
                    Work(None, 2 * block.bit_length(), "load", NO_TREE),
                ],
                # In nine levels with two loads each, 20 warps have work, and 95 if every second thread is idle.
                remarks=[no_bank_conflicts(SAME_BANKS), requests_of_shared(4 * block // WARP, IDLE_LANES)],
            ),
            types=only_float32(kernel, launch, lambda rng: (random(rng, 600), Out((1,)))),
        ),
        sizes=[600],
        special=APART,
    )


FIVE = "five questions are enough for 32 lanes: 16 away, 8, 4, 2, 1, each answer added before the next question"


def shuffled(down: bool, steps: Sequence[int]) -> Callable[..., np.ndarray]:
    """The number of each lane after these shuffles: down (lanes beyond the end keep their own), or across."""

    def wrong(values: np.ndarray) -> np.ndarray:
        found = values.astype(np.float64).reshape(-1, WARP)
        lane = np.arange(WARP)
        for step in steps:
            other = np.where(lane + step < WARP, lane + step, lane) if down else lane ^ step
            found = found + found[:, other]
        return found.ravel()

    return wrong


def warp_sum() -> list[Check]:
    """The device function, called by a kernel that writes the sum of every lane."""
    cuda, of_warp = module("backend").cuda, module("kernels.softmax").warp_sum
    of_the_project(of_warp, device=True)

    def launch(values: np.ndarray) -> Launch:
        """One warp a block, or two in blocks of (32, 2)."""
        number = values.size // WARP
        return Launch(number // 2, (WARP, 2)) if number % 2 == 0 else Launch(number, WARP)

    @cuda.jit
    def sum_in_every_lane(values, sums):  # type: ignore[no-untyped-def]
        i = (cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y) * cuda.blockDim.x + cuda.threadIdx.x
        sums[i] = of_warp(values[i])

    one = np.zeros(WARP, np.float32)
    one[[3, 20]] = 5, 2
    return kernel_checks(
        Exercise(
            call=lambda values: line_by_line(sum_in_every_lane, launch(values), values, Out(values.shape)),
            reference=lambda values: np.repeat(values.astype(np.float64).reshape(-1, WARP).sum(axis=1), WARP),
            show=lambda values: f"warp_sum in each lane of {plural(values.size // WARP, 'warp')}",
            hand=[((one,), np.full(WARP, 7.0)), ((np.ones(WARP, np.float32),), np.full(WARP, 32.0))],
            arguments=lambda rng, size: (random(rng, size * WARP),),
            typical=1,
            sizes=[1, 2, 3, 4],
            dtype="float32",
            terms=lambda values: WARP,
            scale=lambda values: np.repeat(np.abs(values).reshape(-1, WARP).sum(axis=1), WARP),
            mistakes=[
                Mistake(
                    "the sum is right in lane 0 only: shfl_down looks one way, shfl_xor both, and every lane needs it",
                    shuffled(True, [16, 8, 4, 2, 1]),
                ),
                Mistake(
                    "the last step is left out: offset 1 is one, too",
                    shuffled(False, [16, 8, 4, 2]),
                ),
                Mistake(
                    "the first step is left out: half of 32 lanes is 16",
                    shuffled(False, [8, 4, 2, 1]),
                ),
                Mistake(
                    "each value is asked for, but not added to the own one",
                    lambda values: values[np.arange(values.size) ^ (WARP - 1)],
                ),
            ],
            memory=followed(sum_in_every_lane, Launch(1, 2 * WARP), lambda rng: (random(rng, 64), Out((64,)))),
            types=only_float32(
                sum_in_every_lane,
                Launch(1, WARP),
                lambda rng: (random(rng, WARP), Out((WARP,))),
                AtMost("add", 5, FIVE),
            ),
        )
    )


GRADES: dict[str, Callable[[], list[Check]]] = {
    "13.1": softmax_thread,
    "13.2": total_by_tree,
    "13.3": warp_sum,
    "13.4": softmax_warp,
}
