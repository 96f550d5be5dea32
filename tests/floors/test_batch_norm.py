"""Batch normalisation: mean 0 and deviation 1 for each channel, running averages, and gradients that are the slopes."""

from typing import Any

import numpy as np
import pytest

from shared.contract import Stage

SHAPES = [(4, 3, 5, 2), (7, 3), (2, 1, 1, 1), (1, 2, 3, 3), (13, 5, 1, 1), (2, 3, 17, 19)]


def host(stage: Stage, array: Any) -> np.ndarray:
    return np.asarray(stage.arrays.to_host(array))


def put(stage: Stage, *arrays: Any, dtype: str = "float64") -> list[Any]:
    """Arrays of the stage that nobody else holds: the running ones are changed in place."""
    return [stage.arrays.asarray(np.array(array, dtype), dtype) for array in arrays]


def axes_of(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (0, 2, 3) if len(shape) == 4 else (0,)


def spread(values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    return values.reshape(-1, *(1,) * (len(shape) - 2))


def reference(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, epsilon: float = 1e-5) -> np.ndarray:
    """The definition of the training pass, in float64."""
    mean, var = (spread(f(x, axis=axes_of(x.shape)), x.shape) for f in (np.mean, np.var))
    return spread(gamma, x.shape) * (x - mean) / np.sqrt(var + epsilon) + spread(beta, x.shape)


def random_case(shape: tuple[int, ...], seed: int = 0) -> tuple[np.ndarray, ...]:
    """x, gamma, beta, running_mean and running_var."""
    rng = np.random.default_rng(seed)
    channels = shape[1]
    x = (rng.normal(size=shape) + 0.5).astype(np.float32).astype(np.float64)
    return x, rng.normal(size=channels), rng.normal(size=channels), rng.normal(size=channels), rng.random(channels) + 1


def test_values_by_hand(stage: Stage, dtype: str) -> None:
    x, gamma, beta, mean, var = put(stage, [[1.0], [3.0]], [2.0], [10.0], [5.0], [7.0], dtype=dtype)
    output, _ = stage.batch_norm.batch_norm(x, gamma, beta, mean, var, True, momentum=0.5, epsilon=3.0)
    assert host(stage, output).tolist() == [[9.0], [11.0]]  # mean 2, variance 1, sqrt(1 + 3) = 2
    assert host(stage, mean).tolist() == [3.5]
    assert host(stage, var).tolist() == [4.5]  # the unbiased variance is 2
    output, _ = stage.batch_norm.batch_norm(x, gamma, beta, mean, var, False, epsilon=4.5)
    np.testing.assert_allclose(host(stage, output), [[10 - 5 / 3], [10 - 1 / 3]], rtol=1e-6)
    assert (host(stage, mean).tolist(), host(stage, var).tolist()) == ([3.5], [4.5])


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_training_output_and_running_statistics(stage: Stage, dtype: str, shape: tuple[int, ...]) -> None:
    x, gamma, beta, mean, var = random_case(shape)
    running_mean, running_var = put(stage, mean, var, dtype=dtype)
    how = {"training": True, "momentum": 0.25}
    given_arrays = put(stage, x, gamma, beta, dtype=dtype)
    output, _ = stage.batch_norm.batch_norm(*given_arrays, running_mean, running_var, **how)
    tolerance = {"float64": 1e-12, "float32": 1e-5}[dtype]
    axes, count = axes_of(shape), x.size // shape[1]
    np.testing.assert_allclose(host(stage, output), reference(x, gamma, beta), rtol=tolerance, atol=tolerance)
    unbiased = x.var(axis=axes) * count / (count - 1)
    for running, before, batch in ((running_mean, mean, x.mean(axis=axes)), (running_var, var, unbiased)):
        np.testing.assert_allclose(host(stage, running), 0.75 * before + 0.25 * batch, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("shape", [(16, 2, 6, 6), (64, 3)], ids=str)
def test_numbers_far_from_zero_keep_their_digits(stage: Stage, dtype: str, shape: tuple[int, ...]) -> None:
    """Mean 1e4 and deviation 1: the mean of the squares less the square of the mean would be nothing but rounding."""
    x = (1e4 + np.random.default_rng(0).normal(size=shape)).astype(np.float32).astype(np.float64)
    channels = shape[1]
    ones, zeros = np.ones(channels), np.zeros(channels)
    mean, var = put(stage, zeros, zeros, dtype=dtype)
    given_arrays = put(stage, x, ones, zeros, dtype=dtype)
    output, saved = stage.batch_norm.batch_norm(*given_arrays, mean, var, True, momentum=1.0)
    eps = float(np.finfo(dtype).eps)
    # Output and variance are as exact as the differences of these numbers, which are exact in float32.
    tolerance = 1e-9 if dtype == "float64" else 40 * eps
    np.testing.assert_allclose(host(stage, output), reference(x, ones, zeros), rtol=0, atol=tolerance)
    np.testing.assert_allclose(host(stage, mean), x.mean(axis=axes_of(shape)), rtol=2 * eps)
    unbiased = x.var(axis=axes_of(shape), ddof=1)
    np.testing.assert_allclose(host(stage, var), unbiased, rtol=tolerance)
    g = np.random.default_rng(1).normal(size=shape)
    _, grad_gamma, _ = stage.batch_norm.batch_norm_backward(*put(stage, g, dtype=dtype), saved)
    expected = (g * reference(x, ones, zeros)).sum(axis=axes_of(shape))
    np.testing.assert_allclose(host(stage, grad_gamma), expected, rtol=0, atol=tolerance * np.abs(g).sum())


@pytest.mark.parametrize("shape", [(4, 2, 8, 8), (1, 1, 3, 6), (96, 3)], ids=str)
def test_a_mean_between_two_numbers_of_float32_is_not_rounded_to_one(
    stage: Stage, dtype: str, shape: tuple[int, ...]
) -> None:
    """Half of the numbers are 10,000, half the next float32: a mean that is rounded to one doubles the variance."""
    apart = 2.0**-10
    second = np.arange(shape[3]) % 2 if len(shape) == 4 else np.arange(shape[0])[:, np.newaxis] % 2
    x = np.broadcast_to(1e4 + apart * second, shape)
    channels = shape[1]
    ones, zeros = np.ones(channels), np.zeros(channels)
    mean, var = put(stage, zeros - 1e4, zeros, dtype=dtype)
    given_arrays = put(stage, x, ones, zeros, dtype=dtype)
    output, _ = stage.batch_norm.batch_norm(*given_arrays, mean, var, True, momentum=0.5, epsilon=1e-30)
    signs = np.sign(x - 1e4 - apart / 2)
    np.testing.assert_allclose(host(stage, output), signs, rtol=1e-5)
    np.testing.assert_allclose(host(stage, mean), apart / 4, rtol=1e-6)  # half of -10,000 and half of the mean
    count = x.size // channels
    np.testing.assert_allclose(host(stage, var), (apart / 2) ** 2 * count / (count - 1) / 2, rtol=1e-5)


def test_a_channel_of_one_number_becomes_beta(stage: Stage, dtype: str) -> None:
    x, gamma, beta, mean, var = put(stage, np.full((3, 1, 2, 2), 0.1), [5.0], [-1.0], [0.0], [1.0], dtype=dtype)
    output, saved = stage.batch_norm.batch_norm(x, gamma, beta, mean, var, True)
    np.testing.assert_allclose(host(stage, output), -1.0, atol=1e-5)
    grad_x, _, _ = stage.batch_norm.batch_norm_backward(x, saved)
    np.testing.assert_allclose(host(stage, grad_x), 0.0, atol=1e-3)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", SHAPES[:4], ids=str)
def test_gradients_are_the_slopes(stage: Stage, shape: tuple[int, ...], training: bool) -> None:
    """Central differences of the loss sum(output * g) along a random direction, each with new running arrays."""
    x, gamma, beta, mean, var = random_case(shape)
    g, h = np.random.default_rng(1).normal(size=shape), 1e-5
    epsilon = 0.1  # so that two values a channel, too, have a curve that h resolves

    def loss(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> float:
        output, _ = stage.batch_norm.batch_norm(*put(stage, x, gamma, beta, mean, var), training, epsilon=epsilon)
        return float(np.sum(host(stage, output) * g))

    _, saved = stage.batch_norm.batch_norm(*put(stage, x, gamma, beta, mean, var), training, epsilon=epsilon)
    gradients = stage.batch_norm.batch_norm_backward(put(stage, g)[0], saved)
    for i, gradient in enumerate(gradients):
        start = (x, gamma, beta)[i]
        gradient = host(stage, gradient)
        assert gradient.shape == start.shape
        direction = np.random.default_rng(2).normal(size=start.shape)
        after, before = ([x, gamma, beta], [x, gamma, beta])
        after[i], before[i] = start + h * direction, start - h * direction
        slope = (loss(*after) - loss(*before)) / (2 * h)
        assert float(np.sum(gradient * direction)) == pytest.approx(slope, rel=1e-6, abs=1e-6)


def test_inputs_are_left_alone_and_may_have_gaps(stage: Stage, dtype: str) -> None:
    x, gamma, beta, mean, var = random_case((3, 4, 5, 6))
    strange = x.astype(dtype).transpose(3, 1, 0, 2).copy().transpose(2, 1, 3, 0)
    strange_x = strange.tolist() if stage.name == "stage1_pure_python" else strange
    arrays = put(stage, gamma, beta, mean, var, dtype=dtype)
    output, saved = stage.batch_norm.batch_norm(strange_x, *arrays, True)
    tolerance = {"float64": 1e-12, "float32": 1e-5}[dtype]
    np.testing.assert_allclose(host(stage, output), reference(x, gamma, beta), rtol=tolerance, atol=tolerance)
    stage.batch_norm.batch_norm_backward(strange_x, saved)
    assert np.array_equal(strange, x)
    assert np.array_equal(np.array(strange_x), x)
    for array, kept in zip(arrays[:2], (gamma, beta), strict=True):
        assert np.array_equal(host(stage, array), kept.astype(dtype))


def test_out_is_filled_whatever_it_held(stage: Stage, dtype: str) -> None:
    if stage.name == "stage1_pure_python":
        pytest.skip("stage 1 makes new lists and takes no out")
    for training in (True, False):
        x, gamma, beta, mean, var = put(stage, *random_case((3, 4, 5, 6)), dtype=dtype)
        expected, _ = stage.batch_norm.batch_norm(x, gamma, beta, *put(stage, mean, var, dtype=dtype), training)
        out = put(stage, np.full((3, 4, 5, 6), np.nan), dtype=dtype)[0]
        got, saved = stage.batch_norm.batch_norm(x, gamma, beta, mean, var, training, out=out)
        assert got is out
        assert np.array_equal(host(stage, got), host(stage, expected))
        wanted = host(stage, stage.batch_norm.batch_norm_backward(x, saved)[0]).copy()
        out = put(stage, np.full((3, 4, 5, 6), np.nan), dtype=dtype)[0]
        got = stage.batch_norm.batch_norm_backward(x, saved, out=out)[0]
        assert got is out
        assert np.array_equal(host(stage, got), wanted)


# ---- the layer


def test_a_layers_passes_are_the_functions_and_evaluation_uses_what_training_tracked(stage: Stage) -> None:
    x, gamma, beta, *_ = random_case((4, 3, 5, 2))
    layer = stage.batch_norm.BatchNorm(*put(stage, gamma, beta), momentum=0.5, epsilon=1e-3)
    mean, var = put(stage, np.zeros(3), np.ones(3))
    g = put(stage, np.random.default_rng(1).normal(size=x.shape))[0]
    for training in (True, True, False, False):
        (batch,) = put(stage, x * (2 if training else 1))
        expected, saved = stage.batch_norm.batch_norm(
            batch, *put(stage, gamma, beta), mean, var, training, momentum=0.5, epsilon=1e-3
        )
        assert np.array_equal(host(stage, layer.forward(batch, training)), host(stage, expected))
        wanted = stage.batch_norm.batch_norm_backward(g, saved)
        for got, want in zip((layer.backward(g), layer.grad_gamma, layer.grad_beta), wanted, strict=True):
            assert np.array_equal(host(stage, got), host(stage, want))
        assert np.array_equal(host(stage, layer.running_mean), host(stage, mean))
        assert np.array_equal(host(stage, layer.running_var), host(stage, var))


def test_a_layer_keeps_copies_and_begins_with_mean_0_and_variance_1(stage: Stage) -> None:
    gamma, beta, mean, var = put(stage, [1.0, 2.0], [0.0, 0.0], [3.0, 4.0], [5.0, 6.0])
    layer = stage.batch_norm.BatchNorm(gamma, beta, mean, var)
    for array in (gamma, beta, mean, var):
        array[0] = 100.0
    kept = [host(stage, array).tolist() for array in (layer.gamma, layer.beta, layer.running_mean, layer.running_var)]
    assert kept == [[1.0, 2.0], [0.0, 0.0], [3.0, 4.0], [5.0, 6.0]]
    layer = stage.batch_norm.BatchNorm(gamma, beta)
    assert [host(stage, array).tolist() for array in (layer.running_mean, layer.running_var)] == [[0, 0], [1, 1]]
    assert [host(stage, array).tolist() for array in (layer.grad_gamma, layer.grad_beta)] == [[0, 0], [0, 0]]


def test_backward_before_forward_is_rejected(stage: Stage) -> None:
    layer = stage.batch_norm.BatchNorm(*put(stage, [1.0], [0.0]))
    with pytest.raises(ValueError, match=r"^BatchNorm\.backward: there was no forward pass yet, so "):
        layer.backward(put(stage, [[1.0], [2.0]])[0])


@pytest.mark.parametrize("errors", ["raise", "ignore"])
@pytest.mark.parametrize("size", [1e150, 1e160, 1e300])
@pytest.mark.parametrize("shape", [(6, 3), (2, 3, 5, 7), (3, 3, 17, 19)])
def test_values_without_a_finite_variance_give_beta(stage: Stage, shape: Any, size: float, errors: Any) -> None:
    """Squares of 1e300 are inf in float64, so that 1 / sqrt(variance) is 0; no stage makes NaN of inf - inf."""
    rng = np.random.default_rng(5)
    values, slopes = rng.normal(size=shape) * size, rng.normal(size=shape)
    with np.errstate(all=errors):
        layer = stage.batch_norm.BatchNorm(*put(stage, [1.0, 2.0, 3.0], [0.5, 0.0, -1.0]))
        x, grad = put(stage, values, slopes)
        output = host(stage, layer.forward(x, training=True))
        grad_x = host(stage, layer.backward(grad))
    spread = (1, 3, *(1,) * (len(shape) - 2))
    if size == 1e150:
        assert np.isfinite(output).all()
        assert np.isfinite(host(stage, layer.running_var)).all()
        return
    np.testing.assert_array_equal(output, np.broadcast_to(np.reshape([0.5, 0.0, -1.0], spread), shape))
    np.testing.assert_array_equal(grad_x, np.zeros(shape))
    np.testing.assert_array_equal(host(stage, layer.grad_gamma), np.zeros(3))
    np.testing.assert_array_equal(host(stage, layer.running_var), np.full(3, np.inf))
    assert np.isfinite(host(stage, layer.running_mean)).all()


class OfTwo:
    """What one of two processes gets to know of all rows: told before, from what both have said."""

    def __init__(self, share: float) -> None:
        self.share = share
        self.said: dict[str, np.ndarray] = {}
        self.whole: dict[str, Any] = {}

    def moments(self, count: int, mean: Any, squares: Any) -> Any:
        self.said["moments"] = np.array([np.full(len(mean), float(count)), mean, squares])
        return self.whole.get("moments", (count, np.array(mean), np.array(squares)))

    def sums(self, *sums: Any) -> np.ndarray:
        self.said["sums"] = self.share * np.array(sums)
        return self.whole.get("sums", self.said["sums"])


@pytest.mark.parametrize("shape", [(7, 3), (7, 3, 4, 5)], ids=["rows", "images"])
def test_two_processes_that_have_parts_of_a_batch_normalise_as_one(stage: Stage, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(5)
    x, grad = rng.normal(50.0, 3.0, shape), rng.normal(size=shape)
    gamma, beta = rng.random(3) + 0.5, rng.normal(size=3)
    make, array, host = stage.batch_norm.BatchNorm, stage.arrays.asarray, stage.arrays.to_host
    alone = make(array(gamma, "float64"), array(beta, "float64"))
    expected = np.asarray(host(alone.forward(array(x, "float64"), training=True)))
    expected_grad = np.asarray(host(alone.backward(array(grad, "float64"))))
    parts = slice(0, 4), slice(4, 7)
    layers = [make(array(gamma, "float64"), array(beta, "float64")) for _ in parts]
    for layer, rows in zip(layers, parts, strict=True):
        layer.whole_batch = OfTwo(len(x[rows]) / 7)

    def forward() -> list[np.ndarray]:
        pairs = zip(layers, parts, strict=True)
        return [np.asarray(host(each.forward(array(x[rows], "float64"), training=True))) for each, rows in pairs]

    def backward() -> list[np.ndarray]:
        """The gradients of two losses that are means over the own rows: larger than that of the whole batch's."""
        pairs = zip(layers, parts, strict=True)
        return [
            np.asarray(host(each.backward(array(grad[rows] / each.whole_batch.share, "float64"))))
            * each.whole_batch.share
            for each, rows in pairs
        ]

    forward()
    said = [layer.whole_batch.said["moments"] for layer in layers]
    total = x.size // 3
    mean = sum(count * own for count, own, _ in said) / total
    squares = sum(own + count * (center - mean) ** 2 for count, center, own in said)
    for layer in layers:
        layer.whole_batch.whole["moments"] = total, mean, squares
        layer.running_mean[:], layer.running_var[:] = array([0.0] * 3, "float64"), array([1.0] * 3, "float64")
    np.testing.assert_allclose(np.concatenate(forward()), expected, rtol=0, atol=1e-12)
    backward()
    sums = sum(layer.whole_batch.said["sums"] for layer in layers)
    for layer in layers:
        layer.whole_batch.whole["sums"] = sums
    np.testing.assert_allclose(np.concatenate(backward()), expected_grad, rtol=0, atol=1e-12)
    for name in ("grad_gamma", "grad_beta", "running_mean", "running_var"):
        one = np.asarray(host(getattr(alone, name)))
        for layer in layers:
            np.testing.assert_allclose(np.asarray(host(getattr(layer, name))), one, rtol=1e-12, atol=1e-12)
