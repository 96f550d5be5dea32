"""Phase 2: the same network on NumPy arrays. What is right is what stage 1 computes.

A function that takes `out` is called with one that is full of NaN, and again without; what it is given has to be as it
was afterwards, and the dtype that went in has to come out. The mistakes that are recognised are phase 1's, and a few
that only arrays make possible.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from groundup.course.checks import Check, Exercise, Speed, Tally, Wrong, checks_of, unchanged
from groundup.course.grading.layers import (
    BACKWARD_GUESSES,
    BACKWARD_HAND,
    CROSS_ENTROPY_BACKWARD_GUESSES,
    CROSS_ENTROPY_BACKWARD_HAND,
    CROSS_ENTROPY_GUESSES,
    CROSS_ENTROPY_HAND,
    DENSE_GUESSES,
    DENSE_HAND,
    MATMUL_GUESSES,
    MATMUL_HAND,
    RELU_GUESSES,
    RELU_HAND,
    SHAPES,
    SIZES,
    SOFTMAX_GUESSES,
    SOFTMAX_HAND,
    backward_arguments,
    cross_entropies,
    cross_entropy_gradient,
    cross_entropy_slopes,
    dense_arguments,
    dense_slopes,
    labelled,
    loss_scale,
    matrices,
    naive_cross_entropy,
    naive_logarithm,
    naive_softmax,
    one_hot,
    relu_arguments,
    relu_slopes,
    softmax_arguments,
    softmax_of,
)
from groundup.course.grading.networks import (
    BACKPROPAGATION_GUESSES,
    BACKPROPAGATION_HAND,
    NETWORKS,
    Problem,
    gradients_by_name,
    network_case,
    network_slopes,
)
from groundup.course.grading.steps import (
    ADAM_ALL,
    ADAM_GUESSES,
    ADAM_HAND,
    ADAM_SIZES,
    SGD_ALL,
    SGD_HAND,
    SGD_SIZES,
    Steps,
    adam_steps,
    held,
    sgd_guesses,
    sgd_steps,
    steps_case,
)
from groundup.course.likely import Guess
from shared.contract import load_stage

MOST = 20.0
"""Times as long as a plain NumPy expression: a loop in Python over elements or rows takes hundreds of times as long."""

LOOP = "a loop in Python over elements or rows: one call of NumPy does a whole array"
NO_OUT = "the result without out="


def stage() -> Any:
    """The second floor, with the learner's function in it."""
    return load_stage("stage2_numpy")


def floor_below() -> Any:
    """The first floor: what is right."""
    return load_stage("stage1_pure_python")


