"""The stages that a command works on: those that the user names, or all that run on this machine."""

from __future__ import annotations

from collections.abc import Sequence

from shared.contract import STAGES, Stage, StageUnavailable, load_stage


def named_stages(names: Sequence[str]) -> list[Stage]:
    """The stages of these names, each once, first stage first.

    Raises ValueError for an unknown name, StageUnavailable for a stage that does not run on this machine.
    """
    by_name = {stage.name: stage for stage in map(load_stage, names)}
    return sorted(by_name.values(), key=lambda stage: stage.number)


def all_stages() -> tuple[list[Stage], dict[str, str]]:
    """The stages that run on this machine, and the reason for each of the others, by its name."""
    stages, unavailable = [], {}
    for name in STAGES:
        try:
            stages.append(load_stage(name))
        except StageUnavailable as reason:
            unavailable[name] = str(reason)
    return stages, unavailable


def stages_for(choice: str | None) -> tuple[list[Stage], dict[str, str]]:
    """The stages of an option like --stages 1,2, and the reasons for those that cannot run.

    choice: names or numbers with commas between, all of which must run on this machine; None for all that do
    Raises ValueError for an unknown name or none at all, StageUnavailable for a chosen stage that cannot run.
    """
    if choice is None:
        return all_stages()
    names = [name.strip() for name in choice.split(",") if name.strip()]
    if not names:
        raise ValueError("stages: expected names or numbers with commas between, like 1,2; got none")
    return named_stages(names), {}
