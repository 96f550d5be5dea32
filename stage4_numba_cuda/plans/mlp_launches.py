"""An mlp's step as launches: `fused`, the few kernels, and the persistent kernel. choice.py has the ladder.

All work in the network's memory (mlp_memory.py), so that only the launches differ. Nothing here is checked, and nothing
is read back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from shared.names import ACTIVATIONS, LABEL_LOSSES, LOSSES

from .. import activations, launch, losses, matmul
from ..arrays import Array, address, sent
from ..backend import BACKEND
from ..dense import Dense
from ..kernels import blocked
from ..kernels import dense as dense_kernels
from ..kernels import fused as kernels
from ..kernels.head import HEAD, HEAD_CPU, HEAD_GPU, HEAD_LANES, HEAD_WARPS
from ..kernels.update import UPDATE
from ..reductions import launch_column_sums
from ..tile_choice import blocked_side, multiprocessors
from .mlp_memory import MlpMemory
from .optimizer_update import Update
from .persistent import PersistentPlan, plan_of

SOFTMAX = ACTIVATIONS.index("softmax")
TILE, HEAD_ROWS = (kernels.TILE_GPU, HEAD_GPU) if BACKEND.name == "gpu" else (kernels.TILE_CPU, HEAD_CPU)


def takes_mlp_plans(network: Any) -> bool:
    """Whether it is an mlp that rounds no factors: on tensor cores it is a list of operations, as any other network."""
    return network.activation != "" and network.precision is None


def has_few_kernels(network: Any) -> bool:
    """Whether the three kernels can do this network's step.

    They cannot do softmax between the layers, which needs whole rows; more than 32 outputs; a network without a hidden
    layer.
    """
    sizes = network.layer_sizes
    return takes_mlp_plans(network) and len(sizes) > 2 and network.activation != "softmax" and sizes[-1] <= HEAD_LANES


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


class MlpPlan:
    """An mlp's step for one number of rows.

    own: the arrays where a captured step looks for x, y and the masks; losses: what each row adds to the loss
    updates_in_kernels: whether the optimizer's step is part of the kernels; else it follows, one launch a parameter
    blocks_wait: the plan of the persistent kernel, whose blocks wait for each other and may give up; else None
    """

    may_be_captured = True

    def __init__(self, network: Any, memory: MlpMemory, rung: str, rows: int, masked: bool) -> None:
        self.memory, self.graphs, self.rung, self.rows = memory, memory.graphs, rung, memory.rows(rows)
        self._takes_labels = network.loss_name in LABEL_LOSSES
        y = self.rows.labels if self._takes_labels else self.rows.targets
        self.own = [self.rows.x, y, *(self.rows.masks if masked else [])]
        self.losses = self.rows.losses
        self.updates_in_kernels = rung != "fused"
        self.blocks_wait: PersistentPlan | None = None
        if rung == "persistent":
            self.blocks_wait = plan_of(network, memory, network.dtype)

    def place(self, arrays: Sequence[Array]) -> list[Array]:
        """x, y and the masks on the device: those of the host are copied to `own`."""
        pairs = [(array.reshape(own.shape), own) for array, own in zip(arrays, self.own, strict=True)]
        masks = [sent(*pair) for pair in pairs[2:]]
        return [sent(*pairs[0]), sent(*pairs[1]), *masks]

    def outputs(self, network: Any, x: Array, masks: Sequence[Array]) -> Array:
        """The last layer's outputs for x, which may be the host's, and the masks."""
        own_x, _, *own_masks = self.own
        x = sent(x.reshape(own_x.shape), own_x)
        return self.forward(network, x, [sent(*pair) for pair in zip(masks, own_masks, strict=True)])[-1]

    def key(self, network: Any, update: Update) -> tuple[Any, ...]:
        """Changes when a captured graph no longer fits: another optimizer, or arrays put in the place of others."""
        buffers = [array for arrays in update.flat_buffers(self.memory) for array in arrays]
        arrays = [self._numbers(update), *buffers, *network.parameters, *network.layer_gradients]
        return (self.rung, len(self.losses), len(self.own), update.kind, *map(address, arrays))

    def launch(self, network: Any, arrays: Sequence[Array], update: Update, stream: Any) -> None:
        """All kernels of a step on x, y and the masks."""
        if self.rung == "fused":
            self.launch_fused(network, arrays, self.losses)
        elif self.blocks_wait is None:
            self.launch_few(network, arrays, update, stream)
        else:
            self._launch_persistent(self.blocks_wait, arrays, update, stream)

    # ---- fused

    def forward(self, network: Any, x: Array, masks: Sequence[Array]) -> list[Array]:
        """x, then what comes out of each layer, in a launch for each: of all but the last after activation and mask."""
        layers, activation, rows = network.dense_layers, ACTIVATIONS.index(network.activation), self.rows
        signals, last = [x], len(layers) - 1
        for i, layer in enumerate(layers):
            output = rows.output[i]
            in_epilogue = activation if i < last and activation != SOFTMAX else 0
            matmul.forward_fused(signals[-1], layer.weights, layer.bias, in_epilogue, output)
            if i < last and activation == SOFTMAX:
                activations.softmax(output, out=output)
            signals.append(multiply(output, masks[i], rows.dropped[i]) if i < last and masks else output)
        return signals

    def launch_fused(self, network: Any, arrays: Sequence[Array], row_losses: Array) -> None:
        """A step without the optimizer: a launch for each layer's way forward, one for loss and gradient, three for
        each layer's way back."""
        layers, activation, rows = network.dense_layers, ACTIVATIONS.index(network.activation), self.rows
        x, y, *masks = arrays
        inputs = self.forward(network, x, masks)
        losses.row_losses_and_gradient(network.loss_name, inputs[-1], y, row_losses, rows.grad[-1])
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

    # ---- the few kernels

    def launch_few(
        self, network: Any, arrays: Sequence[Array], update: Update, stream: Any = 0, run: InRun | None = None
    ) -> None:
        """A step of the few kernels. run: the training run on the device that it belongs to; None: to none."""
        x, y, *masks = arrays
        layers, last, rows = network.dense_layers, len(network.dense_layers) - 1, self.rows
        activation, batch = ACTIVATIONS.index(network.activation), x.shape[0]
        run = run or InRun(self.memory.no_counters, self.memory.row_losses, 0)
        numbers, buffers = self._numbers(update), update.flat_buffers(self.memory)
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
        labels, targets = self._labels_and_targets(y)
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
            arrays = [
                array for j in pair for array in _of_layer(self.memory, layers[j], inputs[j], rows.grad[j], buffers, j)
            ]
            grid = sum(blocks) if pair[0] != pair[1] else blocks[0]
            moves_on = run.advance if pair[1] == last else 0
            kernel[grid, block, stream](update.kind, numbers, run.counters, moves_on, blocks[0], *arrays)

    def _launch_persistent(self, plan: PersistentPlan, arrays: Sequence[Array], update: Update, stream: Any) -> None:
        x, y, *masks = arrays
        labels, targets = self._labels_and_targets(y)
        schedule = update.numbers.reshape(1, update.numbers.size) if update.ours else plan.schedule
        mask = masks[0] if masks else None
        plan.launch(x, labels, targets, plan.order, 0, 1, self.rows, update, schedule, mask=mask, stream=stream)

    def _labels_and_targets(self, y: Array) -> tuple[Array, Array]:
        """y, and what a kernel gets in the place of the other, which it does not read."""
        return (y, self.rows.targets) if self._takes_labels else (self.rows.labels, y)

    def _numbers(self, update: Update) -> Array:
        return update.numbers if update.ours else self.memory.no_buffer


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


def _of_layer(
    memory: MlpMemory, layer: Dense, x: Array, grad: Array, buffers: Sequence[Sequence[Array]], i: int
) -> tuple[Array, ...]:
    """A layer's arguments of `update`. buffers: what the optimizer keeps, from Update.flat_buffers"""
    first, second = buffers
    return (
        x, grad,
        memory.flat(layer.weights), first[2 * i], second[2 * i],
        layer.bias, first[2 * i + 1], second[2 * i + 1],
        layer.grad_weights, layer.grad_bias,
    )  # fmt: skip


def multiply(a: Array, mask: Array, out: Array) -> Array:
    """a times the dropout mask, element by element; out may be a."""
    count = a.size
    dense_kernels.multiply[launch.elementwise(count)](a.reshape(count), mask.reshape(count), out.reshape(count))
    return out
