"""One training step, three ways: forward, loss, backward, optimizer, in fewer and fewer calls into C.

    op_by_op   a call for every operation, as on stage 2     the same loops in C
    fused      bias and activation join the product, the     outputs are written once and not read again;
               loss its gradient                             the loss's exponentials are computed once
    one_call   everything in a single call                   no work of Python between two calls

All three work in the network's buffers, so that only the calls differ. Each takes (network, x, y, optimizer, masks)
and returns the loss before the step. With optimizer=None nothing moves: the gradients are left in the layers.
"""

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from . import activations, library, losses
from .arrays import Array
from .buffers import Buffers, Trainable
from .dense import ACTIVATIONS, Dense
from .optimizers import SGD, Adam, RMSProp

LOSSES = ("mean_squared_error", "softmax_cross_entropy", "sigmoid_cross_entropy", "hinge")
"""In the order of `enum loss` in groundup.h: the index is what C is told."""

OPTIMIZERS = (SGD, RMSProp, Adam)
"""In the order of `enum optimizer`."""


def op_by_op(network: Trainable, x: Any, y: Any, optimizer: Any, masks: Sequence[Any] | None = None) -> float:
    """A call into C for every operation: product, bias, activation, mask, loss, its gradient, and so back."""
    x, y, masks, buffers = _prepare(network, x, y, masks)
    output, dropped, grad = buffers.rows(len(x))
    activate = getattr(activations, network.activation)
    signal = x
    for i, layer in enumerate(network.layers):
        signal = layer.forward(signal, out=output[i])
        if i < len(network.layers) - 1:
            signal = activate(signal, out=signal)  # in place: every derivative can be told from the output
            if masks:
                signal = multiply(signal, masks[i], dropped[i])
    loss = getattr(losses, network.loss_name)(output[-1], y)
    getattr(losses, f"{network.loss_name}_backward")(output[-1], y, out=grad[-1])
    _backward(network, Dense.backward, output, grad, masks)
    if optimizer is not None:
        optimizer.step(network.parameters, network.layer_gradients)
    return loss


def fused(network: Trainable, x: Any, y: Any, optimizer: Any, masks: Sequence[Any] | None = None) -> float:
    """A call for each layer in each direction, and one for the loss with its gradient where that is softmax
    cross-entropy."""
    x, y, masks, buffers = _prepare(network, x, y, masks)
    output, dropped, grad = buffers.rows(len(x))
    signal = x
    last = len(network.layers) - 1
    for i, layer in enumerate(network.layers):
        signal = layer.forward_fused(signal, network.activation if i < last else "identity", out=output[i])
        if masks and i < last:
            signal = multiply(signal, masks[i], dropped[i])
    if network.loss_name == "softmax_cross_entropy":
        loss, _ = losses.softmax_cross_entropy_fused(output[-1], y, out=grad[-1])
    else:
        loss = getattr(losses, network.loss_name)(output[-1], y)
        getattr(losses, f"{network.loss_name}_backward")(output[-1], y, out=grad[-1])
    _backward(network, Dense.backward_fused, output, grad, masks)
    if optimizer is not None:
        optimizer.step(network.parameters, network.layer_gradients)
    return loss


def one_call(network: Trainable, x: Any, y: Any, optimizer: Any, masks: Sequence[Any] | None = None) -> float:
    """All of it in one call. An optimizer that is not one of this floor's takes its step after the call."""
    x, y, masks, buffers = _prepare(network, x, y, masks)
    ours = type(optimizer) in OPTIMIZERS
    if ours:
        c = buffers.optimizer_step
        c.kind = OPTIMIZERS.index(type(optimizer))
        for name, number in optimizer.numbers().items():
            setattr(c, name, number)
        buffers.point_to_optimizer(optimizer._state, network.parameters)
    loss = ctypes.c_double()
    library.function("network_step", network.dtype)(
        library.pool(), len(network.layers), buffers.layers,
        ACTIVATIONS.index(network.activation), LOSSES.index(network.loss_name),
        len(x), x, y.ctypes.data, mask_addresses(masks),
        ctypes.byref(buffers.optimizer_step) if ours else None, ctypes.byref(loss),
    )  # fmt: skip
    if ours:
        optimizer._state.steps += 1
    elif optimizer is not None:
        optimizer.step(network.parameters, network.layer_gradients)
    return loss.value


STEP_LADDER: dict[str, Callable[..., float]] = {"op_by_op": op_by_op, "fused": fused, "one_call": one_call}


def _prepare(network: Trainable, x: Any, y: Any, masks: Any) -> tuple[Array, Array, list[Array], Buffers]:
    """x, y and masks checked and apart from all that the step writes to, and the buffers for them."""
    x, y, masks = network.checked(x, y, masks)
    buffers = network.buffers(len(x))
    return buffers.apart(x), buffers.apart(y), [buffers.apart(mask) for mask in masks], buffers


def _backward(
    network: Trainable,
    of_layer: Callable[..., Array | None],
    output: list[Array],
    grad: list[Array],
    masks: Sequence[Array] | None,
) -> None:
    """From the loss's gradient, in grad[-1], down to the first layer's grad_weights."""
    through_activation = getattr(activations, f"{network.activation}_backward")
    for i in reversed(range(1, len(network.layers))):
        below = grad[i - 1]
        of_layer(network.layers[i], grad[i], out=below)
        if masks:
            multiply(below, masks[i - 1], below)
        through_activation(below, output[i - 1], output[i - 1], out=below)
    of_layer(network.layers[0], grad[0], needs_grad_input=False)


def multiply(a: Array, mask: Array, out: Array) -> Array:
    """a times the dropout mask, element by element; out may be a."""
    library.function("multiply", a.dtype)(a.size, a, mask, out)
    return out


def mask_addresses(masks: Sequence[Array] | None) -> Any:
    """What C takes for `const real *const *`: an array of addresses, or NULL."""
    if not masks:
        return None
    return (ctypes.c_void_p * len(masks))(*(mask.ctypes.data for mask in masks))
