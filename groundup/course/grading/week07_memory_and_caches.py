"""Week 7: products that read memory in order, and losses and steps in one pass over it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from groundup.course.checks.check import Check, Tally
from groundup.course.checks.derivatives import gradient_check
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.calling import fenced_arrays
from groundup.course.grading.calling.c_functions import (
    SHAPES,
    alike,
    and_then,
    c_function,
    faster,
    graded,
    numpy_floor,
    quietly,
)
from groundup.course.grading.calling.c_trace import (
    Accesses,
    longest_until_read_again,
    order_of_accesses,
    passes,
)
from groundup.course.grading.calling.fenced_arrays import changed, filled, read
from groundup.course.grading.own_work import words_of
from groundup.course.grading.problems.activations import FAR, LOG2, rows_far_apart
from groundup.course.grading.problems.c_products import factors, product
from groundup.course.grading.problems.cross_entropy import (
    LOSS_MAXIMUM_MISTAKES,
    SLOPE_MAXIMUM_MISTAKES,
    labelled,
    loss_scale,
    one_hot,
    slopes_scale,
)
from shared.numbers import two_digits


def softmax_cross_entropy_fused() -> list[Check]:
    """The loss, and its gradient in the same pass."""
    name = "softmax_cross_entropy_fused"
    function, losses, softmax_of = c_function(name), numpy_floor().losses, numpy_floor().activations.softmax

    def call(logits: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
        arguments = (read("logits", logits), read("labels", labels), filled("grad", logits.shape))
        got = fenced_arrays.run(name, function, *logits.shape, *arguments)
        return {"loss": got["returned"], "grad": got["grad"]}

    def reference(logits: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
        return {
            "loss": losses.softmax_cross_entropy(logits, labels),
            "grad": losses.softmax_cross_entropy_backward(logits, labels),
        }

    def sums(logits: np.ndarray) -> np.ndarray:
        return np.exp(logits - logits.max(axis=1, keepdims=True)).sum(axis=1, keepdims=True)

    def right(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return (softmax_of(logits) - one_hot(labels, logits.shape[1])) / len(logits)

    def traced() -> tuple[Any, ...]:
        logits = rows_far_apart(np.random.default_rng(4), (40, 50))
        return 40, 50, logits, np.arange(40), np.empty((40, 50))

    def judge(tally: Tally, accesses: Accesses) -> None:
        times = accesses.of(0, written=False).size / (40 * 50)
        tally.holds(
            times <= 3.5,
            f"{name} reads each logit {two_digits(times)} times",
            expected="2 or 3 times: for the largest of the row, and for its exponential",
            cause="loss and gradient are computed one after the other, and the exponentials twice: keep them in grad",
        )
        tally.holds(
            accesses.exponentials <= 1.5 * 40 * 50,
            f"{name} computes {two_digits(accesses.exponentials / (40 * 50))} exponentials for each logit",
            expected="1",
            cause="exponentials are most of the work, and loss and gradient need the same ones: keep them in grad",
        )

    batch = "forgot the batch: the loss is the mean over its rows"
    fixed = np.array([2, 0, 1])
    three = np.log(3.0)
    return graded(
        Exercise(
            call=call,
            reference=reference,
            show=lambda logits, labels: f"{name} of logits {logits.shape}",
            hand=[
                (
                    (np.array([[0.0, three], [0.0, three]]), np.array([1, 0])),
                    {"loss": np.log(16 / 3) / 2, "grad": [[0.125, -0.125], [-0.375, 0.375]]},
                ),
                ((np.array([[1000.0, 1000.0]]), np.array([0])), {"loss": LOG2, "grad": [[-0.5, 0.5]]}),
                ((np.array([[-FAR, -FAR]]), np.array([1])), {"loss": LOG2, "grad": [[0.5, -0.5]]}),
                ((np.array([[-FAR, FAR, -FAR]]), np.array([1])), {"loss": 0.0, "grad": [[0.0, 0.0, 0.0]]}),
                ((np.array([[-FAR, FAR]]), np.array([0])), {"loss": 2 * FAR, "grad": [[-1.0, 1.0]]}),
                (
                    (np.array([[FAR, FAR], [-FAR, -FAR]]), np.array([0, 1])),
                    {"loss": LOG2, "grad": [[-0.25, 0.25], [0.25, -0.25]]},
                ),
            ],
            arguments=labelled,
            typical=(4, 5),
            sizes=SHAPES,
            factors=(1e4, 1e-6),
            special=(0,),
            terms=lambda logits, labels: logits.size + 16,
            way=order_of_accesses(name, ["losses.c", "activations.c"], traced, judge),
            scale=lambda *given: {"loss": loss_scale(*given), "grad": slopes_scale(*given)},
            gradient=gradient_check(
                lambda logits: losses.softmax_cross_entropy(logits, fixed),
                lambda logits: call(logits, fixed)["grad"],
                lambda rng: rng.standard_normal((3, 4)),
                "the loss of logits (3, 4)",
                mistakes=[
                    Mistake(
                        f"{batch}, so its gradient is divided by their number, too",
                        lambda logits: 3 * right(logits, fixed),
                    )
                ],
            ),
            mistakes=[
                *(replace(each, output="loss") for each in LOSS_MAXIMUM_MISTAKES),
                *(replace(each, output="grad") for each in SLOPE_MAXIMUM_MISTAKES),
                Mistake(f"{batch}, not their sum", lambda z, y: len(z) * reference(z, y)["loss"], "loss"),
                Mistake(f"{batch}, not over all elements", lambda z, y: reference(z, y)["loss"] / z.shape[1], "loss"),
                Mistake("wrong sign: it is minus the logarithm", lambda z, y: -reference(z, y)["loss"], "loss"),
                Mistake(
                    "exp overflows: subtract the row's largest from each logit first",
                    lambda z, y: quietly(lambda: np.mean(np.log(np.exp(z).sum(axis=1)) - z[np.arange(len(y)), y])),
                    "loss",
                ),
                Mistake(
                    "the largest was subtracted in the exponentials only: it has to be subtracted from the "
                    "label's logit, too",
                    lambda z, y: np.mean(np.log(sums(z)[:, 0]) - z[np.arange(len(y)), y]),
                    "loss",
                ),
                Mistake(
                    "the largest was subtracted from the label's logit only: it has to be subtracted in "
                    "the exponentials, too",
                    lambda z, y: reference(z, y)["loss"] + np.mean(z.max(axis=1)),
                    "loss",
                ),
                Mistake(
                    f"{batch}, so its gradient is divided by their number, too",
                    lambda z, y: len(z) * right(z, y),
                    "grad",
                ),
                Mistake(
                    "that is softmax / batch: subtract 1 at the label before the division",
                    lambda z, y: softmax_of(z) / len(z),
                    "grad",
                ),
                Mistake(
                    "1 was taken off before the division by the sum: e / sum - 1 = (e - sum) / sum",
                    lambda z, y: (softmax_of(z) - one_hot(y, z.shape[1]) / sums(z)) / len(z),
                    "grad",
                ),
                Mistake(
                    "1 was taken off after the division by the batch: (softmax - 1) / batch",
                    lambda z, y: softmax_of(z) / len(z) - one_hot(y, z.shape[1]),
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
            got = fenced_arrays.run("sgd", function, p.size, *arguments)
            p, velocity = got["p"], got.get("velocity", velocity)
        return {"p": p, "velocity": velocity} if momentum else {"p": p}

    def reference(
        p: np.ndarray, gradients: np.ndarray, rate: float, momentum: float, nesterov: bool, decay: float
    ) -> Any:
        stepper, p = optimizer(rate, momentum, nesterov, decay), p.copy()
        for g in gradients:
            stepper.step([p], [g])
        return {"p": p, "velocity": stepper.state()["buffers"]["velocity"][0]} if momentum else {"p": p}

    def mistake(text: str, velocity: Any, step: Any, slope: Any = lambda g, p, decay: g + decay * p) -> list[Mistake]:
        """The result of another velocity(v, s, momentum) or step(v, before, s, momentum)."""

        def wrong(
            p: np.ndarray, gradients: np.ndarray, rate: float, momentum: float, nesterov: bool, decay: float
        ) -> Any:
            p, v = p.copy(), np.zeros_like(p)
            for g in gradients:
                s, before = slope(g, p, decay), v
                v = velocity(v, s, momentum) if momentum else s
                p = p - rate * step(v, before, s, momentum, nesterov)
            return {"p": p, "velocity": v}

        return [Mistake(text, lambda *given, name=name: wrong(*given).get(name), name) for name in ("p", "velocity")]

    def torch_velocity(v: Any, s: Any, momentum: float) -> Any:
        return momentum * v + s

    def torch_step(v: Any, before: Any, s: Any, momentum: float, nesterov: bool) -> Any:
        return s + momentum * v if nesterov and momentum else v

    def arguments(rng: np.random.Generator, case: tuple[int, float, bool, float]) -> tuple[Any, ...]:
        size, momentum, nesterov, decay = case
        return rng.standard_normal(size), rng.standard_normal((2, size)), 0.1, momentum, nesterov, decay

    def traced() -> tuple[Any, ...]:
        p, g, velocity = np.random.default_rng(4).standard_normal((3, 2000))
        return p.size, p, g, velocity, 0.1, 0.9, True, 0.1

    def judge(tally: Tally, accesses: Accesses) -> None:
        tally.holds(
            passes(accesses.element) == 1,
            f"sgd with momentum goes over its arrays {passes(accesses.element)} times",
            expected="once",
            cause="each loop fetches the arrays from memory anew: do a parameter's whole update in one round of a loop",
        )

    def velocity_untouched(tally: Tally) -> None:
        given, slopes, velocity = np.random.default_rng(6).standard_normal((3, 5))
        memory, case = changed("velocity", velocity), "sgd with momentum=0 and a velocity"
        tally.trying(case)
        arguments = (changed("p", given), read("g", slopes), memory, 0.1, 0.0, 0, 0.0)
        got = fenced_arrays.run("sgd", function, given.size, *arguments)
        cause = "it is the momentum that decides: where it is 0, velocity is neither read nor written"
        alike(tally, f"p of {case}", got["p"], given - 0.1 * slopes, cause)
        alike(tally, f"velocity of {case}", got["velocity"], velocity, cause)

    p, g = np.array([1.0, -2.0, 0.5]), np.array([[10.0, -20.0, 0.0], [10.0, -20.0, 0.0]])
    made = graded(
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
            way=order_of_accesses("sgd", ["optimizers.c"], traced, judge),
            typical=(6, 0.9, True, 0.01),
            factors=(1e4, 1e-6),
            special=(0, 1),
            infinite=False,
            sizes=[
                (65_537, 0.0, False, 0.0),
                (65_537, 0.9, False, 0.0),
                (1, 0.0, False, 0.0),
                (7, 0.9, False, 0.1),
                (31, 0.0, False, 0.1),
                (64, 0.5, True, 0.0),
                (97, 0.9, True, 0.1),
            ],
            mistakes=[
                *mistake(
                    "wrong sign: the parameters go against the gradient",
                    torch_velocity,
                    lambda *given: -torch_step(*given),
                ),
                *mistake("the weight decay is missing", torch_velocity, torch_step, lambda g, p, decay: g),
                *mistake(
                    "weight decay pulls towards 0: weight_decay * p is added to the gradient",
                    torch_velocity,
                    torch_step,
                    lambda g, p, decay: g - decay * p,
                ),
                *mistake(
                    "the step takes the velocity as it was before: update it first",
                    torch_velocity,
                    lambda v, before, s, momentum, nesterov: before if momentum else s,
                ),
                *mistake(
                    "nesterov is left out: then the step is learning_rate * (g + momentum * v)",
                    torch_velocity,
                    lambda v, before, s, momentum, nesterov: v,
                ),
                *mistake(
                    "nesterov lacks the gradient itself: the step is learning_rate * (g + momentum * v)",
                    torch_velocity,
                    lambda v, before, s, momentum, nesterov: momentum * v if nesterov else v,
                ),
                *mistake(
                    "nesterov looks ahead with the new velocity, not with the old one",
                    torch_velocity,
                    lambda v, before, s, momentum, nesterov: s + momentum * before if nesterov else v,
                ),
                *mistake(
                    "this velocity is a mean: here v = momentum * v + g, all of g",
                    lambda v, s, momentum: momentum * v + (1 - momentum) * s,
                    torch_step,
                ),
                *mistake("the velocity forgets: v = momentum * v + g", lambda v, s, momentum: s, torch_step),
                *mistake("momentum 1, it seems: v = momentum * v + g", lambda v, s, momentum: v + s, torch_step),
                *mistake(
                    "the velocity is not used: p goes by learning_rate * v",
                    torch_velocity,
                    lambda v, before, s, momentum, nesterov: s,
                ),
            ],
        )
    )
    return and_then(made, "agreement", velocity_untouched)


BLOCK_DEPTH, BLOCK_WIDTH = 64, 256
"""DEPTH and WIDTH of matmul_loops.c."""

WALK = (8, 512, 512)
"""A product in which walking down b's columns costs several times as much as walking along its rows: every number is
in another cache line, and they are 4 kB apart."""


def along_rows(name: str) -> Check:
    """The check of the time of a rung that reads memory in order, beside the one that walks down b's columns."""
    (m, k, n), function, ijk = WALK, c_function(name), c_function("matmul_ijk")
    a, b = factors(np.random.default_rng(4), WALK)
    c = np.empty((m, n))
    return faster(
        f"{name}(m={m}, k={k}, n={n})",
        lambda: function(m, k, n, a, b, c),
        "matmul_ijk",
        lambda: ijk(m, k, n, a, b, c),
        0.5,
        "the innermost loop still reads down the columns of b: with j innermost each access is to the next number",
    )


