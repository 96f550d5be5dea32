"""Week 3: a step of gradient descent, on lists of lists that change in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from groundup.course.checks.check import Check, Wrong
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.repeated import equal, overwrite
from groundup.course.grading.calling.on_lists import graded, stage
from groundup.course.grading.problems.optimizer_steps import (
    SGD_ALL,
    SGD_HAND,
    SGD_SIZES,
    Steps,
    sgd_mistakes,
    sgd_steps,
    state_name,
    steps_case,
    steps_scale,
)

NOT_IN_PLACE = (
    "nothing has changed: the numbers have to change inside the lists that are given, p[i] -= …; a new list is lost"
)


LEAVE_IT = "make a new list, and leave the gradient as it is: the caller still needs it"


def sgd_step() -> list[Check]:
    """SGD.step, on lists that must change in place."""
    sgd = stage().optimizers.SGD

    def call(case: Steps) -> dict[str, Any]:
        weights, bias = case.weights.tolist(), case.bias.tolist()
        optimizer, other = (sgd(case.rates[0], **case.settings) for _ in range(2))
        g, h = case.weights.tolist(), case.bias.tolist()  # the same memory in every step, as a network has it
        for gradients, rate in zip(case.gradients, case.rates, strict=True):
            optimizer.learning_rate = rate
            overwrite(g, gradients[0])
            overwrite(h, gradients[1])
            optimizer.step([weights, bias], [g, h])
            if not equal([g, h], [gradient.tolist() for gradient in gradients]):
                raise Wrong("the gradient was changed by the call", cause=LEAVE_IT)
            other.step([(-case.weights).tolist(), (-case.bias).tolist()], [g, h])
        after = {"weights": weights, "bias": bias}
        if case.settings.get("momentum"):
            after[state_name("velocity", "weights")], after[state_name("velocity", "bias")] = optimizer.state()[
                "buffers"
            ]["velocity"]
        return after

    return graded(
        Exercise(
            call=call,
            reference=sgd_steps,
            show=lambda case: f"SGD.step ({case})",
            hand=SGD_HAND,
            arguments=steps_case,
            typical=((3, 2), SGD_ALL),
            sizes=SGD_SIZES,
            scale=steps_scale,
            mistakes=sgd_mistakes(NOT_IN_PLACE),
        )
    )


GRADES: dict[str, Callable[[], list[Check]]] = {"3.6": sgd_step}
