"""The graph of ONNX without the extra: what its nodes get, as a stand-in for the package writes it down."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import shared
from shared.architectures import Architecture, mlp
from shared.layers import Activate, BatchNorm
from stage2_numpy.activations import LEAKY_SLOPE
from stage2_numpy.batch_norm import BatchNorm as OwnBatchNorm


def made_node(kind: str, inputs: list[str], outputs: list[str], name: str, **settings: Any) -> tuple[str, Any]:
    return kind, settings


@pytest.fixture
def graph(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names of onnx_graph.py."""
    stand_in: Any = ModuleType("onnx")
    stand_in.ModelProto, stand_in.TensorProto = object, SimpleNamespace(FLOAT=1, INT8=3)
    stand_in.helper = SimpleNamespace(make_node=made_node, make_tensor=lambda *arguments, **more: arguments)
    monkeypatch.setitem(sys.modules, "onnx", stand_in)
    return runpy.run_path(str(Path(shared.__file__).parent / "export" / "onnx_graph.py"))


@pytest.mark.parametrize(
    ("activation", "expected"),
    [
        ("relu", [("Relu", {})]),
        ("leaky_relu", [("LeakyRelu", {"alpha": LEAKY_SLOPE})]),
        ("softmax", [("Softmax", {"axis": 1})]),
        ("identity", []),
    ],
)
def test_an_activation_is_its_operator_with_the_stages_numbers(
    graph: dict[str, Any], activation: str, expected: list[Any]
) -> None:
    nodes = graph["Nodes"]()
    (placed,) = (each for each in mlp((2, 3, 2), activation).placed() if isinstance(each.layer, Activate))
    nodes.without_weights(placed, "x")
    assert nodes.nodes == expected


def test_a_batch_normalisation_has_the_stages_epsilon(graph: dict[str, Any]) -> None:
    form = Architecture((3,), (BatchNorm(),))
    writer = graph["_Graph"](form, [[1.0] * 3, [0.0] * 3], [[0.0] * 3, [1.0] * 3])
    writer.chain(form.layers, "x")
    assert writer.nodes == [("BatchNormalization", {"epsilon": OwnBatchNorm([1.0], [0.0]).epsilon})]
