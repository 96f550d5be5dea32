"""Week 16: several operations in one kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from groundup.course.checks.check import Check, Wrong
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.calling.early_returns import left_early
from groundup.course.grading.calling.kernel_arithmetic import AtMost, only_float32
from groundup.course.grading.calling.kernel_launches import Launch, Out, any_grid, as_float, module, random, threads
from groundup.course.grading.calling.launched_again import APART, ONLY_NAN, kernel_checks
from groundup.course.grading.calling.line_by_line import followed, line_by_line
from groundup.course.grading.calling.shared_work import Work
from groundup.course.grading.problems.cross_entropy import slopes_scale
from groundup.course.grading.problems.kernel_losses import (
    LOGITS_BY_HAND,
    LOSSES_BY_HAND,
    SHAPES,
    SLOPES_BY_HAND,
    TYPICAL,
    logits_and_labels,
    loss_gradient_check,
    row_launches,
    slope_mistakes,
)
from groundup.course.grading.problems.kernel_reductions import WARP, below

SIDE = 4
"""The side of the tiles here. Every side is right; a small one needs few threads."""


def activated(number: int, z: np.ndarray) -> np.ndarray:
    """The activation of this number, by the stage below."""
    return below("activations", ("identity", "relu", "leaky_relu", "sigmoid", "tanh")[number], z)


def tiled_forward() -> list[Check]:
    """The product with bias and activation at its end, of tiles of 4 x 4."""
    kernel = module("kernels.matmul_1_basic").tiled(SIDE, "nn").forward

    def launch(x: np.ndarray, weights: np.ndarray) -> Launch:
        return Launch((-(-weights.shape[1] // SIDE), -(-len(x) // SIDE)), (SIDE, SIDE))

    def arguments(rng: np.random.Generator, size: tuple[int, int, int, int]) -> tuple[Any, ...]:
        rows, inner, columns, number = size
        return random(rng, rows, inner), random(rng, inner, columns), random(rng, columns), number

    def per_row(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, number: int) -> Any:
        return activated(number, x @ weights + bias[: len(x), None]) if len(x) <= bias.size else None

    return kernel_checks(
        Exercise(
            call=lambda x, weights, bias, number: line_by_line(
                kernel, launch(x, weights), x, weights, bias, number, Out((len(x), bias.size))
            ),
            reference=lambda x, weights, bias, number: activated(number, x.astype(np.float64) @ weights + bias),
            show=lambda x, weights, bias, number: (
                f"forward{launch(x, weights)} of x {x.shape}, weights {weights.shape}, activation {number}"
            ),
            hand=[
                (
                    # xW is (11, -3) and (4, -1), with the bias (6, -2) and (-1, 0)
                    (as_float([[1, 2], [0, 1]]), as_float([[3, -1], [4, -1]]), as_float([-5, 1]), 1),
                    [[6.0, 0.0], [0.0, 0.0]],
                )
            ],
            arguments=arguments,
            typical=(5, 6, 7, 4),
            sizes=[(1, 1, 1, 0), (4, 4, 4, 1), (5, 3, 9, 2), (9, 5, 2, 1), (3, 13, 70, 4)],
            dtype="float32",
            terms=lambda x, weights, bias, number: x.shape[1] + 16,
            scale=lambda x, weights, bias, number: np.abs(x) @ np.abs(weights) + np.abs(bias),
            mistakes=[
                *left_early(),
                Mistake(
                    "a bias per row: each column has one, bias[column]",
                    per_row,
                ),
                Mistake(
                    "the activation comes before the bias: it is activate(xW + b)",
                    lambda x, weights, bias, number: activated(number, x @ weights) + bias,
                ),
                Mistake("the bias is left out", lambda x, weights, bias, number: activated(number, x @ weights)),
                Mistake("the activation is left out", lambda x, weights, bias, number: x @ weights + bias),
            ],
            memory=followed(
                kernel,
                Launch((2, 2), (SIDE, SIDE)),
                lambda rng: (*arguments(rng, (5, 6, 7, 1)), Out((5, 7))),
                written_once=[4],
                fetched_once=[0, 1],
                work=[Work(4, 1)],
            ),
            types=only_float32(
                kernel, Launch((2, 2), (SIDE, SIDE)), lambda rng: (*arguments(rng, (5, 6, 7, 1)), Out((5, 7)))
            ),
        ),
        sizes=[(5, 6, 7, 2)],
        special=APART,
    )


NOT_THE_LARGEST: dict[str, Callable[[np.ndarray], Any]] = {
    "nothing": lambda logits: as_float(0),
    "0, or the row's largest logit where that is more than 0,": (
        lambda logits: np.maximum(logits.max(axis=1, keepdims=True), 0)
    ),
    "the largest of all rows": lambda logits: logits.max(),
    "the largest of row 0": lambda logits: logits[:1].max(),
    "the row's first logit": lambda logits: logits[:, :1],
}


EXP_ONCE = (
    "the exponentials are most of the work, and loss and gradient need the same: exponentials_into computes each once"
)


def softmax_cross_entropy_fused() -> list[Check]:
    """The loss and its gradient in one kernel."""
    make = module("kernels.losses").softmax_kernels
    kernels = {lanes: make(lanes)[2] for lanes in (WARP, 1)}

    def call(logits: np.ndarray, labels: np.ndarray, lanes: int, launch: Launch) -> dict[str, Any]:
        dtype = str(logits.dtype)
        outputs = Out(labels.shape, dtype), Out(logits.shape, dtype)
        return dict(
            zip(("row_losses", "grad"), line_by_line(kernels[lanes], launch, logits, labels, *outputs), strict=True)
        )

    def reference(logits: np.ndarray, labels: np.ndarray, lanes: int, launch: Launch) -> dict[str, Any]:
        rows = [
            below("losses", "softmax_cross_entropy", logits[i : i + 1], labels[i : i + 1]) / len(logits)
            for i in range(len(logits))
        ]
        grad = below("losses", "softmax_cross_entropy_backward", logits, labels)
        return {"row_losses": np.array(rows), "grad": grad}

    def mistaken_loss(largest: bool, own: bool, mean: bool) -> Callable[..., Any]:
        def wrong(logits: np.ndarray, labels: np.ndarray, lanes: int, launch: Launch) -> Any:
            top = logits.max(axis=1)
            total = np.log(np.exp(logits - top[:, None]).sum(axis=1))
            score = logits[np.arange(len(logits)), labels] - (top if largest else 0)
            return (total - (score if own else 0)) / (len(logits) if mean else 1)

        return wrong

    def subtracting(largest_of: Callable[[np.ndarray], Any]) -> Callable[..., Any]:
        """The losses with another number than the row's largest in its place, in float32."""

        def wrong(logits: np.ndarray, labels: np.ndarray, lanes: int, launch: Launch) -> Any:
            with np.errstate(all="ignore"):
                shifted = logits - largest_of(logits)
                own = shifted[np.arange(len(logits)), labels]
                return (np.log(np.exp(shifted).sum(axis=1)) - own) / len(logits)

        return wrong

    return kernel_checks(
        Exercise(
            call=call,
            reference=reference,
            show=lambda logits, labels, lanes, launch: f"softmax_cross_entropy_fused{launch} of logits {logits.shape}",
            hand=[((*LOGITS_BY_HAND, *row_launches(2)[0]), {"row_losses": LOSSES_BY_HAND, "grad": SLOPES_BY_HAND})],
            arguments=logits_and_labels,
            typical=TYPICAL,
            sizes=[(*shape, *launch) for shape in SHAPES for launch in row_launches(shape[0])],
            gradient=loss_gradient_check(lambda logits, labels: call(logits, labels, *row_launches(3)[0]), "grad"),
            dtype="float32",
            terms=lambda logits, labels, lanes, launch: logits.shape[1] + 8,
            scale=lambda logits, labels, lanes, launch: {
                # log(total) + largest - own is right, too, and rounds to an eps of the largest
                "row_losses": (10.0 + np.abs(logits).max()) / len(logits),
                "grad": slopes_scale(logits.astype(np.float64), labels),
            },
            mistakes=[
                *left_early("row_losses"),
                *left_early("grad", 1),
                Mistake(
                    "forgot the batch mean: each row's loss is divided by the number of rows",
                    mistaken_loss(True, True, False),
                    "row_losses",
                ),
                Mistake(
                    "the largest logit is not subtracted from the label's, as it was from those in the exponentials",
                    mistaken_loss(False, True, True),
                    "row_losses",
                ),
                Mistake(
                    "the label's logit is left out: the loss is log(total) - (logits[row, label] - largest)",
                    mistaken_loss(True, False, True),
                    "row_losses",
                ),
                *(
                    Mistake(
                        f"{amount} is subtracted, not the row's largest logit, largest_of(logits, row): exp overflows, "
                        "or the sum of the exponentials is 0",
                        subtracting(number),
                        "row_losses",
                    )
                    for amount, number in NOT_THE_LARGEST.items()
                ),
                *slope_mistakes("grad"),
            ],
            memory=followed(
                kernels[WARP],
                Launch(2, (WARP, 2)),
                lambda rng: (*logits_and_labels(rng, (8, 64, 0, 0))[:2], Out((8,)), Out((8, 64))),
                side_by_side=[3],
                written_once=[2],
                shared_out=[0, 3],
                work=[Work(3, 4), Work(2, 2)],
            ),
            types=only_float32(
                kernels[WARP],
                Launch(1, (WARP, 1)),
                lambda rng: (*logits_and_labels(rng, (2, 64, 0, 0))[:2], Out((2,)), Out((2, 64))),
                AtMost("exp", 4, EXP_ONCE),
            ),
        ),
        special=ONLY_NAN,
    )