MOST_BETWEEN = 5 * BLOCK_DEPTH * BLOCK_WIDTH // 2
"""Reads of b between two reads of one of its numbers. In blocks it is a block's size; 40,960 numbers are 320 kB."""

MANY = (4, 512, 1024)
"""A product whose b, 4 MB, is much larger than a block."""


def by_blocks(name: str) -> Check:
    """The check that a product is done with a block of b, for all rows of a, before it reads the next."""
    m, k, n = MANY

    def arguments() -> tuple[Any, ...]:
        a, b = factors(np.random.default_rng(4), MANY)
        return m, k, n, a, b, np.empty((m, n))

    def judge(tally: Tally, accesses: Accesses) -> None:
        between = longest_until_read_again(accesses.of(1, written=False))
        tally.holds(
            between <= MOST_BETWEEN,
            f"{name}(m={m}, k={k}, n={n}) reads {between:,} numbers of b before it comes back to the first of them",
            expected=f"at most {MOST_BETWEEN:,}: a block that stays in the cache",
            cause="b is not read in blocks: the loops over j0 and p0 are the outermost, and the loop over the rows of "
            "a runs within a block",
        )

    return Check("way", order_of_accesses(name, ["matmul_loops.c"], arguments, judge))


def matmul_ikj() -> list[Check]:
    """The product with the two inner loops swapped."""
    made = graded(product("matmul_ikj", mistakes=[ONE_ROW_SET]))
    return [*made, along_rows("matmul_ikj")]


