"""The check of convolution, pooling and batch normalisation: right rooms pass, and each planted mistake is found."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from shared import contract
from shared.checks.batch_norm_ops import batch_norm_checks
from shared.checks.convolution_ops import FORMS, Form, convolution_checks, forward_scale, rung_checks
from shared.checks.gradients import NETWORKS, check_gradients
from shared.checks.image_scales import convolved, transformed
from shared.checks.pair import Pair
from shared.checks.pooling_ops import pooling_checks
from shared.checks.problems import SMALL, Problem, dense_problem, small_problems
from shared.checks.steps import trace_step, whole_step
from shared.checks.tolerance import Comparison, eps
from shared.checks.walk import walk
from shared.checks.winograd import matrices
from shared.layers import KINDS
from tests.shared.stage_params import STAGE_4_WIDE
from tests.wide import widely

REFERENCE = contract.load_stage("stage1_pure_python")
NUMPY = contract.load_stage("stage2_numpy")


def failures(found: Iterator[Comparison]) -> list[Comparison]:
    return [comparison for comparison in found if not comparison.ok]


def stacks(pair: Pair, rng: np.random.Generator) -> list[Problem]:
    """A stack of dense layers for each activation and loss."""
    return [dense_problem(pair, rng, name, loss) for name in contract.ACTIVATIONS for loss in contract.LOSSES]


# Right rooms agree


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("seed", widely(range(30)))
def test_no_right_room_is_called_wrong(seed: int, dtype: str) -> None:
    pair, rng = Pair(NUMPY, NUMPY, dtype), np.random.default_rng(seed)
    for checks in (convolution_checks, pooling_checks, batch_norm_checks):
        assert [str(each) for each in failures(checks(pair, rng))] == []
    for problem in (*small_problems(pair, rng), *stacks(pair, rng)):
        assert [str(each) for each in failures(trace_step(pair, problem))] == []
        assert [str(each) for each in failures(whole_step(pair, problem))] == []


@pytest.mark.parametrize("name", [each for each in STAGE_4_WIDE if each.id != REFERENCE.name])
def test_the_check_covers_every_rung_every_gradient_and_every_parameter(name: str) -> None:
    stage = contract.load_stage(name)
    pair, rng = Pair(stage, REFERENCE, "float64"), np.random.default_rng(0)
    ops = {each.op for each in convolution_checks(pair, rng, FORMS[:2])}
    assert {f"CONVOLUTION_LADDER[{rung!r}]" for rung in stage.convolution.CONVOLUTION_LADDER} <= ops
    assert {f"conv2d_backward: {name}" for name in ("grad_input", "grad_weights", "grad_bias")} <= ops
    problem = small_problems(pair, rng)[1]
    steps = list(whole_step(pair, problem))
    gradients = [each for each in steps if each.op.startswith("Network.gradients: ")]
    assert len(gradients) == len(problem.parameters)
    assert {each.layer for each in gradients} == {"1", "2", "4.1", "4.2", "4.4", "4.5", "8", "10"}


@pytest.mark.parametrize("title", NETWORKS)
@pytest.mark.parametrize("name", STAGE_4_WIDE)
def test_the_gradient_is_the_slope_of_the_loss(name: str, title: str) -> None:
    found = check_gradients(contract.load_stage(name), *NETWORKS[title], name=title)
    assert found.ok, str(found)
    assert found.checked > 25
    assert str(found).startswith(f"{title}, ")


def test_a_wrong_gradient_is_named_with_its_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    right = NUMPY.batch_norm.BatchNorm.backward

    def wrong(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = right(self, *args, **kwargs)
        self.grad_gamma *= 1.00001
        return result

    monkeypatch.setattr(NUMPY.batch_norm.BatchNorm, "backward", wrong)
    found = check_gradients(NUMPY, *NETWORKS["residual block"], name="residual block")
    assert not found.ok
    assert found.parameter in ("layer 2, BatchNorm: gamma", "layer 4.2, BatchNorm: gamma")


# Mistakes are found

Wrong = Callable[[Any], Callable[..., Any]]
"""The right function -> a wrong one."""


def both_axes(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else tuple(value)


def flipped(right: Any) -> Any:
    return lambda x, w, b, *more, **options: right(x, w[:, :, ::-1, ::-1].copy(), b, *more, **options)


def padded_above_and_left_only(right: Any) -> Any:
    def wrong(x: Any, w: Any, b: Any, stride: Any = 1, padding: Any = 0, **options: Any) -> Any:
        p, q = both_axes(padding)
        return right(np.pad(x, ((0, 0), (0, 0), (2 * p, 0), (2 * q, 0))), w, b, stride, 0, **options)

    return wrong


def strides_exchanged(right: Any) -> Any:
    def wrong(x: Any, w: Any, b: Any, stride: Any = 1, padding: Any = 0, **options: Any) -> Any:
        return right(x, w, b, both_axes(stride)[::-1], padding, **options)

    return wrong


def bias_forgotten(right: Any) -> Any:
    return lambda x, w, b, *more, **options: right(x, w, np.zeros_like(b), *more, **options)


def last_image_forgotten(right: Any) -> Any:
    def wrong(grad: Any, x: Any, w: Any, *more: Any, **options: Any) -> Any:
        into, _, bias = right(grad, x, w, *more, **options)
        return into, right(grad[:-1], x[:-1], w, *more, **options)[1] if len(x) > 1 else np.zeros_like(w), bias

    return wrong


def last_of_equals_wins(right: Any) -> Any:
    def wrong(x: Any, size: Any, stride: Any = None) -> Any:
        output, places = right(x[:, :, ::-1, ::-1], size, stride)  # right only where all windows lie side by side
        height, width = x.shape[2:]
        return output[:, :, ::-1, ::-1], height * width - 1 - places[:, :, ::-1, ::-1]

    return wrong


def overlaps_overwritten(right: Any) -> Any:
    def wrong(grad: Any, places: Any, shape: Any) -> Any:
        result = np.zeros((shape[0] * shape[1], shape[2] * shape[3]), grad.dtype)
        flat = places.reshape(len(result), -1)
        result[np.arange(len(result))[:, np.newaxis], flat] = grad.reshape(len(result), -1)
        return result.reshape(shape)

    return wrong


def not_divided(right: Any) -> Any:
    return lambda grad, shape, size, stride=None: right(grad, shape, size, stride) * np.prod(both_axes(size))


def biased_variance_tracked(right: Any) -> Any:
    def wrong(
        x: Any, gamma: Any, beta: Any, mean: Any, var: Any, training: Any, momentum: Any = 0.1, *more: Any
    ) -> Any:
        before = var.copy()
        result = right(x, gamma, beta, mean, var, training, momentum, *more)
        count = x.size // x.shape[1]
        if training:
            var[...] = (1 - momentum) * before + (var - (1 - momentum) * before) * (count - 1) / count
        return result

    return wrong


def mean_of_squares(right: Any) -> Any:
    def wrong(
        x: Any, gamma: Any, beta: Any, mean: Any, var: Any, training: Any, momentum: Any = 0.1, *more: Any
    ) -> Any:
        output, saved = right(x, gamma, beta, mean, var, training, momentum, *more)
        if training:
            axes = (0, 2, 3)[: x.ndim - 1]
            shape = (-1, *(1,) * (x.ndim - 2))
            m = x.mean(axis=axes)
            v = np.maximum((x * x).mean(axis=axes) - m * m, 0)
            hat = (x - m.reshape(shape)) / np.sqrt(v + 1e-5).reshape(shape)
            output = (gamma.reshape(shape) * hat + beta.reshape(shape)).astype(x.dtype)
        return output, saved

    return wrong


def mean_term_missing(right: Any) -> Any:
    def wrong(grad: Any, saved: Any) -> Any:
        into, gamma, beta = right(grad, saved)
        if saved.training:
            count = grad.size // grad.shape[1]
            into = into + (saved.gamma * saved.inverse * beta / count).reshape(-1, *(1,) * (grad.ndim - 2))
        return into.astype(grad.dtype), gamma, beta

    return wrong


MISTAKES: list[tuple[str, str, Wrong, Callable[..., Iterator[Comparison]], str]] = [
    ("convolution", "conv2d", flipped, convolution_checks, "conv2d"),
    ("convolution", "conv2d", padded_above_and_left_only, convolution_checks, "conv2d"),
    ("convolution", "conv2d", strides_exchanged, convolution_checks, "conv2d"),
    ("convolution", "conv2d", bias_forgotten, convolution_checks, "conv2d"),
    ("convolution", "conv2d_backward", last_image_forgotten, convolution_checks, "conv2d_backward: grad_weights"),
    ("pooling", "max_pool2d", last_of_equals_wins, pooling_checks, "max_pool2d: indices"),
    ("pooling", "max_pool2d_backward", overlaps_overwritten, pooling_checks, "max_pool2d_backward"),
    ("pooling", "average_pool2d_backward", not_divided, pooling_checks, "average_pool2d_backward"),
    ("batch_norm", "batch_norm", biased_variance_tracked, batch_norm_checks, "batch_norm: running_var"),
    ("batch_norm", "batch_norm", mean_of_squares, batch_norm_checks, "batch_norm"),
    ("batch_norm", "batch_norm_backward", mean_term_missing, batch_norm_checks, "batch_norm_backward: grad_input"),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("room", "function", "wrong", "checks", "op"), MISTAKES, ids=[each[2].__name__ for each in MISTAKES]
)
def test_a_planted_mistake_is_found_in_the_operation_that_has_it(
    monkeypatch: pytest.MonkeyPatch, room: str, function: str, wrong: Wrong, checks: Any, op: str, dtype: str
) -> None:
    module = getattr(NUMPY, room)
    monkeypatch.setattr(module, function, wrong(getattr(module, function)))
    found = failures(checks(Pair(NUMPY, REFERENCE, dtype), np.random.default_rng(0)))
    assert op in {each.op for each in found}
    layers = ("Conv2d.", "BatchNorm.", f"{function} without")  # which call the function
    assert all(each.op.startswith((function, *layers)) for each in found), {each.op for each in found}


@pytest.mark.parametrize("rung", list(NUMPY.convolution.CONVOLUTION_LADDER))
def test_a_rung_that_leaves_out_the_last_column_is_named(monkeypatch: pytest.MonkeyPatch, rung: str) -> None:
    ladder = NUMPY.convolution.CONVOLUTION_LADDER
    right = ladder[rung]

    def wrong(*args: Any, out: Any) -> None:
        out[..., :-1] = right(*args)[..., :-1]

    monkeypatch.setitem(ladder, rung, wrong)
    pair, form = Pair(NUMPY, REFERENCE, "float64"), Form((1, 2, 5, 4), (3, 2, 2, 2))
    x, weights, bias = (np.random.default_rng(0).random(shape) for shape in (form.x, form.weights, (3,)))
    (found,) = failures(rung_checks(pair, x, weights, bias, form))
    assert (found.op, found.index) == (f"CONVOLUTION_LADDER[{rung!r}]", (0, 0, 0, 2))
    assert np.isnan(found.got)


def test_a_layer_that_goes_wrong_in_a_network_is_named_with_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    right = NUMPY.convolution.conv2d

    def nudged(x: Any, *more: Any, **options: Any) -> Any:
        result = right(x, *more, **options)
        if x.shape[1:] == (3, 5, 6):  # the residual block's
            result[1, 2, 3, 4] += 1e-9
        return result

    monkeypatch.setattr(NUMPY.convolution, "conv2d", nudged)
    pair = Pair(NUMPY, REFERENCE, "float64")
    problem = small_problems(pair, np.random.default_rng(0))[1]
    found = failures(trace_step(pair, problem))
    assert {(each.op, each.layer, each.index) for each in found} >= {("conv2d", "4.1", (1, 2, 3, 4))}
    assert {each.layer for each in found} == {"4.1", "4.4"}


def shortcut_gradient_forgotten(monkeypatch: pytest.MonkeyPatch) -> str:
    block = NUMPY.network.Residual
    right = block.backward

    def wrong(self: Any, grad: Any, this_pass: Any) -> Any:
        given = grad.copy()
        return right(self, grad, this_pass) - given

    monkeypatch.setattr(block, "backward", wrong)
    return "Network.gradients: weights"


def statistics_changed(monkeypatch: pytest.MonkeyPatch) -> str:
    network = NUMPY.network.Network
    right = network.gradients

    def wrong(self: Any, *args: Any) -> Any:
        self.running_statistics[0][0] += 1e-3
        return right(self, *args)

    monkeypatch.setattr(network, "gradients", wrong)
    return "running_statistics[0] after Network.gradients"


def evaluation_by_the_batch(monkeypatch: pytest.MonkeyPatch) -> str:
    network = NUMPY.network.Network
    right = network.outputs
    monkeypatch.setattr(network, "outputs", lambda self, x, masks=None, training=False: right(self, x, masks, True))
    return "Network.outputs in evaluation"


@pytest.mark.parametrize("mistake", [shortcut_gradient_forgotten, statistics_changed, evaluation_by_the_batch])
def test_right_operations_that_are_put_together_wrongly_are_found(
    monkeypatch: pytest.MonkeyPatch, mistake: Callable[[pytest.MonkeyPatch], str]
) -> None:
    op = mistake(monkeypatch)
    pair = Pair(NUMPY, REFERENCE, "float32")
    problem = small_problems(pair, np.random.default_rng(0))[1]
    assert op in {each.op for each in failures(whole_step(pair, problem))}


# What the tolerances rest on


def test_the_walk_and_the_network_of_the_reference_agree() -> None:
    pair = Pair(NUMPY, NUMPY, "float64")
    rng = np.random.default_rng(3)
    for problem in (*small_problems(pair, rng), *stacks(pair, rng)):
        network = NUMPY.network.Network.from_parameters(
            problem.parameters, loss=problem.loss, dtype="float64", architecture=problem.architecture
        )
        x, y = problem.batches[0]
        step = walk(pair, problem, masks=True)
        slopes = [slope for op in step.ops for slope in op.slopes]
        assert step.loss == pytest.approx(network.loss(x, y, problem.masks or None, training=True), rel=1e-12)
        for slope, gradient in zip(slopes, network.gradients(x, y, problem.masks or None), strict=True):
            np.testing.assert_allclose(slope, gradient, rtol=0, atol=1e-12)


def test_together_the_small_networks_have_every_layer_and_every_loss() -> None:
    kinds = {type(each.layer).__name__ for architecture, _ in SMALL.values() for each in architecture.placed()}
    assert kinds == set(KINDS)
    assert {loss for _, loss in SMALL.values()} == set(contract.LOSSES)


def winograd(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """F(4x4, 3x3) of one image without padding, in the arrays' dtype; its size is a multiple of 4, plus 2."""
    a, g, b = (np.array(each, x.dtype) for each in matrices(4))
    tiles = np.lib.stride_tricks.sliding_window_view(x, (6, 6), axis=(2, 3))[:, :, ::4, ::4]
    sums = np.einsum("nchwab,ocab->nohwab", b @ tiles @ b.T, g @ weights @ g.T)
    results = a @ sums @ a.T
    n, o, rows, columns = results.shape[:4]
    return results.transpose(0, 1, 2, 4, 3, 5).reshape(n, o, 4 * rows, 4 * columns)


