"""The optimizers' steps, for the kernels of week 15. The right results come from the stage below, in float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from groundup.course.checks.check import Tally, Wrong
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.calling.kernel_arithmetic import only_float32
from groundup.course.grading.calling.kernel_launches import (
    Both,
    Launch,
    any_grid,
    as_float,
    module,
    other_launch,
    random,
)
from groundup.course.grading.calling.line_by_line import followed, line_by_line
from groundup.course.grading.calling.shared_work import Work
from groundup.course.grading.problems.kernel_reductions import FLOAT64, floor
from shared.names import OPTIMIZERS

Settings = dict[str, float]
"""The settings of an optimizer, by the names that the stage below uses."""


def numbers_of(kind: int, settings: Settings, steps: int) -> np.ndarray:
    """The eight numbers that a kernel gets, for the step after this many."""
    kernels = module("kernels.optimizers")
    numbers = np.full(
        kernels.COUNT, np.nan, FLOAT64 if other_launch else "float32"
    )  # a kernel must not read the numbers of another optimizer
    rate = settings["learning_rate"]
    numbers[kernels.DECAY] = settings.get("weight_decay", 0.0)
    if kind in (kernels.MOMENTUM, kernels.NESTEROV):
        numbers[kernels.KEEP_FIRST] = settings["momentum"]
    if kind in (kernels.RMSPROP, kernels.ADAM):
        keep = settings["alpha" if kind == kernels.RMSPROP else "beta1"]
        numbers[kernels.KEEP_FIRST], numbers[kernels.ADD_FIRST] = keep, 1 - keep
        numbers[kernels.EPSILON] = settings["epsilon"]
    if kind == kernels.ADAM:
        keep = settings["beta2"]
        numbers[kernels.KEEP_SECOND], numbers[kernels.ADD_SECOND] = keep, 1 - keep
        numbers[kernels.ROOT_CORRECTION] = np.sqrt(1 - keep ** (steps + 1))
        rate /= 1 - settings["beta1"] ** (steps + 1)
    numbers[kernels.RATE] = rate
    return numbers


CLASSES = (*OPTIMIZERS[:1] * 3, *OPTIMIZERS[1:])
"""By kind, the optimizer: SGD has three kinds."""

STATE_NAMES: tuple[tuple[str, ...], ...] = (
    (), ("velocity",), ("velocity",), ("square_average",), ("first_moment", "second_moment")
)  # fmt: skip
"""By kind, the names of the arrays in the state of the stage below."""

NAMES = ("sgd", "momentum", "nesterov", "rmsprop", "adam")


def floor_step(
    kind: int, settings: Settings, steps: int, p: np.ndarray, g: np.ndarray, *state_arrays: np.ndarray
) -> Any:
    """A step of the stage below, after this many steps: [the parameters, its state's arrays]."""
    stage = floor()
    optimizer = getattr(stage.optimizers, CLASSES[kind])(**settings)
    state = {name: [array.astype(np.float64)] for name, array in zip(STATE_NAMES[kind], state_arrays, strict=True)}
    optimizer.load_state({"steps": steps, "buffers": state})
    parameters = [stage.arrays.asarray(p.astype(FLOAT64), FLOAT64)]  # a copy, which the step may change
    optimizer.step(parameters, [stage.arrays.asarray(g, FLOAT64)])
    after = optimizer.state()["buffers"]
    return [np.array(stage.arrays.to_host(parameters[0])), *(np.array(after[name][0]) for name in STATE_NAMES[kind])]


def numpy_step(
    kind: int,
    settings: Settings,
    steps: int,
    p: np.ndarray,
    g: np.ndarray,
    *state_arrays: np.ndarray,
    mistake: str = "",
) -> list[np.ndarray]:
    """One optimizer step as floor_step computes it, with one of the mistakes of OPTIMIZER_MISTAKES."""
    kernels = module("kernels.optimizers")
    decay = settings.get("weight_decay", 0.0)
    taken = {"decay sign": -decay, "decay after": 0.0, "no decay": 0.0}.get(mistake, decay)
    if taken or mistake == "decay always":
        with np.errstate(invalid="ignore"):
            g = g + taken * p
    rate, change, state_arrays = settings["learning_rate"], g, tuple(state_arrays)
    epsilon, inside = settings.get("epsilon", 0.0), mistake == "epsilon inside"
    if kind in (kernels.MOMENTUM, kernels.NESTEROV):
        velocity = settings["momentum"] * state_arrays[0] + g
        change = velocity if kind == kernels.MOMENTUM else g + settings["momentum"] * velocity
        change = g if mistake == "no memory" else velocity if mistake == "no look ahead" else change
        change = g + settings["momentum"] * velocity if mistake == "look ahead" else change
        change = state_arrays[0] if mistake == "old velocity" else change
        state_arrays = (velocity,)
    elif kind == kernels.RMSPROP:
        square = settings["alpha"] * state_arrays[0] + (1 - settings["alpha"]) * g * g
        change = g / (np.sqrt(square + epsilon) if inside else np.sqrt(square) + epsilon)
        state_arrays = (square,)
    elif kind == kernels.ADAM:
        mean = settings["beta1"] * state_arrays[0] + (1 - settings["beta1"]) * g
        square = settings["beta2"] * state_arrays[1] + (1 - settings["beta2"]) * g * g
        correction = 1.0 if mistake == "no correction" else np.sqrt(1 - settings["beta2"] ** (steps + 1))
        root = np.sqrt(square) / correction + epsilon
        if inside:
            root = np.sqrt(square / correction**2 + epsilon)
        elif mistake == "epsilon inside, corrected later":
            root = np.sqrt(square + epsilon) / correction
        elif mistake == "epsilon before":
            root = (np.sqrt(square) + epsilon) / correction
        change = mean / root
        change /= 1 - settings["beta1"] ** (steps + 1)
        state_arrays = (mean, square)
    after = p + rate * change if mistake == "plus" else p - rate * change
    return [after - rate * decay * p if mistake == "decay after" else after, *state_arrays]


EPSILON_INSIDE = "epsilon is inside the root: it is added to the root, so that nothing is divided by zero"

OPTIMIZER_MISTAKES = {
    "decay always": "decay * p is added although decay is 0, and where a parameter is infinite, 0 * p is NaN: add it "
    "only if decay is not 0",
    "plus": "plus instead of minus: a step goes against the gradient, or the loss grows",
    "decay sign": "weight decay with the wrong sign: added to the gradient, it makes weights smaller",
    "decay after": "weight decay is taken from the parameter at the end: it has to be part of the gradient before the "
    "gradient is used",
    "no decay": "weight decay is left out: where numbers[DECAY] is not 0, the gradient is larger by decay * p",
    "no memory": "the step is along the gradient alone: with momentum it is along the velocity",
    "look ahead": "the step looks ahead along the velocity: that is Nesterov's, not momentum's",
    "no look ahead": "Nesterov's step is along gradient + momentum * velocity, not along the velocity",
    "old velocity": "the step is along the velocity as it was before: compute the new one first",
    "epsilon inside": EPSILON_INSIDE,
    "epsilon inside, corrected later": EPSILON_INSIDE,
    "epsilon before": "epsilon is added before the root is divided by numbers[ROOT_CORRECTION]: it is added afterwards",
    "no correction": "the root is not divided by numbers[ROOT_CORRECTION], which corrects for the start at zero",
}


def optimizer_exercise(kinds: Sequence[int], template: str) -> Exercise:
    """The exercise of the optimizers of these kinds.

    Its arguments: kind, settings, number of steps before, launch, p, g, and the arrays of the state.
    """
    kernels = module("kernels.optimizers")

    def named(kind: int, arrays: Any) -> dict[str, np.ndarray]:
        return dict(zip(("parameters", *STATE_NAMES[kind]), arrays, strict=True))

    def call(kind: int, settings: Settings, steps: int, launch: Launch, p: Any, g: Any, *state_arrays: Any) -> Any:
        numbers = numbers_of(kind, settings, steps)
        after = line_by_line(
            kernels.KERNELS[kind], launch, Both(p), g, *(Both(array) for array in state_arrays), numbers
        )
        return named(kind, after if state_arrays else (after,))

    def arguments(rng: np.random.Generator, size: tuple[int, int, Launch]) -> tuple[Any, ...]:
        kind, count, launch = size
        state_arrays = [random(rng, count) for _ in STATE_NAMES[kind]]
        if kind in (kernels.RMSPROP, kernels.ADAM):
            state_arrays[-1] = state_arrays[-1] ** 2
        return kind, settings_of(kind), 3, launch, random(rng, count), random(rng, count), *state_arrays

    def recognised(mistake: str, text: str, output: str) -> Mistake:
        def wrong(kind: int, settings: Settings, steps: int, launch: Launch, *arrays: np.ndarray) -> Any:
            return named(kind, numpy_step(kind, settings, steps, *arrays, mistake=mistake)).get(output)

        return Mistake(text, wrong, output)

    def not_written_back(place: int, output: str) -> Mistake:
        def wrong(kind: int, settings: Settings, steps: int, launch: Launch, *arrays: np.ndarray) -> Any:
            return arrays[2 + place] if output in STATE_NAMES[kind] else None

        return Mistake(f"the {output} is not kept: write it back, or the next step knows nothing of it", wrong, output)

    def beyond_the_grid(kind: int, settings: Settings, steps: int, launch: Any, *arrays: np.ndarray) -> Any:
        moved = numpy_step(kind, settings, steps, *arrays)[0]
        return np.where(np.arange(moved.size) < launch.grid * launch.block, moved, arrays[0])

    def of_squares(largest: float) -> dict[str, float]:
        bound = 4.0 * max(1.0, largest)
        return {name: bound * max(1.0, largest / 100) for name in outputs} | {"parameters": bound}

    def types_of(kind: int) -> Callable[[Tally], None]:
        size = kind, 11, Launch(2, 4)
        return only_float32(kernels.KERNELS[kind], size[2], lambda rng: _launch_arguments(kind, *arguments(rng, size)))

    def memory_of(kind: int) -> Callable[[Tally], None]:
        size, states = (kind, 256, Launch(2, 64)), range(2, 2 + len(STATE_NAMES[kind]))
        return followed(
            kernels.KERNELS[kind],
            size[2],
            lambda rng: _launch_arguments(kind, *arguments(rng, size)),
            side_by_side=[0, 1, *states],
            once=[0, 1, *states],
            work=[Work(place, 2) for place in (0, *states)],
        )

    outputs = ("parameters", *dict.fromkeys(name for kind in kinds for name in STATE_NAMES[kind]))
    return Exercise(
        call=call,
        reference=lambda kind, settings, steps, launch, *arrays: named(
            kind, floor_step(kind, settings, steps, *arrays)
        ),
        show=lambda kind, settings, steps, launch, p, *arrays: (
            f"{template.format(NAMES[kind])}{launch} of {p.size} parameters, {_as_shown(settings)}"
        ),
        hand=[
            ((kind, settings, 0, Launch(1, 2), *map(as_float, arrays)), named(kind, expected))
            for kind, settings, arrays, expected in OPTIMIZERS_BY_HAND
            if kind in kinds
        ],
        arguments=arguments,
        typical=(kinds[-1], 9, Launch(1, 16)),
        sizes=[(kind, count, launch) for kind in kinds for count in (1, 13, 97) for launch in any_grid(count)],
        dtype="float32",
        terms=lambda *arguments: 32,
        scale=lambda kind, settings, steps, launch, *arrays: of_squares(max(np.abs(array).max() for array in arrays)),
        mistakes=[
            *(recognised(mistake, text, output) for mistake, text in OPTIMIZER_MISTAKES.items() for output in outputs),
            Mistake(
                "what lies beyond the grid is left as it was: a thread goes on by cuda.gridsize(1)",
                beyond_the_grid,
                "parameters",
            ),
            *(
                not_written_back(places.index(name), name)
                for places in STATE_NAMES
                for name in places
                if name in outputs
            ),
        ],
        memory=all_of([*map(memory_of, kinds), *([_nothing_touched] if len(kinds) > 1 else [])]),
        types=all_of(map(types_of, kinds)),
    )


def all_of(checks: Iterable[Callable[[Tally], None]]) -> Callable[[Tally], None]:
    """One check that runs several checks, one after the other."""
    made = list(checks)

    def check(tally: Tally) -> None:
        for each in made:
            each(tally)

    return check


def _nothing_touched(tally: Tally) -> None:
    """Count whether SGD leaves the vectors alone that it has no use for: here they have one element, and it is NaN."""
    kernels, cuda = module("kernels.optimizers"), module("backend").cuda
    update, kind = kernels.update, kernels.SGD

    @cuda.jit
    def sgd_beside(parameters, gradients, first, second, numbers):  # type: ignore[no-untyped-def]
        i = cuda.grid(1)
        if i < parameters.size:
            update(kind, parameters, first, second, i, gradients[i], numbers)

    ones, one = np.ones(4, np.float32), np.full(1, np.nan, np.float32)
    tally.trying("update in sgd, with vectors of one element in the place of first and second")
    numbers = numbers_of(kind, settings_of(kind), 0)
    try:
        moved = line_by_line(sgd_beside, Launch(1, 4), Both(ones), ones, one, one.copy(), numbers)
    except Wrong as wrong:
        wrong.cause = (
            "SGD keeps nothing: for its kind first and second are any vectors, and are neither read nor written"
        )
        raise
    tally.holds(np.isfinite(moved).all(), "update in sgd computes with first or second, which SGD has no use for")


def settings_of(kind: int) -> Settings:
    """Settings that all differ, so that none can be taken for another."""
    more: list[Settings] = [
        {},
        {"momentum": 0.9},
        {"momentum": 0.8, "nesterov": True},
        {"alpha": 0.9, "epsilon": 0.05},
        {"beta1": 0.8, "beta2": 0.95, "epsilon": 0.05},
    ]
    return {"learning_rate": 0.2, "weight_decay": 0.3, **more[kind]}


def _launch_arguments(
    kind: int, _: int, settings: Settings, steps: int, launch: Launch, p: Any, g: Any, *state_arrays: Any
) -> Any:
    return Both(p), g, *(Both(each) for each in state_arrays), numbers_of(kind, settings, steps)


def _as_shown(settings: Settings) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items() if name != "nesterov")


