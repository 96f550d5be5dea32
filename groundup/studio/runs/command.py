"""The command that trains a run again, from the settings that its checkpoints hold."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from groundup.train import DEFAULTS, LATER_SETTINGS, new_settings

WITH_NO = ("normalise",)
"""Switches that can be switched off with --no-…; the others are off by default everywhere."""


def command(stage: str, notes: Mapping[str, Any], folder: str) -> str:
    """`groundup train …` with every option that is not the default, into a new folder.

    stage: the full name; notes: as the run's checkpoints hold them; folder: for --run-dir
    Raises ValueError with a sentence if the run was not made by groundup train.
    """
    settings = {**{name: DEFAULTS[name] for name in LATER_SETTINGS}, **notes}
    if not DEFAULTS.keys() <= settings.keys():
        raise ValueError(
            "its checkpoint does not hold the settings of groundup train, so it was made by a program of its own"
        )
    model = settings["model"]
    usual = new_settings(stage, {} if model is None else {"model": model})
    if model is not None and settings["optimizer"] != usual["optimizer"]:
        usual = new_settings(stage, {"model": model, "optimizer": settings["optimizer"]})
        usual["optimizer"] = None  # so that it is named
    words = ["groundup", "train", stage.partition("_")[2]]
    if model is not None:
        words += ["--model", _word(model)]
    for name in DEFAULTS:
        if name != "model" and settings[name] != usual[name]:
            words += _option(name, settings[name])
    return shlex.join([*words, "--run-dir", folder])


def _option(name: str, value: object) -> list[str]:
    option = name.replace("_", "-")
    if value is True:
        return [f"--{option}"]
    if value is False:
        return [f"--no-{option}"] if name in WITH_NO else []
    return [] if value is None else [f"--{option}", _word(value)]


def _word(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"its checkpoint holds a setting that no option takes: {value!r:.60}")
    return str(value)
