"""Which plan a network takes: for a step, for its outputs alone, and for a run with its data on the device.

A step, forward, loss, backward and optimizer, in fewer and fewer launches:

    op_by_op      a kernel for every operation (network.py)              about 18 launches for an mlp of two layers
    fused         operations joined where one kernel can do both, in     every number is written once, and not read
                  memory planned once                                    again only to be changed a little
    few_kernels   three kernels for two layers (kernels/fused.py)        a new kernel only where blocks need each other;
                                                                         the optimizer needs no gradient in memory
    graph         the same, captured once and replayed as a CUDA graph   the device gets one order a step
    persistent    one kernel, whose blocks wait for each other inside    nothing is between the parts of a step; and one
                  (kernels/persistent.py), from a graph, too             launch may take many steps (resident.py)

Each rung takes (network, x, y, optimizer, masks) and returns the loss before the step. With optimizer=None nothing
moves: the gradients are left in the layers. A network that a rung cannot take goes one rung down. `rungs_of` names the
rungs that a network has:

    an mlp of the few kernels    all five; persistent where `misfit` of persistent.py finds no reason against it
    any other mlp                op_by_op, fused
    any other network            op_by_op, fused, graph
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shared.contract import ImageChanges
from shared.names import LABEL_LOSSES
from shared.network_base import NetworkBase

from ..arrays import Array
from . import cuda_graphs, persistent
from .mlp_launches import MlpPlan, has_few_kernels, takes_mlp_plans
from .mlp_memory import MlpMemory
from .operation_plan import OperationMemory, OperationPlan
from .operation_schedule import schedule
from .operations import planned
from .optimizer_update import Update
from .replayed_steps import ReplayedStep, ReplayedSteps
from .resident import MlpRun, ResidentRun

Masks = Sequence[Any] | None


def op_by_op(network: Any, x: Any, y: Any, optimizer: Any, masks: Masks = None) -> float:
    """A launch for every operation: product, bias, activation, mask, loss, its gradient, and so back."""
    return NetworkBase._checked_step(network, x, y, optimizer, masks)


def fused(network: Any, x: Any, y: Any, optimizer: Any, masks: Masks = None) -> float:
    """A launch for each layer's way forward, one for loss and gradient, up to three for each layer's way back."""
    return _launched("fused", network, x, y, optimizer, masks)


def few_kernels(network: Any, x: Any, y: Any, optimizer: Any, masks: Masks = None) -> float:
    """`forward_partial`, `head` and `update` for one hidden layer.

    Each further hidden layer adds a `forward_partial`, a `combine` and a product of the way back; that product is two
    kernels where it is cut into parts (launch_backward). There is one `update` for every two layers.
    """
    rung = "few_kernels" if has_few_kernels(network) else "fused"
    return _launched(rung, network, x, y, optimizer, masks)


def graph(network: Any, x: Any, y: Any, optimizer: Any, masks: Masks = None) -> float:
    """`few_kernels` from a CUDA graph, or `fused` of a network that is no mlp. Where there is no GPU there are no
    graphs, and this is that rung."""
    rung = "few_kernels" if has_few_kernels(network) else "fused"
    is_captured = cuda_graphs.available() and (rung == "few_kernels" or not takes_mlp_plans(network))
    return (_replayed if is_captured else _launched)(rung, network, x, y, optimizer, masks)


def persistent_kernel(network: Any, x: Any, y: Any, optimizer: Any, masks: Masks = None) -> float:
    """The persistent kernel's step, from a CUDA graph, too; `graph` where it does not fit (persistent.misfit).

    Most of its gain is in the steps after the first, which a training run on the device takes with it (resident.py): a
    single step fetches the weights and brings them back. What is left of it is one launch in the place of three.
    """
    if not has_few_kernels(network):
        return graph(network, x, y, optimizer, masks)
    way = _replayed if cuda_graphs.available() else _launched
    return way("persistent", network, x, y, optimizer, masks)


STEP_LADDER: dict[str, Callable[..., float]] = {
    "op_by_op": op_by_op,
    "fused": fused,
    "few_kernels": few_kernels,
    "graph": graph,
    "persistent": persistent_kernel,
}


def rungs_of(network: Any) -> list[str]:
    """The rungs of STEP_LADDER that take the network's step in ways of their own."""
    if has_few_kernels(network):
        return list(STEP_LADDER)
    return ["op_by_op", "fused"] if takes_mlp_plans(network) else ["op_by_op", "fused", "graph"]


def rung_in_use(optimizer: Any, rows: int) -> Callable[..., float]:
    """The rung that takes a network's steps of this many rows: the last one; where the persistent kernel gains nothing,
    on the CPU and for large batches, and for gradients alone the one before it."""
    gains = persistent.wanted() and persistent.slower_with(rows) is None
    return persistent_kernel if optimizer is not None and gains else graph


