"""A network as a graph of ONNX: ONNX Runtime, which is other people's, computes what stage 2 computes in float64."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterator
from operator import gt
from typing import Any

import numpy as np
import pytest

from shared.architectures import NAMED, Architecture, mlp, named
from shared.checks.pair import Pair
from shared.checks.problems import Problem, Sides, random_problem
from shared.contract import load_stage
from shared.data.normalisation import Normalisation
from shared.layers import KINDS, Activate, AveragePool, BatchNorm, Conv, Dropout, Layer, MaxPool, Residual
from shared.names import ACTIVATIONS
from shared.windows import as_pair
from stage2_numpy.activations import LEAKY_SLOPE
from stage2_numpy.batch_norm import BatchNorm as OwnBatchNorm
from tests.layered_forms import FORMS
from tests.random_architectures import random_architecture
from tests.wide import widely

onnx = pytest.importorskip("onnx", reason="needs the extra onnx: pip install -e '.[onnx]'")
pytest.importorskip("onnxruntime", reason="needs the extra onnx: pip install -e '.[onnx]'")

from shared.export.equal_answers import check_form, compare_answers, runtime_answers  # noqa: E402
from shared.export.onnx_graph import ACTIVATIONS as OPERATORS  # noqa: E402
from shared.export.onnx_graph import EPSILON, model_of  # noqa: E402

RANDOM = range(200)
STAGE = load_stage("numpy")
PAIR = Pair(STAGE, STAGE, "float32")
DEMANDED = 1e-5
"""Of the largest logit."""


def problem_of(architecture: Architecture, seed: int = 0, batch: int = 3) -> Problem:
    rng = np.random.default_rng(seed)
    return random_problem(PAIR, rng, "export", architecture, "softmax_cross_entropy", batch, batches=1)


def difference(problem: Problem, normalisation: Normalisation | None = None) -> float:
    """How far ONNX Runtime's logits are from stage 2's in float64, as a share of the largest."""
    content = content_of(problem, normalisation)
    x = problem.batches[0][0].astype(np.float32)
    learned = x if normalisation is None else normalisation.normalised(x)
    expected = Sides(PAIR, problem).theirs.forward(learned.astype(np.float64))
    got = runtime_answers(content, x)
    assert (got.shape, got.dtype) == (expected.shape, np.float32)
    one = runtime_answers(content, x[:1])  # the same file with another length of the batch
    return float(max(np.abs(got - expected).max(), np.abs(one - expected[:1]).max()) / np.abs(expected).max())


def content_of(problem: Problem, normalisation: Normalisation | None = None) -> bytes:
    content: bytes = model_of(
        problem.architecture, problem.parameters, problem.running, normalisation
    ).SerializeToString()
    check_form(content)
    return content


@pytest.mark.parametrize("seed", widely(RANDOM, 60))
def test_a_random_architecture_answers_the_same_in_onnx_runtime(seed: int) -> None:
    normalisation = Normalisation(0.3, 0.7) if seed % 2 else None
    assert difference(problem_of(random_architecture(seed), seed), normalisation) <= DEMANDED


@pytest.mark.parametrize("name", FORMS)
def test_a_network_in_which_operations_meet_answers_the_same(name: str) -> None:
    assert difference(problem_of(Architecture(*FORMS[name]))) <= DEMANDED


@pytest.mark.parametrize("name", NAMED)
def test_a_known_network_trained_briefly_answers_the_same(name: str) -> None:
    network = STAGE.network.Network(named(name), seed=1)
    rng, optimizer = np.random.default_rng(2), STAGE.optimizers.Adam(0.001)
    x = rng.random((4, 784), np.float32)
    for _ in range(2):
        network.train_step(x, np.arange(4), optimizer)
    own = [
        [np.array(each, np.float64) for each in arrays] for arrays in (network.parameters, network.running_statistics)
    ]
    problem = Problem(name, named(name), network.loss_name, own[0], own[1], [(x.reshape(-1, 1, 28, 28), x)], [])
    assert difference(problem) <= DEMANDED


def every_layer(architecture: Architecture) -> Iterator[tuple[int, Layer, Any]]:
    """(depth, layer, the shape of its input) of all layers."""
    return ((each.number.count("."), each.layer, each.input_shape) for each in architecture.placed())


def test_the_random_architectures_have_every_layer_and_setting() -> None:
    """What the test above is worth: each case comes several times."""
    cases: Counter[str] = Counter()
    for seed in RANDOM:
        architecture = random_architecture(seed)
        cases[f"input of {len(architecture.input_shape)} axes"] += 1
        for depth, layer, shape in every_layer(architecture):
            cases[type(layer).__name__] += 1
            cases["a block in a block"] += depth == 1 and isinstance(layer, Residual)
            if isinstance(layer, Activate):
                cases[layer.name] += 1
            if isinstance(layer, BatchNorm):
                cases[f"normalisation of {len(shape)} axes"] += 1
            if isinstance(layer, Conv):
                cases["uneven padding"] += len(set(as_pair(layer.padding))) == 2
                cases["uneven stride"] += len(set(as_pair(layer.stride))) == 2
                cases["more padding than window"] += any(map(gt, as_pair(layer.padding), as_pair(layer.size)))
            if isinstance(layer, MaxPool | AveragePool):
                size, stride = as_pair(layer.size), as_pair(layer.stride or layer.size)
                cases[f"{type(layer).__name__} with a rest"] += any(
                    (n - s) % t for n, s, t in zip(shape[1:], size, stride, strict=True)
                )
                cases[f"{type(layer).__name__} with overlap"] += any(map(gt, size, stride))
    expected = {*KINDS, *ACTIVATIONS, "input of 1 axes", "input of 3 axes", "a block in a block", "uneven padding"}
    expected |= {"uneven stride", "more padding than window", "normalisation of 1 axes", "normalisation of 3 axes"}
    expected |= {f"{kind} with {what}" for kind in ("MaxPool", "AveragePool") for what in ("a rest", "overlap")}
    assert {case for case, count in cases.items() if count >= 5} == expected


def test_the_numbers_that_no_architecture_names_are_the_floors() -> None:
    assert OPERATORS["leaky_relu"][1]["alpha"] == LEAKY_SLOPE
    assert inspect.signature(OwnBatchNorm).parameters["epsilon"].default == EPSILON
    assert {*OPERATORS, "identity"} == set(ACTIVATIONS)


def test_the_file_says_what_it_is() -> None:
    problem = problem_of(named("lenet5"))
    model = model_of(problem.architecture, problem.parameters, metadata={"run": "mine"}, version="1.2")
    assert (model.ir_version, [(each.domain, each.version) for each in model.opset_import]) == (8, [("", 17)])
    assert (model.producer_name, model.producer_version) == ("groundup", "1.2")
    assert {each.key: each.value for each in model.metadata_props} == {"run": "mine"}
    ((name, sides),) = [
        (each.name, [side.dim_value or side.dim_param for side in each.type.tensor_type.shape.dim])
        for each in model.graph.input
    ]
    assert (name, sides) == ("pixels", ["batch", 1, 28, 28])
    assert [each.name for each in model.graph.output] == ["logits"]


def test_the_normalisation_is_part_of_the_graph_to_the_last_bit() -> None:
    normalisation = Normalisation(0.1307, 0.3081)
    model = model_of(Architecture((5,), (Dropout(0.5),)), [], [], normalisation)
    assert [each.op_type for each in model.graph.node] == ["Sub", "Div"]
    x = np.random.default_rng(0).random((40, 5), np.float32)
    assert np.array_equal(runtime_answers(model.SerializeToString(), x), normalisation.normalised(x))


def test_a_wrong_file_is_found() -> None:
    """Neither a weight that is off by a thousandth nor swapped weights hide behind the tolerance."""
    problem = problem_of(mlp([6, 5, 3]), batch=20)
    x = problem.batches[0][0].astype(np.float32)
    numbers = problem.architecture, problem.parameters, problem.running, x, x
    right = compare_answers(content_of(problem), *numbers)
    assert right.worst.ok
    assert right.same_class == right.images == 20
    assert 0 < right.largest < right.allowed
    wrong = [each.copy() for each in problem.parameters]
    wrong[2][0, 0] *= 1.001
    changed = compare_answers(model_of(problem.architecture, wrong).SerializeToString(), *numbers)
    assert not changed.worst.ok
    assert changed.largest > changed.allowed


def test_numbers_that_float32_does_not_hold_are_refused() -> None:
    parameters = [np.full((2, 3), 1e39), np.zeros(3)]
    with pytest.raises(ValueError, match=r"1\.weights: expected numbers that float32 holds, got 1e\+39"):
        model_of(mlp([2, 3]), parameters)
