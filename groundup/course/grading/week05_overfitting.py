"""Week 5: two means against learning by heart: dropout's mask, and the epoch after which training ends."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from groundup.course.checks.check import Check, Tally, Wrong
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.exercise_checks import checks_of
from groundup.course.checks.mistakes import Mistake
from groundup.course.checks.repeated import returned
from groundup.course.checks.source import without_loops
from shared import dropout
from shared.training import early_stopping

LOOP = "a loop in Python over numbers or rows: uniform_numbers takes a whole array of indices"

IN_DTYPE = (
    "the mask is multiplied with arrays of this dtype, and one of float64 would make them float64: round "
    "1 / (1 - rate) to dtype before it is multiplied with True and False"
)

ONE_ROW = "every row is the same: the number of an element is row * columns + column, so that each row has its own"


def numbers_at(indices: Any, seed: int, step: int, layer: int) -> np.ndarray:
    """The random numbers from 0 to below 1 with these indices."""
    return dropout.uniform_numbers(dropout.mask_key(seed, step, layer), np.asarray(indices, np.uint64))


def masked(
    rows: int,
    columns: int,
    rate: float,
    seed: int,
    step: int,
    layer: int,
    *,
    survives: Callable[[np.ndarray, float], np.ndarray] = lambda numbers, rate: numbers >= rate,
    scale: Callable[[float], float] = lambda rate: 1 / (1 - rate),
    place: Callable[[np.ndarray, np.ndarray, int, int], Any] = lambda i, j, rows, columns: i * columns + j,
) -> np.ndarray:
    """A mask in float64. survives, scale, place: make known mistakes."""
    i, j = np.indices((rows, columns))
    numbers = numbers_at(place(i, j, rows, columns), seed, step, layer)
    return survives(numbers, rate) * scale(rate)


def dropout_mask() -> list[Check]:
    """The mask of one layer at one step."""
    function = dropout.dropout_mask

    def call(rows: int, columns: int, rate: float, seed: int, step: int, layer: int) -> Any:
        mask: Any = function(rows, columns, rate, seed, step, layer, dtype="float64")
        if not isinstance(mask, np.ndarray):
            raise Wrong("dropout_mask: expected an array", got=type(mask).__name__)
        returned(mask, [])
        return mask

    def arguments(rng: np.random.Generator, size: tuple[int, int, float]) -> tuple[Any, ...]:
        return *size, *map(int, rng.integers(0, 50, 3))

    def mistake(text: str, **change: Any) -> Mistake:
        def wrong(*arguments: Any) -> np.ndarray:
            with np.errstate(all="ignore"):
                return masked(*arguments, **change)

        return Mistake(text, wrong)

    def with_other_key(text: str, seed: bool = True, step: bool = True, layer: bool = True) -> Mistake:
        return Mistake(text, lambda r, c, rate, s, t, n: masked(r, c, rate, s * seed, t * step, n * layer))

    number = float(numbers_at([3], 10, 0, 0)[0])  # a number that is the rate itself is not below it
    above = math.nextafter(number, 1.0)

    def types(tally: Tally) -> None:
        for rate in (0.5, 0.1, 0.7):
            case = f"dropout_mask of 5 x 7, rate {rate}, dtype float32"
            tally.trying(case)
            mask = function(5, 7, rate, 1, 2, 0, dtype="float32")
            tally.holds(mask.dtype == np.float32, case, expected="float32", got=str(mask.dtype), cause=IN_DTYPE)
            right = np.float32(1 / (1 - rate))
            wrong = mask[(mask != 0) & (mask != right)]
            tally.holds(
                wrong.size == 0,
                f"{case}: kept",
                expected=f"{right}",
                got=f"{wrong[:1]}",
                cause="1 / (1 - rate), rounded",
            )
        default = function(2, 3, 0.5, 1, 2, 0)
        tally.holds(default.dtype == np.float32, "without dtype", expected="float32", got=str(default.dtype))

    return checks_of(
        Exercise(
            call=call,
            reference=masked,
            show=lambda r, c, rate, *key: f"dropout_mask of {r} x {c}, rate {rate:g}, seed, step and layer {key}",
            # Seed 10, step 0, layer 0 has the numbers 0.994, 0.391, 0.659, 0.223, 0.714, 0.179; step 2, layer 1 has
            # 0.470, 0.056, 0.630, 0.821, 0.946, 0.761.
            hand=[
                ((2, 3, 0.2, 10, 0, 0), [[1.25, 1.25, 1.25], [1.25, 1.25, 0.0]]),
                ((2, 3, 0.5, 10, 0, 0), [[2.0, 0.0, 2.0], [0.0, 2.0, 0.0]]),
                ((3, 2, 0.75, 10, 0, 0), [[4.0, 0.0], [0.0, 0.0], [0.0, 0.0]]),
                ((2, 3, 0.5, 10, 2, 1), [[0.0, 0.0, 2.0], [2.0, 2.0, 2.0]]),
                ((1, 2, 0.0, 10, 0, 0), [[1.0, 1.0]]),
                ((1, 4, number, 10, 0, 0), [[1 / (1 - number)] * 4]),
                ((1, 4, above, 10, 0, 0), [[1 / (1 - above)] * 3 + [0.0]]),
            ],
            arguments=arguments,
            typical=(6, 9, 0.5),
            sizes=[(1, 1, 0.5), (1, 31, 0.2), (17, 1, 0.75), (13, 11, 0.9), (3, 200, 0.0), (64, 128, 0.1)],
            again=[(6, 9, 0.5), (13, 11, 0.2), (1, 3, 0.5), (6, 9, 0.5), (6, 9, 0.3)],
            types=types,
            way=without_loops(function, LOOP, of_size=lambda size: function(3 * size, 2 * size, 0.5, 0, 0, 0)),
            mistakes=[
                mistake(
                    "what is kept has to be multiplied by 1 / (1 - rate), so that the expected output stays the same",
                    scale=lambda rate: 1.0,
                ),
                mistake(
                    "multiplied by 1 - rate: the numbers that are kept have to grow, by 1 / (1 - rate)",
                    scale=lambda rate: 1 - rate,
                ),
                mistake(
                    "divided by the rate: 1 - rate of the neurons are kept, so it is 1 / (1 - rate)",
                    scale=lambda rate: 1 / rate if rate else 1.0,
                ),
                mistake(
                    "the wrong ones are dropped: rate is the share that is dropped, so a number below it is",
                    survives=lambda numbers, rate: numbers < rate,
                ),
                mistake(
                    "nothing is dropped: compare the random numbers with the rate",
                    survives=lambda numbers, rate: np.ones(numbers.shape, bool),
                ),
                mistake(
                    "the numbers themselves are in the mask: it has 0 and 1 / (1 - rate) alone",
                    survives=lambda numbers, rate: np.where(numbers >= rate, numbers, 0),
                ),
                mistake(
                    "numbers below 1 - rate are kept: on the other floors it is those from the rate on",
                    survives=lambda numbers, rate: numbers < 1 - rate,
                ),
                mistake(ONE_ROW, place=lambda i, j, rows, columns: j),
                mistake(
                    "every column is the same: the number of an element is row * columns + column",
                    place=lambda i, j, rows, columns: i,
                ),
                mistake(
                    "numbered down the columns: the number of an element is row * columns + column",
                    place=lambda i, j, rows, columns: j * rows + i,
                ),
                mistake("the indices begin with 0, not with 1", place=lambda i, j, rows, columns: i * columns + j + 1),
                with_other_key("the seed is left out of the key", seed=False),
                with_other_key("the step is left out of the key: each step drops other neurons", step=False),
                with_other_key("the layer is left out of the key: each layer has a mask of its own", layer=False),
            ],
            fresh=True,
        )
    )


def best_epoch_and_wait() -> list[Check]:
    """The best epoch so far, and the number of epochs since."""
    function = early_stopping.best_epoch_and_wait

    def call(values: tuple[float, ...], higher: bool) -> dict[str, Any]:
        handed = list(values)
        result: Any = function(handed, higher_is_better=higher)
        if handed != list(values):
            raise Wrong("values was changed by the call", cause="look for the best one without sorting the list")
        if result is None:
            raise Wrong("best_epoch_and_wait: nothing came back", got="None", cause="no return?")
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise Wrong("best_epoch_and_wait: expected two numbers, (epoch, wait)", got=repr(result)[:80])
        for number in result:
            if type(number) is not int:
                cause = "a checkpoint is written as JSON, which knows no number of NumPy's: int(…) makes Python's own"
                raise Wrong("best_epoch_and_wait: expected two ints", got=type(number).__name__, cause=cause)
        return dict(zip((EPOCH, WAIT), result, strict=True))

    def arguments(rng: np.random.Generator, size: tuple[int, int, bool]) -> tuple[Any, ...]:
        count, levels, higher = size
        return tuple((rng.integers(0, levels, count) / 8).tolist()), higher

    def mistake(text: str, wrong: Callable[[tuple[float, ...], bool], int | None], output: str) -> Mistake:
        return Mistake(text, wrong, output)

    last_of_equal = "of equal values the first is the best: an epoch that is only as good has improved nothing"
    by_one = "compared with the epoch before: what counts is the best of all epochs so far"
    loss = "an accuracy is better if it is higher: higher_is_better says which it is"
    accuracy = "a loss is better if it is lower: higher_is_better says which it is"
    return checks_of(
        Exercise(
            call=call,
            reference=expected,
            show=lambda values, higher: (
                f"best_epoch_and_wait of {len(values)} {'accuracies' if higher else 'losses'} "
                f"[{', '.join(f'{value:g}' for value in values[:8])}{', …' if len(values) > 8 else ''}]"
            ),
            hand=[
                (((0.5, 0.31, 0.28, 0.29, 0.28), False), {EPOCH: 3, WAIT: 2}),
                (((0.5, 0.31, 0.28, 0.29, 0.28), True), {EPOCH: 1, WAIT: 4}),
                (((0.7, 0.9, 0.8, 0.85, 0.9, 0.6), True), {EPOCH: 2, WAIT: 4}),
                (((2.0, 1.0, 1.5, 1.25, 1.0, 0.5, 0.75), False), {EPOCH: 6, WAIT: 1}),
                (((0.25,), False), {EPOCH: 1, WAIT: 0}),
                (((0.25,), True), {EPOCH: 1, WAIT: 0}),
                (((0.0, 0.0, 0.0), True), {EPOCH: 1, WAIT: 2}),
                (((3.0, 2.0, 1.0), False), {EPOCH: 3, WAIT: 0}),
                (((4e12, 5e12, 3e12), False), {EPOCH: 3, WAIT: 0}),
                (((1e-9, 2e-9, 1e-9), False), {EPOCH: 1, WAIT: 2}),
                (((0.5, 0.4999999, 0.4999998), False), {EPOCH: 3, WAIT: 0}),
                (((0.9, 0.9000001, 0.9), True), {EPOCH: 2, WAIT: 1}),
            ],
            arguments=arguments,
            typical=(60, 1000, False),
            sizes=[(1, 5, True), (2, 5, False), (7, 3, True), (31, 4, False), (100, 50, True), (100, 1000, False)],
            again=[(12, 30, False), (31, 4, True), (2, 5, True), (12, 30, False), (12, 30, True)],
            mistakes=[
                mistake(
                    "epochs are counted from 1, places in a list from 0", lambda v, h: expected(v, h)[EPOCH] - 1, EPOCH
                ),
                mistake(last_of_equal, lambda v, h: len(v) - v[::-1].index(max(v) if h else min(v)), EPOCH),
                mistake(loss, lambda v, h: expected(v, False)[EPOCH] if h else None, EPOCH),
                mistake(accuracy, lambda v, h: None if h else expected(v, True)[EPOCH], EPOCH),
                mistake(by_one, lambda v, h: last_improvement(v, h), EPOCH),
                mistake(
                    "no epoch was better than the number that the search begins with: begin with the first epoch's",
                    lambda v, h: 1 if not h and min(v) >= 1 else None,
                    EPOCH,
                ),
                mistake("this is the last epoch, and not the best one", lambda v, h: len(v), EPOCH),
                mistake(
                    "the two numbers have changed places: the epoch comes first",
                    lambda v, h: expected(v, h)[WAIT],
                    EPOCH,
                ),
                mistake(
                    "the best epoch itself is not one that came after it", lambda v, h: expected(v, h)[WAIT] + 1, WAIT
                ),
                mistake(
                    "one too few: the last epoch came after the best one, too",
                    lambda v, h: expected(v, h)[WAIT] - 1,
                    WAIT,
                ),
                mistake(by_one, lambda v, h: len(v) - last_improvement(v, h), WAIT),
                mistake(
                    "counted over the whole training: a new best epoch sets the count back to 0", idle_epochs, WAIT
                ),
                mistake("the epoch is in place of the wait", lambda v, h: expected(v, h)[EPOCH], WAIT),
            ],
            fresh=True,
        )
    )


EPOCH, WAIT = "the best epoch", "the number of epochs after it"


def expected(values: tuple[float, ...], higher: bool) -> dict[str, int]:
    """The right results, by a walk through the epochs."""
    best = 0
    for place, value in enumerate(values):
        if (value > values[best]) if higher else (value < values[best]):
            best = place
    return {EPOCH: best + 1, WAIT: len(values) - 1 - best}


def last_improvement(values: tuple[float, ...], higher: bool) -> int:
    """The last epoch that is better than the one before it; the first if there is none."""
    better = [
        number
        for number, (before, value) in enumerate(pairwise(values), start=2)
        if (value > before if higher else value < before)
    ]
    return better[-1] if better else 1


def idle_epochs(values: tuple[float, ...], higher: bool) -> int:
    """How many epochs of the whole training were no new best one."""
    best = [expected(values[: i + 1], higher)[EPOCH] == i + 1 for i in range(len(values))]
    return len(best) - sum(best)


GRADES: dict[str, Callable[[], list[Check]]] = {"5.6": dropout_mask, "5.7": best_epoch_and_wait}
