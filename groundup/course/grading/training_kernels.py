"""Phase 5: training on the GPU. Week 12 is in activation_kernels.py, 13 and 14 are in reduction_kernels.py.

Here are weeks 15 and 16, the optimizers, the whole step and what is fused, and the checkpoint. What is right comes from
the floor below, in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from groundup.course import mine
from groundup.course.checks import Check, Exercise, Tally, Wrong, checks_of
from groundup.course.grading.activation_kernels import GRADES_12
from groundup.course.grading.kernels import Both, Launch, Out, any_grid, module, random
from groundup.course.grading.line_by_line import followed, line_by_line
from groundup.course.grading.reduction_kernels import (
    FLOAT64,
    GRADES_13_14,
    LOGITS_BY_HAND,
    LOSSES_BY_HAND,
    SHAPES,
    SLOPES_BY_HAND,
    TYPICAL,
    WARP,
    below,
    cross_entropy,
    f32,
    floor,
    logits_and_labels,
    loss_gradient_check,
    one_hot,
    row_launches,
    slope_guesses,
)
from groundup.course.likely import Guess
from shared.contract import STAGES, load_stage
from shared.data.datasets import DataError, Dataset, load_dataset
from shared.training.loop import train
from shared.training.settings import QUIET, TrainingSettings

# ---------------------------------------------------------------- week 15: optimizers

Settings = dict[str, float]
"""What an optimizer multiplies with, by the names that an optimizer of the floor below takes."""


def numbers_of(kind: int, settings: Settings, steps: int) -> np.ndarray:
    """The eight numbers of a kernel, for the step after so many."""
    kernels = module("kernels.optimizers")
    numbers = np.full(kernels.COUNT, np.nan, np.float32)  # what an optimizer does not have is not read
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


CLASSES = ("SGD", "SGD", "SGD", "RMSProp", "Adam")
KEPT: tuple[tuple[str, ...], ...] = (
    (), ("velocity",), ("velocity",), ("square_average",), ("first_moment", "second_moment")
)  # fmt: skip
"""By kind, what the floor below calls it, and what it keeps for each parameter."""

NAMES = ("sgd", "momentum", "nesterov", "rmsprop", "adam")


def floor_step(kind: int, settings: Settings, steps: int, p: np.ndarray, g: np.ndarray, *kept: np.ndarray) -> Any:
    """A step of the floor below after so many others, with what it keeps: the parameters first, then what it keeps."""
    stage = floor()
    optimizer = getattr(stage.optimizers, CLASSES[kind])(**settings)
    state = {name: [array.astype(np.float64)] for name, array in zip(KEPT[kind], kept, strict=True)}
    optimizer.load_state({"steps": steps, "buffers": state})
    parameters = [stage.arrays.asarray(p, FLOAT64)]
    optimizer.step(parameters, [stage.arrays.asarray(g, FLOAT64)])
    after = optimizer.state()["buffers"]
    return [np.array(stage.arrays.to_host(parameters[0])), *(np.array(after[name][0]) for name in KEPT[kind])]


def numpy_step(
    kind: int, settings: Settings, steps: int, p: np.ndarray, g: np.ndarray, *kept: np.ndarray, mistake: str = ""
) -> list[np.ndarray]:
    """What floor_step gives where one of these mistakes is made: see OPTIMIZER_MISTAKES."""
    kernels = module("kernels.optimizers")
    decay = settings.get("weight_decay", 0.0)
    g = g + {"decay sign": -decay, "decay after": 0.0, "no decay": 0.0}.get(mistake, decay) * p
    rate, change, kept = settings["learning_rate"], g, tuple(kept)
    epsilon, inside = settings.get("epsilon", 0.0), mistake == "epsilon inside"
    if kind in (kernels.MOMENTUM, kernels.NESTEROV):
        velocity = settings["momentum"] * kept[0] + g
        change = velocity if kind == kernels.MOMENTUM else g + settings["momentum"] * velocity
        change = g if mistake == "no memory" else velocity if mistake == "no look ahead" else change
        change = g + settings["momentum"] * velocity if mistake == "look ahead" else change
        kept = (velocity,)
    elif kind == kernels.RMSPROP:
        square = settings["alpha"] * kept[0] + (1 - settings["alpha"]) * g * g
        change = g / (np.sqrt(square + epsilon) if inside else np.sqrt(square) + epsilon)
        kept = (square,)
    elif kind == kernels.ADAM:
        mean = settings["beta1"] * kept[0] + (1 - settings["beta1"]) * g
        square = settings["beta2"] * kept[1] + (1 - settings["beta2"]) * g * g
        corrected = square if mistake == "no correction" else square / (1 - settings["beta2"] ** (steps + 1))
        change = mean / (np.sqrt(corrected + epsilon) if inside else np.sqrt(corrected) + epsilon)
        change /= 1 - settings["beta1"] ** (steps + 1)
        kept = (mean, square)
    after = p + rate * change if mistake == "plus" else p - rate * change
    return [after - rate * decay * p if mistake == "decay after" else after, *kept]


OPTIMIZER_MISTAKES = {
    "plus": "plus instead of minus: a step goes against the gradient, or the loss grows",
    "decay sign": "weight decay with the wrong sign: added to the gradient, it makes weights smaller",
    "decay after": "weight decay is taken from the parameter at the end: it has to be part of the gradient before "
    "anything is made of it",
    "no decay": "weight decay is left out: where numbers[DECAY] is not 0, the gradient is larger by decay * p",
    "no memory": "the step is along the gradient alone: with momentum it is along the velocity",
    "look ahead": "the step has a look ahead along the velocity: that is Nesterov's, not momentum's",
    "no look ahead": "Nesterov's step is along gradient + momentum * velocity, not along the velocity",
    "epsilon inside": "epsilon is inside the root: it is added to the root, so that nothing is divided by zero",
    "no correction": "the root is not divided by numbers[ROOT_CORRECTION], which makes up for having started at zero",
}


def optimizer_exercise(kinds: Sequence[int], what: str) -> Exercise:
    """Steps of the optimizers of these kinds. Arguments: kind, settings, steps before, launch, p, g, what is kept."""
    kernels = module("kernels.optimizers")

    def named(kind: int, arrays: Any) -> dict[str, np.ndarray]:
        return dict(zip(("parameters", *KEPT[kind]), arrays, strict=True))

    def call(kind: int, settings: Settings, steps: int, launch: Launch, p: Any, g: Any, *kept: Any) -> Any:
        numbers = numbers_of(kind, settings, steps)
        after = line_by_line(kernels.KERNELS[kind], launch, Both(p), g, *(Both(each) for each in kept), numbers)
        return named(kind, after if kept else (after,))

    def arguments(rng: np.random.Generator, size: tuple[int, int, Launch]) -> tuple[Any, ...]:
        kind, count, launch = size
        kept = [random(rng, count) for _ in KEPT[kind]]
        if kind in (kernels.RMSPROP, kernels.ADAM):
            kept[-1] = kept[-1] ** 2
        return kind, settings_of(kind), 3, launch, random(rng, count), random(rng, count), *kept

    def guess(mistake: str, text: str, output: str) -> Guess:
        def wrong(kind: int, settings: Settings, steps: int, launch: Launch, *arrays: np.ndarray) -> Any:
            return named(kind, numpy_step(kind, settings, steps, *arrays, mistake=mistake)).get(output)

        return Guess(text, wrong, output)

    def not_kept(place: int, output: str) -> Guess:
        def wrong(kind: int, settings: Settings, steps: int, launch: Launch, *arrays: np.ndarray) -> Any:
            return arrays[2 + place] if output in KEPT[kind] else None

        return Guess(f"the {output} is not kept: write it back, or the next step knows nothing of it", wrong, output)

    def beyond_the_grid(kind: int, settings: Settings, steps: int, launch: Any, *arrays: np.ndarray) -> Any:
        moved = numpy_step(kind, settings, steps, *arrays)[0]
        return np.where(np.arange(moved.size) < launch.grid * launch.block, moved, arrays[0])

    outputs = ("parameters", *dict.fromkeys(name for kind in kinds for name in KEPT[kind]))
    return Exercise(
        call=call,
        reference=lambda kind, settings, steps, launch, *arrays: named(
            kind, floor_step(kind, settings, steps, *arrays)
        ),
        show=lambda kind, settings, steps, launch, p, *arrays: (
            f"{what.format(NAMES[kind])}{launch} of {p.size} parameters, {_told(settings)}"
        ),
        hand=[
            ((kind, settings, 0, Launch(1, 2), *map(f32, arrays)), named(kind, expected))
            for kind, settings, arrays, expected in OPTIMIZERS_BY_HAND
            if kind in kinds
        ],
        arguments=arguments,
        typical=(kinds[-1], 9, Launch(1, 16)),
        sizes=[(kind, count, launch) for kind in kinds for count in (1, 13, 33) for launch in any_grid(count)],
        dtype="float32",
        terms=lambda *arguments: 32,
        scale=lambda *arguments: 4.0,
        guesses=[
            *(guess(mistake, text, output) for mistake, text in OPTIMIZER_MISTAKES.items() for output in outputs),
            Guess(
                "what lies beyond the grid is left as it was: a thread goes on by cuda.gridsize(1)",
                beyond_the_grid,
                "parameters",
            ),
            *(not_kept(places.index(name), name) for places in KEPT for name in places if name in outputs),
        ],
        memory=followed(
            kernels.KERNELS[kinds[-1]],
            Launch(2, 4),
            lambda rng: _launch_arguments(kinds[-1], *arguments(rng, (kinds[-1], 11, Launch(2, 4)))),
        ),
    )


def settings_of(kind: int) -> Settings:
    """Numbers that no two of which could be mistaken for each other."""
    more: list[Settings] = [
        {},
        {"momentum": 0.9},
        {"momentum": 0.8, "nesterov": True},
        {"alpha": 0.9, "epsilon": 0.05},
        {"beta1": 0.8, "beta2": 0.95, "epsilon": 0.05},
    ]
    return {"learning_rate": 0.2, "weight_decay": 0.3, **more[kind]}


def _launch_arguments(
    kind: int, _: int, settings: Settings, steps: int, launch: Launch, p: Any, g: Any, *kept: Any
) -> Any:
    return Both(p), g, *(Both(each) for each in kept), numbers_of(kind, settings, steps)


def _told(settings: Settings) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items() if name != "nesterov")


OPTIMIZERS_BY_HAND: list[tuple[int, Settings, list[list[float]], list[list[float]]]] = [
    (0, {"learning_rate": 0.1}, [[1.0, 2.0], [2.0, -1.0]], [[0.8, 2.1]]),
    (0, {"learning_rate": 0.1, "weight_decay": 0.5}, [[1.0, 2.0], [2.0, -1.0]], [[0.75, 2.0]]),
    # velocity 0.5 * 4 + 1 = 3 and 0.5 * 0 - 2 = -2; the step 0.1 of it
    (1, {"learning_rate": 0.1, "momentum": 0.5}, [[1.0, 2.0], [1.0, -2.0], [4.0, 0.0]], [[0.7, 2.2], [3.0, -2.0]]),
    # with 0.5 * p in the gradients they are 1.5 and -1, the velocities 3.5 and -1
    (
        1,
        {"learning_rate": 0.1, "momentum": 0.5, "weight_decay": 0.5},
        [[1.0, 2.0], [1.0, -2.0], [4.0, 0.0]],
        [[0.65, 2.1], [3.5, -1.0]],
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
"""(kind, settings, [p, g, what is kept], [p, what is kept] after it)."""


def momentum() -> list[Check]:
    """The kernel of SGD with momentum."""
    return checks_of(optimizer_exercise([1], "{}"))


def update() -> list[Check]:
    """The device function, in the kernels that the project has around it."""
    return checks_of(optimizer_exercise([0, 1, 2, 3, 4], "update in {}"))


# ---------------------------------------------------------------- week 15: the whole step


class OnHost:
    """What stands in for a kernel: NumPy on the host. function: from the arguments, what the one at `place` becomes."""

    def __init__(self, place: int, function: Callable[..., np.ndarray]) -> None:
        self.place, self.function = place, function

    def __getitem__(self, launch: Any) -> Callable[..., None]:
        return self

    def __call__(self, *arrays: Any) -> None:
        out = arrays[self.place]
        result = self.function(*(array.copy_to_host() for array in arrays))
        out.copy_to_device(np.ascontiguousarray(result, out.dtype))


FUNCTIONS: dict[str, Callable[..., np.ndarray]] = {"relu": lambda z: np.maximum(z, 0), "tanh": np.tanh}
SLOPES: dict[str, Callable[..., np.ndarray]] = {"relu": lambda output: output > 0, "tanh": lambda output: 1 - output**2}


def numpy_instead_of_kernels() -> None:
    """Every kernel of a step with ReLU or tanh, and softmax cross-entropy is computed with NumPy from now on.

    The step is graded, not the kernels, and these would compile for ten seconds.
    """
    kernels, losses, name = module("kernels.activations"), module("kernels.losses"), "softmax_cross_entropy"

    def multiply(form: str, a: Any, b: Any, out: Any) -> Any:
        left, right = a.copy_to_host(), b.copy_to_host()
        out.copy_to_device(
            np.ascontiguousarray((left.T if form[0] == "t" else left) @ (right.T if form[1] == "t" else right))
        )
        return out

    def slopes(logits: np.ndarray, labels: np.ndarray, grad: np.ndarray) -> np.ndarray:
        exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
        softmax = exponentials / exponentials.sum(axis=1, keepdims=True)
        return (softmax - one_hot(labels, logits.shape[1])) / len(logits)

    module("matmul").multiply = multiply
    module("kernels.dense").add_bias = OnHost(0, np.add)
    module("kernels.dense").multiply = OnHost(2, lambda a, mask, out: a * mask)
    for activation in ("relu", "tanh"):
        function, slope = FUNCTIONS[activation], SLOPES[activation]
        kernels.FORWARD[activation] = OnHost(1, lambda z, output, function=function: function(z))
        kernels.BACKWARD[activation] = OnHost(2, lambda grad, output, grad_z, slope=slope: grad * slope(output))
    for lanes in losses.LOSS:
        losses.LOSS[lanes][name] = OnHost(2, lambda logits, labels, rows: cross_entropy(logits, labels))
        losses.BACKWARD[lanes][name] = OnHost(2, slopes)
    module("reductions").launch_column_sums = OnHost(1, lambda matrix, out: matrix.sum(axis=0))
    module("reductions").launch_total = OnHost(1, lambda vector, out: vector.sum(keepdims=True))


def numpy_gradients(
    parameters: Sequence[np.ndarray],
    x: np.ndarray,
    y: np.ndarray,
    masks: Sequence[np.ndarray] | None,
    activation: str = "relu",
    mistake: str = "",
) -> list[Any]:
    """[loss, dL/dparameter …]. mistake: "no slope", "no mask" (on the way back), "mask in place"."""
    inputs, outputs = [x], list[np.ndarray]()
    last = len(parameters) // 2 - 1
    for i, (weights, bias) in enumerate(zip(parameters[::2], parameters[1::2], strict=True)):
        signal = inputs[-1] @ weights + bias
        if i < last:
            signal = FUNCTIONS[activation](signal)
            masked = signal * masks[i] if masks else signal
            outputs.append(masked if mistake == "mask in place" else signal)
            signal = masked
        inputs.append(signal)
    exponentials = np.exp(signal - signal.max(axis=1, keepdims=True))
    slopes = (exponentials / exponentials.sum(axis=1, keepdims=True) - one_hot(y, signal.shape[1])) / len(y)
    found: list[np.ndarray] = []
    for i in reversed(range(last + 1)):
        found[:0] = [inputs[i].T @ slopes, slopes.sum(axis=0)]
        if i > 0:
            slopes = slopes @ parameters[2 * i].T
            if masks and mistake != "no mask":
                slopes = slopes * masks[i - 1]
            if mistake != "no slope":
                slopes = slopes * SLOPES[activation](outputs[i - 1])
    return [float(cross_entropy(signal, y).sum()), *found]


def slope_names(parameters: Sequence[np.ndarray]) -> list[str]:
    """dL/dW1, dL/db1, …"""
    return [f"dL/d{'Wb'[i % 2]}{i // 2 + 1}" for i in range(len(parameters))]


class Recording:
    """An optimizer that writes down what its step is given."""

    def __init__(self) -> None:
        self.given: list[tuple[list[Any], list[Any], list[np.ndarray]]] = []

    def step(self, parameters: Any, gradients: Any) -> None:
        """Keeps the arrays, and what the gradients hold now."""
        self.given.append((list(parameters), list(gradients), [each.copy_to_host() for each in gradients]))


def op_by_op() -> list[Check]:
    """The step of a whole network, with NumPy in place of the kernels."""
    numpy_instead_of_kernels()
    steps, network = module("steps"), module("network").Network

    def call(x: Any, y: Any, parameters: Any, masks: Any, activation: str) -> dict[str, Any]:
        made = network.from_parameters(parameters, activation=activation, dtype=FLOAT64)
        optimizer = Recording()
        loss = steps.op_by_op(made, x, y, optimizer, masks)
        steps_taken = len(optimizer.given)
        if steps_taken != 1:
            taken = f"optimizer.step was called {steps_taken} times"
            raise Wrong(taken, expected="once", likely="the parameters move once, when all gradients are known")
        parameters_given, gradients_given, gradients = optimizer.given[0]
        right = _same_arrays(parameters_given, made.parameters) and _same_arrays(gradients_given, made.layer_gradients)
        if not right:
            raise Wrong(
                "optimizer.step was given other arrays than network.parameters and network.layer_gradients",
                likely="both lists in their order, the network's own arrays: an optimizer changes them in place",
            )
        steps.op_by_op(made, x, y, None, masks)  # where there is no optimizer, there is no step to take
        return {"loss": loss, **dict(zip(slope_names(parameters), gradients, strict=True))}

    def reference(x: Any, y: Any, parameters: Any, masks: Any, activation: str) -> dict[str, Any]:
        stage = load_stage(STAGES[1])
        made = stage.network.Network.from_parameters(parameters, activation=activation, dtype=FLOAT64)
        gradients = made.gradients(x, y, masks)
        return {"loss": made.loss(x, y, masks), **dict(zip(slope_names(parameters), gradients, strict=True))}

    def arguments(rng: np.random.Generator, size: tuple[int, bool, tuple[int, ...], str]) -> tuple[Any, ...]:
        rows, dropout, widths, activation = size
        parameters: list[np.ndarray] = []
        for inputs, outputs in pairwise(widths):
            parameters += [rng.standard_normal((inputs, outputs)), rng.standard_normal(outputs)]
        masks = [rng.integers(0, 2, (rows, width)) * 2.0 for width in widths[1:-1]] if dropout else None
        x, y = rng.standard_normal((rows, widths[0])), rng.integers(0, widths[-1], rows)
        return x, y, parameters, masks, activation

    def mistaken(mistake: str, text: str, place: int) -> Guess:
        def wrong(x: Any, y: Any, parameters: Any, masks: Any, activation: str) -> Any:
            if place >= len(parameters):
                return None
            return numpy_gradients(parameters, x, y, masks, activation, mistake)[1 + place]

        return Guess(text, wrong, f"dL/d{'Wb'[place % 2]}{place // 2 + 1}")

    def never_made(place: int) -> Guess:
        def wrong(x: Any, y: Any, parameters: Any, masks: Any, activation: str) -> Any:
            return np.full(parameters[place].shape, np.nan) if place < len(parameters) else None

        return Guess(
            "what comes back to this layer was never made: losses.gradient_of fills rows.grad[-1], and from there on "
            "each layer, from the last to the first, fills the rows.grad of the one below",
            wrong,
            f"dL/d{'Wb'[place % 2]}{place // 2 + 1}",
        )

    def never_called(place: int) -> Guess:
        def wrong(x: Any, y: Any, parameters: Any, masks: Any, activation: str) -> Any:
            return np.zeros(parameters[place].shape) if place < len(parameters) else None

        return Guess(
            "backward is never called for this layer: it fills its grad_weights and grad_bias",
            wrong,
            f"dL/d{'Wb'[place % 2]}{place // 2 + 1}",
        )

    places = range(6)
    return checks_of(
        Exercise(
            call=call,
            reference=reference,
            show=lambda x, y, parameters, masks, activation: (
                f"op_by_op, layers {[x.shape[1], *(bias.size for bias in parameters[1::2])]}, {len(x)} rows"
                + (", dropout" if masks else "")
            ),
            hand=[(STEP_BY_HAND, STEP_EXPECTED)],
            arguments=arguments,
            typical=(4, False, (5, 7, 6, 3), "tanh"),
            sizes=[
                (3, True, (5, 7, 4), "relu"),
                (4, True, (3, 6, 5, 4), "tanh"),
                (1, False, (2, 1), "relu"),
                (7, True, (1, 1, 3), "tanh"),
                (2, False, (2, 3), "relu"),
            ],
            terms=lambda x, y, parameters, masks, activation: 256,
            scale=lambda x, y, parameters, masks, activation: 100.0,
            guesses=[
                *(mistaken(mistake, text, place) for mistake, text in STEP_MISTAKES.items() for place in places),
                Guess(
                    "the mask is applied, but what came out of it is not what the next layer gets",
                    lambda x, y, parameters, masks, activation: numpy_gradients(parameters, x, y, None, activation)[0],
                    "loss",
                ),
                *map(never_made, places),
                *map(never_called, places),
            ],
        )
    )


STEP_MISTAKES = {
    "no slope": "the activation's derivative is left out on the way back",
    "no mask": "the dropout mask is forgotten on the way back: what was not passed on has no slope",
    "mask in place": "the mask is written over the activation's output, which its derivative needs: rows.dropped is "
    "for what comes out",
}

STEP_BY_HAND = (
    np.array([[3.0]]),
    np.array([0]),
    [np.array([[2.0]]), np.array([-4.0]), np.array([[1.0, -1.0]]), np.array([-2.0, 2.0])],
    None,
    "relu",
)
"""z = 3 * 2 - 4 = 2, which ReLU lets pass; the outputs are 2 - 2 and 2 - 2, so that softmax is 1/2 and 1/2."""

STEP_EXPECTED = {
    "loss": 0.6931471805599453,
    "dL/dW1": [[-3.0]],
    "dL/db1": [-1.0],
    "dL/dW2": [[-1.0, 1.0]],
    "dL/db2": [-0.5, 0.5],
}
"""The slopes at the outputs are 1/2 - 1 and 1/2; at the hidden number -1/2 * 1 + 1/2 * -1 = -1."""


def _same_arrays(given: Sequence[Any], own: Sequence[Any]) -> bool:
    return len(given) == len(own) and all(a is b for a, b in zip(given, own, strict=True))


# ---------------------------------------------------------------- week 16: fusing

SIDE = 4
"""Of the tiles here: any side will do, and the smaller, the fewer threads."""


def activated(number: int, z: np.ndarray) -> np.ndarray:
    """The activation of that number, by the floor below."""
    return below("activations", ("identity", "relu", "leaky_relu", "sigmoid", "tanh")[number], z)


def tiled_forward() -> list[Check]:
    """The product with bias and activation at its end, of tiles of 4 x 4."""
    kernel = module("kernels.matmul_basic").tiled(SIDE, "nn").forward

    def launch(x: np.ndarray, weights: np.ndarray) -> Launch:
        return Launch((-(-weights.shape[1] // SIDE), -(-len(x) // SIDE)), (SIDE, SIDE))

    def arguments(rng: np.random.Generator, size: tuple[int, int, int, int]) -> tuple[Any, ...]:
        rows, inner, columns, number = size
        return random(rng, rows, inner), random(rng, inner, columns), random(rng, columns), number

    def per_row(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, number: int) -> Any:
        return activated(number, x @ weights + bias[: len(x), None]) if len(x) <= bias.size else None

    return checks_of(
        Exercise(
            call=lambda x, weights, bias, number: line_by_line(
                kernel, launch(x, weights), x, weights, bias, number, Out((len(x), bias.size))
            ),
            reference=lambda x, weights, bias, number: activated(number, x.astype(np.float64) @ weights + bias),
            show=lambda x, weights, bias, number: (
                f"forward{launch(x, weights)} of x {x.shape}, weights {weights.shape}, activation {number}"
            ),
            hand=[
                (
                    # xW is (11, -3) and (4, -1), with the bias (6, -2) and (-1, 0)
                    (f32([[1, 2], [0, 1]]), f32([[3, -1], [4, -1]]), f32([-5, 1]), 1),
                    [[6.0, 0.0], [0.0, 0.0]],
                )
            ],
            arguments=arguments,
            typical=(5, 6, 7, 4),
            sizes=[(1, 1, 1, 0), (4, 4, 4, 1), (5, 3, 9, 2), (9, 5, 2, 1), (3, 13, 5, 4)],
            dtype="float32",
            terms=lambda x, weights, bias, number: x.shape[1] + 16,
            scale=lambda x, weights, bias, number: np.abs(x) @ np.abs(weights) + np.abs(bias),
            guesses=[
                Guess(
                    "a bias per row: each column has one, bias[column]",
                    per_row,
                ),
                Guess(
                    "the activation comes before the bias: it is activate(xW + b)",
                    lambda x, weights, bias, number: activated(number, x @ weights) + bias,
                ),
                Guess("the bias is left out", lambda x, weights, bias, number: activated(number, x @ weights)),
                Guess("the activation is left out", lambda x, weights, bias, number: x @ weights + bias),
            ],
            memory=followed(
                kernel,
                Launch((2, 2), (SIDE, SIDE)),
                lambda rng: (*arguments(rng, (5, 6, 7, 1)), Out((5, 7))),
                written_once=[4],
            ),
        )
    )


def softmax_cross_entropy_fused() -> list[Check]:
    """The loss and its gradient in one kernel."""
    make = module("kernels.losses").softmax_kernels
    kernels = {lanes: make(lanes)[2] for lanes in (WARP, 1)}

    def call(logits: np.ndarray, labels: np.ndarray, lanes: int, launch: Launch) -> dict[str, Any]:
        dtype = str(logits.dtype)
        outputs = Out(labels.shape, dtype), Out(logits.shape, dtype)
        return dict(
            zip(("row_losses", "grad"), line_by_line(kernels[lanes], launch, logits, labels, *outputs), strict=True)
        )

    def reference(logits: np.ndarray, labels: np.ndarray, lanes: int, launch: Launch) -> dict[str, Any]:
        rows = [
            below("losses", "softmax_cross_entropy", logits[i : i + 1], labels[i : i + 1]) / len(logits)
            for i in range(len(logits))
        ]
        grad = below("losses", "softmax_cross_entropy_backward", logits, labels)
        return {"row_losses": np.array(rows), "grad": grad}

    def mistaken_loss(largest: bool, own: bool, mean: bool) -> Callable[..., Any]:
        def wrong(logits: np.ndarray, labels: np.ndarray, lanes: int, launch: Launch) -> Any:
            top = logits.max(axis=1)
            total = np.log(np.exp(logits - top[:, None]).sum(axis=1))
            score = logits[np.arange(len(logits)), labels] - (top if largest else 0)
            return (total - (score if own else 0)) / (len(logits) if mean else 1)

        return wrong

    return checks_of(
        Exercise(
            call=call,
            reference=reference,
            show=lambda logits, labels, lanes, launch: f"softmax_cross_entropy_fused{launch} of logits {logits.shape}",
            hand=[((*LOGITS_BY_HAND, *row_launches(2)[0]), {"row_losses": LOSSES_BY_HAND, "grad": SLOPES_BY_HAND})],
            arguments=logits_and_labels,
            typical=TYPICAL,
            sizes=[(*shape, *launch) for shape in SHAPES for launch in row_launches(shape[0])],
            gradient=loss_gradient_check(lambda logits, labels: call(logits, labels, *row_launches(3)[0]), "grad"),
            dtype="float32",
            terms=lambda logits, labels, lanes, launch: logits.shape[1] + 8,
            scale=lambda logits, labels, lanes, launch: 10.0 / len(logits),
            guesses=[
                Guess(
                    "forgot the batch mean: each row's loss is divided by the number of rows",
                    mistaken_loss(True, True, False),
                    "row_losses",
                ),
                Guess(
                    "the largest logit is not subtracted from the label's, as it was from those in the exponentials",
                    mistaken_loss(False, True, True),
                    "row_losses",
                ),
                Guess(
                    "the label's logit is left out: the loss is log(total) - (logits[row, label] - largest)",
                    mistaken_loss(True, False, True),
                    "row_losses",
                ),
                *slope_guesses("grad"),
            ],
            memory=followed(
                kernels[WARP],
                Launch(1, (WARP, 2)),
                lambda rng: (*logits_and_labels(rng, (5, 64, 0, 0))[:2], Out((5,)), Out((5, 64))),
                side_by_side=[3],
                written_once=[2],
            ),
        )
    )


def combine() -> list[Check]:
    """The parts of a product added up, with bias, activation and mask."""
    kernel = module("kernels.fused").combine

    def call(parts: np.ndarray, bias: np.ndarray, number: int, mask: Any, launch: Launch) -> dict[str, Any]:
        shape = parts.shape[1:]
        unread = np.ones(shape, np.float32)
        masked = mask is not None
        given = number, parts, bias, Out(shape), Out(shape), mask if masked else unread, int(masked)
        output, dropped = line_by_line(kernel, launch, *given)
        if not masked and not np.isnan(dropped).all():
            raise Wrong(
                f"combine{launch} writes dropped, though masked is 0",
                likely="masked says whether there is a mask: where it is 0, that array holds something else",
            )
        return {"output": output, "dropped": dropped} if masked else {"output": output}

    def finished(z: Any, number: int, mask: Any) -> dict[str, Any]:
        output = activated(number, z)
        return {"output": output, "dropped": output * mask} if mask is not None else {"output": output}

    def arguments(rng: np.random.Generator, size: tuple[int, int, int, int, bool, Launch]) -> tuple[Any, ...]:
        splits, rows, columns, number, masked, launch = size
        mask = rng.integers(0, 2, (rows, columns)).astype(np.float32) * 2 if masked else None
        return random(rng, splits, rows, columns), random(rng, columns), number, mask, launch

    def mistaken(change: Callable[[np.ndarray, np.ndarray, int], Any]) -> Callable[..., Any]:
        return lambda parts, bias, number, mask, launch: change(parts, bias, number)

    parts = f32([[[1, 2], [0, 1]], [[3, -5], [4, 1]], [[0, 0], [1, 1]]])
    return checks_of(
        Exercise(
            call=call,
            reference=lambda parts, bias, number, mask, launch: finished(
                parts.sum(axis=0, dtype=np.float64) + bias, number, mask
            ),
            show=lambda parts, bias, number, mask, launch: (
                f"combine{launch} of parts {parts.shape}, activation {number}"
                + (", with a mask" if mask is not None else "")
            ),
            hand=[
                (
                    (parts, f32([1, -1]), 1, f32([[2, 0], [0, 2]]), Launch(1, 4)),
                    {"output": [[5.0, 0.0], [6.0, 2.0]], "dropped": [[10.0, 0.0], [0.0, 4.0]]},
                )
            ],
            arguments=arguments,
            typical=(3, 4, 5, 4, True, Launch(2, 16)),
            sizes=[
                (splits, rows, columns, number, masked, launch)
                for splits, rows, columns, number, masked in (
                    (1, 1, 1, 0, False),
                    (2, 3, 11, 1, False),
                    (5, 7, 3, 2, True),
                    (4, 1, 33, 1, True),
                )
                for launch in any_grid(rows * columns)
            ],
            dtype="float32",
            terms=lambda parts, bias, number, mask, launch: len(parts) + 16,
            scale=lambda parts, bias, number, mask, launch: 2 * (np.abs(parts).sum(axis=0) + np.abs(bias)),
            guesses=[
                Guess(
                    "one part is left out, the last",
                    mistaken(lambda parts, bias, number: activated(number, parts[:-1].sum(axis=0) + bias)),
                    "output",
                ),
                Guess(
                    "one part is left out, the first: start the sum with part 0, or at 0 with all of them",
                    mistaken(lambda parts, bias, number: activated(number, parts[1:].sum(axis=0) + bias)),
                    "output",
                ),
                Guess(
                    "the first part is added twice: where the sum starts with it, the loop starts with part 1",
                    mistaken(lambda parts, bias, number: activated(number, parts.sum(axis=0) + parts[0] + bias)),
                    "output",
                ),
                Guess(
                    "the bias is added with every part: once is enough",
                    mistaken(lambda parts, bias, number: activated(number, parts.sum(axis=0) + len(parts) * bias)),
                    "output",
                ),
                Guess(
                    "the activation comes before the bias: it is activate(sum + bias)",
                    mistaken(lambda parts, bias, number: activated(number, parts.sum(axis=0)) + bias),
                    "output",
                ),
                Guess(
                    "each part goes through the activation: only their sum is what xW is",
                    mistaken(
                        lambda parts, bias, number: (
                            np.stack([activated(number, part) for part in parts]).sum(axis=0) + bias
                        )
                    ),
                    "output",
                ),
                Guess(
                    "dropped is the output without its mask",
                    lambda parts, bias, number, mask, launch: activated(number, parts.sum(axis=0) + bias),
                    "dropped",
                ),
                Guess(
                    "dropped is what comes before bias and activation: the mask is for the output",
                    lambda parts, bias, number, mask, launch: parts.sum(axis=0) * mask,
                    "dropped",
                ),
            ],
            memory=followed(
                kernel,
                Launch(2, 8),
                lambda rng: (1, random(rng, 3, 5, 7), random(rng, 7), Out((5, 7)), Out((5, 7)), random(rng, 5, 7), 1),
                written_once=[3, 4],
            ),
        )
    )


GRADES: dict[str, Callable[[], list[Check]]] = {
    **GRADES_12,
    **GRADES_13_14,
    "15.1": momentum,
    "15.2": update,
    "15.3": op_by_op,
    "16.1": tiled_forward,
    "16.2": softmax_cross_entropy_fused,
    "16.3": combine,
}


# ---------------------------------------------------------------- the checkpoint

LAYERS = [784, 128, 10]
FULL_EPOCHS, FULL_LEAST = 1, 0.92
SMALL_EPOCHS, SMALL_LEAST = 3, 0.90


def checkpoint() -> list[Check]:
    """MNIST, trained by the learner's kernels, an operation at a time: all of it, where it is there."""
    try:
        data, missing = load_dataset("mnist"), ""
    except DataError as error:
        data, missing = load_dataset(), str(error)
    what = f"{'part of ' if missing else 'full '}MNIST, trained by your kernels"
    return [Check(what, lambda tally: _trained(tally, data, missing))]


