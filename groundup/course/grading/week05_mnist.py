"""Week 5: the loss, backpropagation and the optimizers on NumPy arrays, which together learn MNIST."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from groundup.course.checks.check import Check, Tally, unchanged
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.mistakes import Mistake
from groundup.course.checks.repeated import handed, overwrite
from groundup.course.checks.source import without_loops
from groundup.course.grading.calling.on_arrays import (
    LOOP,
    OVERFLOWED,
    below,
    check_dtype,
    floor_below,
    graded,
    on_arrays,
    poisoned_scratch,
    speed_check,
    stage,
    twice,
)
from groundup.course.grading.problems.activations import SHAPES, naive_softmax, softmax_of
from groundup.course.grading.problems.cross_entropy import (
    CROSS_ENTROPY_BACKWARD_HAND,
    CROSS_ENTROPY_BACKWARD_MISTAKES,
    CROSS_ENTROPY_HAND,
    CROSS_ENTROPY_MISTAKES,
    LOSS_MAXIMUM_MISTAKES,
    SLOPE_MAXIMUM_MISTAKES,
    cross_entropies,
    cross_entropy_gradient,
    cross_entropy_slopes,
    labelled,
    loss_scale,
    naive_cross_entropy,
    naive_logarithm,
    one_hot,
    slopes_scale,
)
from groundup.course.grading.problems.networks import (
    Problem,
    backward_exercise,
    backward_of_first,
    by_name,
    loss_slopes,
    network_case,
    network_gradients,
)
from groundup.course.grading.problems.optimizer_steps import (
    ADAM_ALL,
    ADAM_HAND,
    ADAM_MISTAKES,
    ADAM_SIZES,
    SGD_ALL,
    SGD_HAND,
    SGD_SIZES,
    Steps,
    adam_steps,
    sgd_mistakes,
    sgd_steps,
    state_name,
    steps_case,
    steps_scale,
)
from shared.architectures import Architecture
from shared.layers import Activate, BatchNorm, Dense


def loss_on_arrays(function: Callable[..., Any], *names: str) -> Callable[..., Any]:
    """A loss as a number, called with scratch memory and without."""

    def call(*arguments: Any) -> dict[str, Any]:
        before = [np.copy(each) for each in arguments]
        arguments = tuple(map(handed, arguments))
        found = {
            "": function(*arguments, scratch=poisoned_scratch),
            "the result without scratch=": function(arguments[0], arguments[1].tolist()),
        }
        unchanged(Tally(), before, arguments, names)
        return found

    return call


IN_FLOAT32 = (
    "the losses are added up in float32, which has some 7 digits: a large loss swallows the small ones. Add them up "
    "with dtype=np.float64, as in per_row.mean(dtype=np.float64); _mean, further down in the file, does so"
)


def added_in_float64(function: Callable[..., Any]) -> Callable[[Tally], None]:
    """The check `types` of a loss: the terms of float32 logits are added up in float64.

    Each row's loss is a whole number that float32 holds. Their sum is not: beside 2^30 the next number that float32
    holds is 2^30 + 128, and the sum of the four is 2^30 + 189, in whatever order they are added up.
    """

    def check(tally: Tally) -> None:
        logits = np.zeros((4, 2), np.float32)
        losses = logits[:, 1] = 2.0**30, 63, 63, 63
        right = sum(losses) / 4
        case = f"{function.__name__} of float32 logits, whose four losses are 2^30, 63, 63 and 63"
        tally.trying(case)
        got = float(function(logits, np.zeros(4, np.int64)))
        tally.holds(
            abs(got - right) < 1e-3, f"{case}: wrong", expected=f"{right:.2f}", got=f"{got:.2f}", cause=IN_FLOAT32
        )

    return check


def softmax_cross_entropy() -> list[Check]:
    """Softmax cross-entropy."""
    function = stage().losses.softmax_cross_entropy
    loss_below = floor_below().losses.softmax_cross_entropy

    def rounded_to_zero(z: np.ndarray, labels: np.ndarray) -> float:
        with np.errstate(all="ignore"):
            return float(np.mean(-np.log(softmax_of(z)[np.arange(len(z)), labels])))

    exercise = Exercise(
        call=loss_on_arrays(function, "logits", "labels"),
        infinite=False,  # inf - inf is NaN in another form of the formula
        reference=lambda z, labels: {"": loss_below(z.tolist(), labels.tolist())},
        show=lambda z, labels: f"softmax_cross_entropy(logits {z.shape}, labels)",
        types=added_in_float64(function),
        way=without_loops(function, LOOP, of_size=lambda size: function(np.ones((3 * size, 2 * size)), [0] * 3 * size)),
        hand=CROSS_ENTROPY_HAND,
        arguments=labelled,
        typical=(4, 3),
        sizes=SHAPES,
        terms=lambda z, labels: z.size + 16,
        scale=loss_scale,
        mistakes=[
            *CROSS_ENTROPY_MISTAKES,
            Mistake(
                "a share has rounded to 0, and its logarithm is minus infinity: take the logarithm of the sum of exps, "
                "as the docstring does",
                rounded_to_zero,
            ),
            Mistake(OVERFLOWED, naive_cross_entropy),
            Mistake(OVERFLOWED, naive_logarithm),
            *LOSS_MAXIMUM_MISTAKES,
            Mistake(
                "[:, labels] takes these columns of every row: each row's own label is [np.arange(rows), labels]",
                lambda z, labels: float(np.mean(cross_entropies(z)[:, labels])) if len(z) > 1 else None,
            ),
        ],
    )
    return graded(
        exercise,
        speed_check(
            exercise,
            function,
            lambda z, labels: cross_entropies(z)[np.arange(len(z)), labels].mean(),
            lambda rng: labelled(rng, (3000, 4)),
        ),
    )


def softmax_cross_entropy_backward() -> list[Check]:
    """The gradient of softmax cross-entropy."""
    function = stage().losses.softmax_cross_entropy_backward
    call = on_arrays(function, lambda z, labels: z.shape, "logits", "labels")

    def columns(z: np.ndarray, labels: np.ndarray) -> np.ndarray:
        grad = softmax_of(z)
        grad[:, labels] -= 1
        return grad / len(z)

    exercise = Exercise(
        call=call,
        reference=below(floor_below().losses.softmax_cross_entropy_backward),
        show=lambda z, labels: f"softmax_cross_entropy_backward(logits {z.shape}, labels)",
        way=without_loops(function, LOOP, of_size=lambda size: function(np.ones((3 * size, 2 * size)), [0] * 3 * size)),
        hand=twice(CROSS_ENTROPY_BACKWARD_HAND),
        arguments=labelled,
        typical=(4, 3),
        sizes=SHAPES,
        gradient=cross_entropy_gradient(call),
        terms=lambda z, labels: z.shape[1] + 16,
        scale=slopes_scale,
        mistakes=[
            Mistake(
                "[:, labels] takes these columns of every row: each row's own label is [np.arange(rows), labels]",
                columns,
            ),
            *CROSS_ENTROPY_BACKWARD_MISTAKES,
            Mistake(OVERFLOWED, lambda z, labels: (naive_softmax(z) - one_hot(labels, z.shape[1])) / len(z)),
            *SLOPE_MAXIMUM_MISTAKES,
        ],
    )
    return graded(exercise, speed_check(exercise, function, cross_entropy_slopes, lambda rng: labelled(rng, (3000, 4))))


def network_backward() -> list[Check]:
    """backward: dL/dx and all gradients, also of a second batch."""

    def walked(network: Any, case: Problem, needed: bool) -> Any:
        masks = None if case.masks is None else [mask.copy() for mask in case.masks]
        this_pass = network._this_pass(True, masks)
        outputs = stage().network.forward(network.layers, case.x, this_pass)[-1]
        grad = loss_slopes(case, outputs).astype(outputs.dtype)
        grad_input = stage().network.backward(network.layers, grad, this_pass, needs_grad_input=needed)
        unchanged(Tally(), case.masks or [], masks or [], ["a dropout mask"] * len(masks or []))
        unchanged(Tally(), case.parameters, network.parameters, ["a parameter"] * len(case.parameters))
        return grad_input

    def call(case: Problem) -> dict[str, Any]:
        network = case.network(stage())
        walked(network, replace(case, x=-case.x), True)  # the next batch must not see this one's numbers
        of_x = walked(network, case, True)
        return {name: np.copy(gradient) for name, gradient in by_name(network.layer_gradients, of_x).items()}

    def way(tally: Tally) -> None:
        (problem,) = network_case(np.random.default_rng(9), ((3, 2, 2), 4, False))
        network = problem.network(stage())
        tally.trying("backward(…, needs_grad_input=False)")
        returned = backward_of_first(network, lambda: walked(network, problem, False))
        text, cause = "dL/dx of the first layer is computed all the same", "Dense.backward takes needs_grad_input, too"
        tally.holds(len(returned) == 1 and returned[0] is None, text, cause=cause)
        tally.holds(walked(network, problem, False) is None, "needs_grad_input=False: something came back", cause=cause)
        normalised = Architecture((2,), (BatchNorm(), Dense(3), Activate("tanh"), Dense(2)))
        case, networks = "the gradients of a network that begins with a batch normalisation", []
        tally.trying(case)
        for floor in (stage(), floor_below()):
            networks.append(floor.network.Network(normalised, seed=1, dtype="float64"))
        mine, right = (model.gradients([[1.0, 2.0], [3.0, -1.0], [0.5, 1.0]], [0, 1, 1]) for model in networks)
        for got, expected in zip(mine, right, strict=True):
            tally.equal(got, expected, case=case, terms=256, scale=10.0)

    added = "the gradient of the batch before is still in it: gradients are replaced, not added up"
    return graded(backward_exercise(call, [Mistake(added, _added, "dL/dW1")], way))


def _added(given: Problem) -> Any:
    first, second = (network_gradients(replace(given, x=x))["dL/dW1"] for x in (-given.x, given.x))
    return first + second


NOT_IN_PLACE = "nothing has changed: p = p - … makes a new array, which is lost; p -= … changes the one that is given"


def optimizer_checks(
    name: str,
    buffers: Mapping[str, Sequence[str]],
    reference: Callable[..., dict[str, Any]],
    mistakes: Sequence[Mistake],
    hand: Sequence[tuple[tuple[Steps], dict[str, Any]]],
    typical: dict[str, Any],
    sizes: Sequence[Any],
) -> list[Check]:
    """The checks of an optimizer's step.

    buffers: the names of its state's arrays, by the setting that needs them; "" for arrays that it always has
    """

    def after(floor: Any, case: Steps, give: Callable[[np.ndarray], Any]) -> dict[str, Any]:
        parameters = [give(case.weights), give(case.bias)]
        weights, bias = parameters
        optimizer, other = (getattr(floor.optimizers, name)(case.rates[0], **case.settings) for _ in range(2))
        memory = [give(gradient) for gradient in case.gradients[0]]  # the same in every step, as a network has it
        for gradients, rate in zip(case.gradients, case.rates, strict=True):
            optimizer.learning_rate = rate
            for there, values in zip(memory, gradients, strict=True):
                overwrite(there, values)
            optimizer.step(list(parameters), memory)  # a list of its own: an array put into it is lost
            unchanged(Tally(), gradients, memory, ["the weights' gradient", "the bias's gradient"])
            other.step([give(-case.weights), give(-case.bias)], memory)
        results = {"weights": weights, "bias": bias}
        state = optimizer.state()["buffers"]
        for setting, held_names in buffers.items():
            if not setting or case.settings.get(setting):
                for buffer in held_names:
                    arrays = state.get(buffer, (None, None))
                    results |= {
                        state_name(buffer, p): array for p, array in zip(("weights", "bias"), arrays, strict=True)
                    }
        return results

    def call(case: Steps) -> dict[str, Any]:
        results = after(stage(), case, np.copy)
        for parameter in ("weights", "bias"):
            check_dtype(f"{name}.step: {parameter}", results[parameter], case.weights.dtype)
        return results

    exercise = Exercise(
        call=call,
        reference=lambda case: after(floor_below(), case, lambda array: array.tolist()),
        show=lambda case: f"{name}.step ({case})",
        hand=hand,
        arguments=steps_case,
        typical=((3, 2), typical),
        sizes=sizes,
        scale=steps_scale,
        mistakes=mistakes,
        fresh=True,
        way=without_loops(
            getattr(stage().optimizers, name).step,
            f"{LOOP}; only the parameters, and the buffers of each, are looped over",
            1,
            lambda size: plain(*steps_case(np.random.default_rng(9), ((size, size), {}))),
        ),
    )

    def plain(case: Steps) -> None:
        optimizer = getattr(stage().optimizers, name)(case.rates[0], **case.settings)
        optimizer.step([case.weights.copy(), case.bias.copy()], case.gradients[0])

    def one_step(rng: np.random.Generator) -> tuple[Steps]:
        (case,) = steps_case(rng, ((400, 100), {}))
        return (replace(case, gradients=case.gradients[:1], rates=[0.1]),)

    return graded(exercise, speed_check(exercise, plain, lambda case: reference(case), one_step))


def sgd_step() -> list[Check]:
    """SGD.step, on arrays that must change in place."""
    return optimizer_checks(
        "SGD", {"momentum": ["velocity"]}, sgd_steps, sgd_mistakes(NOT_IN_PLACE), SGD_HAND, SGD_ALL, SGD_SIZES
    )


def adam_step() -> list[Check]:
    """Adam.step, on arrays that must change in place."""
    same = [Mistake(NOT_IN_PLACE, lambda s, name=name: getattr(s, name), name) for name in ("weights", "bias")]
    moments = {"": ["first_moment", "second_moment"]}
    return optimizer_checks("Adam", moments, adam_steps, [*same, *ADAM_MISTAKES], ADAM_HAND, ADAM_ALL, ADAM_SIZES)


GRADES: dict[str, Callable[[], list[Check]]] = {
    "5.1": softmax_cross_entropy,
    "5.2": softmax_cross_entropy_backward,
    "5.3": network_backward,
    "5.4": sgd_step,
    "5.5": adam_step,
}
