"""Phase 1: the network on lists of floats. What is right is computed with NumPy in float64.

The references of this file are written for reading, each with switches that turn it into the mistakes it invites: so a
wrong result can be compared with what a misconception would have given. Phase 2 asks for the same functions on arrays
and takes its hand values, its networks and these mistakes from here.
"""

from __future__ import annotations

import copy
import math
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from shared.contract import load_stage
from shared.course.likely import Guess
from shared.course.rungs import Exercise, Rung, Tally, Wrong, gradient_rung, rungs
from shared.synthetic import xor
from shared.training import evaluate, train

SIZES = [(1, 1, 1), (1, 7, 3), (2, 3, 5), (13, 17, 11), (5, 31, 2), (31, 2, 29)]
"""(M, K, N): ones, primes, K much larger than N and the reverse."""

SHAPES = [(1, 1), (1, 7), (13, 1), (2, 5), (17, 11), (3, 31)]
"""(batch, features)."""

LOG2, LOG3 = math.log(2.0), math.log(3.0)
FAR = 1e4
"""A logit so large that exp of it is beyond every float."""

A, B = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), np.array([[1.0, 0.0], [0.0, 1.0], [2.0, -1.0]])
MATMUL_HAND = [((A, B), [[7.0, -1.0], [16.0, -1.0]]), ((B, A), [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [-2.0, -1.0, 0.0]])]

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


def _short(value: Any) -> str:
    if np.ndim(value):
        return np.array2string(np.asarray(value), precision=4, separator=", ", threshold=8).replace("\n", "")
    return f"{value:g}"


def _line_in(function: Callable[..., Any], error: BaseException) -> int | None:
    """The last line in the function's own file that the error came through."""
    file = function.__code__.co_filename
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return lines[-1] if lines else None


# -------- week 1: matrices --------


