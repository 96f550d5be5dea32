"""`groundup train`: train one stage on real data, stop whenever you like, and go on later."""

from __future__ import annotations

import contextlib
import dataclasses
import json as json_module
import shlex
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from groundup.course.mine import place_in, prepare, put_in_place, told
from groundup.live import watching
from shared import contract
from shared.data.datasets import Dataset, load_dataset
from shared.machine.environment import environment
from shared.training import loop
from shared.training.checkpoints import CheckpointError, load_checkpoint
from shared.training.runs import LAST

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
"""Python loops take their time: a smaller network ends within a minute or so."""

LATER_SETTINGS = ("mine",)
"""Which runs of earlier versions do not have."""

LEARNING_RATES = {"sgd": 0.1, "rmsprop": 0.001, "adam": 0.001}
CHANGEABLE = {"epochs", "patience", "data_dir", "download", "checkpoint_every"}
"""What may be given anew when resuming. Everything else decides about the numbers so far, and must stay."""


def train(
    context: typer.Context,
    stage: Annotated[str, typer.Argument(help="stage1_pure_python, stage2_numpy, or just 1, 2, numpy, …")],
    dataset: Annotated[
        str | None, typer.Option(help="mnist-subset, mnist or fashion-mnist.", show_default="mnist-subset")
    ] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the IDX files of a full data set.")] = None,
    download: Annotated[
        bool | None, typer.Option("--download", help="Fetch a full data set that is not there.")
    ] = None,
    hidden: Annotated[
        str | None,
        typer.Option(help="Hidden layer sizes, like 128,64, or none.", show_default="128; 32 on stage 1"),
    ] = None,
    activation: Annotated[
        str | None, typer.Option(help=f"{', '.join(contract.ACTIVATIONS)}.", show_default="relu")
    ] = None,
    loss: Annotated[
        str | None, typer.Option(help=f"{', '.join(contract.LOSSES)}.", show_default="softmax_cross_entropy")
    ] = None,
    initializer: Annotated[
        str | None, typer.Option(help="How the first weights are drawn: he, xavier, …", show_default="he")
    ] = None,
    dtype: Annotated[str | None, typer.Option(help="float32 or float64.", show_default="float32")] = None,
    optimizer: Annotated[str | None, typer.Option(help="sgd, rmsprop or adam.", show_default="sgd")] = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="The highest of the schedule.", show_default="sgd 0.1, others 0.001")
    ] = None,
    momentum: Annotated[float | None, typer.Option(help="For sgd.", show_default="0")] = None,
    nesterov: Annotated[bool | None, typer.Option("--nesterov", help="Nesterov's momentum, for sgd.")] = None,
    weight_decay: Annotated[float | None, typer.Option(help="Pulls the weights towards 0.", show_default="0")] = None,
    epochs: Annotated[
        int | None, typer.Option(help="Passes over the training data.", show_default="10; 3 on stage 1")
    ] = None,
    batch_size: Annotated[int | None, typer.Option(help="Samples a step.", show_default="64")] = None,
    schedule: Annotated[
        str | None, typer.Option(help="constant, step, exponential or cosine.", show_default="constant")
    ] = None,
    warmup_epochs: Annotated[
        float | None, typer.Option(help="Epochs in which the rate rises to its base.", show_default="0")
    ] = None,
    step_epochs: Annotated[
        float | None, typer.Option(help="Epochs between the drops of --schedule step.", show_default="3")
    ] = None,
    gamma: Annotated[
        float | None,
        typer.Option(help="Factor of the step and exponential schedules.", show_default="step 0.5, exponential 0.9"),
    ] = None,
    dropout: Annotated[
        float | None, typer.Option(help="Probability of dropping a hidden neuron.", show_default="0")
    ] = None,
    validation: Annotated[
        float | None, typer.Option(help="Fraction of the training data to choose by.", show_default="0")
    ] = None,
    patience: Annotated[
        int | None, typer.Option(help="Stop after so many epochs without improvement; needs --validation.")
    ] = None,
    monitor: Annotated[
        str | None,
        typer.Option(
            help=f"What the best epoch is chosen by: {', '.join(loop.MONITORS)}.",
            show_default="validation_loss, without --validation train_loss",
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Of weights, batch order, split and dropout.", show_default="0")
    ] = None,
    checkpoint_every: Annotated[
        int | None, typer.Option(help="Also save after every so many steps, not just each epoch.")
    ] = None,
    run_dir: Annotated[
        Path | None, typer.Option(help="Folder for checkpoints and metrics.", show_default="runs/STAGE")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="RUN_DIR", help="Go on with the run in this folder, with its settings.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run that is in the folder.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Only the last line.")] = False,
    live: Annotated[
        bool, typer.Option("--live", help="Watch loss, accuracy and every layer's gradients while it trains.")
    ] = False,
    mine: Annotated[
        bool | None, typer.Option("--mine", help="With the functions that you wrote in the course, all that pass.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout instead of text.")] = False,
) -> None:
    """Train one stage: checkpoints, metrics, early stopping; Ctrl-C saves, --resume goes on.

    \b
    Examples:
      groundup train numpy
      groundup train numpy --dataset fashion-mnist --optimizer adam
      groundup train numpy --validation 0.1 --patience 3 --run-dir runs/mine
      groundup train numpy --resume runs/mine
      groundup train numpy --live --epochs 50
      groundup train numpy --mine
    """
    if live and (quiet or json):
        raise ValueError(f"--live shows what {'--json' if json else '--quiet'} leaves out: choose one of them")
    name = contract.stage_name(stage)
    given = {each: context.params[each] for each in DEFAULTS if context.params[each] is not None}
    if data_dir is not None:
        given["data_dir"] = str(data_dir)
    if resume is not None:
        if overwrite or (run_dir is not None and run_dir != resume):
            raise ValueError("--resume goes on in its own folder: leave out --run-dir and --overwrite")
        folder = resume
        settings = _resumed_settings(folder, given)
    else:
        folder = run_dir or Path("runs") / name
        settings = {**DEFAULTS, **(STAGE1_DEFAULTS if name == contract.STAGES[0] else {}), **given}
    learner, assembled = put_in_place(stage) if settings["mine"] else ([], None)
    chosen = contract.load_stage(stage)
    if learner:
        typer.echo(told(learner, prepare(chosen, learner)), err=True)
    try:
        result = _run(chosen, settings, folder, resume is not None, overwrite, quiet or json, live)
    except KeyboardInterrupt as interrupt:
        typer.echo(_how_to_resume(interrupt, chosen.name, folder), err=True)
        raise typer.Exit(2) from None
    except Exception as error:  # whatever the learner's own code raises is theirs to read, without our traceback
        place = place_in(assembled, error) if assembled else ""
        if not place:
            raise
        typer.echo(f"error: {type(error).__name__}: {error}, at {place}, which is yours", err=True)
        raise typer.Exit(1) from None
    summary = _summary(chosen.name, settings, folder, result)
    summary["mine"] = [task.id for task in learner]
    typer.echo(json_module.dumps(summary, indent=2) if json else _last_line(summary, result, settings))


