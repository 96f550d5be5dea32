"""A launch of each kernel of pooling, batch normalisation, residual blocks and images of bytes, with a GPU's grids.

Import it only if stage 4's backend is the emulator, as launching.py says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from shared.contract import load_part

STAGE = "stage4_numba_cuda"
arrays, cuda = load_part(STAGE, "arrays"), load_part(STAGE, "backend").cuda
batch_norm, grids, images, pooling, resident, residual = (
    load_part(STAGE, name)
    for name in (
        *("kernels.batch_norm", "launch", "kernels.images"),
        *("kernels.pooling", "kernels.resident", "kernels.residual"),
    )
)

IMAGES, CHANNELS = 2, 3
WINDOW_AND_STRIDE = (2, 2, 2, 2)


def pool(name: str) -> Callable[[tuple[int, int, int], str], None]:
    """A pool of 2 x 2 of images of size[0] x size[1], or its way back, with several threads to a line."""

    def call(size: tuple[int, int, int], dtype: str) -> None:
        planes, places = IMAGES * CHANNELS, (max(1, size[0] // 2), max(1, size[1] // 2))
        x, output = numbers(planes, 2 * places[0], 2 * places[1], dtype=dtype), numbers(planes, *places, dtype=dtype)
        corners = 4 * places[1] * np.arange(places[0])[:, np.newaxis] + 2 * np.arange(places[1])
        indices = cuda.to_device(np.tile(corners, (planes, 1, 1)))
        kernel, back = getattr(pooling, name), "backward" in name
        written = arrays.zeros(x.shape if back else output.shape, dtype)
        configured = kernel[grids.over_lines(planes * written.shape[1], written.shape[2])]
        if name == "max_backward_plane":
            lines = (array.reshape(planes, places[0] * places[1]) for array in (output, indices))
            kernel[grids.elementwise(planes)](*lines, written)
        elif name == "max_backward":
            configured(output, output, 0, indices, x, 0, *WINDOW_AND_STRIDE, written)
        elif name == "max_pool":
            configured(x, *WINDOW_AND_STRIDE, 0, written, indices)
        else:
            configured(output if back else x, *WINDOW_AND_STRIDE, written)

    return call


def normalise(size: tuple[int, int, int], dtype: str) -> None:
    """Both ways of a batch normalisation in training; a channel has two parts, and 256 threads."""
    x, number = numbers(IMAGES, CHANNELS, size[0] * size[1], dtype=dtype), np.dtype(dtype).type
    vectors = [numbers(CHANNELS, dtype=dtype) for _ in range(4)]
    shapes = (2, 3, CHANNELS), (2, 2, CHANNELS), (3, CHANNELS), x.shape, x.shape
    parts, sums, saved, output, grad_input = (arrays.zeros(shape, dtype) for shape in shapes)
    channels, lines = ((CHANNELS, 2), batch_norm.THREADS), grids.over_lines(IMAGES * CHANNELS, x.shape[2])
    batch_norm.statistics[channels](x, parts)
    batch_norm.normalise[lines](x, parts, *vectors, number(0.1), number(1e-5), 1, 1, x, 0, 1, saved, output)
    batch_norm.sums[channels](output, output, 1, x, saved, sums)
    batch_norm.backward[lines](output, output, 1, x, saved, vectors[0], sums, 1, *vectors[2:], x, 0, grad_input)


def join(size: tuple[int, int, int], dtype: str) -> None:
    """The sum at the end of a residual block, and a ReLU."""
    a, b = (numbers(size[0] * size[1], dtype=dtype) for _ in range(2))
    residual.join[grids.elementwise(a.size)](a, b, 1, arrays.zeros(a.shape, dtype))


def gather_table(size: tuple[int, int, int], dtype: str) -> None:
    """A batch of size[0] images of size[1] pixels, from four times as many."""
    order = np.random.default_rng(0).permutation(4 * size[0]).astype(np.int32)
    pixels = cuda.to_device((np.arange(4 * size[0] * size[1]) % 256).astype(np.uint8).reshape(-1, size[1]))
    table, x = numbers(256, dtype=dtype), arrays.zeros(size[:2], dtype)
    images.gather_table[grids.over_matrix(*size[:2])](
        pixels, table, cuda.to_device(order), cuda.to_device(np.zeros(1, np.int64)), x
    )


def gather_moved(size: tuple[int, int, int], dtype: str) -> None:
    """A batch of size[0] images of size[1] x 2 pixels, each turned and shifted otherwise."""
    order = cuda.to_device(np.random.default_rng(0).permutation(4 * size[0]).astype(np.int32))
    pixels = cuda.to_device((np.arange(8 * size[0] * size[1]) % 256).astype(np.uint8).reshape(-1, 2 * size[1]))
    changes, x = numbers(4 * size[0], 4, dtype="float64"), arrays.zeros((size[0], 2 * size[1]), dtype)
    images.gather_moved[grids.over_matrix(*x.shape)](
        *(pixels, numbers(256, dtype=dtype), np.dtype(dtype).type(0), order, cuda.to_device(np.zeros(1, np.int64))),
        *(changes, np.int32(size[1]), np.int32(2), x),
    )


def end_kept_step(size: tuple[int, int, int], dtype: str) -> None:
    """The losses of a batch of size[0] samples."""
    kept, counters = arrays.zeros((2, size[0]), dtype), cuda.to_device(np.zeros(3, np.int64))
    resident.end_kept_step[1, grids.THREADS](numbers(size[0], dtype=dtype), kept, counters)


def numbers(*shape: int, dtype: str) -> Any:
    """A device array of random numbers."""
    return cuda.to_device(np.random.default_rng(0).standard_normal(shape).astype(dtype))


OF_IMAGES: dict[str, Callable[[tuple[int, int, int], str], object]] = {
    **{
        f"pooling.{name}": pool(name)
        for name in ("max_pool", "max_backward_plane", "max_backward", "average_pool", "average_backward")
    },
    **{f"batch_norm.{name}": normalise for name in ("statistics", "normalise", "sums", "backward")},
    "residual.join": join,
    "images.gather_table": gather_table,
    "images.gather_moved": gather_moved,
    "resident.end_kept_step": end_kept_step,
}
"""{file.name: launch}, as KERNELS of launching.py."""
