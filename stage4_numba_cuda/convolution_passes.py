"""The passes of a convolution, unchecked: which kernels each rung launches, and with how many blocks.

    FORWARD[rung](x, weights, bias, g, out, activation)    activate(conv2d) into out
    forward_into(…)                                        the same by the rung that suits the sizes and the backend
    backward_into(…)                                       all gradients

The room, convolution.py, checks and then calls these; a network that has planned its memory calls them directly.
Shapes: x (N, C, H, W), weights (O, C, kh, kw), bias (O,), out and grad (N, O, H', W'); g has all sizes but N.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import launch, matmul, tile_choice
from .activations import apply, apply_backward
from .arrays import Array, element_count, empty
from .backend import BACKEND
from .geometry import TILE, Geometry, Tables, backward_tables, forward_tables
from .kernels import blocked as blocked_products
from .kernels import convolution_1_basic as basic
from .kernels import convolution_2_im2col as im2col_kernels
from .kernels import convolution_3_implicit as implicit
from .kernels import convolution_4_blocked as blocked
from .kernels import convolution_5_winograd as winograd
from .kernels import convolution_6_tensor as tensor
from .kernels import convolution_gather as gather
from .kernels import fused
from .kernels.activations import FORWARD as ACTIVATIONS
from .kernels.activations import IDENTITY

MOST_NUMBERS = 2**31 - 1
"""Of an array whose numbers are counted in 32 bits, as the implicit rungs count. Larger ones take the rung below."""


def naive(
    x: Array, weights: Array, bias: Array, g: Geometry, out: Array, activation: int = IDENTITY, stream: Any = 0
) -> Array:
    """A thread an output."""
    basic.naive[(*launch.elementwise(out.size), stream)](x, weights, bias, *g.steps, out)
    return _activated(out, activation, stream)


def halo_tile(
    x: Array, weights: Array, bias: Array, g: Geometry, out: Array, activation: int = IDENTITY, stream: Any = 0
) -> Array:
    """A tile with its halo, where the shared memory is large enough for it; else naive."""
    tile = basic.TILE
    spans = ((tile - 1) * stride + window for stride, window in zip(g.stride, g.window, strict=True))
    if max(spans) > basic.SPAN or g.window[0] * g.window[1] > basic.MOST_TAPS:
        return naive(x, weights, bias, g, out, activation, stream)
    tiles = len(x) * launch.divided(g.output[0], tile) * launch.divided(g.output[1], tile)
    grid = tiles, launch.divided(g.filters, basic.GROUP)
    basic.halo_tile[grid, (tile, tile), stream](x, weights, bias, *g.steps, out)
    return _activated(out, activation, stream)


def im2col(x: Array, weights: Array, bias: Array, g: Geometry, out: Array, activation: int = IDENTITY) -> Array:
    """All windows into the columns of a matrix, for a part of the batch at a time; then one product for each part."""
    if not counts_in_32_bits(g, len(x)):
        return halo_tile(x, weights, bias, g, out, activation)
    tables, kernels, places = forward_tables(g), weights.reshape(g.filters, g.terms), element_count(g.output)
    size = max(1, COLUMNS_BYTES // (g.terms * places * x.dtype.itemsize))
    for first in range(0, len(x), size):
        images, results = x[first : first + size], out[first : first + size]
        count = len(images) * places
        columns, sums = empty((g.terms, count), x.dtype), empty((g.filters, count), x.dtype)
        im2col_kernels.columns[_over(count, g.terms)](flat(images), tables.taps, tables.numbers, columns)
        matmul.multiply("nn", kernels, columns, sums)
        im2col_kernels.finish[_over(count, g.filters)](sums, bias, activation, tables.numbers, flat(results))
    return out


def winograd2(x: Array, weights: Array, bias: Array, g: Geometry, out: Array, activation: int = IDENTITY) -> Array:
    """Winograd's F(2x2, 3x3), for a part of the batch at a time; im2col for other kernels and strides."""
    if g.window != (3, 3) or g.stride != (1, 1) or not counts_in_32_bits(g, len(x)):
        return im2col(x, weights, bias, g, out, activation)
    down, across = (launch.divided(side, winograd.OUTPUTS) for side in g.output)
    padded = launch.divided(g.channels, TILE) * TILE
    u = empty((g.filters, winograd.POINTS * padded), x.dtype)
    winograd.transform_weights[launch.elementwise(g.filters * padded)](weights, u)
    size = max(1, COLUMNS_BYTES // (winograd.POINTS * padded * down * across * x.dtype.itemsize))
    for first in range(0, len(x), size):
        images, results = x[first : first + size], out[first : first + size]
        tiles = len(images) * down * across
        v = empty((winograd.POINTS * padded, tiles), x.dtype)
        m = empty((winograd.POINTS, g.filters, tiles), x.dtype)
        winograd.transform_images[_over(tiles, padded)](images, *g.padding, down, across, v)
        _multiply_points(u, v, m)
        winograd.finish[_over(tiles, g.filters)](m, bias, activation, down, across, results)
    return out


def _multiply_points(u: Array, v: Array, m: Array) -> None:
    """m[t] = u[:, part t] @ v[part t] for all points at once."""
    _, filters, tiles = m.shape
    if BACKEND.name == "gpu":
        name = tile_choice.fastest(winograd.POINTS * filters, tiles, m.dtype.name, among=tuple(tile_choice.BLOCKED))
        side = tile_choice.BLOCKED[name]
        grid = (*launch.tiles(filters, tiles, side, side), winograd.POINTS)
        blocked_products.FORWARD_PARTIAL[side][grid, blocked_products.THREADS](u, v, m)
    else:
        side = fused.TILE_CPU
        grid = (*launch.tiles(filters, tiles, side, side), winograd.POINTS)
        fused.FORWARD_PARTIAL[side][grid, (side, side)](u, v, m)


def implicit_tile(
    x: Array, weights: Array, bias: Array, g: Geometry, out: Array, activation: int = IDENTITY, stream: Any = 0
) -> Array:
    """Implicit GEMM, one number a thread; halo_tile for more numbers than 32 bits count."""
    if not counts_in_32_bits(g, len(x)):
        return halo_tile(x, weights, bias, g, out, activation)
    _correlate(x, weights, gather.FORWARD, bias, activation, forward_tables(g), out, ONE_NUMBER, stream=stream)
    return out


def implicit_blocked(
    x: Array, weights: Array, bias: Array, g: Geometry, out: Array, activation: int = IDENTITY, stream: Any = 0
) -> Array:
    """Implicit GEMM, 4 x 4 numbers a thread; halo_tile for more numbers than 32 bits count."""
    if not counts_in_32_bits(g, len(x)):
        return halo_tile(x, weights, bias, g, out, activation)
    tables = forward_tables(g)
    _correlate(x, weights, gather.FORWARD, bias, activation, tables, out, _side(tables.rows, out), stream=stream)
    return out


def on_tensor_cores(
    x: Array, weights: Array, bias: Array, g: Geometry, out: Array, activation: int, precision: str, stream: Any = 0
) -> Array:
    """Implicit GEMM of float32 arrays, the factors rounded to "tf32" or "bf16". Not in FORWARD: rounding the factors is
    more than the rounding that the rungs are held to. Raises ValueError for more numbers than 32 bits count."""
    if not counts_in_32_bits(g, len(x)):
        raise ValueError(f"{precision}: an array has more than {MOST_NUMBERS:,} numbers; work on the batch in pieces")
    _correlate(x, weights, gather.FORWARD, bias, activation, forward_tables(g), out, precision, stream)
    return out


FORWARD: dict[str, Callable[..., Array]] = {
    "naive": naive,
    "halo_tile": halo_tile,
    "im2col": im2col,
    "winograd2": winograd2,
    "implicit_tile": implicit_tile,
    "implicit_blocked": implicit_blocked,
}

FASTEST = implicit_blocked if BACKEND.name == "gpu" else implicit_tile
"""The rung that is fastest here: a CPU, which keeps nothing in registers, has one number to a thread."""


def forward_into(
    x: Array,
    weights: Array,
    bias: Array,
    g: Geometry,
    out: Array,
    activation: int = IDENTITY,
    stream: Any = 0,
    precision: str | None = None,
) -> Array:
    """activate(conv2d) into out by the rung that is fastest here. precision: as of `backward_into`"""
    if precision is not None and counts_in_32_bits(g, len(x)):
        return on_tensor_cores(x, weights, bias, g, out, activation, precision, stream)
    return FASTEST(x, weights, bias, g, out, activation, stream)


def backward_into(
    grad: Array,
    x: Array,
    weights: Array,
    g: Geometry,
    grad_input: Array | None,
    grad_weights: Array | None,
    grad_bias: Array | None,
    parts: Array | None = None,
    through: int = IDENTITY,
    stream: Any = 0,
    precision: str | None = None,
) -> None:
    """All gradients into these arrays; dL/dx not, where grad_input is None, nor dL/dweights and dL/dbias, where both
    are None.

    parts: memory of the shape `parts_shape`, whatever it holds; new memory if None
    through: the number of the activation whose output x is: grad_input is then taken back through it, and is the slope
        at the layer below before its activation
    stream: that all is launched on, except for numbers that 32 bits do not count
    precision: of tensor cores, "tf32" or "bf16", for float32 arrays of numbers that 32 bits count; None for ordinary
        ones
    """
    if parts is None and grad_weights is not None:
        parts = empty(parts_shape(g, len(x), precision), x.dtype)
    if not counts_in_32_bits(g, len(x)):
        plain_backward_into(grad, x, weights, g, grad_input, grad_weights, grad_bias, parts, through)
        return
    if grad_weights is not None:
        weights_parts(grad, x, g, parts, precision or _weights_side(g), stream)
        _add_parts(parts, grad_weights, grad_bias, stream)
    if grad_input is not None:
        ending = gather.BACKWARD if through == IDENTITY else gather.THROUGH
        tables = backward_tables(g)
        by = precision or _input_side(tables.rows, grad_input)
        _correlate(grad, weights, ending, x, through, tables, grad_input, by, stream)


def weights_parts(grad: Array, x: Array, g: Geometry, parts: Array, by: int | str, stream: Any = 0) -> None:
    """dL/dweights and dL/dbias of each part of all places. by: the side of the register tile, 32 or 64, or ONE_NUMBER,
    or the precision of tensor cores."""
    tables = forward_tables(g)
    across, down = _tile(by, g.filters)
    if isinstance(by, str):
        kernel = tensor.correlate_weights(by)
    else:
        kernel = blocked.CORRELATE_WEIGHTS[by] if by else implicit.correlate_weights
    grid = launch.divided(g.terms, across), launch.divided(g.filters, down), parts.shape[0]
    block = blocked.THREADS if by else (across, down)
    kernel[grid, block, stream](flat(grad), flat(x), tables.taps, tables.numbers, parts)


def plain_backward_into(
    grad: Array,
    x: Array,
    weights: Array,
    g: Geometry,
    grad_input: Array | None,
    grad_weights: Array | None,
    grad_bias: Array | None,
    parts: Array,
    through: int = IDENTITY,
) -> None:
    """The same by the definition: a thread for each number of each gradient and part."""
    if grad_weights is not None:
        grid = launch.divided(parts.shape[1], launch.THREADS), parts.shape[0]
        basic.grad_weights_parts[grid, launch.THREADS](grad, x, *g.steps, grad_weights, parts)
        _add_parts(parts, grad_weights, grad_bias)
    if grad_input is not None:
        basic.grad_input[launch.elementwise(grad_input.size)](grad, weights, *g.steps, grad_input)
        if through != IDENTITY:
            apply_backward(list(ACTIVATIONS)[through], grad_input, x, grad_input)


def _by(by: int) -> Callable[..., None]:
    """All gradients, with a tile of this side for all of them; see `weights_parts`."""

    def backward(
        grad: Array, x: Array, weights: Array, g: Geometry, grad_input: Array, grad_weights: Array, grad_bias: Array
    ) -> None:
        parts = empty(parts_shape(g, len(x)), x.dtype)
        weights_parts(grad, x, g, parts, by)
        _add_parts(parts, grad_weights, grad_bias)
        _correlate(grad, weights, gather.BACKWARD, x, IDENTITY, backward_tables(g), grad_input, by)

    return backward


def _naive_backward(
    grad: Array, x: Array, weights: Array, g: Geometry, grad_input: Array, grad_weights: Array, grad_bias: Array
) -> None:
    parts = empty(parts_shape(g, len(x)), x.dtype)
    plain_backward_into(grad, x, weights, g, grad_input, grad_weights, grad_bias, parts)


COLUMNS_BYTES = 2**24 if BACKEND.name == "gpu" else 2**20
"""How large the columns, or Winograd's transforms, of a part of the batch may become: what the cache of the device
holds, so that the product finds it there."""

BLOCKS = 264 if BACKEND.name == "gpu" else 16
"""Blocks that dL/dweights is cut into parts for: two for each multiprocessor of an H100; for the CPU, a few for each of
its cores."""

LEAST_PLACES = 128
"""Places that are worth a part."""

ONE_NUMBER = 0
"""In the place of a register tile's side: the kernels with one number to a thread."""


BACKWARD: dict[str, Callable[..., None]] = {
    "naive": _naive_backward,
    "implicit_tile": _by(ONE_NUMBER),
    "implicit_blocked 32": _by(32),
    "implicit_blocked 64": _by(64),
}
"""Each way to all gradients by itself, of fewer numbers than 32 bits count; `backward_into` takes what suits."""


def parts_shape(g: Geometry, batch: int, precision: str | None = None) -> tuple[int, int]:
    """(parts, numbers) of the memory for the gradients of parts of all places: weights, and behind them the bias.

    precision: as of `backward_into`
    """
    across, down = _tile(precision or _weights_side(g), g.filters)
    tiles = launch.divided(g.terms, across) * launch.divided(g.filters, down)
    places = batch * element_count(g.output)
    parts = min(launch.divided(BLOCKS, tiles), launch.divided(places, LEAST_PLACES))
    return parts, g.weights + g.filters


def _weights_side(g: Geometry) -> int:
    """The side of the register tile for dL/dweights. There are parts enough to fill the device with either tile."""
    if BACKEND.name != "gpu":
        return ONE_NUMBER
    return 64 if min(g.filters, g.terms) > 32 else 32


def _input_side(rows: int, grad_input: Array) -> int:
    """The side of the register tile for dL/dx."""
    return _side(rows, grad_input) if BACKEND.name == "gpu" else ONE_NUMBER


def _side(rows: int, out: Array) -> int:
    """The side of the register tile for this result: that with which the busiest multiprocessor is done first."""
    if BACKEND.name != "gpu":
        return 32  # of two kernels that do the same, the CPU need compile but one
    name = tile_choice.fastest(rows, out.size // rows, out.dtype.name, among=tuple(tile_choice.BLOCKED))
    return tile_choice.BLOCKED[name]


def counts_in_32_bits(g: Geometry, batch: int) -> bool:
    """Whether no array of this convolution has more than MOST_NUMBERS numbers."""
    images = batch * max(g.channels * element_count(g.image), g.filters * element_count(g.output))
    return max(images, g.weights) <= MOST_NUMBERS


def flat(array: Array) -> Array:
    """The same memory as a vector."""
    return array.reshape(array.size)


def _correlate(
    image: Array,
    weights: Array,
    ending: int,
    more: Array,
    activation: int,
    tables: Tables,
    out: Array,
    by: int | str,
    stream: Any = 0,
) -> None:
    across, down = _tile(by, tables.rows)
    if isinstance(by, str):
        kernel = tensor.correlate(by, tables.spread)
    else:
        kernel = blocked.correlate(by, tables.spread) if by else implicit.correlate(tables.spread)
    grid = launch.divided(out.size // tables.rows, across), launch.divided(tables.rows, down)
    kernel[grid, blocked.THREADS if by else (across, down), stream](
        flat(image), flat(weights), ending, flat(more), activation, tables.taps, tables.numbers, flat(out)
    )


def _over(across: int, down: int) -> tuple[tuple[int, int], int]:
    """(blocks, threads) for a kernel with a thread along x for each of `across`, whose y strides over `down`."""
    return (launch.divided(across, launch.THREADS), min(down, launch.MOST_BLOCKS)), launch.THREADS


def _tile(by: int | str, channels: int) -> tuple[int, int]:
    """(columns, channels) of the result that a block computes. With one number to a thread, a block has as few channels
    as there are, so that few threads have none; a GPU has no registers for 32 times 32 threads."""
    if by:
        return (tensor.SIDE, tensor.SIDE) if isinstance(by, str) else (by, by)
    most = 16 if BACKEND.name == "gpu" else implicit.LANES
    return implicit.LANES, next((few for few in (8, 16) if channels <= few), most)


def _add_parts(parts: Array, grad_weights: Array, grad_bias: Array, stream: Any = 0) -> None:
    blocks = launch.divided(parts.shape[1], basic.LANES)
    basic.add_parts[blocks, (basic.LANES, basic.ADDERS), stream](parts, flat(grad_weights), grad_bias)


def _activated(out: Array, activation: int, stream: Any = 0) -> Array:
    if activation != IDENTITY:
        apply(list(ACTIVATIONS)[activation], out, out, stream=stream)
    return out
