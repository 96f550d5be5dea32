"""What `groundup look` does: a look inside the network of a checkpoint, whichever stage trained it.

look        everything: find the checkpoint, ask its network about the test images, save the figures
findings    the numbers that the figures show
lines       the same as text
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from groundup import inside
from groundup.inside_layers import Layered, filter_images, layer_maps
from groundup.trained import as_learned, beliefs, how_long, load_data, open_checkpoint
from shared.charts.figures.activation_maps import LayerMaps
from shared.charts.figures.architecture import TITLES
from shared.charts.figures.inside import Findings, charts, confused, save_all
from shared.charts.report import page
from shared.charts.report.page_figures import figures
from shared.contract import STAGE_TITLES, load_stage
from shared.data.datasets import Dataset, Split
from shared.layers import Shape
from shared.machine.atomic import write_atomically
from shared.machine.results import results_folder
from shared.markup import tag
from shared.numbers import percent, plural
from shared.training.checkpoints import Checkpoint, build_network
from shared.training.metrics import EpochRecord, evaluate, read_metrics
from shared.training.runs import METRICS

PAGE = "look.html"
"""The page with all figures."""


def look(
    run: Path, out: Path | None, count: int, data_dir: Path | None, png: bool = False
) -> tuple[dict[str, Any], Findings]:
    """Look inside the network of a run and save a page with all figures, or the figures as files of their own.

    Returns the document for --json, and the findings.
    run: a run's folder or one of its checkpoints; out: folder of the page, None for `look` beside the checkpoint
    count: number of mistakes to show; data_dir: folder of the data set, None for the one that was trained on
    png: whether each figure becomes files, as PNG and SVG, light and dark
    Raises CheckpointError, a ValueError, if there is no checkpoint of `groundup train` for images.
    """
    checkpoint = open_checkpoint(run)
    data = load_data(checkpoint, data_dir)
    folder = results_folder(out or _own_folder(checkpoint.path.parent))
    records = _records(checkpoint.path.parent / METRICS)
    learned = as_learned(checkpoint, data)
    results = findings(checkpoint, data, records, count, learned)
    stage = load_stage("numpy")
    loss, _, _ = evaluate(stage, build_network(stage, checkpoint), learned.test)
    files = save_all(results, folder) if png else [folder / PAGE]
    document = _document(checkpoint, results, loss, folder, files)
    if not png:
        write_page(document, results, folder / PAGE)
    return document, results


def write_page(document: Mapping[str, Any], results: Findings, path: Path) -> None:
    """One page with what `lines` says and every figure. It needs no network and no other file."""
    first, *rest = lines(document, results)[:-1]
    head = tag("header", tag("h1", "What has the network learned?"), tag("p", first, class_="quiet"))
    told = tag("ul", *(tag("li", line) for line in rest))
    body = tag("main", head, told, figures(charts(results)))
    write_atomically(path, page.document(f"groundup look: {results.network}", body).encode())


def _own_folder(run: Path) -> Path:
    """The folder `look` of a run. Raises OSError for a link, which would have the figures written somewhere else: the
    run may be a stranger's."""
    folder = run / "look"
    if folder.is_symlink():
        raise OSError(f"{folder} is a link to {os.readlink(folder)}: name the folder of the figures with --out")
    return folder


