"""One training step, five ways: forward, loss, backward, optimizer, in fewer and fewer launches.

    op_by_op      a kernel for every operation, as on stages 2 and 3     about 18 launches for two layers
    fused         bias and activation join the product, mask and slope   every number is written once, and not read
                  the product of the way back, the loss its gradient     again only to be changed a little
    few_kernels   three kernels for two layers (kernels/fused.py)        a new kernel only where blocks need each other;
                                                                         the optimizer needs no gradient in memory
    graph         the same, captured once and replayed as a CUDA graph   the device gets one order a step, not three
    persistent    one kernel, whose blocks wait for each other inside    nothing is between the parts of a step; and one
                  (kernels/persistent.py), from a graph, too             launch may take many steps (resident.py)

All work in the network's buffers, so that only the launches differ. Each takes (network, x, y, optimizer, masks)
and returns the loss before the step. With optimizer=None nothing moves: the gradients are left in the layers.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import activations, graphs, launch, losses, matmul
from .arrays import Array, address, sent
from .backend import BACKEND
from .buffers import Buffers, Rows, Trainable
from .dense import ACTIVATIONS, Dense
from .kernels import blocked
from .kernels import dense as dense_kernels
from .kernels import fused as kernels
from .kernels.head import HEAD, HEAD_CPU, HEAD_GPU, HEAD_LANES, HEAD_WARPS
from .kernels.update import ONLY_GRADIENTS, UPDATE
from .optimizers import SGD, Adam, RMSProp
from .persistent import misfit, plan_of
from .ready import ReadyStep
from .reductions import launch_column_sums
from .tile_choice import blocked_side, multiprocessors

LOSSES = ("mean_squared_error", "softmax_cross_entropy", "sigmoid_cross_entropy", "hinge")
"""In the order of the numbers in kernels/head.py."""

LABEL_LOSSES = ("softmax_cross_entropy", "hinge")
OPTIMIZERS = (SGD, RMSProp, Adam)
SOFTMAX = len(ACTIVATIONS) - 1
TILE, HEAD_ROWS = (kernels.TILE_GPU, HEAD_GPU) if BACKEND.name == "gpu" else (kernels.TILE_CPU, HEAD_CPU)


def op_by_op(network: Trainable, x: Any, y: Any, optimizer: Any, masks: Sequence[Any] | None = None) -> float:
    """A launch for every operation: product, bias, activation, mask, loss, its gradient, and so back."""
    x, y, masks, _, rows = _prepare(network, x, y, masks)
    activate = getattr(activations, network.activation)
    slope = getattr(activations, f"{network.activation}_backward")
    layers, last = network.layers, len(network.layers) - 1
    signal = x
    for i, layer in enumerate(layers):
        signal = layer.forward(signal, out=rows.output[i])
        if i < last:
            signal = activate(signal, out=signal)  # in place: every derivative can be told from the output
            if masks:
                signal = multiply(signal, masks[i], rows.dropped[i])
    loss = losses.loss_of(network.loss_name, signal, y)
    losses.gradient_of(network.loss_name, signal, y, rows.grad[-1])
    for i in reversed(range(1, len(layers))):
        below = rows.grad[i - 1]
        layers[i].backward(rows.grad[i], out=below)
        if masks:
            multiply(below, masks[i - 1], below)
        slope(below, rows.output[i - 1], rows.output[i - 1], out=below)
    layers[0].backward(rows.grad[0], needs_grad_input=False)
    if optimizer is not None:
        optimizer.step(network.parameters, network.layer_gradients)
    return loss


def fused(network: Trainable, x: Any, y: Any, optimizer: Any, masks: Sequence[Any] | None = None) -> float:
    """A launch for each layer's way forward, one for loss and gradient, three for each layer's way back."""
    x, y, masks, _, rows = _prepare(network, x, y, masks)
    launch_fused(network, rows, x, y, masks, rows.losses)
    if optimizer is not None:
        optimizer.step(network.parameters, network.layer_gradients)
    return read_loss(rows)


def few_kernels(network: Trainable, x: Any, y: Any, optimizer: Any, masks: Sequence[Any] | None = None) -> float:
    """`forward_partial`, `head` and `update` for one hidden layer.

    Each further hidden layer adds a `forward_partial`, a `combine` and a product of the way back; that product is two
    kernels where it is cut into parts (launch_backward). There is one `update` for every two layers.

    What they cannot do takes the rung below: softmax between the layers, which needs whole rows; more than 32 outputs;
    a network without a hidden layer.
    """
    if not has_few_kernels(network):
        return fused(network, x, y, optimizer, masks)
    x, y, masks, buffers, rows = _prepare(network, x, y, masks)
    move = Move(network, buffers, optimizer)
    launch_few(network, buffers, rows, x, y, masks, move)
    move.done()
    return read_loss(rows)


def graph(network: Trainable, x: Any, y: Any, optimizer: Any, masks: Sequence[Any] | None = None) -> float:
    """`few_kernels` from a CUDA graph. Where there is no GPU there are no graphs, and this is that rung."""
    if not (graphs.available() and has_few_kernels(network)):
        return few_kernels(network, x, y, optimizer, masks)
    return _replayed("graph", network, x, y, optimizer, masks)


def persistent(network: Trainable, x: Any, y: Any, optimizer: Any, masks: Sequence[Any] | None = None) -> float:
    """The persistent kernel's step, from a CUDA graph, too; `graph` where it does not fit (persistent.misfit).

    Most of its gain is in the steps after the first, which a training run on the device takes with it (resident.py): a
    single step fetches the weights and brings them back. What is left of it is one launch in the place of three.
    """
    if not has_few_kernels(network):
        return fused(network, x, y, optimizer, masks)
    if graphs.available():
        return _replayed("persistent", network, x, y, optimizer, masks)
    x, y, masks, buffers, rows = _prepare(network, x, y, masks)
    if misfit(network, x.shape[0], network.dtype) is not None:
        return graph(network, x, y, optimizer, masks or None)
    move = Move(network, buffers, optimizer)
    plan = plan_of(network, buffers, network.dtype)
    launch_persistent(network, buffers, rows, x, y, masks, move)
    loss = read_loss(rows)
    plan.check()
    move.done()
    return loss


def _replayed(rung: str, network: Trainable, x: Any, y: Any, optimizer: Any, masks: Sequence[Any] | None) -> float:
    """A step of `graph` or `persistent` from its CUDA graph."""
    x, y, masks = network.checked(x, y, masks)
    count = x.shape[0]
    buffers = network.buffers(count)
    kind = rung, count, len(masks)
    ready = network.ready.step(
        network, buffers, optimizer, kind, lambda: _made_ready(rung, network, buffers, optimizer, count, masks)
    )
    return ready.take(network, [x, y, *masks])


def _made_ready(
    rung: str, network: Trainable, buffers: Buffers, optimizer: Any, count: int, masks: Sequence[Array]
) -> ReadyStep:
    rows = buffers.rows(count)
    # A graph repeats its arguments, addresses included: what is new in every step goes where it will look.
    own_y = rows.labels if network.loss_name in LABEL_LOSSES else rows.targets
    own_masks = rows.masks[: len(masks)]
    move = Move(network, buffers, optimizer)
    if rung == "persistent" and misfit(network, count, network.dtype) is not None:
        rung = "graph"
    launch_step = launch_persistent if rung == "persistent" else launch_few
    key = (rung, count, bool(masks), move.key())

    def launches(network: Trainable, stream: Any) -> None:
        launch_step(network, buffers, rows, rows.x, own_y, own_masks, move, stream=stream)

    plan = plan_of(network, buffers, network.dtype) if rung == "persistent" else None
    return ReadyStep(network, buffers, rows, [rows.x, own_y, *own_masks], move, key, launches, plan)


STEP_LADDER: dict[str, Callable[..., float]] = {
    "op_by_op": op_by_op,
    "fused": fused,
    "few_kernels": few_kernels,
    "graph": graph,
    "persistent": persistent,
}


def has_few_kernels(network: Trainable) -> bool:
    """Whether the three kernels can do this network's step."""
    return len(network.layers) > 1 and network.activation != "softmax" and network.layers[-1].out_features <= HEAD_LANES


