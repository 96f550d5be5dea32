"""A run in the list: what it trains, how far it is, whether it runs, and what of it cannot be read."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from groundup.run_notes import title_of
from groundup.studio.runs import curves
from groundup.studio.runs.command import command
from groundup.studio.runs.folders import BEST, FACTS, LAST, METRICS, STEPS, RunFolder
from groundup.studio.runs.labels import LABEL, read_label
from shared.contract import STAGE_TITLES, STAGES
from shared.numbers import plural
from shared.training.checkpoint_header import readable_architecture
from shared.training.checkpoints import read_about
from shared.training.run_facts import DONE, RUNNING, UNKNOWN, RunFacts, read_facts, state_of
from shared.training.step_records import StepRecord

UNSAID = "this run did not write down which GPUs there were"

LONGEST = 300
"""Characters of a text from a file that a page shows."""


def overview(run: RunFolder, now: float | None = None) -> dict[str, Any]:
    """What the page tells about a run, as JSON values. Whatever cannot be read is a sentence in "trouble"."""
    trouble: list[str] = []
    about = _checkpoint(run, trouble)
    facts = _facts(run, trouble)
    epochs = _epochs(run, trouble)
    last = _last(run, trouble)
    label = _label(run, trouble)
    changed = run.changed()
    notes, settings, position = (_dict(about, "progress", name) for name in ("notes", "settings", "position"))
    total_epochs = facts.epochs if facts else _whole(settings.get("epochs"))
    per_epoch = facts.steps_per_epoch if facts else _steps_per_epoch(settings, epochs)
    if facts:
        state, reason = state_of(facts, changed, now)
    else:
        state, reason = _old_state(position, settings, notes, total_epochs)
        if state == UNKNOWN and run.file(FACTS):
            reason = f"its {FACTS} is damaged"
    done = _steps_done(position, per_epoch, last)
    total = total_epochs * per_epoch if total_epochs and per_epoch else None
    stage = facts.stage if facts else about.get("stage")
    best = _whole(position.get("best_epoch"))
    return {
        "code": run.code,
        "name": label["title"] or run.name,
        "title": label["title"],
        "note": label["note"],
        "folder": str(run.path).encode(errors="replace").decode(),
        "changed": changed,
        "state": state,
        "reason": _short(reason),
        "trouble": [_short(sentence) for sentence in trouble],
        "stage": stage if stage in STAGES else None,
        "stage_title": STAGE_TITLES.get(str(stage), "unknown"),
        "network": _network(about, notes),
        "loss": _text(about.get("loss")),
        "dataset": _text(title_of(str(notes.get("dataset") or ""))),
        "optimizer": _optimizer(about),
        "epochs_done": epochs[-1]["epoch"] if epochs else _whole(position.get("epoch")) or 0,
        "epochs": total_epochs,
        "steps_done": done,
        "steps": total,
        "left": curves.seconds_left(last, total) if state == RUNNING and total else None,
        "monitor": _text(settings.get("monitor")),
        "best_epoch": best,
        "best_value": curves.finite(position.get("best_value")),
        "accuracy": next((a for a in map(_accuracy, reversed(epochs)) if a is not None), None),
        "train_loss": last[-1].loss if last else epochs[-1]["train_loss"] if epochs else None,
        "train_loss_of": "the last steps" if last else f"epoch {epochs[-1]['epoch']}" if epochs else "",
        "images_per_second": last[-1].images_per_second
        if last
        else epochs[-1]["samples_per_second"]
        if epochs
        else None,
        "memory": last[-1].memory if last else None,
        "cores": last[-1].cores if last else None,
        "gpu": [list(reading) for reading in last[-1].gpu] if last else [],
        "gpus": [_short(gpu) for gpu in facts.gpus[:16]] if facts else [],
        "no_gpus": _short(facts.no_gpus) if facts else UNSAID,
        "layers": [_short(layer) for layer in facts.layers] if facts else [],
        "seconds": last[-1].seconds if last else sum(epoch["seconds"] or 0.0 for epoch in epochs),
        "sessions": _sessions(facts),
        "settings": _settings(notes, about),
        "command": _command(stage, notes, run, bool(about)),
        "has_network": bool(run.file(BEST) or run.file(LAST)),
        "dense": _is_dense(about),
        "best_changed": _changed(run.file(BEST)),
    }


def details(run: RunFolder, steps: curves.Steps | None) -> dict[str, Any]:
    """The columns of a run's charts: "steps", "epochs", and in "trouble" what could not be read."""
    trouble: list[str] = []
    columns: dict[str, Any] = {}
    if steps is not None:
        steps.read()
        columns = steps.columns()
        if steps.sampled:
            trouble.append("steps.jsonl is very long: only some of its lines, at equal distances, are shown")
        elif steps.skipped:
            trouble.append(left_out(steps.skipped, STEPS))
    path = run.file(METRICS)
    per_epoch = None
    if path is not None:
        facts = _facts(run, [])
        settings = _dict(_checkpoint(run, []), "progress", "settings")
        epochs, _ = curves.read_epochs(path)
        per_epoch = facts.steps_per_epoch if facts else _steps_per_epoch(settings, epochs)
    rows = curves.epoch_columns(path, columns, per_epoch) if path is not None else {}
    if rows.get("skipped"):
        trouble.append(left_out(rows["skipped"], METRICS))
    return {"steps": columns, "epochs": rows, "trouble": trouble}