def combine() -> list[Check]:
    """The parts of a product are added up, with bias, activation and mask."""
    kernel = module("kernels.fused").combine

    def call(parts: np.ndarray, bias: np.ndarray, number: int, mask: Any, launch: Launch) -> dict[str, Any]:
        shape = parts.shape[1:]
        unread = np.ones(shape, np.float32)
        masked = mask is not None
        inputs = number, parts, bias, Out(shape), Out(shape), mask if masked else unread, int(masked)
        output, dropped = line_by_line(kernel, launch, *inputs)
        if not masked and not np.isnan(dropped).all():
            raise Wrong(
                f"combine{launch} writes dropped, though masked is 0",
                cause="masked says whether there is a mask: where it is 0, that array holds something else",
            )
        return {"output": output, "dropped": dropped} if masked else {"output": output}

    def finished(z: Any, number: int, mask: Any) -> dict[str, Any]:
        output = activated(number, z)
        return {"output": output, "dropped": output * mask} if mask is not None else {"output": output}

    def arguments(rng: np.random.Generator, size: tuple[int, int, int, int, bool, Launch]) -> tuple[Any, ...]:
        splits, rows, columns, number, masked, launch = size
        mask = rng.integers(0, 2, (rows, columns)).astype(np.float32) * 2 if masked else None
        return random(rng, splits, rows, columns), random(rng, columns), number, mask, launch

    def mistaken(change: Callable[[np.ndarray, np.ndarray, int], Any]) -> Callable[..., Any]:
        return lambda parts, bias, number, mask, launch: change(parts, bias, number)

    def first_laps_only(parts: np.ndarray, bias: np.ndarray, number: int, mask: Any, launch: Launch) -> Any:
        """The outputs if the loop over the parts has already ended when a thread's second number comes."""
        laps = np.arange(parts[0].size).reshape(parts[0].shape) // threads(launch)[0]
        return activated(number, np.where(laps == 0, parts.sum(axis=0), parts[0]) + bias) if laps.any() else None

    parts = as_float([[[1, 2], [0, 1]], [[3, -5], [4, 1]], [[0, 0], [1, 1]]])
    return kernel_checks(
        Exercise(
            call=call,
            reference=lambda parts, bias, number, mask, launch: finished(
                parts.sum(axis=0, dtype=np.float64) + bias, number, mask
            ),
            show=lambda parts, bias, number, mask, launch: (
                f"combine{launch} of parts {parts.shape}, activation {number}"
                + (", with a mask" if mask is not None else "")
            ),
            hand=[
                (
                    (parts, as_float([1, -1]), 1, as_float([[2, 0], [0, 2]]), Launch(1, 4)),
                    {"output": [[5.0, 0.0], [6.0, 2.0]], "dropped": [[10.0, 0.0], [0.0, 4.0]]},
                )
            ],
            arguments=arguments,
            typical=(3, 4, 5, 4, True, Launch(2, 16)),
            sizes=[
                (splits, rows, columns, number, masked, launch)
                for splits, rows, columns, number, masked in (
                    (1, 1, 1, 0, False),
                    (2, 3, 11, 1, False),
                    (5, 7, 3, 2, True),
                    (4, 1, 97, 1, True),
                )
                for launch in any_grid(rows * columns)
            ],
            dtype="float32",
            terms=lambda parts, bias, number, mask, launch: len(parts) + 16,
            scale=lambda parts, bias, number, mask, launch: (
                (np.abs(parts).sum(axis=0) + np.abs(bias)) * max(2.0, 0.0 if mask is None else float(mask.max()))
            ),
            mistakes=[
                Mistake(
                    "one part is left out, the last",
                    mistaken(lambda parts, bias, number: activated(number, parts[:-1].sum(axis=0) + bias)),
                    "output",
                ),
                Mistake(
                    "one part is left out, the first: start the sum with part 0, or at 0 with all of them",
                    mistaken(lambda parts, bias, number: activated(number, parts[1:].sum(axis=0) + bias)),
                    "output",
                ),
                Mistake(
                    "only a thread's first number has all parts: `split` begins anew for each number",
                    first_laps_only,
                    "output",
                ),
                Mistake(
                    "the first part is added twice: where the sum starts with it, the loop starts with part 1",
                    mistaken(lambda parts, bias, number: activated(number, parts.sum(axis=0) + parts[0] + bias)),
                    "output",
                ),
                Mistake(
                    "the bias is added with every part: once is enough",
                    mistaken(lambda parts, bias, number: activated(number, parts.sum(axis=0) + len(parts) * bias)),
                    "output",
                ),
                Mistake(
                    "the activation comes before the bias: it is activate(sum + bias)",
                    mistaken(lambda parts, bias, number: activated(number, parts.sum(axis=0)) + bias),
                    "output",
                ),
                Mistake(
                    "each part goes through the activation: only their sum is what xW is",
                    mistaken(
                        lambda parts, bias, number: (
                            np.stack([activated(number, part) for part in parts]).sum(axis=0) + bias
                        )
                    ),
                    "output",
                ),
                Mistake(
                    "output has the mask, too: it belongs to dropped alone, since the backward pass needs the output "
                    "without it",
                    lambda parts, bias, number, mask, launch: (
                        None if mask is None else activated(number, parts.sum(axis=0) + bias) * mask
                    ),
                    "output",
                ),
                Mistake(
                    "dropped is the output without its mask",
                    lambda parts, bias, number, mask, launch: activated(number, parts.sum(axis=0) + bias),
                    "dropped",
                ),
                Mistake(
                    "dropped is what comes before bias and activation: the mask is for the output",
                    lambda parts, bias, number, mask, launch: parts.sum(axis=0) * mask,
                    "dropped",
                ),
            ],
            memory=followed(
                kernel,
                Launch(2, 64),
                lambda rng: (
                    *(1, random(rng, 3, 4, 64), random(rng, 64), Out((4, 64)), Out((4, 64))),
                    *(random(rng, 4, 64), 1),
                ),
                side_by_side=[1, 3, 4],
                written_once=[3, 4],
                fetched_once=[1],
                work=[Work(3, 2), Work(4, 2)],
            ),
            types=only_float32(
                kernel,
                Launch(2, 8),
                lambda rng: (4, random(rng, 3, 5, 7), random(rng, 7), Out((5, 7)), Out((5, 7)), random(rng, 5, 7), 1),
            ),
        ),
        sizes=[(3, 4, 5, 2, True, Launch(2, 16))],
    )


GRADES: dict[str, Callable[[], list[Check]]] = {
    "16.1": tiled_forward,
    "16.2": softmax_cross_entropy_fused,
    "16.3": combine,
}
