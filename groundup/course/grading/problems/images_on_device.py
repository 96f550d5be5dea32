"""Batches of images from bytes, turned and shifted: arguments and right results for the kernels of week 24."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.calling.kernel_launches import Launch


@dataclass(frozen=True, eq=False)
class Images:
    """A data set on the device, and the batch that is gathered of it.

    pixels: bytes (n, channels height width); shape: (height, width); order, position, rows: of the batch
    angles (radians), down, right (pixels): how each image of the data set is moved, (n,) each
    """

    pixels: np.ndarray
    shape: tuple[int, int]
    order: np.ndarray
    position: int
    rows: int
    angles: np.ndarray
    down: np.ndarray
    right: np.ndarray

    @property
    def changes(self) -> np.ndarray:
        """As the kernel gets them: cosine, sine, pixels down, pixels right."""
        return np.stack([np.cos(self.angles), np.sin(self.angles), self.down, self.right], axis=1)

    @property
    def batch(self) -> np.ndarray:
        """The numbers of the batch's images."""
        return self.order[self.position : self.position + self.rows]

    def __str__(self) -> str:
        height, width = self.shape
        channels = self.pixels.shape[1] // (height * width)
        return f"{self.rows} images of {channels} x {height} x {width} from position {self.position}"


def images(
    rng: np.random.Generator, rows: int, channels: int, height: int, width: int, *, turned: bool = True
) -> Images:
    """A random data set, whose batch begins at position 2. turned: False for images that are only shifted."""
    count = rows + 3
    shifts = rng.uniform(-2.5, 2.5, (2, count))
    return Images(
        rng.integers(0, 256, (count, channels * height * width)).astype(np.uint8),
        (height, width),
        rng.permutation(count).astype(np.int32),
        2,
        rows,
        rng.uniform(-1, 1, count) * turned,
        *(np.round(shifts) if turned else shifts),
    )


def table_of(rng: np.random.Generator) -> np.ndarray:
    """Random numbers for the 256 bytes."""
    return rng.standard_normal(256).astype(np.float32)


def grids(rows: int, features: int) -> list[Launch]:
    """Launches beyond the edges, launches that are too small along both sides, and one of a single thread."""
    return [Launch((features // 4 + 2, rows // 2 + 2), (4, 2)), Launch((1, 1), (4, 2)), Launch((1, 1), (1, 1))]


def moved(case: Images, table: np.ndarray, background: float, change: Callable[..., Any] | None = None) -> np.ndarray:
    """The batch, turned, shifted and between four pixels, in float64.

    change: of (row, column, y, z, cos, sin, down, right) -> the place (row, column) that is read, in place of the right
    """
    height, width = case.shape
    result = []
    for image in case.batch:
        planes = table.astype(np.float64)[case.pixels[image]].reshape(-1, height, width)
        cos, sin, down, right = case.changes[image]
        row, column = np.mgrid[:height, :width].astype(np.float64)
        y, z = row - (height - 1) / 2 - down, column - (width - 1) / 2 - right
        place = cos * y + sin * z + (height - 1) / 2, cos * z - sin * y + (width - 1) / 2
        if change is not None:
            place = change(row, column, y, z, cos, sin, down, right)
        result.append(sampled(planes, *place, background).reshape(-1))
    return np.array(result).reshape(case.rows, -1)


def sampled(
    planes: np.ndarray,
    row: np.ndarray,
    column: np.ndarray,
    background: float,
    whole: Callable[[np.ndarray], np.ndarray] = np.floor,
) -> np.ndarray:
    """The planes (channels, height, width) at places between their pixels, with background around them.

    whole: which whole number a place is taken to lie behind
    """
    height, width = planes.shape[1:]
    row, column = np.clip(row, -1, height), np.clip(column, -1, width)
    above = np.minimum(whole(row), height - 1).astype(int)
    left = np.minimum(whole(column), width - 1).astype(int)
    along, across = row - above, column - left
    framed = np.pad(planes, ((0, 0), (1, 1), (1, 1)), constant_values=background)
    p, q, r, s = (framed[:, above + 1 + i, left + 1 + j] for i in (0, 1) for j in (0, 1))
    return (p * (1 - across) + q * across) * (1 - along) + (r * (1 - across) + s * across) * along


def not_reached(right: Callable[..., np.ndarray]) -> list[Mistake]:
    """Known mistakes of a kernel over rows and columns: what lies beyond the grid is left out along one side, or both.

    right: the right result from the exercise's arguments, of which the last is the Launch
    """

    def only(rows_too: bool, columns_too: bool) -> Callable[..., Any]:
        def wrong(*inputs: Any) -> Any:
            result, launch = right(*inputs), inputs[-1]
            across, down = (blocks * side for blocks, side in zip(launch.grid, launch.block, strict=True))
            row, column = np.indices(result.shape)
            done = (rows_too | (row < down)) & (columns_too | (column < across))
            return None if done.all() else np.where(done, result, np.nan)

        return wrong

    return [
        Mistake(
            "no grid-stride loop along the columns: go on by the grid's width until the row ends", only(True, False)
        ),
        Mistake(
            "only the first lap down the rows is there: go on by the grid's height, and begin each row with the "
            "thread's first column",
            only(False, True),
        ),
        Mistake("no grid-stride loop: what lies beyond the grid is left out", only(False, False)),
    ]


def batch_mistakes(right: Callable[..., np.ndarray]) -> list[Mistake]:
    """Known mistakes about which images the batch has. right: from the exercise's arguments, the Images first."""

    def with_case(**changed: Callable[[Images], Any]) -> Callable[..., Any]:
        def wrong(case: Images, *rest: Any) -> Any:
            return right(replace(case, **{name: of(case) for name, of in changed.items()}), *rest)

        return wrong

    return [
        Mistake(
            "the position is not added: the batch begins at position[0] of the order, not at 0",
            with_case(position=lambda case: 0),
        ),
        Mistake(
            "the order is not used: it says which image comes next",
            with_case(order=lambda case: np.arange(len(case.order))),
        ),
    ]
