"""The folder of a training run, and what must be remembered so that an interrupted run can go on.

last.safetensors    the latest state of the run: parameters, optimizer and `Position`
best.safetensors    the parameters of the best epoch so far
metrics.jsonl       one line for each finished epoch
run.lock            there while a training has the folder for itself (shared/training/run_lock.py)
steps.jsonl         the steps, thinned where they are many (shared/training/step_records.py)
run.json            how the run was started, and whether it runs, is done or was stopped (shared/training/run_facts.py)

The first three are all that is needed to go on. steps.jsonl and run.json are for whoever watches the run, with
`groundup studio`; a run of an earlier version does not have them.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from shared.architectures import Architecture
from shared.contract import NetworkLike, Optimizer, Stage
from shared.data.accepted_data import Split
from shared.layers import describe, shortened
from shared.machine.atomic import remove_stale
from shared.machine.strict_json import is_count, is_number
from shared.training import early_stopping
from shared.training.checkpoints import (
    Checkpoint,
    CheckpointError,
    hyperparameters,
    load_checkpoint,
    optimizer_state,
    own_arrays,
    save_checkpoint,
)
from shared.training.metrics import EpochRecord, write_metrics
from shared.training.run_lock import RunLock
from shared.training.settings import TrainingSettings

LAST, BEST, METRICS = "last.safetensors", "best.safetensors", "metrics.jsonl"
STEPS, FACTS = "steps.jsonl", "run.json"


@dataclass
class Position:
    """How far a training has come. With the parameters and the optimizer it is the whole state of a run.

    epoch: finished epochs
    step: finished steps of the running epoch; loss_sum and seconds are the sums over them
    best_value, best_epoch, epochs_since_best: the best value of the monitor, its epoch, and the epochs after it
    records: one for each finished epoch
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
    def from_json(cls, saved: Mapping[str, Any]) -> Position:
        """The Position that `dataclasses.asdict` was called on.

        Raises TypeError, ValueError or KeyError for anything else: the file may come from a stranger.
        """
        names = {entry.name for entry in fields(cls)}
        if not isinstance(saved, Mapping) or not {"records"} <= set(saved) <= names:
            raise TypeError(
                f"expected an object with records, and of {', '.join(sorted(names))}, got {shortened(saved)}"
            )
        if not isinstance(saved["records"], list):
            raise TypeError(f"records is {shortened(saved['records'])}, expected a list")
        position = cls(**{**saved, "records": [EpochRecord.from_json(record) for record in saved["records"]]})
        for name in ("epoch", "step", "epochs_since_best"):
            value = getattr(position, name)
            if not is_count(value):
                raise ValueError(f"{name} is {shortened(value)}, expected a whole number of at least 0")
        for name in ("loss_sum", "seconds"):
            if not is_number(getattr(position, name)):
                raise TypeError(f"{name} is {shortened(getattr(position, name))}, expected a finite number")
        if [record.epoch for record in position.records] != list(range(1, len(position.records) + 1)):
            raise ValueError("the records are not those of the epochs 1, 2, 3, …")
        if position.epoch != len(position.records):
            raise ValueError(f"epoch is {position.epoch}, but there are records of {len(position.records)}")
        position._check_best()
        return position

    def _check_best(self) -> None:
        if (self.best_epoch is None) != (self.best_value is None):
            raise ValueError("best_epoch and best_value are known both, or none of them")
        if self.best_value is not None and not is_number(self.best_value):
            raise TypeError(f"best_value is {shortened(self.best_value)}, expected a finite number")
        if self.best_epoch is not None and not (is_count(self.best_epoch) and 1 <= self.best_epoch <= self.epoch):
            raise ValueError(f"best_epoch is {shortened(self.best_epoch)}, expected 1 to {self.epoch}")
        if (self.best_epoch is None) != (self.epoch == 0):
            raise ValueError(f"best_epoch is {self.best_epoch}, but {self.epoch} epochs are finished")

    def finish_epoch(self, record: EpochRecord, monitor: str) -> bool:
        """Move on to the next epoch. Returns whether the finished one is the best so far by this monitor."""
        self.records.append(record)
        values = [getattr(each, monitor) for each in self.records]
        self.best_epoch, self.epochs_since_best = early_stopping.best_epoch_and_wait(
            values, monitor.endswith("accuracy")
        )
        self.best_value = values[self.best_epoch - 1]
        self.epoch, self.step, self.loss_sum, self.seconds = record.epoch, 0, 0.0, 0.0
        return self.epochs_since_best == 0