def _run(
    stage: contract.Stage,
    settings: Mapping[str, Any],
    folder: Path,
    resume: bool,
    overwrite: bool,
    silent: bool,
    live: bool,
) -> loop.TrainingResult:
    optimizer = _make_optimizer(stage, settings)
    hidden = _hidden_sizes(settings["hidden"])
    data = load_dataset(settings["dataset"], settings["data_dir"], download=settings["download"])
    network = stage.network.Network(
        [data.train.x.shape[1], *hidden, data.classes],
        **{name: settings[name] for name in ("activation", "loss", "initializer", "seed", "dtype")},
    )
    loop_arguments = (
        *("epochs", "batch_size", "seed", "validation", "schedule", "warmup_epochs", "step_epochs", "gamma"),
        *("dropout", "patience", "monitor", "checkpoint_every"),
    )
    lines: dict[str, Any] = {
        "on_start": None if silent else partial(_print_heading, stage, network, settings, data),
        "on_epoch": None if silent else _print_epoch,
    }
    watched = {name: settings[name] for name in ("epochs", "batch_size", "validation")}
    watch = watching(stage, network, data.train, **watched, **lines) if live else contextlib.nullcontext(lines)
    with watch as hooks:
        return loop.train(
            stage,
            network,
            optimizer,
            data.train,
            test_data=data.test,
            run_dir=folder,
            resume=resume,
            overwrite=overwrite,
            notes=settings,
            **hooks,
            **{name: settings[name] for name in loop_arguments},
        )


