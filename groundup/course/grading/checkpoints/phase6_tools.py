"""Checkpoint 6: the learner's tools find a neuron that has died, and a gradient that is wrong."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from groundup import inside, live
from groundup.course.checks.check import Check, Tally
from groundup.course.grading.checkpoints.learners_training import TOGETHER, each_alone, tasks_of
from shared.architectures import mlp
from shared.checks import gradients
from shared.contract import load_stage
from shared.data.synthetic import spirals
from shared.training.loop import train
from shared.training.metrics import evaluate
from shared.training.settings import Hooks, TrainingSettings

SPIRALS = 150

UNITS = 8

NETWORK = mlp((4, 5, 3, 3), "tanh")
"""The network whose gradient is checked."""


def checkpoint() -> list[Check]:
    """The tools together, on a network in which a neuron has died, and on one whose gradient is wrong."""
    return [
        each_alone(*tasks_of(6)),
        Check("the training in view", _in_view),
        Check("the neuron that died", _dead_neuron),
        Check("the gradient that is wrong", _wrong_gradient),
    ]


def _trained() -> tuple[Any, Any, list[float]]:
    """(stage 2, a small network that was trained on spirals, the loss of every step)"""
    floor, data = load_stage("numpy"), spirals(SPIRALS)
    network: Any = floor.network.Network([2, UNITS, 3], seed=1, dtype="float64")
    losses: list[float] = []
    train(
        floor,
        network,
        floor.optimizers.SGD(0.5),
        data,
        TrainingSettings(epochs=60, batch_size=10),
        hooks=Hooks(on_batch=lambda epoch, step, loss: losses.append(loss), progress_bar=False),
    )
    return floor, network, losses


def _in_view(tally: Tally) -> None:
    data = spirals(SPIRALS)
    tally.trying("the losses and gradients of a 2-8-3 network on three spirals")
    floor, network, losses = _trained()
    line = live.sparkline(losses, 40)
    tally.holds(len(line) == 40, "the loss as a sparkline of 40", expected="40 characters", got=str(len(line)))
    tally.holds(line[0] > line[-1], "the loss falls, but the line does not", expected="high, then low", got=line)
    parameters = inside.host_parameters(floor, network)
    ratios = live.gradient_ratios(parameters, network.gradients(data.x, data.y))
    tally.holds(
        len(ratios) == 2 and all(0 < ratio < 1 for ratio in ratios), "the layers' gradient ratios", got=str(ratios)
    )
    tally.note(f"the loss of {len(losses)} steps: {line}, {losses[0]:.2f} to {losses[-1]:.2f}")
    tally.note("gradient beside weights: " + ", ".join(f"layer {i} {r:.1e}" for i, r in enumerate(ratios, start=1)))


def _dead_neuron(tally: Tally) -> None:
    data = spirals(SPIRALS)
    tally.trying("a unit that a huge negative bias has killed")
    floor, network, _ = _trained()
    x = data.x.astype(np.float64)
    silent: list[set[int]] = []
    victim = int(np.argmax(inside.active_shares(_hidden(floor, network, x))))
    for _ in range(2):
        outputs = _hidden(floor, network, x)
        shares = inside.active_shares(outputs)
        silent.append({int(unit) for unit in np.flatnonzero(shares == 0)})
        tally.holds(
            abs(inside.dead_units(outputs) - len(silent[-1]) / UNITS) < 1e-12,
            "dead_units is not the share of the units that active_shares finds at 0",
        )
        network.layers[0].bias[victim] = -1e6
    before, after = silent
    tally.holds(
        after - before == {victim},
        f"the bias of unit {victim} of layer 1 was set to -1e6: it, and no other, must be inactive now",
        expected=str({victim}),
        got=str(after - before or "none"),
        cause=TOGETHER,
    )
    slopes = inside.saliency(inside.host_parameters(floor, network), "relu", x, data.y)
    network.layers[0].weights[:, victim] = 7.0  # no score depends on the weights of a dead unit
    again = inside.saliency(inside.host_parameters(floor, network), "relu", x, data.y)
    tally.holds(
        np.allclose(slopes, again), f"a score depends on the weights of unit {victim}, which is dead", cause=TOGETHER
    )
    _, accuracy, predictions = evaluate(floor, network, data)
    counts = inside.confusion_matrix(data.y, predictions, 3)
    tally.holds(
        counts.sum() == len(data) and round(accuracy * len(data)) == np.trace(counts),
        "the confusion matrix does not add up to the accuracy",
        expected=f"{accuracy * len(data):.0f} of {len(data)} on its diagonal",
        got=f"{np.trace(counts)} of {counts.sum()}",
        cause=TOGETHER,
    )
    already = f" ({len(before)} had become inactive in training)" if before else ""
    tally.note(
        f"unit {victim} of layer 1 is dead: its bias of -1e6 keeps it at 0 for all {len(data)} samples; "
        f"{UNITS - len(after)} of {UNITS} are still active{already}"
    )


def _hidden(floor: Any, network: Any, x: np.ndarray) -> np.ndarray:
    """The outputs of the only hidden layer."""
    outputs: np.ndarray = inside.hidden_activations(inside.host_parameters(floor, network), "relu", x)[0]
    return outputs


def _wrong_gradient(tally: Tally) -> None:
    floor = load_stage("numpy")
    tally.trying("the gradient check of a right network")
    right = gradients.check_gradients(floor, NETWORK, "softmax_cross_entropy")
    tally.holds(right.ok, f"the check finds fault with a right gradient: {right}", cause=TOGETHER)
    planted = 2
    name = NETWORK.parameters()[planted].name

    class Planted(floor.network.Network):  # type: ignore[name-defined]
        """A network that returns one layer's gradient with the wrong sign."""

        def gradients(self, *arguments: Any) -> list[np.ndarray]:
            slopes: list[np.ndarray] = super().gradients(*arguments)
            slopes[planted] = -slopes[planted]
            return slopes

    tally.trying(f"the gradient check of a network with the wrong sign in dL/d{name}")
    broken = replace(floor, network=SimpleNamespace(Network=Planted))
    wrong = gradients.check_gradients(broken, NETWORK, "softmax_cross_entropy")
    tally.holds(
        not wrong.ok and wrong.parameter == name,
        f"dL/d{name} has the wrong sign, and the check does not say so",
        expected=name,
        got=wrong.parameter if not wrong.ok else "all is well",
        cause=TOGETHER,
    )
    tally.note(f"right: {right.checked} gradients agree with the slopes to {right.worst:.1e}")
    tally.note(f"planted, found: {wrong}")