ONE_ROW_SET = Mistake(
    "every row of c has the rows before it added in: is it row i that is set to 0, and added to?",
    lambda a, b: np.cumsum(a @ b, axis=0),
)


def matmul_blocked() -> list[Check]:
    """The product in blocks of b that stay in the cache."""
    return [*graded(in_blocks("matmul_blocked")), by_blocks("matmul_blocked"), along_rows("matmul_blocked")]


def matmul_restrict() -> list[Check]:
    """The same product, in loops in which the compiler can use SIMD."""
    (m, k, n), name = (32, 256, 256), "matmul_restrict"
    function, blocked = c_function(name), c_function("matmul_blocked")
    a, b = (each.astype("float32") for each in factors(np.random.default_rng(4), (m, k, n)))
    c = np.empty((m, n), "float32")
    speed = faster(
        f"{name}(m={m}, k={k}, n={n}) in float32",
        lambda: function(m, k, n, a, b, c),
        "matmul_blocked",
        lambda: blocked(m, k, n, a, b, c),
        0.7,
        "the compiler could not use SIMD: the innermost loop has to be the one over j, which goes along "
        "the rows of b and c, and no round of it may depend on the round before",
    )

    def promised(tally: Tally) -> None:
        tally.holds(
            words_of("stage3_c/csrc/matmul_loops.c", name).count("restrict") >= 3,
            f"{name} does not promise that a, b and c do not overlap",
            expected="restrict at each of the three pointers",
            cause="without the promise a store to c might change b: the compiler has to look for an overlap first",
        )
        in_order.run(tally)

    in_order = by_blocks(name)
    return [*graded(in_blocks(name)), replace(in_order, run=promised), speed]


