"""Week 19: the three gradients of a convolution on lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from groundup.course.checks.check import Check
from groundup.course.checks.derivatives import gradient_check
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.calling.on_lists import graded, on_lists, stage
from groundup.course.grading.problems.images import (
    CASES,
    EXCHANGED,
    NO_BORDER,
    NONE,
    OF_BOTH_AXES,
    ONE,
    ONE_PLACE,
    TURNED,
    TYPICAL,
    WINDOW_MISTAKES,
    Case,
    Pair,
    array,
    conv_arguments,
    conv_of,
    grad_input_of,
    grad_weights_of,
    grads_of,
    left_out,
    output_of,
    windows_of,
)


def geometry(image: Pair, window: Pair, stride: Pair, padding: Pair) -> Any:
    """What the gradients' functions take."""
    return stage().convolution.Geometry(image, window, stride, padding, output_of(image, window, stride, padding))


def fixed(mistakes: Sequence[Mistake], arguments: tuple[Any, ...]) -> list[Mistake]:
    """The mistakes for the gradient check, whose argument is another one: with these arguments."""
    return [replace(known, result=lambda at, wrong=known.result: wrong(*arguments)) for known in mistakes]


def grad_bias() -> list[Check]:
    """dL/dbias."""
    first = np.array([[[[1.0, 2.0, 3.0]], [[10.0, 20.0, 30.0]]], [[[4.0, 5.0, 6.0]], [[0.0, -1.0, 0.0]]]])
    return graded(
        Exercise(
            call=on_lists(stage().convolution._grad_bias, "grad_output"),
            reference=lambda g: g.sum(axis=(0, 2, 3)),
            show=lambda grad_output: f"_grad_bias(grad_output {grad_output.shape})",
            hand=[((first,), [21.0, 59.0]), ((array([1, 2], [4, -3]),), [4.0]), ((array([2, 2], [2, 5]),), [11.0])],
            arguments=lambda rng, case: (grads_of(rng, case),),
            typical=TYPICAL,
            sizes=CASES,
            terms=lambda g: g[:, 0].size,
            scale=lambda g: np.abs(g).sum(axis=(0, 2, 3)),
            mistakes=[
                Mistake(
                    "forgot the batch: the bias was added in every image, so its gradient is the sum over all images",
                    lambda g: g[-1].sum(axis=(1, 2)) if len(g) > 1 else None,
                ),
                Mistake(
                    "only the first image counts: the bias was added in every image",
                    lambda g: g[0].sum(axis=(1, 2)) if len(g) > 1 else None,
                ),
                Mistake(
                    "divided by the batch: that mean is in the loss's gradient already",
                    lambda g: g.sum(axis=(0, 2, 3)) / len(g) if len(g) > 1 else None,
                ),
                Mistake("the mean, and not the sum: every place gives its whole gradient", lambda g: g.mean((0, 2, 3))),
                Mistake(
                    "summed over the channels: the bias has one number for each channel, added up over images, rows "
                    "and columns",
                    lambda g: g.sum(axis=(1, 2, 3)),
                ),
                Mistake(
                    "one number for each image and channel: add up over the images, too",
                    lambda g: g.sum(axis=(2, 3)),
                ),
                Mistake(
                    "the sum of the channels before is still in it: begin at 0 for each channel",
                    lambda g: g.sum(axis=(0, 2, 3)).cumsum(),
                ),
                Mistake(
                    "every channel has the sum of all of them: add up what belongs to its own",
                    lambda g: np.full(g.shape[1], g.sum()),
                ),
                Mistake("only the first row of the output counts", lambda g: g[:, :, 0].sum(axis=(0, 2))),
                Mistake("only the last row of the output counts", lambda g: g[:, :, -1].sum(axis=(0, 2))),
            ],
        )
    )


