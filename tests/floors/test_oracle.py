"""Every stage against PyTorch's numbers in oracle.npz, which scripts/make_oracle.py wrote. No torch needed here.

Tolerances are relative to the largest expected number of an array. A single operation here sums at most
17 products, so the rounding error is below about 17 eps; 1e-14 times a hundred and 1e-7 times twenty leave
room for a different order of summation and for another library's exp. Training 20 steps feeds the errors of
each step to the next, and RMSProp and Adam divide small gradients by their own size; both amplify.
"""

import json
from functools import cache
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shared.architectures import mlp
from shared.contract import ACTIVATIONS, LABEL_LOSSES, LOSSES, Stage

OPERATION_TOLERANCE = {"float64": 1e-12, "float32": 2e-6}
TRAJECTORY_TOLERANCE = {"float64": 1e-10, "float32": 1e-4}
ACTIVATION_CASES = ("random", "kinks", "large", "nonfinite", "column")
LOSS_CASES = ("random", "large", "kink", "one")


class Recorded(dict[str, np.ndarray]):
    """PyTorch's arrays by name. A name without an array, like that of a new activation, fails with the remedy."""

    def __missing__(self, name: str) -> np.ndarray:
        pytest.fail(f"oracle.npz has no {name!r}: write it anew with scripts/make_oracle.py, which needs PyTorch")


@cache
def oracle() -> Recorded:
    with np.load(Path(__file__).parent / "oracle.npz", allow_pickle=False) as file:
        arrays = Recorded({name: file[name] for name in file.files})
    for array in arrays.values():
        array.flags.writeable = False  # all tests share them, and asarray may hand out the array itself
    return arrays


@cache
def about() -> dict[str, Any]:
    return json.loads(str(oracle()["about"]))


def assert_agrees(
    got: Any, expected: np.ndarray, tolerance: float, what: str = "", scale_of: np.ndarray | None = None
) -> None:
    """Same shape, same NaN and inf, and everything else within the tolerance of the largest number of `scale_of`,
    which is `expected` where nothing else is said."""
    compared = expected if scale_of is None else scale_of
    scale = np.max(np.abs(compared), where=np.isfinite(compared), initial=0.0)
    assert np.shape(got) == expected.shape, what
    np.testing.assert_allclose(
        np.asarray(got, dtype=np.float64), expected, rtol=tolerance, atol=tolerance * scale, err_msg=what
    )


def unflatten(vector: np.ndarray) -> list[np.ndarray]:
    """The flat parameters of the oracle's network as [W1, b1, W2, b2, …]."""
    arrays, position = [], 0
    sizes = about()["network_sizes"]
    for fan_in, fan_out in pairwise(sizes):
        for shape in ((fan_in, fan_out), (fan_out,)):
            count = int(np.prod(shape))
            arrays.append(vector[position : position + count].reshape(shape))
            position += count
    assert position == len(vector)
    return arrays


def oracle_network(stage: Stage, activation: str, loss: str, dtype: str, dropout: float = 0.0) -> Any:
    form = mlp(about()["network_sizes"], activation, dropout)
    return stage.network.Network.from_parameters(
        unflatten(oracle()["networks/start"]), loss=loss, dtype=dtype, architecture=form
    )


def answers_for(stage: Stage, loss: str, dtype: str) -> list[Any]:
    """What the oracle's network is trained towards, one entry a batch."""
    if loss in LABEL_LOSSES:
        return list(oracle()["networks/labels"])
    name = "numbers" if loss == "mean_squared_error" else "probabilities"
    return [stage.arrays.asarray(batch, dtype) for batch in oracle()[f"networks/{name}"]]


def test_oracle_is_small_and_names_the_torch_version_that_made_it() -> None:
    assert (Path(__file__).parent / "oracle.npz").stat().st_size < 300_000
    assert about()["torch"]


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # NumPy's word on inf - inf, which is meant
@pytest.mark.parametrize(("name", "case"), list(product(ACTIVATIONS, ACTIVATION_CASES)))
def test_activation_and_its_backward_equal_pytorch(stage: Stage, dtype: str, name: str, case: str) -> None:
    expected = {key: oracle()[f"activations/{case}/{key}"] for key in ("z", "grad_output", name, f"{name}_backward")}
    z = stage.arrays.asarray(expected["z"], dtype)
    output = getattr(stage.activations, name)(z)
    grad_output = stage.arrays.asarray(expected["grad_output"], dtype)
    grad_z = getattr(stage.activations, f"{name}_backward")(grad_output, z, output)
    tolerance = OPERATION_TOLERANCE[dtype]
    assert_agrees(stage.arrays.to_host(output), expected[name], tolerance, name)
    # Slopes such as 1 - t² lose digits where t is near 1, in PyTorch too: the error is a share of grad_output.
    backward, scale_of = f"{name}_backward", expected["grad_output"]
    assert_agrees(stage.arrays.to_host(grad_z), expected[backward], tolerance, backward, scale_of)


