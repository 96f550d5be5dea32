"""Week 18: gradient checking: a derivative by central differences, and how far it is from the gradient."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from groundup.course.checks.check import Check, Question, Tally, Wrong
from groundup.course.checks.derivatives import STEP
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.exercise_checks import checks_of
from groundup.course.checks.mistakes import Mistake
from shared.checks import gradients
from shared.checks.tolerance import tolerance


def relative_error() -> list[Check]:
    """The relative difference between a gradient and a slope."""
    function = gradients.relative_error

    def reference(analytic: float, numeric: float, loss: float) -> float:
        scale = float(np.max(np.abs([analytic, numeric, loss])))
        return 0.0 if scale == 0 else abs(analytic - numeric) / scale

    def call(analytic: float, numeric: float, loss: float) -> Any:
        try:
            return function(analytic, numeric, loss)
        except ZeroDivisionError as error:
            case = f"relative_error({analytic:g}, {numeric:g}, {loss:g})"
            raise Wrong(
                f"{case}: {error}", cause="where all three are 0, the error is 0: return it before dividing"
            ) from None

    def arguments(rng: np.random.Generator, size: tuple[float, float]) -> tuple[float, float, float]:
        analytic, loss = size[0] * rng.standard_normal(), size[1] * rng.standard_normal()
        return analytic, analytic + 0.1 * size[0] * rng.standard_normal(), loss

    return checks_of(
        Exercise(
            call=call,
            fresh=True,
            reference=reference,
            show=lambda analytic, numeric, loss: f"relative_error({analytic:.6g}, {numeric:.6g}, {loss:.6g})",
            hand=[
                ((2.0, 1.0, 0.5), 0.5),
                ((1.0, 2.0, 0.5), 0.5),
                ((-4.0, -3.0, 0.5), 0.25),
                ((1.0, -1.0, 0.0), 2.0),
                ((3.0, 4.0, -10.0), 0.1),
                ((0.0, 0.0, 0.0), 0.0),
                ((0.0, 0.0, 3.0), 0.0),
                ((0.0, 1e-12, 1.0), 1e-12),
                ((math.nan, 1.0, 1.0), math.nan),
                ((1.0, math.nan, 1.0), math.nan),
                ((2e-14, 1e-14, 0.0), 0.5),
                ((-4e-100, -3e-100, 1e-101), 0.25),
                ((0.0, 5e-200, 1e-199), 0.5),
                ((3e200, 4e200, -1e201), 0.1),
            ],
            arguments=arguments,
            typical=(1.0, 1.0),
            sizes=[(1e-8, 1.0), (1.0, 1e-8), (1e6, 3.0), (1.0, 100.0), (1e-30, 1e-31), (1e30, 1.0)],
            mistakes=[
                *(
                    Mistake(
                        "the scale has a smallest value, or one that is added: gradients and loss may be as small as "
                        "they like, and only where all three are 0 the error is 0",
                        wrong,
                    )
                    for digits in range(6, 17)
                    for wrong in (_bounded(10.0**-digits), _raised(10.0**-digits))
                ),
                Mistake("the sign: an error is never negative", lambda a, n, loss: -reference(a, n, loss)),
                Mistake(
                    "divided by the two gradients alone: where both are near 0 that is noise, so the loss counts, too",
                    lambda a, n, loss: abs(a - n) / max(abs(a), abs(n)) if a or n else None,
                ),
                Mistake("divided by the gradient alone", lambda a, n, loss: abs(a - n) / abs(a) if a else None),
                Mistake("divided by the slope alone", lambda a, n, loss: abs(a - n) / abs(n) if n else None),
                Mistake(
                    "divided by the sum of the sizes: divide by the largest",
                    lambda a, n, loss: abs(a - n) / s if (s := abs(a) + abs(n) + abs(loss)) else None,
                ),
                Mistake("this is the absolute error: it has to be divided by the size", lambda a, n, loss: abs(a - n)),
                Mistake(
                    "the largest of the numbers is taken with their signs: of -4 and -3 the size is 4",
                    lambda a, n, loss: abs(a - n) / m if (m := max(a, n, loss)) else None,
                ),
            ],
        )
    )


def _scale(*sizes: float) -> float:
    return max(map(abs, sizes))


def _bounded(least: float) -> Callable[..., float]:
    return lambda a, n, loss: abs(a - n) / max(_scale(a, n, loss), least)


def _raised(by: float) -> Callable[..., float]:
    return lambda a, n, loss: abs(a - n) / (_scale(a, n, loss) + by)


Curve = tuple[str, Callable[[float], float], Callable[[float], float]]


CURVES: list[Curve] = [
    ("sin", math.sin, math.cos),
    ("exp", math.exp, math.exp),
    ("tanh", math.tanh, lambda p: 1 - math.tanh(p) ** 2),
    ("x³ - 2x", lambda p: p**3 - 2 * p, lambda p: 3 * p * p - 2),
    ("5x + 7", lambda p: 5 * p + 7, lambda p: 5.0),
]


def slope() -> list[Check]:
    """A derivative by central differences; None at a kink, where there is no derivative."""
    function: Callable[..., Any] = gradients.slope

    def one(
        tally: Tally,
        name: str,
        loss: Callable[[float], float],
        at: float,
        expected: float,
        cause: str = "a smooth curve bends, too: its right and left slope differ by h times the curvature, which "
        "halves with h",
    ) -> None:
        case = f"slope of {name} at {at:.6g}"
        tally.trying(case)
        tally.fresh = True
        here = loss(at)
        h = STEP * max(1.0, abs(at))
        moved: list[float] = []

        def measured(p: float) -> float:
            moved.append(abs(p - at))
            return loss(p)

        got = function(measured, at, here)
        other_step = bool(moved) and not h / 4 < max(moved) < 4 * h
        of_step = f"p was moved by {max(moved, default=0.0):.2g}, and STEP times the larger of 1 and |p| is {h:.2g}: "
        of_step += "a larger step misses how the curve bends, a smaller one is lost in the rounding of p"
        cause = of_step if other_step else cause
        tally.holds(got is not None, f"{case}: there is no kink", expected=f"{expected:.9g}", got="None", cause=cause)
        allowed = 3 * gradients.LIMIT * max(1.0, abs(here), abs(expected))
        if other_step and isinstance(got, float) and not abs(got - expected) <= allowed:
            raise Wrong(f"{case}: wrong", expected=f"{expected:.9g}", got=f"{got:.9g}", cause=of_step)
        for side, points, wrong in (
            ("right", "(L(p + h) - L(p)) / h", (loss(at + h) - here) / h),
            ("left", "(L(p) - L(p - h)) / h", (here - loss(at - h)) / h),
        ):
            if abs(wrong - expected) > allowed and np.ndim(got) == 0 and math.isclose(got, wrong, rel_tol=1e-9):
                cause = f"this is the slope to the {side}, {points}: central differences err less"
                raise Wrong(f"{case}: wrong", expected=f"{expected:.9g}", got=f"{got:.9g}", cause=cause)
        tally.equal(
            got,
            expected,
            case=case,
            terms=1,
            scale=allowed / tolerance("float64", 1, 1.0),
            mistakes=[
                Mistake("the two points are 2h apart, not h", lambda: (loss(at + h) - loss(at - h)) / h),
                Mistake("this is how much the loss changes: divide by 2h", lambda: loss(at + h) - loss(at - h)),
                Mistake("wrong sign: above minus below", lambda: (loss(at - h) - loss(at + h)) / (2 * h)),
                Mistake(
                    "this is the bend, right slope minus left slope",
                    lambda: (loss(at + h) - 2 * here + loss(at - h)) / h,
                ),
            ],
        )

    def kink(tally: Tally, name: str, loss: Callable[[float], float], at: float, where: str, cause: str) -> None:
        case = f"slope of {name} at {at:.9g}"
        tally.trying(case)
        got = function(loss, at, loss(at))
        tally.holds(got is None, f"{case}: {where}", expected="None", got=f"{got}", cause=cause)

    def shape(tally: Tally) -> None:
        tally.trying("slope of x² at 3")
        got = function(lambda p: p * p, 3.0, 9.0)
        tally.holds(
            got is not None, "slope of x² at 3: nothing came back", got="None", cause="no return, or taken for a kink?"
        )
        tally.holds(np.ndim(got) == 0, "slope of x² at 3: expected a number", got=type(got).__name__)

    bend = (
        "right slope minus left slope is h times the curvature on a smooth curve, so it halves with h; here it does not"
    )
    central = "the slopes measured with h and with h / 2 disagree, which on a smooth curve they do not"

    def values(tally: Tally) -> None:
        one(tally, "x²", lambda p: p * p, 3.0, 6.0)
        one(tally, "3x", lambda p: 3 * p, 1.0, 3.0)
        one(tally, "a constant", lambda p: 4.0, 2.0, 0.0)
        one(tally, "x³", lambda p: p**3, -2.0, 12.0)
        kink(tally, "relu", lambda p: max(p, 0.0), 0.0, "the kink is right there", bend)
        kink(tally, "|x|", abs, STEP / 3, "a kink lies a third of a step away", central)
        kink(tally, "|x|", abs, -0.8 * STEP, "a kink lies within the wide step", central)
        one(tally, "relu", lambda p: max(p, 0.0), 0.5, 1.0)
        one(tally, "relu", lambda p: max(p, 0.0), -0.5, 0.0)

    def agreement(tally: Tally) -> None:
        rng = np.random.default_rng(1)
        for name, loss, derivative in CURVES:
            at = float(rng.uniform(-1, 1))
            one(tally, name, loss, at, derivative(at))

    def sizes(tally: Tally) -> None:
        for at in (0.0, 1e-9, 10.0, -300.0, 1e8):
            one(tally, "5x + 7", lambda p: 5 * p + 7, at, 5.0)
            one(tally, "x² / 100", lambda p: p * p / 100, at, at / 50)
        # A small loss beside a large p: a step that does not grow with |p| is lost in the rounding of p.
        for at in (1e6 + 0.5, -1e6 - 0.5):
            one(tally, "x - 10⁶" if at > 0 else "x + 10⁶", partial(_beside, math.copysign(1e6, at)), at, 1.0)
        # What rounding does to the slope grows with the loss and with the slope, whatever their signs, and is never 0.
        of_loss = "the rounding of a large loss is no kink: noise grows with |here|"
        of_slope = "the rounding of p, times a steep slope, is no kink: noise grows with |central|"
        for before, much in (("+", 1e6), ("-", -1e6)):
            one(tally, f"exp {before} 10⁶", partial(_exp_beside, -much), 0.3, math.exp(0.3), of_loss)
            one(tally, f"{before}10⁶ (x - 0.7)", partial(_steep, much), 0.7, much, of_slope)
        at_least = "slope and loss are 0 here, and the noise is not: it is LIMIT times at least 1"
        one(tally, "x³", lambda p: p**3, 0.0, 0.0, at_least)
        tally.trying("slope of a loss that is NaN")
        for nan in (lambda p: math.nan, lambda p: math.nan if p > 0.5 else p, lambda p: math.nan if p < 0.5 else p):
            got = function(nan, 0.5, nan(0.5))
            lost = "NaN is no kink: a loss that is no number has a slope that is none, and None would skip it"
            is_nan = isinstance(got, float) and math.isnan(got)
            tally.holds(is_nan, "slope of a loss that is NaN", expected="nan", got=f"{got}", cause=lost)
        for at, factor in ((0.3, 1e-9), (0.3, 1e9), (-1.2, 1e4)):
            one(tally, f"{factor:g} sin", partial(_times_sin, factor), at, factor * math.cos(at))
        small = "this kink is small, and many times as large as the noise, which is LIMIT times the largest of three"
        kink(tally, "|x| / 10⁸", lambda p: abs(p) / 1e8, 0.0, "the kink is right there", small)

    question = Question(
        call=lambda curve, at: function(CURVES[curve][1], at, CURVES[curve][1](at)),
        reference=lambda curve, at: CURVES[curve][2](at),
        arguments=lambda rng, curves: (int(rng.integers(curves)), float(rng.uniform(-1, 1))),
        size=len(CURVES) - 1,  # all but the straight line, whose slope is the same everywhere
    )
    checks = [("shape", shape), ("values", values), ("agreement", agreement), ("sizes", sizes)]
    return [Check(name, run, question) for name, run in checks]


def _beside(far: float, p: float) -> float:
    return p - far


def _times_sin(factor: float, p: float) -> float:
    return factor * math.sin(p)


def _exp_beside(far: float, p: float) -> float:
    return math.exp(p) - far


def _steep(slope: float, p: float) -> float:
    return slope * (p - 0.7)


GRADES: dict[str, Callable[[], list[Check]]] = {
    "18.3": relative_error,
    "18.4": slope,
}
