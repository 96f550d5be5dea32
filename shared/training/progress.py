"""The progress bar of training on stderr: epoch, loss, accuracy and the remaining time."""

import sys

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from shared.terminal import TextConsole
from shared.training.metrics import EpochRecord


class TrainingBar:
    """A bar over all steps of a training.

    done: steps that a resumed run had taken before
    visible: whether the bar is shown; None: if stderr is a terminal
    """

    def __init__(self, epochs: int, steps_per_epoch: int, done: int = 0, visible: bool | None = None) -> None:
        console = TextConsole(stderr=True, force_terminal=visible or None)
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
            redirect_stdout=sys.stdout.isatty(),  # a stdout that goes to a file must not go to the bar's terminal
        )
        self._task = self._progress.add_task("training", total=epochs * steps_per_epoch, completed=done, numbers="")

    def __enter__(self) -> "TrainingBar":
        self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._progress.stop()

    def step(self, epoch: int, done: int, loss: float) -> None:
        """Move the bar. done: finished steps of all epochs; loss: mean of the running epoch, which counts from 0."""
        self._progress.update(
            self._task,
            completed=done,
            description=f"epoch {epoch + 1}/{self._epochs}",
            numbers=f"loss {loss:.4f}{self._accuracy}",
        )

    def accuracy(self, record: EpochRecord) -> None:
        """Show this epoch's accuracy from now on: that on validation data, else on test data, else on training data."""
        known = (record.validation_accuracy, record.test_accuracy, record.train_accuracy)
        self._accuracy = next((f"  accuracy {value:.2%}" for value in known if value is not None), "")
