"""A known network in PyTorch, with the modules that its documentation names, started from a stage's parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from shared import layers
from shared.architectures import Architecture
from shared.layers import Layer, Shape


def network(torch: ModuleType, architecture: Architecture, parameters: Sequence[np.ndarray]) -> Any:
    """A module that takes rows (N, features), as the stages' networks do, or images, and gives (N, classes).

    parameters: in the architecture's order; all of one dtype
    """
    dtype = getattr(torch, str(parameters[0].dtype))
    modules = list(_modules(torch, architecture.layers, architecture.input_shape, architecture, "", dtype))
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Unflatten(1, architecture.input_shape), *modules)
    with torch.no_grad():
        for own, values in zip(model.parameters(), parameters, strict=True):
            given = torch.from_numpy(np.array(values))
            own.copy_(given.T if given.dim() == 2 else given)  # torch keeps dense weights as (out, in)
    return model


def _modules(
    torch: ModuleType, chosen: Sequence[Layer], shape: Shape, architecture: Architecture, block: str, dtype: object
) -> Iterator[Any]:
    placed = {each.number: each for each in architecture.placed()}
    for i, layer in enumerate(chosen, start=1):
        each = placed[f"{block}{i}"]
        if isinstance(layer, layers.Residual):
            yield _residual(torch, list(_modules(torch, layer.layers, shape, architecture, f"{each.number}.", dtype)))
        else:
            yield _module(torch, layer, each.input_shape, dtype)
        shape = each.output_shape


def _module(torch: ModuleType, layer: Layer, shape: Shape, dtype: object) -> Any:
    nn = torch.nn
    if isinstance(layer, layers.Conv):
        return nn.Conv2d(
            shape[0], layer.out_channels, layer.size, stride=layer.stride, padding=layer.padding, dtype=dtype
        )
    if isinstance(layer, layers.Dense):
        return nn.Linear(shape[0], layer.out_features, dtype=dtype)
    if isinstance(layer, layers.BatchNorm):
        return (nn.BatchNorm2d if len(shape) == 3 else nn.BatchNorm1d)(shape[0], dtype=dtype)
    if isinstance(layer, layers.MaxPool | layers.AveragePool):
        kind = nn.MaxPool2d if isinstance(layer, layers.MaxPool) else nn.AvgPool2d
        return kind(layer.size, stride=layer.stride)
    if isinstance(layer, layers.Activate):
        return _applied(torch, activation(torch, layer.name))
    return nn.Dropout(layer.rate) if isinstance(layer, layers.Dropout) else nn.Flatten()


def activation(torch: ModuleType, name: str) -> Callable[[Any], Any]:
    """PyTorch's function of this name, whose own settings are those of the stages."""
    if name == "identity":
        return lambda z: z
    if name == "softmax":
        return partial(torch.softmax, dim=1)
    function: Callable[[Any], Any] = getattr(torch, name, None) or getattr(torch.nn.functional, name)
    return function


def _applied(torch: Any, function: Callable[[Any], Any]) -> Any:
    class Applied(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return function(x)

    return Applied()


def _residual(torch: Any, modules: list[Any]) -> Any:
    class Residual(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.Sequential(*modules)

        def forward(self, x: Any) -> Any:
            return self.layers(x) + x

    return Residual()
