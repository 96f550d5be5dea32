"""What `groundup train` does: a training with the settings of its options, saved so that it can be resumed.

All settings of a run are one flat dictionary from option names to JSON values, DEFAULTS. It is written into the run's
checkpoints, and `resumed_settings` reads it from there. The dataclasses below are its parts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from groundup.live_view import watching
from groundup.recipes import fitted, recipe
from groundup.run_notes import SETTINGS, check_same_form, train_notes
from shared import contract
from shared.architectures import mlp
from shared.communicator import ALONE, Communicator
from shared.data.accepted_data import NOTE as FORM
from shared.data.augmentation import Augmentation
from shared.data.datasets import DATASETS, Dataset, Form, check_apart, load_dataset
from shared.data.mapped import mapped
from shared.data.normalisation import NOTE, Normalisation
from shared.names import ACTIVATIONS, check_name
from shared.training import loop
from shared.training.checkpoints import CheckpointError, load_checkpoint
from shared.training.runs import LAST
from shared.training.schedules import Schedule
from shared.training.settings import Hooks, Saving, TrainingSettings

DEFAULTS: dict[str, Any] = {name: default for name, (default, _, _) in SETTINGS.items()}
STAGE1_DEFAULTS: dict[str, Any] = {"hidden": "32", "epochs": 3}
STAGE1_MODEL_DEFAULTS: dict[str, Any] = {"epochs": 1}
"""Python loops are slow: a smaller network and fewer epochs end within a minute or so; a model's epoch takes longer."""

SINCE_MODELS = ("colour", "resize", "model", "normalise", "augment_shift", "augment_rotation")
SINCE_RANKS = ("accumulate", "local_statistics")
LATER_SETTINGS = ("mine", *SINCE_MODELS, *SINCE_RANKS)
"""Settings that runs of earlier versions do not have; they get the defaults."""

LEARNING_RATES = {"sgd": 0.1, "rmsprop": 0.001, "adam": 0.001}
CHANGEABLE = {"epochs", "patience", "data_dir", "download", "checkpoint_every"}
"""Settings that may change when a run is resumed. All others decide about the numbers so far."""


@dataclass(frozen=True)
class DataChoice:
    """The data set to train on.

    folder: of its files; None for the usual places; download: fetch it if missing
    colour, resize: of the user's own images; form: what a run that goes on learned from
    normalise: whether to normalise it, by `known` or, without it, by the numbers of its own training samples
    """

    name: str
    folder: str | None
    download: bool
    colour: bool = False
    resize: str | None = None
    form: Form | None = None
    normalise: bool = False
    known: Normalisation | None = None

    def load(self) -> tuple[Dataset, Normalisation | None]:
        """The data set, and how it was normalised."""
        data = load_dataset(self.name, self.folder, download=self.download, colour=self.colour, resize=self.resize)
        check_same_form("this run", self.form, data.name, data.described)
        if not self.normalise:
            return data, None
        normalisation = self.known or Normalisation.of(data.train.x)
        return normalisation.dataset(data), normalisation


