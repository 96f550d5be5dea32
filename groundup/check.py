"""The whole check of `groundup check`: every stage against a reference, and its gradients against slopes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from shared.checks.equivalence import LEVELS, Comparison, Report, check_stage, computes_in
from shared.checks.gradients import COUNT, GradientCheck, gradient_checks
from shared.contract import Stage, is_emulated

DTYPES = ("float64", "float32")
GRADIENTS = "gradients"

SECONDS = {"op": (7, 35), "layer": (2, 8), "step": (10, 25), "trajectory": (20, 30), GRADIENTS: (15, 30)}
"""About how long each level takes: on a stage, and on emulated kernels that are not compiled yet. Only their relation
counts: it tells what share of the checks is done."""


@dataclass(frozen=True)
class Settings:
    """How to check. dtype: None for each that a stage computes in; full: more and larger sizes, longer trajectories."""

    dtype: str | None = None
    full: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if self.dtype is not None and self.dtype not in DTYPES:
            raise ValueError(f"unknown dtype {self.dtype!r}; choose one of {', '.join(DTYPES)}")
        if self.seed < 0:
            raise ValueError(f"seed: expected a whole number of at least 0, got {self.seed}")


@dataclass(frozen=True)
class Findings:
    """The results of all checks.

    gradients: for each stage, one check for every activation and loss, and for networks with images
    left_out: the reason for everything that was not checked, such as a stage that is not installed
    """

    reference: str
    reports: list[Report]
    gradients: dict[str, list[GradientCheck]]
    left_out: dict[str, str]

    @property
    def ok(self) -> bool:
        """Whether every stage agrees and every gradient is right."""
        return all(r.ok for r in self.reports) and all(c.ok for checks in self.gradients.values() for c in checks)


def check(
    stages: Sequence[Stage],
    reference: Stage,
    settings: Settings,
    left_out: Mapping[str, str],
    tell: Callable[[str, float], None],
) -> Findings:
    """Check the stages against the reference, which computes in float64.

    left_out: reasons for stages that cannot be checked; further reasons are added to them in the findings
    tell: called with what is checked next, and the share that is done, from 0 to 1
    Raises ValueError if nothing can be checked.
    """
    findings = Findings(reference.name, [], {}, dict(left_out))
    dtypes = DTYPES if settings.dtype is None else (settings.dtype,)
    for stage in stages:
        for dtype in dtypes:
            if reason := _why_not(stage, dtype, settings):
                findings.left_out[f"{stage.name} in {dtype}"] = reason
    gradients = [GRADIENTS] if settings.dtype in (None, "float64") else []
    work = {
        stage.name: [part for part in (*dtypes, *gradients) if f"{stage.name} in {part}" not in findings.left_out]
        for stage in stages
    }
    clock = _Clock(tell, stages, work, reference.name)
    for stage in stages:
        for dtype in [part for part in work[stage.name] if part != GRADIENTS]:
            level = clock.of(stage, dtype)
            findings.reports.append(
                check_stage(stage, reference, dtype, full=settings.full, seed=settings.seed, on_level=level)
            )
        if settings.dtype in (None, "float64"):
            begin = clock.of(stage, GRADIENTS)
            begin(GRADIENTS, 0.0)
            checks = findings.gradients[stage.name] = []
            for one in gradient_checks(stage, settings.seed):
                checks.append(one)
                begin(GRADIENTS, len(checks) / COUNT)
    if not findings.reports:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in findings.left_out.items())
        raise ValueError(f"there is nothing to check: {reasons}")
    return findings


class _Clock:
    """Tells what is checked next, and about which share of all the checks is done.

    tell: as `check` has it; work: dtypes and GRADIENTS by stage, in the order in which they are checked
    reference: the stage of which only the operations are checked, since it is compared with nothing
    """

    def __init__(
        self,
        tell: Callable[[str, float], None],
        stages: Sequence[Stage],
        work: Mapping[str, Sequence[str]],
        reference: str,
    ) -> None:
        self.tell = tell
        self.seconds = {
            (stage.name, part, level): SECONDS[level][is_emulated(stage.name)]
            for stage in stages
            for part in work[stage.name]
            for level in ((GRADIENTS,) if part == GRADIENTS else ("op",) if stage.name == reference else LEVELS)
        }

    def of(self, stage: Stage, part: str) -> Callable[[str, float], None]:
        """The function that is told the name of a level, and the share of it that is done."""

        def begin(level: str, share: float) -> None:
            order = list(self.seconds)
            now = (stage.name, part, level)
            done: float = sum(self.seconds[each] for each in order[: order.index(now) if now in order else 0])
            done += share * self.seconds.get(now, 0)
            title = f"{stage.title}: {level}" if part == GRADIENTS else f"{stage.title}, {part}: {level}"
            self.tell(title, done / sum(self.seconds.values()))

        return begin


def _why_not(stage: Stage, dtype: str, settings: Settings) -> str:
    """Why a stage is not checked in this dtype; "" if it is."""
    if not computes_in(stage, dtype):
        return "the stage computes in float64 whatever it is told"
    if settings.dtype is None and not settings.full and dtype != "float64" and is_emulated(stage.name):
        return f"emulated kernels are compiled anew for it: --dtype {dtype} does, or --full"
    return ""


def failure_report(findings: Findings) -> str:
    """The failures as text: for each stage its first divergence and other failed ops, and its worst gradient."""
    lines = []
    for report in findings.reports:
        if report.first_divergence is not None:
            lines.append(f"{report.stage} disagrees with {report.reference} in {report.dtype}. First divergence:")
            lines.append(f"  {report.first_divergence}")
            others = [op for op in report.failed_ops if op != report.first_divergence.op]
            if others:
                lines.append(f"  also off, perhaps because of it: {', '.join(others)}")
    for stage, checks in findings.gradients.items():
        wrong = [c for c in checks if not c.ok]
        if wrong:
            lines.append(f"{stage}: {len(wrong)} of {len(checks)} networks have a wrong gradient, or too many kinks:")
            lines.append(f"  {max(wrong, key=lambda c: c.worst)}")
    return "\n".join(lines)


def document(findings: Findings) -> dict[str, Any]:
    """The findings as values for JSON."""
    return {
        "ok": findings.ok,
        "reference": findings.reference,
        "equivalence": [
            {
                "stage": report.stage,
                "dtype": report.dtype,
                "ok": report.ok,
                "levels": [
                    {"level": s.level, "checks": s.checks, "failed": s.failed, "worst": _entry(s.worst)}
                    for s in report.levels()
                ],
                "first_divergence": _entry(report.first_divergence),
                "failed_ops": report.failed_ops,
            }
            for report in findings.reports
        ],
        "gradients": {name: [asdict(c) | {"ok": c.ok} for c in checks] for name, checks in findings.gradients.items()},
        "left_out": findings.left_out,
    }


def _entry(comparison: Comparison | None) -> dict[str, Any] | None:
    return None if comparison is None else asdict(comparison) | {"text": str(comparison)}