def left_out(lines: int, name: str) -> str:
    """The sentence for lines of a file that are damaged."""
    return f"{plural(lines, 'line')} of {name} cannot be read and {'is' if lines == 1 else 'are'} left out"


def _checkpoint(run: RunFolder, trouble: list[str]) -> dict[str, Any]:
    """The document in the header of the last checkpoint, or of the best one; {} if neither can be read."""
    paths = [path for path in (run.file(LAST), run.file(BEST)) if path is not None]
    for path in paths:
        try:
            return read_about(path)
        except (ValueError, OSError) as error:
            trouble.append(f"{path.name} cannot be read: {error}")
    if not paths:
        trouble.append("there is no checkpoint in this folder")
    return {}


def _facts(run: RunFolder, trouble: list[str]) -> RunFacts | None:
    path = run.file(FACTS)
    if path is None:
        return None
    try:
        return read_facts(path)
    except (ValueError, OSError) as error:
        trouble.append(str(error))
        return None


def _label(run: RunFolder, trouble: list[str]) -> dict[str, str]:
    try:
        return {name: _text(text) if name == "title" else _short(text, 2000) for name, text in read_label(run).items()}
    except (ValueError, OSError) as error:
        trouble.append(f"{LABEL} cannot be read: {error}")
        return {"title": "", "note": ""}


def _epochs(run: RunFolder, trouble: list[str]) -> list[dict[str, Any]]:
    path = run.file(METRICS)
    if path is None:
        return []
    try:
        epochs, skipped = curves.read_epochs(path)
    except OSError as error:
        trouble.append(f"metrics.jsonl cannot be read: {error}")
        return []
    if skipped:
        trouble.append(left_out(skipped, METRICS))
    return epochs


def _last(run: RunFolder, trouble: list[str]) -> list[StepRecord]:
    path = run.file(STEPS)
    try:
        return curves.tail(path) if path is not None else []
    except OSError as error:
        trouble.append(f"{STEPS} cannot be read: {error}")
        return []


def _old_state(
    position: Mapping[str, Any], settings: Mapping[str, Any], notes: Mapping[str, Any], epochs: int | None
) -> tuple[str, str]:
    """The state of a run without a run.json, by its last checkpoint."""
    finished, since, patience = (
        _whole(position.get("epoch")),
        _whole(position.get("epochs_since_best")),
        notes.get("patience"),
    )
    if finished is not None and epochs is not None and finished >= epochs:
        return DONE, ""
    if isinstance(patience, int) and since is not None and since >= patience > 0:
        return DONE, f"it stopped early: {patience} epochs without a better one"
    return UNKNOWN, "it was made by an earlier version, which does not write down whether the training still runs"


