"""Phase 1: the network on lists of floats. What is right is computed with NumPy in float64."""

from __future__ import annotations

import copy
import math
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from groundup.course.checks import Check, Exercise, Wrong, checks_of, gradient_check, outputs
from groundup.course.grading.layers import (
    BACKWARD_GUESSES,
    BACKWARD_HAND,
    CROSS_ENTROPY_BACKWARD_GUESSES,
    CROSS_ENTROPY_BACKWARD_HAND,
    CROSS_ENTROPY_GUESSES,
    CROSS_ENTROPY_HAND,
    DENSE_GUESSES,
    DENSE_HAND,
    FAR,
    LOG2,
    LOG3,
    MATMUL_GUESSES,
    MATMUL_HAND,
    RELU_GUESSES,
    RELU_HAND,
    SHAPES,
    SIZES,
    SOFTMAX_GUESSES,
    SOFTMAX_HAND,
    B,
    backward_arguments,
    cross_entropy_gradient,
    cross_entropy_of,
    cross_entropy_slopes,
    dense_arguments,
    dense_gradients,
    dense_slopes,
    labelled,
    loss_scale,
    matrices,
    relu_arguments,
    relu_slopes,
    softmax_arguments,
    softmax_of,
)
from groundup.course.grading.networks import (
    BACKPROPAGATION_GUESSES,
    BACKPROPAGATION_HAND,
    FORWARD_GUESSES,
    FORWARD_HAND,
    NETWORKS,
    Problem,
    gradients_by_name,
    network_case,
    network_gradients,
    network_slopes,
    network_trace,
    traced,
)
from groundup.course.grading.steps import SGD_ALL, SGD_HAND, SGD_SIZES, Steps, held, sgd_guesses, sgd_steps, steps_case
from groundup.course.likely import Guess
from shared.contract import load_stage

OVERFLOW = "exp of more than 709 is beyond every float: subtract {} first, which cancels and changes nothing else"
UNDERFLOW = "every exp of a row has rounded to 0: subtract the largest of each row, not of the whole matrix"
LOGARITHM = "a share has rounded to 0, and the logarithm of 0 is no number: work with z - max(z), as the docstring does"


def stage() -> Any:
    """The first floor, with the learner's function in it."""
    return load_stage("stage1_pure_python")


def on_lists(
    function: Callable[..., Any], *names: str, overflow: str = "", division: str = "", logarithm: str = ""
) -> Callable[..., Any]:
    """A function of lists as one that takes NumPy arrays.

    names: of its arguments, which have to be the same after the call
    overflow, division, logarithm: what it means where Python's own arithmetic raises; "" leaves the error as it is
    """

    def call(*arguments: Any) -> Any:
        given = [each.tolist() if isinstance(each, np.ndarray) else each for each in arguments]
        before = copy.deepcopy(given)
        try:
            result = function(*given)
        except (OverflowError, ZeroDivisionError, ValueError) as error:
            if isinstance(error, ValueError):
                # As math.log puts it, until Python 3.13 and from 3.14 on.
                likely = logarithm if str(error).startswith(("math domain error", "expected a positive input")) else ""
            else:
                likely = overflow if isinstance(error, OverflowError) else division
            if not likely:
                raise
            called = f"{function.__name__}({', '.join(_short(each) for each in arguments)})"
            what = f"{type(error).__name__}: {error}, in {called}"
            raise Wrong(what, likely=likely, line=_line_in(function, error)) from None
        for name, old, new in zip(names, before, given, strict=False):
            if old != new:
                likely = f"make a new list, and leave {name} as it is: the caller still needs it"
                raise Wrong(f"{name} was changed by the call", likely=likely)
        return result

    return call


def graded(exercise: Exercise) -> list[Check]:
    """The checks of an exercise whose results have to be lists of numbers, or numbers, of Python's own.

    An array of NumPy's that holds the right numbers would pass, and break what the next function does with a list.
    """

    def call(*arguments: Any) -> Any:
        found = exercise.call(*arguments)
        for name, value in outputs(found).items():
            foreign = None if value is None else foreign_type(value)
            if foreign is not None:
                case = exercise.show(*arguments)
                raise Wrong(
                    f"{f'{name} of ' if name else ''}{case}: expected numbers of Python's own",
                    expected=dimensions.get(name, MATRIX),
                    got=foreign.__name__ if type(value) is foreign else f"{foreign.__name__} within a list",
                    likely=FOREIGN.get(foreign, NO_NUMPY),
                )
        return found

    dimensions = {
        name: LISTS[np.ndim(value)] for _, expected in exercise.hand for name, value in outputs(expected).items()
    }
    return checks_of(replace(exercise, call=call, fresh=True))