class Move:
    """What an optimizer's step is to the kernels: its kind, its numbers, and what it keeps for each parameter.

    An optimizer that is not one of this floor's gets the gradients, and takes its step itself when `done` is called.
    """

    def __init__(self, network: Trainable, buffers: Buffers, optimizer: Any, numbers: Array | None = None) -> None:
        # numbers: where the kernels find them, in a training run that changes them itself
        self.network, self.optimizer = weakref.proxy(network), optimizer  # a network may keep its move (ready.py)
        self.ours = type(optimizer) in OPTIMIZERS
        self.kind = ONLY_GRADIENTS
        self.numbers = buffers.no_buffer
        nothing = [buffers.no_buffer] * (2 * len(network.layers))
        self.first: list[Array] = nothing
        self.second: list[Array] = nothing
        if self.ours:
            self.kind = optimizer.kind
            self.numbers = optimizer.device_numbers(network.dtype) if numbers is None else numbers
            memory = optimizer._state.memory(network.parameters).values()
            flat = [[buffers.flat(a) for a in arrays] for arrays in memory]
            self.first, self.second = [*flat, nothing, nothing][:2]

    def key(self) -> tuple[Any, ...]:
        """Changes when a captured graph no longer fits: another optimizer, or arrays put in the place of others."""
        arrays = [self.numbers, *self.first, *self.second, *self.network.parameters, *self.network.layer_gradients]
        return (self.network.activation, self.network.loss_name, self.kind, *map(address, arrays))

    def refresh(self, stream: Any) -> None:
        """Send the optimizer's numbers if one has changed, on this stream."""
        if self.ours:
            self.optimizer._state.device_numbers(self.optimizer.numbers(), self.network.dtype, stream)

    def done(self, steps: int = 1) -> None:
        """The kernels of so many steps were launched."""
        if self.ours:
            self.optimizer._state.steps += steps
        elif self.optimizer is not None:
            self.optimizer.step(self.network.parameters, self.network.layer_gradients)


