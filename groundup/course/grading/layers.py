"""The functions of a layer in NumPy, float64, and the mistakes they invite: for phases 1 and 2, which ask for the same.

What the names below end in says what they are:

    _HAND                  arguments, and the results computed by hand
    _GUESSES               what a misconception would give, to recognise it by
    _arguments             random ones of a size
    _slopes, _gradient     the check of a derivative against central differences
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from groundup.course.checks import Tally, gradient_check
from groundup.course.likely import Guess

SIZES = [(1, 1, 1), (1, 7, 3), (2, 3, 5), (13, 17, 11), (5, 31, 2), (31, 2, 29)]
"""(M, K, N): ones, primes, K much larger than N and the reverse."""

SHAPES = [(1, 1), (1, 7), (13, 1), (2, 5), (17, 11), (3, 31)]
"""(batch, features)."""

LOG2, LOG3 = math.log(2.0), math.log(3.0)
FAR = 1e4
"""A logit so large that exp of it is beyond every float."""

A, B = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), np.array([[1.0, 0.0], [0.0, 1.0], [2.0, -1.0]])
MATMUL_HAND = [((A, B), [[7.0, -1.0], [16.0, -1.0]]), ((B, A), [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [-2.0, -1.0, 0.0]])]


# -------- matrices --------


def matrices(rng: np.random.Generator, size: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Random a (M, K) and b (K, N)."""
    m, k, n = size
    return rng.standard_normal((m, k)), rng.standard_normal((k, n))


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


# -------- activations and losses --------


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
    """The gradient check of relu_backward, away from the kink."""
    grad = np.random.default_rng(6).standard_normal((3, 4))

    def at(rng: np.random.Generator) -> np.ndarray:
        z = rng.standard_normal((3, 4))
        return np.sign(z) * (0.1 + np.abs(z))

    def slope_of(z: np.ndarray) -> Any:
        return call(grad, z, np.maximum(z, 0))

    return gradient_check(
        lambda z: float(np.sum(np.maximum(z, 0) * grad)),
        slope_of,
        at,
        "sum(relu(z) * grad_output) for z (3, 4)",
        guesses=[
            replace(guess, wrong=lambda z, wrong=guess.wrong: wrong(grad, z, np.maximum(z, 0)))
            for guess in RELU_GUESSES
        ],
    )


def softmax_of(z: np.ndarray, axis: int | None = 1) -> np.ndarray:
    """Softmax of every row; of every column (axis 0) or of everything (None) it is one of its mistakes."""
    with np.errstate(all="ignore"):
        exps = np.exp(z - z.max(axis=1, keepdims=True) if axis == 1 else z)
        shares: np.ndarray = exps / exps.sum(axis=axis, keepdims=True)
        return shares


def shifted_exps(z: np.ndarray) -> np.ndarray:
    """exp(z - the row's maximum)."""
    exps: np.ndarray = np.exp(z - z.max(axis=1, keepdims=True))
    return exps


def naive_softmax(z: np.ndarray) -> np.ndarray:
    """Without subtracting the maximum: NaN where exp overflows."""
    with np.errstate(all="ignore"):
        exps = np.exp(z)
        shares: np.ndarray = exps / exps.sum(axis=1, keepdims=True)
        return shares


SOFTMAX_HAND = [
    ((np.array([[LOG3, 0.0], [LOG2, LOG2]]),), [[0.75, 0.25], [0.5, 0.5]]),
    ((np.array([[0.0, LOG2, math.log(5.0)]]),), [[0.125, 0.25, 0.625]]),
    ((np.array([[FAR, FAR, -FAR]]),), [[0.5, 0.5, 0.0]]),
    ((np.array([[FAR, -FAR], [-FAR, -FAR]]),), [[1.0, 0.0], [0.5, 0.5]]),
]

