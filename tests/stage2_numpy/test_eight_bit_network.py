"""A network in eight bits: its whole numbers by hand, what folding changes, and what happens at the ends."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from shared.architectures import NAMED, Architecture, mlp, named
from shared.checks.pair import Pair
from shared.checks.problems import random_problem
from shared.contract import load_stage
from shared.data.datasets import load_dataset
from shared.data.normalisation import Normalisation
from shared.layers import Activate, AveragePool, BatchNorm, Conv, Dense, Dropout, Flatten, MaxPool, Residual
from shared.machine.processes import ROOT
from shared.training.checkpoints import load_checkpoint
from stage2_numpy.eight_bit_network import EightBitNetwork, all_steps
from stage2_numpy.eight_bit_steps import Step
from stage2_numpy.eight_bits import integer_matmul
from stage2_numpy.network import Network
from tests.layered_forms import FORMS
from tests.random_architectures import random_architecture
from tests.wide import widely

SHIPPED = Path(ROOT) / "groundup/studio/digits/network.safetensors"
STAGE = load_stage("numpy")
PAIR = Pair(STAGE, STAGE, "float64")
RELU = Activate("relu")


def network_and_images(
    architecture: Architecture, seed: int = 0, per_channel: bool = True, calibrate: int = 12
) -> tuple[Network, EightBitNetwork, np.ndarray]:
    """A network with running statistics that matter in float64, the same in eight bits, and images."""
    rng = np.random.default_rng(seed)
    problem = random_problem(PAIR, rng, "eight bits", architecture, "softmax_cross_entropy", 12, batches=1)
    network = Network.from_parameters(problem.parameters, architecture=architecture)
    for own, values in zip(network.running_statistics, problem.running, strict=True):
        own[...] = values
    x = problem.batches[0][0]
    eight = EightBitNetwork(architecture, problem.parameters, problem.running, x[:calibrate], per_channel)
    return network, eight, x


def by_hand(eight: EightBitNetwork, x: np.ndarray) -> np.ndarray:
    """Dense layers with ReLU between them, as the definition has it: Python's whole numbers, and a scale at a time."""
    first, *steps = eight.steps
    assert first.scale is not None
    scale = float(first.scale)
    numbers = [[round(float(value) / scale) for value in row] for row in x]
    for step in steps:
        source = step.source
        weights, bias, scales = source.numbers.tolist(), source.bias_numbers.ravel().tolist(), source.scale.ravel()
        sums = [
            [
                sum(q * w for q, w in zip(row, column, strict=True)) + b
                for column, b in zip(zip(*weights, strict=True), bias, strict=True)
            ]
            for row in numbers
        ]
        floats = [[total * float(s) for total, s in zip(row, scales, strict=True)] for row in sums]
        if step.scale is None:
            return np.array(floats)
        scale = float(step.scale)
        numbers = [[max(0, min(127, round(value / scale))) for value in row] for row in floats]
    raise AssertionError("the last step does not round")


def test_dense_layers_are_what_whole_numbers_give_by_hand() -> None:
    _, eight, x = network_and_images(mlp([7, 9, 5, 3]), seed=4)
    logits = eight.forward(x)
    assert (logits.shape, logits.dtype) == ((12, 3), np.float32)
    np.testing.assert_allclose(logits, by_hand(eight, x.reshape(12, -1).astype(np.float32)), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "architecture", [*(Architecture(*form) for form in FORMS.values()), *widely(map(named, NAMED))]
)
def test_in_floats_nothing_is_lost_by_folding(architecture: Architecture) -> None:
    network, eight, x = network_and_images(architecture, seed=3)
    expected = network.forward(x)
    np.testing.assert_allclose(eight.real(x), expected, atol=2e-5 * np.abs(expected).max())


@pytest.mark.parametrize("seed", widely(range(200), 12))
def test_any_architecture_is_off_by_what_its_roundings_explain(seed: int) -> None:
    """Not a proof, but a mistake in a scale or in the order of the layers is far larger."""
    network, eight, x = network_and_images(random_architecture(seed), seed)
    expected = network.forward(x)
    off = np.linalg.norm(eight.forward(x) - expected) / np.linalg.norm(expected)
    assert off < 0.06


