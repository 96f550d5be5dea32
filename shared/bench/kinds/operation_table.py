"""The operations that every stage has: activations, losses, optimizers and the dense layer.

For each of them: how a stage and PyTorch compute it, on which numbers, and what it costs at least. PyTorch is called
through torch.nn.functional, torch.autograd.grad and torch.optim.

    problem(name, shape, dtype)   one operation on numbers of one shape and dtype
    dense_work                    the cost of a dense layer
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from shared.bench.measuring.timing import aligned
from shared.bench.peers import pytorch_layers
from shared.contract import Stage
from shared.names import ACTIVATION_FLOPS, ACTIVATIONS, LABEL_LOSSES, LOSSES, OPTIMIZERS

NAMES = (*ACTIVATIONS, *LOSSES, *OPTIMIZERS, "dense")

LEARNING_RATE = 0.01
LABEL_BYTES = LOSS_BYTES = 8
"""A label is an integer of 64 bits, a loss a number of 64."""

LOSS_FLOPS = {
    "mean_squared_error": (3, 2),  # o − t, its square, a sum; o − t, · 2 / n
    "softmax_cross_entropy": (4, 6),  # a maximum, z − m, exp, a sum; a softmax, / batch
    "sigmoid_cross_entropy": (9, 6),  # max(z, 0), z · t, −, |z|, −, exp, log1p, +, a sum; a sigmoid, − t, / n
    "hinge": (3, 4),  # 1 − s_y + s_j, a maximum, a sum; the margin, a comparison, a sum, / n
}
"""Arithmetic operations for each number of the outputs, forward and backward, counted as ACTIVATION_FLOPS does.
Operations once a row, like the logarithm of a sum, are left out."""

OPTIMIZER_FLOPS = {
    "SGD": 2,  # p −= rate · g
    "RMSProp": 9,  # s = a s + (1 − a) g g: 4; p −= rate · g / (√s + e): 5
    "Adam": 13,  # the first moment: 3; the second: 4; p −= rate · m / (√v / c + e): 6
}
"""Floating-point operations of an optimizer for each parameter and step."""

OPTIMIZER_ARRAYS = {"SGD": 3, "RMSProp": 5, "Adam": 7}
"""Arrays that a step reads or writes: the gradient, the parameter before and after, and each array that the optimizer
keeps, before and after."""


class Call(NamedTuple):
    """One part of an operation, as one contender does it.

    results: takes what `run` returned and gives everything that it computed
    """

    run: Callable[[], Any]
    results: Callable[[Any], Sequence[Any]] = lambda value: [value]


class Work(NamedTuple):
    """What a part costs at least: arithmetic operations, and bytes with each operand read and each result written."""

    flops: int
    bytes: int


class Problem(NamedTuple):
    """One operation on numbers of one shape and dtype.

    shape: (rows, columns); for a dense layer (batch, in_features, out_features)
    work: part -> its cost
    of_stage: a stage and the dtype to compute in -> its parts; of_torch: torch -> its parts
    terms: the most numbers that are added up into one result
    uses_threads: whether stages 2 and 3 compute it on several cores; PyTorch does so with every large operation
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    work: Mapping[str, Work]
    of_stage: Callable[[Stage, str], Mapping[str, Call]]
    of_torch: Callable[[Any], Mapping[str, Call]]
    terms: int
    uses_threads: bool = False


def problem(name: str, shape: tuple[int, int], dtype: str) -> Problem:
    """The operation of that name on (rows, columns) numbers of that dtype."""
    kinds = dict.fromkeys(ACTIVATIONS, _activation) | dict.fromkeys(LOSSES, _loss)
    kinds |= dict.fromkeys(OPTIMIZERS, _optimizer) | {"dense": _dense}
    return kinds[name](name, shape, dtype)


