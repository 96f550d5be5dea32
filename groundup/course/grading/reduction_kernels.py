"""Weeks 13 and 14, of phase 5: softmax, sums, and the way back. What is right comes from the floor below, in float64.

Kernels that wait at barriers are compiled and traced, as kernels.py does it. The others are looked at line by line,
which costs no compiling: in two dtypes, and with shuffles.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from groundup.course.checks import Check, Exercise, Tally, checks_of, gradient_check
from groundup.course.grading.kernels import (
    COALESCED,
    Launch,
    Out,
    any_grid,
    backend,
    launched,
    module,
    of_the_project,
    previous_floor,
    random,
    reads,
    watched,
)
from groundup.course.grading.line_by_line import followed, line_by_line
from groundup.course.likely import Guess

WARP = 32
FLOAT64 = "float64"


@cache
def floor() -> Any:
    """The floor below."""
    return previous_floor()


def below(room: str, function: str, *arrays: np.ndarray) -> np.ndarray:
    """A function of the floor below, in float64: NumPy arrays in and out. Whole numbers stay what they are."""
    stage = floor()
    given = [stage.arrays.asarray(a, FLOAT64) if a.dtype.kind == "f" else a for a in arrays]
    result = getattr(getattr(stage, room), function)(*given)
    return np.asarray(stage.arrays.to_host(result) if np.ndim(result) else result, np.float64)


def f32(values: Any) -> np.ndarray:
    """Hand-made numbers as kernels take them."""
    return np.array(values, np.float32)


def wrong_in_float32(compute: Callable[..., Any]) -> Callable[..., Any]:
    """What a mistake gives, overflows and all."""

    def wrong(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return compute(*arguments)

    return wrong


# ---------------------------------------------------------------- week 13: softmax and reductions


def softmax_of(z: np.ndarray, largest: np.ndarray, axis: int = 1) -> np.ndarray:
    """exp(z - largest), divided by its sum along an axis."""
    exponentials = np.exp(z - largest)
    return exponentials / exponentials.sum(axis=axis, keepdims=True)


def of_own_lane(z: np.ndarray) -> np.ndarray:
    """For each number the largest that its lane has seen: of every 32nd column, and of the first."""
    lanes = [np.maximum(z[:, lane::WARP].max(axis=1), z[:, 0]) for lane in range(min(WARP, z.shape[1]))]
    return np.stack([lanes[j % WARP] for j in range(z.shape[1])], axis=1)


SOFTMAX_GUESSES = [
    Guess(
        "normalised over the wrong axis: each row adds up to 1, not each column",
        wrong_in_float32(lambda z, launch: softmax_of(z, z.max(axis=0), axis=0)),
    ),
    Guess(
        "forgot to subtract the row's largest number: exp(89) is more than a float32 can hold, and inf / inf is NaN",
        wrong_in_float32(lambda z, launch: softmax_of(z, f32(0))),
    ),
    Guess(
        "the row's first number is taken for the largest: the loop has to look at all of them",
        wrong_in_float32(lambda z, launch: softmax_of(z, z[:, :1])),
    ),
    Guess(
        "never divided by the sum",
        wrong_in_float32(lambda z, launch: np.exp(z - z.max(axis=1, keepdims=True))),
    ),
]

SOFTMAX_BY_HAND = [
    ([[0.0, 0.0], [0.0, np.log(3.0)]], [[0.5, 0.5], [0.25, 0.75]]),
    ([[0.0, 1000.0], [1000.0, 1000.0]], [[0.0, 1.0], [0.5, 0.5]]),
]
"""The second has numbers whose exponentials overflow, and a largest that is not the first."""


def softmax_exercise(kernel: Any, launches: Callable[[int], list[Launch]], guesses: Sequence[Guess]) -> Exercise:
    """Softmax of every row. launches: for so many rows"""

    def arguments(rng: np.random.Generator, size: tuple[int, int, Launch]) -> tuple[Any, ...]:
        return random(rng, *size[:2]), size[2]

    shapes = [(1, 1), (1, 31), (2, 33), (5, 64), (7, 13)]
    return Exercise(
        call=lambda z, launch: line_by_line(kernel, launch, z, Out(z.shape)),
        reference=lambda z, launch: below("activations", "softmax", z),
        show=lambda z, launch: f"{kernel.__name__}{launch} of z {z.shape}",
        hand=[((f32(z), launches(2)[0]), output) for z, output in SOFTMAX_BY_HAND],
        arguments=arguments,
        typical=(4, 37, launches(4)[0]),
        sizes=[(*shape, launch) for shape in shapes for launch in launches(shape[0])],
        dtype="float32",
        terms=lambda z, launch: z.shape[1] + 8,
        scale=lambda z, launch: 1.0,
        guesses=guesses,
    )


def softmax_thread() -> list[Check]:
    """A thread for each row."""
    kernel = module("kernels.softmax").softmax_thread
    memory = watched(
        kernel,
        Launch(2, 2),
        lambda rng: (random(rng, 7, 5), Out((7, 5))),
        race="two threads work on one row: a thread goes on by as many rows as the grid has threads, cuda.gridsize(1)",
    )
    return checks_of(replace(softmax_exercise(kernel, any_grid, SOFTMAX_GUESSES), memory=memory))


def warps(rows: int) -> list[Launch]:
    """Blocks of (32, warps): more warps than rows, and so few that each has several."""
    return [Launch(rows // 2 + 1, (WARP, 2)), Launch(1, (WARP, 1))]


def softmax_warp() -> list[Check]:
    """A warp for each row."""
    kernel = module("kernels.softmax").softmax_warp

    def own_sum(z: np.ndarray, launch: Launch) -> np.ndarray:
        exponentials = np.exp(z - z.max(axis=1, keepdims=True))
        lanes = [exponentials[:, lane::WARP].sum(axis=1) for lane in range(min(WARP, z.shape[1]))]
        return exponentials / np.stack([lanes[j % WARP] for j in range(z.shape[1])], axis=1)

    guesses = [
        Guess(
            "the largest over the own lane only: warp_largest makes it that of all 32",
            wrong_in_float32(lambda z, launch: softmax_of(z, of_own_lane(z))),
        ),
        Guess("divided by the sum over the own lane only: warp_sum makes it that of all 32", wrong_in_float32(own_sum)),
        *SOFTMAX_GUESSES,
    ]
    exercise = softmax_exercise(kernel, warps, guesses)
    memory = followed(kernel, Launch(1, (WARP, 2)), lambda rng: (random(rng, 5, 64), Out((5, 64))), side_by_side=[0, 1])
    return checks_of(replace(exercise, memory=memory))


BARRIER_IN_TREE = "barrier missing inside the tree: a level must not begin before the one before it is done everywhere"
BARRIER_MISSING = (
    "a barrier is missing: one comes after all sums are in shared memory, before the tree begins, and one after each "
    "of its levels"
)


def block_sum_guesses(reading: str, block: int, terms: Callable[..., np.ndarray]) -> list[Guess]:
    """What goes wrong in a tree over `block` places of shared memory.

    reading: what a place belongs to, for the messages
    terms: from the arguments, what stands in the places before the tree, (block, sums)
    """

    def over(places: Callable[[np.ndarray], np.ndarray]) -> Callable[..., Any]:
        def wrong(*arguments: Any) -> Any:
            found = terms(*arguments)
            return found[places(np.arange(block))].sum(axis=0)

        return wrong

    powers = [0, *(1 << i for i in range(block.bit_length() - 1))]
    return [
        Guess(
            f"the first level of the tree is left out: it starts with half of all {reading}",
            over(lambda place: place < block // 2),
        ),
        Guess(
            "the last level of the tree is left out: the loop goes on until the halves are one place long",
            over(lambda place: place % 2 == 0),
        ),
        Guess(
            BARRIER_IN_TREE,
            over(lambda place: np.isin(place, powers)),
        ),
        Guess("no tree: only what the first place holds comes out", over(lambda place: place == 0)),
    ]


def total_by_tree() -> list[Check]:
    """The sum of a vector, by one block."""
    sums = module("kernels.sums")
    kernel, block = sums.total_by_tree, sums.BLOCK
    launch = Launch(1, block)

    def places(vector: np.ndarray) -> np.ndarray:
        """What each thread has added up on its own: (block, 1)."""
        padded = np.zeros(-(-vector.size // block) * block)
        padded[: vector.size] = vector
        return padded.reshape(-1, block).sum(axis=0)[:, None]

    return checks_of(
        Exercise(
            call=lambda vector: launched(kernel, launch, vector, Out((1,))),
            reference=lambda vector: np.array([vector.astype(np.float64).sum()]),
            show=lambda vector: f"{kernel.__name__}{launch} of {vector.size} numbers",
            hand=[((f32([1, 2, 3, 4]),), [10.0]), ((np.ones(700, np.float32),), [700.0])],
            arguments=lambda rng, size: (random(rng, size),),
            typical=777,
            sizes=[1, 2, 31, block - 1, block, block + 1, 2 * block + 1],
            dtype="float32",
            terms=lambda vector: vector.size,
            scale=lambda vector: np.abs(vector).sum(),
            guesses=[
                *block_sum_guesses(f"{block} threads", block, places),
                Guess(
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
                race=BARRIER_MISSING,
            ),
        )
    )


def shuffled(down: bool, steps: Sequence[int]) -> Callable[..., np.ndarray]:
    """What each lane has after such shuffles: down, where lanes beyond the end keep their own, or across."""

    def wrong(values: np.ndarray) -> np.ndarray:
        found = values.astype(np.float64).reshape(-1, WARP)
        lane = np.arange(WARP)
        for step in steps:
            other = np.where(lane + step < WARP, lane + step, lane) if down else lane ^ step
            found = found + found[:, other]
        return found.ravel()

    return wrong


def warp_sum() -> list[Check]:
    """The device function, in a kernel that gives the sum of every lane."""
    cuda, of_warp = module("backend").cuda, module("kernels.softmax").warp_sum
    of_the_project(of_warp, device=True)

    @cuda.jit
    def sum_in_every_lane(values, sums):  # type: ignore[no-untyped-def]
        i = cuda.grid(1)
        sums[i] = of_warp(values[i])

    def launch(values: np.ndarray) -> Launch:
        return Launch(1, values.size)

    one = np.zeros(WARP, np.float32)
    one[[3, 20]] = 5, 2
    return checks_of(
        Exercise(
            call=lambda values: line_by_line(sum_in_every_lane, launch(values), values, Out(values.shape)),
            reference=lambda values: np.repeat(values.astype(np.float64).reshape(-1, WARP).sum(axis=1), WARP),
            show=lambda values: f"warp_sum in each lane of {values.size // WARP} warps",
            hand=[((one,), np.full(WARP, 7.0)), ((np.ones(WARP, np.float32),), np.full(WARP, 32.0))],
            arguments=lambda rng, size: (random(rng, size * WARP),),
            typical=1,
            sizes=[1, 2, 3],
            dtype="float32",
            terms=lambda values: WARP,
            scale=lambda values: np.repeat(np.abs(values).reshape(-1, WARP).sum(axis=1), WARP),
            guesses=[
                Guess(
                    "the sum is right in lane 0 only: shfl_down looks one way, shfl_xor both, and every lane needs it",
                    shuffled(True, [16, 8, 4, 2, 1]),
                ),
                Guess(
                    "the last step is left out: offset 1 is one, too",
                    shuffled(False, [16, 8, 4, 2]),
                ),
                Guess(
                    "the first step is left out: half of 32 lanes is 16",
                    shuffled(False, [8, 4, 2, 1]),
                ),
                Guess(
                    "each value is asked for, but not added to the own one",
                    lambda values: values[np.arange(values.size) ^ (WARP - 1)],
                ),
            ],
            memory=followed(sum_in_every_lane, Launch(1, 2 * WARP), lambda rng: (random(rng, 64), Out((64,)))),
        )
    )


# ---------------------------------------------------------------- week 14: backward kernels


def softmax_warp_backward() -> list[Check]:
    """The derivative of softmax, from its output."""
    kernel = module("kernels.softmax").softmax_warp_backward

    def call(grad: np.ndarray, output: np.ndarray, launch: Launch) -> Any:
        return line_by_line(kernel, launch, grad, output, Out(output.shape, str(output.dtype)))

    def arguments(rng: np.random.Generator, size: tuple[int, int, Launch]) -> tuple[Any, ...]:
        z = random(rng, *size[:2])
        return random(rng, *size[:2]), softmax_of(z, z.max(axis=1, keepdims=True)), size[2]

    def own_lane(g: np.ndarray, s: np.ndarray, launch: Launch) -> np.ndarray:
        lanes = [(g * s)[:, lane::WARP].sum(axis=1) for lane in range(min(WARP, s.shape[1]))]
        return (g - np.stack([lanes[j % WARP] for j in range(s.shape[1])], axis=1)) * s

    direction = np.random.default_rng(7).standard_normal((2, 35))
    wide = np.zeros((1, 33))
    wide[0, [0, 32]] = 1.0
    by_hand: list[tuple[Any, Any, Any]] = [
        # of 33 outputs of 1/32 each: the sum is 2/32, and the slopes are (1 - 1/16) / 32 and -1/16 / 32
        (wide, np.full((1, 33), 1 / 32), np.where(wide == 1, 15 / 512, -1 / 512)),
        ([[1.0, 0.0], [4.0, 2.0]], [[0.25, 0.75], [0.5, 0.5]], [[0.1875, -0.1875], [0.5, -0.5]]),
        ([[2.0, 2.0]], [[0.1, 0.9]], [[0.0, 0.0]]),
    ]
    shapes = [(1, 1), (1, 31), (2, 33), (5, 64), (7, 13)]
    return checks_of(
        Exercise(
            call=call,
            reference=lambda grad, output, launch: below("activations", "softmax_backward", grad, output, output),
            show=lambda grad, output, launch: f"{kernel.__name__}{launch}, output {output.shape}",
            hand=[((f32(g), f32(s), warps(len(s))[0]), grad_z) for g, s, grad_z in by_hand],
            arguments=arguments,
            typical=(4, 37, warps(4)[0]),
            sizes=[(*shape, launch) for shape in shapes for launch in warps(shape[0])],
            gradient=gradient_check(
                lambda z: float(np.sum(softmax_of(z, z.max(axis=1, keepdims=True)) * direction)),
                lambda z: call(direction, softmax_of(z, z.max(axis=1, keepdims=True)), warps(2)[0]),
                lambda rng: rng.standard_normal((2, 35)),
                "sum(softmax(z) * grad_output) for z (2, 35)",
            ),
            dtype="float32",
            terms=lambda grad, output, launch: output.shape[1] + 8,
            scale=lambda grad, output, launch: float(np.abs(grad).max()),
            guesses=[
                Guess(
                    "only the slope of each output by its own z, s (1 - s): every output depends on every z of its row",
                    lambda g, s, launch: g * s * (1 - s),
                ),
                Guess(
                    "the sum of grad_output * output over the row is not subtracted",
                    lambda g, s, launch: g * s,
                ),
                Guess("the sum over the own lane only: warp_sum makes it that of all 32", own_lane),
                Guess(
                    "not multiplied by the output at the end",
                    lambda g, s, launch: g - (g * s).sum(axis=1, keepdims=True),
                ),
                Guess(
                    "the sum is that of grad_output alone, without the output",
                    lambda g, s, launch: (g - g.sum(axis=1, keepdims=True)) * s,
                ),
            ],
            memory=followed(
                kernel,
                Launch(1, (WARP, 2)),
                lambda rng: (random(rng, 5, 64), random(rng, 5, 64), Out((5, 64))),
                side_by_side=[0, 1, 2],
            ),
        )
    )


NO_EARLY_RETURN = (
    "a guard before the barrier returns early: threads beyond the edge have left when the others wait for all of their "
    "block. Let them go along with a zero, and guard the last write"
)


def no_early_return(kernel: Any, then: Callable[[Tally], None]) -> Callable[[Tally], None]:
    """A check before another one: no `return` above the kernel's last barrier, which many devices forgive."""

    def check(tally: Tally) -> None:
        if backend() == "emulator":
            nodes = list(ast.walk(kernel.source.tree))
            barriers = [each.lineno for each in nodes if isinstance(each, ast.Attribute) and each.attr == "syncthreads"]
            early = [
                each.lineno for each in nodes if isinstance(each, ast.Return) and each.lineno < max(barriers, default=0)
            ]
            what = "a thread may return before a barrier that the others of its block wait at" if early else ""
            tally.holds(not early, what, likely=NO_EARLY_RETURN, line=early[0] if early else None)
        then(tally)

    return check


