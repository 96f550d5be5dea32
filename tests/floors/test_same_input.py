"""Input in other forms: big-endian, masked, bools, objects. Every stage takes and refuses the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shared.contract import LABEL_LOSSES, LOSSES, OPTIMIZERS, Stage, load_part, load_stage
from tests.stages import STAGE_PARAMS
from tests.wide import widened

RNG = np.random.default_rng(6)
X = RNG.normal(size=(3, 4)).astype("f4")
LOGITS = RNG.normal(size=(3, 5))
MASKED = np.ma.masked_greater(np.array([[1.0, 999.0], [3.0, 4.0]]), 100)
TINY = np.full((2, 2, 4, 4), 1e-30, "f4")
"""Products of these are below float32's smallest number."""


def host(stage: Stage, array: Any) -> np.ndarray:
    return np.asarray(stage.arrays.to_host(array))


@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_big_endian_numbers_are_the_same_numbers(stage: Stage, kind: str) -> None:
    big = X.astype(f">{kind}")
    np.testing.assert_array_equal(host(stage, stage.arrays.asarray(big)), X)
    weights, bias = RNG.normal(size=(4, 5)).astype(f">{kind}"), np.zeros(5, f">{kind}")
    of_big = stage.dense.Dense(weights, bias).forward(stage.arrays.asarray(big, f"float{8 * int(kind[1])}"))
    native = stage.dense.Dense(weights.astype(kind), bias.astype(kind))
    of_native = native.forward(stage.arrays.asarray(X.astype(kind), f"float{8 * int(kind[1])}"))
    np.testing.assert_array_equal(host(stage, of_big), host(stage, of_native))


@pytest.mark.parametrize("name", LABEL_LOSSES)
@pytest.mark.parametrize("kind", ["u1", "i2", "u8", ">i8", ">u4"])
def test_labels_are_whole_numbers_of_any_width(stage: Stage, name: str, kind: str) -> None:
    scores, labels = stage.arrays.asarray(LOGITS, "float64"), np.array([4, 0, 2])
    for function in (getattr(stage.losses, name), getattr(stage.losses, f"{name}_backward")):
        got, expected = function(scores, labels.astype(kind)), function(scores, labels)
        np.testing.assert_array_equal(host(stage, got), host(stage, expected))


@pytest.mark.parametrize("name", LABEL_LOSSES)
@pytest.mark.parametrize(
    "labels",
    [
        np.array([True, False, True]),
        [True, 2, 0],
        np.array([1.0, 0.0, 2.0]),
        ["1", "0", "2"],
    ],
    ids=["bool", "a bool among numbers", "float", "text"],
)
def test_labels_that_are_no_whole_numbers_are_refused(stage: Stage, name: str, labels: Any) -> None:
    with pytest.raises(TypeError, match=f"{name}: labels must be whole numbers, got "):
        getattr(stage.losses, name)(stage.arrays.asarray(LOGITS, "float64"), labels)


@pytest.mark.parametrize("values", [MASKED, list(MASKED), [list(MASKED)]], ids=["array", "rows", "lists of rows"])
def test_what_hides_behind_a_mask_is_refused(stage: Stage, values: Any) -> None:
    with pytest.raises(TypeError, match="lose its mask"):
        stage.arrays.asarray(values)
    with pytest.raises(TypeError, match=r"labels: .*lose its mask"):
        stage.losses.softmax_cross_entropy(stage.arrays.asarray(LOGITS), np.ma.array([1, 2, 3], mask=[0, 1, 0]))


@pytest.mark.parametrize("kind", ["u8", "u1", "i4", ">i8", ">u8"])
def test_indices_of_a_pool_are_whole_numbers_of_any_width(stage: Stage, kind: str) -> None:
    x = stage.arrays.asarray(RNG.normal(size=(2, 2, 4, 4)))
    output, indices = stage.pooling.max_pool2d(x, 2)
    expected = stage.pooling.max_pool2d_backward(output, indices, (2, 2, 4, 4))
    got = stage.pooling.max_pool2d_backward(output, host(stage, indices).astype(kind), (2, 2, 4, 4))
    np.testing.assert_array_equal(host(stage, got), host(stage, expected))


@pytest.mark.parametrize("kind", ["i8", "u1", "f2", "?"])
def test_running_statistics_that_would_be_cut_are_refused(stage: Stage, kind: str) -> None:
    if stage.number == 1:
        pytest.skip("a list of whole numbers takes a float: nothing is cut")
    running = np.zeros(4, kind)
    if stage.number == 4:
        running = load_part(stage.name, "backend").cuda.to_device(running)
    ones = stage.arrays.asarray(np.ones(4))
    with pytest.raises(TypeError, match="running_mean: expected float32 or float64 to change in place, got "):
        stage.batch_norm.batch_norm(stage.arrays.asarray(X), ones, ones, running, ones, True)


@pytest.mark.parametrize(
    "values",
    [X.astype(object), [[10**400, 1, 2, 3]], [[None, 1.0, 2.0, 3.0]], np.zeros((1, 4), [("field", "f4")])],
    ids=["objects", "400 digits", "None", "records"],
)
def test_what_is_no_real_number_of_64_bits_is_refused(stage: Stage, values: Any) -> None:
    network = stage.network.Network([4, 3])
    for function in (stage.arrays.asarray, network.forward, lambda x: network.loss(x, [0])):
        with pytest.raises(TypeError, match="asarray: expected real numbers, got "):
            function(values)
    with pytest.raises(TypeError, match=r"real numbers|see asarray"):
        stage.activations.softmax(values)