def grad_weights() -> list[Check]:
    """dL/dweights."""
    function = on_lists(stage().convolution._grad_weights, "grad_output", "x")

    def call(grad: np.ndarray, x: np.ndarray, window: Pair, stride: Pair, padding: Pair) -> Any:
        return function(grad, x, geometry((x.shape[2], x.shape[3]), window, stride, padding))

    def right(grad: np.ndarray, x: np.ndarray, *more: Pair) -> np.ndarray:
        return grad_weights_of(grad, windows_of(x, *more))

    def arguments(rng: np.random.Generator, case: Case) -> tuple[Any, ...]:
        x, weights, _, stride, padding = conv_arguments(rng, case)
        return grads_of(rng, case), x, weights.shape[2:], stride, padding

    def misplaced(windows: Callable[..., Any]) -> Callable[..., Any]:
        def result(grad: np.ndarray, x: np.ndarray, *more: Pair) -> Any:
            found = windows(x, *more)
            return None if found is None else grad_weights_of(grad, found)

        return result

    def last_only(grad: np.ndarray, x: np.ndarray, *more: Pair) -> np.ndarray:
        windows, inside = (windows_of(each, *more) for each in (x, np.ones_like(x)))
        result = np.zeros((grad.shape[1], x.shape[1], *more[0]))
        for n, r, s in np.ndindex(len(x), *grad.shape[2:]):
            products = grad[n, :, r, s, None, None, None] * windows[n, :, r, s]
            np.copyto(result, products, where=inside[n, :, r, s] > 0)
        return result

    mistakes = [
        *(Mistake(text, misplaced(windows)) for text, windows in WINDOW_MISTAKES),
        *(
            Mistake(
                "turned by half a circle: number (i, j) of a kernel met number (i, j) of each window",
                lambda g, x, *more, turn=turn: right(g, x, *more)[:, :, turn[0], turn[1]],
            )
            for turn in TURNED
        ),
        Mistake(
            "only the last image counts: a kernel is used in every image, so add up over all of them",
            lambda g, x, *more: right(g[-1:], x[-1:], *more) if len(g) > 1 else None,
        ),
        Mistake(
            "divided by the batch: that mean is in the loss's gradient already",
            lambda g, x, *more: right(g, x, *more) / len(g) if len(g) > 1 else None,
        ),
        Mistake(
            "only the last window counts: add to the sum, do not assign",
            last_only,
        ),
        Mistake(
            "the output's gradient is left out: each window counts as much as its output's gradient says",
            lambda g, x, *more: right(np.ones_like(g), x, *more),
        ),
        Mistake(
            "output channels and input channels are exchanged: the gradient has the shape of the weights, "
            "(O, C, kh, kw)",
            lambda g, x, *more: right(g, x, *more).swapaxes(0, 1),
        ),
    ]
    given = arguments(np.random.default_rng(6), TYPICAL)
    grad, x, _, stride, padding = given
    o, c, *window = TYPICAL.kernels, TYPICAL.channels, *TYPICAL.window
    return graded(
        Exercise(
            call=call,
            reference=right,
            show=lambda grad_output, x, window, stride, padding: (
                f"_grad_weights(grad_output {grad_output.shape}, x {x.shape}, window {window}, stride {stride}, "
                f"padding {padding})"
            ),
            hand=[
                ((array(*GRAD), array([1, 2, 3], [4, 5, 6]), (1, 2), ONE, NONE), array([5421, 6532])),
                ((array(*GRAD), array([1, 2], [3, 4]), (2, 2), (2, 2), ONE), array([4000, 300], [20, 1])),
                (
                    (
                        np.array([[[[1.0, 2.0]], [[3.0, 4.0]]]]),
                        np.array([[[[5.0, 6.0]], [[7.0, 8.0]]]]),
                        ONE,
                        ONE,
                        NONE,
                    ),
                    np.array([[17.0, 23.0], [39.0, 53.0]]).reshape(2, 2, 1, 1),
                ),
            ],
            arguments=arguments,
            typical=TYPICAL,
            sizes=CASES,
            special=(1,),
            terms=lambda g, *more: g[:, 0].size,
            scale=lambda g, x, *more: right(np.abs(g), np.abs(x), *more) + np.abs(g).max() * np.abs(x).max(),
            gradient=gradient_check(
                lambda w: float(np.sum(conv_of(x, w, np.zeros(o), stride, padding) * grad)),
                lambda w: call(*given),
                lambda rng: rng.standard_normal((o, c, *window)),
                f"sum(conv2d * grad_output) for x {x.shape}, stride {stride}, padding {padding}, by the weights,",
                mistakes=fixed(mistakes, given),
            ),
            mistakes=mistakes,
        )
    )


GRAD = ([1, 10], [100, 1000])


