"""`groundup train STAGE --mine`: a stage with all functions of the learner's that pass.

First the modules are put in place, before the stage is imported. Then the stage is made to train one operation after
the other, as the exercises are cut: its fused steps do not call these functions.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from groundup.course import assembly
from groundup.course.learner.learners_folder import locate
from groundup.course.manifest import Task, course
from shared.contract import Stage, stage_name

FIRST_STEP = "op_by_op"

IN_EVERY_TRAINING = (
    "shared/initialize.py",
    "shared/dropout.py",
    "shared/training/early_stopping.py",
    "shared/training/schedules.py",
)
"""Files with exercises that no stage has, and that the training of every stage calls."""


def put_in_place(stage: str, folder: Path | None = None) -> tuple[list[Task], assembly.Assembly]:
    """Have the learner's functions of a stage, and those that every training calls, take the place of the project's.

    Returns their tasks, and the assembled files. stage: as `contract.stage_name` takes it
    folder: the learner's; None to look for it as other commands do
    Raises ValueError if no learner's folder is found, or no function of the stage has passed.
    """
    name = stage_name(stage)
    workspace = locate(folder, course())
    tasks = [task for task in course().tasks if task.stage == name or task.file in IN_EVERY_TRAINING]
    own = [task for task in tasks if workspace.passed(task)]
    if not own:
        changed = [task.id for task in tasks if workspace.record.of(task.id).state == "passed"]
        first = next(task.id for task in tasks if task.stage == name)
        again = f"; {', '.join(changed)} changed since they passed: groundup learn check grades them again"
        raise ValueError(
            f"no function of {name} in {workspace.folder} has passed yet{again if changed else ''}; "
            f"its first task is {first}: groundup learn check {first}"
        )
    assembled = assembly.assemble(workspace, own, workspace.built / "mine" / name, training=True)
    assembly.use(assembled, again=[file.removesuffix(".py").replace("/", ".") for file in IN_EVERY_TRAINING])
    return own, assembled


def prepare(stage: Stage, own: list[Task]) -> str:
    """Make the loaded stage train by the step that calls the learner's functions. Returns the step's name.

    The name is "" for stages 1 and 2, which have one step only.
    """
    network = stage.network
    if not hasattr(network, "STEP_LADDER"):
        return ""
    name = [FIRST_STEP, *(task.step for task in own if task.step)][-1]
    step = network.STEP_LADDER[name]

    def train_step(self: Any, x: Any, y: Any, optimizer: Any, dropout_masks: Any = None) -> float:
        return float(step(self, x, y, optimizer, dropout_masks))

    network.Network.train_step = train_step
    network.Network.resident = None  # a resident run would take fused steps, without the learner's functions
    return name


def place_in(assembled: assembly.Assembly, error: BaseException) -> str:
    """The learner's own "file:line" from which an error came, "" if it came from elsewhere."""
    places = assembled.places_of(error)
    return "{}:{}".format(*places[-1][0]) if places else ""


def announcement(own: list[Task], step: str) -> str:
    """A line for the learner: which functions are their own."""
    names = ", ".join(f"{task.function} ({task.id})" for task in own)
    return f"yours: {names}" + (f"; the step is {step}" if step else "")
