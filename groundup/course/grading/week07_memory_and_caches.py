"""Week 7: products that read memory in order, and losses and steps in one pass over it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from groundup.course.checks.check import Check, Tally, Wrong, and_then
from groundup.course.checks.derivatives import gradient_check
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.calling import fenced_arrays
from groundup.course.grading.calling.c_functions import (
    SHAPES,
    alike,
    c_function,
    faster,
    graded,
    numpy_floor,
)
from groundup.course.grading.calling.c_trace import (
    Accesses,
    longest_until_read_again,
    order_of_accesses,
    passes,
    share_of_neighbours,
)
from groundup.course.grading.calling.fenced_arrays import changed, filled, read
from groundup.course.grading.own_work import text_of, words_of
from groundup.course.grading.problems.activations import FAR, LOG2, rows_far_apart
from groundup.course.grading.problems.c_products import product
from groundup.course.grading.problems.cross_entropy import (
    CROSS_ENTROPY_BACKWARD_MISTAKES,
    CROSS_ENTROPY_MISTAKES,
    LOSS_MAXIMUM_MISTAKES,
    SLOPE_MAXIMUM_MISTAKES,
    labelled,
    loss_scale,
    naive_logarithm,
    one_hot,
    slopes_scale,
)
from groundup.course.grading.problems.matrices import matrices
from groundup.course.grading.problems.optimizer_steps import (
    SGD_ALL,
    SGD_HAND,
    SGD_SIZES,
    Steps,
    sgd_mistakes,
    sgd_steps,
    state_name,
    steps_case,
    steps_scale,
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

    def added_in_double(tally: Tally) -> None:
        # In float32, 2^30 + 63 is 2^30 + 64; the sum of the four is 2^30 + 189.
        logits = np.zeros((4, 2), np.float32)
        losses = logits[:, 1] = 2.0**30, 63, 63, 63
        case = f"the loss of {name} for float32 logits, whose four losses are 2^30, 63, 63 and 63"
        tally.trying(case)
        got, right = float(call(logits, np.zeros(4, np.int64))["loss"]), sum(losses) / 4
        cause = "the losses of the rows are added up in double, for a float has some 7 digits: double total = 0"
        tally.holds(abs(got - right) < 1e-3, f"{case}: wrong", expected=f"{right:.2f}", got=f"{got:.2f}", cause=cause)

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
                (
                    (np.array([[-1e9, -1e9], [-1200.0, -1200.0]]), np.array([0, 1])),
                    {"loss": LOG2, "grad": [[-0.25, 0.25], [0.25, -0.25]]},
                ),
            ],
            arguments=labelled,
            typical=(4, 5),
            sizes=SHAPES,
            terms=lambda logits, labels: logits.size + 16,
            way=order_of_accesses(name, ["losses.c", "activations.c"], traced, judge),
            types=added_in_double,
            scale=lambda *arguments: {"loss": loss_scale(*arguments), "grad": slopes_scale(*arguments)},
            gradient=gradient_check(
                lambda logits: losses.softmax_cross_entropy(logits, fixed),
                lambda logits: call(logits, fixed)["grad"],
                lambda rng: rng.standard_normal((3, 4)),
                "the loss of logits (3, 4)",
            ),
            mistakes=[
                *(replace(mistake, output="loss") for mistake in (*LOSS_MAXIMUM_MISTAKES, *CROSS_ENTROPY_MISTAKES)),
                *(
                    replace(mistake, output="grad")
                    for mistake in (*SLOPE_MAXIMUM_MISTAKES, *CROSS_ENTROPY_BACKWARD_MISTAKES)
                ),
                Mistake("exp overflows: subtract the row's largest from each logit first", naive_logarithm, "loss"),
                Mistake(
                    "1 was taken off before the division by the sum: e / sum - 1 = (e - sum) / sum",
                    lambda z, y: (softmax_of(z) - one_hot(y, z.shape[1]) / sums(z)) / len(z),
                    "grad",
                ),
            ],
        )
    )


def sgd() -> list[Check]:
    """Some steps in place, with and without momentum."""
    function = c_function("sgd")

    def call(case: Steps) -> dict[str, Any]:
        settings = {"momentum": 0.0, "nesterov": False, "weight_decay": 0.0, **case.settings}
        momentum, nesterov, decay = settings["momentum"], int(settings["nesterov"]), settings["weight_decay"]
        after: dict[str, Any] = {}
        for k, (name, p) in enumerate((("weights", case.weights), ("bias", case.bias))):
            velocity = np.zeros_like(p)
            for gradients, rate in zip(case.gradients, case.rates, strict=True):
                memory = changed("velocity", velocity) if momentum else None
                arguments = (changed("p", p), read("g", gradients[k]), memory, rate, momentum, nesterov, decay)
                got = fenced_arrays.run("sgd", function, p.size, *arguments)
                p, velocity = got["p"], got.get("velocity", velocity)
            after |= {name: p} | ({state_name("velocity", name): velocity} if momentum else {})
        return after

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
        loops = text_of(OPTIMIZERS, "sgd").partition("for (")[2]
        double = re.search(r"(?<!\(real\))\b(?:double|learning_rate|weight_decay)\b", loops)
        tally.holds(
            not double,
            f"sgd computes with a double, {double and double[0]}, inside its loop",
            cause="a double drags the whole line into double, which has half as many numbers in a register: make the "
            "numbers real once, before the loops",
        )

    def velocity_untouched(tally: Tally) -> None:
        start, slopes, velocity = np.random.default_rng(6).standard_normal((3, 5))
        memory, case = changed("velocity", velocity), "sgd with momentum=0 and a velocity"
        tally.trying(case)
        arguments = (changed("p", start), read("g", slopes), memory, 0.1, 0.0, 0, 0.0)
        got = fenced_arrays.run("sgd", function, start.size, *arguments)
        cause = "it is the momentum that decides: where it is 0, velocity is neither read nor written"
        alike(tally, f"p of {case}", got["p"], start - 0.1 * slopes, cause)
        alike(tally, f"velocity of {case}", got["velocity"], velocity, cause)

    checks = graded(
        Exercise(
            call=call,
            fresh=True,
            reference=sgd_steps,
            show=lambda case: f"sgd ({case})",
            hand=SGD_HAND,
            arguments=steps_case,
            typical=((3, 2), SGD_ALL),
            sizes=[*SGD_SIZES, ((1, 65_537), {}), ((1, 65_537), {"momentum": 0.9})],
            scale=steps_scale,
            mistakes=sgd_mistakes("nothing has changed: p[i] -= …"),
            way=order_of_accesses("sgd", ["optimizers.c"], traced, judge),
        )
    )
    return and_then(checks, "agreement", velocity_untouched)


BLOCK_DEPTH, BLOCK_WIDTH = 64, 256
"""DEPTH and WIDTH of matmul_loops.c."""

WALK = (8, 512, 512)
"""A product in which walking down b's columns costs several times as much as walking along its rows: every number is
in another cache line, and they are 4 kB apart."""


def along_rows(name: str) -> Check:
    """The check of the time of a rung that reads memory in order, beside the one that walks down b's columns."""
    (m, k, n), function, ijk = WALK, c_function(name), c_function("matmul_ijk")
    a, b = matrices(np.random.default_rng(4), WALK)
    c = np.empty((m, n))
    return faster(
        f"{name}(m={m}, k={k}, n={n})",
        lambda: function(m, k, n, a, b, c),
        "matmul_ijk",
        lambda: ijk(m, k, n, a, b, c),
        0.9,
        "the innermost loop still reads down the columns of b: with j innermost each access is to the next number",
    )


