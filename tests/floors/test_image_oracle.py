"""Convolution, pooling and batch normalisation of every stage against PyTorch's numbers in image_oracle.npz.

scripts/make_image_oracle.py wrote them; the tests need no torch. Tolerances are those of test_oracle.py: a sum here has
at most 60 terms.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shared.contract import Stage, load_stage
from tests.floors.test_oracle import OPERATION_TOLERANCE, assert_agrees
from tests.stages import STAGE_PARAMS

FILE = Path(__file__).parent / "image_oracle.npz"


@cache
def oracle() -> dict[str, np.ndarray]:
    with np.load(FILE, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    for array in arrays.values():
        array.flags.writeable = False  # all tests share them, and asarray may hand out the array itself
    return arrays


ABOUT: dict[str, Any] = json.loads(str(oracle()["about"]))


def of_case(prefix: str) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): array for name, array in oracle().items() if name.startswith(prefix)}


def host(stage: Stage, array: Any) -> np.ndarray:
    return np.asarray(stage.arrays.to_host(array))


def test_oracle_is_small_and_names_the_torch_version_that_made_it() -> None:
    assert FILE.stat().st_size < 250_000
    assert ABOUT["torch"]


@pytest.mark.parametrize("case", ABOUT["convolutions"])
@pytest.mark.parametrize("name", STAGE_PARAMS)
def test_every_rung_and_the_backward_pass_of_a_convolution_equal_pytorch(name: str, dtype: str, case: str) -> None:
    stage, expected, about = load_stage(name), of_case(f"convolution/{case}/"), ABOUT["convolutions"][case]
    how = {"stride": about["stride"], "padding": about["padding"]}
    given = {n: stage.arrays.asarray(expected[n], dtype) for n in ("x", "weights", "bias", "grad_output")}
    tolerance = OPERATION_TOLERANCE[dtype]
    for rung, function in {**stage.convolution.CONVOLUTION_LADDER, "conv2d": stage.convolution.conv2d}.items():
        got = host(stage, function(given["x"], given["weights"], given["bias"], **how))
        assert_agrees(got, expected["output"], 10 * tolerance if "winograd" in rung else tolerance, rung)
    gradients = stage.convolution.conv2d_backward(given["grad_output"], given["x"], given["weights"], **how)
    for what, got in zip(("grad_x", "grad_weights", "grad_bias"), gradients, strict=True):
        assert_agrees(host(stage, got), expected[what], tolerance, what)


@pytest.mark.parametrize("kind", ["ties", "nan"])
@pytest.mark.parametrize("case", ABOUT["pools"])
@pytest.mark.parametrize("name", STAGE_PARAMS)
def test_pools_and_their_gradients_equal_pytorch(name: str, dtype: str, case: str, kind: str) -> None:
    stage, expected, about = load_stage(name), of_case(f"pool/{case}/{kind}/"), ABOUT["pools"][case]
    size, stride, shape = about["size"], about["stride"], tuple(about["x"])
    x, grad_output = (stage.arrays.asarray(expected[n], dtype) for n in ("x", "grad_output"))
    tolerance = OPERATION_TOLERANCE[dtype]

    output, indices = stage.pooling.max_pool2d(x, size, stride)
    assert_agrees(host(stage, output), expected["max"], 0.0, "max")
    assert np.array_equal(np.asarray(stage.arrays.to_host(indices)), expected["indices"])
    got = stage.pooling.max_pool2d_backward(grad_output, indices, shape)
    assert_agrees(host(stage, got), expected["grad_of_max"], tolerance, "gradient of max")

    assert_agrees(host(stage, stage.pooling.average_pool2d(x, size, stride)), expected["average"], tolerance, "average")
    got = stage.pooling.average_pool2d_backward(grad_output, shape, size, stride)
    assert_agrees(host(stage, got), expected["grad_of_average"], tolerance, "gradient of average")


@pytest.mark.parametrize("case", ABOUT["batch_norms"])
@pytest.mark.parametrize("name", STAGE_PARAMS)
def test_batch_norm_its_statistics_and_gradients_equal_pytorch_update_by_update(
    name: str, dtype: str, case: str
) -> None:
    stage, expected, about = load_stage(name), of_case(f"batch_norm/{case}/"), ABOUT["batch_norms"][case]
    gamma, beta = (stage.arrays.asarray(expected[n], dtype) for n in ("gamma", "beta"))
    layer = stage.batch_norm.BatchNorm(gamma, beta, momentum=about["momentum"], epsilon=about["epsilon"])
    tolerance = 10 * OPERATION_TOLERANCE[dtype]  # a gradient passes through three sums over the batch
    for step in range(ABOUT["updates"] + 1):
        x, grad_output = (stage.arrays.asarray(expected[n][step], dtype) for n in ("x", "grad_output"))
        output = layer.forward(x, training=step < ABOUT["updates"])
        grad_x = layer.backward(grad_output)
        for what, got in [
            ("output", output),
            ("running_mean", layer.running_mean),
            ("running_var", layer.running_var),
            ("grad_x", grad_x),
            ("grad_gamma", layer.grad_gamma),
            ("grad_beta", layer.grad_beta),
        ]:
            # dL/dx is what two subtractions leave of grad_output: the error is a share of grad_output.
            scale_of = expected["grad_output"][step] if what == "grad_x" else None
            assert_agrees(host(stage, got), expected[what][step], tolerance, f"{what} of step {step}", scale_of)
