"""The launches of a plan's step: for each kind of operation forward beside backward, without checks.

`step.arrays` are the arrays of operation_schedule.py by name. Parameters and their gradients are those of the layers,
looked up at every launch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from shared.names import ACTIVATIONS

from .. import activations, batch_norm, dense_passes, launch, losses, pooling
from .. import convolution_passes as passes
from ..arrays import Array
from ..kernels import dense as dense_kernels
from ..kernels import residual as residual_kernels
from .operation_schedule import Step
from .operations import IDENTITY, Operation


@dataclass(frozen=True)
class Order:
    """How steps are launched.

    training: whether batch normalisation takes the batch's own statistics; tracking: and changes the running ones
    loss: its name; stream: 0 for the default one
    """

    training: bool
    tracking: bool
    loss: str
    stream: Any = 0


def launch_steps(steps: Sequence[Step], order: Order) -> None:
    """Launch them in their order; nothing is read back."""
    for step in steps:
        LAUNCH[step.kind](step, order)


def _operation(step: Step) -> Operation:
    assert step.operation is not None
    return step.operation


def _convolve(step: Step, order: Order) -> None:
    a, each = step.arrays, _operation(step)
    passes.forward_into(
        a["x"], each.part.weights, each.part.bias, each.geometry, a["output"], each.activation, order.stream,
        each.precision,
    )  # fmt: skip


def _convolve_back(step: Step, order: Order) -> None:
    a, each = step.arrays, _operation(step)
    part = each.part
    passes.backward_into(
        a["grad"], a["x"], part.weights, each.geometry, a.get("grad_input"), part.grad_weights, part.grad_bias,
        a["parts"], step.below, order.stream, each.precision,
    )  # fmt: skip


def _connect(step: Step, order: Order) -> None:
    a, each = step.arrays, _operation(step)
    dense_passes.forward_into(
        a["x"], each.part.weights, each.part.bias, each.activation, a["output"], each.precision, order.stream
    )


def _connect_back(step: Step, order: Order) -> None:
    a, each = step.arrays, _operation(step)
    part = each.part
    dense_passes.backward_into(
        a["grad"], a["x"], part.weights, a.get("grad_input"), part.grad_weights, part.grad_bias, step.below,
        each.precision, order.stream,
    )  # fmt: skip


def _max_pool(step: Step, order: Order) -> None:
    a, each = step.arrays, _operation(step)
    pooling.launch_max_pool(a["x"], each.window, each.step, each.activation, a["output"], a["indices"], order.stream)


def _max_pool_back(step: Step, order: Order) -> None:
    a, each = step.arrays, _operation(step)
    pooling.launch_max_backward(
        a["grad"], a.get("output", a["grad"]), each.activation, a["indices"], a.get("below", a["grad_input"]),
        step.below, each.window, each.step, a["grad_input"], order.stream,
    )  # fmt: skip


def _average_pool(step: Step, order: Order) -> None:
    a, each = step.arrays, _operation(step)
    pooling.launch_average_pool(a["x"], each.window, each.step, a["output"], order.stream)


def _average_pool_back(step: Step, order: Order) -> None:
    a, each = step.arrays, _operation(step)
    pooling.launch_average_backward(a["grad"], each.window, each.step, a["grad_input"], order.stream)


def _normal(step: Step) -> batch_norm.Forward:
    a, part = step.arrays, _operation(step).part
    vectors = part.gamma, part.beta, part.running_mean, part.running_var
    return batch_norm.Forward(a["x"], vectors, part.momentum, part.epsilon, a["statistics"])


def _normalise(step: Step, order: Order) -> None:
    a, each = step.arrays, _operation(step)
    batch_norm.launch_forward(
        _normal(step), a["output"], order.training, order.tracking, a.get("added"), each.activation, a["parts"],
        order.stream,
    )  # fmt: skip


def _normalise_back(step: Step, order: Order) -> None:
    a, each = step.arrays, _operation(step)
    batch_norm.launch_backward(
        _normal(step), a["grad"], (each.part.grad_gamma, each.part.grad_beta), a["grad_input"], order.training,
        a.get("output"), each.activation, a.get("grad_added"), a["parts"], order.stream,
    )  # fmt: skip


def _activate(step: Step, order: Order) -> None:
    activations.apply(_name(step), step.arrays["x"], step.arrays["output"], stream=order.stream)


def _activate_back(step: Step, order: Order) -> None:
    a = step.arrays
    activations.apply_backward(_name(step), a["grad"], a["output"], a["grad_input"], stream=order.stream)


def _name(step: Step) -> str:
    return ACTIVATIONS[_operation(step).activation]


def _drop(step: Step, order: Order) -> None:
    a = step.arrays
    _numberwise(dense_kernels.multiply, a["x"], order)(a["x"], a["mask"], a["output"])


def _drop_back(step: Step, order: Order) -> None:
    a = step.arrays
    _numberwise(dense_kernels.multiply, a["grad"], order)(a["grad"], a["mask"], a["grad_input"])


def _join(step: Step, order: Order) -> None:
    """A residual block's sum, with the activation behind it; and the sum of two gradients."""
    a = step.arrays
    activation = IDENTITY if step.operation is None else step.operation.activation
    _numberwise(residual_kernels.join, a["x"], order)(a["x"], a["added"], activation, a["output"])


def _slope_back(step: Step, order: Order) -> None:
    """The gradient before an activation that no other kernel has in it."""
    a = step.arrays
    kernel = activations.kernels.BACKWARD[_name(step)]
    _numberwise(kernel, a["grad"], order)(a["grad"], a["output"], a["grad_input"])


def _loss(step: Step, order: Order) -> None:
    a = step.arrays
    losses.row_losses_and_gradient(order.loss, a["outputs"], a["y"], a["losses"], a["grad"], stream=order.stream)


def _numberwise(kernel: Any, array: Array, order: Order) -> Any:
    return kernel[(*launch.elementwise(array.size), order.stream)]


LAUNCH: dict[str, Callable[[Step, Order], None]] = {
    "convolve": _convolve,
    "convolve_back": _convolve_back,
    "connect": _connect,
    "connect_back": _connect_back,
    "max_pool": _max_pool,
    "max_pool_back": _max_pool_back,
    "average_pool": _average_pool,
    "average_pool_back": _average_pool_back,
    "normalise": _normalise,
    "normalise_back": _normalise_back,
    "activate": _activate,
    "activate_back": _activate_back,
    "drop": _drop,
    "drop_back": _drop_back,
    "join": _join,
    "add": _join,
    "slope_back": _slope_back,
    "loss": _loss,
}
"""By the kind of a step."""