def in_order(name: str) -> Callable[[Tally], None]:
    """The check that the numbers of b, and those of c, are read one after the other."""
    sizes = (4, 40, 50)

    def arguments() -> tuple[Any, ...]:
        a, b = matrices(np.random.default_rng(4), sizes)
        return *sizes, a, b, np.zeros((4, 50))

    def judge(tally: Tally, accesses: Accesses) -> None:
        for array, matrix in ((1, "b"), (2, "c")):
            share = share_of_neighbours(accesses.of(array, written=array == 2))
            tally.holds(
                share >= 0.5,
                f"{name} does not go through {matrix} one number after the other",
                expected="each access goes to the number beside the one before, but for the ends of rows",
                got=f"{100 * share:.0f} % of them do",
                cause="the innermost loop is the one over j: with any other, it still reads down the columns of b, or "
                "goes down those of c",
            )

    return order_of_accesses(name, ["matmul_loops.c"], arguments, judge)


MOST_BETWEEN = 5 * BLOCK_DEPTH * BLOCK_WIDTH // 2
"""Reads of b between two reads of one of its numbers. In blocks it is a block's size; 40,960 numbers are 320 kB."""

MANY = (4, 512, 1024)
"""A product whose b, 4 MB, is much larger than a block."""


def by_blocks(name: str) -> Check:
    """The check that a product is done with a block of b, for all rows of a, before it reads the next."""
    m, k, n = MANY

    def arguments() -> tuple[Any, ...]:
        a, b = matrices(np.random.default_rng(4), MANY)
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

    within, along = order_of_accesses(name, ["matmul_loops.c"], arguments, judge), in_order(name)

    def check(tally: Tally) -> None:
        along(tally)
        within(tally)

    return Check("way", check)


