"""Week 12: a kernel for every activation and for every derivative, and the error of one number."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from groundup.course.checks.check import Check, Tally
from groundup.course.checks.derivatives import gradient_check
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.calling.kernel_arithmetic import only_float32
from groundup.course.grading.calling.kernel_launches import (
    ONE_THREAD,
    RUNS,
    Launch,
    Out,
    any_grid,
    as_float,
    launched,
    left_out,
    module,
    previous_floor,
    random,
)
from groundup.course.grading.calling.kernel_memory import coalesced, races, reads, watched
from groundup.course.grading.calling.launched_again import kernel_checks
from groundup.course.grading.calling.line_by_line import line_by_line
from groundup.course.grading.calling.shared_work import Work

cuda = module("backend").cuda
"""A global, because Numba's simulator knows no other."""

COMPILED = "leaky_relu"
"""The activation whose kernels are compiled. The others run line by line: they come from the same factory."""

NAMES = ("identity", "relu", "leaky_relu", "sigmoid", "tanh")

OVERFLOW = "exp overflows where z is large: write max(z, 0) + log1p(exp(-|z|)) for log(1 + exp(z))"


def how(name: str) -> Callable[..., Any]:
    """The function that launches an activation's kernel."""
    return launched if name == COMPILED else line_by_line


def named_right(check: Check, kernels: dict[str, Any], suffix: str) -> Check:
    """A check that first compares the kernels' names. A profiler and an error message show them."""

    def run(tally: Tally) -> None:
        for name, kernel in kernels.items():
            got = getattr(kernel, "__name__", repr(kernel))
            tally.holds(
                got == name + suffix,
                "a kernel does not have the name that was asked for",
                expected=name + suffix,
                got=got,
                cause="return named(name, kernel), which is a kernel of that name",
            )
        check.run(tally)

    return Check(check.name, run)


def forward_kernel() -> list[Check]:
    """12.1: output = function(z)."""
    kernels = module("kernels.activations").FORWARD
    floor = previous_floor().activations

    def right(z: np.ndarray, name: str, launch: Launch) -> np.ndarray:
        return np.asarray(getattr(floor, name)(z.astype(np.float64)[None]))[0] if name != "identity" else z

    def call(z: np.ndarray, name: str, launch: Launch) -> np.ndarray:
        return how(name)(kernels[name], launch, z, Out(z.shape))

    shape, *others = kernel_checks(
        Exercise(
            call=call,
            reference=right,
            show=lambda z, name, launch: f"{name}{launch} of {z.size} numbers",
            hand=[
                ((as_float([-2, 0, 3]), "leaky_relu", Launch(1, 4)), [-0.02, 0, 3]),
                ((as_float([-1, 2, -3, 4, -5]), "leaky_relu", Launch(1, 2)), [-0.01, 2, -0.03, 4, -0.05]),
                ((as_float([-1, 2, 0]), "relu", Launch(1, 2)), [0, 2, 0]),
                ((as_float([0]), "sigmoid", Launch(1, 1)), [0.5]),
            ],
            arguments=lambda rng, size: (random(rng, size[0]), *size[1:]),
            typical=(37, "leaky_relu", Launch(3, 4)),
            sizes=[
                *((count, "leaky_relu", launch) for count in (1, 7, 97) for launch in any_grid(count)),
                *((5, name, Launch(1, 4)) for name in NAMES),
            ],
            dtype="float32",
            mistakes=[
                *left_out(right),
                Mistake("the function is not called: output[i] = function(z[i])", lambda z, name, launch: z),
                *races(),
            ],
            memory=watched(
                kernels[COMPILED],
                Launch(2, 64),
                lambda rng: (random(rng, 256), Out((256,))),
                reads(0, 2, ONE_THREAD, per="launch"),
                coalesced(cause=RUNS),
                work=[Work(1, 2)],
            ),
            types=only_float32(kernels[COMPILED], Launch(2, 4), lambda rng: (random(rng, 9), Out((9,)))),
        ),
        same=[(0, 1)],
    )
    return [named_right(shape, kernels, ""), *others]


