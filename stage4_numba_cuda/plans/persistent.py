"""The persistent kernel's launches: many steps of a network with one hidden layer in a single launch.

    misfit      why the kernel cannot take a network's steps on this device; None where it can
    wanted      whether training takes it
    PersistentPlan
                the launch: the grid, the kernel, and the memory in which its blocks exchange numbers

The blocks wait for each other, so all of them must be on the device at the same time. The driver says how many blocks
of a kernel the device holds (its occupancy calculation, max_cooperative_grid_blocks); a network that needs more does
not fit. A block that waits at a barrier for more than two seconds ends the launch, and `PersistentPlan.check` raises.
"""

from __future__ import annotations

import os
import weakref
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numba import types

from shared.names import ACTIVATIONS, LOSSES

from .. import launch
from ..arrays import Array, empty, zeros
from ..backend import BACKEND, cuda
from ..dropout import MASK64
from ..kernels import persistent as kernels
from ..kernels import ptx
from ..kernels.head import HEAD_LANES
from .mlp_memory import MlpMemory, Rows

MOST_ROWS = 1024
"""Of a batch. In a larger one arithmetic is most of a step, and there are kernels with larger tiles for it."""

GAINS_UP_TO = 128
"""Rows of a batch up to which training takes the kernel by itself. On an NVIDIA H200 (2026-11-26) a step of 784-128-10
took it 11.2 µs with 64 rows, 29.8 with 256 and 100 with 1,024, and the graph 20.7, 26.8 and 56.5. Between 64 and 256
nothing was measured."""

CHUNKS = {"float32": (64, 32), "float64": (32, 16)}
"""Rows of the batch that a block computes at a time, best first: what shared memory holds."""

VARIABLE = "GROUNDUP_PERSISTENT"
"""1: training takes the kernel wherever it fits; 0: never. Not set: on a GPU."""


def wanted() -> bool:
    """Whether training takes the kernel where it fits: single steps, and runs with their data on the device.

    On the CPU only if it is asked for: there a launch costs little, and larger tiles make the loops of a block longer.
    """
    asked = os.environ.get(VARIABLE, "")
    return asked != "0" if BACKEND.name == "gpu" else asked not in ("", "0")


def slower_with(rows: int) -> str | None:
    """Why the graph is faster for batches of this many rows, as the end of a sentence; None where it is not, or where
    somebody asks for the kernel."""
    if rows <= GAINS_UP_TO or BACKEND.name != "gpu" or os.environ.get(VARIABLE):
        return None
    return f"a batch has {rows} samples, and the persistent kernel is the faster one up to {GAINS_UP_TO}"


@dataclass(frozen=True)
class Dropout:
    """Dropout of a launch: masks drawn on the device for these numbers, as kernels/dropout.py draws them."""

    seed: int
    steps_before: int
    threshold: np.uint64
    scale: Any


def misfit(network: Any, rows: int, values: str) -> str | None:
    """Why the kernel cannot take this network's steps, as the end of a sentence; None where it can.

    rows: of the largest batch; values: the dtype of the samples, "uint8", "float32" or "float64"
    """
    layers = network.dense_layers
    if BACKEND.name == "simulator":
        return "Numba's simulator runs one block that waits at barriers across the grid"
    if BACKEND.name == "gpu" and not cuda.get_current_device().COOPERATIVE_LAUNCH:
        return "this device and its driver have no cooperative launches, as may be on Windows in WDDM mode"
    if len(layers) != 2:
        return f"the network has {len(layers) - 1} hidden layers, and the kernel takes one"
    if network.activation == "softmax":
        return "softmax between the layers needs whole rows"
    hidden, classes = layers[0].out_features, layers[1].out_features
    if classes > HEAD_LANES:
        return f"the network has {classes} outputs, and the kernel takes {HEAD_LANES}"
    if hidden > kernels.HIDDEN_MOST:
        return f"the network has {hidden} hidden neurons, and the kernel takes {kernels.HIDDEN_MOST}"
    if rows > MOST_ROWS:
        return f"a batch has {rows} samples, and the kernel takes {MOST_ROWS}"
    if chunk_of(network, values) is None:
        most = max(together(chunk, values, network.dtype) for chunk in CHUNKS[network.dtype])
        if most == 0 and isinstance(said := compiled(CHUNKS[network.dtype][0], values, network.dtype), str):
            return f"numba-cuda cannot link a kernel whose blocks wait for each other: {said}"
        return f"it needs {blocks_of(network)} blocks at the same time, and this device holds {most}"
    return None


