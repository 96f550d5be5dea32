"""The gradient of the loss, for the kernels of weeks 14 and 16: arguments, results by hand, and known mistakes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from groundup.course.checks.check import Tally
from groundup.course.checks.derivatives import gradient_check
from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.calling.kernel_launches import Launch, as_float
from groundup.course.grading.problems.cross_entropy import one_hot
from groundup.course.grading.problems.kernel_reductions import WARP, far_apart


def cross_entropy(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The part of each row in the loss, in float64."""
    z = logits.astype(np.float64)
    shifted = z - z.max(axis=1, keepdims=True)
    own = shifted[np.arange(len(z)), labels]
    return (np.log(np.exp(shifted).sum(axis=1)) - own) / len(z)


def logits_and_labels(rng: np.random.Generator, size: tuple[Any, ...]) -> tuple[Any, ...]:
    """(logits, labels, lanes, launch) of (rows, columns, lanes, launch). The rows lie far apart."""
    rows, columns, lanes, launch = size
    return far_apart(rng, rows, columns, 200.0, 30.0), rng.integers(0, columns, rows).astype(np.int32), lanes, launch


def row_launches(rows: int) -> list[tuple[int, Launch]]:
    """(lanes, launch) with a warp and with a thread for each row: once more than there are rows, once far fewer."""
    return [
        (WARP, Launch(rows // 2 + 1, (WARP, 2))),
        (WARP, Launch(1, (WARP, 1))),
        (1, Launch(1, (1, rows + 3))),
        (1, Launch(2, (1, 2))),
    ]


LOGITS_BY_HAND = as_float([[0.0, np.log(3.0)], [0.0, 0.0]]), np.array([1, 0], np.int32)

SLOPES_BY_HAND = [[0.125, -0.125], [-0.25, 0.25]]
"""Their softmax is (1/4, 3/4) and (1/2, 1/2); minus 1 at the label; divided by two rows."""

LOSSES_BY_HAND = [0.143841036, 0.346573590]
"""ln(4/3) / 2 and ln(2) / 2."""

SHAPES = [(1, 1), (1, 7), (3, 33), (5, 70), (7, 10)]

TYPICAL = (4, 37, *row_launches(4)[0])


def slope_mistakes(output: str = "") -> list[Mistake]:
    """Known mistakes between the exponentials and the gradient. output: the name of the result, if there are
    several.
    """

    def exponentials(logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return powers, powers.sum(axis=1, keepdims=True)

    def softmax(logits: np.ndarray) -> np.ndarray:
        powers, total = exponentials(logits)
        return powers / total

    def one_too_early(logits: np.ndarray, labels: np.ndarray, *launch: Any) -> np.ndarray:
        powers, total = exponentials(logits)
        return (powers - one_hot(labels, logits.shape[1])) / total / len(logits)

    def subtracted_by_all(before: bool) -> Callable[..., np.ndarray]:
        """Every lane subtracts from the label's column, before or after it treats its own columns, one by one."""

        def wrong(logits: np.ndarray, labels: np.ndarray, *launch: Any) -> np.ndarray:
            lanes, rows = launch[0] if launch else WARP, len(logits)
            powers, total = exponentials(logits)
            lane, all_rows = labels % lanes, np.arange(rows)
            own, total, slopes = powers[all_rows, labels], total[:, 0], softmax(logits) / rows
            slopes[all_rows, labels] = (
                (own - (lane + 1) * total) / total / rows - (lanes - 1 - lane) * total
                if before
                else (own - lane / rows) / total / rows - (lanes - lane) / rows
            )
            return slopes

        return wrong

    def by_warps(logits: np.ndarray, labels: np.ndarray, *launch: Any) -> np.ndarray | None:
        """Every lane goes on by 32 columns, in a launch with fewer lanes: what lies between is left as it was."""
        lanes = launch[0] if launch else WARP
        done = np.arange(logits.shape[1]) % WARP < lanes
        right = (softmax(logits) - one_hot(labels, logits.shape[1])) / len(logits)
        return None if done.all() else np.where(done, right, exponentials(logits)[0])

    return [
        Mistake(
            "a lane goes on by 32 columns, and here a row has fewer lanes than 32: it goes on by cuda.blockDim.x",
            by_warps,
            output,
        ),
        Mistake(
            "forgot the batch mean: the loss is the mean over the rows, so every slope is divided by their number",
            lambda logits, labels, *launch: softmax(logits) - one_hot(labels, logits.shape[1]),
            output,
        ),
        Mistake(
            "the label's column is not treated: there the slope is softmax - 1",
            lambda logits, labels, *launch: softmax(logits) / len(logits),
            output,
        ),
        Mistake(
            "1 is subtracted before the division by the sum: subtract the sum there, or 1 after the division",
            one_too_early,
            output,
        ),
        Mistake(
            "1 is subtracted in every column: it belongs to the label's column alone, if j == label",
            lambda logits, labels, *launch: (softmax(logits) - 1) / len(logits),
            output,
        ),
        *(
            Mistake(
                "every lane subtracts from the label's column: the lane that has this column does it, once",
                subtracted_by_all(before),
                output,
            )
            for before in (True, False)
        ),
        Mistake(
            "1 is added where it should be subtracted",
            lambda logits, labels, *launch: (softmax(logits) + one_hot(labels, logits.shape[1])) / len(logits),
            output,
        ),
        Mistake(
            "divided by the number of elements: the loss is the mean over the rows only",
            lambda logits, labels, *launch: (softmax(logits) - one_hot(labels, logits.shape[1])) / logits.size,
            output,
        ),
        Mistake(
            "only the label's column is written as it should be: the others hold exponentials that are not divided yet",
            lambda logits, labels, *launch: np.where(
                one_hot(labels, logits.shape[1]) == 1,
                (softmax(logits) - 1) / len(logits),
                exponentials(logits)[0],
            ),
            output,
        ),
        Mistake(
            "only each lane's first column is treated: it goes on by cuda.blockDim.x until the row ends",
            lambda logits, labels, *launch: np.where(
                np.arange(logits.shape[1]) < WARP,
                (softmax(logits) - one_hot(labels, logits.shape[1])) / len(logits),
                exponentials(logits)[0],
            ),
            output,
        ),
        Mistake(
            "grad still holds the exponentials",
            lambda logits, labels, *launch: exponentials(logits)[0],
            output,
        ),
    ]


def loss_gradient_check(grad_of: Callable[[np.ndarray, np.ndarray], Any], name: str = "") -> Callable[[Tally], None]:
    """The check of a kernel's gradient, in float64, against the slopes of softmax cross-entropy."""
    labels = np.array([2, 0, 34], np.int32)

    def on_these(mistake: Mistake) -> Mistake:
        return replace(mistake, result=lambda logits: mistake.result(logits, labels))

    return gradient_check(
        lambda logits: float(cross_entropy(logits, labels).sum()),
        lambda logits: grad_of(logits, labels),
        lambda rng: rng.standard_normal((3, 35)),
        "softmax cross-entropy of logits (3, 35)",
        name=name,
        mistakes=[on_these(mistake) for mistake in slope_mistakes(name)],
    )