def remembered_settings(settings: TrainingSettings, data: Split) -> dict[str, Any]:
    """Everything that decides about the numbers of a run, as its checkpoints hold it: compared when it is resumed.

    data: all training data, before the validation split; recorded as a count and a checksum
    """
    return {
        "training_samples": len(data),
        "training_data": _checksum(data),
        "batch_size": settings.batch_size,
        "seed": settings.seed,
        "validation": settings.validation,
        "monitor": settings.best_by,
        "augmentation": None if settings.augmentation is None else asdict(settings.augmentation),
        "schedule": settings.schedule.name,
        "warmup_epochs": settings.schedule.warmup_epochs,
        "step_epochs": settings.schedule.step_epochs,
        "gamma": settings.schedule.gamma,
        "epochs": settings.epochs,
        # As runs before there were ranks have it, which can go on:
        **({"accumulate": settings.accumulate} if settings.accumulate > 1 else {}),
        **({"local_statistics": True} if settings.local_statistics else {}),
    }


@dataclass(frozen=True)
class Run:
    """The folder of one run, and what each of its checkpoints holds.

    settings: as `remembered_settings` returns them
    notes: JSON values of the caller
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

    @cached_property
    def lock(self) -> RunLock:
        """The lock to hold from before `begin` or `resume` until nothing more is written."""
        return RunLock(self.folder)

    def begin(self, overwrite: bool) -> Position:
        """Start a new run and save it before the first step, so that it can be resumed from its beginning.

        Raises ValueError if the folder holds a run already, unless overwrite; OSError if it cannot be written.
        """
        names = (LAST, BEST, METRICS)
        if not overwrite and any((self.folder / name).exists() for name in names):
            raise ValueError(f"{self.folder} holds a run already; go on with --resume, or replace it with --overwrite")
        position = Position()
        self.save(position)
        for name in (BEST, STEPS, FACTS):
            (self.folder / name).unlink(missing_ok=True)
        remove_stale(self.folder)  # of a run that was killed before its first checkpoint
        return position

    def resume(self) -> Position:
        """Put the network and the optimizer into the state of the last checkpoint.

        Raises CheckpointError if there is none, or it is damaged, or belongs to another network or other settings, or
        holds numbers that this stage's dtype does not hold. Then nothing has changed.
        """
        checkpoint = load_checkpoint(self.last)
        self._compare(checkpoint)
        position = _position(checkpoint, self.settings["monitor"])
        saved = own_arrays(self.stage, checkpoint, "parameters", checkpoint.parameters)
        saved += own_arrays(self.stage, checkpoint, "running", checkpoint.running_statistics)
        self.optimizer.load_state(optimizer_state(self.stage, checkpoint))
        for own, array in zip([*self.network.parameters, *self.network.running_statistics], saved, strict=True):
            own[:] = array
        remove_stale(self.folder)
        write_metrics(self.folder / METRICS, position.records)
        return position

    def save(self, position: Position) -> None:
        """Write last.safetensors, then metrics.jsonl from the same records.

        Raises ValueError if a parameter or a running statistic is no longer finite; the previous checkpoint is kept.
        Raises RunInUse if somebody has removed the folder, and another training has begun in a new one.
        """
        self.lock.keep()
        named = [("parameter", i, array) for i, array in enumerate(self.network.parameters)]
        named += [("running statistic", i, array) for i, array in enumerate(self.network.running_statistics)]
        for kind, i, array in named:
            if not np.isfinite(np.asarray(self.stage.arrays.to_host(array))).all():
                raise ValueError(
                    f"{kind} {i} is no longer finite after epoch {position.epoch + 1}, step {position.step}; "
                    f"lower the learning rate ({self.last} holds the run before that)"
                )
        about_run = {"position": asdict(position), "settings": self.settings, "notes": self.notes}
        save_checkpoint(self.last, self.stage, self.network, self.optimizer, about_run)
        write_metrics(self.folder / METRICS, position.records)

    def save_best(self, record: EpochRecord) -> None:
        """Write best.safetensors: the current parameters and the record of their epoch."""
        about_run = {"record": asdict(record), "notes": self.notes}
        save_checkpoint(self.folder / BEST, self.stage, self.network, None, about_run)

    def _compare(self, checkpoint: Checkpoint) -> None:
        """Raise CheckpointError that names the first difference between this run and the checkpoint's."""
        network, saved = self.network, checkpoint.about_run.get("settings")
        if not isinstance(saved, dict) or checkpoint.optimizer is None:
            raise CheckpointError(f"{checkpoint.path} holds a network but no training run to resume")
        pairs = [
            *_network_pairs(checkpoint.architecture, network.architecture),
            ("loss", checkpoint.loss, network.loss_name),
            ("dtype", checkpoint.dtype, network.dtype),
            ("optimizer", checkpoint.optimizer, type(self.optimizer).__name__),
        ]
        if checkpoint.optimizer == type(self.optimizer).__name__:
            then, now = checkpoint.hyperparameters, hyperparameters(self.optimizer)
            pairs += [(name, then.get(name), now.get(name)) for name in now | then]
        pairs += [(name, saved.get(name), value) for name, value in self.settings.items() if name != "epochs"]
        if saved.get("schedule") == "cosine":  # the other schedules do not depend on the number of epochs
            name = "number of epochs, which the cosine schedule depends on,"
            pairs.append((name, saved.get("epochs"), self.settings["epochs"]))
        for name, was, now_is in pairs:
            if was != now_is:
                raise CheckpointError(
                    f"cannot resume {checkpoint.path}: its {name.replace('_', ' ')} is {_cut(was)}, "
                    f"this run's is {_cut(now_is)}; use the same, or start a new run in another folder"
                )