def in_blocks(name: str) -> Exercise:
    """The exercise of a product in blocks of b. Sizes that are no multiple of a block matter here."""

    def last_columns_left_out(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        found: np.ndarray = a @ b
        found[:, b.shape[1] // BLOCK_WIDTH * BLOCK_WIDTH :] = 0
        return found

    whole = "sizes need not be multiples of a block: the last one is as large as what is left"
    mistakes = [
        Mistake(f"the last block of k is left out; {whole}", lambda a, b: _first_products(a, b, _whole(a.shape[1]))),
        Mistake(f"the last block of columns is left out; {whole}", last_columns_left_out),
        Mistake(
            "only the last block's sums are kept: c is set to 0 once, before all blocks",
            lambda a, b: a[:, _last(a.shape[1]) :] @ b[_last(a.shape[1]) :],
        ),
        Mistake(
            "only the first block of k is there: the loop over the blocks ends after one",
            lambda a, b: _first_products(a, b, BLOCK_DEPTH),
        ),
    ]
    # Within one block, one past one in either direction, and both at once.
    sizes = [(3, BLOCK_DEPTH, BLOCK_WIDTH), (2, BLOCK_DEPTH + 1, 5), (3, 5, BLOCK_WIDTH + 1), (5, 150, 520)]
    return product(name, sizes, mistakes)


def _whole(k: int) -> int:
    return k // BLOCK_DEPTH * BLOCK_DEPTH


def _last(k: int) -> int:
    return (k - 1) // BLOCK_DEPTH * BLOCK_DEPTH


def _first_products(a: np.ndarray, b: np.ndarray, count: int) -> np.ndarray:
    return a[:, :count] @ b[:count]


GRADES: dict[str, Callable[[], list[Check]]] = {
    "7.1": matmul_ikj,
    "7.2": matmul_blocked,
    "7.3": softmax_cross_entropy_fused,
    "7.4": sgd,
    "7.5": matmul_restrict,
}
