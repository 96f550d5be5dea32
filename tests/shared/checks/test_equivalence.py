"""The equivalence check: correct stages pass at every level, and a bug is found where it sits."""

import itertools
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from shared import contract
from shared.checks import equivalence
from shared.checks.equivalence import LEVELS, Report, check_stage, computes_in
from shared.checks.ops import MORE_SIZES, SIZES, activation_checks
from shared.checks.pair import Pair
from shared.checks.problems import SMALL, Problem, Sides, dense_problem
from shared.checks.scales import loss_scales
from shared.checks.tolerance import Comparison, eps
from shared.checks.trajectory import trajectory
from tests.stages import STAGE_PARAMS, USABLE_STAGES
from tests.wide import WIDE, widely

REFERENCE = contract.load_stage("stage1_pure_python")
FAST_REFERENCE = "stage3_c" if "stage3_c" in USABLE_STAGES else REFERENCE.name
"""What a stage with a bug in it is compared with: pure Python would take most of the time."""
OTHERS = [parameter for parameter in STAGE_PARAMS if parameter.id != REFERENCE.name]
EPS = eps("float64")


@pytest.fixture(params=OTHERS)
def other(request: pytest.FixtureRequest) -> contract.Stage:
    """Every stage but the reference."""
    return contract.load_stage(request.param)


@pytest.fixture
def numpy_stage() -> contract.Stage:
    """The stage that bugs are put into."""
    return contract.load_stage("stage2_numpy")


def checked(stage: contract.Stage, dtype: str = "float64") -> Report:
    """The check with the shortest trajectories: for bugs that the lower levels find."""
    return check_stage(stage, contract.load_stage(FAST_REFERENCE), dtype, steps=1, images=False)


def reference_of(name: str) -> contract.Stage:
    """What a right stage is compared with: stage 1. A short run compares the stages behind stage 2 with that, which it
    holds to stage 1: pure Python would take most of the time."""
    return REFERENCE if WIDE or name == "stage2_numpy" else contract.load_stage("stage2_numpy")


@cache
def whole_report(name: str, dtype: str) -> Report:
    """The check of a stage as it is, once for all tests that look at it."""
    return check_stage(contract.load_stage(name), reference_of(name), dtype)


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


def test_a_report_without_failures_agrees() -> None:
    right = Comparison("relu", None, (), 1.0, 1.0, 1.0, "op")
    report = Report("stage2_numpy", "stage1_pure_python", "float32", [right])
    assert report.ok
    assert report.first_divergence is None
    assert report.summary().splitlines() == [
        "stage2_numpy agrees with stage1_pure_python in float32",
        "  op: 1 checks; worst: relu, 1 tolerances apart",
    ]


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


@pytest.mark.parametrize("dtype", widely(["float64", "float32"]))
def test_every_stage_agrees_at_every_level(other: contract.Stage, dtype: str) -> None:
    report = whole_report(other.name, dtype)
    assert report.ok, report.summary()
    assert [level.level for level in report.levels()] == ["op", "layer", "step", "trajectory"]
    assert f"{other.name} agrees with {reference_of(other.name).name} in {dtype}" in report.summary()


@pytest.mark.parametrize("dtype", ["float32"])
def test_every_stage_agrees_with_stage_2_in_float64_as_the_reference(
    other: contract.Stage, numpy_stage: contract.Stage, dtype: str
) -> None:
    report = check_stage(other, numpy_stage, dtype, steps=1, images=False)
    assert report.ok, report.summary()


def test_the_reference_answers_for_every_rung_of_its_own_ladder() -> None:
    report = check_stage(REFERENCE, REFERENCE)
    assert report.ok, report.summary()
    ops = {c.op for c in report.comparisons}
    assert {f"matmul.LADDER[{rung!r}]" for rung in REFERENCE.matmul.LADDER} <= ops
    assert {f"CONVOLUTION_LADDER[{rung!r}]" for rung in REFERENCE.convolution.CONVOLUTION_LADDER} <= ops