MATRIX = "a list of lists of floats"
LISTS = ("a float", "a list of floats", MATRIX)
NO_NUMPY = "this floor uses no NumPy: rows are lists, and their elements floats"
FOREIGN: dict[type, str] = {
    tuple: "a tuple cannot be changed in place: rows are lists, [...]",
    str: "what stands in quotes is text: float(...) makes a number of it",
    bool: "True and False are no numbers here: 1.0 if ... else 0.0",
}


def foreign_type(value: Any) -> type | None:
    """The first type in a result that is neither list nor int nor float, or None. Subclasses, bool too, are foreign."""
    if type(value) is list:
        return next((found for found in map(foreign_type, value) if found is not None), None)
    return None if type(value) in (int, float) else type(value)


def _short(value: Any) -> str:
    if np.ndim(value):
        return np.array2string(np.asarray(value), precision=4, separator=", ", threshold=8).replace("\n", "")
    return f"{value:g}"


def _line_in(function: Callable[..., Any], error: BaseException) -> int | None:
    """The last line in the function's own file that the error came through."""
    file = function.__code__.co_filename
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return lines[-1] if lines else None


ONE_ROW = (
    "all rows are one and the same list: [row] * m does not copy the row; make each row anew, [... for _ in range(m)]"
)


def product(rung: str) -> list[Check]:
    """A rung of the matmul ladder."""
    return graded(
        Exercise(
            call=on_lists(getattr(stage().matmul, rung), "a", "b"),
            reference=np.matmul,
            show=lambda a, b: f"{rung}(a {a.shape}, b {b.shape})",
            hand=MATMUL_HAND,
            arguments=matrices,
            typical=(4, 3, 5),
            sizes=SIZES,
            terms=lambda a, b: a.shape[1],
            scale=lambda a, b: np.abs(a) @ np.abs(b),
            guesses=[
                *MATMUL_GUESSES,
                Guess(ONE_ROW, lambda a, b: np.tile((a @ b).sum(axis=0), (len(a), 1)) if len(a) > 1 else None),
                Guess(ONE_ROW, lambda a, b: np.tile((a @ b)[-1], (len(a), 1)) if len(a) > 1 else None),
                Guess(
                    "only the first row is computed: zip gives an iterator, which is used up after one walk; "
                    "make a list of it",
                    lambda a, b: np.concatenate([a[:1] @ b, np.zeros((len(a) - 1, b.shape[1]))]),
                ),
                Guess(
                    "the sum is not begun anew: every element also holds what stood before it in its row",
                    lambda a, b: np.cumsum(a @ b, axis=1),
                ),
            ],
        )
    )


def matmul_tn() -> list[Check]:
    """aᵀb."""

    def arguments(rng: np.random.Generator, size: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
        m, k, n = size
        return rng.standard_normal((k, m)), rng.standard_normal((k, n))

    return graded(
        Exercise(
            call=on_lists(stage().matmul.matmul_tn, "a", "b"),
            reference=lambda a, b: a.T @ b,
            show=lambda a, b: f"matmul_tn(a {a.shape}, b {b.shape})",
            hand=[
                ((np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), B), [[11.0, -2.0], [14.0, -2.0]]),
                (
                    (np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[5.0, 6.0], [7.0, 8.0]])),
                    [[26.0, 30.0], [38.0, 44.0]],
                ),
            ],
            arguments=arguments,
            typical=(4, 3, 5),
            sizes=SIZES,
            terms=lambda a, b: a.shape[0],
            scale=lambda a, b: np.abs(a).T @ np.abs(b),
            guesses=[
                Guess(
                    "this is a times b: it is a's columns that are multiplied here, not its rows",
                    lambda a, b: a @ b if a.shape[1] == len(b) else None,
                ),
                Guess(
                    "this is a times b transposed: rows with rows, where columns with columns are wanted",
                    lambda a, b: a @ b.T if a.shape[1] == b.shape[1] else None,
                ),
                Guess(
                    "the last row is left out: the sum runs over all rows, which a and b have in common",
                    lambda a, b: a[:-1].T @ b[:-1] if len(a) > 1 else None,
                ),
                Guess("only the last row counts: add to the sum, do not assign", lambda a, b: a[-1:].T @ b[-1:]),
            ],
        )
    )


