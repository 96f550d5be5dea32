"""One training step, three ways: forward, loss, backward, optimizer, in fewer and fewer calls into C.

    op_by_op   a call for every layer of the network in each      the same loops in C
               direction
    fused      a call for every operation of the plan: bias and  outputs are written once and not read again;
               activation join the product, the loss its         the loss's exponentials are computed once;
               gradient, and images lie side by side             every register is full, however small the image
    one_call   everything in a single call                       no work of Python between two calls

Each takes (network, x, y, optimizer, masks) and returns the loss before the step. With optimizer=None nothing moves:
the gradients are left in the layers.
"""

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from shared.names import LABEL_LOSSES, LOSSES

from . import library, losses
from .arrays import Array
from .optimizers import OPTIMIZERS


def op_by_op(network: Any, x: Any, y: Any, optimizer: Any, masks: Sequence[Any] | None = None) -> float:
    """The plain way through the layers, `_forward` and `_step` in network.py."""
    x, y, masks = network.checked(x, y, masks)
    with network._statistics_put_back(always=optimizer is None):
        loss: float = network._step(x, y, optimizer, masks)
    return loss


def fused(network: Any, x: Any, y: Any, optimizer: Any, masks: Sequence[Any] | None = None) -> float:
    """A call for each operation of the plan in each direction, and one for the loss with its gradient where that is
    softmax cross-entropy."""
    x, y, masks, plan = _prepare(network, x, y, masks)
    forward = library.function("network_forward", network.dtype)
    backward = library.function("network_backward", network.dtype)
    pool, rows, addresses = library.pool(), len(x), mask_addresses(masks)
    output, grad = plan.output[:rows], plan.grad_output[:rows]
    with network._statistics_put_back(always=False):
        for operation in plan.c_operations:
            forward(pool, 1, ctypes.byref(operation), rows, x, addresses, True, optimizer is not None)
        if network.loss_name == "softmax_cross_entropy":
            loss, _ = losses.softmax_cross_entropy_fused(output, y, out=grad)
        else:
            loss = getattr(losses, network.loss_name)(output, y)
            getattr(losses, f"{network.loss_name}_backward")(output, y, out=grad)
        for operation in reversed(plan.c_operations):
            backward(pool, 1, ctypes.byref(operation), rows, x, addresses)
        if optimizer is not None:
            optimizer.step(network.parameters, network.layer_gradients)
    return loss


def one_call(network: Any, x: Any, y: Any, optimizer: Any, masks: Sequence[Any] | None = None) -> float:
    """All of it in one call. An optimizer that is not one of this stage's takes its step after the call."""
    x, y, masks, plan = _prepare(network, x, y, masks)
    in_c = type(optimizer) in OPTIMIZERS
    if in_c:
        plan.point_to_optimizer(optimizer, network.parameters)
    loss = ctypes.c_double()
    with network._statistics_put_back(always=False):
        library.function("network_step", network.dtype)(
            library.pool(), len(plan.operations), plan.c_operations, LOSSES.index(network.loss_name),
            len(x), x, y.ctypes.data, mask_addresses(masks), optimizer is not None,
            ctypes.byref(plan.c_optimizer) if in_c else None, ctypes.byref(loss),
        )  # fmt: skip
        if in_c:
            optimizer._state.steps += 1
        elif optimizer is not None:
            optimizer.step(network.parameters, network.layer_gradients)
    return loss.value


STEP_LADDER: dict[str, Callable[..., float]] = {"op_by_op": op_by_op, "fused": fused, "one_call": one_call}


def _prepare(network: Any, x: Any, y: Any, masks: Any) -> tuple[Array, Array, list[Array], Any]:
    """x, y and masks checked and apart from all that the step writes to, and the plan for them."""
    x, y, masks = network.checked(x, y, masks)
    plan = network.plan_for(len(x), training=True)
    if network.loss_name not in LABEL_LOSSES:  # labels are a copy already
        y = plan.copied_if_overlapping(y)
    return plan.copied_if_overlapping(x), y, [plan.copied_if_overlapping(mask) for mask in masks or ()], plan


def mask_addresses(masks: Sequence[Array]) -> Any:
    """What C takes for `const real *const *`: an array of addresses, or NULL where there are none."""
    return (ctypes.c_void_p * len(masks))(*(mask.ctypes.data for mask in masks)) if masks else None