OPTIMIZERS_BY_HAND: list[tuple[int, Settings, list[list[float]], list[list[float]]]] = [
    (0, {"learning_rate": 0.1}, [[1.0, 2.0], [2.0, -1.0]], [[0.8, 2.1]]),
    (0, {"learning_rate": 0.1, "weight_decay": 0.5}, [[1.0, 2.0], [2.0, -1.0]], [[0.75, 2.0]]),
    (0, {"learning_rate": 1.0, "weight_decay": 1e-4}, [[1000.0], [0.0]], [[999.9]]),
    # velocity 0.5 * 4 + 1 = 3 and 0.5 * 0 - 2 = -2; the step 0.1 of it
    (1, {"learning_rate": 0.1, "momentum": 0.5}, [[1.0, 2.0], [1.0, -2.0], [4.0, 0.0]], [[0.7, 2.2], [3.0, -2.0]]),
    # with 0.5 * p in the gradients they are 1.5 and -1, the velocities 3.5 and -1
    (
        1,
        {"learning_rate": 0.1, "momentum": 0.5, "weight_decay": 0.5},
        [[1.0, 2.0], [1.0, -2.0], [4.0, 0.0]],
        [[0.65, 2.1], [3.5, -1.0]],
    ),
    # An infinite parameter stays alone: without decay the velocities are 0.5 * 2 + 1 = 2 and 0.5 * 4 - 1 = 1.
    (
        1,
        {"learning_rate": 0.1, "momentum": 0.5},
        [[math.inf, 2.0], [1.0, -1.0], [2.0, 4.0]],
        [[math.inf, 1.9], [2.0, 1.0]],
    ),
    # Without a gradient everything goes on: the velocity 0.5 * 4 = 2; with Nesterov's look ahead half of it again.
    (1, {"learning_rate": 0.1, "momentum": 0.5}, [[1.0], [0.0], [4.0]], [[0.8], [2.0]]),
    (2, {"learning_rate": 0.1, "momentum": 0.5, "nesterov": True}, [[1.0], [0.0], [4.0]], [[0.9], [2.0]]),
    (3, {"learning_rate": 0.1, "alpha": 0.5, "epsilon": 2.0}, [[1.0], [0.0], [4.0]], [[1.0], [2.0]]),
    # mean 0.5 * 2 = 1; square 0.75 * 16 / 3 = 4, its root 2 / 0.5 = 4, and epsilon 1: the step is 0.1 * 1 / 5
    (
        4,
        {"learning_rate": 0.05, "beta1": 0.5, "beta2": 0.75, "epsilon": 1.0},
        [[1.0], [0.0], [2.0], [16 / 3]],
        [[0.98], [1.0], [4.0]],
    ),
    # 1 + 0.5 * 3 = 2.5 and -2 - 0.5 * 2 = -3
    (
        2,
        {"learning_rate": 0.1, "momentum": 0.5, "nesterov": True},
        [[1.0, 2.0], [1.0, -2.0], [4.0, 0.0]],
        [[0.75, 2.3], [3.0, -2.0]],
    ),
    # square 0.5 * 4 + 0.5 * 4 = 4, its root 2, and epsilon 2: the gradient 2 is divided by 4
    (3, {"learning_rate": 0.1, "alpha": 0.5, "epsilon": 2.0}, [[1.0], [2.0], [4.0]], [[0.95], [4.0]]),
    # mean 0.5 * 1 + 0.5 * 2 = 1.5; square 0.75 * 4 + 0.25 * 4 = 4; root 2 / 0.5 = 4, and epsilon 1: 1.5 / 5 = 0.3;
    # the rate 0.05 / 0.5 = 0.1
    (
        4,
        {"learning_rate": 0.05, "beta1": 0.5, "beta2": 0.75, "epsilon": 1.0},
        [[1.0], [2.0], [1.0], [4.0]],
        [[0.97], [1.5], [4.0]],
    ),
]
"""(kind, settings, [p, g, state], [p, state] after the step)."""
