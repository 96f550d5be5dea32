"""What `groundup look` does: a look inside the network of a checkpoint, whichever stage trained it.

look        everything: find the checkpoint, ask its network about the test images, save the figures
findings    the numbers that the figures show
lines       the same as text
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from groundup import inside
from groundup.inside_layers import Layered, filter_images, layer_maps
from shared.architectures import Architecture
from shared.charts.figures.architecture import TITLES
from shared.charts.figures.inside import Findings, confused, save_all
from shared.contract import STAGE_TITLES, load_stage
from shared.data.datasets import SIDE, Dataset, Split, load_dataset
from shared.data.normalisation import Normalisation
from shared.numbers import percent, plural
from shared.training.checkpoints import Checkpoint, CheckpointError, build_network, load_checkpoint
from shared.training.metrics import EpochRecord, evaluate, read_metrics
from shared.training.runs import LAST, METRICS

DIGITS = tuple("0123456789")
CLOTHES = ("T-shirt", "trousers", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "boot")
NAMES = {"mnist": DIGITS, "mnist-subset": DIGITS, "fashion-mnist": CLOTHES}

AT_A_TIME = 1000
"""Images in one forward pass; this bounds the memory."""


def look(run: Path, out: Path | None, count: int, data_dir: Path | None) -> tuple[dict[str, Any], Findings]:
    """Look inside the network of a run and save the figures. Returns the document for --json, and the findings.

    run: a run's folder or one of its checkpoints; out: folder of the figures, None for `look` beside the checkpoint
    count: number of mistakes to show; data_dir: folder of the data set, None for the one that was trained on
    Raises CheckpointError, a ValueError, if there is no checkpoint of `groundup train` for images.
    """
    checkpoint = _checkpoint(run)
    settings = _settings(checkpoint)
    data = load_dataset(settings["dataset"], data_dir or settings["data_dir"])
    _check_fit(checkpoint, data)
    records = _records(checkpoint.path.parent / METRICS)
    learned = _as_learned(checkpoint, data)
    found = findings(checkpoint, data, records, count, learned)
    stage = load_stage("numpy")
    loss, _, _ = evaluate(stage, build_network(stage, checkpoint), learned.test)
    folder = out or checkpoint.path.parent / "look"
    files = save_all(found, folder)
    return _document(checkpoint, found, loss, folder, files), found


def _as_learned(checkpoint: Checkpoint, data: Dataset) -> Dataset:
    """The data set as the network learned from it: normalised, if the run did that."""
    normalisation = Normalisation.from_notes(_settings(checkpoint))
    return data if normalisation is None else normalisation.dataset(data)


def findings(
    checkpoint: Checkpoint, data: Dataset, records: list[EpochRecord], count: int, learned: Dataset | None = None
) -> Findings:
    """The numbers that the figures show, of a checkpoint's network and the test images.

    count: number of mistakes; learned: the data set as the network learned from it, None for `data` itself
    """
    learned = learned or data
    if checkpoint.architecture is not None:
        return _layered_findings(checkpoint, checkpoint.architecture, data, learned.test, records, count)
    parameters, activation, test = checkpoint.parameters, checkpoint.activation, learned.test
    dtype = parameters[0].dtype
    predictions, beliefs = _answers(parameters, activation, test, dtype)
    wrong = inside.most_wrong(beliefs, test.y, count)
    seen = test.x[wrong].astype(dtype)
    labels, taken_for = test.y[wrong], predictions[wrong]
    pull = np.zeros_like(seen)
    if len(wrong):
        pull = inside.saliency(parameters, activation, seen, taken_for)
        pull = pull - inside.saliency(parameters, activation, seen, labels)
    shape = (SIDE, SIDE)
    return Findings(
        network=f"{'-'.join(map(str, checkpoint.layer_sizes))} {activation}",
        loss=checkpoint.loss,
        trained=f"{_how_long(checkpoint)} of {data.name} by {STAGE_TITLES[checkpoint.stage]}",
        dataset=data.name,
        names=NAMES[data.name],
        unit_images=inside.first_layer_images(parameters[0], shape),
        unit_sizes=np.linalg.norm(parameters[0], axis=0),
        confusion=inside.confusion_matrix(test.y, predictions, data.classes),
        wrong=wrong,
        images=data.test.x[wrong].reshape(-1, *shape),
        labels=labels,
        predictions=taken_for,
        confidence=beliefs[wrong, taken_for],
        pull=pull.reshape(-1, *shape),
        activity=_activity(parameters, test, dtype) if activation == "relu" else [],
        records=records,
    )


def _layered_findings(
    checkpoint: Checkpoint,
    architecture: Architecture,
    data: Dataset,
    test: Split,
    records: list[EpochRecord],
    count: int,
) -> Findings:
    """The same for a convolutional network. test: the test images as the network learned from them."""
    network = Layered(checkpoint, architecture)
    beliefs = inside.probabilities(network.scores(test.x))
    predictions = beliefs.argmax(axis=1)
    wrong = inside.most_wrong(beliefs, test.y, count)
    labels, taken_for = test.y[wrong], predictions[wrong]
    pull = network.saliency(test.x[wrong], taken_for, labels) if len(wrong) else np.zeros((0, SIDE * SIDE))
    weights, shape = checkpoint.parameters[0], (SIDE, SIDE)
    convolves = weights.ndim == 4
    shown = int(wrong[0]) if len(wrong) else 0
    model = checkpoint.about_run.get("notes", {}).get("model")
    return Findings(
        network=TITLES.get(model) or plural(len(architecture.layers), "layer"),
        loss=checkpoint.loss,
        trained=f"{_how_long(checkpoint)} of {data.name} by {STAGE_TITLES[checkpoint.stage]}",
        dataset=data.name,
        names=NAMES[data.name],
        unit_images=filter_images(weights) if convolves else inside.first_layer_images(weights, shape),
        unit_sizes=np.sqrt(np.sum(weights**2, axis=(1, 2, 3) if convolves else 0)),
        confusion=inside.confusion_matrix(test.y, predictions, data.classes),
        wrong=wrong,
        images=data.test.x[wrong].reshape(-1, *shape),
        labels=labels,
        predictions=taken_for,
        confidence=beliefs[wrong, taken_for],
        pull=pull.reshape(-1, *shape),
        activity=network.activity(test.x),
        records=records,
        what="filter" if convolves else "unit",
        maps=layer_maps(network, test.x[shown], data.test.x[shown].reshape(shape)),
        mapped=(int(test.y[shown]), beliefs[shown].tolist()),
    )


def _answers(parameters: list[np.ndarray], activation: str, test: Split, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """(predictions (n,), probabilities (n, classes)) for all test images."""
    parts = [test.x[start : start + AT_A_TIME].astype(dtype) for start in range(0, len(test), AT_A_TIME)]
    beliefs = np.concatenate([inside.probabilities(inside.scores(parameters, activation, part)) for part in parts])
    return beliefs.argmax(axis=1), beliefs


def _activity(parameters: list[np.ndarray], test: Split, dtype: Any) -> list[np.ndarray]:
    """For each hidden layer the share of test images for which each unit is not 0."""
    return [
        inside.active_shares(outputs)
        for outputs in inside.hidden_activations(parameters, "relu", test.x.astype(dtype, copy=False))
    ]


def _checkpoint(run: Path) -> Checkpoint:
    """The last checkpoint of a folder, or the checkpoint that is this file."""
    if not run.exists():
        raise CheckpointError(f"there is no {run}; name the folder of a run, such as runs/stage2_numpy")
    if run.is_dir() and not (run / LAST).is_file():
        raise CheckpointError(
            f"{run} holds no run: there is no {LAST} in it. `groundup train numpy --run-dir {run}` would make one"
        )
    return load_checkpoint(run / LAST if run.is_dir() else run)


def _settings(checkpoint: Checkpoint) -> Mapping[str, Any]:
    """The settings of the run that wrote the checkpoint, which name the data set."""
    settings: Mapping[str, Any] = checkpoint.about_run.get("notes", {})
    if settings.get("dataset") not in NAMES or "data_dir" not in settings:
        raise CheckpointError(
            f"{checkpoint.path} was not written by groundup train: it does not say which images it was trained on. "
            'A run from Python says so by Saving(..., notes={"dataset": "mnist-subset", "data_dir": None})'
        )
    return settings


def _check_fit(checkpoint: Checkpoint, data: Dataset) -> None:
    sizes = checkpoint.layer_sizes
    if sizes[0] != SIDE * SIDE or sizes[-1] != data.classes:
        raise CheckpointError(
            f"{checkpoint.path} holds a network from {sizes[0]} inputs to {sizes[-1]} outputs, but {data.name} has "
            f"images of {SIDE} by {SIDE} pixels in {data.classes} classes"
        )


def _records(path: Path) -> list[EpochRecord]:
    """The run's epochs; none without the file, as for a checkpoint that was copied out of its folder."""
    if not path.is_file():
        return []
    try:
        return read_metrics(path)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} is damaged: it does not hold one epoch a line ({error})") from error


