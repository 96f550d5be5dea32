"""A network in eight bits as a graph of ONNX: ONNX Runtime rounds where stage 2 rounds, and gives the same logits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shared.architectures import NAMED, Architecture, mlp, named
from shared.checks.problems import random_problem
from shared.data.normalisation import Normalisation
from shared.layers import Activate, Conv, Dense, Flatten, MaxPool
from stage2_numpy.eight_bit_network import EightBitNetwork
from tests.layered_forms import FORMS
from tests.random_architectures import random_architecture
from tests.shared.export.test_onnx_graph import PAIR, RANDOM
from tests.wide import widely

onnx = pytest.importorskip("onnx", reason="needs the extra onnx: pip install -e '.[onnx]'")
pytest.importorskip("onnxruntime", reason="needs the extra onnx: pip install -e '.[onnx]'")

from shared.export import eight_bit_graph, onnx_graph  # noqa: E402  (after the reason to skip)
from shared.export.equal_answers import (  # noqa: E402
    MOST_STEPS,
    EightBitAnswers,
    check_form,
    compare_in_eight_bits,
)
from shared.export.onnx_graph import INPUT  # noqa: E402


def network_of(
    architecture: Architecture, seed: int = 0, per_channel: bool = True
) -> tuple[EightBitNetwork, np.ndarray]:
    """A network in eight bits, and images of which half were not in its calibration."""
    rng = np.random.default_rng(seed)
    problem = random_problem(PAIR, rng, "export", architecture, "softmax_cross_entropy", 40, batches=1)
    x = problem.batches[0][0].astype(np.float32)
    return EightBitNetwork(architecture, problem.parameters, problem.running, x[:20], per_channel), x


def compared(architecture: Architecture, seed: int = 0, per_channel: bool = True) -> EightBitAnswers:
    normalisation = Normalisation(0.3, 0.7) if seed % 2 else None
    network, x = network_of(architecture, seed, per_channel)
    content = eight_bit_graph.model_of(network, normalisation).SerializeToString()
    check_form(content)
    pixels = x if normalisation is None else x * np.float32(0.7) + np.float32(0.3)
    learned = pixels if normalisation is None else normalisation.normalised(pixels)
    return compare_in_eight_bits(content, network, pixels.reshape(len(pixels), -1), learned.reshape(len(pixels), -1))


@pytest.mark.parametrize("seed", widely(RANDOM, 60))
def test_a_random_architecture_rounds_the_same_in_onnx_runtime(seed: int) -> None:
    answers = compared(random_architecture(seed), seed, per_channel=seed % 3 > 0)
    assert answers.steps <= MOST_STEPS
    assert (answers.images, answers.runtime.startswith("ONNX Runtime ")) == (40, True)


@pytest.mark.parametrize("name", FORMS)
def test_a_network_in_which_operations_meet_rounds_the_same(name: str) -> None:
    assert compared(Architecture(*FORMS[name])).steps <= MOST_STEPS


@pytest.mark.parametrize("name", widely(NAMED))
def test_a_known_network_is_equal_and_a_quarter_as_large(name: str) -> None:
    network, x = network_of(named(name))
    content = eight_bit_graph.model_of(network).SerializeToString()
    answers = compare_in_eight_bits(content, network, x, x)
    assert answers.ok
    assert answers.same_class == 40
    assert len(content) <= 0.3 * 4 * named(name).parameter_count


def constants_of(model: Any) -> dict[str, np.ndarray]:
    return {each.name: onnx.numpy_helper.to_array(each) for each in model.graph.initializer}


def test_the_numbers_and_scales_are_those_of_onnx_runtimes_own_quantiser(tmp_path: Path) -> None:
    """quantize_static makes them from the file in floats and the same images, knowing nothing of ours."""
    quantization = pytest.importorskip("onnxruntime.quantization")
    layers = (Conv(4, 3), Activate("relu"), MaxPool(2), Flatten(), Dense(5), Activate("relu"), Dense(3))
    architecture, rng = Architecture((1, 8, 8), layers), np.random.default_rng(3)
    problem = random_problem(PAIR, rng, "export", architecture, "softmax_cross_entropy", 20, batches=1)
    x, parameters = (problem.batches[0][0].astype(np.float32), [each.astype(np.float32) for each in problem.parameters])

    class Images(quantization.CalibrationDataReader):
        def __init__(self) -> None:
            self.left = [{INPUT: x}]

        def get_next(self) -> dict[str, np.ndarray] | None:
            return self.left.pop() if self.left else None

    floats, whole = tmp_path / "floats.onnx", tmp_path / "whole.onnx"
    onnx.save(onnx_graph.model_of(architecture, parameters), floats)
    quantization.quantize_static(
        floats,
        whole,
        Images(),
        per_channel=True,
        activation_type=quantization.QuantType.QInt8,
        extra_options={"ActivationSymmetric": True, "WeightSymmetric": True},
    )
    theirs = constants_of(onnx.load(whole))
    ours = constants_of(eight_bit_graph.model_of(EightBitNetwork(architecture, parameters, [], x)))
    for number in ("1", "5", "7"):
        np.testing.assert_array_equal(ours[f"{number}.weights"], theirs[f"{number}.weights_quantized"])
        np.testing.assert_allclose(ours[f"{number}.weights scale"], theirs[f"{number}.weights_scale"], rtol=1e-6)
    for value in ("pixels", "1", "5"):
        np.testing.assert_allclose(ours[f"{value} scale"], theirs[f"{value}_scale"], rtol=1e-6)


def test_a_wrong_file_is_found() -> None:
    network, x = network_of(mlp([6, 12, 5, 3]))
    x = x.reshape(len(x), -1)
    right = compare_in_eight_bits(eight_bit_graph.model_of(network).SerializeToString(), network, x, x)
    assert right.ok
    numbers = network.steps[2].source.numbers
    numbers[0] = -numbers[0]
    content = eight_bit_graph.model_of(network).SerializeToString()
    numbers[0] = -numbers[0]
    wrong = compare_in_eight_bits(content, network, x, x)
    assert not wrong.ok
    assert f"of 40 images the class that stage 2 gives them, and its logits are up to {wrong.steps:.3g}" in str(wrong)
    assert "steps of eight bits away; 2 are allowed" in str(wrong)
