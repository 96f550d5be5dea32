"""What callers hand over: other orders of bytes, masks, bools, objects. Every stage takes and refuses the same."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from shared.architectures import Architecture
from shared.contract import LABEL_LOSSES, LOSSES, OPTIMIZERS, Stage, load_part, load_stage
from shared.layers import Activate, BatchNorm, Conv, Dense, Flatten, MaxPool, Residual
from tests.stages import USABLE_STAGES
from tests.wide import widely

RNG = np.random.default_rng(6)
X = RNG.normal(size=(3, 4)).astype("f4")
LOGITS = RNG.normal(size=(3, 5))
MASKED = np.ma.masked_greater(np.array([[1.0, 999.0], [3.0, 4.0]]), 100)
TINY = np.full((2, 2, 4, 4), 1e-30, "f4")
"""Products of these are below float32's smallest number."""


class GivesMasked:
    """An object that NumPy asks for its array, and that answers with a masked one."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ma.MaskedArray:
        return MASKED


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


@pytest.mark.parametrize("name", ["matmul", "leaky_relu", "softmax_cross_entropy", "average_pool2d", "conv2d"])
@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_operations_take_big_endian_arrays(name: str, kind: str) -> None:
    """The stages whose arrays are NumPy's: an operation is handed such an array without asarray before it."""
    images, kernels = RNG.normal(size=(1, 1, 4, 4)).astype(kind), RNG.normal(size=(1, 1, 2, 2)).astype(kind)
    calls: dict[str, Callable[[Any, Callable[[np.ndarray], np.ndarray]], Any]] = {
        "matmul": lambda stage, order: stage.matmul.matmul(order(X.astype(kind)), X.T.astype(kind).copy()),
        "leaky_relu": lambda stage, order: stage.activations.leaky_relu(order(X.astype(kind))),
        "softmax_cross_entropy": lambda stage, order: stage.losses.softmax_cross_entropy(
            order(X.astype(kind)), order(np.array([0, 1, 3]))
        ),
        "average_pool2d": lambda stage, order: stage.pooling.average_pool2d(order(images), 2),
        "conv2d": lambda stage, order: stage.convolution.conv2d(order(images), order(kernels), np.zeros(1, kind)),
    }
    for each in USABLE_STAGES[1:3]:
        stage = load_stage(each)
        expected = calls[name](stage, lambda array: array)
        got = calls[name](stage, lambda array: array.astype(array.dtype.newbyteorder(">")))
        np.testing.assert_array_equal(got, expected)
        assert np.asarray(got).dtype.isnative


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
        [True, False, True],
        [True, 2, 0],
        [2, np.True_, 0],
        np.array([1, 0, 2], object),
        np.array([1.0, 0.0, 2.0]),
        ["1", "0", "2"],
    ],
    ids=["bool", "bools", "a bool among numbers", "NumPy's bool among numbers", "object", "float", "text"],
)
def test_labels_that_are_no_whole_numbers_are_refused(stage: Stage, name: str, labels: Any) -> None:
    with pytest.raises(TypeError, match=f"{name}: labels must be whole numbers, got "):
        getattr(stage.losses, name)(stage.arrays.asarray(LOGITS, "float64"), labels)


@pytest.mark.parametrize(
    "values",
    [
        MASKED,
        np.ma.array([[1.0, 2.0]]),
        list(MASKED),
        tuple(MASKED),
        [[1.0, 2.0], MASKED[0]],
        [[[[np.ma.masked, 1.0]]]],
        [list(MASKED)],
        GivesMasked(),
        [GivesMasked()],
    ],
    ids=["array", "nothing hidden", "list", "tuple", "one row", "deep", "list of lists", "object", "list of objects"],
)
def test_what_hides_behind_a_mask_is_refused(stage: Stage, values: Any) -> None:
    expected = "expected real numbers" if stage.number == 1 and "GivesMasked" in str(values) else "lose its mask"
    with pytest.raises(TypeError, match=expected):
        stage.arrays.asarray(values)


def test_masked_labels_are_refused(stage: Stage) -> None:
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


class NoNumber:
    """An object that is no number, though Python can make one of it."""

    def __float__(self) -> float:
        return 1.0