@dataclass(frozen=True)
class NetworkChoice:
    """The network to train: a known one, or a stack of dense layers.

    model: the name of an architecture, or None; hidden: the sizes of the hidden layers of a stack
    dropout: the rate after each hidden layer of a stack
    Raises ValueError for an impossible rate, and for one beside a model.
    """

    model: str | None
    hidden: list[int]
    activation: str | None
    dropout: float
    loss: str
    initializer: str
    seed: int
    dtype: str

    def __post_init__(self) -> None:
        check_name("unknown activation", self.activation or "relu", ACTIVATIONS)
        if not 0.0 <= self.dropout < 1.0:
            raise ValueError(f"dropout: expected a rate of at least 0 and below 1, got {self.dropout}")
        if self.model is not None and self.dropout:
            raise ValueError(
                f"dropout: a rate of {self.dropout:g} is for the hidden layers of a stack of dense layers; "
                f"--model {self.model} has its own Dropout layers, or none. Leave dropout out"
            )

    def build(self, stage: contract.Stage, data: Dataset) -> contract.NetworkLike:
        """A new network of this stage for the features and classes of the data."""
        if self.model is None:
            sizes = [data.train.x.shape[1], *self.hidden, data.classes]
            architecture = mlp(sizes, self.activation or "relu", self.dropout)
        else:
            architecture = fitted(self.model, data.described)
        network: contract.NetworkLike = stage.network.Network(
            architecture, loss=self.loss, initializer=self.initializer, seed=self.seed, dtype=self.dtype
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
        """The training with these settings, keyed as DEFAULTS, saved in folder. ValueError for impossible ones.

        A resumed run's settings may also hold the normalisation of its data, as its notes do.
        """

        def chosen(*names: str) -> dict[str, Any]:
            return {name: settings[name] for name in names}

        known = Normalisation.from_notes(settings)
        data = DataChoice(
            settings["dataset"],
            settings["data_dir"],
            form=Form.from_notes(settings),
            known=known,
            **chosen("download", "colour", "resize", "normalise"),
        )
        optimizer = OptimizerChoice(
            settings["optimizer"], **chosen("learning_rate", "momentum", "nesterov", "weight_decay")
        )
        of_network = ("model", "activation", "dropout", "loss", "initializer", "seed", "dtype")
        hidden = [] if settings["model"] else hidden_sizes(settings["hidden"])
        network = NetworkChoice(hidden=hidden, **chosen(*of_network))
        augmentation = Augmentation(settings["augment_shift"], settings["augment_rotation"])
        schedule = Schedule(settings["schedule"], **chosen("warmup_epochs", "step_epochs", "gamma"))
        training = TrainingSettings(
            schedule=schedule,
            augmentation=augmentation if augmentation.shift or augmentation.rotation else None,
            **chosen("epochs", "batch_size", "seed", "validation", "patience", "monitor", *SINCE_RANKS),
        )
        # A run without the later settings is one that earlier versions can resume.
        notes = {name: settings[name] for name in DEFAULTS}
        notes = {k: v for k, v in notes.items() if k not in (*SINCE_MODELS, *SINCE_RANKS) or v != DEFAULTS[k]}
        saving = Saving(folder, resume, overwrite, settings["checkpoint_every"], notes=notes)
        return cls(data, network, optimizer, training, saving)


def run(
    stage: contract.Stage,
    training: Training,
    lines: Callable[[contract.NetworkLike, Dataset], Hooks],
    live: bool,
    ranks: Communicator = ALONE,
) -> loop.TrainingResult:
    """Train a network of the stage.

    lines: gives the hooks that print the training of this network on this data
    live: show the live view below these lines, if stdout is a terminal
    ranks: the processes that train together, each of which calls this function
    """
    settings, saving = training.settings, training.saving
    if not saving.resume:
        check_apart(training.data.name, training.data.folder, Path(saving.run_dir))
    with named_in_errors(saving):
        optimizer = training.optimizer.build(stage)
        data, normalisation = mapped(ranks, training.data.load)
        network = training.network.build(stage, data)
    hooks = lines(network, data)
    if normalisation is not None:
        saving = replace(saving, notes={**saving.notes, **normalisation.as_note()})
        settings = with_background(settings, normalisation, data)
    if training.data.name not in DATASETS:
        saving = replace(saving, notes={**saving.notes, **data.described.as_note()})
    watched: Any = contextlib.nullcontext(hooks)
    if live:
        watched = watching(stage, network, data.train, settings, hooks, ranks=ranks)
    with named_in_errors(saving), watched as hooks:
        return loop.train(
            *(stage, network, optimizer, data.train, settings),
            test_data=data.test,
            saving=saving,
            hooks=hooks,
            ranks=ranks,
        )


@contextlib.contextmanager
def named_in_errors(saving: Saving) -> Iterator[None]:
    """Names in an error's own sentence the run that cannot go on because of it: its file holds the settings."""
    try:
        yield
    except ValueError as error:
        if saving.resume and str(saving.run_dir) not in str(error):
            error.args = (f"the run {saving.run_dir} cannot go on: {error}",)
        raise


def with_background(settings: TrainingSettings, normalisation: Normalisation, data: Dataset) -> TrainingSettings:
    """The settings, with the background of augmented images as black as the normalised data has it."""
    if settings.augmentation is None:
        return settings
    black = float(normalisation.normalised(np.zeros(1, data.train.x.dtype))[0])
    return replace(settings, augmentation=replace(settings.augmentation, background=black))


def new_settings(stage: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults of a stage, by its full name, or of a model, with the given settings in place of theirs.

    Raises ValueError for an unknown model, and for settings that a model does not have.
    """
    first = stage == contract.STAGES[0]
    if options.get("data_dir") is not None and options.get("dataset", DEFAULTS["dataset"]) not in DATASETS:
        raise ValueError(
            "--data-dir is for the full sets that --dataset knows by name; name your own set's place there"
        )
    if options.get("model") is not None:
        of_model = recipe(options["model"], options)
        return {**DEFAULTS, **of_model, **(STAGE1_MODEL_DEFAULTS if first else {}), **options}
    return {**DEFAULTS, **(STAGE1_DEFAULTS if first else {}), **options}


def resumed_settings(folder: Path, options: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the run in folder, with the given ones in place of theirs.

    The normalisation of its data is among them under NOTE, if there is one, and the form of the user's own under FORM.
    Raises CheckpointError if there is no run of `groundup train`, or if a given setting must not change.
    """
    checkpoint = load_checkpoint(folder / LAST)
    saved: dict[str, Any] = checkpoint.about_run.get("notes", {})
    saved = {**{name: DEFAULTS[name] for name in LATER_SETTINGS}, **saved} if saved else saved
    if saved.keys() - {NOTE, FORM} != DEFAULTS.keys():
        raise CheckpointError(f"{folder / LAST} was not written by groundup train; resume it from where it was made")
    saved = train_notes(checkpoint, saved)
    try:
        Training.of(saved, folder, resume=True, overwrite=False)
    except ValueError as error:
        raise CheckpointError(f"{folder / LAST} holds settings that groundup train does not write: {error}") from error
    for name, value in options.items():
        if name not in CHANGEABLE and value != saved[name]:
            option = "--" + name.replace("_", "-")
            raise CheckpointError(
                f"cannot resume {folder}: its {option} is {saved[name]}, not {value}; leave {option} out, "
                "or start a new run in another folder"
            )
    return {**saved, **options}


def hidden_sizes(text: str) -> list[int]:
    """The sizes of the hidden layers: '128,64' -> [128, 64]; 'none' -> []. ValueError for any other text."""
    if not isinstance(text, str):  # the notes of a run are a file that anybody may have changed
        raise ValueError(f"--hidden: expected sizes like 128,64, or none, got {text!r}")
    if text.strip() == "none":
        return []
    sizes = [int(part) if part.strip().isdecimal() else 0 for part in text.split(",")]
    if min(sizes) < 1:
        raise ValueError(f"--hidden: expected sizes of at least 1, like 128,64, or none, got {text!r}")
    return sizes
