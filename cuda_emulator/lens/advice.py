"""The type of a finding with its remedy; error_advice.py and cost_advice.py make them, findings.py sorts them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .syntax import Place

Level = Literal["error", "costly", "fine"]
"""error: the result is wrong; costly: a GPU would do more work than the data need; fine: neither."""


@dataclass(frozen=True)
class Advice:
    """A finding and its remedy.

    kind: "fault", "lost update", "race", "uninitialised read", "uncoalesced access", "bank conflict", "repeated loads",
        "float64 arithmetic", "idle multiprocessors", "divergence" or "part of a warp"
    title: the finding in a few words; details: sentences about it; remedy: the change of the source, or ""
    lines: the lines that it concerns; seconds: the time on the device that the remedy saves by the roofline's counts,
        0 for an error, and where it is unknown
    """

    kind: str
    level: Level
    title: str
    remedy: str
    details: tuple[str, ...]
    lines: tuple[Place, ...]
    seconds: float = 0.0