def blocks_of(network: Any) -> int:
    """The blocks of the grid: one for each tile of the first layer's weights."""
    first = network.dense_layers[0]
    return launch.divided(first.in_features, kernels.K_TILE) * launch.divided(first.out_features, kernels.H_TILE)


def chunk_of(network: Any, values: str) -> int | None:
    """The most rows at a time with which all blocks fit on the device at once; None where they never do."""
    blocks = blocks_of(network)
    return next((n for n in CHUNKS[network.dtype] if blocks <= together(n, values, network.dtype)), None)


@cache
def together(chunk: int, values: str, dtype: str) -> int:
    """How many of the kernel's blocks the device holds at the same time; 0 where it cannot be linked. Compiles it."""
    kernel = compiled(chunk, values, dtype)
    return 0 if isinstance(kernel, str) else int(kernel.max_cooperative_grid_blocks(kernels.THREADS))


@cache
def compiled(chunk: int, values: str, dtype: str) -> Any:
    """The kernel for these types; a sentence of numba-cuda where it cannot be linked.

    numba-cuda links such a kernel with libcudadevrt, a file that some installations of CUDA lack. Nothing of the kernel
    needs it. The sentence is kept, because a step asks for it again, and compiling anew would take seconds.
    """
    try:
        return kernels.PERSISTENT[chunk, values == "uint8"].compile(signature(values, dtype))
    except _link_errors() as error:
        return str(error)


def _link_errors() -> tuple[type[Exception], ...]:
    """What numba-cuda raises where a file is missing that it links; it is not imported for the emulator."""
    if BACKEND.name != "gpu":
        return ()
    from numba.cuda.cudadrv.driver import LinkerError

    return (LinkerError,)


def signature(values: str, dtype: str) -> tuple[Any, ...]:
    """The types of the kernel's arguments."""
    number = getattr(types, dtype)

    def array(element: Any, dimensions: int) -> Any:
        return types.Array(element, dimensions, "C")

    vector, matrix, count = array(number, 1), array(number, 2), types.int64
    layer = (vector,) * 6 + (matrix, vector)
    data = (array(getattr(types, values), 2), array(types.int32, 1), matrix, count, array(types.int32, 1))
    counts = (count,) * 6
    dropout = (matrix, count, types.uint64, count, types.uint64, number)
    handed_on = (vector,) * 4 + (matrix, array(types.int32, 1))
    return (*data, *counts, matrix, *dropout, *layer, *layer, *handed_on)


def plan_of(network: Any, memory: MlpMemory, values: str) -> PersistentPlan:
    """The plan for samples of this dtype, made once for the network's memory."""
    if values not in memory.persistent:
        memory.persistent[values] = PersistentPlan(network, memory, values)
    plan: PersistentPlan = memory.persistent[values]
    return plan


