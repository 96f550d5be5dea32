"""What `groundup train` does: a training with the settings of its options, saved so that it can be resumed.

All settings of a run are one flat dictionary from option names to JSON values, DEFAULTS. It is written into the run's
checkpoints, and `resumed_settings` reads it from there. The dataclasses below are its parts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from groundup.live_view import watching
from shared import contract
from shared.data.datasets import Dataset, load_dataset
from shared.training import loop
from shared.training.checkpoints import CheckpointError, load_checkpoint
from shared.training.runs import LAST
from shared.training.schedules import Schedule
from shared.training.settings import Hooks, Saving, TrainingSettings

DEFAULTS: dict[str, Any] = {
    "dataset": "mnist-subset",
    "data_dir": None,
    "download": False,
    "hidden": "128",
    "activation": "relu",
    "loss": "softmax_cross_entropy",
    "initializer": "he",
    "dtype": "float32",
    "optimizer": "sgd",
    "learning_rate": None,
    "momentum": 0.0,
    "nesterov": False,
    "weight_decay": 0.0,
    "epochs": 10,
    "batch_size": 64,
    "schedule": "constant",
    "warmup_epochs": 0.0,
    "step_epochs": 3.0,
    "gamma": None,
    "dropout": 0.0,
    "validation": 0.0,
    "patience": None,
    "monitor": None,
    "seed": 0,
    "checkpoint_every": None,
    "mine": False,
}
STAGE1_DEFAULTS: dict[str, Any] = {"hidden": "32", "epochs": 3}
"""Python loops are slow: a smaller network and fewer epochs end within a minute or so."""

LATER_SETTINGS = ("mine",)
"""Settings that runs of earlier versions do not have; they get the defaults."""

LEARNING_RATES = {"sgd": 0.1, "rmsprop": 0.001, "adam": 0.001}
CHANGEABLE = {"epochs", "patience", "data_dir", "download", "checkpoint_every"}
"""Settings that may change when a run is resumed. All others decide about the numbers so far."""


@dataclass(frozen=True)
class DataChoice:
    """The data set to train on. folder: of its files; None for the usual places; download: fetch it if missing."""

    name: str
    folder: str | None
    download: bool


@dataclass(frozen=True)
class NetworkChoice:
    """The network to train. hidden: the sizes of the hidden layers."""

    hidden: list[int]
    activation: str
    loss: str
    initializer: str
    seed: int
    dtype: str

    def build(self, stage: contract.Stage, data: Dataset) -> contract.NetworkLike:
        """A new network of this stage for the features and classes of the data."""
        network: contract.NetworkLike = stage.network.Network(
            [data.train.x.shape[1], *self.hidden, data.classes],
            activation=self.activation,
            loss=self.loss,
            initializer=self.initializer,
            seed=self.seed,
            dtype=self.dtype,
        )
        return network


@dataclass(frozen=True)
class OptimizerChoice:
    """The optimizer to train with. name: in any case; learning_rate: None for that of LEARNING_RATES."""

    name: str
    learning_rate: float | None
    momentum: float
    nesterov: bool
    weight_decay: float

    def __post_init__(self) -> None:
        if self.name.lower() not in LEARNING_RATES:
            raise ValueError(f"unknown optimizer {self.name!r}; choose one of {', '.join(LEARNING_RATES)}")
        if self.name.lower() != "sgd" and (self.momentum or self.nesterov):
            raise ValueError(f"--momentum and --nesterov belong to sgd, not to {self.name.lower()}")

    def build(self, stage: contract.Stage) -> contract.Optimizer:
        """A new optimizer of this stage."""
        name = self.name.lower()
        rate = LEARNING_RATES[name] if self.learning_rate is None else self.learning_rate
        options: dict[str, Any] = {"weight_decay": self.weight_decay}
        if name == "sgd":
            options |= {"momentum": self.momentum, "nesterov": self.nesterov}
        classes = {each.lower(): each for each in contract.OPTIMIZERS}
        optimizer: contract.Optimizer = getattr(stage.optimizers, classes[name])(rate, **options)
        return optimizer


@dataclass(frozen=True)
class Training:
    """A training that `groundup train` was asked for."""

    data: DataChoice
    network: NetworkChoice
    optimizer: OptimizerChoice
    settings: TrainingSettings
    saving: Saving

    @classmethod
    def of(cls, settings: Mapping[str, Any], folder: Path, resume: bool, overwrite: bool) -> Training:
        """The training with these settings, keyed as DEFAULTS, saved in folder. ValueError for impossible ones."""

        def chosen(*names: str) -> dict[str, Any]:
            return {name: settings[name] for name in names}

        data = DataChoice(settings["dataset"], settings["data_dir"], settings["download"])
        optimizer = OptimizerChoice(
            settings["optimizer"], **chosen("learning_rate", "momentum", "nesterov", "weight_decay")
        )
        network = NetworkChoice(
            hidden_sizes(settings["hidden"]), **chosen("activation", "loss", "initializer", "seed", "dtype")
        )
        schedule = Schedule(settings["schedule"], **chosen("warmup_epochs", "step_epochs", "gamma"))
        training = TrainingSettings(
            schedule=schedule,
            **chosen("epochs", "batch_size", "seed", "dropout", "validation", "patience", "monitor"),
        )
        saving = Saving(folder, resume, overwrite, settings["checkpoint_every"], notes=dict(settings))
        return cls(data, network, optimizer, training, saving)


def run(
    stage: contract.Stage, training: Training, lines: Callable[[contract.NetworkLike, Dataset], Hooks], live: bool
) -> loop.TrainingResult:
    """Train a network of the stage.

    lines: gives the hooks that print the training of this network on this data
    live: show the live view below these lines, if stdout is a terminal
    """
    optimizer = training.optimizer.build(stage)
    data = load_dataset(training.data.name, training.data.folder, download=training.data.download)
    network = training.network.build(stage, data)
    hooks = lines(network, data)
    watched = watching(stage, network, data.train, training.settings, hooks) if live else contextlib.nullcontext(hooks)
    with watched as hooks:
        return loop.train(
            *(stage, network, optimizer, data.train, training.settings),
            test_data=data.test,
            saving=training.saving,
            hooks=hooks,
        )


def new_settings(stage: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults of a stage, by its full name, with the given settings in place of theirs."""
    return {**DEFAULTS, **(STAGE1_DEFAULTS if stage == contract.STAGES[0] else {}), **given}