def _steps_per_epoch(settings: Mapping[str, Any], epochs: list[dict[str, Any]]) -> int | None:
    """Of a run without a run.json: from the samples that its first epoch says it had."""
    size = _whole(settings.get("batch_size"))
    for epoch in epochs[:1]:
        if size and epoch["seconds"] and epoch["samples_per_second"]:
            return max(1, math.ceil(round(epoch["seconds"] * epoch["samples_per_second"]) / size))
    return None


def _steps_done(position: Mapping[str, Any], per_epoch: int | None, last: list[StepRecord]) -> int | None:
    saved = None
    if per_epoch:
        saved = (_whole(position.get("epoch")) or 0) * per_epoch + (_whole(position.get("step")) or 0)
    known = [each for each in (saved, last[-1].step if last else None) if each is not None]
    return max(known, default=None)


def _network(about: Mapping[str, Any], notes: Mapping[str, Any]) -> str:
    """'784-128-10 relu', or the name of a known network."""
    model, architecture = notes.get("model"), readable_architecture(about)
    if isinstance(model, str):
        return _short(model)
    if architecture is None:
        return "unknown"
    stack = architecture.as_mlp()
    return _short(stack.title) if stack else f"{len(architecture.layers)} layers"


def _is_dense(about: Mapping[str, Any]) -> bool:
    architecture = readable_architecture(about)
    return architecture is not None and architecture.as_mlp() is not None


def _optimizer(about: Mapping[str, Any]) -> str:
    """'SGD, learning_rate 0.1, momentum 0.9': what is not zero."""
    saved = _dict(about, "optimizer")
    numbers = _dict(saved, "hyperparameters")
    parts = [f"{name} {value}" for name, value in numbers.items() if isinstance(value, int | float) and value]
    return _short(", ".join([_text(saved.get("name")), *parts])) if saved.get("name") else ""


def _sessions(facts: RunFacts | None) -> list[dict[str, Any]]:
    return [
        {
            "command": _short(shlex.join(each.command), 2000),
            "folder": _short(each.folder),
            "began": each.began if math.isfinite(each.began) else None,
            "ended": each.ended,
            "first_step": each.first_step,
        }
        for each in (facts.sessions[-20:] if facts else ())
    ]


def _settings(notes: Mapping[str, Any], about: Mapping[str, Any]) -> dict[str, str]:
    """The settings as texts, for a table of what differs between runs; those of the optimizer as it really had them."""
    numbers = _dict(about, "optimizer", "hyperparameters")
    found = {**notes, **numbers}
    kinds = (str, int, float, bool, type(None))
    return {
        _short(name): _short(str(value), 60) for name, value in list(found.items())[:80] if isinstance(value, kinds)
    }


def _command(stage: Any, notes: Mapping[str, Any], run: RunFolder, readable: bool) -> dict[str, str]:
    """The command that trains the run again, or the reason why there is none."""
    if not readable or stage not in STAGES:
        return {"text": "", "reason": "its checkpoint cannot be read, so its settings are not known"}
    try:
        return {"text": command(stage, notes, f"{run.path}-again"), "reason": ""}
    except (ValueError, TypeError) as error:
        return {"text": "", "reason": _short(str(error))}


def _accuracy(epoch: Mapping[str, Any]) -> dict[str, Any] | None:
    """The best proof that an epoch has: on validation data, else on test data, else on training data."""
    for part in ("validation", "test", "train"):
        value = epoch[f"{part}_accuracy"]
        if value is not None:
            return {"part": part, "value": value, "epoch": epoch["epoch"]}
    return None


def _changed(path: Path | None) -> float:
    """When a file was written, in seconds since 1970; 0 if there is none."""
    try:
        return path.stat().st_mtime if path else 0.0
    except OSError:  # it was removed a moment ago
        return 0.0


def _dict(value: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The object under these names; {} where there is none."""
    found: Any = value
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None


def _text(value: object) -> str:
    return _short(value) if isinstance(value, str) else ""


def _short(text: str, longest: int = LONGEST) -> str:
    """A text for the page: whole characters only, and not too many."""
    text = text.encode(errors="replace").decode()
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