def poisoned_scratch(name: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Memory of a Scratch, full of what must not be read: NaN, or True."""
    return np.full(shape, np.nan if np.dtype(dtype).kind == "f" else 1, dtype)


def on_arrays(
    function: Callable[..., Any], shape: Callable[..., tuple[int, ...]], *names: str, scratch: bool = True
) -> Callable[..., Any]:
    """A function with `out`, called with an out full of NaN and without: {"": what stands in out, NO_OUT: the other}.

    shape: of the result, from the arguments; names: of the arguments; scratch: whether it takes that, too
    """

    def call(*arguments: Any) -> dict[str, Any]:
        before = [np.copy(each) for each in arguments]
        dtype = arguments[0].dtype
        out = np.full(shape(*arguments), np.nan, dtype)
        returned = function(*arguments, out=out, **({"scratch": poisoned_scratch} if scratch else {}))
        if returned is None:
            return {"": None}
        if returned is not out:
            likely = "write into out and return it: NumPy's functions take out=…, and out[...] = … fills it"
            raise Wrong(f"{function.__name__}(…, out=out) did not give out back", likely=likely)
        plain = function(*arguments)
        unchanged(Tally(), before, arguments, names)
        _check_dtype(function.__name__, plain, dtype)
        return {"": out, NO_OUT: plain}

    return call


def _check_dtype(name: str, result: Any, dtype: Any) -> None:
    if not isinstance(result, np.ndarray):
        raise Wrong(f"{name}: expected an array", got=type(result).__name__)
    if result.dtype != dtype:
        likely = "the result's dtype is the arguments': make new arrays with dtype=…, or let out= decide"
        raise Wrong(f"{name}: {dtype} came in, {result.dtype} came back", likely=likely)


def both(expected: Any) -> dict[str, Any]:
    """What has to stand in out and to come back without it."""
    return {"": expected, NO_OUT: expected}


def twice(hand: Sequence[tuple[tuple[Any, ...], Any]]) -> list[tuple[tuple[Any, ...], Any]]:
    """The hand-computed values for a function with out."""
    return [(arguments, both(expected)) for arguments, expected in hand]


def below(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of stage 1 on arrays, as the reference for one with out."""
    return lambda *arguments: both(function(*map(_listed, arguments)))


def _listed(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def graded(exercise: Exercise, *more: Check) -> list[Check]:
    """The checks of an exercise, of which the agreement is tried in float32 as well; and more at the end."""
    made = {check.name: check for check in checks_of(exercise)}
    narrow = replace(
        exercise,
        dtype="float32",
        arguments=lambda rng, size: tuple(narrowed(each) for each in exercise.arguments(rng, size)),
        show=lambda *arguments: f"{exercise.show(*arguments)} in float32",
    )
    double, single = made["agreement"], next(check for check in checks_of(narrow) if check.name == "agreement")

    def run(tally: Tally) -> None:
        double.run(tally)
        single.run(tally)

    made["agreement"] = Check("agreement", run)
    return [*made.values(), *more]


def narrowed(value: Any) -> Any:
    """The same in float32: an array of floats, a network's problem or an optimizer's steps."""
    if isinstance(value, np.ndarray):
        return value.astype(np.float32) if value.dtype.kind == "f" else value
    if isinstance(value, Problem):
        masks = None if value.masks is None else narrowed(value.masks)
        return replace(value, parameters=narrowed(value.parameters), x=narrowed(value.x), masks=masks)
    if isinstance(value, Steps):
        gradients = [(narrowed(g), narrowed(h)) for g, h in value.gradients]
        return replace(value, weights=narrowed(value.weights), bias=narrowed(value.bias), gradients=gradients)
    return [narrowed(each) for each in value] if isinstance(value, list) else value


def speed_check(
    exercise: Exercise,
    call: Callable[..., Any],
    against: Callable[..., Any],
    arguments: Callable[[np.random.Generator], tuple[Any, ...]],
    likely: str = LOOP,
) -> Check:
    """The time of one plain call beside that of a NumPy expression."""
    speed = Speed(arguments, MOST, likely, against, "a plain NumPy expression")
    return checks_of(replace(exercise, call=call, speed=speed))[-1]


# -------- week 4: vectorisation --------


def outer_products() -> list[Check]:
    """The product as a sum of outer products."""
    function = stage().matmul.outer_products
    exercise = Exercise(
        call=on_arrays(function, lambda a, b: (len(a), b.shape[1]), "a", "b", scratch=False),
        reference=below(floor_below().matmul.matmul),
        show=lambda a, b: f"outer_products(a {a.shape}, b {b.shape})",
        hand=twice(MATMUL_HAND),
        arguments=matrices,
        typical=(4, 3, 5),
        sizes=SIZES,
        terms=lambda a, b: a.shape[1],
        scale=lambda a, b: np.abs(a) @ np.abs(b),
        guesses=[
            *MATMUL_GUESSES,
            Guess(
                "out holds whatever was there before, NaN here: set it to 0 before the first product is added",
                lambda a, b: np.full((len(a), b.shape[1]), np.nan),
            ),
        ],
    )

    def against(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        total = np.zeros((len(a), b.shape[1]))
        for k in range(len(b)):
            total += np.outer(a[:, k], b[k])
        return total

    likely = "a loop over rows, columns or elements of the result: only k is looped over, K times in all"
    return graded(exercise, speed_check(exercise, function, against, lambda rng: matrices(rng, (120, 4, 120)), likely))


def relu_backward() -> list[Check]:
    """The derivative of ReLU."""
    function = stage().activations.relu_backward
    call = on_arrays(function, lambda g, z, o: z.shape, "grad_output", "z", "output")
    exercise = Exercise(
        call=call,
        reference=below(floor_below().activations.relu_backward),
        show=lambda g, z, o: f"relu_backward(grad_output, z, output), each {z.shape}",
        hand=twice(RELU_HAND),
        arguments=relu_arguments,
        typical=(4, 5),
        sizes=SHAPES,
        gradient=relu_slopes(call),
        guesses=RELU_GUESSES,
    )
    plain = speed_check(
        exercise, function, lambda g, z, o: np.where(z > 0, g, 0), lambda rng: relu_arguments(rng, (3000, 4))
    )
    return graded(exercise, plain)


OVERFLOWED = (
    "exp has overflowed, and inf / inf is NaN; or all exps of a row are 0, and so is 0 / 0: subtract each row's "
    "maximum first"
)


def whole_maximum(z: np.ndarray) -> np.ndarray:
    """Softmax with the maximum of the whole matrix subtracted: 0 / 0 in a row far below it."""
    with np.errstate(all="ignore"):
        exps = np.exp(z - z.max())
        shares: np.ndarray = exps / exps.sum(axis=1, keepdims=True)
        return shares


def without_keepdims(z: np.ndarray) -> np.ndarray | None:
    """Softmax whose row sums are broadcast along the columns, which only a square batch allows."""
    exps = np.exp(z - z.max(axis=1, keepdims=True))
    return exps / exps.sum(axis=1) if z.shape[0] == z.shape[1] else None


def softmax() -> list[Check]:
    """Softmax of every row."""
    function = stage().activations.softmax
    exercise = Exercise(
        call=on_arrays(function, lambda z: z.shape, "z"),
        reference=below(floor_below().activations.softmax),
        show=lambda z: f"softmax(z {z.shape})",
        hand=twice(SOFTMAX_HAND),
        arguments=softmax_arguments,
        typical=(4, 3),
        sizes=SHAPES,
        terms=lambda z: z.shape[1] + 16,
        scale=lambda z: 1.0 + np.abs(z).max(),
        guesses=[
            Guess(OVERFLOWED, naive_softmax),
            *SOFTMAX_GUESSES,
            Guess(
                "the maximum of the whole matrix is subtracted, and a row far below it rounds to 0 / 0: each row's own "
                "maximum, max(axis=1, keepdims=True)",
                whole_maximum,
            ),
            Guess(
                "a row's sum is broadcast along the columns: keepdims=True keeps it a column, (batch, 1)",
                without_keepdims,
            ),
        ],
    )
    return graded(exercise, speed_check(exercise, function, softmax_of, lambda rng: softmax_arguments(rng, (3000, 4))))


def dense_forward() -> list[Check]:
    """Dense.forward: the result, and that it remembers x."""
    dense = stage().dense.Dense

    def call(x: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> dict[str, Any]:
        layer = dense(weights, bias)
        found = on_arrays(layer.forward, lambda x: (len(x), len(bias)), "x", scratch=False)(x)
        if layer._x is None or np.shape(layer._x) != x.shape:
            raise Wrong("Dense.forward does not remember x", likely="backward will ask what x was: self._x = x")
        unchanged(Tally(), (weights, bias), (layer.weights, layer.bias), ("weights", "bias"))
        return found

    def reference(x: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> dict[str, Any]:
        return both(floor_below().dense.Dense(weights.tolist(), bias.tolist()).forward(x.tolist()))

    exercise = Exercise(
        call=call,
        reference=reference,
        show=lambda x, w, b: f"Dense.forward(x {x.shape}) for weights {w.shape}",
        hand=twice(DENSE_HAND),
        arguments=dense_arguments,
        typical=(4, 3, 4),
        sizes=SIZES,
        terms=lambda x, w, b: len(w) + 1,
        scale=lambda x, w, b: np.abs(x) @ np.abs(w) + np.abs(b),
        guesses=DENSE_GUESSES,
    )
    return graded(
        exercise,
        speed_check(
            exercise,
            lambda x, w, b: dense(w, b).forward(x),
            lambda x, w, b: x @ w + b,
            lambda rng: dense_arguments(rng, (3000, 4, 3)),
        ),
    )


NEW_ARRAY = "write into the array that is there: out={0}, or {0}[...] = …"


def dense_backward() -> list[Check]:
    """Dense.backward: three gradients, written into arrays that are there."""
    dense = stage().dense.Dense

    def call(x: np.ndarray, weights: np.ndarray, grad: np.ndarray) -> dict[str, Any]:
        layer = dense(weights, np.full(weights.shape[1], 0.5, weights.dtype))
        layer.forward(x)
        if layer.backward(grad, needs_grad_input=False) is not None:
            likely = "the first layer has nobody to hand dL/dx to: return None there, without computing it"
            raise Wrong("backward(…, needs_grad_input=False) returned something", expected="None", likely=likely)
        of_weights, of_bias = layer.grad_weights, layer.grad_bias
        of_weights[...], of_bias[...] = np.nan, np.nan
        found = on_arrays(layer.backward, lambda grad: x.shape, "grad_output", scratch=False)(grad)
        for name, there in (("grad_weights", of_weights), ("grad_bias", of_bias)):
            if getattr(layer, name) is not there:
                raise Wrong(f"{name} is another array than before the call", likely=NEW_ARRAY.format(f"self.{name}"))
        unchanged(Tally(), (weights,), (layer.weights,), ("weights",))
        return {
            "grad_input": found[""],
            "grad_weights": of_weights,
            "grad_bias": of_bias,
            f"{NO_OUT}: grad_input": found.get(NO_OUT),
        }

    def reference(x: np.ndarray, weights: np.ndarray, grad: np.ndarray) -> dict[str, Any]:
        layer = floor_below().dense.Dense(weights.tolist(), [0.0] * weights.shape[1])
        layer.forward(x.tolist())
        returned = layer.backward(grad.tolist())
        found = {"grad_input": returned, "grad_weights": layer.grad_weights, "grad_bias": layer.grad_bias}
        return {**found, f"{NO_OUT}: grad_input": returned}

    def alone(x: np.ndarray, weights: np.ndarray, grad: np.ndarray) -> Any:
        layer = dense(weights, np.zeros(weights.shape[1]))
        layer.forward(x)
        return layer.backward(grad)

    added = "NaN is still there: these sums are added to what the array held; they have to replace it"
    exercise = Exercise(
        call=call,
        reference=reference,
        show=lambda x, w, g: f"Dense.backward(grad_output {g.shape}) for x {x.shape}, weights {w.shape}",
        hand=BACKWARD_HAND,
        arguments=backward_arguments,
        typical=(4, 3, 2),
        sizes=SIZES,
        terms=lambda x, w, g: max(len(x), w.shape[1]) + 16,
        scale=lambda x, w, g: np.abs(x).sum() + np.abs(w).sum() + np.abs(g).sum(),
        gradient=dense_slopes(call),
        guesses=[
            *BACKWARD_GUESSES,
            Guess(added, lambda x, w, g: np.full(w.shape, np.nan), "grad_weights"),
            Guess(added, lambda x, w, g: np.full(w.shape[1], np.nan), "grad_bias"),
        ],
    )
    return graded(
        exercise,
        speed_check(
            exercise,
            alone,
            lambda x, w, g: (x.T @ g, g.sum(axis=0), g @ w.T),
            lambda rng: backward_arguments(rng, (3000, 4, 3)),
        ),
    )


# -------- week 5: MNIST --------


def loss_on_arrays(function: Callable[..., Any], *names: str) -> Callable[..., Any]:
    """A loss, called with scratch memory and without, as a number."""

    def call(*arguments: Any) -> dict[str, Any]:
        before = [np.copy(each) for each in arguments]
        found = {
            "": function(*arguments, scratch=poisoned_scratch),
            "the result without scratch=": function(*arguments),
        }
        unchanged(Tally(), before, arguments, names)
        return found

    return call


def softmax_cross_entropy() -> list[Check]:
    """Softmax cross-entropy."""
    function = stage().losses.softmax_cross_entropy
    loss_below = floor_below().losses.softmax_cross_entropy

    def rounded_to_zero(z: np.ndarray, labels: np.ndarray) -> float:
        with np.errstate(all="ignore"):
            return float(np.mean(-np.log(softmax_of(z)[np.arange(len(z)), labels])))

    exercise = Exercise(
        call=loss_on_arrays(function, "logits", "labels"),
        reference=lambda z, labels: {"": loss_below(z.tolist(), labels.tolist())},
        show=lambda z, labels: f"softmax_cross_entropy(logits {z.shape}, labels)",
        hand=CROSS_ENTROPY_HAND,
        arguments=labelled,
        typical=(4, 3),
        sizes=SHAPES,
        terms=lambda z, labels: z.size + 16,
        scale=loss_scale,
        guesses=[
            *CROSS_ENTROPY_GUESSES,
            Guess(
                "a share has rounded to 0, and its logarithm is minus infinity: take the logarithm of the sum of exps, "
                "as the docstring does",
                rounded_to_zero,
            ),
            Guess(OVERFLOWED, naive_cross_entropy),
            Guess(OVERFLOWED, naive_logarithm),
            Guess(
                "[:, labels] takes these columns of every row: each row's own label is [np.arange(rows), labels]",
                lambda z, labels: float(np.mean(cross_entropies(z)[:, labels])) if len(z) > 1 else None,
            ),
        ],
    )
    return graded(
        exercise,
        speed_check(
            exercise,
            function,
            lambda z, labels: cross_entropies(z)[np.arange(len(z)), labels].mean(),
            lambda rng: labelled(rng, (3000, 4)),
        ),
    )


def softmax_cross_entropy_backward() -> list[Check]:
    """The gradient of softmax cross-entropy."""
    function = stage().losses.softmax_cross_entropy_backward
    call = on_arrays(function, lambda z, labels: z.shape, "logits", "labels")

    def columns(z: np.ndarray, labels: np.ndarray) -> np.ndarray:
        grad = softmax_of(z)
        grad[:, labels] -= 1
        return grad / len(z)

    exercise = Exercise(
        call=call,
        reference=below(floor_below().losses.softmax_cross_entropy_backward),
        show=lambda z, labels: f"softmax_cross_entropy_backward(logits {z.shape}, labels)",
        hand=twice(CROSS_ENTROPY_BACKWARD_HAND),
        arguments=labelled,
        typical=(4, 3),
        sizes=SHAPES,
        gradient=cross_entropy_gradient(call),
        terms=lambda z, labels: z.shape[1] + 16,
        scale=loss_scale,
        guesses=[
            Guess(
                "[:, labels] takes these columns of every row: each row's own label is [np.arange(rows), labels]",
                columns,
            ),
            *CROSS_ENTROPY_BACKWARD_GUESSES,
            Guess(OVERFLOWED, lambda z, labels: (naive_softmax(z) - one_hot(labels, z.shape[1])) / len(z)),
        ],
    )
    return graded(exercise, speed_check(exercise, function, cross_entropy_slopes, lambda rng: labelled(rng, (3000, 4))))


def network_forward_backward() -> list[Check]:
    """Network._forward_backward: the loss and all gradients, on a second batch as on the first."""

    def made(floor: Any, given: Problem) -> Any:
        dtype = given.parameters[0].dtype.name
        return floor.network.Network.from_parameters(given.parameters, given.activation, given.loss, dtype)

    def call(given: Problem) -> dict[str, Any]:
        network = made(stage(), given)
        masks = None if given.masks is None else [mask.copy() for mask in given.masks]
        network._forward_backward(-given.x, given.y, masks)  # what a batch leaves in the buffers is in no other's way
        loss = network._forward_backward(given.x.copy(), given.y, masks)
        unchanged(Tally(), given.masks or [], masks or [], ["a dropout mask"] * len(masks or []))
        unchanged(Tally(), given.parameters, network.parameters, ["a parameter"] * len(given.parameters))
        return gradients_by_name(loss, [each.copy() for each in network._gradients()])

    def reference(given: Problem) -> dict[str, Any]:
        network, y = made(floor_below(), given), given.y.tolist()
        return gradients_by_name(network.loss(given.x, y, given.masks), network.gradients(given.x, y, given.masks))

    added = "the gradient of the batch before is still in it: gradients are replaced, not added up"

    exercise = Exercise(
        call=call,
        reference=reference,
        show=lambda given: f"_forward_backward of {given}",
        hand=BACKPROPAGATION_HAND,
        arguments=network_case,
        typical=((3, 3, 3, 3), 4, True),
        sizes=NETWORKS,
        terms=lambda given: 256,
        scale=lambda given: 10.0 + float(np.abs(given.flat).max()) ** 2,
        gradient=network_slopes(call),
        guesses=[*BACKPROPAGATION_GUESSES, Guess(added, _added, "dL/dW1")],
        fresh=True,
    )
    return graded(exercise)


def _added(given: Problem) -> Any:
    network = floor_below().network.Network.from_parameters(given.parameters, given.activation, given.loss, "float64")
    y = given.y.tolist()
    first, second = (np.array(network.gradients(x, y, given.masks)[0]) for x in (-given.x, given.x))
    return first + second


NOT_IN_PLACE = "nothing has changed: p = p - … makes a new array, which is lost; p -= … changes the one that is given"


def optimizer_checks(
    name: str,
    buffers: Mapping[str, Sequence[str]],
    reference: Callable[..., dict[str, Any]],
    guesses: Sequence[Guess],
    hand: Sequence[tuple[tuple[Steps], dict[str, Any]]],
    typical: dict[str, Any],
    sizes: Sequence[Any],
) -> list[Check]:
    """The checks of an optimizer's step. buffers: what its state holds, by the setting that it needs ("" for none)."""

    def after(floor: Any, given: Steps, give: Callable[[np.ndarray], Any]) -> dict[str, Any]:
        parameters = [give(given.weights), give(given.bias)]
        optimizer = getattr(floor.optimizers, name)(given.rates[0], **given.settings)
        for gradients, rate in zip(given.gradients, given.rates, strict=True):
            optimizer.learning_rate = rate
            handed = [give(each) for each in gradients]
            optimizer.step(parameters, handed)
            unchanged(Tally(), gradients, handed, ["the weights' gradient", "the bias's gradient"])
        found = dict(zip(("weights", "bias"), parameters, strict=True))
        state = optimizer.state()["buffers"]
        for setting, held_names in buffers.items():
            if not setting or given.settings.get(setting):
                for buffer in held_names:
                    kept = state.get(buffer, (None, None))
                    found |= {held(buffer, p): each for p, each in zip(("weights", "bias"), kept, strict=True)}
        return found

    def call(given: Steps) -> dict[str, Any]:
        found = after(stage(), given, np.copy)
        for each in ("weights", "bias"):
            _check_dtype(f"{name}.step: {each}", found[each], given.weights.dtype)
        return found

    exercise = Exercise(
        call=call,
        reference=lambda given: after(floor_below(), given, lambda array: array.tolist()),
        show=lambda given: f"{name}.step ({given})",
        hand=hand,
        arguments=steps_case,
        typical=((3, 2), typical),
        sizes=sizes,
        scale=lambda given: 10.0,
        guesses=guesses,
        fresh=True,
    )

    def plain(given: Steps) -> None:
        optimizer = getattr(stage().optimizers, name)(given.rates[0], **given.settings)
        optimizer.step([given.weights.copy(), given.bias.copy()], given.gradients[0])

    def one_step(rng: np.random.Generator) -> tuple[Steps]:
        (given,) = steps_case(rng, ((400, 100), {}))
        return (replace(given, gradients=given.gradients[:1], rates=[0.1]),)

    return graded(exercise, speed_check(exercise, plain, lambda given: reference(given), one_step))


def sgd_step() -> list[Check]:
    """SGD.step, on arrays that have to change in place."""
    return optimizer_checks(
        "SGD", {"momentum": ["velocity"]}, sgd_steps, sgd_guesses(NOT_IN_PLACE), SGD_HAND, SGD_ALL, SGD_SIZES
    )


def adam_step() -> list[Check]:
    """Adam.step, on arrays that have to change in place."""
    same = [Guess(NOT_IN_PLACE, lambda s, name=name: getattr(s, name), name) for name in ("weights", "bias")]
    moments = {"": ["first_moment", "second_moment"]}
    return optimizer_checks("Adam", moments, adam_steps, [*same, *ADAM_GUESSES], ADAM_HAND, ADAM_ALL, ADAM_SIZES)


GRADES: dict[str, Callable[[], list[Check]]] = {
    "4.1": outer_products,
    "4.2": relu_backward,
    "4.3": softmax,
    "4.4": dense_forward,
    "4.5": dense_backward,
    "5.1": softmax_cross_entropy,
    "5.2": softmax_cross_entropy_backward,
    "5.3": network_forward_backward,
    "5.4": sgd_step,
    "5.5": adam_step,
}


def checkpoint() -> list[Check]:
    """MNIST over 90 %, of test images that the network has not been trained on."""
    # Imported here: training and data sets take half as long to import as grading a task takes.
    from groundup.course.grading.checkpoints import learned_mnist

    return learned_mnist()
