"""What this machine has, what of groundup will run on it, and the exact command that mends what will not.

    facts.py        everything that is known about a machine, as plain values
    survey.py       collects the facts of this machine; it asks shared/machine, and tries what must work
    trial.py        launches one kernel on the emulator or the GPU, or counts two ranks, in a process of its own
    system.py       judges Python, packages, compiler, stages and data
    cuda.py         judges GPU and driver
    libraries.py    judges whether the CUDA libraries fit the driver, the GPU and each other
    remedies.py     the commands that mend what was found
    report.py       the findings as lines of text
    rescue.py       called by `groundup` where a package is missing that the program is built on

Every function that judges takes facts, returns findings and raises nothing. `python -m groundup.doctor` needs nothing
but Python's standard library, so it can say which packages are missing.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from groundup import own_packages

own_packages.put_first()

from groundup.doctor import cuda, system  # noqa: E402 - they import `shared`, which has to be ours
from groundup.doctor.facts import DEPENDENCIES, OLDEST_PYTHON, Facts, Finding  # noqa: E402
from groundup.doctor.survey import gather  # noqa: E402

__all__ = ["DEPENDENCIES", "Diagnosis", "Facts", "Finding", "diagnose", "judge"]


@dataclass(frozen=True)
class Diagnosis:
    """The doctor's answer.

    findings: in the order of the report
    runs: the commands that will run here
    ok: whether the main job, `groundup race`, will run here
    """

    findings: list[Finding]
    runs: list[str]
    ok: bool

    def as_dict(self) -> dict[str, Any]:
        """The diagnosis for JSON, with the environment beside it."""
        from shared.machine import environment  # needs NumPy, and a Python that is not too old

        return {"schema": 1, "kind": "groundup doctor", **asdict(self), "environment": environment.environment()}


def diagnose() -> Diagnosis:
    """Collect the facts of this machine and judge them. Takes some seconds: see survey.gather."""
    return judge(gather())


def judge(facts: Facts) -> Diagnosis:
    """All findings about a machine. Where its Python is too old, that is the only one besides the machine's name."""
    if facts.python[:2] < OLDEST_PYTHON:
        return Diagnosis([system.python(facts), system.machine(facts)], [], False)
    from shared.contract import STAGES  # imported here, because it does not import on an older Python

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