def findings(
    checkpoint: Checkpoint, data: Dataset, records: list[EpochRecord], count: int, learned: Dataset | None = None
) -> Findings:
    """The numbers that the figures show, of a checkpoint's network and the test images.

    count: number of mistakes; learned: the data set as the network learned from it, None for `data` itself
    """
    learned = learned or data
    stack = checkpoint.architecture.as_mlp()
    if stack is None:
        return _layered_findings(checkpoint, data, learned.test, records, count)
    parameters, activation, test = checkpoint.parameters, stack.activation, learned.test
    dtype = parameters[0].dtype
    answers = beliefs(checkpoint, test.x)
    predictions, wrong = answers.argmax(axis=1), inside.most_wrong(answers, test.y, count)
    seen, form = test.x[wrong].astype(dtype), data.described
    labels, taken_for = test.y[wrong], predictions[wrong]
    pull = np.zeros_like(seen)
    if len(wrong):
        pull = inside.saliency(parameters, activation, seen, taken_for)
        pull = pull - inside.saliency(parameters, activation, seen, labels)
    return Findings(
        network=stack.title,
        loss=checkpoint.loss,
        trained=f"{how_long(checkpoint)} of {data.name} by {STAGE_TITLES[checkpoint.stage]}",
        dataset=data.name,
        names=form.names,
        unit_images=inside.first_layer_images(parameters[0], form.shape),
        unit_sizes=np.linalg.norm(parameters[0], axis=0),
        confusion=inside.confusion_matrix(test.y, predictions, data.classes),
        wrong=wrong,
        images=_as_shown(data.test.x[wrong], form.shape),
        labels=labels,
        predictions=taken_for,
        confidence=answers[wrong, taken_for],
        pull=pull.reshape(-1, *form.shape).sum(axis=1),
        activity=_activity(parameters, test, dtype) if activation == "relu" else [],
        records=records,
    )


def _layered_findings(
    checkpoint: Checkpoint,
    data: Dataset,
    test: Split,
    records: list[EpochRecord],
    count: int,
) -> Findings:
    """What the figures show of a convolutional network. test: the test images as the network learned from them."""
    architecture = checkpoint.architecture
    network = Layered(checkpoint, architecture)
    answers = beliefs(checkpoint, test.x)
    predictions, wrong = answers.argmax(axis=1), inside.most_wrong(answers, test.y, count)
    labels, taken_for = test.y[wrong], predictions[wrong]
    pull = network.saliency(test.x[wrong], taken_for, labels) if len(wrong) else np.zeros_like(test.x[:0])
    weights, form = checkpoint.parameters[0], data.described
    convolves = weights.ndim == 4
    shown = int(wrong[0]) if len(wrong) else 0
    model = checkpoint.about_run.get("notes", {}).get("model")
    return Findings(
        network=TITLES.get(model) or plural(len(architecture.layers), "layer"),
        loss=checkpoint.loss,
        trained=f"{how_long(checkpoint)} of {data.name} by {STAGE_TITLES[checkpoint.stage]}",
        dataset=data.name,
        names=form.names,
        unit_images=filter_images(weights) if convolves else inside.first_layer_images(weights, form.shape),
        unit_sizes=np.sqrt(np.sum(weights**2, axis=(1, 2, 3) if convolves else 0)),
        confusion=inside.confusion_matrix(test.y, predictions, data.classes),
        wrong=wrong,
        images=_as_shown(data.test.x[wrong], form.shape),
        labels=labels,
        predictions=taken_for,
        confidence=answers[wrong, taken_for],
        pull=pull.reshape(-1, *form.shape).sum(axis=1),
        activity=network.activity(test.x),
        records=records,
        what="filter" if convolves else "unit",
        maps=_maps(network, test.x[shown], data.test.x[shown].reshape(form.shape), int(predictions[shown]), form.names),
        mapped=(int(test.y[shown]), answers[shown].tolist()),
    )


def _maps(network: Layered, x: np.ndarray, image: np.ndarray, said: int, names: Sequence[str]) -> list[LayerMaps]:
    """What each layer makes of an image, and before the scores where its last maps speak for the class that is said."""
    *layers, scores = layer_maps(network, x, image)
    evidence = network.evidence(x[np.newaxis], np.array([said]))
    if evidence is not None:
        speaks = "what" if evidence.any() else "nothing"
        layers.append(LayerMaps(f"Grad-CAM: {speaks} in the last maps speaks for {names[said]}", evidence, False))
    return [*layers, scores]


