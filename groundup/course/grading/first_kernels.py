"""Phase 4: the first kernels. What is right is said by the floor below, or by NumPy where that has no such function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from groundup.course.checks import Check, Exercise, Tally, checks_of
from groundup.course.grading.first_forward import FROM_GLOBAL, checkpoint
from groundup.course.grading.kernels import (
    RUNS,
    Both,
    Launch,
    Out,
    any_grid,
    as_float,
    coalesced,
    launched,
    left_out,
    module,
    of_the_project,
    previous_floor,
    races,
    random,
    reads,
    watched,
)
from groundup.course.grading.line_by_line import line_by_line
from groundup.course.likely import Guess

__all__ = ["GRADES", "checkpoint"]

COUNTS = (1, 7, 33)
"""One, a prime, one past a warp."""

TILE = 16

cuda = module("backend").cuda
"""A global, because Numba's simulator knows no other."""

ONE_THREAD = "several threads do the same number: blockIdx is a part of a thread's number, and gridsize of its step"
ONE_LINE = "the launch is one line of threads, cuda.grid(1), and z has rows * columns numbers"
SUM_IN_MEMORY = "the sum is kept in global memory: keep it in a variable, which is a register, and write it once"
DOWN = "x and y mixed up: in this launch x runs down the rows, y along the columns"
ALONG = "x and y mixed up: threadIdx.x has to run along the columns"


def multiply() -> list[Check]:
    """9.1: out = a * mask."""
    kernel = module("kernels.dense").multiply
    return checks_of(
        Exercise(
            call=lambda a, mask, launch: launched(kernel, launch, a, mask, Out(a.shape)),
            reference=lambda a, mask, launch: np.multiply(a, mask, dtype=np.float64),
            show=lambda a, mask, launch: f"multiply{launch} of {a.size} numbers",
            hand=[
                ((as_float([3, -4, 5]), as_float([2, 0.5, 0]), Launch(1, 4)), [6, -2, 0]),
                ((as_float([1, 2, 3, 4, 5]), as_float([1, 2, 3, 4, 5]), Launch(1, 2)), [1, 4, 9, 16, 25]),
            ],
            arguments=lambda rng, size: (random(rng, size[0]), random(rng, size[0]), size[1]),
            typical=(37, Launch(3, 4)),
            sizes=[(count, launch) for count in COUNTS for launch in any_grid(count)],
            dtype="float32",
            guesses=[*left_out(lambda a, mask, launch: a * mask), *races()],
            memory=watched(
                kernel,
                Launch(2, 32),
                lambda rng: (random(rng, 256), random(rng, 256), Out((256,))),
                reads(0, 1, ONE_THREAD, per="launch"),
                coalesced(likely=RUNS),
            ),
        )
    )