def launch_fused(network: Trainable, rows: Rows, x: Array, y: Array, masks: Sequence[Array], row_losses: Array) -> None:
    """The launches of `fused`, without the optimizer; nothing is read back."""
    layers, last = network.layers, len(network.layers) - 1
    activation = ACTIVATIONS.index(network.activation)
    inputs = [x]
    for i, layer in enumerate(layers):
        output = rows.output[i]
        in_epilogue = activation if i < last and activation != SOFTMAX else 0
        matmul.forward_fused(inputs[-1], layer.weights, layer.bias, in_epilogue, output)
        if i < last:
            if activation == SOFTMAX:
                activations.softmax(output, out=output)
            inputs.append(multiply(output, masks[i], rows.dropped[i]) if masks else output)
    losses.row_losses_and_gradient(network.loss_name, rows.output[-1], y, row_losses, rows.grad[-1])
    for i in reversed(range(len(layers))):
        layer, grad = layers[i], rows.grad[i]
        matmul.multiply("tn", inputs[i], grad, layer.grad_weights)
        launch_column_sums(grad, layer.grad_bias)
        if i > 0:
            below, mask = rows.grad[i - 1], masks[i - 1] if masks else None
            if activation == SOFTMAX:
                matmul.backward_fused(grad, layer.weights, rows.output[i - 1], 0, mask, below)
                activations.softmax_backward(below, rows.output[i - 1], rows.output[i - 1], out=below)
            else:
                matmul.backward_fused(grad, layer.weights, rows.output[i - 1], activation, mask, below)


