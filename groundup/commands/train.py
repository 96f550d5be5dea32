"""`groundup train`: train one stage on real data, stop at any time, and go on later."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from groundup import ranks as processes
from groundup import train as training
from groundup.commands import train_options as options
from groundup.course.learners_stage import announcement, place_in, prepare, put_in_place
from shared import contract
from shared.communicator import Communicator
from shared.data.datasets import Dataset, place_of
from shared.machine.environment import environment
from shared.machine.results import as_json
from shared.numbers import plural
from shared.terminal import say
from shared.training.loop import TrainingInterrupted, TrainingResult
from shared.training.metrics import EpochRecord
from shared.training.runs import LAST
from shared.training.settings import Hooks


def train(
    context: typer.Context,
    stage: Annotated[str, typer.Argument(help="stage1_pure_python, stage2_numpy, or just 1, 2, numpy, …")],
    dataset: options.DatasetName = None,
    data_dir: options.DataDir = None,
    download: options.Download = None,
    colour: options.Colour = None,
    resize: options.Resize = None,
    normalise: options.Normalise = None,
    augment_shift: options.AugmentShift = None,
    augment_rotation: options.AugmentRotation = None,
    model: options.Model = None,
    hidden: options.Hidden = None,
    activation: options.Activation = None,
    loss: options.Loss = None,
    initializer: options.Initializer = None,
    dtype: options.Dtype = None,
    optimizer: options.OptimizerName = None,
    learning_rate: options.LearningRate = None,
    momentum: options.Momentum = None,
    nesterov: options.Nesterov = None,
    weight_decay: options.WeightDecay = None,
    epochs: options.Epochs = None,
    batch_size: options.BatchSize = None,
    schedule: options.ScheduleName = None,
    warmup_epochs: options.WarmupEpochs = None,
    step_epochs: options.StepEpochs = None,
    gamma: options.Gamma = None,
    dropout: options.Dropout = None,
    validation: options.Validation = None,
    patience: options.Patience = None,
    monitor: options.Monitor = None,
    seed: options.Seed = None,
    checkpoint_every: options.CheckpointEvery = None,
    run_dir: Annotated[
        Path | None, typer.Option(help="Folder for checkpoints and metrics.", show_default="runs/STAGE")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="RUN_DIR", help="Continue the run in this folder, with its settings.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run that is in the folder.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only the last line.")] = False,
    live: Annotated[
        bool, typer.Option("--live", help="Watch loss, accuracy and every layer's gradients while it trains.")
    ] = False,
    mine: options.Mine = None,
    ranks: options.Ranks = None,
    accumulate: options.Accumulate = None,
    local_statistics: options.LocalStatistics = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout instead of text.")] = False,
) -> None:
    """Train one stage, with checkpoints and metrics.

    Ctrl-C saves the run, and --resume continues it.

    \b
    Examples:
      groundup train numpy
      groundup train numpy --dataset fashion-mnist --optimizer adam
      groundup train numpy --validation 0.1 --patience 3 --run-dir runs/mine
      groundup train numpy --resume runs/mine
      groundup train numpy --live --epochs 50
      groundup train numpy --dataset photos --resize 32
      groundup train c --model lenet5
      groundup train numpy --mine
      groundup train c --model lenet5 --batch-size 256 --ranks 2
    """
    if live and (quiet or json):
        raise ValueError(f"--live and {'--json' if json else '--quiet'} exclude each other: choose one of them")
    if resume is not None and (overwrite or (run_dir is not None and run_dir != resume)):
        raise ValueError("--resume goes on in its own folder: leave out --run-dir and --overwrite")
    name = contract.stage_name(stage)
    flags = {option: context.params[option] for option in training.DEFAULTS if context.params[option] is not None}
    if dataset is not None:
        flags["dataset"] = place_of(dataset)
    if data_dir is not None:
        flags["data_dir"] = str(data_dir)
    folder = resume or run_dir or Path("runs") / name
    if (ranks or 1) > 1 and not processes.started():
        resumed = f"groundup train {name} --resume {shlex.quote(str(folder))} --ranks {ranks}"
        raise typer.Exit(processes.launch(ranks or 1, context.obj, folder, resumed))
    others = processes.connected(ranks)
    with processes.quiet_but_first(others):
        _train(stage, flags, folder, resume is not None, overwrite, quiet or json, live, json, others)


def _train(
    stage: str,
    flags: dict[str, Any],
    folder: Path,
    resume: bool,
    overwrite: bool,
    silent: bool,
    live: bool,
    json: bool,
    ranks: Communicator,
) -> None:
    """Train, as one of these ranks, and print how it goes and how it ended."""
    name = contract.stage_name(stage)
    settings = ranks.from_first(
        lambda: training.resumed_settings(folder, flags) if resume else training.new_settings(name, flags)
    )
    asked = training.Training.of(settings, folder, resume, overwrite)
    learner, assembled = put_in_place(stage) if settings["mine"] else ([], None)
    try:
        chosen = contract.load_stage(stage)
        if learner:
            told = announcement(learner, prepare(chosen, learner))
            if ranks.rank == 0:
                say(told, err=True)
        silent = silent or ranks.rank > 0
        result = training.run(chosen, asked, partial(_lines, chosen, settings, silent), live and not ranks.rank, ranks)
    except KeyboardInterrupt as interrupt:
        if ranks.rank == 0:
            say(_how_to_resume(interrupt, name, folder), err=True)
        raise typer.Exit(2) from None
    except Exception as error:  # an error in the learner's own code is shown with its place and without our traceback
        place = place_in(assembled, error) if assembled else ""
        if not place or assembled is None:
            raise
        sentence = getattr(error, "sentence", "") or assembled.told(str(error))  # a KernelError's message has its place
        say(f"error: {type(error).__name__}: {sentence}, at {place}, in your own file", err=True)
        raise typer.Exit(1) from None
    summary = _summary(chosen.name, settings, folder, result, ranks.size)
    summary["mine"] = [task.id for task in learner]
    say(as_json(summary).rstrip() if json else _last_line(summary, result, settings))


def _lines(
    stage: contract.Stage, settings: Mapping[str, Any], silent: bool, network: contract.NetworkLike, data: Dataset
) -> Hooks:
    """The hooks that print the heading and a line an epoch; none if silent."""
    if silent:
        return Hooks()
    return Hooks(on_start=partial(_print_heading, stage, network, settings, data), on_epoch=_print_epoch)


def _print_heading(
    stage: contract.Stage, network: contract.NetworkLike, settings: Mapping[str, Any], data: Dataset
) -> None:
    say(
        f"{stage.title}, {_named(network, settings)}, {network.loss_name}, {settings['optimizer']}; "
        f"{data.name}: {len(data.train)} training and {len(data.test)} test samples"
    )
    if told := getattr(network, "told", ""):  # a stage with a choice between ways to take a step
        say(told)
    say("epoch     loss  train %  valid %   test %  seconds samples/s")  # fits 60 columns


def _named(network: contract.NetworkLike, settings: Mapping[str, Any]) -> str:
    """The network in the heading: '784-128-10 relu', or 'lenet5 (61,706 parameters)'."""
    stack = network.architecture.as_mlp()
    return stack.title if stack else f"{settings['model']} ({network.architecture.parameter_count:,} parameters)"


def _print_epoch(record: EpochRecord) -> None:
    accuracies = (record.train_accuracy, record.validation_accuracy, record.test_accuracy)
    columns = "".join(f"{'-' if value is None else f'{100 * value:.2f}':>9}" for value in accuracies)
    # typer.echo would bypass the sys.stdout that rich puts in place while a bar or the live view is shown.
    print(
        f"{record.epoch:5}{record.train_loss:9.4f}{columns}{record.seconds:9.2f}{record.samples_per_second:10,.0f}",
        flush=True,
    )


def _summary(
    stage: str, settings: Mapping[str, Any], folder: Path, result: TrainingResult, ranks: int
) -> dict[str, Any]:
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
        "ranks": ranks,
        "communication": result.communication,
        "epochs": [dataclasses.asdict(record) for record in result.epochs],
    }


def _last_line(summary: Mapping[str, Any], result: TrainingResult, settings: Mapping[str, Any]) -> str:
    done = len(result.epochs)
    if result.steps == 0:
        state = f"finished already: {plural(done, 'epoch')} of {settings['epochs']}"
        if result.stopped_early:
            state += ", patience ended it"
        elif settings["schedule"] == "cosine":
            state += "; the cosine schedule ends there, so for more epochs start a new run in another folder"
        else:
            state += "; a larger --epochs goes on"
    elif result.stopped_early:
        state = f"stopped early after {plural(done, 'epoch')}"
    else:
        state = f"{plural(done, 'epoch')} done"
    if result.communication is not None:
        state += f" on {summary['ranks']} ranks, {result.communication:.0%} of the steps' time in communication"
    return (
        f"{state}. Test accuracy {summary['test_accuracy']:.2%}; best by {result.monitor} is epoch "
        f"{result.best_epoch} with {summary['best_epoch_test_accuracy']:.2%}. Saved in {summary['run_dir']}"
    )


def _how_to_resume(interrupt: KeyboardInterrupt, stage: str, folder: Path) -> str:
    if not (folder / LAST).exists():
        return "interrupted before anything was saved"
    place = ""
    if isinstance(interrupt, TrainingInterrupted):
        place = f"saved epoch {interrupt.epoch}, step {interrupt.step}; "
    return f"interrupted: {place}resume with: groundup train {stage} --resume {shlex.quote(str(folder))}"
