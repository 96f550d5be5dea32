"""Week 20: max pooling and batch normalisation on NumPy arrays, forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from groundup.course.checks.check import Check, Tally, Wrong, unchanged
from groundup.course.checks.derivatives import gradient_check
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.repeated import handed, returned
from groundup.course.checks.source import without_loops
from groundup.course.grading.calling.on_arrays import (
    LOOP,
    check_dtype,
    floor_below,
    graded,
    not_out,
    on_arrays,
    poisoned_scratch,
    speed_check,
    stage,
    twice,
)
from groundup.course.grading.calling.on_arrays import both as for_both
from groundup.course.grading.problems import pools
from groundup.course.grading.problems.dense import NO_OUT
from groundup.course.grading.problems.images import Pair
from groundup.course.grading.problems.norms import (
    BACK_HAND,
    CASES,
    NORM_HAND,
    SAVED,
    TYPICAL,
    VARIANCE,
    back_mistakes,
    norm_arguments,
    norm_back,
    norm_mistakes,
    norm_of,
    pattern,
)


def into(case: str, result: Any, *given: np.ndarray) -> tuple[Any, ...]:
    """The arrays that a function of several results has returned; notes if one is another one than was given."""
    if not isinstance(result, tuple) or len(result) < len(given):
        raise Wrong(f"{case}: expected {len(given)} arrays", got=type(result).__name__, cause="return out, out_indices")
    if any(each is not there for each, there in zip(result, given, strict=False)):
        cause = "write into out and return it: NumPy's functions take out=…, and out[...] = … fills it"
        not_out.append(Wrong(f"{case}: what came back is another array than what was given", cause=cause))
    return result


def max_pool2d() -> list[Check]:
    """The largest number of each window, and where it was."""
    function = stage().pooling.max_pool2d

    def call(x: np.ndarray, size: Pair, stride: Pair | None) -> dict[str, Any]:
        given, shape = handed(x), (*x.shape[:2], *pools.places_of(x, size, stride))
        out, indices = np.full(shape, np.nan, x.dtype), np.full(shape, -1, np.int64)
        filled = into(
            show(x, size, stride), function(given, size, stride, out, indices, poisoned_scratch), out, indices
        )
        plain = function(given, size, stride)
        unchanged(Tally(), (x,), (given,), ("x",))
        check_dtype("max_pool2d", plain[0], x.dtype)
        check_dtype("max_pool2d: indices", plain[1], np.dtype(np.int64))
        returned(plain[0], [given])
        return {"": filled[0], "indices": filled[1], NO_OUT: plain[0], f"{NO_OUT}: indices": plain[1]}

    def show(x: np.ndarray, size: Pair, stride: Pair | None) -> str:
        return f"max_pool2d(x {x.shape}, size {size}, stride {stride})"

    def both(results: dict[str, Any]) -> dict[str, Any]:
        return {**results, NO_OUT: results[""], f"{NO_OUT}: indices": results["indices"]}

    def reference(x: np.ndarray, size: Pair, stride: Pair | None) -> dict[str, Any]:
        output, indices = floor_below().pooling.max_pool2d(x.tolist(), size, stride)
        return both({"": output, "indices": indices})

    exercise = Exercise(
        call=call,
        reference=reference,
        show=show,
        hand=[(given, both(expected)) for given, expected in pools.MAX_HAND],
        arguments=pools.pool_arguments,
        typical=pools.TYPICAL,
        sizes=pools.CASES,
        way=without_loops(
            function,
            f"{LOOP}; only the places within a window may be looped over",
            of_size=lambda size: function(np.ones((2 * size, 2, 6 * size, 8 * size)), 2),
        ),
        mistakes=pools.max_mistakes(),
    )

    def against(x: np.ndarray, size: Pair, stride: Pair | None) -> Any:
        return pools.max_pool(x, size, stride)

    return graded(
        exercise,
        speed_check(exercise, function, against, lambda rng: pools.pool_arguments(rng, (30, 4, 20, 21, (2, 2), None))),
    )


def max_pool2d_backward() -> list[Check]:
    """Each number of grad_output, to the place that won."""
    function = stage().pooling.max_pool2d_backward

    def of_size(size: int) -> Any:
        indices = np.zeros((2 * size, 3, 4 * size, 4), np.int64)
        return function(np.ones(indices.shape), indices, (2 * size, 3, 8 * size, 8))

    exercise = Exercise(
        call=on_arrays(function, lambda grad, indices, shape: shape, "grad_output", "indices", "input_shape"),
        reference=lambda *given: for_both(pools.back_of(*given)),
        show=lambda grad_output, indices, input_shape: (
            f"max_pool2d_backward(grad_output {grad_output.shape}, indices, input_shape {input_shape})"
        ),
        hand=twice(pools.BACK_HAND),
        arguments=pools.back_arguments,
        typical=pools.TYPICAL,
        sizes=pools.CASES,
        terms=lambda grad, indices, shape: grad.size / len(grad),
        scale=lambda grad, indices, shape: np.abs(grad).max() * 6,
        way=without_loops(function, LOOP, of_size=of_size),
        mistakes=pools.back_mistakes(),
    )
    return graded(exercise)


def batch_norm() -> list[Check]:
    """Batch normalisation, its running statistics, and what it saves for the way back."""
    part = stage().batch_norm

    def call(
        x: np.ndarray,
        gamma: np.ndarray,
        beta: np.ndarray,
        mean: np.ndarray,
        var: np.ndarray,
        training: bool,
        *more: float,
    ) -> dict[str, Any]:
        arrays = [handed(each) for each in (x, gamma, beta)]
        running, again = [mean.copy(), var.copy()], [mean.copy(), var.copy()]
        out = np.full(x.shape, np.nan, x.dtype)
        output, saved, *_ = into("batch_norm", part.batch_norm(*arrays, *running, training, *more, out=out), out)
        if not isinstance(saved, part.Saved):
            cause = "return out, Saved(centred, rest, inverse, gamma.copy(), x.shape, training)"
            raise Wrong("batch_norm: the second result is not what the way back needs", expected="a Saved",
                        got=type(saved).__name__, cause=cause)  # fmt: skip
        lines = (len(x), x.shape[1], x[0, 0].size)
        if np.shape(saved.centred) != lines:
            cause = "all rows and columns in one: x.reshape(*x.shape[:2], -1) - mean[:, np.newaxis]"
            got = f"{np.shape(saved.centred)}"
            raise Wrong("batch_norm: saved.centred is not (N, C, L)", expected=f"{lines}", got=got, cause=cause)
        arrays[1] += 1  # as an optimizer does
        back, grad_gamma, _ = part.batch_norm_backward(pattern(x), saved)
        arrays[1][...] = gamma
        plain, _ = part.batch_norm(*arrays, *again, training, *more, scratch=poisoned_scratch)
        unchanged(Tally(), (x, gamma, beta), arrays, ("x", "gamma", "beta"))
        check_dtype("batch_norm", plain, x.dtype)
        returned(plain, arrays)
        results = {"": output, NO_OUT: plain, "running_mean": running[0], "running_var": running[1]}
        return {**results, **dict(zip(SAVED, (back, grad_gamma), strict=True))}

    exercise = Exercise(
        call=call,
        reference=lambda *given: {**norm_of(*given), NO_OUT: norm_of(*given)[""]},
        show=lambda x, gamma, beta, running_mean, running_var, training, *more: (
            f"batch_norm(x {x.shape}, training={training}, momentum {more[0]:g}, epsilon {more[1]:g})"
        ),
        hand=[(given, {**expected, NO_OUT: expected[""]}) for given, expected in NORM_HAND],
        arguments=norm_arguments,
        typical=TYPICAL,
        sizes=CASES,
        special=(0,),
        infinite=False,
        terms=lambda x, *more: x.size + 64,
        scale=_norm_scale,
        way=without_loops(
            part.batch_norm,
            LOOP,
            of_size=lambda size: part.batch_norm(
                np.ones((2 * size, 3, 4 * size, 2)), *np.ones((4, 3)), True, 0.1, 1e-5
            ),
        ),
        mistakes=norm_mistakes(),
    )
    return graded(exercise)


def _norm_scale(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, *more: Any) -> dict[str, Any]:
    """Of each result: the largest number, and as many times more as the mean is larger than the deviation."""
    found = norm_of(x, gamma, beta, *more)
    axes = tuple(i for i in range(x.ndim) if i != 1)
    with np.errstate(all="ignore"):
        far = 1 + np.nanmax(np.abs(x.mean(axes)) / np.sqrt(x.var(axes) + more[4]))
    scales = {name: far * np.max(np.abs(value[np.isfinite(value)]), initial=0.0) for name, value in found.items()}
    scales[SAVED[0]] = far * np.abs(gamma).max() * (1 + 1 / np.sqrt(np.nanmin(x.var(axes)) + more[4]))
    return {**scales, NO_OUT: scales[""]}


def batch_norm_backward() -> list[Check]:
    """The way back through a batch normalisation."""
    part = stage().batch_norm

    def saved_of(x: np.ndarray, gamma: np.ndarray, training: bool) -> Any:
        one = np.ones(len(gamma), x.dtype)
        saved = part.batch_norm(x, gamma, one, 0 * one, VARIANCE * one, training)[1]
        left = np.abs(saved.centred).max(axis=(0, 2))  # as if so much of the mean were left
        return replace(saved, centred=saved.centred + left[:, np.newaxis], rest=saved.rest + left)

    names = ("", "grad_gamma", "grad_beta")

    def call(grad: np.ndarray, x: np.ndarray, gamma: np.ndarray, training: bool) -> dict[str, Any]:
        given, out = handed(grad), np.full(x.shape, np.nan, x.dtype)
        saved = saved_of(x, gamma, training)
        results = into("batch_norm_backward", part.batch_norm_backward(given, saved, out), out)
        plain = part.batch_norm_backward(given, saved, scratch=poisoned_scratch)
        unchanged(Tally(), (grad,), (given,), ("grad_output",))
        for name, each in zip(names, plain, strict=False):
            check_dtype(f"batch_norm_backward: {name or 'dL/dx'}", each, x.dtype)
        returned(plain[0], [given])
        return {**dict(zip(names, results, strict=False)), NO_OUT: plain[0]}

    def right(grad: np.ndarray, x: np.ndarray, gamma: np.ndarray, training: bool) -> dict[str, Any]:
        found = norm_back(grad, x, gamma, training)
        return {**found, NO_OUT: found[""]}

    def scale(grad: np.ndarray, x: np.ndarray, gamma: np.ndarray, training: bool) -> dict[str, Any]:
        found = norm_back(np.abs(grad), x, np.abs(gamma), False)
        largest = float(np.nanmax(np.abs(found[""])))
        sums = {name: x.size * np.abs(grad).max() * (3 if name == "grad_gamma" else 1) for name in names[1:]}
        return {"": 10 * largest, NO_OUT: 10 * largest, **sums}

    def arguments(rng: np.random.Generator, case: Any) -> tuple[Any, ...]:
        x, gamma, _, _, _, training, *_ = norm_arguments(rng, (case[0], case[1], 0.0))
        return rng.standard_normal(x.shape), x, gamma, training

    given = arguments(np.random.default_rng(6), TYPICAL)
    grad, x, gamma, _ = given
    others = (0 * gamma, 0 * gamma, 0 * gamma + 1, True, 0.1, 1e-5)
    return graded(
        Exercise(
            call=call,
            reference=right,
            show=lambda grad_output, x, gamma, training: (
                f"batch_norm_backward(grad_output {grad_output.shape}) with training={training}"
            ),
            hand=[(hand, {**expected, NO_OUT: expected[""]}) for hand, expected in BACK_HAND],
            arguments=arguments,
            typical=TYPICAL,
            sizes=CASES,
            factors=(1e2, 1e-1),
            special=(0,),
            infinite=False,
            terms=lambda grad, x, *more: x.size + 64,
            scale=scale,
            gradient=gradient_check(
                lambda v: float(np.sum(norm_of(v, gamma, *others)[""] * grad)),
                lambda v: call(grad, v, gamma, True)[""],
                lambda rng: x,
                f"sum(batch_norm * grad_output) for x {x.shape}",
            ),
            way=without_loops(
                part.batch_norm_backward,
                LOOP,
                of_size=lambda size: call(*(np.ones((2 * size, 3, 4 * size, 2)),) * 2, np.ones(3), True),
            ),
            mistakes=back_mistakes(),
        )
    )


GRADES: dict[str, Callable[[], list[Check]]] = {
    "20.3": max_pool2d,
    "20.4": max_pool2d_backward,
    "20.5": batch_norm,
    "20.6": batch_norm_backward,
}
