"""`groundup check`: do the stages agree, and are their gradients the slopes of their losses?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from shared.bench.results import as_json
from shared.checks.equivalence import Comparison, Report, check_stage, computes_in
from shared.checks.gradients import LIMIT, GradientCheck, check_gradients
from shared.contract import ACTIVATIONS, LOSSES, STAGES, Stage, StageUnavailable, is_emulated, load_stage
from shared.numbers import two_digits

DTYPES = ("float64", "float32")


@dataclass(frozen=True)
class Findings:
    """Everything one run of the command found out.

    gradients: for each stage, one check for every activation and loss
    left_out: what was not checked, and why: a stage that is not installed, a dtype that a stage has not
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
    stages: Annotated[
        list[str] | None, typer.Argument(help="Which stages, like 2 or stage2_numpy. Default: all that are here.")
    ] = None,
    reference: Annotated[str, typer.Option(help="The stage to compare with; it computes in float64.")] = STAGES[0],
    dtype: Annotated[
        str | None,
        typer.Option(
            help="float32 or float64. Default: both where a stage has both; of emulated kernels float64, unless --full."
        ),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full/--quick", help="Full: more and larger sizes, 100 training steps instead of 20.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Of the random numbers that everything is checked on.")] = 0,
    as_json_: Annotated[bool, typer.Option("--json", help="Print the findings as JSON instead of tables.")] = False,
    compile_: Annotated[
        bool, typer.Option("--compile", help="Instead: compile stage 4's kernels for every GPU architecture.")
    ] = False,
    kernel: Annotated[
        list[str] | None, typer.Option(help="With --compile: only kernels with this in their name. Repeatable.")
    ] = None,
    arch: Annotated[
        list[str] | None, typer.Option(help="With --compile: only for this one, like 9.0. Repeatable.")
    ] = None,
) -> None:
    """Check that the stages compute the same, and that their gradients are right.

    Every operation alone, then a training step op by op, then the whole step, then many steps. A tolerance is
    what rounding alone may do (docs/numerics.md); on a failure you get the first op, layer and index that differ.

    Exit code: 0 when all agree, 1 when something does not, 2 for a mistake.

    \b
    Examples:
      groundup check                               all stages, seconds
      groundup check 2 --dtype float32 --full      one stage, thoroughly
      groundup check --reference stage2 --json     compare with stage 2 in float64
      groundup check --compile --kernel matmul     registers, spills, occupancy; needs no GPU
    """
    if dtype is not None and dtype not in DTYPES:
        raise ValueError(f"unknown dtype {dtype!r}; choose one of {', '.join(DTYPES)}")
    if compile_:
        if stages:
            raise ValueError(
                "--compile takes no stages: it compiles the kernels of stage 4; --kernel chooses among them"
            )
        _compile(kernel or (), arch or (), dtype, as_json_)
        return
    if kernel or arch:
        raise ValueError(f"{'--kernel' if kernel else '--arch'} belongs to --compile")
    if seed < 0:
        raise ValueError(f"seed: expected a whole number of at least 0, got {seed}")
    chosen, left_out = _choose(stages)
    found = _run(chosen, left_out, load_stage(reference), dtype, full, seed)
    if as_json_:
        typer.echo(as_json(_document(found)), nl=False)
    else:
        _show(found)
    if not found.ok:
        typer.echo(_failure_report(found), err=True)
        raise typer.Exit(1)


def _compile(kernels: Sequence[str], architectures: Sequence[str], dtype: str | None, json: bool) -> None:
    from groundup.compiling.show import check_kernels

    check_kernels(kernels, architectures, dtype, json)


def _choose(names: Sequence[str] | None) -> tuple[list[Stage], dict[str, str]]:
    """The stages named, all of which must be there; or all that are there, and why the others are not."""
    if names:
        by_name = {stage.name: stage for stage in map(load_stage, names)}
        return sorted(by_name.values(), key=lambda stage: stage.number), {}
    stages, left_out = [], {}
    for name in STAGES:
        try:
            stages.append(load_stage(name))
        except StageUnavailable as reason:
            left_out[name] = str(reason)
    return stages, left_out