def _as_shown(x: np.ndarray, shape: Shape) -> np.ndarray:
    """Images as they are drawn: (n, height, width), or (n, height, width, 3) in colour."""
    images = x.reshape(-1, *shape).transpose(0, 2, 3, 1)
    return images[..., 0] if shape[0] == 1 else images


def _activity(parameters: list[np.ndarray], test: Split, dtype: Any) -> list[np.ndarray]:
    """For each hidden layer the share of test images for which each unit is not 0."""
    return [
        inside.active_shares(outputs)
        for outputs in inside.hidden_activations(parameters, "relu", test.x.astype(dtype, copy=False))
    ]


def _records(path: Path) -> list[EpochRecord]:
    """The run's epochs; none without the file, as for a checkpoint that was copied out of its folder."""
    if not path.is_file():
        return []
    try:
        return read_metrics(path)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} is damaged: it does not hold one epoch a line ({error})") from error


def _document(checkpoint: Checkpoint, facts: Findings, loss: float, folder: Path, files: list[Path]) -> dict[str, Any]:
    return {
        "checkpoint": str(checkpoint.path),
        "stage": checkpoint.stage,
        "network": facts.network,
        "trained": facts.trained,
        "dataset": facts.dataset,
        "test_images": facts.tested,
        "test_accuracy": facts.right / facts.tested,
        "test_loss": loss,
        "classes": list(facts.names),
        "confusion": facts.confusion.tolist(),
        "by_class": [
            {"class": name, "images": int(row.sum()), "right": int(row[label])}
            for label, (name, row) in enumerate(zip(facts.names, facts.confusion, strict=True))
        ],
        "dead_units": [{"units": len(layer), "dead": int(np.sum(layer == 0))} for layer in facts.activity],
        "most_wrong": [
            {"image": int(image), "label": int(label), "predicted": int(predicted), "confidence": float(confidence)}
            for image, label, predicted, confidence in zip(
                facts.wrong, facts.labels, facts.predictions, facts.confidence, strict=True
            )
        ],
        "folder": str(folder),
        "files": [path.name for path in files],
    }


def _right(of_class: Mapping[str, Any]) -> str:
    """'19 of 20', or that there was nothing to be right about."""
    return f"{of_class['right']} of {of_class['images']}" if of_class["images"] else "no test image"


def lines(document: Mapping[str, Any], facts: Findings) -> list[str]:
    """The document as lines of text."""
    names = facts.names
    lines = [
        f"{facts.network}, {facts.trained} ({document['checkpoint']})",
        f"test accuracy {percent(document['test_accuracy'])}, loss {document['test_loss']:.4f}: "
        f"{facts.tested - facts.right:,} of {facts.tested:,} images wrong",
    ]
    classes = [f"{entry['class']} {_right(entry)}" for entry in document["by_class"]]
    lines.append(f"right, class by class: {', '.join(classes)}")
    pairs = [
        f"{names[row]} taken for {names[column]} ({number})" for row, column, number in confused(facts.confusion, 3)
    ]
    if pairs:
        first = document["most_wrong"][0]
        lines += [
            f"most often confused: {', '.join(pairs)}",
            f"surest mistake: test image {first['image']}, {names[first['label']]} taken for "
            f"{names[first['predicted']]} with {100 * first['confidence']:.2f} %",
        ]
    layers = [f"layer {i}: {row['dead']} of {row['units']}" for i, row in enumerate(document["dead_units"], start=1)]
    if layers:
        lines.append(f"dead units, {', '.join(layers)}")
    if document["files"] == [PAGE]:
        lines.append(f"all figures: {Path(document['folder']) / PAGE}")
        return lines
    drawn = dict.fromkeys(Path(name).stem.removesuffix("-dark") for name in document["files"])
    lines.append(f"figures in {document['folder']}, each as .png, .svg, -dark.png and -dark.svg: {', '.join(drawn)}")
    return lines
