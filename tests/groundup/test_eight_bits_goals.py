"""What eight bits may cost, on all 10,000 test images of the full sets: half an hour, so only when asked for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from groundup.eight_bits import CALIBRATE, check, in_eight_bits
from groundup.trained import as_learned, load_data, open_checkpoint, settings_of
from shared.data.normalisation import Normalisation
from tests.program import run as exit_code
from tests.wide import wide

onnx = pytest.importorskip("onnx", reason="needs the extra onnx: pip install -e '.[onnx]'")
pytest.importorskip("onnxruntime", reason="needs the extra onnx: pip install -e '.[onnx]'")

from shared.export import eight_bit_graph, onnx_graph  # noqa: E402  (after the reason to skip)
from shared.export.equal_answers import LEAST_SAME, MOST_STEPS, compare_in_eight_bits  # noqa: E402

PART = 1000
NETWORKS = {
    "dense": ("mnist", ["--hidden", "128"]),
    "lenet5": ("mnist", ["--model", "lenet5"]),
    "fashion_cnn": ("fashion-mnist", ["--model", "fashion_cnn"]),
    "residual_cnn": ("mnist", ["--model", "residual_cnn"]),
}


@wide
@pytest.mark.skipif(not os.environ.get("GROUNDUP_DATA"), reason="GROUNDUP_DATA is not set: no full data sets")
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_loses_little_and_its_file_says_the_same(name: str, tmp_path: Path) -> None:
    """After one epoch: a network that is less sure of its answers changes them more easily."""
    dataset, options = NETWORKS[name]
    run = tmp_path / name
    assert exit_code("train", "c", "--dataset", dataset, *options, "--epochs", 1, "--run-dir", run, "--quiet") == 0
    document = check(run, "numpy")
    images, (floats, whole) = document["images"], document["numbers"].values()
    assert images == 10_000
    assert floats["right"] - whole["right"] <= 0.003 * images
    assert document["same_answers"] >= 0.99 * images
    assert max(step["error"] for step in document["steps"]) < 0.05

    checkpoint = open_checkpoint(run)
    plain = load_data(checkpoint)
    data, normalisation = as_learned(checkpoint, plain), Normalisation.from_notes(settings_of(checkpoint))
    network = in_eight_bits(checkpoint, data, CALIBRATE)
    content = eight_bit_graph.model_of(network, normalisation).SerializeToString()
    numbers = checkpoint.architecture, checkpoint.parameters, checkpoint.running_statistics
    assert len(content) <= 0.3 * len(onnx_graph.model_of(*numbers, normalisation).SerializeToString())
    parts = [slice(start, start + PART) for start in range(0, images, PART)]
    answers = [compare_in_eight_bits(content, network, plain.test.x[part], data.test.x[part]) for part in parts]
    assert sum(each.same_class for each in answers) >= LEAST_SAME * images
    assert max(each.steps for each in answers) <= MOST_STEPS
