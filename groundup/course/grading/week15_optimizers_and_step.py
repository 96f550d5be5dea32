"""Week 15: the optimizers' kernels, and a whole training step, kernel by kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from groundup.course.checks.check import Check, Tally, Wrong, unchanged
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.exercise_checks import checks_of
from groundup.course.checks.mistakes import Mistake
from groundup.course.checks.source import uses_none_of
from groundup.course.grading.calling.kernel_launches import Launch, module
from groundup.course.grading.calling.kernels_on_host import numpy_instead_of_kernels
from groundup.course.grading.calling.launched_again import ONLY_NAN, kernel_checks
from groundup.course.grading.problems.kernel_optimizers import optimizer_exercise
from groundup.course.grading.problems.kernel_reductions import FLOAT64
from groundup.course.grading.problems.networks import Problem, network_gradients, network_loss
from shared.architectures import mlp
from shared.contract import STAGES, load_stage


def momentum() -> list[Check]:
    """The kernel of SGD with momentum."""
    return kernel_checks(optimizer_exercise([1], "{}"), special=ONLY_NAN)


def update() -> list[Check]:
    """The device function, inside the project's kernels."""
    kinds = [0, 1, 2, 3, 4]
    return kernel_checks(
        optimizer_exercise(kinds, "update in {}"), sizes=[(kind, 9, Launch(1, 16)) for kind in kinds], special=ONLY_NAN
    )


def loss_of(y: np.ndarray) -> str:
    """The loss that takes these labels, or targets."""
    return "mean_squared_error" if np.ndim(y) == 2 else "softmax_cross_entropy"


def slope_names(parameters: Sequence[np.ndarray]) -> list[str]:
    """The names of the gradients: dL/dW1, dL/db1, …"""
    return [f"dL/d{'Wb'[i % 2]}{i // 2 + 1}" for i in range(len(parameters))]


class Recording:
    """An optimizer that stores the arguments of its step, and halves the parameters."""

    def __init__(self) -> None:
        self.given: list[tuple[list[Any], list[Any], list[np.ndarray]]] = []

    def step(self, parameters: Any, gradients: Any) -> None:
        """Stores the arrays, and the gradients' numbers at this time."""
        self.given.append((list(parameters), list(gradients), [each.copy_to_host() for each in gradients]))
        for each in parameters:
            each.copy_to_device(each.copy_to_host() / 2)