def _how_long(checkpoint: Checkpoint) -> str:
    """How long the network was trained: '10 epochs', '2 epochs and 31 steps', 'no epoch'."""
    if "record" in checkpoint.about_run:
        epochs, steps = checkpoint.about_run["record"]["epoch"], 0
    else:
        position = checkpoint.about_run["position"]
        epochs, steps = position["epoch"], position["step"]
    parts = [plural(number, unit) for number, unit in ((epochs, "epoch"), (steps, "step")) if number]
    return " and ".join(parts) or "no epoch"


def _document(checkpoint: Checkpoint, found: Findings, loss: float, folder: Path, files: list[Path]) -> dict[str, Any]:
    return {
        "checkpoint": str(checkpoint.path),
        "stage": checkpoint.stage,
        "network": found.network,
        "trained": found.trained,
        "dataset": found.dataset,
        "test_images": found.tested,
        "test_accuracy": found.right / found.tested,
        "test_loss": loss,
        "classes": list(found.names),
        "confusion": found.confusion.tolist(),
        "dead_units": [{"units": len(each), "dead": int(np.sum(each == 0))} for each in found.activity],
        "most_wrong": [
            {"image": int(image), "label": int(label), "predicted": int(predicted), "confidence": float(confidence)}
            for image, label, predicted, confidence in zip(
                found.wrong, found.labels, found.predictions, found.confidence, strict=True
            )
        ],
        "folder": str(folder),
        "files": [path.name for path in files],
    }


