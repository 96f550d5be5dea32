"""Week 20: all windows as a view, a convolution as one einsum, and the way back through a residual block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from groundup.course.checks.check import Check, Tally, unchanged
from groundup.course.checks.check import both as both_checks
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.mistakes import Mistake
from groundup.course.checks.repeated import handed
from groundup.course.checks.source import uses_none_of, without_loops
from groundup.course.grading.calling.on_arrays import LOOP, both, graded, on_arrays, speed_check, stage, twice
from groundup.course.grading.problems.images import (
    CASES,
    CONV_HAND,
    NONE,
    ONE,
    TYPICAL,
    Case,
    Pair,
    array,
    conv_arguments,
    conv_mistakes,
    conv_of,
    conv_scale,
    conv_shown,
    grad_input_of,
    grad_weights_of,
    grads_of,
    output_of,
    windows_of,
)
from shared.contract import load_part

GAPS = "the windows of an array with gaps"


def columns() -> Any:
    """The file with the windows."""
    return load_part("stage2_numpy", "columns")


def windows() -> list[Check]:
    """All windows, as a view."""

    def border_of(padded: np.ndarray, window: Pair) -> Pair:
        """The border that padded has already: where a window fits without it, too."""
        return int(padded.shape[2] >= window[0] + 2), int(padded.shape[3] >= window[1] + 2)

    def geometry(padded: np.ndarray, window: Pair, stride: Pair) -> Any:
        border = border_of(padded, window)
        image = padded.shape[2] - 2 * border[0], padded.shape[3] - 2 * border[1]
        return columns().Geometry(image, window, stride, border, output_of(padded.shape, window, stride, NONE))

    def with_gaps(padded: np.ndarray) -> np.ndarray:
        spread = np.full((*padded.shape[:2], 2 * padded.shape[2], 3 * padded.shape[3]), np.nan, padded.dtype)
        spread[:, :, ::2, ::3] = padded
        return spread[:, :, ::2, ::3]

    def call(padded: np.ndarray, window: Pair, stride: Pair) -> dict[str, Any]:
        g, given = geometry(padded, window, stride), handed(padded)
        results = {"": g.windows(given), GAPS: g.windows(with_gaps(padded))}
        unchanged(Tally(), (padded,), (given,), ("padded",))
        return results

    def twofold(result: np.ndarray) -> dict[str, Any]:
        return {"": result, GAPS: result}

    def arguments(rng: np.random.Generator, case: Case) -> tuple[Any, ...]:
        return rng.standard_normal((case.batch, case.channels, *case.padded)), case.window, case.stride

    def copies_none(tally: Tally) -> None:
        padded, window, stride = arguments(np.random.default_rng(3), TYPICAL)
        tally.trying("whether the windows share the image's memory")
        cause = "take a view: sliding_window_view, or as_strided; a copy of all windows is as large as kh kw images"
        for what, image in (("", padded), (" of an image with gaps in memory", with_gaps(padded))):
            result = geometry(image, window, stride).windows(image)
            tally.holds(np.may_share_memory(result, image), f"the windows{what} are a copy", cause=cause)

    def moved(steps: Callable[[Pair], Pair]) -> Callable[..., Any]:
        def result(padded: np.ndarray, window: Pair, stride: Pair) -> Any:
            found = windows_of(padded, window, steps(stride), NONE)
            wanted = output_of(padded.shape, window, stride, NONE)
            same_size = found.shape[2] >= wanted[0] and found.shape[3] >= wanted[1] and steps(stride) != stride
            return found[:, :, : wanted[0], : wanted[1]] if same_size else None

        return result

    def within(padded: np.ndarray, window: Pair, stride: Pair) -> Any:
        top, left = border_of(padded, window)
        image = padded[:, :, top : padded.shape[2] - top, left : padded.shape[3] - left]
        return windows_of(image, window, stride, NONE) if top or left else None

    def bordered_twice(padded: np.ndarray, window: Pair, stride: Pair) -> Any:
        border = border_of(padded, window)
        return windows_of(padded, window, stride, border) if any(border) else None

    mistakes: list[tuple[str, Callable[..., Any]]] = [
        ("the border is cut off: a window may lie on it, and padded has it already", within),
        ("the border is put around once more: padded has it already", bordered_twice),
        (
            "every place of the window is there: take every stride-th one, [:, :, ::down, ::right]",
            lambda padded, window, stride: windows_of(padded, window, ONE, NONE) if stride != ONE else None,
        ),
        ("neighbouring places lie a stride apart, and these lie side by side", moved(lambda stride: ONE)),
        (
            "stride's two numbers are exchanged: the first one is for the rows",
            lambda padded, window, stride: (
                windows_of(padded, window, stride[::-1], NONE) if stride[0] != stride[1] else None
            ),
        ),
        (
            "the window's axes stand before the places: the order is (N, C, H', W', kh, kw)",
            lambda padded, window, stride: windows_of(padded, window, stride, NONE).transpose(0, 1, 4, 5, 2, 3),
        ),
        (
            "rows and columns of each window are exchanged: the order is (N, C, H', W', kh, kw)",
            lambda padded, window, stride: windows_of(padded, window, stride, NONE).swapaxes(4, 5),
        ),
        (
            "rows and columns of the places are exchanged: the order is (N, C, H', W', kh, kw)",
            lambda padded, window, stride: windows_of(padded, window, stride, NONE).swapaxes(2, 3),
        ),
    ]
    function = columns().Geometry.windows
    hand: list[tuple[tuple[Any, ...], Any]] = [
        (
            (array([1, 2, 3], [4, 5, 6]), (1, 2), ONE),
            np.array([[[1, 2], [2, 3]], [[4, 5], [5, 6]]], np.float64).reshape(1, 1, 2, 2, 1, 2),
        ),
        (
            (array([1, 2, 3, 4, 5]), (1, 2), (1, 3)),
            np.array([[1, 2], [4, 5]], np.float64).reshape(1, 1, 1, 2, 1, 2),
        ),
    ]
    return graded(
        Exercise(
            call=call,
            reference=lambda padded, window, stride: twofold(windows_of(padded, window, stride, NONE)),
            show=lambda padded, window, stride: f"windows(padded {padded.shape}), window {window}, stride {stride}",
            hand=[(given, twofold(expected)) for given, expected in hand],
            arguments=arguments,
            typical=TYPICAL,
            sizes=CASES,
            way=both_checks(without_loops(function, LOOP), copies_none),
            mistakes=[Mistake(text, wrong, name) for text, wrong in mistakes for name in ("", GAPS)],
        )
    )


COPIED = (
    "this copies all windows into a matrix first, which is week 21's way: here the sum is a string for np.einsum, on "
    "the view of the windows"
)

OTHERS = ("kernel_loops", "fourier", "im2col", "im2col_in_cache", "conv2d", "columns_by_piece", "CONVOLUTION_LADDER")

ANOTHER = "this calls another function that has the sums already: write the sum of this one"


def sliding_einsum() -> list[Check]:
    """A convolution as one einsum over the windows."""
    function = stage().convolution.sliding_einsum
    exercise = Exercise(
        call=on_arrays(
            function,
            lambda *given: (len(given[0]), len(given[1]), *output_of(given[0].shape, given[1].shape[2:], *given[3:])),
            *("x", "weights", "bias", "stride", "padding"),
            scratch=False,
        ),
        reference=lambda *given: both(conv_of(*given)),
        show=conv_shown("sliding_einsum"),
        hand=twice(CONV_HAND),
        arguments=conv_arguments,
        typical=TYPICAL,
        sizes=CASES,
        special=(0, 2),
        terms=lambda x, w, *more: w[0].size,
        scale=conv_scale,
        way=both_checks(
            uses_none_of(
                function,
                {
                    **dict.fromkeys(OTHERS, ANOTHER),
                    **dict.fromkeys(("matmul", "tensordot", "dot", "@", "inner", "copy", "ascontiguousarray"), COPIED),
                },
            ),
            without_loops(function, LOOP),
        ),
        mistakes=[
            *conv_mistakes(),
            Mistake("the border is left out: the windows are those of pad(x, g)", _without_border),
            Mistake(
                "the bias is added along the columns: it belongs to the channels, bias[:, np.newaxis, np.newaxis]",
                lambda x, w, b, *more: (
                    found - b[:, None, None] + b
                    if (found := conv_of(x, w, b, *more)).shape[3] == len(b) and found.shape[3] > 1
                    else None
                ),
            ),
        ],
    )
    return graded(
        exercise,
        speed_check(
            exercise,
            function,
            lambda x, w, b, stride, padding: np.einsum("nchwij,ocij->nohw", windows_of(x, w.shape[2:], ONE, NONE), w),
            lambda rng: conv_arguments(rng, Case(20, 2, 16, 17, 3, 3, 3)),
        ),
    )


def _without_border(x: np.ndarray, w: np.ndarray, b: np.ndarray, stride: Pair, padding: Pair) -> np.ndarray | None:
    """As einsum writes the windows of x alone into out: a single place is repeated."""
    if padding == NONE or w.shape[2] > x.shape[2] or w.shape[3] > x.shape[3]:
        return None
    found, places = conv_of(x, w, b, stride, NONE), output_of(x.shape, (w.shape[2], w.shape[3]), stride, padding)
    fits = all(has in (1, wanted) for has, wanted in zip(found.shape[2:], places, strict=True))
    return np.broadcast_to(found, (*found.shape[:2], *places)) if fits else None


def residual_backward() -> list[Check]:
    """Residual.backward: through the layers, and past them."""

    def block(x: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> tuple[Any, Any]:
        network, parts = stage().network, load_part("stage2_numpy", "parts")
        inside = [stage().convolution.Conv2d(weights, bias, 1, 1), parts.Activate(described("tanh"))]
        residual, this_pass = network.Residual(inside), parts.Pass(True, None, stage().arrays.Scratch())
        network.forward([residual], x, this_pass)
        return residual, this_pass

    def call(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, grad: np.ndarray) -> dict[str, Any]:
        residual, this_pass = block(handed(x), weights, bias)
        given = handed(grad)
        result = residual.backward(given, this_pass)
        unchanged(Tally(), (grad,), (given,), ("grad_output",))
        return {"": None if result is None else np.copy(result), "grad_weights": residual.layers[0].grad_weights}

    def own_memory(tally: Tally) -> None:
        """The result lies in the network's memory, apart from all that others own, whatever the size of the batch."""
        network, parts, scratch = stage().network, load_part("stage2_numpy", "parts"), stage().arrays.Scratch()
        rng, results = np.random.default_rng(5), []
        with_weights = network.Residual([stage().convolution.Conv2d(np.ones((2, 2, 3, 3)), np.ones(2), 1, 1)])
        dropping_none = network.Residual([parts.Dropout()])
        own = "add into an array of this layer's own, out=this_pass.grad_array(self, grad_output)"
        for residual, batch in ((with_weights, 2), (with_weights, 3), (with_weights, 2), (dropping_none, 2)):
            this_pass, (x, grad) = parts.Pass(True, None, scratch), rng.standard_normal((2, batch, 2, 3, 4))
            output = network.forward([residual], x, this_pass)[-1]
            given, made = grad.copy(), output.copy()
            tally.trying(f"Residual.backward(grad_output {grad.shape}), the same block after other sizes")
            results.append(residual.backward(grad, this_pass))
            cause = f"a layer may return grad_output itself, as dropout does that drops none: {own}"
            tally.holds(np.array_equal(grad, given), "grad_output was changed by the call", cause=cause)
            cause = f"what the forward pass has returned is not for the way back: {own}"
            tally.holds(np.array_equal(output, made), "the output of the forward pass was changed", cause=cause)
        residual.backward(grad, this_pass)
        again = residual.backward(grad, this_pass)
        cause = f"a new array for each step grows the memory that a step takes: {own}"
        tally.holds(np.may_share_memory(results[-1], again), "each call makes a new array", cause=cause)
        alike = np.allclose(results[-1], 2 * grad)
        tally.holds(alike, "a block whose layers change nothing: wrong", expected="2 * grad_output", cause=own)

    def right(
        x: np.ndarray, w: np.ndarray, b: np.ndarray, grad: np.ndarray, shortcut: float = 1.0, layers: float = 1.0
    ) -> dict[str, np.ndarray]:
        inner = grad * (1 - np.tanh(conv_of(x, w, b, ONE, ONE)) ** 2)
        through = grad_input_of(inner, w, (x.shape[2], x.shape[3]), ONE, ONE)
        of_weights = grad_weights_of(inner, windows_of(x, (3, 3), ONE, ONE))
        return {"": layers * through + shortcut * grad, "grad_weights": of_weights}

    def arguments(rng: np.random.Generator, size: tuple[int, int, int, int]) -> tuple[np.ndarray, ...]:
        n, c, rows, columns = size
        case = Case(n, c, rows, columns, c, 3, 3, ONE, ONE)
        x, weights, bias, *_ = conv_arguments(rng, case)
        return x, 0.3 * weights, bias, grads_of(rng, case)

    def scale(*given: Any) -> Any:
        return {name: 10 * np.max(np.abs(value)) for name, value in right(*given).items()}

    def of(**switches: Any) -> Callable[..., np.ndarray]:
        return lambda *given: right(*given, **switches)[""]

    middle = np.zeros((1, 1, 3, 3))
    middle[0, 0, 1, 1] = 2.0
    zero = np.zeros(1)
    return graded(
        Exercise(
            call=call,
            reference=right,
            show=lambda x, weights, bias, grad_output: (
                f"Residual.backward(grad_output {grad_output.shape}) of a block with a convolution and tanh"
            ),
            hand=[  # at x = 0 tanh has the slope 1: the layers multiply by 2, and the shortcut adds once more
                (
                    (array([0, 0, 0]), middle, zero, array([1, -2, 5])),
                    {"": array([3, -6, 15]), "grad_weights": np.zeros((1, 1, 3, 3))},
                ),
                (
                    (array([0], [0]), -middle, zero, array([1], [4])),
                    {"": array([-1], [-4]), "grad_weights": np.zeros((1, 1, 3, 3))},
                ),
            ],
            arguments=arguments,
            typical=(2, 2, 3, 4),
            sizes=[(1, 1, 1, 1), (3, 2, 5, 2), (1, 4, 2, 7), (7, 1, 4, 3)],
            factors=(0.1, 1e-6),
            special=(3,),
            terms=lambda x, w, *more: 10 * w[0].size + x[:, 0].size,
            scale=scale,
            way=own_memory,
            mistakes=[
                Mistake(
                    "the shortcut is left out: x went into the sum as it is, so grad_output belongs to the result, too",
                    of(shortcut=0.0),
                ),
                Mistake("only the shortcut is there: the gradient also goes back through the layers", of(layers=0.0)),
                Mistake("the shortcut counts twice: grad_output is added once", of(shortcut=2.0)),
                Mistake(
                    "the shortcut is subtracted: two ways from x to the loss, two terms of a sum", of(shortcut=-1.0)
                ),
                Mistake(
                    "the two gradients are multiplied: x acts on the loss in two ways, and they add up",
                    lambda x, w, b, grad: right(x, w, b, grad, 0.0)[""] * grad,
                ),
                Mistake(
                    "the mean of the two ways: they add up",
                    of(shortcut=0.5, layers=0.5),
                ),
            ],
        )
    )


def described(name: str) -> Any:
    """The description of an activation."""
    from shared.layers import Activate

    return Activate(name)


GRADES: dict[str, Callable[[], list[Check]]] = {
    "20.1": windows,
    "20.2": sliding_einsum,
    "20.7": residual_backward,
}