def network_step() -> list[Check]:
    """The step of a whole network, with NumPy in place of the kernels."""
    products = numpy_instead_of_kernels()
    network = module("network").Network
    op_by_op = module("plans.choice").op_by_op  # it checks the arguments, and calls _step

    def network_on(kind: Any, parameters: Any, masks: Any, activation: str, loss: str) -> Any:
        widths = [len(parameters[0]), *(bias.size for bias in parameters[1::2])]
        architecture = mlp(widths, activation, 0.5 if masks else 0.0)
        return kind.from_parameters(parameters, loss=loss, dtype=FLOAT64, architecture=architecture)

    def batches(x: Any, y: Any, masks: Any) -> dict[str, tuple[Any, Any, Any]]:
        """The batch, one that is twice as large, one of a row, and one as large as the first, by what is said of them.

        x has other numbers in each.
        """
        every = np.arange(len(x))
        orders = {"": every, LARGER: np.concatenate([every, every]), SMALLER: every[:1], LAST: every[::-1]}
        return {
            name: (x[rows] * (1 - 0.3 * number), y[rows], [mask[rows] for mask in masks] if masks else None)
            for number, (name, rows) in enumerate(orders.items())
        }

    def call(x: Any, y: Any, parameters: Any, masks: Any, activation: str) -> dict[str, Any]:
        model, other = (network_on(network, parameters, masks, activation, loss_of(y)) for _ in range(2))
        results: dict[str, Any] = {}
        for name, batch in batches(x, y, masks).items():
            results |= {f"{key}{name}": value for key, value in step_of(model, *batch).items()}
            step_of(other, *batch)  # another network, whose numbers are the same, has its own arrays
        return results

    def step_of(net: Any, x: Any, y: Any, masks: Any) -> dict[str, Any]:
        optimizer = Recording()
        loss = op_by_op(net, x, y, optimizer, masks)
        if loss is None:
            raise Wrong("_step: no loss came back", got="None", cause="the loss of this batch is to be returned")
        steps_taken = len(optimizer.given)
        if steps_taken != 1:
            taken = f"optimizer.step was called {steps_taken} times"
            raise Wrong(taken, expected="once", cause="the parameters move once, when all gradients are known")
        parameters_given, gradients_given, gradients = optimizer.given[0]
        right = _same_arrays(parameters_given, net.parameters) and _same_arrays(gradients_given, net.layer_gradients)
        if not right:
            raise Wrong(
                "optimizer.step was given other arrays than network.parameters and network.layer_gradients",
                cause="both lists in their order, the network's own arrays: an optimizer changes them in place",
            )
        before = [parameter.copy_to_host() for parameter in net.parameters]
        alone = op_by_op(net, x, y, None, masks)
        gradients_alone = [gradient.copy_to_host() for gradient in net.layer_gradients]
        names = [f"{'Wb'[i % 2]}{i // 2 + 1}" for i in range(len(before))]
        after = [parameter.copy_to_host() for parameter in net.parameters]
        unchanged(Tally(), before, after, [f"without an optimizer {name}" for name in names])
        named = dict(zip(slope_names(gradients), gradients, strict=True))
        return {"loss": loss, **named, ALONE: in_a_row(alone, gradients_alone)}

    def reference(x: Any, y: Any, parameters: Any, masks: Any, activation: str) -> dict[str, Any]:
        results: dict[str, Any] = {}
        for number, (name, (some_x, some_y, some_masks)) in enumerate(batches(x, y, masks).items()):
            steps = []
            for halvings in (number, number + 1):  # before the optimizer's step, and after it without an optimizer
                halved = [parameter / 2**halvings for parameter in parameters]
                model = network_on(load_stage(STAGES[1]).network.Network, halved, some_masks, activation, loss_of(y))
                steps.append((model.loss(some_x, some_y, some_masks), model.gradients(some_x, some_y, some_masks)))
            (loss, gradients), alone = steps
            named = dict(zip(slope_names(parameters), gradients, strict=True))
            all_of_it = {"loss": loss, **named, ALONE: in_a_row(*alone)}
            results |= {f"{key}{name}": value for key, value in all_of_it.items()}
        return results

    def arguments(rng: np.random.Generator, size: tuple[Any, ...]) -> tuple[Any, ...]:
        rows, dropout, widths, activation, *loss = size
        parameters: list[np.ndarray] = []
        for inputs, outputs in pairwise(widths):
            parameters += [rng.standard_normal((inputs, outputs)), rng.standard_normal(outputs)]
        masks = [rng.integers(0, 2, (rows, width)) * 2.0 for width in widths[1:-1]] if dropout else None
        x, y = rng.standard_normal((rows, widths[0])), rng.integers(0, widths[-1], rows)
        return x, rng.standard_normal((rows, widths[-1])) if loss else y, parameters, masks, activation

    def mistaken(switch: str, text: str, place: int) -> Mistake:
        name = f"dL/d{'Wb'[place % 2]}{place // 2 + 1}"

        def wrong(x: Any, y: Any, parameters: Any, masks: Any, activation: str) -> Any:
            case = Problem(parameters, x, y, activation, loss_of(y), masks)
            return network_gradients(case, **{switch: False}).get(name) if case.layers > 1 else None

        return Mistake(text, wrong, name)

    def never_made(place: int) -> Mistake:
        def wrong(x: Any, y: Any, parameters: Any, masks: Any, activation: str) -> Any:
            return np.full(parameters[place].shape, np.nan) if place < len(parameters) else None

        return Mistake(
            "the gradient of the outputs was never computed: losses.gradient_of writes it into the array that it gets",
            wrong,
            f"dL/d{'Wb'[place % 2]}{place // 2 + 1}",
        )

    def never_called(place: int) -> Mistake:
        def wrong(x: Any, y: Any, parameters: Any, masks: Any, activation: str) -> Any:
            return np.zeros(parameters[place].shape) if place < len(parameters) else None

        return Mistake(
            "backward comes before the optimizer's step: it fills every layer's grad_weights and grad_bias",
            wrong,
            f"dL/d{'Wb'[place % 2]}{place // 2 + 1}",
        )

    def way(tally: Tally) -> None:
        uses_none_of(network._step, dict.fromkeys(OTHER_STEPS, WHOLE_STEP))(tally)
        x, y, parameters, masks, activation = STEP_BY_HAND
        products.clear()
        op_by_op(network_on(network, parameters, masks, activation, loss_of(y)), x, y, None, masks)
        if products.count("nt") >= len(parameters) // 2:  # each is the dL/dx of a layer
            tally.note(
                "the first layer's dL/dx is computed, and nothing needs it: backward takes needs_grad_input=False"
            )

    places = range(6)
    return checks_of(
        Exercise(
            call=call,
            reference=reference,
            show=lambda x, y, parameters, masks, activation: (
                f"_step, layers {[x.shape[1], *(bias.size for bias in parameters[1::2])]}, {len(x)} rows"
                + (", dropout" if masks else "")
                + (", mean_squared_error" if loss_of(y) == "mean_squared_error" else "")
            ),
            hand=[(STEP_BY_HAND, {**reference(*STEP_BY_HAND), **STEP_EXPECTED})],
            arguments=arguments,
            typical=(4, False, (5, 7, 6, 3), "tanh"),
            sizes=[
                (3, True, (5, 7, 4), "relu"),
                (4, True, (3, 6, 5, 4), "tanh"),
                (1, False, (2, 1), "relu"),
                (7, True, (1, 1, 3), "tanh"),
                (2, False, (2, 3), "relu"),
                (3, True, (4, 5, 2), "tanh", "mean_squared_error"),
                (3, True, (4, 5, 3, 2), "softmax"),
            ],
            terms=lambda x, y, parameters, masks, activation: 256,
            scale=lambda x, y, parameters, masks, activation: 100.0,
            mistakes=[
                *(mistaken(mistake, text, place) for mistake, text in STEP_MISTAKES.items() for place in places),
                Mistake(
                    "the loss is taken after the parameters have moved: it is that of the forward pass before",
                    lambda x, y, parameters, masks, activation: reference(
                        x, y, [parameter / 2 for parameter in parameters], masks, activation
                    )["loss"],
                    "loss",
                ),
                Mistake(
                    "the dropout masks are not used on the way forward: they are in `this_pass`",
                    lambda x, y, parameters, masks, activation: network_loss(
                        Problem(parameters, x, y, activation, loss_of(y))
                    ),
                    "loss",
                ),
                *map(never_made, places),
                *map(never_called, places),
            ],
            way=way,
        )
    )


