"""The folder of a training run, and what must be remembered so that the run can go on.

last.safetensors    where the run is: parameters, optimizer, and `Progress`
best.safetensors    the parameters of the best epoch so far
metrics.jsonl       one line for each finished epoch
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from shared.contract import NetworkLike, Optimizer, Stage
from shared.machine.atomic import remove_stale
from shared.training.checkpoints import (
    Checkpoint,
    CheckpointError,
    hyperparameters,
    load_checkpoint,
    optimizer_state,
    save_checkpoint,
)
from shared.training.metrics import EpochRecord, write_metrics

LAST, BEST, METRICS = "last.safetensors", "best.safetensors", "metrics.jsonl"


@dataclass
class Progress:
    """How far a run has come. Together with parameters and optimizer this is its whole state.

    epoch: finished epochs; step: finished steps of the running epoch, whose losses and seconds are summed so far
    best_value, best_epoch, epochs_since_best: of what decides about the best model and early stopping
    """

    epoch: int = 0
    step: int = 0
    loss_sum: float = 0.0
    seconds: float = 0.0
    best_value: float | None = None
    best_epoch: int | None = None
    epochs_since_best: int = 0
    records: list[EpochRecord] = field(default_factory=list)

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> Progress:
        """The Progress that `dataclasses.asdict` was made of."""
        return cls(**{**saved, "records": [EpochRecord(**record) for record in saved["records"]]})


@dataclass(frozen=True)
class Run:
    """One run's folder, and what each of its checkpoints says beside the network.

    settings: what decides about the numbers, compared on resuming
    notes: what the caller wants to find again
    """

    folder: Path
    stage: Stage
    network: NetworkLike
    optimizer: Optimizer
    settings: dict[str, Any]
    notes: dict[str, Any]

    @property
    def last(self) -> Path:
        return self.folder / LAST

    def begin(self, overwrite: bool) -> Progress:
        """Start from nothing, with a first checkpoint, so that the run can be resumed whenever it dies.

        Raises ValueError where the folder has a run already, unless overwrite; OSError where it cannot be written.
        """
        names = (LAST, BEST, METRICS)
        if not overwrite and any((self.folder / name).exists() for name in names):
            raise ValueError(f"{self.folder} holds a run already; go on with --resume, or replace it with --overwrite")
        progress = Progress()
        self.save(progress)
        (self.folder / BEST).unlink(missing_ok=True)
        return progress

    def resume(self) -> Progress:
        """Put the network and the optimizer where the last checkpoint left them.

        Raises CheckpointError where there is none, it is damaged, or it is of another network or other settings.
        """
        checkpoint = load_checkpoint(self.last)
        self._compare(checkpoint)
        for own, saved in zip(self.network.parameters, checkpoint.parameters, strict=True):
            own[:] = self.stage.arrays.asarray(saved, self.network.dtype)
        self.optimizer.load_state(optimizer_state(self.stage, checkpoint))
        progress = Progress.from_json(checkpoint.progress["position"])
        remove_stale(self.folder)
        write_metrics(self.folder / METRICS, progress.records)
        return progress

    def save(self, progress: Progress) -> None:
        """Write last.safetensors, then metrics.jsonl from the same records.

        Raises ValueError where a parameter is no longer finite: the checkpoint before is kept then.
        """
        for i, array in enumerate(self.network.parameters):
            if not np.isfinite(np.asarray(self.stage.arrays.to_host(array))).all():
                raise ValueError(
                    f"parameter {i} is no longer finite after epoch {progress.epoch + 1}, step {progress.step}; "
                    f"lower the learning rate ({self.last} holds the run before that)"
                )
        saved = {"position": asdict(progress), "settings": self.settings, "notes": self.notes}
        save_checkpoint(self.last, self.stage, self.network, self.optimizer, saved)
        write_metrics(self.folder / METRICS, progress.records)

    def save_best(self, record: EpochRecord) -> None:
        """Write best.safetensors: the parameters as they are now, and the record of their epoch."""
        saved = {"record": asdict(record), "notes": self.notes}
        save_checkpoint(self.folder / BEST, self.stage, self.network, None, saved)

    def _compare(self, checkpoint: Checkpoint) -> None:
        """CheckpointError naming the first thing in which this run differs from the checkpoint's."""
        network, saved = self.network, checkpoint.progress.get("settings")
        if saved is None or checkpoint.optimizer is None:
            raise CheckpointError(f"{checkpoint.path} holds a network but no training run to resume")
        pairs = [
            ("layer sizes", checkpoint.layer_sizes, list(network.layer_sizes)),
            ("activation", checkpoint.activation, network.activation),
            ("loss", checkpoint.loss, network.loss_name),
            ("dtype", checkpoint.dtype, network.dtype),
            ("optimizer", checkpoint.optimizer, type(self.optimizer).__name__),
        ]
        if checkpoint.optimizer == type(self.optimizer).__name__:
            now = hyperparameters(self.optimizer)
            pairs += [(name, value, now[name]) for name, value in checkpoint.hyperparameters.items()]
        pairs += [(name, saved.get(name), value) for name, value in self.settings.items() if name != "epochs"]
        if saved["schedule"] == "cosine":  # the other schedules do not depend on where the end is
            pairs.append(("epochs (the cosine schedule needs the same)", saved["epochs"], self.settings["epochs"]))
        for name, was, now_is in pairs:
            if was != now_is:
                raise CheckpointError(
                    f"cannot resume {checkpoint.path}: its {name.replace('_', ' ')} is {was}, "
                    f"this run's is {now_is}; use the same, or start a new run in another folder"
                )
