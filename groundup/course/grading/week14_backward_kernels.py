"""Week 14: the derivative of softmax, the sums of columns, and the gradient of the loss."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from groundup.course.checks.check import Check
from groundup.course.checks.derivatives import gradient_check
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.calling.early_returns import left_early, no_early_return
from groundup.course.grading.calling.kernel_arithmetic import only_float32
from groundup.course.grading.calling.kernel_launches import Launch, Out, as_float, launched, module, random, threads
from groundup.course.grading.calling.kernel_memory import COALESCED, watched
from groundup.course.grading.calling.launched_again import APART, ONLY_NAN, kernel_checks
from groundup.course.grading.calling.line_by_line import followed, line_by_line
from groundup.course.grading.calling.shared_work import Work
from groundup.course.grading.problems.cross_entropy import slopes_scale
from groundup.course.grading.problems.kernel_losses import (
    LOGITS_BY_HAND,
    SHAPES,
    SLOPES_BY_HAND,
    TYPICAL,
    logits_and_labels,
    loss_gradient_check,
    row_launches,
    slope_mistakes,
)
from groundup.course.grading.problems.kernel_reductions import (
    BARRIER_MISSING,
    ROWS_BEFORE,
    WARP,
    below,
    block_sum_mistakes,
    softmax_of,
    warps,
    with_rows_before,
)


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

    def rows_before(g: np.ndarray, s: np.ndarray, launch: Launch) -> np.ndarray:
        sums = with_rows_before((g * s).sum(axis=1), threads(launch)[0] // WARP, WARP)
        return (g - sums[:, None]) * s

    direction = np.random.default_rng(7).standard_normal((2, 35))
    wide = np.zeros((1, 33))
    wide[0, [0, 32]] = 1.0
    by_hand: list[tuple[Any, Any, Any]] = [
        # of 33 outputs of 1/32 each: the sum is 2/32, and the slopes are (1 - 1/16) / 32 and -1/16 / 32
        (wide, np.full((1, 33), 1 / 32), np.where(wide == 1, 15 / 512, -1 / 512)),
        ([[1.0, 0.0], [4.0, 2.0]], [[0.25, 0.75], [0.5, 0.5]], [[0.1875, -0.1875], [0.5, -0.5]]),
        ([[2.0, 2.0]], [[0.1, 0.9]], [[0.0, 0.0]]),
    ]
    shapes = [(1, 1), (1, 31), (2, 33), (5, 70), (7, 13)]
    return kernel_checks(
        Exercise(
            call=call,
            reference=lambda grad, output, launch: below("activations", "softmax_backward", grad, output, output),
            show=lambda grad, output, launch: f"{kernel.__name__}{launch}, output {output.shape}",
            hand=[((as_float(g), as_float(s), warps(len(s))[0]), grad_z) for g, s, grad_z in by_hand],
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
            scale=lambda grad, output, launch: float(
                np.abs(grad).max() * max(1.0, np.abs(output).sum(axis=1).max()) * max(1.0, np.abs(output).max())
            ),
            mistakes=[
                *left_early(),
                Mistake(
                    "only the slope of each output by its own z, s (1 - s): every output depends on every z of its row",
                    lambda g, s, launch: g * s * (1 - s),
                ),
                Mistake(
                    "the sum of grad_output * output over the row is not subtracted",
                    lambda g, s, launch: g * s,
                ),
                Mistake("the sum over the own lane only: warp_sum makes it that of all 32", own_lane),
                Mistake(
                    "not multiplied by the output at the end",
                    lambda g, s, launch: g - (g * s).sum(axis=1, keepdims=True),
                ),
                Mistake(
                    "the sum is that of grad_output alone, without the output",
                    lambda g, s, launch: (g - g.sum(axis=1, keepdims=True)) * s,
                ),
                Mistake(ROWS_BEFORE.format("the variable"), rows_before),
            ],
            memory=followed(
                kernel,
                Launch(2, (WARP, 2)),
                lambda rng: (random(rng, 8, 64), random(rng, 8, 64), Out((8, 64))),
                side_by_side=[0, 1, 2],
                written_once=[2],
                shared_out=[0, 1, 2],
                work=[Work(2, 4)],
            ),
            types=only_float32(
                kernel,
                Launch(1, (WARP, 1)),
                lambda rng: (random(rng, 2, 40), random(rng, 2, 40), Out((2, 40))),
            ),
        ),
        same=[(0, 2)],
        special=ONLY_NAN,
    )


NOT_DETERMINISTIC = (
    "atomic additions come in the order in which the device runs its threads: another order rounds otherwise, and two "
    "runs differ. A tree in shared memory adds in an order that depends on the shape alone"
)

ROWS_AT_ONCE = "one thread walks down the rows that 16 should share: threadIdx.y is the row to start with, on by WARPS"


def columns_by_block() -> list[Check]:
    """The sums of a matrix's columns."""
    sums = module("kernels.sums")
    kernel, lanes, rows_at_once = sums.columns_by_block, sums.LANES, sums.WARPS

    def launch(matrix: np.ndarray) -> Launch:
        return Launch(-(-matrix.shape[1] // lanes), (lanes, rows_at_once))

    def places(matrix: np.ndarray) -> np.ndarray:
        """What each row of threads has added up by itself: (WARPS, columns)."""
        rows, columns = matrix.shape
        padded = np.zeros((-(-rows // rows_at_once) * rows_at_once, columns))
        padded[:rows] = matrix
        return padded.reshape(-1, rows_at_once, columns).sum(axis=0)

    memory = watched(
        kernel,
        Launch(2, (lanes, rows_at_once)),
        lambda rng: (random(rng, 32, 64), Out((64,))),
        COALESCED,
        race=BARRIER_MISSING,
        atomics=NOT_DETERMINISTIC,
        work=[Work(0, 32 // rows_at_once + 1, "load", ROWS_AT_ONCE)],
    )
    types = only_float32(kernel, Launch(1, (lanes, rows_at_once)), lambda rng: (random(rng, 20, 3), Out((3,))))
    return kernel_checks(
        Exercise(
            call=lambda matrix: launched(kernel, launch(matrix), matrix, Out(matrix.shape[1:])),
            reference=lambda matrix: matrix.sum(axis=0, dtype=np.float64),
            show=lambda matrix: f"{kernel.__name__}{launch(matrix)} of matrix {matrix.shape}",
            hand=[
                ((as_float([[1, 2], [3, 4], [5, 6]]),), [9.0, 12.0]),
                ((np.ones((50, 3), np.float32),), [50.0, 50.0, 50.0]),
            ],
            arguments=lambda rng, size: (random(rng, *size),),
            typical=(37, 40),
            sizes=[(1, 1), (1, 77), (15, 32), (16, 33), (17, 31), (101, 2)],
            dtype="float32",
            terms=lambda matrix: matrix.shape[0],
            scale=lambda matrix: np.abs(matrix).sum(axis=0),
            mistakes=[
                *left_early(),
                *block_sum_mistakes(f"{rows_at_once} rows", rows_at_once, places),
                Mistake(
                    f"only the first {rows_at_once} rows are added: a thread takes every {rows_at_once}th row, not one",
                    lambda matrix: matrix[:rows_at_once].sum(axis=0),
                ),
                Mistake(
                    "the mean over the rows: a bias is added to every row, so its gradient is their sum",
                    lambda matrix: matrix.mean(axis=0),
                ),
            ],
            memory=no_early_return(kernel, memory),
            types=types,
        ),
        sizes=[(37, 5)],
        special=APART,
    )


def exponentials_to_slopes() -> list[Check]:
    """The device function, inside the project's kernel of the gradient."""
    make = module("kernels.losses").softmax_kernels

    @cache
    def kernel(lanes: int) -> Any:
        return make(lanes)[1]

    def call(logits: np.ndarray, labels: np.ndarray, lanes: int, launch: Launch) -> Any:
        return line_by_line(kernel(lanes), launch, logits, labels, Out(logits.shape, str(logits.dtype)))

    return kernel_checks(
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
            scale=lambda logits, labels, lanes, launch: slopes_scale(logits.astype(np.float64), labels),
            mistakes=slope_mistakes(),
            memory=followed(
                kernel(WARP),
                Launch(1, (WARP, 2)),
                lambda rng: (*logits_and_labels(rng, (5, 64, 0, 0))[:2], Out((5, 64))),
                side_by_side=[2],
                shared_out=[2],
            ),
            types=only_float32(
                kernel(WARP),
                Launch(1, (WARP, 1)),
                lambda rng: (*logits_and_labels(rng, (2, 40, 0, 0))[:2], Out((2, 40))),
            ),
        ),
        special=ONLY_NAN,
    )


GRADES: dict[str, Callable[[], list[Check]]] = {
    "14.1": softmax_warp_backward,
    "14.2": columns_by_block,
    "14.3": exponentials_to_slopes,
}
