"""shared.bench.records.tables: that the tables fit a terminal of 80 columns and say what they compare."""

import io
from dataclasses import replace

from rich.console import Console

from shared.bench.measuring.rows import BenchRow
from shared.bench.measuring.timing import summarise
from shared.bench.on_gpu import gpu_record
from shared.bench.on_gpu.gpu_record import recorded
from shared.bench.records.tables import tables
from tests.shared.bench.bench_results import full_results

MEASURED = summarise([0.0345])
AGAINST = {"numpy": 1.051, "stage2_numpy": 1.32, "pytorch": 2.14}


def row(kind: str, stage: str, name: str, variant: str = "", shape: tuple[int, ...] = (1024, 1024, 1024)) -> BenchRow:
    return BenchRow(
        kind,
        stage,
        name,
        "float32",
        shape,
        10**9,
        MEASURED,
        "r",
        123.4,
        variant=variant,
        peak=1e11,
        against=AGAINST,
        ratio_noise=0.004,
        against_noise={"numpy": 0.03},
    )


ROWS = [
    row("peak", "stage3_c", "registers only", shape=()),
    row("ladder", "stage1_pure_python", "zip_rows_columns"),
    row("product", "stage3_c", "gWᵀ 64x128x784", "packed"),
    row("step", "stage3_c", "784-512-10, batch 256", "one_call", (784, 512, 10)),
    replace(row("op", "stage1_pure_python", "relu", shape=(64, 128)), part="forward"),
    *(replace(row("op", "stage2_numpy", "relu", shape=(64, 128)), part=part) for part in ("forward", "backward")),
    replace(row("bandwidth", "stage3_c", "triad", shape=(2**18,)), bytes=2**18),
    replace(row("inference", "stage2_numpy", "784-128-10, batch 64"), samples=64),
    replace(row("memory", "pytorch", "784-128-10, batch 64"), measurement=None, memory=48 * 2**20),
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


def test_speeds_shares_comparisons_and_their_noise_are_shown() -> None:
    lines = {line.split("  ")[0]: line for line in printed().splitlines()}
    speeds = ["34.5", "ms", "29", "29%", "1.05", "3%", "2.14"]
    assert lines["gWᵀ 64x128x784"].split()[2:] == ["stage", "3", "packed", *speeds]
    assert lines["stage 3 one_call"].split()[3:] == ["34.5", "ms", "29%", "123", "0.4%", "1.32", "2.14"]


def test_operations_stand_beside_each_other_a_column_for_each_contender() -> None:
    lines = [line.split() for line in printed().splitlines() if line.startswith("relu")]
    assert lines == [["relu", "forward", "34.5", "ms", "34.5", "ms"], ["relu", "backward", "-", "34.5", "ms"]]


def test_bytes_and_images_a_second_have_units_of_their_own() -> None:
    output = printed()
    assert "1,860" in output  # 64 images in 34.5 ms
    assert "48 MiB" in output
    assert "256 KiB" in output


def test_a_skipped_row_and_unknown_values_are_no_numbers() -> None:
    skipped = BenchRow("step", "pytorch", "s", "float32", (1, 1), 1, None, "r", None, "reason")
    ((_, table),) = tables([skipped])
    cells = [next(iter(column.cells)) for column in table.columns]
    assert cells == ["PyTorch", "skipped", "-", "", "", "-", "", "-", ""]


def test_a_recorded_gpu_stands_beside_the_emulators_time_within_80_columns() -> None:
    found = gpu_record.reference()
    assert found is not None
    console = Console(file=io.StringIO(), width=80)
    console.print(recorded([row for row in full_results().rows if row.emulated], found))
    assert isinstance(console.file, io.StringIO)
    output = console.file.getvalue()
    lines = {line.split("  ")[0]: line.split()[5:] for line in output.splitlines()}
    assert "…" not in output
    assert lines["step of 784-128-10, 64 images"] == ["310", "ms", "226", "µs", "79.5", "µs,", "PyTorch", "graph"]
    assert lines["the same, data on the device"][1:] == ["-", "11.2", "µs", "79.3", "µs,", "PyTorch", "graph"]
