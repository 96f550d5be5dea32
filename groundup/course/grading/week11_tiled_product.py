"""Week 11: the product through tiles in shared memory."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from groundup.course.checks.check import Check, Tally, Wrong, and_then
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.calling.kernel_arithmetic import only_float32
from groundup.course.grading.calling.kernel_launches import (
    Launch,
    Out,
    as_float,
    launched,
    module,
    of_the_project,
    random,
)
from groundup.course.grading.calling.kernel_memory import coalesced, races, reads, watched
from groundup.course.grading.calling.launched_again import APART, kernel_checks
from groundup.course.grading.calling.line_by_line import line_by_line
from groundup.course.grading.calling.shared_work import Work
from groundup.course.grading.checkpoints.phase4_forward_pass import FROM_GLOBAL
from groundup.course.grading.problems.first_kernels import ALONG, matmul_exercise

TILE = 16

cuda = module("backend").cuda
"""A global, because Numba's simulator knows no other."""


def tile_of(name: str, side: int) -> list[Check]:
    """11.1 and 11.2: fill and fill_transposed, called by a kernel of the grader's that writes the tile out."""
    fill = getattr(module("kernels.matmul_1_basic"), name)
    of_the_project(fill, device=True)
    kernel = tile_kernel(fill, side)
    turned = name == "fill_transposed"

    def part(source: np.ndarray, row: int, column: int, edge: float = 0.0) -> np.ndarray:
        """The right tile. edge: the value beyond the edge."""
        piece = (source.T if turned else source)[row : row + side, column : column + side]
        tile = np.full((side, side), edge)
        tile[: piece.shape[0], : piece.shape[1]] = piece
        return tile

    def inside(source: np.ndarray, row: int, column: int) -> np.ndarray | None:
        tile = part(source, row, column, np.nan)
        return tile if np.isnan(tile).any() else None

    tile_name = fill.py_func.__code__.co_varnames[0]

    def by_grid(source: np.ndarray, row: int, column: int) -> np.ndarray:
        """What the last of 2 x 2 blocks reads if its threads are counted through the whole grid."""
        return part(source, row + side, column + side)

    def call(source: np.ndarray, row: int, column: int) -> np.ndarray:
        try:
            return launched(kernel, Launch((2, 2), (side, side)), source, row, column, Out((side, side)))
        except Wrong as wrong:
            if wrong.what.startswith(f"{tile_name}[") and "is out of bounds" in wrong.what:
                wrong.cause = GRID_IN_TILE if "cuda.grid" in inspect.getsource(fill.py_func) else IN_TILE
            raise

    first = as_float([[1, 2, 3], [4, 5, 6]])
    of_first = np.zeros((side, side))
    of_first[: 3 if turned else 2, : 2 if turned else 3] = (
        [[1, 4], [2, 5], [3, 6]] if turned else [[1, 2, 3], [4, 5, 6]]
    )
    # From (1, 1) on: 5 6 in the one, and 5 above 6 in the other.
    of_second = np.zeros((side, side))
    of_second[: 2 if turned else 1, : 1 if turned else 2] = [[5], [6]] if turned else [[5, 6]]
    mistakes = [
        Mistake(GRID_IN_TILE, by_grid),
        Mistake("beyond the edge nothing is written: the tile needs a zero there, which adds nothing to a sum", inside),
        Mistake(
            "the tile begins at (row, column) of the source, not at (0, 0)",
            lambda source, row, column: part(source, 0, 0),
        ),
        Mistake(
            "row and column exchanged: row counts down the tile's matrix",
            lambda source, row, column: part(source, column, row),
        ),
    ]
    if turned:
        mistakes.append(
            Mistake(
                "not turned around: the tile is of the source transposed",
                lambda source, row, column: part(source, row, column).T,
            )
        )
    return kernel_checks(
        Exercise(
            call=call,
            reference=part,
            show=lambda source, row, column: (
                f"{name} from ({row}, {column}) of a source {source.shape}, in block (1, 1)"
            ),
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
            mistakes=[*mistakes, *races()],
            memory=watched(
                kernel,
                Launch((2, 2), (side, side)),
                lambda rng: (random(rng, 2 * side, 2 * side), side, 0, Out((side, side))),
                reads(0, 1, "each thread copies one number"),
                coalesced(cause="x and y mixed up: threadIdx.x has to run along the columns of the source"),
                work=[Work(0, 1, "load")],
            ),
            types=only_float32(
                kernel, Launch(1, (side, side)), lambda rng: (random(rng, side, 3), 0, 0, Out((side, side)))
            ),
        ),
        sizes=[((side, side), 0, 0)],
    )


GRID_IN_TILE = (
    "cuda.grid counts through the whole grid: a place in the block's own tile is counted by cuda.threadIdx, which "
    "begins at 0 in every block"
)

IN_TILE = "the tile has a place for each thread of the block: the thread's own is (threadIdx.y, threadIdx.x)"


def tile_kernel(fill: Any, side: int) -> Any:
    """A kernel whose blocks all have the same tile filled. The last one writes it; what is not filled is NaN."""
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
        if cuda.blockIdx.x + 1 == cuda.gridDim.x and cuda.blockIdx.y + 1 == cuda.gridDim.y:
            out[y, x] = tile[y, x]

    return show_tile


OWN_NUMBER = (
    "row and column are where the block's tile begins, cuda.blockIdx.y * tile and cuda.blockIdx.x * tile: fill adds "
    "the thread's own place to them, so they are not cuda.grid(2)"
)


