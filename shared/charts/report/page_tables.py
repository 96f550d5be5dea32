"""The page's tables: one for each kind of row, with the columns in which that kind has values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from shared.bench.measuring.rows import BenchRow, Curve
from shared.bench.records.document import Results
from shared.bench.running.predict import verdict
from shared.charts.drawing import contenders as who
from shared.charts.drawing.words import duration, noise_text, plural, share, size_of, three_digits
from shared.markup import Html, join, table, tag

FEW = 8
"""A table with at most so many rows is open from the start; longer ones are folded."""

TITLES: dict[str, tuple[str, str]] = {
    "peak": ("Peak", "Multiply-adds in registers alone, on one core or a whole GPU: what no product can exceed."),
    "bandwidth": (
        "Bandwidth",
        "The triad a = b + s c, by the bytes of its three arrays: they fit a cache or they do not.",
    ),
    "ladder": ("Matmul ladders", "Square products on every rung, from the first idea to the last."),
    "product": ("The network's products", "The shapes that training multiplies, and two large ones."),
    "integer": (
        "Products of whole numbers",
        "Eight bits, on every rung, beside float32. An operation on whole numbers counts as one of GFLOP/s.",
    ),
    "convolution": ("Convolutions", "Those of the known networks, on every rung, and backward."),
    "op": ("Operations", "Every operation forward and backward, alone."),
    "step": ("Training steps", "Forward, backward and update of one batch."),
    "part": ("Parts of a training step", "Each operation of a step, timed alone."),
    "inference": ("Inference", "Predictions for one batch."),
    "epoch": ("Epochs", "One pass over the training images; accuracy on the test images after it."),
    "target": ("Time to an accuracy", "Training alone, evaluation left out."),
    "memory": ("Memory", "The most that the process held more than before."),
    "phase": ("Around the computing", "Importing, compiling, copying in, computing, copying out."),
}


class Column(NamedTuple):
    """A column: its heading, the cell of a row ("" for nothing), and whether it holds numbers."""

    heading: str
    text: Callable[[BenchRow], str]
    number: bool = True


def sections(results: Results) -> Iterator[Html]:
    """A `details` for each kind that was measured, and one for the trainings."""
    for kind, (title, about) in TITLES.items():
        rows = [row for row in results.rows if row.kind == kind and row.skipped is None]
        if rows:
            columns = [each for each in _columns(rows) if any(each.text(row) for row in rows)]
            cells = [[each.text(row) for each in columns] for row in rows]
            numbers = [place for place, each in enumerate(columns) if each.number]
            yield _folded(title, about, table([each.heading for each in columns], cells, numbers, title), len(rows))
    if results.curves:
        yield _folded("Trainings", "Their last epochs; the charts show them all.", _curves(results.curves), 0)


def guesses(results: Results) -> Html:
    """The table of the learner's guesses, each beside the measurement."""
    rows = [
        [str(each["question"]), _guess(each["guess"]), verdict(each["guess"], each["measured"])]
        for each in results.predictions
    ]
    return table(["question", "guess", "measured"], rows, (1,), "Guesses", wrap=True)


def _guess(value: float | None) -> str:
    return "none" if value is None else three_digits(value)


def _folded(title: str, about: str, content: Html, count: int) -> Html:
    rows = f" {plural(count, 'row')}" if count else ""
    summary = tag("summary", title, tag("span", rows))
    body = join(summary, tag("p", about, class_="quiet"), content)
    return tag("details", body, open="") if 0 < count <= FEW else tag("details", body)


def _columns(rows: Sequence[BenchRow]) -> list[Column]:
    opponents = list(dict.fromkeys(name for row in rows for name in row.against))
    return [
        Column("who", lambda row: row.contender, False),
        Column("what", lambda row: row.name, False),
        Column("part", lambda row: row.part, False),
        Column("dtype", lambda row: row.dtype, False),
        Column("size", _size),
        Column("threads", lambda row: str(row.threads)),
        Column("median", lambda row: duration(row.seconds) if row.seconds else ""),
        Column("spread", lambda row: share(row.measurement.spread) if row.measurement else ""),
        Column("clock", lambda row: "GPU's" if row.clock == "events" else "", False),
        Column("ratio", lambda row: with_noise(row.ratio, row.ratio_noise)),
        *(_beside(opponent) for opponent in opponents),
        Column("GFLOP/s", lambda row: three_digits(row.gflops) if row.gflops else ""),
        Column("GB/s", lambda row: three_digits(row.gigabytes) if row.gigabytes else ""),
        Column("of peak", lambda row: share(row.share_of_peak) if row.share_of_peak else ""),
        Column("images/s", lambda row: three_digits(row.samples_per_second) if row.samples_per_second else ""),
        Column("accuracy", lambda row: f"{row.accuracy:.2%}" if row.accuracy is not None else ""),
        Column("memory", lambda row: size_of(row.memory) if row.memory is not None else ""),
        Column("ratio to", lambda row: row.reference if row.ratio else "", False),
    ]


def _beside(opponent: str) -> Column:
    def text(row: BenchRow) -> str:
        return with_noise(row.against.get(opponent), row.against_noise.get(opponent))

    return Column(f"speed, {who.name(opponent)} = 1", text)


def _size(row: BenchRow) -> str:
    if row.kind == "bandwidth":
        return size_of(row.shape[0])
    if row.kind == "ladder":  # of square matrices
        return f"{row.shape[0]:,}"
    return " by ".join(f"{each:,}" for each in row.shape) if row.kind == "op" else ""


def with_noise(value: float | None, noise: float | None) -> str:
    """'2.05 ± 3 %', or without the noise where none is known."""
    if value is None:
        return ""
    return three_digits(value) + ("" if noise is None else f" ± {noise_text(noise)}")


def _curves(curves: Sequence[Curve]) -> Html:
    heads = ["who", "network", "images", "threads", "epochs", "training loss", "test accuracy", "seconds of training"]
    rows = [
        [
            who.title(each.stage, emulated=each.emulated),
            each.network,
            each.dataset,
            str(each.threads),
            str(len(each.epochs)),
            f"{each.loss[-1]:.4f}",
            f"{each.accuracy[-1]:.2%}",
            three_digits(each.seconds[-1]),
        ]
        for each in curves
        if each.epochs
    ]
    return table(heads, rows, range(3, 8), "Trainings")