@pytest.mark.parametrize(("full", "images"), [(False, True), (True, True), (False, False)])
def test_the_check_runs_each_level_with_all_its_problems(
    monkeypatch: pytest.MonkeyPatch, numpy_stage: contract.Stage, full: bool, images: bool
) -> None:
    def one(level: str, what: str) -> list[Comparison]:
        return [Comparison(what, None, (), 1.0, 1.0, 0.0, level)]

    def title(problem: Problem) -> str:
        return problem.title.split(", ")[-1] if "-" in problem.title else problem.title

    def of_problem(level: str) -> Callable[..., list[Comparison]]:
        return lambda pair, problem, *more: one(level, f"{title(problem)} {more[1] if level == 'trajectory' else 0}")

    monkeypatch.setattr(equivalence, "op_checks", lambda pair, rng, sizes: one("op", f"{len(sizes)} sizes"))
    monkeypatch.setattr(equivalence, "image_op_checks", lambda pair, rng, full: [one("op", f"images {full}")])
    for name, level in (("trace_step", "layer"), ("whole_step", "step"), ("trajectory", "trajectory")):
        monkeypatch.setattr(equivalence, name, of_problem(level))
    announced: list[tuple[str, float]] = []
    tell = lambda *level: announced.append(level)  # noqa: E731
    report = check_stage(numpy_stage, REFERENCE, full=full, images=images, on_level=tell)
    shares = {level: [share for name, share in announced if name == level] for level, _ in announced}
    assert all(of[0] == 0 and sorted(of) == of and of[-1] < 1 for of in shares.values())
    assert len(shares["trajectory"]) == sum(c.level == "trajectory" for c in report.comparisons)
    assert tuple(shares) == LEVELS == tuple(dict.fromkeys(c.level for c in report.comparisons))
    larger, losses, few = len(contract.ACTIVATIONS), len(contract.LOSSES), "5-7-4-3"
    small, optimizers = larger * losses, len(contract.OPTIMIZERS)
    sizes = len(SIZES) + (len(MORE_SIZES) if full else 0)
    expected = Counter({("op", f"{sizes} sizes"): 1, ("layer", f"{few} 0"): small, ("step", f"{few} 0"): small})
    expected[("step", "70-20-3 0")] = 2 * losses  # with one hidden layer, with and without dropout
    expected[("trajectory", f"{few} {100 if full else 20}")] = small * optimizers
    if full:
        expected += Counter({("layer", "67-31-17-10 0"): larger, ("step", "67-31-17-10 0"): larger})
    if images:
        expected[("op", f"images {full}")] = 1
        for name in (*SMALL, *(("lenet5",) if full else ())):  # pure Python leaves the other known networks out
            expected += Counter({("layer", f"{name} 0"): 1, ("step", f"{name} 0"): 1})
            steps, times = (2, 1) if name == "lenet5" else (30, optimizers if full else 1)
            expected[("trajectory", f"{name} {steps}")] = times
    assert Counter((c.level, c.op) for c in report.comparisons) == expected
    shorter = check_stage(numpy_stage, REFERENCE, steps=7)
    assert {c.op for c in shorter.comparisons if c.level == "trajectory"} == {f"{few} 7", *(f"{n} 7" for n in SMALL)}


def test_the_check_covers_every_op_and_every_rung(other: contract.Stage) -> None:
    ops = {(c.level, c.op) for c in whole_report(other.name, "float64").comparisons}
    names = [*contract.ACTIVATIONS, *contract.LOSSES]
    for name in [*names, *(f"{name}_backward" for name in names)]:
        assert {("op", name), ("layer", name)} <= ops
    for rung in other.matmul.LADDER:
        assert ("op", f"matmul.LADDER[{rung!r}]") in ops
    for name in ("matmul", "matmul_tn", "matmul_nt", *(f"{name}.step" for name in contract.OPTIMIZERS)):
        assert ("op", name) in ops
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
    for name in results:
        assert ("step", f"Network.{name}") in ops
    for name in getattr(other.network, "STEP_LADDER", {}):
        assert {("step", f"step ladder, {name}"), ("step", f"step ladder, {name} with dropout: bias")} <= ops


def trajectories() -> list[Any]:
    """(activation, loss, optimizer): each of them at least once; all further ones are wide."""
    every = list(itertools.product(contract.ACTIVATIONS, contract.LOSSES, contract.OPTIMIZERS))
    few = [
        (
            activation,
            contract.LOSSES[number % len(contract.LOSSES)],
            contract.OPTIMIZERS[number % len(contract.OPTIMIZERS)],
        )
        for number, activation in enumerate((*contract.ACTIVATIONS, *contract.ACTIVATIONS[1:]))
    ]
    return widely([*few, *(case for case in every if case not in few)], first=len(few))


