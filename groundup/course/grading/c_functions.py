"""Phase 3: the C functions that go over numbers in a line or row by row, and what grading any C function needs.

A C function is called through the library's own door (stage3_c.library), on arrays that lie inside guarded ones; see
guarded.py. What is right is computed by stage 2, in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from groundup.course.checks import Check, Exercise, Tally, apart, checks_of, gradient_check, times_slower
from groundup.course.grading import guarded
from groundup.course.grading.guarded import changed, filled, read
from groundup.course.likely import Guess
from shared.checks.tolerance import compare
from shared.contract import load_part, load_stage

library: Any = load_part("stage3_c", "library")

SHAPES = [(1, 1), (1, 7), (13, 1), (3, 5), (17, 31), (2, 64)]
"""(rows, columns)."""


def numpy_floor() -> Any:
    """Stage 2, which says what is right."""
    return load_stage("stage2_numpy")


def c_floor() -> Any:
    """Stage 3 with the learner's function in it: compiled now, and its threads started before memory is limited."""
    stage = load_stage("stage3_c")
    library.pool()
    return stage


def c_function(name: str, dtype: str = "float64") -> Callable[..., Any]:
    """A C function of stage 3, the learner's or the project's, through the library's own door."""
    c_floor()
    return library.function(name, dtype)


def and_then(made: Sequence[Check], name: str, more: Callable[[Tally], None]) -> list[Check]:
    """The checks, where the one of this name compares `more` after its own comparisons."""

    def both(before: Callable[[Tally], None]) -> Callable[[Tally], None]:
        def run(tally: Tally) -> None:
            before(tally)
            more(tally)

        return run

    return [Check(check.name, both(check.run)) if check.name == name else check for check in made]


def alike(
    tally: Tally, case: str, got: Any, expected: Any, likely: str, dtype: str = "float64", scale: Any = None
) -> None:
    """One comparison in which a difference has one likely reason."""
    found = compare(case, got, expected, dtype, 64, scale=scale)
    told, wanted, had = apart(found)
    tally.holds(found.ok, f"{case}: wrong{told}", expected=wanted, got=had, likely=likely)


def faster(
    what: str, call: Callable[[], Any], than: str, against: Callable[[], Any], most: float, likely: str
) -> Check:
    """The speed check: `call` takes at most so many times as long as `against`, which is another idea of the same."""

    def check(tally: Tally) -> None:
        tally.trying(f"the time of {what}")
        ratio = times_slower(call, against)
        text = f"{what} takes {ratio:.2g} times as long as {than}"
        tally.holds(ratio <= most, text, expected=f"at most {most:g} times", likely=likely)
        tally.note(text)

    return Check("speed", check)