@pytest.mark.parametrize(
    "values",
    [
        X.astype(object),
        np.array([[10**400, 1]], object),
        [[10**400, 1, 2, 3]],
        [[-(10**400), 1.5, 2, 3]],
        [[2**64, 1, 2, 3]],
        [[1, Fraction(1, 2), 3, 4]],
        [[NoNumber(), 1.0, 2.0, 3.0]],
        [[None, 1.0, 2.0, 3.0]],
        [["1", "2", "3", "4"]],
        np.zeros((1, 4), [("field", "f4")]),
    ],
    ids=[
        "objects",
        "a large object",
        "400 digits",
        "below",
        "65 bits",
        "Fraction",
        "object",
        "None",
        "text",
        "records",
    ],
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
        ([0, 1, -(10**5000)], r"labels\[2\] is a whole number of 16610 bits, expected"),
        ([2**64, 1, 2], r"labels\[0\] is a whole number of 65 bits, expected"),
        ([2**63, -1, 2], rf"labels\[0\] is {2**63}, expected"),
        (np.array([2**64 - 1, 1, 2], "u8"), rf"labels\[0\] is {2**64 - 1}, expected"),
    ],
    ids=["1e30", "-1e5000", "65 bits", "two widths", "uint64"],
)
def test_labels_beyond_64_bits_are_told_from_what_is_no_number(
    stage: Stage, name: str, labels: Any, message: str
) -> None:
    for function in (getattr(stage.losses, name), getattr(stage.losses, f"{name}_backward")):
        with pytest.raises(ValueError, match=message):
            function(stage.arrays.asarray(LOGITS, "float64"), labels)


PASSES: dict[str, Callable[[Any, Any], Any]] = {
    "train_step": lambda network, optimizer: network.train_step(X[:, :3], [0, 1, 2], optimizer),
    "outputs": lambda network, optimizer: network.outputs(X[:, :3]),
    "predict": lambda network, optimizer: network.predict(X[:, :3]),
    "gradients": lambda network, optimizer: network.gradients(X[:, :3], [0, 1, 2]),
    "loss": lambda network, optimizer: network.loss(X[:, :3], [0, 1, 2]),
    "forward": lambda network, optimizer: network.forward(X[:, :3]),
}
every_pass = pytest.mark.parametrize("compute", widely((pytest.param(c, id=n) for n, c in PASSES.items()), first=3))


@every_pass
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("layer_sizes", [3, 4, 3]),
        ("loss_name", "hinge"),
        ("dtype", "float64"),
        ("dtype", "float16"),
        ("activation", "tanh"),
        ("architecture", None),
        ("layers", []),
    ],
)
def test_a_network_whose_attributes_were_changed_computes_nothing(
    stage: Stage, compute: Callable[[Any, Any], Any], name: str, value: Any
) -> None:
    network, optimizer = stage.network.Network([3, 3, 3]), stage.optimizers.SGD(0.1)
    before = [host(stage, array).copy() for array in network.parameters]
    kept = getattr(network, name)
    setattr(network, name, value)
    with pytest.raises(ValueError, match="layer_sizes or layers were changed; make a new network with these"):
        compute(network, optimizer)
    setattr(network, name, kept)
    compute(network, stage.optimizers.SGD(1e-30))
    for array, same in zip(network.parameters, before, strict=True):
        np.testing.assert_allclose(host(stage, array), same, atol=1e-30)


IMAGES = Architecture(
    (1, 4, 4),
    (Conv(1, 3, padding=1), MaxPool(2), Residual((Conv(1, 3, padding=1), Activate("relu"))), Flatten(), Dense(3)),
)
OTHER_LAYERS = "layer_sizes or layers were changed; make a new network with these"
PART_CHANGES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "stride": (
        lambda n: setattr(n[0], "stride", (2, 2)),
        r"1: stride was changed to \(2, 2\), expected \(1, 1\)",
    ),
    "an array": (lambda n: setattr(n[0], "stride", np.array([1, 1])), r"layer 1: stride was changed to \[1 1\]"),
    "padding": (lambda n: setattr(n[2].layers[0], "padding", (0, 2)), r"layer 3.1: padding was changed to \(0, 2\)"),
    "size": (lambda n: setattr(n[1], "_description", MaxPool(2, 1)), r"layer 2: description was changed to MaxPool\("),
    "deleted": (lambda n: delattr(n[0], "padding"), "layer 1: padding was changed to None"),
    "order": (lambda n: n[2].layers.reverse(), OTHER_LAYERS),
    "one less": (lambda n: n[2].layers.pop(), OTHER_LAYERS),
    "no layers": (lambda n: delattr(n[2], "layers"), OTHER_LAYERS),
}