@pytest.mark.parametrize("name", LABEL_LOSSES)
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 10**30, 1], r"labels\[1\] is a whole number of 100 bits, expected 0 to 4"),
        (np.array([2**64 - 1, 1, 2], "u8"), rf"labels\[0\] is {2**64 - 1}, expected"),
    ],
    ids=["1e30", "uint64"],
)
def test_labels_beyond_64_bits_are_told_from_what_is_no_number(
    stage: Stage, name: str, labels: Any, message: str
) -> None:
    for function in (getattr(stage.losses, name), getattr(stage.losses, f"{name}_backward")):
        with pytest.raises(ValueError, match=message):
            function(stage.arrays.asarray(LOGITS, "float64"), labels)


class TestWhenNumPyRaises:
    """After np.seterr(all="raise") every stage gives the numbers that it gave before."""

    @pytest.fixture(params=[widened(param) if "stage4" in param.id else param for param in STAGE_PARAMS])
    def stage(self, request: pytest.FixtureRequest) -> Stage:
        """Stage 4 computes with NumPy on the host alone what others find: its cases are wide."""
        return load_stage(request.param)

    @pytest.mark.parametrize("values", [[1e300, 2.0], [1e-300, 2.0]], ids=["too large", "too small"])
    def test_a_float64_that_float32_has_not(self, stage: Stage, values: list[float]) -> None:
        with np.errstate(all="raise"):
            got = host(stage, stage.arrays.asarray(np.array(values), "float32"))
        assert float(got[0]) in (values[0], np.inf, 0.0)

    @pytest.mark.parametrize("name", LOSSES)
    def test_losses_of_numbers_too_large_to_square(self, stage: Stage, name: str) -> None:
        outputs = stage.arrays.asarray(np.array([[1e30, -1e30, 1e-30]], "f4"))
        answers = np.array([1]) if name in LABEL_LOSSES else stage.arrays.asarray([[1e30, 1e-30, 1.0]])
        with np.errstate(all="raise"):
            raised = getattr(stage.losses, name)(outputs, answers)
            getattr(stage.losses, f"{name}_backward")(outputs, answers)
        with np.errstate(all="ignore"):
            assert raised == getattr(stage.losses, name)(outputs, answers)

    def test_products_too_small_for_float32(self, stage: Stage) -> None:
        arrays, images = stage.arrays.asarray, stage.arrays.asarray(TINY)
        matrix, ones = arrays(TINY[0, 0]), arrays(np.ones(2))
        with np.errstate(all="raise"):
            for rung in (*stage.matmul.LADDER.values(), stage.matmul.matmul_tn, stage.matmul.matmul_nt):
                rung(matrix, matrix)
            for rung in stage.convolution.CONVOLUTION_LADDER.values():
                output = rung(images, images, ones)
            stage.convolution.conv2d_backward(output, images, images)
            pooled = stage.pooling.average_pool2d(images, 2)
            stage.pooling.average_pool2d_backward(pooled, TINY.shape, 2)
            norm = stage.batch_norm.BatchNorm(ones, ones)
            norm.backward(norm.forward(images, training=True))
            dense = stage.dense.Dense(matrix, arrays(np.ones(4)))
            dense.backward(dense.forward(matrix))

    @pytest.mark.parametrize("name", OPTIMIZERS)
    def test_steps_too_small_and_too_large_for_float32(self, stage: Stage, name: str) -> None:
        def stepped(errors: Any) -> np.ndarray:
            optimizer = getattr(stage.optimizers, name)(1e-3, weight_decay=0.1)
            p = stage.arrays.asarray(np.array([[1e-44, 1.0, 1e30]], "f4"))
            with np.errstate(all=errors):
                for _ in range(2):
                    optimizer.step([p], [stage.arrays.asarray(np.array([[1e-40, 1e-30, 1e30]], "f4"))])
            return host(stage, p)

        np.testing.assert_array_equal(stepped("raise"), stepped("ignore"))

    def test_a_step_of_a_network(self, stage: Stage) -> None:
        def stepped(errors: Any) -> list[np.ndarray]:
            network, optimizer = stage.network.Network([4, 3, 3]), stage.optimizers.Adam(0.1)
            with np.errstate(all=errors):
                losses = [network.train_step(X.astype("f8") * 1e-30, [0, 1, 2], optimizer) for _ in range(2)]
                network.predict(X * 1e30)
            return [np.array(losses), *(host(stage, p) for p in network.parameters)]

        for got, expected in zip(stepped("raise"), stepped("ignore"), strict=True):
            np.testing.assert_array_equal(got, expected)

    def test_the_callers_own_setting_is_there_again_after_each_call(self, stage: Stage) -> None:
        huge = stage.arrays.asarray(np.full((2, 2), 1e30, "f4"))
        with np.errstate(all="raise"):
            for _ in range(2):
                stage.matmul.matmul(huge, huge)
                with pytest.raises(ValueError, match="columns must equal"):
                    stage.matmul.matmul(huge, stage.arrays.asarray(np.ones((3, 2))))
                assert set(np.geterr().values()) == {"raise"}
                stage.losses.mean_squared_error(huge, stage.arrays.asarray(np.zeros((2, 2))))
