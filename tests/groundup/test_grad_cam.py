"""Grad-CAM: what the package grad-cam says of the same networks in PyTorch, and what nothing speaks for."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from groundup.grad_cam import grad_cam
from groundup.inside_layers import Layered
from shared.architectures import Architecture, mlp
from shared.contract import load_stage
from shared.layers import Activate, BatchNorm, Conv, Dense, Flatten, MaxPool, Residual
from shared.training.checkpoints import load_checkpoint, save_checkpoint

CASES = {  # as in scripts/make_grad_cam_oracle.py
    "two convolutions": Architecture(
        (1, 12, 10),
        (
            Conv(4, 3, padding=1),
            Activate("relu"),
            MaxPool(2),
            Conv(6, (3, 2)),
            Activate("relu"),
            MaxPool(2),
            Flatten(),
            Dense(5),
        ),
    ),
    "a residual block": Architecture(
        (3, 9, 7),
        (
            Conv(5, 3),
            BatchNorm(),
            Activate("tanh"),
            Residual((Conv(5, 3, padding=1), BatchNorm(), Activate("relu"), Conv(5, 1))),
            BatchNorm(),
            Activate("relu"),
            Flatten(),
            Dense(6),
            Activate("sigmoid"),
            Dense(4),
        ),
    ),
    "maps without an activation": Architecture((2, 6, 6), (Conv(3, 3), MaxPool(2), Flatten(), Dense(3))),
}


@cache
def oracle() -> dict[str, np.ndarray]:
    with np.load(Path(__file__).parent / "grad_cam_oracle.npz", allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def layered(path: Path, architecture: Architecture, parameters: list[np.ndarray]) -> Layered:
    stage = load_stage("numpy")
    network = stage.network.Network(architecture, seed=1, dtype="float64")
    for own, values in zip(network.parameters, parameters, strict=True):
        own[...] = values
    save_checkpoint(path, stage, network)
    return Layered(load_checkpoint(path), architecture)


def of_case(name: str, what: str) -> np.ndarray:
    return oracle()[f"{name}/{what}"]


def network_of(tmp_path: Path, name: str) -> Layered:
    architecture = CASES[name]
    parameters = [of_case(name, f"parameters.{i}") for i in range(len(architecture.parameters()))]
    return layered(tmp_path / "last.safetensors", architecture, parameters)


@pytest.mark.parametrize("name", CASES)
def test_it_agrees_with_the_package_grad_cam_on_the_same_network(tmp_path: Path, name: str) -> None:
    network, images, labels = network_of(tmp_path, name), of_case(name, "images"), of_case(name, "labels")
    found = network.evidence(images.reshape(len(images), -1), labels)
    sums = np.maximum(of_case(name, "sums"), 0)
    largest = sums.max(axis=(1, 2), keepdims=True)
    assert found is not None
    np.testing.assert_allclose(found, sums / np.where(largest > 0, largest, 1), atol=1e-12)
    from_zero = sums.min(axis=(1, 2)) == 0  # the package also takes the least off
    assert from_zero.any()
    np.testing.assert_allclose(found[from_zero], of_case(name, "scaled")[from_zero], atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_an_image_alone_has_the_evidence_that_it_has_in_a_batch(tmp_path: Path, name: str) -> None:
    network, images, labels = network_of(tmp_path, name), of_case(name, "images"), of_case(name, "labels")
    rows = images.reshape(len(images), -1)
    together = network.evidence(rows, labels)
    assert together is not None
    for i in range(len(rows)):
        np.testing.assert_allclose(
            network.evidence(rows[i : i + 1], labels[i : i + 1]), together[i : i + 1], atol=1e-12
        )


def test_where_nothing_speaks_for_a_class_the_evidence_is_0_and_not_nan(tmp_path: Path) -> None:
    """Maps of at least 0 whose every weight in the score is below 0; and maps that are 0 everywhere."""
    architecture = Architecture((1, 5, 6), (Conv(2, 3, padding=1), Activate("relu"), Flatten(), Dense(3)))
    parameters = [np.ones(each.shape) for each in architecture.parameters()]
    parameters[2][:, 1] = -1.0
    network, x = layered(tmp_path / "last.safetensors", architecture, parameters), np.ones((3, 30))
    found = network.evidence(x, np.array([1, 0, 1]))
    assert found is not None
    assert not found[[0, 2]].any()
    assert found[1].max() == 1
    assert not np.any(network.evidence(-x, np.array([0, 1, 2])))


def test_a_network_without_a_convolution_has_none(tmp_path: Path) -> None:
    architecture = mlp((6, 4, 3), "relu")
    parameters = [np.ones(each.shape) for each in architecture.parameters()]
    assert (
        layered(tmp_path / "last.safetensors", architecture, parameters).evidence(np.ones((2, 6)), np.array([0, 1]))
        is None
    )


def test_wrong_shapes_are_named() -> None:
    with pytest.raises(ValueError, match=r"maps is \(2, 3, 4\) and slopes \(2, 3, 4\); expected \(batch, channels"):
        grad_cam(np.ones((2, 3, 4)), np.ones((2, 3, 4)))
