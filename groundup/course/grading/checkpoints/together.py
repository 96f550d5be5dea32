"""What several checkpoints share: training with the learner's functions together."""

from __future__ import annotations

from typing import Any

from groundup.course.checks.check import Wrong
from shared.data.datasets import Split
from shared.training.loop import train
from shared.training.settings import QUIET, TrainingSettings

TOGETHER = "check the functions one by one: groundup learn check grades each alone, with the project's own around it"


def trained(floor: Any, network: Any, optimizer: Any, data: Split, **settings: Any) -> None:
    """Train the network. Raises Wrong if the training diverges."""
    try:
        train(floor, network, optimizer, data, TrainingSettings(**settings), hooks=QUIET)
    except ValueError as error:
        if "diverged" not in str(error):
            raise
        raise Wrong(f"the training diverged: {str(error).partition(':')[0]}", cause=TOGETHER) from None