@pytest.mark.parametrize("kind", ["normal", "positive", "constant", "one pixel"])
@pytest.mark.parametrize("channels", [1, 17])
def test_winograd_in_float32_needs_its_own_tolerance_and_keeps_to_it(channels: int, kind: str) -> None:
    rng = np.random.default_rng(channels)
    x = rng.standard_normal((2, channels, 14, 10)).astype(np.float32)
    x = {"normal": x, "positive": np.abs(x), "constant": np.full_like(x, 0.7), "one pixel": np.zeros_like(x)}[kind]
    x[:, :, 5, 5] += 1
    weights = rng.standard_normal((3, channels, 3, 3)).astype(np.float32)
    exact = convolved(x.astype(float), weights.astype(float), (1, 1), (0, 0))
    k, scale = forward_scale({"winograd_4x4": None}, "conv2d", x, weights, np.zeros(3), (1, 1), (0, 0))
    apart = np.abs(winograd(x, weights) - exact) / (4 * eps("float32") * np.sqrt(k) * scale)
    assert apart.max() < 0.5
    assert np.all(transformed(x, weights, (0, 0), 4) > 2 * transformed(x, weights, (0, 0), 2))
    forgotten = np.abs(winograd(x[:, 1:], weights[:, 1:]) - exact) if channels > 1 else np.abs(exact)
    assert (forgotten / (4 * eps("float32") * np.sqrt(k) * scale)).max() > 100