@dataclass(frozen=True)
class InRun:
    """What a step has to know of the training run on the device that it belongs to (resident.py).

    counters: how far the run is, and which line of row_losses (steps, rows) is this step's
    advance: the rows that the counters move on by
    first: launches the first layer's product where x has to be gathered for it; None: the plain product
    """

    counters: Array
    row_losses: Array
    advance: int
    first: Callable[[], None] | None = None


def launch_few(
    network: Trainable,
    buffers: Buffers,
    rows: Rows,
    x: Array,
    y: Array,
    masks: Sequence[Array],
    move: Move,
    *,
    stream: Any = 0,
    run: InRun | None = None,
) -> None:
    """The launches of `few_kernels`. run: the training run on the device that the step belongs to; None: to none."""
    layers, last = network.layers, len(network.layers) - 1
    activation, batch = ACTIVATIONS.index(network.activation), x.shape[0]
    run = run or InRun(buffers.no_counters, buffers.row_losses, 0)
    inputs = [x]
    for i, layer in enumerate(layers[:-1]):
        if i == 0 and run.first is not None:
            run.first()
        else:
            launch_product(inputs[-1], layer.weights, rows.parts[i], stream)
        mask = masks[i] if masks else rows.output[i]  # any matrix will do where none is read
        if i < last - 1:
            output = rows.output[i]
            grid, block = launch.elementwise(output.size)
            kernels.combine[grid, block, stream](
                activation, rows.parts[i], layer.bias, output, rows.dropped[i], mask, int(bool(masks))
            )
        inputs.append(rows.dropped[i] if masks else rows.output[i])
    labels, targets = (y, rows.targets) if network.loss_name in LABEL_LOSSES else (rows.labels, y)
    below, top = layers[-2], layers[-1]
    mask = masks[-1] if masks else rows.output[last - 1]
    threads = HEAD_LANES, HEAD_WARPS
    HEAD[HEAD_ROWS][launch.divided(batch, HEAD_ROWS), threads, stream](
        activation, LOSSES.index(network.loss_name), rows.parts[-1], below.bias, rows.output[last - 1],
        rows.dropped[last - 1], mask, int(bool(masks)), top.weights, top.bias, labels, targets,
        rows.grad[last], rows.grad[last - 1], run.row_losses, run.counters,
    )  # fmt: skip
    for i in reversed(range(1, last)):
        mask_below = masks[i - 1] if masks else None
        launch_backward(
            rows.grad[i], layers[i].weights, rows.output[i - 1], activation, mask_below, rows.parts[i - 1],
            rows.grad[i - 1], stream,
        )  # fmt: skip
    # In pairs from the end: the last layer's few blocks keep busy what those of the layer before leave idle.
    for i in range(-(len(layers) % 2), len(layers), 2):
        pair = [max(i, 0), i + 1]
        side = max(blocked_side(layers[j].in_features, layers[j].out_features, batch) for j in pair)
        kernel, tile, block = update_of(side)
        blocks = [
            launch.divided(layers[j].in_features, tile) * launch.divided(layers[j].out_features, tile) for j in pair
        ]
        arrays = [array for j in pair for array in _of_layer(buffers, layers[j], inputs[j], rows.grad[j], move, j)]
        grid = sum(blocks) if pair[0] != pair[1] else blocks[0]
        moves_on = run.advance if pair[1] == last else 0
        kernel[grid, block, stream](move.kind, move.numbers, run.counters, moves_on, blocks[0], *arrays)


def launch_persistent(
    network: Trainable,
    buffers: Buffers,
    rows: Rows,
    x: Array,
    y: Array,
    masks: Sequence[Array],
    move: Move,
    *,
    stream: Any = 0,
) -> None:
    """The one launch of `persistent`, of a network that it fits."""
    plan = plan_of(network, buffers, network.dtype)
    labels, targets = (y, rows.targets) if network.loss_name in LABEL_LOSSES else (rows.labels, y)
    schedule = move.numbers.reshape(1, move.numbers.size) if move.ours else plan.schedule
    mask = masks[0] if masks else None
    plan.launch(x, labels, targets, plan.order, 0, 1, rows, move, schedule, mask=mask, stream=stream)