def resumed_settings(folder: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the run in folder, with the given ones in place of theirs.

    Raises CheckpointError if there is no run of `groundup train`, or if a given setting must not change.
    """
    saved: dict[str, Any] = load_checkpoint(folder / LAST).about_run.get("notes", {})
    saved = {**{name: DEFAULTS[name] for name in LATER_SETTINGS}, **saved} if saved else saved
    if saved.keys() != DEFAULTS.keys():
        raise CheckpointError(f"{folder / LAST} was not written by groundup train; resume it from where it was made")
    for name, value in given.items():
        if name not in CHANGEABLE and value != saved[name]:
            option = "--" + name.replace("_", "-")
            raise CheckpointError(
                f"cannot resume {folder}: its {option} is {saved[name]}, not {value}; leave {option} out, "
                "or start a new run in another folder"
            )
    return {**saved, **given}


def hidden_sizes(text: str) -> list[int]:
    """The sizes of the hidden layers: '128,64' -> [128, 64]; 'none' -> []. ValueError for any other text."""
    if text.strip() == "none":
        return []
    sizes = [int(part) if part.strip().isdecimal() else 0 for part in text.split(",")]
    if min(sizes) < 1:
        raise ValueError(f"--hidden: expected sizes of at least 1, like 128,64, or none, got {text!r}")
    return sizes