def _resumed_settings(folder: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the run in folder, with what was given anew; CheckpointError where that must not differ."""
    saved: dict[str, Any] = load_checkpoint(folder / LAST).progress.get("notes", {})
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


def _make_optimizer(stage: contract.Stage, settings: Mapping[str, Any]) -> contract.Optimizer:
    names = {name.lower(): name for name in contract.OPTIMIZERS}
    name = settings["optimizer"].lower()
    if name not in names:
        raise ValueError(f"unknown optimizer {settings['optimizer']!r}; choose one of {', '.join(names)}")
    rate = LEARNING_RATES[name] if settings["learning_rate"] is None else settings["learning_rate"]
    extra = {key: settings[key] for key in ("momentum", "nesterov")}
    if name != "sgd":
        if any(extra.values()):
            raise ValueError(f"--momentum and --nesterov belong to sgd, not to {name}")
        extra = {}
    made: contract.Optimizer = getattr(stage.optimizers, names[name])(
        rate, weight_decay=settings["weight_decay"], **extra
    )
    return made


def _hidden_sizes(text: str) -> list[int]:
    """'128,64' -> [128, 64]; 'none' -> []."""
    if text.strip() == "none":
        return []
    sizes = [int(part) if part.strip().isdecimal() else 0 for part in text.split(",")]
    if min(sizes) < 1:
        raise ValueError(f"--hidden: expected sizes of at least 1, like 128,64, or none, got {text!r}")
    return sizes


def _print_heading(
    stage: contract.Stage, network: contract.NetworkLike, settings: Mapping[str, Any], data: Dataset
) -> None:
    sizes = "-".join(map(str, network.layer_sizes))
    typer.echo(
        f"{stage.title}, {sizes} {network.activation}, {network.loss_name}, {settings['optimizer']}; "
        f"{data.name}: {len(data.train)} training and {len(data.test)} test samples"
    )
    typer.echo("epoch      loss   train %   valid %    test %   seconds   samples/s")


def _print_epoch(record: loop.EpochRecord) -> None:
    accuracies = (record.train_accuracy, record.validation_accuracy, record.test_accuracy)
    columns = "".join(f"{'-' if value is None else f'{100 * value:.2f}':>10}" for value in accuracies)
    # Not typer.echo: it goes past the sys.stdout that rich puts there, and into the bar or the live view.
    print(
        f"{record.epoch:5}{record.train_loss:10.4f}{columns}{record.seconds:10.2f}{record.samples_per_second:12,.0f}",
        flush=True,
    )


def _summary(stage: str, settings: Mapping[str, Any], folder: Path, result: loop.TrainingResult) -> dict[str, Any]:
    last, best = result.epochs[-1], result.epochs[result.best_epoch - 1]
    return {
        "stage": stage,
        "environment": environment(),
        "run_dir": str(folder),
        "settings": dict(settings),
        "test_accuracy": last.test_accuracy,
        "test_loss": last.test_loss,
        "monitor": result.monitor,
        "best_epoch": result.best_epoch,
        "best_epoch_test_accuracy": best.test_accuracy,
        "stopped_early": result.stopped_early,
        "steps": result.steps,
        "epochs": [dataclasses.asdict(record) for record in result.epochs],
    }


def _last_line(summary: Mapping[str, Any], result: loop.TrainingResult, settings: Mapping[str, Any]) -> str:
    done = len(result.epochs)
    if result.steps == 0:
        state = f"finished already: {done} epochs are done, {settings['epochs']} were asked for"
        state += ", patience ended it" if result.stopped_early else "; a larger --epochs goes on"
    elif result.stopped_early:
        state = f"stopped early after {done} epochs"
    else:
        state = f"{done} epochs done"
    return (
        f"{state}. Test accuracy {summary['test_accuracy']:.2%}; best by {result.monitor} is epoch "
        f"{result.best_epoch} with {summary['best_epoch_test_accuracy']:.2%}. Saved in {summary['run_dir']}"
    )


def _how_to_resume(interrupt: KeyboardInterrupt, stage: str, folder: Path) -> str:
    if not (folder / LAST).exists():
        return "interrupted before anything was saved"
    place = ""
    if isinstance(interrupt, loop.TrainingInterrupted):
        place = f"saved epoch {interrupt.epoch}, step {interrupt.step}; "
    return f"interrupted: {place}resume with: groundup train {stage} --resume {shlex.quote(str(folder))}"
