"""Week 23: convolution by kernels: by the definition, through a tile with its halo, as a product that is gathered.

The kernels with tiles run line by line for their numbers, which compiles nothing, and are compiled once for `memory`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from groundup.course.checks.check import Check, Tally, Wrong, and_then
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.calling.early_returns import NO_EARLY_RETURN, left_early, who_left
from groundup.course.grading.calling.kernel_arithmetic import only_float32
from groundup.course.grading.calling.kernel_launches import (
    RUNS,
    Launch,
    Out,
    as_float,
    backend,
    last_launch,
    launched,
    left_out,
    module,
    of_the_project,
    random,
)
from groundup.course.grading.calling.kernel_memory import (
    UNFILLED,
    coalesced,
    no_bank_conflicts,
    profiled,
    races,
    reads,
    watched,
)
from groundup.course.grading.calling.launched_again import APART, kernel_checks
from groundup.course.grading.calling.line_by_line import line_by_line
from groundup.course.grading.calling.shared_work import Work
from groundup.course.grading.problems.image_kernels import (
    BY_HAND,
    CONVOLUTION_MISTAKES,
    Sizes,
    Steps,
    convolution_arguments,
    convolution_scale,
    convolved,
    gathered,
    output_shape,
    products,
    tile_mistakes,
)

cuda = module("backend").cuda
"""A global, because Numba's simulator knows no other."""

SUM_IN_MEMORY = "the sum is kept in global memory: keep it in a variable, which is a register, and write it once"

SIZES = [
    Sizes(1, 1, (1, 1), 1, (1, 1)),
    Sizes(2, 3, (6, 9), 5, (3, 2), (1, 2, 1, 0)),
    Sizes(1, 2, (7, 5), 6, (2, 4), (3, 1, 0, 2)),
]
"""One number; and what is no square, of no tile, with strides, paddings and windows that do not fit."""

UNPADDED = Sizes(2, 2, (5, 6), 3, (2, 3), (2, 1, 0, 0))
"""Without padding, for special numbers: whether infinity meets a zero of the padding is not asked."""


def given(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, steps: Steps) -> tuple[Any, ...]:
    """The arguments of the kernels by the definition."""
    return x, weights, bias, *steps, Out(output_shape(x, weights, steps))


def of_sizes(sizes: Sizes, arguments: Callable[..., Any] = given) -> Callable[[np.random.Generator], Any]:
    """A kernel's arguments with random numbers, for `memory` and `types`."""
    return lambda rng: arguments(*convolution_arguments(rng, sizes))


SMALL = Sizes(1, 2, (3, 3), 1, (2, 2))


def convolution_checks(name: str, **particular: Any) -> list[Check]:
    """The checks of a kernel that computes a convolution. particular: what of Exercise is not the same for all"""
    exercise = Exercise(
        reference=convolved,
        show=lambda x, weights, bias, steps: (
            f"{name} of x {x.shape} and weights {weights.shape}, down, right, top, left {steps}"
        ),
        hand=BY_HAND,
        arguments=convolution_arguments,
        dtype="float32",
        terms=products,
        scale=convolution_scale,
        **particular,
    )
    return kernel_checks(exercise, sizes=[UNPADDED], special=APART)


def of_last_launch(text: str, happened: Callable[..., Any]) -> Mistake:
    """Whatever the numbers are: the last launch is made again and looked at. happened: (kernel, launch, arguments)"""

    def wrong(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, steps: Steps) -> Any:
        if backend() != "emulator" or not last_launch:
            return None
        *last, results = last_launch
        return results[0].reshape(output_shape(x, weights, steps)) if happened(*last) else None

    return Mistake(text, wrong, seen=True)


def naive() -> list[Check]:
    """23.1: a thread for each output; the grid has fewer threads than most outputs have numbers."""
    kernel = module("kernels.convolution_1_basic").naive
    launch = Launch(2, 4)
    not_written = left_out(lambda *arguments: convolved(*arguments[:-1]))
    return convolution_checks(
        "naive",
        call=lambda *arguments: launched(kernel, launch, *given(*arguments)),
        typical=Sizes(2, 2, (5, 4), 3, (3, 2), (2, 1, 1, 1)),
        sizes=SIZES,
        mistakes=[
            *(Mistake(m.text, lambda *arguments, m=m: m.result(*arguments, launch)) for m in not_written),
            *CONVOLUTION_MISTAKES,
            *races(),
        ],
        memory=watched(
            kernel,
            Launch(2, 64),
            of_sizes(Sizes(1, 2, (16, 8), 2, (3, 3), (1, 1, 1, 1))),
            reads(7, 0, SUM_IN_MEMORY),
            coalesced(7, RUNS),
            work=[Work(7, 2)],
        ),
        types=only_float32(kernel, Launch(1, 4), of_sizes(SMALL)),
    )