def numbers(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    """Normal random numbers, deviation 2, rounded to multiples of 1/256.

    Both dtypes hold these numbers exactly, and their differences, too. So where the sign of a number decides, as in
    relu and hinge, all contenders decide alike.
    """
    array = aligned(shape, dtype)
    array[...] = np.round(512 * np.random.default_rng(seed).standard_normal(shape)) / 256
    return array


def _activation(name: str, shape: tuple[int, int], dtype: str) -> Problem:
    z, grad = numbers(shape, dtype, 0), numbers(shape, dtype, 1)
    forward, backward = ACTIVATION_FLOPS[name]
    read_back = 1 if name == "identity" else 2  # the gradient, and z or the output

    def of_stage(stage: Stage, dtype: str) -> dict[str, Call]:
        room = stage.activations
        activate, slope = getattr(room, name), getattr(room, f"{name}_backward")
        own_z, own_grad = (stage.arrays.asarray(array, dtype) for array in (z, grad))
        output = activate(own_z)
        return {"forward": Call(partial(activate, own_z)), "backward": Call(partial(slope, own_grad, own_z, output))}

    def of_torch(torch: ModuleType) -> dict[str, Call]:
        own_z, own_grad = torch.from_numpy(z), torch.from_numpy(grad)
        if name == "identity":  # autograd would hand on the gradient itself
            return {"forward": Call(own_z.clone), "backward": Call(own_grad.clone)}
        activate = pytorch_layers.activation(torch, name)
        leaf = own_z.detach().requires_grad_()
        slope = partial(torch.autograd.grad, activate(leaf), leaf, own_grad, retain_graph=True)
        return {"forward": Call(partial(activate, own_z)), "backward": Call(slope, list)}

    work = {
        "forward": Work(forward * z.size, 2 * z.nbytes),
        "backward": Work(backward * z.size, (read_back + 1) * z.nbytes),
    }
    return Problem(name, shape, dtype, work, of_stage, of_torch, terms=shape[1])


def _loss(name: str, shape: tuple[int, int], dtype: str) -> Problem:
    rows, columns = shape
    outputs = numbers(shape, dtype, 0)
    labels = np.random.default_rng(1).integers(0, columns, rows)
    targets = aligned(shape, dtype)
    targets[...] = np.random.default_rng(2).random(shape)
    takes_labels = name in LABEL_LOSSES
    forward, backward = LOSS_FLOPS[name]
    target_bytes = LABEL_BYTES * rows if takes_labels else targets.nbytes

    def of_stage(stage: Stage, dtype: str) -> dict[str, Call]:
        own = stage.arrays.asarray(outputs, dtype)
        y = labels if takes_labels else stage.arrays.asarray(targets, dtype)
        loss, slope = getattr(stage.losses, name), getattr(stage.losses, f"{name}_backward")
        return {"forward": Call(partial(loss, own, y)), "backward": Call(partial(slope, own, y))}

    def of_torch(torch: ModuleType) -> dict[str, Call]:
        function = torch.nn.functional
        loss = {
            "mean_squared_error": function.mse_loss,
            "softmax_cross_entropy": function.cross_entropy,
            "sigmoid_cross_entropy": function.binary_cross_entropy_with_logits,
            "hinge": function.multi_margin_loss,
        }[name]
        own, y = torch.from_numpy(outputs), torch.from_numpy(labels if takes_labels else targets)
        leaf = own.detach().requires_grad_()
        slope = partial(torch.autograd.grad, loss(leaf, y), leaf, retain_graph=True)
        return {"forward": Call(lambda: float(loss(own, y).item())), "backward": Call(slope, list)}

    work = {
        "forward": Work(forward * outputs.size, outputs.nbytes + target_bytes + LOSS_BYTES),
        "backward": Work(backward * outputs.size, 2 * outputs.nbytes + target_bytes),
    }
    return Problem(name, shape, dtype, work, of_stage, of_torch, terms=outputs.size)


def _optimizer(name: str, shape: tuple[int, int], dtype: str) -> Problem:
    start, grad = numbers(shape, dtype, 0), numbers(shape, dtype, 1)

    def of_stage(stage: Stage, dtype: str) -> dict[str, Call]:
        parameters, gradients = [stage.arrays.asarray(start.copy(), dtype)], [stage.arrays.asarray(grad, dtype)]
        optimizer = getattr(stage.optimizers, name)(LEARNING_RATE)
        return {"step": Call(partial(optimizer.step, parameters, gradients), lambda _: parameters)}

    def of_torch(torch: ModuleType) -> dict[str, Call]:
        parameter = torch.nn.Parameter(torch.from_numpy(start.copy()))
        parameter.grad = torch.from_numpy(grad)
        kind = getattr(torch.optim, "RMSprop" if name == "RMSProp" else name)
        optimizer = kind([parameter], lr=LEARNING_RATE)
        return {"step": Call(optimizer.step, lambda _: [parameter])}

    work = {"step": Work(OPTIMIZER_FLOPS[name] * start.size, OPTIMIZER_ARRAYS[name] * start.nbytes)}
    return Problem(name, shape, dtype, work, of_stage, of_torch, terms=1)


def _dense(name: str, shape: tuple[int, int], dtype: str) -> Problem:
    batch, features = shape
    x, grad = numbers(shape, dtype, 0), numbers(shape, dtype, 1)
    weights, bias = numbers((features, features), dtype, 2), numbers((features,), dtype, 3)

    def of_stage(stage: Stage, dtype: str) -> dict[str, Call]:
        own_x, own_grad, *own = (stage.arrays.asarray(array, dtype) for array in (x, grad, weights, bias))
        layer = stage.dense.Dense(*own)
        layer.forward(own_x)
        return {
            "forward": Call(partial(layer.forward, own_x)),
            "backward": Call(
                partial(layer.backward, own_grad), lambda grad_x: [grad_x, layer.grad_weights, layer.grad_bias]
            ),
        }

    def of_torch(torch: ModuleType) -> dict[str, Call]:
        linear = torch.nn.functional.linear
        own_x, own_grad, own_bias = (torch.from_numpy(array) for array in (x, grad, bias))
        own_weights = torch.from_numpy(weights.T.copy())  # torch keeps (out_features, in_features)
        leaves = [tensor.detach().requires_grad_() for tensor in (own_x, own_weights, own_bias)]
        slope = partial(torch.autograd.grad, linear(*leaves), leaves, own_grad, retain_graph=True)
        return {
            "forward": Call(partial(linear, own_x, own_weights, own_bias)),
            "backward": Call(slope, lambda grads: [grads[0], grads[1].T, grads[2]]),
        }

    work = dense_work(batch, features, features, x.itemsize)
    layer = (batch, features, features)
    return Problem(name, layer, dtype, work, of_stage, of_torch, terms=max(shape), uses_threads=True)


def dense_work(
    batch: int, in_features: int, out_features: int, itemsize: int, needs_grad_input: bool = True
) -> dict[str, Work]:
    """The cost of a dense layer: one product and a bias forward; two products (one for a first layer) and the column
    sums backward."""
    product = 2 * batch * in_features * out_features
    x, output, weights = batch * in_features, batch * out_features, in_features * out_features
    products, inputs = (2, 2 * x + weights) if needs_grad_input else (1, x)  # without dL/dx the weights are not read
    return {
        "forward": Work(product + output, itemsize * (x + weights + out_features + output)),
        "backward": Work(products * product + output, itemsize * (inputs + output + weights + out_features)),
    }
