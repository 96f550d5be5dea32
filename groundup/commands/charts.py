"""`groundup charts`: draw the figures and the page of a results file again, without measuring."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shared.bench.on_gpu import gpu_record
from shared.bench.records.document import load, read_json
from shared.machine.results import results_folder
from shared.numbers import plural
from shared.terminal import say

PAGE = "report.html"


def charts(
    results: Annotated[
        Path,
        typer.Argument(help="A results.json of `groundup bench`, or a gpu_report.json.", show_default=False),
    ],
    out: Annotated[
        Path | None, typer.Option(help="Folder for figures and page. Default: the one of the results.")
    ] = None,
    emulated: Annotated[
        bool, typer.Option("--emulated", help="Also draw the emulator's times, marked as emulated.")
    ] = False,
) -> None:
    """Draw the figures and the report of a results file.

    The figures are PNG and SVG, light and dark; the report is report.html. `groundup bench` writes results files.

    Of a report by `python -m groundup.gpu_report` the four figures of the GPU are drawn, and no page is made.

    \b
    Examples:
      groundup charts runs/bench/results.json
      groundup charts runs/bench/results.json --out figures
      groundup charts runs/gpu_report/gpu_report.json
    """
    if read_json(results).get("kind") == gpu_record.KIND:
        _gpu_charts(results, out)
        return
    document = load(results)
    folder = results_folder(out or results.parent)
    from shared.charts import book  # here, as groundup/cli.py says
    from shared.charts.report import page  # here, as groundup/cli.py says

    drawn = book.save_all(book.draw(document, emulated=emulated), folder)
    written = page.write(document, drawn, folder / PAGE, saved=folder)
    if not drawn:
        say(f"too little was measured for a figure; the tables are in {written}")
        return
    names = ", ".join(chart.name for chart in drawn)
    say(f"{plural(len(drawn), 'figure')} in {folder}, each as .png, .svg, -dark.png and -dark.svg: {names}")
    say(f"all of them and the tables: {written}")


def _gpu_charts(report: Path, out: Path | None) -> None:
    document = gpu_record.load(report)
    folder = results_folder(out or report.parent)
    from shared.charts.figures import gpu_report

    drawn = gpu_report.draw(document, folder)
    if not drawn:
        say("too little was measured for a figure")
        return
    say(f"{plural(len(drawn), 'file')} in {folder}: {', '.join(chart['file'] for chart in drawn)}")