def test_the_answers_are_the_same_by_any_product() -> None:
    """And the product gets what one in C may count on: int8, row by row without gaps."""

    def plain(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        assert left.dtype == right.dtype == np.int8
        assert left.flags.c_contiguous
        assert right.flags.c_contiguous
        return np.matmul(left.astype(np.int64), right.astype(np.int64)).astype(np.int32)

    _, eight, x = network_and_images(Architecture(*FORMS["blocks in blocks"]))
    expected = eight.forward(x)
    eight.product = plain
    assert np.array_equal(eight.forward(x), expected)
    eight.product = lambda left, right: integer_matmul(left, right) + 1
    assert not np.array_equal(eight.forward(x), expected)


def test_parts_of_a_batch_give_the_same_as_the_batch() -> None:
    _, eight, x = network_and_images(named("lenet5"))
    many = np.tile(x, (9, 1, 1, 1))  # more than go through at a time
    assert np.array_equal(eight.forward(many), np.tile(eight.forward(x), (9, 1)))
    assert np.array_equal(eight.forward(x.reshape(len(x), -1)), eight.forward(x))


def test_steps_begin_with_sums_and_what_picks_comes_after_the_rounding() -> None:
    block = Residual((RELU, Conv(3, 3, padding=1), BatchNorm(), Activate("tanh"), MaxPool(1)))
    layers = (Conv(3, 3), BatchNorm(), Dropout(0.5), BatchNorm(), MaxPool(2), RELU, block, RELU)
    more = (AveragePool(2), BatchNorm(), Activate("sigmoid"), Flatten(), Activate("identity"), Dense(4))
    _, eight, _ = network_and_images(Architecture((1, 10, 10), (*layers, *more)))
    assert [step.title for step in all_steps(eight.steps)] == [
        "input",
        "1 Conv, BatchNorm, BatchNorm, MaxPool, relu",
        "input, relu",
        "7.2 Conv, BatchNorm, tanh, MaxPool",
        "7 Residual, relu",
        "9 AveragePool",
        "10 BatchNorm, sigmoid, Flatten",
        "14 Dense",
    ]
    rounding = [step.scale is not None for step in all_steps(eight.steps)]
    assert rounding == [True, True, False, True, True, True, True, False]


def observed(eight: EightBitNetwork, x: np.ndarray) -> dict[Step, np.ndarray]:
    seen: dict[Step, np.ndarray] = {}
    eight.forward(x, seen.__setitem__)
    return seen


def test_each_step_gives_whole_multiples_of_its_scale() -> None:
    _, eight, x = network_and_images(named("residual_cnn"))
    for step, values in observed(eight, x[:2]).items():
        if step.scale is not None:
            multiples = values / step.scale
            assert np.abs(multiples - np.rint(multiples)).max() < 1e-4
            assert np.abs(multiples).max() <= 128.0001


@pytest.mark.parametrize("per_channel", [False, True])
def test_a_bias_behind_a_filter_of_zeros_is_not_lost(per_channel: bool) -> None:
    weights = np.array([[0.0, 1.0, 1e-12], [0.0, -1.0, 0.0]], np.float32)  # (in, out)
    bias = np.array([5.0, 0.1, -7.0], np.float32)
    x = np.array([[1.0, 0.5]], np.float32)
    eight = EightBitNetwork(mlp([2, 3]), [weights, bias], [], x, per_channel)
    np.testing.assert_allclose(eight.forward(x), [[5.0, 0.6, -7.0]], atol=0.01)


def test_numbers_beyond_the_calibration_stay_at_its_end() -> None:
    eight = EightBitNetwork(mlp([1, 1]), [np.ones((1, 1)), np.zeros(1)], [], np.array([[2.0], [-1.0]]))
    assert eight.forward(np.array([[2.0], [1e9], [1.0]])).ravel() == pytest.approx([2, 2, 1], abs=0.01)
    assert eight.forward(np.array([[-1e9]])) == pytest.approx(-2 * 128 / 127, abs=0.001)
    assert eight.output_step == pytest.approx(2 / 127)


def test_the_network_that_ships_keeps_its_answers_and_a_quarter_of_its_size() -> None:
    checkpoint, data = load_checkpoint(SHIPPED), load_dataset("mnist-subset")
    normalisation = Normalisation.from_notes(checkpoint.about_run["notes"])
    data = data if normalisation is None else normalisation.dataset(data)
    eight = EightBitNetwork(checkpoint.architecture, checkpoint.parameters, [], data.train.x[:100])
    floats = Network.from_parameters(checkpoint.parameters).forward(data.test.x).argmax(axis=1)
    whole = eight.forward(data.test.x).argmax(axis=1)
    assert np.mean(whole == floats) >= 0.99
    assert abs(np.mean(whole == data.test.y) - np.mean(floats == data.test.y)) <= 0.003
    assert eight.nbytes <= 0.3 * sum(each.nbytes for each in checkpoint.parameters)


@pytest.mark.parametrize(
    ("parameters", "images", "sentence"),
    [
        ([1.0, 0.0], np.ones((0, 1)), "expected at least one image to calibrate with, got none"),
        ([np.nan, 0.0], np.ones((1, 1)), "a network in eight bits: expected finite parameters, got infinity or NaN"),
        ([3e38, 0.0], np.full((1, 1), 10.0), "a network in eight bits: 1 Dense gives numbers that are not finite"),
    ],
)
def test_what_cannot_be_rounded_is_one_sentence(parameters: list[float], images: np.ndarray, sentence: str) -> None:
    weights, bias = parameters
    with pytest.raises(ValueError, match=sentence):
        EightBitNetwork(mlp([1, 1]), [np.full((1, 1), weights), np.full(1, bias)], [], images)


def test_a_layer_of_too_many_inputs_is_named() -> None:
    architecture = mlp([131_071, 1])
    parameters = [np.zeros(shape, np.float32) for shape in architecture.parameter_shapes()]
    with pytest.raises(ValueError, match="layer 1: 131,071 terms and a bias; a sum of 32 bits has room for 131,071"):
        EightBitNetwork(architecture, parameters, [], np.ones((1, 131_071), np.float32))