def backward_kernel() -> list[Check]:
    """12.2: grad_z = function(grad_output, output)."""
    kernels = module("kernels.activations").BACKWARD

    def right(grad: np.ndarray, output: np.ndarray, name: str, launch: Launch) -> np.ndarray:
        if name == "relu":  # an infinite gradient, too, is 0 where the slope is 0
            return np.where(output > 0, grad, 0.0)
        return grad * slope(output.astype(np.float64), name)

    def multiplied(grad: np.ndarray, output: np.ndarray, name: str, launch: Launch) -> np.ndarray:
        with np.errstate(invalid="ignore"):
            return grad * slope(output, name)

    def call(grad: np.ndarray, output: np.ndarray, name: str, launch: Launch) -> np.ndarray:
        return how(name)(kernels[name], launch, grad, output, Out(grad.shape))

    weights = np.random.default_rng(5).standard_normal(5)

    def through_tanh(z: np.ndarray) -> Any:
        return line_by_line(kernels["tanh"], Launch(1, 4), weights, np.tanh(z), Out(z.shape, "float64"))

    shape, *others = kernel_checks(
        Exercise(
            call=call,
            reference=right,
            show=lambda grad, output, name, launch: f"{name}_backward{launch} of {grad.size} numbers",
            hand=[
                ((as_float([10, 20, 30]), as_float([-0.02, 5, 3]), "leaky_relu", Launch(1, 4)), [0.1, 20, 30]),
                ((as_float([1, 2, 4]), as_float([3, -0.5, -1]), "leaky_relu", Launch(1, 2)), [1, 0.02, 0.04]),
                ((as_float([8, 4]), as_float([0.5, 0.25]), "sigmoid", Launch(1, 1)), [2, 0.75]),
                ((as_float([np.inf, np.inf]), as_float([0, 3]), "relu", Launch(1, 2)), [0, np.inf]),
                # 0 times NaN is NaN: where the gradient is 0, the function is called as well
                ((as_float([0, 0]), as_float([np.nan, 0.5]), "sigmoid", Launch(1, 2)), [np.nan, 0]),
            ],
            arguments=lambda rng, size: (random(rng, size[0]), random(rng, size[0]), *size[1:]),
            typical=(37, "leaky_relu", Launch(3, 4)),
            sizes=[
                *((count, "leaky_relu", launch) for count in (1, 7, 97) for launch in any_grid(count)),
                *((5, name, Launch(1, 4)) for name in NAMES),
            ],
            gradient=gradient_check(
                lambda z: float(np.sum(weights * np.tanh(z))),
                through_tanh,
                lambda rng: rng.standard_normal(5),
                "sum(weights * tanh(z))",
            ),
            dtype="float32",
            mistakes=[
                Mistake(
                    "the gradient is multiplied by the slope, and infinity times 0 is NaN: give it to the function, "
                    "which chooses: function(grad_output, output)",
                    multiplied,
                ),
                *left_out(right),
                Mistake(
                    "the gradient that comes back is forgotten: chain it with the slope",
                    lambda grad, output, name, launch: slope(output, name),
                ),
                Mistake(
                    "gradient and output exchanged: function(grad_output, output)",
                    lambda grad, output, name, launch: output * slope(grad, name),
                ),
                Mistake(
                    "the gradient is passed on as it is: function(grad_output, output)",
                    lambda grad, output, name, launch: grad,
                ),
                *races(),
            ],
            memory=watched(
                kernels[COMPILED],
                Launch(2, 64),
                lambda rng: (random(rng, 256), random(rng, 256), Out((256,))),
                reads(0, 2, ONE_THREAD, per="launch"),
                coalesced(cause=RUNS),
                work=[Work(2, 2)],
            ),
            types=only_float32(
                kernels[COMPILED], Launch(2, 4), lambda rng: (random(rng, 9), random(rng, 9), Out((9,)))
            ),
        ),
        same=[(0, 2)],
    )
    return [named_right(shape, kernels, "_backward"), *others]


