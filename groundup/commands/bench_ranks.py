"""`groundup bench --ranks`: how stage 3's training scales over ranks, as a table and two charts."""

from __future__ import annotations

from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Table

from groundup import ranks, scaling
from shared.machine.environment import busy, describe, environment
from shared.machine.results import as_json, results_folder, write_json
from shared.terminal import TextConsole, Whole, say


def bench_ranks(out: Path, quick: bool, json: bool) -> None:
    """Measure, write ranks.json and the charts into the folder, and print the results."""
    if ranks.started():
        ranks.refuse("bench --ranks starts mpiexec itself; leave the outer mpiexec out")
    ranks.check_installed()
    results_folder(out)
    if warning := busy(environment()):
        say(f"warning: {warning}", err=True)
    results = scaling.measured(0.5 if quick else 3.0, lambda text: say(f"measuring on {text}", err=True))
    write_json(out / "ranks.json", results)
    from shared.charts import book  # here, as groundup/cli.py says
    from shared.charts.figures import ranks as figures

    curves = scaling.curves(results)
    charts = book.save_all(figures.draw(results, curves, describe(results["environment"])), out)
    if json:
        say(as_json(results), nl=False)
        return
    console = TextConsole()
    headings = ["network", "scaling", "ranks", "batch", "steps/s", "efficiency", "communication"]
    table = Table(*headings, box=SIMPLE_HEAD, title="measured")
    rows = results["rows"]
    for row in sorted(rows, key=lambda row: (row["network"], row["scaling"])):  # then by ranks, as they are
        shares = scaling.measured_efficiency(rows, row), row["communication"]
        words = [f"{share:.0%}" if row["ranks"] > 1 else "-" for share in shares]
        counts = row["ranks"], row["batch"], round(row["steps_per_second"])
        table.add_row(row["network"], row["scaling"], *(f"{count:,}" for count in counts), *words)
    console.print(Whole(table), crop=False)
    if not curves:
        say(f"one core: nothing is sent that could be measured, so there is no model. Written to {out}: ranks.json")
        return
    machine = results["machine"]
    say(
        f"two ranks exchange n bytes by {results['mpi']} in {1e6 * machine['latency']:.0f} µs + "
        f"n · {1e9 * machine['byte']:.2f} ns; the model gives every rank such a link, and a core"
    )
    headings = ["network", "batch", "best ranks", "times faster", "efficiency at 8 ranks"]
    table = Table(*headings, box=SIMPLE_HEAD, title="by the model")
    for curve in curves:
        best, gain = f"{curve.best:,}", f"{curve.gain:.1f}"
        table.add_row(curve.network, f"{curve.batch:,}", best, gain, f"{curve.at(8):.0%}")
    console.print(Whole(table), crop=False)
    say(f"Written to {out}: ranks.json and {', '.join(chart.name for chart in charts)} (PNG and SVG)")