@pytest.mark.parametrize(("name", "case"), list(product(LOSSES, LOSS_CASES)))
def test_loss_and_its_gradient_equal_pytorch(stage: Stage, dtype: str, name: str, case: str) -> None:
    expected = {key: oracle()[f"losses/{name}/{case}/{key}"] for key in ("outputs", "answers", "value", "backward")}
    outputs = stage.arrays.asarray(expected["outputs"], dtype)
    answers = expected["answers"] if name in LABEL_LOSSES else stage.arrays.asarray(expected["answers"], dtype)
    value = getattr(stage.losses, name)(outputs, answers)
    gradient = getattr(stage.losses, f"{name}_backward")(outputs, answers)
    assert isinstance(value, float)
    assert_agrees(value, expected["value"], OPERATION_TOLERANCE[dtype], name)
    assert_agrees(stage.arrays.to_host(gradient), expected["backward"], OPERATION_TOLERANCE[dtype], f"{name}_backward")


@pytest.mark.parametrize("case", ["1x1x1", "6x5x4", "3x13x2", "17x2x7"])
def test_dense_layer_equals_torch_linear(stage: Stage, dtype: str, case: str) -> None:
    names = ("x", "weights", "bias", "grad_output", "output", "grad_x", "grad_weights", "grad_bias")
    expected = {name: oracle()[f"linear/{case}/{name}"] for name in names}
    arrays = {name: stage.arrays.asarray(expected[name], dtype) for name in names[:4]}
    layer = stage.dense.Dense(arrays["weights"], arrays["bias"])
    got = {"output": layer.forward(arrays["x"]), "grad_x": layer.backward(arrays["grad_output"])}
    got |= {"grad_weights": layer.grad_weights, "grad_bias": layer.grad_bias}
    for name, array in got.items():
        assert_agrees(stage.arrays.to_host(array), expected[name], OPERATION_TOLERANCE[dtype], name)


@pytest.mark.parametrize("case", sorted(about()["optimizer_cases"]))
def test_optimizer_walks_where_torch_optim_walks(stage: Stage, dtype: str, case: str) -> None:
    name, arguments = about()["optimizer_cases"][case]
    optimizer = getattr(stage.optimizers, name)(**arguments)
    parameters = [stage.arrays.asarray(oracle()[f"optimizers/start_{i}"].copy(), dtype) for i in range(2)]
    for step in range(10):
        gradients = [stage.arrays.asarray(oracle()[f"optimizers/gradients_{i}"][step], dtype) for i in range(2)]
        optimizer.step(parameters, gradients)
        for i, parameter in enumerate(parameters):
            expected = oracle()[f"optimizers/{case}/after_{i}"][step]
            what = f"{case}, parameter {i} after step {step + 1}"
            # Ten steps, each rounding parameter and buffers anew: ten operations' worth.
            assert_agrees(stage.arrays.to_host(parameter), expected, 10 * OPERATION_TOLERANCE[dtype], what)


@pytest.mark.parametrize("masked", [False, True], ids=["plain", "dropout"])
@pytest.mark.parametrize(("activation", "loss"), list(product(ACTIVATIONS, LOSSES)))
def test_network_output_loss_and_gradients_equal_autograd(
    stage: Stage, dtype: str, activation: str, loss: str, masked: bool
) -> None:
    network = oracle_network(stage, activation, loss, dtype, dropout=0.5)
    x = stage.arrays.asarray(oracle()["networks/x"][0], dtype)
    y = answers_for(stage, loss, dtype)[0]
    masks = [stage.arrays.asarray(oracle()[f"networks/mask_{i}"], dtype) for i in range(2)] if masked else None
    # Three layers deep, errors pass through up to six operations and the products between them.
    tolerance = 10 * OPERATION_TOLERANCE[dtype]
    expected = {name: oracle()[f"networks/{activation}/{loss}/{name}"][int(masked)] for name in ("outputs", "values")}
    gradients = unflatten(oracle()[f"networks/{activation}/{loss}/gradients"][int(masked)])

    assert_agrees(stage.arrays.to_host(network.forward(x, masks)), expected["outputs"], tolerance, "forward")
    assert_agrees(network.loss(x, y, masks), expected["values"], tolerance, "loss")
    for i, (got, gradient) in enumerate(zip(network.gradients(x, y, masks), gradients, strict=True)):
        assert_agrees(stage.arrays.to_host(got), gradient, tolerance, f"gradient of parameter {i}")


@pytest.mark.parametrize("optimizer_name", ["SGD", "RMSProp", "Adam"])
@pytest.mark.parametrize(("activation", "loss"), list(product(ACTIVATIONS, LOSSES)))
def test_training_for_twenty_steps_ends_where_pytorch_ends(
    stage: Stage, dtype: str, activation: str, loss: str, optimizer_name: str
) -> None:
    arguments = about()["network_optimizers"]
    row = list(arguments).index(optimizer_name)
    losses = oracle()[f"networks/{activation}/{loss}/trajectory_losses"][row]
    ends = unflatten(oracle()[f"networks/{activation}/{loss}/trajectory_ends"][row])
    network = oracle_network(stage, activation, loss, dtype)
    optimizer = getattr(stage.optimizers, optimizer_name)(**arguments[optimizer_name])
    batches = [stage.arrays.asarray(batch, dtype) for batch in oracle()["networks/x"]]
    answers = answers_for(stage, loss, dtype)

    got = [network.train_step(batches[s % 3], answers[s % 3], optimizer) for s in range(len(losses))]

    assert_agrees(got, losses, TRAJECTORY_TOLERANCE[dtype], "losses")
    for i, (parameter, end) in enumerate(zip(network.parameters, ends, strict=True)):
        assert_agrees(stage.arrays.to_host(parameter), end, TRAJECTORY_TOLERANCE[dtype], f"parameter {i}")