LARGER, SMALLER, LAST = (f", of a {text}," for text in ("second, larger batch", "third batch of one row", "fourth"))

OTHER_STEPS = ("STEP_LADDER", "choice", "train_step", "gradients", "_checked_step", "resident")

ALONE = "the loss and all gradients without an optimizer"


def in_a_row(loss: Any, gradients: Sequence[np.ndarray]) -> np.ndarray:
    """A loss and gradients as one vector."""
    return np.concatenate([[float(loss)], *(each.ravel() for each in gradients)])


WHOLE_STEP = "this is a whole training step already: write this one operation by operation"

STEP_MISTAKES = {
    "slope": "the activation's derivative is left out on the way back",
    "masked": "the dropout mask is forgotten on the way back: where the output was dropped, the slope is 0",
}


STEP_BY_HAND = (
    np.array([[3.0]]),
    np.array([0]),
    [np.array([[2.0]]), np.array([-4.0]), np.array([[1.0, -1.0]]), np.array([-2.0, 2.0])],
    None,
    "relu",
)
"""z = 3 * 2 - 4 = 2, which ReLU lets pass; the outputs are 2 - 2 and 2 - 2, so that softmax is 1/2 and 1/2."""


STEP_EXPECTED = {
    "loss": 0.6931471805599453,
    "dL/dW1": [[-3.0]],
    "dL/db1": [-1.0],
    "dL/dW2": [[-1.0, 1.0]],
    "dL/db2": [-0.5, 0.5],
}
"""The slopes at the outputs are 1/2 - 1 and 1/2; at the hidden number -1/2 * 1 + 1/2 * -1 = -1."""


def _same_arrays(given: Sequence[Any], own: Sequence[Any]) -> bool:
    return len(given) == len(own) and all(a is b for a, b in zip(given, own, strict=True))


GRADES: dict[str, Callable[[], list[Check]]] = {
    "15.1": momentum,
    "15.2": update,
    "15.3": network_step,
}