def relu_backward() -> list[Check]:
    """The derivative of ReLU."""
    call = on_lists(stage().activations.relu_backward, "grad_output", "z", "output")
    return graded(
        Exercise(
            call=call,
            reference=lambda g, z, o: np.where(z > 0, g, 0.0),
            show=lambda g, z, o: f"relu_backward(grad_output, z, output), each {z.shape}",
            hand=RELU_HAND,
            arguments=relu_arguments,
            typical=(4, 5),
            sizes=SHAPES,
            gradient=relu_slopes(call),
            guesses=RELU_GUESSES,
        )
    )


def sigmoid_of() -> list[Check]:
    """The sigmoid of one number at a time."""
    of_one = on_lists(
        stage().activations.sigmoid_of,
        overflow="exp of more than 709 is beyond every float: for v below 0, exp(v) / (1 + exp(v)) is the same number",
    )

    def reference(v: float) -> float:
        e = math.exp(-abs(v))
        return 1.0 / (1.0 + e) if v >= 0 else e / (1.0 + e)

    return graded(
        Exercise(
            call=of_one,
            reference=reference,
            show=lambda v: f"sigmoid_of({v:g})",
            hand=[
                ((0.0,), 0.5),
                ((LOG3,), 0.75),
                ((-LOG3,), 0.25),
                ((-LOG2,), 1 / 3),
                ((1000.0,), 1.0),
                ((-1000.0,), 0.0),
            ],
            arguments=lambda rng, size: (float(size * rng.standard_normal()),),
            typical=3.0,
            sizes=[0.1, 1.0, 10.0, -10.0, 40.0, -40.0, 300.0, FAR, -FAR],
            scale=lambda v: 1.0,
            guesses=[
                Guess("this is the sigmoid of -v: the exponent's sign", lambda v: 1.0 - reference(v)),
                Guess(
                    "this is the sigmoid's slope, s (1 - s); wanted is s itself",
                    lambda v: reference(v) * (1 - reference(v)),
                ),
                Guess("this is tanh, between -1 and 1; the sigmoid lies between 0 and 1", lambda v: math.tanh(v)),
                Guess(
                    "this is exp(-v): what is missing is 1 / (1 + ...)", lambda v: math.exp(-v) if v > -700 else None
                ),
                Guess(
                    "this is 1 + exp(-v): what is missing is 1 / ...", lambda v: 1 + math.exp(-v) if v > -700 else None
                ),
            ],
        )
    )


def softmax() -> list[Check]:
    """Softmax of every row."""
    return graded(
        Exercise(
            call=on_lists(
                stage().activations.softmax,
                "z",
                overflow=OVERFLOW.format("the row's maximum"),
                division=UNDERFLOW,
            ),
            reference=softmax_of,
            show=lambda z: f"softmax(z {z.shape})",
            hand=SOFTMAX_HAND,
            arguments=softmax_arguments,
            typical=(4, 3),
            sizes=SHAPES,
            terms=lambda z: z.shape[1] + 16,
            scale=lambda z: 1.0 + np.abs(z).max(),
            guesses=SOFTMAX_GUESSES,
        )
    )


