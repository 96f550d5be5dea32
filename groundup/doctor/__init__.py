"""What this machine has, what of groundup will run on it, and the exact command that mends what will not.

    facts.py       what is known of a machine, as plain values
    look.py        looking at this one, its GPU in look_gpu.py
    system.py      what is said of Python, packages, compiler, stages and data
    cuda.py        and of the GPU; libraries.py has what must fit together there
    remedies.py    the commands
    trial.py       one kernel on the emulator or the GPU, in a process of its own
    report.py      all of it as text
    rescue.py      the way here for a `groundup` that does not start

Every check is a small function that returns findings and raises nothing: a doctor that falls ill on a broken machine is
of no use. `python -m groundup.doctor` needs nothing but Python, so it can say which packages are missing.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from groundup.doctor import cuda, system
from groundup.doctor.facts import DEPENDENCIES, OLDEST_PYTHON, Facts, Finding
from groundup.doctor.look import gather

__all__ = ["DEPENDENCIES", "Diagnosis", "Facts", "Finding", "diagnose", "judge"]


@dataclass(frozen=True)
class Diagnosis:
    """All findings; runs: what will run here; ok: whether the main job, `groundup race`, is among it."""

    findings: list[Finding]
    runs: list[str]
    ok: bool

    def as_dict(self) -> dict[str, Any]:
        """The diagnosis for JSON, with the environment beside it."""
        from shared.machine import environment  # it imports NumPy, which may be what is missing

        return {"schema": 1, "kind": "groundup doctor", **asdict(self), "environment": environment.environment()}


def diagnose() -> Diagnosis:
    """Look at everything and judge it. Takes some seconds: see look.py."""
    return judge(gather())


def judge(facts: Facts) -> Diagnosis:
    """What is to be said of such a machine. Of one whose Python is too old, no more than that."""
    if facts.python[:2] < OLDEST_PYTHON:
        return Diagnosis([system.python(facts), system.machine(facts)], [], False)
    from shared.contract import STAGES  # which needs that Python

    findings = [*system.findings(facts), *cuda.findings(facts)]
    ok = not any(finding.status == "problem" for finding in findings)
    well = {finding.about for finding in findings if finding.status == "ok"}
    runs = []
    if ok:
        raced = ", ".join(name for name in STAGES if name in well)
        runs.append(f"groundup race: trains, checks and times {raced} on the bundled MNIST subset")
        runs += [f"groundup train {name}" for name in STAGES if name in well]
        runs += [f"groundup race --dataset {each.name}" for each in facts.data[1:] if each.status == "ok"]
    return Diagnosis(findings, runs, ok)