SOFTMAX_GUESSES = [
    Guess("every column adds up to 1 here; softmax is over each row", lambda z: softmax_of(z, axis=0)),
    Guess(
        "every column adds up to 1 here; softmax is over each row",
        lambda z: shifted_exps(z) / shifted_exps(z).sum(axis=0),
    ),
    *(
        Guess("all numbers together add up to 1 here; every row has to by itself", wrong)
        for wrong in (lambda z: softmax_of(z, axis=None), lambda z: shifted_exps(z) / shifted_exps(z).sum())
    ),
    Guess(
        "these are the exponentials of z - max(z): what is missing is to divide each by their row's sum",
        shifted_exps,
    ),
    Guess(
        "each row is divided by its sum without exp: softmax takes exp first",
        lambda z: z / z.sum(axis=1, keepdims=True) if np.all(z.sum(axis=1)) else None,
    ),
]


def softmax_arguments(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[np.ndarray]:
    """Random logits, the rows of very different size."""
    return (rng.standard_normal(shape) * 3 + 20 * rng.standard_normal((shape[0], 1)),)


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


def naive_logarithm(logits: np.ndarray, labels: np.ndarray) -> float:
    """log(sum exp(z)) - z_y, without the maximum: infinite where exp overflows."""
    with np.errstate(all="ignore"):
        return float(np.mean(np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(labels)), labels]))


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
        "the label's logit is added: it is subtracted from the logarithm of the sum",
        lambda z, labels: _from_shifted(z, labels, lambda shifted, total: np.log(total) + shifted),
    ),
    Guess(
        "exp has been taken of the label's logit, too: keep z - max(z) as it is for that part",
        lambda z, labels: _from_shifted(z, labels, lambda shifted, total: np.log(total) - np.exp(shifted)),
    ),
    Guess(
        "the logarithm of the sum is missing",
        lambda z, labels: _from_shifted(z, labels, lambda shifted, total: total - shifted),
    ),
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


def _from_shifted(
    logits: np.ndarray, labels: np.ndarray, formula: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> float:
    """The mean of a formula of the label's logit minus the maximum, and of the sum of all exps."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    return float(np.mean(formula(shifted[np.arange(len(labels)), labels], np.exp(shifted).sum(axis=1))))


def loss_scale(logits: np.ndarray, labels: np.ndarray) -> float:
    """What a loss rounds by: the logits that are subtracted in it."""
    return 1.0 + float(np.abs(logits).max())


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
    """The gradient check of softmax_cross_entropy_backward."""
    labels = np.array([2, 0, 3])
    return gradient_check(
        lambda z: cross_entropy_of(z, labels),
        lambda z: call(z, labels),
        lambda rng: 2 * rng.standard_normal((3, 4)),
        "softmax_cross_entropy for logits (3, 4)",
        guesses=[
            replace(guess, wrong=lambda z, wrong=guess.wrong: wrong(z, labels))
            for guess in CROSS_ENTROPY_BACKWARD_GUESSES
        ],
    )


# -------- the dense layer --------


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
    """The gradient check of Dense.backward: all three of them."""
    x, weights, grad = backward_arguments(np.random.default_rng(5), (3, 4, 2))
    case = "sum(y * grad_output) for x (3, 4), weights (4, 2)"
    bias = np.zeros(2)

    def guesses(of: Callable[[np.ndarray], tuple[np.ndarray, ...]]) -> list[Guess]:
        return [replace(each, wrong=lambda at, wrong=each.wrong: wrong(*of(at))) for each in BACKWARD_GUESSES]

    checks = [
        gradient_check(
            lambda w: float(np.sum((x @ w) * grad)),
            lambda w: call(x, w, grad),
            lambda rng: weights,
            case,
            name="grad_weights",
            guesses=guesses(lambda w: (x, w, grad)),
        ),
        gradient_check(
            lambda b: float(np.sum((x @ weights + b) * grad)),
            lambda b: call(x, weights, grad),
            lambda rng: bias,
            case,
            name="grad_bias",
            guesses=guesses(lambda b: (x, weights, grad)),
        ),
        gradient_check(
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