def matrix(rng: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
    """Random numbers, (rows, columns)."""
    return rng.standard_normal(size)


def walked(values: np.ndarray, row: int, column: int) -> np.ndarray | None:
    """What one reads who takes element (i, j) to be at [i * row + j * column]; None where that leaves the array."""
    i, j = np.indices(values.shape)
    places = i * row + j * column
    return values.reshape(-1)[places] if places.max() < values.size else None


def refused(
    tally: Tally, case: str, call: Callable[[], Any], kind: type[Exception], words: Sequence[str], likely: str
) -> None:
    """A call that has to raise an error of this kind whose message has these words in it."""
    tally.trying(case)
    expected = f"{kind.__name__} with {' and '.join(words)} in its message"
    try:
        call()
    except (ValueError, TypeError) as error:
        said = f"{type(error).__name__}: {error}"
        right = isinstance(error, kind) and all(word in str(error) for word in words)
        tally.holds(right, f"{case}: another error than expected", expected=expected, got=said, likely=likely)
    else:
        tally.holds(
            False, f"{case}: this has to be refused, and was not", expected=expected, got="no error", likely=likely
        )


# Week 6: pointers and loops


def relu_backward() -> list[Check]:
    """The derivative of ReLU: as many numbers in a line as rows times columns."""
    function, floor = c_function("relu_backward"), numpy_floor().activations

    def call(grad: np.ndarray, z: np.ndarray) -> np.ndarray:
        arguments = (read("grad_output", grad), read("z", z), read("output", np.maximum(z, 0)))
        return guarded.run("relu_backward", function, *z.shape, *arguments, filled("grad_z", z.shape))["grad_z"]

    def reference(grad: np.ndarray, z: np.ndarray) -> np.ndarray:
        return floor.relu_backward(grad, z, np.maximum(z, 0))

    def in_place(tally: Tally) -> None:
        grad, z = (matrix(np.random.default_rng(seed), (3, 4)) for seed in (5, 6))
        memory, case = changed("grad_output", grad), "relu_backward with grad_z and grad_output one memory"
        tally.trying(case)
        arguments = (memory, read("z", z), read("output", np.maximum(z, 0)), memory)
        got = guarded.run("relu_backward", function, *z.shape, *arguments)["grad_output"]
        alike(
            tally, case, got, reference(grad, z), "grad_z may be grad_output itself: read each number before writing it"
        )

    z, grad = np.array([[-1.0, 0.0, 2.0], [3.0, -4.0, 0.5]]), np.array([[10.0, 20.0, 30.0], [-40.0, 50.0, 60.0]])
    weights = matrix(np.random.default_rng(8), (3, 4))
    made = checks_of(
        Exercise(
            call=call,
            reference=reference,
            show=lambda grad, z: f"relu_backward of {z.shape}",
            hand=[
                ((grad, z), [[0.0, 0.0, 30.0], [-40.0, 0.0, 60.0]]),
                ((np.array([[np.inf, 1.0]]), np.array([[-1.0, 1.0]])), [[0.0, 1.0]]),
            ],
            arguments=lambda rng, size: (matrix(rng, size), matrix(rng, size)),
            typical=(4, 6),
            sizes=SHAPES,
            gradient=gradient_check(
                lambda z: float(np.sum(np.maximum(z, 0) * weights)),
                lambda z: call(weights, z),
                lambda rng: rng.uniform(0.1, 1, (3, 4)) * np.where(np.arange(4) % 2, 1, -1),
                "sum(relu(z) * grad_output) for z (3, 4)",
            ),
            guesses=[
                Guess("at z = 0 the slope is 0: the gradient stops there", lambda g, z: np.where(z >= 0, g, 0)),
                Guess("that is the slope alone: the gradient that came in passes where it is 1", lambda g, z: z > 0),
                Guess("the gradient passes where z was positive, not where it was negative", lambda g, z: (z <= 0) * g),
                Guess(
                    "0 times infinity is not a number: choose between 0 and the gradient, do not multiply",
                    lambda g, z: _quiet(lambda: g * (z > 0)),
                ),
                Guess("the sign of z decides, not that of the gradient", lambda g, z: np.where(g > 0, g, 0)),
            ],
        )
    )
    return and_then(made, "agreement", in_place)


def _quiet(compute: Callable[[], Any]) -> Any:
    with np.errstate(all="ignore"):
        return compute()


def add_bias() -> list[Check]:
    """values += bias, in place."""
    function = c_function("add_bias")

    def call(bias: np.ndarray, values: np.ndarray) -> np.ndarray:
        arguments = (read("bias", bias), changed("values", values))
        return guarded.run("add_bias", function, *values.shape, *arguments)["values"]

    places = "rows and columns have changed places in the index: element (i, j) is at [i * columns + j]"
    return checks_of(
        Exercise(
            call=call,
            fresh=True,
            reference=lambda bias, values: values + bias,
            show=lambda bias, values: f"add_bias of bias {bias.shape} to values {values.shape}",
            hand=[
                (
                    (np.array([10.0, 20.0, 30.0]), np.array([[1.0, 2.0, 3.0], [-4.0, -5.0, -6.0]])),
                    [[11.0, 22.0, 33.0], [6.0, 15.0, 24.0]],
                )
            ],
            arguments=lambda rng, size: (rng.standard_normal(size[1]), matrix(rng, size)),
            typical=(4, 4),
            sizes=SHAPES,
            guesses=[
                Guess(
                    "only the first row has its bias: does the index move on to row i, at i * columns?",
                    lambda b, v: np.vstack([v[:1] + b, v[1:]]),
                ),
                Guess(
                    "the first row got every row's bias: does the index move on to row i, at i * columns?",
                    lambda b, v: np.vstack([v[:1] + len(v) * b, v[1:]]),
                ),
                Guess("the bias took the values' place: add it to them", lambda b, v: np.broadcast_to(b, v.shape)),
                Guess("the bias of an output is that of its column j, not of its row i", _bias_of_rows),
                Guess(
                    "the next row begins `columns` numbers further on, not `rows`: element (i, j) is at "
                    "[i * columns + j]",
                    lambda b, v: _bias_along(b, v, len(v), 1),
                ),
                Guess(places, lambda b, v: _bias_along(b, v, 1, len(v))),
                Guess("every value got the first bias", lambda b, v: v + b[0]),
                Guess("nothing was changed", lambda b, v: v),
            ],
        )
    )


def _bias_of_rows(bias: np.ndarray, values: np.ndarray) -> np.ndarray | None:
    return values + bias[: len(values), None] if len(values) <= len(bias) else None


def _bias_along(bias: np.ndarray, values: np.ndarray, row: int, column: int) -> np.ndarray | None:
    """What comes out for who takes element (i, j) to be at [i * row + j * column]; None where that leaves the array."""
    i, j = np.indices(values.shape)
    places, found = i * row + j * column, values.flatten()
    if places.max() >= values.size:
        return None
    np.add.at(found, places, np.broadcast_to(bias, values.shape))
    return found.reshape(values.shape)


def column_sums() -> list[Check]:
    """The sum of each column, walked row by row."""
    function = c_function("column_sums")

    def call(values: np.ndarray) -> np.ndarray:
        arguments = (read("values", values), filled("sums", values.shape[1:]))
        return guarded.run("column_sums", function, *values.shape, *arguments)["sums"]

    def in_walk(values: np.ndarray, row: int, column: int) -> np.ndarray | None:
        found = walked(values, row, column)
        return None if found is None else found.sum(axis=0)

    return checks_of(
        Exercise(
            call=call,
            reference=lambda values: values.sum(axis=0),
            show=lambda values: f"column_sums of {values.shape}",
            hand=[(((np.array([[1.0, 2.0, 3.0], [40.0, 50.0, -60.0]])),), [41.0, 52.0, -57.0])],
            arguments=lambda rng, size: (matrix(rng, size),),
            typical=(5, 5),
            sizes=SHAPES,
            terms=lambda values: len(values),
            scale=lambda values: np.abs(values).sum(axis=0),
            guesses=[
                Guess(
                    "a mean was asked of nobody: the bias was added to every row, so its gradient is the sum",
                    lambda v: v.mean(axis=0),
                ),
                Guess(
                    "the first row counts twice: what starts with row 0 goes on with row 1",
                    lambda v: v.sum(axis=0) + v[0],
                ),
                Guess("the last row is left out: does i run to the end?", lambda v: v[:-1].sum(axis=0)),
                Guess("only the last row is kept: add to the sum, do not assign", lambda v: v[-1]),
                Guess("only the first row is there: nothing is added to it", lambda v: v[0]),
                Guess(
                    "those are the sums of the rows: the sum of a column runs over i",
                    lambda v: v.sum(axis=1) if v.shape[0] == v.shape[1] else None,
                ),
                Guess(
                    "the next row begins `columns` numbers further on, not `rows`",
                    lambda v: in_walk(v, v.shape[0], 1),
                ),
                Guess(
                    "rows and columns have changed places in the index: element (i, j) is at [i * columns + j]",
                    lambda v: in_walk(v, 1, v.shape[0]),
                ),
            ],
        )
    )


def softmax() -> list[Check]:
    """Every row on its own, kept from overflowing, and in place where the caller wants that."""
    function, floor = c_function("softmax"), numpy_floor().activations

    def call(z: np.ndarray) -> np.ndarray:
        return guarded.run("softmax", function, *z.shape, read("z", z), filled("output", z.shape))["output"]

    def in_place(tally: Tally) -> None:
        z = matrix(np.random.default_rng(5), (3, 4))
        memory, case = changed("z", z), "softmax with output and z one memory"
        tally.trying(case)
        got = guarded.run("softmax", function, *z.shape, memory, memory)["z"]
        likely = "output may be z itself: what is read from z after output was written is no z any more"
        alike(tally, case, got, floor.softmax(z), likely)

    def other(sum_axis: int | None, subtract: bool = True) -> Callable[[np.ndarray], np.ndarray]:
        def compute(z: np.ndarray) -> np.ndarray:
            e = np.exp(z - z.max(axis=1, keepdims=True) if subtract else z)
            return e / e.sum(axis=sum_axis, keepdims=True)

        return lambda z: _quiet(lambda: compute(z))

    half = np.log(3.0)
    made = checks_of(
        Exercise(
            call=call,
            reference=floor.softmax,
            show=lambda z: f"softmax of {z.shape}" + (f", {z[0, 0]:g} among it" if np.abs(z).max() > 100 else ""),
            hand=[
                ((np.array([[0.0, half], [half, 0.0], [5.0, 5.0]]),), [[0.25, 0.75], [0.75, 0.25], [0.5, 0.5]]),
                ((np.array([[1000.0, 1000.0]]),), [[0.5, 0.5]]),
                ((np.array([[-1000.0, -1000.0]]),), [[0.5, 0.5]]),
            ],
            arguments=lambda rng, size: (3 * matrix(rng, size),),
            typical=(4, 4),
            sizes=SHAPES,
            guesses=[
                Guess(
                    "exp of a very negative number is 0: the largest is one of the row's own, so start with z[0]",
                    lambda z: _quiet(lambda: _softmax_from(z, np.maximum(z.max(axis=1, keepdims=True), 0))),
                ),
                Guess("exp overflows: subtract the row's largest from each z first", other(1, subtract=False)),
                Guess("each row adds up to 1, not the whole matrix: the sum starts anew with each row", other(None)),
                Guess("each row adds up to 1, not each column", other(0)),
                Guess("the sum is carried from row to row: it starts anew with each", _carried),
                Guess(
                    "the exponentials are not divided by their sum",
                    lambda z: np.exp(z - z.max(axis=1, keepdims=True)),
                ),
            ],
        )
    )
    return and_then(made, "agreement", in_place)


def _softmax_from(z: np.ndarray, largest: np.ndarray) -> np.ndarray:
    e = np.exp(z - largest)
    return e / e.sum(axis=1, keepdims=True)


def _carried(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / np.cumsum(e.sum(axis=1))[:, None]


# Week 7: one pass over memory


def softmax_cross_entropy_fused() -> list[Check]:
    """The loss, and its gradient in the same pass."""
    name = "softmax_cross_entropy_fused"
    function, losses, softmax_of = c_function(name), numpy_floor().losses, numpy_floor().activations.softmax

    def call(logits: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
        arguments = (read("logits", logits), read("labels", labels), filled("grad", logits.shape))
        got = guarded.run(name, function, *logits.shape, *arguments)
        return {"loss": got["returned"], "grad": got["grad"]}

    def reference(logits: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
        return {
            "loss": losses.softmax_cross_entropy(logits, labels),
            "grad": losses.softmax_cross_entropy_backward(logits, labels),
        }

    def one_hot(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return np.eye(logits.shape[1])[labels]

    def sums(logits: np.ndarray) -> np.ndarray:
        return np.exp(logits - logits.max(axis=1, keepdims=True)).sum(axis=1, keepdims=True)

    def right(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return (softmax_of(logits) - one_hot(logits, labels)) / len(logits)

    batch = "forgot the batch: the loss is the mean over its rows"
    fixed = np.array([2, 0, 1])
    three = np.log(3.0)
    return checks_of(
        Exercise(
            call=call,
            reference=reference,
            show=lambda logits, labels: f"{name} of logits {logits.shape}",
            hand=[
                (
                    (np.array([[0.0, three], [0.0, three]]), np.array([1, 0])),
                    {"loss": np.log(16 / 3) / 2, "grad": [[0.125, -0.125], [-0.375, 0.375]]},
                ),
                ((np.array([[1000.0, 1000.0]]), np.array([0])), {"loss": np.log(2.0), "grad": [[-0.5, 0.5]]}),
            ],
            arguments=lambda rng, size: (2 * matrix(rng, size), rng.integers(0, size[1], size[0])),
            typical=(4, 5),
            sizes=SHAPES,
            gradient=gradient_check(
                lambda logits: losses.softmax_cross_entropy(logits, fixed),
                lambda logits: call(logits, fixed)["grad"],
                lambda rng: rng.standard_normal((3, 4)),
                "the loss of logits (3, 4)",
                guesses=[
                    Guess(
                        f"{batch}, so its gradient is divided by their number, too",
                        lambda logits: 3 * right(logits, fixed),
                    )
                ],
            ),
            guesses=[
                Guess(f"{batch}, not their sum", lambda z, y: len(z) * reference(z, y)["loss"], "loss"),
                Guess(f"{batch}, not over all elements", lambda z, y: reference(z, y)["loss"] / z.shape[1], "loss"),
                Guess("wrong sign: it is minus the logarithm", lambda z, y: -reference(z, y)["loss"], "loss"),
                Guess(
                    "exp overflows: subtract the row's largest from each logit first",
                    lambda z, y: _quiet(lambda: np.mean(np.log(np.exp(z).sum(axis=1)) - z[np.arange(len(y)), y])),
                    "loss",
                ),
                Guess(
                    "the largest was subtracted in the exponentials only: it belongs to the label's logit, too",
                    lambda z, y: np.mean(np.log(sums(z)[:, 0]) - z[np.arange(len(y)), y]),
                    "loss",
                ),
                Guess(
                    "the largest was subtracted from the label's logit only: it belongs into the exponentials, too",
                    lambda z, y: reference(z, y)["loss"] + np.mean(z.max(axis=1)),
                    "loss",
                ),
                Guess(
                    f"{batch}, so its gradient is divided by their number, too",
                    lambda z, y: len(z) * right(z, y),
                    "grad",
                ),
                Guess(
                    "that is softmax / batch: 1 goes off at the label before the division",
                    lambda z, y: softmax_of(z) / len(z),
                    "grad",
                ),
                Guess(
                    "1 was taken off before the division by the sum: e / sum - 1 = (e - sum) / sum",
                    lambda z, y: (softmax_of(z) - one_hot(z, y) / sums(z)) / len(z),
                    "grad",
                ),
                Guess(
                    "1 was taken off after the division by the batch: (softmax - 1) / batch",
                    lambda z, y: softmax_of(z) / len(z) - one_hot(z, y),
                    "grad",
                ),
            ],
        )
    )


def sgd() -> list[Check]:
    """Two steps in place, with and without momentum."""
    function, optimizer = c_function("sgd"), numpy_floor().optimizers.SGD

    def call(p: np.ndarray, gradients: np.ndarray, rate: float, momentum: float, nesterov: bool, decay: float) -> Any:
        velocity = np.zeros_like(p)
        for g in gradients:
            memory = changed("velocity", velocity) if momentum else None
            arguments = (changed("p", p), read("g", g), memory, rate, momentum, int(nesterov), decay)
            got = guarded.run("sgd", function, p.size, *arguments)
            p, velocity = got["p"], got.get("velocity", velocity)
        return {"p": p, "velocity": velocity} if momentum else {"p": p}

    def reference(
        p: np.ndarray, gradients: np.ndarray, rate: float, momentum: float, nesterov: bool, decay: float
    ) -> Any:
        stepper, p = optimizer(rate, momentum, nesterov, decay), p.copy()
        for g in gradients:
            stepper.step([p], [g])
        return {"p": p, "velocity": stepper.state()["buffers"]["velocity"][0]} if momentum else {"p": p}

    def guess(text: str, velocity: Any, step: Any, slope: Any = lambda g, p, decay: g + decay * p) -> list[Guess]:
        """What comes out where v or the step is another: velocity(v, s, momentum), step(v, before, s, momentum)."""

        def wrong(
            p: np.ndarray, gradients: np.ndarray, rate: float, momentum: float, nesterov: bool, decay: float
        ) -> Any:
            p, v = p.copy(), np.zeros_like(p)
            for g in gradients:
                s, before = slope(g, p, decay), v
                v = velocity(v, s, momentum) if momentum else s
                p = p - rate * step(v, before, s, momentum, nesterov)
            return {"p": p, "velocity": v}

        return [Guess(text, lambda *given, name=name: wrong(*given).get(name), name) for name in ("p", "velocity")]

    def torch_velocity(v: Any, s: Any, momentum: float) -> Any:
        return momentum * v + s

    def torch_step(v: Any, before: Any, s: Any, momentum: float, nesterov: bool) -> Any:
        return s + momentum * v if nesterov and momentum else v

    def arguments(rng: np.random.Generator, case: tuple[int, float, bool, float]) -> tuple[Any, ...]:
        size, momentum, nesterov, decay = case
        return rng.standard_normal(size), rng.standard_normal((2, size)), 0.1, momentum, nesterov, decay

    p, g = np.array([1.0, -2.0, 0.5]), np.array([[10.0, -20.0, 0.0], [10.0, -20.0, 0.0]])
    return checks_of(
        Exercise(
            call=call,
            fresh=True,
            reference=reference,
            show=lambda p, gradients, rate, momentum, nesterov, decay: (
                f"sgd, {len(gradients)} step{'s' if len(gradients) > 1 else ''} of {p.size} parameters, "
                f"momentum={momentum:g}{', nesterov' if nesterov else ''}, weight_decay={decay:g}"
            ),
            hand=[
                ((p, g[:1], 0.1, 0.0, False, 0.0), {"p": [0.0, 0.0, 0.5]}),
                ((p, g[:1], 0.1, 0.0, False, 0.5), {"p": [-0.05, 0.1, 0.475]}),
                ((p, g, 0.1, 0.5, False, 0.0), {"p": [-1.5, 3.0, 0.5], "velocity": [15.0, -30.0, 0.0]}),
                ((p, g, 0.1, 0.5, True, 0.0), {"p": [-2.25, 4.5, 0.5], "velocity": [15.0, -30.0, 0.0]}),
            ],
            arguments=arguments,
            typical=(6, 0.9, True, 0.01),
            sizes=[
                (1, 0.0, False, 0.0),
                (7, 0.9, False, 0.1),
                (31, 0.0, False, 0.1),
                (64, 0.5, True, 0.0),
                (97, 0.9, True, 0.1),
            ],
            guesses=[
                *guess(
                    "wrong sign: the parameters go against the gradient",
                    torch_velocity,
                    lambda *given: -torch_step(*given),
                ),
                *guess("the weight decay is missing", torch_velocity, torch_step, lambda g, p, decay: g),
                *guess(
                    "weight decay pulls towards 0: weight_decay * p is added to the gradient",
                    torch_velocity,
                    torch_step,
                    lambda g, p, decay: g - decay * p,
                ),
                *guess(
                    "the step takes the velocity as it was before: update it first",
                    torch_velocity,
                    lambda v, before, s, momentum, nesterov: before if momentum else s,
                ),
                *guess(
                    "nesterov is left out: then the step is learning_rate * (g + momentum * v)",
                    torch_velocity,
                    lambda v, before, s, momentum, nesterov: v,
                ),
                *guess(
                    "nesterov lacks the gradient itself: the step is learning_rate * (g + momentum * v)",
                    torch_velocity,
                    lambda v, before, s, momentum, nesterov: momentum * v if nesterov else v,
                ),
                *guess(
                    "nesterov looks ahead with the new velocity, not with the old one",
                    torch_velocity,
                    lambda v, before, s, momentum, nesterov: s + momentum * before if nesterov else v,
                ),
                *guess(
                    "this velocity is a mean: here v = momentum * v + g, all of g",
                    lambda v, s, momentum: momentum * v + (1 - momentum) * s,
                    torch_step,
                ),
                *guess("the velocity forgets: v = momentum * v + g", lambda v, s, momentum: s, torch_step),
                *guess("momentum 1, it seems: v = momentum * v + g", lambda v, s, momentum: v + s, torch_step),
                *guess(
                    "the velocity is not used: p goes by learning_rate * v",
                    torch_velocity,
                    lambda v, before, s, momentum, nesterov: s,
                ),
            ],
        )
    )
