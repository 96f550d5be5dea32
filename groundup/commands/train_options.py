"""The options of `groundup train` that are settings of the run; each one's default is in `groundup.train.DEFAULTS`.

An option that is left out is None: a new run takes the default, and a resumed run keeps its setting.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from groundup.recipes import RECIPES, described
from shared import contract
from shared.training.settings import MONITORS

OF_DATASET = "mnist-subset, mnist, fashion-mnist; or your own: a folder of images or an .npz file."
OF_COLOUR = "Keep red, green and blue of your own images, which become grey else."
OF_RESIZE = "Bring your own images to one size, like 28, or height x width like 24x16."

DatasetName = Annotated[str | None, typer.Option(help=OF_DATASET, show_default="mnist-subset")]
Colour = Annotated[bool | None, typer.Option("--colour", help=OF_COLOUR)]
Resize = Annotated[str | None, typer.Option(help=OF_RESIZE, show_default="as they are")]
DataDir = Annotated[Path | None, typer.Option(help="Folder with the IDX files of a full data set.")]
Download = Annotated[bool | None, typer.Option("--download", help="Download a full data set if it is missing.")]

Normalise = Annotated[
    bool | None,
    typer.Option(
        "--normalise/--no-normalise",
        help="Scale all images to mean 0 and deviation 1 of the training images.",
        show_default="no; a model has its own",
    ),
]
AugmentShift = Annotated[
    int | None,
    typer.Option(help="Shift each training image by at most this many pixels.", show_default="0; a model has its own"),
]
AugmentRotation = Annotated[
    float | None,
    typer.Option(
        help="Rotate each training image by at most this many degrees.", show_default="0; a model has its own"
    ),
]

Model = Annotated[
    str | None,
    typer.Option(
        help="A known network in place of hidden layers, with its own defaults. "
        + "; ".join(f"{name}: {described(name)}" for name in RECIPES)
        + ". On stage 1 one epoch.",
        show_default="none",
    ),
]
Hidden = Annotated[
    str | None,
    typer.Option(help="Hidden layer sizes, like 128,64, or none.", show_default="128; 32 on stage 1"),
]
Activation = Annotated[str | None, typer.Option(help=f"{', '.join(contract.ACTIVATIONS)}.", show_default="relu")]
Loss = Annotated[str | None, typer.Option(help=f"{', '.join(contract.LOSSES)}.", show_default="softmax_cross_entropy")]
Initializer = Annotated[
    str | None, typer.Option(help="How the first weights are drawn: he, xavier, …", show_default="he")
]
Dtype = Annotated[str | None, typer.Option(help="float32 or float64.", show_default="float32")]

OptimizerName = Annotated[str | None, typer.Option(help="sgd, rmsprop or adam.", show_default="sgd")]
LearningRate = Annotated[
    float | None, typer.Option(help="The highest learning rate of the schedule.", show_default="sgd 0.1, others 0.001")
]
Momentum = Annotated[float | None, typer.Option(help="Momentum, for sgd.", show_default="0")]
Nesterov = Annotated[bool | None, typer.Option("--nesterov", help="Nesterov's momentum, for sgd.")]
WeightDecay = Annotated[
    float | None, typer.Option(help="How strongly each step moves the weights towards 0.", show_default="0")
]

Epochs = Annotated[int | None, typer.Option(help="Passes over the training data.", show_default="10; 3 on stage 1")]
BatchSize = Annotated[int | None, typer.Option(help="Samples in a training step.", show_default="64")]
ScheduleName = Annotated[
    str | None, typer.Option(help="constant, step, exponential or cosine.", show_default="constant")
]
WarmupEpochs = Annotated[
    float | None, typer.Option(help="Epochs in which the learning rate rises to its base.", show_default="0")
]
StepEpochs = Annotated[
    float | None, typer.Option(help="Epochs between the drops of --schedule step.", show_default="3")
]
Gamma = Annotated[
    float | None,
    typer.Option(help="Factor of the step and exponential schedules.", show_default="step 0.5, exponential 0.9"),
]
Dropout = Annotated[float | None, typer.Option(help="Probability of dropping a hidden neuron.", show_default="0")]
Validation = Annotated[
    float | None,
    typer.Option(help="Fraction of the training data that is kept to choose the best epoch.", show_default="0"),
]
Patience = Annotated[
    int | None, typer.Option(help="Stop after this many epochs without improvement; needs --validation.")
]
Monitor = Annotated[
    str | None,
    typer.Option(
        help=f"The number that decides which epoch is best: {', '.join(MONITORS)}.",
        show_default="validation_loss, without --validation train_loss",
    ),
]
Seed = Annotated[
    int | None, typer.Option(help="Seed of weights, batch order, split, dropout and augmentation.", show_default="0")
]

CheckpointEvery = Annotated[
    int | None, typer.Option(help="Also save after this many steps, and not only after each epoch.")
]
Mine = Annotated[
    bool | None, typer.Option("--mine", help="Use all functions that you wrote in the course and that pass.")
]
Ranks = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Train on so many processes, which share each batch; needs the extra mpi. "
        "mpiexec -n 4 groundup train … is the same, also over several machines.",
        show_default="1",
    ),
]
Accumulate = Annotated[
    int | None,
    typer.Option(
        help="Compute each batch in so many parts, one after the other, for batches larger than memory.",
        show_default="1",
    ),
]
LocalStatistics = Annotated[
    bool | None,
    typer.Option("--local-statistics", help="Batch normalisation of each rank by its own rows, without waiting."),
]