def _trained(tally: Tally, data: Dataset, missing: str) -> None:
    epochs, least = (SMALL_EPOCHS, SMALL_LEAST) if missing else (FULL_EPOCHS, FULL_LEAST)
    stage = load_stage(STAGES[3])
    mine.prepare(stage, [])  # the step is op_by_op: every operation is a kernel of its own
    network = stage.network.Network(LAYERS, seed=0)
    tally.trying(f"training {LAYERS} on {len(data.train):,} images, {epochs} epoch{'s' * (epochs > 1)}")
    result = train(
        stage,
        network,
        stage.optimizers.SGD(0.1, momentum=0.9),
        data.train,
        TrainingSettings(epochs),
        test_data=data.test,
        hooks=QUIET,
    )
    last = result.epochs[-1]
    accuracy = last.test_accuracy or 0.0
    seconds = sum(each.seconds for each in result.epochs)
    text = (
        f"{accuracy:.1%} of {len(data.test):,} test images are told right after {epochs} epoch{'s' * (epochs > 1)} of "
        f"{len(data.train):,}"
    )
    tally.holds(
        accuracy > least,
        text,
        expected=f"more than {least:.0%}",
        likely=f"the loss is {last.train_loss:.3g}, and guessing gives 2.3: groundup learn status tells which of your "
        "functions took part",
    )
    tally.note(f"{text}, in {seconds:.0f} seconds on {_device()}")
    if missing:
        tally.note(
            "this was the part of MNIST that comes with the package, for the full set is not there: "
            f"{missing.partition(';')[0]}. `groundup train numpy --dataset mnist --download` fetches it, once"
        )


def _device() -> str:
    chosen = module("backend").BACKEND
    return "a CPU, emulated" if chosen.emulated else str(chosen.reason)