class PersistentPlan:
    """Launches of the kernel for one network, samples of one dtype, and batches of up to `capacity` rows.

    The network must fit, by `misfit`. Launches of a plan share `parts`, and count on in `meetings`. So one must end
    before the next begins: all are on the default stream or on that of `memory.graphs`, which wait for each other.

    unsettled: whether there was a launch since it was last known that no block had given up. It stays so where an
        interruption came between a launch and the question; then the blocks of the next launch would count on wrongly
    """

    def __init__(self, network: Any, memory: MlpMemory, values: str) -> None:
        chunk = chunk_of(network, values)
        assert chunk is not None
        self.kernel = kernels.PERSISTENT[chunk, values == "uint8"]
        # The network keeps its memory and that keeps the plan: a circle would keep the device's memory, too.
        self.network, self.memory = weakref.proxy(network), weakref.proxy(memory)
        self.blocks = blocks_of(network)
        inputs, hidden = network.dense_layers[0].in_features, network.dense_layers[0].out_features
        slices = launch.divided(inputs, kernels.K_TILE)
        most = launch.divided(min(memory.capacity, MOST_ROWS), chunk) * chunk
        self.parts = empty((slices * most * launch.divided(hidden, kernels.H_TILE) * kernels.H_TILE,), network.dtype)
        self.meetings = zeros((3,), np.int32)
        self.unsettled = False
        # The kernel's signature asks for a mask, whether it is read or not.
        self.no_mask = zeros((1, 1), network.dtype)
        self.schedule = zeros((1, 8), network.dtype)  # of an optimizer that takes its steps itself
        self.order = cuda.to_device(np.arange(memory.capacity, dtype=np.int32))

    def launch(
        self,
        values: Array,
        labels: Array,
        targets: Array,
        order: Array,
        first: int,
        steps: int,
        rows: Rows,
        update: Any,
        schedule: Array,
        *,
        own_targets: bool = False,
        mask: Array | None = None,
        dropout: Dropout | None = None,
        row_losses: Array | None = None,
        stream: Any = 0,
    ) -> None:
        """Launch `steps` steps; nothing is waited for. `check` says afterwards whether they were taken.

        values (n, features), labels (n,): the samples; order (n,): row r of step s is order[first + s * rows + r]
        schedule (steps or more, 8): the optimizer's numbers of each step
        targets (rows, classes): of a loss that works on them; own_targets: whether they are made there, from the labels
        mask: dropout by this mask; dropout: by masks drawn on the device
        row_losses (steps, rows or more): where the losses go; None: the network's own memory, from its first line
        """
        # Before the launch: once it is ordered, Ctrl-C may come at any time.
        self.unsettled = True
        network, count = self.network, rows.x.shape[0]
        below, top = network.dense_layers
        masked = kernels.GIVEN if mask is not None else kernels.DRAWN if dropout is not None else kernels.NO_MASK
        drawn = dropout or Dropout(0, 0, np.uint64(0), np.dtype(network.dtype).type(1))
        flat = self.memory.flat
        firsts, seconds = update.flat_buffers(self.memory)
        self.kernel[self.blocks, kernels.THREADS, stream](
            values, labels, targets, int(own_targets), order, first, steps, count,
            ACTIVATIONS.index(network.activation), LOSSES.index(network.loss_name), update.kind, schedule,
            self.no_mask if mask is None else mask, masked, np.uint64(drawn.seed & MASK64), drawn.steps_before,
            drawn.threshold, drawn.scale,
            flat(below.weights), firsts[0], seconds[0], below.bias, firsts[1], seconds[1],
            below.grad_weights, below.grad_bias,
            flat(top.weights), firsts[2], seconds[2], top.bias, firsts[3], seconds[3],
            top.grad_weights, top.grad_bias,
            self.parts, flat(rows.dropped[0]), flat(rows.grad[0]), flat(rows.grad[1]),
            self.memory.row_losses if row_losses is None else row_losses, self.meetings,
        )  # fmt: skip

    def check(self) -> None:
        """After launches, for which it waits. Raises RuntimeError if blocks waited for others in vain."""
        gave_up = self.meetings.copy_to_host()[ptx.GAVE_UP]
        if gave_up:
            # Blocks that gave up have counted further than others: only a fresh count is right for all.
            self.meetings.copy_to_device(np.zeros(3, np.int32))
        self.unsettled = False
        if gave_up:
            raise RuntimeError(
                "the persistent kernel gave up: a block waited for more than two seconds at a barrier across the grid, "
                "because not all blocks were on the device at the same time (another program may hold a part of it); "
                "the network's parameters are between two steps now: go on from the last checkpoint, or train with "
                "GROUNDUP_PERSISTENT=0, which takes the steps from a CUDA graph"
            )