def outputs(network: Any, x: Array, masks: Sequence[Array], training: bool, tracking: bool) -> Array:
    """The last layer's outputs, in the memory of a plan. Arguments as NetworkBase._last_outputs has them."""
    count = x.shape[0]
    network.check_unchanged(count, training)
    if takes_mlp_plans(network):
        return network.plans.step("fused", network, count, bool(masks)).outputs(network, x, masks)
    plan = network.plans.operations(network, count, training, bool(masks))
    return plan.outputs(network, x, masks, training, training and tracking)


def resident_run(
    network: Any, x: Any, labels: Any, optimizer: Any, batch_size: int, seed: int, augmentation: ImageChanges | None
) -> ResidentRun | None:
    """A run with its data on the device; None if it cannot change the images as `augmentation` says."""
    if takes_mlp_plans(network):
        return None if augmentation is not None else MlpRun(network, x, labels, optimizer, batch_size, seed)
    run = ResidentRun(network, x, labels, optimizer, batch_size, seed)
    return run if augmentation is None or run.augment(augmentation) else None


class Plans:
    """The plans that one network has taken, and their memory."""

    def __init__(self) -> None:
        self.replayed = ReplayedSteps()
        self._mlp: MlpMemory | None = None
        self._mlp_plans: dict[tuple[str, int, bool], MlpPlan] = {}
        self._operations: OperationMemory | None = None

    def settle(self) -> None:
        """Ask whether blocks of an interrupted launch had given up (MlpMemory.settle)."""
        if self._mlp is not None:
            self._mlp.settle()

    def mlp_memory(self, network: Any, rows: int) -> MlpMemory:
        """An mlp's memory for a batch of this many rows: the same as the last time if it is large enough."""
        if self._mlp is None or self._mlp.capacity < rows:
            self._mlp = MlpMemory(network.dense_layers, network.dtype, rows)
            self._mlp_plans.clear()  # they lie in the memory that is given up
        return self._mlp

    def step(self, rung: str, network: Any, rows: int, masked: bool) -> MlpPlan | OperationPlan:
        """The plan of a step by this rung."""
        if not takes_mlp_plans(network):
            return self.operations(network, rows, True, masked)
        key = rung, rows, masked
        if key not in self._mlp_plans:
            memory = self.mlp_memory(network, rows)
            if rung == "persistent" and persistent.misfit(network, rows, network.dtype) is not None:
                rung = "few_kernels"
            self._mlp_plans[key] = MlpPlan(network, memory, rung, rows, masked)
        return self._mlp_plans[key]

    def operations(self, network: Any, rows: int, training: bool, masked: bool) -> OperationPlan:
        """The kernels of any network for this many samples and their memory: those of the last time, if there was
        one."""
        if self._operations is None:
            self._operations = OperationMemory(network.dtype)

        def make() -> Any:
            form = network.architecture
            operations = planned(form.layers, network.layers, form.input_shape, masked, network.precision)
            labels = network.loss_name in LABEL_LOSSES
            return schedule(operations, form.input_shape, rows, network.layer_sizes[-1], training, labels)

        # A captured graph has the numbers of batch normalisation inside.
        key = (rows, training, masked, network.precision, *network.normalisations())
        return self._operations.plan(key, make)


def _launched(rung: str, network: Any, x: Any, y: Any, optimizer: Any, masks: Masks) -> float:
    """A step whose kernels are launched one by one."""
    x, y, masks = network.checked(x, y, masks)
    plan = network.plans.step(rung, network, x.shape[0], bool(masks))
    arrays = plan.place([x, y, *(masks or ())])
    update = Update(network, optimizer, in_kernels=plan.updates_in_kernels)
    with _statistics_kept(network, update):
        plan.launch(network, arrays, update, 0)
        if plan.blocks_wait is None:
            update.done()
    loss = float(np.sum(plan.losses.copy_to_host(), dtype=np.float64))
    if plan.blocks_wait is not None:
        plan.blocks_wait.check()
        update.done()
    return loss


def _replayed(rung: str, network: Any, x: Any, y: Any, optimizer: Any, masks: Masks) -> float:
    """A step from its CUDA graph."""
    x, y, masks = network.checked(x, y, masks)
    arrays = [x, y, *(masks or ())]
    plan = network.plans.step(rung, network, x.shape[0], bool(masks))
    if not plan.may_be_captured:
        return _launched(rung, network, x, y, optimizer, masks)
    step = network.plans.replayed.step(
        network, plan, optimizer, lambda: ReplayedStep(network, plan, Update(network, optimizer))
    )
    with _statistics_kept(network, step.update):
        return step.take(network, arrays)


def _statistics_kept(network: Any, update: Update) -> Any:
    """All was checked, and an optimizer of this stage asked: only one of somebody else's may still refuse the step.
    After an error of such a one the running statistics are put back."""
    return network._statistics_put_back(always=False) if update.is_foreign else contextlib.nullcontext()