def lines(document: Mapping[str, Any], found: Findings) -> list[str]:
    """The document as lines of text."""
    names = found.names
    lines = [
        f"{found.network}, {found.trained} ({document['checkpoint']})",
        f"test accuracy {percent(document['test_accuracy'])}, loss {document['test_loss']:.4f}: "
        f"{found.tested - found.right:,} of {found.tested:,} images wrong",
    ]
    pairs = [
        f"{names[row]} taken for {names[column]} ({number})" for row, column, number in confused(found.confusion, 3)
    ]
    if pairs:
        first = document["most_wrong"][0]
        lines += [
            f"most often confused: {', '.join(pairs)}",
            f"surest mistake: test image {first['image']}, {names[first['label']]} taken for "
            f"{names[first['predicted']]} with {100 * first['confidence']:.2f} %",
        ]
    layers = [f"layer {i}: {each['dead']} of {each['units']}" for i, each in enumerate(document["dead_units"], start=1)]
    if layers:
        lines.append(f"dead units, {', '.join(layers)}")
    drawn = dict.fromkeys(Path(name).stem.removesuffix("-dark") for name in document["files"])
    lines.append(f"figures in {document['folder']}, each as .png, .svg, -dark.png and -dark.svg: {', '.join(drawn)}")
    return lines