def _cut(value: object) -> str:
    text = str(value)
    return text if len(text) <= 200 else f"{text[:199]}…"


def _network_pairs(saved: Architecture, own: Architecture) -> Iterator[tuple[str, Any, Any]]:
    """(name, the checkpoint's, the network's) of what must be equal between two networks."""
    stack, own_stack = saved.as_mlp(), own.as_mlp()
    if stack is not None and own_stack is not None:
        yield from zip(("layer sizes", "activation", "dropout"), stack, own_stack, strict=True)
        return
    if stack is not None or own_stack is not None:
        names = ("one of other layers" if each is None else "a stack of dense layers" for each in (stack, own_stack))
        yield ("architecture", *names)  # type: ignore[misc]
        return
    yield "input shape", saved.input_shape, own.input_shape
    for i, (one, other) in enumerate(zip_longest(saved.layers, own.layers), start=1):
        texts = ("missing" if layer is None else describe(layer) for layer in (one, other))
        yield (f"layer {i}", *texts)  # type: ignore[misc]


def _position(checkpoint: Checkpoint, monitor: str) -> Position:
    """The position that the checkpoint holds. Raises CheckpointError if it holds something else in its place."""
    try:
        position = Position.from_json(checkpoint.about_run["position"])
        for record in position.records:
            if getattr(record, monitor) is None:
                raise ValueError(f"the record of epoch {record.epoch} has no {monitor}")
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{checkpoint.path} does not say how far its run has come ({error!r})") from error
    return position


def _checksum(data: Split) -> str:
    """A checksum of samples and labels, which tells data sets of the same size apart."""
    return f"crc32 {zlib.crc32(np.ascontiguousarray(data.y).data, zlib.crc32(np.ascontiguousarray(data.x).data)):08x}"