def matrices(rng: np.random.Generator, size: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Random a (M, K) and b (K, N)."""
    m, k, n = size
    return rng.standard_normal((m, k)), rng.standard_normal((k, n))


ONE_ROW = (
    "all rows are one and the same list: [row] * m does not copy the row; make each row anew, [... for _ in range(m)]"
)

MATMUL_GUESSES = [
    Guess(
        "the last product is left out: does k run to the end of the row?",
        lambda a, b: a[:, :-1] @ b[:-1] if a.shape[1] > 1 else None,
    ),
    Guess("only the last product is kept: add to the sum, do not assign", lambda a, b: a[:, -1:] @ b[-1:]),
    Guess(
        "these are the products element by element; a matrix product adds up a row times a column",
        lambda a, b: a * b if a.shape == b.shape else None,
    ),
]


def product(rung: str) -> list[Rung]:
    """A rung of the matmul ladder."""
    return rungs(
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


def matmul_tn() -> list[Rung]:
    """aᵀb."""

    def arguments(rng: np.random.Generator, size: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
        m, k, n = size
        return rng.standard_normal((k, m)), rng.standard_normal((k, n))

    return rungs(
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


# -------- week 2: activations and losses --------


def with_zeros(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Random numbers, every third of them 0: where ReLU has its kink."""
    z = rng.standard_normal(shape)
    z.flat[::3] = 0.0
    return z


def relu_arguments(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[np.ndarray, ...]:
    """Random grad_output, and z with zeros, and the output that goes with it."""
    z = with_zeros(rng, shape)
    return rng.standard_normal(shape), z, np.maximum(z, 0)


RELU_Z = np.array([[-1.0, 0.0, 2.0], [3.0, -4.0, 0.5]])
RELU_HAND = [
    (
        (np.array([[10.0, 20.0, 30.0], [-1.0, -2.0, -3.0]]), RELU_Z, np.maximum(RELU_Z, 0)),
        [[0, 0, 30.0], [-1.0, 0, -3.0]],
    )
]

RELU_GUESSES = [
    Guess("the slope at z = 0: here it is 0, so the gradient stops there, too", lambda g, z, o: g * (z >= 0)),
    Guess("this is the slope alone: the chain rule multiplies it by grad_output", lambda g, z, o: (z > 0) * 1.0),
    Guess("this is relu(z) once more: its slope is wanted, times grad_output", lambda g, z, o: o),
    Guess("the slope of ReLU is 1 where z is positive, not z", lambda g, z, o: g * o),
    Guess("the sign of grad_output does not matter: it is z that opens and closes", lambda g, z, o: np.maximum(g, 0)),
    Guess("the wrong way round: the gradient passes where z was positive", lambda g, z, o: g * (z <= 0)),
    Guess("the gradient passes everywhere: it has to stop where z was not positive", lambda g, z, o: g),
]


def relu_slopes(call: Callable[..., Any]) -> Callable[[Tally], None]:
    """The gradient rung of relu_backward, away from the kink."""
    grad = np.random.default_rng(6).standard_normal((3, 4))

    def at(rng: np.random.Generator) -> np.ndarray:
        z = rng.standard_normal((3, 4))
        return np.sign(z) * (0.1 + np.abs(z))

    def slope_of(z: np.ndarray) -> Any:
        return call(grad, z, np.maximum(z, 0))

    return gradient_rung(
        lambda z: float(np.sum(np.maximum(z, 0) * grad)),
        slope_of,
        at,
        "sum(relu(z) * grad_output) for z (3, 4)",
        guesses=[
            replace(guess, wrong=lambda z, wrong=guess.wrong: wrong(grad, z, np.maximum(z, 0)))
            for guess in RELU_GUESSES
        ],
    )


def relu_backward() -> list[Rung]:
    """The derivative of ReLU."""
    call = on_lists(stage().activations.relu_backward, "grad_output", "z", "output")
    return rungs(
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


def sigmoid_of() -> list[Rung]:
    """The sigmoid of one number at a time."""
    of_one = on_lists(
        stage().activations.sigmoid_of,
        overflow="exp of more than 709 is beyond every float: for v below 0 write exp(v) / (1 + exp(v)), the same number",
    )

    def reference(v: float) -> float:
        e = math.exp(-abs(v))
        return 1.0 / (1.0 + e) if v >= 0 else e / (1.0 + e)

    return rungs(
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


def softmax_of(z: np.ndarray, axis: int | None = 1) -> np.ndarray:
    """Softmax of every row; of every column (axis 0) or of everything (None) it is one of its mistakes."""
    with np.errstate(all="ignore"):
        exps = np.exp(z - z.max(axis=1, keepdims=True) if axis == 1 else z)
        shares: np.ndarray = exps / exps.sum(axis=axis, keepdims=True)
        return shares


def naive_softmax(z: np.ndarray) -> np.ndarray:
    """Without subtracting the maximum: NaN where exp overflows."""
    with np.errstate(all="ignore"):
        exps = np.exp(z)
        shares: np.ndarray = exps / exps.sum(axis=1, keepdims=True)
        return shares


SOFTMAX_HAND = [
    ((np.array([[0.0, LOG3], [LOG2, LOG2]]),), [[0.25, 0.75], [0.5, 0.5]]),
    ((np.array([[0.0, LOG2, math.log(5.0)]]),), [[0.125, 0.25, 0.625]]),
    ((np.array([[FAR, FAR, -FAR]]),), [[0.5, 0.5, 0.0]]),
    ((np.array([[FAR, -FAR], [-FAR, -FAR]]),), [[1.0, 0.0], [0.5, 0.5]]),
]

SOFTMAX_GUESSES = [
    Guess("every column adds up to 1 here; softmax is over each row", lambda z: softmax_of(z, axis=0)),
    Guess("all numbers together add up to 1 here; every row has to by itself", lambda z: softmax_of(z, axis=None)),
    Guess(
        "these are the exponentials of z - max(z): what is missing is to divide each by their row's sum",
        lambda z: np.exp(z - z.max(axis=1, keepdims=True)),
    ),
    Guess(
        "each row is divided by its sum without exp: softmax takes exp first",
        lambda z: z / z.sum(axis=1, keepdims=True) if np.all(z.sum(axis=1)) else None,
    ),
]


def softmax_arguments(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[np.ndarray]:
    """Random logits, the rows of very different size."""
    return (rng.standard_normal(shape) * 3 + 20 * rng.standard_normal((shape[0], 1)),)


def softmax() -> list[Rung]:
    """Softmax of every row."""
    return rungs(
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
            guesses=SOFTMAX_GUESSES,
        )
    )


def pair_of(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Random outputs and targets."""
    return rng.standard_normal(shape), rng.standard_normal(shape)


def mean_squared_error_backward() -> list[Rung]:
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
    return rungs(
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
            gradient=gradient_rung(
                lambda o: float(np.mean((o - targets) ** 2)),
                lambda o: call(o, targets),
                lambda rng: rng.standard_normal((3, 4)),
                "mean_squared_error for outputs (3, 4)",
                guesses=[replace(guess, wrong=lambda o, wrong=guess.wrong: wrong(o, targets)) for guess in guesses],
            ),
            guesses=guesses,
        )
    )


def cross_entropy_of(logits: np.ndarray, labels: np.ndarray) -> float:
    """The mean of -log(softmax(logits)[label])."""
    return float(np.mean(cross_entropies(logits)[np.arange(len(labels)), labels]))


def cross_entropies(logits: np.ndarray) -> np.ndarray:
    """-log(softmax(logits)) of every class."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    found: np.ndarray = np.log(np.exp(shifted).sum(axis=1, keepdims=True)) - shifted
    return found


def naive_cross_entropy(logits: np.ndarray, labels: np.ndarray) -> float:
    """-log(softmax) taken word for word, each exp without the maximum."""
    with np.errstate(all="ignore"):
        return float(np.mean(-np.log(naive_softmax(logits)[np.arange(len(labels)), labels])))


def labelled(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Random logits and labels."""
    return 3 * rng.standard_normal(shape), rng.integers(0, shape[1], shape[0])


CROSS_ENTROPY_HAND = [
    # Softmax of (0, log 3) is (1/4, 3/4): the losses are log 4 and log 4/3, of which two logs of 2 and one of 3 remain.
    ((np.array([[0.0, LOG3]]), np.array([0])), 1.3862943611198906),
    ((np.array([[0.0, LOG3], [0.0, LOG3]]), np.array([0, 1])), 0.8369882167858358),
    ((np.zeros((3, 3)), np.array([2, 0, 1])), 1.0986122886681098),
    ((np.array([[FAR, -FAR]]), np.array([0])), 0.0),
    ((np.array([[FAR, -FAR]]), np.array([1])), 2 * FAR),
]

CROSS_ENTROPY_GUESSES = [
    Guess(
        "forgot the mean over the batch: this is the sum over the rows",
        lambda z, labels: len(z) * cross_entropy_of(z, labels) if len(z) > 1 else None,
    ),
    Guess(
        "wrong sign: the loss is minus the logarithm, and never below 0",
        lambda z, labels: -cross_entropy_of(z, labels),
    ),
    Guess(
        "divided by batch times classes: every row has one loss, so the mean is over the rows",
        lambda z, labels: cross_entropy_of(z, labels) / z.shape[1] if z.shape[1] > 1 else None,
    ),
    Guess(
        "every class is counted: only the share of the row's label is",
        lambda z, labels: float(np.mean(cross_entropies(z).sum(axis=1))),
    ),
    Guess(
        "softmax is taken twice: logits are raw outputs, no softmax has seen them yet",
        lambda z, labels: cross_entropy_of(softmax_of(z), labels),
    ),
    Guess(
        "the maximum is subtracted in the sum of exps but not from the label's logit (or the reverse): in both, or it "
        "does not cancel",
        lambda z, labels: cross_entropy_of(z, labels) - float(np.mean(z.max(axis=1))),
    ),
    Guess(
        "softmax over the columns: the classes of a sample stand in a row",
        lambda z, labels: (
            float(np.mean(-np.log(softmax_of(z, axis=0)[np.arange(len(z)), labels]))) if np.abs(z).max() < 700 else None
        ),
    ),
]


def loss_scale(logits: np.ndarray, labels: np.ndarray) -> float:
    """What a loss rounds by: the logits that are subtracted in it."""
    return 1.0 + float(np.abs(logits).max())


def softmax_cross_entropy() -> list[Rung]:
    """Softmax cross-entropy."""
    return rungs(
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


def one_hot(labels: np.ndarray, classes: int) -> np.ndarray:
    """A row for each label: 1 at the label, 0 elsewhere."""
    return np.eye(classes)[labels]


def cross_entropy_slopes(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(softmax(logits) - one_hot(labels)) / batch."""
    slopes: np.ndarray = (softmax_of(logits) - one_hot(labels, logits.shape[1])) / len(logits)
    return slopes


CROSS_ENTROPY_BACKWARD_HAND = [
    ((np.array([[0.0, 0.0], [0.0, LOG3]]), np.array([1, 1])), [[0.25, -0.25], [0.125, -0.125]]),
    ((np.array([[0.0, LOG3]]), np.array([0])), [[-0.75, 0.75]]),
    ((np.array([[FAR, -FAR], [FAR, -FAR]]), np.array([0, 1])), [[0.0, 0.0], [0.5, -0.5]]),
]

CROSS_ENTROPY_BACKWARD_GUESSES = [
    Guess(
        "forgot the batch mean: the loss is the mean over the rows, so its gradient is divided by the batch, too",
        lambda z, labels: cross_entropy_slopes(z, labels) * len(z) if len(z) > 1 else None,
    ),
    Guess(
        "wrong sign: what was predicted minus what should have been",
        lambda z, labels: -cross_entropy_slopes(z, labels),
    ),
    Guess(
        "the 1 at the label is not subtracted: this is softmax, divided by the batch",
        lambda z, labels: softmax_of(z) / len(z),
    ),
    Guess("the 1 at the label is not subtracted: this is softmax", lambda z, labels: softmax_of(z)),
    Guess(
        "softmax is divided by the batch before the 1 is subtracted: subtract first, then divide all",
        lambda z, labels: softmax_of(z) / len(z) - one_hot(labels, z.shape[1]) if len(z) > 1 else None,
    ),
    Guess(
        "divided by batch times classes: the loss is the mean over the rows alone",
        lambda z, labels: cross_entropy_slopes(z, labels) / z.shape[1] if z.shape[1] > 1 else None,
    ),
    Guess(
        "the logits minus one: softmax has to come first",
        lambda z, labels: (z - one_hot(labels, z.shape[1])) / len(z),
    ),
    Guess(
        "1 is subtracted in a column of every row: each row has its own label",
        lambda z, labels: (softmax_of(z) - one_hot(labels, z.shape[1]).sum(axis=0)) / len(z) if len(z) > 1 else None,
    ),
]


def cross_entropy_gradient(call: Callable[..., Any]) -> Callable[[Tally], None]:
    """The gradient rung of softmax_cross_entropy_backward."""
    labels = np.array([2, 0, 3])
    return gradient_rung(
        lambda z: cross_entropy_of(z, labels),
        lambda z: call(z, labels),
        lambda rng: 2 * rng.standard_normal((3, 4)),
        "softmax_cross_entropy for logits (3, 4)",
        guesses=[
            replace(guess, wrong=lambda z, wrong=guess.wrong: wrong(z, labels))
            for guess in CROSS_ENTROPY_BACKWARD_GUESSES
        ],
    )


def softmax_cross_entropy_backward() -> list[Rung]:
    """The gradient of softmax cross-entropy."""
    call = on_lists(
        stage().losses.softmax_cross_entropy_backward,
        "logits",
        "labels",
        overflow=OVERFLOW.format("the row's maximum"),
        division=UNDERFLOW,
    )
    return rungs(
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
            guesses=CROSS_ENTROPY_BACKWARD_GUESSES,
        )
    )


# -------- week 3: the dense layer and backpropagation --------


def dense_arguments(rng: np.random.Generator, size: tuple[int, int, int]) -> tuple[np.ndarray, ...]:
    """Random x (batch, inputs), weights (inputs, outputs) and bias (outputs,)."""
    batch, inputs, outputs = size
    return rng.standard_normal((batch, inputs)), rng.standard_normal((inputs, outputs)), rng.standard_normal(outputs)


DENSE_HAND = [
    ((A, B, np.array([10.0, 20.0])), [[17.0, 19.0], [26.0, 19.0]]),
    ((np.array([[1.0], [2.0]]), np.array([[3.0, -1.0]]), np.array([0.5, 0.0])), [[3.5, -1.0], [6.5, -2.0]]),
]

DENSE_GUESSES = [
    Guess("the bias is not added", lambda x, w, b: x @ w),
    Guess(
        "the bias is added down the wrong axis: each output column has one bias, the same for every row of the batch",
        lambda x, w, b: x @ w + b[:, np.newaxis] if len(x) == len(b) else None,
    ),
    Guess(
        "the bias is added once for every input: once for each output, after the sum",
        lambda x, w, b: x @ w + len(w) * b if len(w) > 1 else None,
    ),
    Guess("the bias is subtracted: y = xW + b", lambda x, w, b: x @ w - b),
    Guess("the bias is multiplied with: y = xW + b", lambda x, w, b: x @ w * b),
]

REMEMBER = "backward will ask what x was: keep it, self._x = x"


def dense_forward() -> list[Rung]:
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

    return rungs(
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


def backward_arguments(rng: np.random.Generator, size: tuple[int, int, int]) -> tuple[np.ndarray, ...]:
    """Random x (batch, inputs), weights (inputs, outputs) and grad_output (batch, outputs)."""
    batch, inputs, outputs = size
    shapes = ((batch, inputs), (inputs, outputs), (batch, outputs))
    return tuple(rng.standard_normal(shape) for shape in shapes)


def dense_gradients(x: np.ndarray, weights: np.ndarray, grad: np.ndarray) -> dict[str, Any]:
    """The three gradients of xW + b by name, and the input's once more: what `backward` returns."""
    return {"grad_input": grad @ weights.T, "grad_weights": x.T @ grad, "grad_bias": grad.sum(axis=0)}


BACKWARD_HAND = [
    (
        (np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]]), np.array([[10.0]])),
        {"grad_input": [[30.0, 40.0]], "grad_weights": [[10.0], [20.0]], "grad_bias": [10.0]},
    ),
    (
        (np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([[1.0, 2.0], [0.0, 3.0]]), np.array([[1.0, 4.0], [5.0, 7.0]])),
        {
            "grad_input": [[9.0, 12.0], [19.0, 21.0]],
            "grad_weights": [[1.0, 4.0], [10.0, 14.0]],
            "grad_bias": [6.0, 11.0],
        },
    ),
]

BACKWARD_GUESSES = [
    Guess(
        "forgot the batch: a bias is added to every row, so its gradient is the sum over the rows, not the mean",
        lambda x, w, g: g.mean(axis=0) if len(g) > 1 else None,
        "grad_bias",
    ),
    Guess(
        "summed along the rows: the bias has one number for each output, so sum each column over the batch",
        lambda x, w, g: g.sum(axis=1),
        "grad_bias",
    ),
    Guess("only the last row of the batch counts: add up all of them", lambda x, w, g: g[-1], "grad_bias"),
    Guess("only the first row of the batch counts: add up all of them", lambda x, w, g: g[0], "grad_bias"),
    Guess(
        "grad_weights is divided by the batch: that mean is in the loss's gradient already",
        lambda x, w, g: x.T @ g / len(x) if len(x) > 1 else None,
        "grad_weights",
    ),
    Guess(
        "the gradient of the call before is still in it: set grad_weights anew, do not add to it",
        lambda x, w, g: 2 * x.T @ g,
        "grad_weights",
    ),
    Guess(
        "the gradient of the call before is still in it: set grad_bias anew, do not add to it",
        lambda x, w, g: 2 * g.sum(axis=0),
        "grad_bias",
    ),
    Guess(
        "W is not transposed: output j depends on input i by W[i][j], and the gradient goes back the same way",
        lambda x, w, g: g @ w if w.shape[0] == w.shape[1] else None,
        "grad_input",
    ),
    Guess(
        "x is not transposed: each weight's gradient is a sum over the batch",
        lambda x, w, g: x @ g if x.shape[0] == x.shape[1] else None,
        "grad_weights",
    ),
]


def dense_slopes(call: Callable[..., Any]) -> Callable[[Tally], None]:
    """The gradient rung of Dense.backward: all three of them."""
    x, weights, grad = backward_arguments(np.random.default_rng(5), (3, 4, 2))
    case = "sum(y * grad_output) for x (3, 4), weights (4, 2)"
    bias = np.zeros(2)

    def guesses(of: Callable[[np.ndarray], tuple[np.ndarray, ...]]) -> list[Guess]:
        return [replace(each, wrong=lambda at, wrong=each.wrong: wrong(*of(at))) for each in BACKWARD_GUESSES]

    checks = [
        gradient_rung(
            lambda w: float(np.sum((x @ w) * grad)),
            lambda w: call(x, w, grad),
            lambda rng: weights,
            case,
            name="grad_weights",
            guesses=guesses(lambda w: (x, w, grad)),
        ),
        gradient_rung(
            lambda b: float(np.sum((x @ weights + b) * grad)),
            lambda b: call(x, weights, grad),
            lambda rng: bias,
            case,
            name="grad_bias",
            guesses=guesses(lambda b: (x, weights, grad)),
        ),
        gradient_rung(
            lambda v: float(np.sum((v @ weights) * grad)),
            lambda v: call(v, weights, grad),
            lambda rng: x,
            case,
            name="grad_input",
            guesses=guesses(lambda v: (v, weights, grad)),
        ),
    ]

    def check(tally: Tally) -> None:
        for each in checks:
            each(tally)

    return check


NOT_NEEDED = (
    "the first layer has nobody to hand dL/dx to: return None without computing it where needs_grad_input is False"
)


def dense_backward() -> list[Rung]:
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

    return rungs(
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


def softmax_backward() -> list[Rung]:
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
    return rungs(
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
            gradient=gradient_rung(
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


@dataclass(frozen=True, eq=False)
class Problem:
    """A network and a batch. parameters: [W1, b1, W2, b2, …]; masks: of the hidden layers, None without dropout."""

    parameters: list[np.ndarray]
    x: np.ndarray
    y: np.ndarray
    activation: str = "tanh"
    loss: str = "softmax_cross_entropy"
    masks: list[np.ndarray] | None = None

    def __str__(self) -> str:
        sizes = "-".join(str(size) for size in [len(self.parameters[0]), *map(len, self.parameters[1::2])])
        dropout = ", with dropout" if self.masks else ""
        return f"a {sizes} network ({self.activation}, {self.loss}), batch {len(self.x)}{dropout}"

    @property
    def layers(self) -> int:
        """How many there are."""
        return len(self.parameters) // 2

    @property
    def flat(self) -> np.ndarray:
        """All parameters in one row."""
        return np.concatenate([each.ravel() for each in self.parameters])

    def at(self, flat: np.ndarray) -> Problem:
        """The same with other parameters, given in one row."""
        ends = np.cumsum([each.size for each in self.parameters])[:-1]
        parts = [part.reshape(p.shape) for part, p in zip(np.split(flat, ends), self.parameters, strict=True)]
        return replace(self, parameters=parts)


def problem(
    rng: np.random.Generator, sizes: Sequence[int], batch: int = 4, dropout: bool = False, activation: str = "tanh"
) -> Problem:
    """A random network for labels, with masks of 0 and 2 where there is dropout."""
    parameters = [
        array for m, n in pairwise(sizes) for array in (rng.standard_normal((m, n)), 0.5 * rng.standard_normal(n))
    ]
    masks = [2.0 * rng.integers(0, 2, (batch, n)) for n in sizes[1:-1]] if dropout else None
    x, y = rng.standard_normal((batch, sizes[0])), rng.integers(0, sizes[-1], batch)
    return Problem(parameters, x, y, activation, "softmax_cross_entropy", masks)


NETWORKS: list[tuple[tuple[int, ...], int, bool]] = [
    ((1, 1, 1), 1, False),
    ((4, 3), 3, False),
    ((2, 5, 1), 7, False),
    ((3, 4, 2, 5), 4, False),
    ((3, 5, 4, 2), 6, True),
]
"""Layer sizes, batch, dropout: ones, no hidden layer, narrow, deep."""

SLOPES: dict[str, tuple[Callable[..., np.ndarray], Callable[..., np.ndarray]]] = {
    "tanh": (np.tanh, lambda z, output: 1 - output**2),
    "relu": (lambda z: np.maximum(z, 0), lambda z, output: (z > 0) * 1.0),
}
"""f(z) and f'(z)."""


def network_trace(
    given: Problem, *, activated: bool = True, masked: bool = True, last: bool = False, bias: bool = True
) -> dict[str, np.ndarray]:
    """z and output of every layer by name.

    activated, masked, last, bias: False (last: True) for the mistake of leaving the activation out, not using the
    masks, activating the last layer, too, and leaving the bias out
    """
    trace: dict[str, np.ndarray] = {}
    signal = given.x
    activate, _ = SLOPES[given.activation]
    for i in range(given.layers):
        z = signal @ given.parameters[2 * i] + (given.parameters[2 * i + 1] if bias else 0)
        final = i == given.layers - 1
        trace[f"z{i + 1}"] = activate(z) if final and last else z
        if not final:
            signal = trace[f"output{i + 1}"] = activate(z) if activated else z
            if given.masks and masked:
                signal = signal * given.masks[i]
    return trace


def network_loss(given: Problem) -> float:
    """The loss of a problem."""
    outputs = network_trace(given)[f"z{given.layers}"]
    if given.loss == "mean_squared_error":
        return float(np.mean((outputs - given.y) ** 2))
    return cross_entropy_of(outputs, given.y)


def network_gradients(
    given: Problem,
    *,
    slope: bool = True,
    masked: bool = True,
    of_z: bool = True,
    of_output: bool = True,
    order: Sequence[int] | None = None,
) -> dict[str, Any]:
    """The loss and dL/dparameter of every parameter, by name.

    slope, masked: False for the mistake of leaving out the activation's derivative, or the masks on the way back
    of_z: False for taking z and output from the layer itself, not from the one before
    of_output: False for z in the output's place
    order: the layers in another order than from the last to the second
    """
    trace = network_trace(given)
    outputs = trace[f"z{given.layers}"]
    activate, slope_of = SLOPES[given.activation]
    if given.loss == "mean_squared_error":
        grad = 2 * (outputs - given.y) / outputs.size
    else:
        grad = cross_entropy_slopes(outputs, given.y)
    found: dict[int, np.ndarray] = {}

    def layer_back(i: int, grad: np.ndarray) -> np.ndarray:
        signal = given.x if i == 0 else trace[f"output{i}"] * (given.masks[i - 1] if given.masks else 1)
        found[2 * i], found[2 * i + 1] = signal.T @ grad, grad.sum(axis=0)
        back: np.ndarray = grad @ given.parameters[2 * i].T
        return back

    for i in reversed(range(1, given.layers)) if order is None else order:
        grad = layer_back(i, grad)
        if given.masks and masked:
            grad = grad * given.masks[i - 1]
        if slope:
            z = trace[f"z{i}" if of_z else f"z{i + 1}"]
            grad = grad * slope_of(z, activate(z) if of_output else z)
    layer_back(0, grad)
    named = {f"dL/d{'Wb'[k % 2]}{k // 2 + 1}": found[k] for k in range(2 * given.layers)}
    return {"the loss": network_loss(given), **named}


def network_case(rng: np.random.Generator, size: tuple[tuple[int, ...], int, bool]) -> tuple[Problem]:
    """A random problem of a size from NETWORKS."""
    sizes, batch, dropout = size
    return (problem(rng, sizes, batch, dropout),)


def column(*values: float) -> np.ndarray:
    """A matrix with one column."""
    return np.array(values)[:, np.newaxis]


FORWARD_PROBLEM = Problem(
    [np.array([[1.0, -1.0], [2.0, 1.0]]), np.array([0.0, -3.0]), column(2.0, 7.0), np.array([1.0])],
    np.array([[1.0, 2.0], [-3.0, 1.0]]),
    column(0.0, 0.0),
    "relu",
    "mean_squared_error",
)
FORWARD_HAND: list[tuple[tuple[Problem], dict[str, Any]]] = [
    (
        (FORWARD_PROBLEM,),
        {"z1": [[5.0, -2.0], [-1.0, 1.0]], "output1": [[5.0, 0.0], [0.0, 1.0]], "z2": [[11.0], [8.0]]},
    ),
    (
        (replace(FORWARD_PROBLEM, masks=[np.array([[2.0, 2.0], [2.0, 0.0]])]),),
        {"z1": [[5.0, -2.0], [-1.0, 1.0]], "output1": [[5.0, 0.0], [0.0, 1.0]], "z2": [[21.0], [1.0]]},
    ),
]


def traced(trace: Any, given: Problem) -> dict[str, Any]:
    """What `_forward` returned, by name."""
    wanted = [name for i in range(given.layers) for name in (f"z{i + 1}", f"output{i + 1}")][:-1]
    expected = f"a list of {len(wanted)}: {', '.join(wanted)}"
    if not isinstance(trace, list):
        raise Wrong(f"_forward of {given}: no list came back", expected=expected, got=type(trace).__name__)
    if len(trace) != len(wanted):
        likely = "z and its activation for every hidden layer, and of the last layer z alone"
        raise Wrong(
            f"_forward of {given}: the trace is not as long", expected=expected, got=str(len(trace)), likely=likely
        )
    return dict(zip(wanted, trace, strict=True))


FORWARD_GUESSES = [
    Guess(
        "the activation is applied after the last layer, too: its raw outputs are wanted, the loss does the rest",
        lambda p, name=name: network_trace(p, last=True).get(name),
        name,
    )
    for name in ("z1", "z2", "z3")
]
FORWARD_GUESSES += [
    Guess(
        "the activation is left out between the layers: the next layer gets its output, not z",
        lambda p, name=name: network_trace(p, activated=False).get(name),
        name,
    )
    for name in ("output1", "z2", "z3")
]
FORWARD_GUESSES += [
    Guess(
        "the dropout masks are not used: what the next layer gets is output * mask",
        lambda p, name=name: network_trace(p, masked=False).get(name) if p.masks else None,
        name,
    )
    for name in ("z2", "z3")
]
FORWARD_GUESSES += [
    Guess(
        "the trace holds the output after dropout: backward needs it as the activation gave it",
        lambda p: network_trace(p)["output1"] * p.masks[0] if p.masks else None,
        "output1",
    ),
    Guess("output1 is z1 once more: apply the activation", lambda p: network_trace(p)["z1"], "output1"),
    Guess(
        "every layer gets x: it has to get the output of the layer before",
        lambda p: (
            p.x @ p.parameters[2] + p.parameters[3] if p.layers > 1 and p.x.shape[1] == len(p.parameters[2]) else None
        ),
        "z2",
    ),
]


def network_forward() -> list[Rung]:
    """Network._forward: the whole trace."""
    network = stage().network.Network

    def call(given: Problem) -> dict[str, Any]:
        made = network.from_parameters(given.parameters, given.activation, given.loss, "float64")
        masks = None if given.masks is None else [mask.tolist() for mask in given.masks]
        return traced(on_lists(made._forward, "x", "dropout_masks")(given.x, masks), given)

    return rungs(
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


SMALL = Problem(
    [column(3.0), np.array([-1.0]), column(4.0), np.array([1.0])],
    column(2.0),
    column(20.0),
    "relu",
    "mean_squared_error",
)
BACKPROPAGATION_HAND: list[tuple[tuple[Problem], dict[str, Any]]] = [
    # z1 = 5, output 21, off by 1: dL/dz2 = 2, which W2 = 4 takes back to 8.
    ((SMALL,), {"the loss": 1.0, "dL/dW1": [[16.0]], "dL/db1": [8.0], "dL/dW2": [[10.0]], "dL/db2": [2.0]}),
    # z1 = -7: ReLU is closed, output 1, off by -2.
    (
        (replace(SMALL, parameters=[column(-3.0), *SMALL.parameters[1:]], y=column(3.0)),),
        {"the loss": 4.0, "dL/dW1": [[0.0]], "dL/db1": [0.0], "dL/dW2": [[0.0]], "dL/db2": [-4.0]},
    ),
    # Twice the output of z1 = 5 goes on: output 41, off by 1, and the way back is doubled, too.
    (
        (replace(SMALL, y=column(40.0), masks=[column(2.0)]),),
        {"the loss": 1.0, "dL/dW1": [[32.0]], "dL/db1": [16.0], "dL/dW2": [[20.0]], "dL/db2": [2.0]},
    ),
]


def _forwards(given: Problem) -> dict[str, Any] | None:
    """The gradients where the layers are walked from the second to the last; None where their sizes forbid it."""
    sizes = {each.shape for each in given.parameters[::2]}
    if given.layers < 3 or len(sizes) > 1 or len(next(iter(sizes))) == 0:
        return None
    rows, columns = next(iter(sizes))
    return network_gradients(given, order=range(1, given.layers)) if rows == columns else None


MISTAKES: list[tuple[str, Callable[[Problem], dict[str, Any] | None]]] = [
    (
        "the activation's derivative is left out: between two layers the gradient is multiplied by f'(z)",
        lambda given: network_gradients(given, slope=False) if given.layers > 1 else None,
    ),
    (
        "the layers are walked forwards: backpropagation begins at the last layer and ends at the first",
        _forwards,
    ),
    (
        "the dropout mask is ignored on the way back: what was multiplied by it forwards is multiplied by it backwards",
        lambda given: network_gradients(given, masked=False) if given.masks else None,
    ),
    (
        "the derivative is taken at the wrong layer's z: behind layer i comes the activation of the layer before it",
        lambda given: (
            network_gradients(given, of_z=False)
            if given.layers > 1 and len({each.shape for each in given.parameters[1::2]}) == 1
            else None
        ),
    ),
]

BACKPROPAGATION_GUESSES = [
    Guess(text, lambda given, wrong=wrong, name=name: (wrong(given) or {}).get(name), name)
    for text, wrong in MISTAKES
    for name in ("dL/dW1", "dL/dW2", "dL/dW3")
]


def network_slopes(call: Callable[[Problem], Mapping[str, Any]]) -> Callable[[Tally], None]:
    """The gradient rung of a network: every parameter's gradient, one after the other in one row."""
    rng = np.random.default_rng(7)
    checks = [_network_slopes(call, problem(rng, (3, 3, 3, 3), 4, dropout)) for dropout in (False, True)]

    def check(tally: Tally) -> None:
        for each in checks:
            each(tally)

    return check


def _network_slopes(call: Callable[[Problem], Mapping[str, Any]], given: Problem) -> Callable[[Tally], None]:
    def flat(found: Mapping[str, Any] | None) -> np.ndarray | None:
        if found is None:
            return None
        return np.concatenate([np.ravel(value) for name, value in found.items() if name != "the loss"])

    return gradient_rung(
        lambda theta: network_loss(given.at(theta)),
        lambda theta: flat(call(given.at(theta))),
        lambda rng: given.flat,
        f"the loss of {given}, by all parameters in a row,",
        guesses=[Guess(text, lambda theta, wrong=wrong: flat(wrong(given.at(theta)))) for text, wrong in MISTAKES],
    )


NO_LOSS = "the loss of this batch is to be returned, as a number"


def gradients_by_name(loss: Any, gradients: Sequence[Any]) -> dict[str, Any]:
    """The loss and the gradients of all parameters."""
    if loss is None:
        raise Wrong("_forward_backward: no loss came back", got="None", likely=NO_LOSS)
    return {"the loss": loss, **{f"dL/d{'Wb'[k % 2]}{k // 2 + 1}": each for k, each in enumerate(gradients)}}


def network_forward_backward() -> list[Rung]:
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

    return rungs(
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


@dataclass(frozen=True, eq=False)
class Steps:
    """Steps of an optimizer on a weight matrix and a bias.

    weights, bias: before; gradients: (of the weights, of the bias) for every step; rates: the learning rate of each
    settings: what else the optimizer is made with
    """

    weights: np.ndarray
    bias: np.ndarray
    gradients: list[tuple[np.ndarray, np.ndarray]]
    rates: list[float]
    settings: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        settings = "".join(f", {name}={value}" for name, value in self.settings.items())
        rates = ", then ".join(f"{rate:g}" for rate in dict.fromkeys(self.rates))
        count = len(self.gradients)
        return f"{count} step{'s' * (count != 1)} with learning_rate {rates}{settings}"


def steps_case(rng: np.random.Generator, size: tuple[tuple[int, int], dict[str, Any]]) -> tuple[Steps]:
    """Three random steps, the last with another learning rate. size: (the weights' shape, settings)."""
    (rows, columns), settings = size

    def pair() -> tuple[np.ndarray, np.ndarray]:
        return rng.standard_normal((rows, columns)), rng.standard_normal(columns)

    return (Steps(*pair(), [pair() for _ in range(3)], [0.1, 0.1, 0.03], settings),)


VELOCITY = {"weights": "the weights' velocity", "bias": "the bias's velocity"}


def sgd_steps(
    given: Steps,
    *,
    sign: float = -1.0,
    of_step: bool = False,
    damped: bool = False,
    decoupled: bool = False,
    decay_sign: float = 1.0,
    **changed: Any,
) -> dict[str, Any]:
    """Steps of SGD with momentum, Nesterov's too, and weight decay.

    sign, of_step, damped, decoupled, decay_sign: other values are mistakes: uphill, a velocity of steps and not of
    gradients, a running mean for a running sum, decay that passes by the velocity, decay that lets weights grow
    changed: settings that the mistake takes for other ones, such as momentum=0.0
    """
    settings = {"momentum": 0.0, "nesterov": False, "weight_decay": 0.0, **given.settings, **changed}
    momentum, nesterov = settings["momentum"], settings["nesterov"]
    decay = decay_sign * settings["weight_decay"]
    after: dict[str, Any] = {}
    for k, (name, start) in enumerate((("weights", given.weights), ("bias", given.bias))):
        p, v = start.copy(), np.zeros_like(start)
        for gradients, rate in zip(given.gradients, given.rates, strict=True):
            g = gradients[k] + (0 if decoupled else decay * p)
            if momentum:
                v = momentum * v + (rate if of_step else 1 - momentum if damped else 1.0) * g
                g = g + momentum * v if nesterov else v
            p = p + sign * (1.0 if of_step and momentum else rate) * (g + (decay * p if decoupled else 0))
        after[name] = p
        if given.settings.get("momentum"):
            after[VELOCITY[name]] = v
    return after


NOT_IN_PLACE = (
    "nothing has changed: the numbers have to change inside the lists that are given, p[i] -= …; a new list is lost"
)


def sgd_guesses(in_place: str) -> list[Guess]:
    """The mistakes of SGD. in_place: what is wrong where the parameters are as they were before."""
    mistakes: list[tuple[str, Callable[[Steps], dict[str, Any] | None]]] = [
        (in_place, lambda s: {"weights": s.weights, "bias": s.bias}),
        ("uphill: the step goes against the gradient, p -= learning_rate * …", lambda s: sgd_steps(s, sign=1.0)),
        ("the momentum is not used", lambda s: sgd_steps(s, momentum=0.0)),
        (
            "the velocity collects steps, with the learning rate in them: it collects gradients, and the learning rate "
            "comes last. They differ as soon as the rate changes",
            lambda s: sgd_steps(s, of_step=True),
        ),
        (
            "the new gradient counts by 1 - momentum only: v = momentum * v + g is a sum, not a mean",
            lambda s: sgd_steps(s, damped=True),
        ),
        ("nesterov is not used: then the step is g + momentum * v", lambda s: sgd_steps(s, nesterov=False)),
        ("the weight decay is not used", lambda s: sgd_steps(s, weight_decay=0.0)),
        ("the weight decay has the wrong sign: weights grow by it", lambda s: sgd_steps(s, decay_sign=-1.0)),
        (
            "the weight decay is added after the velocity: it is part of the gradient, and goes through the velocity",
            lambda s: sgd_steps(s, decoupled=True),
        ),
    ]
    return [
        Guess(text, lambda s, wrong=wrong, name=name: (wrong(s) or {}).get(name), name)
        for text, wrong in mistakes
        for name in ("weights", "bias")
    ]


W, BIAS = np.array([[1.0, -1.0]]), np.array([2.0, 0.0])
G = (np.array([[10.0, 20.0]]), np.array([-20.0, 5.0]))
SGD_HAND: list[tuple[tuple[Steps], dict[str, Any]]] = [
    ((Steps(W, BIAS, [G], [0.1]),), {"weights": [[0.0, -3.0]], "bias": [4.0, -0.5]}),
    (
        # The velocity is g, then 1.5 g; the steps are 0.1 g and 0.05 * 1.5 g.
        (Steps(W, BIAS, [G, G], [0.1, 0.05], {"momentum": 0.5}),),
        {
            "weights": [[-0.75, -4.5]],
            "bias": [5.5, -0.875],
            VELOCITY["weights"]: [[15.0, 30.0]],
            VELOCITY["bias"]: [-30.0, 7.5],
        },
    ),
    # Half of each parameter is added to its gradient: 10.5, 19.5, -19, 5.
    ((Steps(W, BIAS, [G], [0.1], {"weight_decay": 0.5}),), {"weights": [[-0.05, -2.95]], "bias": [3.9, -0.5]}),
    # The velocity is g, then 1.5 g; the steps are 0.1 (g + 0.5 g) and 0.1 (g + 0.75 g).
    (
        (Steps(W, BIAS, [G, G], [0.1, 0.1], {"momentum": 0.5, "nesterov": True}),),
        {"weights": [[-2.25, -7.5]], "bias": [8.5, -1.625]},
    ),
]
SGD_ALL = {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01}
SGD_SIZES: list[tuple[tuple[int, int], dict[str, Any]]] = [
    ((1, 1), {}),
    ((1, 7), {"momentum": 0.9}),
    ((5, 1), {"momentum": 0.5, "weight_decay": 0.1}),
    ((7, 3), {"weight_decay": 0.1}),
    ((4, 3), SGD_ALL),
]


def sgd_step() -> list[Rung]:
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
            after[VELOCITY["weights"]], after[VELOCITY["bias"]] = optimizer.state()["buffers"]["velocity"]
        return after

    return rungs(
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


GRADES: dict[str, Callable[[], list[Rung]]] = {
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


XOR_EPOCHS = 200


def checkpoint() -> list[Rung]:
    """XOR: learned with a hidden layer of two, and out of reach without one."""
    return [Rung("XOR with a hidden layer", _learns_xor), Rung("XOR without one", _fails_at_xor)]


def _learns_xor(tally: Tally) -> None:
    tally.trying("a 2-2-1 network on XOR")
    before, after, right = _xor([2, 2, 1], activation="tanh", initializer="xavier")
    tally.holds(
        after < before,
        "the 2-2-1 network does not learn XOR: its loss does not fall",
        expected=f"below {before:.4g}",
        got=f"{after:.4g}",
        likely=TOGETHER,
    )
    tally.holds(
        right == 4,
        f"the 2-2-1 network does not learn XOR within {XOR_EPOCHS} epochs",
        expected="4 of 4 right",
        got=f"{right} of 4, the loss went from {before:.4g} to {after:.4g}",
        likely=TOGETHER,
    )
    tally.note(
        f"a 2-2-1 network: 4 of 4 right after {XOR_EPOCHS} epochs, the loss went from {before:.3f} to {after:.5f}"
    )


TOGETHER = "check the functions one by one: groundup learn check grades each alone, with the project's own around it"


def _fails_at_xor(tally: Tally) -> None:
    tally.trying("a 2-1 network on XOR")
    before, after, right = _xor([2, 1])
    tally.holds(
        right <= 3,
        "a network without a hidden layer gets all of XOR right, which no straight line can",
        expected="at most 3 of 4",
        got=f"{right} of 4",
        likely="something bends the single layer's output, such as an activation after the last layer",
    )
    tally.note(
        f"a single layer: {right} of 4 right after as many epochs, the loss went from {before:.3f} to {after:.3f}; "
        "no straight line separates XOR"
    )


def _xor(sizes: list[int], **settings: Any) -> tuple[float, float, int]:
    """(loss before, loss after, how many of the four are right) of a network trained on XOR."""
    floor, data = stage(), xor()
    network = floor.network.Network(sizes, loss="sigmoid_cross_entropy", seed=1, dtype="float64", **settings)
    optimizer = floor.optimizers.SGD(0.5, momentum=0.9)
    before, _, _ = evaluate(floor, network, data)
    train(floor, network, optimizer, data, epochs=XOR_EPOCHS, batch_size=4, progress_bar=False)
    after, accuracy, _ = evaluate(floor, network, data)
    return before, after, round(4 * accuracy)