def _run(
    stages: Sequence[Stage],
    left_out: Mapping[str, str],
    reference: Stage,
    dtype: str | None,
    full: bool,
    seed: int,
) -> Findings:
    found = Findings(reference.name, [], {}, dict(left_out))
    console = Console(stderr=True)
    with console.status("checking") as status:  # a moving line on a terminal, nothing elsewhere
        for stage in stages:
            for each in DTYPES if dtype is None else (dtype,):
                name = f"{stage.name} in {each}"
                if not computes_in(stage, each):
                    found.left_out[name] = "the stage computes in float64 whatever it is told"
                    continue
                if dtype is None and not full and each != "float64" and is_emulated(stage.name):
                    found.left_out[name] = f"emulated kernels are compiled anew for it: --dtype {each} does, or --full"
                    continue

                def tell(level: str, task: str = f"{stage.title}, {each}") -> None:
                    status.update(f"{task}: {level}")

                found.reports.append(check_stage(stage, reference, each, full=full, seed=seed, on_level=tell))
            if dtype in (None, "float64"):
                status.update(f"{stage.title}: gradients")
                found.gradients[stage.name] = [
                    check_gradients(stage, activation, loss, seed=seed) for activation in ACTIVATIONS for loss in LOSSES
                ]
    if not found.reports:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in found.left_out.items())
        raise ValueError(f"there is nothing to check: {reasons}")
    return found


def _show(found: Findings) -> None:
    console = Console()
    table = _table(f"Compared with {found.reference} in float64", ("stage", "level"), ("checks", "worst"))
    for report in found.reports:
        for i, level in enumerate(report.levels()):
            failed = Text(f"{level.failed} of {level.checks} failed", "bold red")
            layer = "" if level.worst.layer is None else f", layer {level.worst.layer}"
            table.add_row(
                f"{_short(report.stage)}, {report.dtype}" if i == 0 else "",
                level.level,
                failed if level.failed else str(level.checks),
                two_digits(level.worst.tolerances),
                Text(f"{level.worst.op}{layer}"),
            )
    console.print(table)
    console.print("worst: the largest difference, in units of what rounding may do; 1 is the limit.\n", highlight=False)
    if found.gradients:
        table = _table(
            "Gradients against the slope of the loss, float64", ("stage", "networks"), ("slopes", "kinks", "worst")
        )
        for stage, checks in found.gradients.items():
            worst = max(checks, key=lambda c: (not c.ok, c.worst))
            wrong = sum(not c.ok for c in checks)
            table.add_row(
                _short(stage),
                Text(f"{wrong} of {len(checks)} wrong", "bold red") if wrong else str(len(checks)),
                str(sum(c.checked for c in checks)),
                str(sum(c.skipped for c in checks)),
                f"{worst.worst:.1e}",
                Text(f"{worst.activation}, {worst.loss}"),
            )
        console.print(table)
        console.print(
            f"worst: the largest relative error; {LIMIT:.1e} is the limit. kinks: skipped, two slopes.\n",
            highlight=False,
        )
    for name, reason in found.left_out.items():
        console.print(f"not checked: {name}: {reason}", markup=False, highlight=False, soft_wrap=True)
    if found.ok:
        console.print("All agree.", style="green")


def _table(title: str, names: Sequence[str], numbers: Sequence[str]) -> Table:
    table = Table(
        title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False, show_edge=False
    )
    for heading in names:
        table.add_column(heading, no_wrap=True)
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("where", overflow="fold")
    return table


def _short(stage: str) -> str:
    return stage.partition("_")[0]


def _failure_report(found: Findings) -> str:
    """For each failed report the first divergence and the other ops that failed; for each wrong gradient one line."""
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


def _document(found: Findings) -> dict[str, Any]:
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
