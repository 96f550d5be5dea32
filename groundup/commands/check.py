"""`groundup check`: do the stages agree, and are their gradients the slopes of their losses?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from groundup import check as checking
from groundup.check import Findings, Settings
from groundup.compiling import precompile
from groundup.progress_lines import as_it_goes
from groundup.stages import all_stages, named_stages
from shared.checks.gradients import LIMIT
from shared.contract import STAGES, load_stage
from shared.machine.results import as_json
from shared.numbers import two_digits
from shared.terminal import TextConsole, Whole, say


def check(
    stages: Annotated[
        list[str] | None, typer.Argument(help="Which stages, like 2 or stage2_numpy. Default: all that are here.")
    ] = None,
    reference: Annotated[str, typer.Option(help="The stage to compare with; it computes in float64.")] = STAGES[0],
    dtype: Annotated[
        str | None,
        typer.Option(
            help="float32 or float64. Default: both if a stage has both; for emulated kernels float64, unless --full."
        ),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full/--quick", help="Full: more and larger sizes, 100 training steps instead of 20.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of the random numbers for all checks.")] = 0,
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
    int8: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN_DIR", help="Instead: what this run's network loses in eight bits.", show_default=False
        ),
    ] = None,
    calibrate: Annotated[
        int | None,
        typer.Option(help="With --int8: training images that decide about the scales.", show_default="200"),
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="With --int8: folder of the data set.", show_default="as in training")
    ] = None,
) -> None:
    """Check that the stages agree and their gradients are right.

    It compares every operation alone, then a training step op by op, then the whole step, then many steps. A tolerance
    allows only the differences of rounding (docs/numerics.md). On a failure you get the first op, layer and index that
    differ.

    Exit code: 0 when all agree, 1 when something does not, 2 for a mistake.

    \b
    Examples:
      groundup check                               all stages; minutes, most of them compiling the first time
      groundup check 2 --dtype float32 --full      one stage, thoroughly
      groundup check --reference stage2 --json     compare with stage 2 in float64
      groundup check --compile --kernel matmul     registers, spills, occupancy; needs no GPU
      groundup check --int8 runs/stage2_numpy      a trained network in eight bits beside itself
    """
    settings = Settings(dtype, full, seed)
    if int8 is not None:
        if compile_ or dtype or full or len(stages or ()) > 1:
            raise ValueError("--int8 takes one stage at most, and no --compile, --dtype and --full")
        _check_eight_bits(int8, stages[0] if stages else "numpy", calibrate, data_dir, as_json_)
        return
    if calibrate is not None or data_dir is not None:
        raise ValueError(f"{'--data-dir' if calibrate is None else '--calibrate'} belongs to --int8")
    if compile_:
        if stages:
            raise ValueError(
                "--compile takes no stages: it compiles the kernels of stage 4; --kernel chooses among them"
            )
        _compile(kernel or (), arch or (), dtype, as_json_)
        return
    if kernel or arch:
        raise ValueError(f"{'--kernel' if kernel else '--arch'} belongs to --compile")
    chosen, left_out = (named_stages(stages), {}) if stages else all_stages()
    expected = load_stage(reference)
    if kernels := precompile.of_check([stage.name for stage in chosen], dtype):
        say(precompile.prepare(kernels).line(), err=True)
    with as_it_goes("checking", json=as_json_) as tell:

        def report(part: str, share: float) -> None:
            tell(f"checking {part}", share)

        findings = checking.check(chosen, expected, settings, left_out, report)
    if as_json_:
        say(as_json(checking.document(findings)), nl=False)
    else:
        _show(findings)
    if not findings.ok:
        say(checking.failure_report(findings), err=True)
        raise typer.Exit(1)


def _check_eight_bits(run: Path, stage: str, calibrate: int | None, data_dir: Path | None, json: bool) -> None:
    from groundup.commands.check_eight_bits import check_eight_bits

    check_eight_bits(run, stage, calibrate, data_dir, json)


def _compile(kernels: Sequence[str], architectures: Sequence[str], dtype: str | None, json: bool) -> None:
    from groundup.compiling.show import check_kernels

    check_kernels(kernels, architectures, dtype, json)


def _show(findings: Findings) -> None:
    console = TextConsole()
    table = _table(f"Compared with {findings.reference} in float64", ("stage", "level"), ("checks", "worst"))
    for report in findings.reports:
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
    console.print(Whole(table), crop=False)
    console.print("worst: the largest difference, in units of what rounding may do; 1 is the limit.\n", highlight=False)
    if findings.gradients:
        table = _table(
            "Gradients against the slope of the loss, float64", ("stage", "networks"), ("slopes", "kinks", "worst")
        )
        for stage, checks in findings.gradients.items():
            worst = max(checks, key=lambda c: (not c.ok, c.worst))
            wrong = sum(not c.ok for c in checks)
            table.add_row(
                _short(stage),
                Text(f"{wrong} of {len(checks)} wrong", "bold red") if wrong else str(len(checks)),
                str(sum(c.checked for c in checks)),
                str(sum(c.skipped for c in checks)),
                f"{worst.worst:.1e}",
                Text(worst.what),
            )
        console.print(Whole(table), crop=False)
        console.print(
            f"worst: the largest relative error; {LIMIT:.1e} is the limit. kinks: skipped, two slopes.\n",
            highlight=False,
        )
    for name, reason in findings.left_out.items():
        console.print(f"not checked: {name}: {reason}", markup=False, highlight=False, soft_wrap=True)
    if findings.ok:
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