MATMUL_LOOPS, OPTIMIZERS = "stage3_c/csrc/matmul_loops.c", "stage3_c/csrc/optimizers.c"


def matmul_ikj() -> list[Check]:
    """The product with the two inner loops swapped."""
    made = graded(replace(product("matmul_ikj", mistakes=[ONE_ROW_SET]), way=in_order("matmul_ikj")))
    return [*made, along_rows("matmul_ikj")]


ONE_ROW_SET = Mistake(
    "every row of c has the rows before it added in: is it row i that is set to 0, and added to?",
    lambda a, b: np.cumsum(a @ b, axis=0),
)


def matmul_blocked() -> list[Check]:
    """The product in blocks of b that stay in the cache."""
    return [*graded(in_blocks("matmul_blocked")), by_blocks("matmul_blocked"), along_rows("matmul_blocked")]


def matmul_restrict() -> list[Check]:
    """matmul_restrict: a product in loops in which the compiler can use SIMD."""
    (m, k, n), name = (32, 256, 256), "matmul_restrict"
    function, blocked = c_function(name), c_function("matmul_blocked")
    a, b = (array.astype("float32") for array in matrices(np.random.default_rng(4), (m, k, n)))
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
            words_of(MATMUL_LOOPS, name).count("restrict") >= 3,
            f"{name} does not promise that a, b and c do not overlap",
            expected="restrict at each of the three pointers",
            cause="without the promise a store to c might change b: the compiler has to look for an overlap first",
        )
        blocks.run(tally)

    def fast(tally: Tally) -> None:
        try:
            speed.run(tally)
        except Wrong as wrong:
            if not re.search(r"\bfor\s*\([^;]*;[^;]*&&", text_of(MATMUL_LOOPS, name)):
                raise
            tally.note(f"{wrong.what}: {TWO_CONDITIONS}")

    blocks = by_blocks(name)
    return [*graded(in_blocks(name)), replace(blocks, run=promised), replace(speed, run=fast)]


TWO_CONDITIONS = (
    "a loop with two conditions, such as j < j0 + WIDTH && j < n, is right, but the compiler makes no SIMD of it: it "
    "does not know the end before the loop begins. Compute the end once: j1 = smaller(j0 + WIDTH, n)"
)


def in_blocks(name: str) -> Exercise:
    """The exercise of a product in blocks of b. Sizes that are no multiple of a block matter here."""

    def last_columns_left_out(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        result: np.ndarray = a @ b
        result[:, b.shape[1] // BLOCK_WIDTH * BLOCK_WIDTH :] = 0
        return result

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
