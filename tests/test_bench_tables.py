"""shared.bench_tables: that the tables fit a terminal of 80 columns and say what they compare."""

import io

from rich.console import Console

from shared.bench_tables import tables
from shared.benchmark import BenchRow, summarise

MEASURED = summarise([0.0345])
AGAINST = {"numpy": 1.051, "stage2_numpy": 1.32, "pytorch": 2.14}


def row(kind: str, stage: str, name: str, variant: str = "", shape: tuple[int, ...] = (1024, 1024, 1024)) -> BenchRow:
    return BenchRow(
        kind, stage, name, "float32", shape, 10**9, MEASURED, "r", 123.4, variant=variant, peak=1e11, against=AGAINST
    )


ROWS = [
    row("peak", "stage3_c", "registers only", shape=()),
    row("ladder", "stage1_pure_python", "zip_rows_columns"),
    row("product", "stage3_c", "gWᵀ 64x128x784", "packed"),
    row("step", "stage3_c", "784-512-10, batch 256", "one_call", (784, 512, 10)),
    row("epoch", "pytorch", "784-128-10, batch 64, mnist", shape=(784, 128, 10)),
]


def printed() -> str:
    console = Console(file=io.StringIO(), width=80)
    for title, table in tables(ROWS):
        console.print(title)
        console.print(table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_everything_fits_into_80_columns() -> None:
    output = printed()
    assert "…" not in output
    for text in ("zip_rows_columns", "gWᵀ 64x128x784", "stage 3 packed", "stage 3 one_call", "PyTorch"):
        assert text in output


def test_speeds_shares_and_comparisons_are_shown() -> None:
    lines = {line.split("  ")[0]: line for line in printed().splitlines()}
    assert lines["gWᵀ 64x128x784"].split()[2:] == [
        "stage",
        "3",
        "packed",
        "34.5",
        "ms",
        "0%",
        "29",
        "29%",
        "1.05",
        "2.14",
    ]
    assert lines["stage 3 one_call"].split()[3:] == ["34.5", "ms", "0%", "29", "29%", "123", "1.32", "2.14"]


def test_a_skipped_row_and_unknown_values_are_no_numbers() -> None:
    skipped = BenchRow("step", "pytorch", "s", "float32", (1, 1), 1, None, "r", None, "reason")
    ((_, table),) = tables([skipped])
    assert [next(iter(column.cells)) for column in table.columns] == ["PyTorch", "skipped", "", "", "-", "", "-", "-"]


def test_no_rows_no_tables() -> None:
    assert list(tables([])) == []