@pytest.mark.parametrize(("activation", "loss", "optimizer"), trajectories())
def test_every_parameter_agrees_to_1e_10_after_100_steps_in_float64(
    other: contract.Stage, activation: str, loss: str, optimizer: str
) -> None:
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


def test_a_wrong_sign_in_relu_backward_is_named_with_layer_and_index(
    monkeypatch: pytest.MonkeyPatch, numpy_stage: contract.Stage
) -> None:
    spoil(monkeypatch, numpy_stage.activations, "relu_backward", negate)
    found = checked(numpy_stage).first_divergence
    assert found is not None
    # A dense layer, its activation and its dropout are three layers of the architecture.
    assert (found.op, found.layer) == ("relu_backward", "2")
    assert found.got == -found.expected != 0
    assert len(found.index) == 2
    assert found.tolerances > 1e12


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


@pytest.mark.parametrize(
    ("shape", "layer"), widely([((7, 4), "4"), (None, "1"), ((5, 7), "1"), ((4, 3), "7")], first=2)
)
def test_a_wrong_sign_in_grad_bias_is_named_with_the_layer_it_is_in(
    monkeypatch: pytest.MonkeyPatch, numpy_stage: contract.Stage, shape: tuple[int, int] | None, layer: str
) -> None:
    real = numpy_stage.dense.Dense.backward

    def wrong(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = real(self, *args, **kwargs)
        if shape in (None, self.weights.shape):
            negate(self.grad_bias)
        return result

    monkeypatch.setattr(numpy_stage.dense.Dense, "backward", wrong)
    report = checked(numpy_stage)
    found = report.first_divergence
    assert found is not None
    assert (found.op, found.layer) == ("Dense.backward: grad_bias", layer)
    assert found.got == pytest.approx(-found.expected)
    assert {c.op for c in report.failures if c.level in ("op", "layer")} == {"Dense.backward: grad_bias"}


def test_a_rung_that_leaves_out_the_last_term_is_named(
    monkeypatch: pytest.MonkeyPatch, numpy_stage: contract.Stage
) -> None:
    monkeypatch.setitem(numpy_stage.matmul.LADDER, "einsum", lambda a, b: a[:, :-1] @ b[:-1])
    report = checked(numpy_stage)
    assert report.failed_ops == ["matmul.LADDER['einsum']"]
    assert sum(c.op == "matmul.LADDER['einsum']" for c in report.failures) == 8  # at every size


def test_a_rung_that_returns_the_transpose_is_named_with_both_shapes(
    monkeypatch: pytest.MonkeyPatch, numpy_stage: contract.Stage
) -> None:
    monkeypatch.setitem(numpy_stage.matmul.LADDER, "outer_products", lambda a, b: (a @ b).T)
    found = checked(numpy_stage).first_divergence
    assert found is not None
    assert found.op == "matmul.LADDER['outer_products']"
    assert found.note == "got shape (3, 1), expected (1, 3)"


def test_a_loss_gradient_averaged_over_the_batch_instead_of_all_elements_is_named(
    monkeypatch: pytest.MonkeyPatch, numpy_stage: contract.Stage
) -> None:
    def batch_mean(gradient: np.ndarray) -> None:
        gradient *= gradient.shape[1]

    spoil(monkeypatch, numpy_stage.losses, "mean_squared_error_backward", batch_mean)
    report = checked(numpy_stage)
    found = report.first_divergence
    assert found is not None
    assert (found.op, found.layer) == ("mean_squared_error_backward", "7")
    assert found.got == pytest.approx(3 * found.expected)
    assert {c.op for c in report.failures if c.level in ("op", "layer")} == {"mean_squared_error_backward"}


def test_an_adam_without_bias_correction_is_named(monkeypatch: pytest.MonkeyPatch, numpy_stage: contract.Stage) -> None:
    class UncorrectedAdam(numpy_stage.optimizers.Adam):  # type: ignore[misc,name-defined]
        def step(self, parameters: Any, gradients: Any) -> None:
            before = [p.copy() for p in parameters]
            super().step(parameters, gradients)
            buffers = self.state()["buffers"]
            for p, old, m, v in zip(parameters, before, buffers["first_moment"], buffers["second_moment"], strict=True):
                p[...] = old - self.learning_rate * m / (np.sqrt(v) + self.epsilon)

    monkeypatch.setattr(numpy_stage.optimizers, "Adam", UncorrectedAdam)
    report = checked(numpy_stage)
    found = report.first_divergence
    assert found is not None
    assert (found.op, found.case) == ("Adam.step", "Adam, step 1, parameter 0")
    assert {c.op for c in report.failures if c.level == "op"} == {"Adam.step"}
    assert {c.case.partition(",")[0] for c in report.failures if c.level == "trajectory"} == {"Adam"}


def test_a_network_that_puts_right_ops_together_wrongly_is_found_at_the_step_level(
    monkeypatch: pytest.MonkeyPatch, numpy_stage: contract.Stage
) -> None:
    spoil(monkeypatch, numpy_stage.network.Network, "gradients", lambda gradients: negate(gradients[1]))
    found = checked(numpy_stage).first_divergence
    assert found is not None
    assert (found.op, found.layer, found.level) == ("Network.gradients: bias", "1", "step")


def test_a_training_step_that_sometimes_does_nothing_is_found_at_the_trajectory_level(
    monkeypatch: pytest.MonkeyPatch, numpy_stage: contract.Stage
) -> None:
    real = numpy_stage.network.Network.train_step
    counts: dict[int, int] = {}

    def lazy(self: Any, *arguments: Any) -> Any:
        counts[id(self)] = counts.get(id(self), 0) + 1
        return None if counts[id(self)] == 3 else real(self, *arguments)

    monkeypatch.setattr(numpy_stage.network.Network, "train_step", lazy)
    report = check_stage(numpy_stage, contract.load_stage(FAST_REFERENCE), steps=4)
    found = report.first_divergence
    assert found is not None
    assert (found.op, found.layer, found.level) == ("trained weights", "1", "trajectory")
    assert {c.level for c in report.failures} == {"trajectory"}


def test_an_op_that_raises_is_reported_and_the_check_goes_on(
    monkeypatch: pytest.MonkeyPatch, numpy_stage: contract.Stage
) -> None:
    def unwritten(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("tanh is not written yet")

    monkeypatch.setattr(numpy_stage.activations, "tanh", unwritten)
    report = checked(numpy_stage)
    found = report.first_divergence
    assert found is not None
    assert (found.op, found.layer) == ("tanh", "2")
    assert found.note == "raised NotImplementedError: tanh is not written yet"
    assert {c.op for c in report.failures if c.level in ("op", "layer")} == {"tanh"}
    assert "DISAGREES" in report.summary()


@pytest.mark.parametrize("name", widely(reversed(contract.ACTIVATIONS), first=2))
def test_a_relative_error_of_30_roundings_in_one_activation_is_caught(
    monkeypatch: pytest.MonkeyPatch, numpy_stage: contract.Stage, name: str
) -> None:
    def drift(array: np.ndarray) -> None:
        array *= 1.0 + 30 * EPS

    spoil(monkeypatch, numpy_stage.activations, name, drift)
    found = checked(numpy_stage).first_divergence
    assert found is not None
    assert found.op == name
    assert 1 < found.tolerances < 30


# Scales


@pytest.mark.parametrize("loss", contract.LABEL_LOSSES)
def test_the_scale_of_a_loss_covers_its_terms_before_they_cancel(loss: str) -> None:
    # Subtracting two logits near 1e4 leaves a small loss, but not a small rounding error.
    value, _ = loss_scales(loss, np.array([[1e4, 1e4 - 1.0]]), np.array([0]), np.zeros((1, 2)))
    assert value >= 1e4 / 2


@pytest.mark.parametrize(
    "maximum",
    widely(
        [
            lambda z: np.maximum(z.max(axis=1, keepdims=True), 0),
            lambda z: z.max(),
            lambda z: z[0].max(),
            lambda z: np.abs(z).max(axis=1, keepdims=True),
        ]
    ),
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