def launch_backward(
    grad: Array,
    weights: Array,
    output: Array,
    activation: int,
    mask: Array | None,
    parts: Array,
    out: Array,
    stream: Any,
) -> None:
    """matmul.backward_fused; in parts, and a second launch for their sum, where its blocks would be few.

    parts: memory of any number of them, as many as there are then; those of the layer below are no longer needed
    """
    side = blocked_side(out.shape[0], out.shape[1], grad.shape[1])
    blocks = launch.divided(out.shape[0], side or 1) * launch.divided(out.shape[1], side or 1)
    if not side or parts.shape[0] == 1 or 2 * blocks > multiprocessors():
        matmul.backward_fused(grad, weights, output, activation, mask, out, stream)
        return
    grid = launch.tiles(out.shape[0], out.shape[1], side, side)
    blocked.BACKWARD_PARTIAL[side][(*grid, parts.shape[0]), blocked.THREADS, stream](grad, weights, parts)
    blocked.combine_back[*launch.elementwise(out.size), stream](
        activation, parts, output, output if mask is None else mask, int(mask is not None), out
    )


def update_of(side: int) -> tuple[Any, int, Any]:
    """The kernel of the step's end, the side of its tile and its block. side: of a register tile; 0: one number a
    thread."""
    return (blocked.UPDATE[side], side, blocked.THREADS) if side else (UPDATE[TILE], TILE, (TILE, TILE))


def launch_product(x: Array, weights: Array, parts: Array, stream: Any = 0) -> None:
    """xW in parts: x (rows, K), weights (K, columns), parts (splits, rows, columns)."""
    product_kernel("FORWARD_PARTIAL", parts, x.shape[1], stream)(x, weights, parts)


def product_kernel(name: str, parts: Array, inner: int, stream: Any = 0) -> Any:
    """FORWARD_PARTIAL or FORWARD_BYTES of kernels/fused.py or kernels/blocked.py, ready to launch into `parts`."""
    splits, rows, columns = parts.shape
    if side := blocked_side(rows, columns, inner):
        return getattr(blocked, name)[side][(*launch.tiles(rows, columns, side, side), splits), blocked.THREADS, stream]
    return getattr(kernels, name)[TILE][(*launch.tiles(rows, columns, TILE, TILE), splits), (TILE, TILE), stream]


def read_loss(rows: Rows) -> float:
    """The loss of a step that was just launched: waits for the device."""
    return float(np.sum(rows.losses.copy_to_host(), dtype=np.float64))


def _of_layer(buffers: Buffers, layer: Dense, x: Array, grad: Array, move: Move, i: int) -> tuple[Array, ...]:
    """A layer's arguments of `update`."""
    return (
        x, grad,
        buffers.flat(layer.weights), move.first[2 * i], move.second[2 * i],
        layer.bias, move.first[2 * i + 1], move.second[2 * i + 1],
        layer.grad_weights, layer.grad_bias,
    )  # fmt: skip


def _prepare(network: Trainable, x: Any, y: Any, masks: Any) -> tuple[Array, Array, list[Array], Buffers, Rows]:
    """x, y and masks on the device, checked, and the memory for them."""
    x, y, masks = network.checked(x, y, masks)
    buffers = network.buffers(x.shape[0])
    rows = buffers.rows(x.shape[0])
    own_y = rows.labels if network.loss_name in LABEL_LOSSES else rows.targets
    masks = [sent(mask, own) for mask, own in zip(masks, rows.masks, strict=False)]
    return sent(x, rows.x), sent(y, own_y), masks, buffers, rows


def multiply(a: Array, mask: Array, out: Array) -> Array:
    """a times the dropout mask, element by element; out may be a."""
    count = a.size
    dense_kernels.multiply[launch.elementwise(count)](a.reshape(count), mask.reshape(count), out.reshape(count))
    return out