def columns_by_block() -> list[Check]:
    """The sums of a matrix's columns."""
    sums = module("kernels.sums")
    kernel, lanes, rows_at_once = sums.columns_by_block, sums.LANES, sums.WARPS

    def launch(matrix: np.ndarray) -> Launch:
        return Launch(-(-matrix.shape[1] // lanes), (lanes, rows_at_once))

    def places(matrix: np.ndarray) -> np.ndarray:
        """What each row of threads has added up on its own: (WARPS, columns)."""
        rows, columns = matrix.shape
        padded = np.zeros((-(-rows // rows_at_once) * rows_at_once, columns))
        padded[:rows] = matrix
        return padded.reshape(-1, rows_at_once, columns).sum(axis=0)

    memory = watched(
        kernel,
        Launch(2, (lanes, rows_at_once)),
        lambda rng: (random(rng, 20, 40), Out((40,))),
        COALESCED,
        race=BARRIER_MISSING,
    )
    return checks_of(
        Exercise(
            call=lambda matrix: launched(kernel, launch(matrix), matrix, Out(matrix.shape[1:])),
            reference=lambda matrix: matrix.sum(axis=0, dtype=np.float64),
            show=lambda matrix: f"{kernel.__name__}{launch(matrix)} of matrix {matrix.shape}",
            hand=[
                ((f32([[1, 2], [3, 4], [5, 6]]),), [9.0, 12.0]),
                ((np.ones((50, 3), np.float32),), [50.0, 50.0, 50.0]),
            ],
            arguments=lambda rng, size: (random(rng, *size),),
            typical=(37, 40),
            sizes=[(1, 1), (1, 77), (15, 32), (16, 33), (17, 31), (101, 2)],
            dtype="float32",
            terms=lambda matrix: matrix.shape[0],
            scale=lambda matrix: np.abs(matrix).sum(axis=0),
            guesses=[
                *block_sum_guesses(f"{rows_at_once} rows", rows_at_once, places),
                Guess(
                    f"only the first {rows_at_once} rows are added: a thread takes every {rows_at_once}th row, not one",
                    lambda matrix: matrix[:rows_at_once].sum(axis=0),
                ),
                Guess(
                    "the mean over the rows: a bias is added to every row, so its gradient is their sum",
                    lambda matrix: matrix.mean(axis=0),
                ),
            ],
            memory=no_early_return(kernel, memory),
        )
    )


def cross_entropy(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """What each row adds to the loss, in float64."""
    z = logits.astype(np.float64)
    shifted = z - z.max(axis=1, keepdims=True)
    own = shifted[np.arange(len(z)), labels]
    return (np.log(np.exp(shifted).sum(axis=1)) - own) / len(z)


def one_hot(labels: np.ndarray, columns: int) -> np.ndarray:
    """1 in each row's label's column."""
    return np.eye(columns)[labels]


def logits_and_labels(rng: np.random.Generator, size: tuple[Any, ...]) -> tuple[Any, ...]:
    """(logits, labels, lanes, launch) of (rows, columns, lanes, launch)."""
    rows, columns, lanes, launch = size
    return random(rng, rows, columns), rng.integers(0, columns, rows).astype(np.int32), lanes, launch


def row_launches(rows: int) -> list[tuple[int, Launch]]:
    """(lanes, launch) with a warp and with a thread for each row: more than rows, and so few that each has several."""
    return [
        (WARP, Launch(rows // 2 + 1, (WARP, 2))),
        (WARP, Launch(1, (WARP, 1))),
        (1, Launch(1, (1, rows + 3))),
        (1, Launch(2, (1, 2))),
    ]


LOGITS_BY_HAND = f32([[0.0, np.log(3.0)], [0.0, 0.0]]), np.array([1, 0], np.int32)
SLOPES_BY_HAND = [[0.125, -0.125], [-0.25, 0.25]]
"""Their softmax is (1/4, 3/4) and (1/2, 1/2); minus 1 at the label; divided by two rows."""

LOSSES_BY_HAND = [0.143841036, 0.346573590]
"""ln(4/3) / 2 and ln(2) / 2."""

SHAPES = [(1, 1), (1, 7), (3, 33), (5, 64), (7, 10)]
TYPICAL = (4, 37, *row_launches(4)[0])


def slope_guesses(output: str = "") -> list[Guess]:
    """What goes wrong between exponentials and the gradient; output: its name, where there are several."""

    def exponentials(logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = np.exp(logits - logits.max(axis=1, keepdims=True))
        return found, found.sum(axis=1, keepdims=True)

    def softmax(logits: np.ndarray) -> np.ndarray:
        found, total = exponentials(logits)
        return found / total

    def one_too_early(logits: np.ndarray, labels: np.ndarray, *launch: Any) -> np.ndarray:
        found, total = exponentials(logits)
        return (found - one_hot(labels, logits.shape[1])) / total / len(logits)

    return [
        Guess(
            "forgot the batch mean: the loss is the mean over the rows, so every slope is divided by their number",
            lambda logits, labels, *launch: softmax(logits) - one_hot(labels, logits.shape[1]),
            output,
        ),
        Guess(
            "the label's column is not treated: there the slope is softmax - 1",
            lambda logits, labels, *launch: softmax(logits) / len(logits),
            output,
        ),
        Guess(
            "1 is subtracted before the division by the sum: subtract the sum there, or 1 after the division",
            one_too_early,
            output,
        ),
        Guess(
            "divided by the number of elements: the loss is the mean over the rows only",
            lambda logits, labels, *launch: (softmax(logits) - one_hot(labels, logits.shape[1])) / logits.size,
            output,
        ),
        Guess(
            "only the label's column is written as it should be: the others hold exponentials that are not divided yet",
            lambda logits, labels, *launch: np.where(
                one_hot(labels, logits.shape[1]) == 1,
                (softmax(logits) - 1) / len(logits),
                exponentials(logits)[0],
            ),
            output,
        ),
        Guess(
            "only each lane's first column is treated: it goes on by cuda.blockDim.x until the row ends",
            lambda logits, labels, *launch: np.where(
                np.arange(logits.shape[1]) < WARP,
                (softmax(logits) - one_hot(labels, logits.shape[1])) / len(logits),
                exponentials(logits)[0],
            ),
            output,
        ),
        Guess(
            "grad still holds the exponentials",
            lambda logits, labels, *launch: exponentials(logits)[0],
            output,
        ),
    ]


def loss_gradient_check(grad_of: Callable[[np.ndarray, np.ndarray], Any], name: str = "") -> Callable[[Tally], None]:
    """A kernel's gradient, in float64, against the slopes of softmax cross-entropy."""
    labels = np.array([2, 0, 34], np.int32)

    def on_these(guess: Guess) -> Guess:
        return replace(guess, wrong=lambda logits: guess.wrong(logits, labels))

    return gradient_check(
        lambda logits: float(cross_entropy(logits, labels).sum()),
        lambda logits: grad_of(logits, labels),
        lambda rng: rng.standard_normal((3, 35)),
        "softmax cross-entropy of logits (3, 35)",
        name=name,
        guesses=[on_these(guess) for guess in slope_guesses(name)],
    )


def exponentials_to_slopes() -> list[Check]:
    """The device function, in the kernel of the gradient that the project has around it."""
    make = module("kernels.losses").softmax_kernels

    @cache
    def kernel(lanes: int) -> Any:
        return make(lanes)[1]

    def call(logits: np.ndarray, labels: np.ndarray, lanes: int, launch: Launch) -> Any:
        return line_by_line(kernel(lanes), launch, logits, labels, Out(logits.shape, str(logits.dtype)))

    return checks_of(
        Exercise(
            call=call,
            reference=lambda logits, labels, lanes, launch: below(
                "losses", "softmax_cross_entropy_backward", logits, labels
            ),
            show=lambda logits, labels, lanes, launch: (
                f"softmax_cross_entropy_backward{launch} with exponentials_to_slopes, logits {logits.shape}"
            ),
            hand=[((*LOGITS_BY_HAND, *row_launches(2)[0]), SLOPES_BY_HAND)],
            arguments=logits_and_labels,
            typical=TYPICAL,
            sizes=[(*shape, *launch) for shape in SHAPES for launch in row_launches(shape[0])],
            gradient=loss_gradient_check(lambda logits, labels: call(logits, labels, *row_launches(3)[0])),
            dtype="float32",
            terms=lambda logits, labels, lanes, launch: logits.shape[1] + 8,
            scale=lambda logits, labels, lanes, launch: 1 / len(logits),
            guesses=slope_guesses(),
            memory=followed(
                kernel(WARP),
                Launch(1, (WARP, 2)),
                lambda rng: (*logits_and_labels(rng, (5, 64, 0, 0))[:2], Out((5, 64))),
                side_by_side=[2],
            ),
        )
    )


GRADES_13_14: dict[str, Callable[[], list[Check]]] = {
    "13.1": softmax_thread,
    "13.2": total_by_tree,
    "13.3": warp_sum,
    "13.4": softmax_warp,
    "14.1": softmax_warp_backward,
    "14.2": columns_by_block,
    "14.3": exponentials_to_slopes,
}