def slope(output: np.ndarray, name: str) -> np.ndarray:
    """The slope of an activation at the place where it gives `output`."""
    if name == "relu":
        return np.where(output > 0, 1.0, 0.0)
    if name == "leaky_relu":
        return np.where(output > 0, 1.0, 0.01)
    if name == "sigmoid":
        return output * (1 - output)
    return 1 - output * output if name == "tanh" else np.ones_like(output)


def sigmoid_error() -> list[Check]:
    """12.3: the loss of one number, called by a kernel of the grader's."""
    kernel = error_kernel(module("kernels.losses").sigmoid_error)

    def single(z: float, target: float, error: float) -> tuple[tuple[Any, ...], Any]:
        return (as_float([z]), as_float([target])), [error]

    return kernel_checks(
        Exercise(
            call=lambda z, target: launched(kernel, Launch(-(-z.size // 32), 32), z, target, Out(z.shape)),
            reference=lambda z, target: np.logaddexp(0, z.astype(np.float64)) - z.astype(np.float64) * target,
            show=lambda z, target: (
                f"sigmoid_error of z = {z[0]:g} and target {target[0]:g}"
                if z.size == 1
                else f"sigmoid_error of {z.size} numbers"
            ),
            hand=[
                ((as_float([0, 0]), as_float([0, 1])), [math.log(2), math.log(2)]),
                # sigmoid(ln 3) = 3/4, so the errors are -ln 3/4 and -ln 1/4.
                ((as_float([math.log(3), math.log(3)]), as_float([1, 0])), [math.log(4 / 3), math.log(4)]),
                single(-math.log(3), 1, math.log(4)),
                single(1000, 0, 1000),
                single(-1000, 1, 1000),
                single(1000, 1, 0),
                # log(1 + x) is x for a small x, here e^-20: not 0, though 1 + e^-20 is 1 in float32.
                single(-20, 0, math.exp(-20)),
            ],
            arguments=lambda rng, count: (
                (10 * random(rng, count)).astype(np.float32),
                rng.random(count).astype(np.float32),
            ),
            typical=37,
            sizes=[1, 7, 97],
            dtype="float32",
            mistakes=[
                Mistake(
                    "1 + a very small number is 1 in float32: math.log1p(x) is log(1 + x) without that loss",
                    lambda z, target: np.maximum(z, 0) - z * target + np.log(np.float32(1) + np.exp(-np.abs(z))),
                ),
                Mistake(OVERFLOW, lambda z, target: quiet(lambda: np.log1p(np.exp(z)) - z * target)),
                Mistake(OVERFLOW, lambda z, target: quiet(lambda: np.log(np.float32(1) + np.exp(z)) - z * target)),
                Mistake(
                    "exp(-|z|), with the minus: so written it lies between 0 and 1 for any z",
                    lambda z, target: quiet(lambda: np.maximum(z, 0) - z * target + np.log1p(np.exp(np.abs(z)))),
                ),
                Mistake("z · target is subtracted, not added", lambda z, target: np.logaddexp(0, z) + z * target),
                Mistake("z · target is missing", lambda z, target: np.logaddexp(0, z)),
                Mistake(
                    "max(z, 0) is missing: log1p(exp(-|z|)) alone is log(1 + exp(z)) for negative z only",
                    lambda z, target: np.log1p(np.exp(-np.abs(z))) - z * target,
                ),
                *races(),
            ],
            types=only_float32(
                kernel, Launch(2, 4), lambda rng: (10 * random(rng, 8), np.float32(rng.random(8)), Out((8,)))
            ),
        ),
        special=((np.nan,) * 3,),
    )


def quiet(compute: Callable[[], Any]) -> Any:
    """Compute without NumPy's warnings: these numbers are meant to overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        return compute()


def error_kernel(error: Any) -> Any:
    """A kernel that calls a device function of two numbers, a thread for each pair."""

    @cuda.jit
    def show_errors(z, target, out):  # type: ignore[no-untyped-def]
        i = cuda.grid(1)
        if i < z.size:
            out[i] = error(z[i], target[i])

    return show_errors


GRADES: dict[str, Callable[[], list[Check]]] = {
    "12.1": forward_kernel,
    "12.2": backward_kernel,
    "12.3": sigmoid_error,
}
