"""The whole check of `groundup check`: every stage against a reference, and its gradients against slopes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from shared.checks.equivalence import Comparison, Report, check_stage, computes_in
from shared.checks.gradients import GradientCheck, gradient_checks
from shared.contract import Stage, is_emulated

DTYPES = ("float64", "float32")


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
    tell: Callable[[str], None],
) -> Findings:
    """Check the stages against the reference, which computes in float64.

    left_out: reasons for stages that cannot be checked; further reasons are added to them in the findings
    tell: called with what is checked next
    Raises ValueError if nothing can be checked.
    """
    found = Findings(reference.name, [], {}, dict(left_out))
    for stage in stages:
        for dtype in DTYPES if settings.dtype is None else (settings.dtype,):
            if reason := _why_not(stage, dtype, settings):
                found.left_out[f"{stage.name} in {dtype}"] = reason
                continue

            def level(name: str, task: str = f"{stage.title}, {dtype}") -> None:
                tell(f"{task}: {name}")

            found.reports.append(
                check_stage(stage, reference, dtype, full=settings.full, seed=settings.seed, on_level=level)
            )
        if settings.dtype in (None, "float64"):
            tell(f"{stage.title}: gradients")
            found.gradients[stage.name] = list(gradient_checks(stage, settings.seed))
    if not found.reports:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in found.left_out.items())
        raise ValueError(f"there is nothing to check: {reasons}")
    return found


def _why_not(stage: Stage, dtype: str, settings: Settings) -> str:
    """Why a stage is not checked in this dtype; "" if it is."""
    if not computes_in(stage, dtype):
        return "the stage computes in float64 whatever it is told"
    if settings.dtype is None and not settings.full and dtype != "float64" and is_emulated(stage.name):
        return f"emulated kernels are compiled anew for it: --dtype {dtype} does, or --full"
    return ""


def failure_report(found: Findings) -> str:
    """The failures as text: for each stage its first divergence and other failed ops, and its worst gradient."""
    lines = []
    for report in found.reports:
        if report.first_divergence is not None:
            lines.append(f"{report.stage} disagrees with {report.reference} in {report.dtype}. First divergence:")
            lines.append(f"  {report.first_divergence}")
            others = [op for op in report.failed_ops if op != report.first_divergence.op]
            if others:
                lines.append(f"  also off, perhaps because of it: {', '.join(others)}")
    for stage, checks in found.gradients.items():
        wrong = [c for c in checks if not c.ok]
        if wrong:
            lines.append(f"{stage}: {len(wrong)} of {len(checks)} networks have a wrong gradient, or too many kinks:")
            lines.append(f"  {max(wrong, key=lambda c: c.worst)}")
    return "\n".join(lines)


def document(found: Findings) -> dict[str, Any]:
    """The findings as values for JSON."""
    return {
        "ok": found.ok,
        "reference": found.reference,
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
            for report in found.reports
        ],
        "gradients": {name: [asdict(c) | {"ok": c.ok} for c in checks] for name, checks in found.gradients.items()},
        "left_out": found.left_out,
    }


def _entry(comparison: Comparison | None) -> dict[str, Any] | None:
    return None if comparison is None else asdict(comparison) | {"text": str(comparison)}
