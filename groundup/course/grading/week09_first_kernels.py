"""Week 9: the first kernels.

The right results come from the stage below, or from NumPy where that floor has no such function.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from groundup.course.checks.check import Check
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.calling.kernel_arithmetic import only_float32
from groundup.course.grading.calling.kernel_launches import (
    ONE_THREAD,
    RUNS,
    Both,
    Launch,
    Out,
    any_grid,
    as_float,
    launched,
    left_out,
    module,
    random,
)
from groundup.course.grading.calling.kernel_memory import coalesced, races, reads, watched
from groundup.course.grading.calling.launched_again import kernel_checks
from groundup.course.grading.calling.shared_work import Work
from groundup.course.grading.problems.first_kernels import GATHERED, batch, epoch, product

COUNTS = (1, 7, 97)
"""One, a prime, one past three warps."""

ONE_LINE = "the launch is one line of threads, cuda.grid(1), and z has rows * columns numbers"


def multiply() -> list[Check]:
    """9.1: out = a * mask."""
    kernel = module("kernels.dense").multiply
    return kernel_checks(
        Exercise(
            call=lambda a, mask, launch: launched(kernel, launch, a, mask, Out(a.shape)),
            reference=lambda a, mask, launch: np.multiply(a, mask, dtype=np.float64),
            show=lambda a, mask, launch: f"multiply{launch} of {a.size} numbers",
            hand=[
                ((as_float([3, -4, 5]), as_float([2, 0.5, 0]), Launch(1, 4)), [6, -2, 0]),
                ((as_float([1, 2, 3, 4, 5]), as_float([1, 2, 3, 4, 5]), Launch(1, 2)), [1, 4, 9, 16, 25]),
                ((as_float([np.inf, np.nan, 0]), as_float([0, 0, np.inf]), Launch(1, 4)), [np.nan] * 3),
            ],
            arguments=lambda rng, size: (random(rng, size[0]), random(rng, size[0]), size[1]),
            typical=(37, Launch(3, 4)),
            sizes=[(count, launch) for count in COUNTS for launch in any_grid(count)],
            dtype="float32",
            mistakes=[*left_out(lambda a, mask, launch: a * mask), *races()],
            memory=watched(
                kernel,
                Launch(2, 64),
                lambda rng: (random(rng, 256), random(rng, 256), Out((256,))),
                reads(0, 1, ONE_THREAD, per="launch"),
                coalesced(cause=RUNS),
                work=[Work(2, 2)],
            ),
            types=only_float32(
                kernel, Launch(2, 4), lambda rng: (random(rng, 9), random(rng, 9), Out((9,))), remark=True
            ),
        ),
        same=[(0, 2)],
    )


def add_bias() -> list[Check]:
    """9.2: z += bias, in place."""
    kernel = module("kernels.dense").add_bias
    exchanged = "row and column exchanged: there is a bias for each column, and number i is in column i % columns"
    rows_first = Mistake(
        exchanged,
        lambda z, bias, launch: z + bias[np.arange(len(z)) % bias.size][:, None] if len(z) <= bias.size else None,
    )
    first_column = Mistake(
        f"only the first column has its bias: {ONE_LINE}",
        lambda z, bias, launch: np.hstack([z[:, :1] + bias[:1], z[:, 1:]]),
    )
    remainder = Mistake(
        exchanged,
        lambda z, bias, launch: z + bias[np.minimum(np.arange(z.size) // z.shape[1], bias.size - 1)].reshape(z.shape),
    )
    return kernel_checks(
        Exercise(
            call=lambda z, bias, launch: launched(kernel, launch, Both(z), bias),
            reference=lambda z, bias, launch: np.add(z, bias, dtype=np.float64),
            show=lambda z, bias, launch: f"add_bias{launch} for z {z.shape}",
            hand=[
                (
                    (as_float([[1, 2, 3], [4, 5, 6]]), as_float([10, 20, 30]), Launch(1, 8)),
                    [[11, 22, 33], [14, 25, 36]],
                ),
                ((as_float([[1], [2], [3]]), as_float([5]), Launch(1, 1)), [[6], [7], [8]]),
            ],
            arguments=lambda rng, size: (random(rng, *size[0]), random(rng, size[0][1]), size[1]),
            typical=((5, 7), Launch(3, 4)),
            sizes=[(shape, launch) for shape in ((1, 1), (3, 70), (67, 2)) for launch in any_grid(shape[0] * shape[1])],
            dtype="float32",
            mistakes=[
                *left_out(lambda z, bias, launch: z + bias, lambda z, bias, launch: z),
                rows_first,
                remainder,
                Mistake(
                    f"only the first row has its bias: {ONE_LINE}",
                    lambda z, bias, launch: np.vstack([z[:1] + bias, z[1:]]),
                ),
                first_column,
                Mistake(
                    "z itself is lost: add to what it holds", lambda z, bias, launch: np.broadcast_to(bias, z.shape)
                ),
                *races(),
            ],
            memory=watched(
                kernel,
                Launch(2, 64),
                lambda rng: (Both(random(rng, 8, 32)), random(rng, 32)),
                reads(0, 1, ONE_THREAD, per="launch"),
                coalesced(cause=RUNS),
                work=[Work(0, 2)],
            ),
            types=only_float32(
                kernel, Launch(2, 4), lambda rng: (Both(random(rng, 3, 4)), random(rng, 4)), remark=True
            ),
        )
    )


def gather_labels() -> list[Check]:
    """9.3: y[r] = labels[order[position + r]]."""
    kernel = module("kernels.gather").gather_labels
    labels, order = np.array([7, 3, 9, 1, 5], np.int32), np.array([4, 0, 3, 1, 2], np.int32)
    return kernel_checks(
        Exercise(
            call=lambda labels, order, position, rows, launch: launched(
                kernel, launch, labels, order, position, Out((rows,), "int32")
            ),
            reference=batch,
            show=lambda labels, order, position, rows, launch: (
                f"gather_labels{launch}, {rows} rows from position {position[0]}"
            ),
            hand=[
                ((labels, order, np.array([0], np.int64), 3, Launch(1, 4)), [5, 7, 1]),
                ((labels, order, np.array([2], np.int64), 3, Launch(1, 2)), [1, 3, 9]),
            ],
            arguments=lambda rng, size: (*epoch(rng, size[0]), *size),
            typical=(13, Launch(2, 4)),
            sizes=[*((count, launch) for count in COUNTS for launch in any_grid(count)), (300, Launch(2, 64))],
            mistakes=[
                *left_out(batch),
                *GATHERED,
                Mistake(
                    "this is the number of the sample: its label is labels[…] at that number",
                    lambda labels, order, position, rows, launch: order[position[0] : position[0] + rows],
                ),
                *races(),
            ],
            memory=watched(
                kernel,
                Launch(2, 64),
                lambda rng: (*epoch(rng, 256), Out((256,), "int32")),
                reads(1, 2, ONE_THREAD, per="launch"),
                coalesced(3, RUNS),
                coalesced(1, RUNS),
                work=[Work(3, 2)],
            ),
        )
    )


GRADES: dict[str, Callable[[], list[Check]]] = {
    "9.1": multiply,
    "9.2": add_bias,
    "9.3": gather_labels,
    "9.4": lambda: product("naive", x_down=True),
}
