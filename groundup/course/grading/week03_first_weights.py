"""Week 3: the first weights. One random weight of a layer before a ReLU."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from groundup.course.checks.check import Check, Wrong
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.calling.on_lists import graded
from shared import initialize

PROMISED = (
    "Python promises only of random() that its numbers for a seed are the same in every version: _normal makes a "
    "normal number of two of them"
)

IN_STEP = (
    "all floors draw the same numbers in the same order, so that a seed gives the same network on each: _normal draws "
    "two for a weight"
)

UNIFORM = "one random number makes a uniform weight, as in he_uniform: _normal makes a normal one of two"


class Known:
    """A random generator whose numbers are known. It has the one method that all versions of Python share."""

    def __init__(self, numbers: Sequence[float]) -> None:
        self._numbers = numbers
        self.drawn = 0

    def random(self) -> float:
        """The next number; after the last one the first again."""
        self.drawn += 1
        return self._numbers[(self.drawn - 1) % len(self._numbers)]

    def __getattr__(self, name: str) -> Any:
        raise Wrong(f"he_normal uses rng.{name}", expected="rng.random, through _normal", cause=PROMISED)


def normal_of(numbers: Sequence[float]) -> float:
    """The number of mean 0 and variance 1 that Box and Muller make of two uniform ones."""
    return math.sqrt(-2 * math.log(1 - numbers[0])) * math.cos(2 * math.pi * numbers[1])


def he_normal() -> list[Check]:
    """A weight of mean 0 and variance 2 / fan_in."""

    def call(numbers: Sequence[float], fan_in: int, fan_out: int) -> Any:
        rng = Known(numbers)
        weight = initialize.he_normal(rng, fan_in, fan_out)  # type: ignore[arg-type]
        if rng.drawn != 2:
            raise Wrong(
                f"he_normal of fan_in {fan_in}: not two random numbers were drawn",
                expected="2",
                got=str(rng.drawn),
                cause=UNIFORM if rng.drawn == 1 else IN_STEP,
            )
        return weight

    def arguments(rng: np.random.Generator, size: tuple[int, int]) -> tuple[Any, ...]:
        return tuple(rng.uniform(0.1, 0.9, 2).tolist()), *size

    def with_deviation(text: str, deviation: Callable[[int, int], float]) -> Mistake:
        return Mistake(text, lambda numbers, fan_in, fan_out: deviation(fan_in, fan_out) * normal_of(numbers))

    one = (1 - math.exp(-0.5), 0.0)  # sqrt(-2 log(e^-0.5)) is 1, and so is cos 0
    minus_one = (1 - math.exp(-0.5), 0.5)
    far = (1 - math.exp(-18.0), 0.5)  # about -6
    return graded(
        Exercise(
            call=call,
            reference=lambda numbers, fan_in, fan_out: math.sqrt(2 / fan_in) * normal_of(numbers),
            show=lambda numbers, fan_in, fan_out: (
                f"he_normal, fan_in {fan_in}, fan_out {fan_out}, random numbers {numbers[0]:.4f} and {numbers[1]:.4f}"
            ),
            hand=[
                ((one, 8, 3), 0.5),
                ((minus_one, 8, 3), -0.5),
                ((one, 2, 5), 1.0),
                ((one, 200, 10), 0.1),
                (((1 - math.exp(-2.0), 0.0), 50, 50), 0.4),
                ((one, 1, 1), math.sqrt(2.0)),
                ((far, 2, 2), normal_of(far)),
                ((far, 200, 2), normal_of(far) / 10),
            ],
            arguments=arguments,
            typical=(784, 128),
            sizes=[(1, 9), (9, 1), (17, 31), (3, 3), (4096, 2), (1_000_003, 10)],
            mistakes=[
                with_deviation(
                    "2 / fan_in is the variance, and _normal takes the deviation, which is its root",
                    lambda fan_in, fan_out: 2 / fan_in,
                ),
                with_deviation(
                    "a variance of 1 / fan_in keeps the signal's size without a ReLU. ReLU makes half of it 0, so the "
                    "variance has to be twice as large",
                    lambda fan_in, fan_out: math.sqrt(1 / fan_in),
                ),
                with_deviation(
                    "this is fan_out: a sum has as many terms as the layer has inputs, fan_in",
                    lambda fan_in, fan_out: math.sqrt(2 / fan_out),
                ),
                with_deviation(
                    "2 / (fan_in + fan_out) is Glorot's variance, for tanh and the sigmoid; He's is 2 / fan_in",
                    lambda fan_in, fan_out: math.sqrt(2 / (fan_in + fan_out)),
                ),
                with_deviation(
                    "6 / fan_in is the square of a uniform weight's limit; a normal weight has the variance 2 / fan_in",
                    lambda fan_in, fan_out: math.sqrt(6 / fan_in),
                ),
                with_deviation(
                    "the root is of 2 / fan_in, and not of 2 alone", lambda fan_in, fan_out: math.sqrt(2) / fan_in
                ),
                with_deviation(
                    "the fraction is upside down: the more inputs there are, the smaller their weights",
                    lambda fan_in, fan_out: math.sqrt(fan_in / 2),
                ),
                with_deviation("every weight has the deviation 1: it depends on fan_in", lambda fan_in, fan_out: 1.0),
            ],
        )
    )


GRADES: dict[str, Callable[[], list[Check]]] = {"3.8": he_normal}
