"""Checkpoint 5: MNIST, trained by the learner's kernels."""

from __future__ import annotations

from dataclasses import replace

from groundup.course import learners_stage
from groundup.course.checks.check import Check, Tally, Wrong
from groundup.course.grading.calling.kernel_launches import module
from groundup.course.grading.checkpoints.learners_training import each_alone, tasks_of
from shared.contract import STAGES, load_stage
from shared.data.datasets import DataError, Dataset, load_dataset
from shared.training.loop import train
from shared.training.settings import QUIET, TrainingSettings

STEP = "15.3"
"""It is graded last: from then on NumPy computes in place of the kernels."""

LAYERS = [784, 128, 10]

FULL_EPOCHS, FULL_LEAST = 1, 0.92

SMALL_EPOCHS, SMALL_LEAST = 3, 0.90


def checkpoint() -> list[Check]:
    """MNIST is trained by the learner's kernels, one operation at a time: the full set if it is on this machine."""
    try:
        data, missing = load_dataset("mnist"), ""
    except DataError as error:
        data, missing = load_dataset(), str(error)
    what = f"{'part of ' if missing else 'full '}MNIST, trained by your kernels"
    alone, step = (
        each_alone(*(task for task in tasks_of(5) if (task == STEP) == is_step)) for is_step in (False, True)
    )

    def trained(tally: Tally) -> None:
        try:
            _trained(tally, data, missing)
        except Wrong:
            step.run(tally)  # if it is the step that is wrong, this names it
            raise

    return [alone, Check(what, trained), replace(step, name=f"{step.name}: {STEP}")]


def _trained(tally: Tally, data: Dataset, missing: str) -> None:
    epochs, least = (SMALL_EPOCHS, SMALL_LEAST) if missing else (FULL_EPOCHS, FULL_LEAST)
    stage = load_stage(STAGES[3])
    learners_stage.prepare(stage, [])  # the step is op_by_op: every operation is a kernel of its own
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
    seconds = sum(epoch.seconds for epoch in result.epochs)
    text = (
        f"{accuracy:.1%} of {len(data.test):,} test images are recognised after {epochs} epoch{'s' * (epochs > 1)} of "
        f"{len(data.train):,}"
    )
    tally.holds(
        accuracy > least,
        text,
        expected=f"more than {least:.0%}",
        cause=f"the loss is {last.train_loss:.3g}, and guessing gives 2.3: groundup learn status tells which of your "
        "functions took part",
    )
    tally.note(f"{text}, in {seconds:.0f} seconds on {_device()}")
    if missing:
        tally.note(
            "this was the part of MNIST that comes with the package, because the full set is not on this machine: "
            f"{missing.partition(';')[0]}. `groundup train numpy --dataset mnist --download` fetches it, once"
        )


def _device() -> str:
    chosen = module("backend").BACKEND
    return "a CPU, emulated" if chosen.emulated else str(chosen.reason)