GRID_IN_TILE = (
    "cuda.grid counts through the whole grid: a place in the block's own tile is counted by cuda.threadIdx, which "
    "begins at 0 in every block"
)

NO_CORNERS = (
    "the corners of the halo are missing: what lies both right of the block's own places and below them is copied by "
    "nobody. Two loops, one inside the other, reach everything"
)

TILE = 16


def fill_halo() -> list[Check]:
    """23.2: called by a kernel of the grader's that writes the piece out."""
    basic = module("kernels.convolution_1_basic")
    of_the_project(basic.fill_halo, device=True)
    kernel = halo_kernel(basic.fill_halo)
    launch = Launch((2, 2), (TILE, TILE))

    def piece(x: np.ndarray, n: int, c: int, row: int, column: int, shape: tuple[int, int], edge: str = "zero") -> Any:
        if n >= x.shape[0] or c >= x.shape[1]:  # where a mistake looks for the piece
            return None
        rows, columns = (
            np.arange(first, first + count)[:, None] for first, count in zip((row, column), shape, strict=True)
        )
        return gathered(x[n : n + 1, c : c + 1].astype(np.float64), rows, columns, edge)[0, 0, :, 0, :, 0]

    def copied(text: str, where: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Mistake:
        """Only the places (i, j) for which this holds are written."""
        return Mistake(text, lambda *arguments: np.where(where(*np.indices(arguments[-1])), piece(*arguments), np.nan))

    def inside_alone(x: np.ndarray, n: int, c: int, row: int, column: int, shape: tuple[int, int]) -> Any:
        there = piece(np.ones_like(x), n, c, row, column, shape)
        return np.where(there, piece(x, n, c, row, column, shape), np.nan)

    def call(x: np.ndarray, n: int, c: int, row: int, column: int, shape: tuple[int, int]) -> np.ndarray:
        try:
            return launched(kernel, launch, x, n, c, row, column, *shape, Out(shape))
        except Wrong as wrong:
            if "is out of bounds" in wrong.what and "cuda.grid" in inspect.getsource(basic.fill_halo.py_func):
                wrong.cause = GRID_IN_TILE
            raise

    image = as_float(np.arange(1, 25).reshape(2, 1, 3, 4))
    return kernel_checks(
        Exercise(
            call=call,
            reference=piece,
            show=lambda x, n, c, row, column, shape: (
                f"fill_halo of {shape[0]} x {shape[1]} numbers from ({row}, {column}) of channel {c} of image {n} of x "
                f"{x.shape}"
            ),
            hand=[
                ((image, 0, 0, 0, 0, (3, 4)), [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]),
                ((image, 1, 0, -1, -2, (3, 4)), [[0, 0, 0, 0], [0, 0, 13, 14], [0, 0, 17, 18]]),
                ((image, 0, 0, 2, 3, (2, 3)), [[12, 0, 0], [0, 0, 0]]),
            ],
            arguments=lambda rng, size: (random(rng, *size[0]), *size[1:]),
            typical=((2, 3, 40, 30), 1, 2, 5, 3, (18, 20)),
            sizes=[
                ((1, 1, 1, 1), 0, 0, 0, 0, (1, 1)),
                ((1, 2, 9, 50), 0, 1, -2, 16, (40, 33)),
                ((3, 1, 25, 20), 2, 0, 8, -3, (17, 40)),
                ((2, 2, 16, 16), 1, 0, 16, 16, (16, 16)),
            ],
            dtype="float32",
            mistakes=[
                copied(GRID_IN_TILE, lambda i, j: i >= TILE),
                copied(GRID_IN_TILE, lambda i, j: j >= TILE),
                copied(GRID_IN_TILE, lambda i, j: (i >= TILE) & (j >= TILE)),
                copied(NO_CORNERS, lambda i, j: (i < TILE) | (j < TILE)),
                copied(
                    "a thread copies one number only: the piece is larger than the block, so go on by TILE, down and "
                    "across",
                    lambda i, j: (i < TILE) & (j < TILE),
                ),
                copied(
                    "the rows below the block's own are copied, the columns right of them are not",
                    lambda i, j: j < TILE,
                ),
                copied(
                    "the columns right of the block's own are copied, the rows below them are not; does j begin anew "
                    "for each row, inside the loop over i?",
                    lambda i, j: i < TILE,
                ),
                Mistake(
                    "beyond the edges of the image nothing is written: there the tile needs a zero, which adds nothing",
                    inside_alone,
                ),
                Mistake(
                    "beyond the edges of the image the nearest number is copied: there, a zero belongs",
                    lambda x, n, c, row, column, shape: piece(x, n, c, row, column, shape, "nearest"),
                ),
                Mistake(
                    "row and column exchanged: row counts down the image",
                    lambda x, n, c, row, column, shape: piece(x, n, c, column, row, shape),
                ),
                Mistake(
                    "image and channel exchanged: x[n, c, h, w]",
                    lambda x, n, c, row, column, shape: piece(x, c, n, row, column, shape),
                ),
                Mistake(
                    "the piece begins at (row, column) of the image, not at (0, 0)",
                    lambda x, n, c, row, column, shape: piece(x, n, c, 0, 0, shape),
                ),
                *races(),
            ],
            memory=watched(
                kernel,
                Launch(1, (TILE, TILE)),
                lambda rng: (random(rng, 1, 1, 32, 32), 0, 0, 0, 0, 32, 32, Out((32, 32))),
                reads(0, 1, "a number of the image is fetched more than once: each thread copies other numbers"),
                coalesced(0, "x and y mixed up: threadIdx.x has to run along the columns of the image"),
                work=[Work(0, 4, "load")],
            ),
            types=only_float32(
                kernel,
                Launch(1, (TILE, TILE)),
                lambda rng: (random(rng, 1, 1, 3, 3), 0, 0, -1, -1, 5, 5, Out((5, 5))),
            ),
        )
    )


def halo_kernel(fill: Any) -> Any:
    """A kernel whose last block has the piece written into out, where a tile would be; what is not filled stays NaN."""

    @cuda.jit
    def show_piece(x, n, c, row, column, height, width, out):  # type: ignore[no-untyped-def]
        if cuda.blockIdx.x + 1 == cuda.gridDim.x and cuda.blockIdx.y + 1 == cuda.gridDim.y:
            fill(out, x, n, c, row, column, height, width)

    return show_piece


FROM_THE_TILE = (
    "a block fetches what it needs of the image once in each channel, into its tile, and reads it from there"
)

ITS_GROUP = "a block fetches its kernels once in each channel, by fill_group, and reads them from shared memory"


def halo_tile() -> list[Check]:
    """23.3: a block's outputs of a group of kernels through shared memory."""
    basic = module("kernels.convolution_1_basic")
    kernel, group = basic.halo_tile, basic.GROUP

    def call(*arguments: Any) -> np.ndarray:
        *most, out = given(*arguments)
        images, kernels, rows, columns = out.shape
        grid = images * -(-rows // TILE) * -(-columns // TILE), -(-kernels // group)
        return line_by_line(kernel, Launch(grid, (TILE, TILE)), *most, out)

    def firsts_alone(*arguments: Any) -> np.ndarray:
        """Only the first kernel of each group is written."""
        right = convolved(*arguments)
        return np.where((np.arange(right.shape[1]) % group == 0)[:, None, None], right, np.nan)

    def same_kernel(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, steps: Steps) -> np.ndarray:
        """Every output of a group has the sums of its first kernel."""
        return convolved(x, weights[np.arange(len(weights)) // group * group], bias, steps)

    def bias_of_group(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, steps: Steps) -> np.ndarray:
        return convolved(x, weights, bias[np.arange(len(bias)) % group], steps)

    return convolution_checks(
        "halo_tile",
        call=call,
        typical=Sizes(2, 2, (5, 4), 5, (3, 2), (2, 1, 1, 1)),
        sizes=[SIZES[1], Sizes(1, 2, (35, 5), 6, (2, 4), (2, 1, 0, 2)), Sizes(2, 1, (4, 34), 2, (2, 2), (1, 2, 0, 0))],
        mistakes=[
            *left_early(),
            *tile_mistakes(TILE),
            of_last_launch(UNFILLED, lambda kernel, launch, given: profiled(kernel, launch, *given).uninitialised),
            *CONVOLUTION_MISTAKES,
            Mistake("only the first kernel of each group is written: one for each g", firsts_alone),
            Mistake("all of a group have the sums of its first kernel: kernels[g, i * kw + j]", same_kernel),
            Mistake("the bias of kernel first + g is bias[first + g], not bias[g]", bias_of_group),
            *races(),
        ],
        memory=watched(
            kernel,
            Launch((2, 1), (TILE, TILE)),
            of_sizes(Sizes(1, 2, (6, 20), 4, (3, 2), (1, 1, 1, 1))),
            reads(0, 1, FROM_THE_TILE),
            reads(1, 1, ITS_GROUP),
            reads(7, 0, SUM_IN_MEMORY),
            work=[Work(7, 4), Work(0, 8, "load", FROM_THE_TILE)],
        ),
        types=only_float32(kernel, Launch(1, (TILE, TILE)), of_sizes(SMALL)),
    )


GATHERED_ONCE = (
    "the windows of a block's places are gathered once for all its channels, into the tile: a thread takes the rows y, "
    "y + channels, … of it"
)

WEIGHTS_ONCE = "a block fetches the weights of its channels once, by fill_weights, and reads them from the tile"

ALONG_ROWS = "tile_x[i, x] has places along its rows: a warp writes and reads neighbours, in 32 banks"

LANES = 32


THREE_BARRIERS = (
    "a barrier is missing: there is one after the places are noted, and in each round one after the tiles are filled "
    "and one before they are filled anew. cuda.syncthreads() waits for all threads of the block; cuda.syncwarp() for "
    "those of a warp only"
)

BY_END = (
    "what is written is end(total, ending, more, activation, channel, at): it adds the bias and applies the activation"
)


def with_terms(text: str, where: Callable[[np.ndarray, int], np.ndarray]) -> Mistake:
    """Only the products for which this holds are added up. where: says it of their numbers, and of how many they are"""

    def wrong(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, steps: Steps) -> Any:
        added = where(np.arange(weights[0].size), weights[0].size)
        return convolved(x, weights * added.reshape(weights[0].shape), bias, steps)

    return Mistake(text, wrong)


def correlate_tile() -> list[Check]:
    """23.4: implicit GEMM: the forward pass, and once dL/dx with a stride."""
    geometry, implicit = module("geometry"), module("kernels.convolution_3_implicit")
    gather = module("kernels.convolution_gather")
    kernel = implicit.correlate(False)

    def geometry_of(x: np.ndarray, weights: np.ndarray, steps: Steps) -> Any:
        rows_columns = output_shape(x, weights, steps)[2:]
        return geometry.Geometry(
            x.shape[1], x.shape[2:], len(weights), weights.shape[2:], steps[:2], steps[2:], rows_columns
        )

    def arguments_of(image: np.ndarray, weights: np.ndarray, *ending: Any, tables: Any, size: int) -> tuple[Any, ...]:
        numbers = tables.taps.copy_to_host(), tables.numbers.copy_to_host()
        return image.ravel(), weights.ravel(), *ending, *numbers, Out((size,))

    def forward(
        x: np.ndarray, weights: np.ndarray, bias: np.ndarray, steps: Steps, activation: int = 0
    ) -> tuple[Any, ...]:
        """The kernel's arguments for the forward pass."""
        size = int(np.prod(output_shape(x, weights, steps)))
        tables = geometry.forward_tables(geometry_of(x, weights, steps))
        return arguments_of(x, weights, gather.FORWARD, bias, activation, tables=tables, size=size)

    def grid(places: int, channels: int, high: int = 8) -> Launch:
        return Launch((-(-places // LANES), -(-channels // high)), (LANES, high))

    def call(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, steps: Steps, activation: int = 0) -> np.ndarray:
        shape = output_shape(x, weights, steps)
        launch = grid(int(np.prod(shape)) // shape[1], shape[1])
        return line_by_line(kernel, launch, *forward(x, weights, bias, steps, activation)).reshape(shape)

    checks = convolution_checks(
        "correlate_tile",
        call=call,
        typical=Sizes(2, 5, (6, 5), 3, (3, 3), (2, 1, 1, 1)),
        sizes=[*SIZES, Sizes(3, 1, (6, 4), 9, (2, 1))],
        mistakes=[
            of_last_launch(NO_EARLY_RETURN, lambda *last: NO_EARLY_RETURN in who_left(*last)),
            of_last_launch(UNFILLED, lambda kernel, launch, given: profiled(kernel, launch, *given).uninitialised),
            *CONVOLUTION_MISTAKES,
            with_terms(
                "only the first LANES products are added up: go on by LANES to taps.shape[1]",
                lambda term, count: term < LANES,
            ),
            with_terms(
                "only the last products are there: total begins once, before the rounds",
                lambda term, count: term >= (count - 1) // LANES * LANES,
            ),
            with_terms(
                "the block gathers LANES rows of tile_x: from y on by the channels of the block",
                lambda term, count: term % LANES < 8,
            ),
            of_last_launch(THREE_BARRIERS, lambda kernel, launch, given: profiled(kernel, launch, *given).races),
        ],
        memory=watched(
            kernel,
            grid(32, 8),
            of_sizes(Sizes(1, 4, (6, 10), 8, (3, 3)), forward),
            reads(0, 9, GATHERED_ONCE),
            reads(1, 1, WEIGHTS_ONCE),
            no_bank_conflicts(ALONG_ROWS, "tile_x"),
            race=THREE_BARRIERS,
            work=[Work(7, 1), Work(0, 8, "load", GATHERED_ONCE)],
        ),
        types=only_float32(kernel, grid(4, 1, 1), of_sizes(SMALL, forward)),
    )

    def other_endings(tally: Tally) -> None:
        """With ReLU at the end, and dL/dx through ReLU, with a stride, which the other of the two kernels computes."""
        rng = np.random.default_rng(7)
        x, weights, bias, steps = convolution_arguments(rng, Sizes(1, 2, (5, 7), 3, (3, 2), (2, 3, 1, 0)))
        right = convolved(x, weights, bias, steps)
        case = "correlate_tile with ReLU at the end"
        tally.trying(case)
        tally.equal(
            call(x, weights, bias, steps, activation=1),
            np.maximum(right, 0),
            case=case,
            dtype="float32",
            terms=weights[0].size + 1,
            scale=convolution_scale(x, weights, bias, steps),
            mistakes=[Mistake(BY_END, lambda: right), Mistake(BY_END, lambda: right - bias[:, None, None])],
        )
        case = "correlate_tile gathering dL/dx from grad_output, stride (2, 3), back through ReLU"
        tally.trying(case)
        grad = random(rng, *right.shape)
        tables = geometry.backward_tables(geometry_of(x, weights, steps))
        arguments = arguments_of(grad, weights, gather.THROUGH, x.ravel(), 1, tables=tables, size=x.size)
        expected, sizes = (scattered(abs_(grad), abs_(weights), x.shape, steps) for abs_ in (np.asarray, np.abs))
        tally.equal(
            line_by_line(implicit.correlate(True), grid(35, 2), *arguments).reshape(x.shape),
            np.where(x > 0, expected, 0),
            case=case,
            dtype="float32",
            terms=weights[:, 0].size,
            scale=sizes,
            mistakes=[
                Mistake(BY_END, lambda: expected),
                Mistake(BY_END, lambda: expected + x[0, 0, 0, :2, None, None]),
                Mistake(
                    "end looks `more` up at the number that is written, so hand it `at`, in which the channel is, too",
                    lambda: np.where(x[:, :1] > 0, expected, 0),
                ),
            ],
        )

    return and_then(checks, "sizes", other_endings)


def scattered(grad: np.ndarray, weights: np.ndarray, shape: tuple[int, ...], steps: Steps) -> np.ndarray:
    """dL/dx in float64, by its definition: every output gives its slope to the numbers that it has met."""
    down, right, top, left = steps
    padded = np.zeros((*shape[:2], shape[2] + 2 * top, shape[3] + 2 * left))
    for r, s in np.ndindex(*grad.shape[2:]):
        part = padded[:, :, r * down : r * down + weights.shape[2], s * right : s * right + weights.shape[3]]
        part += np.einsum("no,ocij->ncij", grad[:, :, r, s].astype(np.float64), weights.astype(np.float64))
    return padded[:, :, top : top + shape[2], left : left + shape[3]]


GRADES: dict[str, Callable[[], list[Check]]] = {
    "23.1": naive,
    "23.2": fill_halo,
    "23.3": halo_tile,
    "23.4": correlate_tile,
}
