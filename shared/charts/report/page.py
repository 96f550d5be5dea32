"""One run's report: an HTML file that needs no network and no script, with figures, tables and the machine.

    write(results, charts, path)   the page into a file
    html(results, charts)          the page

Its parts: `page_numbers` (the head), `page_figures`, `page_tables`, `page_machine`; `page_style` is its style sheet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from shared.bench.measuring.rows import BenchRow
from shared.bench.on_gpu import gpu_record
from shared.bench.records.document import Results
from shared.bench.records.trust import doubts
from shared.charts.drawing.style import Chart
from shared.charts.drawing.words import capital, noise_text, plural
from shared.charts.report.page_figures import figures
from shared.charts.report.page_machine import machine
from shared.charts.report.page_numbers import headlines
from shared.charts.report.page_style import style
from shared.charts.report.page_tables import guesses, sections
from shared.machine.atomic import write_atomically
from shared.machine.environment import describe, emulation
from shared.markup import Html, table, tag

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""What the browser may do with the page: apply its styles, draw images that stand in it. Nothing is loaded or run."""

_READING = (
    ("median", "The time of one call: half of the samples were faster. All contenders took turns, a sample each."),
    ("spread", "From the first quartile of the samples to the third, as a share of the median: how steady they were."),
    (
        "ratio",
        "Time as a multiple of a reference that was measured in the same rounds: 2 takes twice as long. A ratio holds "
        "when the machine is slower today; a time does not.",
    ),
    ("speed, NumPy = 1", "The other way round: 2 is twice as fast as NumPy in the same rounds."),
    (
        "±",
        "How far another run on this machine may find the ratio, from the disagreement of several passes, each a "
        "process of its own. Two ratios whose ranges overlap are not different.",
    ),
    (
        "of peak",
        "The share of what the cores could do at most: one core's peak times the threads used. GFLOP/s and GB/s follow "
        "from the operations and bytes that the shapes ask for.",
    ),
)
"""The words of the tables, and what they mean."""


def write(results: Results, charts: Sequence[Chart], path: Path, *, saved: Path | None = None) -> Path:
    """Write the page under path, whole or not at all, and return path. OSError where that cannot be.

    charts: its figures. saved: the folder into which `book.save_all` has written them; without it they are drawn again.
    """
    write_atomically(path, html(results, charts, saved=saved).encode())
    return path


def html(results: Results, charts: Sequence[Chart] = (), *, saved: Path | None = None) -> str:
    """The whole page; arguments as of `write`."""
    body = tag(
        "main",
        _head(results),
        _reading(results),
        figures(charts, saved),
        tag("section", tag("h2", "All numbers", id="numbers"), *sections(results)),
        _recorded(results),
        _absent(results),
        _predictions(results),
        tag("section", tag("h2", "The machine and its software", id="machine"), machine(results)),
        _again(results),
    )
    return document(f"{' '.join(results.command.split()[:2]) or 'groundup bench'}, {_day(results)}", body)


def document(title: str, body: Html) -> str:
    """A whole page with this title and this content, in the report's style. The browser loads and runs nothing."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Html(style())),
    )
    return "<!DOCTYPE html>\n" + tag("html", head, tag("body", body), lang="en") + "\n"


def _head(results: Results) -> Html:
    threads = results.environment.get("threads")
    about = [describe(results.environment)] if results.environment else []
    about += [plural(threads, "thread")] if threads else []
    about += ["a quick run"] if results.quick else []
    about += ["a single pass" if results.passes == 1 else f"{results.passes} passes"]
    cards = [
        tag("div", tag("dt", each.title), tag("dd", each.value, *_small(each.noise)), tag("dd", each.about))
        for each in headlines(results)
    ]
    return tag(
        "header",
        tag("h1", "One network, four stages: how fast is each?"),
        tag("p", " · ".join(about), class_="quiet"),
        *(tag("p", notice, class_="notice") for notice in _notices(results)),
        tag("dl", *cards, class_="numbers") if cards else Html(""),
    )


def _small(noise: float | None) -> list[Html]:
    return [] if noise is None else [tag("small", f" ± {noise_text(noise)}")]


def _notices(results: Results) -> Iterator[str]:
    """What a reader must know before trusting the numbers: interruption, single pass, noise, load, emulation."""
    if not results.complete:
        yield "This run was interrupted: what was measured until then is here, the rest is missing."
    if results.passes < 2:
        yield (
            "Everything was measured in one pass. How far another run would find the ratios elsewhere is not known, "
            "so no noise is stated."
        )
    yield from (f"{capital(doubt)}." for doubt in doubts(results))
    if any(row.emulated for row in results.rows):
        note = (results.environment and emulation(results.environment)) or "CUDA kernels were emulated on the CPU"
        yield f"{capital(note)}. Whatever was timed that way is marked as emulated and is compared with nothing."


def _reading(results: Results) -> Html:
    terms = [each for name, text in _READING for each in (tag("dt", name), tag("dd", text))]
    return tag("section", tag("h2", "How to read this", id="reading"), tag("dl", *terms, class_="facts"))


def _recorded(results: Results) -> Html:
    """Where stage 4 was emulated: what it took on a GPU, on another machine."""
    found = gpu_record.reference()
    if found is None or not emulation(results.environment):
        return Html("")
    lines = gpu_record.beside(found, results.rows)
    return tag(
        "section",
        tag("h2", "What a GPU takes", id="recorded"),
        tag("p", f"Recorded on another machine: {found.title} ({found.page}).", class_="quiet"),
        table(gpu_record.HEADS, lines, range(1, len(gpu_record.HEADS)), "Recorded on a GPU"),
    )


def _absent(results: Results) -> Html:
    """What was skipped, and what could not be measured."""
    skipped = dict.fromkeys(f"{_skipped(row)}: {row.skipped}" for row in results.rows if row.skipped)
    parts = []
    if results.unavailable:
        reasons = [tag("li", reason) for reason in results.unavailable.values()]
        parts += [tag("h3", "Could not be measured here"), tag("ul", *reasons)]
    if skipped:
        listed = tag("ul", *(tag("li", each) for each in skipped))
        folded = tag("details", tag("summary", "Which", tag("span", f" {len(skipped)}")), listed)
        parts += [tag("h3", "Skipped"), folded if len(skipped) > 12 else listed]
    return tag("section", tag("h2", "What is not here", id="absent"), *parts) if parts else Html("")


def _skipped(row: BenchRow) -> str:
    size = f"{row.shape[0]} by {row.shape[0]}" if row.kind == "ladder" else ""
    return ", ".join(filter(None, (row.contender, row.name, row.part, size, row.dtype)))


def _predictions(results: Results) -> Html:
    if not results.predictions:
        return Html("")
    return tag("section", tag("h2", "Guessed and measured", id="guesses"), guesses(results))


def _again(results: Results) -> Html:
    heading = tag("h2", "Again", id="again")
    command = tag("pre", tag("code", results.command or "groundup bench"), tabindex=0)
    if results.command == "groundup race":  # its file holds the settings, and `groundup charts` does not read it
        return tag("section", heading, tag("p", "The command that measured this, without its options:"), command)
    redraw = tag("pre", tag("code", "groundup charts results.json"), tabindex=0)
    return tag(
        "section",
        heading,
        tag("p", "The command that measured this:"),
        command,
        tag("p", "Figures and page from the results file, without measuring:"),
        redraw,
    )


def _day(results: Results) -> str:
    return str(results.environment.get("date", ""))[:10] or "no date"