@pytest.mark.parametrize("change", PART_CHANGES)
def test_a_network_whose_layers_were_changed_inside_computes_nothing(stage: Stage, change: str) -> None:
    network, x = stage.network.Network(IMAGES), np.ones((2, 16), "f4")
    network.layers[0].stride = (*[1], 1)  # an equal one
    network.checked(x, [0, 1], None)
    apply, message = PART_CHANGES[change]
    apply(network.layers)
    with pytest.raises(ValueError, match=f"Network: .*{message}"):
        network.train_step(x, [0, 1], stage.optimizers.SGD(0.1))
    with pytest.raises(ValueError, match=f"Network: .*{message}"):
        network.outputs(x)


@every_pass
@pytest.mark.parametrize("attribute", ["weights", "bias"])
@pytest.mark.parametrize("value", [None, "text", 3, [[1.0, 2.0]]], ids=["None", "text", "number", "list"])
def test_what_cannot_be_a_layers_array_is_refused(
    stage: Stage, compute: Callable[[Any, Any], Any], attribute: str, value: Any
) -> None:
    network = stage.network.Network([3, 3, 3])
    compute(network, stage.optimizers.SGD(0.1))
    setattr(network.layers[2], attribute, value)
    with pytest.raises(ValueError, match=rf"{attribute} was replaced by .*; change it in place, or make a new "):
        compute(network, stage.optimizers.SGD(0.1))


@pytest.mark.parametrize("attribute", ["gamma", "beta", "grad_gamma", "running_mean", "running_var"])
@pytest.mark.parametrize("change", [delattr, lambda layer, name: setattr(layer, name, None)], ids=["deleted", "None"])
def test_an_array_that_is_gone_is_refused(stage: Stage, change: Callable[..., None], attribute: str) -> None:
    network = stage.network.Network(Architecture((3,), (BatchNorm(), Dense(3))))
    if attribute == "grad_gamma" and stage.number == 1:
        pytest.skip("each step makes new gradients")
    for layer, name in zip(network.layers, (attribute, attribute.replace("gamma", "weights")), strict=True):
        if hasattr(layer, name):
            kept = getattr(layer, name)
            change(layer, name)
            for compute in (PASSES["train_step"], PASSES["outputs"]):
                with pytest.raises(ValueError, match=rf"{name} was replaced by NoneType, expected"):
                    compute(network, stage.optimizers.SGD(0.1))
            setattr(layer, name, kept)


@every_pass
@pytest.mark.parametrize(
    ("own", "of"), [("weights", "weights"), ("bias", "bias"), ("weights", "grad_weights"), ("bias", "grad_bias")]
)
def test_one_array_in_two_places_is_refused(
    stage: Stage, compute: Callable[[Any, Any], Any], own: str, of: str
) -> None:
    network = stage.network.Network([3, 3, 3])
    setattr(network.layers[0], own, getattr(network.layers[2], of))
    with pytest.raises(ValueError, match=r"overlaps layer|share memory; give each memory of its own"):
        compute(network, stage.optimizers.SGD(0.1))


def test_an_array_that_fits_may_take_the_place_of_another(stage: Stage) -> None:
    network = stage.network.Network([3, 3, 3])
    network.layers[2].bias = stage.arrays.asarray([1.0, 2.0, 3.0])
    for compute in PASSES.values():
        compute(network, stage.optimizers.SGD(0.1))


class TestWhenNumPyRaises:
    """After np.seterr(all="raise") every stage gives the numbers that it gave before."""

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