def add_bias() -> list[Check]:
    """9.2: z += bias, in place."""
    kernel = module("kernels.dense").add_bias
    rows_first = Guess(
        "row and column exchanged: there is a bias for each column",
        lambda z, bias, launch: z + bias[np.arange(len(z)) % bias.size][:, None] if len(z) <= bias.size else None,
    )
    first_column = Guess(
        f"only the first column has its bias: {ONE_LINE}",
        lambda z, bias, launch: np.hstack([z[:, :1] + bias[:1], z[:, 1:]]),
    )
    remainder = Guess(
        "row and column exchanged: number i is in row i // columns, column i % columns",
        lambda z, bias, launch: z + bias[np.minimum(np.arange(z.size) // z.shape[1], bias.size - 1)].reshape(z.shape),
    )
    return checks_of(
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
            sizes=[(shape, launch) for shape in ((1, 1), (3, 11), (33, 2)) for launch in any_grid(shape[0] * shape[1])],
            dtype="float32",
            guesses=[
                *left_out(lambda z, bias, launch: z + bias, lambda z, bias, launch: z),
                rows_first,
                remainder,
                Guess(
                    f"only the first row has its bias: {ONE_LINE}",
                    lambda z, bias, launch: np.vstack([z[:1] + bias, z[1:]]),
                ),
                first_column,
                Guess("z itself is lost: add to what it holds", lambda z, bias, launch: np.broadcast_to(bias, z.shape)),
                *races(),
            ],
            memory=watched(
                kernel,
                Launch(2, 32),
                lambda rng: (Both(random(rng, 8, 32)), random(rng, 32)),
                reads(0, 1, ONE_THREAD, per="launch"),
                coalesced(likely=RUNS),
            ),
        )
    )


def epoch(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(labels, order, position) of an epoch in which the batch of so many rows begins at 8."""
    samples = rows + 11
    labels = rng.integers(0, 10, samples).astype(np.int32)
    return labels, rng.permutation(samples).astype(np.int32), np.array([8], np.int64)


def batch(data: np.ndarray, order: np.ndarray, position: np.ndarray, rows: int, launch: Launch) -> np.ndarray:
    """What is gathered."""
    return data[order[position[0] : position[0] + rows]].astype(np.float64)


GATHERED = [
    Guess(
        "the position is not added: the batch begins at position[0] of the order, not at 0",
        lambda data, order, position, rows, launch: data[order[:rows]],
    ),
    Guess(
        "the order is not asked: it says which sample comes next",
        lambda data, order, position, rows, launch: (
            data[position[0] : position[0] + rows] if position[0] + rows <= len(data) else None
        ),
    ),
]


def gather_labels() -> list[Check]:
    """9.3: y[r] = labels[order[position + r]]."""
    kernel = module("kernels.gather").gather_labels
    labels, order = np.array([7, 3, 9, 1, 5], np.int32), np.array([4, 0, 3, 1, 2], np.int32)
    return checks_of(
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
            sizes=[(count, launch) for count in COUNTS for launch in any_grid(count)],
            guesses=[
                *left_out(batch),
                *GATHERED,
                Guess(
                    "that is which sample it is; its label is labels[…] of it",
                    lambda labels, order, position, rows, launch: order[position[0] : position[0] + rows],
                ),
                *races(),
            ],
            memory=watched(
                kernel,
                Launch(1, 32),
                lambda rng: (*epoch(rng, 64), Out((64,), "int32")),
                coalesced(3, RUNS),
                coalesced(1, RUNS),
            ),
        )
    )


def product(name: str, x_down: bool) -> list[Check]:
    """9.4 and 10.1: a thread for each number of ab. x_down: whether the launch has x down the rows."""
    kernel = getattr(module("kernels.matmul_basic"), name)

    def blocks(rows: int, columns: int) -> tuple[int, int]:
        """Of 8 x 4 threads, and more of them than the result has room for."""
        across, down = (rows, columns) if x_down else (columns, rows)
        return across // 8 + 1, down // 4 + 2

    def exchanged(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """What is written where x and y have changed places, and the guard is right."""
        row, column = np.indices((len(a), b.shape[1]))
        along_x, along_y = (column, row) if x_down else (row, column)
        across, down = blocks(len(a), b.shape[1])
        return np.where((along_x < 8 * across) & (along_y < 4 * down), a @ b, np.nan)

    def call(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        shape = len(a), b.shape[1]
        return launched(kernel, Launch(blocks(*shape), (8, 4)), a, b, Out(shape))

    return checks_of(
        matmul_exercise(
            name,
            call,
            sizes=[(1, 1, 1), (2, 17, 31), (33, 3, 2), (17, 1, 5)],
            guesses=[Guess(DOWN if x_down else ALONG, exchanged)],
            memory=watched(
                kernel,
                Launch((8, 2) if x_down else (2, 2), (2, 32) if x_down else (32, 4)),
                lambda rng: (random(rng, 8, 16), random(rng, 16, 64), Out((8, 64))),
                reads(2, 0, SUM_IN_MEMORY),
                *([] if x_down else [coalesced(likely=ALONG)]),
            ),
        )
    )


def matmul_exercise(
    name: str,
    call: Callable[..., Any],
    sizes: Sequence[Any],
    guesses: Sequence[Guess],
    memory: Callable[[Tally], None],
) -> Exercise:
    """ab on sizes (M, K, N), against the floor below. call: of a and b."""
    floor = previous_floor()

    def reference(a: np.ndarray, b: np.ndarray) -> Any:
        return floor.matmul.matmul(a.astype(np.float64), b.astype(np.float64))

    ones = np.ones((4, 16), np.float32), np.ones((16, 4), np.float32)
    a, b = as_float([[1, 2, 3], [4, 5, 6]]), as_float([[1, 0], [0, 1], [2, -1]])
    return Exercise(
        call=call,
        reference=reference,
        show=lambda a, b: f"{name} of a {a.shape} and b {b.shape}",
        hand=[
            ((a, b), [[7, -1], [16, -1]]),
            (ones, np.full((4, 4), 16)),
            ((b, a), [[1, 2, 3], [4, 5, 6], [-2, -1, 0]]),
        ],
        arguments=lambda rng, size: (random(rng, size[0], size[1]), random(rng, size[1], size[2])),
        typical=(21, 37, 5),
        sizes=sizes,
        dtype="float32",
        terms=lambda a, b: a.shape[1],
        scale=lambda a, b: np.abs(a) @ np.abs(b),
        guesses=[
            *guesses,
            Guess(
                "the last product is left out: does k run to the end of the row?",
                lambda a, b: a[:, :-1] @ b[:-1] if a.shape[1] > 1 else None,
            ),
            Guess("only the last product is kept: add to the sum, do not assign", lambda a, b: a[:, -1:] @ b[-1:]),
            *races(),
        ],
        memory=memory,
    )


def columns_by_thread() -> list[Check]:
    """10.2: the sum of each column."""
    kernel = module("kernels.sums").columns_by_thread
    return checks_of(
        Exercise(
            call=lambda matrix, launch: launched(kernel, launch, matrix, Out((matrix.shape[1],))),
            reference=lambda matrix, launch: matrix.sum(axis=0, dtype=np.float64),
            show=lambda matrix, launch: f"columns_by_thread{launch} of {matrix.shape}",
            hand=[
                ((as_float([[1, 2, 3], [4, 5, 7]]), Launch(1, 4)), [5, 7, 10]),
                ((as_float([[1, 2, 3], [4, 5, 7], [0, -1, 1]]), Launch(1, 2)), [5, 6, 11]),
            ],
            arguments=lambda rng, size: (random(rng, *size[0]), size[1]),
            typical=((7, 13), Launch(2, 4)),
            sizes=[(shape, launch) for shape in ((1, 1), (33, 2), (3, 37)) for launch in any_grid(shape[1])],
            dtype="float32",
            terms=lambda matrix, launch: len(matrix),
            scale=lambda matrix, launch: np.abs(matrix).sum(axis=0),
            guesses=[
                *left_out(lambda matrix, launch: matrix.sum(axis=0)),
                Guess(
                    "the last row is left out: does the loop run to the end?",
                    lambda matrix, launch: matrix[:-1].sum(axis=0),
                ),
                Guess("only the last row is there: add, do not assign", lambda matrix, launch: matrix[-1]),
                Guess(
                    "forgot the batch: the sum over the rows, not their mean",
                    lambda matrix, launch: matrix.mean(axis=0),
                ),
                Guess(
                    "the sum goes along the rows: one for each column was asked for",
                    lambda matrix, launch: matrix.sum(axis=1) if len(matrix) == matrix.shape[1] else None,
                ),
                *races(),
            ],
            memory=watched(
                kernel,
                Launch(1, 32),
                lambda rng: (random(rng, 5, 128), Out((128,))),
                reads(1, 0, SUM_IN_MEMORY),
                coalesced(likely=RUNS),
            ),
        )
    )


def gather_rows() -> list[Check]:
    """10.3: x[r] = values[order[position + r]], coalesced."""
    kernel = module("kernels.gather").gather_rows
    values, order = as_float([[1, 2], [3, 4], [5, 6]]), np.array([2, 0, 1, 0], np.int32)

    def arguments(rng: np.random.Generator, size: tuple[tuple[int, int], Launch]) -> tuple[Any, ...]:
        (rows, features), launch = size
        labels, order, position = epoch(rng, rows)
        return random(rng, labels.size, features), order, position, rows, launch

    def grids(rows: int, features: int) -> list[Launch]:
        """Beyond the edges, too small along both sides, and a single thread."""
        beyond = Launch((features // 4 + 2, rows // 2 + 2), (4, 2))
        return [beyond, Launch((1, 1), (4, 2)), Launch((1, 1), (1, 1))]

    def reached(rows_too: bool, columns_too: bool) -> Callable[..., Any]:
        """What is written without the stride along one of the two."""

        def wrong(*given: Any) -> Any:
            result, launch = batch(*given), given[-1]
            across, down = (blocks * side for blocks, side in zip(launch.grid, launch.block, strict=True))
            row, column = np.indices(result.shape)
            done = (rows_too | (row < down)) & (columns_too | (column < across))
            return None if done.all() else np.where(done, result, np.nan)

        return wrong

    return checks_of(
        Exercise(
            call=lambda values, order, position, rows, launch: launched(
                kernel, launch, values, order, position, Out((rows, values.shape[1]))
            ),
            reference=batch,
            show=lambda values, order, position, rows, launch: (
                f"gather_rows{launch}, {rows} rows of {values.shape[1]} from position {position[0]}"
            ),
            hand=[
                ((values, order, np.array([0], np.int64), 2, Launch((1, 1), (4, 2))), [[5, 6], [1, 2]]),
                ((values, order, np.array([1], np.int64), 3, Launch((1, 1), (1, 2))), [[1, 2], [3, 4], [1, 2]]),
            ],
            arguments=arguments,
            typical=((5, 7), Launch((1, 2), (4, 2))),
            sizes=[(shape, launch) for shape in ((1, 1), (3, 11), (17, 5)) for launch in grids(*shape)],
            dtype="float32",
            guesses=[
                Guess(
                    "no grid-stride loop along the columns: go on by the grid's width until the row ends",
                    reached(True, False),
                ),
                Guess(
                    "no grid-stride loop down the rows: go on by the grid's height until the last", reached(False, True)
                ),
                Guess("no grid-stride loop: what lies beyond the grid is left out", reached(False, False)),
                *GATHERED,
                *races(),
            ],
            memory=watched(
                kernel,
                Launch((1, 2), (32, 2)),
                lambda rng: (
                    random(rng, 9, 64),
                    rng.permutation(9).astype(np.int32),
                    np.array([3], np.int64),
                    Out((5, 64)),
                ),
                coalesced(likely=ALONG),
            ),
        )
    )


def tile_of(name: str, side: int) -> list[Check]:
    """11.1 and 11.2: fill and fill_transposed, called by a kernel of the grader's that shows the tile."""
    fill = getattr(module("kernels.matmul_basic"), name)
    of_the_project(fill, device=True)
    kernel = tile_kernel(fill, side)
    turned = name == "fill_transposed"

    def part(source: np.ndarray, row: int, column: int, edge: float = 0.0) -> np.ndarray:
        """What the tile has to hold. edge: what stands beyond the edge."""
        piece = (source.T if turned else source)[row : row + side, column : column + side]
        tile = np.full((side, side), edge)
        tile[: piece.shape[0], : piece.shape[1]] = piece
        return tile

    def inside(source: np.ndarray, row: int, column: int) -> np.ndarray | None:
        tile = part(source, row, column, np.nan)
        return tile if np.isnan(tile).any() else None

    first = as_float([[1, 2, 3], [4, 5, 6]])
    of_first = np.zeros((side, side))
    of_first[: 3 if turned else 2, : 2 if turned else 3] = (
        [[1, 4], [2, 5], [3, 6]] if turned else [[1, 2, 3], [4, 5, 6]]
    )
    # From (1, 1) on: 5 6 in the one, and 5 above 6 in the other.
    of_second = np.zeros((side, side))
    of_second[: 2 if turned else 1, : 1 if turned else 2] = [[5], [6]] if turned else [[5, 6]]
    guesses = [
        Guess("beyond the edge nothing is written: the tile needs a zero there, which adds nothing to a sum", inside),
        Guess(
            "the tile begins at (row, column) of the source, not at (0, 0)",
            lambda source, row, column: part(source, 0, 0),
        ),
        Guess(
            "row and column exchanged: row counts down the tile's matrix",
            lambda source, row, column: part(source, column, row),
        ),
    ]
    if turned:
        guesses.append(
            Guess(
                "not turned around: the tile is of the source transposed",
                lambda source, row, column: part(source.T, row, column),
            )
        )
    return checks_of(
        Exercise(
            call=lambda source, row, column: launched(
                kernel, Launch(1, (side, side)), source, row, column, Out((side, side))
            ),
            reference=part,
            show=lambda source, row, column: f"{name} from ({row}, {column}) of a source {source.shape}",
            hand=[((first, 0, 0), of_first), ((first, 1, 1), of_second)],
            arguments=lambda rng, size: (random(rng, *size[0]), size[1], size[2]),
            typical=((2 * side + 3, 2 * side + 5), side, 0),
            sizes=[
                ((1, 1), 0, 0),
                ((side, 2 * side), 0, side) if not turned else ((2 * side, side), 0, side),
                ((37, 41), 32, 32),
                ((5, 41), 0, 32) if not turned else ((41, 5), 0, 32),
                ((41, 5), 32, 0) if not turned else ((5, 41), 32, 0),
            ],
            dtype="float32",
            guesses=[*guesses, *races()],
            memory=watched(
                kernel,
                Launch(1, (side, side)),
                lambda rng: (random(rng, 2 * side, 2 * side), side, 0, Out((side, side))),
                reads(0, 1, "each thread copies one number"),
                coalesced(likely="x and y mixed up: threadIdx.x has to run along the columns of the source"),
            ),
        )
    )


def tile_kernel(fill: Any, side: int) -> Any:
    """A kernel for one block that has its tile filled and writes it to `out`; what is not filled is NaN."""
    pitch = side + 1

    @cuda.jit
    def show_tile(source, row, column, out):  # type: ignore[no-untyped-def]
        tile = cuda.shared.array((side, pitch), source.dtype)
        x = cuda.threadIdx.x
        y = cuda.threadIdx.y
        tile[y, x] = source.dtype.type(np.nan)
        cuda.syncthreads()
        fill(tile, source, row, column)
        cuda.syncthreads()
        out[y, x] = tile[y, x]

    return show_tile


OWN_NUMBER = (
    "row and column are where the block's tile begins, cuda.blockIdx.y * tile and cuda.blockIdx.x * tile: fill adds "
    "the thread's own place to them, so they are not cuda.grid(2)"
)


def through_tiles(
    a: np.ndarray, b: np.ndarray, own: bool = False, blocks: bool = False, threads: bool = False
) -> np.ndarray:
    """ab through tiles, with mistakes.

    own: a tile begins at the thread's own number in place of its block's corner; blocks, threads: x and y of the
        block, or of the thread in it, have changed places
    """

    def at(source: np.ndarray, row: np.ndarray, column: np.ndarray) -> np.ndarray:
        inside = (row < source.shape[0]) & (column < source.shape[1])
        return np.where(inside, source[np.where(inside, row, 0), np.where(inside, column, 0)], 0.0)

    y, x = np.indices((TILE, TILE))
    down, across = -(-len(a) // TILE), -(-b.shape[1] // TILE)
    c = np.zeros((down * TILE, across * TILE))
    for block in np.ndindex(down, across):
        here = TILE * block[0], TILE * block[1]
        row, column = here[::-1] if blocks else here
        along_y, along_x = ((x, y) if blocks else (y, x)) if own else (0, 0)
        total = np.zeros((TILE, TILE))
        for start in range(0, a.shape[1], TILE):
            tile_a, tile_b = at(a, row + along_y + y, start + x), at(b, start + y, column + along_x + x)
            total += tile_a @ tile_b
        c[here[0] : here[0] + TILE, here[1] : here[1] + TILE] = total.T if threads else total
    return c[: len(a), : b.shape[1]]


TILE_GUESSES = [
    Guess(OWN_NUMBER, partial(through_tiles, own=True)),
    Guess(OWN_NUMBER, partial(through_tiles, own=True, blocks=True)),
    Guess(
        "x and y mixed up: threadIdx.x runs along the columns of c, threadIdx.y down its rows",
        partial(through_tiles, threads=True),
    ),
    Guess(
        "x and y mixed up: blockIdx.x runs along the columns of c, blockIdx.y down its rows",
        partial(through_tiles, blocks=True),
    ),
    Guess(
        "x and y mixed up: x runs along the columns of c, y down its rows",
        partial(through_tiles, blocks=True, threads=True),
    ),
]


def tiled_product() -> list[Check]:
    """11.3: the product through shared tiles; as nn throughout, and once each as tn and nt."""
    tiled = module("kernels.matmul_basic").tiled
    kernel = tiled(TILE, "nn").multiply
    turned = {form: tiled(4, form).multiply for form in ("tn", "nt")}

    def grid(rows: int, columns: int, side: int) -> Launch:
        return Launch((-(-columns // side), -(-rows // side)), (side, side))

    def call(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        shape = len(a), b.shape[1]
        return launched(kernel, grid(*shape, TILE), a, b, Out(shape))

    def whole_tiles(a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
        whole = a.shape[1] // TILE * TILE
        return a[:, :whole] @ b[:whole] if whole < a.shape[1] else None

    def as_many_as(count: Callable[[np.ndarray, np.ndarray], int]) -> Callable[..., Any]:
        """As many tiles of the sum as something else has."""

        def wrong(a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
            end = -(-count(a, b) // TILE) * TILE
            return a[:, :end] @ b[:end] if end < a.shape[1] else None

        return wrong

    made = checks_of(
        matmul_exercise(
            "tiled(16, 'nn')",
            call,
            sizes=[(1, 1, 1), (33, 7, 2), (17, 33, 18), (5, 40, 3)],  # the last takes several rounds: see races
            guesses=[
                *TILE_GUESSES,
                Guess("off by one tile: K / TILE rounds down, and the last tile is left out", whole_tiles),
                Guess("loops over gridDim.x instead of ceil(K / TILE)", as_many_as(lambda a, b: b.shape[1])),
                Guess("loops over a's rows: the sum runs along a's columns", as_many_as(lambda a, b: len(a))),
            ],
            memory=watched(
                kernel,
                grid(32, 32, TILE),
                lambda rng: (random(rng, 32, 48), random(rng, 48, 32), Out((32, 32))),
                reads(0, 1, FROM_GLOBAL),
                reads(1, 1, FROM_GLOBAL),
                coalesced(likely=ALONG),
            ),
        )
    )
    numbers = next(check for check in made if check.name == "sizes")

    def sizes(tally: Tally) -> None:
        numbers.run(tally)
        rng = np.random.default_rng(7)
        for form, kernel in turned.items():
            other_form(tally, form, kernel, random(rng, 5, 11), random(rng, 11, 6))

    return [Check("sizes", sizes) if check is numbers else check for check in made]


def other_form(tally: Tally, form: str, kernel: Any, a: np.ndarray, b: np.ndarray) -> None:
    """Count a comparison of ab by a kernel of tiled(4, "tn" or "nt"), which takes aᵀ or bᵀ."""
    given = (a.T.copy(), b) if form == "tn" else (a, b.T.copy())
    shape, inner = (len(a), b.shape[1]), a.shape[1]
    launch = Launch((-(-shape[1] // 4), -(-shape[0] // 4)), (4, 4))
    case = f"tiled(4, '{form}') of a {given[0].shape} and b {given[1].shape}"
    tally.trying(case)
    end = -(-given[0].shape[1] // 4) * 4
    got = line_by_line(kernel, launch, *given, Out(shape))
    tally.equal(
        got,
        a.astype(np.float64) @ b,
        case=case,
        dtype="float32",
        terms=inner,
        scale=np.abs(a) @ np.abs(b),
        guesses=[
            Guess(
                "the sum runs along the axis `inner` of a: in tn that is a's rows, not its columns",
                lambda: a[:, :end] @ b[:end] if end < inner else None,
            ),
            *races(got=lambda: got),
            Guess(
                "it is right as nn: are tiles filled by fill_a and fill_b, which turn them where the form needs it?",
                lambda: got,
            ),
        ],
    )


GRADES: dict[str, Callable[[], list[Check]]] = {
    "9.1": multiply,
    "9.2": add_bias,
    "9.3": gather_labels,
    "9.4": lambda: product("naive", x_down=True),
    "10.1": lambda: product("coalesced", x_down=False),
    "10.2": columns_by_thread,
    "10.3": gather_rows,
    "11.1": lambda: tile_of("fill", 16),
    "11.2": lambda: tile_of("fill_transposed", 32),
    "11.3": tiled_product,
}