def pair_of(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Random outputs and targets."""
    return rng.standard_normal(shape), rng.standard_normal(shape)


def mean_squared_error_backward() -> list[Check]:
    """The gradient of the mean squared error."""
    call = on_lists(stage().losses.mean_squared_error_backward, "outputs", "targets")
    guesses = [
        Guess("the derivative of a square brings a factor of 2", lambda o, t: (o - t) / o.size),
        Guess(
            "divided by the batch alone: the mean is over all elements, rows times columns",
            lambda o, t: 2 * (o - t) / len(o),
        ),
        Guess(
            "divided by the columns alone: the mean is over all elements, rows times columns",
            lambda o, t: 2 * (o - t) / o.shape[1],
        ),
        Guess("forgot the mean: divide by the number of elements", lambda o, t: 2 * (o - t)),
        Guess(
            "wrong sign: output minus target, for more output means more error above the target",
            lambda o, t: 2 * (t - o) / o.size,
        ),
        Guess("this is the error itself, squared; wanted is its slope", lambda o, t: (o - t) ** 2 / o.size),
    ]
    _, targets = pair_of(np.random.default_rng(6), (3, 4))
    return graded(
        Exercise(
            call=call,
            reference=lambda o, t: 2 * (o - t) / o.size,
            show=lambda o, t: f"mean_squared_error_backward(outputs {o.shape}, targets)",
            hand=[
                ((np.array([[1.0, 2.0], [3.0, 5.0]]), np.array([[0.0, 0.0], [3.0, 1.0]])), [[0.5, 1.0], [0.0, 2.0]]),
                ((np.array([[7.0]]), np.array([[10.0]])), [[-6.0]]),
            ],
            arguments=pair_of,
            typical=(4, 3),
            sizes=SHAPES,
            gradient=gradient_check(
                lambda o: float(np.mean((o - targets) ** 2)),
                lambda o: call(o, targets),
                lambda rng: rng.standard_normal((3, 4)),
                "mean_squared_error for outputs (3, 4)",
                guesses=[replace(guess, wrong=lambda o, wrong=guess.wrong: wrong(o, targets)) for guess in guesses],
            ),
            guesses=guesses,
        )
    )


def softmax_cross_entropy() -> list[Check]:
    """Softmax cross-entropy."""
    return graded(
        Exercise(
            call=on_lists(
                stage().losses.softmax_cross_entropy,
                "logits",
                "labels",
                overflow=OVERFLOW.format("the row's maximum"),
                division=UNDERFLOW,
                logarithm=LOGARITHM,
            ),
            reference=cross_entropy_of,
            show=lambda z, labels: f"softmax_cross_entropy(logits {z.shape}, labels)",
            hand=CROSS_ENTROPY_HAND,
            arguments=labelled,
            typical=(4, 3),
            sizes=SHAPES,
            terms=lambda z, labels: z.size + 16,
            scale=loss_scale,
            guesses=CROSS_ENTROPY_GUESSES,
        )
    )


def softmax_cross_entropy_backward() -> list[Check]:
    """The gradient of softmax cross-entropy."""
    call = on_lists(
        stage().losses.softmax_cross_entropy_backward,
        "logits",
        "labels",
        overflow=OVERFLOW.format("the row's maximum"),
        division=UNDERFLOW,
    )
    return graded(
        Exercise(
            call=call,
            reference=cross_entropy_slopes,
            show=lambda z, labels: f"softmax_cross_entropy_backward(logits {z.shape}, labels)",
            hand=CROSS_ENTROPY_BACKWARD_HAND,
            arguments=labelled,
            typical=(4, 3),
            sizes=SHAPES,
            gradient=cross_entropy_gradient(call),
            terms=lambda z, labels: z.shape[1] + 16,
            scale=loss_scale,
            guesses=CROSS_ENTROPY_BACKWARD_GUESSES,
        )
    )


REMEMBER = "backward will ask what x was: keep it, self._x = x"


def dense_forward() -> list[Check]:
    """Dense.forward: the result, and that it remembers x."""
    dense = stage().dense.Dense

    def call(x: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> Any:
        layer = dense(weights.tolist(), bias.tolist())
        y = on_lists(layer.forward, "x")(x)
        if layer._x is None or np.shape(layer._x) != x.shape:
            raise Wrong("Dense.forward does not remember x", likely=REMEMBER)
        if layer.weights != weights.tolist() or layer.bias != bias.tolist():
            raise Wrong("the layer's weights or bias were changed by forward", likely="forward only reads them")
        return y

    return graded(
        Exercise(
            call=call,
            reference=lambda x, w, b: x @ w + b,
            show=lambda x, w, b: f"Dense.forward(x {x.shape}) for weights {w.shape}",
            hand=DENSE_HAND,
            arguments=dense_arguments,
            typical=(4, 3, 4),
            sizes=SIZES,
            terms=lambda x, w, b: len(w) + 1,
            scale=lambda x, w, b: np.abs(x) @ np.abs(w) + np.abs(b),
            guesses=DENSE_GUESSES,
        )
    )


NOT_NEEDED = (
    "the first layer has nobody to hand dL/dx to: return None without computing it where needs_grad_input is False"
)


def dense_backward() -> list[Check]:
    """Dense.backward: the three gradients by name, of the second call in a row."""
    dense = stage().dense.Dense

    def call(x: np.ndarray, weights: np.ndarray, grad: np.ndarray) -> dict[str, Any]:
        layer = dense(weights.tolist(), [0.5] * weights.shape[1])
        layer.forward(x.tolist())
        if layer.backward(grad.tolist(), needs_grad_input=False) is not None:
            raise Wrong("backward(…, needs_grad_input=False) returned something", expected="None", likely=NOT_NEEDED)
        returned = on_lists(layer.backward, "grad_output")(grad)
        if layer.weights != weights.tolist() or layer.bias != [0.5] * weights.shape[1]:
            likely = "backward only finds the gradients; moving the weights is the optimizer's task"
            raise Wrong("the layer's weights or bias were changed by backward", likely=likely)
        return {"grad_input": returned, "grad_weights": layer.grad_weights, "grad_bias": layer.grad_bias}

    return graded(
        Exercise(
            call=call,
            reference=dense_gradients,
            show=lambda x, w, g: f"Dense.backward(grad_output {g.shape}) for x {x.shape}, weights {w.shape}",
            hand=BACKWARD_HAND,
            arguments=backward_arguments,
            typical=(4, 3, 2),
            sizes=SIZES,
            terms=lambda x, w, g: max(len(x), w.shape[1]) + 16,
            scale=lambda x, w, g: np.abs(x).sum() + np.abs(w).sum() + np.abs(g).sum(),
            gradient=dense_slopes(call),
            guesses=BACKWARD_GUESSES,
        )
    )


def softmax_slopes(grad: np.ndarray, output: np.ndarray) -> np.ndarray:
    """s (g - sum of g s), row by row."""
    slopes: np.ndarray = output * (grad - (grad * output).sum(axis=1, keepdims=True))
    return slopes


def softmax_backward() -> list[Check]:
    """The derivative of softmax."""
    call = on_lists(stage().activations.softmax_backward, "grad_output", "z", "output")
    grad = np.random.default_rng(6).standard_normal((3, 4))
    guesses = [
        Guess(
            "this is the sigmoid's rule, s (1 - s): in softmax, every output of a row depends on every z of the row",
            lambda g, z, s: g * s * (1 - s),
        ),
        Guess("the factor s_i in front is missing", lambda g, z, s: g - (g * s).sum(axis=1, keepdims=True)),
        Guess("the sum over the row is not subtracted", lambda g, z, s: g * s),
        Guess(
            "the sum is over the batch: it runs along the row, over the classes of one sample",
            lambda g, z, s: s * (g - (g * s).sum(axis=0)),
        ),
        Guess(
            "the sum is of g alone: each g_j counts with its share s_j",
            lambda g, z, s: s * (g - g.sum(axis=1, keepdims=True)),
        ),
        Guess("the wrong order: g minus the sum, not the sum minus g", lambda g, z, s: -softmax_slopes(g, s)),
        Guess(
            "the sum is of another row: it belongs to one row, and starts at 0 in each",
            lambda g, z, s: s * (g - np.cumsum((g * s).sum(axis=1))[:, np.newaxis]),
        ),
    ]

    def arguments(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[np.ndarray, ...]:
        z = rng.standard_normal(shape)
        return rng.standard_normal(shape), z, softmax_of(z)

    half, quarters = np.zeros((1, 2)), np.array([[0.0, LOG3], [LOG3, 0.0]])
    return graded(
        Exercise(
            call=call,
            reference=lambda g, z, s: softmax_slopes(g, s),
            show=lambda g, z, s: f"softmax_backward(grad_output, z, output), each {z.shape}",
            hand=[
                ((np.array([[1.0, 0.0]]), half, np.array([[0.5, 0.5]])), [[0.25, -0.25]]),
                (
                    (np.array([[4.0, 8.0], [4.0, 8.0]]), quarters, np.array([[0.25, 0.75], [0.75, 0.25]])),
                    [[-0.75, 0.75], [-0.75, 0.75]],
                ),
            ],
            arguments=arguments,
            typical=(4, 3),
            sizes=SHAPES,
            terms=lambda g, z, s: z.shape[1] + 16,
            scale=lambda g, z, s: np.abs(g).max(),
            gradient=gradient_check(
                lambda z: float(np.sum(softmax_of(z) * grad)),
                lambda z: call(grad, z, softmax_of(z)),
                lambda rng: rng.standard_normal((3, 4)),
                "sum(softmax(z) * grad_output) for z (3, 4)",
                guesses=[
                    replace(guess, wrong=lambda z, wrong=guess.wrong: wrong(grad, z, softmax_of(z)))
                    for guess in guesses
                ],
            ),
            guesses=guesses,
        )
    )


def network_forward() -> list[Check]:
    """Network._forward: the whole trace."""
    network = stage().network.Network

    def call(given: Problem) -> dict[str, Any]:
        made = network.from_parameters(given.parameters, given.activation, given.loss, "float64")
        masks = None if given.masks is None else [mask.tolist() for mask in given.masks]
        return traced(on_lists(made._forward, "x", "dropout_masks")(given.x, masks), given)

    return graded(
        Exercise(
            call=call,
            reference=network_trace,
            show=lambda given: f"_forward of {given}",
            hand=FORWARD_HAND,
            arguments=network_case,
            typical=((3, 3, 3, 2), 4, True),
            sizes=NETWORKS,
            terms=lambda given: 64,
            scale=lambda given: sum(float(np.abs(z).max()) for z in network_trace(given).values()) + 1,
            guesses=FORWARD_GUESSES,
        )
    )


def network_forward_backward() -> list[Check]:
    """Network._forward_backward: the loss and all gradients."""
    network = stage().network.Network

    def call(given: Problem) -> dict[str, Any]:
        made = network.from_parameters(given.parameters, given.activation, given.loss, "float64")
        masks = None if given.masks is None else [mask.tolist() for mask in given.masks]
        loss = on_lists(made._forward_backward, "x", "y", "dropout_masks")(given.x, given.y, masks)
        if any(np.any(np.asarray(new) != old) for new, old in zip(made.parameters, given.parameters, strict=True)):
            likely = "backpropagation only finds the gradients; moving the weights is the optimizer's task"
            raise Wrong("the network's parameters were changed by _forward_backward", likely=likely)
        return gradients_by_name(loss, made._gradients())

    return graded(
        Exercise(
            call=call,
            reference=network_gradients,
            show=lambda given: f"_forward_backward of {given}",
            hand=BACKPROPAGATION_HAND,
            arguments=network_case,
            typical=((3, 3, 3, 3), 4, True),
            sizes=NETWORKS,
            terms=lambda given: 256,
            scale=lambda given: 10.0 + float(np.abs(given.flat).max()) ** 2,
            gradient=network_slopes(call),
            guesses=BACKPROPAGATION_GUESSES,
        )
    )


NOT_IN_PLACE = (
    "nothing has changed: the numbers have to change inside the lists that are given, p[i] -= …; a new list is lost"
)


def sgd_step() -> list[Check]:
    """SGD.step, on lists that have to change in place."""
    sgd = stage().optimizers.SGD

    def call(given: Steps) -> dict[str, Any]:
        weights, bias = given.weights.tolist(), given.bias.tolist()
        optimizer = sgd(given.rates[0], **given.settings)
        for gradients, rate in zip(given.gradients, given.rates, strict=True):
            optimizer.learning_rate = rate
            on_lists(lambda g, h: optimizer.step([weights, bias], [g, h]), "the gradient", "the gradient")(*gradients)
        after = {"weights": weights, "bias": bias}
        if given.settings.get("momentum"):
            after[held("velocity", "weights")], after[held("velocity", "bias")] = optimizer.state()["buffers"][
                "velocity"
            ]
        return after

    return graded(
        Exercise(
            call=call,
            reference=sgd_steps,
            show=lambda given: f"SGD.step ({given})",
            hand=SGD_HAND,
            arguments=steps_case,
            typical=((3, 2), SGD_ALL),
            sizes=SGD_SIZES,
            scale=lambda given: 10.0,
            guesses=sgd_guesses(NOT_IN_PLACE),
        )
    )


GRADES: dict[str, Callable[[], list[Check]]] = {
    "1.1": lambda: product("index_loops"),
    "1.2": lambda: product("zip_rows_columns"),
    "1.3": lambda: product("transpose_once"),
    "1.4": matmul_tn,
    "2.1": relu_backward,
    "2.2": sigmoid_of,
    "2.3": softmax,
    "2.4": mean_squared_error_backward,
    "2.5": softmax_cross_entropy,
    "2.6": softmax_cross_entropy_backward,
    "3.1": dense_forward,
    "3.2": dense_backward,
    "3.3": softmax_backward,
    "3.4": network_forward,
    "3.5": network_forward_backward,
    "3.6": sgd_step,
}


def checkpoint() -> list[Check]:
    """XOR: learned with a hidden layer of two, and out of reach without one."""
    # Imported here: training and data sets take half as long to import as grading a task takes.
    from groundup.course.grading.checkpoints import learned_xor

    return learned_xor()
