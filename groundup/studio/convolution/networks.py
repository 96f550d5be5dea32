"""The networks that can be looked into: known ones, and every convolutional run of the page Digits.

LeNet-5 and a small residual network ship trained. The two others are too large to ship; they stand there as they are
before a training, with random weights, until a run of theirs is chosen.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from groundup.studio.digits import networks as digits
from groundup.studio.digits.networks import Trained
from shared.architectures import NAMED, Architecture
from shared.charts.figures.architecture import TITLES
from shared.contract import load_stage
from shared.layers import Conv
from shared.training.checkpoint_header import readable_architecture
from shared.training.checkpoints import CheckpointError, read_about

SHIPPED, SMALL = "/lenet5", "/small_residual_cnn"
"""The names of the networks that ship. No run has them: a run's name begins with no slash."""

FILES = {name: Path(__file__).with_name(f"{name[1:]}.safetensors") for name in (SHIPPED, SMALL)}

UNTRAINED = {f"/{name}": name for name in NAMED if name != "lenet5"}


def listed(runs: Path) -> list[dict[str, str]]:
    """{"name", "title"} of the networks: those that ship, the runs, the newest first, and the untrained ones."""
    found = {SHIPPED: f"{TITLES['lenet5']}, from groundup", SMALL: "A small residual CNN, from groundup"}
    for each in digits.listed(runs)[1:]:
        with suppress(CheckpointError, OSError):  # a run that was removed a moment ago
            architecture = readable_architecture(read_about(digits.checkpoint_of(runs / each["name"])))
            if architecture is not None and _convolves(architecture):
                found[each["name"]] = f"{each['name']}: {TITLES.get(each['title'], each['title'])}"
    found |= {name: f"{TITLES[model]}, untrained" for name, model in UNTRAINED.items()}
    return [{"name": name, "title": title} for name, title in found.items()]


def load(runs: Path, name: str) -> Trained:
    """The network of this name. Raises ValueError for one that is not listed, CheckpointError for a damaged file."""
    if name in FILES:
        return digits.opened(FILES[name], name)
    if name in UNTRAINED:
        return _untrained(name, UNTRAINED[name])
    trained = digits.load(runs, name)
    if not _convolves(trained.checkpoint.architecture):
        raise ValueError(f"network: {name} has no convolution, so there are no maps to look at")
    return trained


def version(runs: Path, name: str) -> tuple[str, int]:
    """The name and when its file was written last. Raises ValueError for a name that there is not."""
    return (name, 0) if name in (*FILES, *UNTRAINED) else digits.version(runs, name)


def _convolves(architecture: Architecture) -> bool:
    return any(isinstance(each.layer, Conv) for each in architecture.placed())


def _untrained(name: str, model: str) -> Trained:
    network = load_stage("numpy").network.Network(NAMED[model](), seed=0)
    shipped = load(Path(), SHIPPED)
    new = {"parameters": network.parameters, "running_statistics": network.running_statistics, "about_run": {}}
    checkpoint = replace(shipped.checkpoint, path=Path(model), architecture=network.architecture, **new)
    about = f"untrained, its weights are random; groundup train c --model {model} trains it, and the run appears here"
    return replace(shipped, name=name, title=model, about=about, checkpoint=checkpoint, dataset="")