def through_tiles(
    a: np.ndarray, b: np.ndarray, own: bool = False, blocks: bool = False, threads: bool = False
) -> np.ndarray:
    """ab through tiles. The switches make known mistakes:

    own         a tile begins at the thread's own number, not at its block's corner
    blocks      x and y of the block have changed places
    threads     x and y of the thread in its block have changed places
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


TILE_MISTAKES = [
    Mistake(OWN_NUMBER, partial(through_tiles, own=True)),
    Mistake(OWN_NUMBER, partial(through_tiles, own=True, blocks=True)),
    Mistake(
        "x and y mixed up: threadIdx.x runs along the columns of c, threadIdx.y down its rows",
        partial(through_tiles, threads=True),
    ),
    Mistake(
        "x and y mixed up: blockIdx.x runs along the columns of c, blockIdx.y down its rows",
        partial(through_tiles, blocks=True),
    ),
    Mistake(
        "x and y mixed up: x runs along the columns of c, y down its rows",
        partial(through_tiles, blocks=True, threads=True),
    ),
]


def tiled_product() -> list[Check]:
    """11.3: the product through shared tiles: all checks as nn, and one comparison each as tn and nt."""
    tiled = module("kernels.matmul_1_basic").tiled
    kernel = tiled(TILE, "nn").multiply
    small = {form: tiled(4, form).multiply for form in ("nn", "tn", "nt")}

    def grid(rows: int, columns: int, side: int) -> Launch:
        return Launch((-(-columns // side), -(-rows // side)), (side, side))

    def call(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        shape = len(a), b.shape[1]
        return launched(kernel, grid(*shape, TILE), a, b, Out(shape))

    def whole_tiles(a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
        whole = a.shape[1] // TILE * TILE
        return a[:, :whole] @ b[:whole] if whole < a.shape[1] else None

    def as_many_as(count: Callable[[np.ndarray, np.ndarray], int]) -> Callable[..., Any]:
        """The sum over as many tiles as another size has."""

        def wrong(a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
            end = -(-count(a, b) // TILE) * TILE
            return a[:, :end] @ b[:end] if end < a.shape[1] else None

        return wrong

    checks = kernel_checks(
        matmul_exercise(
            "tiled(16, 'nn')",
            call,
            sizes=[(1, 1, 1), (33, 7, 2), (17, 33, 18), (5, 40, 3)],  # the last takes several rounds: see races
            mistakes=[
                *TILE_MISTAKES,
                Mistake("off by one tile: K / TILE rounds down, and the last tile is left out", whole_tiles),
                Mistake("loops over gridDim.x instead of ceil(K / TILE)", as_many_as(lambda a, b: b.shape[1])),
                Mistake("loops over a's rows: the sum runs along a's columns", as_many_as(lambda a, b: len(a))),
            ],
            memory=watched(
                kernel,
                grid(32, 32, TILE),
                lambda rng: (random(rng, 32, 48), random(rng, 48, 32), Out((32, 32))),
                reads(0, 1, FROM_GLOBAL),
                reads(1, 1, FROM_GLOBAL),
                coalesced(cause=ALONG),
                work=[Work(2, 1), Work(0, 3, "load", FROM_GLOBAL), Work(1, 3, "load", FROM_GLOBAL)],
            ),
            types=only_float32(
                small["nn"],
                grid(5, 6, 4),
                lambda rng: (random(rng, 5, 6), random(rng, 6, 6), Out((5, 6))),
            ),
        ),
        sizes=[(5, 6, 7)],
        special=APART,
    )

    def other_forms(tally: Tally) -> None:
        rng = np.random.default_rng(7)
        for form in ("tn", "nt"):
            other_form(tally, form, small[form], random(rng, 5, 11), random(rng, 11, 6))

    return and_then(checks, "sizes", other_forms)


def other_form(tally: Tally, form: str, kernel: Any, a: np.ndarray, b: np.ndarray) -> None:
    """Count a comparison of ab by a kernel of tiled(4, "tn" or "nt"), which takes aᵀ or bᵀ."""
    operands = (a.T.copy(), b) if form == "tn" else (a, b.T.copy())
    shape, inner = (len(a), b.shape[1]), a.shape[1]
    launch = Launch((-(-shape[1] // 4), -(-shape[0] // 4)), (4, 4))
    case = f"tiled(4, '{form}') of a {operands[0].shape} and b {operands[1].shape}"
    tally.trying(case)
    end = -(-operands[0].shape[1] // 4) * 4
    got = line_by_line(kernel, launch, *operands, Out(shape))
    tally.equal(
        got,
        a.astype(np.float64) @ b,
        case=case,
        dtype="float32",
        terms=inner,
        scale=np.abs(a) @ np.abs(b),
        mistakes=[
            Mistake(
                "the sum runs along the axis `inner` of a: in tn that is a's rows, not its columns",
                lambda: a[:, :end] @ b[:end] if end < inner else None,
            ),
            *races(got=lambda: got),
            Mistake(
                "it is right as nn: are tiles filled by fill_a and fill_b, which turn them where the form needs it?",
                lambda: got,
            ),
        ],
    )


GRADES: dict[str, Callable[[], list[Check]]] = {
    "11.1": lambda: tile_of("fill", 16),
    "11.2": lambda: tile_of("fill_transposed", 32),
    "11.3": tiled_product,
}
