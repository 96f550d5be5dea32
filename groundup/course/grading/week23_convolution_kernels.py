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
from groundup.course.grading.calling.early_returns import left_early
from groundup.course.grading.calling.kernel_arithmetic import only_float32
from groundup.course.grading.calling.kernel_launches import (
    RUNS,
    Launch,
    Out,
    any_grid,
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


def with_launch(wrong: Callable[..., Any]) -> Callable[..., Any]:
    """The same, for an exercise whose last argument is a launch."""
    return lambda *arguments: wrong(*arguments[:-1])


def shown(name: str) -> Callable[..., str]:
    """How a call reads in a message."""

    def show(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, steps: Steps, launch: Any = "") -> str:
        return f"{name}{launch} of x {x.shape} and weights {weights.shape}, down, right, top, left {steps}"

    return show


def unfilled() -> Mistake:
    """Numbers that come from shared memory that no thread has written. The lens looks for it in the last launch."""

    def wrong(*arguments: Any) -> Any:
        if backend() != "emulator" or not last_launch:
            return None
        kernel, launch, given, results = last_launch
        return results[0] if profiled(kernel, launch, *given).uninitialised else None

    return Mistake(UNFILLED, wrong, seen=True)


def naive() -> list[Check]:
    """23.1: a thread for each output."""
    kernel = module("kernels.convolution_1_basic").naive
    typical = Sizes(2, 2, (5, 4), 3, (3, 2), (2, 1, 1, 1))

    def call(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, steps: Steps, launch: Launch) -> np.ndarray:
        return launched(kernel, launch, x, weights, bias, *steps, Out(output_shape(x, weights, steps)))

    def launches(sizes: Sizes) -> list[Launch]:
        arguments = convolution_arguments(np.random.default_rng(0), sizes)
        return any_grid(int(np.prod(output_shape(arguments[0], arguments[1], sizes.steps))))

    return kernel_checks(
        Exercise(
            call=call,
            reference=with_launch(convolved),
            show=shown("naive"),
            hand=[((*arguments, Launch(2, 4)), expected) for arguments, expected in BY_HAND],
            arguments=lambda rng, size: (*convolution_arguments(rng, size[0]), size[1]),
            typical=(typical, Launch(9, 8)),
            sizes=[(sizes, launch) for sizes in SIZES for launch in launches(sizes)],
            dtype="float32",
            terms=with_launch(products),
            scale=with_launch(convolution_scale),
            mistakes=[
                *left_out(with_launch(convolved)),
                *(Mistake(each.text, with_launch(each.result)) for each in CONVOLUTION_MISTAKES),
                *races(),
            ],
            memory=watched(
                kernel,
                Launch(2, 64),
                lambda rng: (
                    *convolution_arguments(rng, Sizes(2, 2, (4, 16), 2, (3, 3)))[:3],
                    *(1, 1, 1, 1),
                    Out((2, 2, 4, 16)),
                ),
                reads(7, 0, SUM_IN_MEMORY),
                coalesced(7, RUNS),
                work=[Work(7, 2)],
            ),
            types=only_float32(
                kernel,
                Launch(1, 4),
                lambda rng: (
                    *convolution_arguments(rng, Sizes(1, 2, (3, 3), 1, (2, 2)))[:3],
                    1,
                    1,
                    0,
                    0,
                    Out((1, 1, 2, 2)),
                ),
            ),
        ),
        special=APART,
        sizes=[(typical, Launch(9, 8)), (UNPADDED, Launch(3, 8))],
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
    kernel = halo_kernel(basic)
    launch = Launch((2, 2), (TILE, TILE))

    def piece(x: np.ndarray, n: int, c: int, row: int, column: int, shape: tuple[int, int], edge: str = "zero") -> Any:
        rows, columns = (
            np.arange(first, first + count)[:, None] for first, count in zip((row, column), shape, strict=True)
        )
        return gathered(x[n : n + 1, c : c + 1].astype(np.float64), rows, columns, edge)[0, 0, :, 0, :, 0]

    def copied(where: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Callable[..., Any]:
        """Only the places (i, j) for which this holds are written."""

        def wrong(x: np.ndarray, n: int, c: int, row: int, column: int, shape: tuple[int, int]) -> Any:
            done = where(*np.indices(shape))
            return None if done.all() else np.where(done, piece(x, n, c, row, column, shape), np.nan)

        return wrong

    def inside_alone(x: np.ndarray, n: int, c: int, row: int, column: int, shape: tuple[int, int]) -> Any:
        i, j = np.indices(shape)
        inside = (row + i >= 0) & (row + i < x.shape[2]) & (column + j >= 0) & (column + j < x.shape[3])
        return None if inside.all() else np.where(inside, piece(x, n, c, row, column, shape), np.nan)

    def elsewhere(change: Callable[..., tuple[Any, ...]]) -> Callable[..., Any]:
        """The piece of other arguments, where x has it."""

        def wrong(x: np.ndarray, *arguments: Any) -> Any:
            n, c, *rest = change(*arguments)
            return piece(x, n, c, *rest) if n < x.shape[0] and c < x.shape[1] else None

        return wrong

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
                Mistake(GRID_IN_TILE, copied(lambda i, j: i >= TILE)),
                Mistake(GRID_IN_TILE, copied(lambda i, j: j >= TILE)),
                Mistake(GRID_IN_TILE, copied(lambda i, j: (i >= TILE) & (j >= TILE))),
                Mistake(NO_CORNERS, copied(lambda i, j: (i < TILE) | (j < TILE))),
                Mistake(
                    "a thread copies one number only: the piece is larger than the block, so go on by TILE, down and "
                    "across",
                    copied(lambda i, j: (i < TILE) & (j < TILE)),
                ),
                Mistake(
                    "the rows below the block's own are copied, the columns right of them are not",
                    copied(lambda i, j: j < TILE),
                ),
                Mistake(
                    "the columns right of the block's own are copied, the rows below them are not; does j begin anew "
                    "for each row, inside the loop over i?",
                    copied(lambda i, j: i < TILE),
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
                    elsewhere(lambda n, c, row, column, shape: (n, c, column, row, shape)),
                ),
                Mistake(
                    "image and channel exchanged: x[n, c, h, w]",
                    elsewhere(lambda n, c, row, column, shape: (c, n, row, column, shape)),
                ),
                Mistake(
                    "the piece begins at (row, column) of the image, not at (0, 0)",
                    elsewhere(lambda n, c, row, column, shape: (n, c, 0, 0, shape)),
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


def halo_kernel(basic: Any) -> Any:
    """A kernel whose blocks all have the same piece copied. The last one writes it; what is not filled is NaN."""
    fill, rows, pitch = basic.fill_halo, basic.SPAN, basic.PITCH

    @cuda.jit
    def show_piece(x, n, c, row, column, height, width, out):  # type: ignore[no-untyped-def]
        image = cuda.shared.array((rows, pitch), x.dtype)
        ty = cuda.threadIdx.y
        tx = cuda.threadIdx.x
        i = ty
        while i < height:
            j = tx
            while j < width:
                image[i, j] = x.dtype.type(np.nan)
                j += cuda.blockDim.x
            i += cuda.blockDim.y
        cuda.syncthreads()
        fill(image, x, n, c, row, column, height, width)
        cuda.syncthreads()
        if cuda.blockIdx.x + 1 == cuda.gridDim.x and cuda.blockIdx.y + 1 == cuda.gridDim.y:
            i = ty
            while i < height:
                j = tx
                while j < width:
                    out[i, j] = image[i, j]
                    j += cuda.blockDim.x
                i += cuda.blockDim.y

    return show_piece


FROM_THE_TILE = (
    "a block fetches what it needs of the image once in each channel, into its tile, and reads it from there"
)

ITS_GROUP = "a block fetches its kernels once in each channel, by fill_group, and reads them from shared memory"


def halo_tile() -> list[Check]:
    """23.3: a block's outputs of a group of kernels through shared memory."""
    basic = module("kernels.convolution_1_basic")
    kernel, group = basic.halo_tile, basic.GROUP

    def launch(shape: tuple[int, int, int, int]) -> Launch:
        images, kernels, rows, columns = shape
        return Launch((images * -(-rows // TILE) * -(-columns // TILE), -(-kernels // group)), (TILE, TILE))

    def call(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, steps: Steps) -> np.ndarray:
        shape = output_shape(x, weights, steps)
        return line_by_line(kernel, launch(shape), x, weights, bias, *steps, Out(shape))

    def of_block(change: Callable[[np.ndarray], np.ndarray]) -> Callable[..., Any]:
        """The right result, with places that are not written. change: makes NaN of them"""

        def wrong(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, steps: Steps) -> Any:
            return change(convolved(x, weights, bias, steps))

        return wrong

    def only(*places: slice) -> Callable[[np.ndarray], np.ndarray]:
        def change(right: np.ndarray) -> np.ndarray:
            written = np.full(right.shape, np.nan)
            written[places] = right[places]
            return written

        return change

    def same_kernel(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, steps: Steps) -> np.ndarray:
        """Every output of a group has the sums of its first kernel."""
        firsts = np.arange(len(weights)) // group * group
        return convolved(x, weights[firsts], bias, steps)

    def bias_of_group(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, steps: Steps) -> np.ndarray:
        return convolved(x, weights, bias[np.arange(len(bias)) % group], steps)

    return kernel_checks(
        Exercise(
            call=call,
            reference=convolved,
            show=shown("halo_tile"),
            hand=BY_HAND,
            arguments=convolution_arguments,
            typical=Sizes(2, 2, (5, 4), 5, (3, 2), (2, 1, 1, 1)),
            sizes=[SIZES[1], Sizes(1, 2, (7, 5), 6, (2, 4), (2, 1, 0, 2)), Sizes(2, 1, (4, 18), 2, (2, 2))],
            dtype="float32",
            terms=products,
            scale=convolution_scale,
            mistakes=[
                *left_early(),
                unfilled(),
                *CONVOLUTION_MISTAKES,
                Mistake(
                    "only the first kernel of each group is written: one for each g",
                    of_block(only(np.s_[:], np.s_[::group])),
                ),
                Mistake(
                    "only the first group of kernels is written: blockIdx.y * GROUP is the first kernel of a block",
                    of_block(only(np.s_[:], np.s_[:group])),
                ),
                Mistake(
                    "only the first tile of each image is written: blockIdx.x counts the tiles of all images",
                    of_block(only(np.s_[:], np.s_[:], np.s_[:TILE], np.s_[:TILE])),
                ),
                Mistake("all of a group have the sums of its first kernel: kernels[g, i * kw + j]", same_kernel),
                Mistake("the bias of kernel first + g is bias[first + g], not bias[g]", bias_of_group),
                *races(),
            ],
            memory=watched(
                kernel,
                Launch((2, 1), (TILE, TILE)),
                lambda rng: (
                    *convolution_arguments(rng, Sizes(1, 2, (6, 20), 4, (3, 2)))[:3],
                    1,
                    1,
                    1,
                    1,
                    Out((1, 4, 6, 21)),
                ),
                reads(0, 1, FROM_THE_TILE),
                reads(1, 1, ITS_GROUP),
                reads(7, 0, SUM_IN_MEMORY),
                work=[Work(7, 4), Work(0, 8, "load", FROM_THE_TILE)],
            ),
            types=only_float32(
                kernel,
                Launch(1, (TILE, TILE)),
                lambda rng: (
                    *convolution_arguments(rng, Sizes(1, 1, (3, 3), 1, (2, 2)))[:3],
                    1,
                    1,
                    0,
                    0,
                    Out((1, 1, 2, 2)),
                ),
            ),
        ),
        sizes=[UNPADDED],
        special=APART,
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


def raced(*arguments: Any) -> Any:
    """The numbers of the last launch, if it has a race."""
    if backend() != "emulator" or not last_launch:
        return None
    kernel, launch, given, results = last_launch
    return results[0] if profiled(kernel, launch, *given).races else None


def correlate_tile() -> list[Check]:
    """23.4: implicit GEMM: the forward pass, and once dL/dx with a stride."""
    geometry, implicit = module("geometry"), module("kernels.convolution_3_implicit")
    gather = module("kernels.convolution_gather")
    kernel = implicit.correlate(False)

    def given(
        x: np.ndarray, weights: np.ndarray, bias: np.ndarray, steps: Steps, activation: int = 0
    ) -> tuple[Any, ...]:
        """The kernel's arguments for the forward pass."""
        shape = output_shape(x, weights, steps)
        g = geometry.Geometry(x.shape[1], x.shape[2:], len(weights), weights.shape[2:], steps[:2], steps[2:], shape[2:])
        tables = geometry.forward_tables(g)
        taps, numbers = tables.taps.copy_to_host(), tables.numbers.copy_to_host()
        return (
            x.ravel(),
            weights.ravel(),
            gather.FORWARD,
            bias,
            activation,
            taps,
            numbers,
            Out((int(np.prod(shape)),)),
        )

    def grid(places: int, channels: int, high: int = 8) -> Launch:
        return Launch((-(-places // LANES), -(-channels // high)), (LANES, high))

    def call(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, steps: Steps) -> np.ndarray:
        shape = output_shape(x, weights, steps)
        launch = grid(int(np.prod(shape)) // shape[1], shape[1])
        return line_by_line(kernel, launch, *given(x, weights, bias, steps)).reshape(shape)

    def first_terms(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, steps: Steps) -> Any:
        if weights[0].size <= LANES:
            return None
        part = weights.copy().reshape(len(weights), -1)
        part[:, LANES:] = 0
        return convolved(x, part.reshape(weights.shape), bias, steps)

    def last_terms(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, steps: Steps) -> Any:
        if weights[0].size <= LANES:
            return None
        part = weights.copy().reshape(len(weights), -1)
        part[:, : (weights[0].size - 1) // LANES * LANES] = 0
        return convolved(x, part.reshape(weights.shape), bias, steps)

    def some_rows(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, steps: Steps) -> Any:
        """Only the first 8 rows of a tile are gathered, the others hold zeros."""
        terms = np.arange(weights[0].size) % LANES < 8
        return None if terms.all() else convolved(x, weights * terms.reshape(weights[0].shape), bias, steps)

    def written(where: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Callable[..., Any]:
        """Only where this holds of (place, channel)."""

        def wrong(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, steps: Steps) -> Any:
            right = convolved(x, weights, bias, steps)
            index = np.indices(right.shape)
            place = (index[0] * right.shape[2] + index[2]) * right.shape[3] + index[3]
            done = where(place, index[1])
            return None if done.all() else np.where(done, right, np.nan)

        return wrong

    def in_shape(mistake: Mistake) -> Mistake:
        """The same for numbers of the launch, which are a vector."""

        def wrong(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, steps: Steps) -> Any:
            numbers = mistake.result(x, weights, bias, steps)
            return None if numbers is None else numbers.reshape(output_shape(x, weights, steps))

        return Mistake(mistake.text, wrong, seen=True)

    checks = kernel_checks(
        Exercise(
            call=call,
            reference=convolved,
            show=shown("correlate_tile"),
            hand=BY_HAND,
            arguments=convolution_arguments,
            typical=Sizes(2, 5, (6, 5), 3, (3, 3), (2, 1, 1, 1)),
            sizes=[*SIZES, Sizes(3, 1, (6, 4), 9, (2, 1))],
            dtype="float32",
            terms=products,
            scale=convolution_scale,
            mistakes=[
                *map(in_shape, [*left_early(), unfilled()]),
                *CONVOLUTION_MISTAKES,
                Mistake("only the first LANES products are added up: go on by LANES to taps.shape[1]", first_terms),
                Mistake("only the last products are there: total begins once, before the rounds", last_terms),
                Mistake("the block gathers LANES rows of tile_x: from y on by the channels of the block", some_rows),
                Mistake("only the first block's places are written", written(lambda place, channel: place < LANES)),
                Mistake(
                    "only the first block's channels are written: blockIdx.y * channels + y is the thread's channel",
                    written(lambda place, channel: channel < 8),
                ),
                in_shape(Mistake(THREE_BARRIERS, raced, seen=True)),
            ],
            memory=watched(
                kernel,
                grid(32, 8),
                lambda rng: given(*convolution_arguments(rng, Sizes(1, 4, (6, 10), 8, (3, 3)))),
                reads(0, 9, GATHERED_ONCE),
                reads(1, 1, WEIGHTS_ONCE),
                no_bank_conflicts(ALONG_ROWS, "tile_x"),
                race=THREE_BARRIERS,
                work=[Work(7, 1), Work(0, 8, "load", GATHERED_ONCE)],
            ),
            types=only_float32(
                kernel,
                grid(4, 1, 1),
                lambda rng: given(*convolution_arguments(rng, Sizes(1, 1, (3, 3), 1, (2, 2)))),
            ),
        ),
        sizes=[UNPADDED],
        special=APART,
    )

    def other_endings(tally: Tally) -> None:
        """With ReLU at the end, and dL/dx with a stride, which the other of the two kernels computes."""
        rng = np.random.default_rng(7)
        x, weights, bias, steps = convolution_arguments(rng, Sizes(1, 2, (5, 7), 3, (3, 2), (2, 3, 1, 0)))
        shape = output_shape(x, weights, steps)
        right = convolved(x, weights, bias, steps)
        tally.trying("correlate_tile with ReLU at the end")
        got = line_by_line(kernel, grid(shape[2] * shape[3], 3), *given(x, weights, bias, steps, activation=1))
        tally.equal(
            got.reshape(shape),
            np.maximum(right, 0),
            case="correlate_tile with ReLU at the end",
            dtype="float32",
            terms=weights[0].size + 1,
            scale=convolution_scale(x, weights, bias, steps),
            mistakes=[Mistake(BY_END, lambda: right), Mistake(BY_END, lambda: right - bias[:, None, None])],
        )
        case = "correlate_tile gathering dL/dx from grad_output, stride (2, 3)"
        tally.trying(case)
        grad = random(rng, *shape)
        g = geometry.Geometry(2, (5, 7), 3, (3, 2), steps[:2], steps[2:], shape[2:])
        tables = geometry.backward_tables(g)
        taps, numbers = tables.taps.copy_to_host(), tables.numbers.copy_to_host()
        arguments = (grad.ravel(), weights.ravel(), gather.BACKWARD, x.ravel(), 0, taps, numbers, Out((x.size,)))
        got = line_by_line(implicit.correlate(True), grid(35, 2), *arguments)
        expected, sizes = (scattered(abs_(grad), abs_(weights), x.shape, steps) for abs_ in (np.asarray, np.abs))
        tally.equal(
            got.reshape(x.shape),
            expected,
            case=case,
            dtype="float32",
            terms=weights[:, 0].size,
            scale=sizes,
            mistakes=[
                Mistake(BY_END, lambda: expected + bias[0]),
            ],
        )

    return and_then(checks, "sizes", other_endings)


BY_END = (
    "what is written is end(total, ending, more, activation, channel, at): it adds the bias and applies the activation"
)


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
