"""The equivalence check: correct stages pass at every level, and a bug is found where it sits."""

from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from shared import contract
from shared.checks import equivalence
from shared.checks.equivalence import LEVELS, Report, check_stage, computes_in
from shared.checks.ops import activation_checks
from shared.checks.pair import Pair
from shared.checks.problems import SMALL, Sides, dense_problem
from shared.checks.scales import loss_scales
from shared.checks.steps import trace_step, whole_step
from shared.checks.tolerance import Comparison, eps
from shared.checks.trajectory import trajectory
from tests.shared.stage_params import STAGE_4_WIDE
from tests.stages import STAGE_PARAMS, USABLE_STAGES
from tests.wide import WIDE, widely

REFERENCE = contract.load_stage("stage1_pure_python")
FAST_REFERENCE = "stage3_c" if "stage3_c" in USABLE_STAGES else REFERENCE.name
"""What a stage with a bug in it is compared with: pure Python would take most of the time."""
OTHERS = [parameter for parameter in STAGE_PARAMS if parameter.id != REFERENCE.name]
IN_FULL = pytest.mark.parametrize("name", [each for each in STAGE_4_WIDE if each.id != REFERENCE.name])
"""Every stage but the reference at every level. Stage 4, whose kernels take a minute to compile, is wide: a small
network of it is not."""
EPS = eps("float64")


@pytest.fixture(params=OTHERS)
def other(request: pytest.FixtureRequest) -> contract.Stage:
    """Every stage but the reference."""
    return contract.load_stage(request.param)


