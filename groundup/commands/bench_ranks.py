"""`groundup bench --ranks`: how stage 3's training scales over ranks, as a table and two charts."""

from __future__ import annotations

from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Table

from groundup import ranks, scaling
from shared.machine.environment import describe
from shared.machine.results import as_json, results_folder, write_json
from shared.terminal import TextConsole, Whole, say


def bench_ranks(out: Path, quick: bool, json: bool) -> None:
    """Measure, write ranks.json and the charts into the folder, and print the results."""
    if ranks.started():
        ranks.refuse("bench --ranks starts mpiexec itself; leave the outer mpiexec out")
    ranks.check_installed()
    results_folder(out)
    results = scaling.measured(0.5 if quick else 3.0, lambda text: say(f"measuring {text}", err=True))
    write_json(out / "ranks.json", results)
    from shared.charts import book  # here, as groundup/cli.py says
    from shared.charts.figures import ranks as figures

    curves = scaling.curves(results)
    charts = book.save_all(figures.draw(results, curves, describe(results["environment"])), out)
    if json:
        say(as_json(results), nl=False)
        return
    console = TextConsole()
    table = Table("network", "batch", "ranks", "steps/s", "communication", box=SIMPLE_HEAD, title="measured")
    for row in results["rows"]:
        share = f"{row['communication']:.0%}" if row["ranks"] > 1 else "-"
        table.add_row(row["network"], str(row["batch"]), str(row["ranks"]), f"{row['steps_per_second']:,.0f}", share)
    console.print(Whole(table), crop=False)
    if curves:
        machine = results["machine"]
        say(
            f"an exchange of two ranks: {1e6 * machine['latency']:.0f} µs + {1e-9 / machine['byte']:.1f} GB/s; "
            "the model has all ranks a link like it, and a core each"
        )
        table = Table(
            "network", "batch", "best ranks", "times faster", "at 8 ranks", box=SIMPLE_HEAD, title="by the model"
        )
        for curve in curves:
            table.add_row(
                curve.network, f"{curve.batch:,}", f"{curve.best:,}", f"{curve.gain:.1f}", f"{curve.at(8):.0%}"
            )
        console.print(Whole(table), crop=False)
    say(f"Written to {out}: ranks.json and {', '.join(chart.name for chart in charts)} (PNG and SVG)")