def grad_input() -> list[Check]:
    """dL/dx."""
    function = on_lists(stage().convolution._grad_input, "grad_output", "weights")

    def call(grad: np.ndarray, weights: np.ndarray, image: Pair, stride: Pair, padding: Pair) -> Any:
        return function(grad, weights, geometry(image, (weights.shape[2], weights.shape[3]), stride, padding))

    def arguments(rng: np.random.Generator, case: Case) -> tuple[Any, ...]:
        x, weights, _, stride, padding = conv_arguments(rng, case)
        return grads_of(rng, case), weights, x.shape[2:], stride, padding

    def placed(stride_of: Callable[[Pair], Pair], padding_of: Callable[[Pair], Pair]) -> Callable[..., Any]:
        def result(grad: np.ndarray, w: np.ndarray, image: Pair, stride: Pair, padding: Pair) -> Any:
            step, start = stride_of(stride), padding_of(padding)
            return None if (step, start) == (stride, padding) else grad_input_of(grad, w, image, step, start)

        return result

    def same(pair: Pair) -> Pair:
        return pair

    mistakes = [
        *(
            Mistake(
                "the kernel is turned: the gradient of output (r, s) goes back by weight (i, j) to the pixel that this "
                "weight met, place (i, j) of the window",
                lambda g, w, *more, turn=turn: grad_input_of(g, w[:, :, turn[0], turn[1]], *more),
            )
            for turn in TURNED
        ),
        Mistake(
            "the last window that covers a pixel counts alone: add up over all windows and kernels, do not assign",
            lambda *arguments: grad_input_of(*arguments, adds=False),
        ),
        Mistake(
            "only the last kernel counts: x went into every output channel, so add up over all of them",
            lambda g, w, *more: grad_input_of(g[:, -1:], w[-1:], *more) if len(w) > 1 else None,
        ),
        Mistake(
            "only the first kernel counts: x went into every output channel, so add up over all of them",
            lambda g, w, *more: grad_input_of(g[:, :1], w[:1], *more) if len(w) > 1 else None,
        ),
        *(Mistake(ONE_PLACE, placed(steps, lambda p: p)) for steps in left_out(1)),
        *(
            Mistake(OF_BOTH_AXES.format(name), placed(*of))
            for exchanged in EXCHANGED
            for name, *of in (("stride", exchanged, same), ("padding", same, exchanged))
        ),
        *(
            Mistake(
                f"{NO_BORDER}. Cut off at both ends, if it is cut off",
                placed(lambda t: t, starts),
            )
            for starts in left_out(0)
        ),
        Mistake(
            "an index below 0 counts from the end in Python: what belongs to the border is added to the last rows or "
            "columns. Ask whether 0 <= row",
            lambda *arguments: grad_input_of(*arguments, wraps=True) if arguments[4] != NONE else None,
        ),
        Mistake(
            "the border is still around it: the gradient has the shape of x",
            lambda *arguments: grad_input_of(*arguments, cut=False) if arguments[4] != NONE else None,
        ),
        Mistake(
            "divided by the batch: that mean is in the loss's gradient already",
            lambda g, *more: grad_input_of(g, *more) / len(g) if len(g) > 1 else None,
        ),
    ]
    given = arguments(np.random.default_rng(6), TYPICAL)
    grad, weights, _, stride, padding = given
    return graded(
        Exercise(
            call=call,
            reference=grad_input_of,
            show=lambda grad_output, weights, image, stride, padding: (
                f"_grad_input(grad_output {grad_output.shape}, weights {weights.shape}, image {image}, "
                f"stride {stride}, padding {padding})"
            ),
            hand=[
                ((array(*GRAD), array([2, -1]), (2, 3), ONE, NONE), array([2, 19, -10], [200, 1900, -1000])),
                ((array(*GRAD), array([1, 2], [3, 4]), (2, 2), (2, 2), ONE), array([4, 30], [200, 1000])),
                (
                    (
                        np.array([[[[1.0, 2.0]], [[3.0, 4.0]]]]),
                        np.array([[5.0, 6.0], [7.0, 8.0]]).reshape(2, 2, 1, 1),
                        (1, 2),
                        ONE,
                        NONE,
                    ),
                    [[[[26.0, 38.0]], [[30.0, 44.0]]]],
                ),
            ],
            arguments=arguments,
            typical=TYPICAL,
            sizes=CASES,
            special=(0,),
            terms=lambda g, w, *more: w[:, 0].size,
            scale=lambda g, w, *more: np.abs(g).max() * np.abs(w).max() * w[:, 0].size,
            gradient=gradient_check(
                lambda v: float(np.sum(conv_of(v, weights, np.zeros(len(weights)), stride, padding) * grad)),
                lambda v: call(*given),
                lambda rng: rng.standard_normal((len(grad), weights.shape[1], *given[2])),
                f"sum(conv2d * grad_output) for weights {weights.shape}, stride {stride}, padding {padding}, by x,",
                mistakes=fixed(mistakes, given),
            ),
            mistakes=mistakes,
        )
    )


GRADES: dict[str, Callable[[], list[Check]]] = {
    "19.3": grad_bias,
    "19.4": grad_weights,
    "19.5": grad_input,
}