def checked(stage: contract.Stage, steps: int = 1) -> Report:
    """A short check, for bugs that a few networks find."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(equivalence, "ACTIVATIONS", ("relu", "tanh"))
        patch.setattr(equivalence, "LOSSES", ("mean_squared_error", "softmax_cross_entropy"))
        return check_stage(stage, contract.load_stage(FAST_REFERENCE), steps=steps, images=False)


def reference_of(name: str) -> contract.Stage:
    """What a right stage is compared with: stage 1. A short run compares the stages behind stage 2 with that, which it
    holds to stage 1: pure Python would take most of the time."""
    return REFERENCE if WIDE or name == "stage2_numpy" else contract.load_stage("stage2_numpy")


@cache
def whole_report(name: str, dtype: str) -> Report:
    """The check of a stage as it is, once for all tests that look at it."""
    steps = None if WIDE or name == "stage4_numba_cuda" else 4  # longer ones below
    return check_stage(contract.load_stage(name), reference_of(name), dtype, steps=steps)


# The report


def test_a_report_counts_by_level_and_names_the_first_divergence_where_its_layer_is_known() -> None:
    found = [
        Comparison("relu", None, (), 1.0, 1.0, 0.25, "op"),
        Comparison("relu_backward", None, (0,), 2.0, 1.0, 3.0, "op"),
        Comparison("relu", "1", (), 1.0, 1.0, 0.5, "layer"),
        Comparison("Dense.backward", "1", (), 2.0, 1.0, 9.0, "layer"),
        Comparison("relu_backward", "2", (3,), 2.0, 1.0, 4.0, "layer"),
        Comparison("relu_backward", "3", (3,), 2.0, 1.0, 5.0, "layer"),
    ]
    report = Report("stage2_numpy", "stage1_pure_python", "float64", found)
    assert not report.ok
    assert report.failures == [found[1], *found[3:]]
    assert report.first_divergence is found[4]
    assert report.failed_ops == ["relu_backward", "Dense.backward"]
    levels = [(level.level, level.checks, level.failed, level.worst) for level in report.levels()]
    assert levels == [("op", 2, 1, found[1]), ("layer", 4, 3, found[3])]
    assert report.summary().splitlines() == [
        "stage2_numpy DISAGREES with stage1_pure_python in float64",
        "  op: 1 of 2 checks failed; worst: relu_backward, index (0,), 3 tolerances apart",
        "  layer: 3 of 4 checks failed; worst: Dense.backward, layer 1, 9 tolerances apart",
        f"  first divergence: {found[4]}",
    ]
    assert Report("", "", "", found[:2]).first_divergence is found[1]


# Correct stages agree


@pytest.mark.parametrize("name", ["SGD", "RMSProp", "Adam"])
def test_gradients_that_round_as_on_another_machine_are_no_divergence(
    monkeypatch: pytest.MonkeyPatch, numpy_stage: contract.Stage, name: str
) -> None:
    rng = np.random.default_rng(0)

    class Rounded(getattr(numpy_stage.optimizers, name)):  # type: ignore[misc]
        def step(self, parameters: Any, gradients: Any) -> None:
            unit = eps("float32") if parameters[0].dtype == np.float32 else 0.0
            noisy = [g + unit * np.max(np.abs(g)) * rng.uniform(-1, 1, g.shape) for g in gradients]
            super().step(parameters, [n.astype(g.dtype) for n, g in zip(noisy, gradients, strict=True)])

    monkeypatch.setattr(numpy_stage.optimizers, name, Rounded)
    pair = Pair(numpy_stage, numpy_stage, "float32")
    found = [
        comparison
        for activation in contract.ACTIVATIONS
        for loss in contract.LOSSES
        for steps in (1, 4)
        for comparison in trajectory(pair, dense_problem(pair, rng, activation, loss), name, steps=steps)
    ]
    assert [str(comparison) for comparison in found if not comparison.ok] == []


def test_every_second_step_of_a_trajectory_has_dropout(numpy_stage: contract.Stage) -> None:
    pair, dropped = Pair(numpy_stage, numpy_stage, "float64"), []

    def take(network: Any, x: Any, y: Any, optimizer: Any, masks: Any) -> None:
        dropped.append(masks is not None)
        network.train_step(x, y, optimizer, masks)

    problem = dense_problem(pair, np.random.default_rng(0), "relu", "hinge")
    assert all(comparison.ok for comparison in trajectory(pair, problem, "SGD", 3, take=take))
    assert dropped == [True, False, True]


@IN_FULL
@pytest.mark.parametrize("dtype", widely(["float64", "float32"]))
def test_every_stage_agrees_at_every_level(name: str, dtype: str) -> None:
    report = whole_report(name, dtype)
    assert report.ok, report.summary()
    assert [level.level for level in report.levels()] == ["op", "layer", "step", "trajectory"]
    assert f"{name} agrees with {reference_of(name).name} in {dtype}" in report.summary()


def test_a_small_network_of_every_stage_agrees_op_by_op_and_over_a_few_steps(
    other: contract.Stage, numpy_stage: contract.Stage
) -> None:
    pair = Pair(other, numpy_stage, "float64")
    problem = dense_problem(pair, np.random.default_rng(0), "tanh", "softmax_cross_entropy")
    found = [*trace_step(pair, problem), *whole_step(pair, problem, False), *trajectory(pair, problem, "Adam", 4)]
    assert {comparison.level for comparison in found} == {"layer", "step", "trajectory"}
    assert [str(comparison) for comparison in found if not comparison.ok] == []


def test_the_reference_answers_for_every_rung_of_its_own_ladder() -> None:
    report = check_stage(REFERENCE, REFERENCE)
    assert report.ok, report.summary()
    ops = {c.op for c in report.comparisons}
    assert {f"matmul.LADDER[{rung!r}]" for rung in REFERENCE.matmul.LADDER} <= ops
    assert {f"CONVOLUTION_LADDER[{rung!r}]" for rung in REFERENCE.convolution.CONVOLUTION_LADDER} <= ops


@pytest.mark.parametrize("full", [False, True])
def test_the_check_takes_every_problem_and_announces_its_levels(
    monkeypatch: pytest.MonkeyPatch, numpy_stage: contract.Stage, full: bool
) -> None:
    taken: Counter[str] = Counter()
    announced: list[tuple[str, float]] = []
    for name in ("op_checks", "image_op_checks"):
        monkeypatch.setattr(equivalence, name, lambda *_: [])
    for name in ("trace_step", "whole_step", "trajectory"):
        monkeypatch.setattr(equivalence, name, lambda *_, name=name: taken.update([name]) or [])
    check_stage(numpy_stage, REFERENCE, full=full, on_level=lambda *level: announced.append(level))
    assert tuple(dict.fromkeys(level for level, _ in announced)) == LEVELS
    assert all(0 <= share < 1 for _, share in announced)
    stacks, optimizers = len(contract.ACTIVATIONS) * len(contract.LOSSES), len(contract.OPTIMIZERS)
    larger = len(contract.ACTIVATIONS) if full else 0
    images = len(SMALL) + full  # pure Python leaves all known networks but LeNet-5 out
    one_hidden = 2 * len(contract.LOSSES)  # with and without dropout
    assert taken == {
        "trace_step": stacks + larger + images,
        "whole_step": stacks + larger + images + one_hidden,
        "trajectory": stacks * optimizers + (len(SMALL) * optimizers + 1 if full else len(SMALL)),
    }


@IN_FULL
def test_the_check_covers_every_op_and_every_rung(name: str) -> None:
    other = contract.load_stage(name)
    ops = {(c.level, c.op) for c in whole_report(name, "float64").comparisons}
    names = [*contract.ACTIVATIONS, *contract.LOSSES]
    for op in [*names, *(f"{each}_backward" for each in names)]:
        assert {("op", op), ("layer", op)} <= ops
    for rung in other.matmul.LADDER:
        assert ("op", f"matmul.LADDER[{rung!r}]") in ops
    for op in ("matmul", "matmul_tn", "matmul_nt", *(f"{optimizer}.step" for optimizer in contract.OPTIMIZERS)):
        assert ("op", op) in ops
    for result in ("forward", "backward: grad_input", "backward: grad_weights", "backward: grad_bias"):
        assert {("op", f"Dense.{result}"), ("layer", f"Dense.{result}")} <= ops
    results = (
        "outputs",
        "loss",
        "loss with dropout",
        "gradients: weights",
        "outputs in evaluation",
        "forward",
        "predict",
    )
    for result in results:
        assert ("step", f"Network.{result}") in ops
    for rung in getattr(other.network, "STEP_LADDER", {}):
        assert {("step", f"step ladder, {rung}"), ("step", f"step ladder, {rung} with dropout: bias")} <= ops


@pytest.mark.parametrize("optimizer", contract.OPTIMIZERS)
@pytest.mark.parametrize("loss", contract.LOSSES)
@pytest.mark.parametrize("activation", contract.ACTIVATIONS)
@IN_FULL
def test_every_parameter_agrees_to_1e_10_after_100_steps_in_float64(
    name: str, activation: str, loss: str, optimizer: str
) -> None:
    other = contract.load_stage(name)
    pair = Pair(other, REFERENCE, "float64")
    problem = dense_problem(pair, np.random.default_rng(0), activation, loss, dropout=0.0)
    sides = Sides(pair, problem)
    options = {"SGD": {"momentum": 0.9, "nesterov": True, "weight_decay": 1e-4}}.get(optimizer, {})
    ours, theirs = (getattr(stage.optimizers, optimizer)(0.01, **options) for stage in (other, REFERENCE))
    for step in range(100):
        batch = problem.batches[step % len(problem.batches)]
        sides.ours.train_step(*sides.for_stage(*batch), ours)
        sides.theirs.train_step(*sides.for_reference(*batch), theirs)
    for start, got, expected in zip(problem.parameters, sides.ours.parameters, sides.theirs.parameters, strict=True):
        assert not np.array_equal(pair.from_reference(expected), start)
        np.testing.assert_allclose(pair.from_stage(got), pair.from_reference(expected), rtol=1e-10, atol=0)


def test_a_stage_is_not_checked_in_a_dtype_that_it_has_not() -> None:
    assert computes_in(REFERENCE, "float64")
    assert not computes_in(REFERENCE, "float32")
    with pytest.raises(ValueError, match="stage1_pure_python does not compute in float32"):
        check_stage(REFERENCE, REFERENCE, "float32")


# Bugs are found where they sit


def spoil(monkeypatch: pytest.MonkeyPatch, room: Any, name: str, change: Callable[[Any], None]) -> None:
    """Let a function of a stage compute its result and then change it in place (it may be a caller's buffer)."""
    real = getattr(room, name)

    def wrong(*args: Any, **kwargs: Any) -> Any:
        result = real(*args, **kwargs)
        change(result)
        return result

    monkeypatch.setattr(room, name, wrong)


def negate(array: np.ndarray) -> None:
    np.negative(array, out=array)


Plant = Callable[[pytest.MonkeyPatch, Any], None]


def relu_gradient_negated(patch: pytest.MonkeyPatch, stage: Any) -> None:
    spoil(patch, stage.activations, "relu_backward", negate)


def bias_gradient_negated(patch: pytest.MonkeyPatch, stage: Any, shape: tuple[int, int] | None = None) -> None:
    real = stage.dense.Dense.backward

    def wrong(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = real(self, *args, **kwargs)
        if shape in (None, self.weights.shape):
            negate(self.grad_bias)
        return result

    patch.setattr(stage.dense.Dense, "backward", wrong)


def bias_gradient_of_one_layer_negated(patch: pytest.MonkeyPatch, stage: Any) -> None:
    bias_gradient_negated(patch, stage, (7, 4))


def last_term_left_out(patch: pytest.MonkeyPatch, stage: Any) -> None:
    patch.setitem(stage.matmul.LADDER, "einsum", lambda a, b: a[:, :-1] @ b[:-1])


def transpose_returned(patch: pytest.MonkeyPatch, stage: Any) -> None:
    patch.setitem(stage.matmul.LADDER, "outer_products", lambda a, b: (a @ b).T)


def averaged_over_the_batch_alone(patch: pytest.MonkeyPatch, stage: Any) -> None:
    def batch_mean(gradient: np.ndarray) -> None:
        gradient *= gradient.shape[1]

    spoil(patch, stage.losses, "mean_squared_error_backward", batch_mean)


def bias_correction_forgotten(patch: pytest.MonkeyPatch, stage: Any) -> None:
    class UncorrectedAdam(stage.optimizers.Adam):  # type: ignore[misc,name-defined]
        def step(self, parameters: Any, gradients: Any) -> None:
            before = [p.copy() for p in parameters]
            super().step(parameters, gradients)
            buffers = self.state()["buffers"]
            for p, old, m, v in zip(parameters, before, buffers["first_moment"], buffers["second_moment"], strict=True):
                p[...] = old - self.learning_rate * m / (np.sqrt(v) + self.epsilon)

    patch.setattr(stage.optimizers, "Adam", UncorrectedAdam)


def network_gradient_negated(patch: pytest.MonkeyPatch, stage: Any) -> None:
    spoil(patch, stage.network.Network, "gradients", lambda gradients: negate(gradients[1]))


def not_written_yet(patch: pytest.MonkeyPatch, stage: Any) -> None:
    def unwritten(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("tanh is not written yet")

    patch.setattr(stage.activations, "tanh", unwritten)


@pytest.mark.parametrize(
    ("plant", "op", "layer", "text"),
    [
        # A dense layer, its activation and its dropout are three layers of the architecture.
        (relu_gradient_negated, "relu_backward", "2", " tolerances apart"),
        (bias_gradient_negated, "Dense.backward: grad_bias", "1", ""),
        (bias_gradient_of_one_layer_negated, "Dense.backward: grad_bias", "4", ""),
        (last_term_left_out, "matmul.LADDER['einsum']", None, ""),
        (transpose_returned, "matmul.LADDER['outer_products']", None, "got shape (3, 1), expected (1, 3)"),
        (averaged_over_the_batch_alone, "mean_squared_error_backward", "7", ""),
        (bias_correction_forgotten, "Adam.step", None, "(Adam, step 1, parameter 0)"),
        (network_gradient_negated, "Network.gradients: bias", "1", ""),
        (not_written_yet, "tanh", "2", "raised NotImplementedError: tanh is not written yet"),
    ],
)
def test_a_bug_is_named_with_its_op_and_its_layer(
    monkeypatch: pytest.MonkeyPatch, numpy_stage: contract.Stage, plant: Plant, op: str, layer: str | None, text: str
) -> None:
    plant(monkeypatch, numpy_stage)
    report = checked(numpy_stage)
    found = report.first_divergence
    assert found is not None
    assert (found.op, found.layer) == (op, layer)
    assert text in str(found)
    assert {c.op for c in report.failures if c.level in ("op", "layer")} <= {op}


@pytest.mark.parametrize("name", ["relu_backward", "leaky_relu_backward"])
def test_a_derivative_that_is_wrong_only_where_z_is_0_is_found(
    monkeypatch: pytest.MonkeyPatch, numpy_stage: contract.Stage, name: str
) -> None:
    right = getattr(numpy_stage.activations, name)

    def at_least(grad_output: Any, z: Any, output: Any, **options: Any) -> Any:
        return np.where(z == 0, grad_output, right(grad_output, z, output, **options))

    monkeypatch.setattr(numpy_stage.activations, name, at_least)
    found = list(activation_checks(Pair(numpy_stage, REFERENCE, "float64"), np.random.default_rng(0), (2, 3)))
    assert {each.op for each in found if not each.ok} == {name}


def test_a_wrong_element_is_named_with_its_index(monkeypatch: pytest.MonkeyPatch, numpy_stage: contract.Stage) -> None:
    def nudge(array: np.ndarray) -> None:
        if array.shape == (6, 4):  # the traced network's second hidden layer, and no shape of the op level
            array[4, 1] += 1e-9

    spoil(monkeypatch, numpy_stage.activations, "tanh", nudge)
    report = checked(numpy_stage)
    found = report.first_divergence
    assert found is not None
    assert (found.op, found.layer, found.index, found.level) == ("tanh", "5", (4, 1), "layer")
    assert {c.op for c in report.failures if c.level == "layer"} == {"tanh"}


def test_a_training_step_that_sometimes_does_nothing_is_found_at_the_trajectory_level(
    monkeypatch: pytest.MonkeyPatch, numpy_stage: contract.Stage
) -> None:
    real = numpy_stage.network.Network.train_step
    counts: dict[int, int] = {}

    def lazy(self: Any, *arguments: Any) -> Any:
        counts[id(self)] = counts.get(id(self), 0) + 1
        return None if counts[id(self)] == 3 else real(self, *arguments)

    monkeypatch.setattr(numpy_stage.network.Network, "train_step", lazy)
    report = checked(numpy_stage, steps=4)
    found = report.first_divergence
    assert found is not None
    assert (found.op, found.layer, found.level) == ("trained weights", "1", "trajectory")
    assert {c.level for c in report.failures} == {"trajectory"}


@pytest.mark.parametrize("name", contract.ACTIVATIONS)
def test_a_relative_error_of_30_roundings_in_one_activation_is_caught(
    monkeypatch: pytest.MonkeyPatch, numpy_stage: contract.Stage, name: str
) -> None:
    def drift(array: np.ndarray) -> None:
        array *= 1.0 + 30 * EPS

    spoil(monkeypatch, numpy_stage.activations, name, drift)
    pair = Pair(numpy_stage, REFERENCE, "float64")
    found = [each for each in activation_checks(pair, np.random.default_rng(0), (6, 5)) if not each.ok]
    assert {each.op for each in found} == {name}
    assert max(each.tolerances for each in found) < 30


# Scales


@pytest.mark.parametrize("loss", contract.LABEL_LOSSES)
def test_the_scale_of_a_loss_covers_its_terms_before_they_cancel(loss: str) -> None:
    # Subtracting two logits near 1e4 leaves a small loss, but not a small rounding error.
    value, _ = loss_scales(loss, np.array([[1e4, 1e4 - 1.0]]), np.array([0]), np.zeros((1, 2)))
    assert value >= 1e4 / 2


@pytest.mark.parametrize(
    "maximum",
    [lambda z: np.maximum(z.max(axis=1, keepdims=True), 0), lambda z: z.max(), lambda z: z[0].max()],
)
def test_a_softmax_that_subtracts_another_maximum_is_found_in_rows_far_apart(
    monkeypatch: pytest.MonkeyPatch, numpy_stage: contract.Stage, maximum: Callable[[np.ndarray], Any]
) -> None:
    def wrong(z: np.ndarray, out: Any = None, scratch: Any = None) -> np.ndarray:
        exps = np.exp(z - maximum(z))
        return np.asarray(exps / exps.sum(axis=1, keepdims=True))

    monkeypatch.setattr(numpy_stage.activations, "softmax", wrong)
    pair = Pair(numpy_stage, REFERENCE, "float64")
    with np.errstate(all="ignore"):
        found = [c for c in activation_checks(pair, np.random.default_rng(0), (6, 5)) if not c.ok and c.op == "softmax"]
    assert found
    assert all("far apart" in c.case for c in found if "about" not in c.case)
