"""Week 24: a batch of images from bytes, turned and shifted on the device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from groundup.course.checks.check import Check
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.calling.kernel_arithmetic import only_float32
from groundup.course.grading.calling.kernel_launches import Launch, Out, launched, module
from groundup.course.grading.calling.kernel_memory import coalesced, races, reads, watched
from groundup.course.grading.calling.launched_again import ONLY_NAN, kernel_checks
from groundup.course.grading.calling.line_by_line import followed, line_by_line
from groundup.course.grading.calling.shared_work import Work
from groundup.course.grading.problems.first_kernels import ALONG
from groundup.course.grading.problems.images_on_device import (
    Images,
    batch_mistakes,
    grids,
    images,
    moved,
    not_reached,
    sampled,
    table_of,
)

GRID = Launch((1, 2), (4, 2))


def looked_up(case: Images, table: np.ndarray, launch: Launch) -> np.ndarray:
    """The batch as numbers of the table."""
    return table.astype(np.float64)[case.pixels[case.batch]]


def gather_table() -> list[Check]:
    """24.1: x[r, c] = table[images[order[position + r], c]]."""
    kernel = module("kernels.images").gather_table

    def inputs(case: Images, table: np.ndarray) -> tuple[Any, ...]:
        out = Out((case.rows, case.pixels.shape[1]))
        return case.pixels, table, case.order, np.array([case.position], np.int64), out

    def arguments(rng: np.random.Generator, size: tuple[Any, ...]) -> tuple[Any, ...]:
        (rows, width), launch = size
        return images(rng, rows, 1, 1, width), table_of(rng), launch

    def of_batch(rng: np.random.Generator, rows: int, width: int) -> tuple[Any, ...]:
        return inputs(images(rng, rows, 1, 1, width), table_of(rng))

    nothing = np.zeros(3)
    pixels = np.array([[0, 255, 2], [7, 1, 0], [255, 255, 3]], np.uint8)
    by_hand = Images(pixels, (1, 3), np.array([2, 0, 1, 0], np.int32), 1, 2, nothing, nothing, nothing)
    squares = np.arange(256, dtype=np.float32) ** 2
    return kernel_checks(
        Exercise(
            call=lambda case, table, launch: launched(kernel, launch, *inputs(case, table)),
            reference=looked_up,
            show=lambda case, table, launch: f"gather_table{launch}, {case}",
            hand=[
                ((by_hand, squares, Launch((1, 1), (4, 2))), [[0, 65025, 4], [49, 1, 0]]),
                ((replace(by_hand, position=0, rows=1), squares, Launch((1, 1), (1, 1))), [[65025, 65025, 9]]),
            ],
            arguments=arguments,
            typical=((5, 7), GRID),
            sizes=[(shape, launch) for shape in ((1, 1), (3, 70), (67, 5)) for launch in grids(*shape)],
            dtype="float32",
            mistakes=[
                *not_reached(looked_up),
                *batch_mistakes(looked_up),
                Mistake(
                    "a byte over 255 is right for some data sets only: the table has the number for each byte",
                    lambda case, table, launch: case.pixels[case.batch] / 255,
                ),
                Mistake(
                    "these are the bytes: the table has the number for each of them",
                    lambda case, table, launch: case.pixels[case.batch].astype(np.float64),
                ),
                Mistake(
                    "the table is asked for the column's number: it has a number for each byte",
                    lambda case, table, launch: np.tile(table[: case.pixels.shape[1]], (case.rows, 1)),
                ),
                *races(),
            ],
            memory=watched(
                kernel,
                Launch((2, 3), (32, 2)),
                lambda rng: of_batch(rng, 12, 128),
                coalesced(0, ALONG),
                coalesced(4, ALONG),
                reads(0, 1, "each byte is needed once: one thread looks it up", per="launch"),
                work=[Work(4, 4)],
            ),
            types=only_float32(kernel, GRID, lambda rng: of_batch(rng, 5, 3), remark=True),
        )
    )


def _moving(function: str, turned: bool, hand: list[Any], mistakes: list[Mistake]) -> list[Check]:
    """The checks of 24.2 and 24.3, by launches of gather_moved. turned: whether images are turned, or shifted only"""
    kernel = module("kernels.images").gather_moved

    def inputs(case: Images, table: np.ndarray, background: float) -> tuple[Any, ...]:
        position, (height, width) = np.array([case.position], np.int64), map(np.int32, case.shape)
        number, out = table.dtype.type(background), Out((case.rows, case.pixels.shape[1]))
        return case.pixels, table, number, case.order, position, case.changes, height, width, out

    def arguments(rng: np.random.Generator, size: tuple[Any, ...]) -> tuple[Any, ...]:
        shape, launch = size
        return images(rng, *shape, turned=turned), table_of(rng), 0.625, launch

    def by_hand(pixels: list[list[int]], shape: tuple[int, int], angle: float, down: float, right: float) -> Images:
        array = np.array(pixels, np.uint8)
        each = (np.full(len(array), value) for value in (angle, down, right))
        return Images(array, shape, np.arange(len(array), dtype=np.int32), 0, len(array), *each)

    def in_batch(rng: np.random.Generator, *size: int) -> tuple[Any, ...]:
        return inputs(images(rng, *size, turned=turned), table_of(rng), 0.5)

    numbers = np.arange(256, dtype=np.float32)
    return kernel_checks(
        Exercise(
            call=lambda case, table, background, launch: line_by_line(kernel, launch, *inputs(case, table, background)),
            reference=lambda case, table, background, launch: moved(case, table, background),
            show=lambda case, table, background, launch: f"{function}: gather_moved{launch}, {case}",
            hand=[((by_hand(*case), numbers, -8.0, Launch((1, 1), (4, 2))), result) for case, result in hand],
            arguments=arguments,
            typical=((2, 2, 4, 3), GRID),
            sizes=[
                (shape, launch)
                for shape in ((1, 1, 1, 1), (2, 1, 1, 5), (1, 3, 6, 2), (3, 1, 2, 7))
                for launch in grids(shape[0], shape[1] * shape[2] * shape[3])[:2]
            ],
            dtype="float32",
            terms=lambda case, table, background, launch: 32,
            scale=lambda case, table, background, launch: np.abs(table).max() + abs(background),
            mistakes=mistakes,
            memory=followed(
                kernel,
                Launch((1, 2), (32, 2)),
                lambda rng: in_batch(rng, 4, 1, 4, 8),
                side_by_side=[8],
                written_once=[8],
                work=[Work(8, 1)],
            ),
        ),
        special=ONLY_NAN,
        sizes=[((2, 1, 3, 4), GRID)],
    )


def _read_from(change: Callable[..., Any], text: str) -> Mistake:
    """The mistake that reads another place: change as for `moved`."""
    return Mistake(text, lambda case, table, background, launch: moved(case, table, background, change))


def between() -> list[Check]:
    """24.2: between four pixels, and the background around the image."""

    def same(along: np.ndarray, across: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return along, across

    def other_shares(
        share: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]], whole: Callable[..., Any] = np.floor
    ) -> Callable[..., Any]:
        """With other shares of the lower and of the right pixels: share(along, across). whole: as in `sampled`"""

        def wrong(case: Images, table: np.ndarray, background: float, launch: Launch) -> Any:
            result = []
            height, width = case.shape
            for image in case.batch:
                planes = table.astype(np.float64)[case.pixels[image]].reshape(-1, height, width)
                row, column = np.mgrid[:height, :width] - case.changes[image][2:, None, None]
                row, column = np.clip(row, -1, height), np.clip(column, -1, width)
                above, left = np.minimum(np.floor(row), height - 1), np.minimum(np.floor(column), width - 1)
                along, across = share(row - above, column - left)
                result.append(sampled(planes, above + along, left + across, background, whole).reshape(-1))
            return np.array(result)

        return wrong

    def edge_repeated(case: Images, table: np.ndarray, background: float, launch: Launch) -> Any:
        def inside(row: np.ndarray, column: np.ndarray, *_: Any) -> tuple[np.ndarray, np.ndarray]:
            down, right = _[4:]
            return np.clip(row - down, 0, case.shape[0] - 1), np.clip(column - right, 0, case.shape[1] - 1)

        return moved(case, table, background, inside)

    return _moving(
        "between",
        False,
        [
            (([[10, 20, 30, 40]], (1, 4), 0.0, 0.0, 0.5), [[1, 15, 25, 35]]),
            (([[10, 20, 30, 50]], (2, 2), 0.0, 0.25, 0.0), [[5.5, 13, 25, 42.5]]),
            (([[8, 16, 24, 32]], (2, 2), 0.0, -0.5, -0.5), [[20, 8, 10, 2]]),
            (([[100]], (1, 1), 0.0, 5.0, 0.0), [[-8]]),
        ],
        [
            *(
                Mistake(
                    "the shares are exchanged: the nearer a pixel is, the more it counts",
                    other_shares(shares),
                )
                for shares in (
                    lambda along, across: (1 - along, 1 - across),
                    lambda along, across: (along, 1 - across),
                    lambda along, across: (1 - along, across),
                )
            ),
            Mistake(
                "along and across are exchanged: one is the share between rows, the other between columns",
                other_shares(lambda along, across: (across, along)),
            ),
            Mistake(
                "this is the nearest pixel: each of the four counts by its share",
                other_shares(lambda along, across: (np.rint(along), np.rint(across))),
            ),
            Mistake(
                "this is the pixel above and left of the place: each of the four counts by its share",
                other_shares(lambda along, across: (0 * along, 0 * across)),
            ),
            Mistake(
                "there is nothing between the rows: the two upper pixels give one number, the two lower ones another",
                other_shares(lambda along, across: (0 * along, across)),
            ),
            Mistake(
                "there is nothing between the columns: left and right give one number, above and below the next",
                other_shares(lambda along, across: (along, 0 * across)),
            ),
            Mistake(
                "cut off towards 0: int32(-0.5) is 0, and the pixel above a place of -0.5 is -1: math.floor",
                other_shares(same, np.trunc),
            ),
            Mistake("the edge's pixels are repeated: around the image is the background", edge_repeated),
        ],
    )


def gather_moved() -> list[Check]:
    """24.3: each pixel asks where it was before the image was turned and shifted."""

    def right(case: Images, table: np.ndarray, background: float, launch: Launch) -> np.ndarray:
        return moved(case, table, background)

    def turned(cos: Any, sin: Any, y: Any, z: Any) -> tuple[Any, Any]:
        return cos * y + sin * z, cos * z - sin * y

    def around(row: Any, column: Any, turn: Callable[[Any, Any], tuple[Any, Any]]) -> tuple[Any, Any]:
        """A turn around the centre of the image that these places are of."""
        middle_row, middle_column = (row.shape[0] - 1) / 2, (row.shape[1] - 1) / 2
        y, z = turn(row - middle_row, column - middle_column)
        return y + middle_row, z + middle_column

    def by_row_of_batch(case: Images, *rest: Any) -> Any:
        """With the changes of the batch's r-th image taken from line r."""
        lines = np.zeros(len(case.order), int)
        lines[case.batch] = np.arange(case.rows)
        named = {name: getattr(case, name)[lines] for name in ("angles", "down", "right")}
        return right(replace(case, **named), *rest)

    def shifted_first(row: Any, column: Any, y: Any, z: Any, cos: Any, sin: Any, down: Any, to_right: Any) -> Any:
        a, b = around(row, column, lambda y, z: turned(cos, sin, y, z))
        return a - down, b - to_right

    def forwards(row: Any, column: Any, y: Any, z: Any, cos: Any, sin: Any, down: Any, to_right: Any) -> Any:
        return around(row, column, lambda y, z: turned(cos, -sin, y + down, z + to_right))

    def around_corner(row: Any, column: Any, y: Any, z: Any, cos: Any, sin: Any, down: Any, to_right: Any) -> Any:
        return turned(cos, sin, row - down, column - to_right)

    return _moving(
        "gather_moved",
        True,
        [
            # A quarter turn, counter-clockwise: the right column comes to the top
            (([[1, 2, 3, 4, 5, 6, 7, 8, 9]], (3, 3), np.pi / 2, 0.0, 0.0), [[3, 6, 9, 2, 5, 8, 1, 4, 7]]),
            (([[1, 2, 3, 4, 5, 6]], (2, 3), 0.0, 1.0, -1.0), [[-8, -8, -8, 2, 3, -8]]),
            (([[1, 2, 3, 4], [5, 6, 7, 8]], (2, 2), np.pi, 0.0, 1.0), [[-8, 4, -8, 2], [-8, 8, -8, 6]]),
        ],
        [
            *not_reached(right),
            *batch_mistakes(right),
            Mistake(
                "the changes of line r are taken for the batch's r-th image: each image has its own, by its number in "
                "the data set",
                by_row_of_batch,
            ),
            _read_from(
                lambda row, column, y, z, cos, sin, down, right: around(
                    row, column, lambda a, b: turned(cos, -sin, a - down, b - right)
                ),
                "it turns the wrong way: the place in the old image is (cos y + sin z, cos z - sin y) from its centre",
            ),
            _read_from(
                lambda row, column, y, z, cos, sin, down, right: around(
                    row, column, lambda a, b: turned(cos, sin, a + down, b + right)
                ),
                "it is shifted the wrong way: what moves down by `down` was `down` rows higher before",
            ),
            _read_from(forwards, "this says where a pixel goes: it is asked where the number at this place was before"),
            _read_from(shifted_first, "shifted, and then turned: on the way back the shift comes off first"),
            _read_from(around_corner, "it turns around the corner: y and z are distances from the image's centre"),
            _read_from(
                lambda row, column, y, z, cos, sin, down, right: around(
                    row, column, lambda a, b: turned(cos, sin, a, b)
                ),
                "the shift is left out: changes has DOWN and RIGHT, too",
            ),
            _read_from(
                lambda row, column, y, z, cos, sin, down, right: (row - down, column - right),
                "nothing is turned: changes has the angle's COS and SIN",
            ),
        ],
    )


GRADES: dict[str, Callable[[], list[Check]]] = {
    "24.1": gather_table,
    "24.2": between,
    "24.3": gather_moved,
}
