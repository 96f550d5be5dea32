"""The passes of a convolution, unchecked: which kernels each rung launches, and with how many blocks.

    FORWARD[rung](x, weights, bias, g, out, activation)    activate(conv2d) into out
    forward_into(…)                                        the same by the rung that suits the sizes and the backend
    backward_into(…)                                       all gradients

The room, convolution.py, checks and then calls these; a network that has planned its memory calls them directly.
Shapes: x (N, C, H, W), weights (O, C, kh, kw), bias (O,), out and grad (N, O, H', W'); g has all sizes but N.
"""

from __future__ import annotations

from collections.abc import Callable

from . import launch
from .activations import apply, apply_backward
from .arrays import Array, element_count, empty
from .backend import BACKEND
from .geometry import Geometry, Tables, backward_tables, forward_tables
from .kernels import convolution_1_basic as basic
from .kernels import convolution_3_implicit as implicit
from .kernels.activations import FORWARD as ACTIVATIONS
from .kernels.activations import IDENTITY

MOST_NUMBERS = 2**31 - 1
"""Of an array whose numbers are counted in 32 bits, as the implicit rungs count. Larger ones take the rung below."""


def naive(x: Array, weights: Array, bias: Array, g: Geometry, out: Array, activation: int = IDENTITY) -> Array:
    """A thread an output."""
    basic.naive[launch.elementwise(out.size)](x, weights, bias, *g.steps, out)
    return _activated(out, activation)


def halo_tile(x: Array, weights: Array, bias: Array, g: Geometry, out: Array, activation: int = IDENTITY) -> Array:
    """A tile with its halo, where the shared memory is large enough for it; else naive."""
    tile = basic.TILE
    spans = ((tile - 1) * stride + window for stride, window in zip(g.stride, g.window, strict=True))
    if max(spans) > basic.SPAN or g.window[0] * g.window[1] > basic.MOST_TAPS:
        return naive(x, weights, bias, g, out, activation)
    tiles = len(x) * launch.divided(g.output[0], tile) * launch.divided(g.output[1], tile)
    grid = tiles, launch.divided(g.filters, basic.GROUP)
    basic.halo_tile[grid, (tile, tile)](x, weights, bias, *g.steps, out)
    return _activated(out, activation)


def implicit_tile(x: Array, weights: Array, bias: Array, g: Geometry, out: Array, activation: int = IDENTITY) -> Array:
    """Implicit GEMM, one number a thread; halo_tile for more numbers than 32 bits count."""
    if not counts_in_32_bits(g, len(x)):
        return halo_tile(x, weights, bias, g, out, activation)
    _correlate(x, weights, implicit.FORWARD, bias, activation, forward_tables(g), out)
    return out


FORWARD: dict[str, Callable[..., Array]] = {
    "naive": naive,
    "halo_tile": halo_tile,
    "implicit_tile": implicit_tile,
}

forward_into = implicit_tile


def backward_into(
    grad: Array,
    x: Array,
    weights: Array,
    g: Geometry,
    grad_input: Array | None,
    grad_weights: Array,
    grad_bias: Array,
    parts: Array | None = None,
    through: int = IDENTITY,
) -> None:
    """All gradients into these arrays; dL/dx not, where grad_input is None.

    parts: memory of the shape `parts_shape`, whatever it holds; new memory if None
    through: the number of the activation whose output x is: grad_input is then taken back through it, and is the slope
        at the layer below before its activation
    """
    if parts is None:
        parts = empty(parts_shape(g, len(x)), x.dtype)
    if not counts_in_32_bits(g, len(x)):
        plain_backward_into(grad, x, weights, g, grad_input, grad_weights, grad_bias, parts, through)
        return
    tables = forward_tables(g)
    channels = _block_channels(g.filters)
    grid = launch.divided(g.terms, implicit.LANES), launch.divided(g.filters, channels), parts.shape[0]
    implicit.CORRELATE_WEIGHTS[grid, (implicit.LANES, channels)](
        flat(grad), flat(x), tables.taps, tables.numbers, parts
    )
    _add_parts(parts, grad_weights, grad_bias)
    if grad_input is not None:
        ending = implicit.BACKWARD if through == IDENTITY else implicit.THROUGH
        _correlate(grad, weights, ending, x, through, backward_tables(g), grad_input)


def plain_backward_into(
    grad: Array,
    x: Array,
    weights: Array,
    g: Geometry,
    grad_input: Array | None,
    grad_weights: Array,
    grad_bias: Array,
    parts: Array,
    through: int = IDENTITY,
) -> None:
    """The same by the definition: a thread for each number of each gradient and part."""
    grid = launch.divided(parts.shape[1], launch.THREADS), parts.shape[0]
    basic.grad_weights_parts[grid, launch.THREADS](grad, x, *g.steps, grad_weights, parts)
    _add_parts(parts, grad_weights, grad_bias)
    if grad_input is not None:
        basic.grad_input[launch.elementwise(grad_input.size)](grad, weights, *g.steps, grad_input)
        if through != IDENTITY:
            apply_backward(list(ACTIVATIONS)[through], grad_input, x, grad_input)


BLOCKS = 264 if BACKEND.name == "gpu" else 16
"""Blocks that dL/dweights is cut into parts for: two for each multiprocessor of an H100; for the CPU, a few for each of
its cores."""

LEAST_PLACES = 4 * implicit.LANES
"""Places that are worth a part."""


def parts_shape(g: Geometry, batch: int) -> tuple[int, int]:
    """(parts, numbers) of the memory for the gradients of parts of all places: weights, and behind them the bias."""
    tiles = launch.divided(g.terms, implicit.LANES) * launch.divided(g.filters, _block_channels(g.filters))
    places = batch * element_count(g.output)
    parts = min(launch.divided(BLOCKS, tiles), launch.divided(places, LEAST_PLACES))
    return parts, g.weights + g.filters


def counts_in_32_bits(g: Geometry, batch: int) -> bool:
    """Whether no array of this convolution has more than MOST_NUMBERS numbers."""
    images = batch * max(g.channels * element_count(g.image), g.filters * element_count(g.output))
    return max(images, g.weights) <= MOST_NUMBERS


def flat(array: Array) -> Array:
    """The same memory as a vector."""
    return array.reshape(array.size)


def _correlate(
    image: Array, weights: Array, ending: int, more: Array, activation: int, tables: Tables, out: Array
) -> None:
    channels = _block_channels(tables.rows)
    grid = launch.divided(out.size // tables.rows, implicit.LANES), launch.divided(tables.rows, channels)
    implicit.correlate(tables.spread)[grid, (implicit.LANES, channels)](
        flat(image), flat(weights), ending, flat(more), activation, tables.taps, tables.numbers, flat(out)
    )


def _block_channels(channels: int) -> int:
    """How many channels a block of threads has: as few as there are, so that few threads have none."""
    return next((few for few in (8, 16) if channels <= few), implicit.LANES)


def _add_parts(parts: Array, grad_weights: Array, grad_bias: Array) -> None:
    basic.add_parts[launch.elementwise(parts.shape[1])](parts, flat(grad_weights), grad_bias)


def _activated(out: Array, activation: int) -> Array:
    if activation != IDENTITY:
        apply(list(ACTIVATIONS)[activation], out, out)
    return out
