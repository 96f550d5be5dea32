"""shared.profile.operations: the operations of a step in their order, and that none is forgotten or counted twice."""

from __future__ import annotations

import math

import pytest

from shared.architectures import NAMED, Architecture, mlp, named
from shared.bench.kinds.steps import Case
from shared.layers import Activate, BatchNorm, Conv, Dense, Flatten, Residual
from shared.profile.operations import plain

INNER = Residual((Activate("tanh"), BatchNorm()))
NESTED = Architecture((2, 4, 4), (Conv(2, 3, padding=1), Residual((INNER, Activate("relu"))), Flatten(), Dense(3)))


def ways(architecture: Architecture) -> list[tuple[str, str, str]]:
    return [(each.layer, each.direction, each.name) for each in plain(architecture, 5, 4, copies=True)]


def test_a_stack_of_dense_layers_goes_there_and_back() -> None:
    assert ways(mlp([6, 5, 4])) == [
        ("1", "forward", "dense + bias"),
        ("2", "forward", "relu"),
        ("3", "forward", "dense + bias"),
        ("", "forward", "softmax cross-entropy"),
        ("", "backward", "softmax cross-entropy: gradient"),
        ("3", "backward", "dense: dW, db, dx"),
        ("2", "backward", "relu"),
        ("1", "backward", "dense: dW, db"),
        ("", "update", "SGD"),
    ]


@pytest.mark.parametrize("model", NAMED)
def test_the_products_of_a_step_are_those_that_the_benchmark_counts(model: str) -> None:
    case = Case((784, 10), 3, "float32", model)
    found = plain(named(model), 3, 4, copies=True)
    biases = sum(3 * math.prod(each.output_shape[1:]) for each in found if "bias" in each.name or "dW" in each.name)
    products = sum(each.flops for each in found if each.kind in ("conv", "dense")) - biases
    assert products == case.flops


def test_no_two_operations_have_the_same_key() -> None:
    keys = [each.key for each in plain(NESTED, 5, 4, copies=False)]
    assert len(set(keys)) == len(keys)
