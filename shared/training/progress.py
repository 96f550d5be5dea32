"""The progress bar of training: epoch, loss, accuracy and the time that is left, on stderr."""

import sys

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from shared.training.metrics import EpochRecord


class TrainingBar:
    """A bar over all steps of a training, or nothing at all.

    done: steps that were taken before, by a run that is resumed now
    visible: None shows it where stderr is a terminal; True and False decide it
    """

    def __init__(self, epochs: int, steps_per_epoch: int, done: int = 0, visible: bool | None = None) -> None:
        console = Console(stderr=True, force_terminal=visible or None)
        self._epochs = epochs
        self._accuracy = ""
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[numbers]}"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=visible is False or not console.is_terminal,
            redirect_stdout=sys.stdout.isatty(),  # a redirected stdout must stay where it was sent
        )
        self._task = self._progress.add_task("training", total=epochs * steps_per_epoch, completed=done, numbers="")

    def __enter__(self) -> "TrainingBar":
        self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._progress.stop()

    def step(self, epoch: int, done: int, loss: float) -> None:
        """done steps are over (of all epochs); loss: the running mean of this epoch, epoch from 0."""
        self._progress.update(
            self._task,
            completed=done,
            description=f"epoch {epoch + 1}/{self._epochs}",
            numbers=f"loss {loss:.4f}{self._accuracy}",
        )

    def accuracy(self, record: EpochRecord) -> None:
        """Show the epoch's accuracy from now on: on validation data if there is any, else test, else training data."""
        known = (record.validation_accuracy, record.test_accuracy, record.train_accuracy)
        self._accuracy = next((f"  accuracy {value:.2%}" for value in known if value is not None), "")
